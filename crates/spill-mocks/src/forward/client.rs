//! The HTTP client of a real endpoint: no redirects, no proxies, no repetitions, bounded waits.

use std::error::Error;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::upstream::{UpstreamError, UpstreamOptions};

/// A connection that nobody used for this long is not used again.
const IDLE: Duration = Duration::from_secs(30);

#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;
#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;

#[derive(Debug)]
pub(crate) struct Client {
    pool: Pool<Connector, Body>,
    read_timeout: Duration,
}

/// No answer began.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// No connection could be made, for this reason; nothing was sent.
    Connect(String),
    /// The connection was lost; something may have been sent.
    Lost,
    /// Nothing came in time.
    Timeout,
}

impl Client {
    pub(crate) fn new(options: &UpstreamOptions) -> Result<Self, UpstreamError> {
        let mut http = HttpConnector::new();
        http.set_connect_timeout(Some(options.connect_timeout));
        http.set_nodelay(true);
        // What is sent over TLS has an https address.
        http.enforce_http(false);
        // A pooled connection that the endpoint closed before a request went out is replaced: nothing
        // was sent then, so it is not an attempt.
        let pool = Pool::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(connector(http, options)?);
        Ok(Self {
            pool,
            read_timeout: options.read_timeout,
        })
    }

    pub(crate) fn read_timeout(&self) -> Duration {
        self.read_timeout
    }

    /// Sends a request and returns the answer when its head is there.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, SendError> {
        match tokio::time::timeout(self.read_timeout, self.pool.request(request)).await {
            Err(_) => Err(SendError::Timeout),
            Ok(Ok(response)) => Ok(response.map(Body::new)),
            Ok(Err(error)) if error.is_connect() => Err(SendError::Connect(innermost(&error))),
            Ok(Err(_)) => Err(SendError::Lost),
        }
    }
}

/// The last cause, which names what happened without the address.
fn innermost(error: &dyn Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    let mut words = error.to_string();
    words.truncate(words.floor_char_boundary(200));
    words
}

#[cfg(not(feature = "tls"))]
fn connector(http: HttpConnector, _options: &UpstreamOptions) -> Result<Connector, UpstreamError> {
    Ok(http)
}

/// Trusts Mozilla's roots, which are compiled in, and those of the caller.
#[cfg(feature = "tls")]
fn connector(http: HttpConnector, options: &UpstreamOptions) -> Result<Connector, UpstreamError> {
    use std::sync::Arc;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, RootCertStore, crypto};

    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(pem) = &options.extra_roots {
        let mut added = 0;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| UpstreamError::Roots)?;
            roots.add(certificate).map_err(|_| UpstreamError::Roots)?;
            added += 1;
        }
        if added == 0 {
            return Err(UpstreamError::Roots);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring serves both versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .wrap_connector(http))
}
