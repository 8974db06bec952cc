//! The bound on all results of one turn together: several results, each small enough, can be too much at once.

use std::cmp::Reverse;

/// One result of a turn, as it would stand in the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnResult {
    /// The call's place in the turn. Completion order does not matter.
    pub call_index: u32,
    /// Bytes that it takes in the prompt.
    pub bytes: u64,
    /// Bytes that its replacement would take at most; `None` when it must stay, as a replacement or a read-back does.
    pub replaced_bytes: Option<u64>,
}

/// What a turn's bound asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the bound holds only when these calls are spilled"]
pub struct TurnPlan {
    /// Call indices to spill, in the order chosen.
    pub spill: Vec<u32>,
    /// Bytes of the turn after that, at most.
    pub bytes: u64,
    /// False when the bound cannot be kept even so.
    pub fits: bool,
}

/// Chooses what to spill so that a turn takes at most `bound` bytes (the equal case fits): the largest first, of equal ones
/// the lower call index, and no more than needed. A replacement that is not smaller is no gain and is not chosen. The order
/// of `results` does not matter.
pub fn bound_turn(results: &[TurnResult], bound: u64) -> TurnPlan {
    let mut bytes = results
        .iter()
        .fold(0_u128, |sum, result| sum + u128::from(result.bytes));
    let mut large: Vec<&TurnResult> = results.iter().collect();
    large.sort_by_key(|result| (Reverse(result.bytes), result.call_index));
    let mut spill = Vec::new();
    for result in large {
        if bytes <= u128::from(bound) {
            break;
        }
        let Some(replaced) = result.replaced_bytes.filter(|bytes| *bytes < result.bytes) else {
            continue;
        };
        bytes -= u128::from(result.bytes - replaced);
        spill.push(result.call_index);
    }
    TurnPlan {
        spill,
        fits: bytes <= u128::from(bound),
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(sizes: &[u64]) -> Vec<TurnResult> {
        (0..)
            .zip(sizes)
            .map(|(call_index, bytes)| TurnResult {
                call_index,
                bytes: *bytes,
                replaced_bytes: Some(100),
            })
            .collect()
    }

    #[track_caller]
    fn check(sizes: &[u64], bound: u64, spill: &[u32], fits: bool) {
        let plan = bound_turn(&turn(sizes), bound);
        assert_eq!((&plan.spill[..], plan.fits), (spill, fits), "{plan:?}");
    }

    #[test]
    fn the_largest_goes_first_and_no_more_than_needed() {
        check(&[], 0, &[], true);
        check(&[500, 900, 700], 2_100, &[], true);
        check(&[500, 900, 700], 2_099, &[1], true);
        check(&[500, 900, 700], 1_300, &[1], true);
        check(&[500, 900, 700], 1_299, &[1, 2], true);
        check(&[500, 900, 700], 300, &[1, 2, 0], true);
        check(&[500, 900, 700], 299, &[1, 2, 0], false);
        check(&[500, 500, 500], 1_400, &[0], true);
        check(&[50, 100, 90], 10, &[], false);
    }

    /// Three results, none too large alone, together beyond the window.
    #[test]
    fn fault_03_parallel_results_are_bounded_together() {
        check(&[39_000, 155_000, 137_000], 200_000, &[1], true);
        check(&[39_000, 155_000, 137_000], 100_000, &[1, 2], true);
    }

    #[test]
    fn what_must_stay_stays() {
        let mut results = turn(&[900, 500]);
        results[0].replaced_bytes = None;
        let plan = bound_turn(&results, 1_000);
        assert_eq!((plan.spill, plan.bytes, plan.fits), (vec![1], 1_000, true));
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_the_plan_is_true(results in prop::collection::vec((any::<u64>(), any::<Option<u64>>()), 0..12), bound in any::<u64>()) {
            let mut results: Vec<TurnResult> = (0..).zip(results).map(|(call_index, (bytes, replaced_bytes))| TurnResult { call_index, bytes, replaced_bytes }).collect();
            let plan = bound_turn(&results, bound);
            let after: u128 = results.iter().map(|result| {
                let spilled = plan.spill.contains(&result.call_index);
                u128::from(if spilled { result.replaced_bytes.expect("only what can be replaced") } else { result.bytes })
            }).sum();
            prop_assert_eq!(plan.fits, after <= u128::from(bound));
            prop_assert_eq!(plan.bytes, u64::try_from(after).unwrap_or(u64::MAX));
            results.reverse();
            prop_assert_eq!(bound_turn(&results, bound), plan);
        }
    }
}
