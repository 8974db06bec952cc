//! What stands in the prompt for a stored result, as a model recognises it: by its text alone.
//!
//! Three forms are known. A *summary* is a JSON object with `spillover_ref`, head and tail. A *notice* is the last
//! line of a text that was cut: how much is left out, and where the whole is. An *envelope* is a JSON object with
//! `resourceUri` and a preview. A text that says that it was cut and names no reference is none of them.

use serde::Deserialize;
use serde_json::Value;

/// A longer summary is not looked for.
const SUMMARY_LIMIT: usize = 64 * 1024;
/// A notice is looked for in this many bytes at the end.
const NOTICE_LIMIT: usize = 8 * 1024;
/// Glued ends shorter than this together are read as a head only.
const GLUED_LIMIT: usize = 1024;
/// Around the middle of glued ends nobody can say which end a byte belongs to: the cut is between characters.
const GLUED_MARGIN: usize = 4;
/// How an envelope's preview ends a text that it cut, and what it puts in place of a value.
const CUT: &str = "[truncated]";
const CUT_TEXT: &str = "... [truncated]";
const NOT_SHOWN: [&str; 3] = [CUT, "[unserializable]", "[preview omitted]"];

/// What a preview looks like, and so which tool reads the stored result back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Summary,
    Notice,
    Envelope,
}

/// What a preview says about the stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Preview {
    pub(crate) kind: Kind,
    pub(crate) reference: String,
    /// Bytes of the stored text. Where a notice leaves open whether a line feed was shown, it is off by one.
    pub(crate) size: u64,
    /// Lines of the stored text, where they are stated.
    lines: Option<u64>,
    /// What it shows of the start.
    pub(crate) head: String,
    /// What it shows of the end.
    pub(crate) tail: String,
}

impl Preview {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let start = text.trim_start();
        let found = if start.starts_with("{\"_spillover\"") {
            envelope(start)
        } else if start.starts_with('{') {
            summary(text)
        } else {
            None
        };
        found
            .or_else(|| notice(text))
            .filter(|found| (found.head.len() + found.tail.len()) as u64 <= found.size)
    }

    /// Lines of a stored text of `size` bytes: as stated, else by the mean line in view.
    pub(crate) fn lines(&self, size: u64) -> u64 {
        if let Some(lines) = self.lines {
            return lines;
        }
        let shown = [self.head.as_bytes(), self.tail.as_bytes()];
        let bytes = shown.iter().map(|end| end.len() as u64).sum::<u64>();
        let feeds = shown
            .iter()
            .map(|end| memchr::memchr_iter(b'\n', end).count() as u64);
        let lines = u128::from(feeds.sum::<u64>()) * u128::from(size) / u128::from(bytes.max(1));
        u64::try_from(lines).unwrap_or(u64::MAX)
    }
}

#[derive(Deserialize)]
struct Summary {
    spilled: bool,
    spillover_ref: String,
    size_bytes: u64,
    #[serde(default)]
    lines: u64,
    #[serde(default)]
    head: String,
    #[serde(default)]
    tail: String,
}

fn summary(text: &str) -> Option<Preview> {
    if text.len() > SUMMARY_LIMIT || !text.contains("\"spillover_ref\"") {
        return None;
    }
    let summary: Summary = serde_json::from_str(text).ok()?;
    summary.spilled.then_some(Preview {
        kind: Kind::Summary,
        reference: summary.spillover_ref,
        size: summary.size_bytes,
        lines: Some(summary.lines),
        head: summary.head,
        tail: summary.tail,
    })
}

/// Ends of a text, and as the last line `(Omitted N bytes. Full formatted result stored at: REFERENCE. HINT)`.
fn notice(text: &str) -> Option<Preview> {
    let from = text.floor_char_boundary(text.len().saturating_sub(NOTICE_LIMIT));
    let at = from + text[from..].rfind("(Omitted ")?;
    let notice = text[at..].strip_prefix("(Omitted ")?.strip_suffix(')')?;
    let kept = match at {
        0 => "",
        _ => text[..at].strip_suffix("\n\n")?,
    };
    let (omitted, rest) = notice.split_once(" bytes. Full formatted result stored at: ")?;
    let omitted: u64 = omitted.parse().ok()?;
    let (kept, said_first) = without_first_line(kept, omitted);
    let reference = match said_first {
        Some(reference) if rest.starts_with(reference) => reference,
        Some(_) | None => rest
            .split_once(". ")
            .map_or_else(|| rest.strip_suffix('.'), |(reference, _)| Some(reference))?,
    };
    let (head, tail, shown) = ends(kept, omitted);
    Some(Preview {
        kind: Kind::Notice,
        reference: reference.to_owned(),
        size: omitted.checked_add(shown as u64)?,
        lines: None,
        head: head.to_owned(),
        tail: tail.to_owned(),
    })
}

/// A first line that says the same as the notice, and the reference that it names.
fn without_first_line(kept: &str, omitted: u64) -> (&str, Option<&str>) {
    let said = kept.split_once('\n').and_then(|(line, rest)| {
        let rest_of_line = line.strip_prefix(&format!(
            "({omitted} bytes are left out below; the whole is at "
        ))?;
        Some((rest, rest_of_line.strip_suffix(')')?))
    });
    said.map_or((kept, None), |(rest, reference)| (rest, Some(reference)))
}

/// The two ends and the bytes that are theirs. A marker shows where the cut is; without one it is taken to be in the
/// middle, and what stands near it belongs to neither end.
fn ends(kept: &str, omitted: u64) -> (&str, &str, usize) {
    let marker = format!("\n[... {omitted} bytes left out ...]\n");
    if let Some(at) = kept.find(&marker) {
        let tail = &kept[at + marker.len()..];
        // The line feed before the marker is the head's own when the head was cut at a line.
        let last_line = kept[..at].rfind('\n').map_or(0, |feed| feed + 1);
        let at_line = last_line > 0 && last_line * 2 >= at;
        let head = &kept[..at + usize::from(at_line)];
        return (head, tail, head.len() + tail.len());
    }
    if kept.len() < GLUED_LIMIT {
        return (
            &kept[..kept.floor_char_boundary(kept.len() / 3)],
            "",
            kept.len(),
        );
    }
    let middle = kept.len() / 2;
    let head = &kept[..kept.floor_char_boundary(middle - GLUED_MARGIN)];
    let tail = &kept[kept.ceil_char_boundary(middle + GLUED_MARGIN)..];
    (head, tail, kept.len())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    #[serde(rename = "_spillover")]
    spillover: bool,
    resource_uri: String,
    mime_type: String,
    size_bytes: u64,
    #[serde(default)]
    preview: Value,
}

fn envelope(text: &str) -> Option<Preview> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    let head = match (&*envelope.mime_type, &envelope.preview) {
        ("text/plain", Value::String(shown)) if !NOT_SHOWN.contains(&shown.as_str()) => {
            shown.strip_suffix(CUT_TEXT).unwrap_or(shown).to_owned()
        }
        ("application/json", shown) => start_of_json(shown),
        _ => String::new(),
    };
    envelope.spillover.then_some(Preview {
        kind: Kind::Envelope,
        reference: envelope.resource_uri,
        size: envelope.size_bytes,
        lines: None,
        head,
        tail: String::new(),
    })
}

/// The start of the compact JSON whose first items a preview shows: as far as they are whole.
fn start_of_json(shown: &Value) -> String {
    let joined = |open: char, items: Vec<String>| format!("{open}{}", items.join(","));
    match shown {
        Value::Array(items) => {
            let whole = items.iter().take_while(|item| !is_cut(item));
            joined('[', whole.map(Value::to_string).collect())
        }
        Value::Object(fields) => {
            let whole = fields.iter().take_while(|(_, value)| !is_cut(value));
            let field =
                |(key, value): (&String, &Value)| format!("{}:{value}", Value::from(key.as_str()));
            joined('{', whole.map(field).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::new(),
    }
}

fn is_cut(value: &Value) -> bool {
    match value {
        Value::String(text) => text.ends_with(CUT_TEXT) || NOT_SHOWN.contains(&text.as_str()),
        Value::Array(items) => items.iter().any(is_cut),
        Value::Object(fields) => fields.values().any(is_cut),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::{policy, shaped};

    fn check(text: &str, kind: Kind, reference: &str, size: u64, head: &str, tail: &str) {
        let found = Preview::parse(text).unwrap_or_else(|| panic!("a preview: {text:?}"));
        assert_eq!(
            (
                found.kind,
                &*found.reference,
                found.size,
                &*found.head,
                &*found.tail
            ),
            (kind, reference, size, head, tail),
            "{text:?}"
        );
    }

    #[test]
    fn summaries() {
        check(
            r#"{"spilled":true,"spillover_ref":"r","size_bytes":9,"lines":2,"structure":"text","head":"a\n","tail":"é","how_to_read":"x"}"#,
            Kind::Summary,
            "r",
            9,
            "a\n",
            "é",
        );
    }

    #[test]
    fn notices_in_every_layout() {
        let stored = |n: u64| {
            format!(
                "(Omitted {n} bytes. Full formatted result stored at: /s/a.b.txt. Use X. Or Y.)"
            )
        };
        let check = |text: String, size, head: &str, tail: &str| {
            check(&text, Kind::Notice, "/s/a.b.txt", size, head, tail);
        };
        check(stored(9), 9, "", "");
        check(
            "(Omitted 9 bytes. Full formatted result stored at: /s/a.b.txt.)".to_owned(),
            9,
            "",
            "",
        );
        // Cut at lines: the line feed before the marker is the head's.
        let marker = "[... 70 bytes left out ...]";
        check(
            format!("one\ntwo\nthree\n{marker}\ntail\n\n{}", stored(70)),
            70 + 14 + 4,
            "one\ntwo\nthree\n",
            "tail",
        );
        // Cut inside a line: it is the marker's.
        check(
            format!(
                "one\nand a long line {marker}...\n{marker}\nil\n\n\n{}",
                stored(70)
            ),
            70 + 50 + 3,
            &format!("one\nand a long line {marker}..."),
            "il\n",
        );
        let first = "(70 bytes are left out below; the whole is at /s/a.b.txt)\n";
        check(
            format!("{first}one line {marker}\n{marker}\nil\n\n{}", stored(70)),
            70 + 36 + 2,
            &format!("one line {marker}"),
            "il",
        );
        // The reference holds what else would end it.
        let text = "(7 bytes are left out below; the whole is at /a. b/c)\nh\n[... 7 bytes left out ...]\nt\n\n(Omitted 7 bytes. Full formatted result stored at: /a. b/c. Use X.)";
        super::tests::check(text, Kind::Notice, "/a. b/c", 9, "h", "t");
    }

    #[test]
    fn glued_ends_are_known_up_to_the_middle() {
        let (head, tail) = ("h".repeat(600), "é".repeat(300));
        let notice = "(Omitted 5000 bytes. Full formatted result stored at: L. Use X.)";
        check(
            &format!("{head}{tail}\n\n{notice}"),
            Kind::Notice,
            "L",
            6200,
            &head[..596],
            &tail[4..],
        );
        check(
            &format!("{}\n\n{notice}", "h".repeat(30)),
            Kind::Notice,
            "L",
            5030,
            "hhhhhhhhhh",
            "",
        );
    }

    #[test]
    fn envelopes() {
        let with = |mime: &str, preview: &str| {
            format!(
                r#"{{"_spillover":true,"resourceUri":"resource://x/1","mimeType":"{mime}","sizeBytes":900,"totalItems":3,"summary":"s","preview":{preview},"hint":"h"}}"#
            )
        };
        let check = |mime, preview, head: &str| {
            check(
                &with(mime, preview),
                Kind::Envelope,
                "resource://x/1",
                900,
                head,
                "",
            );
        };
        check("text/plain", r#""a\nb... [truncated]""#, "a\nb");
        check("text/plain", r#""all of it""#, "all of it");
        check("text/plain", r#""[preview omitted]""#, "");
        check("text/plain", "null", "");
        check("application/octet-stream", r#""[binary: 9 bytes]""#, "");
        check(
            "application/json",
            r#"[{"b":1,"a":1.0},{"b":"x... [truncated]"},3]"#,
            r#"[{"b":1,"a":1.0}"#,
        );
        check("application/json", r#"["[truncated]",1]"#, "[");
        check(
            "application/json",
            r#"{"a\"":[1,null],"b":"[truncated]"}"#,
            r#"{"a\"":[1,null]"#,
        );
        check("application/json", r#""[preview omitted]""#, "");
    }

    #[test]
    fn what_names_no_reference_is_no_preview() {
        for text in [
            "",
            "{}",
            "{\"spilled\":true}",
            "{\"spilled\":true,\"spillover_ref\":7,\"size_bytes\":1}",
            "{\"spilled\":false,\"spillover_ref\":\"r\",\"size_bytes\":1}",
            "{\"spilled\":true,\"spillover_ref\":\"r\",\"size_bytes\":1,\"head\":\"ab\"}",
            "{\"_spillover\":true,\"resourceUri\":\"r\"}",
            "{\"_spillover\":false,\"resourceUri\":\"r\",\"mimeType\":\"text/plain\",\"sizeBytes\":9}",
            "text\n[truncated]",
            "text\n\n(Omitted 9 bytes.)",
            "text (Omitted 9 bytes. Full formatted result stored at: /a. Use X.)",
            "text\n\n(Omitted some bytes. Full formatted result stored at: /a. Use X.)",
            "text\n\n(Omitted 9 bytes. Full formatted result stored at: /a. Use X.) and more",
        ] {
            assert_eq!(Preview::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn lines_are_stated_or_estimated() {
        let lines = |text: &str| Preview::parse(text).expect("a preview").lines(1000);
        let summary = r#"{"spilled":true,"spillover_ref":"r","size_bytes":1000,"lines":7}"#;
        assert_eq!(lines(summary), 7);
        let notice = "(Omitted 980 bytes. Full formatted result stored at: L.)";
        let marker = "[... 980 bytes left out ...]\n";
        assert_eq!(
            lines(&format!("123456789\n{marker}12345678\n\n\n{notice}")),
            55
        );
        assert_eq!(lines(notice), 0);
    }

    /// What the engine's own replacement of `text` shows is what stands there in `text`.
    fn check_engine(name: &str, options: &Value, text: &str) -> Option<Preview> {
        let (prompt, reference) = shaped(&*policy(name, options), "read_file", text);
        let found = Preview::parse(&prompt);
        assert_eq!(
            found.as_ref().map(|found| &found.reference),
            reference.as_ref(),
            "{prompt}"
        );
        let found = found?;
        assert!(text.starts_with(&found.head), "{prompt}");
        assert!(text.ends_with(&found.tail), "{prompt}");
        assert!(
            text.len()
                .abs_diff(usize::try_from(found.size).expect("small"))
                <= 1,
            "{} is not {}: {prompt}",
            found.size,
            text.len()
        );
        Some(found)
    }

    #[test]
    fn the_engines_replacements_are_recognised() {
        let code: String = (0..2000)
            .map(|line| format!("fn value_{line}() {{}}\n"))
            .collect();
        let one_line: String = (0..4000).map(|n| format!("{{\"id\":{n}}},")).collect();
        for text in [&code, &one_line, &"é".repeat(20_000)] {
            for layout in ["marked", "glued"] {
                let options = json!({"maxInlineBytes": 9000, "layout": layout});
                let found = check_engine("inline-cap", &options, text).expect("a preview");
                assert!(found.head.len() > 4000 && found.tail.len() > 4000);
            }
            let options = json!({"maxPayloadBytes": 9000});
            let found = check_engine("envelope", &options, text).expect("a preview");
            assert!(found.head.len() >= 500);
        }
        // At lines, nothing is left open.
        let options = json!({"maxInlineBytes": 9000});
        let found = check_engine("inline-cap", &options, &code).expect("a preview");
        assert_eq!(found.size, code.len() as u64);
        assert!(found.head.ends_with("{}\n") && found.tail.starts_with("fn "));
    }

    proptest! {
        #[test]
        fn whatever_the_engine_replaces_is_recognised(
            text in "([a-zé(). \n]{0,40}\n?){1,60}",
            limit in 0u64..3000,
            glued in any::<bool>(),
        ) {
            let layout = if glued { "glued" } else { "marked" };
            let options = json!({"maxInlineBytes": limit, "layout": layout});
            check_engine("inline-cap", &options, &text);
            check_engine("envelope", &json!({"maxPayloadBytes": limit}), &text);
        }
    }
}
