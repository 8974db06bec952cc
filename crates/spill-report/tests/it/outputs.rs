//! Every output of a folder whose texts are of one kind.

use std::sync::LazyLock;

use spill_record::{Blessing, CallRecord, ExecutionsRecord, RunRecord, RunSet, SCHEMA, runs_csv};
use spill_report::{
    Baseline, Context, Event, Pace, SubjectRuns, SubjectsRendered, compare, github_annotations,
    github_outputs, render, run_page, subjects, terminal_money,
};
use spill_verdict::{Verdict, judge, terminal_table};

use crate::builder::{Case, exhaust};
use crate::calls::{NAMES, all_calls};
use crate::everywhere::{KINDS, everywhere, spoiled};
use crate::money;
use crate::subjects::{largest, of_subject};

/// A case that fills every output: a broken rule, leaks, a harness failure, tools, state files, prices.
pub(crate) fn case() -> RunSet {
    let leak = |run: &mut RunRecord| {
        run.files_written = Some(1);
        run.leak_findings = vec!["a canary in a file".to_owned(), "another".to_owned()];
    };
    let mut set = Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "small", 1, leak)
        .one("off", "small", 2, crate::builder::lose)
        .every(|run| {
            run.persisted_by_tool.insert("read_diff".to_owned(), 2);
            run.missed_facts = vec!["f1".to_owned(), "f2".to_owned()];
            run.error = Some("it went wrong".to_owned());
        })
        .set(|set| {
            set.prices = money::prices(money::TABLE);
            set.manifest.commit = Some("c0ffee".to_owned());
            for input in &mut set.manifest.plan.inputs {
                input.notes = vec!["left out".to_owned()];
            }
            // The subject's own words, numbers included.
            for configuration in &mut set.manifest.plan.configurations {
                configuration.effective_settings = Some(serde_json::json!({
                    "policy": "p", "store": "s", "threshold_bytes": "t", "preview_share": ["u"],
                }));
            }
        })
        .set;
    set.sensitivity = set.runs[..2].to_vec();
    set.executions = ["off", "128KiB"].map(executions).to_vec();
    set
}

/// 32 executions under a configuration, which take more than the host has.
fn executions(configuration: &str) -> ExecutionsRecord {
    ExecutionsRecord {
        schema: SCHEMA,
        scenario: "review".to_owned(),
        input: "large".to_owned(),
        configuration: configuration.to_owned(),
        executions: 32,
        answered: 31,
        results_persisted: 64,
        budget_bytes: Some(16 << 20),
        memory_limit_bytes: 32 << 20,
        before_bytes: Some(10 << 20),
        before_anonymous_bytes: Some(1 << 20),
        peak_bytes: Some(40 << 20),
        after_bytes: Some(36 << 20),
        after_anonymous_bytes: Some(27 << 20),
        files_written: Some(0),
        leak_findings: Vec::new(),
        error: (configuration == "off").then(|| "it went wrong".to_owned()),
    }
}

/// Every output of one set, by name.
pub(crate) struct Outputs {
    pub(crate) verdict: Verdict,
    pub(crate) pages: Vec<(&'static str, String)>,
    pub(crate) tables: Vec<(&'static str, String)>,
    pub(crate) junit: String,
    pub(crate) summary: String,
    pub(crate) sarif: String,
    pub(crate) json: Vec<(&'static str, String)>,
    pub(crate) commands: Vec<String>,
    pub(crate) outputs: String,
    pub(crate) terminal: Vec<(&'static str, String)>,
}

fn calls_of(set: &RunSet, text: &str) -> Vec<CallRecord> {
    // Ids of the runs are spoiled already; the rest of a call is not.
    let calls = all_calls(set, &NAMES);
    let owners: Vec<String> = calls.iter().map(|call| call.run_id.clone()).collect();
    let mut calls = spoiled(&calls, &|_, old| format!("{text}{old}"));
    for (call, owner) in calls.iter_mut().zip(owners) {
        call.run_id = owner;
    }
    calls
}

fn outputs(text: &str) -> Outputs {
    let set = everywhere(&case(), text);
    let verdict = judge(&set);
    let calls = calls_of(&set, text);
    let mut kept = spill_report::Calls::of(&set, &verdict);
    let wanted = kept.wanted();
    for call in &calls {
        if wanted.contains(&call.run_id) {
            kept.take(call.clone());
        }
    }
    let mut other = set.clone();
    other.manifest.plan_hash = format!("{text}other");
    other.manifest.host.os = format!("{text}other");
    for run in &mut other.runs {
        run.input_tokens = run.input_tokens.map(|tokens| tokens * 2);
    }
    let blessing = Blessing {
        schema: spill_record::SCHEMA,
        acceptance_id: "id".to_owned(),
        reason: "reason".to_owned(),
        blessed_at: "then".to_owned(),
        commit: Some("commit".to_owned()),
        dirty: None,
        exit_code: 0,
        records_digest: "digest".to_owned(),
    };
    let baseline = Baseline {
        verdict: judge(&other),
        blessing: spoiled(&blessing, &|_, old| format!("{text}{old}")),
        set: other,
    };
    let files = render(
        &set,
        &verdict,
        Context {
            calls: Some(&kept),
            baseline: Some(&baseline),
        },
    );
    let run = &set.runs[7];
    let other = (&baseline.set, &baseline.verdict);
    let several = side_by_side(&set);
    let pace = Pace {
        done: 1,
        planned: 60,
        not_succeeded: 0,
        runs_per_second: None,
        eta_ms: None,
    };
    let rules = Event::Rules {
        schema: 1,
        provisional: true,
        candidates: spill_report::standings(&verdict.candidates),
    };
    let failed = Event::Failed {
        schema: 1,
        exit_code: 2,
        message: text.to_owned(),
    };
    let standing = spill_report::standings(&verdict.candidates);
    let standing: Vec<String> = standing.iter().map(spill_report::Standing::words).collect();
    Outputs {
        pages: vec![
            ("report.html", files.report_html),
            (
                "run page",
                run_page(&set, &calls, &run.run_id).expect("the run has a page"),
            ),
            ("compare.html", compare((&set, &verdict), other)),
            ("subjects.html", several.html),
        ],
        tables: vec![
            ("runs.csv", runs_csv(&set)),
            ("summary.csv", files.summary_csv),
            ("rules.csv", files.rules_csv),
            ("subjects.csv", several.csv),
        ],
        junit: files.junit_xml,
        summary: files.summary_md,
        sarif: files.leaks_sarif.expect("two runs leak"),
        json: vec![
            ("run event", Event::of_run(run, pace).line()),
            ("rules event", rules.line()),
            ("failed event", failed.line()),
            ("subjects", one_line(&several.json)),
        ],
        commands: github_annotations(&verdict),
        outputs: github_outputs(&verdict, &format!("reports/{text}/report.html")),
        terminal: vec![
            ("decision", verdict.decision_sentence().to_owned()),
            ("rules", terminal_table(&verdict)),
            ("costs", terminal_money(&set).expect("there are prices")),
            ("standing", standing.join("\n")),
            ("subjects", several.table),
        ],
        verdict,
    }
}

/// The subject of a folder beside another one.
pub(crate) fn side_by_side(set: &RunSet) -> SubjectsRendered {
    let name = format!("{}-other", set.manifest.subject);
    let mut other = of_subject(set, &name);
    other.runs.iter_mut().take(9).for_each(crate::builder::fail);
    let calls = [largest(set, false), largest(&other, true)];
    let runs = [(set, &calls[0]), (&other, &calls[1])];
    subjects(&runs.map(|(set, largest)| SubjectRuns { set, largest })).expect("they had the same")
}

/// JSON as the program prints it, on one line.
fn one_line(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
    spill_record::harmless_json(&value.to_string())
}

pub(crate) static HARMLESS: LazyLock<Outputs> = LazyLock::new(|| outputs("harmless-"));

/// Checks each kind, and says which one failed.
pub(crate) fn each_kind(check: impl Fn(&str, &Outputs)) {
    static ALL: LazyLock<Vec<Outputs>> =
        LazyLock::new(|| KINDS.iter().map(|(_, text)| outputs(text)).collect());
    for ((kind, _), outputs) in KINDS.iter().zip(ALL.iter()) {
        check(kind, outputs);
    }
}
