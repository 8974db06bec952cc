//! The caller's way to end a step early, with a reason that the result keeps.

use tokio::sync::watch;

/// Ends the step that holds the matching [`AbortSignal`].
#[derive(Clone, Debug)]
pub struct AbortHandle(watch::Sender<Option<String>>);

/// What a step listens to; a handle that is dropped unused never aborts it.
#[derive(Clone, Debug)]
pub struct AbortSignal(watch::Receiver<Option<String>>);

/// Makes a handle and the signal it drives.
#[must_use]
pub fn abort_pair() -> (AbortHandle, AbortSignal) {
    let (sender, receiver) = watch::channel(None);
    (AbortHandle(sender), AbortSignal(receiver))
}

impl AbortHandle {
    /// Aborts with `reason`; the first reason stays, later ones are ignored.
    pub fn abort(&self, reason: impl Into<String>) {
        self.0.send_if_modified(|slot| {
            let first = slot.is_none();
            if first {
                *slot = Some(reason.into());
            }
            first
        });
    }
}

impl AbortSignal {
    /// A signal that never comes.
    #[must_use]
    pub fn never() -> Self {
        abort_pair().1
    }

    /// Waits for the abort and returns its reason.
    pub async fn aborted(&self) -> String {
        let mut receiver = self.0.clone();
        let reason = match receiver.wait_for(Option::is_some).await {
            Ok(slot) => slot.clone(),
            Err(_handle_dropped) => None,
        };
        match reason {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn the_first_reason_stays() {
        let (handle, signal) = abort_pair();
        handle.abort("first");
        handle.abort("second");
        assert_eq!(signal.aborted().await, "first");
    }

    #[test]
    fn a_dropped_handle_never_aborts() {
        assert_eq!(AbortSignal::never().aborted().now_or_never(), None);
    }
}
