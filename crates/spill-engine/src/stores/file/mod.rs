//! Items as files of one private directory.
//!
//! An item is `<key>-<readable suffix>`, its bytes exactly as stored, and `<key>.meta`, its description. It arrives as
//! `<key>.part` and gets its name last, so a name that is there is whole. The directory is made at the first put, 0700, and
//! its files 0600; no link is followed at any level. All processes that use it share one lock and one count of bytes.

mod description;
mod disk;
mod file_name;
mod opened;
mod place;
mod room;
mod sys;
#[cfg(test)]
mod tests;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::Disk;
use opened::OpenItems;
use place::Missing;
pub use writer::Durability;
use writer::Writer;

use super::{
    ByteRange, Content, ItemHead, ItemKey, ItemName, ItemWriter, Millis, Names, OsNames, Owner,
    ReadFailure, Reader, Slice, SpillStore, StoreError, StoreUsage, StoredItem, Swept, Visibility,
    WhenFull,
};
use crate::measure::Bytes;

/// How often a name is drawn before giving up on a source that repeats itself.
const DRAWS: u32 = 64;
/// The file system that is memory in truth.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// How a file store behaves.
#[derive(Clone)]
pub struct FileOptions {
    /// The directory: an absolute path without `..`, no part of which is a link. Made at the first put; if it exists, it must
    /// be ours and closed to others (0700).
    pub root: PathBuf,
    /// How locators name the directory; by its path when `None`. A name that does not change with the path keeps prompts
    /// equal from run to run.
    pub shown_root: Option<String>,
    /// The most bytes of all files, descriptions included, of all processes.
    pub quota: Bytes,
    /// What happens beyond.
    pub when_full: WhenFull,
    /// What a promise survives.
    pub durability: Durability,
    /// Where names come from.
    pub names: Arc<dyn Names>,
}

impl FileOptions {
    /// In `root`, 512 MiB, the oldest goes when full, surviving the process, names from the operating system.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            shown_root: None,
            quota: Bytes::new(512 << 20),
            when_full: WhenFull::Evict,
            durability: Durability::Process,
            names: Arc::new(OsNames),
        }
    }
}

/// What a look at the directory found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// It is a file system in memory: what is stored there still takes memory.
    pub in_memory: bool,
}

/// Holds items in files. After a failed write, everything of that owner stays inline until it is released.
pub struct FileStore {
    options: FileOptions,
    shown_root: String,
    disk: Mutex<Option<Arc<Disk>>>,
    open: OpenItems,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    latched: BTreeMap<Option<Owner>, String>,
    stored: u64,
    refused: u64,
    peak: u64,
}

impl FileStore {
    /// Touches nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] when the path is not text, as locators are.
    pub fn new(options: FileOptions) -> Result<Self, StoreError> {
        let root = options.root.to_str().ok_or_else(|| StoreError::Unusable {
            place: options.root.display().to_string(),
            fact: "the path is not UTF-8".to_owned(),
        })?;
        let shown = options.shown_root.as_deref().unwrap_or(root);
        Ok(Self {
            shown_root: shown.trim_end_matches('/').to_owned(),
            options,
            disk: Mutex::default(),
            open: OpenItems::default(),
            state: Mutex::default(),
        })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.options.root
    }

    /// Makes the directory if need be and looks at it, so that a wrong configuration fails at the start.
    ///
    /// # Errors
    /// [`StoreError`] naming the place and what is wrong with it.
    pub fn probe(&self) -> Result<Probe, StoreError> {
        let disk = self.writable()?;
        let status = rustix::fs::fstatfs(&disk.directory)
            .map_err(|error| StoreError::io("examining the file system", &error.into()))?;
        let in_memory = u64::try_from(status.f_type) == Ok(TMPFS_MAGIC);
        Ok(Probe { in_memory })
    }

    /// Removes what writers that are surely dead left behind, as long as `go_on` says so before each step; never makes the
    /// directory. Meant for a start, also with spilling off, where a step's timeout and abort apply.
    ///
    /// # Errors
    /// [`StoreError`] when there is a directory that cannot be used: its text is the warning to give.
    pub fn sweep_leftovers(&self, go_on: &dyn Fn() -> bool) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        if !go_on() {
            return Ok(swept);
        }
        let Some(disk) = self.existing()? else {
            return Ok(swept);
        };
        let Some(locked) = disk.locked_while(go_on)? else {
            return Ok(swept);
        };
        let mut listing = disk.list()?;
        for key in disk.leftovers(&listing) {
            if !go_on() {
                break;
            }
            swept.leftovers += 1;
            swept.bytes += disk.drop_leftover(key, &mut listing);
        }
        locked.recount()?;
        Ok(swept)
    }

    fn existing(&self) -> Result<Option<Arc<Disk>>, StoreError> {
        self.opened(Missing::Accept)
    }

    fn writable(&self) -> Result<Arc<Disk>, StoreError> {
        let disk = self.opened(Missing::Create)?;
        Ok(disk.expect("a directory that may be made is there afterwards"))
    }

    fn opened(&self, missing: Missing) -> Result<Option<Arc<Disk>>, StoreError> {
        let mut disk = self.disk.lock().unwrap_or_else(PoisonError::into_inner);
        if disk.is_none() {
            *disk = Disk::open(&self.options.root, missing)?.map(Arc::new);
        }
        Ok(disk.clone())
    }

    fn start(&self, name: ItemName, head: ItemHead, expected: u64) -> Result<Writer, StoreError> {
        let owner = owner_of(&head);
        if let Some(reason) = self.lock().latched.get(&owner) {
            let reason = reason.clone();
            return Err(StoreError::Latched { reason });
        }
        let disk = self.writable()?;
        Writer::start(disk, &self.options, name, head, expected)
    }

    fn count(
        &self,
        owner: Option<Owner>,
        stored: Result<StoredItem, StoreError>,
    ) -> Result<StoredItem, StoreError> {
        let mut state = self.lock();
        match &stored {
            Ok(_) => state.stored += 1,
            Err(error) => {
                state.refused += 1;
                if error.is_for_good() {
                    state
                        .latched
                        .entry(owner)
                        .or_insert_with(|| error.to_string());
                }
            }
        }
        stored
    }

    fn item(&self, key: ItemKey, reader: &Reader, now: Millis) -> Result<opened::Now, ReadFailure> {
        match self.existing() {
            Ok(Some(disk)) => self.open.get(&disk, key, reader, now),
            Ok(None) | Err(_) => Err(ReadFailure::NotFound),
        }
    }

    fn locator(&self, key: ItemKey, suffix: &str) -> String {
        format!("{}/{}", self.shown_root, file_name::data(key, suffix))
    }

    /// A panic elsewhere leaves no half-made state behind, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpillStore for FileStore {
    fn name(&self, label: &str) -> Result<ItemName, StoreError> {
        let suffix = file_name::suffix(label);
        let disk = self.existing().ok().flatten();
        for _ in 0..DRAWS {
            let number = self
                .options
                .names
                .draw()
                .map_err(|error| StoreError::io("drawing a name", &error))?;
            let key = ItemKey::from_number(number);
            let taken = disk.as_ref().is_some_and(|disk| {
                disk.exists(&file_name::description(key)) || disk.exists(&file_name::arriving(key))
            });
            if !taken {
                let locator = self.locator(key, &suffix);
                return Ok(ItemName {
                    key,
                    locator,
                    suffix,
                });
            }
        }
        Err(StoreError::Taken)
    }

    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        let owner = owner_of(&head);
        let locator = name.locator.clone();
        let stored = self
            .start(name, head, content.size().get())
            .and_then(|mut writer| {
                writer.write(content.as_bytes())?;
                writer.finish(locator)
            });
        self.count(owner, stored)
    }

    fn begin<'a>(
        &'a self,
        name: ItemName,
        head: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        let owner = owner_of(&head);
        let locator = name.locator.clone();
        match self.start(name, head, 0) {
            Ok(writer) => Ok(Box::new(Arriving {
                store: self,
                owner,
                locator,
                writer,
                failed: None,
            })),
            Err(error) => Err(self
                .count(owner, Err(error))
                .expect_err("an error stays an error")),
        }
    }

    fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<StoredItem, ReadFailure> {
        let found = self.item(key, reader, now)?;
        let description = &found.opened.description;
        let locator = self.locator(key, &description.suffix);
        Ok(description.stored(key, locator))
    }

    fn read(
        &self,
        key: ItemKey,
        reader: &Reader,
        range: ByteRange,
        now: Millis,
    ) -> Result<Slice, ReadFailure> {
        self.item(key, reader, now)?.read(range)
    }

    fn key_of(&self, locator: &str) -> Option<ItemKey> {
        let name = match locator.strip_prefix(&self.shown_root) {
            Some(rest) => rest.strip_prefix('/')?,
            None => locator,
        };
        if let Ok(key) = name.parse() {
            return Some(key);
        }
        match file_name::parse(name)? {
            (key, file_name::Part::Data) => Some(key),
            (_, file_name::Part::Description | file_name::Part::Arriving) => None,
        }
    }

    fn release(&self, owner: &Owner) {
        self.lock().latched.remove(&Some(owner.clone()));
        let theirs = Visibility::Only(owner.clone());
        if let Ok(Some(disk)) = self.existing()
            && let Ok(locked) = disk.locked()
            && let Ok(keys) = locked.drop_all_of(&theirs)
        {
            self.open.forget(&keys);
        }
    }

    fn sweep(&self, now: Millis) -> Swept {
        let swept = self.existing().ok().flatten().and_then(|disk| {
            let locked = disk.locked().ok()?;
            let most = self.options.quota.get();
            locked.shrink_to(most, self.options.when_full, now).ok()
        });
        swept.map_or_else(Swept::default, |(_, swept)| swept)
    }

    fn usage(&self) -> StoreUsage {
        let (mut items, mut bytes) = (0, 0);
        if let Ok(Some(disk)) = self.existing()
            && let Ok(locked) = disk.locked()
            && let Ok(listing) = disk.list()
        {
            items = listing.values().filter(|found| found.is_item()).count() as u64;
            bytes = locked.used().unwrap_or(0);
        }
        let mut state = self.lock();
        state.peak = state.peak.max(bytes);
        StoreUsage {
            items,
            bytes,
            peak_bytes: state.peak,
            quota_bytes: self.options.quota.get(),
            stored: state.stored,
            refused: state.refused,
        }
    }
}

fn owner_of(head: &ItemHead) -> Option<Owner> {
    match &head.visibility {
        Visibility::Anyone => None,
        Visibility::Only(owner) => Some(owner.clone()),
    }
}

struct Arriving<'a> {
    store: &'a FileStore,
    owner: Option<Owner>,
    locator: String,
    writer: Writer,
    failed: Option<StoreError>,
}

impl Arriving<'_> {
    /// The first failure counts and latches.
    fn fail(&mut self, error: StoreError) -> StoreError {
        self.failed = Some(error.clone());
        self.store
            .count(self.owner.clone(), Err(error))
            .expect_err("an error stays an error")
    }
}

impl ItemWriter for Arriving<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.writer.write(bytes).map_err(|error| self.fail(error))
    }

    fn finish(&mut self) -> Result<StoredItem, StoreError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        match self.writer.finish(self.locator.clone()) {
            Ok(stored) => self.store.count(self.owner.clone(), Ok(stored)),
            Err(error) => Err(self.fail(error)),
        }
    }

    fn take_back(self: Box<Self>) -> Result<Vec<u8>, StoreError> {
        self.writer.take_back()
    }
}
