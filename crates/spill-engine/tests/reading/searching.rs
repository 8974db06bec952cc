use serde_json::json;
use spill_engine::{AskError, Part};

use super::stored;

#[test]
fn hits_have_offset_line_and_context() {
    let text = "alpha\nbeta ERROR: disk full, see log\ngamma\nERROR\n";
    stored(text.to_owned(), |shelf| {
        assert_eq!(
            shelf.text(&json!({"search": "ERROR"})),
            Ok("@11 line 2: beta ERROR: disk full, see log\n@43 line 4: ERROR\n".to_owned())
        );
        assert_eq!(
            shelf.text(&json!({"search": "ERROR", "context": 6})),
            Ok("@11 line 2: beta ERROR: disk\n@43 line 4: ERROR\n".to_owned())
        );
        assert_eq!(
            shelf.text(&json!({"search": "ERROR", "context": 0, "offset": 12})),
            Ok("@43 line 4: ERROR\n".to_owned())
        );
        assert_eq!(
            shelf.text(&json!({"search": "^[a-z]+$", "regex": true})),
            Ok("@0 line 1: alpha\n@37 line 3: gamma\n".to_owned())
        );
        assert_eq!(shelf.text(&json!({"search": "nowhere"})), Ok(String::new()));
    });
}

#[test]
fn a_hit_reads_back_to_its_place() {
    let text = format!("{}needle{}", "漢字".repeat(3_000), "é".repeat(900));
    stored(text, |shelf| {
        let answer = shelf
            .arguments(&json!({"search": "needle", "context": 10}))
            .expect("found");
        let Part::Hits(hits) = &answer.part else {
            panic!("hits");
        };
        let place = json!({"offset": hits[0].offset, "length": hits[0].length});
        assert_eq!(shelf.text(&place), Ok("needle".to_owned()));
        let around = json!({"offset": hits[0].excerpt_offset, "length": hits[0].excerpt.len()});
        assert_eq!(shelf.text(&around), Ok(hits[0].excerpt.clone()));
    });
}

/// Patterns match in linear time or are refused; none hangs.
#[test]
fn fault_48_no_pattern_hangs() {
    stored(format!("{}!", "a".repeat(100_000)), |shelf| {
        let search = |pattern: &str| shelf.arguments(&json!({"search": pattern, "regex": true}));
        assert_eq!(search("(a+)+$").expect("linear").bytes(), b"");
        assert_eq!(search("(a|a)*b").expect("linear").bytes(), b"");
        for refused in [
            r"(a)\1",
            "(?=a)",
            "((((a{1,100}){1,100}){1,100}){1,100})",
            "(",
            "a{2,1}",
        ] {
            let refusal = search(refused).expect_err("not linear, too large, or no pattern");
            assert!(
                matches!(refusal, AskError::Pattern(_)),
                "{refused}: {refusal}"
            );
            assert!(refusal.to_string().len() < 400);
        }
        assert!(matches!(
            search(&"a".repeat(5_000)),
            Err(AskError::PatternTooLong { .. })
        ));
        assert_eq!(search(""), Err(AskError::Nothing));
    });
}

#[test]
fn a_match_larger_than_the_cap_is_shown_in_part() {
    stored("a".repeat(100_000), |shelf| {
        let answer = shelf
            .arguments(&json!({"search": "a+", "regex": true}))
            .expect("found");
        let Part::Hits(hits) = &answer.part else {
            panic!("hits");
        };
        assert_eq!(
            (hits.len(), hits[0].length, answer.next_offset),
            (1, 100_000, None)
        );
        assert!(hits[0].excerpt.len() > 200);
    });
}

#[test]
fn empty_matches_advance() {
    stored("abc".to_owned(), |shelf| {
        let answer = shelf
            .arguments(&json!({"search": "x*", "regex": true}))
            .expect("found");
        let Part::Hits(hits) = &answer.part else {
            panic!("hits");
        };
        assert_eq!(
            hits.iter().map(|hit| hit.offset).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
    });
}

#[test]
fn a_search_at_the_end_finds_nothing_and_behind_it_is_refused() {
    stored("one\n".to_owned(), |shelf| {
        let search = |offset| shelf.text(&json!({"search": "one", "offset": offset}));
        assert_eq!(search(4), Ok(String::new()));
        assert_eq!(search(5), Err(super::out_of_range(5, 4)));
    });
}

#[test]
fn patterns_at_their_bounds() {
    stored("a".repeat(5_000), |shelf| {
        let search = |length| shelf.arguments(&json!({"search": "a".repeat(length)}));
        assert!(search(4_096).is_ok());
        let refused = matches!(
            search(4_097),
            Err(AskError::PatternTooLong {
                bytes: 4_097,
                most: 4_096
            })
        );
        assert!(refused);
        let error = shelf.arguments(&json!({"search": "a(", "regex": true}));
        let said = error.expect_err("unclosed").to_string();
        assert!(said.contains("unclosed group"), "{said}");
    });
}

/// Beside the first line's 256 bytes an answer is filled to the last one, if the hits are so long.
#[test]
fn hits_fill_the_room_and_no_more() {
    let lengths = (0..120).map(|length| {
        let longest = std::cell::Cell::new(0);
        stored(
            format!("needle{}\n", "x".repeat(length)).repeat(20),
            |shelf| {
                let answer = shelf.text(&json!({"search": "needle", "context": 500}));
                longest.set(answer.expect("hits").len());
            },
        );
        longest.get()
    });
    assert_eq!(lengths.max(), Some(1_024 - 256));
}

#[test]
fn a_hit_is_shown_however_much_stands_around_it() {
    let text = format!("{}needle{}", "x".repeat(5_000), "y".repeat(5_000));
    stored(text, |shelf| {
        let shown = shelf.text(&json!({"search": "needle", "context": 100_000}));
        let shown = shown.expect("a hit");
        assert!(shown.contains("needle"), "{shown}");
        let (before, after) = (shown.matches('x').count(), shown.matches('y').count());
        assert!(
            before.abs_diff(after) <= 1 && before > 100,
            "{before} {after}"
        );
    });
}
