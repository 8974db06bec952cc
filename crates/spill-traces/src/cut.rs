//! Results that the recording agent had already cut or stored.

use crate::model::Completeness;

/// Phrases that agents put in place of what they cut, with where they were seen.
const CUT: &[&str] = &[
    "[output truncated",         // shells of several agents
    " characters truncated]",    // Claude Code
    " characters truncated ...", // Claude Code
    " lines truncated]",         // Claude Code
    " tokens truncated",         // Codex
    "[... omitted ",             // Codex
    "was too long to be displayed. Here is a truncated version", // Inspect
    "<elided_chars>",            // mini-swe-agent
    "[truncated]",
    "<response clipped>", // Anthropic's edit tool
];

/// Phrases that agents put in place of what they stored elsewhere.
const STORED: &[&str] = &[
    "Full formatted result stored at:", // DeepSeek Harness
    "<persisted-output>",               // Claude Code
    "Output too large",                 // Claude Code
    "\"spillover_ref\":\"spillover://", // this project's engine
];

/// How far from its start and its end a result is searched for such a phrase.
const WINDOW_BYTES: usize = 2_048;

/// What a result's own text says about its completeness. A phrase counts near the start and the end only, and in the
/// middle of texts of up to twice the window; a result that merely quotes one there is flagged too.
pub(crate) fn completeness(text: &str) -> Completeness {
    let head = &text[..floor(text, WINDOW_BYTES)];
    let tail = &text[floor(text, text.len().saturating_sub(WINDOW_BYTES))..];
    let says = |phrases: &[&str]| phrases.iter().any(|p| head.contains(p) || tail.contains(p));
    if says(STORED) {
        Completeness::Stored {
            original_bytes: omitted(text).map(|bytes| bytes + text.len() as u64),
        }
    } else if says(CUT) {
        Completeness::Cut {
            original_bytes: None,
        }
    } else {
        Completeness::AsRecorded
    }
}

/// The largest character bound at or below `at`.
fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

/// The number in `(Omitted N bytes.`
fn omitted(text: &str) -> Option<u64> {
    let after = &text[text.find("(Omitted ")? + "(Omitted ".len()..];
    after.split_once(" bytes")?.0.replace(',', "").parse().ok()
}
