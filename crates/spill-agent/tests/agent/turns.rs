//! The bound on one turn's results together, and arguments that name stored data.

use serde_json::{Map, Value, json};
use spill_agent::{AbortSignal, EndReason, SpillSettings, ToolAnswer, run_step};
use spill_engine::ToolResult;

use crate::{
    capture::captured,
    ports::{
        FnTools, ScriptedModel, answer, calls, envelope, inline_cap, job, on_first, printed,
        result_text, run, settings, text_of,
    },
};

/// Three results, each small enough for every policy.
fn parallel() -> ScriptedModel {
    ScriptedModel::new([
        calls(&[
            ("text", r#"{"size":100000}"#),
            ("text", r#"{"size":120000}"#),
            ("text", r#"{"size":3000}"#),
            ("text", r#"{"size":120000}"#),
        ]),
        answer("done"),
    ])
}

const WIDE: (&str, &str) = ("SPILLGATE_POLICY_OPTIONS", r#"{"maxInlineBytes":131072}"#);
const WIDE_ENVELOPE: (&str, &str) = ("SPILLGATE_POLICY_OPTIONS", r#"{"maxPayloadBytes":131072}"#);

/// The results that left the prompt when one turn may have `bound` bytes.
async fn replaced(settings: SpillSettings) -> Vec<usize> {
    let model = parallel();
    let result = run(settings, &model).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    let sizes = [100_000, 120_000, 3_000, 120_000];
    let body = &model.bodies()[1];
    let replaced: Vec<usize> = (0..4)
        .filter(|index| result_text(body, index + 3) != text_of(sizes[*index]))
        .collect();
    assert_eq!(result.spill.persisted, replaced.len() as u64);
    for (index, size) in sizes.into_iter().enumerate() {
        let entry = &printed(&result)["toolsCalled"][index];
        assert_eq!(entry["result"], json!(text_of(size)), "the record");
    }
    replaced
}

async fn check_replaced(bound: &str, expected: &[usize]) {
    let bound = ("SPILLGATE_TURN_BYTES", bound);
    for (name, settings) in [
        ("workflow-step", settings(&[bound])),
        ("inline-cap", inline_cap(&[WIDE, bound])),
        ("envelope", envelope(&[WIDE_ENVELOPE, bound])),
    ] {
        assert_eq!(replaced(settings).await, expected, "{name} {bound:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fault_3_the_largest_results_of_a_turn_leave_first_of_equal_ones_the_first() {
    check_replaced("400000", &[]).await;
    check_replaced("343000", &[]).await;
    check_replaced("342999", &[1]).await;
    check_replaced("200000", &[1, 3]).await;
    check_replaced("20000", &[0, 1, 3]).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_a_turn_is_as_large_as_its_results() {
    assert_eq!(replaced(settings(&[])).await, Vec::<usize>::new());
    assert_eq!(replaced(inline_cap(&[WIDE])).await, Vec::<usize>::new());
}

#[tokio::test(start_paused = true)]
async fn a_bound_that_cannot_be_kept_is_logged_and_ends_nothing() {
    let settings = settings(&[("SPILLGATE_TURN_BYTES", "100")]);
    let (left, lines) = captured(spill_agent::is_own_log, replaced(settings)).await;
    assert_eq!(left, [0, 1, 3], "the fourth is too small to gain by it");
    assert!(
        lines.contains("a turn's results are larger than its bound"),
        "{lines}"
    );
}

/// What the turn's bound has stored is read like any other result.
#[tokio::test(start_paused = true)]
async fn what_a_turns_bound_has_stored_can_be_read() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":3000}"#), ("text", r#"{"size":2000}"#)]),
        on_first("read", |path| json!({"path": path, "offset": 2_000})),
        answer("done"),
    ]);
    let settings = inline_cap(&[("SPILLGATE_TURN_BYTES", "4000")]);
    let result = run(settings, &model).await;
    assert_eq!(result.spill.read_bytes, 1_000);
    assert_eq!(result.spill.persisted_by_tool["text"], 1);
    let read = result_text(&model.bodies()[2], 6);
    assert!(read.ends_with(&text_of(3_000)[2_000..]));
}

fn echo(name: &str, arguments: &Map<String, Value>) -> ToolAnswer {
    match name {
        "make" => {
            ToolResult::text(json!({"rows": [{"id": 7, "text": text_of(9_000)}]}).to_string())
        }
        _ => ToolResult::text(Value::Object(arguments.clone()).to_string()),
    }
    .into()
}

const ECHO: FnTools = FnTools {
    names: &["make", "echo", "other"],
    answer: echo,
};

/// What `tool` got for arguments that name the first stored result, and the whole step.
async fn passed(
    settings: SpillSettings,
    tool: &'static str,
    arguments: fn(&str) -> Value,
) -> (String, Value) {
    let model = ScriptedModel::new([
        calls(&[("make", "{}")]),
        on_first(tool, arguments),
        answer("done"),
    ]);
    let result = run_step(&job(), settings, &model, &ECHO, &AbortSignal::never()).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    (model.last_content(), printed(&result))
}

const EXPAND: (&str, &str) = ("SPILLGATE_EXPAND_TOOLS", "echo");
const LOW: (&str, &str) = ("CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD", "4096");

fn all_policies(more: &[(&'static str, &'static str)]) -> [SpillSettings; 3] {
    [
        settings(&[&[LOW], more].concat()),
        inline_cap(more),
        envelope(more),
    ]
}

#[tokio::test(start_paused = true)]
async fn stored_data_flows_to_a_tool_without_the_prompt() {
    for settings in all_policies(&[EXPAND]) {
        let (content, result) = passed(
            settings,
            "echo",
            |reference| json!({"id": {"$spill": reference, "pointer": "/rows/0/id"}}),
        )
        .await;
        assert_eq!(content, "<tool-result>\n{\"id\":7}\n</tool-result>");
        let recorded = &result["toolsCalled"][1]["arguments"]["id"];
        assert!(recorded["$spill"].is_string(), "as the model wrote them");
        assert_eq!(result["spill"]["reads"], json!(0));
    }
    for settings in all_policies(&[EXPAND]) {
        let (_, result) = passed(
            settings,
            "echo",
            |reference| json!({"all": {"$spill": reference}}),
        )
        .await;
        let made = &result["toolsCalled"][0]["result"];
        let got: Value =
            serde_json::from_str(result["toolsCalled"][1]["result"].as_str().expect("a text"))
                .expect("JSON");
        assert_eq!(&got["all"], made);
        // Handed on, and large again: the second result leaves the prompt like the first.
        assert_eq!(result["spill"]["persisted"], json!(2));
    }
}

#[tokio::test(start_paused = true)]
async fn references_pass_untouched_unless_it_is_allowed() {
    let by_reference = |reference: &str| json!({"a": {"$spill": reference}});
    for settings in all_policies(&[]) {
        let (content, _) = passed(settings, "echo", by_reference).await;
        assert!(content.contains("{\"a\":{\"$spill\":\""), "{content}");
    }
    for settings in all_policies(&[EXPAND]) {
        let (content, result) = passed(settings, "other", by_reference).await;
        assert!(
            content
                .starts_with("<tool-result error=\"true\">\n$spill is not accepted by this tool")
        );
        assert!(content.contains("use one of: echo"), "{content}");
        assert_eq!(result["toolsCalled"][1]["isError"], json!(true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_names_nothing_is_an_ordinary_error() {
    for settings in all_policies(&[EXPAND]) {
        let (content, result) = passed(settings, "echo", |_| json!({"a": {"$spill": "x"}})).await;
        assert!(
            content.starts_with("<tool-result error=\"true\">\nnot found"),
            "{content}"
        );
        assert_eq!(result["toolsCalled"][1]["isError"], json!(true));
    }
    let whole = passed(
        inline_cap(&[EXPAND]),
        "echo",
        |reference| json!({"$spill": reference}),
    );
    assert!(whole.await.0.contains("cannot be a reference"));
}
