//! Previews by content, from outside.

mod kinds;
mod laws;
mod payloads;
mod places;

use spill_engine::{ContentKind, ContentPreview, detect_content, preview_content};

fn previewed(content: &[u8], cap: usize) -> ContentPreview {
    let preview = preview_content(content, detect_content(content, None), cap);
    assert!(preview.text.len() <= cap, "{} > {cap}", preview.text.len());
    preview
}

/// The preview of what is of `kind`, and is found to be.
#[track_caller]
fn of_kind(content: &str, kind: ContentKind, cap: usize) -> String {
    let preview = previewed(content.as_bytes(), cap);
    assert_eq!(preview.kind, kind, "{}", preview.text);
    preview.text
}

fn rows(count: usize) -> String {
    let rows: Vec<String> = (0..count)
        .map(|id| format!("{{\"id\":{id},\"name\":\"row number {id}\",\"tags\":[\"a\",\"b\"]}}"))
        .collect();
    format!("[{}]", rows.join(","))
}

fn log(count: usize) -> String {
    (0..count)
        .map(|second| {
            let level = if second % 97 == 50 {
                "ERROR disk failed"
            } else {
                "INFO request served"
            };
            format!(
                "2026-11-30T10:{:02}:{:02}Z {level} in {second} ms\n",
                second / 60 % 60,
                second % 60
            )
        })
        .collect()
}

fn csv(count: usize) -> String {
    let rows: String = (0..count)
        .map(|id| format!("{id},\"name, {id}\",{}\n", id * 7))
        .collect();
    format!("id,name,total\n{rows}")
}

const DIFF: &str = "diff --git a/src/lib.rs b/src/lib.rs
index 1..2 100644
--- a/src/lib.rs
+++ b/src/lib.rs
@@ -1,3 +1,4 @@
 //! Docs.
--- looks like a header
+++ looks like one too
+new
 mod a;
@@ -10 +11 @@ fn main() {
-old
+new
diff --git a/gone.rs b/gone.rs
deleted file mode 100644
--- a/gone.rs
+++ /dev/null
@@ -1 +0,0 @@
-last
";
