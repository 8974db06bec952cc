//! A place that a preview names is where it says.

use serde_json::Value;
use spill_engine::{ContentKind, Place};

use super::{DIFF, csv, log, previewed, rows};

fn bytes_at<'a>(content: &'a str, place: &Place) -> &'a str {
    let start = usize::try_from(place.offset).expect("inside");
    &content[start..start + usize::try_from(place.length).expect("inside")]
}

fn line_of(content: &str, place: &Place) -> u64 {
    let before = &content[..usize::try_from(place.offset).expect("inside")];
    before.matches('\n').count() as u64 + 1
}

/// Each place begins a line of the preview that names its offset; the bytes there are what the line shows.
#[track_caller]
fn check_lines(content: &str, kind: ContentKind) {
    for cap in [500, 1_000, 4_000] {
        let preview = previewed(content.as_bytes(), cap);
        assert_eq!(preview.kind, kind);
        assert!(preview.places.len() >= 2, "{}", preview.text);
        let mut named = preview.text.lines();
        for place in &preview.places {
            let at = format!(" at {}: ", place.offset);
            let shown = named
                .find_map(|line| line.split_once(&at))
                .expect("named in order")
                .1;
            let stored = bytes_at(content, place).trim_end_matches(['\n', '\r']);
            let start = shown.split(" [+").next().expect("a start");
            assert!(stored.starts_with(start), "{shown} | {stored}");
            if let Some(line) = place.line {
                assert_eq!(line_of(content, place), line);
            }
        }
    }
}

#[test]
fn rows_stand_where_they_are_said_to() {
    check_lines(&log(500), ContentKind::Log);
    check_lines(&csv(500), ContentKind::Csv);
    check_lines(&rows(500), ContentKind::Json);
    let lines: String = (0..500).map(|id| format!("{{\"id\":{id}}}\r\n")).collect();
    check_lines(&lines, ContentKind::JsonLines);
}

#[test]
fn members_of_json_are_whole_values() {
    let content = format!(
        "{{ \"rows\" : {} ,\n\"total\":1500,\"note\":\"é\\n\" }}",
        rows(20)
    );
    let preview = previewed(content.as_bytes(), 2_000);
    let values: Vec<Value> = preview
        .places
        .iter()
        .map(|place| serde_json::from_str(bytes_at(&content, place)).expect("a value"))
        .collect();
    assert_eq!(values[1..], [Value::from(1_500), Value::from("é\n")]);
    assert_eq!(values[0].as_array().expect("rows").len(), 20);
    assert!(
        preview.text.contains("rows, array of 20 items, at 11: "),
        "{}",
        preview.text
    );
}

#[test]
fn hunks_stand_where_they_are_said_to() {
    let preview = previewed(DIFF.as_bytes(), 2_000);
    assert!(
        preview.text.starts_with("diff of 2 files, +3 -3 lines, "),
        "{}",
        preview.text
    );
    assert!(
        preview.text.contains("src/lib.rs (+3 -2) at 0"),
        "{}",
        preview.text
    );
    let starts: Vec<&str> = preview
        .places
        .iter()
        .map(|place| bytes_at(DIFF, place).lines().next().expect("a line"))
        .collect();
    assert_eq!(
        starts,
        [
            "diff --git a/src/lib.rs b/src/lib.rs",
            "@@ -1,3 +1,4 @@",
            "@@ -10 +11 @@ fn main() {",
            "diff --git a/gone.rs b/gone.rs",
            "@@ -1 +0,0 @@",
        ]
    );
    let joined: u64 = preview
        .places
        .iter()
        .filter(|place| place.line.is_none())
        .map(|place| place.length)
        .sum();
    assert_eq!(joined, DIFF.len() as u64, "the files are the diff");
}

#[test]
fn a_diff_beyond_the_cap_says_where_the_rest_begins() {
    let diff: String = (0..200)
        .map(|file| DIFF.replace("lib.rs", &format!("file{file}.rs")))
        .collect();
    let preview = previewed(diff.as_bytes(), 1_000);
    let marker = preview.text.lines().last().expect("a marker");
    let start = marker
        .strip_prefix("[bytes ")
        .and_then(|rest| rest.split(' ').next())
        .expect("an offset");
    let rest = &diff[start.parse::<usize>().expect("a number")..];
    assert!(rest.starts_with("diff --git "), "{marker}");
}

#[test]
fn the_marker_says_exactly_what_is_missing() {
    let content: String = (0..900)
        .map(|line| format!("line {line} of the text\n"))
        .collect();
    let preview = previewed(content.as_bytes(), 700);
    let (head, tail) = (&preview.places[0], &preview.places[1]);
    let marker = format!(
        "[bytes {} to {} of {} not shown]",
        head.length,
        tail.offset,
        content.len()
    );
    assert!(preview.text.contains(&marker), "{}", preview.text);
    let shown = format!(
        "{}\n{marker}\n{}",
        bytes_at(&content, head),
        bytes_at(&content, tail)
    );
    assert!(preview.text.ends_with(&shown));
}
