use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::{
    Block, CallId, Placement, PromptText, Reference, StepId, ToolResult, line_count,
    serialised_size,
};

use super::{admit, arguments, call, low, read, step};

/// Texts of runs of one character class each, so that cuts fall into every mixture.
fn texts(runs: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let palette = prop::sample::select(vec![
        "\"", "\\", "\n", "\r\n", "\t", "\u{0}", "\u{1f}", "\u{7f}", "a", "é", "漢", "😀", "</",
    ]);
    vec((palette, 1_usize..600), runs).prop_map(|runs| {
        runs.iter()
            .map(|(piece, times)| piece.repeat(*times))
            .collect()
    })
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts(0..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Value::from),
            vec((texts(0..2), inner), 0..12).prop_map(|pairs| pairs.into_iter().collect::<Value>()),
        ]
    })
}

fn results() -> impl Strategy<Value = ToolResult> {
    let block = prop_oneof![
        texts(0..4).prop_map(Block::Text),
        values().prop_map(Block::Other)
    ];
    (vec(block, 0..4), prop::option::of(values()), any::<bool>()).prop_map(
        |(blocks, structured, is_error)| ToolResult {
            blocks,
            structured,
            is_error,
        },
    )
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..20_000_u64,
        Just(u64::MAX),
        (0..5_u64).prop_map(|less| u64::MAX - less)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_measure_is_the_length_of_the_serialisation(text in prop_oneof![any::<String>(), texts(0..8)]) {
        let json = serde_json::to_string(&text).expect("a text has a JSON form");
        prop_assert_eq!(serialised_size(&text).get(), json.len() as u64);
        prop_assert_eq!(line_count(&text), text.lines().count() as u64);
    }

    #[test]
    fn a_replacement_is_always_smaller_and_bounded(result in results()) {
        let admitted = step(low()).admit(call(0), "tool", result.clone());
        prop_assert_eq!(admitted.is_error, result.is_error);
        // A text too short to reach the threshold with all its bytes escaped is not measured.
        let measured = admitted.measured.map(|size| size.get());
        prop_assert!(measured.is_some() || admitted.record_text.len() * 6 + 2 < 4_096);
        let measured = measured.unwrap_or(0);
        match &admitted.prompt {
            PromptText::Inline(text) => {
                prop_assert!(measured < 4_096);
                prop_assert!(text.ptr_eq(&admitted.record_text));
            }
            PromptText::Preview { summary, .. } => {
                prop_assert!(measured >= 4_096);
                prop_assert!(summary.len() <= 4_095);
                prop_assert!(summary.len() < admitted.record_text.len());
                prop_assert!(serialised_size(summary).get() < measured);
                let fields: Value = serde_json::from_str(summary).expect("a summary is JSON");
                let end = |name: &str| fields[name].as_str().expect("a text").to_owned();
                prop_assert!(admitted.record_text.starts_with(&end("head")));
                prop_assert!(admitted.record_text.ends_with(&end("tail")));
                prop_assert!(end("head").len() + end("tail").len() <= admitted.record_text.len());
            }
        }
        prop_assert_eq!(step(low()).admit(call(0), "tool", result), admitted, "equal input, equal replacement");
    }

    #[test]
    fn slices_concatenate_to_the_stored_text(text in texts(8..30), lengths in vec(1..4_097_u64, 1..8)) {
        let step = step(low());
        let text = format!("{text}{}", "\u{1}".repeat(700));
        prop_assert_eq!(admit(&step, 0, text.clone()).placement, Placement::Stored);
        let (mut joined, mut next) = (String::new(), Some(0));
        let mut lengths = lengths.into_iter().cycle().map(|length| length.max(64));
        while let Some(offset) = next {
            let answer = read(&step, 0, offset, lengths.next().expect("a cycle")).expect("a good range");
            prop_assert_eq!(answer.offset, offset);
            prop_assert!(answer.next_offset.is_none_or(|next| next > offset));
            joined.push_str(answer.text());
            next = answer.next_offset;
        }
        prop_assert_eq!(joined, text);
        prop_assert_eq!(step.usage().reread_bytes, 0);
    }

    #[test]
    fn the_shortest_reads_concatenate_too(text in texts(1..3), lengths in vec(1..5_u64, 1..4)) {
        let step = step(low());
        let text = format!("{text}{}", "\u{1}".repeat(700));
        admit(&step, 0, text.clone());
        let (mut joined, mut next) = (String::new(), Some(0));
        let mut lengths = lengths.into_iter().cycle();
        while let Some(offset) = next {
            let answer = read(&step, 0, offset, lengths.next().expect("a cycle")).expect("a good range");
            prop_assert!(answer.next_offset.is_none_or(|next| next > offset), "no advance from {offset}");
            joined.push_str(answer.text());
            next = answer.next_offset;
        }
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn any_range_gives_a_true_slice_or_a_refusal(text in texts(8..20), offset in numbers(), length in numbers()) {
        let step = step(low());
        let text = format!("{text}{}", "\u{1}".repeat(700));
        admit(&step, 0, text.clone());
        if let Ok(answer) = read(&step, 0, offset, length) {
            let start = usize::try_from(answer.offset).expect("inside the text");
            prop_assert!(answer.offset >= offset && answer.bytes() <= 4_096);
            prop_assert_eq!(answer.text(), &text[start..start + answer.text().len()]);
            let end = answer.offset + answer.bytes();
            prop_assert_eq!(answer.next_offset, (end < answer.size).then_some(end));
            prop_assert!(end <= offset.saturating_add(length.max(4)).saturating_add(3));
        } else {
            prop_assert!(length == 0 || length > 4_096 || offset > text.len() as u64);
        }
    }

    #[test]
    fn any_arguments_are_answered(value in values(), range in values()) {
        let step = step(low());
        admit(&step, 0, "x".repeat(5_000));
        let _ = step.read(&value);
        let _ = step.read(&json!({"spillover_ref": value, "range": range}));
        let refusal = step.read(&json!({"spillover_ref": "spillover://step/i1c0.json", "range": range}));
        if let Err(refusal) = refusal {
            prop_assert!(refusal.to_string().len() < 1_000, "{refusal}");
        }
    }

    #[test]
    fn ids_of_any_length_are_taken_or_refused(id in "[a-zA-Z0-9_/. é-]{0,140}", times in 1_usize..500) {
        let long = id.repeat(times);
        prop_assert!(long.len() <= 128 * 1024 || times > 1);
        if let Ok(step) = StepId::new(&long) {
            prop_assert!((1..=128).contains(&long.len()));
            let reference = Reference { step, call: call(0) };
            prop_assert_eq!(reference.to_string().parse(), Ok(reference));
        }
        let _ = format!("spillover://{long}/i1c0.json").parse::<Reference>();
        let _ = long.parse::<Reference>();
    }

    #[test]
    fn a_reference_has_one_spelling(text in "(spillover://)?[a-z/]{0,4}/?i[0-9+]{0,3}c[0-9]{0,3}(\\.json)?") {
        if let Ok(reference) = text.parse::<Reference>() {
            prop_assert_eq!(reference.to_string(), text);
        }
    }

    #[test]
    fn executions_with_equal_references_stay_apart(
        stored in vec(any::<(u8, u8)>(), 1..12),
    ) {
        let steps = [step(low()), step(low())];
        let text = |who: usize, call: CallId| format!("{who}/{call} ").repeat(1_000);
        let mut held = [vec![], vec![]];
        for (who, index) in stored {
            let (who, call) = (usize::from(who % 2), call(u32::from(index % 4)));
            steps[who].admit(call, "tool", ToolResult::text(text(who, call)));
            held[who].push(call);
        }
        for (who, step) in steps.iter().enumerate() {
            for index in 0..4 {
                let call = call(index);
                let answer = step.read(&arguments(&format!("spillover://step/{call}.json"), 0, 6));
                let expected = held[who].contains(&call).then(|| text(who, call)[..6].to_owned());
                prop_assert_eq!(answer.ok().map(|answer| answer.text().to_owned()), expected);
            }
        }
    }
}
