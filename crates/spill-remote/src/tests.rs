use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use object_store::memory::InMemory;
use spill_record::{MANIFEST_FILE, RUNS_FILE};
use tempfile::TempDir;

use crate::layout::{COMPLETE, Part};
use crate::{Fetched, Publisher, Remote, RemoteError, StoreUrl, UrlError, fetch, refresh};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

fn remote() -> Remote {
    Remote::new(
        Arc::new(InMemory::new()),
        "some/where/id",
        "s3://bucket/some/where/id".to_owned(),
    )
}

fn append(folder: &Path, file: &str, text: &str) {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .append(true)
        .open(folder.join(file))
        .expect("a file");
    file.write_all(text.as_bytes()).expect("written");
}

fn run(folder: &Path, number: u32) {
    append(folder, "calls.jsonl", &format!("call of {number}\n"));
    append(folder, "runs.jsonl", &format!("run {number}\n"));
}

/// A local folder with a manifest and two runs.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(MANIFEST_FILE), "{}\n").expect("written");
    append(folder.path(), "sensitivity.jsonl", "");
    run(folder.path(), 1);
    run(folder.path(), 2);
    folder
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries
        .map(|path| {
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, fs::read_to_string(path).expect("text"))
        })
        .collect()
}

fn fetched(remote: &Remote) -> Result<(Fetched, BTreeMap<String, String>), RemoteError> {
    let into = tempfile::tempdir().expect("a folder");
    let state = block_on(fetch(remote, into.path()))?;
    Ok((state, files(into.path())))
}

#[track_caller]
fn check_comes_back(remote: &Remote, folder: &Path, state: Fetched) {
    let (found, back) = fetched(remote).expect("a folder");
    assert_eq!(found, state);
    assert_eq!(back, files(folder));
}

#[test]
fn what_is_published_comes_back_at_every_stage() {
    let (remote, folder) = (remote(), folder());
    let mut publisher = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    check_comes_back(&remote, folder.path(), Fetched::Unfinished);
    run(folder.path(), 3);
    append(folder.path(), "sensitivity.jsonl", "extra\n");
    block_on(publisher.publish()).expect("published");
    check_comes_back(&remote, folder.path(), Fetched::Unfinished);
    block_on(publisher.publish()).expect("nothing is new");
    fs::write(folder.path().join("verdict.json"), "judged").expect("written");
    fs::write(folder.path().join(".writing-1"), "left over").expect("written");
    block_on(publisher.finish()).expect("finished");
    fs::remove_file(folder.path().join(".writing-1")).expect("removed");
    check_comes_back(&remote, folder.path(), Fetched::Complete);
    assert!(block_on(remote.is_complete()).expect("an answer"));
}

#[test]
fn a_torn_last_line_waits_for_its_end() {
    let (remote, folder) = (remote(), folder());
    append(folder.path(), RUNS_FILE, "run");
    let mut publisher = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    let (_, back) = fetched(&remote).expect("a folder");
    assert_eq!(back[RUNS_FILE], "run 1\nrun 2\n");
    append(folder.path(), RUNS_FILE, " 3\n");
    block_on(publisher.publish()).expect("published");
    let (_, back) = fetched(&remote).expect("a folder");
    assert_eq!(back[RUNS_FILE], "run 1\nrun 2\nrun 3\n");
}

#[test]
fn long_files_go_in_parts_that_end_with_a_line() {
    let (remote, folder) = (remote(), folder());
    let line = format!("{}\n", "x".repeat(999_999));
    for _ in 0..20 {
        append(folder.path(), "calls.jsonl", &line);
    }
    append(
        folder.path(),
        "runs.jsonl",
        &format!("{}\n", "y".repeat(17 << 20)),
    );
    let mut publisher = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    block_on(publisher.finish()).expect("finished");
    check_comes_back(&remote, folder.path(), Fetched::Complete);
    let names = block_on(remote.objects()).expect("listed");
    let calls = names
        .keys()
        .filter(|name| name.starts_with("calls-"))
        .count();
    assert_eq!(calls, 3, "{names:?}");
}

#[test]
fn going_on_takes_over_once_its_runs_are_there() {
    let (remote, folder) = (remote(), folder());
    block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    append(folder.path(), "prices.toml", "p");
    // The second run is made again: its records go, and what was derived from them.
    for (name, text) in [
        ("runs.jsonl", "run 1\n"),
        ("calls.jsonl", "call of 1\n"),
        ("retried.jsonl", "run 2\n"),
    ] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    block_on(remote.put("verdict.json", "outdated".into())).expect("put");
    let mut publisher = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    check_comes_back(&remote, folder.path(), Fetched::Unfinished);
    run(folder.path(), 2);
    block_on(publisher.finish()).expect("finished");
    check_comes_back(&remote, folder.path(), Fetched::Complete);
    let names = block_on(remote.objects()).expect("listed");
    assert!(
        names
            .keys()
            .all(|name| Part::of(name).is_none_or(|part| part.generation == 2)),
        "{names:?}"
    );

    // Killed before its first run is there, it has taken over from nobody.
    let before = fetched(&remote).expect("a folder").1;
    block_on(remote.delete(COMPLETE)).expect("gone");
    let part = Part {
        file: "calls.jsonl",
        generation: 3,
        number: 1,
    };
    block_on(remote.put(&part.name(), "call of 1\n".into())).expect("put");
    let (state, back) = fetched(&remote).expect("a folder");
    assert_eq!((state, back), (Fetched::Unfinished, before));
}

#[test]
fn whoever_goes_on_while_another_writes_is_told() {
    let (remote, folder) = (remote(), folder());
    let mut one = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    run(folder.path(), 3);
    // Another process has put the part that comes next.
    let part = Part {
        file: "calls.jsonl",
        generation: 1,
        number: 3,
    };
    block_on(remote.put(&part.name(), "somebody's\n".into())).expect("put");
    assert!(matches!(
        block_on(one.publish()),
        Err(RemoteError::Taken { .. })
    ));
    // With the same bytes it is ours: its answer was lost.
    block_on(remote.put(&part.name(), "call of 3\n".into())).expect("put");
    block_on(one.finish()).expect("finished");
    check_comes_back(&remote, folder.path(), Fetched::Complete);
}

#[test]
fn another_acceptance_is_not_written_over() {
    let (remote, folder) = (remote(), folder());
    block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    fs::write(folder.path().join(MANIFEST_FILE), "{\"other\":1}").expect("written");
    let refused = block_on(Publisher::begin(remote, folder.path()));
    assert!(
        matches!(refused, Err(RemoteError::Other { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_folder_that_is_not_as_it_was_published_is_refused() {
    let check = |spoil: &dyn Fn(&Remote), words: &str| {
        let (remote, folder) = (remote(), folder());
        let mut publisher =
            block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
        run(folder.path(), 3);
        block_on(publisher.finish()).expect("finished");
        spoil(&remote);
        let error = fetched(&remote).expect_err(words).to_string();
        assert!(
            error.contains(words) && error.contains("s3://bucket/some/where/id"),
            "{error}"
        );
    };
    let put = |remote: &Remote, name: &str, text: &str| {
        block_on(remote.put(name, text.to_owned().into())).expect("put");
    };
    let delete = |remote: &Remote, name: &str| block_on(remote.delete(name)).expect("gone");
    check(
        &|remote| delete(remote, "runs-01-000002.jsonl"),
        "runs-01-000002.jsonl is missing",
    );
    check(
        &|remote| put(remote, "runs-01-000004.jsonl", "run 3"),
        "5 bytes, 6 were published",
    );
    check(
        &|remote| put(remote, "runs-01-000004.jsonl", "run 4\n"),
        "runs-01-000004.jsonl holds other bytes",
    );
    check(
        &|remote| put(remote, COMPLETE, "{"),
        "complete.json is not readable",
    );
    check(
        &|remote| put(remote, COMPLETE, r#"{"schema":2,"objects":[]}"#),
        "use the newer spillgate",
    );
    check(
        &|remote| delete(remote, MANIFEST_FILE),
        "holds no manifest.json",
    );
    // Without what says that all is there, a part in the middle is missed all the same.
    let cut = |remote: &Remote| {
        delete(remote, COMPLETE);
        delete(remote, "runs-01-000002.jsonl");
    };
    check(&cut, "part 2 is missing");
}

#[test]
fn a_folder_that_is_rendered_again_stays_complete() {
    let (remote, folder) = (remote(), folder());
    let mut publisher = block_on(Publisher::begin(remote.clone(), folder.path())).expect("begun");
    block_on(publisher.finish()).expect("finished");
    fs::write(folder.path().join("report.html"), "again").expect("written");
    block_on(refresh(&remote, folder.path())).expect("refreshed");
    check_comes_back(&remote, folder.path(), Fetched::Complete);
}

#[test]
fn folders_below_a_place_are_those_with_a_manifest() {
    let (remote, folder) = (remote(), folder());
    let (parent, name) = remote.parent().expect("not the root");
    assert_eq!(
        (name.as_str(), parent.url()),
        ("id", "s3://bucket/some/where")
    );
    block_on(Publisher::begin(remote, folder.path())).expect("begun");
    block_on(parent.child("other").put("x", "".into())).expect("put");
    assert_eq!(block_on(parent.folders()).expect("listed"), ["id"]);
}

#[test]
fn names_of_parts_are_read_as_they_are_written() {
    let part = Part {
        file: "calls.jsonl",
        generation: 12,
        number: 1_234_567,
    };
    assert_eq!(part.name(), "calls-12-1234567.jsonl");
    assert_eq!(Part::of(&part.name()), Some(part));
    for other in [
        "calls.jsonl",
        "calls-1-1.jsonl",
        "verdict.json",
        "other-01-000001.jsonl",
        "calls-01-000001.json",
    ] {
        assert_eq!(Part::of(other), None, "{other}");
    }
}

#[test]
fn urls_and_paths_are_told_apart() {
    let check = |text: &str, expected: Result<Option<&str>, UrlError>| {
        let parsed = StoreUrl::parse(text).map(|url| url.map(|url| url.to_string()));
        assert_eq!(parsed, expected.map(|url| url.map(str::to_owned)), "{text}");
    };
    check("reports", Ok(None));
    check("./s3:/x", Ok(None));
    check("a b://c", Ok(None));
    check("s3://bucket", Ok(Some("s3://bucket")));
    check("s3://bucket/", Ok(Some("s3://bucket")));
    check(
        "s3://my.bucket-1/a/b.c=d/",
        Ok(Some("s3://my.bucket-1/a/b.c=d")),
    );
    for scheme in ["gs://bucket/x", "https://bucket/x", "S3://bucket"] {
        check(scheme, Err(UrlError::Scheme));
    }
    for bucket in [
        "s3://",
        "s3://ab",
        "s3:///x",
        "s3://key:secret@bucket/x",
        "s3://Bucket",
    ] {
        check(bucket, Err(UrlError::Bucket));
    }
    for prefix in [
        "s3://bucket/a//b",
        "s3://bucket/../x",
        "s3://bucket/a b",
        "s3://bucket/a?b",
    ] {
        check(prefix, Err(UrlError::Prefix));
    }
    let error = StoreUrl::parse("s3://key:secret@bucket/x")
        .expect_err("no bucket")
        .to_string();
    assert!(!error.contains("secret@"), "{error}");
}
