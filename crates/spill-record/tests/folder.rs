//! The run folder from outside: what is written is read back, and damage is named.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its folder has failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use spill_record::{
    Blessing, CallRecord, Class, ConfigurationRecord, ConfigurationRole, ContextBytes, EndReason,
    FolderError, FolderKind, Host, LiveFolder, MEASURED_COLUMNS, Manifest, Mode, Outcome,
    PlanRecord, PlannedRun, PromptTokens, RUN_COLUMNS, RulesRecord, RunFolder, RunRecord, SCHEMA,
    SidecarRun, Stage, Versions, runs_csv,
};

fn planned(run_id: &str) -> PlannedRun {
    PlannedRun {
        run_id: run_id.to_owned(),
        pair_id: "p0".to_owned(),
        scenario: "review".to_owned(),
        input: "small".to_owned(),
        configuration: "off".to_owned(),
        repetition: 0,
        seed: 7,
        profile: "selective".to_owned(),
    }
}

fn manifest() -> Manifest {
    Manifest {
        schema: SCHEMA,
        acceptance_id: "20260102T030405Z-0123456789abcdef".to_owned(),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        plan_hash: "0123456789abcdef".to_owned(),
        stage: Stage::Full,
        mode: Mode::Simulated,
        endpoint: None,
        kind: FolderKind::Acceptance,
        subject: "built-in".to_owned(),
        base_seed: 1,
        versions: Versions {
            spillgate: "0.1.0".to_owned(),
            tokenizer: "none".to_owned(),
        },
        commit: None,
        dirty: None,
        host: Host {
            os: "linux".to_owned(),
            arch: "x86_64".to_owned(),
            cpus: 2,
            memory_bytes: None,
        },
        measured_columns: MEASURED_COLUMNS.map(str::to_owned).to_vec(),
        plan: PlanRecord {
            configurations: vec![ConfigurationRecord {
                name: "off".to_owned(),
                role: ConfigurationRole::Control,
                shipped: false,
                env: std::collections::BTreeMap::new(),
                enabled: false,
                threshold_bytes: None,
                policy: None,
                store: None,
                preview_share: None,
                sidecars: Vec::new(),
                effective_settings: None,
            }],
            inputs: Vec::new(),
            models: Vec::new(),
            rules: RulesRecord {
                input_tokens_ratio_limit: 1.1,
                large_input_tokens_ratio_limit: 1.0,
                quality_allowance: 0.0,
                success_margin: 0.1,
                quality_margin: 0.1,
                derived_facts_needed: 5,
                infrastructure_budget: 0.0,
            },
            repetitions: 1,
            runs: vec![planned("a"), planned("b")],
        },
        shard: None,
        manifest_digest: String::new(),
    }
    .sealed()
}

fn run(run_id: &str) -> RunRecord {
    RunRecord {
        schema: SCHEMA,
        run_id: run_id.to_owned(),
        pair_id: "p0".to_owned(),
        scenario: "review".to_owned(),
        recipe: "review".to_owned(),
        input: "small".to_owned(),
        class: Class::Small,
        configuration: "off".to_owned(),
        policy: Some("workflow-step".to_owned()),
        store: Some("memory".to_owned()),
        threshold_bytes: Some(131_072),
        preview_share: None,
        repetition: 0,
        seed: 7,
        subject: "built-in".to_owned(),
        model: "simulated".to_owned(),
        profile: "selective".to_owned(),
        outcome: Outcome::Succeeded,
        end_reason: EndReason::Answered,
        hit_iteration_limit: Some(false),
        iterations: Some(4),
        llm_calls: Some(4),
        llm_retries: Some(0),
        input_tokens: Some(1000),
        cached_input_tokens: Some(0),
        cached_before_read_tool_tokens: Some(0),
        cached_after_read_tool_tokens: Some(0),
        cache_write_tokens: Some(0),
        output_tokens: Some(50),
        duration_ms: Some(12.5),
        process_ms: Some(14.0),
        cpu_ms: Some(9.0),
        model_time_ms: None,
        tool_calls: Some(3),
        tool_result_bytes: Some(900),
        largest_result_bytes: Some(500),
        results_persisted: Some(0),
        persisted_by_tool: BTreeMap::new(),
        results_read_back: Some(0),
        reads: Some(0),
        reads_with_range: Some(0),
        read_bytes: Some(0),
        reread_bytes: Some(0),
        store_peak_bytes: Some(0),
        peak_rss_bytes: Some(9_000_000),
        body_bytes: Some(1000),
        facts_expected: Some(2),
        facts_found: Some(1),
        end_facts_expected: Some(1),
        end_facts_found: Some(1),
        large_file_facts_expected: Some(0),
        large_file_facts_found: Some(0),
        missed_facts: vec!["f1".to_owned()],
        faults: Vec::new(),
        unfounded_findings: Some(0),
        quality: Some(0.5),
        files_written: Some(0),
        state_files: Vec::new(),
        state_bytes: Some(0),
        leak_findings: Vec::new(),
        leak_check: "inotify+search".to_owned(),
        prompt_digest: Some("d".to_owned()),
        offered_tools_digest: Some("t".to_owned()),
        effective_settings: None,
        error: None,
        same_as: None,
        kept_files: None,
        sidecars: Vec::new(),
        sampled_memory_bytes: None,
        memory_check: None,
    }
}

/// Calls that add up to the run.
fn calls(run: &RunRecord) -> Vec<CallRecord> {
    (0..run.llm_calls.unwrap())
        .map(|call| CallRecord {
            schema: SCHEMA,
            run_id: run.run_id.clone(),
            call,
            iteration: call + 1,
            status: 200,
            tokens: Some(PromptTokens {
                uncached_input_tokens: if call == 0 {
                    run.input_tokens.unwrap()
                } else {
                    0
                },
                ..PromptTokens::default()
            }),
            request_bytes: 10,
            request_digest: "r".to_owned(),
            tools_digest: "t".to_owned(),
            context: ContextBytes::default(),
            new_results: Vec::new(),
            calls_tools: Vec::new(),
            finish_reason: "stop".to_owned(),
            model_time_ms: None,
        })
        .collect()
}

fn folder_with(reports: &Path, runs: &[RunRecord]) -> std::path::PathBuf {
    let mut folder = RunFolder::create(reports, &manifest()).unwrap();
    for (index, run) in runs.iter().enumerate() {
        let again = runs[..index].iter().any(|known| known.run_id == run.run_id);
        let calls = if again { Vec::new() } else { calls(run) };
        folder.append(run, &calls).unwrap();
    }
    folder.path().to_owned()
}

fn append(folder: &Path, bytes: &[u8]) {
    let path = folder.join("runs.jsonl");
    let mut text = fs::read(&path).unwrap();
    text.extend_from_slice(bytes);
    fs::write(&path, text).unwrap();
}

#[test]
fn records_are_read_back_in_plan_order() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("b"), run("a")]);
    let set = RunFolder::read(&path).unwrap();
    let ids: Vec<_> = set.runs.iter().map(|run| run.run_id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(set.manifest, manifest());
    assert_eq!(set.runs[0], run("a"));
}

#[test]
fn a_missing_run_has_no_record() {
    let reports = tempfile::tempdir().unwrap();
    let set = RunFolder::read(&folder_with(reports.path(), &[run("b")])).unwrap();
    assert_eq!(set.runs.len(), 1);
    assert_eq!(set.manifest.plan.runs.len(), 2);
}

/// Known fault 119: PrimeIntellect-ai/verifiers #803 and #1376; huggingface/OpenEnv #1154; sipyourdrink/bernstein #5919.
#[test]
fn a_torn_last_line_is_named_and_not_counted() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    append(&path, b"{\"schema\":1,\"run_id\":\"b");
    let set = RunFolder::read(&path).unwrap();
    assert_eq!(set.runs.len(), 1);
    assert_eq!(set.torn.len(), 1);
    assert_eq!(
        (set.torn[0].file.as_str(), set.torn[0].line),
        ("runs.jsonl", 2)
    );
}

/// Known fault 119: PrimeIntellect-ai/verifiers #803 and #1376; huggingface/OpenEnv #1154; sipyourdrink/bernstein #5919.
#[test]
fn a_torn_middle_line_is_refused() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    append(&path, b"{\"schema\":1,\n{}\n");
    let error = RunFolder::read(&path).unwrap_err();
    assert!(
        matches!(error, FolderError::Malformed { line: 2, .. }),
        "{error}"
    );
}

/// Known fault 79: lexmount/browseruse-agent-bench PR #93; specula-org/tlaps-bench PR #60.
/// Known fault 110: allenai/olmo-eval PR #338.
#[test]
fn a_foreign_and_a_contradicting_record_are_refused_and_a_repeated_one_is_not() {
    let check = |second: &RunRecord| {
        let reports = tempfile::tempdir().unwrap();
        RunFolder::read(&folder_with(reports.path(), &[run("a"), second.clone()]))
    };
    assert!(matches!(
        check(&run("z")),
        Err(FolderError::Foreign { line: 2, .. })
    ));
    let mut other = run("a");
    other.input_tokens = Some(1);
    assert!(matches!(
        check(&other),
        Err(FolderError::Contradiction { line: 2, .. })
    ));
    assert_eq!(check(&run("a")).unwrap().runs.len(), 1);
}

/// Known fault 131: gatling/gatling #4500.
#[test]
fn a_newer_schema_is_refused_by_name() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let manifest_path = path.join("manifest.json");
    let text = fs::read_to_string(&manifest_path).unwrap();
    fs::write(
        &manifest_path,
        text.replacen(&format!("\"schema\":{SCHEMA}"), "\"schema\":99", 1),
    )
    .unwrap();
    let error = RunFolder::read(&path).unwrap_err();
    assert!(
        matches!(error, FolderError::NewerSchema { found: 99, .. }),
        "{error}"
    );
}

/// Fields that records of schema 1 did not have.
const SINCE_SCHEMA_2: [&str; 8] = [
    "policy",
    "store",
    "threshold_bytes",
    "preview_share",
    "cached_before_read_tool_tokens",
    "cached_after_read_tool_tokens",
    "state_files",
    "state_bytes",
];

/// Known fault 131: gatling/gatling #4500.
#[test]
fn a_record_of_an_older_schema_is_read_and_what_it_lacks_is_unknown() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let runs = path.join("runs.jsonl");
    let mut record: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&runs).unwrap()).unwrap();
    let fields = record.as_object_mut().unwrap();
    for field in SINCE_SCHEMA_2 {
        assert!(fields.remove(field).is_some(), "{field} is no field");
    }
    fields.insert("schema".to_owned(), 1.into());
    fs::write(&runs, format!("{record}\n")).unwrap();
    let set = RunFolder::read(&path).unwrap();
    assert_eq!(set.runs[0].schema, 1);
    assert_eq!(
        (set.runs[0].policy.as_ref(), set.runs[0].state_bytes),
        (None, None)
    );
}

#[test]
fn a_manifest_from_before_there_were_policies_keeps_its_digest() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[]).join("manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    for key in ["\"policy\"", "\"store\"", "\"preview_share\""] {
        assert!(!text.contains(key), "{key} stands in a manifest without it");
    }
}

#[test]
fn a_folder_is_made_once() {
    let reports = tempfile::tempdir().unwrap();
    folder_with(reports.path(), &[]);
    assert!(RunFolder::create(reports.path(), &manifest()).is_err());
}

#[test]
fn latest_is_a_relative_link_and_moves() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[]);
    RunFolder::mark_latest(reports.path(), Path::new("/elsewhere/older")).unwrap();
    RunFolder::mark_latest(reports.path(), &path).unwrap();
    let target = fs::read_link(reports.path().join("latest")).unwrap();
    assert_eq!(target, Path::new(path.file_name().unwrap()));
}

#[test]
fn latest_does_not_replace_a_real_folder() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[]);
    fs::create_dir(reports.path().join("latest")).unwrap();
    assert!(RunFolder::mark_latest(reports.path(), &path).is_err());
}

#[test]
fn csv_has_a_row_per_run_and_empty_cells_for_missing_values() {
    let reports = tempfile::tempdir().unwrap();
    let set = RunFolder::read(&folder_with(reports.path(), &[run("a"), run("b")])).unwrap();
    let text = runs_csv(&set);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(reader.headers().unwrap().len(), RUN_COLUMNS.len());
    assert_eq!(reader.records().count(), 2);
    insta::assert_snapshot!(text);
}

#[test]
fn csv_has_sums_over_sidecars_where_each_was_measured() {
    let sidecar = |peak: Option<u64>, cpu: Option<f64>, log: Option<u64>| SidecarRun {
        name: "proxy".to_owned(),
        peak_rss_bytes: peak,
        cpu_ms: cpu,
        log_bytes: log,
        files_written: Some(0),
        state_files: Some(0),
        state_bytes: Some(0),
        leak_findings: Vec::new(),
    };
    let check = |sidecars: &[SidecarRun], expected: [&str; 3]| {
        let reports = tempfile::tempdir().unwrap();
        let mut one = run("a");
        one.sidecars = sidecars.to_vec();
        let set = RunFolder::read(&folder_with(reports.path(), &[one])).unwrap();
        let text = runs_csv(&set);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().unwrap().clone();
        let row = reader.records().next().unwrap().unwrap();
        let cells = ["peak_rss_bytes", "cpu_ms", "log_bytes"].map(|name| {
            let name = format!("sidecar_{name}");
            &row[header.iter().position(|column| column == name).unwrap()]
        });
        assert_eq!(cells, expected);
    };
    let whole = || sidecar(Some(1_000), Some(2.5), Some(0));
    check(&[], ["", "", ""]);
    check(&[whole()], ["1000", "2.500", "0"]);
    let other = sidecar(Some(24), Some(0.25), Some(7));
    check(&[whole(), other], ["1024", "2.750", "7"]);
    check(&[whole(), sidecar(None, None, Some(1))], ["", "", "1"]);
}

/// Known fault 131: gatling/gatling #4500.
#[test]
fn a_record_of_a_newer_schema_is_refused() {
    let reports = tempfile::tempdir().unwrap();
    let mut newer = run("a");
    newer.schema = 99;
    let error = RunFolder::read(&folder_with(reports.path(), &[newer])).unwrap_err();
    assert!(
        matches!(error, FolderError::NewerSchema { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn a_manifest_changed_by_hand_is_refused() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let manifest = path.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let kinder = text.replace(
        "\"input_tokens_ratio_limit\":1.1",
        "\"input_tokens_ratio_limit\":99.0",
    );
    assert_ne!(kinder, text);
    fs::write(&manifest, kinder).unwrap();
    let error = RunFolder::read(&path).unwrap_err();
    assert!(matches!(error, FolderError::Changed { .. }), "{error}");
}

/// Known fault 120: promptfoo/promptfoo #4673.
#[test]
fn a_run_whose_calls_say_otherwise_is_refused() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let runs = path.join("runs.jsonl");
    let text = fs::read_to_string(&runs).unwrap();
    fs::write(
        &runs,
        text.replace("\"input_tokens\":1000", "\"input_tokens\":0"),
    )
    .unwrap();
    let error = RunFolder::read(&path).unwrap_err();
    assert!(
        matches!(
            error,
            FolderError::CallsDisagree {
                calls: 1000,
                run: 0,
                ..
            }
        ),
        "{error}"
    );
    fs::write(&runs, text).unwrap();
    fs::remove_file(path.join("calls.jsonl")).unwrap();
    fs::write(path.join("calls.jsonl"), "").unwrap();
    assert!(matches!(
        RunFolder::read(&path),
        Err(FolderError::CallsDisagree { .. })
    ));
    for name in ["calls.jsonl", "sensitivity.jsonl", "runs.jsonl"] {
        let held = fs::read(path.join(name)).unwrap();
        fs::remove_file(path.join(name)).unwrap();
        let error = RunFolder::read(&path).unwrap_err();
        assert!(matches!(error, FolderError::Missing { .. }), "{error}");
        fs::write(path.join(name), held).unwrap();
    }
}

fn blessing() -> Blessing {
    Blessing {
        schema: SCHEMA,
        acceptance_id: manifest().acceptance_id,
        reason: "first one".to_owned(),
        blessed_at: "2026-01-03T00:00:00Z".to_owned(),
        commit: None,
        dirty: None,
        exit_code: 0,
        records_digest: String::new(),
    }
}

#[test]
fn an_accepted_run_is_read_without_its_calls_and_refused_when_changed() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a"), run("b")]);
    let baseline = reports.path().join("baseline");
    RunFolder::bless(&path, &baseline, &blessing()).unwrap();

    let read = RunFolder::read(&baseline).unwrap();
    assert_eq!(read, RunFolder::read(&path).unwrap());
    let said = RunFolder::read_blessing(&baseline).unwrap().unwrap();
    assert_eq!(said.reason, "first one");
    assert_eq!(RunFolder::read_blessing(&path).unwrap(), None);

    RunFolder::bless(&path, &baseline, &blessing()).unwrap();
    let runs = fs::read_to_string(baseline.join("runs.jsonl")).unwrap();
    fs::write(baseline.join("runs.jsonl"), runs.replace("1000", "1001")).unwrap();
    let refused = RunFolder::read(&baseline);
    assert!(
        matches!(refused, Err(FolderError::NotBlessed { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_folder_of_something_else_does_not_become_a_baseline() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let baseline = reports.path().join("baseline");
    fs::create_dir(&baseline).unwrap();
    fs::write(baseline.join("notes.txt"), "mine").unwrap();
    let refused = RunFolder::bless(&path, &baseline, &blessing());
    assert!(
        matches!(refused, Err(FolderError::NoBaseline { .. })),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(&baseline).unwrap().count(), 1);
}

#[test]
fn the_calls_of_one_run_are_read_alone() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a"), run("b")]);
    let file = path.join("calls.jsonl");
    let mut text = fs::read(&file).unwrap();
    text.extend_from_slice(b"{\"torn");
    fs::write(&file, text).unwrap();
    let mut found = Vec::new();
    RunFolder::each_call_of(&path, |id| id == "b", |call| found.push(call)).unwrap();
    let mut all = RunFolder::read_calls(&path).unwrap();
    all.retain(|call| call.run_id == "b");
    assert_eq!(found, all);
    assert_eq!(found.len(), 4);
}

#[test]
fn a_folder_is_followed_while_it_is_written() {
    let reports = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(reports.path(), &manifest()).unwrap();
    let mut live = LiveFolder::open(folder.path()).unwrap();
    assert!(live.is_being_written());
    assert_eq!(live.look(|_| {}).unwrap(), 0);

    folder.append(&run("b"), &calls(&run("b"))).unwrap();
    assert_eq!(live.look(|_| {}).unwrap(), 1);
    folder.append(&run("a"), &calls(&run("a"))).unwrap();
    let mut seen = Vec::new();
    assert_eq!(live.look(|run| seen.push(run.run_id.clone())).unwrap(), 1);
    assert_eq!(seen, ["a"], "the new one alone");
    assert_eq!(live.look(|_| {}).unwrap(), 0);
    let ids: Vec<_> = live.set().runs.iter().map(|run| &run.run_id).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(live.look_at_calls().unwrap().len(), 8);
    assert!(live.look_at_calls().unwrap().is_empty());

    let path = folder.path().to_owned();
    drop(folder);
    assert!(!live.is_being_written());
    append(&path, b"{\"schema\":1,\"run_id\":\"b");
    assert_eq!(
        live.look(|_| {}).unwrap(),
        0,
        "a torn line waits for its end"
    );
    append(&path, b"\"}\n");
    let error = live.look(|_| {}).unwrap_err();
    assert!(
        matches!(error, FolderError::Malformed { line: 3, .. }),
        "{error}"
    );
}

#[test]
fn a_pipe_or_a_device_in_a_files_place_is_an_error_and_not_waited_for() {
    for name in [
        "manifest.json",
        "runs.jsonl",
        "calls.jsonl",
        "sensitivity.jsonl",
    ] {
        let reports = tempfile::tempdir().unwrap();
        let path = folder_with(reports.path(), &[run("a")]);
        let place = path.join(name);
        fs::remove_file(&place).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        let error = RunFolder::read(&path).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{name}: {error}");
        fs::remove_file(&place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.unwrap().success());
        let error = RunFolder::read(&path).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{name}: {error}");
    }
}

#[test]
fn an_enormous_manifest_is_refused_by_its_size() {
    let reports = tempfile::tempdir().unwrap();
    let path = folder_with(reports.path(), &[run("a")]);
    let manifest = fs::File::create(path.join("manifest.json")).unwrap();
    manifest.set_len(20 << 30).unwrap();
    let error = RunFolder::read(&path).unwrap_err().to_string();
    assert!(error.contains("more than 268435456 bytes"), "{error}");
    assert!(LiveFolder::open(&path).is_err());
}
