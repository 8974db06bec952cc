//! An S3 endpoint in this process, on a port of the loopback that the system chooses.

use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientOptions, ObjectStore};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::task::JoinSet;

/// Sends requests without encryption, so that the tests need no library for it.
#[derive(Debug)]
struct Plain;

#[derive(Debug)]
struct PlainClient(reqwest::Client);

impl HttpConnector for Plain {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(PlainClient(reqwest::Client::new())))
    }
}

#[async_trait]
impl HttpService for PlainClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error: reqwest::Error| HttpError::new(HttpErrorKind::Request, error);
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let url = parts.uri.to_string();
        let request = self.0.request(parts.method, url).headers(parts.headers);
        let answer = request.body(body).send().await.map_err(failed)?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let mut response = HttpResponse::new(answer.bytes().await.map_err(failed)?.into());
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

const BUCKET: &str = "results";
const ACCESS: &str = "test-access";
const SECRET: &str = "test-secret";

/// Stops, and forgets everything, when it is dropped.
pub(crate) struct Endpoint {
    home: tempfile::TempDir,
    address: std::net::SocketAddr,
    _serving: JoinSet<()>,
}

impl Endpoint {
    /// Starts with one empty bucket.
    pub(crate) async fn start() -> Self {
        let home = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(home.path().join(BUCKET)).expect("a bucket");
        let files = FileSystem::new(home.path()).expect("a directory");
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS, SECRET));
        let service = service.build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                connections.spawn(async move {
                    let server = Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Self {
            home,
            address,
            _serving: serving,
        }
    }

    /// A client of the bucket; each call is one more replica.
    pub(crate) fn bucket(&self) -> Arc<dyn ObjectStore> {
        self.client(SECRET)
    }

    /// A client whose requests are refused.
    pub(crate) fn stranger(&self) -> Arc<dyn ObjectStore> {
        self.client("not the secret")
    }

    /// The folder that the bucket is, behind the endpoint's back.
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        self.home.path().join(BUCKET)
    }

    fn client(&self, secret: &str) -> Arc<dyn ObjectStore> {
        let client = AmazonS3Builder::new()
            .with_endpoint(format!("http://{}", self.address))
            .with_allow_http(true)
            .with_region("us-east-1")
            .with_bucket_name(BUCKET)
            .with_access_key_id(ACCESS)
            .with_secret_access_key(secret)
            .with_http_connector(Plain)
            .with_retry(object_store::RetryConfig {
                max_retries: 0,
                ..object_store::RetryConfig::default()
            })
            .build();
        Arc::new(client.expect("a client"))
    }
}
