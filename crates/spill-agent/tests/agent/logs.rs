//! What is logged, and that content never is.

use std::sync::{Arc, Mutex};

use spill_agent::{AbortSignal, is_own_log, run_job};
use spill_engine::{Budget, Settings};
use tracing::{Metadata, Subscriber, instrument::WithSubscriber as _};
use tracing_subscriber::{filter::filter_fn, fmt, layer::SubscriberExt as _};

use crate::{
    ports::{ScriptedModel, answer, calls, read, run, threshold},
    whole_job::servers,
};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("no test panics in here")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no test panics in here").clone()).expect("UTF-8")
    }
}

/// Everything at every level that passes `filter`, without times.
fn subscriber(
    lines: &Lines,
    filter: fn(&Metadata<'_>) -> bool,
) -> impl Subscriber + Send + Sync + use<> {
    let lines = lines.clone();
    let layer = fmt::layer()
        .with_ansi(false)
        .without_time()
        .with_writer(move || lines.clone());
    tracing_subscriber::registry()
        .with(filter_fn(filter))
        .with(layer)
}

#[tokio::test(start_paused = true)]
async fn a_step_logs_its_calls_and_decisions() {
    let lines = Lines::default();
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#), ("nope", "{")]),
        read(1, 0, 10),
        read(9, 0, 10),
        answer("done"),
    ]);
    run(threshold(4096), &model)
        .with_subscriber(subscriber(&lines, is_own_log))
        .await;
    insta::assert_snapshot!(lines.text());
}

#[tokio::test(start_paused = true)]
async fn the_iteration_limit_and_the_budget_are_logged_once() {
    let lines = Lines::default();
    let settings = Settings {
        budget: Budget::new(1_048_576).expect("within the bounds"),
        ..threshold(4096)
    };
    let model = ScriptedModel::new((0..5).map(|_| calls(&[("text", r#"{"size":600000}"#)])));
    let result = run(settings, &model)
        .with_subscriber(subscriber(&lines, is_own_log))
        .await;
    assert_eq!(result.spill.over_budget, 4);
    let text = lines.text();
    let count = |line: &str| text.matches(line).count();
    assert_eq!(
        count("Step reached max iterations iterations=5"),
        1,
        "{text}"
    );
    assert_eq!(
        count("WARN spill_agent::step: spill budget has no room"),
        1,
        "{text}"
    );
}

/// Marks of tool result, arguments and prompt.
const CONTENT: [&str; 4] = ["SECRET-", "one more line", "300000}", "do it"];

/// The client's own tasks run on this thread too, so their lines are captured with the step's.
async fn logged(filter: fn(&Metadata<'_>) -> bool) -> String {
    let lines = Lines::default();
    let servers = servers().await;
    let default = tracing::subscriber::set_default(subscriber(&lines, filter));
    run_job(&servers.job(), Settings::DEFAULT, &AbortSignal::never())
        .await
        .expect("a possible job");
    drop(default);
    lines.text()
}

#[tokio::test]
async fn no_line_at_any_level_holds_content() {
    let text = logged(is_own_log).await;
    assert!(text.contains("LLM call started iteration=2"), "{text}");
    for mark in CONTENT {
        assert!(!text.contains(mark), "{mark} is logged");
    }
}

/// Without the filter the MCP client's own lines would hold the results: the check above can fail.
#[tokio::test]
async fn without_the_filter_content_would_be_logged() {
    let text = logged(|_| true).await;
    assert!(text.contains("SECRET-"));
}
