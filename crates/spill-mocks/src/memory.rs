//! What a forgetful model still recalls: less of what stands far back in its context.

use spill_scenario::RecallPoint;

/// Bytes of text that a token stands for here: an estimate, so that what the model does needs no
/// tokenizer.
const BYTES_PER_TOKEN: u64 = 4;
/// The share below which a text is worth reading again.
const WORTH_READING_AGAIN: f64 = 0.96;

/// How well a model recalls.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    points: Vec<RecallPoint>,
}

impl Memory {
    pub(crate) fn new(points: &[RecallPoint]) -> Self {
        Self {
            points: points.to_vec(),
        }
    }

    /// The share that is recalled of what stands `distance` bytes back: between two points straight
    /// in the logarithm of the distance, before the first as there, beyond the last on in the last
    /// slope.
    pub(crate) fn share(&self, distance: u64) -> f64 {
        let tokens = distance / BYTES_PER_TOKEN;
        let after = self.points.iter().position(|point| point.tokens >= tokens);
        let (left, right) = match (after, self.points.as_slice()) {
            (_, []) => return 1.0,
            (Some(0), [first, ..]) => return first.share,
            (_, [only]) => return only.share,
            (Some(after), points) => (points[after - 1], points[after]),
            (None, [.., left, right]) => (*left, *right),
        };
        #[expect(clippy::cast_precision_loss, reason = "a distance in a context")]
        let log = |tokens: u64| (tokens.max(1) as f64).log2();
        let step = log(right.tokens) - log(left.tokens);
        let way = (log(tokens) - log(left.tokens)) / step;
        (left.share + way * (right.share - left.share)).clamp(0.0, 1.0)
    }

    /// Whether a text that stands so far back is read again, once.
    pub(crate) fn reads_again(&self, distance: u64) -> bool {
        self.share(distance) < WORTH_READING_AGAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(distance_tokens: u64, expected: f64) {
        let memory = Memory::new(&[
            RecallPoint {
                tokens: 1024,
                share: 0.9,
            },
            RecallPoint {
                tokens: 4096,
                share: 0.7,
            },
        ]);
        let share = memory.share(distance_tokens * BYTES_PER_TOKEN);
        assert!(
            (share - expected).abs() < 1e-9,
            "{distance_tokens}: {share}"
        );
    }

    #[test]
    fn recall_fades_with_the_logarithm_of_the_distance() {
        check(0, 0.9);
        check(1024, 0.9);
        check(2048, 0.8);
        check(4096, 0.7);
        check(8192, 0.6);
        check(1 << 40, 0.0);
    }

    #[test]
    fn a_memory_without_points_recalls_everything() {
        assert!((Memory::new(&[]).share(1 << 40) - 1.0).abs() < f64::EPSILON);
    }
}
