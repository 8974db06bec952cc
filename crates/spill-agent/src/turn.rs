//! Serialises what one iteration adds to the messages: the model's turn and its tool results.

use serde::Serialize;

use crate::{delimit::Delimited, ports::ToolCall, request::write_json};

/// Room for a tool message's own keys, its call id and the delimiters.
const MESSAGE_OVERHEAD_BYTES: usize = 160;

/// The growing messages of one iteration, each preceded by its comma.
#[derive(Debug, Default)]
pub(crate) struct Turn(Vec<u8>);

#[derive(Serialize)]
struct AssistantMessage<'a> {
    role: &'static str,
    content: Option<&'a str>,
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: &'a str,
    content: Delimited<'a>,
}

impl Turn {
    /// Starts with the model's own turn.
    pub(crate) fn new(content: Option<&str>, calls: &[ToolCall]) -> Self {
        let mut out = vec![b','];
        let tool_calls = calls
            .iter()
            .map(|call| WireCall {
                id: &call.id,
                r#type: "function",
                function: WireFunction {
                    name: &call.name,
                    arguments: &call.arguments,
                },
            })
            .collect();
        write_json(
            &mut out,
            &AssistantMessage {
                role: "assistant",
                content,
                tool_calls,
            },
        );
        Self(out)
    }

    /// Makes room at once for tool messages of `texts` bytes in `count` messages.
    pub(crate) fn reserve(&mut self, texts: usize, count: usize) {
        self.0
            .reserve(texts + texts / 16 + count * MESSAGE_OVERHEAD_BYTES);
    }

    /// Appends the result of one call.
    pub(crate) fn result(&mut self, call_id: &str, text: &str, is_error: bool) {
        self.0.push(b',');
        write_json(
            &mut self.0,
            &ToolMessage {
                role: "tool",
                tool_call_id: call_id,
                content: Delimited { text, is_error },
            },
        );
    }

    /// The serialised messages.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_the_wire_order_of_keys() {
        let calls = [ToolCall {
            id: "c1".to_owned(),
            name: "read".to_owned(),
            arguments: "{\"p\":1}".to_owned(),
        }];
        let mut turn = Turn::new(None, &calls);
        turn.reserve(4, 1);
        turn.result("c1", "a\"b", false);
        turn.result("c2", "no", true);
        assert_eq!(
            String::from_utf8(turn.into_bytes()).expect("JSON is UTF-8"),
            concat!(
                r#",{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\":1}"}}]}"#,
                r#",{"role":"tool","tool_call_id":"c1","content":"<tool-result>\na\"b\n</tool-result>"}"#,
                r#",{"role":"tool","tool_call_id":"c2","content":"<tool-result error=\"true\">\nno\n</tool-result>"}"#
            )
        );
    }
}
