//! Damaged and hostile transcripts through the verb: nothing hangs or panics, what is lost is named, memory stays bounded.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::program::{Row, Said, folder, rows, tar};
use crate::replay::{conversation, fixtures, replay, replay_folder};

/// Replays `path` below `folder`; what was said, and the rows of `problems.csv`.
fn damaged(folder: &Path, path: &str) -> (Said, Vec<Row>) {
    let reports = folder.join("reports");
    if reports.exists() {
        fs::remove_dir_all(&reports).unwrap();
    }
    let said = replay(folder, &[path.as_ref()], &["--thresholds", "8KiB"]);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    let rows = rows(&replay_folder(folder).join("problems.csv"));
    (said, rows)
}

/// `bytes` as a file end with `code`, and have just these problems, by kind and line.
#[track_caller]
fn check(bytes: &[u8], code: i32, problems: &[&str]) {
    let folder = folder();
    fs::write(folder.path().join("input"), bytes).unwrap();
    let (said, rows) = damaged(folder.path(), "input");
    assert_eq!(said.code, Some(code), "{}{}", said.stdout, said.stderr);
    let found: Vec<String> = rows
        .iter()
        .map(|row| format!("{}:{}", row["kind"], row["line"]))
        .collect();
    assert_eq!(found, problems);
    assert!(rows.iter().all(|row| row["file"] == "input"));
}

fn chat() -> String {
    conversation(10_000, 2).to_string()
}

fn line() -> String {
    format!("{{\"messages\":{}}}", chat())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn cut_files_and_torn_lines() {
    let (chat, line) = (chat(), line());
    check(&chat.as_bytes()[..chat.len() / 2], 5, &["not-json:"]);
    check(
        format!("{line}\n{}", &line[..line.len() / 2]).as_bytes(),
        0,
        &["torn-line:2"],
    );
    check(
        format!("{}\n{line}", &line[..line.len() / 2]).as_bytes(),
        0,
        &["torn-line:1"],
    );
    let packed = gzip(chat.as_bytes());
    check(&packed[..packed.len() / 2], 5, &["not-json:", "cut:1"]);
    check(&packed[..15], 5, &["damaged-archive:"]);
}

/// What holds sessions and is not unpacked may have held any number: the figures are incomplete, and nothing is counted.
#[test]
fn a_tar_archive_is_refused_by_name() {
    let tar = tar(line().as_bytes());
    check(&tar, 5, &["not-unpacked:"]);
    check(&gzip(&tar), 5, &["not-unpacked:"]);
    let folder = folder();
    fs::write(folder.path().join("input.tar"), &tar).unwrap();
    let (said, _) = damaged(folder.path(), "input.tar");
    let told = "input.tar: not-unpacked: a tar archive, which is not read (unpack it, and name what it holds)";
    assert!(said.stderr.contains(told), "{}", said.stderr);
}

/// A cut file of lines ends the same, packed or not: what is whole is counted, and the place of the cut is named.
#[test]
fn a_cut_is_one_thing_whatever_the_compression() {
    let lines = format!("{0}\n{0}\n{0}", line());
    let third = lines.len() * 5 / 6;
    check(&lines.as_bytes()[..third], 0, &["torn-line:3"]);
    let stored = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let packed = stored(lines.as_bytes());
    check(&packed[..third], 0, &["torn-line:3", "cut:3"]);
}

#[test]
fn encodings_surrogates_and_nul() {
    let chat = chat();
    let (before, after) = chat.split_once("line 000000001").unwrap();
    check(
        &[before.as_bytes(), b"caf\xE9", after.as_bytes()].concat(),
        0,
        &["not-utf8:1"],
    );
    check(
        format!("{before}\\ud83d{after}").as_bytes(),
        0,
        &["lone-surrogate:1"],
    );
    check(format!("{before}\\u0000{after}").as_bytes(), 0, &[]);
    let line = line();
    check(
        format!("{line}\n\0\0\0\0\n{line}").as_bytes(),
        0,
        &["torn-line:2"],
    );
    let wide: Vec<u8> = "\u{FEFF}"
        .encode_utf16()
        .chain(chat.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    check(&wide, 0, &[]);
}

#[test]
fn deep_nesting_and_duplicate_ids() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    check(deep.as_bytes(), 4, &["not-recognised:1"]);
    let line = line();
    let nested = line.replacen("\"Look at the log.\"", &deep, 1);
    check(format!("{line}\n{nested}").as_bytes(), 0, &["torn-line:2"]);
    let twice = chat().replace("\"c1\"", "\"c0\"");
    check(twice.as_bytes(), 0, &[]);
    let answered_twice = chat().replacen("\"tool_call_id\":\"c1\"", "\"tool_call_id\":\"c0\"", 1);
    let folder = folder();
    fs::write(folder.path().join("input"), answered_twice).unwrap();
    let (said, rows) = damaged(folder.path(), "input");
    assert_eq!(said.code, Some(0), "{}", said.stdout);
    let kinds: Vec<&str> = rows.iter().map(|row| &*row["kind"]).collect();
    assert_eq!(kinds, ["duplicate-id", "unanswered-call"]);
}

/// 200 MB of one line: a transcript with one giant result, and a line that is none.
#[test]
fn two_hundred_megabytes_of_one_line() {
    let folder = folder();
    let path = folder.path().join("input");
    let chat = chat();
    let (before, after) = chat.split_once("line 000000001").unwrap();
    let write = |bytes: usize, quoted: bool| {
        let mut file = BufWriter::new(File::create(&path).unwrap());
        if quoted {
            file.write_all(before.as_bytes()).unwrap();
        }
        let words = "all of this is one line. ".repeat(40_000);
        for _ in 0..bytes / words.len() {
            file.write_all(words.as_bytes()).unwrap();
        }
        if quoted {
            file.write_all(after.as_bytes()).unwrap();
        }
        file.flush().unwrap();
    };
    write(200_000_000, false);
    let (said, rows) = damaged(folder.path(), "input");
    assert_eq!(said.code, Some(4), "{}", said.stdout);
    assert_eq!(rows[0]["kind"], "not-recognised");
    write(300_000_000, true);
    let (said, rows) = damaged(folder.path(), "input");
    assert_eq!(said.code, Some(5), "{}", said.stdout);
    assert_eq!(rows[0]["kind"], "limit");
    assert!(
        rows[0]["detail"].contains("record_bytes of 268435456"),
        "{rows:?}"
    );
}

#[test]
fn bombs_are_refused_with_the_limit_named() {
    let folder = folder();
    // A line that is longer than a record may be, packed to a thousandth of it.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let spaces = vec![b' '; 1 << 20];
    for _ in 0..300 {
        encoder.write_all(&spaces).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    fs::write(folder.path().join("bomb.gz"), &bomb).unwrap();
    let mut nested = chat().into_bytes();
    for _ in 0..4 {
        nested = gzip(&nested);
    }
    fs::write(folder.path().join("nested.gz"), nested).unwrap();
    for (file, limit) in [
        ("bomb.gz", "record_bytes of"),
        ("nested.gz", "nesting of 3"),
    ] {
        let (said, rows) = damaged(folder.path(), file);
        assert_eq!(said.code, Some(5), "{}", said.stdout);
        assert_eq!((rows.len(), &*rows[0]["kind"]), (1, "limit"), "{rows:?}");
        assert!(rows[0]["detail"].contains(limit), "{rows:?}");
    }
}

#[test]
fn a_folder_of_mixed_formats_and_junk() {
    let folder = folder();
    let traces = folder.path().join("traces");
    fs::create_dir_all(traces.join("sub")).unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(traces.join(name), bytes).unwrap();
    put("a.json", chat().as_bytes());
    put("b.bin", &[0, 159, 146, 150, 0]);
    put("c.png", b"\x89PNG\r\n\x1a\n");
    put("empty", b"");
    put("sub/d.jsonl.gz", &gzip(line().as_bytes()));
    put("=cmd().jsonl", b"{\"type\":\"user\"\n");
    for (name, fixture) in [
        ("e.jsonl", "claude-code/damaged.jsonl"),
        ("f.traj", "swe-agent/old.traj"),
    ] {
        put(name, &fs::read(fixtures().join(fixture)).unwrap());
    }
    std::os::unix::fs::symlink(&traces, traces.join("sub/loop")).unwrap();
    let (said, rows) = damaged(folder.path(), "traces");
    assert_eq!(said.code, Some(5), "{}", said.stdout);
    let mut kinds: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["file"].rsplit('/').next().unwrap(), &*row["kind"]))
        .filter(|(file, _)| *file != "e.jsonl")
        .collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            ("=cmd().jsonl", "not-json"),
            ("b.bin", "not-recognised"),
            ("b.bin", "not-utf8"),
            ("c.png", "not-recognised"),
            ("c.png", "not-utf8"),
            ("empty", "empty"),
            ("loop", "not-a-file"),
        ]
    );
    let sessions = rows_of(folder.path(), "sessions.csv");
    assert_eq!(sessions.len(), 4, "{sessions:?}");
    let html = fs::read_to_string(replay_folder(folder.path()).join("report.html")).unwrap();
    assert!(html.contains("default-src 'none'"));
}

fn rows_of(folder: &Path, name: &str) -> Vec<Row> {
    rows(&replay_folder(folder).join(name))
}
