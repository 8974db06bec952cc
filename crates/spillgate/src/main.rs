//! Decides by evidence what stays in an agent's prompt.
//!
//! `main` reads the command line, calls the one function behind the verb, prints its error and
//! turns the outcome into the exit code. The only crate that prints, exits, and reads the clock
//! and the environment on behalf of the others.

mod accept;
mod allocator;
mod baseline;
mod cli;
mod compare;
mod folder;
mod github;
mod host;
mod init;
mod live;
mod manual;
mod mock;
mod out;
mod output_file;
mod own_memory;
mod planted;
mod prices;
mod progress;
mod remote;
mod replay;
mod scenario;
mod self_test;
mod serve;
mod setup;
mod shard;
mod site;
mod sources;
mod step;
mod subject;
mod sweep;
mod temp;
mod work;

use std::io::ErrorKind;
use std::process::ExitCode;

use spill_verdict::harmless;

use crate::cli::Verb;

fn main() -> ExitCode {
    let verb = match Verb::of_command_line() {
        Ok(verb) => verb,
        Err(error) => return refused(&error),
    };
    let outcome = match verb {
        Verb::Accept(args) => accept::run(&args),
        Verb::List(args) => accept::list(&args),
        Verb::Judge(args) => folder::judge(&args),
        Verb::Report(args) => folder::report(&args),
        Verb::Compare(args) => compare::run(&args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Scenario(args) => scenario::run(&args),
        Verb::Init(args) => init::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Step(args) => step::run(&args),
        Verb::Mock(args) => mock::run(&args),
        Verb::Merge(args) => shard::merge(&args),
        Verb::Sweep(args) => sweep::run(&args),
        Verb::SelfTest(args) => self_test::run(&args),
        Verb::Planted(args) => planted::run(&args),
        Verb::Completions(args) => manual::completions(&args),
        Verb::Man(args) => manual::man(&args),
        Verb::Launch => step::launch(),
    };
    match outcome {
        // A place that cannot be written goes before whatever the verb found.
        Ok(_) if out::lost() => ExitCode::from(spill_verdict::exit::USAGE),
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.print(),
    }
}

/// Prints what the command line itself answers: help, the version, or what it cannot take.
fn refused(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let code = u8::try_from(error.exit_code()).unwrap_or(spill_verdict::exit::USAGE);
    let drives_the_terminal = harmless(&text) != *text;
    if drives_the_terminal {
        // It quotes what was given, colour or not.
        out::note(text.trim_end());
    } else if error
        .print()
        .is_err_and(|error| error.kind() != ErrorKind::BrokenPipe)
    {
        return ExitCode::from(spill_verdict::exit::USAGE);
    }
    ExitCode::from(code)
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

    /// The same, told by another error.
    pub(crate) fn map(self, told: impl FnOnce(anyhow::Error) -> anyhow::Error) -> Self {
        Self {
            error: told(self.error),
            ..self
        }
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }

    /// Place, fact and way out.
    pub(crate) fn words(&self) -> String {
        in_full(&self.error)
    }

    fn print(self) -> ExitCode {
        out::note(format_args!("spillgate {}: {}", self.verb, self.words()));
        ExitCode::from(self.code)
    }
}

/// An error with its causes; a cause that its own effect quotes already is not said twice.
pub(crate) fn in_full(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
