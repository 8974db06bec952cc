//! One job with the real clients.

use std::time::Duration;

use reqwest::{Client, redirect::Policy};
use thiserror::Error;

use crate::{
    abort::AbortSignal,
    job::{JobError, StepJob},
    mcp::McpTools,
    openai::OpenAiChat,
    result::StepResult,
    retry::RetryPolicy,
    settings::SpillSettings,
    step::run_step,
};

/// How long connecting to a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the clients of a job cannot be made.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The job itself is impossible.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The model server's address is none.
    #[error("`{0}` is not an address (write one such as http://127.0.0.1:8080/v1)")]
    Address(String),
    /// The key holds characters that a header cannot.
    #[error("the API key cannot stand in a header (use visible ASCII)")]
    ApiKey,
    /// The HTTP client cannot be set up.
    #[error("failed to set up the HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// The HTTP client for both servers: pooled, no proxy, no redirects.
///
/// # Errors
///
/// [`ClientError::Http`] when it cannot be set up.
pub fn http_client() -> Result<Client, ClientError> {
    Ok(Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()?)
}

/// Runs one job against the servers it names and closes the connections.
///
/// # Errors
///
/// [`ClientError`] when the job is impossible; whatever happens to a step that has started is
/// part of its result.
pub async fn run_job(
    job: &StepJob,
    settings: impl Into<SpillSettings>,
    abort: &AbortSignal,
) -> Result<StepResult, ClientError> {
    job.check()?;
    let client = http_client()?;
    let policy = RetryPolicy {
        max_retries: job.max_retries,
        base: Duration::from_millis(job.retry_base_ms),
    };
    let model = OpenAiChat::new(client.clone(), &job.llm_url, &job.api_key, policy)?;
    let tools = McpTools::new(client, &job.mcp_url);
    let result = run_step(job, settings, &model, &tools, abort).await;
    tools.close().await;
    Ok(result)
}
