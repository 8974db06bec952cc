use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::cuttable::{CuttableListener, Cutter};
use crate::llm_routes::router;
use crate::registry::Registry;

/// The mock LLM server: OpenAI chat completions and responses, Anthropic messages and Gemini
/// `generateContent`, as JSON and as server-sent events, for every run of a registry.
///
/// A run is named by the path (`/run/<id>/v1/…`) or, for clients that drop paths, by the API key
/// (`/v1/…` with `Authorization: Bearer <id>`, `x-api-key` or `x-goog-api-key`). Any other request
/// is refused loudly and journalled.
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
        let service = router(registry).into_make_service_with_connect_info::<Cutter>();
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = axum::serve(CuttableListener(listener), service);
        let serve = serve.with_graceful_shutdown(async {
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

    /// The base URL of a run, to which OpenAI's clients append `/chat/completions` or `/responses`.
    #[must_use]
    pub fn base_url(&self, run_id: &str) -> String {
        format!("{}/v1", self.root_url(run_id))
    }

    /// The address of a run, to which clients of Anthropic append `/v1/messages` and those of Gemini
    /// `/v1beta/models/…`.
    #[must_use]
    pub fn root_url(&self, run_id: &str) -> String {
        format!("http://{}/run/{run_id}", self.address)
    }

    /// The MCP endpoint of a run on this server, which can cut connections and drip answers, as the
    /// tool servers cannot.
    #[must_use]
    pub fn tools_url(&self, run_id: &str) -> String {
        format!("{}/mcp", self.root_url(run_id))
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
