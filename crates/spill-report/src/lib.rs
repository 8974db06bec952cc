//! Verdict and records as files that people and programs read, as bytes.
//!
//! [`render()`] is a function of what a run folder holds: no clock, no network, no name of a folder,
//! so the same folder gives the same bytes. It judges nothing; states, limits and reasons come
//! from the [`Verdict`](spill_verdict::Verdict), and the figures beside them from the same records
//! that the verdict counted.
//!
//! The data flow is records → cells ([`summary_csv`](Rendered::summary_csv)) → charts and view →
//! the HTML template. Of the calls it takes what it shows, one call at a time ([`Calls`]), so that a
//! large folder is never held whole. [`run_page()`] shows one run, [`compare()`] two folders,
//! [`subjects()`] several subjects side by side, [`render_replay()`] a replay of recorded transcripts, [`sweep()`] the
//! curves of a sweep. [`Event`] is what a running acceptance tells programs. For CI, the verdict alone gives JUnit, Markdown, SARIF and
//! GitHub's commands.
//! Text from outside is escaped by the template in HTML, neutralised in CSV, and escaped by one
//! function in each of the others.

mod cells;
mod durations;
mod pairs;

mod sheet;

mod canvas;
mod chart;
mod dots;
mod forest;
mod timeline;

mod endings;
mod figures;
mod inline_share;
mod measure;
mod money;
mod on_one_host;
mod runs;
mod table;
mod worst;

mod calls;
mod timelines;

mod differences;
mod sidecars;
mod since;

mod background;
mod grid;
mod rule_tables;
mod rule_words;
mod view;

mod junit;
mod markdown;
mod sarif;
mod summary;

mod github;

mod events;
mod standing;

mod html;

mod compare;
mod render;
mod replay;
mod run_page;
mod subjects;
mod sweep_page;

pub use calls::Calls;
pub use compare::compare;
pub use differences::{Difference, Differences, differences};
pub use events::{EVENT_SCHEMA, Event, Pace, event_schema};
pub use github::{github_annotations, github_outputs};
pub use html::STYLE;
pub use money::terminal_money;
pub use render::{Context, Rendered, render};
pub use replay::{RenderedReplay, ReplayProblems, ReplaySessions, render_replay};
pub use run_page::run_page;
pub use sheet::{RULES_COLUMNS, SUMMARY_COLUMNS, SUMMARY_MEASURED_COLUMNS};
pub use since::Baseline;
pub use standing::{RuleStanding, Standing, standings};
pub use subjects::{LargestResults, NotComparable, SubjectRuns, SubjectsRendered, subjects};
pub use summary::SUMMARY_LIMIT_BYTES;
pub use sweep_page::{SweepRendered, sweep};
