//! Hands an answer over as it comes, and reads it on the way.

use std::io;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt, stream};

use crate::dialect::Dialect;

use super::answer::{Unusable, read_event, read_json};
use super::chat;
use super::flight::Flight;
use super::sse::Events;

/// A longer answer is none of a model.
const MOST_BYTES: usize = 16 << 20;

/// In which form an answer comes.
pub(super) enum Form {
    Json,
    Events {
        /// Whether the event that tells the usage alone stays here, since the subject did not ask for it.
        hides_usage: bool,
    },
}

/// The rest of an answer.
struct Relaying {
    body: BodyDataStream,
    dialect: Dialect,
    form: Form,
    timeout: Duration,
    flight: Flight,
    events: Events,
    json: Vec<u8>,
    unusable: Option<Unusable>,
}

/// The body of an answer, as it comes from the endpoint.
pub(super) fn relayed(
    body: Body,
    dialect: Dialect,
    form: Form,
    timeout: Duration,
    flight: Flight,
) -> impl Stream<Item = io::Result<Bytes>> {
    let relaying = Relaying {
        body: body.into_data_stream(),
        dialect,
        form,
        timeout,
        flight,
        events: Events::default(),
        json: Vec::new(),
        unusable: None,
    };
    stream::unfold(Some(relaying), |relaying| async move {
        let mut relaying = relaying?;
        match relaying.next().await {
            Some(Ok(piece)) => Some((Ok(piece), Some(relaying))),
            // The connection to the subject ends as the one to the endpoint did.
            Some(Err(error)) => Some((Err(error), None)),
            None => None,
        }
    })
}

impl Relaying {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match tokio::time::timeout(self.timeout, self.body.next()).await {
                Err(_) => {
                    self.flight.lost("endpoint_timeout");
                    return Some(Err(io::Error::from(io::ErrorKind::TimedOut)));
                }
                Ok(Some(Err(_))) => {
                    self.flight.lost("connection_lost");
                    return Some(Err(io::Error::from(io::ErrorKind::ConnectionReset)));
                }
                Ok(Some(Ok(piece))) => {
                    let piece = self.take(piece);
                    if !piece.is_empty() {
                        return Some(Ok(piece));
                    }
                }
                Ok(None) => {
                    let rest = self.end();
                    return (!rest.is_empty()).then_some(Ok(rest));
                }
            }
        }
    }

    /// Reads a piece and returns what of it goes on. An answer that is whole is journalled before the
    /// subject can know.
    fn take(&mut self, piece: Bytes) -> Bytes {
        let Form::Events { hides_usage } = self.form else {
            if self.json.len() + piece.len() > MOST_BYTES {
                self.unusable = Some(Unusable::Unreadable);
            } else {
                self.json.extend_from_slice(&piece);
            }
            return piece;
        };
        let Ok(events) = self.events.push(&piece) else {
            self.unusable = Some(Unusable::Unreadable);
            return piece;
        };
        let mut kept = BytesMut::new();
        for event in events {
            self.read(&event.data);
            if hides_usage && !chat::is_usage_alone(&event.data) {
                kept.extend_from_slice(&event.raw);
            }
        }
        if self.flight.answered.is_whole && self.unusable.is_none() {
            self.flight.answered();
        }
        if hides_usage { kept.freeze() } else { piece }
    }

    fn read(&mut self, data: &str) {
        if let Err(unusable) = read_event(self.dialect, data, &mut self.flight.answered) {
            self.unusable.get_or_insert(unusable);
        }
    }

    /// The endpoint has ended the answer; returns what was held back.
    fn end(&mut self) -> Bytes {
        let mut rest = Bytes::new();
        match self.form {
            Form::Json => match read_json(self.dialect, &self.json) {
                Ok(answered) if self.unusable.is_none() => self.flight.answered = answered,
                Ok(_) | Err(_) => {
                    self.unusable.get_or_insert(Unusable::Unreadable);
                }
            },
            Form::Events { hides_usage } => {
                if let Some(event) = self.events.rest() {
                    self.read(&event.data);
                    if hides_usage {
                        rest = event.raw;
                    }
                }
            }
        }
        // Some servers end a stream without a last word; a finish reason is one.
        let answered = &self.flight.answered;
        let is_whole = answered.is_whole || answered.finish_reason.is_some();
        match self.unusable {
            Some(unusable) => self.flight.lost(unusable.code()),
            None if is_whole => self.flight.answered(),
            None => self.flight.lost("cut_stream"),
        }
        rest
    }
}
