//! An S3 endpoint in this process, on a port of the loopback that the system chooses.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const BUCKET: &str = "results";
const ACCESS: &str = "test-access";
pub(crate) const SECRET: &str = "test-secret-that-nobody-prints";

/// Stops, and forgets everything, when it is dropped.
pub(crate) struct Endpoint {
    home: TempDir,
    address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Endpoint {
    /// Starts with one empty bucket.
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(BUCKET)).unwrap();
        let (address, runtime) = serve(home.path());
        Self {
            home,
            address,
            runtime: Some(runtime),
        }
    }

    /// Answers nobody any more.
    pub(crate) fn stop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    /// Answers again, at another address.
    pub(crate) fn start_again(&mut self) {
        let (address, runtime) = serve(self.home.path());
        self.address = address;
        self.runtime = Some(runtime);
    }

    /// The URL of `prefix` in the bucket.
    pub(crate) fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// The folder that `prefix` is, behind the endpoint's back.
    pub(crate) fn path(&self, prefix: &str) -> PathBuf {
        self.home.path().join(BUCKET).join(prefix)
    }

    /// What a process needs to reach it.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", ACCESS.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }
}

fn serve(home: &Path) -> (SocketAddr, Runtime) {
    let files = FileSystem::new(home).expect("a directory");
    let mut service = S3ServiceBuilder::new(files);
    service.set_auth(SimpleAuth::from_single(ACCESS, SECRET));
    let service = service.build();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let service = service.clone();
            tokio::spawn(async move {
                let server = Builder::new(TokioExecutor::new());
                drop(server.serve_connection(TokioIo::new(socket), service).await);
            });
        }
    });
    (address, runtime)
}
