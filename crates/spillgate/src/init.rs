//! `init`: a commented scenario to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::{Context, anyhow};

use crate::cli::{InitArgs, InitRecipe};
use crate::{Failure, out};

const VERB: &str = "init";
const REVIEW: &str = include_str!("../templates/review.toml");
const DOCUMENT: &str = include_str!("../templates/document.toml");
const RECORDS: &str = include_str!("../templates/records.toml");
const COMMON: &str = include_str!("../templates/common.toml");

pub(crate) fn run(args: &InitArgs) -> Result<u8, Failure> {
    write(args).map_err(|error| Failure::usage(VERB, error))?;
    let shown = args.out.display();
    out::line(format_args!(
        "{shown}: a scenario of the recipe {}",
        args.recipe.name()
    ));
    out::line(format_args!(
        "see its plan: spillgate list --scenario {shown}"
    ));
    out::line(format_args!(
        "run it: spillgate accept --stage quick --scenario {shown}"
    ));
    Ok(spill_verdict::exit::ACCEPTED)
}

fn write(args: &InitArgs) -> anyhow::Result<()> {
    let head = match args.recipe {
        InitRecipe::Review => REVIEW,
        InitRecipe::Document => DOCUMENT,
        InitRecipe::Records => RECORDS,
    };
    let shown = args.out.display();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&args.out)
        .map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                anyhow!(
                    "{shown} is there, and nothing is overwritten (name another file with --out)"
                )
            }
            _ => anyhow!("{shown} cannot be made: {error} (name another file with --out)"),
        })?;
    let written = file.write_all(format!("{head}\n{COMMON}").as_bytes());
    if written.is_err() {
        // Half a scenario must not be taken for one.
        drop(std::fs::remove_file(&args.out));
    }
    written.with_context(|| format!("{shown} cannot be written (name another file with --out)"))
}
