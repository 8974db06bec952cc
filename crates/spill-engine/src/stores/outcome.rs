//! Why something could not be stored or read, with the way out.

use std::io;

/// Why an item was not stored. The caller keeps the result inline: a store never fails a tool call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The item alone is larger than the quota.
    #[error("{size} bytes are more than the store's quota of {quota} (raise the quota)")]
    TooLarge {
        /// Bytes of the item, as far as they are known.
        size: u64,
        /// The quota.
        quota: u64,
    },
    /// The quota has no room, and nothing may or can go.
    #[error(
        "{size} bytes do not fit: {used} of {quota} bytes are in use (raise the quota or release sessions)"
    )]
    Full {
        /// Bytes of the item, as far as they are known.
        size: u64,
        /// Bytes in use.
        used: u64,
        /// The quota.
        quota: u64,
    },
    /// Something is stored under this name, and names are written once.
    #[error("the name is taken (ask the store for a new one)")]
    Taken,
    /// An earlier write failed; the store writes nothing more.
    #[error("nothing is stored after an earlier failure: {reason}")]
    Latched {
        /// The earlier failure.
        reason: String,
    },
    /// The store's place is not a private directory.
    #[error("{place} cannot hold results: {fact} (remove it or configure another directory)")]
    Unusable {
        /// The path.
        place: String,
        /// What stands there.
        fact: String,
    },
    /// The operating system refused.
    #[error("{action} failed: {message}")]
    Io {
        /// What was tried, without content.
        action: String,
        /// The kind of failure.
        kind: io::ErrorKind,
        /// The system's words.
        message: String,
    },
}

impl StoreError {
    /// True when the next item would meet the same: the store itself is broken, not merely full.
    pub(crate) fn is_for_good(&self) -> bool {
        match self {
            Self::Unusable { .. } | Self::Io { .. } => true,
            Self::TooLarge { .. } | Self::Full { .. } | Self::Taken | Self::Latched { .. } => false,
        }
    }

    pub(crate) fn io(action: impl Into<String>, error: &io::Error) -> Self {
        Self::Io {
            action: action.into(),
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

/// Why bytes could not be read back: a closed set, each with what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFailure {
    /// It never existed, or this reader may not see it: deliberately one and the same.
    #[error(
        "not found: nothing is stored under this reference (copy it exactly from a notice in this conversation, or call the original tool again; repeating this call will not help)"
    )]
    NotFound,
    /// Its time is over.
    #[error(
        "expired: the stored result is no longer kept (call the original tool again; repeating this call will not help)"
    )]
    Expired,
    /// It had to make room, or was removed.
    #[error(
        "evicted: the stored result was removed from the store (call the original tool again; repeating this call will not help)"
    )]
    Evicted,
    /// What is stored is not what was written, or cannot be read.
    #[error("corrupt: {0} (other ranges may be intact; else call the original tool again)")]
    Corrupt(Damage),
    /// The range starts behind the end.
    #[error(
        "out of range: offset {offset} is behind the end, the result has {size} bytes and no more (use an offset from 0 to {size})"
    )]
    OutOfRange {
        /// The offset asked for.
        offset: u64,
        /// Bytes of the item.
        size: u64,
    },
}

/// What is known of a damaged item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It has another length than was written.
    #[error("the stored copy has {found} bytes, {expected} were written")]
    Length {
        /// Bytes written.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// A page's checksum differs.
    #[error("the bytes {start} to {end} of the stored copy differ from what was written")]
    Page {
        /// First byte of the page.
        start: u64,
        /// Behind its last byte.
        end: u64,
    },
    /// What the store notes beside the item is not whole.
    #[error("the stored copy's description is damaged")]
    Description,
    /// The operating system refused to read it.
    #[error("the stored copy cannot be read: {message}")]
    Unreadable {
        /// The system's words.
        message: String,
    },
}
