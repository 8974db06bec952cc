//! Steps that end with an answer, and what their result says.

use spill_agent::{ModelReply, StepStatus};
use spill_engine::{READ_TOOL, Settings};

use crate::ports::{ScriptedModel, Turn, answer, calls, printed, read, run, threshold};

#[tokio::test(start_paused = true)]
async fn the_printed_result_has_its_published_names() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#), ("text", r#"{"size":20}"#)]),
        read(1, 0, 10),
        answer("done"),
    ]);
    let mut result = printed(&run(threshold(4096), &model).await);
    let original = &mut result["toolsCalled"][0]["result"];
    assert_eq!(original.as_str().map(str::len), Some(5000));
    *original = "[5000 bytes]".into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&result).expect("JSON"));
}

#[tokio::test(start_paused = true)]
async fn the_requests_have_their_wire_order() {
    let model = ScriptedModel::new([calls(&[("text", r#"{"size":20}"#)]), answer("done")]);
    run(Settings::DEFAULT, &model).await;
    let last = model.requests().pop().expect("two requests");
    insta::assert_snapshot!(String::from_utf8(last).expect("JSON is UTF-8"));
}

#[tokio::test(start_paused = true)]
async fn the_default_keeps_100_kib_and_stores_300_kib() {
    let model = ScriptedModel::new([
        calls(&[
            ("text", r#"{"size":102400}"#),
            ("text", r#"{"size":307200}"#),
        ]),
        answer("done"),
    ]);
    let result = run(Settings::DEFAULT, &model).await;
    assert_eq!(result.spill.persisted, 1);
    assert_eq!(result.spill.persisted_bytes, 307_200);
    let body = &model.bodies()[1];
    let content = |index: usize| body["messages"][index]["content"].as_str().map(str::len);
    assert!(content(3).is_some_and(|bytes| bytes > 102_400));
    assert!(content(4).is_some_and(|bytes| bytes < 5_000));
    assert!(model.last_content().contains("spillover://s1/i1c1.json"));
}

#[tokio::test(start_paused = true)]
async fn a_read_back_is_recorded_without_its_content() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#)]),
        read(1, 0, 10),
        read(1, 0, 4),
        answer("done"),
    ]);
    let result = run(threshold(4096), &model).await;
    let printed = printed(&result);
    assert_eq!(
        printed["toolsCalled"][1].to_string(),
        format!(r#"{{"name":"{READ_TOOL}","spilloverRef":"spillover://s1/i1c0.json","bytes":10}}"#)
    );
    let figures = &result.spill;
    assert_eq!((figures.reads, figures.reads_with_range), (2, 2));
    assert_eq!(
        (
            figures.read_bytes,
            figures.reread_bytes,
            figures.distinct_read
        ),
        (14, 4, 1)
    );
    assert!(model.last_content().ends_with("\nSECR\n</tool-result>"));
}

/// Known fault 70: NousResearch/hermes-agent #12023.
#[tokio::test(start_paused = true)]
async fn an_answer_without_usage_makes_the_sum_missing() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":20}"#)]),
        Turn::Reply(ModelReply {
            content: Some("done".to_owned()),
            ..ModelReply::default()
        }),
    ]);
    let result = run(Settings::DEFAULT, &model).await;
    assert_eq!(result.status, StepStatus::Completed);
    assert_eq!(result.tokens_used, None);
}
