//! Puts a transcript together, message by message.

use std::collections::{BTreeMap, HashMap};

use crate::message::NewMessage;
use crate::model::{
    Boundary, BoundaryKind, Call, ContextSource, Format, Message, Missing, Origin, Parent, Role,
    Standing, ToolResult, Transcript,
};
use crate::problem::{Place, ProblemKind, Problems};
use crate::spans::Spans;
use crate::time::Timestamp;
use crate::usage::Usage;

/// What is known of a call besides its context and its answer.
#[derive(Debug, Default)]
pub(crate) struct CallHead {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) time: Option<Timestamp>,
    pub(crate) usage: Option<Usage>,
    pub(crate) copied: bool,
}

/// A transcript in the making, with the context as it stands after the last message.
pub(crate) struct Builder {
    pub(crate) transcript: Transcript,
    pub(crate) live: Spans,
}

impl Builder {
    pub(crate) fn new(format: Format, place: &Place) -> Self {
        Self {
            transcript: Transcript {
                format,
                place: place.clone(),
                id: None,
                parent: None,
                messages: Vec::new(),
                calls: Vec::new(),
                results: Vec::new(),
                boundaries: Vec::new(),
                recorded_total: None,
                missing: Vec::new(),
                left_out: BTreeMap::new(),
                problems: Problems::default(),
            },
            live: Spans::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.transcript.messages.is_empty()
    }

    pub(crate) fn parent(&mut self, id: Option<String>, call_id: Option<String>) {
        self.transcript.parent = id.map(|id| Parent { id, call_id });
    }

    pub(crate) fn missing(&mut self, missing: &[Missing]) {
        self.transcript.missing.extend(missing);
    }

    pub(crate) fn left_out(&mut self, kind: &'static str) {
        *self.transcript.left_out.entry(kind).or_default() += 1;
    }

    pub(crate) fn problem(&mut self, place: &Place, kind: ProblemKind, detail: impl Into<String>) {
        self.transcript.problems.add(place, kind, detail);
    }

    /// Adds a message without putting it into the context.
    pub(crate) fn park(&mut self, message: NewMessage) -> usize {
        let index = self.transcript.messages.len();
        for result in message.results {
            self.transcript.results.push(ToolResult {
                message: index,
                pieces: result.pieces,
                call_id: result.head.call_id,
                tool: result.head.tool,
                asked_by: result.head.asked_by,
                time: result.head.time,
                is_error: result.head.is_error,
                completeness: result.completeness,
                uncut: result.head.uncut,
            });
        }
        self.transcript.messages.push(Message {
            role: message.role,
            pieces: message.pieces,
            place: message.place,
        });
        index
    }

    /// Adds a message to the context.
    pub(crate) fn push(&mut self, message: NewMessage) -> usize {
        let index = self.park(message);
        self.live.push(index);
        index
    }

    /// Adds a call with the context as it stands, and its answer to the context.
    pub(crate) fn answer(&mut self, answer: NewMessage, head: CallHead) -> usize {
        let call = self.call(self.live.clone(), ContextSource::Inferred, head);
        let index = self.push(answer);
        self.transcript.calls[call].answer = Some(index);
        call
    }

    /// Adds a call with the given context and no answer.
    pub(crate) fn call(&mut self, context: Spans, source: ContextSource, head: CallHead) -> usize {
        self.transcript.calls.push(Call {
            id: head.id,
            model: head.model,
            time: head.time,
            context,
            context_source: source,
            answer: None,
            usage: head.usage.and_then(Usage::recorded),
            standing: if head.copied {
                Standing::Copied
            } else {
                Standing::Made
            },
        });
        self.transcript.calls.len() - 1
    }

    /// Notes that messages left the context, which is `live` from now on.
    pub(crate) fn boundary(&mut self, kind: BoundaryKind, live: Spans) {
        self.live = live;
        let boundary = Boundary {
            before_call: self.transcript.calls.len(),
            kind,
        };
        if self.transcript.boundaries.last() != Some(&boundary) {
            self.transcript.boundaries.push(boundary);
        }
    }

    /// Finds the call of each result and reports what does not fit together.
    pub(crate) fn finish(mut self) -> Transcript {
        let missing = not_recorded(&self.transcript);
        self.transcript.missing.extend(missing);
        self.transcript.missing.sort_unstable();
        self.transcript.missing.dedup();
        let asked = Asked::of(&self.transcript);
        let mut answered: HashMap<String, usize> = HashMap::new();
        let mut problems = std::mem::take(&mut self.transcript.problems);
        for result in &mut self.transcript.results {
            let place = &self.transcript.messages[result.message].place;
            let Some(id) = &result.call_id else { continue };
            let seen = answered.entry(id.clone()).or_default();
            *seen += 1;
            match asked.of_result(id, result.message) {
                None => {
                    problems.add(
                        place,
                        ProblemKind::OrphanResult,
                        format!("no call has the id {id:?}"),
                    );
                }
                Some(found) => {
                    result.asked_by = result.asked_by.or(found.call);
                    if result.tool.is_none() {
                        result.tool.clone_from(&found.tool);
                    }
                    if *seen > asked.times(id) {
                        problems.add(
                            place,
                            ProblemKind::DuplicateId,
                            format!("result {seen} for the call id {id:?}"),
                        );
                    }
                }
            }
        }
        asked.report_unanswered(&self.transcript, &answered, &mut problems);
        self.transcript.problems = problems;
        self.transcript
    }
}

/// What no message and no call of the transcript holds.
fn not_recorded(transcript: &Transcript) -> Vec<Missing> {
    let has_piece = |origin| {
        let mut pieces = transcript.messages.iter().flat_map(|m| &m.pieces);
        pieces.any(|piece| piece.origin == origin)
    };
    let has_call = |holds: &dyn Fn(&Call) -> bool| transcript.calls.iter().any(holds);
    let has_usage = has_call(&|call| call.usage.is_some());
    let checks = [
        (has_piece(Origin::System), Missing::SystemPrompt),
        (has_piece(Origin::ToolSchemas), Missing::ToolSchemas),
        (has_usage, Missing::UsagePerCall),
        (
            has_call(&|call| call.usage.is_some_and(|u| u.cache_read_tokens.is_some())),
            Missing::CacheSplit,
        ),
        (has_call(&|call| call.time.is_some()), Missing::Times),
        (has_call(&|call| call.model.is_some()), Missing::Model),
        (
            transcript
                .results
                .iter()
                .all(|result| result.call_id.is_some()),
            Missing::CallIds,
        ),
    ];
    let found = checks.into_iter().filter(|(recorded, _)| !recorded);
    found.map(|(_, missing)| missing).collect()
}

/// One tool call of an assistant message.
struct Asking {
    message: usize,
    call: Option<usize>,
    tool: Option<String>,
}

/// All tool calls by id.
struct Asked(HashMap<String, Vec<Asking>>);

impl Asked {
    fn of(transcript: &Transcript) -> Self {
        let calls: HashMap<usize, usize> = transcript
            .calls
            .iter()
            .enumerate()
            .filter_map(|(call, found)| Some((found.answer?, call)))
            .collect();
        let mut asked: HashMap<String, Vec<Asking>> = HashMap::new();
        for (index, message) in transcript.messages.iter().enumerate() {
            if message.role != Role::Assistant {
                continue;
            }
            for piece in &message.pieces {
                let (Origin::ToolCall, Some(id)) = (piece.origin, &piece.call_id) else {
                    continue;
                };
                asked.entry(id.clone()).or_default().push(Asking {
                    message: index,
                    call: calls.get(&index).copied(),
                    tool: piece.name.clone(),
                });
            }
        }
        Self(asked)
    }

    /// The last asking before the result's message that is an answer, or any before it, or the first one after it.
    fn of_result(&self, id: &str, message: usize) -> Option<&Asking> {
        let asked = self.0.get(id)?;
        let before = || asked.iter().rev().filter(|asking| asking.message < message);
        before()
            .find(|asking| asking.call.is_some())
            .or_else(|| before().next())
            .or_else(|| asked.first())
    }

    fn times(&self, id: &str) -> usize {
        self.0.get(id).map_or(0, Vec::len)
    }

    fn report_unanswered(
        &self,
        transcript: &Transcript,
        answered: &HashMap<String, usize>,
        problems: &mut Problems,
    ) {
        let last = transcript.calls.len().checked_sub(1);
        let mut unanswered: Vec<(usize, &str)> = self
            .0
            .iter()
            .filter(|(id, _)| !answered.contains_key(*id))
            .flat_map(|(id, asked)| asked.iter().map(move |asking| (id, asking)))
            .filter(|(_, asking)| asking.call.is_some() && asking.call != last)
            .map(|(id, asking)| (asking.message, id.as_str()))
            .collect();
        unanswered.sort_unstable();
        for (message, id) in unanswered {
            problems.add(
                &transcript.messages[message].place,
                ProblemKind::UnansweredCall,
                format!("no result for the call id {id:?}"),
            );
        }
    }
}
