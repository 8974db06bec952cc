//! One transcript as the record that a replay keeps of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use spill_record::{
    CellRecord, CellTool, Class, RecordedUsage, ReplayFigures, SCHEMA, SessionRecord, ToolRecord,
    digest_parts,
};
use spill_tokens::TokenCounter;

use crate::counts::{Counts, counts};
use crate::model::{Standing, Transcript};
use crate::replay::{Cache, ModelInput, Outcome, Policy, ReadBack, Replaced, Replay};

/// Money for the input that is sent to one model, where there is a price for it.
pub type InputPrice = dyn Fn(Option<&str>, PricedInput) -> Option<f64> + Send + Sync;

/// Input tokens as a price table has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PricedInput {
    /// Not held by the prompt cache.
    pub uncached_tokens: u64,
    /// Read from it.
    pub cache_read_tokens: u64,
    /// Written to it, of providers whose transcripts record that apart; there, all that is not read is written.
    pub cache_write_tokens: u64,
}

/// What every transcript is put under.
pub struct ReplayPlan {
    /// Policies with thresholds and sizes of replacements.
    pub policies: Vec<Policy>,
    /// Read-back assumptions.
    pub read_backs: Vec<ReadBack>,
    /// The prompt cache.
    pub cache: Cache,
    /// The context window that contexts are held against.
    pub window_tokens: Option<u64>,
    /// The price table.
    pub price: Option<Box<InputPrice>>,
}

impl fmt::Debug for ReplayPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReplayPlan")
            .field("policies", &self.policies)
            .field("read_backs", &self.read_backs)
            .field("cache", &self.cache)
            .field("window_tokens", &self.window_tokens)
            .field("price", &self.price.is_some())
            .finish()
    }
}

/// The largest result below which work is small, and below which it is medium: those of the built-in recipes.
const SMALL_BELOW_BYTES: u64 = 32_768;
const MEDIUM_BELOW_BYTES: u64 = 131_072;

/// Replays one transcript under a plan.
#[must_use]
pub fn session(
    transcript: &Transcript,
    plan: &ReplayPlan,
    counter: &TokenCounter,
) -> SessionRecord {
    let replay = Replay::new(transcript, counter, plan.cache, plan.window_tokens);
    let found = counts(transcript);
    let sent = sent_results(&replay);
    let money = Money {
        price: plan.price.as_deref(),
        written_apart: found.usage.cache_write_tokens.is_some(),
    };
    let (mut cells, mut outcomes) = (Vec::new(), Vec::new());
    for policy in &plan.policies {
        let replaced = replay.under(policy);
        cells.push(cell(&replaced));
        for read_back in &plan.read_backs {
            outcomes.push(money.figures(&replaced.outcome(*read_back)));
        }
    }
    let models = transcript.calls.iter().filter_map(|c| c.model.as_ref());
    let models: BTreeSet<&String> = models.collect();
    let line = transcript.place.line;
    let place = transcript.place.to_string();
    let id = transcript.id.as_deref().unwrap_or_default();
    SessionRecord {
        schema: SCHEMA,
        session_id: digest_parts(&[&place, id]),
        file: transcript.place.file.to_string(),
        line,
        format: transcript.format.name().to_owned(),
        id: transcript.id.clone(),
        parent_id: transcript.parent.as_ref().map(|parent| parent.id.clone()),
        class: found.largest_result_bytes.map(class_of),
        models: models.into_iter().cloned().collect(),
        calls: found.calls,
        copied_calls: found.copied_calls,
        results: found.results,
        result_bytes: found.result_bytes,
        largest_result_bytes: found.largest_result_bytes,
        sent_results: sent.0,
        sent_result_bytes: sent.1,
        incomplete_results: found.incomplete_results,
        boundaries: transcript.boundaries.len() as u64,
        recorded: recorded(&replay, &found),
        as_recorded: money.figures(&replay.recorded()),
        tools: tools(&replay),
        cells,
        outcomes,
        not_recorded: transcript
            .missing
            .iter()
            .map(|m| m.name().to_owned())
            .collect(),
        problems: by_name(transcript),
    }
}

fn class_of(largest_result_bytes: u64) -> Class {
    match largest_result_bytes {
        ..SMALL_BELOW_BYTES => Class::Small,
        SMALL_BELOW_BYTES..MEDIUM_BELOW_BYTES => Class::Medium,
        MEDIUM_BELOW_BYTES.. => Class::Large,
    }
}

fn by_name(transcript: &Transcript) -> BTreeMap<String, u64> {
    let counts = transcript.problems.counts().iter();
    counts
        .map(|(kind, count)| (kind.name().to_owned(), *count))
        .collect()
}

/// Results that were sent at least once, and their bytes.
fn sent_results(replay: &Replay<'_>) -> (u64, u64) {
    let results = 0..replay.transcript.results.len();
    results
        .filter(|result| replay.sends(*result) > 0)
        .fold((0, 0), |(count, bytes), result| {
            (count + 1, bytes + replay.result_size(result).bytes)
        })
}

/// How a transcript's input is paid.
struct Money<'a> {
    price: Option<&'a InputPrice>,
    /// What is written to the cache is counted, and paid, apart.
    written_apart: bool,
}

impl Money<'_> {
    fn figures(&self, outcome: &Outcome) -> ReplayFigures {
        ReplayFigures {
            calls: outcome.calls,
            extra_calls: outcome.extra_calls,
            input_bytes: outcome.input.bytes,
            input_tokens: outcome.input.tokens,
            cached_input_bytes: outcome.cached.bytes,
            cached_input_tokens: outcome.cached.tokens,
            peak_context_tokens: outcome.peak.tokens,
            calls_over_window: outcome.calls_over_window,
            input_cost: self.price.and_then(|price| {
                let mut models = outcome.models.iter();
                models.try_fold(0.0, |sum, (model, input)| {
                    Some(sum + price(model.as_deref(), self.priced(*input))?)
                })
            }),
        }
    }

    fn priced(&self, input: ModelInput) -> PricedInput {
        let (uncached_tokens, cache_write_tokens) = if self.written_apart {
            (0, input.uncached_tokens)
        } else {
            (input.uncached_tokens, 0)
        };
        PricedInput {
            uncached_tokens,
            cache_read_tokens: input.cached_tokens,
            cache_write_tokens,
        }
    }
}

fn cell(replaced: &Replaced<'_, '_>) -> CellRecord {
    let sent = || replaced.replacements().iter().filter(|one| one.sends > 0);
    let tools = replaced.saved_by_tool().into_iter();
    CellRecord {
        replaced_results: sent().count() as u64,
        replaced_bytes: sent().map(|one| one.original.bytes).sum(),
        replacement_bytes: sent().map(|one| one.replacement.bytes).sum(),
        kept_results: replaced.kept(),
        used_results: sent().filter(|one| replaced.is_used(one)).count() as u64,
        tools: tools
            .map(
                |(tool, (replaced_results, saved_bytes, saved_tokens))| CellTool {
                    tool,
                    replaced_results,
                    saved_bytes,
                    saved_tokens,
                },
            )
            .collect(),
    }
}

fn tools(replay: &Replay<'_>) -> Vec<ToolRecord> {
    let mut tools: BTreeMap<Option<&String>, ToolRecord> = BTreeMap::new();
    for (index, result) in replay.transcript.results.iter().enumerate() {
        let size = replay.result_size(index);
        let sends = replay.sends(index);
        let tool = tools.entry(result.tool.as_ref()).or_default();
        tool.tool.clone_from(&result.tool);
        tool.results += 1;
        tool.result_bytes += size.bytes;
        tool.sent_bytes += size.bytes * sends;
        tool.sent_tokens += size.tokens * sends;
    }
    tools.into_values().collect()
}

/// The recorded tokens, and what is counted for the inputs of the calls that record theirs.
fn recorded(replay: &Replay<'_>, found: &Counts) -> RecordedUsage {
    let calls = replay.transcript.calls.iter();
    let counted = calls
        .filter(|call| call.standing == Standing::Made)
        .filter(|call| call.usage.is_some_and(|usage| usage.input_tokens.is_some()))
        .map(|call| replay.context(call).tokens)
        .reduce(|sum, tokens| sum + tokens);
    RecordedUsage {
        calls: found.calls_with_usage,
        input_tokens: found.usage.input_tokens,
        uncached_input_tokens: found.usage.uncached_input_tokens,
        cache_read_tokens: found.usage.cache_read_tokens,
        cache_write_tokens: found.usage.cache_write_tokens,
        output_tokens: found.usage.output_tokens,
        counted_input_tokens: counted,
    }
}
