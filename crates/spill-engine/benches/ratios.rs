//! Ours beside the machine's own limits, taken in turns, so that the ratios hold on a busy machine too.
//!
//! Each round times every contender of a table once, on bytes of its own, and what is set up before and dropped afterwards is
//! not timed. A line shows the best and the median time, and the median over the rounds of its time divided by the limit's in
//! the same round. `cargo bench -p spill-engine --bench ratios`; words after `--` choose tables (`text cold rows file range`).

#![expect(clippy::print_stdout, reason = "a bench's tables are for its reader")]

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spill_engine::{
    Budget, ByteRange, Bytes, Call, CallId, Envelope, EnvelopeOptions, FileOptions, FileStore,
    InlineCap, InlineCapOptions, ItemHead, ItemKey, MAX_BUDGET_BYTES, MemoryOptions, MemoryStore,
    Millis, Owner, Policy, Reader, Settings, SharedText, SpillStore, StepId, StepSpill, Switch,
    Threshold, ToolResult, line_count, serialised_size,
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const LIMIT_BYTES: u64 = 32 << 10;
const NOW: Millis = Millis::new(1);
const CALL: CallId = CallId {
    iteration: 1,
    index: 0,
};

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let tables: [(&str, fn()); 5] = [
        ("text", texts),
        ("cold", cold_text),
        ("rows", rows),
        ("file", file_writes),
        ("range", ranges),
    ];
    for (name, table) in tables {
        if chosen.is_empty() || chosen.iter().any(|word| word == name) {
            table();
        }
    }
}

/// What one contender does in a round: its own preparation, then the time of the work alone.
struct Contender<'a> {
    name: String,
    round: Box<dyn FnMut() -> Duration + 'a>,
}

impl<'a> Contender<'a> {
    /// `work` gets what `prepare` made and returns what is dropped when the clock has stopped.
    fn new<In, Out>(
        name: impl Into<String>,
        mut prepare: impl FnMut() -> In + 'a,
        mut work: impl FnMut(In) -> Out + 'a,
    ) -> Self {
        let round = move || {
            let input = prepare();
            let start = Instant::now();
            let output = black_box(work(input));
            let took = start.elapsed();
            drop(output);
            took
        };
        Self {
            name: name.into(),
            round: Box::new(round),
        }
    }
}

/// Times all contenders in turns, and prints them beside the first, the limit.
fn race(title: &str, rounds: usize, mut contenders: Vec<Contender<'_>>) {
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds + rounds / 10 + 1 {
        for place in 0..contenders.len() {
            let place = (place + round) % contenders.len();
            let took = (contenders[place].round)();
            if round > rounds / 10 {
                times[place].push(took.as_secs_f64());
            }
        }
    }
    println!("\n{title}\n\n| | best | median | to the limit |\n|---|---|---|---|");
    for (contender, own) in contenders.iter().zip(&times) {
        let ratios = own.iter().zip(&times[0]).map(|(own, limit)| own / limit);
        let (best, middle) = (best(own), median(own.iter().copied()));
        println!(
            "| {} | {} | {} | {:.2}× (best to best {:.2}×) |",
            contender.name,
            shown(best),
            shown(middle),
            median(ratios),
            best / self::best(&times[0]),
        );
    }
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn shown(seconds: f64) -> String {
    let micros = seconds * 1e6;
    match micros {
        ..10.0 => format!("{micros:.2} µs"),
        10.0..1_000.0 => format!("{micros:.0} µs"),
        _ => format!("{:.2} ms", micros / 1e3),
    }
}

/// Source code as tools return it: short lines, some quotes. The other alphabet takes two and three bytes a character.
fn text(kind: &str, bytes: usize) -> String {
    let line = match kind {
        "multi-byte" => "    名前 = 設定[\"größe\"] か 既定 // 上で解決した\n",
        "tabs" => "\t\tname := config.Get(\"size\")\t// resolved above\n",
        _ => "    let name = config.get(\"size\").unwrap_or_default(); // resolved above\n",
    };
    let mut text = line.repeat(bytes / line.len() + 1);
    text.truncate(text.floor_char_boundary(bytes));
    text.shrink_to_fit();
    text
}

fn step() -> StepSpill {
    let settings = Settings {
        enabled: Switch::On,
        threshold: Threshold::new(LIMIT_BYTES).expect("a bound"),
        budget: Budget::new(MAX_BUDGET_BYTES).expect("a bound"),
    };
    let id = StepId::new("bench").expect("a step id");
    StepSpill::new(settings, id, StepSpill::unobserved())
}

fn memory() -> Arc<dyn SpillStore> {
    Arc::new(MemoryStore::new(MemoryOptions::shared(Bytes::new(
        64 << 20,
    ))))
}

fn inline_cap(store: Arc<dyn SpillStore>) -> InlineCap {
    InlineCap::new(InlineCapOptions::capped(LIMIT_BYTES), store)
}

fn envelope(store: Arc<dyn SpillStore>) -> Envelope {
    let options = EnvelopeOptions {
        max_payload_bytes: LIMIT_BYTES,
        ..EnvelopeOptions::default()
    };
    Envelope::new(options, store)
}

/// A whole decision of each policy about what `prepare` makes, into memory. A step is new each time, as an execution's is.
fn policies<'a>(prepare: &'a dyn Fn() -> ToolResult, owner: &'a Owner) -> Vec<Contender<'a>> {
    let mut contenders = vec![Contender::new(
        "workflow-step",
        || (step(), prepare()),
        |(step, result)| {
            let admitted = step.admit(CALL, "read_file", result);
            (step, admitted)
        },
    )];
    let others: [Box<dyn Policy>; 2] =
        [Box::new(inline_cap(memory())), Box::new(envelope(memory()))];
    for policy in others {
        let call = Call::new("read_file", CALL).owned_by(owner);
        contenders.push(Contender::new(policy.name(), prepare, move |result| {
            policy.shape(&call, result)
        }));
    }
    contenders
}

fn texts() {
    let sizes = [
        ("8 KiB (passes)", 8 * KIB, 2_000),
        ("64 KiB", 64 * KIB, 2_000),
        ("256 KiB", 256 * KIB, 1_000),
        ("1 MiB", MIB, 500),
        ("16 MiB", 16 * MIB, 60),
    ];
    let others = [
        ("1 MiB, multi-byte", "multi-byte", MIB, 500),
        ("1 MiB, tabs", "tabs", MIB, 500),
    ];
    let all = sizes.map(|(name, bytes, rounds)| (name, "lines", bytes, rounds));
    for (name, kind, bytes, rounds) in all.into_iter().chain(others) {
        let text = text(kind, bytes);
        let owner = Owner::new("bench");
        let fresh = || text.clone();
        let prepare = || ToolResult::text(text.clone());
        let mut contenders = vec![
            Contender::new("limit: counting line feeds (`memchr`)", fresh, |text| {
                let lines = line_count(black_box(&text));
                (text, lines)
            }),
            Contender::new(
                "limit: `memcpy`, warm",
                || (text.clone(), text.clone()),
                |(text, mut copy)| {
                    copy.clone_from(&text);
                    (text, copy)
                },
            ),
            Contender::new("measuring alone (`serialised_size`)", fresh, |text| {
                let size = serialised_size(black_box(&text));
                (text, size)
            }),
        ];
        contenders.extend(policies(&prepare, &owner));
        race(&format!("**Text of {name}, in cache**"), rounds, contenders);
    }
}

/// Before each time, more bytes than the processor's caches hold are read.
fn cold_text() {
    let others = vec![1_u8; 384 * MIB];
    let text = text("lines", MIB);
    let owner = Owner::new("bench");
    let fresh = || {
        let text = text.clone();
        let seen: u64 = others.chunks(64).map(|line| u64::from(line[0])).sum();
        black_box(seen);
        text
    };
    let prepare = || ToolResult::text(fresh());
    let mut contenders = vec![Contender::new(
        "limit: counting line feeds (`memchr`)",
        fresh,
        |text| {
            let lines = line_count(black_box(&text));
            (text, lines)
        },
    )];
    contenders.extend(policies(&prepare, &owner));
    race("**Text of 1 MiB, cold**", 60, contenders);
}

/// 1,500 database rows of 256,000 bytes in all, and as many of the same kind as make 1 MiB.
fn rows() {
    let row = |id: usize| {
        json!({
            "id": id, "name": format!("customer {id:06}"), "city": "Brno", "balance": id * 37 % 9_973,
            "active": id.is_multiple_of(3), "created": "2024-05-17T08:15:00Z", "note": "delivered on time, paid within 14 days",
            "ref": format!("ORD-{id:010}"),
        })
    };
    for (count, rounds) in [(50, 1_000), (1_500, 300), (6_000, 100)] {
        let value: Value = (0..count).map(row).collect();
        let size = value.to_string().len();
        let owner = Owner::new("bench");
        let prepare = || ToolResult {
            structured: Some(value.clone()),
            ..ToolResult::default()
        };
        let mut contenders = vec![Contender::new(
            "limit: one `serde_json::to_string`",
            || value.clone(),
            |value| {
                let json = serde_json::to_string(&value).expect("a value has a JSON form");
                (value, json)
            },
        )];
        contenders.extend(policies(&prepare, &owner));
        let title = format!("**{count} rows as a JSON value, {size} bytes serialised**");
        race(&title, rounds, contenders);
    }
}

fn files(home: &tempfile::TempDir) -> Arc<FileStore> {
    let root = home
        .path()
        .canonicalize()
        .expect("a directory")
        .join("spill");
    let options = FileOptions {
        quota: Bytes::new(u64::MAX),
        ..FileOptions::new(root)
    };
    Arc::new(FileStore::new(options).expect("a path"))
}

fn put(store: &dyn SpillStore, owner: &Owner, text: SharedText) -> ItemKey {
    let name = store.name("read_file.txt").expect("a name");
    let head = ItemHead::text_of(owner, NOW);
    store.put(name, head, text.into()).expect("room").key
}

/// Without `fsync`, ours and the limit. What was written is removed before the next time.
fn file_writes() {
    for (name, bytes, rounds) in [
        ("64 KiB", 64 * KIB, 1_000),
        ("1 MiB", MIB, 500),
        ("16 MiB", 16 * MIB, 40),
    ] {
        let home = tempfile::tempdir().expect("a directory");
        let text = text("lines", bytes);
        let shared = SharedText::from(text.clone());
        let store = files(&home);
        let owner = Owner::new("session");
        let plain = home.path().join("plain");
        let policy = inline_cap(store.clone());
        let (kept, shared) = (&store, &shared);
        let call = Call::new("read_file", CALL).owned_by(&owner);
        let contenders = vec![
            Contender::new(
                "limit: a plain file write",
                || drop(std::fs::remove_file(&plain)),
                |()| std::fs::write(&plain, shared.as_str()).expect("room"),
            ),
            Contender::new(
                "file store, `put`",
                || kept.release(&owner),
                |()| put(&**kept, &owner, shared.clone()),
            ),
            Contender::new(
                "inline-cap over the file store",
                || {
                    kept.release(&owner);
                    ToolResult::text(text.clone())
                },
                |result| policy.shape(&call, result),
            ),
        ];
        race(
            &format!("**Text of {name} into files**"),
            rounds,
            contenders,
        );
    }
}

/// Offsets all over the item, on page borders or off them.
fn offsets(shift: u64) -> impl FnMut() -> u64 {
    let mut round = 0;
    move || {
        round += 1;
        (round * 7_919 % 500) * LIMIT_BYTES + shift
    }
}

fn ranges() {
    let home = tempfile::tempdir().expect("a directory");
    let content = SharedText::from(text("lines", 16 * MIB));
    let (memory, file) = (memory(), files(&home));
    let owner = Owner::new("session");
    let reader = &Reader::Of(owner.clone());
    let plain = home.path().join("plain");
    std::fs::write(&plain, content.as_str()).expect("a file");
    let plain = &File::open(plain).expect("a file");
    for (name, shift) in [("on page borders", 0), ("anywhere", 1_234)] {
        let mut contenders = vec![Contender::new(
            "limit: one `pread`",
            offsets(shift),
            |offset| {
                let mut bytes = vec![0; 32 * KIB];
                plain.read_exact_at(&mut bytes, offset).expect("inside");
                bytes
            },
        )];
        let stores: [(&str, &dyn SpillStore); 2] = [("memory", &*memory), ("file", &*file)];
        for (kind, store) in stores {
            let key = put(store, &owner, content.clone());
            contenders.push(Contender::new(kind, offsets(shift), move |offset| {
                let length = LIMIT_BYTES;
                let range = ByteRange { offset, length };
                let slice = store.read(key, reader, range, NOW).expect("inside");
                black_box(slice.bytes().len());
                slice
            }));
        }
        race(
            &format!("**32 KiB of an item of 16 MiB, {name}**"),
            5_000,
            contenders,
        );
    }
}
