//! What is logged, and that content never is.

use spill_agent::{AbortSignal, is_own_log, run_job};
use spill_engine::{Budget, Settings};
use tracing::Metadata;

use crate::{
    capture::captured,
    ports::{ScriptedModel, answer, calls, read, run, threshold},
    whole_job::servers,
};

#[tokio::test(start_paused = true)]
async fn a_step_logs_its_calls_and_decisions() {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#), ("nope", "{")]),
        read(1, 0, 10),
        read(9, 0, 10),
        answer("done"),
    ]);
    let (_, lines) = captured(is_own_log, run(threshold(4096), &model)).await;
    insta::assert_snapshot!(lines);
}

#[tokio::test(start_paused = true)]
async fn the_iteration_limit_and_the_budget_are_logged_once() {
    let settings = Settings {
        budget: Budget::new(1_048_576).expect("within the bounds"),
        ..threshold(4096)
    };
    let model = ScriptedModel::new((0..5).map(|_| calls(&[("text", r#"{"size":600000}"#)])));
    let (result, lines) = captured(is_own_log, run(settings, &model)).await;
    assert_eq!(result.spill.over_budget, 4);
    let count = |line: &str| lines.matches(line).count();
    assert_eq!(
        count("Step reached max iterations iterations=5"),
        1,
        "{lines}"
    );
    assert_eq!(
        count("WARN spill_agent::step: spill budget has no room"),
        1,
        "{lines}"
    );
}

/// Marks of tool result, arguments and prompt.
const CONTENT: [&str; 4] = ["SECRET-", "one more line", "300000}", "do it"];

async fn logged(filter: fn(&Metadata<'_>) -> bool) -> String {
    let servers = servers().await;
    let job = servers.job();
    let never = AbortSignal::never();
    let (result, lines) = captured(filter, run_job(&job, Settings::DEFAULT, &never)).await;
    result.expect("a possible job");
    lines
}

#[tokio::test]
async fn no_line_at_any_level_holds_content() {
    let lines = logged(is_own_log).await;
    assert!(lines.contains("LLM call started iteration=2"), "{lines}");
    for mark in CONTENT {
        assert!(!lines.contains(mark), "{mark} is logged");
    }
}

/// Without the filter the MCP client's own lines would hold the results: the check above can fail.
#[tokio::test]
async fn without_the_filter_content_would_be_logged() {
    let lines = logged(|_| true).await;
    assert!(lines.contains("SECRET-"));
}
