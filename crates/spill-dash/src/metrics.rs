//! The figures of the newest run folder, as Prometheus reads them.
//!
//! Each record is counted once, when it is first seen; a restart reads them all and shows the same. A
//! counter that falls belongs to a newer folder, which scrapers take for a restart. Labels come from
//! closed sets: the plan's configurations, rules, states, outcomes, reasons; tool names beyond
//! [`TOOLS`] share one label.

use std::collections::{BTreeMap, BTreeSet};

use prometheus::{
    Encoder, Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};
use spill_record::{CallRecord, ConfigurationRole, EndReason, Outcome, RunRecord, RunSet};
use spill_verdict::{Rule, State, Verdict, plain};

use crate::board::{Card, CardState};

/// Distinct values of a `tool` label at most.
const TOOLS: usize = 50;
const OTHER_TOOLS: &str = "other";
/// Bucket boundaries of `gen_ai.client.token.usage`, from OpenTelemetry's semantic conventions for
/// generative AI metrics.
const TOKEN_BUCKETS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Bucket boundaries of `gen_ai.client.operation.duration`, in seconds, from the same conventions.
const DURATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// 4 MiB to 2 GiB, doubling.
const MEMORY_BUCKETS: [f64; 10] = [
    4_194_304.0,
    8_388_608.0,
    16_777_216.0,
    33_554_432.0,
    67_108_864.0,
    134_217_728.0,
    268_435_456.0,
    536_870_912.0,
    1_073_741_824.0,
    2_147_483_648.0,
];
/// 1 KiB to 1 MiB, doubling twice.
const OUTPUT_BUCKETS: [f64; 6] = [1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0];
/// The provider that every call of the harness goes to.
const PROVIDER: &str = "spillgate";

const OUTCOMES: [Outcome; 3] = [Outcome::Succeeded, Outcome::Failed, Outcome::Infrastructure];
const STATES: [State; 5] = [
    State::Holds,
    State::Broken,
    State::NotProven,
    State::NotApplicable,
    State::NotRun,
];
/// Reasons for which the harness, and not the subject, loses a run.
const HARNESS_REASONS: [EndReason; 8] = [
    EndReason::MockUnavailable,
    EndReason::Mismatch,
    EndReason::UnexpectedEnd,
    EndReason::LeakCheckFailed,
    EndReason::EndpointFailed,
    EndReason::SpendingCap,
    EndReason::LaunchFailed,
    EndReason::SidecarFailed,
];

/// Every metric of one folder.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Tool names that have a label of their own.
    tools: BTreeSet<String>,
    registry: Registry,
    runs_planned: IntGauge,
    runs: IntGaugeVec,
    cells_planned: IntGauge,
    cells_done: IntGauge,
    in_progress: IntGauge,
    eta: Gauge,
    exit_code: IntGauge,
    rule_state: IntGaugeVec,
    rule_observed: GaugeVec,
    rule_limit: GaugeVec,
    harness_failures: IntCounterVec,
    leaking: IntGauge,
    input_tokens: IntCounterVec,
    tokens: HistogramVec,
    durations: HistogramVec,
    memory: HistogramVec,
    persisted: IntCounterVec,
    reads: IntCounterVec,
}

impl Metrics {
    fn new(configurations: &BTreeSet<String>, candidates: &[String]) -> Self {
        let registry = Registry::new();
        let metrics = Self {
            runs_planned: int_gauge(
                &registry,
                "spillgate_runs_planned",
                "Runs of the newest plan.",
            ),
            runs: int_gauge_vec(
                &registry,
                "spillgate_runs_done",
                "Runs of the newest plan that are recorded, by outcome.",
                &["outcome"],
            ),
            cells_planned: int_gauge(
                &registry,
                "spillgate_cells_planned",
                "Cells (scenario x input x configuration) of the newest plan.",
            ),
            cells_done: int_gauge(
                &registry,
                "spillgate_cells_done",
                "Cells of the newest plan all of whose runs are recorded.",
            ),
            in_progress: int_gauge(
                &registry,
                "spillgate_acceptance_in_progress",
                "1 while a process writes the newest run folder.",
            ),
            eta: gauge(
                &registry,
                "spillgate_eta_seconds",
                "Seconds until the newest plan is done at the rate so far; 0 when unknown or done.",
            ),
            exit_code: int_gauge(
                &registry,
                "spillgate_exit_code",
                "Exit code of the newest verdict; 5 (incomplete) while there is none.",
            ),
            rule_state: int_gauge_vec(
                &registry,
                "spillgate_rule_state",
                "1 for the state that a rule has for a candidate, 0 for every other; provisional \
                 while the acceptance is in progress.",
                &["candidate", "rule", "state"],
            ),
            rule_observed: gauge_vec(
                &registry,
                "spillgate_rule_observed_ratio",
                "The number that decides a rule for a candidate, in the rule's own measure.",
                &["candidate", "rule"],
            ),
            rule_limit: gauge_vec(
                &registry,
                "spillgate_rule_limit_ratio",
                "What that number is held against.",
                &["candidate", "rule"],
            ),
            harness_failures: counter_vec(
                &registry,
                "spillgate_infrastructure_failures_total",
                "Runs that the harness lost, by reason.",
                &["class"],
            ),
            leaking: int_gauge(
                &registry,
                "spillgate_leaking_runs",
                "Runs that wrote a file or let result content out.",
            ),
            input_tokens: counter_vec(
                &registry,
                "spillgate_input_tokens_total",
                "Prompt tokens of all recorded runs, by configuration.",
                &["configuration"],
            ),
            tokens: histogram_vec(
                &registry,
                "gen_ai_client_token_usage",
                "Tokens of one LLM call.",
                &TOKEN_BUCKETS,
                &[
                    "gen_ai_operation_name",
                    "gen_ai_provider_name",
                    "gen_ai_token_type",
                ],
            ),
            durations: histogram_vec(
                &registry,
                "gen_ai_client_operation_duration_seconds",
                "Duration of one step of the subject; single LLM calls are not timed.",
                &DURATION_BUCKETS,
                &["gen_ai_operation_name", "gen_ai_provider_name"],
            ),
            memory: histogram_vec(
                &registry,
                "spillgate_subject_peak_memory_bytes",
                "Peak resident memory of one subject process, by configuration.",
                &MEMORY_BUCKETS,
                &["configuration"],
            ),
            persisted: counter_vec(
                &registry,
                PERSISTED,
                "Results that workflow steps stored, by tool.",
                &["tool"],
            ),
            reads: counter_vec(
                &registry,
                READS,
                "Successful reads of stored results by workflow steps.",
                &["with_range"],
            ),
            registry,
            tools: BTreeSet::new(),
        };
        first_party(&metrics.registry);
        metrics.start(configurations, candidates);
        metrics
    }

    /// Makes every series of the plan, at 0.
    fn start(&self, configurations: &BTreeSet<String>, candidates: &[String]) {
        for outcome in OUTCOMES {
            self.runs.with_label_values(&[outcome.as_str()]);
        }
        for reason in HARNESS_REASONS {
            self.harness_failures.with_label_values(&[reason.as_str()]);
        }
        for candidate in candidates {
            for rule in Rule::ALL {
                let number = rule.number().to_string();
                for state in STATES {
                    let labels = [candidate.as_str(), &number, state.as_str()];
                    self.rule_state.with_label_values(&labels);
                }
                self.rule_observed.with_label_values(&[candidate, &number]);
                self.rule_limit.with_label_values(&[candidate, &number]);
            }
        }
        for configuration in configurations {
            self.input_tokens.with_label_values(&[configuration]);
            self.memory.with_label_values(&[configuration]);
        }
        for kind in ["input", "output"] {
            self.tokens.with_label_values(&["chat", PROVIDER, kind]);
        }
        self.durations
            .with_label_values(&["invoke_agent", PROVIDER]);
        start_spill_counters(&self.persisted, &self.reads);
        self.exit_code
            .set(i64::from(spill_verdict::exit::INCOMPLETE));
    }

    /// Counts a run.
    pub(crate) fn record(&mut self, run: &RunRecord) {
        self.runs.with_label_values(&[run.outcome.as_str()]).inc();
        if run.outcome == Outcome::Infrastructure {
            let reason = run.end_reason.as_str();
            self.harness_failures.with_label_values(&[reason]).inc();
        }
        let configuration = plain(&run.configuration);
        if let Some(tokens) = run.input_tokens {
            self.input_tokens
                .with_label_values(&[&configuration])
                .inc_by(tokens);
        }
        if let Some(bytes) = run.peak_rss_bytes {
            self.memory
                .with_label_values(&[&configuration])
                .observe(bytes as f64);
        }
        if let Some(ms) = run.duration_ms {
            self.durations
                .with_label_values(&["invoke_agent", PROVIDER])
                .observe(ms / 1_000.0);
        }
        count_spill(
            &self.persisted,
            &self.reads,
            &run.persisted_by_tool,
            run.reads.unwrap_or(0),
            run.reads_with_range.unwrap_or(0),
            &mut self.tools,
        );
    }

    /// Counts an LLM call.
    pub(crate) fn call(&self, call: &CallRecord) {
        if call.status != 200 {
            return;
        }
        let observe = |kind, tokens: u64| {
            self.tokens
                .with_label_values(&["chat", PROVIDER, kind])
                .observe(tokens as f64);
        };
        if let Some(tokens) = call.tokens {
            observe("input", tokens.input_tokens());
            observe("output", tokens.output_tokens);
        }
    }

    fn rules(&self, card: &Card) {
        for rule in &card.rules {
            let number = rule.number.to_string();
            for (candidate, cell) in card.candidates.iter().zip(&rule.cells) {
                for state in STATES {
                    let labels = [candidate.as_str(), &number, state.as_str()];
                    let is_it = state.as_str() == cell.state;
                    self.rule_state
                        .with_label_values(&labels)
                        .set(i64::from(is_it));
                }
                let labels = [candidate.as_str(), &number];
                if let Some(observed) = cell.observed {
                    self.rule_observed.with_label_values(&labels).set(observed);
                }
                if let Some(limit) = cell.limit {
                    self.rule_limit.with_label_values(&labels).set(limit);
                }
            }
        }
    }

    fn card(&self, card: &Card) {
        self.runs_planned.set(signed(card.planned));
        self.cells_planned.set(signed(card.cells_planned));
        self.cells_done.set(signed(card.cells_done));
        self.in_progress
            .set(i64::from(card.state == CardState::Running));
        self.eta.set(card.eta_seconds.unwrap_or(0.0));
        if let Some(code) = card.exit_code {
            self.exit_code.set(i64::from(code));
        }
    }

    fn text(&self) -> String {
        encode(&self.registry)
    }

    /// The metrics of a folder of which no record was counted yet.
    pub(crate) fn of(set: &RunSet) -> Self {
        let names = |wanted: &dyn Fn(ConfigurationRole) -> bool| {
            let all = set.manifest.plan.configurations.iter();
            all.filter(|one| wanted(one.role))
                .map(|one| plain(&one.name))
                .collect::<Vec<_>>()
        };
        let candidates = names(&|role| role == ConfigurationRole::Candidate);
        Self::new(&names(&|_| true).into_iter().collect(), &candidates)
    }

    /// The exposition: the counts so far, and what the card and the verdict say now.
    pub(crate) fn exposition(&self, card: &Card, verdict: Option<&Verdict>) -> String {
        self.card(card);
        self.rules(card);
        if let Some(verdict) = verdict {
            self.leaking.set(signed(verdict.leak_runs));
        }
        self.text()
    }
}

/// The exposition where there is no run folder yet: every metric, at 0, for the configuration `none`.
#[must_use]
pub fn zero_metrics() -> String {
    let none = "none".to_owned();
    Metrics::new(&BTreeSet::from([none.clone()]), &[none]).text()
}

/// Published name of the counter of stored results.
const PERSISTED: &str = "clerum_workflow_step_spillover_persisted_total";
/// Published name of the counter of reads.
const READS: &str = "clerum_workflow_step_spillover_reads_total";

/// The spill counters of one step in the text format, for a textfile collector; the first-party ones
/// stay at 0, since a workflow step counts for itself.
#[must_use]
pub fn textfile(persisted_by_tool: &BTreeMap<String, u64>, reads: u64, with_range: u64) -> String {
    let registry = Registry::new();
    let persisted = counter_vec(
        &registry,
        PERSISTED,
        "Results that workflow steps stored, by tool.",
        &["tool"],
    );
    let read = counter_vec(
        &registry,
        READS,
        "Successful reads of stored results by workflow steps.",
        &["with_range"],
    );
    first_party(&registry);
    start_spill_counters(&persisted, &read);
    count_spill(
        &persisted,
        &read,
        persisted_by_tool,
        reads,
        with_range,
        &mut BTreeSet::new(),
    );
    encode(&registry)
}

/// The first-party counters, which workflow steps never move.
fn first_party(registry: &Registry) {
    counter(
        registry,
        "clerum_spillover_persisted_total",
        "Results that first-party tools stored; workflow steps do not count here.",
    );
    counter(
        registry,
        "clerum_spillover_reads_total",
        "Reads of results that first-party tools stored; workflow steps do not count here.",
    );
    let output = histogram_vec(
        registry,
        "clerum_tool_output_bytes",
        "Sizes of first-party tool outputs; workflow steps do not count here.",
        &OUTPUT_BUCKETS,
        &["tool"],
    );
    output.with_label_values(&[OTHER_TOOLS]);
}

fn start_spill_counters(persisted: &IntCounterVec, reads: &IntCounterVec) {
    persisted.with_label_values(&[OTHER_TOOLS]);
    for with_range in ["true", "false"] {
        reads.with_label_values(&[with_range]);
    }
}

fn count_spill(
    persisted: &IntCounterVec,
    reads: &IntCounterVec,
    by_tool: &BTreeMap<String, u64>,
    all_reads: u64,
    with_range: u64,
    tools: &mut BTreeSet<String>,
) {
    for (tool, count) in by_tool {
        let name = plain(tool);
        let known = tools.contains(&name) || tools.len() < TOOLS;
        let label = if known {
            tools.insert(name.clone());
            name
        } else {
            OTHER_TOOLS.to_owned()
        };
        persisted.with_label_values(&[label]).inc_by(*count);
    }
    reads.with_label_values(&["true"]).inc_by(with_range);
    reads
        .with_label_values(&["false"])
        .inc_by(all_reads.saturating_sub(with_range));
}

fn encode(registry: &Registry) -> String {
    let mut text = Vec::new();
    TextEncoder::new()
        .encode(&registry.gather(), &mut text)
        .expect("metrics with fixed names encode into memory");
    String::from_utf8(text).expect("names, labels and numbers are UTF-8")
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    made: prometheus::Result<C>,
) -> C {
    let collector = made.expect("names and labels are fixed and well-formed");
    registry
        .register(Box::new(collector.clone()))
        .expect("every name is registered once");
    collector
}

fn int_gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    register(registry, IntGauge::new(name, help))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> Gauge {
    register(registry, Gauge::new(name, help))
}

fn int_gauge_vec(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn gauge_vec(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    register(registry, GaugeVec::new(Opts::new(name, help), labels))
}

fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    register(registry, IntCounter::new(name, help))
}

fn counter_vec(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn histogram_vec(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: &[f64],
    labels: &[&str],
) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    register(registry, HistogramVec::new(options, labels))
}
