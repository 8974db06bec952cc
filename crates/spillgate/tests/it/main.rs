//! End to end: the built program, real processes, real sockets.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod accept;
mod bad_input;
mod baseline;
mod ci;
mod executions;
mod faults;
mod from_trace;
mod hostile_subject;
mod init;
mod known_faults;
mod launching;
mod live;
mod live_flags;
mod planted_faults;
mod policies;
mod prices;
mod processes;
mod program;
mod replay;
mod replay_damaged;
mod s3;
mod schemas;
mod shards;
mod side_by_side;
mod sidecars;
mod step_settings;
mod stores;
mod structure;
mod subjects;
mod sweep;
mod terminal;
