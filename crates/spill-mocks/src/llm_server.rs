use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use bytes::Bytes;
use futures::stream;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::registry::{Registry, Slot};
use crate::reply::{Completion, Refusal, models};
use crate::state::Reply;
use crate::usage::Prefixes;

/// The mock LLM server: OpenAI chat completions, as JSON and as server-sent events, for every run
/// of a registry.
///
/// A run is named by the path (`/run/<id>/v1/…`) or, for clients that drop paths, by the API key
/// (`/v1/…` with `Authorization: Bearer <id>`). Any other request is refused loudly and journalled.
#[derive(Debug)]
pub struct LlmServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<io::Result<()>>,
}

impl LlmServer {
    /// Listens on `listen`; port 0 takes a free one. Runs on the current tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails when the address cannot be bound.
    pub async fn start(listen: SocketAddr, registry: Arc<Registry>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        // Small answers must not wait for the acknowledgement of what went before.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = axum::serve(listener, router(registry)).with_graceful_shutdown(async {
            drop(stopped.await);
        });
        Ok(Self {
            address,
            stop: Some(stop),
            task: tokio::spawn(async { serve.await }),
        })
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of a run, to which clients append `/chat/completions`.
    #[must_use]
    pub fn base_url(&self, run_id: &str) -> String {
        format!("http://{}/run/{run_id}/v1", self.address)
    }

    /// Stops listening and waits for requests in flight.
    ///
    /// # Errors
    ///
    /// Fails when the server had failed before.
    pub async fn shutdown(mut self) -> io::Result<()> {
        self.stop.take();
        match (&mut self.task).await {
            Ok(result) => result,
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

impl Drop for LlmServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/run/{run}/v1/chat/completions", post(chat_of_path))
        .route("/run/{run}/v1/models", get(models_of_path))
        .route("/v1/chat/completions", post(chat_of_key))
        .route("/v1/models", get(models_of_key))
        .fallback(unscripted)
        .method_not_allowed_fallback(unscripted)
        .layer(DefaultBodyLimit::disable())
        .with_state(registry)
}

type Runs = State<Arc<Registry>>;

async fn chat_of_path(registry: Runs, Path(run): Path<String>, body: Bytes) -> Response {
    chat(&registry, Some(&run), body)
}

async fn chat_of_key(registry: Runs, headers: HeaderMap, body: Bytes) -> Response {
    chat(&registry, bearer(&headers), body)
}

async fn models_of_path(registry: Runs, Path(run): Path<String>) -> Response {
    list_models(&registry, Some(&run))
}

async fn models_of_key(registry: Runs, headers: HeaderMap) -> Response {
    list_models(&registry, bearer(&headers))
}

async fn unscripted(registry: Runs, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path();
    let of_path = path
        .strip_prefix("/run/")
        .and_then(|rest| rest.split('/').next());
    let what = format!("{method} {path}");
    registry.unscripted(of_path.or(bearer(&headers)), what.clone());
    refused(&Refusal::unscripted(&what))
}

fn chat(registry: &Registry, run: Option<&str>, body: Bytes) -> Response {
    let Some(slot) = run.and_then(|run| registry.slot(run)) else {
        return unknown_run(registry, run, "chat completion");
    };
    match registry.answer(&slot, body) {
        Reply::Refused(refusal) => refused(&refusal),
        Reply::Completed(completion, prompt) if completion.stream => {
            streamed(&completion, slot, prompt)
        }
        Reply::Completed(completion, prompt) => {
            slot.complete(&prompt);
            json(StatusCode::OK, completion.to_json())
        }
    }
}

fn list_models(registry: &Registry, run: Option<&str>) -> Response {
    match run.and_then(|run| registry.slot(run)) {
        Some(slot) => json(StatusCode::OK, models(slot.model_name())),
        None => unknown_run(registry, run, "list of models"),
    }
}

fn unknown_run(registry: &Registry, run: Option<&str>, what: &str) -> Response {
    let run = run.unwrap_or("none");
    let what = format!("{what} of the unknown run `{run}`");
    registry.unscripted(None, what.clone());
    refused(&Refusal::unscripted(&what))
}

/// Sends events one chunk each; the request counts as completed once the last one is taken.
fn streamed(completion: &Completion, slot: Arc<Slot>, prompt: Prefixes) -> Response {
    let events = completion.to_events();
    let last = events.len() - 1;
    let chunks = events.into_iter().enumerate().map(move |(index, event)| {
        if index == last {
            slot.complete(&prompt);
        }
        Ok::<_, Infallible>(event)
    });
    let mut response = Response::new(Body::from_stream(stream::iter(chunks)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        header::HeaderValue::from_static("no-cache"),
    );
    response
}

fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::BAD_REQUEST);
    json(status, refusal.to_json())
}

fn json(status: StatusCode, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(str::trim)
}
