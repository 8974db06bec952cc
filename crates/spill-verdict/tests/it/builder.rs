//! A valid run folder with 60 runs that a case alters.

use std::collections::BTreeMap;

use spill_record::{
    Class, ConfigurationRecord, ConfigurationRole, EndReason, FactPlace, FactRecord, FactsOrigin,
    FolderKind, Host, InputRecord, MEASURED_COLUMNS, Manifest, Mode, ModelRecord, Outcome,
    PlanRecord, PlannedRun, RulesRecord, RunRecord, RunSet, SCHEMA, Stage, Versions, digest,
};

const PROFILES: [&str; 5] = ["selective", "diligent", "hasty", "selective", "selective"];

/// A set of records under construction.
pub(crate) struct Case {
    pub(crate) set: RunSet,
}

impl Case {
    /// The built-in plan, every run recorded, every rule held by every candidate.
    pub(crate) fn full() -> Self {
        Self::with_repetitions(Stage::Full, 5)
    }

    pub(crate) fn with_repetitions(stage: Stage, repetitions: u32) -> Self {
        let inputs = vec![
            input("review", "small", Class::Small, 20_000, 6),
            input("review", "medium", Class::Medium, 90_000, 9),
            input("review", "large", Class::Large, 350_000, 12),
            input("document", "document", Class::Document, 100_000, 20),
        ];
        let configurations = vec![
            configuration("off", None, ConfigurationRole::Control),
            configuration("128KiB", Some(131_072), ConfigurationRole::Candidate),
            configuration("32KiB", Some(32_768), ConfigurationRole::Candidate),
        ];
        let mut planned = Vec::new();
        for input in &inputs {
            for repetition in 0..repetitions {
                for configuration in &configurations {
                    planned.push(plan_run(input, repetition, configuration));
                }
            }
        }
        let plan = PlanRecord {
            models: vec![model("review"), model("document")],
            rules: RulesRecord {
                input_tokens_ratio_limit: 1.1,
                large_input_tokens_ratio_limit: 1.0,
                quality_allowance: 0.0,
                success_margin: 0.1,
                quality_margin: 0.1,
                derived_facts_needed: 5,
                infrastructure_budget: 0.05,
            },
            configurations,
            inputs,
            repetitions,
            runs: planned,
        };
        let runs = plan.runs.iter().map(|run| record(&plan, run)).collect();
        Self {
            set: RunSet {
                manifest: manifest(stage, plan),
                runs,
                sensitivity: vec![],
                executions: vec![],
                torn: vec![],
                prices: None,
                spending: None,
            },
        }
    }

    /// Alters every run of one cell.
    pub(crate) fn cell(
        mut self,
        configuration: &str,
        input: &str,
        alter: impl Fn(&mut RunRecord),
    ) -> Self {
        let cell = self
            .set
            .runs
            .iter_mut()
            .filter(|run| run.configuration == configuration && run.input == input);
        let mut altered = 0;
        for run in cell {
            alter(run);
            altered += 1;
        }
        assert!(
            altered > 0,
            "no run of {input} under {configuration} to alter"
        );
        self
    }

    /// Alters one run of one cell.
    pub(crate) fn one(
        self,
        configuration: &str,
        input: &str,
        repetition: u32,
        alter: impl Fn(&mut RunRecord),
    ) -> Self {
        self.cell(configuration, input, |run| {
            if run.repetition == repetition {
                alter(run);
            }
        })
    }

    /// Alters every run.
    pub(crate) fn every(mut self, alter: impl Fn(&mut RunRecord)) -> Self {
        self.set.runs.iter_mut().for_each(alter);
        self
    }

    /// Alters the whole set.
    pub(crate) fn set(mut self, alter: impl FnOnce(&mut RunSet)) -> Self {
        alter(&mut self.set);
        self
    }

    /// Removes the records that `gone` picks.
    pub(crate) fn without(mut self, gone: impl Fn(&RunRecord) -> bool) -> Self {
        let before = self.set.runs.len();
        self.set.runs.retain(|run| !gone(run));
        assert!(self.set.runs.len() < before, "no run to remove");
        self
    }
}

/// Makes a run one that the subject did not complete.
pub(crate) fn fail(run: &mut RunRecord) {
    run.outcome = Outcome::Failed;
    run.end_reason = EndReason::ContextWindow;
    run.facts_found = Some(0);
    run.end_facts_found = run.end_facts_expected.map(|_| 0);
    run.quality = run.facts_expected.map(|_| 0.0);
    run.error = Some("a request did not fit the context window".to_owned());
}

/// Makes a run one that the harness lost.
pub(crate) fn lose(run: &mut RunRecord) {
    run.outcome = Outcome::Infrastructure;
    run.end_reason = EndReason::MockUnavailable;
    run.quality = None;
    run.error = Some("the mock server could not be reached".to_owned());
}

/// Makes a run one that used up its iterations.
pub(crate) fn exhaust(run: &mut RunRecord) {
    run.outcome = Outcome::Failed;
    run.end_reason = EndReason::IterationLimit;
    run.hit_iteration_limit = Some(true);
    run.iterations = Some(40);
}

/// Scores a run.
pub(crate) fn score(run: &mut RunRecord, found: u64, end_found: u64) {
    let expected = run.facts_expected.expect("the case's input has facts");
    run.facts_found = Some(found);
    run.end_facts_found = Some(end_found);
    run.quality = Some(found as f64 / expected as f64);
}

fn configuration(
    name: &str,
    threshold_bytes: Option<u64>,
    role: ConfigurationRole,
) -> ConfigurationRecord {
    let enabled = threshold_bytes.is_some();
    ConfigurationRecord {
        name: name.to_owned(),
        role,
        shipped: name == "128KiB",
        env: BTreeMap::new(),
        enabled,
        threshold_bytes,
        policy: None,
        store: None,
        preview_share: None,
        sidecars: Vec::new(),
        effective_settings: Some(settings(enabled, threshold_bytes)),
    }
}

fn settings(enabled: bool, threshold_bytes: Option<u64>) -> serde_json::Value {
    serde_json::json!({
        "enabled": enabled,
        "threshold_bytes": threshold_bytes.unwrap_or(131_072),
        "budget_bytes": 16_777_216,
    })
}

fn input(scenario: &str, name: &str, class: Class, largest: u64, facts: u32) -> InputRecord {
    let facts = (0..facts).map(|index| FactRecord {
        id: format!("fact-{index}"),
        carrier: format!("src/file_{index}.rs"),
        carrier_bytes: largest,
        place: Some(match index % 4 {
            0 => FactPlace::Beginning,
            1 | 2 => FactPlace::Middle,
            _ => FactPlace::End,
        }),
    });
    InputRecord {
        scenario: scenario.to_owned(),
        recipe: scenario.to_owned(),
        input: name.to_owned(),
        class,
        largest_result_bytes: largest,
        content_digest: digest(name.as_bytes()),
        facts_origin: FactsOrigin::Scenario,
        notes: Vec::new(),
        facts: facts.collect(),
    }
}

fn model(scenario: &str) -> ModelRecord {
    ModelRecord {
        scenario: scenario.to_owned(),
        model: "simulated-reader".to_owned(),
        population: BTreeMap::from([
            ("diligent".to_owned(), 0.2),
            ("hasty".to_owned(), 0.2),
            ("selective".to_owned(), 0.6),
        ]),
        context_window_tokens: 400_000,
        parallel_calls: 4,
        slice_bytes: 16_384,
        window_lines: 100,
        reading_budget_bytes: 65_536,
        iteration_limit: 40,
        step_timeout_ms: 20_000,
        run_timeout_ms: 30_000,
        recall: Vec::new(),
        latency: None,
        faults: Vec::new(),
        expected_end: None,
    }
}

fn plan_run(
    input: &InputRecord,
    repetition: u32,
    configuration: &ConfigurationRecord,
) -> PlannedRun {
    let pair = format!("{}/{}/{repetition}", input.scenario, input.input);
    PlannedRun {
        run_id: digest(format!("{pair}/{}", configuration.name).as_bytes()),
        pair_id: digest(pair.as_bytes()),
        scenario: input.scenario.clone(),
        input: input.input.clone(),
        configuration: configuration.name.clone(),
        repetition,
        seed: 1_000 + u64::from(repetition),
        profile: PROFILES[repetition as usize % PROFILES.len()].to_owned(),
    }
}

/// Tokens and results stored that a plausible run has.
fn effect(input: &str, configuration: &str) -> (u64, u64) {
    match (input, configuration) {
        ("small", _) => (60_000, 0),
        ("medium", "32KiB") => (190_000, 4),
        ("medium", _) => (200_000, 0),
        ("large", "off") => (900_000, 0),
        ("large", "128KiB") => (500_000, 4),
        ("large", _) => (350_000, 7),
        ("document", "32KiB") => (80_000, 1),
        _ => (70_000, 0),
    }
}

/// The record that a planned run leaves when all goes well.
pub(crate) fn record(plan: &PlanRecord, run: &PlannedRun) -> RunRecord {
    let input = plan
        .inputs
        .iter()
        .find(|input| input.scenario == run.scenario && input.input == run.input)
        .expect("the run's input is in the plan");
    let configuration = plan
        .configurations
        .iter()
        .find(|configuration| configuration.name == run.configuration)
        .expect("the run's configuration is in the plan");
    let (tokens, stored) = effect(&run.input, &run.configuration);
    let input_tokens = tokens + tokens / 50 * u64::from(run.repetition % 5);
    let facts = input.facts.len() as u64;
    let end = input
        .facts
        .iter()
        .filter(|fact| fact.place == Some(FactPlace::End))
        .count() as u64;
    let sent = if stored == 0 {
        run.pair_id.clone()
    } else {
        run.run_id.clone()
    };
    let measured = f64::from(run.repetition) + stored as f64 * 3.0 + tokens as f64 / 10_000.0;
    RunRecord {
        schema: SCHEMA,
        run_id: run.run_id.clone(),
        pair_id: run.pair_id.clone(),
        scenario: run.scenario.clone(),
        recipe: input.recipe.clone(),
        input: run.input.clone(),
        class: input.class,
        configuration: run.configuration.clone(),
        policy: Some("workflow-step".to_owned()),
        store: Some("memory".to_owned()),
        threshold_bytes: Some(131_072),
        preview_share: None,
        repetition: run.repetition,
        seed: run.seed,
        subject: "built-in".to_owned(),
        model: "simulated-reader".to_owned(),
        profile: run.profile.clone(),
        outcome: Outcome::Succeeded,
        end_reason: EndReason::Answered,
        hit_iteration_limit: Some(false),
        iterations: Some(5 + stored),
        llm_calls: Some(5 + stored),
        llm_retries: Some(0),
        input_tokens: Some(input_tokens),
        cached_input_tokens: Some(input_tokens / 2),
        cached_before_read_tool_tokens: Some(0),
        cached_after_read_tool_tokens: Some(0),
        cache_write_tokens: Some(0),
        output_tokens: Some(900 + 40 * stored),
        duration_ms: Some(measured),
        process_ms: Some(measured + 4.25),
        cpu_ms: Some(measured / 2.0),
        model_time_ms: None,
        tool_calls: Some(9 + 2 * stored),
        tool_result_bytes: Some(3 * input.largest_result_bytes),
        largest_result_bytes: Some(input.largest_result_bytes),
        results_persisted: Some(stored),
        persisted_by_tool: if stored > 0 {
            BTreeMap::from([("read_file".to_owned(), stored)])
        } else {
            BTreeMap::new()
        },
        results_read_back: Some(stored / 2),
        reads: Some(stored),
        reads_with_range: Some(stored),
        read_bytes: Some(stored * 16_384),
        reread_bytes: Some(0),
        store_peak_bytes: Some(stored * input.largest_result_bytes),
        peak_rss_bytes: Some(9_000_000 + tokens * 4 + u64::from(run.repetition) * 4_096),
        body_bytes: Some(3 * input.largest_result_bytes + 2_000),
        facts_expected: Some(facts),
        facts_found: Some(facts - 1),
        end_facts_expected: Some(end),
        end_facts_found: Some(end),
        large_file_facts_expected: Some(0),
        large_file_facts_found: Some(0),
        missed_facts: vec!["fact-0".to_owned()],
        unfounded_findings: Some(0),
        faults: Vec::new(),
        quality: Some((facts - 1) as f64 / facts as f64),
        files_written: Some(0),
        state_files: Vec::new(),
        state_bytes: Some(0),
        leak_findings: vec![],
        leak_check: "inotify+search".to_owned(),
        prompt_digest: Some(digest(sent.as_bytes())),
        offered_tools_digest: Some(digest(if stored == 0 { b"plain" } else { b"spill" })),
        effective_settings: Some(settings(
            configuration.enabled,
            configuration.threshold_bytes,
        )),
        error: None,
        same_as: None,
        kept_files: None,
        sidecars: Vec::new(),
        sampled_memory_bytes: None,
        memory_check: None,
    }
}

fn manifest(stage: Stage, plan: PlanRecord) -> Manifest {
    Manifest {
        schema: SCHEMA,
        acceptance_id: "20260101T000000Z-0123456789abcdef".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        plan_hash: "0123456789abcdef".to_owned(),
        stage,
        mode: Mode::Simulated,
        endpoint: None,
        kind: FolderKind::Acceptance,
        subject: "built-in".to_owned(),
        base_seed: 42,
        versions: Versions {
            spillgate: "0.1.0".to_owned(),
            tokenizer: "o200k_base (bpe-openai 0.3.2)".to_owned(),
        },
        commit: Some("4f1d2c3b5a6978800112233445566778899aabbc".to_owned()),
        dirty: Some(false),
        host: Host {
            os: "linux".to_owned(),
            arch: "x86_64".to_owned(),
            cpus: 2,
            memory_bytes: Some(8 << 30),
        },
        measured_columns: MEASURED_COLUMNS.map(str::to_owned).to_vec(),
        plan,
        shard: None,
        manifest_digest: String::new(),
    }
}
