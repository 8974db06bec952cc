//! Replay against figures worked out by hand, and laws over all policies.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::SUMMARY_LIMIT_BYTES;
use spill_tokens::{TokenCounter, Tokenizer};
use spill_traces::{
    Amount, Cache, Import, Imported, Limits, Outcome, Policy, PolicyName, ReadBack, Replacement,
    Replay, Transcript, When,
};

/// A conversation with one result of each size, asked for one after the other, and a last answer.
fn conversation(sizes: &[usize]) -> Transcript {
    let mut messages = vec![json!({"role": "user", "content": "0123456789"})];
    for (index, size) in sizes.iter().enumerate() {
        let id = index.to_string();
        let function = json!({"name": "look", "arguments": "{}"});
        let call = json!([{"id": id, "type": "function", "function": function}]);
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": call}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "x".repeat(*size)}));
    }
    messages.push(json!({"role": "assistant", "content": "done"}));
    imported(messages)
}

/// One turn that asks for a result of each size at the same time, and a last answer.
fn parallel(sizes: &[usize]) -> Transcript {
    let ids = || (0..sizes.len()).map(|index| index.to_string());
    let function = json!({"name": "look", "arguments": "{}"});
    let calls: Vec<Value> = ids()
        .map(|id| json!({"id": id, "type": "function", "function": function}))
        .collect();
    let mut messages = vec![
        json!({"role": "user", "content": "0123456789"}),
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
    ];
    for (id, size) in ids().zip(sizes) {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "x".repeat(*size)}));
    }
    messages.push(json!({"role": "assistant", "content": "done"}));
    imported(messages)
}

/// A result, an answer that asks on, and a tool call whose argument is `words`.
fn quoting(result: &str, words: &str) -> Transcript {
    let call = |id: &str, arguments: Value| {
        let function = json!({"name": "run", "arguments": arguments.to_string()});
        let call = json!([{"id": id, "type": "function", "function": function}]);
        json!({"role": "assistant", "content": null, "tool_calls": call})
    };
    let answer =
        |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
    imported(vec![
        json!({"role": "user", "content": "0123456789"}),
        call("a", json!({})),
        answer("a", result),
        call("b", json!({"path": "x"})),
        answer("b", "ok"),
        call("c", json!({"text": words})),
        answer("c", "ok"),
        json!({"role": "assistant", "content": "done"}),
    ])
}

/// The model writes `words` before it is shown them, and again after.
fn quoting_before(result: &str, words: &str) -> Transcript {
    let mut messages = vec![
        json!({"role": "user", "content": "0123456789"}),
        json!({"role": "assistant", "content": words}),
        json!({"role": "user", "content": "and now?"}),
    ];
    let function = json!({"name": "run", "arguments": "{}"});
    let call = json!([{"id": "a", "type": "function", "function": function}]);
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": call}));
    messages.push(json!({"role": "tool", "tool_call_id": "a", "content": result}));
    messages.push(json!({"role": "assistant", "content": words}));
    imported(messages)
}

fn imported(messages: Vec<Value>) -> Transcript {
    let text = Value::from(messages).to_string();
    let mut found = None;
    Import::new(Limits::DEFAULT).stream("c", text.as_bytes(), &mut |imported| {
        if let Imported::Transcript(transcript) = imported {
            found = Some(*transcript);
        }
    });
    found.expect("one conversation")
}

/// One token for each byte.
struct ByBytes;

impl Tokenizer for ByBytes {
    fn name(&self) -> &'static str {
        "bytes"
    }

    fn count(&self, text: &str) -> u64 {
        text.len() as u64
    }
}

const NO_CACHE: Cache = Cache {
    block_tokens: 1,
    minimum_tokens: u64::MAX,
};

/// What is recorded, what is sent under a policy and an assumption, and what replacements alone take off.
struct Found {
    recorded: Outcome,
    under: Outcome,
    replacements: Vec<Replacement>,
    by_tool: BTreeMap<Option<String>, (u64, i64, i64)>,
}

impl Found {
    fn saved(&self) -> i64 {
        self.under.saved(&self.recorded).0
    }

    fn replaced(&self) -> usize {
        self.replacements.len()
    }
}

fn replay(transcript: &Transcript, policy: &Policy, read_back: ReadBack) -> Found {
    replay_with(transcript, policy, read_back, NO_CACHE, None)
}

fn replay_with(
    transcript: &Transcript,
    policy: &Policy,
    read_back: ReadBack,
    cache: Cache,
    window: Option<u64>,
) -> Found {
    let counter = TokenCounter::with_tokenizer(Box::new(ByBytes));
    let replay = Replay::new(transcript, &counter, cache, window);
    let replaced = replay.under(policy);
    Found {
        recorded: replay.recorded(),
        under: replaced.outcome(read_back),
        replacements: replaced.replacements().to_vec(),
        by_tool: replaced.saved_by_tool(),
    }
}

fn fixed(threshold_bytes: u64) -> Policy {
    Policy::fixed(threshold_bytes, 100)
}

fn workflow_step(threshold: u64) -> Policy {
    Policy::new(PolicyName::WorkflowStep, threshold, None).expect("within the bounds")
}

fn inline_cap(cap: u64) -> Policy {
    Policy::new(PolicyName::InlineCap, cap, None).expect("any cap")
}

fn envelope(limit: u64) -> Policy {
    Policy::new(PolicyName::Envelope, limit, None).expect("any limit")
}

const ENGINE: [fn(u64) -> Policy; 3] = [workflow_step, inline_cap, envelope];

fn share(share: f64) -> ReadBack {
    ReadBack {
        amount: Amount::Share(share),
        when: When::AtOnce,
    }
}

#[test]
fn a_replacement_saves_with_every_call_that_was_sent_the_result() {
    // Contexts: 10; 10 + 6 + 1000; 10 + 6 + 1000 + 6 + 500.
    let transcript = conversation(&[1_000, 500]);
    let found = replay(&transcript, &fixed(1_000), ReadBack::NONE);
    assert_eq!(
        (found.recorded.calls, found.under.calls, found.replaced()),
        (3, 3, 1)
    );
    assert_eq!(found.recorded.input.bytes, 10 + 1_016 + 1_522);
    assert_eq!(found.replacements[0].sends, 2);
    assert_eq!(
        (found.replacements[0].saved(), found.saved()),
        ((1_800, 1_800), 1_800)
    );
    assert_eq!(
        (found.recorded.peak.bytes, found.under.peak.bytes),
        (1_522, 622)
    );
    let tool = Some("look".to_owned());
    assert_eq!(found.by_tool.get(&tool), Some(&(1, 1_800, 1_800)));
}

#[test]
fn the_equal_case_is_replaced_as_each_policy_publishes_it() {
    let at = |policy: &Policy, size: usize| {
        replay(&conversation(&[size]), policy, ReadBack::NONE).replaced()
    };
    assert_eq!((at(&fixed(1_000), 999), at(&fixed(1_000), 1_000)), (0, 1));
    // Measured with the two quotes of its JSON form.
    let step = workflow_step(8_192);
    assert_eq!((at(&step, 8_189), at(&step, 8_190)), (0, 1));
    let cap = inline_cap(8_192);
    assert_eq!((at(&cap, 8_192), at(&cap, 8_193)), (0, 1));
    let limit = envelope(8_192);
    assert_eq!((at(&limit, 8_192), at(&limit, 8_193)), (0, 1));
}

#[test]
fn reading_back_adds_calls_and_stays_in_the_context() {
    // Two reads of 400 and one of 200: contexts 116, 516, 916; then the recorded call with 1,116.
    let transcript = conversation(&[1_000]);
    let found = replay(&transcript, &fixed(400), ReadBack::WHOLE);
    assert_eq!(
        (found.under.extra_calls, found.under.extra_input.bytes),
        (3, 116 + 516 + 916)
    );
    assert_eq!(found.under.calls, 2 + 3);
    assert_eq!(found.under.input.bytes, 10 + 1_116 + 116 + 516 + 916);
    let half = replay(&transcript, &fixed(400), share(0.5));
    assert_eq!(
        (half.under.extra_calls, half.under.extra_input.bytes),
        (2, 116 + 516)
    );
    assert_eq!(half.under.input.bytes, 10 + 616 + 116 + 516);
}

#[test]
fn two_results_of_one_turn_are_read_one_after_the_other() {
    let transcript = parallel(&[1_000, 600]);
    // The turn: 10 + two calls of 6 + 1,000 + 600; each result is 100 after replacement, and one read each.
    let found = replay(&transcript, &fixed(600), ReadBack::WHOLE);
    let turn = 10 + 12 + 100 + 100;
    // The first result takes two reads of at most 600, the second one.
    let reads = [turn, turn + 600, turn + 1_000];
    assert_eq!(found.under.extra_input.bytes, reads.iter().sum::<u64>());
    assert_eq!(
        found.under.input.bytes,
        10 + turn + 1_600 + reads.iter().sum::<u64>()
    );
}

#[test]
fn what_was_used_later_is_read_when_it_is_used() {
    let text: String = (0..200)
        .map(|n| format!("line {n} of the listing says {}\n", n * n))
        .collect();
    let quote = &text[3_000..3_060];
    for (answer, reads) in [
        (quote, 2),
        ("nothing of it", 0),
        // What the replacement shows is no use of the rest.
        (&text[..60], 0),
    ] {
        let transcript = quoting(&text, answer);
        let found = replay(&transcript, &fixed(4_096), ReadBack::USED);
        assert_eq!(found.under.extra_calls, reads, "{answer}");
        let none = replay(&transcript, &fixed(4_096), ReadBack::NONE);
        let whole = replay(&transcript, &fixed(4_096), ReadBack::WHOLE);
        assert!(none.saved() >= found.saved() && found.saved() > whole.saved());
    }
    // The same words before the result was shown are the model's own.
    let transcript = quoting_before(&text, quote);
    let found = replay(&transcript, &fixed(4_096), ReadBack::USED);
    assert_eq!(found.under.extra_calls, 0);
}

#[test]
fn the_prompt_cache_holds_what_the_call_before_was_sent() {
    let transcript = conversation(&[1_000, 500]);
    let cache = Cache {
        block_tokens: 1,
        minimum_tokens: 0,
    };
    let policy = fixed(1_000);
    let found = replay_with(&transcript, &policy, ReadBack::NONE, cache, None);
    assert_eq!(found.recorded.cached.tokens, 10 + 1_016);
    assert_eq!(found.under.cached.tokens, 10 + 116);
    // Reads: 116 then 516 then 916 then the call itself with 1,116; each holds the one before.
    let read = replay_with(&transcript, &fixed(400), ReadBack::WHOLE, cache, None);
    let first = 10 + 116 + 516 + 916;
    // The second result: 1,116 + 6 + 100, and reads of 400 and 100.
    let second = 1_116 + 1_222 + 1_622;
    assert_eq!(read.under.cached.tokens, first + second);
    let blocks = Cache {
        block_tokens: 100,
        minimum_tokens: 1_000,
    };
    let found = replay_with(&transcript, &policy, ReadBack::NONE, blocks, None);
    assert_eq!(
        (found.recorded.cached.tokens, found.under.cached.tokens),
        (1_000, 0)
    );
}

#[test]
fn calls_are_held_against_a_window() {
    let transcript = conversation(&[1_000, 500]);
    let found = replay_with(
        &transcript,
        &fixed(1_000),
        ReadBack::NONE,
        NO_CACHE,
        Some(1_016),
    );
    assert_eq!(found.recorded.calls_over_window, Some(1));
    assert_eq!(found.under.calls_over_window, Some(0));
    assert_eq!(
        replay(&transcript, &fixed(1_000), ReadBack::NONE)
            .under
            .calls_over_window,
        None
    );
}

#[test]
fn the_engine_makes_the_replacements_and_the_slices() {
    let transcript = conversation(&[40_000, 5_000]);
    for policy in ENGINE.map(|policy| policy(32_768)) {
        let found = replay(&transcript, &policy, ReadBack::NONE);
        assert_eq!(found.replaced(), 1, "{policy:?}");
        let replacement = found.replacements[0].replacement.bytes;
        assert!(
            replacement > 100 && replacement <= 32_768,
            "{policy:?}: {replacement}"
        );
        let whole = replay(&transcript, &policy, ReadBack::WHOLE);
        assert_eq!(whole.under.extra_calls, 2, "{policy:?}");
        assert!(
            whole.saved() < 0,
            "{policy:?}: a header line stands before each slice"
        );
    }
    let found = replay(&transcript, &workflow_step(32_768), ReadBack::NONE);
    assert!(found.replacements[0].replacement.bytes <= SUMMARY_LIMIT_BYTES);
}

#[test]
fn replacements_have_the_size_that_was_asked_for() {
    let transcript = conversation(&[40_000]);
    for name in [PolicyName::InlineCap, PolicyName::Envelope] {
        let policy = Policy::new(name, 32_768, Some(2_048)).expect("below the threshold");
        let found = replay(&transcript, &policy, ReadBack::NONE);
        let replacement = found.replacements[0].replacement.bytes;
        assert!(replacement <= 2_048, "{name}: {replacement}");
    }
    // A cap is used up to its last byte.
    let policy = Policy::new(PolicyName::InlineCap, 32_768, Some(2_048)).expect("below");
    let found = replay(&transcript, &policy, ReadBack::NONE);
    assert_eq!(found.replacements[0].replacement.bytes, 2_048);
}

proptest! {
    /// Without reads nothing costs more than before, a higher threshold saves less, and savings on results are all savings.
    #[test]
    fn savings_without_reads(
        sizes in proptest::collection::vec(0_usize..20_000, 1..6),
        low in 4_096_u64..8_000,
        more in 0_u64..8_000,
    ) {
        let transcript = conversation(&sizes);
        for policy in [fixed, workflow_step] {
            let lower = replay(&transcript, &policy(low), ReadBack::NONE);
            let higher = replay(&transcript, &policy(low + more), ReadBack::NONE);
            prop_assert!(higher.saved() >= 0);
            prop_assert!(lower.saved() >= higher.saved());
            let replacements = lower.replacements.iter().map(|one| one.saved().0);
            prop_assert_eq!(lower.saved(), replacements.sum::<i64>());
            prop_assert!(lower.under.peak.bytes <= lower.recorded.peak.bytes);
        }
    }

    /// Reading more never saves more, and what the cache holds is part of the input.
    #[test]
    fn reading_more_costs_more(size in 4_096_usize..16_000, part in 0.01_f64..0.99) {
        let transcript = conversation(&[size, 10]);
        for policy in [fixed, workflow_step, inline_cap, envelope].map(|policy| policy(4_096)) {
            let of = |read_back| {
                replay_with(&transcript, &policy, read_back, Cache::DEFAULT, None)
            };
            let none = of(ReadBack::NONE);
            let some = of(share(part));
            let whole = of(ReadBack::WHOLE);
            prop_assert!(none.saved() >= some.saved());
            prop_assert!(some.saved() >= whole.saved());
            for found in [none, some, whole] {
                prop_assert!(found.under.cached.tokens <= found.under.input.tokens);
                prop_assert!(found.under.cached.bytes <= found.under.input.bytes);
            }
        }
    }
}
