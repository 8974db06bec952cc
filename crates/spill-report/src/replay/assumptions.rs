//! What the figures of a replay rest on, in sentences.

use spill_record::{ReplayRecord, ReplaySums};
use spill_verdict::{counted, grouped, percent, plain};

/// The assumptions, those that matter most first.
pub(super) fn assumptions(record: &ReplayRecord, all: &ReplaySums) -> Vec<String> {
    let mut lines = vec![
        "The agent does the same as recorded: it asks for the same tools in the same order. Whether its answers would be as \
         good without the hidden parts is not judged here; the acceptance judges that."
            .to_owned(),
        "Replacements and answers to reads are the engine's own, made from the recorded results with the policies' published \
         defaults. One transcript is one step with one store: 16 MiB under workflow-step. inline-cap leaves results of a tool \
         named read in the prompt."
            .to_owned(),
        "A result is replaced when it is created, so every call that was sent it is sent the replacement, and the start of the \
         context stays the same from call to call."
            .to_owned(),
        "A read is a call of its own, before the first call that was sent the result (none, whole and shares) or before the \
         first call whose answer repeats a part of it that the replacement does not show (used). It sends the context of that \
         time; what was read stays in the context. What the model writes to ask for it is not counted."
            .to_owned(),
        "Repeats means at least 32 bytes in a row, word for word, that the model had not written before it was shown the \
         result; runs of 47 bytes and more are always found. What a model used without repeating it is not seen, so used is a \
         lower bound of what would be read."
            .to_owned(),
        format!(
            "Prompt cache: each call's input is held for the calls after it, in blocks of {} tokens from {} on, until the \
             transcript ends. Transcripts do not share a cache.",
            grouped(record.cache.block_tokens),
            grouped(record.cache.minimum_tokens)
        ),
        tokens(record, all),
    ];
    lines.extend(not_recorded(all));
    if all.copied_calls > 0 {
        lines.push(format!(
            "{} stand in several transcripts (resumed and forked sessions): each is paid once, where it was made.",
            counted(all.copied_calls, "call")
        ));
    }
    lines.push(
        "Classes of work go by a transcript's largest result: small below 32 KiB, medium below 128 KiB, large from there on. \
         Whether the work was on a document is not recorded."
            .to_owned(),
    );
    lines.extend(money(record, all));
    lines
}

fn tokens(record: &ReplayRecord, all: &ReplaySums) -> String {
    let recorded = &all.recorded;
    let tokenizer = plain(&record.versions.tokenizer);
    match (recorded.input_tokens, recorded.counted_input_tokens) {
        (Some(said), Some(counted_tokens)) if said > 0 => format!(
            "Tokens are counted with {tokenizer}. Where providers' counts are recorded ({}), the count is {} of theirs: another \
             tokenizer, and what the recording does not hold.",
            counted(recorded.calls, "call"),
            percent(counted_tokens as f64 / said as f64)
        ),
        _ => format!(
            "Tokens are counted with {tokenizer}; no transcript records a provider's count."
        ),
    }
}

fn not_recorded(all: &ReplaySums) -> Vec<String> {
    let words = |name: &str| match name {
        "system-prompt" => Some(
            "do not hold the system prompt: their inputs are larger than shown, and savings a smaller share",
        ),
        "tool-schemas" => Some("do not hold the list of tools: their inputs are larger than shown"),
        "history-processor" => Some(
            "may have sent less than their history, since what a history processor left out is not recorded",
        ),
        "context-after-compaction" => {
            Some("do not say what the context held after a compaction beyond its summary")
        }
        _ => None,
    };
    all.not_recorded
        .iter()
        .filter_map(|(name, count)| {
            Some(format!(
                "{} {}.",
                counted(*count, "transcript"),
                words(name)?
            ))
        })
        .collect()
}

fn money(record: &ReplayRecord, all: &ReplaySums) -> Vec<String> {
    if record.prices.is_none() {
        return vec!["No price table was given, so nothing is said about money.".to_owned()];
    }
    let mut lines = vec![
        "Money is for input alone: output is the same as recorded, but for what the model writes to ask for reads. Of \
         transcripts that record what was written to a cache, all input that is not read from it is priced as written to it."
            .to_owned(),
    ];
    if all.unpriced_sessions > 0 {
        lines.push(format!(
            "{} have a model without a price, or none recorded: they are in no sum of money.",
            counted(all.unpriced_sessions, "transcript")
        ));
    }
    lines
}
