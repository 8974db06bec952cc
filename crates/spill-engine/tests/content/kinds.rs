use spill_engine::{ContentKind, detect_content};

use super::{DIFF, csv, log, of_kind, previewed, rows};

#[track_caller]
fn check_kind(content: &str, media_type: Option<&str>, expected: ContentKind) {
    assert_eq!(
        detect_content(content.as_bytes(), media_type),
        expected,
        "{content}"
    );
}

#[test]
fn content_is_recognised() {
    check_kind("", None, ContentKind::Text);
    check_kind(
        "Some prose, with commas.\nAnd more, of it.\nAnd a third, line, of it.\n",
        None,
        ContentKind::Text,
    );
    check_kind("{\"a\":1}", None, ContentKind::Json);
    check_kind(" [1,\n2]\n", None, ContentKind::Json);
    check_kind("{\"a\":1}\n{\"a\":2}\n", None, ContentKind::JsonLines);
    check_kind("a,b\n1,2\n3,4\n", None, ContentKind::Csv);
    check_kind("a\tb\n1\t2\n3\t4\n", None, ContentKind::Csv);
    check_kind(DIFF, None, ContentKind::Diff);
    check_kind(
        "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n",
        None,
        ContentKind::Diff,
    );
    check_kind(&log(5), None, ContentKind::Log);
    check_kind(
        "Nov  3 10:00:00 host a[1]: x\nNov  3 10:00:01 host a[1]: y\n",
        None,
        ContentKind::Log,
    );
    check_kind("a\0b", Some("application/json"), ContentKind::Binary);
    check_kind("1,2", Some("text/csv; charset=utf-8"), ContentKind::Csv);
    check_kind("plain", Some("text/plain"), ContentKind::Text);
    assert_eq!(
        detect_content(&[0xff, 0xfe, 0xfd, b'a'], None),
        ContentKind::Binary
    );
    assert_eq!(
        detect_content("ä".repeat(9_000).as_bytes(), None),
        ContentKind::Text,
        "a cut at 8 KiB is no damage"
    );
}

#[test]
fn what_is_not_what_it_seems_is_shown_as_text() {
    for (content, kind) in [
        ("{oops}", ContentKind::Json),
        ("[1,2", ContentKind::Json),
        ("", ContentKind::Log),
        ("x", ContentKind::Diff),
        ("x", ContentKind::DataUri),
        ("x", ContentKind::JsonLines),
        ("", ContentKind::Csv),
    ] {
        let preview = spill_engine::preview_content(content.as_bytes(), kind, 500);
        assert_eq!(preview.kind, ContentKind::Text);
        assert!(preview.text.ends_with(content), "{}", preview.text);
    }
}

#[test]
fn previews_read_like_this() {
    let prose: String = (1..200)
        .map(|line| format!("This is line {line} of a text.\n"))
        .collect();
    let object = format!(
        "{{\"total\": 1500, \"rows\": {}, \"next\": null}}",
        rows(300)
    );
    let lines: String = (0..300)
        .map(|id| format!("{{\"id\":{id},\"ok\":true}}\n"))
        .collect();
    let shown = [
        ("text", of_kind(&prose, ContentKind::Text, 400)),
        ("array", of_kind(&rows(1_500), ContentKind::Json, 700)),
        ("object", of_kind(&object, ContentKind::Json, 700)),
        ("lines", of_kind(&lines, ContentKind::JsonLines, 400)),
        ("csv", of_kind(&csv(1_500), ContentKind::Csv, 400)),
        ("log", of_kind(&log(600), ContentKind::Log, 900)),
        ("diff", of_kind(DIFF, ContentKind::Diff, 500)),
        ("binary", previewed(b"\x89PNG\r\n\x1a\n\0\0\0", 200).text),
    ]
    .map(|(name, text)| format!("=== {name}\n{text}"));
    insta::assert_snapshot!(shown.join("\n"));
}

/// A cap of bytes comes before any number of lines.
#[test]
fn fault_33_and_21_long_lines_stay_under_the_cap() {
    let one_line = "word ".repeat(200_000);
    let fifty = format!("{}\n", "x y ".repeat(50_000)).repeat(50);
    for content in [&one_line, &fifty] {
        for cap in [100, 1_000, 5_000] {
            previewed(content.as_bytes(), cap);
        }
    }
}

/// The first line is longer than the cap: the preview shows its start all the same.
#[test]
fn fault_34_and_40_one_long_line_is_cut_inside() {
    let content = format!("START {} END", "漢字 ".repeat(9_000));
    let text = of_kind(&content, ContentKind::Text, 2_000);
    assert!(text.contains("START") && text.ends_with("END") && text.contains("not shown]"));
    assert!(text.len() > 1_500, "the room is used: {}", text.len());
}

/// Both ends are seen, the end with a third of the room at least.
#[test]
fn fault_35_the_end_is_seen() {
    let content = format!(
        "FIRST\n{}middle\n{}LAST: 3 failures\n",
        "filler line\n".repeat(900),
        "filler line\n".repeat(900)
    );
    let text = of_kind(&content, ContentKind::Text, 3_000);
    let (head, tail) = text.split_once(" not shown]").expect("a marker");
    assert!(head.contains("FIRST") && tail.contains("LAST: 3 failures"));
    assert!(tail.len() > 1_000 - 100, "{}", tail.len());
}

#[test]
fn errors_of_a_log_are_seen_where_they_stand() {
    let content = log(600);
    let preview = previewed(content.as_bytes(), 1_500);
    assert!(preview.text.starts_with("log, "));
    assert!(
        preview.text.contains("6 of them with errors"),
        "{}",
        preview.text
    );
    assert!(preview.text.contains("line 51 at "), "{}", preview.text);
}

/// What fits is shown whole, byte for byte.
#[test]
fn fault_41_at_the_cap_nothing_is_left_out() {
    let content = "x y\n".repeat(50);
    let needed = of_kind(&content, ContentKind::Text, 10_000).len();
    for (cap, marked) in [(needed - 1, true), (needed, false), (needed + 1, false)] {
        let text = of_kind(&content, ContentKind::Text, cap);
        assert_eq!(text.contains("not shown]"), marked, "{cap}");
        assert_eq!(text.ends_with(&content), !marked);
    }
}
