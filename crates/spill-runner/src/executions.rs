//! What many executions of one step take of one host: all in one process at once.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use spill_mocks::{MockRun, ToolServer};
use spill_record::{
    ConfigurationRecord, ExecutionsRecord, InputRecord, PlannedRun, SCHEMA, digest_parts,
};
use spill_scenario::{Profile, Scenario};
use tokio::sync::watch;

use crate::dirs::RunDirs;
use crate::execute::{Harness, RunError, any_port, control_of};
use crate::job;
use crate::process::{self, Ended, Finished, Launch};
use crate::tree_memory::TreeMemory;
use crate::watch::{Own, State, Traces, Watch, WatchError};

/// What a job names the execution by, as the built-in subject has it.
const EXECUTION_PLACEHOLDER: &str = "{execution}";

/// The last line of `step --executions`.
#[derive(Deserialize)]
struct LastLine {
    answered: u64,
    persisted: u64,
    memory: Memory,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    before_bytes: Option<u64>,
    before_anonymous_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    after_bytes: Option<u64>,
    after_anonymous_bytes: Option<u64>,
}

/// What a process left in its folders and its log, or why that is not known.
type Searched = Result<Traces, String>;

/// One measurement.
struct Case<'a> {
    /// The cell's planned runs, which the executions take in turn for seed and profile.
    planned: Vec<&'a PlannedRun>,
    scenario: &'a Scenario,
    configuration: &'a ConfigurationRecord,
    count: NonZeroU32,
}

impl Harness {
    /// Runs, for each of `counts` and each configuration, so many executions of the built-in subject at
    /// once in one process, on the plan's input with the largest result, and tells what the process took of
    /// memory. They take seeds and profiles of the plan's repetitions in turn; planned faults are left out.
    ///
    /// Ends early, with what is measured by then, when `stop` turns true.
    ///
    /// # Errors
    ///
    /// Fails when a tool server cannot be started; executions that fail are part of a record.
    pub async fn executions(
        &self,
        counts: &[NonZeroU32],
        memory_limit_bytes: u64,
        stop: watch::Receiver<bool>,
    ) -> Result<Vec<ExecutionsRecord>, RunError> {
        let plan = &self.shared.plan.record;
        let mut records = Vec::new();
        let Some(input) = largest(&plan.inputs) else {
            return Ok(records);
        };
        let tools = ToolServer::start(any_port(), self.shared.registry.clone())
            .await
            .map_err(RunError::Servers)?;
        for count in counts {
            for configuration in &plan.configurations {
                let planned = plan.runs.iter().filter(|run| {
                    (&run.scenario, &run.input) == (&input.scenario, &input.input)
                        && run.configuration == configuration.name
                });
                let case = Case {
                    planned: planned.collect(),
                    scenario: self.shared.scenario(&input.scenario),
                    configuration,
                    count: *count,
                };
                if case.planned.is_empty() {
                    continue;
                }
                let mut record = blank(&case, input, memory_limit_bytes);
                if !configuration.sidecars.is_empty() {
                    record.error = Some("not measured: the configuration has sidecars".to_owned());
                    records.push(record);
                    continue;
                }
                let (told, traces) = self.measure(&case, &tools, stop.clone()).await;
                match told {
                    Ok(Some(last)) => fill(&mut record, &last),
                    Ok(None) => return Ok(records),
                    Err(why) => record.error = Some(why),
                }
                if let Some(traces) = traces {
                    fill_traces(&mut record, traces);
                }
                records.push(record);
            }
        }
        self.shared.launchers.close().await;
        Ok(records)
    }

    /// The last line of one process, `None` when it was told to stop; and what it left behind.
    async fn measure(
        &self,
        case: &Case<'_>,
        tools: &ToolServer,
        stop: watch::Receiver<bool>,
    ) -> (Result<Option<LastLine>, String>, Option<Searched>) {
        let count = case.count.to_string();
        let stem = digest_parts(&["executions", &case.planned[0].run_id, &count]);
        let run_id = |execution: &str| format!("{stem}-{execution}");
        let in_turn = case.planned.iter().cycle();
        for (execution, planned) in (1..=case.count.get()).zip(in_turn) {
            self.register(case.scenario, planned, run_id(&execution.to_string()));
        }
        let of_each = run_id(EXECUTION_PLACEHOLDER);
        let ended = self
            .process(case, &tools.url(&of_each), &of_each, stop)
            .await;
        let mut unscripted = None;
        for execution in 1..=case.count.get() {
            let journal = self.shared.registry.finish(&run_id(&execution.to_string()));
            unscripted = unscripted.or_else(|| journal.unscripted.first().cloned());
        }
        tools.reset().await;
        let (ended, traces) = match ended {
            Ok((ended, traces)) => (ended, traces),
            Err(error) => return (Err(error.to_string()), None),
        };
        if let Some(request) = unscripted {
            let why =
                format!("a mock server was asked for something outside its script: {request}");
            return (Err(why), traces);
        }
        let told = match ended {
            Ended::Cancelled => Ok(None),
            Ended::Exited(finished) => last_line(&finished).map(Some),
            Ended::TimedOut(_) => Err("the process was killed when its time was over".to_owned()),
            Ended::OutputTooLarge(_) => {
                Err("the process was killed: it printed more than 256 MiB".to_owned())
            }
        };
        (told, traces)
    }

    fn register(&self, scenario: &Scenario, planned: &PlannedRun, run_id: String) {
        let key = (planned.scenario.clone(), planned.input.clone());
        self.shared.registry.register(MockRun {
            run_id,
            recipe: scenario.recipe,
            served: self.shared.inputs[&key].served.clone(),
            seed: planned.seed,
            scenario: planned.scenario.clone(),
            model: self.shared.models[&planned.scenario].clone(),
            profile: Profile::parse(&planned.profile).expect("the plan draws known profiles"),
            faults: Arc::new([]),
        });
    }

    async fn process(
        &self,
        case: &Case<'_>,
        tools_url: &str,
        run_id: &str,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<(Ended, Option<Searched>)> {
        let options = &self.shared.options;
        let dirs = RunDirs::create(options.temp.join(format!("executions-{}", case.count)))?;
        // They share a processor: each may take the time of all.
        let patient = |ms: u64| ms.saturating_mul(u64::from(case.count.get()));
        let mut job = job::job(case.scenario, run_id, &self.llm.base_url(run_id), tools_url);
        job["stepTimeoutMs"] = patient(case.scenario.limits.step_timeout_ms).into();
        let path = dirs.write_harness_file(job::FILE, &job.to_string())?;
        let arguments = [
            "--job".into(),
            path.into(),
            "--executions".into(),
            case.count.to_string().into(),
            "--totals".into(),
        ];
        let launch = Launch {
            launchers: &self.shared.launchers,
            command: options.subject.command(&options.spillgate, &arguments),
            env: process::filled(&case.configuration.env, &dirs, case.planned[0].seed),
            confined: true,
            tree_memory: TreeMemory::Not,
            timeout: Duration::from_millis(patient(case.scenario.limits.run_timeout_ms)),
        };
        let state = if process::declares_state(&case.configuration.env) {
            State::Declared
        } else {
            State::Undeclared
        };
        let watch = Watch::start(&dirs, state, Own::default(), stop.clone())?;
        let ended = process::run(&dirs, launch, stop).await?;
        let log = match &ended {
            Ended::Cancelled => return Ok((ended, None)),
            Ended::Exited(finished)
            | Ended::TimedOut(finished)
            | Ended::OutputTooLarge(finished) => &finished.log,
        };
        let planned = case.planned[0];
        let input = &self.shared.inputs[&(planned.scenario.clone(), planned.input.clone())];
        let found = watch.finish(&dirs, log, &input.needles, &control_of(planned));
        let traces = match found {
            Err(WatchError::Stopped) => return Ok((Ended::Cancelled, None)),
            found => found.map(|(traces, _)| traces),
        };
        Ok((ended, Some(traces.map_err(|error| error.to_string()))))
    }
}

/// The first input with the largest result.
fn largest(inputs: &[InputRecord]) -> Option<&InputRecord> {
    let most = inputs.iter().map(|input| input.largest_result_bytes).max();
    inputs
        .iter()
        .find(|input| Some(input.largest_result_bytes) == most)
}

fn blank(case: &Case<'_>, input: &InputRecord, memory_limit_bytes: u64) -> ExecutionsRecord {
    let settings = case.configuration.effective_settings.as_ref();
    let budget = settings.and_then(|settings| settings["budget_bytes"].as_u64());
    ExecutionsRecord {
        schema: SCHEMA,
        scenario: input.scenario.clone(),
        input: input.input.clone(),
        configuration: case.configuration.name.clone(),
        executions: u64::from(case.count.get()),
        answered: 0,
        results_persisted: 0,
        budget_bytes: budget.filter(|_| case.configuration.enabled),
        memory_limit_bytes,
        before_bytes: None,
        before_anonymous_bytes: None,
        peak_bytes: None,
        after_bytes: None,
        after_anonymous_bytes: None,
        files_written: None,
        leak_findings: Vec::new(),
        error: None,
    }
}

fn fill(record: &mut ExecutionsRecord, last: &LastLine) {
    record.answered = last.answered;
    record.results_persisted = last.persisted;
    record.before_bytes = last.memory.before_bytes;
    record.before_anonymous_bytes = last.memory.before_anonymous_bytes;
    record.peak_bytes = last.memory.peak_bytes;
    record.after_bytes = last.memory.after_bytes;
    record.after_anonymous_bytes = last.memory.after_anonymous_bytes;
}

/// A search that cannot be trusted makes the measurement one that went wrong.
fn fill_traces(record: &mut ExecutionsRecord, searched: Searched) {
    match searched {
        Ok(traces) => {
            record.files_written = Some(traces.files_written);
            record.leak_findings = traces.findings;
        }
        Err(why) => record.error = record.error.take().or(Some(why)),
    }
}

fn last_line(finished: &Finished) -> Result<LastLine, String> {
    let code = match &finished.report {
        Ok(report) => report.exit_code,
        Err(said) => return Err(format!("the process was not started: {said}")),
    };
    if code != Some(0) {
        let how = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        return Err(format!("the process ended with {how}"));
    }
    serde_json::from_slice(&finished.stdout)
        .map_err(|error| format!("the process did not tell its memory: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;

    #[test]
    fn what_is_left_behind_is_recorded_and_a_blind_search_is_an_error() {
        let line = r#"{"schema":3,"scenario":"s","input":"i","configuration":"c","executions":1,"answered":1,
            "results_persisted":0,"memory_limit_bytes":1}"#;
        let blank: ExecutionsRecord = serde_json::from_str(line).expect("an older record");
        assert_eq!((blank.files_written, blank.leak_findings.len()), (None, 0));
        let mut record = blank.clone();
        let traces = Traces {
            files_written: 2,
            kept_files: None,
            findings: vec!["a canary in standard error".to_owned()],
            state_files: Vec::new(),
        };
        fill_traces(&mut record, Ok(traces));
        assert_eq!(
            (record.files_written, record.leak_findings.len()),
            (Some(2), 1)
        );
        assert_eq!(record.error, None);
        let mut record = blank;
        fill_traces(&mut record, Err("blind".to_owned()));
        assert_eq!(record.files_written, None);
        fill_traces(&mut record, Err("later".to_owned()));
        assert_eq!(record.error.as_deref(), Some("blind"));
    }

    #[test]
    fn what_ended_otherwise_or_says_nothing_is_an_error() {
        let finished = |code, stdout: &str| Finished {
            stdout: stdout.as_bytes().to_vec(),
            log: Log::of(""),
            wall: Duration::ZERO,
            report: Ok(crate::launcher::LaunchReport {
                exit_code: code,
                signal: None,
                peak_rss_bytes: 0,
                cpu_us: 0,
                confined: false,
                tree: None,
            }),
        };
        let line = r#"{"executions":2,"answered":1,"persisted":3,"memory":{"peakBytes":5}}"#;
        let last = last_line(&finished(Some(0), line)).expect("a line");
        assert_eq!((last.answered, last.persisted), (1, 3));
        assert_eq!(last.memory.peak_bytes, Some(5));
        assert_eq!(last.memory.after_bytes, None, "what is not told is missing");
        let check = |code, stdout, words: &str| {
            let why = last_line(&finished(code, stdout)).err().expect("an error");
            assert!(why.contains(words), "{why}");
        };
        check(Some(2), line, "exit code 2");
        check(None, line, "a signal");
        check(Some(0), "", "did not tell its memory");
    }
}
