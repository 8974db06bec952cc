//! The one allocation of a result's text.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A result's text, held once and shared by prompt, tool-call record and store. Cloning copies a pointer; making one from a
/// `String` moves it. `Debug` shows the length alone, so that a derived `Debug` never puts content into a log.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedText(Arc<String>);

impl SharedText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text on its own, without a copy where nobody shares it.
    pub(crate) fn into_string(self) -> String {
        Arc::unwrap_or_clone(self.0)
    }

    /// True when both are the same allocation, not merely equal.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many owners the allocation has at this moment.
    pub fn owners(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for SharedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "SharedText({} bytes)", self.0.len())
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl serde::Serialize for SharedText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}
