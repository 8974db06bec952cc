//! The only writer to standard output and standard error.
//!
//! Whatever the text holds, no character that drives a terminal gets through: names of files and
//! scenarios, answers and errors of subjects come from outside. Colours are added here alone, on a
//! terminal and without `NO_COLOR`.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use spill_verdict::{Decision, harmless};

use crate::Failure;

/// Whether an answer could not be printed; said once, and the program then ends with 2.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a line of the answer. A reader that is gone (`| head`) is no failure.
pub(crate) fn line(text: impl Display) {
    bytes(format!("{}\n", harmless(&text.to_string())).as_bytes());
}

/// Prints the sentence that decides, coloured where that is wanted.
pub(crate) fn decision(sentence: &str, decision: Decision) {
    let sentence = harmless(sentence);
    let styled = console::style(sentence).bold();
    let styled = match decision {
        Decision::Keep => styled.green(),
        Decision::Change | Decision::Disable => styled.red(),
        Decision::None => styled.yellow(),
    };
    bytes(format!("{styled}\n").as_bytes());
}

/// Prints a value as indented JSON.
pub(crate) fn json(verb: &'static str, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::internal(verb, e))?;
    line(spill_record::harmless_json(&text));
    Ok(())
}

/// Prints what is ours to the last byte, such as a script or a manual page.
pub(crate) fn bytes(bytes: &[u8]) {
    let printed = {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    };
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if !LOST.swap(true, Ordering::Relaxed) {
                note(format_args!(
                    "standard output cannot be written: {error} (give it a place with room)"
                ));
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
    drop(writeln!(
        io::stderr().lock(),
        "{}",
        harmless(&text.to_string())
    ));
}
