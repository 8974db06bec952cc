use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use spill_record::RulesRecord;
use toml::Spanned;

use super::SourceText;
use super::configurations::{Labels, configurations};
use super::faults::{expect, faults};
use super::inputs::{self, Folder};
use super::raw::{RawLimits, RawModel, RawRules, RawScenario, Size};
use super::source::nearest;
use super::subject;
use super::time::{latency, recall};
use crate::defaults;
use crate::error::ScenarioError;
use crate::input::Recipe;
use crate::scenario::{Limits, ModelSpec, Profile, Scenario};

/// How far the shares of a population may miss 1.
const SHARE_TOLERANCE: f64 = 1e-9;

pub(super) type Checked<T> = Result<T, ScenarioError>;

pub(super) fn scenario(
    source: &SourceText<'_>,
    raw: RawScenario,
    folder: Option<&Folder<'_>>,
) -> Checked<Scenario> {
    let name = safe_name(source, &raw.name)?;
    let recipe = choice(
        source,
        &raw.recipe,
        "recipe",
        &[
            Recipe::Review,
            Recipe::Document,
            Recipe::Records,
            Recipe::Recorded,
        ]
        .map(|one| (one.as_str(), one)),
    )?;
    let system = not_blank(source, &raw.system, "system")?;
    let prompt = not_blank(source, &raw.prompt, "prompt")?;
    let repetitions = repetitions(source, raw.repetitions.as_ref())?;
    let labels = match &raw.subject {
        Some(_) => Labels::Foreign,
        None => Labels::BuiltIn,
    };
    let configurations = configurations(source, &raw.configurations, labels)?;
    let subject = raw.subject.as_ref();
    let subject = subject
        .map(|raw| subject::subject(source, raw, &configurations))
        .transpose()?;
    let model = model(source, &raw.model, recipe)?;
    let limits = limits(source, &raw.limits)?;
    let limits = subject.as_ref().map_or(limits, |one| one.limits(limits));
    let rules = rules(source, &raw.rules)?;
    let faults = faults(source, &raw.fault)?;
    let expect = expect(source, raw.expect.as_ref())?;
    let inputs_count = raw.inputs.get_ref().len();
    if inputs_count == 0 {
        return Err(source.invalid(
            raw.inputs.span(),
            "there is no input",
            "add an [[inputs]] table",
        ));
    }
    let runs = inputs_count as u64 * configurations.len() as u64 * u64::from(repetitions);
    if runs > limits.max_runs {
        let span = raw
            .repetitions
            .as_ref()
            .map_or(raw.inputs.span(), Spanned::span);
        return Err(source.invalid(
            span,
            format!(
                "the matrix expands to {runs} runs, the limit is {}",
                limits.max_runs
            ),
            "raise `max_runs`, lower `repetitions` or drop an input",
        ));
    }
    unique(
        source,
        raw.inputs.get_ref().iter().map(|input| &input.name),
        "input",
    )?;
    let mut inputs = Vec::new();
    for input in raw.inputs.get_ref() {
        safe_name(source, &input.name)?;
        if let Some(folder) = folder {
            inputs.push(inputs::input(source, input, recipe, folder)?);
        }
    }
    Ok(Scenario {
        name,
        recipe,
        system,
        prompt,
        inputs,
        model,
        limits,
        configurations,
        repetitions,
        rules,
        faults,
        expect,
        subject,
    })
}

fn repetitions(source: &SourceText<'_>, raw: Option<&Spanned<u32>>) -> Checked<u32> {
    let Some(raw) = raw else {
        return Ok(defaults::REPETITIONS);
    };
    if *raw.get_ref() == 0 {
        return Err(source.invalid(
            raw.span(),
            "`repetitions` is 0, so nothing would be run",
            format!("write at least 1; the default is {}", defaults::REPETITIONS),
        ));
    }
    Ok(*raw.get_ref())
}

fn model(source: &SourceText<'_>, raw: &RawModel, recipe: Recipe) -> Checked<ModelSpec> {
    let name = match &raw.name {
        Some(name) => safe_name(source, name)?,
        None => defaults::MODEL_NAME.to_owned(),
    };
    let size = |raw: &Option<Spanned<Size>>, key, default| {
        let plain = raw.as_ref().map(|size| (size.span(), size.get_ref().0));
        at_least_one(source, plain, key, default)
    };
    let number = |raw: &Option<Spanned<u64>>, key, default| {
        let plain = raw
            .as_ref()
            .map(|number| (number.span(), *number.get_ref()));
        at_least_one(source, plain, key, default)
    };
    let mut patterns = Vec::new();
    for pattern in &raw.patterns {
        if let Err(error) = Regex::new(pattern.get_ref()) {
            let reason = error.to_string();
            let reason = reason
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            return Err(source.invalid(
                pattern.span(),
                format!("the pattern is not a regular expression: {reason}"),
                "see https://docs.rs/regex for the syntax",
            ));
        }
        patterns.push(pattern.get_ref().clone());
    }
    Ok(ModelSpec {
        name,
        population: population(source, raw)?,
        context_window_tokens: number(
            &raw.context_window_tokens,
            "context_window_tokens",
            defaults::CONTEXT_WINDOW_TOKENS,
        )?,
        parallel_calls: number(
            &raw.parallel_calls,
            "parallel_calls",
            defaults::PARALLEL_CALLS,
        )?,
        slice_bytes: size(&raw.slice_bytes, "slice_bytes", defaults::SLICE_BYTES)?,
        window_lines: number(&raw.window_lines, "window_lines", defaults::WINDOW_LINES)?,
        reading_budget_bytes: size(
            &raw.reading_budget_bytes,
            "reading_budget_bytes",
            defaults::READING_BUDGET_BYTES,
        )?,
        max_findings: number(&raw.max_findings, "max_findings", defaults::MAX_FINDINGS)?,
        patterns,
        composite: composite(source, raw, recipe)?,
        recall: recall(source, raw.recall.as_ref())?,
        latency: latency(source, raw.latency.as_ref())?,
    })
}

/// Only a review has a composite tool.
fn composite(source: &SourceText<'_>, raw: &RawModel, recipe: Recipe) -> Checked<bool> {
    match &raw.composite {
        Some(composite) if *composite.get_ref() && recipe != Recipe::Review => Err(source.invalid(
            composite.span(),
            format!("the recipe `{}` has no composite tool", recipe.as_str()),
            "remove `composite`, or choose the recipe `review`",
        )),
        Some(composite) => Ok(*composite.get_ref()),
        None => Ok(false),
    }
}

fn population(source: &SourceText<'_>, raw: &RawModel) -> Checked<BTreeMap<Profile, f64>> {
    let Some(raw) = &raw.population else {
        return Ok(BTreeMap::from(defaults::POPULATION));
    };
    let known = Profile::ALL.map(Profile::name);
    let mut population = BTreeMap::new();
    for (name, share) in raw.get_ref() {
        let Some(profile) = Profile::parse(name.get_ref()) else {
            let way_out = nearest(name.get_ref(), &known).map_or_else(
                || format!("the profiles are {}", known.join(", ")),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            return Err(source.invalid(
                name.span(),
                format!("unknown profile `{}`", name.get_ref()),
                way_out,
            ));
        };
        if !(0.0..=1.0).contains(share) {
            return Err(source.invalid(
                name.span(),
                format!("the share of `{}` is {share}", profile.name()),
                "a share is between 0 and 1",
            ));
        }
        population.insert(profile, *share);
    }
    let sum: f64 = population.values().sum();
    if (sum - 1.0).abs() > SHARE_TOLERANCE {
        return Err(source.invalid(
            raw.span(),
            format!("the shares of `population` sum to {sum}"),
            "change them so that they sum to 1",
        ));
    }
    Ok(population)
}

fn limits(source: &SourceText<'_>, raw: &RawLimits) -> Checked<Limits> {
    let number = |raw: &Option<Spanned<u64>>, key, default| {
        let plain = raw
            .as_ref()
            .map(|number| (number.span(), *number.get_ref()));
        at_least_one(source, plain, key, default)
    };
    let limits = Limits {
        iteration_limit: number(
            &raw.iteration_limit,
            "iteration_limit",
            defaults::ITERATION_LIMIT,
        )?,
        step_timeout_ms: number(
            &raw.step_timeout_ms,
            "step_timeout_ms",
            defaults::STEP_TIMEOUT_MS,
        )?,
        run_timeout_ms: number(
            &raw.run_timeout_ms,
            "run_timeout_ms",
            defaults::RUN_TIMEOUT_MS,
        )?,
        max_runs: number(&raw.max_runs, "max_runs", defaults::MAX_RUNS)?,
        max_retries: raw.max_retries.as_ref().map(|number| *number.get_ref()),
        retry_base_ms: raw.retry_base_ms.as_ref().map(|number| *number.get_ref()),
    };
    if limits.run_timeout_ms < limits.step_timeout_ms {
        let place = raw.run_timeout_ms.as_ref().or(raw.step_timeout_ms.as_ref());
        return Err(source.invalid(
            place.map_or(0..0, Spanned::span),
            format!(
                "a process gets {} ms and its step {} ms",
                limits.run_timeout_ms, limits.step_timeout_ms
            ),
            "raise `run_timeout_ms` or lower `step_timeout_ms`",
        ));
    }
    Ok(limits)
}

fn rules(source: &SourceText<'_>, raw: &RawRules) -> Checked<RulesRecord> {
    let number = |raw: &Option<Spanned<f64>>, key: &str, default: f64, low: f64, high: f64| {
        let Some(raw) = raw else {
            return Ok(default);
        };
        if !(low..=high).contains(raw.get_ref()) {
            return Err(source.invalid(
                raw.span(),
                format!("`{key}` is {}", raw.get_ref()),
                format!("write a number from {low} to {high}; the default is {default}"),
            ));
        }
        Ok(*raw.get_ref())
    };
    Ok(RulesRecord {
        input_tokens_ratio_limit: number(
            &raw.input_tokens_ratio_limit,
            "input_tokens_ratio_limit",
            defaults::INPUT_TOKENS_RATIO_LIMIT,
            0.0,
            100.0,
        )?,
        large_input_tokens_ratio_limit: number(
            &raw.large_input_tokens_ratio_limit,
            "large_input_tokens_ratio_limit",
            defaults::LARGE_INPUT_TOKENS_RATIO_LIMIT,
            0.0,
            100.0,
        )?,
        quality_allowance: number(
            &raw.quality_allowance,
            "quality_allowance",
            defaults::QUALITY_ALLOWANCE,
            0.0,
            1.0,
        )?,
        success_margin: number(
            &raw.success_margin,
            "success_margin",
            defaults::MARGIN,
            0.0,
            1.0,
        )?,
        quality_margin: number(
            &raw.quality_margin,
            "quality_margin",
            defaults::MARGIN,
            0.0,
            1.0,
        )?,
        derived_facts_needed: raw
            .derived_facts_needed
            .as_ref()
            .map_or(defaults::DERIVED_FACTS_NEEDED, |number| *number.get_ref()),
        infrastructure_budget: number(
            &raw.infrastructure_budget,
            "infrastructure_budget",
            defaults::INFRASTRUCTURE_BUDGET,
            0.0,
            1.0,
        )?,
    })
}

fn at_least_one(
    source: &SourceText<'_>,
    raw: Option<(std::ops::Range<usize>, u64)>,
    key: &str,
    default: u64,
) -> Checked<u64> {
    match raw {
        None => Ok(default),
        Some((span, 0)) => Err(source.invalid(
            span,
            format!("`{key}` is 0"),
            format!("write at least 1; the default is {default}"),
        )),
        Some((_, value)) => Ok(value),
    }
}

fn not_blank(source: &SourceText<'_>, raw: &Spanned<String>, key: &str) -> Checked<String> {
    if raw.get_ref().trim().is_empty() {
        return Err(source.invalid(
            raw.span(),
            format!("`{key}` is empty"),
            "write what the agent is told",
        ));
    }
    Ok(raw.get_ref().clone())
}

/// Names stand in paths, ids and reports: 1 to 64 of letters, digits, `.`, `_` and `-`, the first
/// one a letter or digit.
pub(super) fn safe_name(source: &SourceText<'_>, raw: &Spanned<String>) -> Checked<String> {
    let name = raw.get_ref();
    let safe = (1..=64).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "._-".contains(one));
    if !safe {
        return Err(source.invalid(
            raw.span(),
            format!("{name:?} is not a usable name"),
            "use 1 to 64 letters, digits, `.`, `_` or `-`, starting with a letter or digit",
        ));
    }
    Ok(name.clone())
}

pub(super) fn unique<'a>(
    source: &SourceText<'_>,
    names: impl Iterator<Item = &'a Spanned<String>>,
    kind: &str,
) -> Checked<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            return Err(source.invalid(
                name.span(),
                format!("a second {kind} has the name `{}`", name.get_ref()),
                "give each its own name",
            ));
        }
    }
    Ok(())
}

/// Reads a word that is one of a few.
pub(super) fn choice<T: Copy>(
    source: &SourceText<'_>,
    raw: &Spanned<String>,
    key: &str,
    choices: &[(&str, T)],
) -> Checked<T> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| word == raw.get_ref()) {
        return Ok(*value);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    Err(source.invalid(
        raw.span(),
        format!("`{}` is not a {key}", raw.get_ref()),
        match nearest(raw.get_ref(), &words) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("write one of {}", words.join(", ")),
        },
    ))
}
