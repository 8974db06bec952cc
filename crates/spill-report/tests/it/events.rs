use spill_report::{EVENT_SCHEMA, Event, Pace, standings};
use spill_verdict::{State, judge};

use crate::builder::{Case, exhaust};

fn pace() -> Pace {
    Pace {
        done: 1,
        planned: 60,
        not_succeeded: 0,
        runs_per_second: Some(2.5),
        eta_ms: Some(23_600),
    }
}

#[test]
fn the_rules_as_they_stand() {
    let words = |case: Case| -> String {
        let all = standings(&spill_verdict::standing(&case.set));
        let lines: Vec<String> = all.iter().map(spill_report::Standing::words).collect();
        lines.join("\n")
    };
    let early = Case::full().without(|r| r.repetition > 0);
    let broken = Case::full()
        .cell("128KiB", "large", exhaust)
        .without(|r| r.input == "document" && r.repetition > 2);
    let all = [words(early), words(broken), words(Case::full())];
    insta::assert_snapshot!("standings", all.join("\n\n"));
}

#[test]
fn counts_add_up_to_the_rows_that_apply() {
    let case = Case::full().without(|r| r.input == "large" && r.repetition > 1);
    let verdict = judge(&case.set);
    for (standing, candidate) in standings(&verdict.candidates)
        .iter()
        .zip(&verdict.candidates)
    {
        let applies = candidate
            .rules
            .iter()
            .filter(|row| row.state != State::NotApplicable);
        let counted = standing.holds + standing.broken + standing.not_proven + standing.open;
        assert_eq!(counted, applies.count() as u64);
        assert_eq!(standing.rules.len(), 5);
    }
}

#[test]
fn an_event_is_one_line_whatever_the_names_are() {
    let set = Case::full().set;
    for name in [
        "a\nb",
        "\u{1b}]0;x\u{7}",
        "\u{9b}31m\u{202e}\u{0}",
        "</script>\"'",
    ] {
        let mut run = set.runs[0].clone();
        run.input = name.to_owned();
        let line = Event::of_run(&run, pace()).line();
        let bad = line.chars().find(|c| c.is_control() || *c == '\u{202e}');
        assert_eq!(bad, None, "{line:?}");
        let read: serde_json::Value = serde_json::from_str(&line).expect("an event is JSON");
        assert_eq!(read["input"], name);
        assert_eq!(
            (&read["event"], &read["schema"]),
            (&"run".into(), &EVENT_SCHEMA.into())
        );
    }
}
