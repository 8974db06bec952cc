//! Known records in, known files out.

#[path = "../../../spill-verdict/tests/it/builder.rs"]
mod builder;
mod calls;
mod ci_files;
mod comparison;
mod csv_files;
mod events;
mod everywhere;
mod faults;
mod hostile;
mod html;
mod live;
mod money;
mod outputs;
mod replay;
#[path = "../../../spill-verdict/tests/it/replay_builder.rs"]
mod replay_builder;
mod run_pages;
mod subjects;
