//! What the fuzz targets check, one function per importer. The plain tests run the fixtures through the same functions.

use spill_tokens::{TokenCounter, Tokenizer};
use spill_traces::{
    Cache, FileReport, Format, Import, Imported, Limits, Policy, PolicyName, ReadBack, Replay,
    Transcript, counts,
};

const LIMITS: Limits = Limits {
    record_bytes: 1 << 20,
    decompressed_bytes: 4 << 20,
    entries: 100,
    nesting: 2,
    depth: 4,
};

/// One token for each byte: what is fuzzed is not the vocabulary.
struct ByBytes;

impl Tokenizer for ByBytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

/// Whatever the bytes are, nothing is dropped without a trace, and what is found fits together and can be replayed.
fn check(format: Option<Format>, input: &[u8]) {
    let (mut transcripts, mut files) = (Vec::new(), Vec::new());
    let mut import = Import::new(LIMITS);
    let sink = &mut |imported| match imported {
        Imported::Transcript(transcript) => transcripts.push(*transcript),
        Imported::File(file) => files.push(*file),
    };
    match format {
        Some(format) => import.stream_of(format, "input", input, sink),
        None => import.stream("input", input, sink),
    }
    assert!(!files.is_empty(), "no report");
    let traced = |file: &FileReport| {
        file.problems.total() > 0 || !file.left_out.is_empty() || !file.formats.is_empty()
    };
    assert!(
        !transcripts.is_empty() || files.iter().any(traced),
        "dropped without a trace"
    );
    let counter = TokenCounter::with_tokenizer(Box::new(ByBytes));
    for transcript in &transcripts {
        fits_together(transcript);
        replays(transcript, &counter);
    }
}

fn fits_together(transcript: &Transcript) {
    let messages = transcript.messages.len();
    for call in &transcript.calls {
        assert!(call.context.iter().all(|index| index < messages));
        assert!(call.answer.is_none_or(|answer| answer < messages));
    }
    for result in &transcript.results {
        assert_eq!(result.pieces.len(), transcript.pieces_of(result).len());
        assert!(
            result
                .asked_by
                .is_none_or(|call| call < transcript.calls.len())
        );
    }
    let found = counts(transcript);
    assert_eq!(found.results, transcript.results.len() as u64);
    assert_eq!(
        found.calls + found.copied_calls,
        transcript.calls.len() as u64
    );
}

fn replays(transcript: &Transcript, counter: &TokenCounter) {
    let replay = Replay::new(transcript, counter, Cache::DEFAULT, Some(1_000));
    let recorded = replay.recorded();
    assert_eq!(recorded.input.bytes, counts(transcript).sent_bytes.sum());
    let policies = [
        Policy::fixed(64, 32),
        Policy::new(PolicyName::WorkflowStep, 4_096, None).expect("within the bounds"),
        Policy::new(PolicyName::InlineCap, 512, None).expect("any cap"),
        Policy::new(PolicyName::Envelope, 1_024, None).expect("any limit"),
    ];
    for policy in policies {
        let replaced = replay.under(&policy);
        for read_back in [ReadBack::NONE, ReadBack::USED, ReadBack::WHOLE] {
            let outcome = replaced.outcome(read_back);
            assert_eq!(outcome.calls, recorded.calls + outcome.extra_calls);
            assert!(outcome.cached.tokens <= outcome.input.tokens);
            assert!(outcome.peak.tokens <= outcome.input.tokens);
        }
    }
}

/// Any bytes, the format by their content; packed ones too.
pub(crate) fn any(input: &[u8]) {
    check(None, input);
}

pub(crate) fn anthropic(input: &[u8]) {
    check(Some(Format::AnthropicMessages), input);
}

pub(crate) fn api_capture(input: &[u8]) {
    check(Some(Format::ApiCapture), input);
}

pub(crate) fn atif(input: &[u8]) {
    check(Some(Format::Atif), input);
}

pub(crate) fn claude_code(input: &[u8]) {
    check(Some(Format::ClaudeCode), input);
}

pub(crate) fn codex(input: &[u8]) {
    check(Some(Format::CodexRollout), input);
}

pub(crate) fn deepseek(input: &[u8]) {
    check(Some(Format::DeepSeekHarness), input);
}

pub(crate) fn gemini_cli(input: &[u8]) {
    check(Some(Format::GeminiCli), input);
}

pub(crate) fn inspect(input: &[u8]) {
    check(Some(Format::Inspect), input);
}

pub(crate) fn mini_swe_agent(input: &[u8]) {
    check(Some(Format::MiniSweAgent), input);
}

pub(crate) fn openai_chat(input: &[u8]) {
    check(Some(Format::OpenAiChat), input);
}

pub(crate) fn otel(input: &[u8]) {
    check(Some(Format::Otel), input);
}

pub(crate) fn swe_agent(input: &[u8]) {
    check(Some(Format::SweAgent), input);
}
