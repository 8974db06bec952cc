use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A counter hashed with a seed: the one source of variety in generated inputs.
///
/// Its numbers are part of the checked-in fixtures; a change of them changes every generated input.
#[derive(Clone, Debug)]
pub(super) struct Rng {
    seed: u64,
    counter: u64,
}

impl Rng {
    pub(super) fn new(seed: u64, purpose: &str) -> Self {
        Self {
            seed: xxh3_64_with_seed(purpose.as_bytes(), seed),
            counter: 0,
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        xxh3_64_with_seed(&self.counter.to_le_bytes(), self.seed)
    }

    /// A number in `0..bound`; `bound` is not 0. The bias of the remainder is of no interest here.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("usize fits u64");
        usize::try_from(self.next() % bound).expect("it is below a usize")
    }

    /// A number in `low..=high`.
    pub(super) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(super) fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// Lower-case letters and digits.
    pub(super) fn alphanumeric(&mut self, len: usize) -> String {
        const CHARS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        (0..len)
            .map(|_| char::from(CHARS[self.below(CHARS.len())]))
            .collect()
    }
}
