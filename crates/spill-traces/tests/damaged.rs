//! Damaged, hostile and odd input: nothing panics, nothing is dropped without being named, and limits hold.

use std::io::Write;
use std::sync::LazyLock;

use proptest::prelude::*;
use spill_traces::{FileReport, Import, Imported, Limits, ProblemKind, Transcript};

const CHAT: &str = r#"[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"RESULT"},{"role":"assistant","content":"bye"}]"#;
const LINE: &str =
    r#"{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]}"#;

fn import(bytes: &[u8], limits: Limits) -> (Vec<Transcript>, Vec<FileReport>) {
    let (mut transcripts, mut files) = (Vec::new(), Vec::new());
    Import::new(limits).stream("input", bytes, &mut |imported| match imported {
        Imported::Transcript(transcript) => transcripts.push(*transcript),
        Imported::File(file) => files.push(*file),
    });
    (transcripts, files)
}

/// `bytes` give `transcripts` transcripts, and their file's problems are just `problems`.
#[track_caller]
fn check(bytes: &[u8], transcripts: usize, problems: &[ProblemKind]) {
    check_within(Limits::DEFAULT, bytes, transcripts, problems);
}

#[track_caller]
fn check_within(limits: Limits, bytes: &[u8], transcripts: usize, problems: &[ProblemKind]) {
    let (found, files) = import(bytes, limits);
    let kept = files.iter().flat_map(|file| file.problems.kept());
    let kinds: Vec<ProblemKind> = kept.map(|problem| problem.kind).collect();
    assert_eq!((found.len(), kinds.as_slice()), (transcripts, problems));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).expect("memory to memory")
}

fn zip(entries: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in entries {
        writer.start_file(*name, options).expect("a fresh name");
        writer.write_all(bytes).expect("a vector takes all");
    }
    writer.finish().expect("a vector takes all").into_inner()
}

#[test]
fn packed_input_is_read_as_it_is() {
    check(CHAT.as_bytes(), 1, &[]);
    check(&gzip(CHAT.as_bytes()), 1, &[]);
    check(&zstd(CHAT.as_bytes()), 1, &[]);
    check(&zstd(&gzip(CHAT.as_bytes())), 1, &[]);
    let entries: [(&str, &[u8]); 2] = [("a.json", CHAT.as_bytes()), ("b.jsonl", LINE.as_bytes())];
    check(&zip(&entries, zip::CompressionMethod::Deflated), 2, &[]);
    check(&zip(&entries, zip::CompressionMethod::Zstd), 2, &[]);
    check(
        &gzip(&zip(&entries, zip::CompressionMethod::Stored)),
        2,
        &[],
    );
}

/// A tar archive of one file, with the mark that POSIX or GNU programs set.
fn tar(mark: &[u8; 8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..7].copy_from_slice(b"a.jsonl");
    header[124..135].copy_from_slice(format!("{:011o}", LINE.len()).as_bytes());
    header[257..265].copy_from_slice(mark);
    let mut content = LINE.as_bytes().to_vec();
    content.resize(512, 0);
    [header, content, vec![0; 1024]].concat()
}

#[test]
fn packings_that_are_not_read_are_named_and_not_read_as_text() {
    let names = |bytes: &[u8]| -> Vec<String> {
        let (found, files) = import(bytes, Limits::DEFAULT);
        assert_eq!(found.len(), 0);
        let kept = files.iter().flat_map(|file| file.problems.kept());
        kept.map(ToString::to_string).collect()
    };
    let way_out = "which is not read (unpack it, and name what it holds)";
    for mark in [b"ustar\x0000", b"ustar  \0"] {
        let tar = tar(mark);
        let said = [format!("input: not-unpacked: a tar archive, {way_out}")];
        assert_eq!(names(&tar), said);
        assert_eq!(names(&tar[..300]), said);
        assert_eq!(names(&gzip(&tar)), said);
        assert_eq!(names(&zstd(&gzip(&tar))), said);
        let entry = zip(&[("a.tar", &tar)], zip::CompressionMethod::Stored);
        let said = [format!(
            "input!a.tar: not-unpacked: a tar archive, {way_out}"
        )];
        assert_eq!(names(&entry), said);
    }
    for (head, name) in [
        (&b"BZh91AY&SY\xAC\x0B\0"[..], "bzip2 data"),
        (b"\xFD7zXZ\0\0\x04", "xz data"),
        (b"\x5D\0\0\x80\0", "lzma data"),
        (b"\x04\x22\x4D\x18\x64", "lz4 data"),
        (b"\x1F\x9D\x90", "compress data (.Z)"),
        (b"7z\xBC\xAF\x27\x1C\0\x04", "a 7z archive"),
        (b"Rar!\x1A\x07\x01\0", "a rar archive"),
    ] {
        let stored = [head, b"\n", LINE.as_bytes(), b"\n"].concat();
        let said = [format!("input: not-unpacked: {name}, {way_out}")];
        assert_eq!(names(&stored), said);
        assert_eq!(names(&gzip(&stored)), said);
    }
    // A frame that is skipped, as parallel compressors write it, and the data.
    let skipped = [
        b"\x50\x2A\x4D\x18\x04\0\0\0size",
        &zstd(CHAT.as_bytes())[..],
    ]
    .concat();
    check(&skipped, 1, &[]);
}

#[test]
fn an_inspect_archive_gives_its_samples_alone() {
    let sample = r#"{"id":1,"epoch":1,"events":[],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}"#;
    let entries: [(&str, &[u8]); 3] = [
        ("header.json", b"{}"),
        ("_journal/start.json", b"{}"),
        ("samples/1_epoch_1.json", sample.as_bytes()),
    ];
    check(&zip(&entries, zip::CompressionMethod::Zstd), 1, &[]);
}

#[test]
fn nothing_is_named() {
    check(b"", 0, &[ProblemKind::Empty]);
    check(b"\n \n", 0, &[ProblemKind::Empty]);
    check(b"\xEF\xBB\xBF", 0, &[ProblemKind::Empty]);
    check(b"[]", 0, &[ProblemKind::NotRecognised]);
    check(b"null", 0, &[ProblemKind::NotRecognised]);
    check(b"# a readme", 0, &[ProblemKind::NotRecognised]);
    check(br#"{"some":"json"}"#, 0, &[ProblemKind::NotRecognised]);
}

#[test]
fn cut_documents_and_torn_lines() {
    check(&CHAT.as_bytes()[..100], 0, &[ProblemKind::NotJson]);
    check(
        format!("{LINE}\n{}", &LINE[..40]).as_bytes(),
        1,
        &[ProblemKind::TornLine],
    );
    check(
        format!("{}\n{LINE}", &LINE[..40]).as_bytes(),
        1,
        &[ProblemKind::TornLine],
    );
    check(
        format!("{LINE}\n\0\0\0\0\n{LINE}").as_bytes(),
        2,
        &[ProblemKind::TornLine],
    );
    check(format!("{LINE}\r\n{LINE}\r\n").as_bytes(), 2, &[]);
}

/// The place tells the line; the parser counts lines of its own, and is not heard.
#[test]
fn a_torn_line_has_one_number() {
    let torn = format!("{LINE}\n{}\n{LINE}", &LINE[..40]);
    let said = |bytes: &[u8]| {
        let (_, files) = import(bytes, Limits::DEFAULT);
        files[0].problems.kept()[0].to_string()
    };
    assert_eq!(
        said(torn.as_bytes()),
        "input:2: torn-line: EOF while parsing a string at column 40"
    );
    let cut = said(&CHAT.as_bytes()[..100]);
    assert!(
        cut.starts_with("input: not-json: ") && cut.ends_with(" at column 100"),
        "{cut}"
    );
    // A document of several lines has no line of its own.
    let cut = said(b"[{\n\"role\": \"us");
    assert!(cut.ends_with(" at line 2 column 11"), "{cut}");
}

#[test]
fn cut_archives() {
    let packed = gzip(&CHAT.repeat(50).into_bytes());
    let (found, files) = import(&packed[..packed.len() / 2], Limits::DEFAULT);
    assert!(found.is_empty());
    let kinds: Vec<_> = files[0].problems.counts().keys().collect();
    assert_eq!(kinds, [&ProblemKind::Cut, &ProblemKind::NotJson]);
    let packed = zstd(CHAT.as_bytes());
    check(
        &packed[..packed.len() - 5],
        0,
        &[ProblemKind::DamagedArchive],
    );
    check(&packed[..5], 0, &[ProblemKind::DamagedArchive]);
    let packed = zip(&[("a", CHAT.as_bytes())], zip::CompressionMethod::Deflated);
    check(
        &packed[..packed.len() / 2],
        0,
        &[ProblemKind::NotJson, ProblemKind::Cut, ProblemKind::Cut],
    );
}

/// Many lines that compress badly, so that every cut leaves some of them.
fn many_lines() -> String {
    let mut state = 1_u64;
    let mut hex = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{state:016x}")
    };
    let line = |_| LINE.replace("yes", &(0..1_000).map(|_| hex()).collect::<String>());
    (0..40).map(line).collect::<Vec<String>>().join("\n")
}

/// `packed`, cut at any share, gives what a plain file gives that is cut where its text ends: every whole line, and the place.
#[track_caller]
fn check_cut(name: &str, text: &str, packed: &[u8]) {
    let whole = import(packed, Limits::DEFAULT);
    assert_eq!(
        (whole.0.len(), whole.1[0].problems.total()),
        (40, 0),
        "{name}"
    );
    let mut before = 0;
    for share in [50, 70, 90, 99] {
        let (found, files) = import(&packed[..packed.len() * share / 100], Limits::DEFAULT);
        let kept = files.iter().flat_map(|file| file.problems.kept());
        let problems: Vec<_> = kept
            .map(|problem| (problem.kind, problem.place.line))
            .collect();
        let whole = found.len();
        assert!(
            (1..40).contains(&whole) && whole >= before,
            "{name} {share}: {whole}"
        );
        before = whole;
        let plain: Vec<&str> = text.split_inclusive('\n').collect();
        let plain = format!("{}{}", plain[..whole].concat(), &plain[whole][..100]);
        let (same, files) = import(plain.as_bytes(), Limits::DEFAULT);
        assert_eq!(same.len(), whole, "{name} {share}");
        let torn = files[0].problems.kept()[0].place.line;
        assert_eq!(torn, Some(whole as u64 + 1));
        let cut = (ProblemKind::Cut, torn);
        assert!(
            problems.starts_with(&[(ProblemKind::TornLine, torn), cut]),
            "{name} {share}: {problems:?}"
        );
        let archive = (ProblemKind::Cut, None);
        assert!(
            problems[2..].iter().all(|further| *further == archive),
            "{name} {share}: {problems:?}"
        );
    }
}

#[test]
fn what_is_whole_before_a_cut_is_read_whatever_the_compression() {
    let text = many_lines();
    let bytes = text.as_bytes();
    check_cut("gzip", &text, &gzip(bytes));
    check_cut("zstd", &text, &zstd(bytes));
    check_cut("zstd of gzip", &text, &zstd(&gzip(bytes)));
    check_cut("gzip of zstd", &text, &gzip(&zstd(bytes)));
    for method in [
        zip::CompressionMethod::Stored,
        zip::CompressionMethod::Deflated,
        zip::CompressionMethod::Zstd,
    ] {
        check_cut(
            &format!("zip, {method}"),
            &text,
            &zip(&[("a.jsonl", bytes)], method),
        );
    }
}

#[test]
fn a_cut_between_lines_is_named_where_the_compression_shows_it() {
    let lines = format!("{LINE}\n{LINE}\n");
    // The checksum at the end of the stream is cut, and nothing else.
    let packed = gzip(lines.as_bytes());
    check(&packed[..packed.len() - 3], 2, &[ProblemKind::Cut]);
    let mark = [
        &b"\xFF\xFE"[..],
        &lines
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>(),
    ]
    .concat();
    let packed = gzip(&mark);
    check(&packed[..packed.len() - 3], 2, &[ProblemKind::Cut]);
}

#[test]
fn entries_before_the_cut_of_an_archive_are_read() {
    let sample = |id: u32| {
        format!(
            r#"{{"id":{id},"epoch":1,"events":[],"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":"a"}}]}}"#
        )
    };
    let (one, two) = (sample(1), sample(2));
    let entries: [(&str, &[u8]); 4] = [
        ("_journal/start.json", b"{}"),
        ("samples/1_epoch_1.json", one.as_bytes()),
        ("samples/2_epoch_1.json", two.as_bytes()),
        ("header.json", b"{}"),
    ];
    let packed = zip(&entries, zip::CompressionMethod::Deflated);
    let at = |name: &str| {
        packed
            .windows(name.len())
            .position(|bytes| bytes == name.as_bytes())
            .expect("an entry's name")
    };
    // In the directory, in the header, and in the name of the header.
    check(&packed[..packed.len() - 30], 2, &[ProblemKind::Cut]);
    check(&packed[..at("header.json") + 12], 2, &[ProblemKind::Cut]);
    check(&packed[..at("header.json") + 5], 2, &[ProblemKind::Cut]);
    // Within a sample: that is a document, and lost.
    let cut = at("samples/2") + 40;
    check(
        &packed[..cut],
        1,
        &[ProblemKind::DamagedArchive, ProblemKind::Cut],
    );
    // Nothing of the samples.
    check(
        &packed[..at("samples/1") - 10],
        0,
        &[ProblemKind::DamagedArchive],
    );
    // No end of the file, and not whole either: damaged.
    let mut odd = packed[..at("header.json") + 12].to_vec();
    odd[at("samples/2") - 30] ^= 0xFF;
    check(&odd, 1, &[ProblemKind::DamagedArchive]);
}

#[test]
fn a_session_without_calls_is_recognised() {
    let asked = r#"[{"role":"user","content":"hi"}]"#;
    check(asked.as_bytes(), 1, &[ProblemKind::NoCalls]);
    let (_, files) = import(asked.as_bytes(), Limits::DEFAULT);
    let detail = &files[0].problems.kept()[0].detail;
    assert_eq!(detail, "recognised as openai-chat, without an LLM call");
    let codex =
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s"}}"#;
    let (found, files) = import(codex.as_bytes(), Limits::DEFAULT);
    assert!(found.is_empty());
    assert_eq!(
        files[0].problems.counts().get(&ProblemKind::NoCalls),
        Some(&1)
    );
}

#[test]
fn encodings() {
    let marked = [b"\xEF\xBB\xBF", CHAT.as_bytes()].concat();
    check(&marked, 1, &[]);
    let little: Vec<u8> = "\u{FEFF}"
        .encode_utf16()
        .chain(CHAT.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    check(&little, 1, &[]);
    let big: Vec<u8> = "\u{FEFF}"
        .encode_utf16()
        .chain(CHAT.encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    check(&big, 1, &[]);
    let (before, after) = CHAT.split_once("RESULT").expect("it has a result");
    let latin1 = [before.as_bytes(), b"caf\xE9", after.as_bytes()].concat();
    check(&latin1, 1, &[ProblemKind::NotUtf8]);
    let odd = &little[..little.len() - 1];
    let (_, files) = import(odd, Limits::DEFAULT);
    assert!(
        files[0]
            .problems
            .counts()
            .contains_key(&ProblemKind::NotUtf8)
    );
}

#[test]
fn lone_surrogates_and_nul_in_texts() {
    let (found, files) = import(
        CHAT.replace("RESULT", r"a\ud83d b\u0000").as_bytes(),
        Limits::DEFAULT,
    );
    let result = &found[0].results[0];
    assert_eq!(&*found[0].pieces_of(result)[0].text, "a\u{FFFD} b\0");
    assert_eq!(
        files[0].problems.counts().get(&ProblemKind::LoneSurrogate),
        Some(&1)
    );
}

#[test]
fn one_line_of_10_megabytes() {
    let long = LINE.replace("yes", &"y".repeat(10_000_000));
    check(format!("{LINE}\n{long}\n{LINE}").as_bytes(), 3, &[]);
    let limits = Limits {
        record_bytes: 1_000_000,
        ..Limits::DEFAULT
    };
    check_within(
        limits,
        format!("{LINE}\n{long}\n{LINE}").as_bytes(),
        2,
        &[ProblemKind::Limit],
    );
    check_within(limits, long.as_bytes(), 0, &[ProblemKind::Limit]);
    let pretty = long.replacen('{', "{\n", 1);
    check_within(limits, pretty.as_bytes(), 0, &[ProblemKind::Limit]);
}

#[test]
fn records_of_several_formats_in_one_file() {
    let atif = r#"{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"source":"user","message":"q"},{"source":"agent","message":"a"}]}"#;
    let (found, files) = import(
        format!("{LINE}\n{atif}\n{LINE}").as_bytes(),
        Limits::DEFAULT,
    );
    let formats: Vec<&str> = found.iter().map(|t| t.format.name()).collect();
    assert_eq!(formats, ["openai-chat", "atif", "openai-chat"]);
    assert_eq!((files[0].transcripts, files[0].formats.len()), (3, 2));
}

#[test]
fn deep_nesting() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check(deep.as_bytes(), 0, &[ProblemKind::NotRecognised]);
    let deep = LINE.replace("\"yes\"", &deep);
    check(
        format!("{LINE}\n{deep}").as_bytes(),
        2,
        &[ProblemKind::TornLine],
    );
    let unclosed = "{\"messages\":[".repeat(100_000);
    check(unclosed.as_bytes(), 0, &[ProblemKind::NotJson]);
}

#[test]
fn duplicate_ids_keep_both_results() {
    let twice = CHAT.replace(
        r#"{"role":"tool","tool_call_id":"a","content":"RESULT"},"#,
        r#"{"role":"tool","tool_call_id":"a","content":"ONE"},{"role":"tool","tool_call_id":"a","content":"TWO"},"#,
    );
    let (found, _) = import(twice.as_bytes(), Limits::DEFAULT);
    assert_eq!(found[0].results.len(), 2);
    assert_eq!(
        found[0].problems.counts().get(&ProblemKind::DuplicateId),
        Some(&1)
    );
}

#[test]
fn bombs_are_refused_with_the_limit_named() {
    let limits = Limits {
        record_bytes: 1 << 20,
        decompressed_bytes: 8 << 20,
        entries: 10,
        nesting: 2,
        ..Limits::DEFAULT
    };
    let zeros = vec![b' '; 64 << 20];
    for bomb in [
        gzip(&zeros),
        zstd(&zeros),
        zip(&[("a", &zeros)], zip::CompressionMethod::Deflated),
    ] {
        let (found, files) = import(&bomb, limits);
        assert!(found.is_empty());
        let problems = files[0].problems.kept();
        assert!(
            problems.iter().all(|p| p.kind == ProblemKind::Limit),
            "{problems:?}"
        );
        assert!(problems[0].detail.contains("_bytes of"), "{problems:?}");
    }
    let mut nested = CHAT.as_bytes().to_vec();
    for _ in 0..3 {
        nested = gzip(&nested);
    }
    let (_, files) = import(&nested, limits);
    assert_eq!(
        files[0].problems.kept()[0].detail,
        "the limit nesting of 2 is reached"
    );
    let names: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    let entries: Vec<(&str, &[u8])> = names.iter().map(|n| (n.as_str(), &b"{}"[..])).collect();
    let many = zip(&entries, zip::CompressionMethod::Stored);
    check_within(limits, &many, 0, &[ProblemKind::Limit]);
}

#[test]
fn a_folder_of_mixed_formats_and_junk() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let write = |name: &str, bytes: &[u8]| std::fs::write(path.join(name), bytes).expect("written");
    std::fs::create_dir(path.join("sub")).expect("made");
    write("a.json", CHAT.as_bytes());
    write("b.bin", &[0, 159, 146, 150, 0]);
    write("c.jsonl", format!("{LINE}\n{LINE}").as_bytes());
    write("d.png", b"\x89PNG\r\n\x1a\n");
    write("empty", b"");
    write("sub/e.zst", &zstd(CHAT.as_bytes()));
    std::os::unix::fs::symlink(path, path.join("sub/loop")).expect("linked");
    let (mut transcripts, mut files, mut bad) = (0, 0, 0);
    Import::new(Limits::DEFAULT).path(path, &mut |imported| match imported {
        Imported::Transcript(_) => transcripts += 1,
        Imported::File(file) => {
            files += 1;
            bad += u32::from(file.problems.total() > 0);
        }
    });
    assert_eq!((transcripts, files, bad), (4, 7, 4));
}

#[test]
fn a_path_that_does_not_exist_is_a_problem() {
    let mut kinds = Vec::new();
    Import::new(Limits::DEFAULT).path("/does/not/exist".as_ref(), &mut |imported| {
        if let Imported::File(file) = imported {
            kinds.extend(file.problems.kept().iter().map(|problem| problem.kind));
        }
    });
    assert_eq!(kinds, [ProblemKind::Unreadable]);
}

fn all_fixtures() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders =
        vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(folder)
            .expect("a folder of fixtures")
            .map(|entry| entry.expect("readable").path())
            .collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                folders.push(entry);
            } else {
                found.push(std::fs::read(entry).expect("readable"));
            }
        }
    }
    found
}

proptest! {
    /// Cut anywhere, with any byte changed: no panic, and either a transcript or a problem.
    #[test]
    fn any_damage_is_survived(
        file in 0_usize..100,
        cut in 0.0_f64..1.0,
        at in 0.0_f64..1.0,
        byte in any::<u8>(),
    ) {
        static FIXTURES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(all_fixtures);
        let fixtures = &*FIXTURES;
        let mut bytes = fixtures[file % fixtures.len()].clone();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss,
                 reason = "a share of a small file's length")]
        let place = |share: f64, length: usize| (share * length as f64) as usize;
        bytes.truncate(place(cut, bytes.len()) + 1);
        let at = place(at, bytes.len());
        if let Some(changed) = bytes.get_mut(at) {
            *changed = byte;
        }
        let (transcripts, files) = import(&bytes, Limits::DEFAULT);
        let accounted = files.iter().any(|file| {
            file.problems.total() > 0 || !file.left_out.is_empty() || !file.formats.is_empty()
        });
        prop_assert!(!transcripts.is_empty() || accounted);
        for transcript in &transcripts {
            let counts = spill_traces::counts(transcript);
            prop_assert!(counts.results == transcript.results.len() as u64);
            for result in &transcript.results {
                prop_assert!(result.pieces.len() == transcript.pieces_of(result).len());
            }
        }
    }
}
