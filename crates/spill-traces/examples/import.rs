//! Imports files and folders and prints one line per transcript, every problem, and the sums per format.
//!
//! `cargo run -p spill-traces --example import -- PATH…`; with `--contexts` it prints what each call was sent instead, one
//! JSON line per call, for checks by other programs.
#![expect(clippy::print_stdout, reason = "an example program")]

use std::collections::BTreeMap;
use std::path::Path;

use spill_traces::{
    Counts, Format, Import, Imported, Limits, Message, Origin, Piece, Transcript, counts,
};

fn main() {
    let mut contexts = false;
    let mut import = Import::new(Limits::DEFAULT);
    let mut sums: BTreeMap<Format, (u64, Counts)> = BTreeMap::new();
    let mut problems = 0;
    for argument in std::env::args().skip(1) {
        if argument == "--contexts" {
            contexts = true;
            continue;
        }
        import.path(Path::new(&argument), &mut |imported| match imported {
            Imported::Transcript(transcript) if contexts => print_contexts(&transcript),
            Imported::Transcript(transcript) => {
                let found = counts(&transcript);
                print_transcript(&transcript, &found);
                problems += transcript.problems.total();
                let sum = sums.entry(transcript.format).or_default();
                sum.0 += 1;
                sum.1 += found;
            }
            Imported::File(_) if contexts => {}
            Imported::File(report) => {
                problems += report.problems.total();
                if report.transcripts == 0 {
                    println!("{}: no transcript", report.place);
                }
                for (kind, count) in &report.left_out {
                    println!("    left out: {count} {kind}");
                }
                for problem in report.problems.kept() {
                    println!("    problem: {problem}");
                }
            }
        });
    }
    for (format, (transcripts, sum)) in &sums {
        println!("SUM {format}: {transcripts} transcripts, {}", figures(sum));
    }
    if !contexts {
        println!("PROBLEMS {problems}");
    }
}

fn figures(counts: &Counts) -> String {
    let optional = |figure: Option<u64>| figure.map_or("-".to_owned(), |figure| figure.to_string());
    format!(
        "calls {} (+{} copied), tool calls {}, results {} of {} bytes (largest {}, incomplete {}), sent {} bytes of them {} \
         results; usage of {} calls: input {} = uncached {} + read {} + written {}, output {}",
        counts.calls,
        counts.copied_calls,
        counts.tool_calls,
        counts.results,
        counts.result_bytes,
        optional(counts.largest_result_bytes),
        counts.incomplete_results,
        counts.sent_bytes.sum(),
        counts.sent_bytes[Origin::ToolResult],
        counts.calls_with_usage,
        optional(counts.usage.input_tokens),
        optional(counts.usage.uncached_input_tokens),
        optional(counts.usage.cache_read_tokens),
        optional(counts.usage.cache_write_tokens),
        optional(counts.usage.output_tokens),
    )
}

fn print_transcript(transcript: &Transcript, found: &Counts) {
    let id = transcript.id.as_deref().unwrap_or("-");
    println!(
        "{}: {} {id}: {}",
        transcript.place,
        transcript.format,
        figures(found)
    );
    if let Some(parent) = &transcript.parent {
        println!("    parent: {}", parent.id);
    }
    for boundary in &transcript.boundaries {
        println!(
            "    boundary: {:?} before call {}",
            boundary.kind, boundary.before_call
        );
    }
    for (kind, count) in &transcript.left_out {
        println!("    left out: {count} {kind}");
    }
    let missing: Vec<&str> = transcript
        .missing
        .iter()
        .map(|missing| missing.name())
        .collect();
    println!("    not recorded: {}", missing.join(", "));
    for problem in transcript.problems.kept() {
        println!("    problem: {problem}");
    }
}

fn print_contexts(transcript: &Transcript) {
    for (index, call) in transcript.calls.iter().enumerate() {
        let messages: Vec<serde_json::Value> = transcript.sent(call).map(json).collect();
        let line = serde_json::json!({
            "place": transcript.place.to_string(),
            "format": transcript.format.name(),
            "call": index,
            "id": call.id,
            "input_tokens": call.usage.and_then(|usage| usage.input_tokens),
            "messages": messages,
        });
        println!("{line}");
    }
}

fn json(message: &Message) -> serde_json::Value {
    let pieces: Vec<serde_json::Value> = message.pieces.iter().map(piece).collect();
    serde_json::json!({"role": message.role.name(), "pieces": pieces})
}

fn piece(piece: &Piece) -> serde_json::Value {
    serde_json::json!({
        "origin": piece.origin.name(),
        "text": piece.text.as_str(),
        "name": piece.name,
        "call_id": piece.call_id,
    })
}
