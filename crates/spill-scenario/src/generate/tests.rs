use std::collections::BTreeSet;

use regex::Regex;
use spill_record::FactPlace;

use super::*;
use crate::input::diff_carrier;

/// The reading rules of the simulated model, written a second time as an independent check.
const REVIEW_RULES: &[(&str, &str)] = &[
    (
        "unwrap-on-input",
        r"let\s+(?:mut\s+)?(\w+)\s*=.*\.parse::<\w+>\(\)\.unwrap\(\)",
    ),
    ("swallowed-error", r"let _(\w+) = .*\.ok\(\);"),
    ("off-by-one", r"while (\w+) <= \w+\.len\(\)"),
    (
        "sql-from-input",
        r#"(\w+)\s*=\s*f"(?:SELECT|DELETE|UPDATE|INSERT) [^"]*\{"#,
    ),
    (
        "shell-injection",
        r"(\w+)\s*=\s*subprocess\.\w+\(.*shell=True",
    ),
    (
        "hard-coded-secret",
        r#"(\w+)\s*=\s*"(?:key|tok)_[a-z0-9]{12,}""#,
    ),
    ("weak-hash", r"(\w+)\s*=\s*hashlib\.md5\("),
    (
        "tls-verify-off",
        r"(\w+)\s*=\s*requests\.\w+\(.*verify=False",
    ),
    ("todo-left", r"(?:TODO|FIXME)[:( ]+(\w+)"),
];

fn built(name: &str) -> Generated {
    let seed = match name {
        "review-small" => SMALL_SEED,
        "review-medium" => 12,
        "review-large" => 13,
        _ => 14,
    };
    generate(name, seed).expect("a known generator")
}

fn findings_of(path: &str, lines: impl Iterator<Item = String>) -> BTreeSet<String> {
    let rules: Vec<(&str, Regex)> = REVIEW_RULES
        .iter()
        .map(|(rule, pattern)| (*rule, Regex::new(pattern).expect("a valid rule")))
        .collect();
    let mut findings = BTreeSet::new();
    for line in lines {
        let hits: Vec<_> = rules
            .iter()
            .filter_map(|(rule, regex)| {
                regex
                    .captures(&line)
                    .map(|hit| format!("{path}: {rule}: {}", &hit[1]))
            })
            .collect();
        assert!(hits.len() < 2, "two rules match {line:?}");
        findings.extend(hits);
    }
    findings
}

fn in_diff(file: &ChangedFile) -> BTreeSet<String> {
    let lines = file.diff.lines().filter(|line| !line.starts_with('-'));
    findings_of(
        &file.path,
        lines.map(|line| line.trim_start_matches(['+', ' ']).to_owned()),
    )
}

fn in_content(file: &ChangedFile) -> BTreeSet<String> {
    findings_of(&file.path, file.content.lines().map(str::to_owned))
}

fn check_review(name: &str) {
    let generated = built(name);
    let mut found = BTreeSet::new();
    for file in &generated.data.files {
        let (diff, content) = (in_diff(file), in_content(file));
        for fact in &generated.facts {
            if fact.carrier == diff_carrier(&file.path) {
                assert!(
                    diff.contains(&fact.expect),
                    "{} is not in the diff",
                    fact.expect
                );
                assert_eq!(fact.carrier_bytes, served_bytes(&file.diff));
            } else if fact.carrier == file.path {
                assert!(
                    !diff.contains(&fact.expect),
                    "{} is in the diff too",
                    fact.expect
                );
                assert_eq!(fact.carrier_bytes, served_bytes(&file.content));
            }
        }
        found.extend(diff);
        found.extend(content);
    }
    let declared: BTreeSet<String> = generated
        .facts
        .iter()
        .map(|fact| fact.expect.clone())
        .collect();
    assert_eq!(
        declared.len(),
        generated.facts.len(),
        "a fact is declared twice"
    );
    assert_eq!(found, declared);
    check_facts(name, &generated);
    check_near_facts_are_near(&generated);
    for in_file in [false, true] {
        for place in [FactPlace::Beginning, FactPlace::Middle, FactPlace::End] {
            if in_file && name == "review-small" && place != FactPlace::End {
                continue;
            }
            assert!(
                generated.facts.iter().any(|fact| fact.place == Some(place)
                    && fact.carrier.starts_with("diff of ") != in_file),
                "{name} has no fact at the {place:?} of a {}",
                if in_file { "file" } else { "diff" },
            );
        }
    }
}

/// No expectation is part of another one: finding one cannot count as finding both.
fn check_facts(name: &str, generated: &Generated) {
    for (index, fact) in generated.facts.iter().enumerate() {
        for (other_index, other) in generated.facts.iter().enumerate() {
            assert!(
                index == other_index || !other.expect.contains(&fact.expect),
                "{name}: {:?} is part of {:?}",
                fact.expect,
                other.expect,
            );
        }
    }
}

/// A fact that only a file carries is within 4 KiB of a changed line.
fn check_near_facts_are_near(generated: &Generated) {
    for fact in &generated.facts {
        let Some(file) = generated
            .data
            .files
            .iter()
            .find(|file| file.path == fact.carrier)
        else {
            continue;
        };
        let name = fact.expect.rsplit(' ').next().expect("a name");
        let at = file.content.find(name).expect("the planted name");
        let near = file
            .diff
            .lines()
            .filter_map(|line| line.strip_prefix('+'))
            .any(|line| {
                line.len() > 8
                    && file
                        .content
                        .match_indices(line)
                        .any(|(found, _)| found.abs_diff(at) < 4096)
            });
        assert!(near, "{} is far from every change", fact.expect);
    }
}

#[test]
fn planted_defects_are_exactly_what_the_rules_find_in_the_small_change() {
    check_review("review-small");
}

#[test]
fn planted_defects_are_exactly_what_the_rules_find_in_the_medium_change() {
    check_review("review-medium");
}

#[test]
fn planted_defects_are_exactly_what_the_rules_find_in_the_large_change() {
    check_review("review-large");
}

#[test]
fn headings_and_key_sentences_are_exactly_the_document_facts() {
    let generated = built("handbook");
    let heading = Regex::new(r"^#{1,2} (.+)$").expect("a valid rule");
    let key = Regex::new(r"\b(?:must|shall|decided|deadline is|limit is)\b").expect("a valid rule");
    let sentence = Regex::new(r"[^.!?]+(?:[.!?]|$)").expect("a valid rule");
    let mut found = Vec::new();
    for line in generated.data.documents[0].text.lines() {
        if let Some(hit) = heading.captures(line) {
            found.push(format!("section: {}", hit[1].trim()));
        }
        for sentence in sentence
            .find_iter(line)
            .filter(|hit| key.is_match(hit.as_str()))
        {
            let folded = sentence
                .as_str()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            assert!(folded.len() <= 160, "{folded:?} would be cut");
            found.push(format!("key: {folded}"));
        }
    }
    let declared: Vec<String> = generated
        .facts
        .iter()
        .map(|fact| fact.expect.clone())
        .collect();
    assert_eq!(found, declared);
    check_facts("handbook", &generated);
    for place in [FactPlace::Beginning, FactPlace::Middle, FactPlace::End] {
        for kind in ["section: ", "key: "] {
            assert!(
                generated
                    .facts
                    .iter()
                    .any(|fact| fact.place == Some(place) && fact.expect.starts_with(kind))
            );
        }
    }
}

/// Served bytes, and bytes of the JSON serialisation, of every result with a name.
fn sizes(generated: &Generated) -> Vec<(String, u64, u64)> {
    let files = generated.data.files.iter().flat_map(|file| {
        [
            (diff_carrier(&file.path), &file.diff),
            (file.path.clone(), &file.content),
        ]
    });
    let documents = generated
        .data
        .documents
        .iter()
        .map(|doc| (doc.name.clone(), &doc.text));
    files
        .chain(documents)
        .map(|(name, text)| {
            let served = weave(text, 1);
            let json = serde_json::to_string(&served).expect("text serialises");
            (name, served.len() as u64, json.len() as u64)
        })
        .collect()
}

#[test]
fn results_keep_to_their_classes() {
    const SMALL: u64 = 32 * 1024;
    const MEDIUM: u64 = 128 * 1024;
    const LARGE: u64 = 400 * 1024;
    let within = |sizes: &[(String, u64, u64)], low: u64, high: u64| {
        sizes
            .iter()
            .filter(|(_, served, json)| *served >= low && *json < high)
            .count()
    };
    let small = sizes(&built("review-small"));
    assert_eq!(within(&small, 0, SMALL), small.len(), "{small:?}");
    let medium = sizes(&built("review-medium"));
    assert_eq!(within(&medium, 0, MEDIUM), medium.len(), "{medium:?}");
    assert_eq!(within(&medium, SMALL, MEDIUM), 6, "{medium:?}");
    let large = sizes(&built("review-large"));
    assert_eq!(within(&large, 0, LARGE), large.len(), "{large:?}");
    assert_eq!(within(&large, MEDIUM, LARGE), 4, "{large:?}");
    let total: u64 = large.iter().map(|(_, served, _)| served).sum();
    assert!(total < 900_000, "{total} bytes in all");
    let document = sizes(&built("handbook"));
    assert_eq!(within(&document, SMALL, MEDIUM), 1, "{document:?}");
    assert!(
        document[0].1.abs_diff(100 * 1024) < 4 * 1024,
        "{document:?}"
    );
}

#[test]
fn the_tables_counts_hold() {
    let count = |name: &str| {
        let generated = built(name);
        let in_diffs = generated
            .facts
            .iter()
            .filter(|fact| fact.carrier.starts_with("diff of "))
            .count();
        (generated.facts.len(), in_diffs)
    };
    assert_eq!(count("review-small"), (9, 7));
    assert_eq!(count("review-medium"), (29, 16));
    assert_eq!(count("review-large"), (19, 12));
    assert_eq!(count("handbook"), (53, 0));
}

#[test]
fn a_seed_gives_one_input_and_another_seed_another() {
    let text = |seed| {
        generate("review-small", seed)
            .expect("a known generator")
            .data
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
    assert!(generate("review-huge", 1).is_none());
    for name in GENERATORS {
        assert!(generate(name, 1).is_some());
    }
}
