//! The job of one step, as its file spells it.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error as _};
use spill_engine::StepId;
use thiserror::Error;

/// Iterations that a step may take when its job names no limit.
const DEFAULT_ITERATION_LIMIT: u32 = 25;
/// How long a step may take when its job names no timeout.
const DEFAULT_STEP_TIMEOUT_MS: u64 = 600_000;
/// How often one model call is repeated when its job names no bound.
const DEFAULT_MAX_RETRIES: u32 = 4;
/// The first delay before a repeated model call when its job names none.
const DEFAULT_RETRY_BASE_MS: u64 = 250;

/// Everything one step needs to know, apart from its spill settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepJob {
    /// Names the step; stands in its references.
    #[serde(deserialize_with = "step_id")]
    pub step_id: StepId,
    /// The model's name, sent with every request.
    pub model: String,
    /// The system message; an empty one is not sent.
    #[serde(default)]
    pub system: String,
    /// The user message that the step answers.
    pub prompt: String,
    /// Base address of the model server, ending in `/v1`.
    pub llm_url: String,
    /// Address of the tool server's MCP endpoint.
    pub mcp_url: String,
    /// Bearer key for the model server; an empty one is not sent.
    #[serde(default)]
    pub api_key: ApiKey,
    /// The only tools to offer; absent or null offers all.
    #[serde(default)]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools never to offer; wins over `allowed_tools`.
    #[serde(default)]
    pub excluded_tools: Vec<String>,
    /// Iterations (one model call and the tool calls it asks for) that the step may take.
    #[serde(default = "default_iteration_limit")]
    pub iteration_limit: u32,
    /// How long the whole step may take, in milliseconds.
    #[serde(default = "default_step_timeout_ms")]
    pub step_timeout_ms: u64,
    /// How often one model call may be repeated after a passing failure.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// The delay before the first repetition, in milliseconds; it doubles each time.
    #[serde(default = "default_retry_base_ms")]
    pub retry_base_ms: u64,
}

fn step_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StepId, D::Error> {
    StepId::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn default_iteration_limit() -> u32 {
    DEFAULT_ITERATION_LIMIT
}

fn default_step_timeout_ms() -> u64 {
    DEFAULT_STEP_TIMEOUT_MS
}

fn default_max_retries() -> u32 {
    DEFAULT_MAX_RETRIES
}

fn default_retry_base_ms() -> u64 {
    DEFAULT_RETRY_BASE_MS
}

/// A key that no debug output shows.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key as it is.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for the request header only.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_empty() {
            "ApiKey(none)"
        } else {
            "ApiKey(set)"
        })
    }
}

/// Why a job cannot be run.
#[derive(Debug, Error)]
pub enum JobError {
    /// The text is not a job: the message names line and column.
    #[error("job is not valid: {0}")]
    Shape(#[from] serde_json::Error),
    /// A field holds what no step can work with.
    #[error("job field `{field}` is {found}: {way_out}")]
    Field {
        /// The field as the file spells it.
        field: &'static str,
        /// What stands there.
        found: String,
        /// What to write instead.
        way_out: &'static str,
    },
}

impl StepJob {
    /// Reads and checks a job file's text.
    ///
    /// # Errors
    ///
    /// [`JobError::Shape`] when it is not JSON of a job (unknown keys included),
    /// [`JobError::Field`] when a value is impossible.
    pub fn from_json(text: &str) -> Result<Self, JobError> {
        let job: Self = serde_json::from_str(text)?;
        job.check()?;
        Ok(job)
    }

    /// Checks the values of a job.
    ///
    /// # Errors
    ///
    /// [`JobError::Field`] for the first impossible value.
    pub fn check(&self) -> Result<(), JobError> {
        non_empty("model", &self.model)?;
        non_empty("prompt", &self.prompt)?;
        address("llmUrl", &self.llm_url)?;
        address("mcpUrl", &self.mcp_url)?;
        positive("iterationLimit", u64::from(self.iteration_limit))?;
        positive("stepTimeoutMs", self.step_timeout_ms)
    }
}

fn non_empty(field: &'static str, value: &str) -> Result<(), JobError> {
    if value.is_empty() {
        return Err(JobError::Field {
            field,
            found: "empty".to_owned(),
            way_out: "write a text",
        });
    }
    Ok(())
}

fn positive(field: &'static str, value: u64) -> Result<(), JobError> {
    if value == 0 {
        return Err(JobError::Field {
            field,
            found: "0".to_owned(),
            way_out: "write at least 1, or leave the field out for the default",
        });
    }
    Ok(())
}

fn address(field: &'static str, value: &str) -> Result<(), JobError> {
    let url = reqwest::Url::parse(value).ok();
    if url.is_none_or(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host()) {
        return Err(JobError::Field {
            field,
            found: format!("{value:?}"),
            way_out: "write an address such as http://127.0.0.1:8080/v1",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn minimal() -> Value {
        json!({
            "stepId": "s1", "model": "m", "prompt": "p",
            "llmUrl": "http://127.0.0.1:1/v1", "mcpUrl": "http://127.0.0.1:2/mcp",
        })
    }

    fn check_refused(change: &Value, message: &str) {
        let mut job = minimal();
        for (key, value) in change.as_object().expect("an object of changes") {
            job[key] = value.clone();
        }
        let error = StepJob::from_json(&job.to_string()).expect_err("the job is impossible");
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn a_minimal_job_takes_the_defaults() {
        let job = StepJob::from_json(&minimal().to_string()).expect("a job");
        assert_eq!(job.iteration_limit, DEFAULT_ITERATION_LIMIT);
        assert_eq!(job.step_timeout_ms, DEFAULT_STEP_TIMEOUT_MS);
        assert_eq!(job.max_retries, DEFAULT_MAX_RETRIES);
        assert_eq!(job.retry_base_ms, DEFAULT_RETRY_BASE_MS);
        assert_eq!(job.allowed_tools, None);
        assert!(job.excluded_tools.is_empty());
    }

    #[test]
    fn impossible_values_name_the_field_and_the_way_out() {
        check_refused(
            &json!({"model": ""}),
            "job field `model` is empty: write a text",
        );
        check_refused(
            &json!({"prompt": ""}),
            "job field `prompt` is empty: write a text",
        );
        check_refused(
            &json!({"iterationLimit": 0}),
            "job field `iterationLimit` is 0: write at least 1, or leave the field out for the default",
        );
        check_refused(
            &json!({"stepTimeoutMs": 0}),
            "job field `stepTimeoutMs` is 0: write at least 1, or leave the field out for the default",
        );
        check_refused(
            &json!({"llmUrl": "127.0.0.1:1"}),
            "job field `llmUrl` is \"127.0.0.1:1\": write an address such as http://127.0.0.1:8080/v1",
        );
        check_refused(
            &json!({"mcpUrl": "file:///x"}),
            "job field `mcpUrl` is \"file:///x\": write an address such as http://127.0.0.1:8080/v1",
        );
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let mut job = minimal();
        job["promt"] = json!("x");
        let error = StepJob::from_json(&job.to_string()).expect_err("a typo");
        let message = error.to_string();
        assert!(message.contains("unknown field `promt`"), "{message}");
        assert!(message.contains("line 1 column"), "{message}");
    }

    #[test]
    fn a_step_id_is_one_segment() {
        let mut job = minimal();
        job["stepId"] = json!("a/b");
        let error = StepJob::from_json(&job.to_string()).expect_err("a slash");
        let message = error.to_string();
        assert!(message.contains("step id \"a/b\""), "{message}");
    }

    /// Known fault 127: promptfoo/promptfoo #8805.
    #[test]
    fn no_debug_output_shows_the_key() {
        assert_eq!(format!("{:?}", ApiKey::new("secret")), "ApiKey(set)");
        assert_eq!(format!("{:?}", ApiKey::default()), "ApiKey(none)");
    }
}
