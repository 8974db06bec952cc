//! Stores: where spilled texts are held, behind one synchronous trait.
//!
//! A store picks a name first ([`SpillStore::name`]), so that a notice can be priced with its locator before anything is
//! written, and then holds the bytes under it once and for ever: no name is written twice. Time, sizes and the source of
//! names are arguments. Stores cut nothing and know no characters; `reading` does.

mod file;
mod key;
mod memory;
mod names;
mod outcome;
mod sweep_once;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use file::{Durability, FileOptions, FileStore, Probe};
pub use key::{ItemKey, MalformedKey};
pub use memory::{MemoryOptions, MemoryStore};
pub use names::{Names, OsNames, SeededNames};
pub use outcome::{Damage, ReadFailure, StoreError};
pub use sweep_once::SweepOnce;

use crate::measure::Bytes;
use crate::shared_text::SharedText;

/// A point in time in milliseconds. The caller's clock; stores only compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(u64);

impl Millis {
    /// `millis` milliseconds from the clock's start.
    pub const fn new(millis: u64) -> Self {
        Self(millis)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// `span` later, at most the end of time.
    #[must_use]
    pub const fn after(self, span: Self) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A session or execution, by whatever text the caller knows it. Never part of a file name. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(Arc<str>);

impl Owner {
    /// Takes any text, also an empty or a very long one.
    pub fn new(text: &str) -> Self {
        Self(Arc::from(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who may read an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Whoever has the key.
    Anyone,
    /// This owner alone; to everybody else the item does not exist.
    Only(Owner),
}

impl Visibility {
    /// True when `reader` may see the item.
    pub fn admits(&self, reader: &Reader) -> bool {
        match (self, reader) {
            (Self::Anyone, _) => true,
            (Self::Only(owner), Reader::Of(reading)) => owner == reading,
            (Self::Only(_), Reader::Stranger) => false,
        }
    }
}

/// Who reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A session or execution.
    Of(Owner),
    /// Nobody known: sees only what anyone may see.
    Stranger,
}

/// The bytes of an item, shared and never copied. `Debug` shows the length alone.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(SharedText),
    /// Bytes that need not be a text.
    Bytes(Arc<Vec<u8>>),
}

impl Content {
    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bytes as a vector of their own, without a copy where nobody shares them.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_string().into_bytes(),
            Self::Bytes(bytes) => Arc::unwrap_or_clone(bytes),
        }
    }

    /// How many bytes.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.as_bytes().len() as u64)
    }
}

impl From<SharedText> for Content {
    fn from(text: SharedText) -> Self {
        Self::Text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Arc::new(bytes))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Content({} bytes)", self.as_bytes().len())
    }
}

/// A name that nothing is stored under yet. Using it up stores; dropping it costs nothing. Not `Clone`: one name, one item.
#[derive(Debug, PartialEq, Eq)]
pub struct ItemName {
    pub(crate) key: ItemKey,
    pub(crate) locator: String,
    pub(crate) suffix: String,
}

impl ItemName {
    /// For stores outside this crate: the name that `locator` tells the model.
    pub fn new(key: ItemKey, locator: impl Into<String>) -> Self {
        Self {
            key,
            locator: locator.into(),
            suffix: String::new(),
        }
    }

    /// The key that reads will use.
    pub fn key(&self) -> ItemKey {
        self.key
    }

    /// The text that names the item to the model: a path for a file store, else the key.
    pub fn locator(&self) -> &str {
        &self.locator
    }
}

/// What is known of an item before its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemHead {
    /// Who may read it.
    pub visibility: Visibility,
    /// The media type, such as `text/plain`.
    pub media_type: String,
    /// Now.
    pub now: Millis,
    /// How long it lives; `None` as long as the store or its owner. It is still readable at the last millisecond.
    pub time_to_live: Option<Millis>,
}

impl ItemHead {
    /// A plain text that only `owner` may read, for as long as the store lives.
    pub fn text_of(owner: &Owner, now: Millis) -> Self {
        Self {
            visibility: Visibility::Only(owner.clone()),
            media_type: "text/plain".to_owned(),
            now,
            time_to_live: None,
        }
    }

    /// The last millisecond at which the item can be read.
    pub fn expires_at(&self) -> Option<Millis> {
        self.time_to_live.map(|span| self.now.after(span))
    }
}

/// An item that a store holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Its key.
    pub key: ItemKey,
    /// The text that names it to the model.
    pub locator: String,
    /// The media type.
    pub media_type: String,
    /// Its bytes.
    pub size: Bytes,
    /// The last millisecond at which it can be read.
    pub expires_at: Option<Millis>,
}

/// Bytes of an item: those from `offset` on, at most `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte, from 0.
    pub offset: u64,
    /// Most bytes returned; what lies behind the end is left out.
    pub length: u64,
}

impl ByteRange {
    /// Everything.
    pub const ALL: Self = Self {
        offset: 0,
        length: u64::MAX,
    };

    /// The positions inside an item of `size` bytes.
    ///
    /// # Errors
    /// [`ReadFailure::OutOfRange`] when the range starts behind the end; at the end it is empty.
    pub fn within(self, size: Bytes) -> Result<Range<u64>, ReadFailure> {
        if self.offset > size.get() {
            return Err(ReadFailure::OutOfRange {
                offset: self.offset,
                size: size.get(),
            });
        }
        Ok(self.offset..self.offset.saturating_add(self.length).min(size.get()))
    }
}

/// Bytes read from an item. From memory they are shared, from a file they are a copy. `Debug` shows sizes alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Slice {
    /// Where the first byte stands in the item.
    pub offset: u64,
    /// Bytes of the whole item.
    pub size: Bytes,
    content: Content,
    range: Range<usize>,
}

impl Slice {
    /// For stores outside this crate: `content` stands at `offset` in an item of `size` bytes.
    pub fn part(offset: u64, size: Bytes, content: Content) -> Self {
        let range = 0..content.as_bytes().len();
        Self {
            offset,
            size,
            content,
            range,
        }
    }

    /// The part `range` of `content`, which is the whole item.
    pub(crate) fn shared(content: Content, range: Range<usize>) -> Self {
        Self {
            offset: range.start as u64,
            size: content.size(),
            content,
            range,
        }
    }

    /// The part `range` of `bytes`, which stands at `offset` in an item of `size` bytes.
    pub(crate) fn copied(offset: u64, size: Bytes, bytes: Vec<u8>, range: Range<usize>) -> Self {
        Self {
            offset,
            size,
            content: bytes.into(),
            range,
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.content.as_bytes()[self.range.clone()]
    }

    /// Where the next slice starts; `None` when this one reaches the end.
    pub fn next_offset(&self) -> Option<u64> {
        let end = self.offset + self.range.len() as u64;
        (end < self.size.get()).then_some(end)
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, size) = (self.offset, self.size.get());
        write!(
            out,
            "Slice({} bytes from {offset} of {size})",
            self.range.len()
        )
    }
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Items whose time was over.
    pub expired: u64,
    /// Items removed for room, the oldest first.
    pub evicted: u64,
    /// What a crash had left behind.
    pub leftovers: u64,
    /// Bytes that all of them took.
    pub bytes: u64,
}

/// What a store holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Items held.
    pub items: u64,
    /// Bytes they take, as the quota counts them.
    pub bytes: u64,
    /// The most bytes at one time.
    pub peak_bytes: u64,
    /// The most bytes that the quota allows.
    pub quota_bytes: u64,
    /// Items stored.
    pub stored: u64,
    /// Items that could not be stored.
    pub refused: u64,
}

/// What happens when an item does not fit the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused; nothing that was promised goes.
    Refuse,
    /// Expired items go first, then the least recently used (memory) or the oldest (files), until it fits.
    Evict,
}

/// Holds items under names that are written once. Shared between threads; what one call does is atomic to all others.
pub trait SpillStore: Send + Sync {
    /// Picks a name and writes nothing. `label` is a hint for people, such as a tool's name; a store may show it in the
    /// locator, encoded and cut.
    ///
    /// # Errors
    /// [`StoreError`] when no name can be made.
    fn name(&self, label: &str) -> Result<ItemName, StoreError>;

    /// Stores `content` under `name`.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be held whole; then nothing of it is left and the name is used up.
    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError>;

    /// Stores bytes while they arrive. Nothing can be read before [`ItemWriter::finish`]; dropping the writer leaves nothing.
    ///
    /// # Errors
    /// [`StoreError`] when nothing can be stored now.
    fn begin<'a>(
        &'a self,
        name: ItemName,
        head: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError>;

    /// What is known of an item. Does not count as a use.
    ///
    /// # Errors
    /// [`ReadFailure`]; an item that `reader` may not see is not found.
    fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<StoredItem, ReadFailure>;

    /// Exactly the bytes of `range` that exist. Counts as a use where that matters.
    ///
    /// # Errors
    /// [`ReadFailure`]; an item that `reader` may not see is not found.
    fn read(
        &self,
        key: ItemKey,
        reader: &Reader,
        range: ByteRange,
        now: Millis,
    ) -> Result<Slice, ReadFailure>;

    /// The key of a locator of this store, however the model spells its start; `None` for any other text.
    fn key_of(&self, locator: &str) -> Option<ItemKey>;

    /// Removes what only `owner` may read. Later reads do not find it.
    fn release(&self, owner: &Owner);

    /// Removes what has expired, then the oldest as far as the quota asks for, and what a crash left behind.
    fn sweep(&self, now: Millis) -> Swept;

    /// What it holds and did.
    fn usage(&self) -> StoreUsage;
}

/// An item that is arriving.
pub trait ItemWriter {
    /// Adds `bytes` at the end.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be held; the item will then not be stored, and `finish` fails too.
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError>;

    /// Makes the item readable. May be called once.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be held whole; then nothing of it is left once the writer is dropped.
    fn finish(&mut self) -> Result<StoredItem, StoreError>;

    /// Gives up an item that is not finished: the bytes of every write that succeeded. Nothing of it is left in the store.
    ///
    /// # Errors
    /// [`StoreError`] when they cannot be read back.
    fn take_back(self: Box<Self>) -> Result<Vec<u8>, StoreError>;
}
