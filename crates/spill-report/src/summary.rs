use spill_record::RunSet;
use spill_verdict::{
    CandidateVerdict, Rule, RuleVerdict, State, Verdict, counted, deciding_number, grouped, plain,
};

use crate::background::provenance;
use crate::markdown::{Page, escape};
use crate::money;

/// Bytes that the summary has at most: GitHub refuses step summaries above 1 MiB.
pub const SUMMARY_LIMIT_BYTES: usize = 900_000;

/// `summary.md`: the verdict first, then what it rests on.
pub(crate) fn summary(set: &RunSet, verdict: &Verdict) -> String {
    let mut page = Page::new(SUMMARY_LIMIT_BYTES);
    head(&mut page, verdict);
    leaks(&mut page, verdict);
    for (title, items) in [
        ("Faults of the harness", &verdict.harness_errors),
        ("Why the runs do not cover the plan", &verdict.problems),
    ] {
        if !items.is_empty() {
            page.block(&format!("## {title}"));
            page.list(items.iter().map(String::as_str));
        }
    }
    grid(&mut page, verdict);
    denominators(&mut page, verdict);
    profiles(&mut page, verdict);
    costs(&mut page, set);
    page.block("## What this run does not show");
    page.list(verdict.not_shown.iter().map(String::as_str));
    if !verdict.warnings.is_empty() {
        page.block("## Noticed");
        page.list(verdict.warnings.iter().map(String::as_str));
    }
    page.block("## Where the runs come from");
    let rows = provenance(set, verdict).into_iter();
    page.table(
        ["what", "value"],
        rows.map(|(name, value)| [name.to_owned(), value]),
    );
    details(&mut page, verdict);
    page.finish()
}

fn head(page: &mut Page, verdict: &Verdict) {
    page.block(&format!("# Spillgate: {}", verdict.decision.as_str()));
    page.block(&format!("**{}**", escape(verdict.decision_sentence())));
    page.block(&format!("Exit code {}.", verdict.exit_code()));
}

fn leaks(page: &mut Page, verdict: &Verdict) {
    if verdict.leaks.is_empty() {
        return;
    }
    page.block(&format!(
        "## Leaks\n\n{} of {} that leaked:",
        verdict.leaks.len(),
        counted(verdict.leak_runs, "run")
    ));
    let rows = verdict.leaks.iter().map(|leak| {
        let files = leak
            .files_written
            .map_or("not measured".to_owned(), grouped);
        [
            plain(&leak.run_id),
            plain(&leak.configuration),
            plain(&leak.scenario),
            plain(&leak.input),
            files,
            leak.findings.join("; "),
        ]
    });
    let head = [
        "run",
        "configuration",
        "scenario",
        "input",
        "files written",
        "found",
    ];
    page.table(head, rows);
}

/// A row per candidate and rule, with the input that decides.
fn grid(page: &mut Page, verdict: &Verdict) {
    page.block("## Rules");
    let rows = verdict.candidates.iter().flat_map(|candidate| {
        let rules = Rule::ALL
            .into_iter()
            .map(|rule| match candidate.deciding(rule) {
                Some(row) => grid_row(candidate, row),
                None => [
                    plain(&candidate.configuration),
                    name(rule),
                    mark(State::NotRun),
                    "not measured".to_owned(),
                    String::new(),
                    String::new(),
                ],
            });
        rules.chain([sum(candidate)])
    });
    page.table(
        ["candidate", "rule", "state", "deciding number", "on", "n"],
        rows,
    );
}

fn grid_row(candidate: &CandidateVerdict, row: &RuleVerdict) -> [String; 6] {
    [
        plain(&candidate.configuration),
        name(row.rule),
        mark(row.state),
        number(row),
        row.place(),
        row.n.to_string(),
    ]
}

fn sum(candidate: &CandidateVerdict) -> [String; 6] {
    let reached = if candidate.considered {
        ""
    } else {
        " (not reached)"
    };
    [
        plain(&candidate.configuration),
        "all rules".to_owned(),
        format!("{}{reached}", mark(candidate.state)),
        String::new(),
        String::new(),
        String::new(),
    ]
}

fn denominators(page: &mut Page, verdict: &Verdict) {
    let d = verdict.denominators;
    page.block("## Runs");
    page.table(
        [
            "planned",
            "finished",
            "succeeded",
            "failed",
            "infrastructure",
            "missing",
        ],
        [[
            d.planned,
            d.finished,
            d.succeeded,
            d.failed,
            d.infrastructure,
            d.missing,
        ]
        .map(grouped)],
    );
}

fn profiles(page: &mut Page, verdict: &Verdict) {
    if verdict.profiles.is_empty() {
        return;
    }
    page.block("## The decision under each pure profile");
    let rows = verdict.profiles.iter().map(|profile| {
        [
            plain(&profile.profile),
            profile.decision.as_str().to_owned(),
            grouped(profile.pairs),
            profile.words.clone(),
        ]
    });
    page.table(["profile", "decision", "pairs", "why"], rows);
}

fn costs(page: &mut Page, set: &RunSet) {
    let rows = money::rows(set);
    if rows.is_empty() {
        return;
    }
    page.block("## What a run costs");
    page.block("Medians over finished runs; prices of one million tokens:");
    let prices = money::prices_words(set);
    page.list(prices.iter().map(String::as_str));
    page.table(money::COLUMNS, rows);
}

/// Every rule on every input: last, because it is what may have to be cut.
fn details(page: &mut Page, verdict: &Verdict) {
    page.block("## Every rule on every input");
    let rows = verdict.candidates.iter().flat_map(|candidate| {
        candidate.rules.iter().map(|row| {
            [
                plain(&candidate.configuration),
                name(row.rule),
                row.place(),
                mark(row.state),
                number(row),
                format!("{} of {}", row.n, row.planned),
                row.words.clone(),
            ]
        })
    });
    let head = ["candidate", "rule", "input", "state", "number", "n", "why"];
    page.table(head, rows);
}

fn name(rule: Rule) -> String {
    format!("{} {}", rule.number(), rule.title())
}

fn number(row: &RuleVerdict) -> String {
    match row.state {
        State::NotApplicable => String::new(),
        State::Holds | State::Broken | State::NotProven | State::NotRun => deciding_number(row),
    }
}

/// A state in words, with a sign that is no colour alone.
fn mark(state: State) -> String {
    let sign = match state {
        State::Holds => "✅ ",
        State::Broken => "❌ ",
        State::NotProven | State::NotRun => "⚠️ ",
        State::NotApplicable => "",
    };
    format!("{sign}{}", state.words())
}
