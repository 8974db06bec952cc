//! Run folders on an object store: shards of an engine, a kill, going on, joining, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Said, folder, program, scenario_with};
use crate::s3::{Endpoint, SECRET};

/// The program with the variables of `endpoint` alone.
fn command(temp: &Path, endpoint: &Endpoint, arguments: &[&str]) -> Command {
    let mut command = program();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    command
        .args(arguments)
        .envs(endpoint.variables())
        .env("TMPDIR", temp)
        .current_dir(temp);
    command
}

fn said(output: Output) -> Said {
    let said = Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    assert!(!said.stdout.contains(SECRET) && !said.stderr.contains(SECRET));
    said
}

fn run(temp: &Path, endpoint: &Endpoint, arguments: &[&str]) -> Said {
    said(command(temp, endpoint, arguments).output().unwrap())
}

/// `accept` of the small change, with `more`.
fn accept(temp: &Path, more: &[&str]) -> Vec<String> {
    // Written once: processes that run read it.
    let scenario = temp.join("review-small.toml");
    if !scenario.exists() {
        scenario_with(temp, "review", "small");
    }
    let scenario = scenario.to_string_lossy().into_owned();
    let first = ["accept", "--quiet", "--scenario", &scenario];
    first
        .iter()
        .chain(more)
        .map(|text| (*text).to_owned())
        .collect()
}

fn accepted(temp: &Path, endpoint: &Endpoint, more: &[&str]) -> Said {
    let arguments = accept(temp, more);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(temp, endpoint, &arguments)
}

/// The folders in a folder, sorted.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// The first part of the runs of the first folder in `prefix`, once it is there.
fn first_runs(endpoint: &Endpoint, prefix: &str) -> Option<PathBuf> {
    let folder = folders(&endpoint.path(prefix)).into_iter().next()?;
    folders(&folder).into_iter().find(|object| {
        let name = object.file_name().unwrap().to_string_lossy();
        name.starts_with("runs-01-")
    })
}

/// What spillgate has left of its local copies in `temp`.
fn left(temp: &Path) -> Vec<PathBuf> {
    let mut found = folders(temp);
    found.retain(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("spillgate-work-") || name.starts_with("spillgate-fetched-")
    });
    found
}

/// `runs.csv` with a mark in the cells of its measured columns.
fn masked(path: &Path) -> String {
    let manifest = fs::read_to_string(path.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let measured: Vec<&str> = manifest["measured_columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let mut reader = csv::Reader::from_path(path.join("runs.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    assert!(
        measured
            .iter()
            .all(|name| header.iter().any(|column| column == *name))
    );
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(&header).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        let cells = header.iter().zip(row.iter());
        let cells = cells.map(|(name, cell)| {
            if measured.contains(&name) {
                "measured"
            } else {
                cell
            }
        });
        out.write_record(cells).unwrap();
    }
    String::from_utf8(out.into_inner().unwrap()).unwrap()
}

/// Waits until `seen` finds something.
fn until<T>(what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(found) = seen() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// An engine's process for one part of the plan.
struct Part {
    variable: &'static str,
    first: u32,
}

impl Part {
    fn arguments(&self, temp: &Path, out: &str) -> Vec<String> {
        accept(
            temp,
            &[
                "--jobs", "1", "--reps", "24", "--shard", "auto/4", "--out", out, "--resume",
                "auto",
            ],
        )
    }

    fn command(&self, temp: &Path, endpoint: &Endpoint, out: &str, index: u32) -> Command {
        let arguments = self.arguments(temp, out);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = command(temp, endpoint, &arguments);
        command.env(self.variable, (index + self.first).to_string());
        command
    }
}

/// Four processes as an engine starts them, one of them killed half-way and started again; then one that joins.
fn check_four_parts_are_the_one_process(part: &Part) {
    let (temp, endpoint) = (folder(), Endpoint::start());
    let temp = temp.path();
    let out = endpoint.url("shards");
    // Killed once some of its runs are on the store.
    let mut killed = part
        .command(temp, &endpoint, &out, 2)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("no run was published", || first_runs(&endpoint, "shards"));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let half = folders(&endpoint.path("shards")).remove(0);
    assert!(!half.join("complete.json").exists());
    // What it had here is gone with its machine.
    for path in left(temp) {
        fs::remove_dir_all(path).unwrap();
    }

    let gap = run(temp, &endpoint, &["merge", &out, "--out", "early"]);
    assert_eq!(gap.code, Some(2), "{}", gap.stdout);
    assert!(
        gap.stderr.contains("has a gap") && gap.stderr.contains("is not finished"),
        "{}",
        gap.stderr
    );
    assert!(!temp.join("early").exists(), "nothing is written");

    let parts: Vec<_> = (0..4)
        .map(|index| {
            let mut command = part.command(temp, &endpoint, &out, index);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for (index, child) in parts.into_iter().enumerate() {
        let said = said(child.wait_with_output().unwrap());
        assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        let words = if index == 2 {
            "going on with"
        } else {
            "a new run folder is begun"
        };
        assert!(said.stderr.contains(words), "part {index}: {}", said.stderr);
    }
    let published = folders(&endpoint.path("shards"));
    assert_eq!(
        published.len(),
        4,
        "the killed part was gone on with: {published:?}"
    );
    assert!(
        published
            .iter()
            .all(|folder| folder.join("complete.json").exists())
    );
    assert!(left(temp).is_empty(), "what is published is not kept here");

    let merged_to = endpoint.url("whole");
    let merged = run(temp, &endpoint, &["merge", &out, "--out", &merged_to]);
    let whole = accepted(temp, &endpoint, &["--reps", "24", "--out", "whole"]);
    assert_eq!(
        merged.code, whole.code,
        "{}{}",
        merged.stdout, merged.stderr
    );
    assert!(
        merged.stdout.contains(&format!("report: {merged_to}/")),
        "{}",
        merged.stdout
    );
    let (merged, whole) = (
        folders(&endpoint.path("whole")).remove(0),
        temp.join("whole/latest"),
    );
    assert!(
        masked(&merged) == masked(&whole),
        "runs.csv, but for what is measured"
    );
    for name in ["verdict.json", "rules.csv", "junit.xml"] {
        let of = |folder: &Path| fs::read(folder.join(name)).unwrap();
        assert!(of(&merged) == of(&whole), "{name} has equal bytes");
    }
    let secret = |path: &Path| {
        fs::read(path)
            .unwrap()
            .windows(SECRET.len())
            .any(|at| at == SECRET.as_bytes())
    };
    assert!(!folders(&merged).iter().any(|object| secret(object)));
}

#[test]
fn an_indexed_job_with_a_killed_pod_is_the_one_process() {
    check_four_parts_are_the_one_process(&Part {
        variable: "JOB_COMPLETION_INDEX",
        first: 0,
    });
}

#[test]
fn a_ci_matrix_with_a_killed_job_is_the_one_process() {
    check_four_parts_are_the_one_process(&Part {
        variable: "CI_NODE_INDEX",
        first: 1,
    });
}

#[test]
fn a_published_folder_is_judged_rendered_and_compared_where_it_is() {
    let (temp, endpoint) = (folder(), Endpoint::start());
    let temp = temp.path();
    let out = endpoint.url("a/b");
    let made = accepted(temp, &endpoint, &["--reps", "2", "--out", &out, "--json"]);
    let last = made.stdout.lines().last().unwrap();
    let event: serde_json::Value = serde_json::from_str(last).unwrap();
    let url = event["folder"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&out), "{last}");
    let here = folders(&endpoint.path("a/b")).remove(0);
    let report = fs::read(here.join("report.html")).unwrap();

    let judged = run(temp, &endpoint, &["judge", &url, "--json"]);
    assert_eq!(judged.code, made.code, "{}", judged.stderr);
    // A prefix with one folder stands for it.
    let compared = run(temp, &endpoint, &["compare", &url, &out]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    assert!(compared.stdout.contains("0 changed"), "{}", compared.stdout);
    fs::write(here.join("report.html"), "spoilt").unwrap();
    let spoilt = run(temp, &endpoint, &["judge", &url]);
    assert_eq!(spoilt.code, Some(2));
    assert!(
        spoilt.stderr.contains("not as it was published"),
        "{}",
        spoilt.stderr
    );
    fs::write(here.join("report.html"), &report).unwrap();
    let rendered = run(temp, &endpoint, &["report", &url]);
    assert_eq!(
        rendered.stdout.trim(),
        format!("{url}/report.html"),
        "{}",
        rendered.stderr
    );
    assert!(
        fs::read(here.join("report.html")).unwrap() == report,
        "equal bytes"
    );
    assert!(here.join("complete.json").exists());
    assert!(left(temp).is_empty(), "copies go");

    // Nothing is left to run, and it stays complete.
    let again = accepted(temp, &endpoint, &["--reps", "2", "--resume", &url]);
    assert_eq!(again.code, made.code, "{}", again.stderr);
    assert!(here.join("complete.json").exists());
}

#[test]
fn what_does_not_belong_together_is_refused_over_the_store_as_well() {
    let (temp, endpoint) = (folder(), Endpoint::start());
    let temp = temp.path();
    let shard = |out: &str, more: &[&str]| {
        let url = endpoint.url(out);
        let said = accepted(temp, &endpoint, &[more, &["--out", &url]].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        folders(&endpoint.path(out)).remove(0)
    };
    shard("one", &["--reps", "2", "--shard", "1/2"]);
    let two = shard("two", &["--reps", "2", "--shard", "2/2"]);
    shard("two-again", &["--reps", "2", "--shard", "2/2"]);
    shard("other", &["--reps", "2", "--seed", "9", "--shard", "2/2"]);
    let check = |names: &[&str], words: &[&str]| {
        let urls: Vec<String> = names.iter().map(|name| endpoint.url(name)).collect();
        let urls = urls.iter().map(String::as_str);
        let arguments: Vec<&str> = ["merge", "--out", "merged"]
            .into_iter()
            .chain(urls)
            .collect();
        let said = run(temp, &endpoint, &arguments);
        assert_eq!(said.code, Some(2), "{names:?}: {}", said.stdout);
        for words in words {
            assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
        }
        assert!(
            !said.stderr.contains("spillgate-fetched"),
            "{}",
            said.stderr
        );
    };
    check(&["one"], &["has a gap", "of shard 2/2"]);
    check(&["one", "other"], &["plan hashes", "s3://results/other/"]);
    check(&["nowhere"], &["s3://results/nowhere", "holds none"]);

    // Of a shard that was killed, nothing says how its objects have to be.
    fs::remove_file(two.join("complete.json")).unwrap();
    let runs = folders(&two)
        .into_iter()
        .rfind(|path| path.to_string_lossy().contains("/runs-"))
        .unwrap();
    let sound = fs::read_to_string(&runs).unwrap();
    let spoil = |text: String| fs::write(&runs, text).unwrap();
    spoil(sound.replacen("\"output_tokens\":", "\"output_tokens\":1", 1));
    check(
        &["one", "two", "two-again"],
        &["different results", "s3://results/two/", "output_tokens is"],
    );
    spoil(sound.replacen("\"schema\"", "\"sch", 1));
    check(&["one", "two"], &["s3://results/two/", "runs.jsonl, line "]);
    spoil(sound[..sound.len() - 20].to_owned());
    check(&["one", "two"], &["torn line", "has a gap"]);
}

#[test]
fn a_store_that_cannot_be_used_is_said_before_a_run_and_nothing_is_lost_after_one() {
    let (temp, endpoint) = (folder(), Endpoint::start());
    let temp = temp.path();
    let url = endpoint.url("x");
    let arguments = accept(temp, &["--reps", "1", "--out", &url]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let check = |change: &dyn Fn(&mut Command), words: &str| {
        let mut command = command(temp, &endpoint, &arguments);
        change(&mut command);
        let said = said(command.output().unwrap());
        assert_eq!(said.code, Some(2), "{}", said.stdout);
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
        assert!(left(temp).is_empty(), "nothing was run");
    };
    check(
        &|command| {
            command.env_remove("AWS_SECRET_ACCESS_KEY");
        },
        "needs credentials",
    );
    check(
        &|command| {
            command.env_remove("AWS_ALLOW_HTTP");
        },
        "AWS_ALLOW_HTTP=true",
    );
    check(
        &|command| {
            command.env("AWS_SECRET_ACCESS_KEY", "another");
        },
        "the store refuses: SignatureDoesNotMatch (check AWS_ACCESS_KEY_ID",
    );
    check(
        &|command| {
            command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
        },
        "its endpoint cannot be reached: connection refused (check AWS_ENDPOINT_URL",
    );
    let refused = |arguments: &[&str], words: &str| {
        let said = accepted(temp, &endpoint, arguments);
        assert_eq!(said.code, Some(2), "{}", said.stdout);
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    };
    refused(
        &["--out", "s3://no-such-bucket/x"],
        "there is no such bucket",
    );
    refused(&["--out", "gs://bucket/x"], "write s3://bucket/prefix");
    refused(
        &["--out", "s3://key:hidden@bucket/x"],
        "AWS_SECRET_ACCESS_KEY",
    );
    refused(&["--out", &url, "--bless", "why"], "--bless");
    refused(&["--work-dir", "w"], "--work-dir is for");
    refused(&["--resume", &url], "holds no manifest.json");
}

#[test]
fn runs_outlive_an_endpoint_that_goes_down() {
    let (temp, mut endpoint) = (folder(), Endpoint::start());
    let temp = temp.path();
    let url = endpoint.url("x");
    let flags = ["--jobs", "1", "--reps", "12", "--out", &url];
    let arguments = accept(temp, &flags);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = command(temp, &endpoint, &arguments);
    let child = child.stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = child.spawn().unwrap();
    // The first part follows the answer to the manifest, which can stand there before its answer has come.
    until("no run was published", || first_runs(&endpoint, "x"));
    endpoint.stop();
    let lost = said(child.wait_with_output().unwrap());
    assert_eq!(lost.code, Some(2), "{}", lost.stdout);
    for words in [
        "is not published whole",
        "its endpoint cannot be reached",
        "the runs go on",
    ] {
        assert!(lost.stderr.contains(words), "{words}: {}", lost.stderr);
    }
    let kept = lost.stderr.split("--resume ").nth(1).unwrap();
    let kept = kept.split('`').next().unwrap();
    assert_eq!(
        fs::read_to_string(Path::new(kept).join("runs.jsonl"))
            .unwrap()
            .lines()
            .count(),
        36
    );

    endpoint.start_again();
    let published = accepted(temp, &endpoint, &[&flags[..], &["--resume", kept]].concat());
    assert!(
        matches!(published.code, Some(0 | 3 | 4)),
        "{}",
        published.stderr
    );
    let folder = folders(&endpoint.path("x")).remove(0);
    assert!(folder.join("complete.json").exists());
    assert!(
        masked(&folder) == masked(Path::new(kept)),
        "the runs that were made"
    );
}
