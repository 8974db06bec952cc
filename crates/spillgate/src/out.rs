//! The only writer to standard output and standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line of the answer. A reader that is gone (`| head`) ends nothing; another failure is
/// said on standard error.
pub(crate) fn line(text: impl Display) {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            note(format_args!("standard output cannot be written: {error}"));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Prints a line beside the answer; where standard error is closed, nobody wants to read it.
pub(crate) fn note(text: impl Display) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
