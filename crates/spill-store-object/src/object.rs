//! An item as one object: a mark, a line of JSON, the checksums of its pages, a checksum over all that, then its bytes.

use serde::{Deserialize, Serialize};
use spill_engine::{Bytes, Damage, ItemHead, ItemKey, Millis, Owner, StoredItem, Visibility};

const MARK: &[u8; 8] = b"spill 1\n";
/// The mark, and how long the JSON is.
const FIXED_BYTES: usize = MARK.len() + 4;
const SUM_BYTES: usize = 4;
/// Bytes that one checksum covers. Requests cost more than bytes here, so pages are larger than a file's.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;
/// No description is longer, whatever an object claims.
const MOST_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    size_bytes: u64,
    media_type: String,
    created_ms: u64,
    expires_ms: Option<u64>,
    owner: Option<String>,
    page_bytes: u64,
    /// Tells a put whose answer was lost from a put of somebody else.
    nonce: String,
}

/// What is known of an item before its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) size: u64,
    pub(crate) media_type: String,
    pub(crate) created: Millis,
    pub(crate) expires: Option<Millis>,
    pub(crate) visibility: Visibility,
    pub(crate) nonce: String,
    sums: Vec<u32>,
    /// Where the item's bytes begin in the object.
    pub(crate) data_at: u64,
}

/// What the first bytes of an object are.
pub(crate) enum Found {
    Whole(Description),
    /// It is longer: this many bytes are needed.
    Longer(u64),
}

/// The object for an item, and its description.
pub(crate) fn encode(head: &ItemHead, nonce: String, content: &[u8]) -> (Vec<u8>, Description) {
    let page = usize::try_from(PAGE_BYTES).expect("64 KiB");
    let sums: Vec<u32> = content.chunks(page).map(crc32fast::hash).collect();
    let header = Header {
        size_bytes: content.len() as u64,
        media_type: head.media_type.clone(),
        created_ms: head.now.get(),
        expires_ms: head.expires_at().map(Millis::get),
        owner: match &head.visibility {
            Visibility::Anyone => None,
            Visibility::Only(owner) => Some(owner.as_str().to_owned()),
        },
        page_bytes: PAGE_BYTES,
        nonce,
    };
    let json = serde_json::to_vec(&header).expect("texts and numbers have a JSON form");
    let length = u32::try_from(json.len()).expect("an owner and a media type are no 4 GiB");
    let mut out = Vec::with_capacity(FIXED_BYTES + json.len() + content.len() + 1_024);
    out.extend_from_slice(MARK);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&json);
    out.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
    out.extend_from_slice(&crc32fast::hash(&out).to_le_bytes());
    let description = header.describe(sums, out.len() as u64);
    out.extend_from_slice(content);
    (out, description)
}

/// Reads a description from the first bytes of an object; `all` says that there are no more.
pub(crate) fn decode(bytes: &[u8], object_bytes: u64) -> Result<Found, Damage> {
    let damaged = Damage::Description;
    let longer = |needed: u64| {
        if needed > object_bytes || needed > MOST_BYTES {
            Err(Damage::Description)
        } else {
            Ok(Found::Longer(needed))
        }
    };
    let Some((fixed, rest)) = bytes.split_at_checked(FIXED_BYTES) else {
        return longer(FIXED_BYTES as u64);
    };
    let (mark, length) = fixed.split_at(MARK.len());
    if mark != MARK {
        return Err(damaged);
    }
    let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
    let json_end = FIXED_BYTES as u64 + u64::from(length);
    let Some((json, rest)) = split_at(rest, u64::from(length)) else {
        return longer(json_end + SUM_BYTES as u64);
    };
    let header: Header = serde_json::from_slice(json).map_err(|_| Damage::Description)?;
    let pages = header.size_bytes.div_ceil(PAGE_BYTES);
    let sums_end = json_end.saturating_add(pages.saturating_mul(SUM_BYTES as u64));
    let Some((sums, rest)) = split_at(rest, sums_end - json_end) else {
        return longer(sums_end.saturating_add(SUM_BYTES as u64));
    };
    let Some(own) = rest.first_chunk::<SUM_BYTES>() else {
        return longer(sums_end + SUM_BYTES as u64);
    };
    let before = &bytes[..bytes.len() - rest.len()];
    if crc32fast::hash(before) != u32::from_le_bytes(*own) || header.page_bytes != PAGE_BYTES {
        return Err(damaged);
    }
    let (sums, _) = sums.as_chunks::<SUM_BYTES>();
    let sums = sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
    let description = header.describe(sums, (before.len() + SUM_BYTES) as u64);
    let (expected, found) = (
        description.size,
        object_bytes.saturating_sub(description.data_at),
    );
    if expected != found {
        return Err(Damage::Length { expected, found });
    }
    Ok(Found::Whole(description))
}

fn split_at(bytes: &[u8], at: u64) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(at).ok()?)
}

impl Header {
    fn describe(self, sums: Vec<u32>, data_at: u64) -> Description {
        Description {
            size: self.size_bytes,
            media_type: self.media_type,
            created: Millis::new(self.created_ms),
            expires: self.expires_ms.map(Millis::new),
            visibility: self.owner.map_or(Visibility::Anyone, |owner| {
                Visibility::Only(Owner::new(&owner))
            }),
            nonce: self.nonce,
            sums,
            data_at,
        }
    }
}

impl Description {
    pub(crate) fn expired(&self, now: Millis) -> bool {
        self.expires.is_some_and(|last| now > last)
    }

    pub(crate) fn stored(&self, key: ItemKey) -> StoredItem {
        StoredItem {
            key,
            locator: key.to_string(),
            media_type: self.media_type.clone(),
            size: Bytes::new(self.size),
            expires_at: self.expires,
        }
    }

    /// Checks whole pages that begin at `start`.
    pub(crate) fn check(&self, pages: &[u8], start: u64) -> Result<(), Damage> {
        let first = usize::try_from(start / PAGE_BYTES).unwrap_or(usize::MAX);
        let sums = self.sums.get(first..).unwrap_or_default();
        let page = usize::try_from(PAGE_BYTES).expect("64 KiB");
        for ((page, sum), index) in pages.chunks(page).zip(sums).zip(0_u64..) {
            if crc32fast::hash(page) != *sum {
                let start = start + index * PAGE_BYTES;
                let end = start + page.len() as u64;
                return Err(Damage::Page { start, end });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(owner: Option<&str>, content: &[u8]) -> (Vec<u8>, Description) {
        let head = ItemHead {
            visibility: owner.map_or(Visibility::Anyone, |owner| {
                Visibility::Only(Owner::new(owner))
            }),
            media_type: "text/plain".to_owned(),
            now: Millis::new(5),
            time_to_live: Some(Millis::new(u64::MAX)),
        };
        encode(&head, "0".to_owned(), content)
    }

    /// Reads as a store does: some bytes first, then as many as it takes.
    fn read(object: &[u8], first: usize) -> Result<Description, Damage> {
        let size = object.len() as u64;
        let mut have = first.min(object.len());
        loop {
            match decode(&object[..have], size)? {
                Found::Whole(description) => return Ok(description),
                Found::Longer(needed) => {
                    let needed = usize::try_from(needed).expect("no longer than the object");
                    assert!(needed > have, "it makes progress");
                    have = needed;
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_object_is_read_back_and_any_other_byte_is_noticed(owner in any::<Option<String>>(), piece in prop::collection::vec(any::<u8>(), 1..50), times in 0..3_000_usize, first in 0..400_usize, at in any::<prop::sample::Index>(), flip in 1..=u8::MAX) {
            let content = piece.repeat(times);
            let (mut bytes, written) = object(owner.as_deref(), &content);
            prop_assert_eq!(read(&bytes, first), Ok(written.clone()));
            let start = usize::try_from(written.data_at).expect("small");
            prop_assert_eq!(&bytes[start..], &content[..]);
            prop_assert_eq!(written.check(&content, 0), Ok(()));
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let noticed = match read(&bytes, first) {
                Err(_) => true,
                Ok(description) => description.check(&bytes[start..], 0).is_err(),
            };
            prop_assert!(noticed);
            prop_assert!(read(&bytes[..at], first).is_err());
        }

        #[test]
        fn any_bytes_are_refused(bytes in any::<Vec<u8>>(), marked in any::<bool>(), size in any::<u64>()) {
            let bytes = if marked { [&MARK[..], &bytes].concat() } else { bytes };
            if let Ok(Found::Longer(needed)) = decode(&bytes, size) {
                prop_assert!(needed <= size && needed <= MOST_BYTES && needed > bytes.len() as u64);
            }
        }
    }
}
