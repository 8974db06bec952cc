//! Claude Code session JSONL, line by line. What a line says is read here; which lines follow each other is decided in
//! `claude_tree`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::claude_tree::{Content, Node, transcript};
use super::{Importer, Out};
use crate::chat;
use crate::json::{str_of, string_of, take};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;

/// Lines that are bookkeeping of the program and no part of the conversation.
const BOOKKEEPING: &[&str] = &[
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "custom-title",
    "ai-title",
    "agent-name",
    "agent-setting",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "tag",
    "worktree-state",
    "content-replacement",
    "bridge-session",
];

#[derive(Default)]
pub(crate) struct ClaudeCode {
    threads: Vec<Thread>,
    /// The thread of each line that has an id.
    by_uuid: HashMap<String, usize>,
    by_session: HashMap<String, usize>,
    by_agent: HashMap<String, usize>,
    seen: HashSet<String>,
}

/// The lines of one agent.
pub(crate) struct Thread {
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) place: Place,
    pub(crate) nodes: Vec<Node>,
}

impl Importer for ClaudeCode {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let kind = string_of(&value, "type").unwrap_or_default();
        let uuid = string_of(&value, "uuid");
        if let Some(uuid) = &uuid
            && !self.seen.insert(uuid.clone())
        {
            return out.left_out("copied lines");
        }
        let Some(uuid) = uuid else {
            return without_id(&kind, place, out);
        };
        let content = match kind.as_str() {
            "user" => user(&mut value, place, out),
            "assistant" => assistant(&mut value, place, out),
            "system" => system(&value, out),
            "attachment" => {
                out.left_out("attachments, whose form in the prompt is not recorded");
                Content::Nothing
            }
            other if BOOKKEEPING.contains(&other) => {
                out.left_out("bookkeeping lines");
                Content::Nothing
            }
            other => {
                out.problem(
                    place,
                    ProblemKind::Unknown,
                    format!("line of type {other:?}"),
                );
                Content::Nothing
            }
        };
        let thread = self.thread(&value, &uuid, place);
        self.threads[thread].nodes.push(Node {
            uuid,
            parent: string_of(&value, "parentUuid"),
            content,
            place: place.clone(),
        });
    }

    fn finish(&mut self, _place: &Place, out: &mut Out<'_>) {
        for thread in std::mem::take(&mut self.threads) {
            if let Some(builder) = transcript(thread, out) {
                out.transcript(builder);
            }
        }
    }

    fn is_session(&self) -> bool {
        true
    }
}

fn without_id(kind: &str, place: &Place, out: &mut Out<'_>) {
    if BOOKKEEPING.contains(&kind) {
        out.left_out("bookkeeping lines");
    } else {
        let detail = format!("line of type {kind:?} without a uuid");
        out.problem(place, ProblemKind::BadField, detail);
    }
}

fn user(value: &mut Value, place: &Place, out: &mut Out<'_>) -> Content {
    if take(value, "toolUseResult").is_some() {
        out.left_out("toolUseResult, a duplicate of the result");
    }
    let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
    let is_summary = flag("isCompactSummary");
    if flag("isVisibleInTranscriptOnly") && !is_summary {
        out.left_out("messages that only the user saw");
        return Content::Nothing;
    }
    let time = Timestamp::from_json(value.get("timestamp"));
    let Some(message) = take(value, "message") else {
        out.problem(place, ProblemKind::BadField, "user line without a message");
        return Content::Nothing;
    };
    match chat::read(message, place, &mut out.problems) {
        None => Content::Nothing,
        Some(mut message) => {
            message.time = time;
            for result in &mut message.results {
                result.head.time = result.head.time.or(time);
            }
            if is_summary {
                Content::Summary(message)
            } else {
                Content::User(message)
            }
        }
    }
}

fn assistant(value: &mut Value, place: &Place, out: &mut Out<'_>) -> Content {
    let time = Timestamp::from_json(value.get("timestamp"));
    let api_error = value.get("isApiErrorMessage").and_then(Value::as_bool) == Some(true);
    let Some(message) = take(value, "message") else {
        out.problem(
            place,
            ProblemKind::BadField,
            "assistant line without a message",
        );
        return Content::Nothing;
    };
    let model = string_of(&message, "model");
    if api_error || model.as_deref() == Some("<synthetic>") {
        out.left_out("synthetic messages, not calls");
        return Content::Nothing;
    }
    let id = string_of(&message, "id");
    let usage = message.get("usage").and_then(chat::usage);
    match chat::read(message, place, &mut out.problems) {
        None => Content::Nothing,
        Some(message) => Content::Assistant {
            message,
            id,
            model,
            time,
            usage,
        },
    }
}

fn system(value: &Value, out: &mut Out<'_>) -> Content {
    match str_of(value, "subtype") {
        Some("compact_boundary") => Content::Boundary,
        Some("microcompact_boundary") => Content::Trimmed,
        _ => {
            out.left_out("system lines, not sent");
            Content::Nothing
        }
    }
}

impl ClaudeCode {
    /// The thread of a line: that of its parent; else that of its agent or session; a sidechain without either starts one.
    fn thread(&mut self, value: &Value, uuid: &str, place: &Place) -> usize {
        let session = string_of(value, "sessionId");
        let agent = string_of(value, "agentId");
        let sidechain = value.get("isSidechain").and_then(Value::as_bool) == Some(true);
        let of_parent = str_of(value, "parentUuid").and_then(|id| self.by_uuid.get(id).copied());
        let known = if sidechain {
            let of_agent = agent.as_ref().and_then(|id| self.by_agent.get(id).copied());
            // The first line of an old sidechain may name the main line that started it.
            let of_parent = of_parent.filter(|thread| self.threads[*thread].parent.is_some());
            of_agent.or(of_parent)
        } else {
            let of_session = || self.by_session.get(session.as_deref()?).copied();
            of_parent.or_else(of_session)
        };
        let thread = known.unwrap_or_else(|| {
            self.threads.push(Thread {
                id: if sidechain {
                    agent.clone().or_else(|| Some(uuid.to_owned()))
                } else {
                    session.clone()
                },
                parent: session.clone().filter(|_| sidechain),
                place: place.clone(),
                nodes: Vec::new(),
            });
            self.threads.len() - 1
        });
        self.by_uuid.insert(uuid.to_owned(), thread);
        if sidechain {
            if let Some(agent) = agent {
                self.by_agent.insert(agent, thread);
            }
        } else if let Some(session) = session {
            self.by_session.insert(session, thread);
        }
        thread
    }
}
