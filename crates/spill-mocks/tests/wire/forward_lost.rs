//! Requests that a real endpoint refuses, loses, or never sees.

use std::time::Duration;

use serde_json::json;
use spill_mocks::{BilledTokens, Lost, UpstreamError};
use tokio::net::TcpListener;

use crate::LOCAL;
use crate::forward::{
    CHAT, CHAT_STREAM, KEY, MESSAGES, MESSAGES_STREAM, Recorder, Script, Scripted, answer, body,
    buckets, cut, events, says, streams, through,
};

/// What the subject gets and what the journal says when an answer is lost.
async fn check_lost(
    path: &str,
    script: Script,
    (told, status, reason): (u16, u16, &str),
    lost: Option<Lost>,
    billed: Option<[u64; 4]>,
) {
    let (got, _, entry, last, _, recorder) = through(path, &body(path, true), script).await;
    assert_eq!(got, told, "{reason}");
    assert_eq!((entry.status, &*entry.finish_reason), (status, reason));
    assert_eq!(
        (entry.lost, buckets(&entry), last),
        (lost, billed, None),
        "{reason}"
    );
    let settled = recorder.told.settled.lock().expect("no panic").clone();
    assert_eq!(settled.len(), 1, "{reason}: paid for once");
    assert!(!settled[0].3, "{reason}");
    let is_free = settled[0].1.is_none() && settled[0].2 == BilledTokens::default();
    assert_eq!(
        is_free,
        status >= 300,
        "{reason}: a refusal costs nothing, a lost answer may"
    );
}

#[tokio::test]
async fn what_is_lost_at_the_endpoint_is_told_apart() {
    let gone = Some(Lost::Endpoint);
    let free = Some([0; 4]);
    let refused = |status: &str, body: &str| answer(status, "application/json", "", body);
    let too_long = r#"{"error":{"code":"context_length_exceeded","message":"maximum"}}"#;
    for (script, expected, lost) in [
        (
            refused("401 Unauthorized", "{}"),
            (401, 401, "invalid_api_key"),
            gone,
        ),
        (refused("403 Forbidden", ""), (403, 403, "forbidden"), gone),
        (
            refused("404 Not Found", "{}"),
            (404, 404, "not_found"),
            gone,
        ),
        (
            refused("429 Too Many", "{}"),
            (429, 429, "rate_limit_exceeded"),
            gone,
        ),
        (
            refused("500 Oh", "<html>"),
            (500, 500, "server_error"),
            gone,
        ),
        (refused("307 Elsewhere", ""), (307, 307, "http_307"), gone),
        (
            refused("400 Bad", "{}"),
            (400, 400, "invalid_request"),
            None,
        ),
        (
            refused("400 Bad", too_long),
            (400, 400, "context_length_exceeded"),
            None,
        ),
    ] {
        check_lost(CHAT, script, expected, lost, free).await;
    }
    let begun = events(&CHAT_STREAM[..2]);
    let kind = "text/event-stream";
    check_lost(
        CHAT,
        cut(kind, &begun),
        (200, 0, "connection_lost"),
        gone,
        None,
    )
    .await;
    check_lost(CHAT, streams(&begun), (200, 0, "cut_stream"), gone, None).await;
    check_lost(
        CHAT,
        Script::Silent,
        (504, 0, "endpoint_timeout"),
        gone,
        None,
    )
    .await;
    let script = Script::Says(String::new());
    check_lost(CHAT, script, (502, 0, "connection_lost"), gone, None).await;
    for garbage in [
        "",
        "<html>hello</html>",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"error":{"message":"no"}}"#,
    ] {
        let script = answer("200 OK", "text/html", "", garbage);
        check_lost(CHAT, script, (200, 0, "unreadable_answer"), gone, None).await;
    }
    let more_cached = r#"{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}}"#;
    check_lost(
        CHAT,
        refused("200 OK", more_cached),
        (200, 0, "unreadable_answer"),
        gone,
        None,
    )
    .await;
    let failed = streams(&events(&[r#"{"error":{"message":"overloaded"}}"#]));
    check_lost(CHAT, failed, (200, 0, "error_in_stream"), gone, None).await;
    // What was billed before the cut is not lost.
    let begun = cut(kind, &events(&MESSAGES_STREAM[..3]));
    check_lost(
        MESSAGES,
        begun,
        (200, 0, "connection_lost"),
        gone,
        Some([7, 11, 5, 1]),
    )
    .await;
}

#[tokio::test]
async fn a_refusal_goes_on_with_its_wait_and_without_the_key() {
    let quoting = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let more =
        "Retry-After: 2\r\nretry-after-ms: 1500\r\nX-Trace: t\r\nLocation: http://elsewhere\r\n";
    let script = answer("429 Too Many", "application/json", more, &quoting);
    let endpoint = Scripted::start(script).await;
    let recorder = Recorder::before("openai", endpoint.address, false).await;
    let (status, headers, text) = recorder.ask(CHAT, &body(CHAT, false)).await;
    assert_eq!(
        (status, &headers["retry-after"], &headers["retry-after-ms"]),
        (
            429,
            &"2".parse().expect("a value"),
            &"1500".parse().expect("a value")
        )
    );
    assert!(!headers.contains_key("x-trace") && !headers.contains_key("location"));
    assert_eq!(
        text.as_deref(),
        Some(r#"{"error":{"message":"Incorrect API key provided: [key]"}}"#)
    );
    assert!(!format!("{:?}{:?}", recorder.journal(), recorder.registry).contains(KEY));
}

#[tokio::test]
async fn nothing_is_sent_past_the_cap_or_in_another_api() {
    let endpoint = Scripted::start(says(&json!({}))).await;
    let recorder = Recorder::before("openai", endpoint.address, true).await;
    let (status, _, text) = recorder.ask(CHAT, &body(CHAT, false)).await;
    assert_eq!(status, 402);
    assert!(text.expect("a body").contains("spending_cap"));
    let journal = recorder.journal();
    assert_eq!(
        (journal.llm[0].lost, buckets(&journal.llm[0])),
        (Some(Lost::SpendingCap), Some([0; 4]))
    );
    let recorder = Recorder::before("openai", endpoint.address, false).await;
    let (status, ..) = recorder.ask(MESSAGES, &body(MESSAGES, false)).await;
    assert_eq!(status, 404);
    assert_eq!(recorder.journal().unscripted.len(), 1);
    let (status, ..) = recorder
        .ask(CHAT, &json!({"model": "m", "messages": []}))
        .await;
    assert_ne!(status, 200, "what cannot be counted is not sent");
    assert_eq!(endpoint.seen().len(), 0);
    assert_eq!(recorder.told.settled.lock().expect("no panic").len(), 0);
}

#[tokio::test]
async fn nobody_there_is_known_before_and_costs_nothing() {
    let free = TcpListener::bind(LOCAL).await.expect("a free port");
    let address = free.local_addr().expect("it listens");
    drop(free);
    let recorder = Recorder::before("openai", address, false).await;
    let error = recorder.upstream.check().await.expect_err("nobody listens");
    assert!(error.to_string().contains("refused"), "{error}");
    let (status, ..) = recorder.ask(CHAT, &body(CHAT, false)).await;
    assert_eq!(status, 502);
    let entry = recorder.journal().llm.remove(0);
    assert_eq!(
        (&*entry.finish_reason, buckets(&entry)),
        ("endpoint_unreachable", Some([0; 4]))
    );
    for (status, is_refused) in [
        ("401 No", true),
        ("403 No", true),
        ("500 No list", false),
        ("200 OK", false),
    ] {
        let endpoint = Scripted::start(answer(status, "text/plain", "", KEY)).await;
        let recorder = Recorder::before("anthropic", endpoint.address, false).await;
        let checked = recorder.upstream.check().await;
        assert_eq!(
            matches!(checked, Err(UpstreamError::Refused { .. })),
            is_refused,
            "{status}"
        );
        assert!(!format!("{checked:?}").contains(KEY));
        assert!(endpoint.seen()[0].starts_with("GET /v1/models "));
    }
}

#[tokio::test]
async fn a_request_that_the_subject_gives_up_is_paid_for() {
    let endpoint = Scripted::start(Script::Silent).await;
    let recorder = Recorder::before("openai", endpoint.address, false).await;
    let request = body(CHAT, false);
    let asked = recorder.ask(CHAT, &request);
    let seen = async {
        while endpoint.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = asked => panic!("it never answers"),
        () = seen => {}
    }
    // The subject is gone; its run may end before the connection is known to be.
    let entry = recorder.journal().llm.remove(0);
    assert!(
        ["unanswered", "given_up"].contains(&&*entry.finish_reason),
        "{entry:?}"
    );
    assert_eq!(buckets(&entry), None);
    let paid = async {
        while recorder.told.settled.lock().expect("no panic").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), paid)
        .await
        .expect("it is settled");
    let settled = recorder.told.settled.lock().expect("no panic").clone();
    assert!(settled[0].2.uncached_input > 0 && settled[0].1.is_none());
}

/// An endpoint that answers everything with `status`, and what the check before anything is run says of it.
async fn checked(api: &str, status: &str) -> (Result<(), UpstreamError>, Vec<String>) {
    let endpoint = Scripted::start(answer(status, "text/plain", "", KEY)).await;
    let recorder = Recorder::before(api, endpoint.address, false).await;
    let checked = recorder.upstream.check().await;
    assert!(!format!("{checked:?}").contains(KEY));
    (checked, endpoint.seen())
}

#[tokio::test]
async fn an_address_without_turns_is_known_before_and_costs_nothing() {
    for status in ["404 No", "405 No", "410 No", "301 No", "308 No"] {
        for (api, turns) in [
            ("openai", &[CHAT, "/v1/responses"][..]),
            ("anthropic", &[MESSAGES]),
        ] {
            let (checked, seen) = checked(api, status).await;
            let error = checked.expect_err(status).to_string();
            let told = format!("{}: HTTP {}", turns[0], &status[..3]);
            assert!(error.contains(&told), "{error}");
            assert_eq!(seen.len(), 1 + turns.len());
            for (request, turn) in seen[1..].iter().zip(turns) {
                assert!(request.starts_with(&format!("POST {turn} ")), "{request}");
                // It names no model and holds no message.
                assert!(request.ends_with("\r\n\r\n{}"), "{request}");
            }
        }
    }
    for status in ["400 No", "422 No", "500 No", "429 No"] {
        let (checked, seen) = checked("openai", status).await;
        assert_eq!((checked, seen.len()), (Ok(()), 2), "{status}");
    }
}

#[tokio::test]
async fn a_first_turn_that_leads_nowhere_is_known_and_a_later_one_is_not_the_address() {
    let script = answer("404 No", "application/json", "", "{}");
    let (.., recorder) = through(CHAT, &body(CHAT, false), script).await;
    let error = recorder.upstream.not_there().expect("nothing is there");
    assert!(
        error.to_string().contains("/v1/chat/completions: HTTP 404"),
        "{error}"
    );
    let script = answer("500 No", "application/json", "", "{}");
    let (.., recorder) = through(CHAT, &body(CHAT, false), script).await;
    assert_eq!(recorder.upstream.not_there(), None);
}
