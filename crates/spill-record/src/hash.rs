use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Returns the 32 lower-case hex digits of the XXH3-128 hash of `bytes`.
///
/// It tells equal from unequal content; it is not a defence against someone who wants a collision.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

/// Returns the 16 hex digits of a hash over `parts`, each with its length, so that moving a byte
/// from one part to the next gives another hash.
#[must_use]
pub fn digest_parts(parts: &[&str]) -> String {
    format!("{:016x}", hash_parts(parts))
}

/// Returns the seed of a pair: a hash of base seed, scenario, input and repetition (from 0).
///
/// It does not depend on the configuration, so all runs of a pair share it. It is below 2^53, so
/// that programs which read numbers as doubles keep it exact.
#[must_use]
pub fn seed_of(base_seed: u64, scenario: &str, input: &str, repetition: u32) -> u64 {
    hash_parts(&[
        &base_seed.to_string(),
        scenario,
        input,
        &repetition.to_string(),
    ]) >> 11
}

fn hash_parts(parts: &[&str]) -> u64 {
    let mut hasher = Xxh3::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_moved_between_parts_changes_the_hash() {
        assert_ne!(digest_parts(&["ab", "c"]), digest_parts(&["a", "bc"]));
    }

    #[test]
    fn seeds_are_stable_between_releases() {
        assert_eq!(
            seed_of(1, "review", "small", 0),
            seed_of(1, "review", "small", 0)
        );
        assert_ne!(
            seed_of(1, "review", "small", 0),
            seed_of(1, "review", "small", 1)
        );
        insta::assert_snapshot!(seed_of(1, "review", "small", 0).to_string());
    }
}
