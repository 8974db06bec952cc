//! How an answer is sent: whole, late, in pieces, in part, or never.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};

use crate::cuttable::Cutter;
use crate::faults::Delivery;

/// Pieces in which a body that is no stream is dripped.
const PIECES: usize = 8;
/// Time for what was written before a cut to leave.
const FLUSH: Duration = Duration::from_millis(20);

/// An answer before it is sent.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    /// The body in the pieces in which a stream sends it.
    pub(crate) pieces: Vec<Bytes>,
    /// What ends a stream that fails.
    pub(crate) error_event: Bytes,
}

impl Answer {
    /// A JSON body in one piece.
    pub(crate) fn json(status: StatusCode, body: Bytes) -> Self {
        Self {
            status,
            kind: "application/json",
            pieces: vec![body],
            error_event: Bytes::new(),
        }
    }

    /// A stream of events.
    pub(crate) fn events(events: Vec<Bytes>, error_event: Bytes) -> Self {
        Self {
            status: StatusCode::OK,
            kind: "text/event-stream",
            pieces: events,
            error_event,
        }
    }

    fn is_stream(&self) -> bool {
        self.kind == "text/event-stream"
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// The first half of the body.
    fn half(&self) -> Vec<Bytes> {
        if self.is_stream() {
            return self.pieces[..self.pieces.len().div_ceil(2)].to_vec();
        }
        let whole = self.pieces.first().cloned().unwrap_or_default();
        vec![whole.slice(..whole.len() / 2)]
    }

    /// The body in pieces, of which a body that is no stream has several too.
    fn in_pieces(&self) -> Vec<Bytes> {
        if self.is_stream() {
            return self.pieces.clone();
        }
        let whole = self.pieces.first().cloned().unwrap_or_default();
        let size = whole.len().div_ceil(PIECES).max(1);
        let starts = (0..whole.len()).step_by(size);
        starts
            .map(|start| whole.slice(start..whole.len().min(start + size)))
            .collect()
    }

    fn response(&self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.kind));
        if self.is_stream() {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        response
    }
}

/// Sends an answer. `done` is called when all of it is taken.
pub(crate) async fn deliver(
    answer: Answer,
    delivery: Delivery,
    cutter: Cutter,
    done: impl FnOnce() + Send + 'static,
) -> Response {
    match delivery {
        Delivery::Whole => whole(answer, done),
        Delivery::Late { delay_ms } => {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            whole(answer, done)
        }
        Delivery::Dripped { delay_ms } => {
            let pieces = dripped(answer.in_pieces(), Duration::from_millis(delay_ms), done);
            answer.response(Body::from_stream(pieces))
        }
        Delivery::Held { delay_ms } => {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            cutter.cut();
            answer.response(Body::empty())
        }
        Delivery::Reset => {
            cutter.cut();
            answer.response(Body::empty())
        }
        Delivery::Cut => cut(&answer, cutter),
        Delivery::ErrorEvent => {
            let mut pieces = answer.half();
            pieces.push(answer.error_event.clone());
            answer.response(Body::from(pieces.concat()))
        }
        Delivery::Garbled => {
            let mut pieces = answer.half();
            if answer.is_stream() {
                pieces.push(Bytes::from_static(b"data: {\"not\": JSON\n\n"));
            }
            answer.response(Body::from(pieces.concat()))
        }
    }
}

fn whole(answer: Answer, done: impl FnOnce() + Send + 'static) -> Response {
    if !answer.is_stream() {
        done();
        let body = answer.pieces.first().cloned().unwrap_or_default();
        return answer.response(Body::from(body));
    }
    let last = answer.pieces.len().saturating_sub(1);
    let mut done = Some(done);
    let pieces = answer.pieces.clone().into_iter().enumerate();
    let pieces = pieces.map(move |(index, piece)| {
        if index == last
            && let Some(done) = done.take()
        {
            done();
        }
        Ok::<_, Infallible>(piece)
    });
    answer.response(Body::from_stream(stream::iter(pieces)))
}

fn dripped(
    pieces: Vec<Bytes>,
    delay: Duration,
    done: impl FnOnce() + Send + 'static,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let end = stream::once(async move {
        done();
        Ok(Bytes::new())
    });
    let pieces = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(delay).await;
        Ok(piece)
    });
    pieces.chain(end)
}

/// Sends the first half and resets the connection.
fn cut(answer: &Answer, cutter: Cutter) -> Response {
    let end = stream::once(async move {
        tokio::time::sleep(FLUSH).await;
        cutter.cut();
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let half = stream::iter(answer.half().into_iter().map(Ok));
    let mut response = answer.response(Body::from_stream(half.chain(end)));
    if !answer.is_stream() {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(answer.len()));
    }
    response
}
