//! Many executions of one step in one process: apart from each other, and what they take of memory.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use spill_mocks::{Journal, LlmServer, MockRun, Registry, ToolServer};
use spill_scenario::{
    CANARY_LEN, Profile, Scenario, ServedInput, built_in, canary_seed, is_canary,
};

use crate::program::{accept, folder, program, spillgate};

const EXECUTIONS: u32 = 8;

/// Mock servers in this process that know a run for each execution, each with canaries of its own.
struct Servers {
    _runtime: tokio::runtime::Runtime,
    registry: Arc<Registry>,
    served: Vec<Arc<ServedInput>>,
    llm: LlmServer,
    tools: ToolServer,
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn run_id(execution: usize) -> String {
    format!("own-{execution}")
}

fn review() -> Scenario {
    let all = built_in().unwrap().into_iter();
    all.into_iter()
        .find(|scenario| scenario.name == "review")
        .unwrap()
}

impl Servers {
    fn start(count: u32) -> Self {
        let scenario = review();
        let input = scenario.inputs.iter().find(|one| one.name == "medium");
        let input = input.unwrap();
        let registry = Arc::new(Registry::new(Arc::default()));
        let served: Vec<Arc<ServedInput>> = (1..=u64::from(count))
            .map(|number| {
                let seed = canary_seed(number, &scenario.name, &input.name);
                Arc::new(ServedInput::new(input, seed))
            })
            .collect();
        for (served, number) in served.iter().zip(1..) {
            registry.register(MockRun {
                run_id: run_id(number),
                recipe: scenario.recipe,
                served: served.clone(),
                seed: 1,
                scenario: scenario.name.clone(),
                model: Arc::new(scenario.model.clone()),
                profile: Profile::Selective,
                faults: Arc::new([]),
            });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let llm = runtime.block_on(LlmServer::start(any_port(), registry.clone()));
        let tools = runtime.block_on(ToolServer::start(any_port(), registry.clone()));
        Self {
            _runtime: runtime,
            registry,
            served,
            llm: llm.unwrap(),
            tools: tools.unwrap(),
        }
    }

    fn job(&self, folder: &Path) {
        let scenario = review();
        let job = json!({
            "stepId": "review", "model": "simulated-1", "system": scenario.system,
            "prompt": scenario.prompt, "llmUrl": self.llm.base_url("own-{execution}"),
            "mcpUrl": self.tools.url("own-{execution}"), "apiKey": "own-{execution}",
            "iterationLimit": scenario.limits.iteration_limit, "stepTimeoutMs": 120_000,
        });
        fs::write(folder.join("job.json"), job.to_string()).unwrap();
    }

    fn journals(&self) -> Vec<Journal> {
        let numbers = 1..=self.served.len();
        numbers
            .map(|number| self.registry.finish(&run_id(number)))
            .collect()
    }
}

/// Tokens in `text` that only a canary looks like.
fn canaries(text: &str) -> BTreeSet<String> {
    let tokens = text.split(|c: char| !c.is_ascii_alphanumeric());
    tokens
        .filter(|token| token.len() == CANARY_LEN && is_canary(token))
        .map(str::to_owned)
        .collect()
}

/// The lines of `step --executions`: results by execution, and the last line.
fn lines(stdout: &str) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.pop().unwrap();
    lines.sort_by_key(|line| line["execution"].as_u64());
    let numbers: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["execution"].as_u64())
        .collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    (
        lines
            .into_iter()
            .map(|mut line| line["result"].take())
            .collect(),
        last,
    )
}

/// The references that each execution was given, in order.
fn references(journal: &Journal) -> Vec<String> {
    let results = journal.llm.iter().flat_map(|call| &call.new_results);
    results
        .filter_map(|result| result.reference.clone())
        .collect()
}

/// Runs the executions under these variables; `equal` says whether they get equal references.
fn check(variables: &[(&str, &str)], equal: bool) {
    let folder = folder();
    let servers = Servers::start(EXECUTIONS);
    servers.job(folder.path());
    let state = folder.path().join("state");
    let output = program()
        .args(["step", "--job", "job.json", "--metrics-file", "step.prom"])
        .args(["--executions", &EXECUTIONS.to_string()])
        .envs(variables.iter().copied())
        .env("SPILLGATE_STORE_DIR", &state)
        .env("SPILLGATE_LOG", "trace")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    let (results, last) = lines(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(results.len(), EXECUTIONS as usize);
    assert_eq!(last["executions"], EXECUTIONS);
    let memory = |name: &str| last["memory"][name].as_u64().unwrap();
    assert!(memory("peakBytes") >= memory("beforeBytes"));
    assert!(memory("peakBytes") >= memory("afterBytes"));

    let own: Vec<BTreeSet<String>> = servers
        .served
        .iter()
        .map(|served| served.texts().flat_map(|text| canaries(text)).collect())
        .collect();
    for (number, (result, own)) in results.iter().zip(&own).enumerate() {
        assert_eq!(
            result["endReason"], "answered",
            "{number}: {}",
            result["error"]
        );
        assert!(result["spill"]["persisted"].as_u64() > Some(0), "{number}");
        assert!(result["spill"]["reads"].as_u64() > Some(0), "{number}");
        let seen = canaries(&result.to_string());
        assert!(!seen.is_empty(), "{number} has content");
        assert!(seen.is_subset(own), "{number} holds results of another");
    }
    assert_eq!(canaries(&log), BTreeSet::new());
    // Every line of an execution names it.
    for number in 1..=EXECUTIONS {
        let named = format!("execution{{number={number}}}: ");
        assert!(log.contains(&named), "{named}: {log}");
    }
    let of_a_step = log.lines().filter(|line| line.contains("call="));
    assert!(of_a_step.clone().count() > 0, "{log}");
    assert!(
        of_a_step
            .clone()
            .all(|line| line.contains("execution{number=")),
        "{log}"
    );

    let journals = servers.journals();
    let given: Vec<Vec<String>> = journals.iter().map(references).collect();
    let distinct: BTreeSet<&Vec<String>> = given.iter().collect();
    let wanted = if equal { 1 } else { EXECUTIONS as usize };
    assert_eq!(distinct.len(), wanted, "{given:?}");
    for journal in &journals {
        assert_eq!(journal.unscripted, [""; 0]);
    }
    let left = fs::read_dir(&state).map_or(0, |entries| {
        let names = entries.map(|entry| entry.unwrap().file_name());
        names
            .filter(|name| {
                name.to_string_lossy()
                    .starts_with(|c: char| c.is_ascii_hexdigit())
            })
            .count()
    });
    assert_eq!(left, 0, "nothing is kept");
    let stored = fs::read_to_string(folder.path().join("step.prom")).unwrap();
    let persisted: u64 = results
        .iter()
        .filter_map(|result| result["spill"]["persisted"].as_u64())
        .sum();
    let counted: f64 = stored
        .lines()
        .filter(|line| line.contains("persisted") && !line.starts_with('#'))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    assert!((counted - persisted as f64).abs() < 0.5, "{stored}");
}

#[test]
fn executions_have_equal_references_and_no_result_crosses() {
    check(
        &[("CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD", "32768")],
        true,
    );
}

#[test]
fn executions_under_a_policy_over_memory_draw_equal_names_from_a_seed() {
    check(
        &[
            ("SPILLGATE_POLICY", "envelope"),
            ("SPILLGATE_POLICY_OPTIONS", r#"{"maxPayloadBytes":32768}"#),
            ("SPILLGATE_STORE_SEED", "7"),
        ],
        true,
    );
}

#[test]
fn executions_that_share_a_directory_have_names_of_their_own() {
    check(
        &[
            ("SPILLGATE_POLICY", "inline-cap"),
            ("SPILLGATE_POLICY_OPTIONS", r#"{"maxInlineBytes":32768}"#),
            ("SPILLGATE_STORE", "file"),
            ("SPILLGATE_STORE_SEED", "7"),
        ],
        false,
    );
}

/// Accepts the small document with executions measured, under these further flags.
fn accepted(flags: &[&str]) -> (tempfile::TempDir, crate::program::Said) {
    let folder = folder();
    let said = accept(folder.path(), "document", "handbook", flags);
    (folder, said)
}

#[test]
fn an_acceptance_tells_what_executions_take_of_one_host() {
    let (folder, said) = accepted(&["--executions", "1,3"]);
    assert!(
        matches!(said.code, Some(0 | 3 | 4)),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let latest = folder.path().join("reports/latest");
    let lines = fs::read_to_string(latest.join("executions.jsonl")).unwrap();
    let records: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let cells: Vec<(u64, &str)> = records
        .iter()
        .map(|one| {
            (
                one["executions"].as_u64().unwrap(),
                one["configuration"].as_str().unwrap(),
            )
        })
        .collect();
    let names = ["off", "128KiB", "32KiB"];
    let wanted: Vec<(u64, &str)> = [1, 3]
        .into_iter()
        .flat_map(|count| names.map(|name| (count, name)))
        .collect();
    assert_eq!(cells, wanted);
    for one in &records {
        assert_eq!(one["error"], Value::Null);
        assert_eq!(one["answered"], one["executions"]);
        assert_eq!(one["files_written"], 0, "its folders were searched");
        assert_eq!(one["leak_findings"], json!([]));
        assert_eq!(one["memory_limit_bytes"], 2_147_483_648_u64);
        assert!(one["peak_bytes"].as_u64() > Some(0));
        let stores = one["configuration"] == "32KiB";
        assert_eq!(one["results_persisted"].as_u64() > Some(0), stores);
        let budget = if one["configuration"] == "off" {
            Value::Null
        } else {
            json!(16_777_216)
        };
        assert_eq!(one["budget_bytes"], budget);
    }
    let report = fs::read_to_string(latest.join("report.html")).unwrap();
    assert!(report.contains("Memory on one host"));
    assert!(report.contains("48.0 MiB"), "3 × 16 MiB");
    assert!(report.contains("2048.0 MiB"));
    let said = spillgate(folder.path(), &["judge", "reports/latest"]);
    assert!(said.code.is_some_and(|code| code < 5));
    assert!(report == fs::read_to_string(latest.join("report.html")).unwrap());
}

#[test]
fn budgets_above_the_memory_limit_are_a_warning_and_no_exit() {
    let (folder, said) = accepted(&["--executions", "3", "--memory-limit", "40MiB"]);
    let (_other, plain) = accepted(&[]);
    assert_eq!(said.code, plain.code, "{}", said.stdout);
    let verdict = crate::program::verdict(folder.path());
    let warnings = verdict["warnings"].to_string();
    assert!(
        warnings.contains("may store 50,331,648 bytes") || warnings.contains("took"),
        "{warnings}"
    );
    assert!(warnings.contains("41,943,040"), "{warnings}");
    let report = fs::read_to_string(folder.path().join("reports/latest/report.html")).unwrap();
    assert!(report.contains("the budgets exceed it") || report.contains("the peak exceeds it"));
}

#[test]
fn executions_are_measured_of_the_built_in_subject_alone() {
    let folder = folder();
    let check = |flags: &[&str], words: &str| {
        let said = spillgate(folder.path(), &[&["accept", "--quiet"], flags].concat());
        assert_eq!(said.code, Some(2), "{flags:?}");
        assert!(said.stderr.contains(words), "{}", said.stderr);
    };
    check(&["--executions", "0"], "a whole number from 1");
    check(&["--executions", "1,,2"], "a whole number from 1");
    check(
        &["--executions", "2", "--memory-limit", "0"],
        "is no size from 1",
    );
    check(&["--memory-limit", "1GiB"], "--executions");
    check(&["--executions", "2", "--shard", "1/2"], "--shard");
    check(
        &["--executions", "2", "--subject", "/bin/true"],
        "built-in subject",
    );
    assert!(!folder.path().join("reports").exists());
}

#[test]
fn a_number_of_executions_is_at_least_one() {
    let folder = folder();
    for number in ["0", "-1", "1.5", "", "4294967296", "many"] {
        let argument = format!("--executions={number}");
        let said = spillgate(folder.path(), &["step", "--job", "job.json", &argument]);
        assert_eq!(said.code, Some(2), "{number}");
        assert!(
            said.stderr.contains("a whole number from 1 to 4294967295"),
            "{}",
            said.stderr
        );
    }
    let said = spillgate(folder.path(), &["accept", "--executions", "8,99999999999"]);
    assert_eq!(said.code, Some(2));
    let words = "a whole number from 1 to 4294967295";
    assert!(said.stderr.contains(words), "{}", said.stderr);
    let said = spillgate(
        folder.path(),
        &["step", "--print-settings", "--executions", "2"],
    );
    assert_eq!(said.code, Some(2));
}

#[test]
fn executions_of_a_server_that_is_gone_end_on_their_own() {
    let folder = folder();
    let job = json!({
        "stepId": "s", "model": "m", "prompt": "p", "maxRetries": 0,
        "llmUrl": "http://127.0.0.1:1/v1", "mcpUrl": "http://127.0.0.1:1/mcp",
    });
    fs::write(folder.path().join("job.json"), job.to_string()).unwrap();
    let said = spillgate(
        folder.path(),
        &["step", "--job", "job.json", "--executions", "3"],
    );
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let (results, last) = lines(&said.stdout);
    let reasons: Vec<&Value> = results.iter().map(|result| &result["endReason"]).collect();
    assert_eq!(reasons, ["tool_error"; 3]);
    assert_eq!(last["executions"], 3);
}
