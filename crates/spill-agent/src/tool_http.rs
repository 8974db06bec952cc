//! The HTTP backend of the MCP client: as the library's own, but a tool result is parsed once.
//!
//! The library finds out what an answer is by trying each kind of message on a buffered copy of
//! it, which costs several passes over a large result. The answer to a tool call is nearly
//! always a tool result, so that is tried first, straight from the body; whatever else comes
//! goes the library's way.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use rmcp::{
    model::{
        CallToolResult, ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage,
        ServerResult,
    },
    transport::streamable_http_client::{
        HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
        StreamableHttpPostResponse, StreamableHttpResponseLimits,
    },
};
use serde::Deserialize;
use sse_stream::{Sse, SseStream};

const SESSION_ID: &str = "mcp-session-id";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

/// The pooled client for one tool server.
#[derive(Clone, Debug)]
pub(crate) struct ToolHttp(pub(crate) Client);

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

#[derive(Deserialize)]
struct ToolAnswer {
    id: RequestId,
    result: CallToolResult,
}

impl StreamableHttpClient for ToolHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        if !is_tool_call(&message) {
            return self
                .0
                .post_message_with_response_limits(
                    uri,
                    message,
                    session_id,
                    auth_header,
                    custom_headers,
                    limits,
                )
                .await;
        }
        let in_session = session_id.is_some();
        let mut call = self
            .0
            .post(uri.as_ref())
            .header(ACCEPT, "text/event-stream, application/json");
        call = with_headers(call, session_id.as_deref(), auth_header, custom_headers);
        let response = call.json(&message).send().await?;
        read_answer(response, in_session, limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        self.0
            .delete_session(uri, session_id, auth_header, custom_headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.0
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers)
            .await
    }
}

fn is_tool_call(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::CallToolRequest(_))
    )
}

fn with_headers(
    mut call: RequestBuilder,
    session_id: Option<&str>,
    auth_header: Option<String>,
    custom_headers: Headers,
) -> RequestBuilder {
    for (name, value) in custom_headers {
        call = call.header(name, value);
    }
    if let Some(token) = auth_header {
        call = call.bearer_auth(token);
    }
    match session_id {
        Some(session_id) => call.header(SESSION_ID, session_id),
        None => call,
    }
}

async fn read_answer(
    response: Response,
    in_session: bool,
    limits: StreamableHttpResponseLimits,
) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let kind = text_header(response.headers(), CONTENT_TYPE);
    let session_id = text_header(response.headers(), HeaderName::from_static(SESSION_ID));
    let is_kind = |expected: &str| {
        let essence = kind.as_deref().and_then(|kind| kind.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case(expected))
    };
    if is_kind(JSON) && status != StatusCode::TOO_MANY_REQUESTS {
        let body = read_body(response, limits.max_json_response_size).await?;
        let message = parse_answer(&body).map_err(|error| {
            StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {error}").into())
        })?;
        return Ok(StreamableHttpPostResponse::Json(message, session_id));
    }
    if !status.is_success() {
        let retry_after = text_header(response.headers(), RETRY_AFTER);
        return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
    }
    if is_kind(EVENT_STREAM) {
        let events = SseStream::from_bytes_stream(response.bytes_stream()).boxed();
        return Ok(StreamableHttpPostResponse::Sse(events, session_id));
    }
    Err(StreamableHttpError::UnexpectedContentType(kind))
}

fn text_header(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn parse_answer(body: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    match serde_json::from_slice::<ToolAnswer>(body) {
        Ok(ToolAnswer { id, result }) => Ok(ServerJsonRpcMessage::response(
            ServerResult::CallToolResult(result),
            id,
        )),
        Err(_other_message) => serde_json::from_slice(body),
    }
}

async fn read_body(mut response: Response, max_size: usize) -> Result<Vec<u8>, Failure> {
    let announced = response.content_length().unwrap_or(0);
    let room = usize::try_from(announced).unwrap_or(usize::MAX);
    if room > max_size {
        return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
    }
    let mut body = Vec::with_capacity(room);
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > max_size {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
