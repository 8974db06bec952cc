//! Many executions of one step in one process, at once.

use std::num::NonZeroU32;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use tracing::Instrument as _;

use crate::{
    abort::AbortSignal,
    job::StepJob,
    mcp::McpTools,
    openai::OpenAiChat,
    result::StepResult,
    retry::RetryPolicy,
    run_job::{ClientError, http_client},
    settings::{SpillSettings, StoreSettings},
    step::run_step,
};

/// What a job writes in `llmUrl`, `mcpUrl` and `apiKey` in the place of the execution's number.
pub const EXECUTION_PLACEHOLDER: &str = "{execution}";

/// Runs `count` executions of one step at the same time, with no bound on how many.
///
/// Each has its own session of the policy and its stores, its own conversation with the model and its
/// own MCP session; they share the connections' pool. `ended` gets the number of each, from 1, and its
/// result as soon as it ends, so that nothing of it has to be kept.
///
/// Under the workflow-step policy equal calls of different executions have equal references; each
/// reads its own results by them. A policy over a store draws its names: with a store's seed the
/// executions draw equal ones in memory, and different ones in a directory that they share.
///
/// # Errors
///
/// [`ClientError`] when the job is impossible; what happens to an execution that has started is
/// part of its result.
pub async fn run_executions(
    job: &StepJob,
    settings: impl Into<SpillSettings>,
    count: NonZeroU32,
    abort: &AbortSignal,
    mut ended: impl FnMut(u32, StepResult),
) -> Result<(), ClientError> {
    job.check()?;
    let client = http_client()?;
    let settings = settings.into();
    let policy = RetryPolicy {
        max_retries: job.max_retries,
        base: Duration::from_millis(job.retry_base_ms),
    };
    let mut prepared = Vec::new();
    for number in 1..=count.get() {
        let job = job.of_execution(number);
        job.check()?;
        let model = OpenAiChat::new(client.clone(), &job.llm_url, &job.api_key, policy)?;
        let tools = McpTools::new(client.clone(), &job.mcp_url);
        prepared.push((number, job, model, tools));
    }
    let mut running: FuturesUnordered<_> = prepared
        .into_iter()
        .map(|(number, job, model, tools)| {
            let settings = settings.of_execution(number);
            // Whatever the level of the log, a line that is written names the execution.
            let span = tracing::error_span!("execution", number);
            let run = async move {
                let result = run_step(&job, settings, &model, &tools, abort).await;
                tools.close().await;
                (number, result)
            };
            run.instrument(span)
        })
        .collect();
    while let Some((number, result)) = running.next().await {
        ended(number, result);
    }
    Ok(())
}

impl StepJob {
    /// The job with the number of an execution in the place of [`EXECUTION_PLACEHOLDER`].
    #[must_use]
    pub fn of_execution(&self, number: u32) -> Self {
        let number = number.to_string();
        let fill = |text: &str| text.replace(EXECUTION_PLACEHOLDER, &number);
        Self {
            llm_url: fill(&self.llm_url),
            mcp_url: fill(&self.mcp_url),
            api_key: crate::job::ApiKey::new(fill(self.api_key.expose())),
            ..self.clone()
        }
    }
}

impl SpillSettings {
    /// Files of executions that share a directory cannot have equal names.
    fn of_execution(&self, number: u32) -> Self {
        /// Odd, so that no two numbers give the same seed.
        const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut own = self.clone();
        match own.store {
            StoreSettings::Memory => {}
            StoreSettings::File(_) => {
                let offset = STRIDE.wrapping_mul(u64::from(number - 1));
                own.seed = own.seed.map(|seed| seed.wrapping_add(offset));
            }
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_job_names_the_execution_where_it_says_so() {
        let text = r#"{"stepId":"s","model":"m","prompt":"{execution}","apiKey":"k-{execution}",
            "llmUrl":"http://127.0.0.1:1/run/{execution}/v1","mcpUrl":"http://127.0.0.1:2/mcp"}"#;
        let job = StepJob::from_json(text).expect("a job").of_execution(7);
        assert_eq!(job.llm_url, "http://127.0.0.1:1/run/7/v1");
        assert_eq!(job.mcp_url, "http://127.0.0.1:2/mcp");
        assert_eq!(job.api_key.expose(), "k-7");
        assert_eq!(job.prompt, "{execution}", "the prompt is the user's own");
    }

    #[test]
    fn executions_share_a_seed_in_memory_and_none_in_a_directory() {
        let check = |store: StoreSettings, seed: Option<u64>, different: usize| {
            let mut settings = SpillSettings::from(spill_engine::Settings::DEFAULT);
            (settings.store, settings.seed) = (store, seed);
            let seeds: BTreeSet<Option<u64>> = (1..=1000)
                .map(|number| settings.of_execution(number).seed)
                .collect();
            assert_eq!(seeds.len(), different);
            assert_eq!(settings.of_execution(1).seed, seed);
        };
        check(StoreSettings::Memory, Some(u64::MAX), 1);
        check(StoreSettings::File("/s".into()), Some(u64::MAX), 1000);
        check(StoreSettings::File("/s".into()), None, 1);
    }
}
