//! Opens the stores of one step execution.

use std::{path::Path, sync::Arc};

use spill_engine::{
    FileOptions, FileStore, MemoryOptions, MemoryStore, Names, OsNames, SeededNames, SpillStore,
    StoreError, WhenFull,
};

use crate::settings::{SpillSettings, StoreSettings};

/// Turns the seed of the results' names into that of the log copies'.
const LOG_SEED: u64 = 0x10c0_c0b1_e510_c0b1;

/// Where results and log copies go.
pub(crate) struct Stores {
    /// What the model may read.
    pub(crate) results: Arc<dyn SpillStore>,
    /// Copies for the log. Their names come from a source of their own: they are made beside the
    /// loop, and the names that stand in prompts must not depend on who comes first.
    pub(crate) log: Arc<dyn SpillStore>,
}

impl Stores {
    pub(crate) fn open(settings: &SpillSettings, when_full: WhenFull) -> Result<Self, StoreError> {
        let names = |salt: u64| -> Arc<dyn Names> {
            match settings.seed {
                Some(seed) => Arc::new(SeededNames::new(seed ^ salt)),
                None => Arc::new(OsNames),
            }
        };
        let open = |names: Arc<dyn Names>| -> Result<Arc<dyn SpillStore>, StoreError> {
            Ok(match &settings.store {
                StoreSettings::Memory => Arc::new(MemoryStore::new(MemoryOptions {
                    quota: settings.quota(),
                    when_full,
                    names,
                })),
                StoreSettings::File(directory) => Arc::new(FileStore::new(FileOptions {
                    when_full,
                    names,
                    ..file_options(directory)
                })?),
            })
        };
        Ok(Self {
            results: open(names(0))?,
            log: open(names(LOG_SEED))?,
        })
    }
}

impl SpillSettings {
    /// Looks at what stands where results would be kept, and says what is wrong with it. A step does
    /// not end over it: its results stay inline.
    #[must_use]
    pub fn unusable_store(&self) -> Option<String> {
        match &self.store {
            StoreSettings::Memory => None,
            StoreSettings::File(directory) if directory.symlink_metadata().is_err() => None,
            StoreSettings::File(directory) => FileStore::new(file_options(directory))
                .and_then(|store| store.probe())
                .err()
                .map(|error| error.to_string()),
        }
    }
}

/// Locators name the directory by its last part alone, so that prompts do not depend on where a
/// run keeps its files.
pub(crate) fn file_options(directory: &Path) -> FileOptions {
    let last = directory.file_name().and_then(|name| name.to_str());
    FileOptions {
        shown_root: last.map(str::to_owned),
        ..FileOptions::new(directory)
    }
}
