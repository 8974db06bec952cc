use spill_record::{Class, EndReason, Outcome, RunRecord};
use spill_verdict::{Rule, amount, figure, grouped, median, percent, share};

use crate::figures::NOTHING;
use crate::pairs::{Versus, token_ratio};

/// How one rule looks at one run of a pair: what its dot plot, its table and its worst pairs show.
pub(crate) struct Measure {
    /// What is measured of a run, with its unit.
    pub(crate) name: &'static str,
    pub(crate) scale: Scale,
    /// The value of a run; `None` where it does not tell.
    pub(crate) of: fn(&RunRecord) -> Option<f64>,
    /// A value in words.
    pub(crate) write: fn(f64) -> String,
    /// Several values in words.
    pub(crate) sum: fn(&[f64]) -> String,
    /// How much worse the candidate's run is than the control's; 0 or less is not worse.
    pub(crate) worse: fn(&RunRecord, &RunRecord) -> Option<f64>,
    /// What that is, in words.
    pub(crate) worse_words: fn(&RunRecord, &RunRecord) -> String,
}

/// The axes of a dot plot: the same for both runs of a pair.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scale {
    Logarithmic,
    /// From 0 on.
    Linear,
    /// Words for 0 and for 1.
    Words([&'static str; 2]),
}

impl Measure {
    /// The measure of `rule`.
    pub(crate) fn of(rule: Rule) -> Self {
        match rule {
            Rule::SuccessRate => Self {
                name: "outcome",
                scale: Scale::Words(["failed", "succeeded"]),
                of: |run| Some(f64::from(u8::from(run.outcome == Outcome::Succeeded))),
                write: |value| if value > 0.5 { "succeeded" } else { "failed" }.to_owned(),
                sum: |values| count_of(values, "succeeded"),
                worse: |off, on| {
                    let lost =
                        off.outcome == Outcome::Succeeded && on.outcome != Outcome::Succeeded;
                    Some(f64::from(u8::from(lost)))
                },
                worse_words: |_, on| format!("ended as {}", on.end_reason.as_str()),
            },
            Rule::IterationLimit => Self {
                name: "iterations",
                scale: Scale::Linear,
                of: |run| run.iterations.map(|count| count as f64),
                write: figure,
                sum: |values| {
                    format!(
                        "median {}",
                        median(values).map_or(NOTHING.to_owned(), amount)
                    )
                },
                worse: |off, on| {
                    let more = on.iterations? as f64 - off.iterations? as f64;
                    // A new hit is worse than any number of iterations.
                    Some(more + if hit(on) && !hit(off) { 1e12 } else { 0.0 })
                },
                worse_words: |off, on| {
                    let more = on
                        .iterations
                        .unwrap_or(0)
                        .saturating_sub(off.iterations.unwrap_or(0));
                    let hit = if hit(on) { ", hit the limit" } else { "" };
                    format!("{} more{hit}", grouped(more))
                },
            },
            Rule::InputTokens => Self {
                name: "input tokens",
                scale: Scale::Logarithmic,
                of: |run| run.input_tokens.map(|count| count as f64),
                write: amount,
                sum: |values| {
                    format!(
                        "median {}",
                        median(values).map_or(NOTHING.to_owned(), amount)
                    )
                },
                worse: |off, on| Some(token_ratio(off, on)? - 1.0),
                worse_words: |off, on| {
                    token_ratio(off, on).map_or(NOTHING.to_owned(), |ratio| {
                        format!("{} times the control's", figure(ratio))
                    })
                },
            },
            Rule::Quality => Self {
                name: "share of facts found",
                scale: Scale::Linear,
                of: |run| share(run.facts_found?, run.facts_expected?),
                write: percent,
                sum: |values| match mean(values) {
                    Some(mean) => format!("mean {}", percent(mean)),
                    None => NOTHING.to_owned(),
                },
                worse: |off, on| {
                    let lost = |off: Option<u64>, on: Option<u64>| Some(off? as f64 - on? as f64);
                    let all = lost(off.facts_found, on.facts_found)?;
                    Some(all.max(lost(off.end_facts_found, on.end_facts_found).unwrap_or(all)))
                },
                worse_words: |off, on| {
                    let fewer = |off: Option<u64>, on: Option<u64>| {
                        grouped(off.unwrap_or(0).saturating_sub(on.unwrap_or(0)))
                    };
                    format!(
                        "{} fewer facts, {} fewer of the end",
                        fewer(off.facts_found, on.facts_found),
                        fewer(off.end_facts_found, on.end_facts_found)
                    )
                },
            },
            Rule::NothingLeaks => Self {
                name: "files written and places with content",
                scale: Scale::Words(["clean", "leaks"]),
                of: |run| Some(f64::from(u8::from(leaks(run) > 0))),
                write: |value| if value > 0.5 { "leaks" } else { "clean" }.to_owned(),
                sum: |values| count_of(values, "leak"),
                worse: |_, on| Some(leaks(on) as f64),
                worse_words: |_, on| {
                    format!(
                        "files written: {}, places with content: {}",
                        on.files_written.map_or(NOTHING.to_owned(), grouped),
                        on.leak_findings.len()
                    )
                },
            },
        }
    }
}

/// Whether `rule` concerns the input of `versus`.
pub(crate) fn concerns(rule: Rule, versus: &Versus<'_>) -> bool {
    let document = match versus.input.class {
        Class::Document => true,
        Class::Small | Class::Medium | Class::Large => false,
    };
    match rule {
        Rule::SuccessRate | Rule::IterationLimit | Rule::NothingLeaks => true,
        Rule::InputTokens => !document,
        Rule::Quality => document,
    }
}

fn hit(run: &RunRecord) -> bool {
    run.end_reason == EndReason::IterationLimit || run.hit_iteration_limit == Some(true)
}

fn leaks(run: &RunRecord) -> u64 {
    run.files_written.unwrap_or(0) + run.leak_findings.len() as u64
}

fn count_of(values: &[f64], what: &str) -> String {
    let count = values.iter().filter(|value| **value > 0.5).count();
    format!("{count} of {} {what}", values.len())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
