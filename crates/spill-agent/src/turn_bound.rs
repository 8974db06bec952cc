//! The bound on all results of one turn together.

use spill_engine::{TurnResult, bound_turn};

use crate::{calls::Settled, session::Session, stored::Limit};

/// Replaces results of a turn, the largest first, until all of them together are within `bound`.
pub(crate) async fn bind(settled: &mut [Settled], bound: u64, session: &Session) {
    let results: Vec<TurnResult> = settled
        .iter()
        .zip(0..)
        .map(|(one, call_index)| TurnResult {
            call_index,
            bytes: one.prompt.len() as u64,
            replaced_bytes: one.replaced_bytes,
        })
        .collect();
    for index in bound_turn(&results, bound).spill {
        let one = usize::try_from(index)
            .ok()
            .and_then(|index| settled.get_mut(index));
        let Some((one, again)) = one.and_then(|one| one.again.take().map(|again| (one, again)))
        else {
            continue;
        };
        let (call, tool) = (again.call, again.tool.clone());
        let seen = session.work(move |session| {
            session.shape(
                again.call,
                &again.tool,
                &again.arguments,
                Limit::Turn,
                again.result,
            )
        });
        let seen = seen.await;
        if let Some(warning) = seen.placed.warning() {
            session.warn(warning);
        }
        tracing::info!(
            call = %call,
            tool = %tool,
            bytes = seen.record_text.len(),
            placement = ?seen.placed,
            "Tool result held against the bound of its turn"
        );
        one.prompt = seen.prompt;
    }
    let bytes: u64 = settled.iter().map(|one| one.prompt.len() as u64).sum();
    if bytes > bound {
        tracing::warn!(bytes, bound, "a turn's results are larger than its bound");
    }
}
