use spill_record::{EndReason, RunRecord};

use crate::inventory::{InputPairs, Inventory, Pair, Slot};
use crate::words::{counted, place, plain};

/// The subject that comes with the program.
const BUILT_IN: &str = "built-in";

/// What the comparison of requests found.
#[derive(Default)]
pub(crate) struct Identity {
    pub(crate) harness_errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

/// Compares, within every pair, the requests of the runs that stored nothing: they must be the same
/// bytes.
///
/// A difference is a fault of the built-in subject; of another subject it is a fact to report.
pub(crate) fn compare(subject: &str, inventory: &Inventory<'_>) -> Identity {
    let mut found = Identity {
        harness_errors: Vec::new(),
        warnings: Vec::new(),
    };
    for cell in &inventory.inputs {
        let unlike: Vec<&Pair<'_>> = cell
            .pairs
            .iter()
            .filter(|pair| differ(&stored_nothing(pair)))
            .collect();
        let Some(first) = unlike.first() else {
            continue;
        };
        let words = describe(cell, unlike.len() as u64, first);
        if subject == BUILT_IN {
            found.harness_errors.push(words);
        } else {
            found.warnings.push(words);
        }
    }
    found
}

fn describe(cell: &InputPairs<'_>, count: u64, first: &Pair<'_>) -> String {
    let names: Vec<String> = stored_nothing(first)
        .iter()
        .map(|run| plain(&run.configuration))
        .collect();
    format!(
        "{}: runs that stored nothing sent different requests in {}, first in pair {} ({})",
        place(&cell.input.scenario, &cell.input.input),
        counted(count, "pair"),
        plain(first.pair_id),
        names.join(", ")
    )
}

/// The pair's runs that stored nothing and ended where the seed decides.
fn stored_nothing<'a>(pair: &Pair<'a>) -> Vec<&'a RunRecord> {
    pair.slots
        .iter()
        .filter_map(|slot| match slot {
            Slot::Finished(record)
                if record.results_persisted == Some(0) && decided_by_seed(record) =>
            {
                Some(*record)
            }
            Slot::Finished(_) | Slot::Infrastructure(_) | Slot::Missing => None,
        })
        .collect()
}

/// Whether a run's end is a function of its seed, not of time or of a process that died.
fn decided_by_seed(record: &RunRecord) -> bool {
    match record.end_reason {
        EndReason::Answered
        | EndReason::EmptyAnswer
        | EndReason::IterationLimit
        | EndReason::ContextWindow => true,
        EndReason::Timeout
        | EndReason::Aborted
        | EndReason::ModelError
        | EndReason::ToolError
        | EndReason::Crashed
        | EndReason::BadSettings
        | EndReason::MockUnavailable
        | EndReason::EndpointFailed
        | EndReason::SpendingCap
        | EndReason::Mismatch
        | EndReason::UnexpectedEnd
        | EndReason::LeakCheckFailed
        | EndReason::LaunchFailed
        | EndReason::SidecarFailed => false,
    }
}

fn differ(runs: &[&RunRecord]) -> bool {
    let digests = |run: &RunRecord| (run.prompt_digest.clone(), run.offered_tools_digest.clone());
    runs.windows(2)
        .any(|two| digests(two[0]) != digests(two[1]))
}
