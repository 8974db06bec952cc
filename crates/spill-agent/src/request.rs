//! The chat request: its body grows at the end and is never serialised again.

use bytes::Bytes;

/// The body of one chat request, as pieces of JSON text.
///
/// Messages are serialised once, when they are appended; a request that is sent again shares
/// their bytes. So the `messages` of one request are a byte prefix of those of the next.
#[derive(Clone, Debug)]
pub struct ChatRequest {
    head: Bytes,
    messages: Vec<Bytes>,
    tail: Bytes,
}

impl ChatRequest {
    /// Starts a request with the system message, unless empty, and the user's prompt.
    pub(crate) fn new(model: &str, system: &str, prompt: &str) -> Self {
        let mut first = Vec::with_capacity(system.len() + prompt.len() + 128);
        if !system.is_empty() {
            message(&mut first, "system", system);
            first.push(b',');
        }
        message(&mut first, "user", prompt);
        let mut head = b"{\"model\":".to_vec();
        write_json(&mut head, model);
        head.extend_from_slice(b",\"messages\":[");
        Self {
            head: head.into(),
            messages: vec![first.into()],
            tail: Bytes::from_static(b"]}"),
        }
    }

    /// Appends the serialised messages of one turn.
    pub(crate) fn append(&mut self, turn: Vec<u8>) {
        self.messages.push(turn.into());
    }

    /// Replaces what follows the messages: the serialised tools on offer.
    pub(crate) fn set_tail(&mut self, tail: Bytes) {
        self.tail = tail;
    }

    /// The pieces in order; cloning one shares its bytes.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.head)
            .chain(&self.messages)
            .chain(std::iter::once(&self.tail))
    }

    /// Bytes of the whole body.
    #[must_use]
    pub fn body_bytes(&self) -> usize {
        self.pieces().map(Bytes::len).sum()
    }

    /// The whole body in one piece: a copy, for tests and digests.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.body_bytes());
        for piece in self.pieces() {
            body.extend_from_slice(piece);
        }
        body
    }
}

fn message(out: &mut Vec<u8>, role: &str, content: &str) {
    out.extend_from_slice(b"{\"role\":");
    write_json(out, role);
    out.extend_from_slice(b",\"content\":");
    write_json(out, content);
    out.push(b'}');
}

/// Appends the compact JSON of a value that has one.
pub(crate) fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value)
        .expect("strings and JSON values serialise, memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(request: &ChatRequest) -> String {
        String::from_utf8(request.to_vec()).expect("JSON is UTF-8")
    }

    #[test]
    fn a_request_starts_with_system_and_prompt() {
        let request = ChatRequest::new("m\"", "be brief", "hi\n");
        assert_eq!(
            text(&request),
            r#"{"model":"m\"","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi\n"}]}"#
        );
        assert_eq!(request.body_bytes(), text(&request).len());
    }

    #[test]
    fn an_empty_system_message_is_not_sent() {
        let mut request = ChatRequest::new("m", "", "hi");
        request.append(b",1".to_vec());
        request.set_tail(Bytes::from_static(b"],\"tools\":[]}"));
        assert_eq!(
            text(&request),
            r#"{"model":"m","messages":[{"role":"user","content":"hi"},1],"tools":[]}"#
        );
    }
}
