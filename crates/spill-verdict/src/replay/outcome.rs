use spill_record::{ReplayRecord, ReplaySums};

use super::gate::{GateState, GateVerdict};
use crate::exit;

/// The exit code of a replay: [`exit::INCOMPLETE`] when something that may be a transcript was lost, [`exit::REJECTED`] when a
/// gate is broken, [`exit::NOT_PROVEN`] when one is not proven or no LLM call was replayed, else [`exit::ACCEPTED`].
#[must_use]
pub fn replay_exit_code(record: &ReplayRecord, sums: &ReplaySums, gates: &[GateVerdict]) -> u8 {
    let mut codes = vec![exit::ACCEPTED];
    if record.files.lost > 0 {
        codes.push(exit::INCOMPLETE);
    }
    if sums.as_recorded.calls == 0 {
        codes.push(exit::NOT_PROVEN);
    }
    codes.extend(gates.iter().map(|gate| match gate.state {
        GateState::Holds => exit::ACCEPTED,
        GateState::Broken => exit::REJECTED,
        GateState::NotProven => exit::NOT_PROVEN,
    }));
    exit::first_that_applies(&codes)
}
