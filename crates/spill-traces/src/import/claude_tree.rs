//! From the lines of a Claude Code session, which form a tree, to the context of each call.

use std::collections::HashMap;

use super::Out;
use super::claude_code::Thread;
use crate::builder::{Builder, CallHead};
use crate::message::NewMessage;
use crate::model::{BoundaryKind, Format, Missing, Origin};
use crate::problem::{Place, ProblemKind};
use crate::spans::Spans;
use crate::time::Timestamp;
use crate::usage::Usage;

/// One line with an id.
pub(crate) struct Node {
    pub(crate) uuid: String,
    pub(crate) parent: Option<String>,
    pub(crate) content: Content,
    pub(crate) place: Place,
}

/// What a line adds to the conversation.
pub(crate) enum Content {
    /// Nothing; other lines may name it as their parent.
    Nothing,
    User(NewMessage),
    /// One of the lines of one API response.
    Assistant {
        message: NewMessage,
        id: Option<String>,
        model: Option<String>,
        time: Option<Timestamp>,
        usage: Option<Usage>,
    },
    /// The context ends here.
    Boundary,
    /// Old results were cleared from the context; which is not recorded.
    Trimmed,
    /// The context starts with this summary.
    Summary(NewMessage),
}

/// A line, or all lines of one API response.
struct Item {
    parent: Option<Parent>,
    content: Content,
    place: Place,
}

enum Parent {
    Item(usize),
    Unknown(String),
}

/// The transcript of a thread; `None` when it has no messages.
pub(crate) fn transcript(thread: Thread, out: &mut Out<'_>) -> Option<Builder> {
    let mut builder = Builder::new(Format::ClaudeCode, &thread.place);
    builder.transcript.id = thread.id;
    builder.parent(thread.parent, None);
    let items = merged(thread.nodes);
    let mut walk = Walk::over(&items);
    for (index, item) in items.into_iter().enumerate() {
        walk.step(index, item, &mut builder, out);
    }
    (!builder.is_empty()).then_some(builder)
}

/// Joins the lines of one API response. Each repeats the usage, and the last one's counts.
fn merged(nodes: Vec<Node>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut by_uuid: HashMap<String, usize> = HashMap::new();
    let mut by_message: HashMap<String, usize> = HashMap::new();
    for node in nodes {
        let parent = node.parent.map(|id| match by_uuid.get(&id) {
            Some(item) => Parent::Item(*item),
            None => Parent::Unknown(id),
        });
        let message_id = match &node.content {
            Content::Assistant { id, .. } => id.clone(),
            _ => None,
        };
        if let Some(item) = message_id.as_ref().and_then(|id| by_message.get(id)) {
            by_uuid.insert(node.uuid, *item);
            join(&mut items[*item].content, node.content);
            continue;
        }
        by_uuid.insert(node.uuid, items.len());
        if let Some(id) = message_id {
            by_message.insert(id, items.len());
        }
        items.push(Item {
            parent,
            content: node.content,
            place: node.place,
        });
    }
    items
}

fn join(first: &mut Content, next: Content) {
    if let (
        Content::Assistant { message, usage, .. },
        Content::Assistant {
            message: more,
            usage: later,
            ..
        },
    ) = (first, next)
    {
        message.pieces.extend(more.pieces);
        *usage = later.or(*usage);
    }
}

/// The way from the root to the line read last.
struct Walk {
    parents: Vec<Option<usize>>,
    /// Items that only answer calls, with the ids they answer.
    answers: HashMap<usize, Vec<String>>,
    /// Items that answer a call id.
    by_call: HashMap<String, Vec<usize>>,
    /// Call ids that an item asks for.
    asks: HashMap<usize, Vec<String>>,
    /// The message of each item.
    messages: HashMap<usize, usize>,
    path: Vec<usize>,
}

impl Walk {
    fn over(items: &[Item]) -> Self {
        let mut walk = Self {
            parents: Vec::with_capacity(items.len()),
            answers: HashMap::new(),
            by_call: HashMap::new(),
            asks: HashMap::new(),
            messages: HashMap::new(),
            path: Vec::new(),
        };
        for (index, item) in items.iter().enumerate() {
            walk.parents.push(match item.parent {
                Some(Parent::Item(parent)) => Some(parent),
                Some(Parent::Unknown(_)) | None => None,
            });
            match &item.content {
                Content::User(message) => {
                    let ids = message
                        .results
                        .iter()
                        .filter_map(|r| r.head.call_id.clone());
                    let ids: Vec<String> = ids.collect();
                    for id in &ids {
                        walk.by_call.entry(id.clone()).or_default().push(index);
                    }
                    if !ids.is_empty() {
                        walk.answers.insert(index, ids);
                    }
                }
                Content::Assistant { message, .. } => {
                    let calls = message.pieces.iter();
                    let calls = calls.filter(|piece| piece.origin == Origin::ToolCall);
                    let ids = calls.filter_map(|piece| piece.call_id.clone()).collect();
                    walk.asks.insert(index, ids);
                }
                Content::Nothing | Content::Boundary | Content::Trimmed | Content::Summary(_) => {}
            }
        }
        walk
    }

    fn step(&mut self, index: usize, item: Item, builder: &mut Builder, out: &mut Out<'_>) {
        if let Some(Parent::Unknown(id)) = &item.parent
            && !self.path.is_empty()
        {
            let detail = format!("the parent {id:?} is not in the file; taken for the line before");
            builder.problem(&item.place, ProblemKind::BrokenReference, detail);
        }
        match item.content {
            Content::Nothing => self.follow(index, builder),
            Content::Trimmed => {
                self.follow(index, builder);
                builder.missing(&[Missing::ContextAfterCompaction]);
            }
            Content::Boundary => {
                self.path.clear();
                self.path.push(index);
                builder.missing(&[Missing::ContextAfterCompaction]);
                builder.boundary(BoundaryKind::Compaction, Spans::default());
            }
            Content::Summary(message) => {
                if !builder.live.is_empty() {
                    self.path.clear();
                    builder.missing(&[Missing::ContextAfterCompaction]);
                    builder.boundary(BoundaryKind::Compaction, Spans::default());
                }
                self.path.push(index);
                self.messages.insert(index, builder.push(message));
            }
            Content::User(message) => {
                self.follow(index, builder);
                self.messages.insert(index, builder.push(message));
            }
            Content::Assistant {
                message,
                id,
                model,
                time,
                usage,
            } => {
                self.follow(index, builder);
                let copied = id.as_ref().is_some_and(|id| !out.is_new(id));
                let head = CallHead {
                    id,
                    model,
                    time,
                    usage,
                    copied,
                };
                let call = builder.answer(message, head);
                if let Some(answer) = builder.transcript.calls[call].answer {
                    self.messages.insert(index, answer);
                }
            }
        }
    }

    /// Makes the path end with `index`, going back to its parent when it does not follow the path's end.
    fn follow(&mut self, index: usize, builder: &mut Builder) {
        if let Some(parent) = self.parents[index]
            && !self.continues(parent)
        {
            self.path = self.way_to(parent, index);
            let live = self
                .path
                .iter()
                .filter_map(|item| self.messages.get(item).copied());
            let live: Spans = live.collect();
            if !live.starts_with(&builder.live) {
                builder.boundary(BoundaryKind::Rewind, live);
            } else {
                builder.live = live;
            }
        }
        self.path.push(index);
    }

    /// True when the parent is the end of the path, or only results and lines without content follow it there: results of
    /// parallel calls each name the line of their own call as their parent.
    fn continues(&self, parent: usize) -> bool {
        for item in self.path.iter().rev() {
            if *item == parent {
                return true;
            }
            if self.messages.contains_key(item) && !self.answers.contains_key(item) {
                return false;
            }
        }
        false
    }

    /// The ancestors of `item`, with the results of their calls that came before `end`, in the order of the file.
    fn way_to(&self, item: usize, end: usize) -> Vec<usize> {
        let mut way = vec![item];
        let mut at = item;
        // A parent stands before its child in `parents`, so this ends.
        while let Some(parent) = self.parents[at].filter(|parent| *parent < at) {
            way.push(parent);
            at = parent;
        }
        let results: Vec<usize> = way
            .iter()
            .filter_map(|item| self.asks.get(item))
            .flatten()
            .filter_map(|id| self.by_call.get(id))
            .flatten()
            .copied()
            .filter(|result| *result < end)
            .collect();
        way.extend(results);
        way.sort_unstable();
        way.dedup();
        way
    }
}
