//! `completions` and `man`: what shells and manual readers need, made from the command line itself.

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use spill_record::RunFolder;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::{Failure, out};

const MAN: &str = "man";

pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, Failure> {
    let mut script = Vec::new();
    // Scripts offer hidden verbs as well, so the command is made of the others.
    let full = Cli::command();
    let verbs = full.get_subcommands().filter(|verb| !verb.is_hide_set());
    let mut command = verbs
        .cloned()
        .fold(Command::new("spillgate").version("?"), Command::subcommand);
    clap_complete::generate(args.shell, &mut command, "spillgate", &mut script);
    out::bytes(&script);
    Ok(0)
}

pub(crate) fn man(args: &ManArgs) -> Result<u8, Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let page = |command: &Command| -> std::io::Result<(String, Vec<u8>)> {
        let man = Man::new(command.clone());
        let mut page = Vec::new();
        man.render(&mut page)?;
        Ok((man.get_filename(), page))
    };
    let page = |command| page(command).map_err(|error| Failure::internal(MAN, error));
    let Some(folder) = &args.out else {
        out::bytes(&page(&command)?.1);
        return Ok(0);
    };
    std::fs::create_dir_all(folder).map_err(|error| {
        let words = format!(
            "cannot make the folder {}: {error} (choose a writable one with --out)",
            folder.display()
        );
        Failure::usage(MAN, anyhow::Error::msg(words))
    })?;
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    for command in std::iter::once(&command).chain(verbs) {
        let (name, page) = page(command)?;
        RunFolder::write_derived(folder, &name, &page)
            .map_err(|error| Failure::usage(MAN, error))?;
        out::line(folder.join(name).display());
    }
    Ok(0)
}
