use std::collections::HashMap;

use spill_scenario::{
    Fact, InputData, LIST_OF_TABLES, ModelSpec, Recipe, Table, TableFormat, diff_carrier,
    list_bytes, place_of, weave,
};

use crate::answer::bounded;
use crate::rules::{Cuts, Rules, TextKind};

/// One text of an input with how it is read.
struct Source<'a> {
    kind: TextKind,
    name: &'a str,
    text: &'a str,
}

/// Derives facts for an input that has no answer key: what the reading rules find when they are
/// given every text whole, bounded as the answer is.
///
/// So a model that sees everything finds all of them; they show what *not* seeing costs. A finding
/// that stands in a file and in its diff is carried by the file.
#[must_use]
pub fn derive_facts(input: &InputData, model: &ModelSpec) -> Vec<Fact> {
    let rules = Rules::new(model);
    let sources = sources(input);
    let mut order = Vec::new();
    let mut carriers: HashMap<String, (usize, usize)> = HashMap::new();
    order.extend(input.tables.iter().map(count));
    for (index, source) in sources.iter().enumerate() {
        for finding in rules.read(source.kind, source.name, source.text, Cuts::default()) {
            let at = (index, finding.at);
            match carriers.get_mut(&finding.text) {
                Some(known) if sources[known.0].kind == TextKind::Diff => {
                    if source.kind == TextKind::File {
                        *known = at;
                    }
                }
                Some(_) => {}
                None => {
                    carriers.insert(finding.text.clone(), at);
                    order.push(finding.text);
                }
            }
        }
    }
    let max = usize::try_from(model.max_findings).unwrap_or(usize::MAX);
    let kept = bounded(order, max);
    let facts = kept
        .into_iter()
        .enumerate()
        .map(|(number, expect)| match carriers.get(&expect) {
            Some((index, at)) => fact(number, expect, &sources[*index], *at),
            None => listed_fact(number, expect, input),
        });
    facts.collect()
}

/// What the list of tables says of one.
fn count(table: &Table) -> String {
    format!("{}: rows: {}", table.name, table.rows)
}

fn listed_fact(number: usize, expect: String, input: &InputData) -> Fact {
    Fact {
        id: format!("derived-{:03}", number + 1),
        expect,
        carrier: LIST_OF_TABLES.to_owned(),
        carrier_bytes: list_bytes(input),
        place: None,
    }
}

fn fact(number: usize, expect: String, source: &Source<'_>, at: usize) -> Fact {
    Fact {
        id: format!("derived-{:03}", number + 1),
        expect,
        carrier: match source.kind {
            TextKind::Diff => diff_carrier(source.name),
            TextKind::File
            | TextKind::Document
            | TextKind::Rows
            | TextKind::Csv
            | TextKind::Log
            | TextKind::Recorded => source.name.to_owned(),
        },
        carrier_bytes: match source.kind {
            // Canaries are planted in values that are there already, or not at all.
            TextKind::Rows | TextKind::Csv | TextKind::Recorded => source.text.len() as u64,
            TextKind::Diff | TextKind::File | TextKind::Document | TextKind::Log => {
                weave(source.text, 0).len() as u64
            }
        },
        place: Some(place_of(at, source.text.len())),
    }
}

/// The texts in the order in which an answer reads them.
fn sources(input: &InputData) -> Vec<Source<'_>> {
    match input.recipe {
        Recipe::Review => input
            .files
            .iter()
            .flat_map(|file| {
                let diff = (TextKind::Diff, &file.diff);
                let content = (TextKind::File, &file.content);
                [diff, content].map(|(kind, text)| Source {
                    kind,
                    name: &file.path,
                    text,
                })
            })
            .collect(),
        Recipe::Document => input
            .documents
            .iter()
            .map(|document| Source {
                kind: TextKind::Document,
                name: &document.name,
                text: &document.text,
            })
            .collect(),
        Recipe::Records => input
            .tables
            .iter()
            .map(|table| Source {
                kind: match table.format {
                    TableFormat::Rows => TextKind::Rows,
                    TableFormat::Csv => TextKind::Csv,
                    TableFormat::Log => TextKind::Log,
                },
                name: &table.name,
                text: &table.text,
            })
            .collect(),
        Recipe::Recorded => input
            .calls
            .iter()
            .map(|call| Source {
                kind: TextKind::Recorded,
                name: &call.id,
                text: &call.result,
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use spill_scenario::Profile;

    use super::*;
    use crate::model::{Action, respond};
    use crate::request::View;
    use crate::testing::{Agent, document, mock_run, records, review, spec};

    fn check_self_consistent(input: InputData, max_findings: u64, count: usize) {
        let model = ModelSpec {
            max_findings,
            ..spec()
        };
        let facts = derive_facts(&input, &model);
        assert_eq!(facts.len(), count);
        let run = mock_run(input, Profile::Hasty, model);
        let answer = Agent::new(&run, usize::MAX).run(|body| -> Action {
            respond(&View::parse(body.as_bytes()).expect("a request"), &run)
        });
        let lines: Vec<_> = answer.lines().collect();
        let expected: Vec<_> = facts
            .iter()
            .map(|fact| format!("- {}", fact.expect))
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_model_that_sees_everything_finds_exactly_the_derived_facts() {
        check_self_consistent(review(), 100, 3);
        check_self_consistent(review(), 2, 2);
        check_self_consistent(document(), 100, 6);
        check_self_consistent(document(), 4, 4);
        check_self_consistent(records(), 100, 18);
        check_self_consistent(records(), 4, 4);
    }

    #[test]
    fn the_facts_of_the_generated_records_are_what_the_rules_find() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let scenario = spill_scenario::load(&root.join("records.toml")).expect("a scenario");
        let input = &scenario.inputs[0];
        let shown = |facts: &[Fact]| {
            let mut lines: Vec<_> = facts
                .iter()
                .map(|fact| {
                    format!(
                        "{} {} {} {:?}",
                        fact.expect, fact.carrier, fact.carrier_bytes, fact.place
                    )
                })
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(
            shown(&derive_facts(&input.data, &scenario.model)),
            shown(&input.facts)
        );
    }

    #[test]
    fn a_fact_names_its_carrier_the_served_size_and_its_place() {
        let mut input = review();
        input.files[2].diff.push_str("+// TODO: only_here\n");
        let facts = derive_facts(&input, &spec());
        let shown: Vec<_> = facts
            .iter()
            .map(|fact| {
                let place = fact.place.expect("a place");
                format!(
                    "{} {} {} {} {place:?}",
                    fact.id, fact.expect, fact.carrier, fact.carrier_bytes
                )
            })
            .collect();
        insta::assert_snapshot!("derived_facts", shown.join("\n"));
        let run = mock_run(input, Profile::Hasty, spec());
        let served = run.served.file("b.rs").expect("a file").len() as u64;
        assert_eq!(facts[1].carrier_bytes, served);
    }
}
