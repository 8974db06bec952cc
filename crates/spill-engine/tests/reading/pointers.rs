use serde_json::{Value, json};
use spill_engine::AskError;

use super::stored;

const TEXT: &str = r#" {"a/b": {"m~n": [10, "x", {"deep": true} ]}, "": 1, "twice": 1, "twice": 2, "é\n": "esc", "rows": [ {"id":1} , {"id":2},{"id":3}]} "#;

#[track_caller]
fn check(arguments: Value, expected: Result<&str, AskError>) {
    stored(TEXT.to_owned(), |shelf| {
        let found = shelf.text(&arguments);
        assert_eq!(found, expected.clone().map(str::to_owned), "{arguments}");
    });
}

fn no_such(pointer: &str, step: u64) -> Result<&'static str, AskError> {
    let pointer = pointer.to_owned();
    Err(AskError::NoSuchValue { pointer, step })
}

#[test]
fn pointers_find_the_stored_bytes() {
    check(json!({"pointer": "/a~1b/m~0n/1"}), Ok("\"x\""));
    check(
        json!({"pointer": "/a~1b/m~0n"}),
        Ok(r#"[10, "x", {"deep": true} ]"#),
    );
    check(json!({"pointer": "/a~1b/m~0n/2/deep"}), Ok("true"));
    check(json!({"pointer": "/"}), Ok("1"));
    check(json!({"pointer": "/twice"}), Ok("2"));
    check(json!({"pointer": "/é\n"}), Ok("\"esc\""));
    check(json!({"pointer": ""}), Ok(TEXT.trim()));
    check(
        json!({"pointer": "/a~1b/m~0n/3"}),
        no_such("/a~1b/m~0n/3", 3),
    );
    check(
        json!({"pointer": "/a~1b/m~0n/01"}),
        no_such("/a~1b/m~0n/01", 3),
    );
    check(
        json!({"pointer": "/a~1b/m~0n/-"}),
        no_such("/a~1b/m~0n/-", 3),
    );
    check(json!({"pointer": "/twice/x"}), no_such("/twice/x", 2));
    for bad in ["a", "/a~", "/a~2b", &"/x".repeat(129)] {
        let pointer = bad.chars().take(100).collect();
        check(json!({"pointer": bad}), Err(AskError::Pointer { pointer }));
    }
}

#[test]
fn elements_are_a_span_of_the_stored_bytes() {
    let items = |first: u64, count: u64| json!({"pointer": "/rows", "items": {"first": first, "count": count}});
    check(items(0, 1), Ok(r#"{"id":1}"#));
    check(items(0, 2), Ok(r#"{"id":1} , {"id":2}"#));
    check(items(1, u64::MAX), Ok(r#"{"id":2},{"id":3}"#));
    check(
        items(3, 1),
        Err(AskError::ItemPastEnd { item: 3, items: 3 }),
    );
    check(
        items(u64::MAX, u64::MAX),
        Err(AskError::ItemPastEnd {
            item: u64::MAX,
            items: 3,
        }),
    );
    check(items(0, 0), Err(AskError::Nothing));
    check(
        json!({"pointer": "/twice", "items": {"first": 0}}),
        Err(AskError::NotAnArray),
    );
}

/// Compact JSON is one line: rows are reached by pointer and by slices of arrays, and the stored bytes stay as they are.
#[test]
fn fault_49_rows_of_compact_json_are_reached() {
    let rows: Vec<Value> = (0..5_000)
        .map(|id| json!({"id": id, "name": format!("row {id}")}))
        .collect();
    let text = serde_json::to_string(&json!({"rows": rows})).expect("JSON");
    assert_eq!(spill_engine::line_count(&text), 1);
    stored(text.clone(), |shelf| {
        assert_eq!(
            shelf.text(&json!({"pointer": "/rows/4321"})),
            Ok(r#"{"id":4321,"name":"row 4321"}"#.to_owned())
        );
        let page = shelf
            .text(&json!({"pointer": "/rows", "items": {"first": 10, "count": 3}}))
            .expect("there");
        let page: Value = serde_json::from_str(&format!("[{page}]")).expect("whole elements");
        assert_eq!(page, json!(rows[10..13]));
        assert_eq!(shelf.pages(0, u64::MAX), text.as_bytes());
    });
}

/// Text out of an envelope is reached through the string that holds it.
#[test]
fn fault_50_text_inside_an_envelope_is_reached() {
    let inner = "line\n".repeat(2_000);
    let envelope = json!({"content": [{"type": "text", "text": inner}]}).to_string();
    stored(envelope, |shelf| {
        let answer = shelf
            .arguments(&json!({"pointer": "/content/0/text"}))
            .expect("there");
        assert!(answer.text().starts_with("\"line\\nline"));
        let mut joined = answer.bytes().to_vec();
        let mut next = answer.next_offset;
        while let Some(offset) = next {
            let page = shelf
                .arguments(&json!({"pointer": "/content/0/text", "offset": offset}))
                .expect("inside");
            joined.extend_from_slice(page.bytes());
            next = page.next_offset;
        }
        assert_eq!(
            serde_json::from_slice::<String>(&joined).expect("a JSON string"),
            inner
        );
        let outside = shelf.arguments(&json!({"pointer": "/content/0/type", "offset": 9_000}));
        assert!(matches!(outside, Err(AskError::OutsideValue { .. })));
    });
}

#[test]
fn what_is_not_json_says_where_it_ends_being_so() {
    for (text, line, column) in [
        ("plain", 1, 1),
        ("{\"a\":1,\n\"b\"}", 2, 4),
        ("", 1, 0),
        ("[1] 2", 1, 5),
    ] {
        stored(text.to_owned(), |shelf| {
            assert_eq!(
                shelf.text(&json!({"pointer": ""})),
                Err(AskError::NotJson { line, column }),
                "{text}"
            );
        });
    }
    stored(vec![b'"', 0xff, b'"'], |shelf| {
        assert!(matches!(
            shelf.text(&json!({"pointer": ""})),
            Err(AskError::NotJson { .. })
        ));
    });
}

#[test]
fn no_depth_overflows_the_stack() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    stored(deep, |shelf| {
        assert!(shelf.text(&json!({"pointer": "/0/0/0"})).is_ok());
    });
}
