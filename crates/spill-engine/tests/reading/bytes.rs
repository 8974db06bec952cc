use serde_json::json;
use spill_engine::{Ask, AskError, ReadFailure};

use super::{CAP, NOW, object, out_of_range, stored};

#[test]
fn cuts_move_inwards_to_characters() {
    stored("aéb漢c".to_owned(), |shelf| {
        let at = |offset: u64, length: u64| {
            let answer = shelf
                .arguments(&json!({"offset": offset, "length": length}))
                .expect("inside");
            (
                answer.offset,
                answer.text().into_owned(),
                answer.next_offset,
            )
        };
        assert_eq!(at(0, 1), (0, "a".to_owned(), Some(1)));
        assert_eq!(at(0, 2), (0, "a".to_owned(), Some(1)));
        assert_eq!(at(2, 2), (3, "b".to_owned(), Some(4)), "not half of é");
        assert_eq!(
            at(1, 1),
            (1, "é".to_owned(), Some(3)),
            "a character whole, to advance"
        );
        assert_eq!(at(4, 100), (4, "漢c".to_owned(), None));
    });
}

/// A page shorter than the character at its start holds it whole, whatever stands behind.
#[test]
fn the_longest_character_comes_whole_too() {
    for text in ["😀", "😀😀x", "x😀漢é"] {
        stored(text.to_owned(), |shelf| {
            for (start, char) in text.char_indices() {
                let answer = shelf.arguments(&json!({"offset": start, "length": 1}));
                assert_eq!(answer.expect("inside").text(), char.to_string());
            }
        });
    }
}

/// A byte that continues no character stands for itself.
#[test]
fn bytes_that_continue_no_character_are_cut_where_asked() {
    for (bytes, offset) in [
        (vec![0xc3, 0xa9, 0x80, b'a'], 2),
        (vec![0xe2, 0x80, b'a'], 1),
        (vec![b'a', 0xbf, b'a'], 1),
    ] {
        stored(bytes.clone(), |shelf| {
            let answer = shelf.arguments(&json!({"offset": offset, "length": 1}));
            let answer = answer.expect("inside");
            assert_eq!(answer.offset, offset, "{bytes:x?}");
            let at = usize::try_from(offset).expect("small");
            assert_eq!(answer.bytes(), &bytes[at..=at], "{bytes:x?}");
        });
    }
}

#[test]
fn an_answer_reads_like_this() {
    stored("one\ntwo\nthree\n".to_owned(), |shelf| {
        let answer = shelf
            .arguments(&json!({"offset": 4, "length": 4}))
            .expect("inside");
        let rendered = answer.render().replace(shelf.key.as_str(), "KEY");
        assert_eq!(
            rendered,
            "{\"reference\":\"KEY\",\"part\":\"bytes\",\"offset\":4,\"length\":4,\"next_offset\":8,\"size_bytes\":14}\ntwo\n"
        );
    });
}

/// One line longer than a page loses nothing.
#[test]
fn fault_43_pages_of_one_long_line_concatenate() {
    let text = format!("{}\nshort\n", "wide line ".repeat(1_500));
    stored(text.clone(), |shelf| {
        for length in [1, 3, 100, 5_000] {
            let joined = shelf.pages(14_000, length);
            assert_eq!(joined, &text.as_bytes()[14_000..]);
        }
        assert_eq!(shelf.pages(0, u64::MAX), text.as_bytes());
    });
}

/// Behind the end there is an answer with the total; at the end there is an empty one and nothing to go on with.
#[test]
fn fault_45_at_and_behind_the_end() {
    stored("x".repeat(500), |shelf| {
        let at_end = shelf
            .arguments(&json!({"offset": 500}))
            .expect("the end is inside");
        assert_eq!(
            (at_end.bytes(), at_end.next_offset, at_end.size),
            (&b""[..], None, 500)
        );
        let behind = shelf
            .arguments(&json!({"offset": 1_200}))
            .expect_err("behind the end");
        assert_eq!(behind, out_of_range(1_200, 500));
        assert!(behind.to_string().contains("500 bytes and no more"));
        assert_eq!(
            shelf.arguments(&json!({"offset": u64::MAX, "length": u64::MAX})),
            Err(out_of_range(u64::MAX, 500))
        );
    });
}

/// Line ends of every kind come back as they were.
#[test]
fn fault_46_ranges_never_normalise() {
    let text = "a\r\nb\nc\rd\r\n\r\n";
    stored(text.to_owned(), |shelf| {
        assert_eq!(shelf.pages(0, 2), text.as_bytes());
        assert_eq!(
            shelf.text(&json!({"line": 1, "lines": 2})),
            Ok("a\r\nb\n".to_owned())
        );
        assert_eq!(
            shelf.text(&json!({"search": "b"})),
            Ok("@3 line 2: b\n".to_owned())
        );
    });
}

/// Counts are unsigned, clamped to the cap, and the answer says what it returned.
#[test]
fn fault_47_odd_numbers_are_refused_or_clamped() {
    stored("x\n".repeat(5_000), |shelf| {
        for name in ["offset", "length", "lines", "context", "limit"] {
            for value in [json!(-1), json!(0.5), json!("1"), json!([1]), json!(1e300)] {
                let mut arguments = json!({name: value});
                if matches!(name, "context" | "limit") {
                    arguments["search"] = json!("x");
                }
                match Ask::from_arguments(object(&arguments)) {
                    Err(AskError::Argument { name: named, .. }) => assert_eq!(named, name),
                    other => panic!("{arguments}: {other:?}"),
                }
            }
        }
        let huge = shelf
            .arguments(&json!({"offset": 0, "length": 1_u64 << 63}))
            .expect("clamped");
        assert!(
            huge.bytes().len() as u64 <= CAP && huge.next_offset == Some(huge.bytes().len() as u64)
        );
        assert_eq!(
            shelf.arguments(&json!({"length": 0})),
            Err(AskError::Nothing)
        );
        assert_eq!(
            shelf.arguments(&json!({"line": 1, "lines": 0})),
            Err(AskError::Nothing)
        );
        assert_eq!(
            shelf.arguments(&json!({"line": 0})),
            Err(AskError::LineZero)
        );
        assert!(
            shelf
                .arguments(&json!({"line": u64::MAX, "lines": u64::MAX}))
                .is_err()
        );
        assert!(
            shelf.arguments(&json!({"line": i64::MIN})).is_ok(),
            "as far from the end as there is"
        );
    });
}

#[test]
fn stray_and_mixed_arguments_are_named() {
    for (arguments, stray) in [
        (json!({"offset": 1, "lenght": 2}), "lenght"),
        (json!({"line": 1, "offset": 2}), "offset"),
        (json!({"search": "x", "pointer": "/a"}), "pointer"),
        (json!({"pointer": "/a", "length": 1}), "length"),
        (json!({"pointer": "/a", "items": {"last": 1}}), "last"),
        (json!({"x".repeat(500): 1}), &"x".repeat(40)),
    ] {
        let error = Ask::from_arguments(object(&arguments)).expect_err("stray");
        assert!(
            matches!(&error, AskError::Argument { name, .. } if name == stray),
            "{error:?}"
        );
    }
}

/// An item that another reader stored, or nobody, is not found; a failing ask that is repeated is counted.
#[test]
fn fault_51_repeated_failures_are_counted() {
    stored("text".to_owned(), |shelf| {
        let unknown = spill_engine::ItemKey::from_number(5);
        let all = Ask::from_arguments(object(&json!({}))).expect("all bytes");
        for _ in 0..3 {
            let failure = shelf.reading.answer(unknown, &all, NOW);
            assert_eq!(failure, Err(AskError::Read(ReadFailure::NotFound)));
        }
        let counts = shelf.reading.counts();
        assert_eq!(
            (counts.failures, counts.repeated_failures, counts.answers),
            (3, 2, 0)
        );
    });
}

#[test]
fn rereads_are_counted() {
    stored("x".repeat(10_000), |shelf| {
        shelf.pages(0, 500);
        let first = shelf.reading.counts();
        assert_eq!(
            (first.bytes, first.reread_bytes, first.distinct_items),
            (10_000, 0, 1)
        );
        shelf.arguments(&json!({"offset": 9_900})).expect("inside");
        shelf.arguments(&json!({"search": "x"})).expect("found");
        let counts = shelf.reading.counts();
        assert_eq!(
            (counts.answers, counts.bytes, counts.reread_bytes),
            (22, 10_100, 100)
        );
    });
}

/// Bytes that are no characters take three each where they are shown; a page is as many as fit, and not fewer.
#[test]
fn a_page_of_no_characters_is_a_third_of_the_room() {
    stored(vec![0xff; 5_000], |shelf| {
        let answer = shelf.arguments(&json!({})).expect("a page");
        assert!(
            (250..=256).contains(&answer.bytes().len()),
            "{}",
            answer.bytes().len()
        );
    });
}

#[test]
fn a_stray_argument_is_told_what_may_stand_there() {
    for (arguments, expected) in [
        (json!({"x": 1}), "offset, length only"),
        (json!({"line": 1, "x": 1}), "line, lines only"),
    ] {
        let error = Ask::from_arguments(object(&arguments)).expect_err("stray");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
