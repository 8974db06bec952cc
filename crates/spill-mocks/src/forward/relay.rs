//! Sends one request of a subject on, and its answer back.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::dialect::Dialect;
use crate::journal::Lost;
use crate::llm_routes::refused;
use crate::refusal::Refusal;
use crate::registry::{Registry, Slot};
use crate::request::Wire;
use crate::state::Opened;

use super::answer::{Blame, refusal};
use super::client::SendError;
use super::flight::Flight;
use super::scrub::scrub;
use super::stream::{Form, relayed};
use super::upstream::Upstream;

/// An error body is read up to here; the rest of it does not go on.
const ERROR_BYTES: usize = 64 << 10;
/// Headers of a refusal that go on to the subject, so that it can wait as long as it is asked to.
const HANDED_BACK: [HeaderName; 2] = [RETRY_AFTER, HeaderName::from_static("retry-after-ms")];

/// Forwards a request for the next turn.
pub(crate) async fn relay(
    registry: &Registry,
    upstream: &Upstream,
    slot: Arc<Slot>,
    wire: &Wire,
    headers: &HeaderMap,
    query: &str,
    body: Bytes,
) -> Response<Body> {
    let dialect = wire.dialect;
    let Some(address) = upstream.address(dialect, query) else {
        let api = upstream.endpoint.api().name();
        let what = format!("a request of another API than the endpoint's, which speaks {api}");
        slot.unscripted(what.clone());
        return refused(dialect, &Refusal::unscripted(&what));
    };
    let opened = match registry.open(&slot, body.clone(), wire) {
        Ok(opened) => opened,
        Err(error) => return refused(dialect, &Refusal::invalid_request(&error)),
    };
    if !upstream.gate.admits() {
        slot.refuse(opened.call, Lost::SpendingCap, "spending_cap");
        let words = "the cap on what this acceptance may spend is reached";
        return own_error(StatusCode::PAYMENT_REQUIRED, "spending_cap", words);
    }
    let asks_for_usage = must_ask_for_usage(dialect, &opened);
    let body = if asks_for_usage {
        asking_for_usage(&body)
    } else {
        body
    };
    let gate = Arc::clone(&upstream.gate);
    let mut flight = Flight::new(slot, gate, registry.tokens(), opened);
    let request = upstream.request(Method::POST, &address, headers, body);
    match upstream.client.send(request).await {
        Err(error) => unanswered(&mut flight, &error),
        Ok(answer) => {
            upstream.heard(&address, answer.status().as_u16());
            if answer.status().is_success() {
                handed_over(answer, dialect, asks_for_usage, upstream, flight)
            } else {
                handed_back(answer, upstream, &mut flight).await
            }
        }
    }
}

/// OpenAI tells the usage of a stream only to those who ask.
fn must_ask_for_usage(dialect: Dialect, opened: &Opened) -> bool {
    dialect == Dialect::Chat && opened.stream && !opened.include_usage
}

fn asking_for_usage(body: &Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<Map<String, Value>>(body) else {
        return body.clone();
    };
    let options = request
        .entry("stream_options")
        .or_insert_with(|| Value::Object(Map::new()));
    if !options.is_object() {
        *options = Value::Object(Map::new());
    }
    options["include_usage"] = Value::Bool(true);
    Value::Object(request).to_string().into()
}

/// An answer that began well.
fn handed_over(
    answer: Response<Body>,
    dialect: Dialect,
    asked_for_usage: bool,
    upstream: &Upstream,
    flight: Flight,
) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let kind = head.headers.get(CONTENT_TYPE).cloned();
    let is_stream = kind.as_ref().is_some_and(|kind| {
        kind.to_str()
            .is_ok_and(|kind| kind.starts_with("text/event-stream"))
    });
    let form = if is_stream {
        Form::Events {
            hides_usage: asked_for_usage,
        }
    } else {
        Form::Json
    };
    let timeout = upstream.client.read_timeout();
    let pieces = relayed(body, dialect, form, timeout, flight);
    let mut response = Response::new(Body::from_stream(pieces));
    *response.status_mut() = head.status;
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, kind);
    }
    if is_stream {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    response
}

/// A refusal, without the key that it may quote.
async fn handed_back(
    answer: Response<Body>,
    upstream: &Upstream,
    flight: &mut Flight,
) -> Response<Body> {
    let (head, body) = answer.into_parts();
    let timeout = upstream.client.read_timeout();
    let body = tokio::time::timeout(timeout, axum::body::to_bytes(body, ERROR_BYTES)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let status = head.status.as_u16();
    let (reason, blame) = refusal(status, &body);
    let lost = match blame {
        Blame::Request => None,
        Blame::Endpoint => Some(Lost::Endpoint),
    };
    flight.refused(status, &reason, lost);
    let mut response = Response::new(Body::from(scrub(&body, &upstream.key)));
    *response.status_mut() = head.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for name in HANDED_BACK {
        if let Some(value) = head.headers.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    response
}

/// No answer began: an error of ours, which clients try again.
fn unanswered(flight: &mut Flight, error: &SendError) -> Response<Body> {
    match error {
        SendError::Connect(_) => {
            flight.unreachable();
            let words = "the endpoint cannot be reached";
            own_error(StatusCode::BAD_GATEWAY, "endpoint_unreachable", words)
        }
        SendError::Lost => {
            flight.lost("connection_lost");
            let words = "the endpoint closed the connection without an answer";
            own_error(StatusCode::BAD_GATEWAY, "connection_lost", words)
        }
        SendError::Timeout => {
            flight.lost("endpoint_timeout");
            let words = "the endpoint did not answer in time";
            own_error(StatusCode::GATEWAY_TIMEOUT, "endpoint_timeout", words)
        }
    }
}

/// An error in a form that clients of both APIs read.
fn own_error(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let body = json!({
        "type": "error",
        "error": {"message": message, "type": code, "param": null, "code": code},
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
