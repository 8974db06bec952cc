//! Reading a record back in the shape of MCP's `resources/read`: whole when it fits, else page by page.

use serde_json::{Value, json};

use super::Envelope;
use super::payload::BINARY;
use crate::measure::serialised_size;
use crate::reading::AskError;
use crate::stores::{ByteRange, Millis, ReadFailure, Reader};

/// The least bytes of an answer, however low the limit is: below, pages would be all frame.
const MIN_ANSWER_BYTES: u64 = 1_024;
/// What an answer takes beside URI and text.
const FRAME_BYTES: u64 = 256;
/// Base64 is cut where it can be decoded.
const BASE64_GROUP: u64 = 4;

/// A part of a record, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The URI that was asked for.
    pub uri: String,
    /// The record's media type.
    pub media_type: String,
    /// The bytes, as they are stored. `Debug` shows them: do not log it.
    pub text: String,
    /// Where the first byte stands in the record; moved to a character's start.
    pub offset: u64,
    /// Where the next part starts; `None` at the end.
    pub next_offset: Option<u64>,
    /// Bytes of the whole record.
    pub size: u64,
}

impl Resource {
    /// The answer on the wire: `{"contents":[{"uri","mimeType","text"}]}`, `blob` in place of `text` for base64. `_meta`
    /// says which part it is, and where the next one starts.
    pub fn to_json(&self) -> Value {
        let form = if self.media_type == BINARY {
            "blob"
        } else {
            "text"
        };
        json!({"contents": [{
            "uri": self.uri,
            "mimeType": self.media_type,
            form: self.text,
            "_meta": {
                "offset": self.offset,
                "length": self.text.len(),
                "nextOffset": self.next_offset,
                "sizeBytes": self.size,
            },
        }]})
    }
}

impl Envelope {
    /// Answers `resources/read`. `?offset=…&length=…` behind the URI asks for a part; the answer as JSON has at most
    /// `maxPayloadBytes` bytes, but may always have 1,024 beside the URI's own.
    ///
    /// # Errors
    /// [`AskError`], whose text is for the model: a URI that names nothing, an expired or damaged record, a bad range.
    pub fn read_resource(
        &self,
        uri: &str,
        reader: &Reader,
        now: Millis,
    ) -> Result<Resource, AskError> {
        let prefix = &self.options().resource_uri_prefix;
        let asked = range_in(uri.strip_prefix(prefix.as_str()).unwrap_or(uri))?;
        if asked.length == 0 {
            return Err(AskError::Nothing);
        }
        let key = self.key_of(uri).ok_or(ReadFailure::NotFound)?;
        let item = self.store().describe(key, reader, now)?;
        let room = self.options().max_payload_bytes.max(MIN_ANSWER_BYTES) - FRAME_BYTES;
        let room = room
            .saturating_sub(serialised_size(uri).get())
            .max(FRAME_BYTES);
        let groups = if item.media_type == BINARY {
            BASE64_GROUP
        } else {
            1
        };
        let length = asked.length.max(BASE64_GROUP).min(room);
        let range = ByteRange {
            offset: asked.offset / groups * groups,
            length: length / groups * groups,
        };
        let slice = self.store().read(key, reader, range, now)?;
        let (skipped, text) = whole_characters(slice.bytes());
        let text = fitting(text, room, groups);
        let offset = range.offset + skipped;
        let end = offset + text.len() as u64;
        Ok(Resource {
            uri: uri.to_owned(),
            text: text.to_owned(),
            media_type: item.media_type,
            offset,
            next_offset: (end < item.size.get()).then_some(end),
            size: item.size.get(),
        })
    }
}

/// The range behind an id's question mark; everything without one. A prefix may hold question marks of its own.
fn range_in(id: &str) -> Result<ByteRange, AskError> {
    let mut range = ByteRange::ALL;
    let Some((_, query)) = id.split_once('?') else {
        return Ok(range);
    };
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, number) = pair.split_once('=').unwrap_or((pair, ""));
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| number.parse().ok()).flatten();
        match (name, number) {
            ("offset", Some(number)) => range.offset = number,
            ("length", Some(number)) => range.length = number,
            _ => {
                return Err(AskError::Argument {
                    name: name.chars().take(40).collect(),
                    expected: "offset or length, each a whole number of bytes".to_owned(),
                });
            }
        }
    }
    Ok(range)
}

/// The characters that are whole, and how many bytes stand before them. Records are texts.
fn whole_characters(bytes: &[u8]) -> (u64, &str) {
    let start = bytes
        .iter()
        .take_while(|byte| **byte & 0xc0 == 0x80)
        .count();
    let bytes = &bytes[start..];
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()])
            .expect("the bytes up to the first that is not valid"),
    };
    (start as u64, text)
}

/// The longest start of `text` that takes at most `room` bytes as a JSON string, in whole characters and `groups` of bytes,
/// and one of them at least.
fn fitting(text: &str, room: u64, groups: u64) -> &str {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (mut fits, mut over) = (first, text.len() + 1);
    while fits + 1 < over {
        let middle = fits.midpoint(over);
        let end = text.floor_char_boundary(middle);
        if serialised_size(&text[..end]).get() <= room {
            fits = middle;
        } else {
            over = middle;
        }
    }
    let group = usize::try_from(groups).expect("one or four");
    let end = (fits / group * group).max(group);
    &text[..text.floor_char_boundary(end)]
}
