//! HTTP with and without TLS, for this crate's requests alone.
//!
//! Not by the HTTP client of the built-in subject: a client with TLS reads the system's certificates when it is made, which
//! every run would pay.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector as TcpConnector};
use hyper_util::rt::TokioExecutor;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService,
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A request and its answer, whole: parts have some MiB.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes the client of a store.
#[derive(Debug)]
pub(crate) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let failed =
            |source: Box<dyn std::error::Error + Send + Sync>| object_store::Error::Generic {
                store: "S3",
                source,
            };
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let config = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.into()))?;
        // A machine without any certificate still reaches an endpoint without TLS.
        let config = match config.clone().with_native_roots() {
            Ok(config) => config,
            Err(_) => config.with_root_certificates(RootCertStore::empty()),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(HttpClient::new(Service(client)))
    }
}

#[derive(Debug)]
struct Service(Client<HttpsConnector<TcpConnector>, HttpRequestBody>);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let whole = async {
            let answer = self.0.request(request).await.map_err(|error| {
                let kind = if error.is_connect() {
                    HttpErrorKind::Connect
                } else {
                    HttpErrorKind::Interrupted
                };
                HttpError::new(kind, error)
            })?;
            let (parts, body) = answer.into_parts();
            let broke = |error| HttpError::new(HttpErrorKind::Interrupted, error);
            let body = body.collect().await.map_err(broke)?.to_bytes();
            Ok(HttpResponse::from_parts(parts, body.into()))
        };
        match tokio::time::timeout(TIMEOUT, whole).await {
            Ok(answer) => answer,
            Err(error) => Err(HttpError::new(HttpErrorKind::Timeout, error)),
        }
    }
}
