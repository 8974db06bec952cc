//! Client of an OpenAI Chat Completions server.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use reqwest::{
    Body, Client, Response, StatusCode, Url,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
};

use crate::{
    job::ApiKey,
    ports::{ModelFailure, ModelPort, ModelReply},
    reply::{parse_refusal, parse_reply},
    request::ChatRequest,
    retry::{Next, RetryPolicy, asked_wait},
    run_job::ClientError,
};

/// How long one request may take before it counts as a lost connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);
/// The largest answer accepted.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;

/// Sends chat requests as non-streaming JSON and repeats passing failures: 429, 5xx and lost
/// connections.
#[derive(Debug)]
pub struct OpenAiChat {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
    policy: RetryPolicy,
    retries: AtomicU32,
}

/// How one attempt failed.
enum Attempt {
    Final(ModelFailure),
    Passing {
        what: String,
        asked: Option<Duration>,
    },
}

impl OpenAiChat {
    /// A client for the server at `base_url` (ending in `/v1`), over `client`'s connections.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when the address or the key cannot stand in a request.
    pub fn new(
        client: Client,
        base_url: &str,
        api_key: &ApiKey,
        policy: RetryPolicy,
    ) -> Result<Self, ClientError> {
        let address = format!("{}/chat/completions", base_url.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|_| ClientError::Address(address))?;
        Ok(Self {
            client,
            url,
            authorization: authorization(api_key)?,
            policy,
            retries: AtomicU32::new(0),
        })
    }

    async fn attempt(&self, request: &ChatRequest) -> Result<ModelReply, Attempt> {
        let pieces: Vec<Result<Bytes, Infallible>> = request.pieces().cloned().map(Ok).collect();
        let mut call = self
            .client
            .post(self.url.clone())
            .timeout(REQUEST_TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header(CONTENT_LENGTH, request.body_bytes())
            .body(Body::wrap_stream(futures::stream::iter(pieces)));
        if let Some(authorization) = &self.authorization {
            call = call.header(AUTHORIZATION, authorization);
        }
        let response = call.send().await.map_err(|error| lost(&error))?;
        let status = response.status();
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            return Err(Attempt::Passing {
                what: format!("HTTP {}", status.as_u16()),
                asked: wait_header(response.headers()),
            });
        }
        let body = read_body(response).await?;
        if status.is_success() {
            parse_reply(&body).map_err(Attempt::Final)
        } else {
            Err(Attempt::Final(parse_refusal(status.as_u16(), &body)))
        }
    }
}

impl ModelPort for OpenAiChat {
    async fn complete(&self, request: &ChatRequest) -> Result<ModelReply, ModelFailure> {
        let mut retries = 0;
        loop {
            let (what, asked) = match self.attempt(request).await {
                Ok(reply) => return Ok(reply),
                Err(Attempt::Final(failure)) => return Err(failure),
                Err(Attempt::Passing { what, asked }) => (what, asked),
            };
            match self.policy.next(retries, asked) {
                Next::Wait(delay) => {
                    tracing::warn!(
                        failure = %what,
                        retry = retries + 1,
                        delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                        "LLM call failed, trying again"
                    );
                    tokio::time::sleep(delay).await;
                }
                Next::GiveUp => {
                    return Err(ModelFailure::Exhausted {
                        attempts: retries + 1,
                        last: what,
                    });
                }
                Next::AskedTooLong { asked, limit } => {
                    return Err(ModelFailure::AskedTooLongWait {
                        asked_ms: u64::try_from(asked.as_millis()).unwrap_or(u64::MAX),
                        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
            retries += 1;
            self.retries.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn retries(&self) -> u32 {
        self.retries.load(Ordering::Relaxed)
    }
}

fn authorization(api_key: &ApiKey) -> Result<Option<HeaderValue>, ClientError> {
    if api_key.expose().is_empty() {
        return Ok(None);
    }
    let mut value = HeaderValue::try_from(format!("Bearer {}", api_key.expose()))
        .map_err(|_| ClientError::ApiKey)?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn wait_header(headers: &HeaderMap) -> Option<Duration> {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    asked_wait(
        headers.get("retry-after-ms").and_then(text).as_deref(),
        headers.get(RETRY_AFTER).and_then(text).as_deref(),
    )
}

/// Names the kind of loss only: an error's own text may hold the address.
fn lost(error: &reqwest::Error) -> Attempt {
    let what = if error.is_timeout() {
        "timed out"
    } else if error.is_connect() {
        "connection refused"
    } else {
        "connection lost"
    };
    Attempt::Passing {
        what: what.to_owned(),
        asked: None,
    }
}

async fn read_body(mut response: Response) -> Result<Vec<u8>, Attempt> {
    let announced = response.content_length().unwrap_or(0);
    let room = usize::try_from(announced).unwrap_or(MAX_REPLY_BYTES);
    let mut body = Vec::with_capacity(room.min(MAX_REPLY_BYTES));
    while let Some(piece) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + piece.len() > MAX_REPLY_BYTES {
            return Err(Attempt::Final(ModelFailure::Malformed(format!(
                "more than {MAX_REPLY_BYTES} bytes"
            ))));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
