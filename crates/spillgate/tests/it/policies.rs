//! The three policies side by side: settings, columns, reading back, stores, composite tools.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spill_record::MEASURED_COLUMNS;

use crate::program::{
    Mock, Row, accept, folder, program, repository, rows, scenario_with, spillgate,
};

const POLICIES: [(&str, &str, &str); 4] = [
    ("workflow-step", "workflow-step", "memory"),
    ("inline-cap", "inline-cap", "memory"),
    ("envelope", "envelope", "memory"),
    ("inline-cap-file", "inline-cap", "file"),
];

fn row<'a>(rows: &'a [Row], configuration: &str) -> &'a Row {
    let found = rows
        .iter()
        .find(|row| row["configuration"] == configuration);
    found.unwrap_or_else(|| panic!("no run of {configuration}"))
}

fn number(row: &Row, column: &str) -> u64 {
    let cell = &row[column];
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} is {cell:?}"))
}

fn unmeasured(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row.retain(|name, _| !MEASURED_COLUMNS.contains(&name.as_str()));
    }
    rows
}

#[test]
fn every_scenario_file_of_the_repository_gives_a_plan() {
    let root = repository();
    for file in [
        "review",
        "document",
        "policies",
        "policies-document",
        "records",
        "habits",
        "faults/hung",
        "faults/loopy",
        "faults/seeded",
        "faults/tool-sizes",
    ] {
        let path = format!("scenarios/{file}.toml");
        let said = spillgate(&root, &["list", "--scenario", &path]);
        assert_eq!(said.code, Some(0), "{path}: {}", said.stderr);
    }
}

#[test]
fn three_policies_store_and_read_back_on_one_input_in_one_report() {
    let folder = folder();
    let said = accept(folder.path(), "policies", "medium", &["--reps", "1"]);
    assert_eq!(said.code, Some(3), "{}{}", said.stdout, said.stderr);
    let latest = folder.path().join("reports/latest");
    let first = rows(&latest.join("runs.csv"));
    assert_ne!(
        row(&first, "off")["profile"],
        "hasty",
        "nothing would be read"
    );
    for (configuration, policy, store) in POLICIES {
        let run = row(&first, configuration);
        assert_eq!((&*run["policy"], &*run["store"]), (policy, store));
        assert_eq!(number(run, "threshold_bytes"), 32_768, "{configuration}");
        assert_eq!(run["outcome"], "succeeded", "{}", run["error"]);
        assert_eq!(run["quality"], "1", "{configuration}");
        for counted in [
            "results_persisted",
            "reads",
            "read_bytes",
            "results_read_back",
        ] {
            assert!(number(run, counted) > 0, "{configuration}: {counted}");
        }
        // The read tool joins the list once, behind the first stored result.
        assert!(
            number(run, "cached_after_read_tool_tokens") > 0,
            "{configuration}"
        );
        assert_eq!(number(run, "files_written"), 0, "{configuration}");
    }
    assert_eq!(row(&first, "workflow-step")["preview_share"], "");
    assert_eq!(row(&first, "envelope")["preview_share"], "1");
    assert_eq!(
        number(row(&first, "off"), "cached_after_read_tool_tokens"),
        0
    );

    // A state folder is listed where a configuration declares one, and empty elsewhere.
    for run in &first {
        let declares = run["configuration"] == "inline-cap-file";
        let name = &run["configuration"];
        assert_eq!(number(run, "state_files") > 0, declares, "{name}");
        assert_eq!(number(run, "state_bytes") > 0, declares, "{name}");
    }
    let report = fs::read_to_string(latest.join("report.html")).unwrap();
    for (configuration, ..) in POLICIES {
        assert!(report.contains(configuration), "{configuration}");
    }

    // Names of stored results are drawn from the seed, also those of files: prompts repeat.
    let again = ["--reps", "1", "--metrics-file", "spillgate.prom"];
    accept(folder.path(), "policies", "medium", &again);
    let second = rows(&folder.path().join("reports/latest/runs.csv"));
    assert_eq!(unmeasured(&first), unmeasured(&second));
    let metrics = fs::read_to_string(folder.path().join("spillgate.prom")).unwrap();
    for line in [
        "spillgate_exit_code 3",
        "spillgate_runs_done{outcome=\"succeeded\"} 5",
    ] {
        assert!(
            metrics.lines().any(|other| other == line),
            "{line} in\n{metrics}"
        );
    }
}

/// The review with a model that asks for all diffs by one composite call.
fn composite_scenario(folder: &Path) -> String {
    let path = scenario_with(folder, "policies", "medium");
    let text = fs::read_to_string(&path).unwrap();
    let composite = text.replace("\n[model]\n", "\n[model]\ncomposite = true\n");
    assert_ne!(composite, text);
    fs::write(&path, composite).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn a_composite_tool_gets_its_own_calls_whole_and_its_result_is_bounded() {
    let folder = folder();
    let scenario = composite_scenario(folder.path());
    let arguments = ["accept", "--quiet", "--reps", "1", "--scenario", &scenario];
    let said = spillgate(folder.path(), &arguments);
    assert_eq!(said.code, Some(3), "{}{}", said.stdout, said.stderr);
    let runs = rows(&folder.path().join("reports/latest/runs.csv"));
    for (configuration, ..) in POLICIES {
        let run = row(&runs, configuration);
        assert_eq!(run["outcome"], "succeeded", "{}", run["error"]);
        let stored: Value = serde_json::from_str(&run["persisted_by_tool"]).unwrap();
        assert_eq!(stored["read_diffs"], 1, "{configuration}: {stored}");
        assert_eq!(
            stored["read_diff"],
            Value::Null,
            "{configuration}: {stored}"
        );
    }
}

#[test]
fn the_log_of_a_composite_call_is_bounded_under_inline_cap_and_whole_elsewhere() {
    let folder = folder();
    let scenario = composite_scenario(folder.path());
    let mock = Mock::start(&["--scenario", &scenario]);
    let job = mock.job(folder.path(), 60_000);
    let metrics = folder.path().join("step.prom");
    let logged = |policy: &str, options: &str| -> Vec<usize> {
        let output = program()
            .arg("step")
            .arg("--job")
            .arg(&job)
            .env("SPILLGATE_POLICY", policy)
            .env("SPILLGATE_POLICY_OPTIONS", options)
            .env("SPILLGATE_STORE_SEED", "7")
            .arg("--metrics-file")
            .arg(&metrics)
            .output()
            .unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let calls = result["toolsCalled"].as_array().unwrap();
        let composite = calls.iter().find(|call| call["name"] == "read_diffs");
        let sub_calls = composite.unwrap()["subCalls"].as_array().unwrap();
        let result = |call: &Value| call["result"].as_str().unwrap().len();
        sub_calls.iter().map(result).collect()
    };
    let whole = logged("workflow-step", "{}");
    let bounded = logged("inline-cap", r#"{"maxInlineBytes":32768}"#);
    let counted = fs::read_to_string(&metrics).unwrap();
    let stored = "clerum_workflow_step_spillover_persisted_total{tool=\"read_diffs\"} 1";
    assert!(counted.contains(stored), "{counted}");
    assert!(
        counted.contains("clerum_spillover_persisted_total 0"),
        "{counted}"
    );
    assert_eq!(whole, logged("envelope", "{}"));
    assert_eq!(whole.len(), bounded.len());
    assert!(whole.iter().any(|size| *size > 32_768), "{whole:?}");
    for (whole, bounded) in whole.iter().zip(&bounded) {
        assert!(*bounded <= 32_768);
        assert_eq!(*whole <= 32_768, whole == bounded, "{whole} and {bounded}");
    }
}

#[test]
fn a_place_that_is_no_regular_file_is_refused_before_anything_is_run() {
    let folder = folder();
    std::os::unix::fs::symlink("elsewhere", folder.path().join("link")).unwrap();
    for place in ["/dev/null", ".", "link", "missing/figures.prom"] {
        for verb in [&["accept", "--quiet"][..], &["step", "--job", "job.json"]] {
            let mut arguments = verb.to_vec();
            arguments.extend(["--metrics-file", place]);
            let said = spillgate(folder.path(), &arguments);
            assert_eq!(said.code, Some(2), "{place}: {}", said.stderr);
            assert!(said.stderr.contains("metrics file"), "{}", said.stderr);
        }
    }
    assert!(!folder.path().join("reports").exists());
    fs::write(folder.path().join("records"), "{}\n").unwrap();
    let said = spillgate(folder.path(), &["compare", "a", "b", "--out", "records"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("no page"), "{}", said.stderr);
}

#[test]
fn a_setting_that_the_subject_refuses_is_named_in_its_own_words() {
    let folder = folder();
    let path = scenario_with(folder.path(), "policies", "small");
    let text = fs::read_to_string(&path).unwrap();
    let typo = text.replace(
        "policy = \"envelope\"\n",
        "policy = \"envelope\"\noptions = { previewItem = 3 }\n",
    );
    assert_ne!(typo, text);
    fs::write(&path, typo).unwrap();
    let scenario = path.to_string_lossy();
    let said = spillgate(
        folder.path(),
        &["accept", "--quiet", "--scenario", &scenario],
    );
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    for words in ["configuration envelope", "previewItem"] {
        assert!(said.stderr.contains(words), "{words} in {}", said.stderr);
    }
}
