use std::sync::Arc;

use spill_scenario::{ModelSpec, PlannedFault, Profile, Recipe, ServedInput};

/// What the mock servers know of a run: neither its configuration nor any fact.
#[derive(Clone, Debug)]
pub struct MockRun {
    /// Opaque id, part of the servers' addresses.
    pub run_id: String,
    /// What the agent is asked to do.
    pub recipe: Recipe,
    /// What the tools return; the simulated model does not look at it. Of recorded calls it knows which were made, not
    /// what they returned.
    pub served: Arc<ServedInput>,
    /// Seed of the run's pair.
    pub seed: u64,
    /// The scenario's name.
    pub scenario: String,
    /// The simulated model.
    pub model: Arc<ModelSpec>,
    /// How it deals with stored results.
    pub profile: Profile,
    /// The faults that the servers are to have.
    pub faults: Arc<[PlannedFault]>,
}
