//! What a process wrote to standard error.

use std::io::{self, PipeWriter, Write};

/// Stands in the pipe before the process starts: what is read from it without this was not read whole.
const CONTROL: &[u8] = b"spillgate: what the process itself writes begins here\n";

/// Standard error of a process, as it came out of its pipe.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Log {
    text: Vec<u8>,
    has_control: bool,
}

impl Log {
    /// Writes the control into a pipe that nothing was written to yet.
    pub(crate) fn plant_control(mut pipe: &PipeWriter) -> io::Result<()> {
        pipe.write_all(CONTROL)
    }

    /// What was read from such a pipe.
    pub(crate) fn read(mut text: Vec<u8>) -> Self {
        let has_control = text.starts_with(CONTROL);
        if has_control {
            text.drain(..CONTROL.len());
        }
        Self { text, has_control }
    }

    /// What the process wrote.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the control came out of the pipe too.
    pub(crate) fn has_control(&self) -> bool {
        self.has_control
    }

    /// The log of a process that wrote `text`.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self {
            text: text.into(),
            has_control: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_log_is_what_follows_the_control() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        Log::plant_control(&writer).expect("there is room");
        (&writer).write_all(b"a line\n").expect("there is room");
        drop(writer);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).expect("it ends");
        assert_eq!(Log::read(read.clone()), Log::of("a line\n"));
        let lost = Log::read(read[1..].to_vec());
        assert!(!lost.has_control() && lost.text().ends_with(b"a line\n"));
        assert!(!Log::read(Vec::new()).has_control());
    }
}
