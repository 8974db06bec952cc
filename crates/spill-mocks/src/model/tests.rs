use spill_scenario::InputData;

use super::*;
use crate::testing::{Agent, document, mock_run, recorded, records, review, spec};

/// Runs an agent to its answer: the calls by turn, and the answer.
fn play(run: &MockRun, agent: &mut Agent) -> (Vec<Vec<String>>, String) {
    let mut turns = Vec::new();
    let answer = agent.run(|body| {
        let view = View::parse(body.as_bytes()).expect("a request");
        let action = respond(&view, run);
        assert_eq!(respond(&view, run), action);
        if let Action::Call(calls) = &action {
            let shown = calls
                .iter()
                .map(|call| format!("{} {}", call.name, call.arguments));
            turns.push(shown.collect());
        }
        action
    });
    (turns, answer)
}

fn check_play(name: &str, data: InputData, profile: Profile, threshold: usize) -> String {
    let run = mock_run(data, profile, spec());
    let (turns, answer) = play(&run, &mut Agent::new(&run, threshold));
    let turns: Vec<_> = turns.iter().map(|calls| calls.join("\n  ")).collect();
    insta::assert_snapshot!(name, format!("{}\n---\n{answer}", turns.join("\n")));
    answer
}

#[test]
fn a_review_reads_list_diffs_and_files_and_finds_what_it_sees() {
    let answer = check_play("review_inline", review(), Profile::Selective, usize::MAX);
    assert_eq!(answer.lines().count(), 3);
}

#[test]
fn a_selective_reviewer_reads_a_stored_file_around_its_hunk() {
    let answer = check_play("review_selective", review(), Profile::Selective, 20_000);
    assert_eq!(answer.lines().count(), 3);
}

#[test]
fn tables_are_read_by_the_tool_for_their_format() {
    let inline = check_play("records_inline", records(), Profile::Diligent, usize::MAX);
    let stored = check_play("records_diligent", records(), Profile::Diligent, 4000);
    assert_eq!(inline, stored);
    // Rows in the middle are not in a preview, the start and the list are.
    let hasty = check_play("records_hasty", records(), Profile::Hasty, 4000);
    let has = |text: &str| hasty.contains(text);
    assert!(has("orders: rows: 120") && has("orders: columns: id") && has("sent.csv: first: s0"));
    assert!(inline.contains("orders: disputed: o60") && !has("disputed") && !has("lost"));
}

#[test]
fn a_selective_reader_keeps_the_last_slice_of_its_budget_for_the_end() {
    let answer = check_play("document_selective", document(), Profile::Selective, 20_000);
    assert!(
        answer.contains("must stop") && !answer.contains("200"),
        "{answer}"
    );
}

#[test]
fn a_diligent_reader_finds_what_an_inline_one_finds() {
    let inline = check_play("document_inline", document(), Profile::Diligent, usize::MAX);
    let stored = check_play("document_diligent", document(), Profile::Diligent, 20_000);
    assert_eq!(inline, stored);
}

#[test]
fn a_hasty_reader_answers_from_the_preview() {
    let answer = check_play("document_hasty", document(), Profile::Hasty, 20_000);
    assert!(answer.contains("begin") && answer.contains("stop") && !answer.contains("200"));
}

/// The turns of a recorded session without their reads, and the answer.
fn check_recorded(
    profile: Profile,
    threshold: usize,
    width: u64,
    turns: &[&[&str]],
    answer: &[&str],
) {
    let model = ModelSpec {
        patterns: vec!["code=.{5}".to_owned(), "last=.{5}".to_owned()],
        parallel_calls: width,
        reading_budget_bytes: 4000,
        slice_bytes: 2000,
        ..spec()
    };
    let run = mock_run(recorded(), profile, model);
    let (played, said) = play(&run, &mut Agent::new(&run, threshold));
    let is_recorded = |call: &&String| call.starts_with("recorded_");
    let asked: Vec<Vec<&String>> = played
        .iter()
        .map(|calls| calls.iter().filter(is_recorded).collect())
        .filter(|calls: &Vec<_>| !calls.is_empty())
        .collect();
    assert_eq!(asked, turns, "{profile:?} {threshold}");
    let found: Vec<&str> = said.lines().collect();
    assert_eq!(found, answer, "{profile:?} {threshold}");
}

/// Known fault 125: CopilotKit/aimock PR #166.
#[test]
fn recorded_calls_are_asked_for_in_their_order_and_read_back() {
    let ls = "recorded_ls {}";
    let read = r#"recorded_read_file {"path":"log","offset":0,"limit":9}"#;
    let cat = r#"recorded_cat {"path":"x"}"#;
    let again = r#"recorded_ls {"recorded_occurrence":2}"#;
    let single: &[&[&str]] = &[&[ls], &[read], &[cat], &[again]];
    let wide: &[&[&str]] = &[&[ls], &[read, cat], &[again]];
    let code = "- 2-read_file: pattern: code=E4831";
    let last = "- 2-read_file: pattern: last=S9904";
    let error = "- 3-cat: pattern: code=N0001";
    let all: &[&str] = &[code, last, error];
    check_recorded(Profile::Selective, usize::MAX, 1, single, all);
    check_recorded(Profile::Selective, usize::MAX, 8, wide, all);
    check_recorded(Profile::Diligent, 4000, 1, single, all);
    // The budget is spent before the middle; what previews show is enough for the end.
    check_recorded(Profile::Selective, 4000, 1, single, &[last, error]);
    check_recorded(Profile::Hasty, 4000, 1, single, &[last, error]);
}

/// Plays under a policy of the engine's; the answer as when everything is in view, and the reads.
fn check_policy(name: &str, options: &serde_json::Value, data: InputData, profile: Profile) {
    let run = mock_run(data, profile, spec());
    let (_, inline) = play(&run, &mut Agent::new(&run, usize::MAX));
    let mut agent = Agent::new(&run, usize::MAX);
    agent.policy = Some(crate::testing::policy(name, options));
    let (turns, answer) = play(&run, &mut agent);
    assert_eq!(answer, inline, "{turns:?}");
    assert!(!agent.reads.is_empty());
}

#[test]
fn results_stored_under_each_policy_are_read_back() {
    let cap = |layout: &str| serde_json::json!({"maxInlineBytes": 4000, "layout": layout});
    let limit = serde_json::json!({"maxPayloadBytes": 4000});
    for data in [document, review, records] {
        check_policy("inline-cap", &cap("marked"), data(), Profile::Diligent);
        check_policy("inline-cap", &cap("glued"), data(), Profile::Diligent);
        check_policy("envelope", &limit, data(), Profile::Diligent);
    }
    check_policy("inline-cap", &cap("marked"), recorded(), Profile::Diligent);
    check_policy("envelope", &limit, recorded(), Profile::Diligent);
    check_policy("inline-cap", &cap("marked"), review(), Profile::Selective);
    check_policy("inline-cap", &cap("glued"), review(), Profile::Selective);
    check_policy("envelope", &limit, review(), Profile::Selective);
}

/// With one call for all diffs the same is found, whatever is stored.
fn check_composite(policy: Option<(&str, serde_json::Value)>) {
    let plain = mock_run(review(), Profile::Diligent, spec());
    let (_, expected) = play(&plain, &mut Agent::new(&plain, usize::MAX));
    let model = ModelSpec {
        composite: true,
        ..spec()
    };
    let run = mock_run(review(), Profile::Diligent, model);
    let mut agent = Agent::new(&run, usize::MAX);
    agent.policy = policy.map(|(name, options)| crate::testing::policy(name, &options));
    let (turns, answer) = play(&run, &mut agent);
    let sorted = |answer: &str| {
        let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&answer), sorted(&expected));
    let calls = turns.concat();
    let of = |start: &str| calls.iter().filter(|call| call.starts_with(start)).count();
    assert_eq!(of(r#"read_diffs {"paths":["a.rs","b.rs","c.rs"]}"#), 1);
    assert_eq!((of("read_diff "), of("read_file ")), (0, 3));
}

#[test]
fn a_composite_tool_gives_all_diffs_at_once() {
    check_composite(None);
    check_composite(Some((
        "inline-cap",
        serde_json::json!({"maxInlineBytes": 800}),
    )));
    check_composite(Some((
        "envelope",
        serde_json::json!({"maxPayloadBytes": 800}),
    )));
}

#[test]
fn a_composite_tool_that_is_not_offered_is_not_asked_for() {
    let model = ModelSpec {
        composite: true,
        ..spec()
    };
    let run = mock_run(review(), Profile::Selective, model);
    let answer = Agent::new(&run, usize::MAX).run(|body| {
        let body = body.replace("\"name\":\"read_diffs\"", "\"name\":\"other\"");
        respond(&View::parse(body.as_bytes()).expect("a request"), &run)
    });
    assert_eq!(answer.lines().count(), 3);
}

#[test]
fn a_hasty_reader_answers_from_what_a_policy_shows() {
    let run = mock_run(document(), Profile::Hasty, spec());
    let answer = |name: &str, options: serde_json::Value| {
        let mut agent = Agent::new(&run, usize::MAX);
        agent.policy = Some(crate::testing::policy(name, &options));
        let answer = play(&run, &mut agent).1;
        assert!(agent.reads.is_empty());
        ["begin", "200", "stop"].map(|word| answer.contains(word))
    };
    let cap = serde_json::json!({"maxInlineBytes": 10_000});
    assert_eq!(answer("inline-cap", cap), [true, false, true]);
    let limit = serde_json::json!({"maxPayloadBytes": 10_000});
    assert_eq!(answer("envelope", limit), [true, false, false]);
}

#[test]
fn without_a_reading_tool_nothing_is_read_back() {
    let run = mock_run(document(), Profile::Diligent, spec());
    let mut agent = Agent::new(&run, 20_000);
    let answer = agent.run(|body| {
        let body = body.replace("\"spillover_ref\":{\"type\"", "\"other\":{\"type\"");
        respond(&View::parse(body.as_bytes()).expect("a request"), &run)
    });
    assert!(agent.reads.is_empty() && !answer.contains("200"));
}

fn check_retry(parallel_calls: u64, refused: usize) {
    let model = ModelSpec {
        slice_bytes: 20_000,
        window_lines: 100,
        parallel_calls,
        ..spec()
    };
    let run = mock_run(document(), Profile::Diligent, model);
    let mut agent = Agent::new(&run, 20_000);
    let answer = play(&run, &mut agent).1;
    assert!(answer.contains("200"));
    let (first, rest) = agent.reads.split_at(refused);
    assert!(first.iter().all(|(_, length)| *length > 8192), "{first:?}");
    assert_eq!(rest[0], (1024, 8192));
    assert!(rest.iter().all(|(_, length)| *length <= 8192), "{rest:?}");
}

#[test]
fn refused_reads_are_tried_again_with_the_cap_that_the_error_names() {
    check_retry(1, 1);
    check_retry(2, 2);
}

#[test]
fn a_read_that_keeps_failing_is_given_up() {
    let run = mock_run(document(), Profile::Diligent, spec());
    let mut agent = Agent::new(&run, 20_000);
    let answer = agent.run(|body| {
        let body = body.replace("\\\"offset\\\":", "\\\"broken\\\":");
        respond(&View::parse(body.as_bytes()).expect("a request"), &run)
    });
    // Both slices of the first turn fail at once; without a cap there is no other try.
    assert_eq!(agent.reads.len(), 2);
    assert!(answer.contains("begin"));
}

#[test]
fn tools_behind_a_prefix_are_called_by_their_offered_names() {
    let run = mock_run(review(), Profile::Selective, spec());
    let mut agent = Agent::new(&run, usize::MAX);
    agent.prefix = "mcp__mock__";
    let (turns, answer) = play(&run, &mut agent);
    assert_eq!(turns[0], ["mcp__mock__list_changed_files {}"]);
    assert_eq!(answer.lines().count(), 3);
}

fn check_alone(messages: &str, tools: &str, expected: &str) {
    let run = mock_run(document(), Profile::Selective, spec());
    let body = format!("{{\"model\":\"m\",\"messages\":{messages},\"tools\":{tools}}}");
    let view = View::parse(body.as_bytes()).expect("a request");
    let shown = match respond(&view, &run) {
        Action::Answer(text) => text,
        Action::Call(calls) => calls
            .iter()
            .map(|call| format!("{} {}", call.name, call.arguments))
            .collect::<Vec<_>>()
            .join("; "),
    };
    assert_eq!(shown, expected, "{messages}");
}

fn exchange(name: &str, arguments: &str, content: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    let content = serde_json::Value::from(content);
    format!(
        r#"{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"{name}","arguments":{arguments}}}}}]}},{{"role":"tool","tool_call_id":"c","content":{content}}}"#
    )
}

#[test]
fn errors_and_cut_results_are_asked_for_once_more() {
    let tools = r#"[{"function":{"name":"list_documents"}},{"function":{"name":"read_document"}}]"#;
    let list = exchange("list_documents", "{}", r#"[{"name":"d","size_bytes":90}]"#);
    let read = |content: &str| exchange("read_document", r#"{"name":"d"}"#, content);
    let (error, cut) = (read("Error: busy"), read("# T\n[truncated]"));
    let again = r#"read_document {"name":"d"}"#;
    check_alone(
        "[{\"role\":\"user\"}]",
        "[]",
        "I could not see which documents there are.",
    );
    check_alone("[{\"role\":\"user\"}]", tools, "list_documents {}");
    check_alone(&format!("[{list}]"), tools, again);
    check_alone(&format!("[{list},{error}]"), tools, again);
    check_alone(
        &format!("[{list},{error},{error}]"),
        tools,
        "I found no sections or key sentences.",
    );
    check_alone(&format!("[{list},{cut}]"), tools, again);
    check_alone(&format!("[{list},{cut},{cut}]"), tools, "- section: T");
    check_alone(&format!("[{list},{error},{cut}]"), tools, "- section: T");
    let forbidden = format!("{tools},\"tool_choice\":\"none\"");
    check_alone(
        &format!("[{list}]"),
        &forbidden,
        "I found no sections or key sentences.",
    );
}

fn with_recall(points: &[(u64, f64)]) -> spill_scenario::ModelSpec {
    let point = |(tokens, share): &(u64, f64)| spill_scenario::RecallPoint {
        tokens: *tokens,
        share: *share,
    };
    spill_scenario::ModelSpec {
        recall: points.iter().map(point).collect(),
        ..spec()
    }
}

fn played(profile: Profile, spec: spill_scenario::ModelSpec) -> (Vec<Vec<String>>, String) {
    let run = mock_run(review(), profile, spec);
    play(&run, &mut Agent::new(&run, usize::MAX))
}

#[test]
fn a_model_that_recalls_everything_is_a_selective_one() {
    let forgetful = played(Profile::Forgetful, with_recall(&[(1, 1.0)]));
    assert_eq!(forgetful, played(Profile::Selective, spec()));
}

#[test]
fn a_forgetful_model_asks_once_more_for_what_is_far_back_and_loses_the_rest() {
    let fades = with_recall(&[(1, 0.9), (64, 0.0)]);
    let (turns, answer) = played(Profile::Forgetful, fades.clone());
    let (selective, whole) = played(Profile::Selective, spec());
    let calls: Vec<&String> = turns.iter().flatten().collect();
    let times = |call: &String| calls.iter().filter(|other| **other == call).count();
    let most = calls.iter().map(|call| times(call)).max();
    assert_eq!(most, Some(2), "{calls:?}");
    assert!(turns.len() > selective.len());
    let findings = |answer: &str| -> Vec<String> {
        let lines = answer.lines().filter(|line| line.starts_with("- "));
        lines.map(str::to_owned).collect()
    };
    let (kept, all) = (findings(&answer), findings(&whole));
    assert!(kept.len() < all.len(), "{answer}");
    assert!(kept.iter().all(|line| all.contains(line)), "{answer}");
    assert_eq!(played(Profile::Forgetful, fades), (turns, answer));
}

#[test]
fn a_loopy_model_repeats_its_last_calls_and_never_answers() {
    let run = mock_run(review(), Profile::Loopy, spec());
    let mut agent = Agent::new(&run, usize::MAX);
    let mut asked: Vec<Vec<String>> = Vec::new();
    for _ in 0..30 {
        let view = View::parse(agent.body().as_bytes()).expect("a request");
        let Action::Call(calls) = respond(&view, &run) else {
            panic!("an answer after {} turns", asked.len());
        };
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        assert!(asked.iter().flatten().all(|known| !ids.contains(known)));
        asked.push(ids);
        agent.take(&calls);
    }
    // Without a call to repeat there is nothing but an answer.
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Go."}]}"#;
    let view = View::parse(body.as_bytes()).expect("a request");
    assert!(matches!(respond(&view, &run), Action::Answer(_)));
}
