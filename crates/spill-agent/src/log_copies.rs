//! Bounded copies of sub-call results for the record, made beside the loop: neither the model nor
//! a composite tool waits for them, only the end of the step does.

use std::collections::HashMap;

use spill_engine::{CallId, SharedText, ToolResult};
use tokio::task::JoinHandle;

use crate::{result::ToolCallRecord, session::Session};

/// One copy to make.
pub(crate) struct Copy {
    pub(crate) call: CallId,
    /// The sub-call's number, from 1.
    pub(crate) number: u32,
    pub(crate) tool: String,
    pub(crate) text: SharedText,
    pub(crate) is_error: bool,
}

impl Copy {
    /// What is copied.
    pub(crate) fn result(&self) -> ToolResult {
        ToolResult {
            is_error: self.is_error,
            ..ToolResult::text(self.text.as_str())
        }
    }
}

/// Sees to it that the session's copies are made: one at a time, so that their names are drawn in
/// the order of the calls.
pub(crate) struct LogCopies {
    session: Session,
    worker: Option<JoinHandle<()>>,
    ordered: bool,
}

impl LogCopies {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            worker: None,
            ordered: false,
        }
    }

    /// Orders copies; waits only when too many are waiting already.
    pub(crate) async fn order(&mut self, copies: Vec<Copy>) {
        for copy in copies {
            self.ordered = true;
            if !self.session.order_copy(&copy) {
                self.work();
                self.join().await;
                self.session.order_copy(&copy);
            }
        }
        if self.ordered {
            self.work();
        }
    }

    /// Waits for all copies and puts them into the record. A step that is cut off before keeps the
    /// originals there.
    pub(crate) async fn finish(&mut self, records: &mut [ToolCallRecord]) {
        if !self.ordered {
            return;
        }
        self.join().await;
        let session = self.session.clone();
        let made = tokio::task::spawn_blocking(move || session.finish_copies()).await;
        let Ok(made) = made else {
            tracing::warn!("copies for the record were not made");
            return;
        };
        let mut copies = HashMap::with_capacity(made.len());
        for copy in made {
            if let Some(warning) = copy.shaped.verdict.warning() {
                self.session.warn(warning);
            }
            copies.insert(copy.call, copy.shaped.prompt);
        }
        for record in records {
            if let ToolCallRecord::Called { sub_calls, .. } = record {
                for sub_call in sub_calls {
                    if let Some(text) = copies.remove(&sub_call.id) {
                        sub_call.result = text;
                    }
                }
            }
        }
    }

    /// Lets a thread make what waits, unless one does.
    fn work(&mut self) {
        if self.worker.as_ref().is_none_or(JoinHandle::is_finished) {
            let session = self.session.clone();
            self.worker = Some(tokio::task::spawn_blocking(
                move || {
                    while session.make_copy() {}
                },
            ));
        }
    }

    async fn join(&mut self) {
        if let Some(worker) = &mut self.worker
            && worker.await.is_err()
        {
            tracing::warn!("copies for the record were cut off");
        }
        self.worker = None;
    }
}
