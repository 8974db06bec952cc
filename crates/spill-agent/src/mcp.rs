//! Client of an MCP tool server over streamable HTTP.

use std::time::Duration;

use reqwest::Client;
use rmcp::{
    RoleClient, ServiceError, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock,
        Implementation, Tool,
    },
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Map, Value};
use spill_engine::{Block, ToolResult};
use tokio::sync::OnceCell;

use crate::{
    ports::{ToolAnswer, ToolFailure, ToolPort, ToolSpec},
    sub_calls::take_sub_calls,
    tool_http::ToolHttp,
};

/// How long closing may take; a server may leave the request that ends its session unanswered.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);
/// The largest result accepted.
const MAX_RESULT_BYTES: usize = 256 * 1024 * 1024;

/// The tools of one MCP server; connects when the tools are first listed.
pub struct McpTools {
    client: Client,
    url: String,
    service: OnceCell<RunningService<RoleClient, ClientConfig>>,
}

impl McpTools {
    /// A client for the endpoint at `url`, over `client`'s connections.
    #[must_use]
    pub fn new(client: Client, url: &str) -> Self {
        Self {
            client,
            url: url.to_owned(),
            service: OnceCell::new(),
        }
    }

    /// Ends the session; returns within a fraction of a second whatever the server does.
    pub async fn close(self) {
        if let Some(mut service) = self.service.into_inner()
            && service.close_with_timeout(CLOSE_TIMEOUT).await.is_err()
        {
            tracing::warn!("the tool client did not end cleanly");
        }
    }

    async fn service(&self) -> Result<&RunningService<RoleClient, ClientConfig>, ToolFailure> {
        self.service
            .get_or_try_init(|| async {
                let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
                    .max_json_response_size(MAX_RESULT_BYTES);
                let transport = StreamableHttpClientTransport::with_client(
                    ToolHttp(self.client.clone()),
                    config,
                );
                let this = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
                ClientConfig::new(ClientCapabilities::default(), this)
                    .serve(transport)
                    .await
                    .map_err(|error| ToolFailure::Unreachable(error.to_string()))
            })
            .await
    }
}

impl ToolPort for McpTools {
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolFailure> {
        let tools = self
            .service()
            .await?
            .list_all_tools()
            .await
            .map_err(|error| ToolFailure::Unreachable(error.to_string()))?;
        Ok(tools.into_iter().map(spec).collect())
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolFailure> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments.clone());
        let result = self.service().await?.call_tool(params).await;
        result.map(tool_answer).map_err(|error| failure(&error))
    }
}

fn failure(error: &ServiceError) -> ToolFailure {
    match error {
        ServiceError::TransportClosed => ToolFailure::Unreachable(error.to_string()),
        ServiceError::McpError(refusal) => ToolFailure::Call(refusal.message.to_string()),
        other => ToolFailure::Call(other.to_string()),
    }
}

fn spec(tool: Tool) -> ToolSpec {
    ToolSpec {
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned),
        parameters: Value::Object(
            std::sync::Arc::try_unwrap(tool.input_schema)
                .unwrap_or_else(|shared| (*shared).clone()),
        ),
    }
}

/// Moves the texts; annotations of text blocks are hints for people and are left out.
fn tool_answer(result: CallToolResult) -> ToolAnswer {
    let sub_calls = result.meta.map(|mut meta| take_sub_calls(&mut meta.0));
    ToolAnswer {
        result: ToolResult {
            blocks: result.content.into_iter().map(block).collect(),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or(false),
        },
        sub_calls: sub_calls.unwrap_or_default(),
    }
}

fn block(block: ContentBlock) -> Block {
    match block {
        ContentBlock::Text(text) => Block::Text(text.text),
        other => Block::Other(serde_json::to_value(other).unwrap_or(Value::Null)),
    }
}
