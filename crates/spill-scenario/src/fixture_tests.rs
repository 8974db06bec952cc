//! The checked-in small input is what the generator makes. After a deliberate change of the
//! generator, `UPDATE_FIXTURES=1 cargo test -p spill-scenario fixture` writes it anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use spill_record::FactPlace;

use crate::generate::{Generated, SMALL_SEED, generate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/review-small")
}

fn files_of(generated: &Generated) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (path, text) in &generated.before {
        files.insert(format!("before/{path}"), text.clone());
    }
    for file in &generated.data.files {
        files.insert(format!("after/{}", file.path), file.content.clone());
    }
    let mut facts = String::from(
        "# The defects planted in after/, as the reading rules name them. `carrier` is what shows\n\
         # them: a file, or the diff of a file; `place` is where they stand in it.\n",
    );
    for fact in &generated.facts {
        let place = match fact.place.expect("planted facts have a place") {
            FactPlace::Beginning => "beginning",
            FactPlace::Middle => "middle",
            FactPlace::End => "end",
        };
        write!(
            facts,
            "\n[[facts]]\nid = {:?}\nexpect = {:?}\ncarrier = {:?}\nplace = {place:?}\n",
            fact.id, fact.expect, fact.carrier
        )
        .expect("writing to a string works");
    }
    files.insert("facts.toml".to_owned(), facts);
    files
}

fn files_below(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("the fixture is there") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files_below(root, &path, found);
        } else {
            let name = path.strip_prefix(root).expect("it is below the root");
            found.push(name.to_str().expect("a plain name").to_owned());
        }
    }
}

#[test]
fn the_fixture_is_what_the_generator_makes() {
    let generated = generate("review-small", SMALL_SEED).expect("a known generator");
    let expected = files_of(&generated);
    let folder = folder();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        for (name, text) in &expected {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("it has a parent")).expect("a new folder");
            fs::write(path, text).expect("a new file");
        }
    }
    let mut found = Vec::new();
    files_below(&folder, &folder, &mut found);
    found.sort();
    assert_eq!(found, expected.keys().cloned().collect::<Vec<_>>());
    for (name, text) in &expected {
        let checked_in = fs::read_to_string(folder.join(name)).expect("a readable file");
        assert!(
            checked_in == *text,
            "{name} is not what the generator makes"
        );
    }
}

#[test]
fn the_fixture_loads_as_the_input_that_was_generated() {
    let generated = generate("review-small", SMALL_SEED).expect("a known generator");
    let scenarios = crate::built_in().expect("the built-in scenarios load");
    let small = &scenarios[0].inputs[0];
    assert_eq!(small.name, "small");
    assert_eq!(small.data, generated.data);
    assert_eq!(small.facts, generated.facts);
}
