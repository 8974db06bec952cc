use spill_engine::{Bytes, Placement, ToolResult, line_count, serialised_size};

use crate::{call, low, step};

#[track_caller]
fn check_size(text: &str) {
    let json = serde_json::to_string(text).expect("a text has a JSON form");
    assert_eq!(serialised_size(text).get(), json.len() as u64, "{json:.80}");
}

#[track_caller]
fn check_lines(text: &str, expected: u64) {
    assert_eq!(line_count(text), expected, "{text:?}");
}

#[test]
fn every_single_character_class_measures_as_it_serialises() {
    for code in (0..0x3000).chain([0xd7ff, 0xe000, 0xfffd, 0xffff, 0x1_0000, 0x10_ffff]) {
        check_size(
            &char::from_u32(code)
                .expect("no surrogate in the list")
                .to_string(),
        );
    }
}

#[test]
fn the_worst_text_does_not_overflow_the_counters_at_any_length() {
    for length in (0..140).chain([
        255, 256, 257, 8_191, 8_192, 8_193, 16_383, 16_384, 16_385, 16_512, 32_768, 40_000,
    ]) {
        check_size(&"\u{1}".repeat(length));
        check_size(&"\n".repeat(length));
        check_size(&"\\".repeat(length));
        check_size(&"\"\n".repeat(length));
        check_size(&"ab\u{7f}é😀\\".repeat(length));
    }
}

#[test]
fn a_rare_control_is_found_wherever_it_stands() {
    for place in [
        0, 1, 127, 128, 16_383, 16_384, 16_511, 16_512, 32_767, 40_000,
    ] {
        for rare in ["\0", "\t", "\u{8}", "\u{b}", "\r", "\u{1f}", "\""] {
            let mut text = "x\n".repeat(20_010);
            text.replace_range(place..=place, rare);
            check_size(&text);
        }
    }
}

#[test]
fn controls_of_all_kinds_are_told_apart() {
    // Six controls, and two line feeds times three tabs are six as well.
    check_size("\n\n\t\t\t\u{1}");
    check_size("\n\t\r\u{1}");
    for length in [5, 127, 128, 200, 300] {
        check_size(&format!("\u{1}{}", " !\u{1f}".repeat(length)));
        check_size(&format!(
            "\u{b}\u{e}\u{7}{}",
            "\u{8}\u{c}\t ".repeat(length)
        ));
    }
}

#[test]
fn lines_are_counted_by_their_ends() {
    check_lines("", 0);
    check_lines("a", 1);
    check_lines("a\n", 1);
    check_lines("a\nb", 2);
    check_lines("a\nb\n", 2);
    check_lines("a\n\nb", 3);
    check_lines("\n", 1);
    check_lines("\n\n", 2);
    check_lines("a\r\nb\r\n", 2);
    check_lines("a\rb", 1);
    check_lines("a\u{2028}b", 1);
    check_lines(&"line\n".repeat(100_000), 100_000);
    check_lines(&"{\"a\":1}".repeat(1_000), 1);
}

#[test]
fn a_text_is_left_unmeasured_only_while_no_escapes_could_take_it_to_the_threshold() {
    // 682 escapes of six bytes and two quotes are 4,094 bytes, 683 are 4,100.
    for (length, measured) in [(682, None), (683, Some(4_100))] {
        let result = ToolResult::text("\u{1}".repeat(length));
        let admitted = step(low()).admit(call(0), "tool", result);
        assert_eq!(admitted.measured.map(Bytes::get), measured, "{length}");
        let stored = admitted.placement == Placement::Stored;
        assert_eq!(stored, measured.is_some(), "{length}");
    }
}
