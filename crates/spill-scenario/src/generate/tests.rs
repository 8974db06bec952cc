use std::collections::BTreeSet;

use regex::Regex;
use spill_record::{Class, FactPlace, FactsOrigin};

use super::*;
use crate::input::{Input, diff_carrier};
use crate::served::ServedInput;

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

/// Known fault 123: vllm-project/vllm #21104 and #10847.
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
    assert_eq!(count("records"), (19, 0));
}

#[test]
fn records_have_the_sizes_and_forms_that_the_table_says() {
    let generated = built("records");
    let tables = &generated.data.tables;
    let shown: Vec<_> = tables
        .iter()
        .map(|table| (&*table.name, table.format, table.text.len()))
        .collect();
    assert_eq!(shown[0], ("orders", TableFormat::Rows, 256_000));
    assert_eq!((shown[1].0, shown[1].1), ("payments.log", TableFormat::Log));
    assert!(shown[1].2.abs_diff(96 * KIB) < 100, "{shown:?}");
    assert_eq!(
        (shown[2].0, shown[2].1),
        ("shipments.csv", TableFormat::Csv)
    );
    assert!(shown[2].2.abs_diff(64 * KIB) < 100, "{shown:?}");

    // What is served keeps its form: JSON of one line, as many columns in each row of the export.
    let input = Input {
        name: "records".to_owned(),
        class: Class::Large,
        data: generated.data.clone(),
        facts: generated.facts.clone(),
        facts_origin: FactsOrigin::Scenario,
        notes: Vec::new(),
    };
    let served = ServedInput::new(&input, 3);
    let orders = served.table(TableFormat::Rows, "orders").expect("served");
    let rows: Vec<serde_json::Value> = serde_json::from_str(orders).expect("JSON");
    assert_eq!(rows.len(), 1_500);
    assert_eq!(serde_json::to_string(&rows).expect("JSON"), **orders);
    assert!(!orders.contains('\n'));
    let shipments = served
        .table(TableFormat::Csv, "shipments.csv")
        .expect("served");
    assert!(shipments.lines().all(|line| line.split(',').count() == 8));
    let log = served
        .table(TableFormat::Log, "payments.log")
        .expect("served");
    for (table, text) in tables.iter().zip([orders, log, shipments]) {
        assert_eq!(served_table_bytes(table), text.len() as u64);
        let header = u64::from(table.format == TableFormat::Csv);
        if table.format != TableFormat::Rows {
            let lines = crate::strip_canaries(text).lines().count() as u64;
            assert_eq!(lines, table.rows + header);
        }
        // A canary stands in every stretch of two KiB.
        for stretch in text.as_bytes().chunks(2048) {
            let stretch = String::from_utf8_lossy(stretch);
            let has_canary = stretch.match_indices("sgc").count() > 0;
            assert!(has_canary || stretch.len() < 1024, "{}", table.name);
        }
    }
    assert_eq!(served.table(TableFormat::Csv, "orders"), None);
}

#[test]
fn facts_of_records_stand_in_their_tables_and_at_all_places() {
    let generated = built("records");
    for fact in &generated.facts {
        let Some(table) = generated
            .data
            .tables
            .iter()
            .find(|table| table.name == fact.carrier)
        else {
            assert_eq!(fact.carrier, LIST_OF_TABLES);
            continue;
        };
        assert_eq!(fact.carrier_bytes, served_table_bytes(table));
        assert!(fact.expect.starts_with(&format!("{}: ", table.name)));
    }
    let at = |place| {
        let of = generated
            .facts
            .iter()
            .filter(|fact| fact.place == Some(place));
        of.count()
    };
    assert_eq!(
        (
            at(FactPlace::Beginning),
            at(FactPlace::Middle),
            at(FactPlace::End)
        ),
        (6, 7, 3)
    );
    // One of each in the rows and lines: nothing else looks like it.
    let text = |name: &str| {
        let found = generated
            .data
            .tables
            .iter()
            .find(|table| table.name == name);
        found.expect("there").text.as_str()
    };
    assert_eq!(text("orders").matches("disputed").count(), 1);
    assert_eq!(text("orders").matches("audit").count(), 3);
    assert_eq!(text("shipments.csv").matches("lost").count(), 2);
    assert_eq!(text("shipments.csv").matches("audit").count(), 1);
    assert_eq!(text("payments.log").matches(" ERROR ").count(), 5);
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
