//! Prints, for each transcript and threshold, the tool result bytes that were sent and what a replacement of a fixed size saves.
//!
//! `cargo run -p spill-traces --example replay -- REPLACEMENT THRESHOLD[,THRESHOLD…] PATH…`
#![expect(clippy::print_stdout, reason = "an example program")]

use std::path::Path;

use spill_traces::{Import, Imported, Limits, Policy, ReadBack, Replay};

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
    let mut import = Import::new(Limits::DEFAULT);
    for path in paths {
        import.path(Path::new(path), &mut |imported| {
            let Imported::Transcript(transcript) = imported else {
                return;
            };
            let bytes = &mut |text: &str| text.len() as u64;
            let replay = Replay::new(&transcript, bytes);
            for threshold in &thresholds {
                let policy = Policy::Fixed {
                    threshold_bytes: *threshold,
                    replacement,
                };
                let outcome = replay.under(policy, ReadBack::None, bytes);
                println!(
                    "{}\t{threshold}\t{}\t{}",
                    transcript.place, outcome.results_sent, outcome.results_saved
                );
            }
        });
    }
}
