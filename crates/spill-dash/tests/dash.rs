//! The dashboard over real run folders and a real socket.
#![recursion_limit = "256"]
#![expect(
    clippy::unwrap_used,
    reason = "a test whose folder or server fails has failed"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::{Client, StatusCode, header};
use spill_dash::{CardState, Dashboard, Options, Reports};
use spill_record::{
    CallRecord, Class, ConfigurationRecord, ConfigurationRole, ContextBytes, EndReason,
    FactsOrigin, FolderKind, Host, InputRecord, Manifest, Mode, Outcome, PlanRecord, PlannedRun,
    PromptTokens, RulesRecord, RunFolder, RunRecord, SCHEMA, Stage, Versions,
};

const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

fn configuration(name: &str, role: ConfigurationRole, shipped: bool) -> ConfigurationRecord {
    ConfigurationRecord {
        name: name.to_owned(),
        role,
        shipped,
        env: BTreeMap::new(),
        enabled: role == ConfigurationRole::Candidate,
        threshold_bytes: (role == ConfigurationRole::Candidate).then_some(131_072),
        policy: None,
        store: None,
        preview_share: None,
        sidecars: Vec::new(),
        effective_settings: None,
    }
}

/// A plan of one input under two configurations, `repetitions` times.
fn manifest(id: &str, subject: &str, repetitions: u32) -> Manifest {
    let configurations = vec![
        configuration("off", ConfigurationRole::Control, false),
        configuration("128KiB", ConfigurationRole::Candidate, true),
    ];
    let runs = (0..repetitions)
        .flat_map(|repetition| {
            ["off", "128KiB"].map(|name| PlannedRun {
                run_id: format!("{name}-{repetition}"),
                pair_id: format!("p{repetition}"),
                scenario: "review".to_owned(),
                input: "small".to_owned(),
                configuration: name.to_owned(),
                repetition,
                seed: u64::from(repetition),
                profile: "selective".to_owned(),
            })
        })
        .collect();
    Manifest {
        schema: SCHEMA,
        acceptance_id: id.to_owned(),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        plan_hash: "0123456789abcdef".to_owned(),
        stage: Stage::Full,
        mode: Mode::Simulated,
        endpoint: None,
        kind: FolderKind::Acceptance,
        subject: subject.to_owned(),
        base_seed: 1,
        versions: Versions {
            spillgate: "0".to_owned(),
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
        measured_columns: Vec::new(),
        plan: PlanRecord {
            configurations,
            inputs: vec![InputRecord {
                scenario: "review".to_owned(),
                recipe: "review".to_owned(),
                input: "small".to_owned(),
                class: Class::Small,
                largest_result_bytes: 10,
                content_digest: "d".to_owned(),
                facts: Vec::new(),
                facts_origin: FactsOrigin::Scenario,
                notes: Vec::new(),
            }],
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
            repetitions,
            runs,
        },
        shard: None,
        manifest_digest: String::new(),
    }
    .sealed()
}

fn record(run: &PlannedRun, error: Option<&str>) -> RunRecord {
    let text = serde_json::json!({
        "schema": SCHEMA, "run_id": run.run_id, "pair_id": run.pair_id, "scenario": run.scenario,
        "recipe": "review", "input": run.input, "class": "small",
        "configuration": run.configuration, "repetition": run.repetition, "seed": run.seed,
        "subject": "built-in", "model": "simulated", "profile": run.profile,
        "outcome": "succeeded", "end_reason": "answered", "hit_iteration_limit": false,
        "iterations": 1, "llm_calls": 1, "llm_retries": 0, "input_tokens": 100,
        "cached_input_tokens": 0, "output_tokens": 7, "duration_ms": 12.0, "process_ms": 14.0,
        "cpu_ms": 9.0, "model_time_ms": null, "tool_calls": 1, "tool_result_bytes": 10,
        "largest_result_bytes": 10, "results_persisted": 2, "persisted_by_tool": {"read_diff": 2},
        "results_read_back": 1, "reads": 3, "reads_with_range": 2, "read_bytes": 5,
        "reread_bytes": 0, "store_peak_bytes": 5, "peak_rss_bytes": 9_000_000, "body_bytes": 1,
        "facts_expected": null, "facts_found": null, "end_facts_expected": null,
        "end_facts_found": null, "large_file_facts_expected": null,
        "large_file_facts_found": null, "missed_facts": [], "unfounded_findings": 0,
        "quality": null, "files_written": 0, "leak_findings": [], "leak_check": "search",
        "prompt_digest": "p", "offered_tools_digest": "t", "effective_settings": null,
        "error": error,
    });
    let mut record: RunRecord = serde_json::from_value(text).unwrap();
    if error.is_some() {
        record.outcome = Outcome::Infrastructure;
        record.end_reason = EndReason::Mismatch;
    }
    record
}

fn call(run: &PlannedRun) -> CallRecord {
    CallRecord {
        schema: SCHEMA,
        run_id: run.run_id.clone(),
        call: 0,
        iteration: 1,
        status: 200,
        tokens: Some(PromptTokens {
            uncached_input_tokens: 100,
            output_tokens: 7,
            ..PromptTokens::default()
        }),
        request_bytes: 1,
        request_digest: "r".to_owned(),
        tools_digest: "t".to_owned(),
        context: ContextBytes::default(),
        new_results: Vec::new(),
        calls_tools: Vec::new(),
        finish_reason: "stop".to_owned(),
        model_time_ms: None,
    }
}

fn append(folder: &mut RunFolder, manifest: &Manifest, at: usize, error: Option<&str>) {
    let run = &manifest.plan.runs[at];
    folder.append(&record(run, error), &[call(run)]).unwrap();
}

/// A folder with all of its runs, judged.
fn finished(reports: &Path, id: &str) {
    let manifest = manifest(id, "built-in", 1);
    let mut folder = RunFolder::create(reports, &manifest).unwrap();
    for at in 0..manifest.plan.runs.len() {
        append(&mut folder, &manifest, at, None);
    }
    let path = folder.path().to_owned();
    drop(folder);
    let set = RunFolder::read(&path).unwrap();
    let rendered = spill_report::render(&set, &spill_verdict::judge(&set), Default::default());
    RunFolder::write_derived(&path, "verdict.json", rendered.verdict_json.as_bytes()).unwrap();
}

fn now() -> jiff::Timestamp {
    "2026-01-02T03:04:15Z".parse().unwrap()
}

#[test]
fn a_folder_is_running_then_incomplete_or_finished() {
    let reports = tempfile::tempdir().unwrap();
    let manifest = manifest("20260102T030405.006Z-a", "built-in", 2);
    let mut folder = RunFolder::create(reports.path(), &manifest).unwrap();
    append(&mut folder, &manifest, 0, None);
    let mut looked = Reports::open(reports.path()).unwrap();
    let card = looked.board(now()).cards[0].clone();
    assert_eq!(
        (card.state, card.done, card.planned),
        (CardState::Running, 1, 4)
    );
    assert!(card.provisional);
    assert_eq!(
        (card.runs_per_second, card.eta_seconds),
        (Some(0.1), Some(30.0))
    );
    assert_eq!((card.cells_done, card.cells_planned), (0, 2));

    append(&mut folder, &manifest, 2, None);
    looked.look().unwrap();
    assert_eq!(looked.board(now()).cards[0].cells_done, 1);

    drop(folder);
    looked.look().unwrap();
    let card = looked.board(now()).cards[0].clone();
    assert_eq!((card.state, card.done), (CardState::Incomplete, 2));
    assert_eq!((card.eta_seconds, card.exit_code), (None, None));

    finished(reports.path(), "20260102T030406.007Z-b");
    looked.look().unwrap();
    let card = looked.board(now()).cards[0].clone();
    assert_eq!(card.id, "20260102T030406.007Z-b", "the newest comes first");
    assert_eq!((card.state, card.done), (CardState::Finished, 2));
    assert!(card.exit_code.is_some() && !card.provisional);

    let again = Reports::open(reports.path()).unwrap();
    assert_eq!(
        again.board(now()),
        looked.board(now()),
        "a restart shows the same"
    );
}

/// State, provisional, n, planned number, and whether a number is shown, of rule 1 for the candidate.
fn rule_1(reports: &Reports) -> (&'static str, bool, u64, u64, bool) {
    let board = reports.board(now());
    let cell = &board.cards[0].rules[0].cells[0];
    let numbers = !cell.number.is_empty();
    (cell.state, cell.provisional, cell.n, cell.planned, numbers)
}

#[test]
fn rules_of_a_folder_in_progress_stand_as_its_pairs_have_them() {
    let reports = tempfile::tempdir().unwrap();
    let manifest = manifest("20260102T030405.006Z-a", "built-in", 2);
    let mut folder = RunFolder::create(reports.path(), &manifest).unwrap();
    append(&mut folder, &manifest, 0, None);
    let mut looked = Reports::open(reports.path()).unwrap();
    assert_eq!(rule_1(&looked), ("not_run", false, 0, 2, false));
    append(&mut folder, &manifest, 1, None);
    looked.look().unwrap();
    assert_eq!(rule_1(&looked), ("holds", true, 1, 2, true));
    // Nobody will add to it: what is missing is missing.
    drop(folder);
    looked.look().unwrap();
    assert_eq!(rule_1(&looked), ("not_run", false, 1, 2, true));
}

#[test]
fn a_broken_folder_is_named_and_hides_no_other() {
    let reports = tempfile::tempdir().unwrap();
    finished(reports.path(), "20260102T030405.006Z-a");
    let broken = reports.path().join("20260102T030406.007Z-b");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("manifest.json"), "{").unwrap();
    fs::create_dir(reports.path().join("not a run folder")).unwrap();
    std::os::unix::fs::symlink("20260102T030405.006Z-a", reports.path().join("latest")).unwrap();
    let board = Reports::open(reports.path()).unwrap().board(now());
    let states: Vec<_> = board.cards.iter().map(|card| card.state).collect();
    assert_eq!(states, [CardState::Unreadable, CardState::Finished]);
    assert!(
        board.cards[0]
            .error
            .as_ref()
            .unwrap()
            .contains("manifest.json")
    );
}

#[test]
fn a_pipe_in_the_place_of_any_file_holds_nobody_up() {
    for name in ["manifest.json", "runs.jsonl", "calls.jsonl", "verdict.json"] {
        let reports = tempfile::tempdir().unwrap();
        finished(reports.path(), "20260102T030405.006Z-a");
        finished(reports.path(), "20260102T030406.007Z-b");
        let place = reports.path().join("20260102T030405.006Z-a").join(name);
        fs::remove_file(&place).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place).status();
        assert!(made.unwrap().success());
        let mut looked = Reports::open(reports.path()).unwrap();
        looked.look().unwrap();
        let board = looked.board(now());
        let newest = &board.cards[0];
        assert_eq!(newest.state, CardState::Finished, "{name}");
        let broken = board.cards.iter().skip(1).map(|card| card.state);
        let shown: Vec<_> = broken.collect();
        let wanted = match name {
            // Not a run folder at all.
            "manifest.json" => vec![],
            // Only a report reads the calls of an older folder.
            "calls.jsonl" => vec![CardState::Finished],
            _ => vec![CardState::Unreadable],
        };
        assert_eq!(shown, wanted, "{name}");
    }
}

#[test]
fn records_changed_after_they_were_judged_are_not_shown_as_finished() {
    let reports = tempfile::tempdir().unwrap();
    finished(reports.path(), "20260102T030405.006Z-a");
    let runs = reports.path().join("20260102T030405.006Z-a/runs.jsonl");
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let file = fs::File::options().append(true).open(&runs).unwrap();
    file.set_modified(later).unwrap();
    let look = || {
        let mut looked = Reports::open(reports.path()).unwrap();
        looked.look().unwrap();
        looked.board(now()).cards.remove(0)
    };
    // A copy has its files in any order of time.
    assert_eq!(look().state, CardState::Finished);
    let text = fs::read_to_string(&runs).unwrap();
    let fewer: Vec<&str> = text.lines().skip(1).collect();
    // As many, of which one says something else.
    let other = text.replacen("\"succeeded\"", "\"failed\"", 1);
    assert_ne!(other, text);
    for changed in [fewer.join("\n") + "\n", other] {
        fs::write(&runs, changed).unwrap();
        let file = fs::File::options().append(true).open(&runs).unwrap();
        file.set_modified(later).unwrap();
        let card = look();
        assert_eq!(card.state, CardState::Unreadable);
        assert!(card.error.as_ref().unwrap().contains("judged on"));
    }
}

#[test]
fn a_sweep_has_progress_and_no_rules() {
    let reports = tempfile::tempdir().unwrap();
    let id = "20260102T030405.006Z-a";
    let of = Manifest {
        kind: FolderKind::Sweep,
        ..manifest(id, "built-in", 1)
    };
    let of = of.sealed();
    let mut folder = RunFolder::create(reports.path(), &of).unwrap();
    let look = || {
        let mut looked = Reports::open(reports.path()).unwrap();
        looked.look().unwrap();
        looked.board(now()).cards.remove(0)
    };
    assert_eq!(look().state, CardState::Running);
    for at in 0..2 {
        append(&mut folder, &of, at, None);
    }
    let card = look();
    assert_eq!(
        (card.state, card.done, card.provisional),
        (CardState::Running, 2, true)
    );
    drop(folder);
    let card = look();
    assert_eq!(
        (card.state, card.planned, card.provisional),
        (CardState::Finished, 2, false)
    );
    assert!(card.rules.is_empty() && card.candidates.is_empty() && card.decision.is_none());
    assert!(card.sentence.starts_with("A sweep"), "{}", card.sentence);
}

async fn start(reports: &Path) -> Dashboard {
    let options = Options {
        reports: reports.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
    };
    Dashboard::start(options).await.unwrap()
}

async fn get(client: &Client, address: &str) -> (StatusCode, String) {
    let answer = client.get(address).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test]
async fn pages_files_and_nothing_else_are_served() {
    let reports = tempfile::tempdir().unwrap();
    finished(reports.path(), "20260102T030405.006Z-a");
    let folder = reports.path().join("20260102T030405.006Z-a");
    fs::write(reports.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink("../secret", folder.join("runs.csv")).unwrap();
    let dashboard = start(reports.path()).await;
    let client = Client::new();
    let base = dashboard.url();
    let ok = async |path: &str| {
        let (status, text) = get(&client, &format!("{base}{path}")).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        text
    };
    assert!(ok("").await.contains("20260102T030405.006Z-a"));
    assert!(
        ok("runs/20260102T030405.006Z-a/")
            .await
            .contains("Spillgate acceptance report")
    );
    assert!(
        ok("runs/20260102T030405.006Z-a/files/verdict.json")
            .await
            .contains("decision")
    );
    let runs = ok("runs/20260102T030405.006Z-a/runs").await;
    assert!(runs.contains("/run/off-0\""), "{runs}");
    let run = ok("runs/20260102T030405.006Z-a/run/off-0").await;
    assert!(run.contains("Spillgate: run off-0"), "{run}");
    assert!(ok("api/board").await.contains("\"finished\""));
    for path in [
        "runs/20260102T030405.006Z-a/files/runs.csv",
        "runs/20260102T030405.006Z-a/files/..%2f..%2fsecret",
        "runs/20260102T030405.006Z-a/files/%2fetc%2fpasswd",
        "runs/..%2fsecret/files/manifest.json",
        "runs/latest/",
        "runs/20260102T030405.006Z-a/run/nobody",
        "secret",
    ] {
        let (status, text) = get(&client, &format!("{base}{path}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(!text.contains("secret"), "{path}");
    }
    // Clients resolve dots before they ask; this one does not.
    for path in [
        "/runs/../secret",
        "/runs/%2e%2e/",
        "/runs/../../etc/passwd",
        "//etc/passwd",
    ] {
        let answer = raw(&dashboard, path).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
    }
}

/// The answer to a path that is sent as it is.
async fn raw(dashboard: &Dashboard, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let url = dashboard.url();
    let address = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn strangers_get_no_answer() {
    let reports = tempfile::tempdir().unwrap();
    let dashboard = start(reports.path()).await;
    let ask = async |name: header::HeaderName, value: &str| {
        let request = Client::new().get(dashboard.url()).header(name, value);
        request.send().await.unwrap().status()
    };
    assert_eq!(
        ask(header::HOST, "evil.example").await,
        StatusCode::MISDIRECTED_REQUEST
    );
    let foreign = ask(header::ORIGIN, "http://evil.example").await;
    assert_eq!(foreign, StatusCode::FORBIDDEN);

    let open = Options {
        reports: reports.path().to_owned(),
        listen: "0.0.0.0:0".parse().unwrap(),
        token: None,
    };
    let error = Dashboard::start(open).await.unwrap_err().to_string();
    assert!(error.contains("SPILLGATE_TOKEN"), "{error}");
}

#[tokio::test]
async fn progress_reaches_an_open_page_and_a_scraper() {
    let reports = tempfile::tempdir().unwrap();
    let manifest = manifest("20260102T030405.006Z-a", HOSTILE, 2);
    let mut folder = RunFolder::create(reports.path(), &manifest).unwrap();
    let dashboard = start(reports.path()).await;
    let client = Client::new();
    let mut events = client
        .get(format!("{}events", dashboard.url()))
        .send()
        .await
        .unwrap();
    let mut seen = String::new();
    let mut until = async |words: &str| {
        let limit = tokio::time::timeout(Duration::from_secs(60), async {
            while !seen.contains(words) {
                let piece = events
                    .chunk()
                    .await
                    .unwrap()
                    .expect("the stream stays open");
                seen.push_str(&String::from_utf8_lossy(&piece));
            }
        });
        limit
            .await
            .unwrap_or_else(|_| panic!("no event with {words:?}"));
        assert!(!seen.contains("<script>"), "a name became markup");
    };
    until("0 of 4 runs").await;
    append(&mut folder, &manifest, 0, None);
    until("1 of 4 runs").await;
    append(&mut folder, &manifest, 1, Some(HOSTILE));
    until("2 of 4 runs").await;

    let metrics = async || get(&client, &format!("{}metrics", dashboard.url())).await.1;
    let text = metrics().await;
    for line in [
        "spillgate_runs_planned 4",
        "spillgate_runs_done{outcome=\"succeeded\"} 1",
        "spillgate_infrastructure_failures_total{class=\"mismatch\"} 1",
        "spillgate_infrastructure_failures_total{class=\"launch_failed\"} 0",
        "spillgate_acceptance_in_progress 1",
        "clerum_workflow_step_spillover_persisted_total{tool=\"read_diff\"} 4",
        "clerum_workflow_step_spillover_reads_total{with_range=\"true\"} 4",
        "clerum_workflow_step_spillover_reads_total{with_range=\"false\"} 2",
        "clerum_spillover_persisted_total 0",
        "clerum_spillover_reads_total 0",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} in\n{text}");
    }
    let usage = "gen_ai_client_token_usage_count{gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"spillgate\",gen_ai_token_type=\"input\"} 2";
    assert!(text.contains(usage), "{text}");

    // Counted from what was appended by the one, from the whole folder by the other.
    let again = start(reports.path()).await;
    let restarted = get(&client, &format!("{}metrics", again.url())).await.1;
    let counts = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("spillgate_eta"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(counts(&restarted), counts(&metrics().await));
}

#[test]
fn every_metric_is_there_before_the_first_run() {
    let names = |text: &str| -> Vec<String> {
        let helps = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
        helps
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .collect()
    };
    let zero = spill_dash::zero_metrics();
    let reports = tempfile::tempdir().unwrap();
    finished(reports.path(), "20260102T030405.006Z-a");
    for name in [
        "spillgate_cells_planned",
        "spillgate_eta_seconds",
        "clerum_tool_output_bytes",
        "gen_ai_client_operation_duration_seconds",
        "spillgate_infrastructure_failures_total",
        "clerum_workflow_step_spillover_reads_total",
    ] {
        assert!(
            names(&zero).iter().any(|known| known == name),
            "{name} in\n{zero}"
        );
    }
    let whole = spill_dash::folder_metrics(&reports.path().join("20260102T030405.006Z-a"));
    assert_eq!(names(&whole), names(&zero));
    assert!(
        whole.contains("spillgate_runs_done{outcome=\"succeeded\"} 2"),
        "{whole}"
    );
    let step = spill_dash::textfile(&BTreeMap::from([("a\"b".to_owned(), 2)]), 3, 1);
    assert!(step.contains("clerum_workflow_step_spillover_persisted_total{tool=\"a\\\"b\"} 2"));
    assert!(step.contains("clerum_spillover_reads_total 0"));
}
