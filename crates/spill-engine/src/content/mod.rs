//! Previews by content: what a text, JSON, rows, a log, a diff or bytes are best shown by, under one cap.
//!
//! Total over any bytes and any cap. A preview never cuts inside a character nor inside an encoded payload, says in one
//! marker what is left out, and every offset it names is a byte offset of the whole content, so that reading it back gives
//! the place it stands for.

mod binary;
mod detect;
mod diff;
mod json;
mod payload;
mod rows;
mod sheet;
mod text;

pub use detect::detect_content;
use sheet::Sheet;

/// What content is, as far as its preview goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// Text of no other kind.
    Text,
    /// One JSON value.
    Json,
    /// One JSON value on each line.
    JsonLines,
    /// Rows of separated fields, names first.
    Csv,
    /// Lines with times or levels.
    Log,
    /// A unified diff.
    Diff,
    /// Bytes that are not a text.
    Binary,
    /// One `data:` URI.
    DataUri,
}

/// A place that a preview names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes, also where the preview shows fewer.
    pub length: u64,
    /// Its line, from 1, where the preview names one.
    pub line: Option<u64>,
}

/// A preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentPreview {
    /// What the content turned out to be: text, where it is not what it looked like.
    pub kind: ContentKind,
    /// At most the cap's bytes.
    pub text: String,
    /// The places that the text names, in its order.
    pub places: Vec<Place>,
}

/// The preview of `content` as `kind`, in at most `cap` bytes. Equal input, equal preview.
pub fn preview_content(content: &[u8], kind: ContentKind, cap: usize) -> ContentPreview {
    let sheet = match kind {
        ContentKind::Text => None,
        ContentKind::Json => json::preview(content, cap),
        ContentKind::JsonLines => rows::json_lines(content, cap),
        ContentKind::Csv => rows::csv(content, cap),
        ContentKind::Log => rows::log(content, cap),
        ContentKind::Diff => diff::preview(content, cap),
        ContentKind::Binary => Some(binary::preview(content, cap)),
        ContentKind::DataUri => binary::data_uri(content, cap),
    };
    let (kind, sheet) = sheet.map_or_else(
        || (ContentKind::Text, text::preview(content, cap)),
        |sheet| (kind, sheet),
    );
    let Sheet { text, places, .. } = sheet;
    ContentPreview { kind, text, places }
}
