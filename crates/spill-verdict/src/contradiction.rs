use std::collections::{BTreeSet, HashMap};

use serde_json::Value;
use spill_record::{ConfigurationRecord, InputRecord, PlanRecord, PlannedRun, RunRecord};

use crate::words::{place, plain};

/// Cells that the plan names but does not fill, and ids that it uses twice.
pub(crate) fn plan_problems(plan: &PlanRecord) -> Vec<String> {
    let mut cells: HashMap<(&str, &str, &str), BTreeSet<u32>> = HashMap::new();
    let mut ids = BTreeSet::new();
    let mut problems = Vec::new();
    for run in &plan.runs {
        cells
            .entry((&run.scenario, &run.input, &run.configuration))
            .or_default()
            .insert(run.repetition);
        if !ids.insert(run.run_id.as_str()) {
            problems.push(format!("the plan names run {} twice", plain(&run.run_id)));
        }
    }
    for input in &plan.inputs {
        for configuration in &plan.configurations {
            let key = (&*input.scenario, &*input.input, &*configuration.name);
            let found = cells
                .remove(&key)
                .map_or(0, |repetitions| repetitions.len());
            if u32::try_from(found).ok() != Some(plan.repetitions) {
                problems.push(format!(
                    "the plan has {found} of {} repetitions of {} under {}",
                    plan.repetitions,
                    place(&input.scenario, &input.input),
                    plain(&configuration.name)
                ));
            }
        }
    }
    for (scenario, input, configuration) in cells.into_keys() {
        problems.push(format!(
            "the plan runs {} under {}, which it does not describe",
            place(scenario, input),
            plain(configuration)
        ));
    }
    problems
}

/// What the plan says about inputs and configurations, by name.
pub(crate) struct Known<'a> {
    inputs: HashMap<(&'a str, &'a str), &'a InputRecord>,
    configurations: HashMap<&'a str, &'a ConfigurationRecord>,
}

impl<'a> Known<'a> {
    /// Indexes `plan`.
    pub(crate) fn of(plan: &'a PlanRecord) -> Self {
        Self {
            inputs: plan
                .inputs
                .iter()
                .map(|i| ((&*i.scenario, &*i.input), i))
                .collect(),
            configurations: plan.configurations.iter().map(|c| (&*c.name, c)).collect(),
        }
    }

    /// In what `record` contradicts the plan or itself, if in anything.
    pub(crate) fn contradiction(
        &self,
        subject: &str,
        planned: &PlannedRun,
        record: &RunRecord,
    ) -> Option<String> {
        let named = [
            ("pair", &planned.pair_id, &record.pair_id),
            ("scenario", &planned.scenario, &record.scenario),
            ("input", &planned.input, &record.input),
            (
                "configuration",
                &planned.configuration,
                &record.configuration,
            ),
            ("profile", &planned.profile, &record.profile),
        ];
        for (what, plan, found) in named {
            if plan != found {
                return Some(format!(
                    "its {what} is {}, the plan has {}",
                    plain(found),
                    plain(plan)
                ));
            }
        }
        if record.subject != subject {
            return Some(format!(
                "its subject is {}, the manifest has {}",
                plain(&record.subject),
                plain(subject)
            ));
        }
        if (planned.repetition, planned.seed) != (record.repetition, record.seed) {
            return Some(format!(
                "its repetition and seed are {} and {}, the plan has {} and {}",
                record.repetition, record.seed, planned.repetition, planned.seed
            ));
        }
        self.contradicts_description(record)
    }

    fn contradicts_description(&self, record: &RunRecord) -> Option<String> {
        let input = self.inputs.get(&(&*record.scenario, &*record.input))?;
        let configuration = self.configurations.get(&*record.configuration)?;
        if (&input.recipe, input.class) != (&record.recipe, record.class) {
            return Some(format!(
                "its recipe and class are {} and {}, the plan has {} and {}",
                plain(&record.recipe),
                record.class.as_str(),
                plain(&input.recipe),
                input.class.as_str()
            ));
        }
        if let Some(expected) = record.facts_expected
            && expected != input.facts.len() as u64
        {
            return Some(format!(
                "it was scored against {expected} facts, the plan has {}",
                input.facts.len()
            ));
        }
        unlike_settings(configuration, record.effective_settings.as_ref())
            .or_else(|| impossible_score(record))
    }
}

/// How the settings that the subject reports differ from what the configuration is labelled with.
fn unlike_settings(
    configuration: &ConfigurationRecord,
    settings: Option<&Value>,
) -> Option<String> {
    let settings = settings?;
    let enabled = settings.get("enabled").and_then(Value::as_bool);
    let threshold = settings.get("threshold_bytes").and_then(Value::as_u64);
    let unlike = enabled.is_some_and(|enabled| enabled != configuration.enabled)
        || (configuration.enabled
            && threshold.is_some()
            && threshold != configuration.threshold_bytes)
        || [
            ("policy", &configuration.policy),
            ("store", &configuration.store),
        ]
        .into_iter()
        .any(|(key, label)| {
            let used = settings.get(key).and_then(Value::as_str);
            used.is_some() && label.is_some() && used != label.as_deref()
        });
    unlike.then(|| {
        format!(
            "the subject ran with other settings than {} is labelled with",
            plain(&configuration.name)
        )
    })
}

/// A score outside its range, or unlike the counts it comes from.
fn impossible_score(record: &RunRecord) -> Option<String> {
    let counts = [
        ("facts", record.facts_expected, record.facts_found),
        (
            "end facts",
            record.end_facts_expected,
            record.end_facts_found,
        ),
    ];
    for (what, expected, found) in counts {
        if let (expected, Some(found)) = (expected.unwrap_or(0), found)
            && found > expected
        {
            return Some(format!("it found {found} of {expected} {what}"));
        }
    }
    let quality = record.quality?;
    let (Some(expected), Some(found)) = (record.facts_expected, record.facts_found) else {
        return Some("it has a quality without counts of facts".to_owned());
    };
    let close = (quality * expected as f64 - found as f64).abs() < 1e-6;
    (!close || expected == 0).then(|| format!("its quality is not {found} of {expected} facts"))
}
