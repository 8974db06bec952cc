//! Verdict and records as files that people and programs read, as bytes.
//!
//! [`render()`] is a function of what a run folder holds: no clock, no network, no name of a folder,
//! so the same folder gives the same bytes. It judges nothing; states, limits and reasons come
//! from the [`Verdict`](spill_verdict::Verdict), and the figures beside them from the same records
//! that the verdict counted.
//!
//! The data flow is records → cells ([`summary_csv`](Rendered::summary_csv)) → charts and view →
//! the HTML template. For CI, the verdict alone gives JUnit, Markdown, SARIF and GitHub's commands.
//! Text from outside is escaped by the template in HTML, neutralised in CSV, and escaped by one
//! function in each of the others.

mod cells;
mod durations;

mod sheet;

mod chart;

mod figures;
mod runs;

mod background;
mod rule_tables;
mod view;

mod junit;
mod markdown;
mod sarif;
mod summary;

mod github;

mod render;

pub use github::{github_annotations, github_outputs};
pub use render::{Rendered, render};
pub use sheet::{RULES_COLUMNS, SUMMARY_COLUMNS, SUMMARY_MEASURED_COLUMNS};
pub use summary::SUMMARY_LIMIT_BYTES;
/// stub
pub fn run_page(_: &spill_record::RunSet, _: &[spill_record::CallRecord], _: &str) -> Option<String> { None }
