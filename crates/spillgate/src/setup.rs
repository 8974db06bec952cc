//! What every verb that runs a plan needs: a temporary folder, options, a runtime, and the servers.

use std::sync::Arc;

use anyhow::Context;
use spill_runner::{Harness, Options, RunError, Subject, effective_settings};
use spill_scenario::Plan;
use tokio::runtime::Runtime;

use crate::temp::Temp;
use crate::{Failure, host};

/// Ready to run a plan; its temporary folder goes with it.
pub(crate) struct Setup {
    verb: &'static str,
    pub(crate) options: Options,
    pub(crate) runtime: Runtime,
    _temp: Temp,
}

impl Setup {
    /// For `verb`, with as many `jobs` as there are processors when it is not said.
    pub(crate) fn new(
        verb: &'static str,
        subject: Subject,
        jobs: Option<usize>,
    ) -> Result<Self, Failure> {
        let internal = |error| Failure::internal(verb, error);
        let temp = Temp::create()
            .context("no temporary folder can be made (set TMPDIR to a writable one)")
            .map_err(|error| Failure::usage(verb, error))?;
        Ok(Self {
            verb,
            options: Options {
                spillgate: host::this_program().map_err(internal)?,
                subject,
                jobs: jobs
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
                temp: temp.path().to_owned(),
                upstream: None,
                cgroup: None,
            },
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .map_err(internal)?,
            _temp: temp,
        })
    }

    /// Asks the subject for its settings under each configuration, and starts the servers for the plan.
    pub(crate) async fn start(&self, mut plan: Plan) -> Result<(Arc<Plan>, Harness), Failure> {
        let settings = effective_settings(&plan.record.configurations, &self.options)
            .await
            .map_err(|error| Failure::usage(self.verb, error))?;
        for (configuration, settings) in plan.record.configurations.iter_mut().zip(settings) {
            configuration.effective_settings = settings;
        }
        let plan = Arc::new(plan);
        let harness = Harness::start(plan.clone(), self.options.clone())
            .await
            .map_err(|error| self.failure(error))?;
        Ok((plan, harness))
    }

    /// A place that cannot be written is not a fault of the program.
    pub(crate) fn failure(&self, error: RunError) -> Failure {
        match error {
            RunError::Sink(error) => Failure::usage(self.verb, anyhow::Error::from_boxed(error)),
            RunError::Servers(_) | RunError::Worker(_) => Failure::internal(self.verb, error),
        }
    }
}
