use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::mcp::{self, HttpAnswer, Stated};
use crate::registry::Registry;

/// A mock tool server: MCP over streamable HTTP at `/run/<id>/mcp`, for every run of a registry.
///
/// It answers one request at a time, so each worker has its own. `wiremock` keeps a copy of every
/// request until [`ToolServer::reset`]. Let the task yield between dropping many of them. It sends
/// whole bodies at once: the tools of a run whose plan spoils tool calls are at
/// [`crate::LlmServer::tools_url`].
pub struct ToolServer {
    server: MockServer,
    registry: Arc<Registry>,
}

impl ToolServer {
    /// Listens on `listen`; port 0 takes a free one.
    ///
    /// # Errors
    ///
    /// Fails when the address cannot be bound.
    pub async fn start(listen: SocketAddr, registry: Arc<Registry>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let server = MockServer::builder()
            .listener(listener)
            .disable_request_recording()
            .start()
            .await;
        let started = Self { server, registry };
        started.mount().await;
        Ok(started)
    }

    /// The address it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        *self.server.address()
    }

    /// The MCP endpoint of a run.
    #[must_use]
    pub fn url(&self, run_id: &str) -> String {
        format!("http://{}/run/{run_id}/mcp", self.address())
    }

    /// Frees what the server keeps of earlier requests.
    pub async fn reset(&self) {
        self.server.reset().await;
        self.mount().await;
    }

    async fn mount(&self) {
        let tools = Tools(Arc::clone(&self.registry));
        Mock::given(any())
            .respond_with(tools)
            .mount(&self.server)
            .await;
    }
}

impl std::fmt::Debug for ToolServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ToolServer")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

struct Tools(Arc<Registry>);

impl Respond for Tools {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let answer = self.answer(request);
        let response = ResponseTemplate::new(answer.status);
        if answer.body.is_empty() {
            return response;
        }
        response.set_body_raw(answer.body, answer.kind)
    }
}

impl Tools {
    fn answer(&self, request: &Request) -> HttpAnswer {
        let path = request.url.path();
        let run_id = path
            .strip_prefix("/run/")
            .and_then(|rest| rest.split('/').next());
        let slot = run_id.and_then(|run_id| self.0.slot(run_id));
        let is_endpoint =
            run_id.is_some_and(|id| path.trim_end_matches('/') == format!("/run/{id}/mcp"));
        let Some(slot) = slot.filter(|_| is_endpoint) else {
            let what = format!("{} {path} on a tool server", request.method);
            self.0.unscripted(run_id, what);
            return HttpAnswer::bare(404);
        };
        match request.method.as_str() {
            "POST" => {
                let header = |name: &str| request.headers.get(name)?.to_str().ok();
                let stated = Stated {
                    version: header("mcp-protocol-version"),
                    method: header("mcp-method"),
                    name: header("mcp-name"),
                };
                mcp::answer(&slot, stated, &request.body)
            }
            // No stream of the server's own, and no session to end.
            _ => HttpAnswer::bare(405),
        }
    }
}
