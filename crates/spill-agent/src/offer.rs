//! Which tools the model is offered and may call.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use spill_engine::READ_TOOL;

use crate::{ports::ToolSpec, read_tools::ReadTool, request::write_json};

/// The step's tools after allow-list and exclude list, serialised once.
#[derive(Debug)]
pub(crate) struct Offer {
    names: Vec<String>,
    tools: Vec<u8>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a Value,
}

impl Offer {
    /// Filters the listed tools. The name of the step's own read tool is reserved: a server's tool
    /// of that name is left out, with spilling on and off alike.
    pub(crate) fn new(
        listed: &[ToolSpec],
        allowed: Option<&[String]>,
        excluded: &[String],
    ) -> Self {
        let mut offer = Self {
            names: Vec::new(),
            tools: Vec::new(),
        };
        for tool in listed {
            let included = allowed.is_none_or(|names| names.contains(&tool.name));
            let free = tool.name != READ_TOOL && !offer.knows(&tool.name);
            if included && free && !excluded.contains(&tool.name) {
                offer.push(tool);
            }
        }
        offer
    }

    fn push(&mut self, tool: &ToolSpec) {
        if !self.tools.is_empty() {
            self.tools.push(b',');
        }
        write_tool(
            &mut self.tools,
            &tool.name,
            tool.description.as_deref(),
            &tool.parameters,
        );
        self.names.push(tool.name.clone());
    }

    /// Whether the model may call the server's tool of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// The names on offer, in the server's order.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// What follows the messages of a request, without read tools.
    pub(crate) fn tail(&self) -> Bytes {
        close(self.tools.clone())
    }

    /// The same with the read tools behind the server's tools.
    pub(crate) fn tail_with(&self, read_tools: &[ReadTool]) -> Bytes {
        let mut tools = self.tools.clone();
        for tool in read_tools {
            if !tools.is_empty() {
                tools.push(b',');
            }
            write_tool(
                &mut tools,
                &tool.name,
                Some(tool.description),
                &tool.parameters,
            );
        }
        close(tools)
    }
}

fn write_tool(out: &mut Vec<u8>, name: &str, description: Option<&str>, parameters: &Value) {
    write_json(
        out,
        &WireTool {
            r#type: "function",
            function: WireFunction {
                name,
                description,
                parameters,
            },
        },
    );
}

/// A request without tools must not have a `tools` key: providers refuse an empty list.
fn close(tools: Vec<u8>) -> Bytes {
    if tools.is_empty() {
        return Bytes::from_static(b"]}");
    }
    let mut tail = b"],\"tools\":[".to_vec();
    tail.extend_from_slice(&tools);
    tail.extend_from_slice(b"],\"parallel_tool_calls\":true}");
    tail.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::read_tools::ReadKind;

    fn listed(names: &[&str]) -> Vec<ToolSpec> {
        names
            .iter()
            .map(|name| ToolSpec {
                name: (*name).to_owned(),
                description: None,
                parameters: json!({"type": "object"}),
            })
            .collect()
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn check_names(server: &[&str], allowed: Option<&[&str]>, excluded: &[&str], offered: &[&str]) {
        let allowed = allowed.map(owned);
        let offer = Offer::new(&listed(server), allowed.as_deref(), &owned(excluded));
        assert_eq!(offer.names(), owned(offered));
    }

    #[test]
    fn allow_and_exclude_lists_filter_in_server_order() {
        check_names(&["b", "a"], None, &[], &["b", "a"]);
        check_names(&["b", "a"], Some(&["a", "b"]), &[], &["b", "a"]);
        check_names(&["b", "a"], Some(&["a"]), &[], &["a"]);
        check_names(&["b", "a"], Some(&["a"]), &["a"], &[]);
        check_names(&["b", "a"], Some(&[]), &[], &[]);
        check_names(&["a", "a"], None, &[], &["a"]);
        check_names(&[READ_TOOL, "a"], None, &[], &["a"]);
    }

    #[test]
    fn the_read_tool_stands_behind_the_others() {
        let offer = Offer::new(&listed(&["a"]), None, &[]);
        let plain = String::from_utf8(offer.tail().to_vec()).expect("JSON is UTF-8");
        assert_eq!(
            plain,
            r#"],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}],"parallel_tool_calls":true}"#
        );
        let read_tool = ReadKind::Step.tool(&|_| true);
        let extended =
            String::from_utf8(offer.tail_with(&[read_tool]).to_vec()).expect("JSON is UTF-8");
        let shared = plain.len() - r#"],"parallel_tool_calls":true}"#.len();
        assert_eq!(extended[..shared], plain[..shared]);
        assert!(extended[shared..].starts_with(&format!(
            r#",{{"type":"function","function":{{"name":"{READ_TOOL}","#
        )));
    }

    #[test]
    fn no_tools_means_no_tools_key() {
        assert_eq!(Offer::new(&[], None, &[]).tail(), "]}");
    }
}
