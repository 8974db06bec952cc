//! What a model says when a planned fault is in what it says.

use serde_json::json;
use spill_scenario::LlmFault;

use crate::model::{Action, Model, ToolCall, Toolbox};
use crate::preview::Kind;
use crate::reader::Reader;
use crate::request::View;
use crate::saved::FileReader;
use crate::seen::{Outcome, Seen, Subject};

/// A tool that no client offers.
const NO_SUCH_TOOL: &str = "no_such_tool";
/// A name that no input and no store has.
const NO_SUCH_NAME: &str = "no-such-name-0";
/// So far beyond a result's end reads a model that counts wrongly.
const BEYOND: u64 = 1_000_000;

impl Model {
    /// The action in place of `action` where `fault` is one of what the model says; `None` when it
    /// is another one, or the request leaves no room for it.
    pub(crate) fn misled(&self, fault: LlmFault, action: &Action, view: &View) -> Option<Action> {
        match fault {
            LlmFault::MalformedArguments => {
                let mut call = self.some_call(action, view)?;
                call.arguments.pop();
                Some(Action::Call(vec![call]))
            }
            LlmFault::UnknownTool => {
                let mut call = self.some_call(action, view)?;
                NO_SUCH_TOOL.clone_into(&mut call.name);
                Some(Action::Call(vec![call]))
            }
            LlmFault::DuplicateCallId => {
                let call = self.some_call(action, view)?;
                Some(Action::Call(vec![call.clone(), call]))
            }
            LlmFault::HallucinatedReference => self.wrong_read(view, Wrong::Reference),
            LlmFault::OutOfRangeRead => self.wrong_read(view, Wrong::Range),
            LlmFault::EmptyAnswer => Some(Action::Answer(String::new())),
            LlmFault::RateLimit { .. }
            | LlmFault::ServerError
            | LlmFault::Unavailable
            | LlmFault::Unauthorized
            | LlmFault::ContextWindow
            | LlmFault::Timeout { .. }
            | LlmFault::Reset
            | LlmFault::CutStream
            | LlmFault::StreamError
            | LlmFault::MalformedJson
            | LlmFault::EmptyChoice
            | LlmFault::SlowDrip { .. } => None,
        }
    }

    /// The first call that the model asks for, or one of the first offered tool.
    fn some_call(&self, action: &Action, view: &View) -> Option<ToolCall> {
        if let Action::Call(calls) = action {
            return calls.first().cloned();
        }
        let name = view.offered().first()?.name.clone();
        Some(self.named(view, (name, "{}".to_owned())))
    }

    fn named(&self, view: &View, (name, arguments): (String, String)) -> ToolCall {
        ToolCall {
            id: format!("call_{:016x}", self.hash(view.turns(), "fault", 0)),
            name,
            arguments,
        }
    }

    /// A read that leads nowhere: with a reading tool where one is offered, else of a text that the
    /// tools do not have.
    fn wrong_read(&self, view: &View, wrong: Wrong) -> Option<Action> {
        let seen = Seen::new(view);
        let offered = view.offered();
        let reader = [Kind::Summary, Kind::Envelope, Kind::Notice]
            .into_iter()
            .find_map(|kind| Some((kind, Reader::of(offered, kind)?)));
        let stored = seen.entries.iter().find_map(|entry| match &entry.outcome {
            Outcome::Stored(stored) => Some((stored.preview.reference.clone(), stored.size)),
            Outcome::Nothing | Outcome::Text(_) | Outcome::Filed(_) => None,
        });
        let ask = match (reader, wrong, stored) {
            (Some((_, reader)), Wrong::Range, Some((reference, size))) => {
                reader.call(&reference, size + BEYOND, 100)
            }
            (Some((kind, reader)), _, _) => reader.call(&made_up(kind), 0, 100),
            (None, _, _) => match FileReader::of(offered) {
                Some(reader) => reader.call(&format!("/{NO_SUCH_NAME}"), &(1..2), None),
                None => self.read_of_nothing(view)?,
            },
        };
        Some(Action::Call(vec![self.named(view, ask)]))
    }

    fn read_of_nothing(&self, view: &View) -> Option<(String, String)> {
        let tools = Toolbox::new(view.offered(), self.recipe());
        [Subject::File, Subject::Document, Subject::Rows]
            .into_iter()
            .find_map(|subject| tools.call(subject, NO_SUCH_NAME))
            .or_else(|| {
                let name = view.offered().first()?.name.clone();
                Some((name, json!({"path": NO_SUCH_NAME}).to_string()))
            })
    }
}

#[derive(Clone, Copy)]
enum Wrong {
    Reference,
    Range,
}

/// A reference such as the model has seen, to nothing.
fn made_up(kind: Kind) -> String {
    match kind {
        Kind::Summary => format!("spill://{NO_SUCH_NAME}"),
        Kind::Envelope => format!("spillover://{NO_SUCH_NAME}"),
        Kind::Notice => format!("{NO_SUCH_NAME}.txt"),
    }
}
