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
        format!("(Omitted {n} bytes. Full formatted result stored at: /s/a.b.txt. Use X. Or Y.)")
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
    self::check(text, Kind::Notice, "/a. b/c", 9, "h", "t");
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
fn rows_stand_at_their_places() {
    let rows = "log, 80 bytes, 9 lines\nline 1 at 0: one\nline 4 at 30: ERROR x\n[bytes 40 to 77 of 80 not shown]\nline 9 at 77: end";
    let notice = "(Shown in parts, 80 bytes. Full formatted result stored at: L. Use X.)";
    let preview = Value::from(rows);
    let envelope = format!(
        r#"{{"_spillover":true,"resourceUri":"u","mimeType":"text/plain","sizeBytes":80,"preview":{preview}}}"#
    );
    let both = [
        (format!("{rows}\n\n{notice}"), Kind::Notice, "L"),
        (envelope, Kind::Envelope, "u"),
    ];
    for (text, kind, reference) in both {
        check(&text, kind, reference, 80, "one", "end");
        let found = Preview::parse(&text).expect("a preview");
        let row = Block {
            offset: 30,
            text: "ERROR x".to_owned(),
            is_lines: true,
        };
        assert_eq!(found.rows, [row]);
    }
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
    // Rows by content, each where it says that it stands.
    let log: String = (0..3000)
        .map(|n| {
            format!(
                "2026-03-01T00:00:{:02}Z {} step {n}\n",
                n % 60,
                ["INFO", "ERROR"][usize::from(n == 999)]
            )
        })
        .collect();
    let rows: Value = (0..900).map(|id| json!({"id": id, "note": "x"})).collect();
    for text in [log, rows.to_string()] {
        for (name, limit) in [
            ("inline-cap", "maxInlineBytes"),
            ("envelope", "maxPayloadBytes"),
        ] {
            let options = json!({limit: 9000, "preview": "content"});
            let found = check_engine(name, &options, &text).expect("a preview");
            assert_eq!(found.size, text.len() as u64, "{name}");
            assert!(!found.head.is_empty(), "{name}");
            for row in &found.rows {
                let at = usize::try_from(row.offset).expect("small");
                assert!(text[at..].starts_with(&row.text), "{name} {row:?}");
            }
            let shows = |what: &str| found.rows.iter().any(|row| row.text.contains(what));
            assert!(text.starts_with('[') || shows(" ERROR step 999"), "{name}");
        }
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
