//! Reading back, from outside: every form against a model, for every store.

mod bytes;
mod expanding;
mod laws;
mod lines;
mod pointers;
mod searching;

use serde_json::{Map, Value, json};
use spill_engine::{
    Answer, AnswerCap, Ask, AskError, Bytes, Content, FileOptions, FileStore, ItemHead, ItemKey,
    MemoryOptions, MemoryStore, Millis, Owner, ReadFailure, Reader, Reading, SpillStore,
};

const NOW: Millis = Millis::new(1);
const CAP: u64 = 1_024;

fn owner() -> Owner {
    Owner::new("session")
}

/// Runs `check` on a store of each kind that holds `content`.
fn stored(content: impl Into<Content>, check: impl Fn(&Shelf<'_>)) {
    let content = content.into();
    let on = |store: &dyn SpillStore| {
        let name = store.name("tool").expect("a name");
        let key = name.key();
        store
            .put(name, ItemHead::text_of(&owner(), NOW), content.clone())
            .expect("room");
        let cap = AnswerCap::new(CAP).expect("the least cap");
        check(&Shelf {
            key,
            reading: Reading::new(store, Reader::Of(owner()), cap),
        });
    };
    on(&MemoryStore::new(MemoryOptions::per_execution(Bytes::new(
        1 << 30,
    ))));
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().canonicalize().expect("it exists").join("spill");
    on(&FileStore::new(FileOptions::new(root)).expect("a path"));
}

struct Shelf<'a> {
    key: ItemKey,
    reading: Reading<'a>,
}

impl Shelf<'_> {
    fn ask(&self, ask: &Ask) -> Result<Answer, AskError> {
        let answer = self.reading.answer(self.key, ask, NOW)?;
        let rendered = answer.render();
        assert!(rendered.len() as u64 <= CAP, "{} bytes", rendered.len());
        let (header, text) = rendered.split_once('\n').expect("a first line");
        let header: Value = serde_json::from_str(header).expect("JSON");
        assert_eq!(header["next_offset"], json!(answer.next_offset));
        assert_eq!(header["length"], json!(answer.bytes().len()));
        assert_eq!(text, answer.text());
        Ok(answer)
    }

    fn arguments(&self, arguments: &Value) -> Result<Answer, AskError> {
        self.ask(&Ask::from_arguments(object(arguments))?)
    }

    fn text(&self, arguments: &Value) -> Result<String, AskError> {
        Ok(self.arguments(arguments)?.text().into_owned())
    }

    /// All pages of the bytes from `offset` on, with `length` a page.
    fn pages(&self, offset: u64, length: u64) -> Vec<u8> {
        let (mut joined, mut next) = (Vec::new(), Some(offset));
        while let Some(offset) = next {
            let page = json!({"offset": offset, "length": length});
            let answer = self.arguments(&page).expect("a range inside");
            assert!(answer.next_offset.is_none_or(|next| next > offset));
            joined.extend_from_slice(answer.bytes());
            next = answer.next_offset;
        }
        joined
    }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("an object")
}

fn out_of_range(offset: u64, size: u64) -> AskError {
    AskError::Read(ReadFailure::OutOfRange { offset, size })
}
