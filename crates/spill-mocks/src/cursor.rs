//! JSON read step by step, so that a request can be read on from where an earlier one ended.

use serde::Deserialize;
use serde_json::Deserializer;

use crate::error::BadRequest;

/// A place in the body, for the few steps that `serde_json` does not take one at a time.
pub(crate) struct Cursor<'b> {
    pub(crate) body: &'b [u8],
    pub(crate) at: usize,
}

impl<'b> Cursor<'b> {
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.body.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    pub(crate) fn next_is(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), BadRequest> {
        if self.next_is(byte) {
            return Ok(());
        }
        Err(self.malformed(&format!("expected `{}`", char::from(byte))))
    }

    pub(crate) fn end(&mut self) -> Result<(), BadRequest> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.malformed("trailing characters")),
        }
    }

    pub(crate) fn malformed(&self, message: &str) -> BadRequest {
        BadRequest::Malformed {
            at: self.at,
            message: message.to_owned(),
        }
    }

    pub(crate) fn value<T: Deserialize<'b>>(&mut self) -> Result<T, BadRequest> {
        let mut values = Deserializer::from_slice(&self.body[self.at..]).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            Some(Err(error)) => Err(self.malformed(&error.to_string())),
            None => Err(self.malformed("expected a value")),
        }
    }
}
