use spill_engine::{CallId, Reference, StepId};

use super::step_id;

#[track_caller]
fn check_malformed(texts: &[&str]) {
    for text in texts {
        assert!(text.parse::<Reference>().is_err(), "{text:?}");
    }
}

#[test]
fn a_reference_is_written_and_read_the_same_way() {
    let longest = "s".repeat(128);
    for (step, iteration, index) in [
        ("a", 0, 0),
        ("review-step_2", 1, 10),
        (longest.as_str(), u32::MAX, u32::MAX),
    ] {
        let reference = Reference {
            step: step_id(step),
            call: CallId { iteration, index },
        };
        let written = reference.to_string();
        assert_eq!(
            written,
            format!("spillover://{step}/i{iteration}c{index}.json")
        );
        assert_eq!(written.parse(), Ok(reference));
    }
}

#[test]
fn every_other_spelling_is_malformed() {
    check_malformed(&[
        "",
        " ",
        "spillover://",
        "spillover:///",
        "spillover:///i1c0.json",
        "spillover://step",
        "i1c0",
    ]);
    check_malformed(&[
        "spillover://step/i1c0",
        "spillover://step/i1c0.JSON",
        "spillover://step/i1c0.json.json",
    ]);
    check_malformed(&[
        "SPILLOVER://step/i1c0.json",
        "spillover:/step/i1c0.json",
        "file://step/i1c0.json",
    ]);
    check_malformed(&[
        "spillover://step/sub/i1c0.json",
        "spillover://step//i1c0.json",
        "spillover://../i1c0.json",
    ]);
    check_malformed(&[
        "spillover://step/../step/i1c0.json",
        "spillover://step/./i1c0.json",
        "spillover://./i1c0.json",
    ]);
    check_malformed(&[
        "spillover://step/i1c0.json?x",
        "spillover://step/i1c0.json#x",
        "spillover://step/i1c0.json ",
    ]);
    check_malformed(&[
        " spillover://step/i1c0.json",
        "spillover://st%65p/i1c0.json",
        "spillover://stép/i1c0.json",
    ]);
    check_malformed(&[
        "spillover://step/i01c0.json",
        "spillover://step/i1c00.json",
        "spillover://step/i+1c0.json",
    ]);
    check_malformed(&[
        "spillover://step/i-1c0.json",
        "spillover://step/ic0.json",
        "spillover://step/i1c.json",
    ]);
    check_malformed(&[
        "spillover://step/I1c0.json",
        "spillover://step/i1C0.json",
        "spillover://step/c0i1.json",
    ]);
    check_malformed(&[
        "spillover://step/i4294967296c0.json",
        "spillover://step/i1c0x.json",
        "spillover://step/i1c0\n.json",
    ]);
}

#[test]
fn step_ids_at_their_bounds() {
    for id in ["a", "A-z_0", &"x".repeat(128)] {
        assert_eq!(StepId::new(id).expect("a step id").as_str(), id);
    }
    for id in ["", " ", "a b", "a/b", "a.b", "é", "a\n", &"x".repeat(129)] {
        assert!(StepId::new(id).is_err(), "{id:?}");
    }
    let error = StepId::new(&"x/".repeat(32_768)).expect_err("64 KiB with slashes");
    assert!(error.to_string().len() < 400, "{error}");
    insta::assert_snapshot!(StepId::new("review step").expect_err("a blank"));
}
