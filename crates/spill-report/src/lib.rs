//! Verdict and records as files that people and programs read, as bytes.
//!
//! [`render`] is a function of what a run folder holds: no clock, no network, no name of a folder,
//! so the same folder gives the same bytes. It judges nothing; states, limits and reasons come
//! from the [`Verdict`](spill_verdict::Verdict), and the figures beside them from the same records
//! that the verdict counted.
//!
//! The data flow is records → cells ([`summary_csv`](Rendered::summary_csv)) → charts and view →
//! the HTML template. Text from outside is escaped by the template in HTML and neutralised in CSV.

mod cells;
mod durations;

mod sheet;

mod chart;

mod figures;
mod runs;

mod background;
mod rule_tables;
mod view;

mod render;

pub use render::{Rendered, render};
pub use sheet::{RULES_COLUMNS, SUMMARY_COLUMNS, SUMMARY_MEASURED_COLUMNS};
