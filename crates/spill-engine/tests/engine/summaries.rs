use serde_json::{Value, json};
use spill_engine::{Admitted, MAX_THRESHOLD_BYTES, StepSpill, ToolResult, serialised_size};

use super::{admit, call, low, preview, read, settings, step, step_id, summary};

fn structured(value: Value) -> Admitted {
    step(low()).admit(
        call(0),
        "tool",
        ToolResult {
            structured: Some(value),
            ..ToolResult::default()
        },
    )
}

/// Everything that must hold for any summary.
#[track_caller]
fn check_bounds(admitted: &Admitted) {
    let (text, written) = (admitted.record_text.as_str(), preview(admitted).1);
    let measured = admitted
        .measured
        .expect("stored results are measured")
        .get();
    assert!(written.len() <= 4_095, "{} bytes", written.len());
    assert!(
        written.len() < text.len(),
        "{} bytes for {}",
        written.len(),
        text.len()
    );
    assert!(
        serialised_size(written).get() < measured,
        "{} bytes for {measured}",
        serialised_size(written).get()
    );
    let fields = summary(admitted);
    let (head, tail) = (ends(&fields, "head"), ends(&fields, "tail"));
    assert!(head.len() <= 1_024 && tail.len() <= 1_024);
    assert!(
        head.len() + tail.len() <= text.len(),
        "head and tail overlap"
    );
    assert!(text.starts_with(head) && text.ends_with(tail));
}

fn ends<'a>(fields: &'a Value, name: &str) -> &'a str {
    fields[name].as_str().expect("head and tail are texts")
}

#[track_caller]
fn check_text_hint(text: &str, expected: &str) {
    let admitted = admit(&step(low()), 0, text);
    assert_eq!(summary(&admitted)["structure"], expected);
}

#[track_caller]
fn check_hint(value: Value, expected: &str) {
    let admitted = structured(value);
    assert_eq!(summary(&admitted)["structure"], expected);
    check_bounds(&admitted);
}

#[test]
fn a_summary_reads_like_this() {
    let text: String = (1..=400)
        .map(|line| format!("{line:04} a line of \"text\"\n"))
        .collect();
    let admitted = admit(&step(low()), 0, text);
    check_bounds(&admitted);
    insta::assert_snapshot!(preview(&admitted).1);
}

#[test]
fn a_summary_of_structured_content_reads_like_this() {
    let rows: Vec<Value> = (0..200)
        .map(|id| json!({"id": id, "name": format!("row {id}")}))
        .collect();
    insta::assert_snapshot!(preview(&structured(Value::Array(rows))).1);
}

#[test]
fn plain_text_shows_1024_bytes_of_both_ends() {
    let text: String = (0_u32..)
        .map(|number| char::from(b'a' + u8::try_from(number % 26).expect("a letter")))
        .take(9_000)
        .collect();
    let fields = summary(&admit(&step(low()), 0, text.clone()));
    assert_eq!(fields["head"], text[..1_024]);
    assert_eq!(fields["tail"], text[9_000 - 1_024..]);
    assert_eq!(fields["size_bytes"], 9_000);
}

/// Each takes one byte more than it has, and so leaves room for both ends whole.
#[test]
fn short_escapes_leave_room_for_1024_bytes_of_both_ends() {
    for escaped in ["\n", "\t", "\r", "\u{8}", "\u{c}"] {
        let text = format!("a{escaped}").repeat(5_000);
        let fields = summary(&admit(&step(low()), 0, text));
        assert_eq!(ends(&fields, "head").len(), 1_024, "{escaped:?}");
        assert_eq!(ends(&fields, "tail").len(), 1_024, "{escaped:?}");
    }
}

#[test]
fn size_and_lines_are_those_of_the_stored_text() {
    for (text, lines) in [
        ("\n".repeat(3_000), 3_000),
        (format!("{}end", "\n\"\n".repeat(2_000)), 4_001),
        ("x".repeat(5_000), 1),
    ] {
        let fields = summary(&admit(&step(low()), 0, text.clone()));
        assert_eq!(fields["lines"], lines);
        assert_eq!(fields["size_bytes"], text.len());
    }
}

#[test]
fn keys_stand_in_wire_order() {
    let admitted = admit(&step(low()), 0, "x".repeat(5_000));
    let fields = summary(&admitted);
    let keys: Vec<&str> = fields
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "spilled",
            "spillover_ref",
            "size_bytes",
            "lines",
            "structure",
            "head",
            "tail",
            "how_to_read"
        ]
    );
    assert_eq!(fields["spilled"], true);
    assert_eq!(fields["spillover_ref"], "spillover://step/i1c0.json");
}

#[test]
fn every_character_class_keeps_the_bounds_at_every_offset_of_a_cut() {
    let longest = "s".repeat(128);
    for filler in [
        "\"",
        "\\",
        "\n",
        "\u{1}",
        "\u{7f}",
        "é",
        "漢",
        "😀",
        "\"x",
        "\\\n\u{0}é漢😀",
        "a\u{301}",
    ] {
        for shift in 0..8 {
            let text = format!(
                "{}{}",
                "z".repeat(shift),
                filler.repeat(4_100 / filler.len())
            );
            let mut padded = text;
            while serialised_size(&padded).get() < 4_096 {
                padded.push_str(filler);
            }
            let spill = StepSpill::new(low(), step_id(&longest), StepSpill::unobserved());
            let last = spill_engine::CallId {
                iteration: u32::MAX,
                index: u32::MAX,
            };
            check_bounds(&spill.admit(last, "tool", ToolResult::text(padded)));
        }
    }
}

/// The shortest texts that reach the threshold: nothing but escapes, shorter than their measure, with the longest names.
#[test]
fn the_smallest_stored_text_still_shrinks() {
    let longest = "s".repeat(128);
    for text in [
        "\u{1}".repeat(683),
        "\"".repeat(2_047),
        "\n".repeat(2_047),
        format!("{{{}", "\u{2}".repeat(683)),
    ] {
        let spill = StepSpill::new(
            settings(4_096, 16_777_216),
            step_id(&longest),
            StepSpill::unobserved(),
        );
        let last = spill_engine::CallId {
            iteration: u32::MAX,
            index: u32::MAX,
        };
        let admitted = spill.admit(last, "tool", ToolResult::text(text));
        check_bounds(&admitted);
    }
}

/// Quotes at both ends cost four bytes each where a summary is serialised once more.
#[test]
fn quotes_at_the_ends_do_not_make_the_request_longer() {
    let quotes = "\"".repeat(1_024);
    let admitted = admit(
        &step(low()),
        0,
        format!("{quotes}{}{quotes}", "x".repeat(2_048)),
    );
    check_bounds(&admitted);
    let fields = summary(&admitted);
    // Neither end takes what is the other's.
    let (head, tail) = (ends(&fields, "head").len(), ends(&fields, "tail").len());
    assert!(head > 600 && head.abs_diff(tail) <= 4, "{head} {tail}");
}

#[test]
fn what_one_end_leaves_goes_to_the_other() {
    let escapes_first = format!("{}{}", "\u{1}".repeat(3_000), "x".repeat(3_000));
    let fields = summary(&admit(&step(low()), 0, escapes_first));
    assert_eq!(ends(&fields, "tail").len(), 1_024);
    assert!(
        ends(&fields, "head").len() > 350,
        "{}",
        ends(&fields, "head").len()
    );

    let escapes_last = format!("{}{}", "x".repeat(3_000), "\u{1}".repeat(3_000));
    let fields = summary(&admit(&step(low()), 0, escapes_last));
    assert_eq!(ends(&fields, "head").len(), 1_024);
    assert!(
        ends(&fields, "tail").len() > 350,
        "{}",
        ends(&fields, "tail").len()
    );
}

#[test]
fn one_long_line_has_a_preview_and_a_hint_that_works() {
    let admitted = admit(&step(low()), 0, "y".repeat(60_000));
    assert_eq!(summary(&admitted)["lines"], 1);
    assert_eq!(ends(&summary(&admitted), "head").len(), 1_024);
}

/// Does what the summary tells the model to do.
#[test]
fn the_hint_can_be_followed() {
    for threshold in [4_096, 32_768, 131_072, MAX_THRESHOLD_BYTES] {
        let step = step(settings(threshold, 16_777_216));
        let admitted = admit(&step, 0, "\"wörd\" ".repeat(1_048_576 / 8));
        let fields = summary(&admitted);
        let hint = ends(&fields, "how_to_read");
        assert!(
            hint.contains(spill_engine::READ_TOOL) && hint.contains("{offset, length}"),
            "{hint}"
        );
        assert!(
            hint.contains(&format!("at most {threshold} per read")),
            "{hint}"
        );
        let arguments = json!({
            "spillover_ref": fields["spillover_ref"],
            "range": {"offset": 0, "length": threshold},
        });
        assert!(
            step.read(&arguments)
                .expect("the hint works")
                .text()
                .starts_with(ends(&fields, "head"))
        );
    }
    assert!(read(&step(low()), 0, 0, 1).is_err());
}

#[test]
fn the_first_byte_of_a_text_decides_its_hint() {
    let long = "x".repeat(5_000);
    check_text_hint(&format!("{{{long}"), "object");
    check_text_hint(&format!(" \t\r\n[{long}"), "array");
    check_text_hint(&format!("\n\"{long}"), "string");
    check_text_hint(&long, "text");
    check_text_hint(&format!("-{{{long}"), "text");
    check_text_hint(&format!("\u{a0}{{{long}"), "text");
    check_text_hint(&" ".repeat(5_000), "text");
    check_text_hint(&format!("{{\"{long}\": 1}}"), "object");
}

#[test]
fn parsed_values_name_keys_and_counts() {
    let long = "x".repeat(5_000);
    check_hint(
        json!({"a": long, "b": 1, "c": {}}),
        "object(3 keys: a, b, c)",
    );
    check_hint(json!({"only": long}), "object(1 key: only)");
    check_hint(json!([long]), "array(1 item; first: string)");
    check_hint(json!([[1, 2], long]), "array(2 items; first: array)");
    check_hint(json!([null, long]), "array(2 items; first: null)");
    check_hint(
        json!([{"id": 1, "name": long}, 2, 3]),
        "array(3 items; first: object(id, name))",
    );
    check_hint(json!([{}, long]), "array(2 items; first: object())");
    check_hint(json!("é".repeat(8_000)), "string(8000 chars)");
    check_hint(json!(vec![1; 5_000]), "array(5000 items; first: number)");
}

#[test]
fn long_and_many_keys_are_cut() {
    let keys = |count: usize| -> Value {
        (0..count)
            .map(|key| (format!("k{key}"), json!("x".repeat(500))))
            .collect()
    };
    check_hint(
        keys(10),
        "object(10 keys: k0, k1, k2, k3, k4, k5, k6, k7, k8, k9)",
    );
    check_hint(
        keys(11),
        "object(11 keys: k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, +1 more)",
    );
    check_hint(
        json!({("é".repeat(41)): "x".repeat(5_000)}),
        &format!("object(1 key: {})", "é".repeat(40)),
    );
}

#[test]
fn hostile_keys_keep_the_bounds() {
    for filler in ["\u{1}", "\"", "\\", "😀"] {
        let object: Value = (0..40)
            .map(|key| {
                (
                    format!("{}{key}", filler.repeat(60)),
                    json!("x".repeat(100)),
                )
            })
            .collect();
        check_bounds(&structured(object.clone()));
        check_bounds(&structured(json!([object])));
    }
}
