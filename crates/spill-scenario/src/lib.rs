//! Scenarios: what an agent is asked to do, on which inputs, under which configurations, and the
//! plan of runs they expand to.
//!
//! [`built_in`] gives the scenarios that ship with the program, [`load`] reads one from a file,
//! [`from_repository`] and [`from_document`] make one from real text. [`expand`] turns scenarios
//! into a [`Plan`]: every run with its id, its pair's seed and the simulated model's profile.
//!
//! Inputs and facts are kept apart: [`InputData`] is what tools serve and holds no answer key,
//! [`Fact`] is what an answer is scored against. [`ServedInput`] is the data as it is served, with
//! canaries woven in.
//!
//! This crate runs nothing and judges nothing. It reads files only where a function's name says
//! so, starts one program (`git`, for [`from_repository`]), and uses no clock and no randomness
//! but hashes of seeds.

mod builtin;
mod canary;
pub mod defaults;
mod diff;
mod document_file;
mod error;
mod fault;
mod file;
mod generate;
mod input;
mod plan;
mod real;
mod recorded;
mod recorded_facts;
mod recorded_text;
mod regular_file;
mod repository;
mod scenario;
mod served;
mod sidecar;
mod subject;
mod subject_files;
mod template;

#[cfg(test)]
mod fixture_tests;

pub use builtin::{built_in, load};
pub use canary::{CANARY_LEN, is_canary, plant, strip_canaries, weave};
pub use error::{Place, ScenarioError};
pub use fault::{Expect, Fault, FaultKind, LlmFault, PlannedFault, ToolFault};
pub use file::configurations_of;
pub use input::{
    ChangedFile, Document, Fact, Input, InputData, LIST_OF_TABLES, Recipe, Table, TableFormat,
    class_of, diff_carrier, place_of,
};
pub use plan::{LIVE_PROFILE, Plan, PlanOptions, expand, expand_live, sensitivity_runs};
pub use real::{from_document, from_repository};
pub use recorded::{
    OCCURRENCE, RECORDED_PREFIX, RecordedCall, recorded_key, recorded_tool, recorded_tool_name,
};
pub use recorded_facts::{RecordedFacts, Words, recorded_facts};
pub use recorded_text::{RECORDED_THRESHOLDS, RecordedScenario};
pub use scenario::{
    Configuration, DEFAULT_POLICY, DEFAULT_STORE, Limits, ModelSpec, Profile, STATE_PLACEHOLDER,
    Scenario,
};
pub use served::{RecordedResult, ScriptedCall, ServedInput, canary_seed, list_bytes};
pub use sidecar::{SidecarPlace, sidecar_declares_state};
pub use spill_record::{
    Class, ConfigurationRole, EndReason, FactPlace, FactsOrigin, LatencyRecord, RecallPoint,
    RulesRecord, Stage, parse_size,
};
pub use subject::{AnswerRule, ForeignSubject, OwnFolder, OwnPlace, SubjectFile, SubjectPreset};
pub use subject_files::{built_in_subject, load_subject, subject_names};
pub use template::{Slot, Template};
