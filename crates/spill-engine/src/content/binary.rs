//! Bytes that are no text, and payloads: said what they are, and never shown.

use super::payload;
use super::sheet::Sheet;

/// How the contents of well-known formats begin.
const FORMATS: [(&[u8], &str); 10] = [
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "ELF file"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\0asm", "WebAssembly module"),
];

pub(super) fn preview(content: &[u8], cap: usize) -> Sheet {
    let format = FORMATS
        .iter()
        .find(|(start, _)| content.starts_with(start))
        .map_or("of no known format", |(_, name)| name);
    let first = format!("binary, {format}, {} bytes, not shown", content.len());
    Sheet::new(&first, cap)
}

pub(super) fn data_uri(content: &[u8], cap: usize) -> Option<Sheet> {
    let media_type = payload::whole_uri(content)?;
    let first = format!("data URI, {media_type}, {} bytes, not shown", content.len());
    Some(Sheet::new(&first, cap))
}
