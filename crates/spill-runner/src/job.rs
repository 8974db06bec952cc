//! The job file of the built-in subject.

use serde_json::{Value, json};
use spill_scenario::Scenario;

/// Its name.
pub(crate) const FILE: &str = "job.json";

/// A step of `scenario` against the servers of the run that is known as `run_id`.
pub(crate) fn job(scenario: &Scenario, run_id: &str, llm_url: &str, tools_url: &str) -> Value {
    let mut job = json!({
        "stepId": scenario.name,
        "model": scenario.model.name,
        "system": scenario.system,
        "prompt": scenario.prompt,
        "llmUrl": llm_url,
        "mcpUrl": tools_url,
        "apiKey": run_id,
        "iterationLimit": scenario.limits.iteration_limit,
        "stepTimeoutMs": scenario.limits.step_timeout_ms,
    });
    if let Some(most) = scenario.limits.max_retries {
        job["maxRetries"] = most.into();
    }
    if let Some(base) = scenario.limits.retry_base_ms {
        job["retryBaseMs"] = base.into();
    }
    job
}
