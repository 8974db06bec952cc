//! The simulated model: from what a request shows to the next action.

use std::sync::Arc;

use spill_scenario::{ModelSpec, Profile, RECORDED_PREFIX, Recipe, ScriptedCall, recorded_tool};
use xxhash_rust::xxh3::Xxh3;

use crate::answer::{Answer, Forgets, Readings};
use crate::conversation::{Message, OfferedTool};
use crate::filed::Filed;
use crate::memory::Memory;
use crate::ranges::slices;
use crate::readback::wanted;
use crate::reader::Reader;
use crate::request::View;
use crate::rules::Rules;
use crate::run::MockRun;
use crate::saved::FileReader;
use crate::seen::{Entry, Listed, Outcome, Seen, Stored, Subject, listed};

/// Times that one thing is asked for when no usable result comes.
const ATTEMPTS: u32 = 2;
/// Bytes that a read asks for at least, whatever the scenario or an error says.
const SMALLEST_SLICE: u64 = 1;

/// What the simulated model does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It asks for tool calls; never empty.
    Call(Vec<ToolCall>),
    /// It gives its final answer; never empty.
    Answer(String),
}

/// A tool call that the simulated model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id, a hash of seed, scenario, turn and place.
    pub id: String,
    /// The tool's name as the request offers it.
    pub name: String,
    /// Its arguments as compact JSON.
    pub arguments: String,
}

/// Decides what the simulated model does about a request.
///
/// It looks at the request, the recipe, the model and the seed, and under the recipe `recorded` at which calls a
/// transcript has (not at their results), at nothing else: equal requests have equal answers.
#[must_use]
pub fn respond(view: &View, run: &MockRun) -> Action {
    Model::new(run, Arc::default()).respond(view)
}

/// The simulated model of one run.
#[derive(Debug)]
pub(crate) struct Model {
    recipe: Recipe,
    seed: u64,
    scenario: String,
    spec: Arc<ModelSpec>,
    profile: Profile,
    rules: Rules,
    /// The calls that a recorded agent made, in their order; what they returned is not in it.
    script: Arc<[ScriptedCall]>,
    readings: Arc<Readings>,
    /// Of a model that forgets.
    memory: Option<Memory>,
}

impl Model {
    /// Takes from `run` what the model may know; `readings` only saves reading a text twice.
    pub(crate) fn new(run: &MockRun, readings: Arc<Readings>) -> Self {
        Self {
            recipe: run.recipe,
            seed: run.seed,
            scenario: run.scenario.clone(),
            spec: Arc::clone(&run.model),
            profile: run.profile,
            rules: Rules::new(&run.model),
            script: Arc::clone(run.served.script()),
            readings,
            memory: (run.profile == Profile::Forgetful).then(|| Memory::new(&run.model.recall)),
        }
    }

    pub(crate) fn recipe(&self) -> Recipe {
        self.recipe
    }

    pub(crate) fn respond(&self, view: &View) -> Action {
        let seen = Seen::new(view);
        let tools = Toolbox::new(view.offered(), self.recipe);
        let mut asks = self.next_asks(&seen, &tools);
        if asks.is_empty() && self.profile == Profile::Loopy {
            asks = last_calls(view);
        }
        if asks.is_empty() {
            let draw = |finding| unit(self.hash(0, "recall", finding));
            let listed = list_in_view(&seen);
            let answer = Answer {
                recipe: self.recipe,
                rules: &self.rules,
                script: &self.script,
                readings: &self.readings,
                max_findings: usize::try_from(self.spec.max_findings).unwrap_or(usize::MAX),
                forgets: self.memory.as_ref().map(|memory| Forgets {
                    memory,
                    draw: &draw,
                }),
            };
            return Action::Answer(answer.write(&seen, &listed));
        }
        let turn = view.turns();
        let calls = asks
            .into_iter()
            .enumerate()
            .map(|(index, (name, arguments))| ToolCall {
                id: format!("call_{:016x}", self.hash(turn, "call", index as u64)),
                name,
                arguments,
            });
        Action::Call(calls.collect())
    }

    /// A hash of seed, scenario, turn, purpose and place: the only source of choices.
    pub(crate) fn hash(&self, turn: u64, purpose: &str, index: u64) -> u64 {
        let mut hasher = Xxh3::new();
        for number in [self.seed, turn, index] {
            hasher.update(&number.to_le_bytes());
        }
        for text in [self.scenario.as_str(), purpose] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.digest()
    }

    /// Calls of the first stage that is not done (list, diffs or documents, files, read-backs), as
    /// many as the model asks for in one turn.
    fn next_asks(&self, seen: &Seen<'_>, tools: &Toolbox<'_>) -> Vec<(String, String)> {
        if self.recipe == Recipe::Recorded {
            return self.next_recorded(seen, tools);
        }
        let list = tools.call(Subject::List, "");
        if let Some(list) = list
            && self.is_wanted(seen, Subject::List, "", None)
        {
            return vec![list];
        }
        let list_reads = self.read_backs(seen, tools, &[(Subject::List, "")]);
        if !list_reads.is_empty() {
            return list_reads;
        }
        let listed = list_in_view(seen);
        let subjects: &[Subject] = match self.recipe {
            Recipe::Review => &[Subject::Diff, Subject::File],
            Recipe::Document => &[Subject::Document],
            Recipe::Records => &[Subject::Rows, Subject::Csv, Subject::Log],
            Recipe::Recorded => &[],
        };
        let mut sources = Vec::new();
        let composite = tools.composite(&listed).filter(|_| self.spec.composite);
        if let Some(ask) = composite {
            let stated = listed
                .iter()
                .try_fold(0u64, |sum, entry| sum.checked_add(entry.diff_bytes?));
            if self.is_wanted(seen, Subject::Diffs, "", stated) {
                return vec![ask];
            }
            sources.push((Subject::Diffs, ""));
        }
        let are_asked_for = |subject: &&Subject| sources.is_empty() || **subject != Subject::Diff;
        let subjects: Vec<Subject> = subjects.iter().filter(are_asked_for).copied().collect();
        for subject in subjects {
            let of_stage = || listed.iter().filter(|entry| is_due(seen, subject, entry));
            let asks: Vec<_> = of_stage()
                .filter(|entry| self.is_wanted(seen, subject, &entry.name, entry.stated(subject)))
                .filter_map(|entry| tools.call(subject, &entry.name))
                .take(self.width())
                .collect();
            if !asks.is_empty() {
                return asks;
            }
            sources.extend(of_stage().map(|entry| (subject, entry.name.as_str())));
        }
        let reads = self.read_backs(seen, tools, &sources);
        if !reads.is_empty() {
            return reads;
        }
        let forgotten = sources.iter().filter(|(subject, name)| {
            let entry = seen.entry(*subject, name);
            entry.is_some_and(|entry| self.is_forgotten(entry))
        });
        forgotten
            .filter_map(|(subject, name)| tools.call(*subject, name))
            .take(self.width())
            .collect()
    }

    /// Reads back what was stored of the recorded calls so far, then asks for the next ones: those of one recorded turn,
    /// as many as the model asks for in one of its own. What a forgetful model no longer recalls comes last.
    fn next_recorded(&self, seen: &Seen<'_>, tools: &Toolbox<'_>) -> Vec<(String, String)> {
        let is_done = |call: &&ScriptedCall| seen.entry(Subject::Recorded, &call.key).is_some();
        let done = self.script.iter().filter(is_done);
        let sources: Vec<_> = done
            .map(|call| (Subject::Recorded, call.key.as_str()))
            .collect();
        let mut reads = self.read_backs(seen, tools, &sources);
        // A transcript's own tool for reading files knows nothing of what was stored here.
        reads.retain(|(name, _)| recorded_tool(name).is_none());
        if !reads.is_empty() {
            return reads;
        }
        let open = self.script.iter().filter(|call| !is_done(call));
        let mut open = open.filter_map(|call| Some((call.turn, tools.recorded(call)?)));
        if let Some((turn, first)) = open.next() {
            let others = open.take_while(|(of, _)| *of == turn).map(|(_, ask)| ask);
            return std::iter::once(first)
                .chain(others)
                .take(self.width())
                .collect();
        }
        let forgotten = self.script.iter().filter(|call| {
            let entry = seen.entry(Subject::Recorded, &call.key);
            entry.is_some_and(|entry| self.is_forgotten(entry))
        });
        forgotten
            .filter_map(|call| tools.recorded(call))
            .take(self.width())
            .collect()
    }

    /// Whether a text stands so far back that it is asked for once more.
    fn is_forgotten(&self, entry: &Entry<'_>) -> bool {
        let memory = self.memory.as_ref();
        entry.attempts < ATTEMPTS && memory.is_some_and(|memory| memory.reads_again(entry.behind))
    }

    /// Whether a subject has still to be asked for: it never was, or what came is an error or was
    /// cut off without a reference, and it was asked for only once.
    fn is_wanted(
        &self,
        seen: &Seen<'_>,
        subject: Subject,
        name: &str,
        stated: Option<u64>,
    ) -> bool {
        let Some(entry) = seen.entry(subject, name) else {
            return true;
        };
        let is_usable = match &entry.outcome {
            Outcome::Nothing => false,
            Outcome::Stored(_) | Outcome::Filed(_) => true,
            Outcome::Text(text) => !text.is_truncated(stated),
        };
        !is_usable && entry.attempts < ATTEMPTS
    }

    /// Calls in one turn.
    fn width(&self) -> usize {
        usize::try_from(self.spec.parallel_calls.max(1)).unwrap_or(usize::MAX)
    }

    fn read_backs(
        &self,
        seen: &Seen<'_>,
        tools: &Toolbox<'_>,
        sources: &[(Subject, &str)],
    ) -> Vec<(String, String)> {
        let cap = seen.cap.unwrap_or(u64::MAX);
        let slice = self.spec.slice_bytes.min(cap).max(SMALLEST_SLICE);
        let width = self.width();
        let mut asks = Vec::new();
        for &(subject, name) in sources {
            let hunks = || match subject {
                Subject::File => seen.hunks(name),
                Subject::List
                | Subject::Diffs
                | Subject::Diff
                | Subject::Document
                | Subject::Rows
                | Subject::Csv
                | Subject::Log
                | Subject::Recorded => Vec::new(),
            };
            if let Some(filed) = filed(seen, subject, name)
                && let Some(reader) = FileReader::of(tools.offered)
            {
                let wanted = filed.wanted(subject, &hunks(), self.profile, &self.spec);
                let lines = wanted.iter().take(width.saturating_sub(asks.len()));
                asks.extend(lines.map(|lines| filed.call(&reader, lines)));
            }
            let Some(stored) = stored(seen, subject, name) else {
                continue;
            };
            let Some(reader) = Reader::of(tools.offered, stored.preview.kind) else {
                continue;
            };
            let hunks = hunks();
            let ranges = wanted(subject, stored, &hunks, self.profile, &self.spec, slice);
            for range in slices(&ranges, slice).take(width.saturating_sub(asks.len())) {
                let length = range.end - range.start;
                let reference = &stored.preview.reference;
                asks.push(reader.call(reference, range.start, length));
            }
            if asks.len() >= width {
                break;
            }
        }
        asks
    }
}

fn stored<'s, 'v>(seen: &'s Seen<'v>, subject: Subject, name: &str) -> Option<&'s Stored<'v>> {
    match &seen.entry(subject, name)?.outcome {
        Outcome::Stored(stored) => Some(stored),
        Outcome::Nothing | Outcome::Text(_) | Outcome::Filed(_) => None,
    }
}

/// The calls of the model's last turn, to be asked for once more.
fn last_calls(view: &View) -> Vec<(String, String)> {
    let messages = view.messages.iter().rev().map(|item| &*item.message);
    let calls = messages.filter_map(|message| match message {
        Message::Assistant { calls, .. } if !calls.is_empty() => Some(calls),
        Message::Assistant { .. }
        | Message::System(_)
        | Message::User(_)
        | Message::Tool { .. } => None,
    });
    let last = calls.into_iter().next().into_iter().flatten();
    last.map(|call| (call.name.clone(), call.json.clone()))
        .collect()
}

/// A number from 0 to below 1 out of a hash.
fn unit(hash: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let numerator = (hash >> 11) as f64;
    numerator / 9_007_199_254_740_992.0
}

fn filed<'s, 'v>(seen: &'s Seen<'v>, subject: Subject, name: &str) -> Option<&'s Filed<'v>> {
    match &seen.entry(subject, name)?.outcome {
        Outcome::Filed(filed) => Some(filed),
        Outcome::Nothing | Outcome::Text(_) | Outcome::Stored(_) => None,
    }
}

/// A file is read when its diff is in view and does not show the whole of it, a table by the tool for
/// its format; all else always.
fn is_due(seen: &Seen<'_>, subject: Subject, entry: &Listed) -> bool {
    match subject {
        Subject::List | Subject::Diffs | Subject::Diff | Subject::Document | Subject::Recorded => {
            return true;
        }
        Subject::Rows | Subject::Csv | Subject::Log => return entry.format == Some(subject),
        Subject::File => {}
    }
    let is_there = |subject, name| {
        let diff = seen.entry(subject, name).map(|diff| &diff.outcome);
        matches!(
            diff,
            Some(Outcome::Text(_) | Outcome::Stored(_) | Outcome::Filed(_))
        )
    };
    let diff_is_there = is_there(Subject::Diff, &entry.name) || is_there(Subject::Diffs, "");
    !entry.diff_is_whole && diff_is_there
}

fn list_in_view(seen: &Seen<'_>) -> Vec<Listed> {
    match seen.entry(Subject::List, "").map(|entry| &entry.outcome) {
        Some(Outcome::Text(text)) => text.listed().to_vec(),
        Some(Outcome::Stored(stored)) => {
            let segments = crate::answer::segments(stored);
            segments
                .iter()
                .flat_map(|segment| listed(&segment.text))
                .collect()
        }
        Some(Outcome::Filed(filed)) => {
            let parts = filed.parts();
            parts.iter().flat_map(|(text, _)| listed(text)).collect()
        }
        Some(Outcome::Nothing) | None => Vec::new(),
    }
}

/// The offered tools that the model uses, under the names that the client gave them.
#[derive(Debug)]
pub(crate) struct Toolbox<'v> {
    recipe: Recipe,
    offered: &'v [OfferedTool],
    prefix: String,
}

impl<'v> Toolbox<'v> {
    pub(crate) fn new(offered: &'v [OfferedTool], recipe: Recipe) -> Self {
        let prefix = list_tool(recipe)
            .and_then(|list| find(offered, "", list)?.strip_suffix(list))
            .unwrap_or_default();
        Self {
            recipe,
            offered,
            prefix: prefix.to_owned(),
        }
    }

    /// The call that asks for all diffs of a change at once, when a tool for it is offered.
    fn composite(&self, listed: &[Listed]) -> Option<(String, String)> {
        if self.recipe != Recipe::Review || listed.is_empty() {
            return None;
        }
        let offered = find(self.offered, &self.prefix, "read_diffs")?;
        let paths: Vec<&str> = listed.iter().map(|entry| entry.name.as_str()).collect();
        let arguments = serde_json::json!({ "paths": paths });
        Some((offered.to_owned(), arguments.to_string()))
    }

    /// The call that asks for a subject, when a tool for it is offered.
    pub(crate) fn call(&self, subject: Subject, name: &str) -> Option<(String, String)> {
        let (tool, argument) = match subject {
            Subject::List => (list_tool(self.recipe)?, None),
            Subject::Diffs | Subject::Recorded => return None,
            Subject::Diff => ("read_diff", Some("path")),
            Subject::File => ("read_file", Some("path")),
            Subject::Document => ("read_document", Some("name")),
            Subject::Rows => ("query", Some("table")),
            Subject::Csv => ("export_csv", Some("table")),
            Subject::Log => ("read_log", Some("name")),
        };
        let offered = find(self.offered, &self.prefix, tool)?;
        let arguments = match argument {
            None => serde_json::json!({}),
            Some(argument) => serde_json::json!({ argument: name }),
        };
        Some((offered.to_owned(), arguments.to_string()))
    }

    /// The call that a transcript has, when its tool is offered.
    fn recorded(&self, call: &ScriptedCall) -> Option<(String, String)> {
        let tool = format!("{RECORDED_PREFIX}{}", call.tool);
        let offered = find(self.offered, &self.prefix, &tool)?;
        Some((offered.to_owned(), call.arguments.clone()))
    }
}

/// The tool that says what there is; recorded calls are in the order in which they were made.
fn list_tool(recipe: Recipe) -> Option<&'static str> {
    match recipe {
        Recipe::Review => Some("list_changed_files"),
        Recipe::Document => Some("list_documents"),
        Recipe::Records => Some("list_tables"),
        Recipe::Recorded => None,
    }
}

/// The offered name of a tool: with the prefix that the list tool has, else the name itself, else
/// the first that ends with it.
fn find<'v>(offered: &'v [OfferedTool], prefix: &str, tool: &str) -> Option<&'v str> {
    let names = || offered.iter().map(|offered| offered.name.as_str());
    names()
        .find(|name| name.strip_prefix(prefix) == Some(tool))
        .or_else(|| names().find(|name| *name == tool))
        .or_else(|| names().find(|name| name.ends_with(tool)))
}

#[cfg(test)]
mod tests;
