//! A recorded transcript as a scenario: what is written, that it runs, and what is refused.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{Row, folder, repository, rows, spillgate, tar};

/// A session of four calls: a list, a log of 300 KB, rows of 60 KB on one line, and the list again after a change. Its
/// answer has facts at the beginning, in the middle and at the end of both large results.
fn large_session() -> Value {
    let mut log = String::new();
    for line in 0..6000 {
        let what = match line {
            3 => "first-boot=BOOT-7712".to_owned(),
            3000 => "broken-disk=DISK-4831".to_owned(),
            5990 => "last-word=STOP-9904".to_owned(),
            _ => format!("tick {}", line * 7919 % 10_007),
        };
        writeln!(log, "2026-01-01 node {line:05} says {what}").unwrap();
    }
    let rows: Vec<Value> = (0..900)
        .map(|row| match row {
            450 => json!({"id": row, "state": "refunded", "receipt": "RCP-55120"}),
            _ => json!({"id": row, "state": "open", "note": format!("n{}", row * 31)}),
        })
        .collect();
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let asks =
        |calls: Vec<Value>| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let result =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    json!([
        {"role": "system", "content": "You look into incidents."},
        {"role": "user", "content": "What went wrong on node 03000? It is ticket TCK-1."},
        asks(vec![call("a", "ls", "{}")]),
        result("a", "log.txt\nrows.json\n"),
        asks(vec![call("b", "cat", r#"{"path":"log.txt"}"#), call("c", "query", r#"{"table":"orders"}"#)]),
        result("b", &log),
        result("c", &Value::from(rows).to_string()),
        asks(vec![call("d", "ls", "{}")]),
        result("d", "log.txt\nrows.json\nnotes-8841.md\n"),
        {"role": "assistant", "content":
            "On TCK-1: the node booted with BOOT-7712, lost `DISK-4831` and ended with STOP-9904. \
             The refund is RCP-55120. See notes-8841.md."},
    ])
}

fn session_file(folder: &Path, session: &Value) -> PathBuf {
    let path = folder.join("session.json");
    fs::write(&path, session.to_string()).unwrap();
    path
}

/// Makes the scenario in `folder/made`, and returns its path.
fn made(folder: &Path, session: &Value) -> String {
    session_file(folder, session);
    let said = spillgate(
        folder,
        &["scenario", "from-trace", "session.json", "--out", "made"],
    );
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    "made/scenario.toml".to_owned()
}

fn accepted(folder: &Path, scenario: &str) -> Vec<Row> {
    let said = spillgate(
        folder,
        &[
            "accept",
            "--quiet",
            "--stage",
            "quick",
            "--scenario",
            scenario,
        ],
    );
    assert!(
        matches!(said.code, Some(0 | 3 | 4)),
        "{:?} {}{}",
        said.code,
        said.stdout,
        said.stderr
    );
    let latest = folder.join("reports/latest");
    let page = fs::read_to_string(latest.join("report.html")).unwrap();
    assert!(page.contains("128KiB"));
    rows(&latest.join("runs.csv"))
}

#[test]
fn a_transcript_runs_under_off_128_and_32_kib() {
    let folder = folder();
    let scenario = made(folder.path(), &large_session());
    let rows = accepted(folder.path(), &scenario);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        let stored = match row["configuration"].as_str() {
            "off" => "0",
            "128KiB" => "1",
            _ => "2",
        };
        assert_eq!(row["outcome"], "succeeded", "{row:?}");
        assert_eq!(row["results_persisted"], stored, "{row:?}");
        assert_eq!(row["facts_expected"], "5", "{row:?}");
        let found: u64 = row["facts_found"].parse().unwrap();
        let reads: u64 = row["reads"].parse().unwrap();
        let expected = match (row["configuration"].as_str(), row["profile"].as_str()) {
            // All is in view, or was read back whole.
            ("off", _) | (_, "diligent") => 5..=5,
            // The beginning and the end of a text above the reading budget, and all of a smaller one.
            (_, "selective") => 4..=5,
            // Previews, and the small results.
            _ => 1..=4,
        };
        assert!(expected.contains(&found), "{row:?}");
        assert_eq!(
            reads > 0,
            stored != "0" && row["profile"] != "hasty",
            "{row:?}"
        );
        assert_eq!(row["leak_findings"], "0", "{row:?}");
    }
}

#[test]
fn equal_seeds_and_missing_facts_give_equal_prompts() {
    let folder = folder();
    let scenario = made(folder.path(), &large_session());
    let digests = |rows: &[Row]| -> Vec<String> {
        rows.iter()
            .map(|row| row["prompt_digest"].clone())
            .collect()
    };
    let first = digests(&accepted(folder.path(), &scenario));
    assert_eq!(digests(&accepted(folder.path(), &scenario)), first);
    let path = folder.path().join(&scenario);
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once("[[inputs.facts]]").unwrap();
    let (_, rest) = rest.split_once("[model]").unwrap();
    fs::write(&path, format!("{head}[model]{rest}")).unwrap();
    assert_eq!(digests(&accepted(folder.path(), &scenario)), first);
}

/// Known fault 124: kevin1024/vcrpy #842 and #516.
#[test]
fn patterns_hold_no_fact_and_repeated_calls_are_told_apart() {
    let folder = folder();
    let scenario = made(folder.path(), &large_session());
    let text = fs::read_to_string(folder.path().join(&scenario)).unwrap();
    let (_, model) = text.split_once("[model]").unwrap();
    for fact in [
        "BOOT-7712",
        "DISK-4831",
        "STOP-9904",
        "RCP-55120",
        "notes-8841.md",
    ] {
        assert!(
            text.contains(&format!("expect = \"{fact}\"")),
            "{fact}: {text}"
        );
        assert!(!model.contains(fact), "{fact}: {model}");
    }
    assert!(!text.contains("expect = \"TCK-1\""), "{text}");
    let calls = fs::read_to_string(folder.path().join("made/calls.jsonl")).unwrap();
    let calls: Vec<Value> = calls
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {} {}", call["turn"], call["id"], call["arguments"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#"1 "001-ls" {}"#,
            r#"2 "002-cat" {"path":"log.txt"}"#,
            r#"2 "003-query" {"table":"orders"}"#,
            r#"3 "004-ls" {"recorded_occurrence":2}"#,
        ]
    );
}

#[test]
fn every_fixture_gives_a_scenario_or_says_why_not() {
    let mut open = vec![repository().join("fixtures/traces")];
    let (mut given, mut refused) = (0, 0);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        let folder = folder();
        let file = path.to_string_lossy();
        let said = spillgate(
            folder.path(),
            &[
                "scenario",
                "from-trace",
                &file,
                "--session",
                "1",
                "--out",
                "made",
            ],
        );
        match said.code {
            Some(0) => {
                let listed = spillgate(
                    folder.path(),
                    &[
                        "list",
                        "--scenario",
                        "made/scenario.toml",
                        "--stage",
                        "quick",
                    ],
                );
                assert_eq!(listed.code, Some(0), "{file}: {}", listed.stderr);
                given += 1;
            }
            code => {
                assert_eq!(code, Some(2), "{file}: {}", said.stderr);
                assert_eq!(said.stderr.lines().count(), 1, "{file}: {}", said.stderr);
                assert!(!folder.path().join("made").exists(), "{file}");
                refused += 1;
            }
        }
    }
    assert!(
        given >= 12 && refused >= 1,
        "{given} given, {refused} refused"
    );
}

/// Refused with exit code 2 and one line that has `part`; nothing is written.
fn check_refused(folder: &Path, file: &str, more: &[&str], part: &str) {
    let mut arguments = vec!["scenario", "from-trace", file, "--out", "made"];
    arguments.extend_from_slice(more);
    let said = spillgate(folder, &arguments);
    assert_eq!(said.code, Some(2), "{file}: {}{}", said.stdout, said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{file}: {}", said.stderr);
    assert!(
        said.stderr.contains(part),
        "{file}: {part}: {}",
        said.stderr
    );
    assert!(!folder.join("made").exists(), "{file}");
}

#[test]
fn what_is_no_usable_transcript_is_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let session = large_session().to_string();
    fs::create_dir(at("a-folder")).unwrap();
    fs::write(at("empty.json"), "").unwrap();
    fs::write(at("binary.json"), [0_u8, 159, 146, 150].repeat(1000)).unwrap();
    fs::write(at("cut.json"), &session[..session.len() / 2]).unwrap();
    fs::write(at("prose.txt"), "no transcript\n").unwrap();
    fs::write(
        at("no-tools.json"),
        r#"[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]"#,
    )
    .unwrap();
    let one: Vec<Value> = serde_json::from_str(&session).unwrap();
    let two = [
        json!({"id": "q1", "messages": one}),
        json!({"id": "q2", "messages": one}),
    ];
    fs::write(at("two.jsonl"), format!("{}\n{}\n", two[0], two[1])).unwrap();
    let path = folder.path();
    check_refused(path, "nowhere.json", &[], "cannot be read");
    check_refused(path, "a-folder", &[], "is a folder (name one transcript");
    check_refused(path, "empty.json", &[], "holds no transcript");
    check_refused(path, "binary.json", &[], "holds no transcript");
    check_refused(path, "cut.json", &[], "holds no transcript");
    check_refused(path, "prose.txt", &[], "holds no transcript");
    check_refused(path, "no-tools.json", &[], "without tool results");
    fs::write(at("session.tar"), tar(session.as_bytes())).unwrap();
    let told = "spillgate scenario from-trace: session.tar: a tar archive, which is not read (unpack it, and name what it \
                holds)\n";
    check_refused(path, "session.tar", &[], told);
    check_refused(
        path,
        "two.jsonl",
        &[],
        "1 (q1, 4 results), 2 (q2, 4 results)",
    );
    check_refused(path, "two.jsonl", &["--session", "3"], "no session \"3\"");
    // An id goes before a number.
    let numbered = [
        json!({"id": "7", "messages": one}),
        json!({"id": "1", "messages": one[1..]}),
    ];
    fs::write(
        at("numbered.jsonl"),
        format!("{}\n{}\n", numbered[0], numbered[1]),
    )
    .unwrap();
    let by_id = [
        "scenario",
        "from-trace",
        "numbered.jsonl",
        "--session",
        "1",
        "--out",
        "by-id",
    ];
    let said = spillgate(path, &by_id);
    assert!(said.stderr.contains("no system message"), "{}", said.stderr);
    for session in ["2", "q2"] {
        let out = format!("of-{session}");
        let said = spillgate(
            path,
            &[
                "scenario",
                "from-trace",
                "two.jsonl",
                "--session",
                session,
                "--out",
                &out,
            ],
        );
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(
            said.stderr.contains("1 other session of the file left out"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder();
    made(folder.path(), &large_session());
    let before = fs::read_to_string(folder.path().join("made/calls.jsonl")).unwrap();
    let again = ["scenario", "from-trace", "session.json", "--out", "made"];
    let said = spillgate(folder.path(), &again);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr
            .contains("is not empty, and nothing is overwritten"),
        "{}",
        said.stderr
    );
    let after = fs::read_to_string(folder.path().join("made/calls.jsonl")).unwrap();
    assert_eq!(before, after);
    let out_is_a_file = [
        "scenario",
        "from-trace",
        "session.json",
        "--out",
        "session.json",
    ];
    let said = spillgate(folder.path(), &out_is_a_file);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("cannot be used as a folder"),
        "{}",
        said.stderr
    );
}

/// A session of one call to `name` with these arguments and this result.
fn session_of(name: &str, arguments: &str, result: &str) -> Value {
    json!([
        {"role": "user", "content": "go\u{202e}\u{0}"},
        {"role": "assistant", "content": "", "tool_calls":
            [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "a", "content": result},
        {"role": "assistant", "content": "done \u{202e}\"\"\"\n[[inputs]] \\ X-1234"},
    ])
}

/// Everything below a folder, by its path.
fn tree(folder: &Path) -> Vec<String> {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            found.push(entry.strip_prefix(folder).unwrap().display().to_string());
            if entry.is_dir() {
                open.push(entry);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn names_and_texts_of_a_transcript_become_no_paths_and_drive_nothing() {
    for (name, arguments, result) in [
        (
            "../../up",
            r#"{"path":"../../../etc/passwd"}"#,
            "id X-1234\n",
        ),
        (
            "/abs\u{0}\u{202e}",
            "\"../x\"",
            "\u{0}\u{202e}\u{1b}[31m id X-1234 \u{feff}",
        ),
        ("", "not json \u{0}", "id=X-1234"),
        ("recorded_x", "[1,2]", ""),
        (
            "read_file",
            r#"{"path":"a","offset":1,"limit":2}"#,
            "Error: X-1234",
        ),
        (
            "bash",
            "{}",
            "head\n\n(Omitted 9 bytes. Full formatted result stored at: /a/X-1234.)",
        ),
        (
            "bash",
            "{}",
            r#"{"spilled":true,"spillover_ref":"r","size_bytes":99,"lines":2,"head":"X-1234\n","tail":"e"}"#,
        ),
        (
            "bash",
            "{}",
            "<persisted-output>\nOutput too large (9 KB). Full output saved to: /a\n</persisted-output>",
        ),
        (
            "Read",
            r#"{"file_path":"/a","offset":1,"limit":2}"#,
            "<tool-result>\nX-1234",
        ),
    ] {
        let folder = folder();
        let scenario = made(folder.path(), &session_of(name, arguments, result));
        assert_eq!(
            tree(folder.path()),
            [
                "made",
                "made/calls.jsonl",
                "made/scenario.toml",
                "session.json"
            ],
            "{name:?}"
        );
        let text = fs::read_to_string(folder.path().join(&scenario)).unwrap();
        let drives = |one: char| one != '\n' && spill_record::is_unsafe(one);
        assert!(!text.contains(drives), "{text}");
        for row in accepted(folder.path(), &scenario) {
            assert_eq!(row["outcome"], "succeeded", "{name:?} {row:?}");
            assert_eq!(row["tool_calls"], "1", "{name:?} {row:?}");
        }
    }
}

#[test]
fn a_result_of_fifty_megabytes_is_refused_by_its_limit() {
    let folder = folder();
    let session = session_of("cat", "{}", &"x".repeat(50 << 20));
    session_file(folder.path(), &session);
    check_refused(
        folder.path(),
        "session.json",
        &[],
        "the result of call 1 (cat) has 52428800 bytes, the limit is 16777216",
    );
}

/// What the largest result of a session is held against, and whether a run of it is offered.
#[test]
fn a_session_that_can_prove_nothing_says_so() {
    let check = |bytes: usize, words: Option<&str>, offered: &str| {
        let folder = folder();
        // Quotes of JSON count, and nothing is escaped.
        let session = session_of("cat", "{}", &"x".repeat(bytes - 2));
        session_file(folder.path(), &session);
        let said = spillgate(
            folder.path(),
            &["scenario", "from-trace", "session.json", "--out", "made"],
        );
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        match words {
            Some(words) => assert!(said.stderr.contains(words), "{bytes}: {}", said.stderr),
            None => assert!(
                !said.stderr.contains("the largest result"),
                "{}",
                said.stderr
            ),
        }
        let line = format!("\n{offered}: spillgate accept --scenario");
        assert!(said.stdout.contains(&line), "{bytes}: {}", said.stdout);
    };
    let both =
        "the largest result has 32,767 bytes as JSON, below the threshold of 128KiB and of 32KiB:";
    check(32_767, Some(both), "run it, once a threshold is lower");
    let one = "the largest result has 32,768 bytes as JSON, below the threshold of 128KiB:";
    check(32_768, Some(one), "run it");
    check(131_071, Some("below the threshold of 128KiB:"), "run it");
    check(131_072, None, "run it");
}

#[test]
fn what_a_transcript_lacks_is_noted() {
    let check = |session: &Value, notes: &[&str]| {
        let folder = folder();
        let scenario = made(folder.path(), session);
        let text = fs::read_to_string(folder.path().join(&scenario)).unwrap();
        for note in notes {
            assert!(text.contains(note), "{note}: {text}");
        }
        accepted(folder.path(), &scenario)
    };
    let mut session = session_of("cat", "{}", "some text\n");
    session[3]["content"] = json!("all is well");
    check(
        &session,
        &[
            "no system message is recorded",
            "no string of the answer stems from a result",
        ],
    );
    session[0] = json!({"role": "system", "content": "be brief"});
    session.as_array_mut().unwrap().pop();
    let rows = check(
        &session,
        &["no task is recorded", "no final answer is recorded"],
    );
    assert!(rows.iter().all(|row| row["quality"].is_empty()), "{rows:?}");
}
