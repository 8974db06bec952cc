use serde_json::{Value, json};
use spill_engine::{READ_TOOL, ReadAnswer, ReadError, StepSpill, Usage, read_tool_schema};

use super::{admit, arguments, low, noted, read, settings, step, step_id};

const REFERENCE: &str = "spillover://step/i1c0.json";

/// 10,000 bytes whose content tells their offset.
fn numbers() -> String {
    (0..2_000).map(|number| format!("{number:04}\n")).collect()
}

fn holding(text: &str) -> StepSpill {
    let step = step(low());
    admit(&step, 0, text);
    step
}

fn with_range(range: Value) -> Value {
    json!({"spillover_ref": REFERENCE, "range": range})
}

#[track_caller]
fn check_slice(
    text: &str,
    (offset, length): (u64, u64),
    expected: &str,
    expected_offset: u64,
    next: Option<u64>,
) {
    let answer = read(&holding(text), 0, offset, length).expect("a good range");
    assert_eq!(
        (answer.text(), answer.offset, answer.next_offset),
        (expected, expected_offset, next)
    );
    assert_eq!(answer.size, text.len() as u64);
}

#[test]
fn ranges_at_their_bounds() {
    let text = numbers();
    check_slice(&text, (0, 1), "0", 0, Some(1));
    check_slice(&text, (0, 4_096), &text[..4_096], 0, Some(4_096));
    check_slice(&text, (5, 10), "0001\n0002\n", 5, Some(15));
    check_slice(&text, (9_999, 1), "\n", 9_999, None);
    check_slice(&text, (9_999, 4_096), "\n", 9_999, None);
    check_slice(&text, (9_000, 1_000), &text[9_000..], 9_000, None);
    check_slice(&text, (9_000, 999), &text[9_000..9_999], 9_000, Some(9_999));
    check_slice(&text, (10_000, 1), "", 10_000, None);
    check_slice(&text, (10_000, 4_096), "", 10_000, None);
}

#[test]
fn cuts_inside_a_character_move_inwards() {
    let text = "aé漢😀".repeat(500);
    // Bytes: a 0, é 1..3, 漢 3..6, 😀 6..10.
    check_slice(&text, (0, 2), "a", 0, Some(1));
    check_slice(&text, (0, 3), "aé", 0, Some(3));
    check_slice(&text, (2, 4), "漢", 3, Some(6));
    check_slice(&text, (2, 7), "漢", 3, Some(6));
    check_slice(&text, (4, 6), "😀", 6, Some(10));
    check_slice(&text, (7, 4), "a", 10, Some(11));
    check_slice(&text, (4_999, 10), "", 5_000, None);
}

#[test]
fn a_range_shorter_than_its_character_still_advances() {
    let text = "aé漢😀".repeat(500);
    check_slice(&text, (1, 1), "é", 1, Some(3));
    check_slice(&text, (3, 2), "漢", 3, Some(6));
    check_slice(&text, (6, 3), "😀", 6, Some(10));
    check_slice(&text, (7, 1), "a", 10, Some(11));
    check_slice(&text, (4_996, 1), "😀", 4_996, None);
}

#[test]
fn line_ends_are_never_normalised() {
    let text = "one\r\ntwo\nthree\r".repeat(400);
    check_slice(&text, (0, 15), "one\r\ntwo\nthree\r", 0, Some(15));
    check_slice(&text, (4, 1), "\n", 4, Some(5));
}

#[test]
fn without_a_range_the_whole_comes_if_it_fits_one_read() {
    let escapes = "\"".repeat(4_096);
    let step = holding(&escapes);
    for whole in [
        json!({"spillover_ref": REFERENCE}),
        with_range(Value::Null),
        with_range(json!({})),
    ] {
        assert_eq!(step.read(&whole).expect("4,096 bytes fit").text(), escapes);
    }
    assert_eq!(step.usage().reads_with_range, 0);

    let step = holding(&"\"".repeat(4_097));
    let refused = step.read(&json!({"spillover_ref": REFERENCE}));
    assert_eq!(
        refused,
        Err(ReadError::TooLarge {
            offset: 0,
            rest: 4_097,
            size: 4_097,
            cap: 4_096
        })
    );
}

#[test]
fn an_offset_alone_reads_to_the_end_if_that_fits() {
    let step = holding(&numbers());
    let read = |offset: u64| step.read(&with_range(json!({"offset": offset})));
    assert_eq!(read(5_904).expect("4,096 bytes are left").bytes(), 4_096);
    assert_eq!(
        read(5_903),
        Err(ReadError::TooLarge {
            offset: 5_903,
            rest: 4_097,
            size: 10_000,
            cap: 4_096
        })
    );
    assert_eq!(read(10_000).expect("the end").text(), "");
    assert_eq!(
        read(10_001),
        Err(ReadError::PastEnd {
            offset: 10_001,
            size: 10_000
        })
    );
}

#[test]
fn a_length_alone_reads_from_the_start() {
    let answer = holding(&numbers())
        .read(&with_range(json!({"length": 5})))
        .expect("a good range");
    assert_eq!((answer.text(), answer.next_offset), ("0000\n", Some(5)));
}

#[test]
fn bad_ranges_are_refused_and_not_shortened() {
    let step = holding(&numbers());
    let (size, cap) = (10_000, 4_096);
    for length in [4_097, u64::from(u32::MAX), 1 << 63, u64::MAX] {
        assert_eq!(
            read(&step, 0, 0, length),
            Err(ReadError::RangeTooLong { length, size, cap })
        );
        assert_eq!(
            read(&step, 0, 9_999, length),
            Err(ReadError::RangeTooLong { length, size, cap })
        );
    }
    for offset in [10_001, 1 << 63, u64::MAX] {
        assert_eq!(
            read(&step, 0, offset, 4_096),
            Err(ReadError::PastEnd { offset, size })
        );
    }
    assert_eq!(
        read(&step, 0, 0, 0),
        Err(ReadError::EmptyRange { size, cap })
    );
    assert_eq!(
        read(&step, 0, u64::MAX, 0),
        Err(ReadError::EmptyRange { size, cap })
    );
    assert_eq!(step.usage().reads, 0);
}

#[test]
fn the_way_out_of_a_refusal_works() {
    let step = holding(&numbers());
    let refusal = step
        .read(&json!({"spillover_ref": REFERENCE}))
        .expect_err("too large")
        .to_string();
    let (start, end) = (
        refusal.find("{\"offset\"").expect("a range"),
        refusal.find('}').expect("its end"),
    );
    let range: Value = serde_json::from_str(&refusal[start..=end]).expect("the range is JSON");
    assert_eq!(
        step.read(&with_range(range)).expect("the way out").bytes(),
        4_096
    );
}

#[test]
fn malformed_ranges_say_what_is_expected() {
    let step = holding(&numbers());
    let odd = [
        json!(-1),
        json!(1.5),
        json!("5"),
        json!(true),
        json!([]),
        json!({}),
        json!(1e300),
    ];
    for value in &odd {
        for range in [
            json!({"offset": value}),
            json!({"offset": 0, "length": value}),
        ] {
            assert!(
                matches!(
                    step.read(&with_range(range)),
                    Err(ReadError::BadArguments { .. })
                ),
                "{value}"
            );
        }
    }
    for range in [
        json!([0, 1]),
        json!("0-1"),
        json!(5),
        json!(false),
        json!({"start": 0}),
        json!({"Offset": 0}),
    ] {
        assert!(
            matches!(
                step.read(&with_range(range.clone())),
                Err(ReadError::BadArguments { .. })
            ),
            "{range}"
        );
    }
    let stray = json!({"spillover_ref": REFERENCE, "offset": 5});
    assert!(matches!(
        step.read(&stray),
        Err(ReadError::BadArguments { .. })
    ));
}

#[test]
fn refusals_read_like_this() {
    let step = holding(&numbers());
    let cases = [
        json!({"spillover_ref": "spillover://step/i9c9.json"}),
        json!({"spillover_ref": REFERENCE}),
        with_range(json!({"offset": 5_000})),
        with_range(json!({"length": 4_097})),
        with_range(json!({"length": 0})),
        with_range(json!({"offset": 10_001})),
        with_range(json!({"offset": -1})),
        with_range(json!([0, 100])),
        with_range(json!({"stop\n": 5})),
        json!({"spillover_ref": REFERENCE, ("x".repeat(1_000)): 5}),
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|case| step.read(case).expect_err("a refusal").to_string())
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn not_found_is_one_error_whatever_the_reason() {
    let step = holding(&numbers());
    let long = format!("spillover://{}/i1c0.json", "s".repeat(65_536));
    let strange = [
        json!({"spillover_ref": "spillover://other/i1c0.json"}),
        json!({"spillover_ref": "spillover://step/i1c1.json"}),
        json!({"spillover_ref": "spillover://step/i2c0.json"}),
        json!({"spillover_ref": "spillover://step/i01c0.json"}),
        json!({"spillover_ref": "spillover://step/../i1c0.json"}),
        json!({"spillover_ref": "../../etc/passwd"}),
        json!({"spillover_ref": "spillover://step/i9c9.json", "range": {"offset": -1}, "stray": 1}),
        json!({"spillover_ref": long}),
        json!({"spillover_ref": ""}),
        json!({"spillover_ref": 5}),
        json!({"spillover_ref": null}),
        json!({}),
        json!([]),
        json!(null),
        json!("spillover://step/i1c0.json"),
    ];
    for arguments in &strange {
        assert_eq!(
            step.read(arguments),
            Err(ReadError::NotFound),
            "{arguments:.100}"
        );
    }
    step.release();
    assert_eq!(read(&step, 0, 0, 10), Err(ReadError::NotFound));
    assert_eq!(step.usage().reads, 0);
}

#[test]
fn nothing_is_offered_or_found_before_the_first_stored_result() {
    let step = step(low());
    assert!(!step.offers_read());
    assert_eq!(read(&step, 0, 0, 10), Err(ReadError::NotFound));
    admit(&step, 0, "small");
    assert!(!step.offers_read());
    admit(&step, 1, numbers());
    assert!(step.offers_read());
    assert_eq!(
        read(&step, 0, 0, 10),
        Err(ReadError::NotFound),
        "the inline one"
    );
    assert_eq!(read(&step, 1, 0, 4).expect("stored").text(), "0000");
    step.release();
    assert!(!step.offers_read());
}

#[test]
fn after_the_release_results_stay_inline() {
    let step = holding(&numbers());
    step.release();
    let late = admit(&step, 1, numbers());
    assert_eq!(
        late.placement,
        spill_engine::Placement::Inline(spill_engine::InlineReason::Released)
    );
    assert!(!step.offers_read());
    assert_eq!(step.usage().persisted, 1, "sums stay readable");
}

#[test]
fn executions_of_one_step_never_see_each_other() {
    let (first, second) = (
        holding(&"first ".repeat(1_000)),
        holding(&"second ".repeat(1_000)),
    );
    assert!(
        read(&first, 0, 0, 6)
            .expect("its own")
            .text()
            .starts_with("first")
    );
    assert!(
        read(&second, 0, 0, 6)
            .expect("its own")
            .text()
            .starts_with("second")
    );
    admit(&first, 1, numbers());
    assert_eq!(read(&second, 1, 0, 6), Err(ReadError::NotFound));
    first.release();
    assert!(read(&second, 0, 0, 6).is_ok());

    let other_step = StepSpill::new(low(), step_id("other"), StepSpill::unobserved());
    admit(&other_step, 0, numbers());
    assert_eq!(
        other_step.read(&arguments(REFERENCE, 0, 6)),
        Err(ReadError::NotFound)
    );
}

#[test]
fn each_reference_can_be_read_right_after_it_was_given() {
    let step = step(low());
    for index in 0..50 {
        let text = format!("{index:04}{}", "x".repeat(5_000));
        let admitted = admit(&step, index, text.clone());
        let (reference, _) = super::preview(&admitted);
        assert_eq!(
            step.read(&arguments(&reference.to_string(), 0, 4))
                .expect("stored")
                .text(),
            &text[..4]
        );
    }
}

#[test]
fn an_answer_renders_as_a_header_line_and_the_raw_slice() {
    let step = holding(&"say \"hé\"\r\n".repeat(1_000));
    let render = |offset, length| {
        read(&step, 0, offset, length)
            .expect("a good range")
            .render()
    };
    let header = |answer: &str| -> Value {
        serde_json::from_str(answer.split_once('\n').expect("two parts").0).expect("JSON")
    };
    insta::assert_snapshot!(format!("{:?}\n{:?}", render(11, 11), render(11_000, 5)));
    assert_eq!(
        header(&render(11, 11)),
        json!({"spillover_ref": REFERENCE, "offset": 11, "length": 11, "next_offset": 22, "size_bytes": 11_000})
    );
}

#[test]
fn usage_and_observer_count_successful_reads() {
    let (step, notes) = noted(settings(4_096, 1_048_576));
    admit(&step, 0, numbers());
    admit(&step, 1, "\"".repeat(2_100));
    admit(&step, 2, "inline");
    read(&step, 0, 0, 100).expect("a good range");
    read(&step, 0, 50, 100).expect("a good range");
    step.read(&json!({"spillover_ref": "spillover://step/i1c1.json"}))
        .expect("fits");
    read(&step, 0, 10_001, 1).expect_err("behind the end");
    read(&step, 7, 0, 1).expect_err("unknown");
    insta::assert_snapshot!(notes.taken().join("\n"));
    assert_eq!(
        step.usage(),
        Usage {
            persisted: 2,
            persisted_by_tool: [("read_file".to_owned(), 2)].into(),
            stored_bytes: 12_100,
            peak_bytes: 12_100,
            budget_used_bytes: 12_002 + 4_202,
            over_budget: 0,
            reads: 3,
            reads_with_range: 2,
            read_bytes: 2_300,
            distinct_read: 2,
            reread_bytes: 50,
        }
    );
}

#[test]
fn an_answer_outlives_the_release() {
    let step = holding(&numbers());
    let answer: ReadAnswer = read(&step, 0, 0, 5).expect("stored");
    step.release();
    drop(step);
    assert_eq!(answer.text(), "0000\n");
}

#[test]
fn the_schema_describes_the_arguments() {
    let (description, schema) = read_tool_schema();
    assert_eq!(READ_TOOL, "clerum__spillover_read");
    insta::assert_snapshot!(format!("{description}\n{schema:#}"));
}
