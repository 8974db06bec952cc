use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use spill_scenario::Profile;
use spill_tokens::Tokenizer;

use super::*;
use crate::journal::ResultForm;
use crate::model::{ToolCall, respond};
use crate::reply::{NamedCall, Said};
use crate::testing::{Agent, document, mock_run, review, spec};

/// One token for each four bytes, so that these tests need no vocabulary.
struct Quarters;

impl Tokenizer for Quarters {
    fn name(&self) -> &'static str {
        "quarters"
    }

    fn count(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }
}

fn counter() -> TokenCounter {
    TokenCounter::with_tokenizer(Box::new(Quarters))
}

fn action(reply: Reply) -> Action {
    match reply {
        Reply::Completed(completion, _) => match completion.said {
            Said::Answer(text) => Action::Answer(text),
            Said::Calls(calls) => Action::Call(calls.into_iter().map(called).collect()),
            Said::Nothing => panic!("a reply without a choice"),
        },
        Reply::Spoilt(_, delivery) => panic!("{delivery:?}"),
        Reply::Refused(refusal) => panic!("{refusal:?}"),
    }
}

fn called(call: NamedCall) -> ToolCall {
    ToolCall {
        id: call.id,
        name: call.name,
        arguments: call.arguments,
    }
}

/// All request bodies of a run.
fn bodies(run: &MockRun, threshold: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    Agent::new(run, threshold).run(|body| {
        bodies.push(body.to_owned());
        respond(&View::parse(body.as_bytes()).expect("a request"), run)
    });
    bodies
}

fn check_stateless(run: &MockRun, bodies: &[String]) {
    let tokens = counter();
    let mut state = LlmState::new(run, Arc::default());
    for (number, body) in bodies.iter().enumerate() {
        let alone = respond(&View::parse(body.as_bytes()).expect("a request"), run);
        let kept = action(state.answer(body.clone().into(), &Wire::default(), &tokens));
        assert_eq!(kept, alone, "request {number}");
        let mut fresh = LlmState::new(run, Arc::default());
        fresh.answer(body.clone().into(), &Wire::default(), &tokens);
        let (kept, fresh) = (state.journal.last(), fresh.journal.last());
        let figures = |entry: Option<&LlmCallEntry>| {
            let entry = entry.expect("an entry");
            let prompt = entry.uncached_input_tokens + entry.cache_read_tokens;
            (
                prompt,
                entry.context,
                entry.request_digest.clone(),
                entry.iteration,
            )
        };
        assert_eq!(figures(kept), figures(fresh), "request {number}");
    }
}

/// Known fault 116: monarch-initiative/deep-research-client PR #77.
#[test]
fn what_the_server_remembers_never_changes_an_answer_or_a_count() {
    let run = mock_run(document(), Profile::Diligent, spec());
    let stored = bodies(&run, 20_000);
    let inline = bodies(&run, usize::MAX);
    check_stateless(&run, &stored);
    let retried: Vec<_> = stored
        .iter()
        .flat_map(|body| [body.clone(), body.clone()])
        .collect();
    check_stateless(&run, &retried);
    let interleaved: Vec<_> = stored
        .iter()
        .zip(inline.iter().cycle())
        .flat_map(|(a, b)| [a.clone(), b.clone()])
        .collect();
    check_stateless(&run, &interleaved);
    let backwards: Vec<_> = stored.iter().rev().cloned().collect();
    check_stateless(&run, &backwards);
    let edited: Vec<_> = stored
        .iter()
        .enumerate()
        .map(|(turn, body)| body.replacen("Go.", &format!("Go {turn}."), turn % 2))
        .collect();
    check_stateless(&run, &edited);
}

#[test]
fn a_request_that_is_none_does_not_disturb_the_next() {
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    for body in bodies(&run, usize::MAX) {
        let cut = Bytes::from(body[..body.len() - 1].to_owned());
        assert!(matches!(
            state.answer(cut, &Wire::default(), &tokens),
            Reply::Refused(_)
        ));
        let alone = respond(&View::parse(body.as_bytes()).expect("a request"), &run);
        assert_eq!(
            action(state.answer(body.into(), &Wire::default(), &tokens)),
            alone
        );
    }
    let refused = state
        .journal
        .iter()
        .filter(|entry| entry.status == 400)
        .count();
    assert_eq!(refused * 2, state.journal.len());
    assert_eq!(state.journal[0].finish_reason, "invalid_request");
}

/// Turns, sum of all request bytes, and bytes of the last request, parsed, tokenised and read.
fn work(slice_bytes: u64) -> [u64; 6] {
    let model = crate::testing::spec();
    let run = mock_run(
        document(),
        Profile::Diligent,
        ModelSpec {
            slice_bytes,
            ..model
        },
    );
    let tokens = counter();
    let readings = Arc::new(Readings::default());
    let mut state = LlmState::new(&run, Arc::clone(&readings));
    let mut sizes = Vec::new();
    Agent::new(&run, 20_000).run(|body| {
        sizes.push(body.len() as u64);
        action(state.answer(
            Bytes::copy_from_slice(body.as_bytes()),
            &Wire::default(),
            &tokens,
        ))
    });
    [
        sizes.len() as u64,
        sizes.iter().sum(),
        sizes[sizes.len() - 1],
        state.parsed_bytes,
        tokens.tokenised_bytes(),
        readings.read_bytes(),
    ]
}

#[test]
fn ten_times_the_iterations_cost_what_is_new_in_them() {
    let [few, _, ..] = work(7000);
    let [many, sent, last, parsed, tokenised, read] = work(250);
    assert!(many > 10 * few, "{few} and {many} turns");
    // What follows the messages (the tool list) is read again with each request.
    assert!(
        parsed < last + many * 1500,
        "{parsed} bytes parsed of {last}"
    );
    assert!(
        tokenised < last + many * 1500,
        "{tokenised} bytes tokenised of {last}"
    );
    assert!(read < last, "{read} bytes read of {last}");
    assert!(sent > 10 * parsed, "{sent} bytes sent, {parsed} parsed");
}

fn check_refused(window: u64, prompt: u64, status: u16) {
    let model = ModelSpec {
        context_window_tokens: window,
        ..spec()
    };
    let run = mock_run(review(), Profile::Selective, model);
    let mut state = LlmState::new(&run, Arc::default());
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(400)}]});
    state.answer(body.to_string().into(), &Wire::default(), &counter());
    let entry = &state.journal[0];
    assert_eq!(entry.status, status, "{entry:?}");
    let counted = if status == 200 { prompt } else { 0 };
    assert_eq!(entry.uncached_input_tokens, counted);
}

#[test]
fn a_prompt_larger_than_the_window_is_refused() {
    check_refused(106, 106, 200);
    check_refused(105, 106, 400);
}

fn long(texts: &[&str]) -> Bytes {
    let messages: Vec<_> = texts
        .iter()
        .map(|text| json!({"role": "user", "content": text.repeat(1000)}))
        .collect();
    json!({"model": "m", "messages": messages})
        .to_string()
        .into()
}

/// Known fault 62: nikolai-vysotskyi/trace-mcp PR #1016.
#[test]
fn completed_requests_alone_feed_the_prompt_cache() {
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    let mut cached = |body: Bytes, is_completed: bool| {
        let reply = state.answer(body, &Wire::default(), &tokens);
        if let (Reply::Completed(_, prompt), true) = (&reply, is_completed) {
            state.complete(prompt);
        }
        state.journal.last().expect("an entry").cache_read_tokens
    };
    assert_eq!(cached(long(&["abcdefgh"]), false), 0);
    assert_eq!(cached(long(&["abcdefgh"]), true), 0);
    // 2,003 tokens are 15 whole blocks.
    assert_eq!(cached(long(&["abcdefgh", "i"]), true), 15 * 128);
    assert_eq!(cached(long(&["abcdefgh", "i", "j"]), true), 17 * 128);
    assert_eq!(cached(long(&["abcdefgX", "i"]), true), 0);
    // Less than 1,024 tokens are never cached.
    assert_eq!(cached(long(&["abc"]), true), 0);
    assert_eq!(cached(long(&["abc", "i"]), true), 0);
}

#[test]
fn a_changed_tool_list_is_a_new_prompt() {
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    for (number, tools) in ["[]", "[]", "[{\"function\":{\"name\":\"t\"}}]"]
        .iter()
        .enumerate()
    {
        let text = "x".repeat(8000);
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}],"tools":{tools}}}"#
        );
        let Reply::Completed(_, prompt) = state.answer(body.into(), &Wire::default(), &tokens)
        else {
            panic!()
        };
        state.complete(&prompt);
        let is_cached = state.journal[number].cache_read_tokens > 0;
        assert_eq!(is_cached, number == 1, "request {number}");
    }
}

#[test]
fn the_journal_names_each_new_result_once_and_sums_context_by_origin() {
    let run = mock_run(document(), Profile::Selective, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    for body in bodies(&run, 20_000) {
        state.answer(body.clone().into(), &Wire::default(), &tokens);
        state.answer(body.into(), &Wire::default(), &tokens);
    }
    let lines: Vec<String> = state
        .journal
        .iter()
        .map(|entry| {
            let results: Vec<_> = entry
                .new_results
                .iter()
                .map(|result| {
                    format!(
                        "\n    {} {:?} text {} prompt {} {:?} {:?} {:?} {:?}",
                        result.tool,
                        result.form,
                        result.text_bytes,
                        result.prompt_bytes,
                        result.reference,
                        result.offset_bytes,
                        result.stored_bytes,
                        result.with_range,
                    )
                })
                .collect();
            format!(
                "{}/{} {} {:?} {:?}{}",
                entry.call,
                entry.iteration,
                entry.finish_reason,
                entry.calls_tools,
                entry.context,
                results.concat()
            )
        })
        .collect();
    insta::assert_snapshot!("journal", lines.join("\n"));
}

/// The journal's sums of stored results and reads are those of the agent that stored and read.
fn check_sums(name: &str, options: &serde_json::Value) {
    let run = mock_run(review(), Profile::Diligent, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    let mut agent = Agent::new(&run, usize::MAX);
    agent.policy = Some(crate::testing::policy(name, options));
    agent.run(|body| action(state.answer(body.to_owned().into(), &Wire::default(), &tokens)));
    let of_form = |form: ResultForm| {
        let entries = state.journal.iter().flat_map(|entry| &entry.new_results);
        entries.filter(move |result| result.form == form)
    };
    let stored: BTreeSet<&str> = of_form(ResultForm::Preview)
        .filter_map(|result| result.reference.as_deref())
        .collect();
    assert_eq!(stored, agent.stored_references());
    assert!(!stored.is_empty());
    let slices: Vec<_> = of_form(ResultForm::Slice).collect();
    assert_eq!(slices.len(), agent.reads.len());
    let bytes = slices.iter().filter_map(|slice| slice.stored_bytes);
    assert_eq!(bytes.sum::<u64>(), agent.read_bytes);
    for slice in slices {
        assert_eq!(slice.with_range, Some(true));
        assert!(
            slice
                .reference
                .as_deref()
                .is_some_and(|reference| stored.contains(reference))
        );
    }
    let errors = of_form(ResultForm::Error).count();
    assert_eq!(errors, 0);
}

#[test]
fn the_journal_counts_what_was_stored_and_read_under_each_policy() {
    for layout in ["marked", "glued"] {
        check_sums(
            "inline-cap",
            &json!({"maxInlineBytes": 4000, "layout": layout}),
        );
    }
    check_sums("envelope", &json!({"maxPayloadBytes": 4000}));
}

fn any_content() -> impl Strategy<Value = String> {
    let number = prop_oneof![0u64..5000, Just(u64::MAX), any::<u64>()];
    prop_oneof![
        "(?s).{0,40}",
        Just("[{\"path\":\"a\",\"file_bytes\":9},{\"name\":\"a\"}]".to_owned()),
        Just("@@ -1 +99999999999999999999 @@\n@@ -1,2 +18446744073709551615,9 @@".to_owned()),
        Just("Error: limited to 0 bytes, at most 18446744073709551615".to_owned()),
        Just("[truncated]".to_owned()),
        (number.clone(), number.clone(), "[aé\n]{0,9}", "[aé\n]{0,9}").prop_map(
            |(size, lines, head, tail)| {
                json!({
                    "spilled": true,
                    "spillover_ref": "r",
                    "size_bytes": size,
                    "lines": lines,
                    "head": head,
                    "tail": tail,
                })
                .to_string()
            }
        ),
        (number.clone(), number.clone(), "[aé\n]{0,9}").prop_map(|(offset, size, text)| {
            let header = json!({
                "spillover_ref": "r",
                "offset": offset,
                "length": 1,
                "size_bytes": size,
            });
            format!("{header}\n{text}")
        }),
        (number.clone(), "[aé\n]{0,9}", "[aé\n]{0,9}").prop_map(|(omitted, head, tail)| {
            let marker = format!("\n[... {omitted} bytes left out ...]\n");
            let notice =
                format!("(Omitted {omitted} bytes. Full formatted result stored at: r. Read it.)");
            format!("{head}{marker}{tail}\n\n{notice}")
        }),
        (number.clone(), "[aé\n]{0,9}").prop_map(|(size, shown)| {
            json!({
                "_spillover": true,
                "resourceUri": "r",
                "mimeType": "text/plain",
                "sizeBytes": size,
                "preview": shown,
            })
            .to_string()
        }),
        (number.clone(), number, "[aé\n]{0,9}").prop_map(|(offset, size, text)| {
            json!({"contents": [{"uri": "r", "text": text, "offset": offset, "size_bytes": size}]})
                .to_string()
        }),
    ]
}

fn any_message() -> impl Strategy<Value = serde_json::Value> {
    let call = prop_oneof![
        Just(("list_changed_files", "{}")),
        Just(("read_diff", "{\"path\":\"a\"}")),
        Just(("read_file", "{\"path\":\"a\"}")),
        Just(("read_document", "{\"name\":\"a\"}")),
        Just(("list_documents", "not json")),
        Just((
            "x__read",
            "{\"spillover_ref\":\"r\",\"range\":{\"offset\":18446744073709551615}}"
        )),
        Just(("x__read", "{\"spillover_ref\":\"r\",\"range\":7}")),
        Just(("read", "{\"path\":\"r\",\"offset\":5,\"limit\":3}")),
        Just((
            "resources_read",
            "{\"uri\":\"r\",\"range\":{\"offset\":5,\"length\":3}}"
        )),
    ];
    prop_oneof![
        any_content().prop_map(|text| json!({"role": "user", "content": text})),
        (call, "[ab]").prop_map(|((name, arguments), id)| json!({
            "role": "assistant",
            "tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}}],
        })),
        (any_content(), "[ab]")
            .prop_map(|(text, id)| json!({"role": "tool", "tool_call_id": id, "content": text})),
    ]
}

proptest! {
    #[test]
    fn every_request_has_an_answer(
        messages in prop::collection::vec(any_message(), 1..14),
        profile in prop::sample::select(Profile::ALL.to_vec()),
        is_review in any::<bool>(),
        slice_bytes in prop_oneof![Just(0), Just(7), Just(u64::MAX)],
        reading_budget_bytes in prop_oneof![Just(0), Just(100), Just(u64::MAX)],
    ) {
        let data = if is_review { review() } else { document() };
        let model = ModelSpec { slice_bytes, reading_budget_bytes, max_findings: 1, ..spec() };
        let run = mock_run(data, profile, model);
        let arguments = json!({"spillover_ref": {}, "uri": {}, "path": {}, "offset": {}, "limit": {}});
        let tools: Vec<_> = ["list_changed_files", "read_diff", "read_file", "list_documents", "read_document", "x__read"]
            .iter()
            .map(|name| json!({"function": {"name": name, "parameters": {"properties": arguments}}}))
            .collect();
        let body = json!({"model": "m", "messages": messages, "tools": tools}).to_string();
        let tokens = counter();
        match action(LlmState::new(&run, Arc::default()).answer(body.into(), &Wire::default(), &tokens)) {
            Action::Call(calls) => prop_assert!((1..=2).contains(&calls.len())),
            Action::Answer(text) => prop_assert!(!text.is_empty() && text.lines().count() == 1),
        }
    }
}

/// Known fault 84: matsonj/eval-connections #11.
#[test]
fn calls_take_time_on_the_models_own_clock() {
    let spec = spill_scenario::ModelSpec {
        latency: Some(spill_scenario::LatencyRecord {
            overhead_ms: 100.0,
            uncached_token_ms: 1.0,
            output_token_ms: 1000.0,
            queue_ms: 0.0,
            sleep_scale: 0.5,
        }),
        ..spec()
    };
    let run = mock_run(review(), Profile::Selective, spec);
    let mut state = LlmState::new(&run, Arc::default());
    let body = &bodies(&run, usize::MAX)[0];
    state.answer(body.clone().into(), &Wire::default(), &counter());
    let entry = &state.journal[0];
    #[expect(clippy::cast_precision_loss, reason = "few tokens")]
    let expected = 100.0 + (entry.uncached_input_tokens + 1000 * entry.output_tokens) as f64;
    assert_eq!(entry.model_time_ms, Some(expected));
    assert_eq!(state.wait.as_secs_f64(), expected * 0.5 / 1000.0);
}

/// A value that changes within the last result leaves the prefix as it was; rewriting an older result breaks it.
///
/// Known fault 62: nikolai-vysotskyi/trace-mcp PR #1016.
#[test]
fn what_changes_in_the_last_result_breaks_no_prefix() {
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let stamped = |older: u32, stamps: &[u32]| {
        let mut messages = vec![json!({"role": "user", "content": "x".repeat(8_000)})];
        messages.push(json!({"role": "tool", "tool_call_id": "a", "content": format!("{older} {}", "y".repeat(8_000))}));
        for stamp in stamps {
            messages.push(
                json!({"role": "tool", "tool_call_id": "b", "content": format!("at {stamp}")}),
            );
        }
        Bytes::from(json!({"model": "m", "messages": messages}).to_string())
    };
    let read_after = |second: Bytes| {
        let mut state = LlmState::new(&run, Arc::default());
        let reply = state.answer(stamped(1, &[100]), &Wire::default(), &tokens);
        let Reply::Completed(_, prompt) = reply else {
            panic!("a completion")
        };
        state.complete(&prompt);
        state.answer(second, &Wire::default(), &tokens);
        state.journal[1].cache_read_tokens
    };
    let appended = read_after(stamped(1, &[100, 101]));
    assert_eq!(
        read_after(stamped(1, &[101])),
        appended,
        "another stamp in the last result"
    );
    assert!(appended > 3_900, "{appended}");
    let rewritten = read_after(stamped(2, &[100]));
    assert!(rewritten > 1_900 && rewritten < 2_200, "{rewritten}");
}

/// What a client says in the role `system` behind its prompt is of the system, is no task and ends no conversation.
#[test]
fn a_system_message_among_the_messages_is_the_systems() {
    use crate::dialect::Dialect;
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let wire = Wire {
        dialect: Dialect::Messages,
        ..Wire::default()
    };
    let asked = |system: &serde_json::Value| {
        let mut state = LlmState::new(&run, Arc::default());
        let tools = json!([{"name": "list_changed_files", "input_schema": {"type": "object"}}]);
        let body = json!({"model": "m", "max_tokens": 900, "tools": tools, "messages": [
            {"role": "user", "content": "Go."},
            {"role": "system", "content": system},
        ]});
        let action = action(state.answer(body.to_string().into(), &wire, &tokens));
        let entry = state.journal.remove(0);
        (action, entry.status, entry.context)
    };
    for system in [
        json!("The folder is /w."),
        json!([{"type": "text", "text": "The folder is /w."}]),
    ] {
        let (action, status, context) = asked(&system);
        assert_eq!(status, 200);
        assert_eq!(
            (context.system_bytes, context.user_bytes),
            (17, 3),
            "{system}"
        );
        assert!(matches!(action, Action::Call(calls) if calls[0].name == "list_changed_files"));
    }
    let mut state = LlmState::new(&run, Arc::default());
    let body = json!({"model": "m", "messages": [{"role": "developer", "content": "x"}]});
    let reply = state.answer(body.to_string().into(), &wire, &tokens);
    assert!(matches!(reply, Reply::Refused(_)));
    assert_eq!(state.journal[0].status, 400);
}

/// The answer that stays is that of the longest conversation, a request for a title beside it is none of it, and a reply
/// that asks for tools takes it back.
#[test]
fn the_last_answer_is_that_of_the_longest_conversation() {
    let run = mock_run(review(), Profile::Selective, spec());
    let tokens = counter();
    let mut state = LlmState::new(&run, Arc::default());
    let all = bodies(&run, usize::MAX);
    let ask = |state: &mut LlmState, body: &str| {
        action(state.answer(body.to_owned().into(), &Wire::default(), &tokens))
    };
    for (turn, body) in all.iter().enumerate() {
        let said = match ask(&mut state, body) {
            Action::Answer(text) => Some(text),
            Action::Call(_) => None,
        };
        assert_eq!(state.last_answer.1, said, "turn {turn}");
        assert_eq!(said.is_some(), turn + 1 == all.len());
    }
    let kept = state.last_answer.1.clone();
    let title = r#"{"model":"m","messages":[{"role":"user","content":"A title for it?"}]}"#;
    assert!(matches!(ask(&mut state, title), Action::Answer(_)));
    assert_eq!(state.last_answer.1, kept);
    // A refused request says nothing.
    state.answer("{}".into(), &Wire::default(), &tokens);
    assert_eq!(state.last_answer.1, kept);
    // The conversation that is as long takes the place.
    let last = all.last().expect("some requests");
    let again = last.replace("Go.", "Go once more.");
    assert!(matches!(ask(&mut state, &again), Action::Answer(_)));
    let mut fresh = LlmState::new(&run, Arc::default());
    ask(&mut fresh, title);
    assert!(fresh.last_answer.1.is_some(), "alone, it is the run's");
    ask(&mut fresh, &all[0]);
    assert_eq!(
        fresh.last_answer.1, None,
        "a conversation that goes on has no answer yet"
    );
}
