use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

type Counts = HashMap<u128, u64, BuildHasherDefault<AsItIs>>;

/// Counts by content hash, in two generations: when the young one is full, the old one is forgotten.
#[derive(Debug)]
pub(crate) struct Known {
    young: Counts,
    old: Counts,
    most_young: usize,
}

impl Known {
    /// Remembers at most about `counts` counts.
    pub(crate) fn at_most(counts: usize) -> Self {
        Self {
            young: Counts::default(),
            old: Counts::default(),
            most_young: (counts / 2).max(1),
        }
    }

    /// The count of a hash; one of the old generation is young again.
    pub(crate) fn get(&mut self, hash: u128) -> Option<u64> {
        if let Some(tokens) = self.young.get(&hash) {
            return Some(*tokens);
        }
        let tokens = *self.old.get(&hash)?;
        self.insert(hash, tokens);
        Some(tokens)
    }

    pub(crate) fn insert(&mut self, hash: u128, tokens: u64) {
        if self.young.len() >= self.most_young {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(hash, tokens);
    }
}

impl Default for Known {
    fn default() -> Self {
        Self::at_most(usize::MAX)
    }
}

/// Takes half of a hash for the hash that it is.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, hash: u128) {
        let low = hash & u128::from(u64::MAX);
        self.0 = u64::try_from(low).expect("half of a hash");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
