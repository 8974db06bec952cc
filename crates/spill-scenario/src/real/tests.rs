use std::fs;

use spill_record::FactPlace;
use tempfile::TempDir;

use super::*;
use crate::defaults::MAX_DOCUMENT_BYTES;

fn document(text: &str) -> Scenario {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("notes (draft).md");
    fs::write(&path, text).expect("a file");
    from_document(&path, None).expect("a document")
}

#[test]
fn a_document_takes_everything_else_from_the_built_in_scenario() {
    let scenario = document("# The title \n\nText.\n");
    assert_eq!(scenario.name, "document");
    assert_eq!(scenario.configurations.len(), 3);
    let input = &scenario.inputs[0];
    assert_eq!(input.name, "notes--draft-.md");
    assert_eq!(input.class, Class::Document);
    assert_eq!(input.facts_origin, FactsOrigin::Derived);
    assert_eq!(input.data.documents[0].title, "The title");
    assert_eq!(input.data.documents[0].name, "notes (draft).md");
}

#[test]
fn a_class_can_be_given() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("a.txt");
    fs::write(&path, "text").expect("a file");
    let real = from_document(&path, Some(Class::Large)).expect("a document");
    assert_eq!(real.inputs[0].class, Class::Large);
}

#[test]
fn document_errors_name_place_fact_and_way_out() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(name), bytes).expect("a file");
        name.to_owned()
    };
    let large = fs::File::create(folder.path().join("large.txt")).expect("a file");
    large
        .set_len(MAX_DOCUMENT_BYTES + 1)
        .expect("a sparse file");
    let names = [
        "missing.md".to_owned(),
        String::new(),
        file("empty.md", b""),
        file("blank.md", b" \n\n"),
        file("latin1.md", b"one\ntwo \xe9\n"),
        file("binary.md", b"one\ntw\0o\n"),
        "large.txt".to_owned(),
    ];
    let lines: Vec<String> = names
        .iter()
        .map(|name| {
            let error = from_document(&folder.path().join(name), None).expect_err("an error");
            error
                .to_string()
                .replace(&folder.path().display().to_string(), "DIR")
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn expected_texts_become_facts_where_they_stand() {
    let filler = "filler text\n".repeat(100);
    let scenario = document(&format!(
        "{filler}the needle\n{filler}{filler}the last word\n"
    ));
    let texts = ["the needle", "the last word", "not in there"].map(str::to_owned);
    let input = &scenario.with_expected(&texts).expect("texts").inputs[0];
    assert_eq!(input.facts_origin, FactsOrigin::Expected);
    let places: Vec<_> = input.facts.iter().map(|fact| fact.place).collect();
    assert_eq!(
        places,
        [Some(FactPlace::Middle), Some(FactPlace::End), None]
    );
    assert!(
        input
            .facts
            .iter()
            .all(|fact| fact.carrier == "notes (draft).md")
    );
    assert!(input.facts.iter().all(|fact| fact.carrier_bytes > 3600));
}

#[test]
fn an_expected_finding_is_carried_by_the_file_that_it_names() {
    let mut scenarios = crate::built_in().expect("the built-in scenarios load");
    let path = scenarios[0].inputs[0].data.files[1].path.clone();
    let texts = [format!("{path}: some-rule: some_name")];
    let review = scenarios.remove(0).with_expected(&texts).expect("texts");
    assert_eq!(review.inputs[0].facts[0].carrier, path);
    assert_eq!(review.inputs[0].facts[0].place, None);
}

#[test]
fn expected_texts_that_say_nothing_are_errors() {
    let error = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        document("text")
            .with_expected(&texts)
            .expect_err("an error")
            .to_string()
    };
    let lines = [error(&[]), error(&["a", " "]), error(&["a", "b", "a"])];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn names_are_made_safe() {
    assert_eq!(safe_name("HEAD~2..HEAD", "range"), "HEAD-2..HEAD");
    assert_eq!(safe_name("..", "range"), "range");
    assert_eq!(safe_name("größe.md", "document"), "gr--e.md");
    assert_eq!(safe_name(&"x".repeat(100), "document").len(), 64);
}
