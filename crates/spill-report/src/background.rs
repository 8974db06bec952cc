use std::collections::BTreeSet;

use serde_json::Value;
use spill_record::{
    ConfigurationRole, FactsOrigin, Mode, ModelRecord, PromptTokens, RunSet, ShardSpending,
    Spending,
};
use spill_verdict::{
    PlantedFault, PlantedOutcome, Verdict, counted, figure, grouped, percent, plain,
};

use crate::figures::NOTHING;

/// Inputs that the report lists at most; the manifest has all of them.
const INPUT_ROWS: usize = 200;

/// Where the runs come from, and how far the gate that judged them can be trusted.
pub(crate) fn provenance(set: &RunSet, verdict: &Verdict) -> Vec<(&'static str, String)> {
    let mut rows = provenance_of(set);
    rows.push(("self-test", self_test_words(&verdict.self_test)));
    rows
}

/// Where the runs come from.
pub(crate) fn provenance_of(set: &RunSet) -> Vec<(&'static str, String)> {
    let m = &set.manifest;
    let commit = m.commit.as_deref().map_or(NOTHING.to_owned(), plain);
    let dirty = match m.dirty {
        Some(true) => ", with uncommitted changes",
        Some(false) => ", clean",
        None => "",
    };
    let memory = m.host.memory_bytes.map_or(String::new(), |bytes| {
        format!(", {:.1} GiB", bytes as f64 / f64::from(1 << 30))
    });
    let mut mixes: Vec<String> = set.manifest.plan.models.iter().map(mix).collect();
    mixes.dedup();
    let mut rows = vec![
        ("commit", format!("{commit}{dirty}")),
        ("plan hash", plain(&m.plan_hash)),
        (
            "mode",
            match m.mode {
                Mode::Simulated => format!("simulated, subject {}", plain(&m.subject)),
                Mode::Live => format!("live, subject {}", plain(&m.subject)),
            },
        ),
        ("endpoint", endpoint(set)),
        (
            "spent there",
            set.spending.as_ref().map_or_else(String::new, spent),
        ),
        (
            "seeds",
            format!(
                "base {}; {} of pairs",
                m.base_seed,
                grouped(pair_seeds(set))
            ),
        ),
        ("profile mix", mixes.join("; ")),
        (
            "host",
            format!(
                "{} {}, {} CPUs{memory}",
                plain(&m.host.os),
                plain(&m.host.arch),
                m.host.cpus
            ),
        ),
        (
            "versions",
            format!(
                "spillgate {}, {}",
                plain(&m.versions.spillgate),
                plain(&m.versions.tokenizer)
            ),
        ),
    ];
    // What the mode does not have.
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

/// The real endpoint, by API, host and models; empty in simulated mode.
fn endpoint(set: &RunSet) -> String {
    let Some(endpoint) = &set.manifest.endpoint else {
        return String::new();
    };
    let models = set.manifest.plan.models.iter();
    let models: BTreeSet<String> = models.map(|model| plain(&model.model)).collect();
    let models: Vec<String> = models.into_iter().collect();
    format!(
        "{} at {}, model {}",
        endpoint.api.as_str(),
        plain(&endpoint.host),
        models.join(", ")
    )
}

/// What a live acceptance spent, by who counted it, beside the cap.
fn spent(spending: &Spending) -> String {
    let both = |tokens: PromptTokens| tokens.input_tokens().saturating_add(tokens.output_tokens);
    let mut parts = vec![format!(
        "{} billed in {}",
        counted(both(spending.billed), "token"),
        counted(spending.calls, "request")
    )];
    if spending.calls_without_answer > 0 {
        parts.push(format!(
            "{} without a whole answer, {} of the billed",
            counted(spending.calls_without_answer, "request"),
            counted(both(spending.billed_without_answer), "token")
        ));
    }
    if both(spending.estimated) > 0 {
        parts.push(format!(
            "{} more by our own count, where the endpoint did not tell",
            counted(both(spending.estimated), "token")
        ));
    }
    if let (Some(money), Some(currency)) = (&spending.money, &spending.currency) {
        parts.push(format!("{} {}", plain(money), plain(currency)));
    }
    parts.push(if spending.shards.is_empty() {
        let cap = cap(spending.limit_tokens, spending.limit_money.as_deref());
        format!("the cap was {cap}")
    } else {
        shard_caps(&spending.shards)
    });
    parts.join("; ")
}

fn cap(tokens: Option<u64>, money: Option<&str>) -> String {
    let caps = [
        tokens.map(|tokens| counted(tokens, "token")),
        money.map(plain),
    ];
    let caps: Vec<String> = caps.into_iter().flatten().collect();
    if caps.is_empty() {
        return "not told".to_owned();
    }
    caps.join(" and ")
}

/// Shards that are named of each cap.
const NAMED_SHARDS: usize = 4;

/// The caps of a merged folder's shards; those of one cap together.
fn shard_caps(shards: &[ShardSpending]) -> String {
    let mut of_cap: Vec<(String, Vec<String>)> = Vec::new();
    for one in shards {
        let cap = cap(one.limit_tokens, one.limit_money.as_deref());
        let shard = one.shard.to_string();
        match of_cap.iter_mut().find(|(known, _)| *known == cap) {
            Some((_, named)) => named.push(shard),
            None => of_cap.push((cap, vec![shard])),
        }
    }
    let words = of_cap.into_iter().map(|(cap, mut named)| {
        let more = named.len().saturating_sub(NAMED_SHARDS);
        named.truncate(NAMED_SHARDS);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        format!("{cap} for {}", named.join(", "))
    });
    let words: Vec<String> = words.collect();
    format!("each shard had its own cap: {}", words.join("; "))
}

/// How the gate's reduced self-test ended, in one line.
fn self_test_words(faults: &[PlantedFault]) -> String {
    if faults.is_empty() {
        return "not measured: nothing was recorded".to_owned();
    }
    let count = |outcome| faults.iter().filter(|f| f.outcome == outcome).count() as u64;
    let (caught, missed) = (count(PlantedOutcome::Caught), count(PlantedOutcome::Missed));
    let not_applicable = count(PlantedOutcome::NotApplicable);
    let mut words = format!(
        "reduced to records: {} as expected",
        counted(caught, "planted fault")
    );
    if missed > 0 {
        words = format!("{words}, {missed} MISSED");
    }
    if not_applicable > 0 {
        words = format!("{words}, {not_applicable} not applicable");
    }
    words
}

/// The gate's reduced self-test, a row each.
pub(crate) fn self_test(faults: &[PlantedFault]) -> Vec<[String; 3]> {
    faults
        .iter()
        .map(|fault| {
            let outcome = match fault.outcome {
                PlantedOutcome::Caught => "as expected",
                PlantedOutcome::Missed => "MISSED",
                PlantedOutcome::NotApplicable => "not applicable to this plan",
            };
            [
                plain(&fault.fault),
                plain(&fault.expected),
                outcome.to_owned(),
            ]
        })
        .collect()
}

/// Distinct seeds of the planned pairs.
fn pair_seeds(set: &RunSet) -> u64 {
    let runs = set.manifest.plan.runs.iter();
    runs.map(|run| run.seed).collect::<BTreeSet<u64>>().len() as u64
}

/// The plan's inputs, a row each.
pub(crate) fn inputs(set: &RunSet) -> Vec<[String; 6]> {
    let inputs = set.manifest.plan.inputs.iter().take(INPUT_ROWS);
    inputs
        .map(|input| {
            let origin = match input.facts_origin {
                FactsOrigin::Scenario => "planted or written in the scenario",
                FactsOrigin::Expected => "given on the command line",
                FactsOrigin::Derived => "derived: self-consistency",
            };
            [
                plain(&input.scenario),
                plain(&input.input),
                input.class.as_str().to_owned(),
                grouped(input.largest_result_bytes),
                grouped(input.facts.len() as u64),
                origin.to_owned(),
            ]
        })
        .collect()
}

/// What each configuration sets, a row each, in plan order.
pub(crate) fn configurations(set: &RunSet) -> Vec<[String; 6]> {
    let all = set.manifest.plan.configurations.iter();
    all.map(|configuration| {
        let settings = configuration.effective_settings.as_ref();
        let setting = |key: &str| match settings.and_then(|settings| settings.get(key)) {
            None | Some(Value::Null) => NOTHING.to_owned(),
            Some(Value::String(text)) => plain(text),
            Some(Value::Number(number)) => {
                number.as_u64().map_or_else(|| number.to_string(), grouped)
            }
            Some(other) => plain(&other.to_string()),
        };
        let role = match (configuration.role, configuration.shipped) {
            (ConfigurationRole::Control, _) => "control",
            (ConfigurationRole::Candidate, true) => "candidate, ships today",
            (ConfigurationRole::Candidate, false) => "candidate",
        };
        let limit = if configuration.enabled {
            setting("threshold_bytes")
        } else {
            "off".to_owned()
        };
        [
            plain(&configuration.name),
            role.to_owned(),
            setting("policy"),
            setting("store"),
            limit,
            setting("preview_share"),
        ]
    })
    .collect()
}

/// What a verdict hangs on, a row for each assumption and a column for each scenario.
pub(crate) fn assumptions(set: &RunSet) -> Vec<(&'static str, Vec<String>)> {
    let models = &set.manifest.plan.models;
    let each = |write: &dyn Fn(&ModelRecord) -> String| models.iter().map(write).collect();
    let mut rows = vec![("model", each(&|m| plain(&m.model)))];
    match set.manifest.mode {
        Mode::Simulated => rows.extend(of_simulation(&each)),
        Mode::Live => {}
    }
    rows.extend([
        ("iteration limit", each(&|m| grouped(m.iteration_limit))),
        ("step timeout, ms", each(&|m| grouped(m.step_timeout_ms))),
        ("run timeout, ms", each(&|m| grouped(m.run_timeout_ms))),
    ]);
    rows
}

/// A value for each scenario.
type Each<'a> = dyn Fn(&dyn Fn(&ModelRecord) -> String) -> Vec<String> + 'a;

/// What only a simulated model has.
fn of_simulation(each: &Each<'_>) -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("population", each(&mix)),
        (
            "context window, tokens",
            each(&|m| grouped(m.context_window_tokens)),
        ),
        ("parallel calls", each(&|m| grouped(m.parallel_calls))),
        ("bytes of one read", each(&|m| grouped(m.slice_bytes))),
        (
            "lines read around a place",
            each(&|m| grouped(m.window_lines)),
        ),
        (
            "reading budget of selective, bytes",
            each(&|m| grouped(m.reading_budget_bytes)),
        ),
    ]
}

/// The rules' limits.
pub(crate) fn limits(set: &RunSet) -> Vec<(&'static str, String)> {
    let rules = &set.manifest.plan.rules;
    vec![
        (
            "rule 3, small and medium: input tokens of control, at most",
            figure(rules.input_tokens_ratio_limit),
        ),
        (
            "rule 3, large: input tokens of control, below",
            figure(rules.large_input_tokens_ratio_limit),
        ),
        ("rule 4: allowance", figure(rules.quality_allowance)),
        (
            "live mode: margins of rules 1 and 4",
            format!(
                "{} and {}",
                figure(rules.success_margin),
                figure(rules.quality_margin)
            ),
        ),
        (
            "rule 4: derived facts needed",
            grouped(rules.derived_facts_needed),
        ),
        (
            "runs that the harness may lose",
            percent(rules.infrastructure_budget),
        ),
        (
            "repetitions of a cell",
            set.manifest.plan.repetitions.to_string(),
        ),
    ]
}

fn mix(model: &ModelRecord) -> String {
    let shares: Vec<String> = model
        .population
        .iter()
        .map(|(name, share)| format!("{} {}", plain(name), percent(*share)))
        .collect();
    shares.join(", ")
}
