//! Reading stored results back with the tools that a notice names.

use std::iter::once;

use serde_json::{Map, Value};
use spill_engine::{
    Answer, AnswerCap, Ask, AskError, ByteRange, Part, Pattern, ReadFailure, Reading, Resource,
    SearchAsk, SpillStore,
};

use super::{StoredSession, policy::StorePolicy};
use crate::{
    read_tools::{Arguments, Contents, Header, ReadBack, ReadKind, ResourceContent},
    settings::PolicySettings,
};

/// The most bytes of an answer where the policy has no limit.
const USUAL_ANSWER_BYTES: u64 = 32 << 10;
/// A reference up to this length has its place in what the engine reserves for the line before an
/// answer.
const RESERVED_REFERENCE_BYTES: u64 = 100;
/// Bytes shown on each side of a match when nothing else is asked for.
const USUAL_CONTEXT_BYTES: u64 = 80;
const BINARY: &str = "application/octet-stream";

impl StoredSession {
    /// Answers a call of a read tool. May wait for files.
    ///
    /// # Errors
    /// A text for the model, without content.
    pub(crate) fn read(
        &self,
        kind: ReadKind,
        arguments: &Map<String, Value>,
    ) -> Result<ReadBack, String> {
        if self.is_released() {
            return Err(ReadFailure::NotFound.to_string());
        }
        let arguments = Arguments(arguments);
        match kind {
            ReadKind::Bytes => self.read_bytes(&arguments),
            ReadKind::Search => self.search(&arguments),
            ReadKind::Resource => self.read_resource(&arguments),
            ReadKind::Step => Err(ReadFailure::NotFound.to_string()),
        }
    }

    fn read_bytes(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["path", "offset", "limit"])?;
        let path = arguments.text("path")?;
        let (offset, limit) = (arguments.number("offset")?, arguments.number("limit")?);
        let ask = Ask::Bytes(ByteRange {
            offset: offset.unwrap_or(0),
            length: limit.unwrap_or(u64::MAX),
        });
        let answer = self.ask(path, &ask).map_err(|error| error.to_string())?;
        let with_range = offset.is_some() || limit.is_some();
        let length = answer.bytes().len() as u64;
        let part = answer.offset..answer.offset + length;
        self.counts().read(answer.key, once(part), with_range);
        Ok(rendered(path, &answer, length, None))
    }

    fn search(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["path", "pattern", "ignore_case", "context", "offset"])?;
        let path = arguments.text("path")?;
        let pattern = arguments.text("pattern")?;
        let pattern = if arguments.flag("ignore_case")? {
            format!("(?i){pattern}")
        } else {
            pattern.to_owned()
        };
        let ask = Ask::Search(SearchAsk {
            pattern: Pattern::Regex(pattern),
            context: arguments.number("context")?.unwrap_or(USUAL_CONTEXT_BYTES),
            from: arguments.number("offset")?.unwrap_or(0),
            most: None,
        });
        let answer = self.ask(path, &ask).map_err(|error| match error {
            AskError::Pattern(why) => {
                format!("the pattern is not accepted: {why} (correct it; a \\ before . * + ? ( ) [ ] {{ }} | ^ $ searches for that sign)")
            }
            other => other.to_string(),
        })?;
        let Part::Hits(hits) = &answer.part else {
            return Err(ReadFailure::NotFound.to_string());
        };
        let shown = hits.iter().map(|hit| {
            let start = hit.excerpt_offset;
            start..start + hit.excerpt.len() as u64
        });
        self.counts().read(answer.key, shown.clone(), true);
        let bytes = shown.map(|part| part.end - part.start).sum();
        Ok(rendered(path, &answer, bytes, Some(hits.len())))
    }

    /// Asks for no more than the answer limit, the line before the text included.
    fn ask(&self, path: &str, ask: &Ask) -> Result<Answer, AskError> {
        let key = self.stores.results.key_of(path);
        let key = key.ok_or(ReadFailure::NotFound)?;
        let longer = (path.len() as u64).saturating_sub(RESERVED_REFERENCE_BYTES);
        let most = self.answer_bytes().saturating_sub(longer);
        let cap =
            AnswerCap::new(most.max(AnswerCap::MIN_BYTES)).expect("no less than the least cap");
        let store: &dyn SpillStore = &*self.stores.results;
        Reading::new(store, self.reader(), cap).answer(key, ask, self.clock.now())
    }

    fn answer_bytes(&self) -> u64 {
        match &self.settings {
            PolicySettings::InlineCap(options) => {
                options.max_inline_bytes.unwrap_or(USUAL_ANSWER_BYTES)
            }
            PolicySettings::Envelope(options) => options.max_payload_bytes,
            PolicySettings::WorkflowStep => USUAL_ANSWER_BYTES,
        }
    }

    fn read_resource(&self, arguments: &Arguments<'_>) -> Result<ReadBack, String> {
        arguments.only(&["uri", "range"])?;
        let uri = arguments.text("uri")?;
        let range = arguments.object("range")?;
        let plain = uri.split_once('?').map_or(uri, |(plain, _)| plain);
        let asked = match &range {
            None => uri.to_owned(),
            Some(range) => {
                range.only(&["offset", "length"])?;
                let offset = range.number("offset")?.unwrap_or(0);
                let length = range.number("length")?.unwrap_or(u64::MAX);
                format!("{plain}?offset={offset}&length={length}")
            }
        };
        let StorePolicy::Envelope { usual, .. } = &self.named(&|_| false).policy else {
            return Err(ReadFailure::NotFound.to_string());
        };
        let key = usual.key_of(plain);
        let resource = usual
            .read_resource(&asked, &self.reader(), self.clock.now())
            .map_err(|error| error.to_string())?;
        let bytes = resource.text.len() as u64;
        let with_range = asked != plain;
        if let Some(key) = key {
            let part = resource.offset..resource.offset + bytes;
            self.counts().read(key, once(part), with_range);
        }
        Ok(ReadBack {
            reference: plain.to_owned(),
            offset: resource.offset,
            bytes,
            text: contents(plain, &resource, with_range),
        })
    }
}

fn rendered(path: &str, answer: &Answer, bytes: u64, matches: Option<usize>) -> ReadBack {
    let text = answer.text();
    let header = Header {
        spillover_ref: path,
        offset: answer.offset,
        length: text.len() as u64,
        matches,
        next_offset: answer.next_offset,
        size_bytes: answer.size,
    };
    ReadBack {
        reference: path.to_owned(),
        offset: answer.offset,
        bytes,
        text: header.before(&text),
    }
}

fn contents(uri: &str, resource: &Resource, with_range: bool) -> String {
    let is_part = with_range || resource.offset > 0 || resource.next_offset.is_some();
    let text = Some(resource.text.as_str());
    let (text, blob) = if resource.media_type == BINARY {
        (None, text)
    } else {
        (text, None)
    };
    let contents = Contents {
        contents: [ResourceContent {
            uri,
            mime_type: &resource.media_type,
            text,
            blob,
            offset: is_part.then_some(resource.offset),
            length: is_part.then_some(resource.text.len() as u64),
            next_offset: is_part.then_some(resource.next_offset),
            size_bytes: is_part.then_some(resource.size),
        }],
    };
    serde_json::to_string(&contents).expect("texts and numbers have a JSON form")
}
