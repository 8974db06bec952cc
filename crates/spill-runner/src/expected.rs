//! How a run is to end, where its scenario says so.

use spill_record::EndReason;
use spill_scenario::{PlannedFault, Scenario};

/// What a scenario expects of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    end_reason: EndReason,
    /// Faults that are planned for the run.
    faults: usize,
}

impl Expected {
    /// What `scenario` expects of a run with these faults; `None` where any end is evidence.
    pub(crate) fn of(scenario: &Scenario, faults: &[PlannedFault]) -> Option<Self> {
        let expect = scenario.expect?;
        let is_spared = !scenario.faults.is_empty() && faults.is_empty();
        let of_faults = faults.iter().find_map(|fault| fault.end_reason);
        let end_reason = if is_spared {
            expect.otherwise
        } else {
            of_faults.unwrap_or(expect.end_reason)
        };
        Some(Self {
            end_reason,
            faults: faults.len(),
        })
    }

    /// Says what is otherwise about a run that ended for `end` after `hit` faults had come to pass.
    pub(crate) fn missed_by(self, end: EndReason, hit: usize) -> Option<String> {
        let (expected, ended) = (self.end_reason.as_str(), end.as_str());
        if self.faults > 0 && hit == 0 {
            return Some(format!(
                "no planned fault came to pass before the run ended as {ended} (plan it for an earlier call, or one that leaves it room)"
            ));
        }
        (end != self.end_reason)
            .then(|| format!("the scenario expects the end {expected}, the run ended as {ended}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(faults: usize, end: EndReason, hit: usize, expected: Option<&str>) {
        let asked = Expected {
            end_reason: EndReason::Answered,
            faults,
        };
        let said = asked.missed_by(end, hit);
        match expected {
            None => assert_eq!(said, None),
            Some(part) => assert!(
                said.as_deref().is_some_and(|said| said.contains(part)),
                "{said:?}"
            ),
        }
    }

    /// Known fault 123: vllm-project/vllm #21104 and #10847.
    #[test]
    fn another_end_and_a_fault_that_never_came_are_told() {
        check(0, EndReason::Answered, 0, None);
        check(1, EndReason::Answered, 1, None);
        check(2, EndReason::Answered, 1, None);
        check(
            1,
            EndReason::Timeout,
            1,
            Some("expects the end answered, the run ended as timeout"),
        );
        check(0, EndReason::Timeout, 0, Some("ended as timeout"));
        check(
            1,
            EndReason::Answered,
            0,
            Some("no planned fault came to pass"),
        );
    }
}
