//! What a file store notes beside an item: one line of JSON, the checksums of its pages, and a checksum over both.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::measure::Bytes;
use crate::stores::{ItemHead, ItemKey, Millis, Owner, StoredItem, Visibility};

/// Bytes that one checksum covers.
pub(super) const PAGE_BYTES: usize = 4_096;
/// Bytes of a page's checksum (CRC-32, which processors compute as fast as they read).
const SUM_BYTES: usize = 4;
/// Bytes of the checksum over the description itself.
const OWN_SUM_BYTES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: u32,
    size_bytes: u64,
    suffix: String,
    media_type: String,
    created_ms: u64,
    expires_ms: Option<u64>,
    owner: Option<String>,
    page_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) size: u64,
    pub(super) suffix: String,
    pub(super) media_type: String,
    pub(super) created: Millis,
    pub(super) expires: Option<Millis>,
    pub(super) visibility: Visibility,
    pub(super) sums: Vec<u32>,
}

impl Description {
    pub(super) fn new(head: &ItemHead, suffix: &str, size: u64, sums: Vec<u32>) -> Self {
        Self {
            size,
            suffix: suffix.to_owned(),
            media_type: head.media_type.clone(),
            created: head.now,
            expires: head.expires_at(),
            visibility: head.visibility.clone(),
            sums,
        }
    }

    /// Bytes that the description of an item of `size` bytes takes at most.
    pub(super) fn most_bytes(head: &ItemHead, suffix: &str, size: u64) -> u64 {
        let widest = Self::new(head, suffix, size, Vec::new());
        widest.encode().len() as u64 + pages(size).saturating_mul(SUM_BYTES as u64)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let header = Header {
            schema: 1,
            size_bytes: self.size,
            suffix: self.suffix.clone(),
            media_type: self.media_type.clone(),
            created_ms: self.created.get(),
            expires_ms: self.expires.map(Millis::get),
            owner: match &self.visibility {
                Visibility::Anyone => None,
                Visibility::Only(owner) => Some(owner.as_str().to_owned()),
            },
            page_bytes: PAGE_BYTES as u64,
        };
        let mut out = serde_json::to_vec(&header).expect("texts and numbers have a JSON form");
        out.push(b'\n');
        out.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
        out.extend(xxh3_64(&out).to_le_bytes());
        out
    }

    /// `None` for anything that [`encode`](Self::encode) has not written.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<OWN_SUM_BYTES>()?;
        if u64::from_le_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        let end = memchr::memchr(b'\n', body)?;
        let header: Header = serde_json::from_slice(&body[..end]).ok()?;
        let (sums, rest) = body[end + 1..].as_chunks::<SUM_BYTES>();
        let whole = header.schema == 1
            && header.page_bytes == PAGE_BYTES as u64
            && rest.is_empty()
            && sums.len() as u64 == pages(header.size_bytes)
            && super::file_name::is_suffix(&header.suffix);
        whole.then(|| Self {
            size: header.size_bytes,
            suffix: header.suffix,
            media_type: header.media_type,
            created: Millis::new(header.created_ms),
            expires: header.expires_ms.map(Millis::new),
            visibility: header.owner.map_or(Visibility::Anyone, |owner| {
                Visibility::Only(Owner::new(&owner))
            }),
            sums: sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
        })
    }

    pub(super) fn expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|last| now > last)
    }

    pub(super) fn stored(&self, key: ItemKey, locator: String) -> StoredItem {
        StoredItem {
            key,
            locator,
            media_type: self.media_type.clone(),
            size: Bytes::new(self.size),
            expires_at: self.expires,
        }
    }
}

/// The checksum of one page.
pub(super) fn page_sum(page: &[u8]) -> u32 {
    crc32fast::hash(page)
}

fn pages(size: u64) -> u64 {
    size.div_ceil(PAGE_BYTES as u64)
}

/// Checksums of pages while bytes arrive in pieces of any size.
#[derive(Default)]
pub(super) struct PageSums {
    sums: Vec<u32>,
    begun: Vec<u8>,
}

impl PageSums {
    pub(super) fn add(&mut self, mut bytes: &[u8]) {
        if !self.begun.is_empty() {
            let (fill, rest) = bytes.split_at(bytes.len().min(PAGE_BYTES - self.begun.len()));
            self.begun.extend_from_slice(fill);
            bytes = rest;
            if self.begun.len() < PAGE_BYTES {
                return;
            }
            self.sums.push(page_sum(&self.begun));
            self.begun.clear();
        }
        let (pages, rest) = bytes.as_chunks::<PAGE_BYTES>();
        self.sums.extend(pages.iter().map(|page| page_sum(page)));
        self.begun.extend_from_slice(rest);
    }

    pub(super) fn finish(mut self) -> Vec<u32> {
        if !self.begun.is_empty() {
            self.sums.push(page_sum(&self.begun));
        }
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn description(owner: Option<&str>, size: u64) -> Description {
        let sums = vec![7; usize::try_from(pages(size)).expect("a small size")];
        let head = ItemHead {
            visibility: owner.map_or(Visibility::Anyone, |owner| {
                Visibility::Only(Owner::new(owner))
            }),
            media_type: "text/plain".to_owned(),
            now: Millis::new(5),
            time_to_live: Some(Millis::new(u64::MAX)),
        };
        Description::new(&head, "tool", size, sums)
    }

    proptest! {
        #[test]
        fn a_description_survives_and_any_other_byte_is_noticed(owner in any::<Option<String>>(), size in 0..100_000_u64, at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
            let written = description(owner.as_deref(), size);
            let mut bytes = written.encode();
            prop_assert_eq!(Description::decode(&bytes), Some(written));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(Description::decode(&bytes), None);
            prop_assert_eq!(Description::decode(&bytes[..at]), None);
        }

        #[test]
        fn any_bytes_are_refused(bytes in any::<Vec<u8>>()) {
            prop_assert_eq!(Description::decode(&bytes), None);
        }

        #[test]
        fn sums_do_not_depend_on_the_pieces(bytes in prop::collection::vec(any::<u8>(), 0..20_000), piece in 1..9_000_usize) {
            let mut whole = PageSums::default();
            whole.add(&bytes);
            let mut pieces = PageSums::default();
            bytes.chunks(piece).for_each(|piece| pieces.add(piece));
            let expected: Vec<u32> = bytes.chunks(PAGE_BYTES).map(page_sum).collect();
            prop_assert_eq!(whole.finish(), expected.clone());
            prop_assert_eq!(pieces.finish(), expected);
        }
    }
}
