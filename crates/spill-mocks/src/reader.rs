//! The offered tool that reads stored results back, recognised by its arguments.

use serde_json::{Value, json};

use crate::conversation::OfferedTool;
use crate::preview::Kind;

/// A tool that takes a reference and a range.
#[derive(Debug)]
pub(crate) struct Reader<'v> {
    name: &'v str,
    /// The argument that takes the reference.
    reference: &'static str,
    range: Range,
}

/// How the range is written.
#[derive(Clone, Copy, Debug)]
enum Range {
    /// `{"range": {"offset", "length"}}`
    Nested,
    /// `offset` and this argument.
    Flat(&'static str),
}

impl<'v> Reader<'v> {
    /// The tool for stored results that are announced in this way, when one is offered. Reading tools stand behind
    /// the others, so that of several the last is meant.
    pub(crate) fn of(offered: &'v [OfferedTool], kind: Kind) -> Option<Self> {
        let mut newest_first = offered.iter().rev();
        newest_first.find_map(|tool| Self::try_of(tool, kind))
    }

    fn try_of(tool: &'v OfferedTool, kind: Kind) -> Option<Self> {
        let properties = tool.parameters.get("properties")?;
        let has = |name: &str| properties.get(name).is_some();
        let (reference, range) = match kind {
            Kind::Summary if has("spillover_ref") => ("spillover_ref", nested_or(properties)),
            Kind::Envelope if has("uri") => ("uri", nested_or(properties)),
            Kind::Notice if has("path") && has("offset") && has("limit") && !has("pattern") => {
                ("path", Range::Flat("limit"))
            }
            Kind::Summary | Kind::Envelope | Kind::Notice => return None,
        };
        Some(Self {
            name: &tool.name,
            reference,
            range,
        })
    }

    /// Name and arguments of a call.
    pub(crate) fn call(&self, reference: &str, offset: u64, length: u64) -> (String, String) {
        let mut arguments = json!({self.reference: reference});
        match self.range {
            Range::Nested => arguments["range"] = json!({"offset": offset, "length": length}),
            Range::Flat(argument) => {
                arguments["offset"] = json!(offset);
                arguments[argument] = json!(length);
            }
        }
        (self.name.to_owned(), arguments.to_string())
    }
}

fn nested_or(properties: &Value) -> Range {
    let is_nested = properties.get("range").is_some() || properties.get("offset").is_none();
    if is_nested {
        Range::Nested
    } else {
        Range::Flat("length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, properties: &[&[&str]], expected: Option<&str>) {
        let tool = |names: &&[&str]| {
            let properties: serde_json::Map<_, _> = names
                .iter()
                .map(|name| ((*name).to_owned(), json!({})))
                .collect();
            OfferedTool::new(
                format!("takes_{}", names.join("_")),
                json!({"properties": properties}),
            )
        };
        let offered: Vec<_> = properties.iter().map(tool).collect();
        let call = Reader::of(&offered, kind).map(|reader| {
            let (name, arguments) = reader.call("r", 5, 7);
            format!("{name} {arguments}")
        });
        assert_eq!(call.as_deref(), expected, "{kind:?} {properties:?}");
    }

    #[test]
    fn each_kind_of_preview_has_its_reader() {
        let step: &[&str] = &["spillover_ref", "range"];
        let file: &[&str] = &["path", "offset", "limit"];
        let grep: &[&str] = &["path", "pattern", "offset", "limit"];
        let uri: &[&str] = &["uri", "range"];
        let own: &[&str] = &["path"];
        let all = [own, step, uri, file, grep];
        check(
            Kind::Summary,
            &all,
            Some(
                r#"takes_spillover_ref_range {"spillover_ref":"r","range":{"offset":5,"length":7}}"#,
            ),
        );
        check(
            Kind::Notice,
            &all,
            Some(r#"takes_path_offset_limit {"path":"r","offset":5,"limit":7}"#),
        );
        check(
            Kind::Envelope,
            &all,
            Some(r#"takes_uri_range {"uri":"r","range":{"offset":5,"length":7}}"#),
        );
        check(
            Kind::Summary,
            &[&["spillover_ref", "offset", "length"]],
            Some(
                r#"takes_spillover_ref_offset_length {"spillover_ref":"r","offset":5,"length":7}"#,
            ),
        );
        check(
            Kind::Envelope,
            &[&["uri"]],
            Some(r#"takes_uri {"uri":"r","range":{"offset":5,"length":7}}"#),
        );
        check(Kind::Notice, &[own, grep, step, uri], None);
        check(Kind::Summary, &[file, uri], None);
        check(Kind::Envelope, &[], None);
    }
}
