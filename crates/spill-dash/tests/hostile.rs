//! Texts from outside change no page and no metric: each kind of hostile text, in every place of a
//! folder.
#![expect(
    clippy::unwrap_used,
    reason = "a test whose folder or server fails has failed"
)]

#[path = "../../spill-verdict/tests/it/builder.rs"]
#[expect(dead_code, reason = "other tests alter cases in further ways")]
mod builder;
#[path = "../../spill-report/tests/it/everywhere.rs"]
mod everywhere;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use reqwest::Client;
use spill_dash::{Dashboard, Options};
use spill_record::{CallRecord, ContextBytes, PromptTokens, RunFolder, RunRecord, SCHEMA, Stage};

use crate::builder::{Case, exhaust};
use crate::everywhere::{KINDS, bad, everywhere, skeleton};

const ID: &str = "20260102T030405.006Z-a";
/// Names of labels that a series may have.
const LABELS: [&str; 12] = [
    "candidate",
    "class",
    "configuration",
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_token_type",
    "le",
    "outcome",
    "rule",
    "state",
    "tool",
    "with_range",
];

/// What the dashboard and a scraper are shown of one folder.
struct Shown {
    pages: Vec<(&'static str, String)>,
    board: serde_json::Value,
    metrics: String,
    textfile: String,
}

fn call(run: &RunRecord, text: &str) -> CallRecord {
    CallRecord {
        schema: SCHEMA,
        run_id: run.run_id.clone(),
        call: 0,
        iteration: 1,
        status: 200,
        tokens: Some(PromptTokens {
            uncached_input_tokens: run.input_tokens.unwrap(),
            ..PromptTokens::default()
        }),
        request_bytes: 1,
        request_digest: text.to_owned(),
        tools_digest: text.to_owned(),
        context: ContextBytes::default(),
        new_results: Vec::new(),
        calls_tools: vec![text.to_owned()],
        finish_reason: text.to_owned(),
        model_time_ms: None,
    }
}

/// A folder whose texts are all of one kind: finished, or still written.
async fn shown(text: &str, finished: bool) -> Shown {
    let reports = tempfile::tempdir().unwrap();
    let case = Case::with_repetitions(Stage::Quick, 2)
        .cell("128KiB", "large", exhaust)
        .every(|run| {
            run.persisted_by_tool.insert("read_diff".to_owned(), 2);
            run.persisted_by_tool.insert("list_files".to_owned(), 1);
            run.llm_calls = Some(1);
            run.error = Some("it went wrong".to_owned());
        });
    let mut set = everywhere(&case.set, text);
    // The folder's name is the dashboard's own; the rest is not.
    set.manifest.acceptance_id = ID.to_owned();
    let set_of_folder = set.manifest.sealed();
    let mut folder = RunFolder::create(reports.path(), &set_of_folder).unwrap();
    for run in &set.runs {
        folder.append(run, &[call(run, text)]).unwrap();
    }
    let path = folder.path().to_owned();
    let writer = (!finished).then_some(folder);
    if finished {
        judged(&path);
    }
    let shown = look(reports.path(), &set.runs[5], finished).await;
    drop(writer);
    shown
}

fn judged(path: &Path) {
    let set = RunFolder::read(path).unwrap();
    let verdict = spill_verdict::judge(&set);
    let files = spill_report::render(&set, &verdict, Default::default());
    RunFolder::write_derived(path, "verdict.json", files.verdict_json.as_bytes()).unwrap();
}

async fn look(reports: &Path, run: &RunRecord, finished: bool) -> Shown {
    let options = Options {
        reports: reports.to_owned(),
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
    };
    let dashboard = Dashboard::start(options).await.unwrap();
    let client = Client::new();
    let get = async |place: &[&str]| -> String {
        let mut url = reqwest::Url::parse(&dashboard.url()).unwrap();
        url.path_segments_mut()
            .unwrap()
            .pop_if_empty()
            .extend(place);
        let answer = client.get(url).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{place:?}: {status} {text}");
        text
    };
    let mut pages = vec![("board", get(&[""]).await)];
    if finished {
        pages.push(("report", get(&["runs", ID, ""]).await));
        pages.push(("runs", get(&["runs", ID, "runs"]).await));
        pages.push(("run", get(&["runs", ID, "run", &run.run_id]).await));
    }
    Shown {
        pages,
        board: serde_json::from_str(&get(&["api", "board"]).await).unwrap(),
        metrics: get(&["metrics"]).await,
        textfile: spill_dash::textfile(&run.persisted_by_tool, 3, 1),
    }
}

/// The series of an exposition with their labels; panics at what a scraper would not take.
fn series(text: &str) -> Vec<(String, BTreeMap<String, String>)> {
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = match line.split_once('{') {
            Some((name, rest)) => (name, labels(rest)),
            None => {
                let (name, value) = line.split_once(' ').unwrap();
                value.parse::<f64>().unwrap();
                (name, BTreeMap::new())
            }
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        assert!(name.chars().all(is_name), "{line}");
        all.push((name.to_owned(), labels));
    }
    all
}

/// Labels and value behind an opening brace.
fn labels(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    loop {
        let (name, behind) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut chars = behind.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => match chars.next().unwrap().1 {
                    'n' => value.push('\n'),
                    c @ ('"' | '\\') => value.push(c),
                    c => panic!("\\{c} is no escape: {text}"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(found.insert(name.to_owned(), value).is_none(), "{text}");
        rest = &behind[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => break,
        }
    }
    rest.strip_prefix("} ").unwrap().parse::<f64>().unwrap();
    found
}

fn check_metrics(kind: &str, text: &str, harmless: &str) {
    let (found, expected) = (series(text), series(harmless));
    let names = |all: &[(String, _)]| -> Vec<String> {
        let mut names: Vec<_> = all.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&found), names(&expected), "{kind} changed the series");
    let closed: BTreeSet<&str> = LABELS.into();
    for (name, labels) in &found {
        for (label, value) in labels {
            assert!(
                closed.contains(&**label),
                "{kind}: {name} has a label {label}"
            );
            assert_eq!(bad(value), None, "{kind}: {label} of {name}");
            let outside = matches!(&**label, "candidate" | "configuration" | "tool");
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
            assert!(
                outside || value.chars().all(plain),
                "{kind}: {label}={value:?}"
            );
        }
    }
    assert_eq!(bad(text), None, "{kind}");
}

async fn each_kind(finished: bool) {
    let expected = shown("harmless-", finished).await;
    let keys = |board: &serde_json::Value| board["cards"][0].as_object().unwrap().len();
    for (kind, text) in KINDS {
        let shown = shown(text, finished).await;
        for ((page, html), (_, harmless)) in shown.pages.iter().zip(&expected.pages) {
            assert!(
                skeleton(html) == skeleton(harmless),
                "{kind} changed the page {page}"
            );
            assert_eq!(bad(html), None, "{kind} in {page}");
            assert!(
                !html.contains("60481729"),
                "{kind} in {page} was run as a template"
            );
            assert!(!html.contains("href=\"javascript:"), "{kind} in {page}");
        }
        assert_eq!(keys(&shown.board), keys(&expected.board), "{kind}");
        check_metrics(kind, &shown.metrics, &expected.metrics);
        check_metrics(kind, &shown.textfile, &expected.textfile);
    }
}

#[tokio::test]
async fn texts_from_outside_change_nothing_of_a_finished_acceptance() {
    each_kind(true).await;
}

#[tokio::test]
async fn texts_from_outside_change_nothing_of_a_running_one() {
    each_kind(false).await;
}

#[tokio::test]
async fn a_long_text_is_cut() {
    let long = shown(&"x".repeat(20_000), true).await;
    for (page, html) in &long.pages {
        assert!(html.len() < 1_000_000, "{page} has {} bytes", html.len());
    }
    assert!(long.metrics.len() < 200_000, "{} bytes", long.metrics.len());
    series(&long.metrics);
}
