//! Scores an answer against the facts of its input.

use spill_record::FactPlace;
use spill_scenario::Fact;

/// Facts carried by a result of at least this many bytes are counted apart.
const LARGE_CARRIER_BYTES: u64 = 131_072;

/// How an answer covers the facts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) expected: u64,
    pub(crate) found: u64,
    pub(crate) end_expected: u64,
    pub(crate) end_found: u64,
    pub(crate) large_expected: u64,
    pub(crate) large_found: u64,
    pub(crate) missed: Vec<String>,
    pub(crate) unfounded: u64,
}

/// Counts the facts that stand in `answer`, and its findings (lines that start with `- `) that
/// no fact covers.
pub(crate) fn score(answer: &str, facts: &[Fact]) -> Score {
    let mut score = Score {
        expected: 0,
        found: 0,
        end_expected: 0,
        end_found: 0,
        large_expected: 0,
        large_found: 0,
        missed: Vec::new(),
        unfounded: 0,
    };
    for fact in facts {
        let found = u64::from(answer.contains(&fact.expect));
        score.expected += 1;
        score.found += found;
        if fact.place == Some(FactPlace::End) {
            score.end_expected += 1;
            score.end_found += found;
        }
        if fact.carrier_bytes >= LARGE_CARRIER_BYTES {
            score.large_expected += 1;
            score.large_found += found;
        }
        if found == 0 {
            score.missed.push(fact.id.clone());
        }
    }
    score.missed.sort();
    let unfounded = answer
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .filter(|finding| !facts.iter().any(|fact| finding.contains(&fact.expect)))
        .count();
    score.unfounded = u64::try_from(unfounded).unwrap_or(u64::MAX);
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(id: &str, expect: &str, bytes: u64, place: FactPlace) -> Fact {
        Fact {
            id: id.to_owned(),
            expect: expect.to_owned(),
            carrier: "a.rs".to_owned(),
            carrier_bytes: bytes,
            place: Some(place),
        }
    }

    fn facts() -> [Fact; 3] {
        [
            fact("b", "a.rs: off-by-one: row", 131_072, FactPlace::Middle),
            fact("a", "a.rs: weak-hash: sum", 131_071, FactPlace::End),
            fact("c", "b.rs: todo-left: later", 10, FactPlace::End),
        ]
    }

    #[test]
    fn facts_are_found_by_containment_and_findings_without_a_fact_are_unfounded() {
        let answer =
            "Findings:\n- a.rs: off-by-one: row\n- b.rs: todo-left: later!\n- c.rs: guess\n";
        let want = Score {
            expected: 3,
            found: 2,
            end_expected: 2,
            end_found: 1,
            large_expected: 1,
            large_found: 1,
            missed: vec!["a".to_owned()],
            unfounded: 1,
        };
        assert_eq!(score(answer, &facts()), want);
    }

    #[test]
    fn an_empty_answer_misses_everything() {
        let score = score("", &facts());
        assert_eq!(
            (score.found, score.missed.len(), score.unfounded),
            (0, 3, 0)
        );
    }
}
