//! Pass by reference.

use serde_json::{Value, json};
use spill_engine::{
    ByteRange, CallId, ExpandError, Expanded, Expansion, ReadFailure, Settings, Slice, StepId,
    StepSpill, ToolResult,
};

const TEXT: &str = r#"{"rows":[{"id":1,"name":"é"},{"id":2}],"total":2}"#;

fn fetch(reference: &str, range: ByteRange) -> Result<Slice, ReadFailure> {
    step().stored_slice(reference, range)
}

/// Holds a padded [`TEXT`] as `spillover://step/i1c0.json`, and bytes that are long as `…c1`.
fn step() -> StepSpill {
    let step = StepSpill::new(
        Settings::DEFAULT,
        StepId::new("step").expect("an id"),
        StepSpill::unobserved(),
    );
    let padded = format!("{TEXT}{}", " ".repeat(200_000));
    for (index, text) in [(0, padded), (1, "é".repeat(100_000))] {
        step.admit(
            CallId {
                iteration: 1,
                index,
            },
            "tool",
            ToolResult::text(text),
        );
    }
    step
}

fn expand(arguments: Value, most: u64) -> Result<Expanded, ExpandError> {
    Expansion::allowing(["write"], most).expand("write", arguments, &fetch)
}

const REFERENCE: &str = "spillover://step/i1c0.json";

#[track_caller]
fn check(spill: Value, expected: Value, bytes: u64) {
    let expanded = expand(json!({"a": [spill]}), 1_000).expect("it fits");
    assert_eq!(
        expanded,
        Expanded {
            arguments: json!({"a": [expected]}),
            references: 1,
            bytes
        }
    );
}

#[test]
fn references_become_data() {
    let range = |offset: u64, length: u64| json!({"offset": offset, "length": length});
    check(
        json!({"$spill": REFERENCE, "range": range(0, 7)}),
        json!("{\"rows\""),
        7,
    );
    check(
        json!({"$spill": REFERENCE, "pointer": "/rows"}),
        json!([{"id": 1, "name": "é"}, {"id": 2}]),
        31,
    );
    check(
        json!({"$spill": REFERENCE, "pointer": "/total"}),
        json!(2),
        1,
    );
    check(
        json!({"$spill": REFERENCE, "pointer": "/rows/1", "range": range(1, 4)}),
        json!("\"id\""),
        4,
    );
    check(
        json!({"$spill": "spillover://step/i1c1.json", "range": range(1, 4)}),
        json!("é"),
        4,
    );
}

#[test]
fn a_text_comes_whole_or_not_at_all() {
    let all = json!({"$spill": REFERENCE});
    let size = TEXT.len() as u64 + 200_000;
    assert_eq!(
        expand(all.clone(), size - 1),
        Err(ExpandError::TooLarge { most: size - 1 })
    );
    let expanded = expand(all.clone(), size).expect("it fits exactly");
    assert!(
        expanded
            .arguments
            .as_str()
            .expect("a text")
            .starts_with(TEXT)
    );
    assert_eq!(
        expand(json!([all, all]), size + 9),
        Err(ExpandError::TooLarge { most: size + 9 }),
        "the call as a whole"
    );
}

#[test]
fn off_is_off() {
    let arguments = json!({"a": {"$spill": REFERENCE, "x": [{"$spill": 5}]}});
    let never = |_: &str, _: ByteRange| panic!("nothing is read");
    let untouched = Expansion::off()
        .expand("write", arguments.clone(), &never)
        .expect("untouched");
    assert_eq!(
        (untouched.arguments, untouched.references),
        (arguments.clone(), 0)
    );
    let refused = Expansion::allowing(["write", "append"], 9).expand("other", arguments, &never);
    assert_eq!(
        refused,
        Err(ExpandError::NotAllowed {
            allowed: "append, write".to_owned()
        })
    );
    let plain = json!({"a": [1, null, "$spill"]});
    let passed = Expansion::allowing(["write"], 9).expand("other", plain.clone(), &never);
    assert_eq!(passed.expect("nothing to expand").arguments, plain);
}

#[test]
fn what_cannot_be_had_is_refused() {
    assert_eq!(
        expand(json!({"$spill": "../../etc/passwd"}), 9),
        Err(ReadFailure::NotFound.into())
    );
    assert_eq!(
        expand(json!({"$spill": "spillover://other/i1c0.json"}), 9),
        Err(ReadFailure::NotFound.into())
    );
    let behind = expand(
        json!({"$spill": REFERENCE, "range": {"offset": u64::MAX}}),
        9,
    );
    assert!(matches!(
        behind,
        Err(ExpandError::Read(ReadFailure::OutOfRange { .. }))
    ));
    for bad in [
        json!({"$spill": 5}),
        json!({"$spill": REFERENCE, "path": "x"}),
        json!({"$spill": REFERENCE, "range": 5}),
        json!({"$spill": REFERENCE, "range": {"offset": -1}}),
        json!({"$spill": REFERENCE, "range": {"from": 1}}),
        json!({"$spill": REFERENCE, "pointer": 5}),
    ] {
        assert!(
            matches!(expand(bad.clone(), 9), Err(ExpandError::Form { .. })),
            "{bad}"
        );
    }
    let nowhere = expand(json!({"$spill": REFERENCE, "pointer": "/nowhere"}), 9);
    assert!(matches!(nowhere, Err(ExpandError::Pointer(_))));
    let many = vec![json!({"$spill": REFERENCE, "range": {"length": 0}}); 17];
    assert_eq!(expand(json!(many), 9), Err(ExpandError::TooMany));
    let deep = (0..200).fold(json!({"$spill": REFERENCE}), |inner, _| json!([inner]));
    assert_eq!(expand(deep, 9), Err(ExpandError::TooDeep));
}

/// What was put in is not expanded again.
#[test]
fn stored_data_is_data() {
    let step = StepSpill::new(
        Settings::DEFAULT,
        StepId::new("step").expect("an id"),
        StepSpill::unobserved(),
    );
    let inner = json!({"v": {"$spill": REFERENCE}, "pad": "x".repeat(200_000)}).to_string();
    step.admit(
        CallId {
            iteration: 1,
            index: 0,
        },
        "tool",
        ToolResult::text(inner),
    );
    let fetch = |reference: &str, range: ByteRange| step.stored_slice(reference, range);
    let expanded = Expansion::allowing(["write"], 1_000)
        .expand(
            "write",
            json!({"$spill": REFERENCE, "pointer": "/v"}),
            &fetch,
        )
        .expect("it fits");
    assert_eq!(expanded.arguments, json!({"$spill": REFERENCE}));
    assert_eq!(step.usage().reads, 0);
    step.release();
    assert_eq!(
        step.stored_slice(REFERENCE, ByteRange::ALL),
        Err(ReadFailure::NotFound)
    );
}
