use std::collections::BTreeMap;

use crate::replay::session::{CellRecord, RecordedUsage, ReplayFigures, SessionRecord};
use crate::run::Class;

/// What one policy does to the results of many transcripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellSums {
    /// As in a session's record.
    pub replaced_results: u64,
    /// As in a session's record.
    pub replaced_bytes: u64,
    /// As in a session's record.
    pub replacement_bytes: u64,
    /// As in a session's record.
    pub kept_results: u64,
    /// As in a session's record.
    pub used_results: u64,
    /// Transcripts with a replaced result.
    pub sessions: u64,
}

/// A tool's results in many transcripts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSums {
    /// Its results.
    pub results: u64,
    /// Their bytes, each once.
    pub result_bytes: u64,
    /// Their bytes in all inputs.
    pub sent_bytes: u64,
    /// Their tokens in all inputs.
    pub sent_tokens: u64,
    /// For each cell: replaced results, and the bytes and tokens that replacements take off, before anything is read back.
    pub cells: Vec<(u64, i64, i64)>,
}

/// The sums of sessions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplaySums {
    /// Transcripts.
    pub sessions: u64,
    /// Transcripts by format.
    pub formats: BTreeMap<String, u64>,
    /// Transcripts by what they do not hold.
    pub not_recorded: BTreeMap<String, u64>,
    /// Transcripts whose inputs have no price.
    pub unpriced_sessions: u64,
    /// Transcripts with results that were cut before they were recorded.
    pub incomplete_sessions: u64,
    /// LLM calls copied from other transcripts.
    pub copied_calls: u64,
    /// Tool results.
    pub results: u64,
    /// Their bytes, each once.
    pub result_bytes: u64,
    /// Results that were sent.
    pub sent_results: u64,
    /// Their bytes, each once.
    pub sent_result_bytes: u64,
    /// Results that were cut before they were recorded.
    pub incomplete_results: u64,
    /// Tokens as recorded.
    pub recorded: RecordedUsage,
    /// All inputs as recorded.
    pub as_recorded: ReplayFigures,
    /// One for each cell.
    pub cells: Vec<CellSums>,
    /// One for each cell and read-back assumption.
    pub outcomes: Vec<ReplayFigures>,
    /// By tool.
    pub tools: BTreeMap<Option<String>, ToolSums>,
}

/// The sums of all sessions, and of those of each class of work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayTotals {
    /// All of them.
    pub all: ReplaySums,
    /// By class; sessions without results have none.
    pub classes: BTreeMap<Option<Class>, ReplaySums>,
}

impl ReplayTotals {
    /// Adds a session. All sessions of the totals are of one replay.
    pub fn add(&mut self, session: &SessionRecord) {
        self.all.add(session);
        self.classes.entry(session.class).or_default().add(session);
    }
}

impl ReplaySums {
    /// Adds a session. All sessions of a sum are of one replay.
    pub fn add(&mut self, session: &SessionRecord) {
        self.sessions += 1;
        *self.formats.entry(session.format.clone()).or_default() += 1;
        for name in &session.not_recorded {
            *self.not_recorded.entry(name.clone()).or_default() += 1;
        }
        self.unpriced_sessions += u64::from(session.as_recorded.input_cost.is_none());
        self.incomplete_sessions += u64::from(session.incomplete_results > 0);
        self.copied_calls += session.copied_calls;
        self.results += session.results;
        self.result_bytes += session.result_bytes;
        self.sent_results += session.sent_results;
        self.sent_result_bytes += session.sent_result_bytes;
        self.incomplete_results += session.incomplete_results;
        add_usage(&mut self.recorded, &session.recorded);
        add_figures(&mut self.as_recorded, &session.as_recorded);
        self.cells.resize(session.cells.len(), CellSums::default());
        for (sum, cell) in self.cells.iter_mut().zip(&session.cells) {
            sum.add(cell);
        }
        let outcomes = session.outcomes.len();
        self.outcomes.resize(outcomes, ReplayFigures::default());
        for (sum, figures) in self.outcomes.iter_mut().zip(&session.outcomes) {
            add_figures(sum, figures);
        }
        self.add_tools(session);
    }

    fn add_tools(&mut self, session: &SessionRecord) {
        for tool in &session.tools {
            let sum = self.tools.entry(tool.tool.clone()).or_default();
            sum.results += tool.results;
            sum.result_bytes += tool.result_bytes;
            sum.sent_bytes += tool.sent_bytes;
            sum.sent_tokens += tool.sent_tokens;
        }
        for (index, cell) in session.cells.iter().enumerate() {
            for tool in &cell.tools {
                let sum = self.tools.entry(tool.tool.clone()).or_default();
                sum.cells.resize(session.cells.len(), (0, 0, 0));
                let (replaced, bytes, tokens) = &mut sum.cells[index];
                *replaced += tool.replaced_results;
                *bytes += tool.saved_bytes;
                *tokens += tool.saved_tokens;
            }
        }
    }
}

impl CellSums {
    fn add(&mut self, cell: &CellRecord) {
        self.replaced_results += cell.replaced_results;
        self.replaced_bytes += cell.replaced_bytes;
        self.replacement_bytes += cell.replacement_bytes;
        self.kept_results += cell.kept_results;
        self.used_results += cell.used_results;
        self.sessions += u64::from(cell.replaced_results > 0);
    }
}

/// Peaks are not added: the larger one counts.
fn add_figures(sum: &mut ReplayFigures, more: &ReplayFigures) {
    sum.calls += more.calls;
    sum.extra_calls += more.extra_calls;
    sum.input_bytes += more.input_bytes;
    sum.input_tokens += more.input_tokens;
    sum.cached_input_bytes += more.cached_input_bytes;
    sum.cached_input_tokens += more.cached_input_tokens;
    sum.peak_context_tokens = sum.peak_context_tokens.max(more.peak_context_tokens);
    add(&mut sum.calls_over_window, more.calls_over_window);
    if let Some(cost) = more.input_cost {
        sum.input_cost = Some(sum.input_cost.unwrap_or(0.0) + cost);
    }
}

fn add_usage(sum: &mut RecordedUsage, more: &RecordedUsage) {
    sum.calls += more.calls;
    add(&mut sum.input_tokens, more.input_tokens);
    add(&mut sum.uncached_input_tokens, more.uncached_input_tokens);
    add(&mut sum.cache_read_tokens, more.cache_read_tokens);
    add(&mut sum.cache_write_tokens, more.cache_write_tokens);
    add(&mut sum.output_tokens, more.output_tokens);
    add(&mut sum.counted_input_tokens, more.counted_input_tokens);
}

/// Unknown stays unknown as long as no addend is known.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}
