//! Decides by evidence what stays in an agent's prompt.
//!
//! `main` reads the command line, calls the one function behind the verb, prints its error and
//! turns the outcome into the exit code. The only crate that prints, exits, and reads the clock
//! and the environment on behalf of the others.

mod accept;
mod baseline;
mod cli;
mod compare;
mod folder;
mod github;
mod host;
mod mock;
mod out;
mod output_file;
mod prices;
mod progress;
mod replay;
mod serve;
mod sources;
mod step;
mod temp;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Verb};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.verb {
        Verb::Accept(args) => accept::run(&args),
        Verb::List(args) => accept::list(&args),
        Verb::Judge(args) => folder::judge(&args),
        Verb::Report(args) => folder::report(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Step(args) => step::run(&args),
        Verb::Mock(args) => mock::run(&args),
        Verb::Launch(args) => step::launch(&args),
    };
    match outcome {
        // An answer that was not printed is not given: never the code of success.
        Ok(spill_verdict::exit::ACCEPTED) if out::lost() => {
            ExitCode::from(spill_verdict::exit::INTERNAL)
        }
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.print(),
    }
}

/// Why a verb could not do its work, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    verb: &'static str,
    error: anyhow::Error,
}

impl Failure {
    /// Something the user gave cannot be used.
    pub(crate) fn usage(verb: &'static str, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: spill_verdict::exit::USAGE,
            verb,
            error: error.into(),
        }
    }

    /// Something of ours went wrong.
    pub(crate) fn internal(verb: &'static str, error: impl Into<anyhow::Error>) -> Self {
        Self {
            code: spill_verdict::exit::INTERNAL,
            verb,
            error: error.into(),
        }
    }

    fn print(self) -> ExitCode {
        out::note(format_args!(
            "spillgate {}: {}",
            self.verb,
            in_full(&self.error)
        ));
        ExitCode::from(self.code)
    }
}

/// An error with its causes; a cause that its own effect quotes already is not said twice.
fn in_full(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
