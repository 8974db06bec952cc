//! The published schemas are those of the code, and real run folders keep them.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::program::{accept, folder, repository, scenario_with, spillgate};

/// Set to rewrite docs/schemas from the code.
const UPDATE: &str = "UPDATE_SCHEMAS";

fn schemas() -> Vec<(&'static str, String)> {
    let mut schemas = spill_record::record_schemas().to_vec();
    schemas.push(spill_verdict::verdict_schema());
    schemas.push(spill_verdict::sweep_schema());
    schemas.push(spill_report::event_schema());
    schemas.extend(spill_record::replay_schemas());
    schemas.push(spill_verdict::replay_summary_schema());
    schemas
}

pub(crate) fn validator(name: &str) -> Validator {
    let path = repository().join("docs/schemas").join(name);
    let schema = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

/// Every complaint about `value`, a line each.
pub(crate) fn complaints(validator: &Validator, value: &Value) -> String {
    let lines: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    lines.join("\n")
}

#[test]
fn the_published_schemas_are_those_of_the_code() {
    let folder = repository().join("docs/schemas");
    let names: Vec<&str> = schemas().iter().map(|(name, _)| *name).collect();
    for (name, text) in schemas() {
        let path = folder.join(name);
        if std::env::var_os(UPDATE).is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let published = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "docs/schemas/{name} is not what the code writes ({UPDATE}=1 rewrites it; a change that \
             older readers cannot take needs a new schema version)"
        );
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{name} is no schema");
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            names.contains(&name.as_str()),
            "docs/schemas/{name} is of nothing"
        );
    }
}

#[test]
fn a_run_folder_keeps_the_published_schemas() {
    let folder = folder();
    accept(
        folder.path(),
        "document",
        "handbook",
        &["--executions", "1"],
    );
    let latest = folder.path().join("reports/latest");
    let files = [
        ("manifest.json", "manifest.schema.json"),
        ("verdict.json", "verdict.schema.json"),
        ("runs.jsonl", "run.schema.json"),
        ("sensitivity.jsonl", "run.schema.json"),
        ("calls.jsonl", "call.schema.json"),
        ("executions.jsonl", "executions.schema.json"),
    ];
    for (file, schema) in files {
        let validator = validator(schema);
        let text = fs::read_to_string(latest.join(file)).unwrap();
        let values: Vec<Value> = if file.ends_with(".jsonl") {
            text.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        } else {
            vec![serde_json::from_str(&text).unwrap()]
        };
        assert!(!values.is_empty(), "{file} has no line");
        for value in &values {
            assert_eq!(complaints(&validator, value), "", "{file}");
        }
        check_refusals(file, &validator, &values[0]);
    }
}

#[test]
fn every_event_keeps_the_published_schema() {
    let folder = folder();
    let scenario = scenario_with(folder.path(), "review", "small");
    let scenario = scenario.to_string_lossy();
    let arguments = ["accept", "--json", "--stage", "quick", "--scenario"];
    let said = spillgate(folder.path(), &[&arguments[..], &[&*scenario]].concat());
    assert_eq!(said.code, Some(4), "{}", said.stderr);
    assert_eq!(said.stderr, "", "words where events are asked for");
    let refused = spillgate(
        folder.path(),
        &["accept", "--json", "--scenario", "none.toml"],
    );
    assert_eq!(refused.code, Some(2));
    let validator = validator("event.schema.json");
    let mut kinds = Vec::new();
    for line in said.stdout.lines().chain(refused.stdout.lines()) {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(complaints(&validator, &event), "", "{line}");
        let kind = event["event"].as_str().unwrap().to_owned();
        if !kinds.contains(&kind) {
            check_refusals(&kind, &validator, &event);
            kinds.push(kind);
        }
    }
    assert_eq!(kinds, ["started", "run", "rules", "verdict", "failed"]);

    // The last line of an acceptance has what its folder has.
    let last: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
    let path = folder
        .path()
        .join(last["folder"].as_str().unwrap())
        .join("verdict.json");
    let verdict: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!(
        (&last["verdict"], &last["exit_code"]),
        (&verdict, &json!(4))
    );
    let quiet = [
        "accept",
        "--json",
        "--quiet",
        "--stage",
        "quick",
        "--scenario",
    ];
    let quiet = spillgate(folder.path(), &[&quiet[..], &[&*scenario]].concat());
    assert_eq!(quiet.stdout.lines().count(), 1);
}

/// The schema refuses the value with a field taken away or of another type.
pub(crate) fn check_refusals(file: &str, validator: &Validator, value: &Value) {
    for name in value.as_object().unwrap().keys() {
        let mut without = value.clone();
        without.as_object_mut().unwrap().remove(name);
        assert!(!validator.is_valid(&without), "{file} without {name}");
        // The subject's own report of its settings is any JSON.
        if name != "effective_settings" {
            let mut other = value.clone();
            other[name] = json!([[]]);
            assert!(!validator.is_valid(&other), "{file} with another {name}");
        }
    }
}
