//! Prints, for each transcript and threshold, the tool result bytes that were sent and what a replacement of a fixed size saves.
//!
//! `cargo run -p spill-traces --example replay -- REPLACEMENT THRESHOLD[,THRESHOLD…] PATH…`
#![expect(clippy::print_stdout, reason = "an example program")]

use std::path::Path;

use spill_tokens::TokenCounter;
use spill_traces::{Cache, Import, Imported, Limits, Policy, Replay};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [replacement, thresholds, paths @ ..] = arguments.as_slice() else {
        println!("usage: replay REPLACEMENT THRESHOLD[,THRESHOLD…] PATH…");
        return;
    };
    let replacement = replacement.parse().unwrap_or(2_048);
    let thresholds: Vec<u64> = thresholds
        .split(',')
        .filter_map(|t| t.parse().ok())
        .collect();
    let counter = TokenCounter::o200k_base();
    let mut import = Import::new(Limits::DEFAULT);
    for path in paths {
        import.path(Path::new(path), &mut |imported| {
            let Imported::Transcript(transcript) = imported else {
                return;
            };
            let replay = Replay::new(&transcript, &counter, Cache::DEFAULT, None);
            let results = 0..transcript.results.len();
            let sent: u64 = results
                .map(|result| replay.result_size(result).bytes * replay.sends(result))
                .sum();
            for threshold in &thresholds {
                let replaced = replay.under(&Policy::fixed(*threshold, replacement));
                let saved: i64 = replaced
                    .replacements()
                    .iter()
                    .map(|one| one.saved().0)
                    .sum();
                println!("{}\t{threshold}\t{sent}\t{saved}", transcript.place);
            }
        });
    }
}
