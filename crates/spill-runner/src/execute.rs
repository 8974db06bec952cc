//! Executes a plan: workers take pairs, each run is one process.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spill_mocks::{LlmServer, MockRun, Registry, ToolServer, Upstream};
use spill_record::{CallRecord, EndReason, PlannedRun, RunRecord, SidecarRecord, digest_parts};
use spill_scenario::{
    AnswerRule, FaultKind, ModelSpec, Plan, PlannedFault, Profile, Scenario, ServedInput,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::assemble::{Identity, ProcessEnd, Seen, Witness, assemble};
use crate::dirs::{Rooms, RunDirs};
use crate::ended::{end_of, foreign_end, timed_out};
use crate::expected::Expected;
use crate::folder_events::FolderEvents;
use crate::foreign::{self, Addresses};
use crate::job;
use crate::launcher::{Launchers, TEMP_WAY_OUT};
use crate::leaks::Needles;
use crate::process::{self, Ended, Finished, Launch};
use crate::sidecar::{Ground, Servers, Sidecars};
use crate::subject::Subject;
use crate::tree_memory::TreeMemory;
use crate::watch::{Own, State, Watch, WatchError};

/// How a plan is executed; none of it changes what is recorded, measured columns apart.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program: its own launcher, and the built-in subject.
    pub spillgate: PathBuf,
    /// The agent under test.
    pub subject: Subject,
    /// Pairs that run at the same time.
    pub jobs: usize,
    /// An existing folder for the runs' own folders.
    pub temp: PathBuf,
    /// The real endpoint that answers in place of the simulated model.
    pub upstream: Option<Arc<Upstream>>,
    /// A cgroup of version 2 below which the process tree of a foreign subject may have its own.
    pub cgroup: Option<PathBuf>,
}

/// The plan could not be executed to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The mock servers could not be started.
    #[error("the mock servers could not be started on 127.0.0.1: {0}")]
    Servers(#[source] io::Error),
    /// A worker ended by a bug of ours.
    #[error("a worker ended early: {0}")]
    Worker(#[from] tokio::task::JoinError),
    /// A record could not be handed over.
    #[error(transparent)]
    Sink(Box<dyn std::error::Error + Send + Sync>),
}

/// One finished run.
#[derive(Debug)]
pub struct FinishedRun {
    /// Its record.
    pub record: RunRecord,
    /// Its LLM calls, in order.
    pub calls: Vec<CallRecord>,
}

/// Receives each run as it finishes.
pub type Sink<'a> =
    dyn FnMut(FinishedRun) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// The mock servers and everything that is prepared once for all runs of a plan.
pub struct Harness {
    pub(crate) shared: Arc<Shared>,
    pub(crate) llm: Arc<LlmServer>,
}

impl Harness {
    /// Starts the mock LLM and prepares the plan's inputs.
    ///
    /// # Errors
    ///
    /// Fails when no address can be bound.
    pub async fn start(plan: Arc<Plan>, options: Options) -> Result<Self, RunError> {
        let shared = Arc::new(Shared::new(plan, options));
        let llm = LlmServer::start(any_port(), shared.registry.clone())
            .await
            .map_err(RunError::Servers)?;
        Ok(Self {
            shared,
            llm: Arc::new(llm),
        })
    }

    /// The name of the tokenizer that counts.
    #[must_use]
    pub fn tokenizer(&self) -> &'static str {
        self.shared.registry.tokenizer()
    }

    /// Executes `pairs`, each a list of runs that go one after the other, and hands every finished
    /// run to `sink` at once.
    ///
    /// Ends early when `stop` turns true: runs in flight are killed and leave no record. No
    /// process that was started is alive when this returns.
    ///
    /// # Errors
    ///
    /// Fails when a tool server cannot be started or `sink` refuses a record; a run that fails is
    /// a record, not an error.
    pub async fn execute(
        &self,
        pairs: Vec<Vec<PlannedRun>>,
        stop: watch::Receiver<bool>,
        sink: &mut Sink<'_>,
    ) -> Result<(), RunError> {
        let jobs = self.shared.options.jobs.clamp(1, pairs.len().max(1));
        let pairs = Arc::new(Mutex::new(VecDeque::from(pairs)));
        let (halt, halted) = watch::channel(*stop.borrow());
        let forward = tokio::spawn(forward_stop(stop, halt.clone()));
        let (sender, mut finished) = mpsc::channel(16);
        let mut workers = JoinSet::new();
        for number in 0..jobs {
            let worker = Worker {
                rooms: Rooms::new(self.shared.options.temp.join(number.to_string())),
                pairs: pairs.clone(),
                shared: self.shared.clone(),
                llm: self.llm.clone(),
                stop: halted.clone(),
            };
            workers.spawn(worker.work(sender.clone()));
        }
        drop(sender);

        let mut refused = None;
        while let Some(run) = finished.recv().await {
            if refused.is_none()
                && let Err(error) = sink(run)
            {
                refused = Some(error);
                halt.send_replace(true);
            }
        }
        let mut failed = Ok(());
        while let Some(ended) = workers.join_next().await {
            failed = failed.and(
                ended
                    .map_err(RunError::from)
                    .and_then(|ended| ended.map_err(RunError::Servers)),
            );
        }
        forward.abort();
        self.shared.launchers.close().await;
        failed?;
        match refused {
            Some(error) => Err(RunError::Sink(error)),
            None => Ok(()),
        }
    }
}

/// Groups the runs at `order` into pairs, in that order.
#[must_use]
pub fn pairs_of(runs: impl IntoIterator<Item = PlannedRun>) -> Vec<Vec<PlannedRun>> {
    let mut pairs: Vec<Vec<PlannedRun>> = Vec::new();
    for run in runs {
        match pairs.last_mut() {
            Some(pair) if pair[0].pair_id == run.pair_id => pair.push(run),
            Some(_) | None => pairs.push(vec![run]),
        }
    }
    pairs
}

pub(crate) fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

async fn forward_stop(mut stop: watch::Receiver<bool>, halt: watch::Sender<bool>) {
    if stop.wait_for(|stop| *stop).await.is_ok() {
        halt.send_replace(true);
    }
}

/// What all workers read.
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) registry: Arc<Registry>,
    /// By scenario and input.
    pub(crate) inputs: HashMap<(String, String), PreparedInput>,
    pub(crate) models: HashMap<String, Arc<ModelSpec>>,
    environments: HashMap<String, std::collections::BTreeMap<String, String>>,
    /// By configuration.
    sidecars: HashMap<String, Vec<SidecarRecord>>,
    pub(crate) launchers: Launchers,
    pub(crate) options: Options,
}

pub(crate) struct PreparedInput {
    /// Position in the plan record's inputs.
    index: usize,
    pub(crate) served: Arc<ServedInput>,
    pub(crate) needles: Needles,
}

impl Shared {
    fn new(plan: Arc<Plan>, options: Options) -> Self {
        let inputs = plan
            .record
            .inputs
            .iter()
            .zip(&plan.served)
            .enumerate()
            .map(|(index, (record, served))| {
                let key = (record.scenario.clone(), record.input.clone());
                let needles = Needles::new(served.texts().map(|text| &**text));
                (
                    key,
                    PreparedInput {
                        index,
                        served: served.clone(),
                        needles,
                    },
                )
            })
            .collect();
        let models = plan
            .scenarios
            .iter()
            .map(|scenario| (scenario.name.clone(), Arc::new(scenario.model.clone())))
            .collect();
        let environments = plan
            .record
            .configurations
            .iter()
            .map(|configuration| (configuration.name.clone(), configuration.env.clone()))
            .collect();
        let configurations = plan.record.configurations.iter();
        let sidecars = configurations
            .map(|one| (one.name.clone(), one.sidecars.clone()))
            .collect();
        Self {
            registry: Arc::new(match &options.upstream {
                None => Registry::new(Arc::default()),
                Some(upstream) => Registry::forwarding(Arc::default(), Arc::clone(upstream)),
            }),
            inputs,
            models,
            environments,
            sidecars,
            launchers: Launchers::new(options.spillgate.clone()),
            options,
            plan,
        }
    }

    pub(crate) fn scenario(&self, name: &str) -> &Scenario {
        self.plan
            .scenarios
            .iter()
            .find(|scenario| scenario.name == name)
            .expect("a planned run names a scenario of its plan")
    }
}

struct Worker {
    rooms: Rooms,
    pairs: Arc<Mutex<VecDeque<Vec<PlannedRun>>>>,
    shared: Arc<Shared>,
    llm: Arc<LlmServer>,
    stop: watch::Receiver<bool>,
}

impl Worker {
    async fn work(mut self, sender: mpsc::Sender<FinishedRun>) -> io::Result<()> {
        let tools = ToolServer::start(any_port(), self.shared.registry.clone()).await?;
        while let Some(pair) = self.next_pair() {
            for planned in pair {
                if *self.stop.borrow() {
                    return Ok(());
                }
                let Some(run) = self.run(&planned, &tools).await else {
                    return Ok(());
                };
                if sender.send(run).await.is_err() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn next_pair(&self) -> Option<Vec<PlannedRun>> {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.pop_front()
    }

    /// Executes one run; `None` when it was told to stop.
    async fn run(&mut self, planned: &PlannedRun, tools: &ToolServer) -> Option<FinishedRun> {
        let shared = Arc::clone(&self.shared);
        let shared = &*shared;
        let input = &shared.inputs[&(planned.scenario.clone(), planned.input.clone())];
        let scenario = shared.scenario(&planned.scenario);
        let faults: Arc<[PlannedFault]> =
            scenario.faults_of(planned.seed, planned.repetition).into();
        shared.registry.register(MockRun {
            run_id: planned.run_id.clone(),
            recipe: scenario.recipe,
            served: input.served.clone(),
            seed: planned.seed,
            scenario: planned.scenario.clone(),
            model: shared.models[&planned.scenario].clone(),
            // A real endpoint has none, and nobody asks for it.
            profile: Profile::parse(&planned.profile).unwrap_or(Profile::Selective),
            faults: Arc::clone(&faults),
        });
        let tools_url = if spoils_tools(&faults) {
            self.llm.tools_url(&planned.run_id)
        } else {
            tools.url(&planned.run_id)
        };
        let mut servers = Servers {
            llm_root: self.llm.root_url(&planned.run_id),
            tools_url,
        };
        let records = &shared.sidecars[&planned.configuration];
        let mut sidecars = Sidecars::default();
        let ground = Ground {
            launchers: &shared.launchers,
            root: self.rooms.root(),
            run_timeout: Duration::from_millis(scenario.limits.run_timeout_ms),
            stop: self.stop.clone(),
        };
        let watched = match sidecars.start(&ground, records, &mut servers).await {
            true => Some(
                self.process(planned, scenario, &servers, &input.needles)
                    .await,
            ),
            false => None,
        };
        let sidecars = sidecars.end(&input.needles, &control_of(planned)).await;
        let journal = shared.registry.finish(&planned.run_id);
        tools.reset().await;
        if sidecars.cancelled {
            return None;
        }
        let (end, finished, traces) = match watched {
            Some(Ok(Watched::Ended {
                end,
                finished,
                traces,
            })) => (end, Some(*finished), traces),
            Some(Ok(Watched::Cancelled)) => return None,
            None => {
                let end = ProcessEnd::Harness(EndReason::SidecarFailed, String::new());
                (end, None, Err("the run was not searched".to_owned()))
            }
            Some(Err(error)) => {
                let end = ProcessEnd::Harness(
                    EndReason::LaunchFailed,
                    format!("{error} ({TEMP_WAY_OUT})"),
                );
                (end, None, Err("the run was not searched".to_owned()))
            }
        };
        let record = &shared.plan.record.inputs[input.index];
        let facts = scenario
            .inputs
            .iter()
            .find(|input| input.name == planned.input)
            .map_or(&[][..], |input| &input.facts);
        let identity = Identity {
            planned,
            input: record,
            facts,
            subject: &shared.options.subject.name(),
            model: &scenario.model.name,
            expected: Expected::of(scenario, &faults),
            witness: match &shared.options.subject {
                Subject::BuiltIn | Subject::Command { .. } => Witness::StepResult,
                Subject::Foreign(_) => Witness::ServersAlone {
                    iteration_limit: scenario.limits.iteration_limit,
                },
            },
        };
        Some(assemble(
            &identity,
            Seen {
                end,
                finished,
                journal,
                traces,
                sidecars,
            },
        ))
    }

    async fn process(
        &mut self,
        planned: &PlannedRun,
        scenario: &Scenario,
        servers: &Servers,
        needles: &Needles,
    ) -> io::Result<Watched> {
        let (dirs, events) = self.rooms.take()?;
        let prepared = self.prepare(planned, scenario, servers, &dirs, events)?;
        let (launch, watch, told) = (prepared.launch, prepared.watch, prepared.answer);
        let (end, finished) = match process::run(&dirs, launch, self.stop.clone()).await? {
            Ended::Cancelled => return Ok(Watched::Cancelled),
            Ended::Exited(finished) => match told {
                None => (end_of(&finished), finished),
                Some(rule) => (foreign_end(rule, &finished, &dirs), finished),
            },
            Ended::TimedOut(finished) => {
                let limit = scenario.limits.run_timeout_ms;
                (timed_out(&finished, limit), finished)
            }
            Ended::OutputTooLarge(finished) => {
                let why = "the process was killed: it printed more than 256 MiB".to_owned();
                (ProcessEnd::Subject(EndReason::Crashed, why), finished)
            }
        };
        let traces = match watch.finish(&dirs, &finished.log, needles, &control_of(planned)) {
            Ok((traces, events)) => {
                self.rooms.give_back(dirs, events);
                Ok(traces)
            }
            Err(WatchError::Stopped) => return Ok(Watched::Cancelled),
            Err(error) => Err(error.to_string()),
        };
        Ok(Watched::Ended {
            end,
            finished: Box::new(finished),
            traces,
        })
    }

    /// Writes what the subject finds, and watches its folders from then on.
    fn prepare(
        &self,
        planned: &PlannedRun,
        scenario: &Scenario,
        servers: &Servers,
        dirs: &RunDirs,
        events: FolderEvents,
    ) -> io::Result<Prepared<'_>> {
        let options = &self.shared.options;
        let env = &self.shared.environments[&planned.configuration];
        match &options.subject {
            Subject::BuiltIn | Subject::Command { .. } => {
                let (llm_url, tools_url) = (servers.llm_url(), &servers.tools_url);
                let text = job::job(scenario, &planned.run_id, &llm_url, tools_url).to_string();
                let job = dirs.write_harness_file(job::FILE, &text)?;
                let state = if process::declares_state(env) {
                    State::Declared
                } else {
                    State::Undeclared
                };
                let launch = Launch {
                    launchers: &self.shared.launchers,
                    command: options
                        .subject
                        .command(&options.spillgate, &["--job".into(), job.into()]),
                    env: process::filled(env, dirs, planned.seed),
                    confined: options.subject == Subject::BuiltIn,
                    tree_memory: TreeMemory::Not,
                    timeout: Duration::from_millis(scenario.limits.run_timeout_ms),
                };
                Ok(Prepared {
                    launch,
                    watch: Watch::start_with(
                        events,
                        dirs,
                        state,
                        Own::default(),
                        self.stop.clone(),
                    )?,
                    answer: None,
                })
            }
            Subject::Foreign(foreign) => {
                let addresses = Addresses {
                    llm_url: servers.llm_url(),
                    llm_root: servers.llm_root.clone(),
                    mcp_url: servers.tools_url.clone(),
                };
                let start =
                    foreign::start(foreign, scenario, env, dirs, &planned.run_id, addresses);
                let written = foreign::write_files(&start, dirs)?;
                let own = Own {
                    written,
                    kept: foreign.subject.kept().cloned().collect(),
                };
                let launch = Launch {
                    launchers: &self.shared.launchers,
                    command: start.command,
                    env: start.env,
                    confined: false,
                    tree_memory: match &options.cgroup {
                        Some(parent) => TreeMemory::Group(parent.clone()),
                        None => TreeMemory::Sampled,
                    },
                    timeout: Duration::from_millis(scenario.limits.run_timeout_ms),
                };
                Ok(Prepared {
                    launch,
                    watch: Watch::start_with(
                        events,
                        dirs,
                        State::Undeclared,
                        own,
                        self.stop.clone(),
                    )?,
                    answer: Some(&foreign.subject.answer),
                })
            }
        }
    }
}

/// What is planted in a run's folders and must be found there.
pub(crate) fn control_of(planned: &PlannedRun) -> String {
    format!("control-{}", digest_parts(&["control", &planned.run_id]))
}

/// A run that can be started.
struct Prepared<'a> {
    launch: Launch<'a>,
    watch: Watch,
    /// Where a foreign subject's answer stands; `None` for a subject with a step result.
    answer: Option<&'a AnswerRule>,
}

enum Watched {
    Ended {
        end: ProcessEnd,
        finished: Box<Finished>,
        traces: Result<crate::watch::Traces, String>,
    },
    Cancelled,
}

/// Whether tool calls are to be spoilt, which takes a server that can cut connections.
fn spoils_tools(faults: &[PlannedFault]) -> bool {
    faults.iter().any(|fault| match fault.kind {
        FaultKind::Llm(_) => false,
        FaultKind::Tools(_) => true,
    })
}
