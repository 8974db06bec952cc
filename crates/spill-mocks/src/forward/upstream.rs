//! A real endpoint that can be asked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method, Request};
use bytes::Bytes;

use crate::dialect::Dialect;

use super::client::{Client, SendError};
use super::endpoint::{Endpoint, EndpointApi};
use super::flight::Gate;
use super::key::EndpointKey;

/// The version of Anthropic's API that is asked for where the subject names none.
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Headers of a subject that go to the endpoint; nothing else does, its key least of all.
const SENT_ON: [&str; 4] = [
    "accept",
    "anthropic-version",
    "anthropic-beta",
    "openai-beta",
];

/// How an endpoint is asked.
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// Time for a connection.
    pub connect_timeout: Duration,
    /// Time without a byte: before an answer begins, and within one.
    pub read_timeout: Duration,
    /// Certificates, in PEM, to be trusted beside Mozilla's.
    pub extra_roots: Option<Vec<u8>>,
}

/// A real endpoint to which the LLM server forwards, the key to it, and who counts.
#[derive(Debug)]
pub struct Upstream {
    pub(crate) endpoint: Endpoint,
    pub(crate) key: EndpointKey,
    pub(crate) client: Client,
    pub(crate) gate: Arc<dyn Gate>,
    heard: Heard,
}

/// What was heard of the endpoint so far.
#[derive(Debug, Default)]
struct Heard {
    /// An answer began, so that the address is right.
    answer: AtomicBool,
    /// The first refusal before any answer that was about the address, or about the model's name.
    not_there: OnceLock<UpstreamError>,
}

/// An endpoint that cannot be used. No message holds the key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The certificates are none.
    #[error("there is no certificate in it, or one that cannot be read (give a file in PEM)")]
    Roots,
    /// Nobody answers there.
    #[error("{endpoint} cannot be reached: {why} (check the address, and that the server runs)")]
    Unreachable {
        /// The base address.
        endpoint: String,
        /// What happened.
        why: String,
    },
    /// The key is not accepted.
    #[error("{endpoint} refuses the key: HTTP {status} (check the variable that holds it)")]
    Refused {
        /// The base address.
        endpoint: String,
        /// 401 or 403.
        status: u16,
    },
    /// A request for a turn leads nowhere.
    #[error("nothing answers at {asked}: HTTP {status} ({way_out})")]
    NotThere {
        /// The address that was asked.
        asked: String,
        /// 404, 405, 410, or a redirect.
        status: u16,
        /// What to look at.
        way_out: String,
    },
}

/// Whether a status says of an address that it is none of a turn's. Redirects are not followed.
fn says_not_there(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308 | 404 | 405 | 410)
}

impl Upstream {
    /// An endpoint; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Fails when the certificates of the options cannot be used.
    pub fn new(
        endpoint: Endpoint,
        key: EndpointKey,
        options: &UpstreamOptions,
        gate: Arc<dyn Gate>,
    ) -> Result<Self, UpstreamError> {
        Ok(Self {
            endpoint,
            key,
            client: Client::new(options)?,
            gate,
            heard: Heard::default(),
        })
    }

    /// Asks for the list of models, so that a wrong address or key is known before anything is run. An endpoint
    /// that has no such list is asked for turns that name no model, which an endpoint refuses: one that does not
    /// even know the address of a turn has another base address. None of it costs anything.
    ///
    /// # Errors
    ///
    /// Fails when nobody answers, the key is refused, or turns lead nowhere.
    pub async fn check(&self) -> Result<(), UpstreamError> {
        let status = self
            .status(Method::GET, &self.endpoint.models(), "")
            .await?;
        if (200..300).contains(&status) {
            return Ok(());
        }
        let mut first = None;
        for address in self.endpoint.turns() {
            let status = self.status(Method::POST, &address, "{}").await?;
            if !says_not_there(status) {
                return Ok(());
            }
            first.get_or_insert_with(|| self.nothing_at(address, status));
        }
        first.map_or(Ok(()), Err)
    }

    /// The status of the answer to a request that costs nothing.
    async fn status(
        &self,
        method: Method,
        address: &str,
        body: &'static str,
    ) -> Result<u16, UpstreamError> {
        let request = self.request(method, address, &HeaderMap::new(), body.into());
        let unreachable = |why: &str| UpstreamError::Unreachable {
            endpoint: self.endpoint.to_string(),
            why: why.to_owned(),
        };
        match self.client.send(request).await {
            Err(SendError::Connect(why)) => Err(unreachable(&why)),
            Err(SendError::Lost) => Err(unreachable("it closes the connection without an answer")),
            Err(SendError::Timeout) => Err(unreachable("it does not answer in time")),
            Ok(response) => match response.status().as_u16() {
                status @ (401 | 403) => Err(UpstreamError::Refused {
                    endpoint: self.endpoint.to_string(),
                    status,
                }),
                status => Ok(status),
            },
        }
    }

    fn nothing_at(&self, asked: String, status: u16) -> UpstreamError {
        UpstreamError::NotThere {
            asked,
            status,
            way_out: self.endpoint.if_nothing_is_there(),
        }
    }

    /// Takes note of the status that a turn was answered with, sent to `address`.
    pub(crate) fn heard(&self, address: &str, status: u16) {
        if (200..300).contains(&status) {
            self.heard.answer.store(true, Ordering::Relaxed);
        } else if says_not_there(status) && !self.heard.answer.load(Ordering::Relaxed) {
            let error = self.nothing_at(address.to_owned(), status);
            // Of several, the first is told.
            drop(self.heard.not_there.set(error));
        }
    }

    /// That a turn led nowhere before any was answered, if so: a further one would be lost as well.
    #[must_use]
    pub fn not_there(&self) -> Option<&UpstreamError> {
        self.heard.not_there.get()
    }

    /// Where a request of `dialect` goes; `None` when the endpoint does not speak it.
    pub(crate) fn address(&self, dialect: Dialect, query: &str) -> Option<String> {
        let mut address = self.endpoint.turn(dialect)?;
        // All else that a subject appends stays here.
        if query.split('&').any(|pair| pair == "beta=true") {
            address.push_str("?beta=true");
        }
        Some(address)
    }

    /// A request with the key, and with those headers of the subject's that concern the API.
    pub(crate) fn request(
        &self,
        method: Method,
        address: &str,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Request<Body> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = address
            .parse()
            .expect("the base address was read, and a plain path follows it");
        let sent = request.headers_mut();
        for name in SENT_ON {
            for value in headers.get_all(name) {
                sent.append(HeaderName::from_static(name), value.clone());
            }
        }
        sent.entry(ACCEPT)
            .or_insert(HeaderValue::from_static("application/json"));
        sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.endpoint.api() {
            EndpointApi::OpenAi => {
                sent.insert(AUTHORIZATION, self.key.header("Bearer "));
            }
            EndpointApi::Anthropic => {
                sent.insert(HeaderName::from_static("x-api-key"), self.key.header(""));
                sent.entry("anthropic-version")
                    .or_insert(HeaderValue::from_static(ANTHROPIC_VERSION));
            }
        }
        request
    }
}
