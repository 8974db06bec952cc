//! The loop: ask the model, run the tools it calls, send the results back.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use spill_engine::{BudgetWarning, CallId, Observer, Settings, StepSpill};
use tokio::time::Instant;

use crate::{
    abort::AbortSignal,
    calls::{Pending, Settled, check_calls, plan, settle},
    job::StepJob,
    offer::{Offer, ReadTool},
    ports::{ModelFailure, ModelPort, ModelReply, ToolFailure, ToolPort},
    request::ChatRequest,
    result::{EndReason, StepResult, ToolCallRecord, body_bytes},
    tally::TokenTally,
    turn::Turn,
};

/// Runs one step and says what it did. Never fails: every ending is a result.
///
/// Whatever ends it (answer, failure, abort, timeout, or this future being dropped), the step's
/// stored results are released.
pub async fn run_step<M: ModelPort, T: ToolPort>(
    job: &StepJob,
    settings: Settings,
    model: &M,
    tools: &T,
    abort: &AbortSignal,
) -> StepResult {
    let spill = StepSpill::new(settings, job.step_id.clone(), Arc::new(SpillLog));
    run_step_in(job, Arc::new(spill), model, tools, abort).await
}

/// Like [`run_step`], with a store that the caller made and may watch.
pub async fn run_step_in<M: ModelPort, T: ToolPort>(
    job: &StepJob,
    spill: Arc<StepSpill>,
    model: &M,
    tools: &T,
    abort: &AbortSignal,
) -> StepResult {
    let started = Instant::now();
    let store = ReleaseOnDrop(Arc::clone(&spill));
    let mut step = Step {
        job,
        spill,
        model,
        tools,
        request: ChatRequest::new(&job.model, &job.system, &job.prompt),
        iterations: 0,
        answered: 0,
        tokens: TokenTally::default(),
        records: Vec::new(),
        pending: Vec::new(),
    };
    let end = tokio::select! {
        biased;
        reason = abort.aborted() => End {
            abort_reason: Some(reason),
            ..End::from(EndReason::Aborted)
        },
        () = tokio::time::sleep(Duration::from_millis(job.step_timeout_ms)) => End::failed(
            EndReason::Timeout,
            format!("the step took longer than {} ms", job.step_timeout_ms),
        ),
        end = step.drive() => end,
    };
    drop(store);
    step.finish(end, started.elapsed())
}

/// The store never outlives the step, not even when its future is dropped half way.
struct ReleaseOnDrop(Arc<StepSpill>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Logs the engine's one warning about its budget; the loop logs the rest.
struct SpillLog;

impl Observer for SpillLog {
    fn over_budget(&self, warning: &BudgetWarning) {
        tracing::warn!(
            tool = %warning.tool,
            size_bytes = warning.size_bytes,
            stored_bytes = warning.stored_bytes,
            budget_bytes = warning.budget_bytes,
            "spill budget has no room, the result stays inline"
        );
    }
}

/// Everything that a step has done so far; survives the loop when that is cut off.
struct Step<'a, M, T> {
    job: &'a StepJob,
    spill: Arc<StepSpill>,
    model: &'a M,
    tools: &'a T,
    request: ChatRequest,
    iterations: u32,
    /// Model calls that were answered.
    answered: u32,
    tokens: TokenTally,
    records: Vec<ToolCallRecord>,
    /// The calls of the current iteration until all of them are back.
    pending: Vec<Pending>,
}

/// How the loop ended.
struct End {
    reason: EndReason,
    answer: String,
    abort_reason: Option<String>,
    error: Option<String>,
}

impl From<EndReason> for End {
    fn from(reason: EndReason) -> Self {
        Self {
            reason,
            answer: String::new(),
            abort_reason: None,
            error: None,
        }
    }
}

impl End {
    fn failed(reason: EndReason, error: impl ToString) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::from(reason)
        }
    }

    fn answered(content: Option<String>) -> Self {
        let answer = content.unwrap_or_default();
        if answer.trim().is_empty() {
            return Self::failed(EndReason::EmptyAnswer, "the model answered nothing");
        }
        Self {
            answer,
            ..Self::from(EndReason::Answered)
        }
    }
}

impl From<ModelFailure> for End {
    fn from(failure: ModelFailure) -> Self {
        let reason = match &failure {
            ModelFailure::ContextWindow { .. } => EndReason::ContextWindow,
            ModelFailure::Refused { .. }
            | ModelFailure::Exhausted { .. }
            | ModelFailure::AskedTooLongWait { .. }
            | ModelFailure::Malformed(_) => EndReason::ModelError,
        };
        Self::failed(reason, failure)
    }
}

impl<M: ModelPort, T: ToolPort> Step<'_, M, T> {
    async fn drive(&mut self) -> End {
        let offer = match self.tools.list().await {
            Ok(listed) => Offer::new(
                &listed,
                self.job.allowed_tools.as_deref(),
                &self.job.excluded_tools,
            ),
            Err(failure) => return End::failed(EndReason::ToolError, failure),
        };
        self.request.set_tail(offer.tail());
        let mut read_tool_offered = false;
        while self.iterations < self.job.iteration_limit {
            if !read_tool_offered && self.may_offer_read_tool(&offer) {
                self.request.set_tail(offer.tail_with_read_tool());
                read_tool_offered = true;
            }
            let reply = match self.ask().await {
                Ok(reply) => reply,
                Err(failure) => return failure.into(),
            };
            if reply.tool_calls.is_empty() {
                return End::answered(reply.content);
            }
            if let Err(failure) = check_calls(&reply.tool_calls) {
                return failure.into();
            }
            if let Err(failure) = self.run_calls(&reply, &offer, read_tool_offered).await {
                return End::failed(EndReason::ToolError, failure);
            }
        }
        tracing::warn!(iterations = self.iterations, "Step reached max iterations");
        End::failed(
            EndReason::IterationLimit,
            format!("no answer within {} iterations", self.job.iteration_limit),
        )
    }

    fn may_offer_read_tool(&self, offer: &Offer) -> bool {
        match offer.read_tool() {
            ReadTool::AfterFirstStored => self.spill.offers_read(),
            ReadTool::Excluded => false,
        }
    }

    async fn ask(&mut self) -> Result<ModelReply, ModelFailure> {
        self.iterations += 1;
        tracing::info!(
            iteration = self.iterations,
            request_bytes = self.request.body_bytes(),
            "LLM call started"
        );
        let reply = self.model.complete(&self.request).await?;
        self.answered += 1;
        self.tokens.add(reply.usage);
        tracing::info!(
            iteration = self.iterations,
            prompt_tokens = reply.usage.map(|usage| usage.prompt_tokens),
            cached_tokens = reply.usage.map(|usage| usage.cached_tokens),
            completion_tokens = reply.usage.map(|usage| usage.completion_tokens),
            tool_calls = reply.tool_calls.len(),
            "LLM response received"
        );
        Ok(reply)
    }

    /// Runs the calls of one iteration side by side and appends their results in call order.
    async fn run_calls(
        &mut self,
        reply: &ModelReply,
        offer: &Offer,
        read_tool_offered: bool,
    ) -> Result<(), ToolFailure> {
        self.pending = reply
            .tool_calls
            .iter()
            .map(|call| plan(call, offer, read_tool_offered))
            .collect();
        let tools = self.tools;
        join_all(self.pending.iter_mut().map(|pending| pending.run(tools))).await;
        let (settled, lost) = self.settle_pending();
        if let Some(failure) = lost {
            return Err(failure);
        }
        let mut turn = Turn::new(reply.content.as_deref(), &reply.tool_calls);
        let text_bytes = settled.iter().map(|one| one.prompt.as_str().len()).sum();
        turn.reserve(text_bytes, settled.len());
        for (call, one) in reply.tool_calls.iter().zip(&settled) {
            turn.result(&call.id, one.prompt.as_str(), one.is_error);
        }
        self.request.append(turn.into_bytes());
        Ok(())
    }

    /// Records the calls that are back, in call order, and drops those that are not.
    fn settle_pending(&mut self) -> (Vec<Settled>, Option<ToolFailure>) {
        let mut settled = Vec::with_capacity(self.pending.len());
        let mut lost = None;
        for (pending, index) in self.pending.drain(..).zip(0..) {
            lost = lost.or_else(|| pending.lost());
            let call = CallId {
                iteration: self.iterations,
                index,
            };
            if let Some((record, one)) = settle(pending, call, &self.spill) {
                self.records.push(record);
                settled.push(one);
            }
        }
        (settled, lost)
    }

    fn finish(mut self, end: End, elapsed: Duration) -> StepResult {
        // Calls that came back before the step was cut off keep their place in the record; the
        // store is released by now, so none of them is counted as stored.
        self.settle_pending();
        let result = StepResult {
            step_id: self.job.step_id.clone(),
            status: end.reason.status(),
            end_reason: end.reason,
            abort_reason: end.abort_reason,
            iterations: self.iterations,
            hit_iteration_limit: end.reason == EndReason::IterationLimit,
            body_bytes: body_bytes(&self.records, &end.answer),
            final_answer: end.answer,
            tools_called: self.records,
            tokens_used: self.tokens.total(),
            llm_calls: self.answered,
            llm_retries: self.model.retries(),
            spill: self.spill.usage().into(),
            duration_ms: elapsed.as_secs_f64() * 1000.0,
            settings: self.spill.settings().into(),
            error: end.error,
        };
        tracing::info!(
            status = ?result.status,
            end_reason = ?result.end_reason,
            iterations = result.iterations,
            tool_calls = result.tools_called.len(),
            stored = result.spill.persisted,
            reads = result.spill.reads,
            "Step ended"
        );
        result
    }
}
