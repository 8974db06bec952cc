//! Bounded copies of sub-call results for the record, made beside the loop: neither the model nor
//! a composite tool waits for them, only the end of the step does.

use spill_engine::{CallId, SharedText, ToolResult};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

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

/// Copies in the making, in the order in which they were asked for. Dropping it stops after the
/// one at hand.
pub(crate) struct LogCopies {
    session: Session,
    worker: Option<Worker>,
    waiting: Vec<Waiting>,
}

struct Worker {
    orders: mpsc::UnboundedSender<(Copy, oneshot::Sender<SharedText>)>,
    task: JoinHandle<()>,
}

/// Where a copy belongs: the record's entry and the sub-call in it.
struct Waiting {
    entry: usize,
    sub_call: usize,
    copy: oneshot::Receiver<SharedText>,
}

impl LogCopies {
    pub(crate) fn new(session: Session) -> Self {
        Self {
            session,
            worker: None,
            waiting: Vec::new(),
        }
    }

    /// Asks for the copy of a sub-call in the record's entry `entry`.
    pub(crate) fn order(&mut self, entry: usize, sub_call: usize, copy: Copy) {
        let session = &self.session;
        let worker = self.worker.get_or_insert_with(|| Worker::start(session));
        let (sender, receiver) = oneshot::channel();
        // A worker that is gone makes no copy, and the original stays in the record.
        if worker.orders.send((copy, sender)).is_ok() {
            self.waiting.push(Waiting {
                entry,
                sub_call,
                copy: receiver,
            });
        }
    }

    /// Waits for all copies and puts them into the record.
    pub(crate) async fn finish(&mut self, records: &mut [ToolCallRecord]) {
        while let Some(waiting) = self.waiting.last_mut() {
            // Taken out only when it is there: a step that is cut off here loses no copy.
            let copy = (&mut waiting.copy).await;
            let (entry, sub_call) = (waiting.entry, waiting.sub_call);
            self.waiting.pop();
            if let Ok(text) = copy {
                replace(records, entry, sub_call, text);
            }
        }
        if let Some(worker) = self.worker.take() {
            worker.join().await;
        }
    }

    /// Puts those copies into the record that are there; the others stay whole.
    pub(crate) fn finish_now(&mut self, records: &mut [ToolCallRecord]) {
        for mut waiting in self.waiting.drain(..) {
            if let Ok(text) = waiting.copy.try_recv() {
                replace(records, waiting.entry, waiting.sub_call, text);
            }
        }
    }
}

impl Drop for LogCopies {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.task.abort();
        }
    }
}

impl Worker {
    /// One at a time, so that names are drawn in the order of the calls.
    fn start(session: &Session) -> Self {
        let (orders, mut incoming) =
            mpsc::unbounded_channel::<(Copy, oneshot::Sender<SharedText>)>();
        let session = session.clone();
        let task = tokio::spawn(async move {
            while let Some((copy, done)) = incoming.recv().await {
                let session = session.clone();
                let made = tokio::task::spawn_blocking(move || copy.make(&session)).await;
                if let Ok(Some(text)) = made {
                    // Nobody listens any more when the step was cut off.
                    let _ = done.send(text);
                }
            }
        });
        Self { orders, task }
    }

    async fn join(self) {
        drop(self.orders);
        if self.task.await.is_err() {
            tracing::warn!("copies for the record were not all made");
        }
    }
}

impl Copy {
    fn make(self, session: &Session) -> Option<SharedText> {
        let result = ToolResult {
            is_error: self.is_error,
            ..ToolResult::text(self.text.as_str())
        };
        session.log_copy(self.call, self.number, &self.tool, result)
    }
}

fn replace(records: &mut [ToolCallRecord], entry: usize, sub_call: usize, text: SharedText) {
    if let Some(ToolCallRecord::Called { sub_calls, .. }) = records.get_mut(entry)
        && let Some(sub_call) = sub_calls.get_mut(sub_call)
    {
        sub_call.result = text;
    }
}
