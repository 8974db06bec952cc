//! Faults that others reported of transcripts and their sums, each with its reproduction.

use std::collections::BTreeSet;

use serde_json::json;
use spill_traces::{Import, Imported, Limits, ProblemKind, Standing, Transcript, Usage, counts};

fn import(bytes: &[u8]) -> Vec<Transcript> {
    let mut transcripts = Vec::new();
    Import::new(Limits::DEFAULT).stream("input", bytes, &mut |imported| match imported {
        Imported::Transcript(transcript) => transcripts.push(*transcript),
        Imported::File(_) => {}
    });
    transcripts
}

/// A line of a session, with the line before it as its parent.
fn line(kind: &str, number: u32, message: &serde_json::Value) -> String {
    let parent = (number > 0).then(|| format!("u{}", number - 1));
    json!({"parentUuid": parent, "isSidechain": false, "sessionId": "s", "type": kind, "uuid": format!("u{number}"),
        "timestamp": "2026-01-01T00:00:00Z", "message": message})
    .to_string()
}

/// Three parallel calls and their results, of which `left_out` is missing; then the session goes on.
fn resumed(left_out: Option<usize>) -> Transcript {
    let calls: Vec<_> = (0..3)
        .map(|n| json!({"type": "tool_use", "id": format!("c{n}"), "name": "read", "input": {"n": n}}))
        .collect();
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let mut lines = vec![
        line(
            "user",
            0,
            &json!({"role": "user", "content": "read all three"}),
        ),
        line(
            "assistant",
            1,
            &json!({"id": "m1", "role": "assistant", "content": calls, "usage": usage}),
        ),
    ];
    for n in (0..3).filter(|n| Some(*n) != left_out) {
        let result = json!([{"type": "tool_result", "tool_use_id": format!("c{n}"), "content": format!("text {n}")}]);
        let number = u32::try_from(lines.len()).expect("few lines");
        lines.push(line(
            "user",
            number,
            &json!({"role": "user", "content": result}),
        ));
    }
    let number = u32::try_from(lines.len()).expect("few lines");
    let said = json!({"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "done"}], "usage": usage});
    lines.push(line("assistant", number, &said));
    import(lines.join("\n").as_bytes()).remove(0)
}

/// The ids of calls and of results are the same set, and a branch that is missing is named.
///
/// Known fault 60: anthropics/claude-code #31330.
#[test]
fn parallel_results_are_all_there_after_a_resume() {
    let ids = |transcript: &Transcript| -> BTreeSet<String> {
        let ids = transcript
            .results
            .iter()
            .filter_map(|result| result.call_id.clone());
        ids.collect()
    };
    let whole = resumed(None);
    assert_eq!(ids(&whole), ["c0", "c1", "c2"].map(str::to_owned).into());
    assert_eq!(counts(&whole).tool_calls, 3);
    assert_eq!(whole.problems.total(), 0);
    for branch in 0..3 {
        let torn = resumed(Some(branch));
        assert_eq!(torn.results.len(), 2);
        let unanswered = torn.problems.counts().get(&ProblemKind::UnansweredCall);
        assert_eq!(unanswered, Some(&1), "branch {branch}");
    }
}

/// Of 20,212 input tokens 16,298 are cached: each way of telling that has the same sum, and no token twice.
///
/// Known fault 72: adolfousier/opencrabs #1636; earendil-works/pi PR #2148; tembo/agent-studio PR #238; omnigent-ai/omnigent #1801.
#[test]
fn cached_tokens_are_not_counted_twice() {
    let of_a_total = Usage::from_total(Some(20_212), Some(16_298), Some(5));
    let of_parts = Usage::from_parts(Some(3_914), Some(16_298), None, Some(5));
    assert_eq!(of_a_total, of_parts);
    assert_eq!(of_a_total.input_tokens, Some(20_212));
    assert_eq!(of_a_total.uncached_input_tokens, Some(3_914));
    // A cached part above the total is told in another way than we think: no guess.
    assert_eq!(
        Usage::from_total(Some(10), Some(11), None).uncached_input_tokens,
        None
    );
}

/// Every usage event twice, as some agents write them: the sums are those of one each.
///
/// Known fault 73: open-telemetry/semantic-conventions-genai #476.
#[test]
fn a_usage_that_is_told_twice_counts_once() {
    let told = |times: usize| {
        let usage = |input: u64, last: u64| {
            json!({"timestamp": "2026-01-01T00:00:01Z", "type": "event_msg", "payload": {"type": "token_count", "info": {
                "total_token_usage": {"input_tokens": input, "cached_input_tokens": 0, "output_tokens": 5},
                "last_token_usage": {"input_tokens": last, "cached_input_tokens": 0, "output_tokens": 5}}}})
        };
        let item = |payload| json!({"timestamp": "2026-01-01T00:00:01Z", "type": "response_item", "payload": payload});
        let said = |text: &str| {
            item(
                json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
            )
        };
        let mut lines = vec![
            json!({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s"}}),
            item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
            ),
            item(json!({"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c"})),
        ];
        lines.extend(vec![usage(100, 100); times]);
        lines.push(item(
            json!({"type": "function_call_output", "call_id": "c", "output": "a"}),
        ));
        lines.push(said("done"));
        lines.extend(vec![usage(230, 130); times]);
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let transcript = import(text.join("\n").as_bytes()).remove(0);
        let found = counts(&transcript);
        (found.calls, found.usage.input_tokens)
    };
    assert_eq!(told(1), (2, Some(230)));
    assert_eq!(told(3), told(1));
}

/// Requests of which each repeats the whole history: what is new in each counts, and the prompt grows by just that.
///
/// Known fault 122: ai-dynamo/dynamo #14254.
#[test]
fn a_history_that_is_repeated_is_not_doubled() {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    let mut lines = Vec::new();
    for turn in 0..3 {
        let id = format!("c{turn}");
        lines.push(
            json!({"type": "request", "request_params": {"model": "m", "messages": messages}})
                .to_string(),
        );
        let call = json!({"role": "assistant", "content": null,
            "tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1});
        let response = json!({"model": "m", "choices": [{"message": call}], "usage": usage});
        lines.push(json!({"type": "response", "response": response}).to_string());
        messages.push(call);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "1234567890"}));
    }
    let transcript = import(lines.join("\n").as_bytes()).remove(0);
    let found = counts(&transcript);
    assert_eq!((found.calls, found.results, found.result_bytes), (3, 2, 20));
    let made = transcript
        .calls
        .iter()
        .filter(|call| call.standing == Standing::Made);
    let sent: Vec<usize> = made.map(|call| call.context.iter().count()).collect();
    assert_eq!(sent, [1, 3, 5], "two messages more with each call");
}
