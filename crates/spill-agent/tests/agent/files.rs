//! The file store in the loop: private files while the step runs, none after it, and a step that
//! goes on whatever stands in the store's place.

use std::{
    fs::{self, File},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Mutex,
};

use serde_json::{Map, Value, json};
use spill_agent::{
    AbortHandle, AbortSignal, EndReason, SpillSettings, StepResult, ToolAnswer, ToolFailure,
    ToolPort, ToolSpec, abort_pair, run_step,
};
use spill_engine::{FileOptions, FileStore, ItemHead, Millis, Owner, SpillStore as _, ToolResult};

use crate::{
    capture::captured,
    ports::{
        ScriptedModel, TOOLS, Turn, answer, calls, envelope, inline_cap, job, on_first, printed,
        reference_in, result_text, run, settings, text_of,
    },
};

/// A directory for stores; the second value is its path without links.
fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().canonicalize().expect("it exists");
    (home, path)
}

fn in_files(policy: fn(&[(&str, &str)]) -> SpillSettings, directory: &Path) -> SpillSettings {
    let directory = directory.to_str().expect("a text");
    policy(&[
        ("SPILLGATE_STORE", "file"),
        ("SPILLGATE_STORE_DIR", directory),
    ])
}

/// Names of the items in a store's directory, without what it keeps for itself.
fn items(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("a text"))
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    names
}

/// Tools whose second call looks at the directory, then does `then`.
struct Witness {
    directory: PathBuf,
    then: Then,
    seen: Mutex<Vec<(String, u32)>>,
}

enum Then {
    Return,
    Lose,
    Hang,
    Abort(AbortHandle),
}

impl ToolPort for Witness {
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolFailure> {
        TOOLS.list().await
    }

    async fn call(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, ToolFailure> {
        if name == "text" {
            return TOOLS.call(name, arguments).await;
        }
        let mode = |name: &String| {
            let metadata = fs::metadata(self.directory.join(name)).expect("a file");
            (name.clone(), metadata.mode() & 0o7777)
        };
        *self.seen.lock().expect("no test panics in here") =
            items(&self.directory).iter().map(mode).collect();
        match &self.then {
            Then::Return => Ok(ToolResult::text("seen").into()),
            Then::Lose => Err(ToolFailure::Unreachable("cut".to_owned())),
            Then::Hang => std::future::pending().await,
            Then::Abort(handle) => {
                handle.abort("enough");
                std::future::pending().await
            }
        }
    }
}

fn two_iterations() -> ScriptedModel {
    ScriptedModel::new([
        calls(&[("text", r#"{"size":9000}"#)]),
        calls(&[("fail", "{}")]),
        answer("done"),
    ])
}

async fn check_released(ending: fn() -> (Then, AbortSignal), reason: EndReason) {
    for policy in [inline_cap, envelope] {
        let (_home, path) = home();
        let directory = path.join("spill");
        let (then, signal) = ending();
        let tools = Witness {
            directory: directory.clone(),
            then,
            seen: Mutex::default(),
        };
        let settings = in_files(policy, &directory);
        let result = run_step(&job(), settings, &two_iterations(), &tools, &signal).await;
        assert_eq!(result.end_reason, reason, "{:?}", result.error);
        assert_eq!(result.spill.persisted, 1);
        let seen = tools.seen.lock().expect("no test panics in here").clone();
        let modes: Vec<u32> = seen.iter().map(|(_, mode)| *mode).collect();
        assert_eq!(modes, [0o600, 0o600], "bytes and description: {seen:?}");
        let mode = fs::metadata(&directory).expect("made").mode() & 0o7777;
        assert_eq!(mode, 0o700);
        assert_eq!(items(&directory), Vec::<String>::new(), "after the step");
    }
}

#[tokio::test(start_paused = true)]
async fn results_are_private_files_during_the_step_and_gone_after_every_ending() {
    check_released(|| (Then::Return, AbortSignal::never()), EndReason::Answered).await;
    check_released(|| (Then::Lose, AbortSignal::never()), EndReason::ToolError).await;
    check_released(|| (Then::Hang, AbortSignal::never()), EndReason::Timeout).await;
    let aborted = || {
        let (handle, signal) = abort_pair();
        (Then::Abort(handle), signal)
    };
    check_released(aborted, EndReason::Aborted).await;
}

#[tokio::test]
async fn a_dropped_step_releases_the_files() {
    let (_home, path) = home();
    let directory = path.join("spill");
    let model = ScriptedModel::new([calls(&[("text", r#"{"size":9000}"#)]), Turn::Hang]);
    let job = job();
    let never = AbortSignal::never();
    let settings = in_files(inline_cap, &directory);
    let mut step = Box::pin(run_step(&job, settings, &model, &TOOLS, &never));
    while model.requests().len() < 2 {
        assert!(futures::poll!(&mut step).is_pending(), "the model hangs");
        tokio::task::yield_now().await;
    }
    assert_eq!(items(&directory).len(), 2);
    drop(step);
    assert_eq!(items(&directory), Vec::<String>::new());
}

async fn with_seed(directory: &Path) -> (ScriptedModel, StepResult) {
    let model = ScriptedModel::new([
        calls(&[("text", r#"{"size":9000}"#), ("text", r#"{"size":9001}"#)]),
        on_first(
            "read",
            |path| json!({"path": path, "offset": 10, "limit": 20}),
        ),
        on_first("grep", |path| json!({"path": path, "pattern": "SECRET"})),
        answer("done"),
    ]);
    let result = run(in_files(inline_cap, directory), &model).await;
    assert_eq!(result.end_reason, EndReason::Answered, "{:?}", result.error);
    (model, result)
}

/// Prompts name the directory by its last part: where it lies does not matter.
#[tokio::test(start_paused = true)]
async fn equal_seeds_make_equal_prompts_in_different_directories() {
    let ((_one, one), (_other, other)) = (home(), home());
    let (first, result) = with_seed(&one.join("spill")).await;
    let (second, again) = with_seed(&other.join("deeper/spill")).await;
    assert!(first.requests() == second.requests());
    assert_eq!(printed(&result), printed(&again));
    let locator = reference_in(&result_text(&first.bodies()[1], 3));
    assert!(locator.starts_with("spill/") && locator.ends_with("-text.txt"));
    let figures = &result.spill;
    assert_eq!((figures.persisted, figures.reads), (2, 2));
    assert_eq!(figures.persisted_bytes, 18_001);
    assert_eq!(figures.store_peak_bytes, 18_001);
    let read = result_text(&first.bodies()[2], 6);
    assert!(read.ends_with(&text_of(9_000)[10..30]), "{read}");
    assert_eq!(printed(&result)["settings"]["store"], json!("file"));
}

#[tokio::test(start_paused = true)]
async fn two_sessions_in_one_directory_do_not_see_each_other() {
    let (_home, path) = home();
    let directory = path.join("spill");
    let first = ScriptedModel::new([calls(&[("text", r#"{"size":9000}"#)]), Turn::Hang]);
    let job = job();
    let never = AbortSignal::never();
    let first_settings = in_files(inline_cap, &directory);
    let mut step = Box::pin(run_step(&job, first_settings, &first, &TOOLS, &never));
    while first.requests().len() < 2 {
        assert!(futures::poll!(&mut step).is_pending(), "the model hangs");
        tokio::task::yield_now().await;
    }
    let locator = reference_in(&result_text(&first.bodies()[1], 3));
    let arguments = json!({"path": locator, "limit": 4}).to_string();
    let second = ScriptedModel::new([
        calls(&[("text", r#"{"size":9000}"#)]),
        calls(&[("read", &arguments)]),
        answer("done"),
    ]);
    let result = run(in_files(inline_cap, &directory), &second).await;
    assert_eq!((result.spill.persisted, result.spill.reads), (1, 0));
    assert!(second.last_content().contains("not found"));
    assert_eq!(
        items(&directory).len(),
        2,
        "the other one's are still there"
    );
}

/// The step runs as without spilling, and one warning names the place and what is wrong there.
async fn check_unusable(directory: &Path, fact: &str) {
    let off = two_iterations();
    run(crate::ports::off(), &off).await;
    for policy in [inline_cap, envelope] {
        let model = two_iterations();
        let settings = in_files(policy, directory);
        let (result, lines) = captured(spill_agent::is_own_log, run(settings, &model)).await;
        assert_eq!(result.end_reason, EndReason::Answered);
        assert!(
            model.requests() == off.requests(),
            "everything stays inline"
        );
        assert_eq!(result.spill.persisted, 0);
        let saved = lines.matches("saveText failed for text").count();
        assert_eq!(saved, 1, "{lines}");
        assert!(lines.contains(fact), "{lines}");
        assert!(lines.contains(&directory.display().to_string()), "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_stores_place_is_named_and_results_stay_inline() {
    let (_home, path) = home();
    let file = path.join("file");
    fs::write(&file, "untouched").expect("a file");
    check_unusable(&file, "a file stands there").await;
    assert_eq!(fs::read_to_string(&file).expect("a file"), "untouched");
    let link = path.join("link");
    symlink(&path, &link).expect("a link");
    check_unusable(&link, "a symbolic link stands there").await;
    let open = path.join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("ours");
    check_unusable(&open, "its mode is 0755").await;
    assert_eq!(items(&open), Vec::<String>::new());
}

const KEY: &str = "0123456789abcdef";

/// A store's directory as a killed process leaves it, with a file that only looks like one of its.
fn left_by_the_dead(path: &Path) -> PathBuf {
    let directory = path.join("spill");
    fs::create_dir(&directory).expect("a directory");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(directory.join(format!("{KEY}.part")), "half").expect("a file");
    fs::write(directory.join(format!("my-{KEY}.part")), "mine").expect("a file");
    directory
}

#[tokio::test(start_paused = true)]
async fn leftovers_are_swept_once_per_process_also_with_spilling_off() {
    let (_home, path) = home();
    let directory = left_by_the_dead(&path);
    let variables = [
        ("SPILLGATE_STORE_DIR", directory.to_str().expect("a text")),
        ("CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED", "false"),
    ];
    let model = two_iterations();
    let swept = run(settings(&variables), &model);
    let (_, lines) = captured(spill_agent::is_own_log, swept).await;
    assert_eq!(items(&directory), [format!("my-{KEY}.part")]);
    assert!(
        lines.contains("Leftovers of dead processes removed leftovers=1"),
        "{lines}"
    );
    let off = two_iterations();
    run(crate::ports::off(), &off).await;
    assert!(model.requests() == off.requests());
    fs::write(directory.join(format!("{KEY}.part")), "half").expect("a file");
    run(settings(&variables), &two_iterations()).await;
    assert_eq!(items(&directory).len(), 2, "only at the first start");
}

#[tokio::test(start_paused = true)]
async fn whole_results_of_the_dead_go_when_their_time_is_over() {
    let (_home, path) = home();
    let directory = path.join("killed");
    let store = FileStore::new(FileOptions::new(&directory)).expect("a path that is text");
    let put = |time_to_live: u64| {
        let head = ItemHead {
            time_to_live: Some(Millis::new(time_to_live)),
            ..ItemHead::text_of(&Owner::new("dead"), Millis::new(0))
        };
        let name = store.name("read_file").expect("a name");
        store
            .put(name, head, "a result".to_owned().into())
            .expect("room")
    };
    put(1);
    let kept = put(u64::MAX);
    let settings = settings(&[("SPILLGATE_STORE_DIR", directory.to_str().expect("a text"))]);
    run(settings, &two_iterations()).await;
    // A description without content stays, so that a late reader is told that it has expired.
    let left = items(&directory);
    let content: Vec<&String> = left
        .iter()
        .filter(|name| !name.ends_with(".meta"))
        .collect();
    assert_eq!(content.len(), 1, "{left:?}");
    assert!(content[0].contains(&kept.key.to_string()), "{left:?}");
}

/// A process that holds the store's lock delays neither an abort nor a timeout.
#[tokio::test]
async fn a_sweep_that_waits_is_cut_off_with_its_step() {
    let (_home, path) = home();
    let directory = left_by_the_dead(&path);
    let lock = File::create(directory.join(".lock")).expect("a file");
    lock.lock().expect("nobody else has it");
    let settings = settings(&[("SPILLGATE_STORE_DIR", directory.to_str().expect("a text"))]);
    let model = two_iterations();
    let (handle, signal) = abort_pair();
    let job = job();
    let mut step = Box::pin(run_step(&job, settings, &model, &TOOLS, &signal));
    assert!(
        futures::poll!(&mut step).is_pending(),
        "it waits for the lock"
    );
    handle.abort("enough");
    let result = step.await;
    assert_eq!(result.end_reason, EndReason::Aborted);
    assert_eq!(model.requests().len(), 0);
    assert_eq!(items(&directory).len(), 2, "nothing was swept");
}
