use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// One part of a plan that is run on several machines, such as `2/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Which part, from 1.
    pub number: u32,
    /// Parts in all.
    pub of: u32,
}

impl Shard {
    /// Shards of one plan at most.
    pub const MOST: u32 = 10_000;

    /// Part `number` (from 1) of `of`; `None` where there is no such part.
    #[must_use]
    pub fn new(number: u32, of: u32) -> Option<Self> {
        ((1..=of).contains(&number) && of <= Self::MOST).then_some(Self { number, of })
    }

    /// Whether the pair is run by this shard: the pair's id, hashed by XXH3, modulo the number of
    /// shards. All runs of a pair stay together, and the rule does not change between releases.
    #[must_use]
    pub fn holds(self, pair_id: &str) -> bool {
        xxh3_64(pair_id.as_bytes()) % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(m, n)| Some((m.parse().ok()?, n.parse().ok()?)));
        parts.and_then(|(m, n)| Self::new(m, n)).ok_or_else(|| {
            format!(
                "{text:?} is no shard (write m/n, such as 2/4, with m from 1 to n and n at most {})",
                Self::MOST
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Shard;

    #[test]
    fn every_pair_is_in_exactly_one_shard() {
        for of in [1, 2, 3, 4, 7] {
            let mut counts = vec![0; of as usize];
            for pair in 0..1_000 {
                let id = format!("{pair:016x}");
                let holding: Vec<u32> = (1..=of)
                    .filter(|number| Shard::new(*number, of).expect("a part").holds(&id))
                    .collect();
                assert_eq!(holding.len(), 1, "{id} of {of}");
                counts[holding[0] as usize - 1] += 1;
            }
            // Five standard deviations of an even spread.
            let even = 1_000.0 / f64::from(of);
            assert!(
                counts
                    .iter()
                    .all(|count| (f64::from(*count) - even).abs() <= 5.0 * even.sqrt()),
                "{counts:?}"
            );
        }
    }

    #[test]
    fn the_rule_does_not_change_between_releases() {
        let number = |id: &str| (1..=4).find(|n| Shard::new(*n, 4).expect("a part").holds(id));
        // XXH3 of these texts, modulo 4, plus 1.
        assert_eq!(
            ["0123456789abcdef", "fedcba9876543210", ""].map(number),
            GOLDEN
        );
    }

    // The last: XXH3 of nothing is 2d06800538d394c2.
    const GOLDEN: [Option<u32>; 3] = [Some(2), Some(3), Some(3)];

    #[test]
    fn a_shard_is_written_as_a_fraction() {
        assert_eq!("2/4".parse::<Shard>(), Ok(Shard { number: 2, of: 4 }));
        assert_eq!(
            "2/4".parse::<Shard>().map(|s| s.to_string()),
            Ok("2/4".to_owned())
        );
        for text in [
            "", "/", "0/4", "5/4", "1/0", "a/b", "-1/4", "1/4/4", "1/10001", " 1/4",
        ] {
            assert!(text.parse::<Shard>().is_err(), "{text:?}");
        }
    }
}
