//! The three policies in the loop: what they change in the requests, what they must not, and how
//! their results are read back.

use serde_json::{Map, Value, json};
use spill_agent::{AbortSignal, EndReason, SpillSettings, StepJob, ToolAnswer, run_step};
use spill_engine::{Block, READ_TOOL, ToolResult};

use crate::ports::{
    FnTools, ScriptedModel, TOOLS, Turn, answer, calls, envelope, inline_cap, job, on_first,
    printed, reference_in, result_text, run, settings, text_of, threshold,
};

const OFF: (&str, &str) = ("CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED", "false");

/// Iterations with results of these sizes, the first one read back between them.
fn script(sizes: &[usize], read: fn() -> Turn) -> ScriptedModel {
    let mut turns = Vec::new();
    for size in sizes {
        turns.push(calls(&[
            ("text", &format!("{{\"size\":{size}}}")),
            ("fail", "{}"),
        ]));
    }
    turns.push(read());
    turns.push(answer("done"));
    ScriptedModel::new(turns)
}

fn by_bytes() -> Turn {
    on_first("read", |path| json!({"path": path, "limit": 100}))
}

fn by_resource() -> Turn {
    on_first(
        "resources_read",
        |uri| json!({"uri": uri, "range": {"offset": 0, "length": 100}}),
    )
}

fn by_reference() -> Turn {
    on_first(
        READ_TOOL,
        |reference| json!({"spillover_ref": reference, "range": {"length": 100}}),
    )
}

/// The messages and the tools of a request, without what closes the list of messages.
fn parts(body: &[u8]) -> (&[u8], &[u8]) {
    let end = b"],\"tools\":[";
    let at = body
        .windows(end.len())
        .rposition(|window| window == end)
        .expect("a request offers tools");
    body.split_at(at)
}

/// The law that a provider's prompt cache needs: messages only grow at their end, and the list of
/// tools changes once at most, by what joins it at its end.
async fn check_law(settings: SpillSettings, read: fn() -> Turn, joined: &[&str]) {
    let model = script(&[9_000, 20, 5_000], read);
    let result = run(settings, &model).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        let ((earlier, _), (later, _)) = (parts(&pair[0]), parts(&pair[1]));
        assert!(later.starts_with(earlier));
        assert_eq!(later[earlier.len()], b',');
    }
    let tools: Vec<&[u8]> = requests.iter().map(|body| parts(body).1).collect();
    let changes = tools.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, usize::from(!joined.is_empty()));
    let own = ["text", "fail", "hang", "lost"];
    assert_eq!(model.offered(0), own, "before anything is stored");
    for index in 1..5 {
        assert_eq!(model.offered(index), [&own[..], joined].concat());
    }
}

/// Known fault 61: anthropics/claude-code #91514 and #83913.
#[tokio::test(start_paused = true)]
async fn messages_are_a_byte_prefix_of_the_next_requests_under_every_policy() {
    check_law(threshold(4096).into(), by_reference, &[READ_TOOL]).await;
    check_law(inline_cap(&[]), by_bytes, &["read", "grep"]).await;
    check_law(envelope(&[]), by_resource, &["resources_read"]).await;
    check_law(inline_cap(&[OFF]), || calls(&[("fail", "{}")]), &[]).await;
}

/// Off is off, whatever else is set.
#[tokio::test(start_paused = true)]
async fn a_policy_that_is_off_leaves_every_request_as_it_is_without_one() {
    let off = crate::ports::off();
    let plain = script(&[9_000, 300_000], || answer("early"));
    let baseline = printed(&run(off, &plain).await);
    for (name, settings) in [
        (
            "inline-cap",
            inline_cap(&[OFF, ("SPILLGATE_TURN_BYTES", "1")]),
        ),
        (
            "envelope",
            envelope(&[OFF, ("SPILLGATE_EXPAND_TOOLS", "text")]),
        ),
        ("no cap", settings(&[("SPILLGATE_POLICY", "inline-cap")])),
    ] {
        let model = script(&[9_000, 300_000], || answer("early"));
        let mut result = printed(&run(settings, &model).await);
        assert!(model.requests() == plain.requests(), "{name}");
        result["settings"] = baseline["settings"].clone();
        assert_eq!(result, baseline, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_calls_leave_record_and_report_as_they_are_without_spilling() {
    let calls_only = || answer("done");
    let model = script(&[9_000, 20], calls_only);
    let off = run(crate::ports::off(), &model).await;
    for settings in [inline_cap(&[]), envelope(&[])] {
        let result = run(settings, &script(&[9_000, 20], calls_only)).await;
        assert_eq!(result.spill.persisted, 1);
        assert_eq!(
            printed(&result)["toolsCalled"],
            printed(&off)["toolsCalled"]
        );
        assert_eq!(result.body_bytes, off.body_bytes);
    }
}

#[tokio::test(start_paused = true)]
async fn replacements_stay_within_the_limit_and_name_what_can_be_read() {
    for (settings, read) in [
        (inline_cap(&[]), by_bytes as fn() -> Turn),
        (envelope(&[]), by_resource),
    ] {
        let model = script(&[9_000], read);
        let result = run(settings, &model).await;
        let bodies = model.bodies();
        let replacement = result_text(&bodies[1], 3);
        assert!(replacement.len() <= 4_096, "{}", replacement.len());
        let reference = reference_in(&replacement);
        let entry = printed(&result)["toolsCalled"][2].clone();
        assert_eq!(entry["spilloverRef"], json!(reference));
        assert_eq!(entry["bytes"], json!(100));
        assert_eq!(
            json!([
                result.spill.persisted,
                result.spill.persisted_by_tool,
                result.spill.persisted_bytes,
                result.spill.store_peak_bytes,
                result.spill.reads,
                result.spill.reads_with_range,
                result.spill.read_bytes,
                result.spill.distinct_read,
            ]),
            json!([1, {"text": 1}, 9_000, 9_000, 1, 1, 100, 1])
        );
    }
}

/// What the model is told for the last of `turns`; the first result has `size` bytes.
async fn told(settings: SpillSettings, size: usize, turns: Vec<Turn>) -> (String, Value) {
    let first = calls(&[("text", &format!("{{\"size\":{size}}}"))]);
    let model = ScriptedModel::new(std::iter::once(first).chain(turns).chain([answer("done")]));
    let result = run(settings, &model).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    (model.last_content(), printed(&result))
}

fn inside(content: &str) -> (Value, String) {
    let text = spill_agent::undo_delimited(content).expect("a delimited result");
    let (header, body) = text.split_once('\n').expect("a header line");
    let header = serde_json::from_str(header).expect("the first line is JSON");
    (header, body.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_read_answers_a_header_and_the_raw_slice() {
    let turn = on_first(
        "read",
        |path| json!({"path": path, "offset": 6_000, "limit": 50}),
    );
    let (content, _) = told(inline_cap(&[]), 9_000, vec![turn]).await;
    let (header, body) = inside(&content);
    assert_eq!(body, text_of(9_000)[6_000..6_050]);
    let keys: Vec<&String> = header.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "spillover_ref",
            "offset",
            "length",
            "next_offset",
            "size_bytes"
        ]
    );
    assert_eq!(
        (&header["offset"], &header["length"], &header["next_offset"]),
        (&json!(6_000), &json!(50), &json!(6_050))
    );
    assert_eq!(header["size_bytes"], json!(9_000));
}

/// Goes on at `next_offset` until there is none, and joins the pages.
#[tokio::test(start_paused = true)]
async fn pages_without_a_limit_join_to_the_whole_and_none_is_above_the_cap() {
    let go_on = || {
        Turn::See(Box::new(|body| {
            let messages = body["messages"].as_array().expect("messages");
            let last = messages.last().expect("one")["content"].as_str();
            let (header, _) = inside(last.expect("a text"));
            let offset = &header["next_offset"];
            let arguments = json!({"path": header["spillover_ref"], "offset": offset});
            calls(&[("read", &arguments.to_string())])
        }))
    };
    let first = on_first("read", |path| json!({"path": path}));
    let mut turns = vec![calls(&[("text", r#"{"size":9000}"#)]), first];
    turns.extend([go_on(), go_on(), answer("done")]);
    let model = ScriptedModel::new(turns);
    let result = run(inline_cap(&[]), &model).await;
    let bodies = model.bodies();
    let body = bodies.last().expect("a request");
    let pages: Vec<String> = [5, 7, 9].map(|index| result_text(body, index)).into();
    assert!(pages.iter().all(|page| page.len() <= 4_096));
    let joined: String = pages
        .iter()
        .map(|page| page.split_once('\n').expect("a header line").1)
        .collect();
    assert_eq!(joined, text_of(9_000));
    assert!(pages[2].contains("\"next_offset\":null"), "the end");
    assert_eq!(result.spill.read_bytes, 9_000);
    assert_eq!(result.spill.reread_bytes, 0);
    assert_eq!(result.spill.reads_with_range, 2, "the first had no range");
}

#[tokio::test(start_paused = true)]
async fn a_search_shows_places_that_can_be_read() {
    let turn = on_first(
        "grep",
        |path| json!({"path": path, "pattern": "secret-\\d+", "ignore_case": true, "context": 4}),
    );
    let (content, result) = told(inline_cap(&[]), 9_000, vec![turn]).await;
    let (header, body) = inside(&content);
    assert_eq!(header["matches"], json!(1));
    assert_eq!(header["next_offset"], Value::Null);
    assert_eq!(body, "@0 line 1: SECRET-9000 \"qu\n");
    assert_eq!(result["spill"]["readBytes"], json!(15));
    assert_eq!(result["spill"]["readsWithRange"], json!(1));
    let sensitive = on_first("grep", |path| json!({"path": path, "pattern": "secret"}));
    let (content, result) = told(inline_cap(&[]), 9_000, vec![sensitive]).await;
    assert_eq!(inside(&content).0["matches"], json!(0));
    assert_eq!(result["spill"]["distinctRead"], json!(1));
}

#[tokio::test(start_paused = true)]
async fn a_long_search_goes_on_at_its_next_offset() {
    let turn = on_first("grep", |path| json!({"path": path, "pattern": "line"}));
    let (content, _) = told(inline_cap(&[]), 90_000, vec![turn]).await;
    assert!(content.len() <= 4_096 + "<tool-result>\n\n</tool-result>".len());
    let (header, body) = inside(&content);
    let next = header["next_offset"].as_u64().expect("there is more");
    let (before, _) = body
        .trim_end()
        .rsplit_once('\n')
        .map(|(_, last)| last.split_once(' ').expect("a place"))
        .expect("many places");
    let last: u64 = before[1..].parse().expect("an offset");
    assert!(next > last, "{next} {last}");
}

#[tokio::test(start_paused = true)]
async fn a_resource_answers_in_the_shape_of_the_protocol() {
    let (content, _) = told(envelope(&[]), 9_000, vec![by_resource()]).await;
    let text = spill_agent::undo_delimited(&content)
        .expect("delimited")
        .into_owned();
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let one = answer["contents"][0].as_object().expect("one content");
    let keys: Vec<&String> = one.keys().collect();
    assert_eq!(
        keys,
        [
            "uri",
            "mimeType",
            "text",
            "offset",
            "length",
            "next_offset",
            "size_bytes"
        ]
    );
    assert_eq!(one["text"], json!(text_of(9_000)[..100]));
    assert_eq!(one["next_offset"], json!(100));
    let whole = on_first("resources_read", |uri| json!({"uri": uri}));
    let (content, result) = told(envelope(&[]), 9_000, vec![whole]).await;
    assert!(content.len() <= 4_096 + "<tool-result>\n\n</tool-result>".len());
    assert!(content.contains("\"next_offset\":"), "a part says so");
    assert_eq!(result["spill"]["readsWithRange"], json!(0));
    let query = on_first(
        "resources_read",
        |uri| json!({"uri": format!("{uri}?offset=8990")}),
    );
    let (content, _) = told(envelope(&[]), 9_000, vec![query]).await;
    assert!(content.contains("\"offset\":8990,\"length\":10,\"next_offset\":null"));
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_fits_says_nothing_of_parts() {
    let prefix = r#"{"maxPayloadBytes":4096,"resourceUriPrefix":"x:"}"#;
    let settings = envelope(&[("SPILLGATE_POLICY_OPTIONS", prefix)]);
    let tail = on_first(
        "resources_read",
        |uri| json!({"uri": uri, "range": {"offset": 8_000}}),
    );
    let (content, _) = told(settings, 9_000, vec![tail]).await;
    assert!(content.contains("\"next_offset\":null,\"size_bytes\":9000"));
    // A limit of its own for the envelope leaves room for answers that are longer than results.
    let low = envelope(&[("SPILLGATE_POLICY_OPTIONS", r#"{"maxPayloadBytes":600}"#)]);
    let whole = on_first("resources_read", |uri| json!({"uri": uri}));
    let (content, _) = told(low, 650, vec![whole]).await;
    assert!(content.ends_with("\"}]}\n</tool-result>"), "{content}");
    assert!(!content.contains("next_offset"));
}

/// The call is refused with a text that contains `why`, recorded like any failed call, and the
/// step goes on.
async fn check_refused(
    settings: SpillSettings,
    tool: &'static str,
    arguments: fn(&str) -> Value,
    why: &str,
) {
    let (content, result) = told(settings, 9_000, vec![on_first(tool, arguments)]).await;
    assert!(
        content.starts_with("<tool-result error=\"true\">"),
        "{content}"
    );
    assert!(content.contains(why), "{why}: {content}");
    assert_eq!(result["toolsCalled"][1]["isError"], json!(true));
    assert_eq!(result["spill"]["reads"], json!(0));
}

#[tokio::test(start_paused = true)]
async fn refused_reads_are_ordinary_errors() {
    let refused = |tool, arguments, why| check_refused(inline_cap(&[]), tool, arguments, why);
    refused("read", |_| json!({}), "argument \"path\" is not understood").await;
    refused("read", |_| json!({"path": "/etc/passwd"}), "not found").await;
    refused("read", |p| json!({"path": format!("{p}x")}), "not found").await;
    refused(
        "read",
        |p| json!({"path": p, "limit": 0}),
        "asks for nothing",
    )
    .await;
    refused(
        "read",
        |p| json!({"path": p, "offset": 9_001}),
        "has 9000 bytes",
    )
    .await;
    refused(
        "read",
        |p| json!({"path": p, "offset": "1"}),
        "a whole number",
    )
    .await;
    refused("read", |p| json!({"path": p, "lines": 1}), "\"lines\"").await;
    refused("grep", |p| json!({"path": p}), "argument \"pattern\"").await;
    refused(
        "grep",
        |p| json!({"path": p, "pattern": "("}),
        "not accepted",
    )
    .await;
    refused(
        "grep",
        |p| json!({"path": p, "pattern": ""}),
        "asks for nothing",
    )
    .await;
    refused(
        "grep",
        |p| json!({"path": p, "pattern": "a", "ignore_case": 1}),
        "true or false",
    )
    .await;
    refused(
        "grep",
        |_| json!({"path": "x", "pattern": "a"}),
        "not found",
    )
    .await;
    let tool = "resources_read";
    let refused = |arguments, why| check_refused(envelope(&[]), tool, arguments, why);
    refused(|_| json!({"uri": "file:///etc/passwd"}), "not found").await;
    refused(
        |uri| json!({"uri": uri, "range": 7}),
        "an object is expected",
    )
    .await;
    refused(
        |uri| json!({"uri": uri, "range": {"length": 0}}),
        "asks for nothing",
    )
    .await;
    refused(
        |uri| json!({"uri": uri, "range": {"offset": 9_001}}),
        "has 9000 bytes",
    )
    .await;
    refused(|uri| json!({"uri": uri, "range": {"from": 1}}), "\"from\"").await;
    refused(
        |uri| json!({"uri": format!("{uri}?page=2")}),
        "offset or length",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn read_tools_are_not_called_before_anything_is_stored() {
    let model = ScriptedModel::new([calls(&[("read", r#"{"path":"x"}"#)]), answer("done")]);
    run(inline_cap(&[]), &model).await;
    assert!(
        model
            .last_content()
            .contains("there is no tool \"read\" (call one of: text, fail, hang, lost)")
    );
}

#[tokio::test(start_paused = true)]
async fn allow_list_and_exclude_list_hold_for_read_tools() {
    let offered = async |job: StepJob| {
        let model = script(&[9_000], || answer("early"));
        let never = AbortSignal::never();
        run_step(&job, inline_cap(&[]), &model, &TOOLS, &never).await;
        model.offered(1)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let allowed = StepJob {
        allowed_tools: Some(names(&["text", "fail"])),
        ..job()
    };
    assert_eq!(offered(allowed).await, ["text", "fail", "read", "grep"]);
    let excluded = StepJob {
        excluded_tools: names(&["grep", "lost"]),
        ..job()
    };
    assert_eq!(offered(excluded).await, ["text", "fail", "hang", "read"]);
}

fn files(name: &str, arguments: &Map<String, Value>) -> ToolAnswer {
    match name {
        "image" => ToolResult {
            blocks: vec![
                Block::Text(text_of(9_000)),
                Block::Other(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"})),
                Block::Text("end".to_owned()),
            ],
            ..ToolResult::default()
        }
        .into(),
        "rows" => ToolResult {
            structured: Some(
                (0..600)
                    .map(|id| json!({"id": id, "status": "open"}))
                    .collect(),
            ),
            ..ToolResult::default()
        }
        .into(),
        "error" => ToolResult::error(text_of(9_000)).into(),
        // Whatever is opened is large.
        _ => ToolResult::text(format!("{:?}\n{}", arguments.get("path"), text_of(9_000))).into(),
    }
}

async fn run_files(
    settings: SpillSettings,
    names: &'static [&'static str],
    turns: Vec<Turn>,
) -> (ScriptedModel, Value) {
    let tools = FnTools {
        names,
        answer: files,
    };
    let model = ScriptedModel::new(turns);
    let result = run_step(&job(), settings, &model, &tools, &AbortSignal::never()).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    (model, printed(&result))
}

/// A server's tool wins its name; the read tools take another, and the notice names that.
#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_changes_the_read_tool_and_the_notice() {
    let turns = vec![
        calls(&[("open", "{}")]),
        on_first("spill_read", |path| json!({"path": path, "limit": 5})),
        answer("done"),
    ];
    let (model, result) = run_files(inline_cap(&[]), &["open", "read"], turns).await;
    assert_eq!(model.offered(0), ["open", "read"]);
    assert_eq!(model.offered(1), ["open", "read", "spill_read", "grep"]);
    let notice = result_text(&model.bodies()[1], 3);
    assert!(
        notice
            .ends_with("Use spill_read with offset/limit, or grep this path to search within it.)"),
        "{notice}"
    );
    assert_eq!(result["toolsCalled"][1]["name"], json!("spill_read"));
    assert_eq!(result["spill"]["reads"], json!(1));
    let own = r#"{"maxInlineBytes":4096,"retrievalHint":"Ask for it."}"#;
    let own = inline_cap(&[("SPILLGATE_POLICY_OPTIONS", own)]);
    let turns = vec![calls(&[("open", "{}")]), answer("done")];
    let (model, _) = run_files(own, &["open", "read"], turns).await;
    assert!(result_text(&model.bodies()[1], 3).ends_with("Ask for it.)"));
}

/// A result that shows a stored one again must not be stored again, whatever the tool is called.
#[tokio::test(start_paused = true)]
async fn a_servers_tool_that_opens_a_stored_result_does_not_spill_again() {
    for settings in [inline_cap(&[]), envelope(&[])] {
        let turns = vec![
            calls(&[("open", "{}")]),
            on_first("open", |path| json!({"path": path})),
            on_first("open", |path| json!({"path": format!("not {path}")})),
            answer("done"),
        ];
        let (model, result) = run_files(settings, &["open"], turns).await;
        let body = &model.bodies()[3];
        assert!(result_text(body, 5).len() > 9_000, "the stored one, whole");
        assert!(result_text(body, 7).len() <= 4_096, "another text");
        assert_eq!(result["spill"]["persisted"], json!(2));
    }
}

#[tokio::test(start_paused = true)]
async fn results_that_are_not_text_alone() {
    let all = || {
        vec![
            calls(&[("image", "{}"), ("rows", "{}"), ("error", "{}")]),
            answer("done"),
        ]
    };
    let names = &["image", "rows", "error"];
    let (model, result) = run_files(inline_cap(&[]), names, all()).await;
    let body = &model.bodies()[1];
    assert!(result_text(body, 3).contains("\"image\"") && result_text(body, 3).len() > 9_000);
    assert!(
        result_text(body, 4).len() <= 4_096,
        "the JSON of the rows is a text"
    );
    assert_eq!(result["spill"]["persisted"], json!(2));
    let bounded = r#"{"maxInlineBytes":4096,"mixedContent":"bound-text"}"#;
    let bounded = inline_cap(&[("SPILLGATE_POLICY_OPTIONS", bounded)]);
    let (model, result) = run_files(bounded, names, all()).await;
    let mixed = result_text(&model.bodies()[1], 3);
    assert!(
        mixed.contains("\"image/png\"") && mixed.len() < 6_000,
        "{mixed}"
    );
    assert_eq!(result["spill"]["persisted"], json!(3));
    let (model, result) = run_files(envelope(&[]), names, all()).await;
    let body = &model.bodies()[1];
    let rows: Value = serde_json::from_str(&result_text(body, 4)).expect("an envelope");
    assert_eq!(rows["totalItems"], json!(600));
    assert_eq!(result["spill"]["persisted"], json!(3));
    let error = body["messages"][5]["content"].as_str().expect("a text");
    assert!(error.starts_with("<tool-result error=\"true\">\n{\"_spillover\":true"));
    assert_eq!(result["toolsCalled"][2]["isError"], json!(true));
    assert_eq!(result["toolsCalled"][2]["result"], json!(text_of(9_000)));
}

/// The budget refuses, and says so once; what fits later is stored.
#[tokio::test(start_paused = true)]
async fn a_full_store_leaves_results_inline() {
    let budget = ("CLERUM_WORKFLOW_TOOL_SPILLOVER_BUDGET_BYTES", "1048576");
    let model = ScriptedModel::new([
        calls(&[
            ("text", r#"{"size":900000}"#),
            ("text", r#"{"size":200000}"#),
            ("text", r#"{"size":200001}"#),
            ("text", r#"{"size":50000}"#),
        ]),
        answer("done"),
    ]);
    let settings = inline_cap(&[budget]);
    let (result, lines) =
        crate::capture::captured(spill_agent::is_own_log, run(settings, &model)).await;
    assert_eq!((result.spill.persisted, result.spill.over_budget), (2, 2));
    let size = |index| result_text(&model.bodies()[1], index).len();
    assert_eq!([size(4), size(5)], [200_000, 200_001]);
    assert!(size(3) <= 4_096 && size(6) <= 4_096);
    assert_eq!(lines.matches("WARN").count(), 1, "{lines}");
    assert!(lines.contains("no room for the result of text"), "{lines}");
    assert_eq!(
        printed(&result)["settings"]["budget_bytes"],
        json!(1_048_576)
    );
}

/// Sessions of one step, at the same time, with the same seed: equal names, and still apart.
#[tokio::test(start_paused = true)]
async fn two_sessions_do_not_see_each_other() {
    let first = script(&[9_000], by_bytes);
    let locator = {
        run(inline_cap(&[]), &first).await;
        reference_in(&result_text(&first.bodies()[1], 3))
    };
    let arguments = json!({"path": locator, "limit": 4}).to_string();
    let other = ScriptedModel::new([
        calls(&[("text", r#"{"size":9001}"#)]),
        calls(&[("read", &arguments)]),
        answer("done"),
    ]);
    let unseeded = settings(&[
        ("SPILLGATE_POLICY", "inline-cap"),
        ("SPILLGATE_POLICY_OPTIONS", r#"{"maxInlineBytes":4096}"#),
    ]);
    let again = script(&[9_000], by_bytes);
    let (_, result) = futures::join!(run(inline_cap(&[]), &again), run(unseeded, &other));
    assert_eq!(result.spill.reads, 0);
    assert!(other.last_content().contains("not found"));
    assert!(
        first.requests() == again.requests(),
        "equal seeds, equal prompts"
    );
}
