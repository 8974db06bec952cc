//! Names of the objects that a published folder is made of.

use serde::{Deserialize, Serialize};

/// What there is once everything is; written last.
pub(crate) const COMPLETE: &str = "complete.json";
/// Version of `complete.json`.
pub(crate) const COMPLETE_SCHEMA: u32 = 1;
const ENDING: &str = ".jsonl";

/// All objects of a folder that was published to its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Complete {
    pub(crate) schema: u32,
    pub(crate) objects: Vec<Listed>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
}

impl Listed {
    pub(crate) fn of(name: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            digest: spill_record::digest(bytes),
        }
    }
}

/// Which part of which file an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The file whose lines it holds.
    pub(crate) file: &'static str,
    /// From 1; going on with a folder begins the next.
    pub(crate) generation: u32,
    /// From 1, over all files of the generation.
    pub(crate) number: u32,
}

impl Part {
    pub(crate) fn name(self) -> String {
        let stem = self.file.trim_end_matches(ENDING);
        format!("{stem}-{:02}-{:06}{ENDING}", self.generation, self.number)
    }

    /// The part that an object's name stands for; `None` for a file that is whole.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(ENDING)?;
        let (stem, number) = stem.rsplit_once('-')?;
        let (stem, generation) = stem.rsplit_once('-')?;
        let file = spill_record::APPENDED_FILES
            .into_iter()
            .find(|file| file.strip_suffix(ENDING) == Some(stem))?;
        let part = Self {
            file,
            generation: generation.parse().ok()?,
            number: number.parse().ok()?,
        };
        (part.name() == name).then_some(part)
    }
}

/// Whether an object's name can be a file's of a run folder.
pub(crate) fn is_file_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.len() <= 128
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
