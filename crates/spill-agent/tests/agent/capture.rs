//! Captures the log lines of the current thread.
//!
//! One subscriber serves the whole process and is installed before any step runs: subscribers
//! that come and go on several threads at once lose lines. Each test has a thread of its own, and
//! so have the mock servers, whose lines are not captured.

use std::{cell::RefCell, io, sync::Once};

use tracing::Metadata;
use tracing_subscriber::{filter::dynamic_filter_fn, fmt, layer::SubscriberExt as _};

type Filter = fn(&Metadata<'_>) -> bool;

thread_local! {
    static CAPTURED: RefCell<Option<(Filter, Vec<u8>)>> = const { RefCell::new(None) };
}

pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let wanted = dynamic_filter_fn(|metadata, _| {
            CAPTURED.with_borrow(|captured| {
                captured
                    .as_ref()
                    .is_some_and(|(filter, _)| filter(metadata))
            })
        });
        let lines = fmt::layer()
            .with_ansi(false)
            .without_time()
            .with_writer(|| ThisThread);
        tracing::subscriber::set_global_default(
            tracing_subscriber::registry().with(wanted).with(lines),
        )
        .expect("the only subscriber");
    });
}

/// Everything that passes `filter`, at every level, while `work` runs on this thread.
pub(crate) async fn captured<T>(filter: Filter, work: impl Future<Output = T>) -> (T, String) {
    install();
    CAPTURED.set(Some((filter, Vec::new())));
    let done = work.await;
    let (_, bytes) = CAPTURED.take().expect("set above");
    (done, String::from_utf8(bytes).expect("log lines are UTF-8"))
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow_mut(|captured| {
            if let Some((_, lines)) = captured {
                lines.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
