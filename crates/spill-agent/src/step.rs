//! The loop: ask the model, run the tools it calls, send the results back.

use std::{collections::VecDeque, time::Duration};

use futures::future::join_all;
use spill_engine::CallId;
use tokio::time::Instant;

use crate::{
    abort::AbortSignal,
    calls::{Done, Pending, Settled, check_calls, plan},
    job::StepJob,
    log_copies::LogCopies,
    offer::Offer,
    ports::{ModelFailure, ModelPort, ModelReply, ToolFailure, ToolPort},
    read_tools::ReadTool,
    request::ChatRequest,
    result::{EndReason, StepResult, ToolCallRecord, body_bytes},
    session::Session,
    settings::SpillSettings,
    tally::TokenTally,
    turn::Turn,
    turn_bound::bind,
};

/// Runs one step and says what it did. Never fails: every ending is a result.
///
/// Whatever ends it (answer, failure, abort, timeout, or this future being dropped), the step's
/// stored results are released.
pub async fn run_step<M: ModelPort, T: ToolPort>(
    job: &StepJob,
    settings: impl Into<SpillSettings>,
    model: &M,
    tools: &T,
    abort: &AbortSignal,
) -> StepResult {
    let session = Session::open(settings.into(), job.step_id.clone());
    run_step_in(job, session, model, tools, abort).await
}

/// Like [`run_step`], with a session that the caller made and may watch.
pub async fn run_step_in<M: ModelPort, T: ToolPort>(
    job: &StepJob,
    session: impl Into<Session>,
    model: &M,
    tools: &T,
    abort: &AbortSignal,
) -> StepResult {
    let started = Instant::now();
    let session = session.into();
    let store = ReleaseOnDrop(session.clone());
    let mut step = Step {
        job,
        model,
        tools,
        request: ChatRequest::new(&job.model, &job.system, &job.prompt),
        iterations: 0,
        answered: 0,
        tokens: TokenTally::default(),
        records: Vec::new(),
        pending: VecDeque::new(),
        copies: LogCopies::new(session.clone()),
        session,
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
    step.session.release_in_time().await;
    drop(store);
    step.finish(end, started.elapsed())
}

/// The store never outlives the step, not even when its future is dropped half way.
struct ReleaseOnDrop(Session);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Everything that a step has done so far; survives the loop when that is cut off.
struct Step<'a, M, T> {
    job: &'a StepJob,
    session: Session,
    model: &'a M,
    tools: &'a T,
    request: ChatRequest,
    iterations: u32,
    /// Model calls that were answered.
    answered: u32,
    tokens: TokenTally,
    records: Vec<ToolCallRecord>,
    /// The calls of the current iteration until all of them are back.
    pending: VecDeque<Pending>,
    /// What the record still waits for.
    copies: LogCopies,
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
    /// Runs the step to its end. What the record waits for is part of it, so that timeout and abort
    /// apply to that too.
    async fn drive(&mut self) -> End {
        self.session.sweep().await;
        let end = self.iterate().await;
        self.copies.finish(&mut self.records).await;
        end
    }

    async fn iterate(&mut self) -> End {
        let offer = match self.tools.list().await {
            Ok(listed) => Offer::new(
                &listed,
                self.job.allowed_tools.as_deref(),
                &self.job.excluded_tools,
            ),
            Err(failure) => return End::failed(EndReason::ToolError, failure),
        };
        self.request.set_tail(offer.tail());
        let mut read_tools = self.session.read_tools(&|name| offer.knows(name));
        read_tools.retain(|tool| !self.job.excluded_tools.contains(&tool.name));
        let mut offered: &[ReadTool] = &[];
        while self.iterations < self.job.iteration_limit {
            if offered.is_empty() && !read_tools.is_empty() && self.session.offers_read() {
                offered = &read_tools;
                self.request.set_tail(offer.tail_with(offered));
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
            if let Err(failure) = self.run_calls(&reply, &offer, offered).await {
                return End::failed(EndReason::ToolError, failure);
            }
        }
        tracing::warn!(iterations = self.iterations, "Step reached max iterations");
        End::failed(
            EndReason::IterationLimit,
            format!("no answer within {} iterations", self.job.iteration_limit),
        )
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
        offered: &[ReadTool],
    ) -> Result<(), ToolFailure> {
        self.pending = reply
            .tool_calls
            .iter()
            .zip(0..)
            .map(|(call, index)| {
                let id = CallId {
                    iteration: self.iterations,
                    index,
                };
                plan(id, call, offer, offered)
            })
            .collect();
        let (tools, session) = (self.tools, &self.session);
        let running = self.pending.iter_mut();
        join_all(running.map(|pending| pending.run(tools, session))).await;
        let lost = self.pending.iter().find_map(Pending::lost);
        let mut settled = self.settle_turn().await;
        if let Some(failure) = lost {
            return Err(failure);
        }
        if let Some(bound) = self.session.turn_bytes() {
            bind(&mut settled, bound, &self.session).await;
        }
        let mut turn = Turn::new(reply.content.as_deref(), &reply.tool_calls);
        let text_bytes = settled.iter().map(|one| one.prompt.len()).sum();
        turn.reserve(text_bytes, settled.len());
        for (call, one) in reply.tool_calls.iter().zip(&settled) {
            turn.result(&call.id, &one.prompt, one.is_error);
        }
        self.request.append(turn.into_bytes());
        Ok(())
    }

    /// Records the calls that are back, in call order, and drops those that are not.
    async fn settle_turn(&mut self) -> Vec<Settled> {
        let mut settled = Vec::with_capacity(self.pending.len());
        while let Some(pending) = self.pending.front_mut() {
            if self.session.waits_for_files() {
                pending.work_out(&self.session).await;
            }
            if let Some(done) = self.settle_next() {
                self.records.push(done.record);
                settled.push(done.settled);
                self.copies.order(done.copies).await;
            }
        }
        settled
    }

    fn settle_next(&mut self) -> Option<Done> {
        self.pending.pop_front()?.settle(&self.session)
    }

    fn finish(mut self, end: End, elapsed: Duration) -> StepResult {
        // Calls that came back before the step was cut off keep their place in the record; the
        // store is released by now, so none of them is counted as stored.
        while !self.pending.is_empty() {
            let done = self.settle_next();
            self.records.extend(done.map(|done| done.record));
        }
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
            spill: self.session.figures(),
            duration_ms: elapsed.as_secs_f64() * 1000.0,
            settings: self.session.settings(),
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
