use spill_record::FactPlace;

use super::block::{Block, Language};
use super::defect::{Defect, defect};
use super::rng::Rng;
use super::words::{ItemNames, UniqueNames};
use crate::diff::{DiffSide, unified_diff};
use crate::input::{diff_carrier, place_of};

/// A file to generate.
pub(super) struct FileSpec {
    pub(super) path: &'static str,
    pub(super) language: Language,
    /// Bytes of the file; it ends with the first item that reaches them.
    pub(super) bytes: usize,
    pub(super) change: Change,
}

/// How the file came to be what it is. Places are thousandths of the file.
pub(super) enum Change {
    /// The file is new: each of these places has a defect.
    Added { defects_at: &'static [usize] },
    /// A few statements were replaced at each site.
    Modified { sites: &'static [Site] },
}

/// One place where statements were replaced.
pub(super) struct Site {
    pub(super) at: usize,
    /// Whether a defect is among the new statements.
    pub(super) in_hunk: bool,
    /// Whether an older defect stands in the item beside it, outside the diff.
    pub(super) nearby: bool,
}

/// A generated file with the facts planted in it.
pub(super) struct GeneratedFile {
    pub(super) path: &'static str,
    #[cfg(test)]
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) diff: String,
    pub(super) facts: Vec<PlantedFact>,
}

/// A planted defect, as the reading rules name it.
pub(super) struct PlantedFact {
    pub(super) rule: &'static str,
    pub(super) expect: String,
    pub(super) carrier: String,
    pub(super) place: FactPlace,
}

/// What stands at one item's slot before and after the change.
#[derive(Clone, Default)]
struct Slot {
    before: Vec<String>,
    after: Vec<String>,
}

struct Planted {
    rule: &'static str,
    name: String,
    in_diff: bool,
}

/// Generates one file. `number` says which kind of defect comes next and is moved on.
pub(super) fn generate_file(
    spec: &FileSpec,
    rng: &mut Rng,
    unique: &mut UniqueNames,
    number: &mut usize,
) -> GeneratedFile {
    let mut names = ItemNames::default();
    let header = spec.language.header(rng);
    let mut blocks = Vec::new();
    let mut bytes = 0;
    while bytes < spec.bytes {
        let block = spec.language.block(rng, &mut names);
        bytes += block.bytes() + spec.language.gap();
        blocks.push(block);
    }
    let mut slots = vec![Slot::default(); blocks.len()];
    let mut planted = Vec::new();
    let mut plant = |rng: &mut Rng, in_diff| {
        let name = unique.next(rng);
        let Defect { rule, lines } = defect(spec.language, *number, &name, rng);
        *number += 1;
        planted.push(Planted {
            rule,
            name,
            in_diff,
        });
        lines
    };
    match &spec.change {
        Change::Added { defects_at } => {
            for at in *defects_at {
                slots[block_at(&blocks, *at)].after = plant(rng, true);
            }
        }
        Change::Modified { sites } => {
            for site in *sites {
                let index = block_at(&blocks, site.at);
                slots[index].before.extend(spec.language.statements(rng, 1));
                let lead = if site.at < 500 { 0 } else { 2 };
                slots[index]
                    .after
                    .extend(spec.language.statements(rng, lead));
                if site.in_hunk {
                    slots[index].after.extend(plant(rng, true));
                }
                slots[index]
                    .after
                    .extend(spec.language.statements(rng, 2 - lead));
                if site.nearby {
                    let beside = if index + 1 < blocks.len() {
                        index + 1
                    } else {
                        index - 1
                    };
                    let lines = plant(rng, false);
                    slots[beside].before.extend(lines.iter().cloned());
                    slots[beside].after.extend(lines);
                }
            }
        }
    }
    let text = |side: fn(&Slot) -> &[String]| {
        assemble(spec.language, &header, &blocks, slots.iter().map(side))
    };
    let after = text(|slot| &slot.after);
    let before = match spec.change {
        Change::Added { .. } => None,
        Change::Modified { .. } => Some(text(|slot| &slot.before)),
    };
    finish(spec.path, before, after, &planted)
}

/// The item in which a place given in thousandths of the file falls.
fn block_at(blocks: &[Block], thousandths: usize) -> usize {
    let total: usize = blocks.iter().map(Block::bytes).sum();
    let mut end = 0;
    for (index, block) in blocks.iter().enumerate() {
        end += block.bytes();
        if end * 1000 > total * thousandths {
            return index;
        }
    }
    blocks.len() - 1
}

fn assemble<'a>(
    language: Language,
    header: &[String],
    blocks: &[Block],
    statements: impl Iterator<Item = &'a [String]>,
) -> String {
    let mut text = header.join("\n") + "\n";
    for (block, statements) in blocks.iter().zip(statements) {
        text.push_str(&"\n".repeat(language.gap()));
        for line in block.with(statements) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn finish(
    path: &'static str,
    before: Option<String>,
    after: String,
    planted: &[Planted],
) -> GeneratedFile {
    let old = before.as_deref().map(|text| DiffSide { path, text });
    let diff = unified_diff(old, Some(DiffSide { path, text: &after }));
    let facts = planted
        .iter()
        .map(|planted| {
            let (carrier, text) = if planted.in_diff {
                (diff_carrier(path), &diff)
            } else {
                (path.to_owned(), &after)
            };
            let offset = text
                .find(&planted.name)
                .expect("a planted line stands in its carrier");
            PlantedFact {
                rule: planted.rule,
                expect: format!("{path}: {}: {}", planted.rule, planted.name),
                carrier,
                place: place_of(offset, text.len()),
            }
        })
        .collect();
    GeneratedFile {
        path,
        #[cfg(test)]
        before,
        after,
        diff,
        facts,
    }
}
