//! Records of replays to judge and render.

use std::collections::{BTreeMap, BTreeSet};

use spill_record::{
    CacheRecord, CellPlan, CellRecord, CellTool, Class, RecordedUsage, ReplayFigures, ReplayFiles,
    ReplayRecord, ReplayTotals, SCHEMA, SessionRecord, ToolRecord, Versions,
};

/// Thresholds of the sample, in KiB.
pub(crate) const KIB: [u64; 3] = [8, 32, 128];

/// A replay of workflow-step at 8, 32 and 128 KiB under none, used and whole.
pub(crate) fn record(gates: &[&str]) -> ReplayRecord {
    ReplayRecord {
        schema: SCHEMA,
        replay_id: "20260102T030405.006Z-replay-0123456789abcdef".to_owned(),
        started_at: "2026-01-02T03:04:05.006Z".to_owned(),
        versions: Versions {
            spillgate: "0.1.0".to_owned(),
            tokenizer: "o200k_base estimate".to_owned(),
        },
        paths: vec!["sessions".to_owned()],
        cells: KIB
            .map(|kib| CellPlan {
                policy: "workflow-step".to_owned(),
                threshold_bytes: kib << 10,
                replacement_bytes: None,
            })
            .to_vec(),
        read_backs: ["none", "used", "whole"].map(str::to_owned).to_vec(),
        cache: CacheRecord {
            block_tokens: 128,
            minimum_tokens: 1_024,
        },
        window_tokens: Some(200_000),
        prices: None,
        currency: None,
        gates: gates.iter().map(|gate| (*gate).to_owned()).collect(),
        files: ReplayFiles {
            read: 7,
            with_transcripts: 6,
            lost: 0,
        },
        sessions: 0,
        superseded: BTreeSet::new(),
        problems: BTreeMap::from([("torn-line".to_owned(), 2)]),
        left_out: BTreeMap::from([("bookkeeping lines".to_owned(), 4)]),
        sessions_digest: String::new(),
    }
}

fn figures(calls: u64, extra_calls: u64, input_tokens: u64) -> ReplayFigures {
    ReplayFigures {
        calls: calls + extra_calls,
        extra_calls,
        input_bytes: input_tokens * 4,
        input_tokens,
        cached_input_bytes: input_tokens * 2,
        cached_input_tokens: input_tokens / 2,
        peak_context_tokens: input_tokens / 10,
        calls_over_window: Some(0),
        input_cost: None,
    }
}

/// A transcript of 1,000,000 input tokens in 20 calls, of which each cell saves the given percentages under none, used and
/// whole; a cell without any replaced nothing.
pub(crate) fn session(number: u64, class: Class, saved: [Option<[i64; 3]>; 3]) -> SessionRecord {
    let tool = || Some("read_file".to_owned());
    let under = |percent: i64, extra: u64| {
        let tokens = 1_000_000 - percent * 10_000;
        figures(
            20,
            extra,
            u64::try_from(tokens).expect("some tokens are sent"),
        )
    };
    SessionRecord {
        schema: SCHEMA,
        session_id: format!("{number:016x}"),
        file: format!("sessions/{number}.jsonl"),
        line: Some(1),
        format: "claude-code".to_owned(),
        id: Some(format!("session {number}")),
        parent_id: None,
        class: Some(class),
        models: vec!["model-1".to_owned()],
        calls: 20,
        copied_calls: 0,
        results: 10,
        result_bytes: 200_000,
        largest_result_bytes: Some(150_000),
        sent_results: 10,
        sent_result_bytes: 200_000,
        incomplete_results: u64::from(number == 1),
        boundaries: 0,
        recorded: RecordedUsage {
            calls: 20,
            input_tokens: Some(1_100_000),
            counted_input_tokens: Some(1_000_000),
            ..RecordedUsage::default()
        },
        as_recorded: figures(20, 0, 1_000_000),
        tools: vec![ToolRecord {
            tool: tool(),
            results: 10,
            result_bytes: 200_000,
            sent_bytes: 2_000_000,
            sent_tokens: 500_000,
        }],
        cells: saved
            .map(|saved| match saved {
                None => CellRecord::default(),
                Some([none, ..]) => CellRecord {
                    replaced_results: 2,
                    replaced_bytes: 160_000,
                    replacement_bytes: 5_000,
                    kept_results: 0,
                    used_results: 1,
                    tools: vec![CellTool {
                        tool: tool(),
                        replaced_results: 2,
                        saved_bytes: none * 40_000,
                        saved_tokens: none * 10_000,
                    }],
                },
            })
            .to_vec(),
        outcomes: saved
            .iter()
            .flat_map(|saved| {
                let [none, used, whole] = saved.unwrap_or_default();
                let some = saved.is_some();
                [
                    under(none, 0),
                    under(used, u64::from(some)),
                    under(whole, 4 * u64::from(some)),
                ]
            })
            .collect(),
        not_recorded: vec!["system-prompt".to_owned()],
        problems: BTreeMap::new(),
    }
}

/// Five transcripts of the class large, one of the class small in which nothing is replaced.
pub(crate) fn sessions() -> Vec<SessionRecord> {
    let saved = [Some([40, 10, -60]), Some([30, 20, -10]), Some([5, 4, -1])];
    let mut sessions: Vec<SessionRecord> = (1..=5)
        .map(|number| session(number, Class::Large, saved))
        .collect();
    sessions.push(session(6, Class::Small, [None; 3]));
    sessions
}

pub(crate) fn totals(sessions: &[SessionRecord]) -> ReplayTotals {
    let mut totals = ReplayTotals::default();
    for session in sessions {
        totals.add(session);
    }
    totals
}
