//! What the fuzz targets check, one function each. The plain tests replay the corpora through the same functions.

use std::sync::Arc;

use serde_json::Value;
use spill_engine::{
    AnswerCap, Ask, AskError, ByteRange, Bytes, ContentKind, FileOptions, FileStore, FirstLine,
    ItemHead, ItemKey, ItemRange, LineAsk, MemoryOptions, MemoryStore, Millis, Owner, Pattern,
    PointerAsk, Reader, Reading, Reference, SearchAsk, SeededNames, SpillStore, detect_content,
    preview_content,
};

const NOW: Millis = Millis::new(1);

/// A number from the first eight bytes, and the rest.
fn number(input: &[u8]) -> (u64, &[u8]) {
    match input.split_first_chunk::<8>() {
        Some((number, rest)) => (u64::from_le_bytes(*number), rest),
        None => (input.len() as u64, &[]),
    }
}

fn small(number: u64, most: u64) -> usize {
    usize::try_from(number % most).expect("a small number")
}

/// Any bytes as any kind stay under any cap, and places are inside.
pub(crate) fn previews(input: &[u8]) {
    let (cap, content) = number(input);
    let cap = small(cap, 5_000);
    for kind in [
        detect_content(content, None),
        ContentKind::Text,
        ContentKind::Json,
        ContentKind::JsonLines,
        ContentKind::Csv,
        ContentKind::Log,
        ContentKind::Diff,
        ContentKind::DataUri,
    ] {
        let shown = preview_content(content, kind, cap);
        assert!(
            shown.text.len() <= cap,
            "{kind:?}: {} > {cap}",
            shown.text.len()
        );
        for place in &shown.places {
            assert!(
                place.offset + place.length <= content.len() as u64,
                "{kind:?}: {place:?}"
            );
        }
    }
}

fn shelf(content: &[u8]) -> (MemoryStore, ItemKey) {
    let options = MemoryOptions::per_execution(Bytes::new(1 << 30));
    let store = MemoryStore::new(options.with_names(Arc::new(SeededNames::new(1))));
    let name = store.name("tool").expect("a seeded source");
    let key = name.key();
    let head = ItemHead::text_of(&Owner::new("o"), NOW);
    store
        .put(name, head, content.to_vec().into())
        .expect("room");
    (store, key)
}

fn reading(store: &MemoryStore, cap: u64) -> Reading<'_> {
    let cap = AnswerCap::new(cap).expect("a cap above the least");
    Reading::new(store, Reader::Of(Owner::new("o")), cap)
}

/// Pages concatenate, and every other ask has a bounded answer or a refusal.
pub(crate) fn ranges(input: &[u8]) {
    let (offset, rest) = number(input);
    let (length, content) = number(rest);
    let (store, key) = shelf(content);
    let reading = reading(&store, 1_024);
    let page = length % 3_000 + 1;
    let (mut joined, mut next) = (Vec::new(), Some(0));
    while let Some(offset) = next {
        let ask = Ask::Bytes(ByteRange {
            offset,
            length: page,
        });
        let answer = reading.answer(key, &ask, NOW).expect("a range inside");
        joined.extend_from_slice(answer.bytes());
        assert!(answer.next_offset.is_none_or(|next| next > offset));
        next = answer.next_offset;
    }
    assert_eq!(joined, content);
    let text = String::from_utf8_lossy(&content[..content.len().min(20)]).into_owned();
    for ask in [
        Ask::Bytes(ByteRange { offset, length }),
        Ask::Lines(LineAsk {
            first: FirstLine::FromStart(offset % 50),
            count: length,
        }),
        Ask::Lines(LineAsk {
            first: FirstLine::FromEnd(offset),
            count: length,
        }),
        Ask::Search(SearchAsk {
            pattern: Pattern::Literal(text.clone()),
            context: length,
            from: offset,
            most: None,
        }),
        Ask::Search(SearchAsk {
            pattern: Pattern::Regex(text),
            context: length,
            from: offset % 100,
            most: Some(length),
        }),
    ] {
        match reading.answer(key, &ask, NOW) {
            Ok(answer) => assert!(answer.render().len() <= 1_024, "{ask:?}"),
            Err(refusal) => assert!(refusal.to_string().len() <= 1_024),
        }
    }
}

/// A pointer finds what a parser finds.
pub(crate) fn pointers(input: &[u8]) {
    let (place, rest) = number(input);
    let (pointer, json) = rest.split_at(small(place, rest.len() as u64 + 1));
    let Ok(pointer) = str::from_utf8(pointer) else {
        return;
    };
    let (store, key) = shelf(json);
    let reading = reading(&store, 16 << 20);
    let ask = |items| {
        Ask::Pointer(PointerAsk {
            pointer: pointer.to_owned(),
            items,
            from: None,
        })
    };
    let found = reading.answer(key, &ask(None), NOW);
    let _ = reading.answer(
        key,
        &ask(Some(ItemRange {
            first: place % 7,
            count: place,
        })),
        NOW,
    );
    let Ok(value) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    match (found, value.pointer(pointer)) {
        (Ok(answer), expected) => {
            let found: Value = serde_json::from_slice(answer.bytes()).expect("a value");
            assert_eq!(Some(&found), expected);
        }
        (Err(AskError::Pointer { .. }), _) | (Err(AskError::NoSuchValue { .. }), None) => {}
        (Err(refusal), expected) => panic!("{refusal}, expected {expected:?}"),
    }
}

/// What parses as a reference prints as the very same text.
pub(crate) fn references(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else {
        return;
    };
    if let Ok(reference) = text.parse::<Reference>() {
        assert_eq!(reference.to_string(), text);
    }
    if let Ok(key) = text.parse::<ItemKey>() {
        assert_eq!(key.to_string(), text);
    }
}

/// Whatever the label, a name is one short segment of the store's directory; whatever the locator, it leads nowhere else.
pub(crate) fn names(input: &[u8]) {
    let label = String::from_utf8_lossy(input);
    let root = "/nonexistent/spill";
    let options = FileOptions {
        names: Arc::new(SeededNames::new(1)),
        ..FileOptions::new(root)
    };
    let store = FileStore::new(options).expect("a text");
    let name = store.name(&label).expect("a seeded source");
    let segment = name
        .locator()
        .strip_prefix("/nonexistent/spill/")
        .expect("inside the root");
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte);
    assert!(segment.len() <= 81 && segment.bytes().all(safe) && !segment.starts_with('.'));
    assert_eq!(store.key_of(name.locator()), Some(name.key()));
    if let Some(key) = store.key_of(&label) {
        let last = label.rsplit('/').next().expect("a segment");
        assert!(last.starts_with(key.as_str()));
        assert!(last == label || label.len() == root.len() + 1 + last.len());
    }
}
