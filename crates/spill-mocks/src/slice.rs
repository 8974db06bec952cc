//! What a read tool answered: a part of a stored result, as a model recognises it.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

/// Where a slice sits in the stored text, and its own text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) reference: String,
    pub(crate) offset: u64,
    /// Bytes of the stored text, where the answer states them.
    pub(crate) size: Option<u64>,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// These bytes of the answer.
    Within(Range<usize>),
    /// What was written as a JSON string in it.
    Written(String),
}

impl Slice {
    pub(crate) fn parse(answer: &str) -> Option<Self> {
        if answer.starts_with("{\"contents\"") {
            return resource(answer);
        }
        behind_header(answer)
    }

    /// The slice's text; `answer` is what it was parsed from.
    pub(crate) fn text<'a>(&'a self, answer: &'a str) -> &'a str {
        match &self.body {
            Body::Within(range) => answer.get(range.clone()).unwrap_or_default(),
            Body::Written(text) => text,
        }
    }

    /// Bytes of `answer` that stand before the slice's text.
    pub(crate) fn header_bytes(&self) -> usize {
        match &self.body {
            Body::Within(range) => range.start,
            Body::Written(_) => 0,
        }
    }
}

#[derive(Deserialize)]
struct Header {
    spillover_ref: String,
    offset: u64,
    #[serde(rename = "length")]
    _length: u64,
    #[serde(default)]
    size_bytes: Option<u64>,
}

/// One line of JSON, and the bytes behind it.
fn behind_header(answer: &str) -> Option<Slice> {
    if !answer.starts_with("{\"spillover_ref\"") {
        return None;
    }
    let end = memchr::memchr(b'\n', answer.as_bytes()).unwrap_or(answer.len());
    let header: Header = serde_json::from_str(&answer[..end]).ok()?;
    let start = answer.len().min(end + 1);
    Some(Slice {
        reference: header.spillover_ref,
        offset: header.offset,
        size: header.size_bytes,
        body: Body::Within(start..answer.len()),
    })
}

#[derive(Deserialize)]
struct Resources {
    contents: Vec<Resource>,
}

/// One content of `resources/read`. Without an offset it is the whole.
#[derive(Deserialize)]
struct Resource {
    uri: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
    #[serde(default)]
    offset: Option<u64>,
    #[serde(default)]
    size_bytes: Option<u64>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

fn resource(answer: &str) -> Option<Slice> {
    let Resources { contents } = serde_json::from_str(answer).ok()?;
    let resource = contents.into_iter().next()?;
    let meta = |name: &str| resource.meta.get(name).and_then(Value::as_u64);
    Some(Slice {
        offset: resource.offset.or_else(|| meta("offset")).unwrap_or(0),
        size: resource.size_bytes.or_else(|| meta("sizeBytes")),
        reference: without_query(&resource.uri).to_owned(),
        body: Body::Written(resource.text.or(resource.blob)?),
    })
}

/// A URI without what a reader may have put behind it.
pub(crate) fn without_query(uri: &str) -> &str {
    uri.split_once('?').map_or(uri, |(uri, _)| uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, reference: &str, offset: u64, size: Option<u64>, text: &str) {
        let slice = Slice::parse(answer).unwrap_or_else(|| panic!("a slice: {answer:?}"));
        assert_eq!(
            (
                &*slice.reference,
                slice.offset,
                slice.size,
                slice.text(answer)
            ),
            (reference, offset, size, text),
            "{answer:?}"
        );
    }

    #[test]
    fn slices_behind_a_header_line() {
        let header =
            r#"{"spillover_ref":"r","offset":4,"length":3,"next_offset":null,"size_bytes":7}"#;
        check(&format!("{header}\nx\ny"), "r", 4, Some(7), "x\ny");
        check(header, "r", 4, Some(7), "");
        check(
            r#"{"spillover_ref":"r","offset":0,"length":1}"#,
            "r",
            0,
            None,
            "",
        );
    }

    #[test]
    fn slices_as_the_contents_of_a_resource() {
        check(
            r#"{"contents":[{"uri":"u://1","mimeType":"text/plain","text":"a\nb"}]}"#,
            "u://1",
            0,
            None,
            "a\nb",
        );
        check(
            r#"{"contents":[{"uri":"u://1?offset=5&length=2","mimeType":"text/plain","text":"é","offset":5,"length":2,"next_offset":7,"size_bytes":90}]}"#,
            "u://1",
            5,
            Some(90),
            "é",
        );
        check(
            r#"{"contents":[{"uri":"u","mimeType":"application/octet-stream","blob":"AAAA","_meta":{"offset":8,"sizeBytes":12}}]}"#,
            "u",
            8,
            Some(12),
            "AAAA",
        );
    }

    #[test]
    fn what_is_no_slice() {
        for answer in [
            "",
            "text",
            r#"{"spillover_ref":"r"}"#,
            r#"{"spillover_ref":7,"offset":0,"length":1}"#,
            r#"{"contents":[]}"#,
            r#"{"contents":[{"uri":"u"}]}"#,
            r#"{"contents":"x"}"#,
        ] {
            assert_eq!(Slice::parse(answer), None, "{answer:?}");
        }
    }
}
