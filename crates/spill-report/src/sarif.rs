use serde_json::{Value, json};
use spill_record::{RunRecord, RunSet, digest_parts, runs_csv};
use spill_verdict::{Rule, counted, plain};

/// Results that one file lists at most: code scanning shows no more of one upload.
const RESULTS: usize = 5_000;

/// What to do about a result.
const HELP: &str = "Find the run by its id in report.html: its record names the folder or the log in \
which something was found. Keep the subject from writing result content there, or from leaving files \
outside its declared outputs.";

/// The file that holds the records of runs outside the plan.
const SENSITIVITY: &str = "sensitivity.jsonl";

/// `leaks.sarif`: SARIF 2.1.0 with one result for each place where a run leaked; `None` when none
/// did. It says what kind of content was found and where, never the content.
pub(crate) fn leaks(set: &RunSet) -> Option<String> {
    let lines = csv_lines(&runs_csv(set));
    let planned = set.runs.iter().zip(lines).flat_map(|(run, line)| {
        findings(run)
            .into_iter()
            .map(move |words| result(run, "runs.csv", line, &words))
    });
    let extra = set.sensitivity.iter().zip(1_u64..).flat_map(|(run, line)| {
        findings(run)
            .into_iter()
            .map(move |words| result(run, SENSITIVITY, line, &words))
    });
    let results: Vec<Value> = planned.chain(extra).take(RESULTS).collect();
    if results.is_empty() {
        return None;
    }
    let text = serde_json::to_string_pretty(&log(set, &results));
    Some(text.expect("values are JSON already") + "\n")
}

/// The line of each record in `runs.csv`; a cell may hold line breaks.
fn csv_lines(csv: &str) -> Vec<u64> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    reader
        .records()
        .map(|record| {
            let record = record.expect("our own table is well formed");
            record.position().map_or(1, csv::Position::line)
        })
        .collect()
}

fn findings(run: &RunRecord) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if let Some(files @ 1..) = run.files_written {
        let files = counted(files, "file");
        found.push(format!("{files} written outside the declared outputs"));
    }
    found.extend(run.leak_findings.iter().map(|finding| plain(finding)));
    found
}

fn result(run: &RunRecord, file: &str, line: u64, words: &str) -> Value {
    let message = format!(
        "Run {} under {} on {}/{}: {words}.",
        plain(&run.run_id),
        plain(&run.configuration),
        plain(&run.scenario),
        plain(&run.input)
    );
    json!({
        "ruleId": Rule::NothingLeaks.as_str(),
        "ruleIndex": 0,
        "level": "error",
        "message": { "text": message },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": file },
                "region": { "startLine": line },
            },
            "logicalLocations": [{ "name": plain(&run.run_id), "kind": "run" }],
        }],
        "partialFingerprints": {
            "spillgateFinding/v1": digest_parts(&[&run.run_id, words]),
        },
    })
}

fn log(set: &RunSet, results: &[Value]) -> Value {
    let rule = Rule::NothingLeaks;
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "spillgate",
                "version": plain(&set.manifest.versions.spillgate),
                "rules": [{
                    "id": rule.as_str(),
                    "name": "NothingLeaks",
                    "shortDescription": { "text": "Result content left the prompt." },
                    "fullDescription": { "text": rule.demands() },
                    "help": { "text": HELP },
                    "defaultConfiguration": { "level": "error" },
                }],
            }},
            "automationDetails": { "id": format!("spillgate/{}", plain(&set.manifest.plan_hash)) },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}
