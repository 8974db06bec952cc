//! Server-sent events out of a stream that arrives in any pieces.

use bytes::Bytes;

/// A longer event is no answer of a model.
const MOST_BYTES: usize = 16 << 20;

/// One event as it stands in the stream, and its data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// All of it, the blank line that ends it included.
    pub(crate) raw: Bytes,
    /// Its `data` lines, with line feeds between.
    pub(crate) data: String,
}

/// What arrived and is no whole event yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    held: Vec<u8>,
    /// Bytes of `held` that hold no end of an event.
    searched: usize,
}

/// An event without an end in sight.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Events {
    /// Takes what arrived and returns the events that it ends.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.held.extend_from_slice(piece);
        let mut events = Vec::new();
        let mut start = 0;
        while let Some(end) = end_of_event(&self.held, start.max(self.searched)) {
            events.push(event(&self.held[start..end]));
            start = end;
            self.searched = end;
        }
        self.held.drain(..start);
        // The end may begin with the last three bytes.
        self.searched = self.held.len().saturating_sub(3);
        if self.held.len() > MOST_BYTES {
            return Err(TooLong);
        }
        Ok(events)
    }

    /// What is left when the stream has ended: an event without its blank line.
    pub(crate) fn rest(&mut self) -> Option<Event> {
        let rest = std::mem::take(&mut self.held);
        self.searched = 0;
        (!rest.trim_ascii().is_empty()).then(|| event(&rest))
    }
}

/// Where the event that ends first at or after `from` ends: behind a blank line.
fn end_of_event(held: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let line_end = at + memchr::memchr(b'\n', &held[at..])?;
        let next = &held[line_end + 1..];
        if next.first() == Some(&b'\n') {
            return Some(line_end + 2);
        }
        if next.starts_with(b"\r\n") {
            return Some(line_end + 3);
        }
        at = line_end + 1;
    }
}

fn event(raw: &[u8]) -> Event {
    let text = String::from_utf8_lossy(raw);
    let data: Vec<&str> = text
        .lines()
        .filter_map(|line| {
            let value = line.strip_prefix("data:")?;
            Some(value.strip_prefix(' ').unwrap_or(value))
        })
        .collect();
    Event {
        raw: Bytes::copy_from_slice(raw),
        data: data.join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str = "event: a\ndata: {\"x\":1}\n\ndata: one\ndata:two\n\n: ping\n\ndata: c\r\n\r\ndata: é\n\ndata: [DONE]\n\n";

    fn all(pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>) {
        let mut events = Events::default();
        let mut found = Vec::new();
        for piece in pieces {
            found.extend(events.push(piece).expect("short events"));
        }
        found.extend(events.rest());
        let raw = found.iter().flat_map(|event| event.raw.to_vec()).collect();
        (found.into_iter().map(|event| event.data).collect(), raw)
    }

    #[test]
    fn events_are_told_apart() {
        let (data, raw) = all(&[STREAM.as_bytes()]);
        assert_eq!(data, ["{\"x\":1}", "one\ntwo", "", "c", "é", "[DONE]"]);
        assert_eq!(raw, STREAM.as_bytes());
        assert_eq!(all(&[b"data: cut"]).0, ["cut"]);
        assert_eq!(all(&[b"", b"\n"]).0, [""; 0]);
    }

    #[test]
    fn an_event_without_an_end_is_not_kept_for_ever() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let ended = (0..20).find_map(|_| events.push(&piece).err());
        assert_eq!(ended, Some(TooLong));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in prop::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut at = 0;
            for cut in cuts {
                pieces.push(&STREAM.as_bytes()[at..cut]);
                at = cut;
            }
            pieces.push(&STREAM.as_bytes()[at..]);
            prop_assert_eq!(all(&pieces), all(&[STREAM.as_bytes()]));
        }
    }
}
