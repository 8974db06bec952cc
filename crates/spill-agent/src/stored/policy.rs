//! The policy of a session, made once the names of its read tools are known.

use std::{num::NonZeroUsize, sync::Arc};

use spill_engine::{
    DispatchQueue, Envelope, EnvelopeOptions, InlineCap, InlineCapOptions, PreviewShare,
};

use super::{StoredSession, TURN_REPLACEMENT_BYTES};
use crate::{
    read_tools::{ReadKind, ReadTool},
    settings::PolicySettings,
};

/// The most copies for the log that may wait.
const MOST_COPIES: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

/// What depends on the names of the read tools, which depend on those of the server's.
pub(super) struct Named {
    pub(super) policy: StorePolicy,
    pub(super) tools: Vec<ReadTool>,
}

/// A policy with its usual limit, and the same with the limit that a turn's bound asks for.
pub(super) enum StorePolicy {
    InlineCap {
        usual: InlineCap,
        turn: InlineCap,
        /// The log's copies, under the usual limit.
        log: DispatchQueue,
    },
    Envelope {
        usual: Envelope,
        turn: Envelope,
    },
}

impl StoredSession {
    pub(super) fn named(&self, taken: &dyn Fn(&str) -> bool) -> &Named {
        self.named.get_or_init(|| {
            let kinds: &[ReadKind] = match self.settings {
                PolicySettings::WorkflowStep => &[],
                PolicySettings::InlineCap(_) => &[ReadKind::Bytes, ReadKind::Search],
                PolicySettings::Envelope(_) => &[ReadKind::Resource],
            };
            let tools: Vec<ReadTool> = kinds.iter().map(|kind| kind.tool(taken)).collect();
            Named {
                policy: self.policy(&tools),
                tools,
            }
        })
    }

    fn policy(&self, tools: &[ReadTool]) -> StorePolicy {
        let store = || Arc::clone(&self.stores.results);
        match &self.settings {
            PolicySettings::InlineCap(options) => {
                let options = InlineCapOptions {
                    retrieval_hint: self.hint(options, tools),
                    ..options.clone()
                };
                let turn = InlineCapOptions {
                    max_inline_bytes: Some(at_most_for_a_turn(options.max_inline_bytes)),
                    preview_share: PreviewShare::ALL,
                    ..options.clone()
                };
                StorePolicy::InlineCap {
                    log: self.log_queue(options.clone()),
                    usual: InlineCap::new(options, store()),
                    turn: InlineCap::new(turn, store()),
                }
            }
            PolicySettings::Envelope(options) => {
                let turn = EnvelopeOptions {
                    max_payload_bytes: at_most_for_a_turn(Some(options.max_payload_bytes)),
                    preview_share: PreviewShare::ALL,
                    ..options.clone()
                };
                StorePolicy::Envelope {
                    usual: Envelope::new(options.clone(), store()),
                    turn: Envelope::new(turn, store()),
                }
            }
            PolicySettings::WorkflowStep => unreachable!("open() makes no such session"),
        }
    }

    fn log_queue(&self, options: InlineCapOptions) -> DispatchQueue {
        let policy = InlineCap::new(options, Arc::clone(&self.stores.log));
        DispatchQueue::new(Arc::new(policy), MOST_COPIES)
    }

    /// The notice names the tools as they are called; a hint that was given stays.
    fn hint(&self, options: &InlineCapOptions, tools: &[ReadTool]) -> String {
        let renamed = tools.iter().any(|tool| tool.name != tool.kind.usual_name());
        match tools {
            [read, grep] if renamed && !self.own_hint => format!(
                "Use {} with offset/limit, or {} this path to search within it.",
                read.name, grep.name
            ),
            _ => options.retrieval_hint.clone(),
        }
    }
}

fn at_most_for_a_turn(limit: Option<u64>) -> u64 {
    limit.map_or(TURN_REPLACEMENT_BYTES, |limit| {
        limit.min(TURN_REPLACEMENT_BYTES)
    })
}
