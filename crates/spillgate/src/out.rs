//! The only writer to standard output and standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an answer could not be printed; said once, and the program then does not end with 0.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a line of the answer. A reader that is gone (`| head`) is no failure.
pub(crate) fn line(text: impl Display) {
    let printed = {
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush())
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if !LOST.swap(true, Ordering::Relaxed) {
                note(format_args!("standard output cannot be written: {error}"));
            }
        }
        Ok(()) | Err(_) => {}
    }
}

/// Whether a line of the answer was lost.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints a line beside the answer; where standard error is closed, nobody wants to read it.
pub(crate) fn note(text: impl Display) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
