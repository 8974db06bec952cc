//! Previews by content in the policies' replacements: asked for by an option, bounded like any other.

use serde_json::{Value, json};
use spill_engine::{ByteRange, EnvelopeOptions, InlineCapOptions, Millis, Reader, SpillStore};

use super::{Bench, cap_with, enveloped, owner, spilled};

const LIMIT: u64 = 3_000;

fn asking(preview: &str) -> [Bench; 2] {
    let cap = json!({"maxInlineBytes": LIMIT, "preview": preview});
    let envelope = json!({"maxPayloadBytes": LIMIT, "preview": preview});
    [
        cap_with(InlineCapOptions::from_json(&cap).expect("good options")),
        enveloped(EnvelopeOptions::from_json(&envelope).expect("good options")),
    ]
}

fn log() -> String {
    (0..900)
        .map(|second| match second {
            450 => "2026-11-30 10:07:30 ERROR the disk is gone\n".to_owned(),
            _ => format!(
                "2026-11-30 10:{:02}:{:02} INFO served\n",
                second / 60,
                second % 60
            ),
        })
        .collect()
}

fn csv() -> String {
    let rows: String = (0..900)
        .map(|id| format!("{id},\"n, {id}\",{}\n", id * 7))
        .collect();
    format!("id,name,total\n{rows}")
}

fn json_lines() -> String {
    (0..900)
        .map(|id| format!("{{\"id\":{id},\"ok\":true}}\n"))
        .collect()
}

fn diff() -> String {
    (0..60)
        .map(|file| {
            format!("diff --git a/f{file} b/f{file}\n--- a/f{file}\n+++ b/f{file}\n@@ -1 +1 @@\n-old\n+new {}\n", "x".repeat(40))
        })
        .collect()
}

/// What the model reads of a preview: the replacement itself, or the preview inside the envelope.
fn preview_in(prompt: &str) -> String {
    let envelope: Option<Value> = serde_json::from_str(prompt).ok();
    let preview = envelope.and_then(|envelope| envelope["preview"].as_str().map(str::to_owned));
    preview.unwrap_or_else(|| prompt.to_owned())
}

#[track_caller]
fn check(text: &str, first: &str, inside: &str) {
    for bench in asking("content") {
        let shaped = bench.text(text);
        assert!(shaped.prompt.len() as u64 <= LIMIT);
        assert_eq!(bench.stored(&shaped), text);
        let preview = preview_in(&shaped.prompt);
        assert!(preview.starts_with(first), "{preview}");
        assert!(preview.contains(inside), "{preview}");
        assert!(shaped.prompt.contains(&spilled(&shaped).reference));
    }
    for bench in asking("plain") {
        let preview = preview_in(&bench.text(text).prompt);
        assert!(!preview.starts_with(first), "only where it is asked for");
    }
}

#[test]
fn each_kind_of_text_has_its_preview() {
    check(&log(), "log, ", "ERROR the disk is gone");
    check(&csv(), "CSV, ", "900 rows");
    check(&json_lines(), "JSON lines, ", "line 900 at ");
    check(&diff(), "diff of 60 files", "f1 (+1 -1) at ");
    check(
        &super::rows(900).to_string(),
        "JSON array of 900 items",
        "899, object",
    );
}

#[test]
fn prose_has_its_ends_as_before() {
    let prose = "Once upon a time there was a tool. ".repeat(300);
    let plain = asking("plain").map(|bench| bench.text(prose.clone()).prompt);
    let asked = asking("content").map(|bench| bench.text(prose.clone()).prompt);
    assert_eq!(plain, asked);
}

/// The byte offsets that a preview names lead to the places that it shows.
#[test]
fn a_named_offset_reads_back_as_its_place() {
    for bench in asking("content") {
        let shaped = bench.text(log());
        let preview = preview_in(&shaped.prompt);
        let line = preview
            .lines()
            .find(|line| line.contains("ERROR"))
            .expect("the error");
        let (place, shown) = line.split_once(": ").expect("a place");
        let offset = place
            .rsplit(' ')
            .next()
            .expect("a number")
            .parse()
            .expect("a number");
        let length = shown.len() as u64;
        let key = spilled(&shaped).key.expect("a key");
        let reader = Reader::Of(owner());
        let slice = bench
            .store
            .read(key, &reader, ByteRange { offset, length }, Millis::new(0))
            .expect("inside");
        assert_eq!(slice.bytes(), shown.as_bytes());
    }
}

#[test]
fn a_small_limit_has_plain_previews() {
    for limit in [330, 420, 500] {
        let options = |preview| {
            let options = json!({"maxInlineBytes": limit, "preview": preview});
            cap_with(InlineCapOptions::from_json(&options).expect("good options"))
        };
        let [plain, asked] = ["plain", "content"].map(|preview| options(preview).text(log()));
        assert!(asked.prompt.len() <= limit);
        if limit < 340 {
            assert_eq!(plain.prompt, asked.prompt);
        }
    }
}

#[test]
fn a_replacement_by_content_reads_like_this() {
    let [cap, envelope] = asking("content");
    let shown = format!(
        "{}\n=====\n{}\n",
        cap.text(&csv()[..4_000]).prompt,
        envelope.text(&csv()[..4_000]).prompt
    );
    insta::assert_snapshot!(shown);
}
