//! Stored results are readable during the step and gone after it, however it ends. The witness
//! is the test's own handle on the store.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use spill_agent::{
    AbortHandle, AbortSignal, EndReason, ToolAnswer, ToolFailure, ToolPort, ToolSpec, abort_pair,
    run_step_in,
};
use spill_engine::{ReadError, StepSpill, ToolResult};

use crate::ports::{ScriptedModel, TOOLS, Turn, answer, calls, job, read, threshold};

fn store() -> Arc<StepSpill> {
    Arc::new(StepSpill::new(
        threshold(4096),
        job().step_id,
        StepSpill::unobserved(),
    ))
}

fn readable(store: &StepSpill) -> Result<u64, ReadError> {
    let arguments = json!({
        "spillover_ref": "spillover://s1/i1c0.json",
        "range": {"offset": 0, "length": 16},
    });
    store.read(&arguments).map(|answer| answer.bytes())
}

/// Tools whose second call looks at the store, then does `then`.
struct Witness {
    store: Arc<StepSpill>,
    then: Then,
    seen: std::sync::Mutex<Option<Result<u64, ReadError>>>,
}

enum Then {
    Return,
    Lose,
    Hang,
    Abort(AbortHandle),
}

impl ToolPort for Witness {
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolFailure> {
        TOOLS.list().await
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolFailure> {
        if name == "text" {
            return TOOLS.call(name, arguments).await;
        }
        *self.seen.lock().expect("no test panics in here") = Some(readable(&self.store));
        match &self.then {
            Then::Return => Ok(ToolResult::text("seen").into()),
            Then::Lose => Err(ToolFailure::Unreachable("cut".to_owned())),
            Then::Hang => std::future::pending().await,
            Then::Abort(handle) => {
                handle.abort("enough");
                std::future::pending().await
            }
        }
    }
}

fn two_iterations() -> ScriptedModel {
    ScriptedModel::new([
        calls(&[("text", r#"{"size":5000}"#)]),
        calls(&[("fail", "{}")]),
        answer("done"),
    ])
}

async fn check_released(then: Then, signal: AbortSignal, reason: EndReason) {
    let tools = Witness {
        store: store(),
        then,
        seen: std::sync::Mutex::default(),
    };
    let store = Arc::clone(&tools.store);
    let result = run_step_in(
        &job(),
        Arc::clone(&store),
        &two_iterations(),
        &tools,
        &signal,
    )
    .await;
    assert_eq!(result.end_reason, reason);
    assert_eq!(result.spill.persisted, 1);
    let seen = tools.seen.lock().expect("no test panics in here").take();
    assert_eq!(seen, Some(Ok(16)), "during the step");
    assert_eq!(readable(&store), Err(ReadError::NotFound), "after the step");
}

#[tokio::test(start_paused = true)]
async fn every_ending_releases_the_store() {
    let never = AbortSignal::never;
    check_released(Then::Return, never(), EndReason::Answered).await;
    check_released(Then::Lose, never(), EndReason::ToolError).await;
    check_released(Then::Hang, never(), EndReason::Timeout).await;
    let (handle, signal) = abort_pair();
    check_released(Then::Abort(handle), signal, EndReason::Aborted).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_step_releases_the_store() {
    let store = store();
    let model = ScriptedModel::new([calls(&[("text", r#"{"size":5000}"#)]), Turn::Hang]);
    let job = job();
    let never = AbortSignal::never();
    let mut step = Box::pin(run_step_in(
        &job,
        Arc::clone(&store),
        &model,
        &TOOLS,
        &never,
    ));
    while readable(&store).is_err() {
        assert!(futures::poll!(&mut step).is_pending(), "the model hangs");
        tokio::task::yield_now().await;
    }
    drop(step);
    assert_eq!(readable(&store), Err(ReadError::NotFound));
}

#[tokio::test(start_paused = true)]
async fn two_executions_of_one_step_do_not_see_each_other() {
    let (first, second) = (store(), store());
    let model = two_iterations();
    let other = ScriptedModel::new([read(1, 0, 4), answer("done")]);
    let job = job();
    let never = AbortSignal::never();
    let (_, result) = futures::join!(
        run_step_in(&job, first, &model, &TOOLS, &never),
        run_step_in(&job, second, &other, &TOOLS, &never),
    );
    assert_eq!(result.spill.reads, 0);
    assert!(
        other
            .last_content()
            .starts_with("<tool-result error=\"true\">")
    );
}
