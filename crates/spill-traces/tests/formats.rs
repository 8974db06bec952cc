//! Expected counts of our own small files, one or more per format, with the traps of each.

use std::path::{Path, PathBuf};

use spill_traces::{FileReport, Import, Imported, Limits, Origin, Transcript, counts};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")
}

fn import(path: &str) -> (Vec<Transcript>, Vec<FileReport>) {
    let (mut transcripts, mut files) = (Vec::new(), Vec::new());
    Import::new(Limits::DEFAULT).path(&fixtures().join(path), &mut |imported| match imported {
        Imported::Transcript(transcript) => transcripts.push(*transcript),
        Imported::File(file) => files.push(*file),
    });
    (transcripts, files)
}

/// `calls+copied | tool calls | results:bytes:incomplete | bytes sent:of results | input=uncached+read+written output | …`
fn line(transcript: &Transcript) -> String {
    let c = counts(transcript);
    let known = |tokens: Option<u64>| tokens.map_or("?".to_owned(), |tokens| tokens.to_string());
    let boundaries: Vec<String> = transcript
        .boundaries
        .iter()
        .map(|b| format!("{:?}@{}", b.kind, b.before_call))
        .collect();
    let missing: Vec<&str> = transcript.missing.iter().map(|m| m.name()).collect();
    let problems = transcript.problems.counts();
    let problems: Vec<String> = problems
        .iter()
        .map(|(k, n)| format!("{n} {}", k.name()))
        .collect();
    format!(
        "{}+{} | {} | {}:{}:{} | {}:{} | {}={}+{}+{} {} | {} | {} | {}",
        c.calls,
        c.copied_calls,
        c.tool_calls,
        c.results,
        c.result_bytes,
        c.incomplete_results,
        c.sent_bytes.sum(),
        c.sent_bytes[Origin::ToolResult],
        known(c.usage.input_tokens),
        known(c.usage.uncached_input_tokens),
        known(c.usage.cache_read_tokens),
        known(c.usage.cache_write_tokens),
        known(c.usage.output_tokens),
        boundaries.join(" "),
        missing.join(" "),
        problems.join(" "),
    )
}

#[track_caller]
fn check(path: &str, format: &str, expected: &[&str]) {
    let (transcripts, _) = import(path);
    let lines: Vec<String> = transcripts.iter().map(line).collect();
    assert_eq!(lines, expected, "{path}");
    for transcript in &transcripts {
        assert_eq!(transcript.format.name(), format, "{path}");
    }
}

#[track_caller]
fn check_file(path: &str, left_out: &[(&str, u64)], problems: &[&str]) {
    let (_, files) = import(path);
    let [file] = files.as_slice() else {
        panic!("{path} is one file")
    };
    let found: Vec<(&str, u64)> = file.left_out.iter().map(|(k, n)| (*k, *n)).collect();
    assert_eq!(found, left_out, "{path}");
    let kept = file.problems.kept().iter();
    let lines: Vec<String> = kept
        .map(|p| format!("{}:{}", p.place.line.unwrap_or(0), p.kind.name()))
        .collect();
    assert_eq!(lines, problems, "{path}");
}

#[test]
fn claude_code() {
    check(
        "claude-code/split-and-parallel.jsonl",
        "claude-code",
        &["2+0 | 2 | 2:6:0 | 52:6 | 230=20+200+10 13 |  | system-prompt tool-schemas | "],
    );
    check(
        "claude-code/compaction.jsonl",
        "claude-code",
        &[
            "2+0 | 1 | 1:100:0 | 18:0 | 230=20+200+10 14 | Compaction@1 | system-prompt tool-schemas context-after-compaction | ",
        ],
    );
    check(
        "claude-code/rewind.jsonl",
        "claude-code",
        &["3+0 | 0 | 0:0:0 | 55:0 | 345=30+300+15 21 | Rewind@2 | system-prompt tool-schemas | "],
    );
    check(
        "claude-code/sidechain.jsonl",
        "claude-code",
        &[
            "2+0 | 1 | 1:5:0 | 42:5 | 230=20+200+10 14 |  | system-prompt tool-schemas | ",
            "1+0 | 0 | 0:0:0 | 4:0 | 115=10+100+5 7 |  | system-prompt tool-schemas | ",
        ],
    );
    check(
        "claude-code/s4",
        "claude-code",
        &["1+0 | 0 | 0:0:0 | 2:0 | 115=10+100+5 7 |  | system-prompt tool-schemas | "],
    );
    check(
        "claude-code/damaged.jsonl",
        "claude-code",
        &[
            "2+0 | 1 | 1:4:0 | 39:8 | 230=20+200+10 14 |  | system-prompt tool-schemas | 1 orphan-result 1 unanswered-call 1 broken-reference",
        ],
    );
}

#[test]
fn codex() {
    check(
        "codex/rollout.jsonl",
        "codex-rollout",
        &["3+0 | 2 | 2:46:0 | 124:46 | 240=80+160+? 17 | Compaction@2 | tool-schemas | "],
    );
    check(
        "codex/bare.jsonl",
        "codex-rollout",
        &[
            "2+0 | 1 | 1:3:0 | 20:3 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
}

#[test]
fn openai_chat() {
    check(
        "openai-chat/array.json",
        "openai-chat",
        &[
            "2+0 | 2 | 2:8:0 | 46:8 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
    check(
        "openai-chat/conversations.jsonl",
        "openai-chat",
        &[
            "2+0 | 2 | 2:8:0 | 46:8 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times | ",
            "1+0 | 0 | 0:0:0 | 8:0 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
    check(
        "openai-chat/one-message-a-line.jsonl",
        "openai-chat",
        &[
            "2+0 | 2 | 2:8:0 | 46:8 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
    check(
        "openai-chat/tau-bench.json",
        "openai-chat",
        &[
            "2+0 | 2 | 2:8:0 | 46:8 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
            "1+0 | 0 | 0:0:0 | 8:0 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
    check(
        "openai-chat/tau2.json",
        "openai-chat",
        &[
            "2+0 | 1 | 1:8:0 | 43:8 | 120=?+?+? 8 |  | system-prompt tool-schemas cache-split times | ",
        ],
    );
}

/// Known fault 122: ai-dynamo/dynamo #14254.
#[test]
fn api_capture() {
    check(
        "api-capture/two-conversations.jsonl",
        "api-capture",
        &[
            "4+0 | 1 | 1:10:0 | 286:30 | 85=25+50+? 17 | Edit@3 |  | ",
            "1+0 | 0 | 0:0:0 | 54:0 | 8=?+?+? 3 |  | cache-split | ",
        ],
    );
}

#[test]
fn anthropic_messages() {
    check(
        "anthropic/messages.json",
        "anthropic-messages",
        &["2+0 | 1 | 1:16:0 | 120:16 | 21=5+7+9 2 |  | times | "],
    );
}

#[test]
fn swe_agent() {
    check(
        "swe-agent/old.traj",
        "swe-agent",
        &[
            "3+0 | 0 | 3:65:0 | 291:60 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model call-ids history-processor | ",
        ],
    );
    check(
        "swe-agent/with-queries.traj",
        "swe-agent",
        &[
            "2+0 | 2 | 2:10:0 | 19:5 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model | ",
        ],
    );
    check(
        "swe-agent/demonstration-without-trajectory.traj",
        "swe-agent",
        &[],
    );
}

#[test]
fn mini_swe_agent() {
    check(
        "mini-swe-agent/run.traj.json",
        "mini-swe-agent",
        &["3+0 | 3 | 2:111:1 | 235:133 | 180=36+144+? 18 |  | tool-schemas | "],
    );
    check(
        "mini-swe-agent/old-list.traj.json",
        "mini-swe-agent",
        &[
            "3+0 | 0 | 1:47:0 | 242:47 | ?=?+?+? ? |  | tool-schemas usage-per-call cache-split times model call-ids | ",
        ],
    );
}

#[test]
fn inspect() {
    check(
        "inspect/log.json",
        "inspect",
        &[
            "2+0 | 2 | 2:11:0 | 57:7 | 80=20+60+? 7 |  | system-prompt | ",
            "1+0 | 0 | 0:0:0 | 23:0 | 5=?+?+? 1 |  | system-prompt cache-split | ",
        ],
    );
}

#[test]
fn atif() {
    check(
        "atif/trajectory.json",
        "atif",
        &[
            "3+1 | 3 | 3:17:0 | 186:22 | 100=60+40+? 10 |  |  | 1 pairing",
            "1+0 | 0 | 0:0:0 | 3:0 | ?=?+?+? ? |  | system-prompt tool-schemas usage-per-call cache-split times model | ",
        ],
    );
}

#[test]
fn otel() {
    check(
        "otel/genai.json",
        "otel",
        &["2+0 | 3 | 3:14:0 | 58:10 | 120=18+32+? 12 |  | tool-schemas | "],
    );
    check(
        "otel/openinference.jsonl",
        "otel",
        &["2+0 | 1 | 1:4:0 | 38:4 | 75=55+20+? 6 |  | tool-schemas | "],
    );
}

#[test]
fn gemini_cli() {
    check(
        "gemini-cli/session.json",
        "gemini-cli",
        &["2+0 | 2 | 2:21:0 | 56:21 | 252=102+150+? 14 |  | system-prompt tool-schemas | "],
    );
    check(
        "gemini-cli/session.jsonl",
        "gemini-cli",
        &["2+0 | 2 | 2:21:0 | 56:21 | 252=102+150+? 14 |  | system-prompt tool-schemas | "],
    );
}

#[test]
fn deepseek_harness() {
    check(
        "deepseek/session.jsonl",
        "deepseek-harness",
        &["3+0 | 2 | 2:66:1 | 149:66 | 265=55+210+? 6 | Compaction@2 | times | "],
    );
    check(
        "deepseek/fork.jsonl",
        "deepseek-harness",
        &["1+1 | 0 | 0:0:0 | 10:0 | 127=7+120+? 1 |  | system-prompt tool-schemas times | "],
    );
}

#[test]
fn what_is_left_out_is_counted_by_kind() {
    check_file(
        "claude-code/split-and-parallel.jsonl",
        &[
            ("bookkeeping lines", 2),
            ("copied lines", 1),
            ("synthetic messages, not calls", 1),
            ("system lines, not sent", 1),
            ("toolUseResult, a duplicate of the result", 2),
        ],
        &[],
    );
    check_file(
        "codex/rollout.jsonl",
        &[
            ("event messages, duplicates of items", 2),
            ("repeated token counts", 1),
            ("token counts without figures", 1),
        ],
        &[],
    );
    check_file("inspect/log.json", &[("model calls of scorers", 1)], &[]);
    check_file(
        "otel/genai.json",
        &[
            ("agent spans, whose usage repeats that of their calls", 1),
            ("tool spans without a result (content not captured)", 1),
            ("tool spans, whose results are in the next request", 1),
        ],
        &[],
    );
    check_file(
        "gemini-cli/session.jsonl",
        &[("earlier states of a message", 1), ("session metadata", 1)],
        &[],
    );
}

#[test]
fn what_is_not_understood_is_named_by_line() {
    check_file(
        "claude-code/damaged.jsonl",
        &[],
        &["2:unknown", "3:unknown"],
    );
    check_file(
        "api-capture/two-conversations.jsonl",
        &[],
        &["11:bad-field"],
    );
    check_file("deepseek/fork.jsonl", &[], &["7:unknown"]);
    let without = "swe-agent/demonstration-without-trajectory.traj";
    check_file(without, &[], &["0:bad-field", "0:no-calls"]);
}

#[track_caller]
fn check_parent(path: &str, id: &str, parent: Option<&str>) {
    let (transcripts, _) = import(path);
    let found = transcripts.iter().find(|t| t.id.as_deref() == Some(id));
    let found = found.unwrap_or_else(|| panic!("{path} has {id}"));
    let parent_id = found.parent.as_ref().map(|parent| parent.id.as_str());
    assert_eq!(parent_id, parent, "{path}: {id}");
}

#[test]
fn sub_agents_know_their_parents() {
    check_parent("claude-code/sidechain.jsonl", "s4", None);
    check_parent("claude-code/sidechain.jsonl", "e1", Some("s4"));
    check_parent("claude-code/s4", "f1", Some("s4"));
    check_parent("deepseek/fork.jsonl", "ds2", Some("ds1"));
    check_parent("atif/trajectory.json", "at-2", Some("at-1"));
    check_parent("inspect/log.json", "1/1", Some("1"));
}

#[test]
fn a_call_that_two_sessions_hold_is_made_once() {
    let (transcripts, _) = import("claude-code");
    let of = |id: &str| {
        let found = transcripts.iter().find(|t| t.id.as_deref() == Some(id));
        counts(found.expect("the fixture has this session"))
    };
    let (original, resumed) = (of("s3"), of("s5"));
    assert_eq!(original.calls + resumed.calls, 4);
    assert_eq!(original.copied_calls + resumed.copied_calls, 1);
}

#[test]
fn results_know_their_tool_and_call() {
    let (transcripts, _) = import("claude-code/split-and-parallel.jsonl");
    let results = &transcripts[0].results;
    let known: Vec<_> = results
        .iter()
        .map(|r| (r.tool.as_deref(), r.asked_by))
        .collect();
    assert_eq!(known, [(Some("Bash"), Some(0)), (Some("Read"), Some(0))]);

    let (transcripts, _) = import("swe-agent/old.traj");
    let results = &transcripts[0].results;
    let known: Vec<_> = results
        .iter()
        .map(|r| (r.tool.as_deref(), r.asked_by))
        .collect();
    let expected = [
        (Some("ls"), Some(0)),
        (Some("open"), Some(1)),
        (Some("submit"), Some(2)),
    ];
    assert_eq!(known, expected);
}

#[test]
fn the_last_observation_is_never_sent() {
    let (transcripts, _) = import("swe-agent/old.traj");
    let last = transcripts[0].results.last().expect("three results");
    let sent = transcripts[0]
        .calls
        .iter()
        .any(|call| call.context.contains(last.message));
    assert!(!sent);
}

#[test]
fn the_uncut_output_is_kept_beside_what_the_model_saw() {
    let (transcripts, _) = import("mini-swe-agent/run.traj.json");
    let result = &transcripts[0].results[1];
    let expected = spill_traces::Completeness::Cut {
        original_bytes: Some(60),
    };
    assert_eq!(result.completeness, expected);
    assert_eq!(result.uncut.as_ref().map(|text| text.len()), Some(60));
}
