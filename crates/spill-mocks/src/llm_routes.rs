//! What the mock LLM server answers at which address.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;

use crate::cuttable::Cutter;
use crate::deliver::{Answer, deliver};
use crate::dialect::{
    Dialect, gemini_models, gemini_total_tokens, messages_input_tokens, messages_models, models,
};
use crate::faults::Delivery;
use crate::forward::relay;
use crate::mcp::{self, HttpAnswer, Stated};
use crate::refusal::{Refusal, Wrong};
use crate::registry::{Registry, Slot};
use crate::reply::Completion;
use crate::request::Wire;
use crate::state::Reply;

pub(crate) fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .fallback(answer)
        .layer(DefaultBodyLimit::disable())
        .with_state(registry)
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
enum Endpoint {
    /// Whether anyone is there.
    Alive,
    Models(Dialect),
    /// The tools of a run; the tool servers answer the same.
    Tools,
    /// The next turn; where a stream is not asked for as server-sent events it is a JSON array.
    Turn {
        dialect: Dialect,
        model: Option<String>,
        stream: Option<Streamed>,
    },
    CountTokens {
        dialect: Dialect,
        model: Option<String>,
    },
}

/// How an address asks for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streamed {
    Events,
    Array,
}

/// The run that a path names, and the rest of the path.
fn split_run(path: &str) -> (Option<&str>, &str) {
    let Some(rest) = path.strip_prefix("/run/") else {
        return (None, path);
    };
    match rest.find('/') {
        Some(end) => (Some(&rest[..end]), &rest[end..]),
        None => (Some(rest), ""),
    }
}

fn endpoint(method: &Method, path: &str, query: &str, headers: &HeaderMap) -> Option<Endpoint> {
    let path = path.trim_end_matches('/');
    // Clients that append a version to a base address which ends in one.
    let path = match path.strip_prefix("/v1") {
        Some(rest) if rest.starts_with("/v1") => rest,
        Some(_) | None => path,
    };
    let turn = |dialect| Endpoint::Turn {
        dialect,
        model: None,
        stream: None,
    };
    match (method.as_str(), path) {
        ("HEAD" | "GET", "" | "/v1") => Some(Endpoint::Alive),
        (_, "/mcp") => Some(Endpoint::Tools),
        ("GET", "/v1/models") if headers.contains_key("anthropic-version") => {
            Some(Endpoint::Models(Dialect::Messages))
        }
        ("GET", "/v1/models") if headers.contains_key("x-goog-api-key") => {
            Some(Endpoint::Models(Dialect::Gemini))
        }
        ("GET", "/v1/models") => Some(Endpoint::Models(Dialect::Chat)),
        ("GET", "/v1beta/models") => Some(Endpoint::Models(Dialect::Gemini)),
        ("POST", "/v1/chat/completions") => Some(turn(Dialect::Chat)),
        ("POST", "/v1/responses") => Some(turn(Dialect::Responses)),
        ("POST", "/v1/messages") => Some(turn(Dialect::Messages)),
        ("POST", "/v1/messages/count_tokens") => Some(Endpoint::CountTokens {
            dialect: Dialect::Messages,
            model: None,
        }),
        ("POST", path) => {
            let behind = |version: &str| path.strip_prefix(version)?.strip_prefix("/models/");
            let rest = ["/v1beta", "/v1", "/v1alpha"].into_iter().find_map(behind);
            gemini_endpoint(rest?, query)
        }
        _ => None,
    }
}

/// `MODEL:ACTION`
fn gemini_endpoint(rest: &str, query: &str) -> Option<Endpoint> {
    let (model, action) = rest.rsplit_once(':')?;
    let is_events = query.split('&').any(|pair| pair == "alt=sse");
    let (dialect, model) = (Dialect::Gemini, Some(model.to_owned()));
    let turn = |model, stream| Endpoint::Turn {
        dialect,
        model,
        stream,
    };
    match action {
        "generateContent" => Some(turn(model, None)),
        "streamGenerateContent" if is_events => Some(turn(model, Some(Streamed::Events))),
        "streamGenerateContent" => Some(turn(model, Some(Streamed::Array))),
        "countTokens" => Some(Endpoint::CountTokens { dialect, model }),
        _ => None,
    }
}

async fn answer(
    State(registry): State<Arc<Registry>>,
    ConnectInfo(cutter): ConnectInfo<Cutter>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (of_path, rest) = split_run(uri.path());
    let query = uri.query().unwrap_or("");
    let run = of_path.or_else(|| api_key(&headers, query));
    let Some(endpoint) = endpoint(&method, rest, query, &headers) else {
        let what = format!("{method} {}", uri.path());
        registry.unscripted(run, what.clone());
        return refused(Dialect::Chat, &Refusal::unscripted(&what));
    };
    if endpoint == Endpoint::Alive {
        return json(StatusCode::OK, Bytes::new());
    }
    let Some(slot) = run.and_then(|run| registry.slot(run)) else {
        let run = run.unwrap_or("none");
        let what = format!("{method} {rest} of the unknown run `{run}`");
        registry.unscripted(None, what.clone());
        return refused(Dialect::Chat, &Refusal::unscripted(&what));
    };
    match endpoint {
        Endpoint::Alive => json(StatusCode::OK, Bytes::new()),
        Endpoint::Tools => tools(&slot, &method, &headers, &body, cutter).await,
        Endpoint::Models(dialect) => json(StatusCode::OK, model_list(dialect, &slot)),
        Endpoint::CountTokens { dialect, model } => {
            let wire = Wire {
                dialect,
                model,
                stream: false,
            };
            count_tokens(&registry, &slot, body, &wire)
        }
        Endpoint::Turn {
            dialect,
            model,
            stream,
        } => {
            let wire = Wire {
                dialect,
                model,
                stream: stream.is_some(),
            };
            if let Some(upstream) = registry.upstream() {
                let relayed = relay(&registry, &upstream, slot, &wire, &headers, query, body);
                return relayed.await;
            }
            let (reply, wait) = registry.answer(&slot, body, &wire);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let form = stream.unwrap_or(Streamed::Events);
            turn(slot, dialect, reply, form, cutter).await
        }
    }
}

async fn turn(
    slot: Arc<Slot>,
    dialect: Dialect,
    reply: Reply,
    form: Streamed,
    cutter: Cutter,
) -> Response {
    match reply {
        Reply::Refused(refusal) => refused(dialect, &refusal),
        Reply::Completed(completion, prompt) => {
            let answer = written(dialect, &completion, form);
            let done = move || slot.complete(&prompt);
            deliver(answer, Delivery::Whole, cutter, done).await
        }
        Reply::Spoilt(completion, delivery) => {
            let answer = written(dialect, &completion, form);
            deliver(answer, delivery, cutter, || ()).await
        }
    }
}

fn written(dialect: Dialect, completion: &Completion, form: Streamed) -> Answer {
    match (completion.stream, form) {
        (false, _) => Answer::json(StatusCode::OK, dialect.json(completion)),
        (true, Streamed::Array) => Answer::json(StatusCode::OK, array(dialect, completion)),
        (true, Streamed::Events) => {
            let failed = Refusal {
                wrong: Wrong::Overloaded,
                message: String::new(),
            };
            Answer::events(dialect.events(completion), dialect.error_event(&failed))
        }
    }
}

async fn tools(
    slot: &Slot,
    method: &Method,
    headers: &HeaderMap,
    body: &Bytes,
    cutter: Cutter,
) -> Response {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let stated = Stated {
        version: header("mcp-protocol-version"),
        method: header("mcp-method"),
        name: header("mcp-name"),
    };
    let answer = if method == Method::POST {
        mcp::answer(slot, stated, body)
    } else {
        HttpAnswer::bare(405)
    };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    if answer.body.is_empty() {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        return response;
    }
    let delivery = answer.delivery;
    let answer = Answer {
        kind: answer.kind,
        ..Answer::json(status, answer.body.into())
    };
    deliver(answer, delivery, cutter, || ()).await
}

fn model_list(dialect: Dialect, slot: &Slot) -> Bytes {
    let model = slot.model();
    match dialect {
        Dialect::Chat | Dialect::Responses => models(&model.name),
        Dialect::Messages => messages_models(&model.name),
        Dialect::Gemini => gemini_models(&model.name, model.context_window_tokens),
    }
}

fn count_tokens(registry: &Registry, slot: &Slot, body: Bytes, wire: &Wire) -> Response {
    match registry.count_tokens(slot, body, wire) {
        Ok(tokens) if wire.dialect == Dialect::Gemini => {
            json(StatusCode::OK, gemini_total_tokens(tokens))
        }
        Ok(tokens) => json(StatusCode::OK, messages_input_tokens(tokens)),
        Err(error) => refused(wire.dialect, &Refusal::invalid_request(&error)),
    }
}

/// The events' data as a JSON array.
fn array(dialect: Dialect, completion: &Completion) -> Bytes {
    let events = dialect.events(completion);
    let data = events.iter().map(|event| {
        let text = event.strip_prefix(b"data: ").unwrap_or(event);
        String::from_utf8_lossy(text.trim_ascii_end()).into_owned()
    });
    format!("[{}]", data.collect::<Vec<_>>().join(",\r\n")).into()
}

pub(crate) fn refused(dialect: Dialect, refusal: &Refusal) -> Response {
    let (status, body) = dialect.refusal(refusal);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = json(status, body);
    if let Wrong::RateLimit {
        retry_after_ms: Some(wait),
    } = refusal.wrong
    {
        let headers = response.headers_mut();
        headers.insert(
            HeaderName::from_static("retry-after"),
            HeaderValue::from(wait.div_ceil(1000)),
        );
        headers.insert(
            HeaderName::from_static("retry-after-ms"),
            HeaderValue::from(wait),
        );
    }
    response
}

fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The key that a client sends, wherever its API puts it.
fn api_key<'r>(headers: &'r HeaderMap, query: &'r str) -> Option<&'r str> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = || Some(header("authorization")?.strip_prefix("Bearer ")?.trim());
    let of_query = || query.split('&').find_map(|pair| pair.strip_prefix("key="));
    bearer()
        .or_else(|| header("x-api-key"))
        .or_else(|| header("x-goog-api-key"))
        .or_else(of_query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, path: &str, expected: Option<Endpoint>) {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (_, rest) = split_run(path);
        assert_eq!(
            endpoint(&method, rest, query, &HeaderMap::new()),
            expected,
            "{method} {path}"
        );
    }

    #[test]
    fn addresses_name_run_api_and_what_is_asked() {
        let turn = |dialect| {
            Some(Endpoint::Turn {
                dialect,
                model: None,
                stream: None,
            })
        };
        check("HEAD", "/", Some(Endpoint::Alive));
        check("HEAD", "/run/r1", Some(Endpoint::Alive));
        check("POST", "/run/r1/v1/chat/completions", turn(Dialect::Chat));
        check("POST", "/v1/responses", turn(Dialect::Responses));
        check(
            "POST",
            "/run/r1/v1/messages?beta=true",
            turn(Dialect::Messages),
        );
        check("POST", "/run/r1/v1/v1/messages", turn(Dialect::Messages));
        check("GET", "/v1/models", Some(Endpoint::Models(Dialect::Chat)));
        let gemini = |stream| {
            Some(Endpoint::Turn {
                dialect: Dialect::Gemini,
                model: Some("m-1".to_owned()),
                stream,
            })
        };
        for version in ["v1beta", "v1", "v1alpha"] {
            let path = format!("/run/r1/{version}/models/m-1:generateContent");
            check("POST", &path, gemini(None));
        }
        check(
            "POST",
            "/v1beta/models/m-1:streamGenerateContent?alt=sse",
            gemini(Some(Streamed::Events)),
        );
        check(
            "POST",
            "/v1beta/models/m-1:streamGenerateContent",
            gemini(Some(Streamed::Array)),
        );
        check("POST", "/v1beta/models/m-1:embedContent", None);
        check("POST", "/v1/completions", None);
        check("GET", "/v1/responses", None);
        check("DELETE", "/", None);
    }

    #[test]
    fn a_run_ends_at_the_next_slash() {
        assert_eq!(split_run("/run/r1/v1/x"), (Some("r1"), "/v1/x"));
        assert_eq!(split_run("/run/r1"), (Some("r1"), ""));
        assert_eq!(split_run("/v1/x"), (None, "/v1/x"));
    }
}
