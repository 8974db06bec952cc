use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use spill_engine::{Ask, Part};

use super::{Shelf, object, stored};

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "a",
        "\n",
        "\r\n",
        "é",
        "漢",
        "😀",
        "\0",
        "ab\n",
        "{\"a\":[1,2]}",
    ]);
    prop_oneof![
        vec((piece, 1..300_usize), 0..12).prop_map(|runs| {
            let text: String = runs
                .iter()
                .map(|(piece, times)| piece.repeat(*times))
                .collect();
            text.into_bytes()
        }),
        vec(any::<u8>(), 0..3_000),
        (vec(
            prop::sample::select(vec![b'a', 0xc3, 0xa9, 0xe6, 0xbc, 0xa2, 0xf0, 0xff, b'\n']),
            0..4_000
        )),
    ]
}

fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..5_000_u64,
        any::<u64>(),
        (0..3_u64).prop_map(|less| u64::MAX - less)
    ]
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        ".{0,30}".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            vec(("[a-c~/é\"]{0,3}", inner), 0..8)
                .prop_map(|pairs| pairs.into_iter().collect::<Value>()),
        ]
    })
}

/// Each value inside `value` with its pointer.
fn places(value: &Value, pointer: &str, out: &mut Vec<(String, Value)>) {
    out.push((pointer.to_owned(), value.clone()));
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                places(item, &format!("{pointer}/{place}"), out);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(item, &format!("{pointer}/{key}"), out);
            }
        }
        _ => {}
    }
}

fn model_lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// All of `arguments`' pages, going on by bytes inside the same part.
fn part_pages(shelf: &Shelf<'_>, arguments: &Value) -> Vec<u8> {
    let answer = shelf.arguments(arguments).expect("a good ask");
    let mut joined = answer.bytes().to_vec();
    let Some(next) = answer.next_offset else {
        return joined;
    };
    joined.extend_from_slice(&shelf.pages(next, u64::MAX));
    joined
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn pages_of_bytes_concatenate(bytes in contents(), length in 1..3_000_u64) {
        stored(bytes.clone(), |shelf| {
            assert_eq!(shelf.pages(0, length), bytes);
            assert_eq!(shelf.reading.counts().reread_bytes, 0);
        });
    }

    #[test]
    fn lines_are_those_of_the_model(bytes in contents(), first in 1..40_u64) {
        stored(bytes.clone(), |shelf| {
            let lines = model_lines(&bytes);
            let place = usize::try_from(first - 1).expect("few");
            if place < lines.len() {
                let start: usize = lines[..place].iter().map(|line| line.len()).sum();
                let joined = part_pages(shelf, &json!({"line": first}));
                assert_eq!(joined, &bytes[start..]);
                let back = lines.len() - place;
                let from_end = part_pages(shelf, &json!({"line": -i64::try_from(back).expect("few")}));
                assert_eq!(from_end, &bytes[start..]);
                let one = shelf.arguments(&json!({"line": first, "lines": 1})).expect("there");
                assert!(lines[place].starts_with(one.bytes()));
                assert_eq!(one.next_offset.is_none(), one.bytes() == lines[place]);
            }
        });
    }

    #[test]
    fn pages_of_hits_are_all_hits(bytes in contents(), literal in prop::sample::select(vec!["a", "\n", "aa", "é", "ab\na", "1,2"]), limit in prop::option::of(1..5_u64), context in 0..50_u64) {
        let model: Vec<u64> = memchr::memmem::find_iter(&bytes, literal.as_bytes()).map(|at| at as u64).collect();
        stored(bytes.clone(), |shelf| {
            for regex in [false, true] {
                let (mut found, mut next) = (Vec::new(), Some(0));
                while let Some(offset) = next {
                    let ask = json!({"search": literal, "regex": regex, "offset": offset, "context": context, "limit": limit});
                    let answer = shelf.arguments(&ask).expect("a good ask");
                    let Part::Hits(hits) = &answer.part else { panic!("hits") };
                    assert!(!hits.is_empty() || answer.next_offset.is_none());
                    found.extend(hits.iter().map(|hit| hit.offset));
                    next = answer.next_offset;
                }
                assert_eq!(found, model);
            }
        });
    }

    #[test]
    fn pointers_agree_with_a_parser(value in json_values(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.expect("JSON");
        let mut all = Vec::new();
        places(&value, "", &mut all);
        stored(text, |shelf| {
            for (pointer, expected) in all.iter().take(20) {
                let answer = shelf.arguments(&json!({"pointer": pointer})).expect("it is there");
                if answer.next_offset.is_none() {
                    assert_eq!(&serde_json::from_slice::<Value>(answer.bytes()).expect("a value"), expected);
                }
            }
        });
    }

    #[test]
    fn any_ask_is_answered_or_refused(bytes in contents(), a in numbers(), b in numbers(), line in any::<i64>(), text in any::<String>()) {
        stored(bytes, |shelf| {
            for arguments in [
                json!({"offset": a, "length": b}),
                json!({"line": line, "lines": b}),
                json!({"search": text, "offset": a, "context": b}),
                json!({"search": text, "regex": true, "offset": a}),
                json!({"pointer": text, "offset": a}),
                json!({"pointer": "", "items": {"first": a, "count": b}}),
            ] {
                if let Err(refusal) = shelf.arguments(&arguments) {
                    assert!(refusal.to_string().len() < 1_024, "{refusal}");
                }
            }
        });
    }

    #[test]
    fn any_arguments_are_read_or_refused(value in json_values(), key in prop::sample::select(vec!["offset", "length", "line", "lines", "search", "regex", "context", "limit", "pointer", "items", "x"])) {
        let _ = Ask::from_arguments(object(&json!({key: value})));
        let _ = Ask::from_arguments(object(&json!({"search": "a", key: value})));
        let _ = Ask::from_arguments(object(&json!({"pointer": "", key: value})));
    }
}
