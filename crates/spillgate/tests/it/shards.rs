//! One plan in several processes: shards, a kill, going on, joining.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::program::{Row, Said, folder, program, rows, scenario_with, spillgate};

/// `accept` of the small change into `out`.
fn accept(folder: &Path, out: &str, more: &[&str]) -> Said {
    let scenario = scenario_with(folder, "review", "small");
    let scenario = scenario.to_string_lossy();
    let mut arguments = vec!["accept", "--quiet", "--scenario", &scenario, "--out", out];
    arguments.extend_from_slice(more);
    spillgate(folder, &arguments)
}

fn only_folder(reports: &Path) -> PathBuf {
    let mut folders = fs::read_dir(reports).unwrap();
    let found = folders.next().unwrap().unwrap().path();
    assert!(
        folders.next().is_none(),
        "one folder in {}",
        reports.display()
    );
    found
}

/// The rows of `runs.csv` without what is measured.
fn decided(folder: &Path) -> Vec<Row> {
    let mut rows = rows(&folder.join("runs.csv"));
    for row in &mut rows {
        for column in ["duration_ms", "process_ms", "cpu_ms", "peak_rss_bytes"] {
            assert!(row.remove(column).is_some(), "{column} is a column");
        }
    }
    rows
}

fn merge(folder: &Path, shards: &[&Path]) -> Said {
    let mut arguments = vec!["merge", "--out", "merged"];
    let shards: Vec<_> = shards.iter().map(|path| path.to_string_lossy()).collect();
    arguments.extend(shards.iter().map(|path| &**path));
    spillgate(folder, &arguments)
}

#[test]
fn four_processes_joined_are_the_one_process_with_the_same_seed() {
    let temp = folder();
    let whole = accept(temp.path(), "whole", &[]);
    let mut shards = Vec::new();
    for index in 0..4 {
        let scenario = scenario_with(temp.path(), "review", "small");
        let out = format!("part-{index}");
        let output = program()
            .args([
                "accept",
                "--quiet",
                "--shard",
                "auto/4",
                "--out",
                &out,
                "--scenario",
            ])
            .arg(scenario)
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .current_dir(temp.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        shards.push(only_folder(&temp.path().join(out)));
    }
    assert!(
        shards
            .iter()
            .all(|shard| !shard.join("verdict.json").exists()),
        "a shard writes raw records alone"
    );
    // One that is named twice counts once.
    shards.push(shards[0].clone());
    let shards: Vec<&Path> = shards.iter().map(PathBuf::as_path).collect();
    let merged = merge(temp.path(), &shards);
    assert_eq!(
        merged.code, whole.code,
        "{}{}",
        merged.stdout, merged.stderr
    );
    let of = |reports: &str| temp.path().join(reports).join("latest");
    assert_eq!(decided(&of("merged")), decided(&of("whole")));
    let verdict = |reports| fs::read(of(reports).join("verdict.json")).unwrap();
    assert!(
        verdict("merged") == verdict("whole"),
        "the verdicts are equal bytes"
    );
}

/// Runs one shard, kills it when `runs` of its runs are recorded, and returns its folder.
fn killed(temp: &Path, out: &str, runs: usize) -> PathBuf {
    let scenario = scenario_with(temp, "review", "small");
    let mut child = program()
        .args([
            "accept", "--quiet", "--jobs", "1", "--reps", "10", "--shard", "1/2",
        ])
        .args(["--out", out, "--scenario"])
        .arg(scenario)
        .stdout(Stdio::null())
        .current_dir(temp)
        .spawn()
        .unwrap();
    let reports = temp.join(out);
    let recorded = || {
        let folder = fs::read_dir(&reports).ok()?.next()?.ok()?.path();
        let text = fs::read_to_string(folder.join("runs.jsonl")).ok()?;
        Some((folder, text.lines().count()))
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    let folder = loop {
        match recorded() {
            Some((folder, count)) if count >= runs => break folder,
            Some(_) | None => {}
        }
        assert!(std::time::Instant::now() < deadline, "no run was recorded");
        std::thread::yield_now();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    folder
}

/// Known fault 79: lexmount/browseruse-agent-bench PR #93; specula-org/tlaps-bench PR #60.
/// Known fault 118: marin-community/marin #7789.
#[test]
fn a_killed_shard_is_gone_on_with_or_run_again() {
    let temp = folder();
    let first = killed(temp.path(), "first", 4);
    let more = ["--reps", "10", "--shard", "2/2"];
    assert_eq!(accept(temp.path(), "second", &more).code, Some(0));
    let second = only_folder(&temp.path().join("second"));

    let gap = merge(temp.path(), &[&first, &second]);
    assert_eq!(gap.code, Some(2));
    assert!(gap.stderr.contains("of shard 1/2"), "{}", gap.stderr);
    assert!(!temp.path().join("merged").exists(), "nothing is written");

    // What was derived from fewer records goes when more are made.
    let judged = spillgate(temp.path(), &["judge", &first.to_string_lossy()]);
    assert_eq!(judged.code, Some(5));
    assert!(first.join("verdict.json").exists());

    // Going on makes what is missing, and tells why.
    let scenario = scenario_with(temp.path(), "review", "small");
    let resumed = spillgate(
        temp.path(),
        &[
            "accept",
            "--reps",
            "10",
            "--scenario",
            &scenario.to_string_lossy(),
            "--resume",
            &first.to_string_lossy(),
        ],
    );
    assert_eq!(
        resumed.code,
        Some(0),
        "{}{}",
        resumed.stdout,
        resumed.stderr
    );
    assert!(
        resumed.stderr.contains("has no record"),
        "{}",
        resumed.stderr
    );

    assert!(!first.join("verdict.json").exists());
    assert!(!first.join("report.html").exists());

    // A second try beside the killed one counts once.
    let again = accept(temp.path(), "again", &["--reps", "10", "--shard", "1/2"]);
    assert_eq!(again.code, Some(0));
    let again = only_folder(&temp.path().join("again"));
    let merged = merge(temp.path(), &[&first, &second, &again]);
    assert!(
        merged.stderr.contains("each counts once"),
        "{}",
        merged.stderr
    );
    let twice = merge(temp.path(), &[&first, &second, &again]);
    assert_eq!(twice.code, Some(2));
    assert!(
        twice.stderr.contains("from an earlier merge"),
        "{}",
        twice.stderr
    );
    let whole = accept(temp.path(), "whole", &["--reps", "10"]);
    assert_eq!(merged.code, whole.code, "{}", merged.stderr);
    let of = |reports: &str| temp.path().join(reports).join("latest");
    assert_eq!(decided(&of("merged")), decided(&of("whole")));
}

/// Known fault 108: sierra-research/tau2-bench #543.
/// Known fault 130: Flank/flank #1634.
#[test]
fn what_does_not_belong_together_is_refused() {
    let temp = folder();
    let shard = |out: &str, more: &[&str]| {
        assert_eq!(accept(temp.path(), out, more).code, Some(0));
        only_folder(&temp.path().join(out))
    };
    let one = shard("one", &["--reps", "2", "--shard", "1/2"]);
    let two = shard("two", &["--reps", "2", "--shard", "2/2"]);
    let of_three = shard("of-three", &["--reps", "2", "--shard", "2/3"]);
    let other_seed = shard(
        "other-seed",
        &["--reps", "2", "--seed", "9", "--shard", "2/2"],
    );
    accept(temp.path(), "whole", &["--reps", "2"]);
    let whole = temp.path().join("whole").join("latest");
    let check = |folders: &[&Path], words: &str| {
        let said = merge(temp.path(), folders);
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    };
    check(&[&one], "has a gap");
    check(&[&one, &of_three], "numbers of shards are 2 and 3");
    check(&[&one, &other_seed], "plan hashes");
    check(&[&one, &whole], "is no shard");

    let spoil = |folder: &Path, from: &str, to: &str| {
        let path = folder.join("runs.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        text
    };
    let sound = spoil(&two, "\"output_tokens\":", "\"output_tokens\":1");
    let copy = shard("two-again", &["--reps", "2", "--shard", "2/2"]);
    check(&[&one, &two, &copy], "output_tokens is");
    fs::write(two.join("runs.jsonl"), &sound).unwrap();

    // A file that was taken away is named.
    for name in ["calls.jsonl", "sensitivity.jsonl", "runs.jsonl"] {
        let path = two.join(name);
        let text = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        check(&[&one, &two], &format!("{name} is missing"));
        fs::write(&path, text).unwrap();
    }

    // A torn last line goes with a warning and leaves a gap; a torn middle line is refused.
    fs::write(two.join("runs.jsonl"), &sound[..sound.len() - 20]).unwrap();
    check(&[&one, &two], "torn line");
    let middle = sound.replacen("\"schema\"", "\"sch", 1);
    fs::write(two.join("runs.jsonl"), middle).unwrap();
    check(&[&one, &two], "runs.jsonl, line 1");
}

/// Known fault 80: pegainfer-project/pegainfer PR #1006.
/// Known fault 117: UKGovernmentBEIS/inspect_ai PR #2959 and #5296.
#[test]
fn going_on_is_refused_where_the_folder_is_of_something_else() {
    let temp = folder();
    assert_eq!(
        accept(temp.path(), "out", &["--reps", "1", "--shard", "1/1"]).code,
        Some(0)
    );
    let path = only_folder(&temp.path().join("out"));
    let path = path.to_string_lossy();
    let other = accept(temp.path(), "out", &["--reps", "2", "--resume", &path]);
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("the plan was"), "{}", other.stderr);
    fs::create_dir(temp.path().join("foreign")).unwrap();
    for nowhere in ["no-such-folder", "foreign"] {
        let said = accept(temp.path(), "out", &["--resume", nowhere]);
        assert_eq!(said.code, Some(2));
        assert!(
            said.stderr.contains("that `spillgate accept` made"),
            "{}",
            said.stderr
        );
    }
    let left = fs::read_dir(temp.path().join("foreign")).unwrap().count();
    assert_eq!(left, 0, "nothing is written into what is no run folder");
    let done = accept(temp.path(), "out", &["--reps", "1", "--resume", &path]);
    assert_eq!(done.code, Some(0), "nothing is missing: {}", done.stderr);
}

#[test]
fn going_on_elsewhere_leaves_the_link_beside_the_folder() {
    let temp = folder();
    let first = accept(temp.path(), "elsewhere", &["--reps", "1"]);
    let path = temp.path().join("elsewhere/latest").canonicalize().unwrap();
    // Without --out the default is `reports`, which is not there.
    let scenario = scenario_with(temp.path(), "review", "small");
    let scenario = scenario.to_string_lossy();
    let name = path.to_string_lossy();
    let arguments = [
        "accept",
        "--quiet",
        "--reps",
        "1",
        "--scenario",
        &scenario,
        "--resume",
        &name,
    ];
    let again = spillgate(temp.path(), &arguments);
    assert_eq!(again.code, first.code, "{}", again.stderr);
    assert_eq!(
        temp.path().join("elsewhere/latest").canonicalize().unwrap(),
        path
    );
    assert!(!temp.path().join("reports").exists());
}

#[test]
fn going_on_with_what_there_is_finds_the_own_part_or_begins_one() {
    let temp = folder();
    let first = killed(temp.path(), "out", 2);
    let flags = ["--reps", "10", "--resume", "auto", "--shard"];
    let said = |shard: &str| accept(temp.path(), "out", &[&flags[..], &[shard]].concat());
    let folders = || fs::read_dir(temp.path().join("out")).unwrap().count();
    let other = said("2/2");
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    assert!(
        other.stderr.contains("a new run folder is begun"),
        "{}",
        other.stderr
    );
    assert_eq!(folders(), 2);
    let own = said("1/2");
    assert_eq!(own.code, Some(0), "{}", own.stderr);
    let words = format!(
        "going on with out/{}",
        first.file_name().unwrap().to_string_lossy()
    );
    assert!(own.stderr.contains(&words), "{}", own.stderr);
    assert_eq!(folders(), 2);
    // What lacks nothing is not gone on with.
    assert_eq!(said("1/2").code, Some(0));
    assert_eq!(folders(), 3);
    let path = first.to_string_lossy();
    let wrong = accept(
        temp.path(),
        "out",
        &["--reps", "10", "--shard", "2/2", "--resume", &path],
    );
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("is shard 1/2 and not shard 2/2"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn what_a_killed_merge_left_is_no_run_folder_and_goes() {
    let temp = folder();
    assert_eq!(
        accept(temp.path(), "one", &["--reps", "1", "--shard", "1/1"]).code,
        Some(0)
    );
    let shard = only_folder(&temp.path().join("one"));
    let merged = temp.path().join("merged");
    let name = format!("{}-merged", shard.file_name().unwrap().to_string_lossy());
    // As a kill leaves it: under its staging name, with some of the records.
    let left = merged.join(format!(".merging-{name}")).join(&name);
    fs::create_dir_all(&left).unwrap();
    fs::copy(shard.join("manifest.json"), left.join("manifest.json")).unwrap();
    let runs = fs::File::create(left.join("runs.jsonl")).unwrap();
    runs.lock().unwrap();
    let busy = merge(temp.path(), &[&shard]);
    assert_eq!(busy.code, Some(2));
    assert!(
        busy.stderr.contains("being written by another process"),
        "{}",
        busy.stderr
    );
    drop(runs);
    let said = merge(temp.path(), &[&shard]);
    assert!(matches!(said.code, Some(0 | 3 | 4)), "{}", said.stderr);
    let mut names: Vec<_> = fs::read_dir(&merged)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, [name.as_str(), "latest"]);
}

#[test]
fn a_part_that_is_none_says_what_one_is() {
    let temp = folder();
    for (text, words) in [
        ("auto/x", "auto/n, such as auto/4, with n from 1 to 10000"),
        ("auto/0", "auto/n, such as auto/4"),
        ("5/4", "m from 1 to n"),
    ] {
        let said = accept(temp.path(), "out", &["--shard", text]);
        assert_eq!(said.code, Some(2));
        assert!(said.stderr.contains(words), "{text}: {}", said.stderr);
    }
    for (arguments, words) in [
        (
            &["sweep", "--window", "abc"][..],
            "no whole number of tokens from 1",
        ),
        (
            &["serve", "--listen", "localhost:8700"],
            "write 127.0.0.1:8700",
        ),
        (
            &["mock", "--listen", "127.0.0.1"],
            "an IP address and a port",
        ),
        (
            &["serve", "--reports", "s3://bucket/x"],
            "--reports is a folder of this machine",
        ),
    ] {
        let said = spillgate(temp.path(), arguments);
        assert_eq!(said.code, Some(2), "{arguments:?}");
        assert!(
            said.stderr.contains(words),
            "{arguments:?}: {}",
            said.stderr
        );
    }
}
