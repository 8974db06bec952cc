use serde::Serialize;
use spill_verdict::{
    Arms, Evidence, Figures, Rule, RuleVerdict, State, TokenBasis, Verdict, amount,
    deciding_number, figure, grouped, percent, plain,
};

use crate::dots::Dots;
use crate::figures::NOTHING;
use crate::grid::{Badge, badge};
use crate::rule_words::Method;
use crate::runs::Runs;
use crate::table::Table;
use crate::worst::{self, WorstPair, WorstRow, short_id};

/// Rows of one rule's table; beyond that, rows that hold are left out.
const RULE_ROWS: usize = 200;

/// One rule's table.
#[derive(Serialize)]
pub(crate) struct RuleSection {
    number: u8,
    title: &'static str,
    demands: &'static str,
    method: Method,
    rows: Vec<RuleRow>,
    left_out: usize,
    /// Ratios within pairs, for the rule that limits them.
    forest: Option<Table>,
    /// All pairs as dots: SVG, escaped already.
    dots: Option<String>,
    pairs: Table,
    worst: Vec<WorstRow>,
}

/// What a rule's section shows besides the verdict.
pub(crate) struct Shown<'a> {
    pub(crate) method: Method,
    pub(crate) forest: Option<Table>,
    pub(crate) dots: Dots,
    pub(crate) worst: &'a [WorstPair<'a>],
}

#[derive(Serialize)]
struct RuleRow {
    id: String,
    place: String,
    candidate: String,
    state: Badge,
    number: String,
    n: String,
    words: String,
    more: Vec<String>,
    evidence: Vec<Link>,
}

#[derive(Serialize)]
struct Link {
    words: String,
    runs: Vec<(String, Option<String>)>,
}

/// The table of `rule`: candidates in order, inputs within each.
pub(crate) fn rule_section(
    verdict: &Verdict,
    rule: Rule,
    runs: &Runs,
    shown: Shown<'_>,
) -> RuleSection {
    let mut rows: Vec<(State, RuleRow)> = Vec::new();
    for (column, candidate) in verdict.candidates.iter().enumerate() {
        for (index, row) in candidate
            .rules
            .iter()
            .enumerate()
            .filter(|(_, row)| row.rule == rule)
        {
            let id = format!("rule-{}-{column}-{index}", rule.number());
            rows.push((row.state, rule_row(id, &candidate.configuration, row, runs)));
        }
    }
    let total = rows.len();
    if total > RULE_ROWS {
        rows.retain(|(state, _)| !matches!(state, State::Holds | State::NotApplicable));
        rows.truncate(RULE_ROWS);
    }
    RuleSection {
        number: rule.number(),
        title: rule.title(),
        demands: rule.demands(),
        method: shown.method,
        forest: shown.forest,
        dots: shown.dots.chart,
        pairs: shown.dots.table,
        worst: worst::rows(rule, shown.worst, runs),
        left_out: total - rows.len(),
        rows: rows.into_iter().map(|(_, row)| row).collect(),
    }
}

fn rule_row(id: String, configuration: &str, row: &RuleVerdict, runs: &Runs) -> RuleRow {
    RuleRow {
        id,
        place: row.place(),
        candidate: plain(configuration),
        state: badge(row.state),
        number: match row.state {
            State::NotApplicable => "–".to_owned(),
            State::Holds | State::Broken | State::NotProven | State::NotRun => deciding_number(row),
        },
        n: match row.state {
            State::NotApplicable => "–".to_owned(),
            State::Holds | State::Broken | State::NotProven | State::NotRun => {
                format!("{} of {}", grouped(row.n), grouped(row.planned))
            }
        },
        words: row.words.clone(),
        more: row.figures.as_ref().map(more).unwrap_or_default(),
        evidence: row
            .evidence
            .iter()
            .map(|evidence| link(evidence, runs))
            .collect(),
    }
}

fn link(evidence: &Evidence, runs: &Runs) -> Link {
    let ids = [Some(&evidence.run_id), evidence.control_run_id.as_ref()];
    Link {
        words: evidence.words.clone(),
        runs: ids
            .into_iter()
            .flatten()
            .map(|id| (short_id(id), runs.anchor(id)))
            .collect(),
    }
}

/// The figures that stand beside the one that decided.
fn more(figures: &Figures) -> Vec<String> {
    let arms = |arms: &Arms, write: fn(f64) -> String| {
        let one = |value: Option<f64>| value.map_or(NOTHING.to_owned(), write);
        format!("{} against {}", one(arms.candidate), one(arms.control))
    };
    let tokens = |value: f64| amount((value * 2.0).round() / 2.0);
    match figures {
        Figures::Success { .. } => Vec::new(),
        Figures::Tokens {
            basis,
            all_runs,
            both_succeeded,
            both_succeeded_pairs,
            per_success,
            median_paired_ratio,
        } => vec![
            format!("all runs: {}", arms(all_runs, tokens)),
            format!(
                "both succeeded ({both_succeeded_pairs}): {}",
                arms(both_succeeded, tokens)
            ),
            format!("tokens per success: {}", arms(per_success, tokens)),
            format!(
                "median paired ratio: {}",
                median_paired_ratio.map_or(NOTHING.to_owned(), figure)
            ),
            match basis {
                TokenBasis::AllRuns => "all runs decide".to_owned(),
                TokenBasis::BothSucceeded => "pairs that both succeeded decide".to_owned(),
            },
        ],
        Figures::Quality {
            quality,
            end_coverage,
            ..
        } => vec![
            format!("quality: {}", arms(quality, percent)),
            format!("end: {}", arms(end_coverage, percent)),
        ],
    }
}
