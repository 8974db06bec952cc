//! The laws over every store, policy and form of reading: what a policy stored comes back exactly, to its owner alone.

use std::path::Path;
use std::sync::{Arc, Barrier};

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spill_engine::{
    AnswerCap, Ask, ByteRange, Bytes, Call, CallId, Durability, Envelope, EnvelopeOptions,
    Expansion, FileOptions, FileStore, InlineCap, InlineCapOptions, ItemKey, MemoryOptions,
    MemoryStore, Millis, Owner, Part, Policy, Reader, Reading, SeededNames, Settings, Shaped,
    SpillStore, StepId, StepSpill, ToolResult, Verdict, WhenFull,
};

use super::{CALL, owner, structured};

const LIMIT: u64 = 1_100;
const NOW: Millis = Millis::new(0);

/// Each kind of store that a policy may have, in `home`.
fn stores(home: &Path) -> Vec<Arc<dyn SpillStore>> {
    let names = || Arc::new(SeededNames::new(5));
    let quota = Bytes::new(1 << 20);
    let files = |folder: &str, when_full, durability| {
        let options = FileOptions {
            quota,
            when_full,
            durability,
            names: names(),
            ..FileOptions::new(home.join(folder))
        };
        Arc::new(FileStore::new(options).expect("a path"))
    };
    vec![
        Arc::new(MemoryStore::new(
            MemoryOptions::per_execution(quota).with_names(names()),
        )),
        Arc::new(MemoryStore::new(
            MemoryOptions::shared(quota).with_names(names()),
        )),
        files("refusing", WhenFull::Refuse, Durability::Process),
        files("evicting", WhenFull::Evict, Durability::Power),
    ]
}

enum AnyPolicy {
    Cap(InlineCap),
    Envelope(Envelope),
}

impl AnyPolicy {
    fn policy(&self) -> &dyn Policy {
        match self {
            Self::Cap(policy) => policy,
            Self::Envelope(policy) => policy,
        }
    }
}

fn policies(store: &Arc<dyn SpillStore>) -> [AnyPolicy; 2] {
    let options = EnvelopeOptions {
        max_payload_bytes: LIMIT,
        ..EnvelopeOptions::default()
    };
    [
        AnyPolicy::Cap(InlineCap::new(
            InlineCapOptions::capped(LIMIT),
            store.clone(),
        )),
        AnyPolicy::Envelope(Envelope::new(options, store.clone())),
    ]
}

/// What was stored: its reference, its key and its bytes.
fn replaced(shaped: &Shaped) -> Option<(&str, ItemKey)> {
    match &shaped.verdict {
        Verdict::Replace { spilled, .. } => {
            Some((&spilled.reference, spilled.key.expect("a store's key")))
        }
        Verdict::Keep(_) => None,
    }
}

fn ask(arguments: Value) -> Ask {
    let arguments: Map<String, Value> = serde_json::from_value(arguments).expect("an object");
    Ask::from_arguments(&arguments).expect("a good ask")
}

/// Pages of bytes that begin with `first` and go on with whatever is left.
fn pages(reading: &Reading<'_>, key: ItemKey, first: Value, length: u64) -> Vec<u8> {
    let mut answer = reading.answer(key, &ask(first), NOW).expect("a good ask");
    let mut joined = Vec::new();
    loop {
        joined.extend_from_slice(answer.bytes());
        let Some(offset) = answer.next_offset else {
            return joined;
        };
        let next = ask(json!({"offset": offset, "length": length}));
        answer = reading.answer(key, &next, NOW).expect("a good ask");
    }
}

/// Every form that reads items of a store.
fn check_forms(store: &dyn SpillStore, key: ItemKey, whole: &str, length: u64) {
    let cap = AnswerCap::new(AnswerCap::MIN_BYTES).expect("the least cap");
    let reading = Reading::new(store, Reader::Of(owner()), cap);
    let bytes = whole.as_bytes();
    for first in [
        json!({"offset": 0, "length": length}),
        json!({"line": 1}),
        json!({"offset": 0, "length": u64::MAX}),
    ] {
        assert_eq!(pages(&reading, key, first, length), bytes);
    }
    let needle = &whole[..whole.chars().next().map_or(0, char::len_utf8)];
    let model: Vec<u64> = memchr::memmem::find_iter(bytes, needle.as_bytes())
        .map(|at| at as u64)
        .collect();
    let (mut found, mut next) = (Vec::new(), Some(0));
    while let Some(offset) = next {
        let search = ask(json!({"search": needle, "offset": offset, "context": 3}));
        let answer = reading.answer(key, &search, NOW).expect("a good ask");
        let Part::Hits(hits) = &answer.part else {
            panic!("hits")
        };
        found.extend(hits.iter().map(|hit| hit.offset));
        next = answer.next_offset;
    }
    assert_eq!(found, model);
    if let Ok(value) = serde_json::from_str::<Value>(whole) {
        let joined = pages(&reading, key, json!({"pointer": ""}), length);
        assert_eq!(
            serde_json::from_slice::<Value>(&joined).expect("JSON"),
            value
        );
    }
    for (offset, length) in [
        (u64::MAX, u64::MAX),
        (u64::MAX, 1),
        (bytes.len() as u64 + 1, 5),
    ] {
        assert!(
            reading
                .answer(key, &ask(json!({"offset": offset, "length": length})), NOW)
                .is_err()
        );
    }
    let end = ask(json!({"offset": bytes.len(), "length": 5}));
    let end = reading.answer(key, &end, NOW).expect("the end is no error");
    assert_eq!((end.bytes(), end.next_offset), (&b""[..], None));
}

/// `resources/read`, page by page.
fn check_resource(policy: &Envelope, uri: &str, whole: &str, length: u64) {
    let reader = Reader::Of(owner());
    let (mut joined, mut next) = (String::new(), Some(0));
    while let Some(offset) = next {
        let uri = format!("{uri}?offset={offset}&length={length}");
        let page = policy.read_resource(&uri, &reader, NOW).expect("a page");
        joined.push_str(&page.text);
        next = page.next_offset;
    }
    assert_eq!(joined, whole);
    let stranger = Reader::Of(Owner::new("another"));
    assert!(policy.read_resource(uri, &stranger, NOW).is_err());
}

/// A `{"$spill": …}` argument becomes the stored text, and its ranges concatenate to it.
fn check_expansion(store: &dyn SpillStore, reference: &str, key: ItemKey, whole: &str) {
    let expansion = Expansion::allowing(["tool"], 1 << 20);
    let reader = Reader::Of(owner());
    let fetch = |asked: &str, range: ByteRange| {
        assert_eq!(asked, reference);
        store.read(key, &reader, range, NOW)
    };
    let text = |arguments: Value| {
        let expanded = expansion.expand("tool", arguments, &fetch).expect("stored");
        expanded.arguments["data"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    assert_eq!(text(json!({"data": {"$spill": reference}})), whole);
    let middle = whole.floor_char_boundary(whole.len() / 2);
    let part = |offset: usize, length: u64| {
        text(json!({"data": {"$spill": reference, "range": {"offset": offset, "length": length}}}))
    };
    assert_eq!(part(0, middle as u64) + &part(middle, u64::MAX), whole);
}

fn texts() -> impl Strategy<Value = String> {
    let palette = prop::sample::select(vec![
        "\n",
        "\r\n",
        "a",
        "é",
        "漢",
        "😀",
        "\0",
        "ab\n",
        "{\"a\":[1,2]}\n",
        "x,y\n",
    ]);
    vec((palette, 1..400_usize), 0..12).prop_map(|runs| {
        let pieces = runs.iter().map(|(piece, times)| piece.repeat(*times));
        pieces.collect()
    })
}

fn results() -> impl Strategy<Value = ToolResult> {
    let rows = (1..120_u64, texts()).prop_map(|(count, text)| {
        let name = text.chars().take(8).collect::<String>();
        let row = |id| json!({"id": id, "name": name});
        structured((0..count).map(row).collect())
    });
    prop_oneof![
        texts().prop_map(ToolResult::text),
        texts().prop_map(ToolResult::error),
        rows
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_was_stored_comes_back_in_every_form(result in results(), length in 1..2_000_u64, streaming in any::<bool>()) {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().canonicalize().expect("it exists");
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        for store in stores(&root) {
            for policy in policies(&store) {
                let shaped = policy.policy().shape(&call, result.clone());
                let whole = shaped.record_text.to_string();
                let Some((reference, key)) = replaced(&shaped) else {
                    prop_assert!(shaped.prompt.ptr_eq(&shaped.record_text));
                    continue;
                };
                prop_assert!(shaped.prompt.len() as u64 <= LIMIT && shaped.prompt.len() < whole.len());
                check_forms(&*store, key, &whole, length);
                check_expansion(&*store, reference, key, &whole);
                if let AnyPolicy::Envelope(policy) = &policy {
                    check_resource(policy, reference, &whole, length);
                }
                if streaming {
                    let mut arriving = policy.policy().begin(call);
                    whole.as_bytes().chunks(777).for_each(|piece| arriving.push(piece));
                    let Verdict::Replace { spilled, text } = arriving.finish(false).verdict else {
                        panic!("the same text is over the limit")
                    };
                    prop_assert!(text.len() as u64 <= LIMIT);
                    check_forms(&*store, spilled.key.expect("a store's key"), &whole, length);
                }
            }
        }
    }

    #[test]
    fn what_a_step_stored_comes_back_in_slices(result in results(), length in 1..4_096_u64) {
        let (settings, _) = Settings::from_lookup(|name| (name == spill_engine::THRESHOLD_VAR).then(|| "4096".to_owned()));
        let step = StepSpill::new(settings, StepId::new("step").expect("an id"), StepSpill::unobserved());
        let shaped = step.shape(&Call::new("tool", CALL), result);
        if let Verdict::Replace { text, spilled } = &shaped.verdict {
            prop_assert!(text.len() < shaped.record_text.len() && text.len() <= 4_095);
            let (mut joined, mut next) = (String::new(), Some(0));
            while let Some(offset) = next {
                let range = json!({"offset": offset, "length": length.max(4)});
                let answer = step.read(&json!({"spillover_ref": spilled.reference, "range": range})).expect("a slice");
                joined.push_str(answer.text());
                next = answer.next_offset;
            }
            prop_assert_eq!(joined, &*shaped.record_text);
            let far = json!({"spillover_ref": spilled.reference, "range": {"offset": u64::MAX, "length": 1}});
            prop_assert!(step.read(&far).is_err());
        }
    }

    #[test]
    fn the_same_input_has_the_same_replacement_in_every_store(result in results()) {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().canonicalize().expect("it exists");
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        // Names come from equal seeds; in files the locator has the directory before it, in an envelope it has not.
        let envelopes: Vec<_> = stores(&root).iter().map(|store| {
            let [_, envelope] = policies(store);
            envelope.policy().shape(&call, result.clone())
        }).collect();
        for other in &envelopes {
            prop_assert_eq!(other, &envelopes[0]);
        }
    }
}

/// Executions that share a store and a policy store and read at the same time: each sees its own, and nothing else.
#[test]
fn executions_never_see_each_other_in_any_store() {
    const EXECUTIONS: usize = 6;
    let home = tempfile::tempdir().expect("a directory");
    let root = home.path().canonicalize().expect("it exists");
    for store in stores(&root) {
        for policy in policies(&store) {
            let (policy, store) = (policy.policy(), &*store);
            let together = Barrier::new(EXECUTIONS);
            let keys = std::sync::Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for execution in 0..EXECUTIONS {
                    let (together, keys) = (&together, &keys);
                    scope.spawn(move || {
                        let owner = Owner::new(&format!("execution {execution}"));
                        // Equal ids in every execution.
                        let call = Call::new(
                            "tool",
                            CallId {
                                iteration: 1,
                                index: 0,
                            },
                        )
                        .owned_by(&owner);
                        let text = format!("{execution} ").repeat(2_000);
                        together.wait();
                        let shaped = policy.shape(&call, ToolResult::text(text.clone()));
                        let mut arriving = policy.begin(call);
                        text.as_bytes()
                            .chunks(500)
                            .for_each(|piece| arriving.push(piece));
                        let Verdict::Replace { spilled, .. } = arriving.finish(false).verdict
                        else {
                            panic!("replaced")
                        };
                        let (_, whole) = replaced(&shaped).expect("replaced");
                        let streamed = spilled.key.expect("a store's key");
                        keys.lock()
                            .expect("no panic")
                            .extend([(execution, whole), (execution, streamed)]);
                        together.wait();
                        let all = keys.lock().expect("no panic").clone();
                        assert_eq!(all.len(), 2 * EXECUTIONS);
                        for (theirs, key) in all {
                            let found =
                                store.read(key, &Reader::Of(owner.clone()), ByteRange::ALL, NOW);
                            let found = found.map(|slice| slice.bytes().to_vec()).ok();
                            let own = (theirs == execution).then(|| text.clone().into_bytes());
                            assert_eq!(found, own);
                        }
                        together.wait();
                        store.release(&owner);
                        together.wait();
                        assert!(
                            store
                                .read(whole, &Reader::Of(owner.clone()), ByteRange::ALL, NOW)
                                .is_err()
                        );
                    });
                }
            });
            assert_eq!(store.usage().bytes, 0, "all released");
        }
    }
}
