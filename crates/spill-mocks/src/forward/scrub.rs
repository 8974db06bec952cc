//! Keeps a key out of what a server says back.

use bytes::Bytes;
use memchr::memmem;

use super::key::EndpointKey;

const IN_ITS_PLACE: &[u8] = b"[key]";

/// `body` without the key: some servers quote the key that they refuse.
pub(crate) fn scrub(body: &Bytes, key: &EndpointKey) -> Bytes {
    let key = key.bytes();
    let mut rest = 0;
    let mut clean = Vec::new();
    for at in memmem::find_iter(body, key) {
        clean.extend_from_slice(&body[rest..at]);
        clean.extend_from_slice(IN_ITS_PLACE);
        rest = at + key.len();
    }
    if rest == 0 {
        return body.clone();
    }
    clean.extend_from_slice(&body[rest..]);
    clean.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_key_is_taken_out() {
        let key = EndpointKey::new("sk-1-long").expect("a key");
        for (body, clean) in [
            ("", ""),
            ("no key", "no key"),
            ("sk-1-long", "[key]"),
            (
                "bad sk-1-long, sk-1-longsk-1-long!",
                "bad [key], [key][key]!",
            ),
        ] {
            assert_eq!(scrub(&Bytes::from(body), &key), clean);
        }
    }
}
