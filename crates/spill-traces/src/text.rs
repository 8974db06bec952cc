//! A piece of text without a copy of it.

use std::fmt;
use std::ops::{Deref, Range};

use spill_engine::SharedText;

/// A range of a shared text. Cloning and cutting copy a pointer and two offsets; two are equal when their characters are.
/// `Debug` shows the length alone, so that a derived `Debug` never puts content into a log.
#[derive(Clone)]
pub struct Text {
    whole: SharedText,
    range: Range<usize>,
}

impl Text {
    /// The characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.whole[self.range.clone()]
    }

    /// The allocation that this is a range of, and the range.
    #[must_use]
    pub fn shared(&self) -> (&SharedText, Range<usize>) {
        (&self.whole, self.range.clone())
    }

    /// The part at `range` (bytes, relative to this text), or `None` when it is out of bounds or not on character bounds.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        self.as_str().get(range.clone())?;
        Some(Self {
            whole: self.whole.clone(),
            range: self.range.start + range.start..self.range.start + range.end,
        })
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        let range = 0..text.len();
        Self {
            whole: SharedText::from(text),
            range,
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Text({} bytes)", self.len())
    }
}
