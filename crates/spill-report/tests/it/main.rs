//! Known records in, known files out.

#[path = "../../../spill-verdict/tests/it/builder.rs"]
mod builder;
mod ci_files;
mod csv_files;
mod hostile;
mod html;
