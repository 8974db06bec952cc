//! What spilling changes in the requests, and what it must not change.

use spill_engine::{Budget, Settings};

use crate::ports::{ScriptedModel, answer, calls, off, printed, run, threshold};

/// A script of three iterations with results of these sizes.
fn script(sizes: [usize; 3]) -> ScriptedModel {
    let call = |size: usize| calls(&[("text", &format!("{{\"size\":{size}}}")), ("fail", "{}")]);
    let mut turns: Vec<_> = sizes.map(call).into();
    turns.push(answer("done"));
    ScriptedModel::new(turns)
}

/// The bytes of the messages, without the list's closing bracket.
fn messages(body: &[u8]) -> &[u8] {
    let end = b"],\"tools\":[";
    let at = body
        .windows(end.len())
        .rposition(|window| window == end)
        .expect("a request offers tools");
    &body[..at]
}

async fn check_prefixes(settings: Settings) {
    let model = script([20, 5_000, 9_000]);
    run(settings, &model).await;
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    for pair in requests.windows(2) {
        let (earlier, later) = (messages(&pair[0]), messages(&pair[1]));
        assert!(later.starts_with(earlier));
        assert_eq!(later[earlier.len()], b',');
    }
}

/// Known fault 61: anthropics/claude-code #91514 and #83913.
#[tokio::test(start_paused = true)]
async fn messages_are_a_byte_prefix_of_the_next_requests() {
    check_prefixes(threshold(4096)).await;
    check_prefixes(off()).await;
}

#[tokio::test(start_paused = true)]
async fn small_results_leave_every_request_as_it_is_without_spilling() {
    let (on, without) = (script([20, 3_000, 3_900]), script([20, 3_000, 3_900]));
    let (on_result, off_result) = (run(threshold(4096), &on).await, run(off(), &without).await);
    assert_eq!(on.bodies(), without.bodies());
    assert!(on.requests() == without.requests(), "also byte for byte");
    let comparable = |result| {
        let mut value = printed(result);
        value["settings"].take();
        value
    };
    assert_eq!(comparable(&on_result), comparable(&off_result));
}

#[tokio::test(start_paused = true)]
async fn equal_calls_leave_record_and_report_as_they_are_without_spilling() {
    let (on, without) = (script([20, 5_000, 400_000]), script([20, 5_000, 400_000]));
    let (on_result, off_result) = (run(threshold(4096), &on).await, run(off(), &without).await);
    assert_eq!(
        (on_result.spill.persisted, off_result.spill.persisted),
        (2, 0)
    );
    let record = |result| printed(result)["toolsCalled"].to_string();
    assert_eq!(record(&on_result), record(&off_result));
    assert_eq!(on_result.body_bytes, off_result.body_bytes);
    let report = format!(
        r#"{{"toolsCalled":{},"finalAnswer":"done"}}"#,
        record(&on_result)
    );
    assert_eq!(on_result.body_bytes, report.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn over_budget_results_stay_inline_and_a_later_one_that_fits_is_stored() {
    let settings = Settings {
        budget: Budget::new(1_048_576).expect("within the bounds"),
        ..threshold(4096)
    };
    let model = script([900_000, 200_000, 50_000]);
    let result = run(settings, &model).await;
    assert_eq!((result.spill.persisted, result.spill.over_budget), (2, 1));
    let body = &model.bodies()[3];
    let size = |index: usize| body["messages"][index]["content"].as_str().map(str::len);
    assert!(size(3).is_some_and(|bytes| bytes < 5_000));
    assert!(size(6).is_some_and(|bytes| bytes > 200_000));
    assert!(size(9).is_some_and(|bytes| bytes < 5_000));
}
