//! Results that are bounded while they are still arriving.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use spill_engine::{
    ByteRange, Bytes, Call, Content, Envelope, EnvelopeOptions, FileOptions, FileStore, InlineCap,
    InlineCapOptions, ItemHead, ItemKey, ItemName, ItemWriter, Kept, Millis, Owner, Policy,
    ReadFailure, Reader, Settings, Slice, SpillStore, StepId, StepSpill, StoreError, StoreUsage,
    StoredItem, Streamed, Swept, ToolResult, Verdict, Warning, WhenFull,
};

use super::{Bench, CALL, capped, limited, memory, owner};

fn stream(policy: &dyn Policy, call: Call<'_>, bytes: &[u8], piece: usize) -> Streamed {
    let mut arriving = policy.begin(call);
    bytes.chunks(piece).for_each(|piece| arriving.push(piece));
    arriving.finish(false)
}

fn stored_under(bench: &Bench, streamed: &Streamed) -> Vec<u8> {
    let Verdict::Replace { spilled, .. } = &streamed.verdict else {
        panic!("kept: {:?}", streamed.verdict)
    };
    let key = spilled.key.expect("a store's key");
    let reader = Reader::Of(owner());
    let slice = bench
        .store
        .read(key, &reader, ByteRange::ALL, Millis::new(0));
    slice.expect("just stored").bytes().to_vec()
}

/// The same replacement, and the same bytes in the store, as when the text comes whole.
#[track_caller]
fn check_like_whole(bench: impl Fn() -> Bench, text: &str, piece: usize) {
    let (whole, streaming) = (bench(), bench());
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let shaped = whole.policy.shape(&call, ToolResult::text(text));
    let streamed = stream(&*streaming.policy, call, text.as_bytes(), piece);
    assert_eq!(streamed.prompt, shaped.prompt);
    assert_eq!(streamed.verdict, shaped.verdict);
    assert_eq!(streamed.size, Bytes::of(text));
    assert_eq!(whole.store.usage(), streaming.store.usage());
    match &streamed.verdict {
        Verdict::Replace { .. } => {
            assert_eq!(streamed.record_text, None);
            assert_eq!(stored_under(&streaming, &streamed), text.as_bytes());
        }
        Verdict::Keep(_) => assert_eq!(*streamed.prompt, *text),
    }
}

#[test]
fn at_the_limit_nothing_leaves_and_above_it_the_result_is_the_same_as_whole() {
    for size in [0, 1, 999, 1_000, 1_001, 2_000, 2_001, 5_000, 100_000] {
        for piece in [1, 7, 1_000, 1_001, 1 << 20] {
            if size / piece < 10_000 {
                let text = "line 1\nline two é 漢 😀\n".repeat(size / 25 + 1);
                let text = &text[..text.floor_char_boundary(size)];
                check_like_whole(|| capped(1_000), text, piece);
                check_like_whole(|| limited(1_000), text, piece);
            }
        }
    }
}

#[test]
fn what_stays_in_any_case_stays_while_it_arrives() {
    let text = "x".repeat(5_000);
    let owner = owner();
    let by_name = Call::new("read", CALL).owned_by(&owner);
    let nested = Call {
        sub_call: Some(1),
        ..Call::new("tool", CALL).owned_by(&owner)
    };
    let nobody = Call::new("tool", CALL);
    let no_owner =
        |bench: &Bench| match stream(&*bench.policy, nobody, text.as_bytes(), 900).verdict {
            Verdict::Keep(Kept::Warned(Warning::NoOwner { .. })) => {}
            other => panic!("{other:?}"),
        };
    let cap = capped(1_000);
    for (call, kept) in [(by_name, Kept::ByName), (nested, Kept::Nested)] {
        let streamed = stream(&*cap.policy, call, text.as_bytes(), 900);
        assert_eq!(streamed.verdict, Verdict::Keep(kept));
        assert_eq!(*streamed.prompt, text);
    }
    let envelope = limited(1_000);
    let streamed = stream(&*envelope.policy, nested, text.as_bytes(), 900);
    assert_eq!(streamed.verdict, Verdict::Keep(Kept::Nested));
    for bench in [cap, envelope] {
        no_owner(&bench);
        assert_eq!(bench.store.usage().stored, 0);
    }
}

#[test]
fn a_read_back_does_not_leave_again() {
    for bench in [capped(1_000), limited(1_000)] {
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let text = "x".repeat(5_000);
        let streamed = stream(&*bench.policy, call, text.as_bytes(), 900);
        let Verdict::Replace { spilled, .. } = streamed.verdict else {
            panic!("replaced")
        };
        let arguments = json!({"where": spilled.reference});
        let call = Call {
            arguments: &arguments,
            ..Call::new("anything", CALL).owned_by(&owner)
        };
        let streamed = stream(&*bench.policy, call, text.as_bytes(), 900);
        assert_eq!(streamed.verdict, Verdict::Keep(Kept::ReadBack));
    }
}

#[test]
fn a_failure_leans_the_preview_to_the_end() {
    let bench = capped(4_000);
    let owner = owner();
    let mut arriving = bench.policy.begin(Call::new("tool", CALL).owned_by(&owner));
    (0..10_000).for_each(|line| arriving.push(format!("frame {line}\n").as_bytes()));
    let streamed = arriving.finish(true);
    let (head, tail) = streamed
        .prompt
        .split_once("left out ...]")
        .expect("a marker");
    assert!(streamed.is_error && tail.len() > 2 * head.len());
}

/// Bytes that fit, but as text no longer: they are shaped as the text that they are shown as.
#[test]
fn bytes_that_grow_over_the_limit_as_text_are_shaped_at_the_end() {
    let owner = owner();
    let prompt = |is_error| {
        let bench = capped(1_000);
        let mut arriving = bench.policy.begin(Call::new("tool", CALL).owned_by(&owner));
        arriving.push(b"start");
        arriving.push(&[0xff; 900]);
        arriving.push(b"the end");
        let streamed = arriving.finish(is_error);
        assert_eq!((streamed.size.get(), streamed.is_error), (912, is_error));
        assert!(matches!(streamed.verdict, Verdict::Replace { .. }));
        assert!(streamed.prompt.len() <= 1_000);
        streamed.prompt
    };
    let (usual, failed) = (prompt(false), prompt(true));
    let before_cut = |prompt: &str| prompt.find("left out ...]").expect("a marker");
    assert!(
        before_cut(&failed) < before_cut(&usual),
        "a failure is told at its end"
    );
}

#[test]
fn bytes_that_are_no_text_are_stored_as_they_are_and_shown_nowhere() {
    let bytes: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    for bench in [capped(1_000), limited(1_000)] {
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        let streamed = stream(&*bench.policy, call, &bytes, 777);
        assert_eq!(stored_under(&bench, &streamed), bytes);
        assert!(streamed.prompt.len() <= 1_000 && !streamed.prompt.contains('\u{fffd}'));
    }
}

#[test]
fn a_step_whose_store_is_memory_gathers() {
    let step = StepSpill::new(
        Settings::DEFAULT,
        StepId::new("step").expect("a step id"),
        StepSpill::unobserved(),
    );
    let text = "x".repeat(300 << 10);
    let streamed = stream(&step, Call::new("tool", CALL), text.as_bytes(), 4_096);
    assert!(matches!(streamed.verdict, Verdict::Replace { .. }));
    assert_eq!(streamed.record_text.as_deref(), Some(&*text));
}

/// Fails at a chosen moment, in the way of a disk.
struct Failing {
    inner: Arc<dyn SpillStore>,
    at: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Begin,
    /// This write, from 0.
    Write(usize),
    Finish,
    /// This write, and then reading back.
    WriteAndBack(usize),
}

fn broken() -> StoreError {
    StoreError::Io {
        action: "writing a result".to_owned(),
        kind: std::io::ErrorKind::StorageFull,
        message: "no space".to_owned(),
    }
}

struct FailingWriter<'a> {
    inner: Box<dyn ItemWriter + 'a>,
    at: Moment,
    writes: usize,
}

impl ItemWriter for FailingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let this = self.writes;
        self.writes += 1;
        match self.at {
            Moment::Write(at) | Moment::WriteAndBack(at) if at == this => Err(broken()),
            Moment::Begin | Moment::Finish | Moment::Write(_) | Moment::WriteAndBack(_) => {
                self.inner.write(bytes)
            }
        }
    }

    fn finish(&mut self) -> Result<StoredItem, StoreError> {
        match self.at {
            Moment::Finish => Err(broken()),
            Moment::Begin | Moment::Write(_) | Moment::WriteAndBack(_) => self.inner.finish(),
        }
    }

    fn take_back(self: Box<Self>) -> Result<Vec<u8>, StoreError> {
        match self.at {
            Moment::WriteAndBack(_) => Err(broken()),
            Moment::Begin | Moment::Write(_) | Moment::Finish => self.inner.take_back(),
        }
    }
}

impl SpillStore for Failing {
    fn name(&self, label: &str) -> Result<ItemName, StoreError> {
        self.inner.name(label)
    }

    fn put(
        &self,
        name: ItemName,
        head: ItemHead,
        content: Content,
    ) -> Result<StoredItem, StoreError> {
        self.inner.put(name, head, content)
    }

    fn begin<'a>(
        &'a self,
        name: ItemName,
        head: ItemHead,
    ) -> Result<Box<dyn ItemWriter + 'a>, StoreError> {
        if self.at == Moment::Begin {
            return Err(broken());
        }
        Ok(Box::new(FailingWriter {
            inner: self.inner.begin(name, head)?,
            at: self.at,
            writes: 0,
        }))
    }

    fn describe(
        &self,
        key: ItemKey,
        reader: &Reader,
        now: Millis,
    ) -> Result<StoredItem, ReadFailure> {
        self.inner.describe(key, reader, now)
    }

    fn read(
        &self,
        key: ItemKey,
        reader: &Reader,
        range: ByteRange,
        now: Millis,
    ) -> Result<Slice, ReadFailure> {
        self.inner.read(key, reader, range, now)
    }

    fn key_of(&self, locator: &str) -> Option<ItemKey> {
        self.inner.key_of(locator)
    }

    fn release(&self, owner: &Owner) {
        self.inner.release(owner);
    }

    fn sweep(&self, now: Millis) -> Swept {
        self.inner.sweep(now)
    }

    fn usage(&self) -> StoreUsage {
        self.inner.usage()
    }
}

fn policies(store: &Arc<dyn SpillStore>) -> [Arc<dyn Policy>; 2] {
    let envelope = EnvelopeOptions {
        max_payload_bytes: 1_000,
        ..EnvelopeOptions::default()
    };
    [
        Arc::new(InlineCap::new(
            InlineCapOptions::capped(1_000),
            store.clone(),
        )),
        Arc::new(Envelope::new(envelope, store.clone())),
    ]
}

fn in_file(home: &tempfile::TempDir, quota: u64) -> Arc<dyn SpillStore> {
    let root = home.path().canonicalize().expect("it exists").join("spill");
    let options = FileOptions {
        quota: Bytes::new(quota),
        when_full: WhenFull::Refuse,
        ..FileOptions::new(root)
    };
    Arc::new(FileStore::new(options).expect("a path"))
}

/// Whatever fails, and when, the result is whole and nothing of it is left in the store.
#[test]
fn a_store_that_fails_on_the_way_gives_the_result_back() {
    let text: String = (0..40_000_u32)
        .map(|place| char::from(b'a' + u8::try_from(place % 26).expect("small")))
        .collect();
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let moments = [
        Moment::Begin,
        Moment::Write(0),
        Moment::Write(1),
        Moment::Write(20),
        Moment::Finish,
    ];
    for at in moments {
        let home = tempfile::tempdir().expect("a directory");
        for inner in [
            memory(1 << 20) as Arc<dyn SpillStore>,
            in_file(&home, 1 << 20),
        ] {
            let store: Arc<dyn SpillStore> = Arc::new(Failing {
                inner: inner.clone(),
                at,
            });
            for policy in policies(&store) {
                let streamed = stream(&*policy, call, text.as_bytes(), 900);
                assert_eq!(*streamed.prompt, text, "{at:?}, {}", policy.name());
                assert_eq!(streamed.record_text.as_deref(), Some(&*text));
                let warning = streamed.verdict.warning().expect("a warning");
                assert!(warning.to_string().contains("no space"), "{warning}");
            }
            let usage = inner.usage();
            assert_eq!((usage.items, usage.bytes), (0, 0), "{at:?}");
        }
    }
}

#[test]
fn a_quota_that_runs_out_on_the_way_keeps_the_result_whole() {
    let text = "0123456789".repeat(5_000);
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let home = tempfile::tempdir().expect("a directory");
    for store in [
        memory(20_000) as Arc<dyn SpillStore>,
        in_file(&home, 20_000),
    ] {
        for policy in policies(&store) {
            let streamed = stream(&*policy, call, text.as_bytes(), 900);
            assert_eq!(*streamed.prompt, text);
            assert!(matches!(
                streamed.verdict.warning(),
                Some(Warning::NoRoom { .. })
            ));
        }
        let usage = store.usage();
        assert_eq!((usage.items, usage.bytes, usage.refused), (0, 0, 2));
    }
}

/// Bytes that a store neither keeps nor gives back are said to be lost, within the limit, and no reference is told.
#[test]
fn what_is_lost_is_said_to_be_lost() {
    let owner = owner();
    let call = Call::new("tool", CALL).owned_by(&owner);
    let store: Arc<dyn SpillStore> = Arc::new(Failing {
        inner: memory(1 << 20),
        at: Moment::WriteAndBack(3),
    });
    for policy in policies(&store) {
        let streamed = stream(&*policy, call, "x".repeat(40_000).as_bytes(), 900);
        assert!(
            streamed.prompt.contains("bytes are lost") && streamed.prompt.len() < 1_100,
            "{}",
            streamed.prompt
        );
        let shown = streamed.prompt.matches('x').count();
        let both_ends = policy.name() == "inline-cap";
        assert_eq!(shown, if both_ends { 1_000 } else { 500 });
        let gone = format!("\n[... {} bytes are lost,", 40_000 - shown);
        assert!(streamed.prompt.contains(&gone), "{}", streamed.prompt);
        assert_eq!((streamed.record_text, streamed.size.get()), (None, 40_000));
        assert!(matches!(
            streamed.verdict,
            Verdict::Keep(Kept::Warned(Warning::StoreFailed { .. }))
        ));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_text_in_any_pieces_is_bounded_as_if_it_came_whole(
        text in vec(prop::sample::select(vec!["\n", "a", "é", "漢", "😀", "\"", "data:image/png;base64,"]), 0..900),
        times in 1..20_usize, limit in 0..3_000_u64, piece in 1..2_000_usize,
    ) {
        let text = text.concat().repeat(times);
        let owner = owner();
        let call = Call::new("tool", CALL).owned_by(&owner);
        for bench in [|limit| capped(limit), |limit| limited(limit)] {
            let (whole, streaming) = (bench(limit), bench(limit));
            let shaped = whole.policy.shape(&call, ToolResult::text(text.clone()));
            let streamed = stream(&*streaming.policy, call, text.as_bytes(), piece);
            prop_assert_eq!(&streamed.verdict, &shaped.verdict);
            prop_assert_eq!(streamed.prompt, shaped.prompt);
            prop_assert_eq!(streaming.store.usage().items, whole.store.usage().items);
        }
    }

    #[test]
    fn any_bytes_are_taken(bytes in vec(any::<u8>(), 0..9_000), limit in 0..3_000_u64, piece in 1..2_000_usize, is_error in any::<bool>()) {
        let owner = owner();
        for bench in [capped(limit), limited(limit)] {
            let mut arriving = bench.policy.begin(Call::new("tool", CALL).owned_by(&owner));
            bytes.chunks(piece).for_each(|piece| arriving.push(piece));
            let streamed = arriving.finish(is_error);
            prop_assert_eq!(streamed.size.get(), bytes.len() as u64);
            if let Verdict::Replace { text, .. } = &streamed.verdict {
                prop_assert!(text.len() as u64 <= limit);
            }
        }
    }
}
