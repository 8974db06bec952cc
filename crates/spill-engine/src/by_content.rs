//! Previews by content as the policies use them: where an option asks for it, and the text is more than prose.

use serde::Deserialize;

use crate::content::{ContentKind, detect_content, preview_content};

/// What a policy's preview is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Previews {
    /// The ends of a text, the first items of a value: no more work than finding them.
    #[default]
    Plain,
    /// Rows, members, error lines or files with their byte offsets, where a text turns out to be JSON, JSON lines, CSV, a
    /// log or a diff. The text is read through once more for it. A text that is still arriving has its plain preview.
    Content,
}

/// Room in which a preview by content is worth more than the ends of a text.
const LEAST_BYTES: usize = 200;

/// What `text` turns out to be, if that is more than prose and pictures.
pub(crate) fn kind_of(text: &str) -> Option<ContentKind> {
    let kind = detect_content(text.as_bytes(), None);
    match kind {
        ContentKind::Json
        | ContentKind::JsonLines
        | ContentKind::Csv
        | ContentKind::Log
        | ContentKind::Diff => Some(kind),
        ContentKind::Text | ContentKind::Binary | ContentKind::DataUri => None,
    }
}

/// The preview of `text` as `kind` in at most `room` bytes; `None` when it is not that after all, or the room is small.
pub(crate) fn within(text: &str, kind: ContentKind, room: usize) -> Option<String> {
    if room < LEAST_BYTES {
        return None;
    }
    let preview = preview_content(text.as_bytes(), kind, room);
    (preview.kind == kind).then(|| preview.text.trim_end_matches('\n').to_owned())
}
