use serde::Serialize;
use spill_record::{Mode, RunSet, Stage};
use spill_verdict::{
    CandidateVerdict, Decision, Proposed, Rule, State, Verdict, exit, grouped, percent, plain,
};

use crate::background::{assumptions, configurations, inputs, limits, provenance, self_test};
use crate::cells::Cell;
use crate::dots::dots;
use crate::endings::endings;
use crate::figures::{Figure, figures};
use crate::forest::forest;
use crate::grid::{Badge, GridRow, badge, grid_row};
use crate::inline_share::inline_share;
use crate::on_one_host::{OnOneHost, on_one_host};
use crate::pairs::versus;
use crate::render::Context;
use crate::rule_tables::{RuleSection, Shown, rule_section};
use crate::rule_words::method;
use crate::runs::Runs;
use crate::sidecars::sidecars;
use crate::since::{Since, since};
use crate::table::Table;
use crate::timelines::{TimelinePart, timelines};
use crate::worst::{WorstPair, run_ids, worst};

/// What the template shows; nothing in it is computed there.
#[derive(Serialize)]
pub(crate) struct Page {
    title: String,
    subtitle: String,
    decision: &'static str,
    headline: String,
    sentence: String,
    exit_code: u8,
    exit_words: &'static str,
    alerts: Vec<Alert>,
    notes: Vec<String>,
    candidates: Vec<Candidate>,
    grid: Vec<GridRow>,
    profiles: Vec<Profile>,
    forest: String,
    forest_left_out: usize,
    since: Since,
    denominators: Vec<(&'static str, String)>,
    not_shown: Vec<String>,
    provenance: Vec<(&'static str, String)>,
    self_test: Vec<[String; 3]>,
    rules: Vec<RuleSection>,
    series: Vec<String>,
    figures: Vec<Figure>,
    endings: Table,
    inline: Option<InlinePart>,
    host: Option<OnOneHost>,
    sidecars: Option<Table>,
    timelines: Vec<TimelinePart>,
    configurations: Vec<[String; 6]>,
    inputs: Vec<[String; 6]>,
    model_title: &'static str,
    assumptions: Vec<(&'static str, Vec<String>)>,
    scenarios: Vec<String>,
    limits: Vec<(&'static str, String)>,
    runs: Runs,
}

#[derive(Serialize)]
struct Alert {
    kind: &'static str,
    text: String,
}

#[derive(Serialize)]
struct Candidate {
    name: String,
    threshold: String,
    state: Badge,
    reached: bool,
    words: String,
}

#[derive(Serialize)]
struct Profile {
    name: String,
    share: String,
    decision: String,
    class: &'static str,
    pairs: String,
    words: String,
}

#[derive(Serialize)]
struct InlinePart {
    /// SVG, escaped already.
    chart: String,
    table: Table,
    inputs: Vec<String>,
}

/// Builds the page of a run folder.
pub(crate) fn page(
    set: &RunSet,
    verdict: &Verdict,
    cells: &[Cell<'_>],
    context: Context<'_>,
) -> Page {
    let plan = &set.manifest.plan;
    let figures = figures(set, cells);
    let versus = versus(cells, plan.configurations.len());
    let worst: Vec<Vec<WorstPair<'_>>> =
        Rule::ALL.iter().map(|rule| worst(*rule, &versus)).collect();
    let timelines = timelines(set, context.calls);
    let anchors = timelines
        .iter()
        .map(|t| (&*t.run_id, t.anchor.clone()))
        .collect();
    let runs = Runs::list(set, verdict, &run_ids(&worst), &anchors);
    let forest = forest(&versus, &plan.rules);
    let mut forest_table = Some(forest.table);
    let mut scenarios: Vec<String> = plan
        .models
        .iter()
        .map(|model| plain(&model.scenario))
        .collect();
    scenarios.dedup();
    Page {
        title: format!("Spillgate: {}", headline(verdict)),
        subtitle: subtitle(verdict, &scenarios),
        decision: verdict.decision.as_str(),
        headline: headline(verdict),
        sentence: verdict.decision_sentence().to_owned(),
        exit_code: verdict.exit_code(),
        exit_words: exit_words(verdict.exit_code()),
        alerts: alerts(verdict),
        notes: shown(&verdict.warnings),
        candidates: verdict.candidates.iter().map(candidate).collect(),
        grid: Rule::ALL
            .into_iter()
            .map(|rule| grid_row(verdict, rule))
            .collect(),
        profiles: profiles(set, verdict),
        forest: forest.chart,
        forest_left_out: forest.left_out,
        since: since(context.baseline, set, verdict),
        denominators: denominators(verdict),
        not_shown: verdict.not_shown.clone(),
        provenance: provenance(set, verdict),
        self_test: self_test(&verdict.self_test),
        rules: Rule::ALL
            .into_iter()
            .zip(&worst)
            .map(|(rule, worst)| {
                let shown = Shown {
                    method: method(rule, &plan.rules),
                    forest: forest_table.take_if(|_| rule == Rule::InputTokens),
                    dots: dots(rule, &versus, &plan.rules),
                    worst,
                };
                rule_section(verdict, rule, &runs, shown)
            })
            .collect(),
        series: plan.configurations.iter().map(|c| plain(&c.name)).collect(),
        figures,
        endings: endings(cells, plan.configurations.len()),
        inline: context.calls.and_then(inline_share).map(|part| InlinePart {
            chart: part.chart,
            table: part.table,
            inputs: part.inputs,
        }),
        host: on_one_host(set),
        sidecars: sidecars(set),
        timelines,
        configurations: configurations(set),
        inputs: inputs(set),
        model_title: match set.manifest.mode {
            Mode::Simulated => "The simulated model and the step",
            Mode::Live => "The model and the step",
        },
        assumptions: assumptions(set),
        scenarios,
        limits: limits(set),
        runs,
    }
}

pub(crate) fn headline(verdict: &Verdict) -> String {
    let shipped = verdict.shipped.as_ref();
    let shipped = shipped.map_or("the shipped default".to_owned(), |s| {
        plain(&s.configuration)
    });
    match verdict.decision {
        Decision::Keep => format!("Keep {shipped} as the default"),
        Decision::Change => {
            let to = verdict
                .candidates
                .iter()
                .find(|c| c.considered && c.state == State::Holds);
            let to = to.map_or("another candidate".to_owned(), |c| plain(&c.configuration));
            format!("Change the default from {shipped} to {to}")
        }
        Decision::Disable => "Disable spilling by default".to_owned(),
        Decision::None => "No decision".to_owned(),
    }
}

fn subtitle(verdict: &Verdict, scenarios: &[String]) -> String {
    let stage = match verdict.stage {
        Stage::Quick => "quick stage",
        Stage::Full => "full stage",
    };
    let mode = match verdict.mode {
        Mode::Simulated => "simulated mode",
        Mode::Live => "live mode",
    };
    let runs = grouped(verdict.denominators.planned);
    let subject = plain(&verdict.subject);
    format!(
        "{} · {stage} · {mode} · {runs} planned runs · subject {subject}",
        scenarios.join(", ")
    )
}

pub(crate) fn exit_words(code: u8) -> &'static str {
    match code {
        exit::ACCEPTED => "the shipped default is accepted",
        exit::INTERNAL => "the harness is at fault",
        exit::REJECTED => "the default must change",
        exit::NOT_PROVEN => "not proven",
        exit::INCOMPLETE => "incomplete",
        exit::LEAK => "a leak was found",
        exit::SELF_TEST => "the gate's self-test failed",
        _ => "invalid use",
    }
}

fn alerts(verdict: &Verdict) -> Vec<Alert> {
    let alert = |kind| move |text| Alert { kind, text };
    let errors = shown(&verdict.harness_errors).into_iter();
    let problems = shown(&verdict.problems).into_iter();
    errors
        .map(alert("harness error"))
        .chain(problems.map(alert("incomplete")))
        .collect()
}

/// The first ones, and how many more there are.
fn shown(texts: &[String]) -> Vec<String> {
    const SHOWN: usize = 5;
    let more = texts.len().saturating_sub(SHOWN);
    let first = texts.iter().take(SHOWN).cloned();
    first
        .chain((more > 0).then(|| format!("and {more} more")))
        .collect()
}

fn candidate(candidate: &CandidateVerdict) -> Candidate {
    Candidate {
        name: plain(&candidate.configuration),
        threshold: candidate.threshold_bytes.map_or_else(
            || "off".to_owned(),
            |bytes| format!("{} bytes", grouped(bytes)),
        ),
        state: badge(candidate.state),
        reached: candidate.considered,
        words: candidate.words.clone(),
    }
}

fn profiles(set: &RunSet, verdict: &Verdict) -> Vec<Profile> {
    let share = |name: &str| {
        let models = &set.manifest.plan.models;
        let mut shares: Vec<String> = models
            .iter()
            .filter_map(|m| m.population.get(name))
            .map(|s| percent(*s))
            .collect();
        shares.dedup();
        shares.join(", ")
    };
    let profile = |profile: &spill_verdict::ProfileVerdict| Profile {
        name: plain(&profile.profile),
        share: share(&profile.profile),
        decision: decision_words(profile.decision, profile.proposed.as_ref()),
        class: profile.decision.as_str(),
        pairs: if profile.extra_pairs > 0 {
            format!(
                "{} ({} extra)",
                grouped(profile.pairs),
                grouped(profile.extra_pairs)
            )
        } else {
            grouped(profile.pairs)
        },
        words: profile.words.clone(),
    };
    verdict.profiles.iter().map(profile).collect()
}

fn decision_words(decision: Decision, proposed: Option<&Proposed>) -> String {
    let name = |proposed: Option<&Proposed>| {
        let name = proposed.and_then(|proposed| proposed.configuration.as_ref());
        name.map(|name| format!(" {}", plain(name)))
            .unwrap_or_default()
    };
    match decision {
        Decision::Keep => format!("keep{}", name(proposed)),
        Decision::Change => format!("change to{}", name(proposed)),
        Decision::Disable => "disable".to_owned(),
        Decision::None => "no decision".to_owned(),
    }
}

fn denominators(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let d = verdict.denominators;
    [
        ("planned", d.planned),
        ("started", d.started),
        ("finished", d.finished),
        ("harness", d.infrastructure),
        ("missing", d.missing),
        ("leaking", verdict.leak_runs),
    ]
    .map(|(name, count)| (name, grouped(count)))
    .to_vec()
}
