//! Makes room in a file store, and cleans it.

use super::disk::{Disk, Found, Listing, Locked};
use super::file_name;
use crate::stores::{ItemKey, Millis, StoreError, Swept, Visibility, WhenFull};

/// How many descriptions outlive their data, so that a late reader is told why.
const REMEMBERED: usize = 256;

/// An item of the listing that has its data.
struct Whole {
    key: ItemKey,
    expired: bool,
    created: Millis,
}

impl Locked<'_> {
    /// Reserves `bytes` within `quota`, removing what `when_full` allows.
    pub(super) fn reserve(
        &self,
        bytes: u64,
        quota: u64,
        when_full: WhenFull,
        now: Millis,
    ) -> Result<(), StoreError> {
        if bytes > quota {
            return Err(StoreError::TooLarge { size: bytes, quota });
        }
        let mut used = self.used()?;
        if used.saturating_add(bytes) > quota {
            used = self.shrink_to(quota - bytes, when_full, now)?.0;
        }
        if used.saturating_add(bytes) > quota {
            return Err(StoreError::Full {
                size: bytes,
                used,
                quota,
            });
        }
        self.set_used(used + bytes)
    }

    /// Removes expired items, then if need be the oldest, until at most `most` bytes are in use.
    pub(super) fn shrink_to(
        &self,
        most: u64,
        when_full: WhenFull,
        now: Millis,
    ) -> Result<(u64, Swept), StoreError> {
        let mut swept = Swept::default();
        let mut listing = self.disk.list()?;
        for key in self.disk.leftovers(&listing) {
            swept.leftovers += 1;
            swept.bytes += self.disk.drop_leftover(key, &mut listing);
        }
        let mut whole = self.disk.whole(&listing, now);
        whole.sort_by_key(|item| (!item.expired, item.created, item.key));
        for item in whole {
            let over = used(&listing) > most;
            let (counted, goes) = match (item.expired, when_full) {
                (true, _) => (&mut swept.expired, true),
                (false, WhenFull::Evict) => (&mut swept.evicted, over),
                (false, WhenFull::Refuse) => (&mut swept.evicted, false),
            };
            if goes {
                *counted += 1;
                swept.bytes += self.disk.drop_data(item.key, &mut listing);
            }
        }
        self.disk.forget(&mut listing, most);
        let used = used(&listing);
        self.set_used(used)?;
        Ok((used, swept))
    }

    /// Removes what `owner` alone may read, data and description.
    pub(super) fn drop_all_of(&self, owner: &Visibility) -> Result<Vec<ItemKey>, StoreError> {
        let mut listing = self.disk.list()?;
        let keys: Vec<ItemKey> = listing
            .iter()
            .filter(|(_, found)| found.arriving.is_none())
            .filter(|(key, _)| {
                matches!(self.disk.description(**key), Ok(Some(Some(known))) if known.visibility == *owner)
            })
            .map(|(key, _)| *key)
            .collect();
        for key in &keys {
            self.disk.drop_data(*key, &mut listing);
            // Data that cannot be removed keeps its description, else nobody would know whose it is.
            if listing.get(key).is_some_and(|found| found.data.is_none()) {
                self.disk.drop_description(*key, &mut listing);
            }
        }
        self.set_used(used(&listing))?;
        Ok(keys)
    }
}

impl Disk {
    /// Keys whose writer died before its item was whole.
    pub(super) fn leftovers(&self, listing: &Listing) -> Vec<ItemKey> {
        listing
            .iter()
            .filter(|(key, found)| {
                found.arriving.is_some() && self.writer_is_dead(&file_name::arriving(**key))
            })
            .map(|(key, _)| *key)
            .collect()
    }

    pub(super) fn drop_leftover(&self, key: ItemKey, listing: &mut Listing) -> u64 {
        let mut freed = 0;
        if listing.get(&key).is_some_and(|found| found.data.is_none()) {
            freed += self.drop_description(key, listing);
        }
        if self.remove(&file_name::arriving(key))
            && let Some(found) = listing.get_mut(&key)
        {
            freed += found.arriving.take().unwrap_or(0);
        }
        freed
    }

    fn whole(&self, listing: &Listing, now: Millis) -> Vec<Whole> {
        let with_data = listing.iter().filter(|(_, found)| found.data.is_some());
        with_data
            .filter_map(|(key, _)| {
                let known = self.description(*key).ok()??;
                Some(known.map_or(
                    // Nobody can read it: it goes with the expired.
                    Whole {
                        key: *key,
                        expired: true,
                        created: Millis::default(),
                    },
                    |known| Whole {
                        key: *key,
                        expired: known.expired(now),
                        created: known.created,
                    },
                ))
            })
            .collect()
    }

    /// Removes the data and keeps the description, which says why.
    fn drop_data(&self, key: ItemKey, listing: &mut Listing) -> u64 {
        let Some(found) = listing.get_mut(&key) else {
            return 0;
        };
        match found.data.take() {
            Some((name, bytes)) if self.remove(&name) => bytes,
            data => {
                found.data = data;
                0
            }
        }
    }

    fn drop_description(&self, key: ItemKey, listing: &mut Listing) -> u64 {
        let Some(found) = listing.get_mut(&key) else {
            return 0;
        };
        if found.description.is_some() && self.remove(&file_name::description(key)) {
            return found.description.take().unwrap_or(0);
        }
        0
    }

    /// Removes descriptions without data, the oldest first: those beyond [`REMEMBERED`], and more if room is short.
    fn forget(&self, listing: &mut Listing, most: u64) {
        let mut dead: Vec<(Millis, ItemKey)> = listing
            .iter()
            .filter(|(_, found)| found.data.is_none() && found.arriving.is_none())
            .map(|(key, _)| {
                let known = self.description(*key).ok().flatten().flatten();
                (known.map_or(Millis::default(), |known| known.created), *key)
            })
            .collect();
        dead.sort_unstable();
        let spare = dead.len().saturating_sub(REMEMBERED);
        for (place, (_, key)) in dead.into_iter().enumerate() {
            if place < spare || used(listing) > most {
                self.drop_description(key, listing);
            }
        }
    }
}

fn used(listing: &Listing) -> u64 {
    listing.values().map(Found::bytes).sum()
}
