use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, DirEntry};
use spill_record::{Class, FactPlace, FactsOrigin};
use toml::Spanned;

use super::SourceText;
use super::check::{choice, unique};
use super::raw::{RawFact, RawFacts, RawInput};
use super::source::{from_toml, nearest, text_of};
use crate::defaults::MAX_DOCUMENT_BYTES;
use crate::diff::{DiffSide, unified_diff};
use crate::error::ScenarioError;
use crate::generate::{self, GENERATORS, served_bytes, served_table_bytes};
use crate::input::{ChangedFile, Fact, Input, InputData, Recipe, class_of, diff_carrier};
use crate::{document_file, recorded, regular_file, repository};

type Checked<T> = Result<T, ScenarioError>;

/// Where a scenario file's paths lead.
pub(crate) enum Folder<'a> {
    /// The fixtures inside the program; paths start with `../fixtures/`.
    Embedded(&'a Dir<'a>),
    /// The folder that holds the scenario file.
    Disk(&'a Path),
}

#[derive(Clone, Copy)]
enum Source {
    Generated,
    Directory,
    Document,
    Repository,
    Recorded,
}

pub(super) fn input(
    source: &SourceText<'_>,
    raw: &RawInput,
    recipe: Recipe,
    folder: &Folder<'_>,
) -> Checked<Input> {
    let kind = choice(
        source,
        &raw.source,
        "source",
        &[
            ("generated", Source::Generated),
            ("directory", Source::Directory),
            ("document", Source::Document),
            ("repository", Source::Repository),
            ("recorded", Source::Recorded),
        ],
    )?;
    let class = raw
        .class
        .as_ref()
        .map(|class| {
            let classes = [Class::Small, Class::Medium, Class::Large, Class::Document];
            choice(
                source,
                class,
                "class",
                &classes.map(|class| (class.as_str(), class)),
            )
        })
        .transpose()?;
    only_keys_of_its_source(source, raw, kind)?;
    let at_its_path = |error| at_path(source, raw, error);
    let (data, mut facts) = match kind {
        Source::Generated => generated(source, raw)?,
        Source::Directory => directory(source, raw, folder).map_err(at_its_path)?,
        Source::Document => (
            document_file::read(&on_disk(source, raw, folder)?).map_err(at_its_path)?,
            Vec::new(),
        ),
        Source::Repository => {
            let range = needed(source, raw, raw.range.as_ref(), "range")?;
            let path = on_disk(source, raw, folder)?;
            (
                repository::read(&path, range.get_ref())
                    .map_err(at_its_path)?
                    .0,
                Vec::new(),
            )
        }
        Source::Recorded => {
            let path = on_disk(source, raw, folder)?;
            let calls = recorded::read(&path).map_err(at_its_path)?;
            let data = InputData {
                calls,
                ..InputData::empty(Recipe::Recorded)
            };
            (data, Vec::new())
        }
    };
    if data.recipe != recipe {
        return Err(source.invalid(
            raw.source.span(),
            format!("this input is for the recipe `{}`", data.recipe.as_str()),
            format!("choose an input for the recipe `{}`", recipe.as_str()),
        ));
    }
    if let Some(written) = &raw.facts {
        facts = self::facts(source, written.get_ref(), &data)?;
    }
    let origin = if facts.is_empty() {
        FactsOrigin::Derived
    } else {
        FactsOrigin::Scenario
    };
    Ok(Input {
        name: raw.name.get_ref().clone(),
        class: class.unwrap_or_else(|| natural_class(&data)),
        data,
        facts,
        facts_origin: origin,
        notes: raw.notes.clone(),
    })
}

/// Gives an error about what a scenario names the place where it names it; errors with a place of
/// their own keep that.
fn at_path(source: &SourceText<'_>, raw: &RawInput, error: ScenarioError) -> ScenarioError {
    let (problem, way_out) = match error {
        ScenarioError::Unreadable {
            file,
            reason,
            way_out,
        } => (format!("{file} cannot be read: {reason}"), way_out),
        ScenarioError::Unusable {
            file,
            problem,
            way_out,
        } => (format!("{file} {problem}"), way_out),
        ScenarioError::Invalid { .. }
        | ScenarioError::TooManyRuns { .. }
        | ScenarioError::Plan { .. } => return error,
    };
    let span = raw
        .path
        .as_ref()
        .map_or_else(|| raw.source.span(), Spanned::span);
    source.invalid(span, problem, way_out)
}

/// The class that an input has without being told: by its largest result as served.
pub(crate) fn natural_class(data: &InputData) -> Class {
    match data.recipe {
        Recipe::Document => Class::Document,
        Recipe::Records => class_of(
            data.tables
                .iter()
                .map(served_table_bytes)
                .max()
                .unwrap_or(0),
        ),
        Recipe::Recorded => {
            let results = data.calls.iter().map(|call| call.result.len() as u64);
            class_of(results.max().unwrap_or(0))
        }
        Recipe::Review => {
            let texts = data
                .files
                .iter()
                .flat_map(|file| [&file.diff, &file.content]);
            class_of(texts.map(|text| served_bytes(text)).max().unwrap_or(0))
        }
    }
}

fn only_keys_of_its_source(source: &SourceText<'_>, raw: &RawInput, kind: Source) -> Checked<()> {
    let allowed: &[&str] = match kind {
        Source::Generated => &["generator", "seed"],
        Source::Directory => &["path"],
        Source::Document | Source::Recorded => &["path", "facts"],
        Source::Repository => &["path", "range", "facts"],
    };
    let present = [
        ("generator", raw.generator.as_ref().map(Spanned::span)),
        ("seed", raw.seed.as_ref().map(Spanned::span)),
        ("path", raw.path.as_ref().map(Spanned::span)),
        ("range", raw.range.as_ref().map(Spanned::span)),
        ("facts", raw.facts.as_ref().map(Spanned::span)),
    ];
    for (key, span) in present {
        if let Some(span) = span
            && !allowed.contains(&key)
        {
            return Err(source.invalid(
                span,
                format!(
                    "`{key}` has no meaning with the source `{}`",
                    raw.source.get_ref()
                ),
                format!("remove it; this source takes {}", allowed.join(", ")),
            ));
        }
    }
    Ok(())
}

fn needed<'a, T>(
    source: &SourceText<'_>,
    raw: &RawInput,
    key: Option<&'a Spanned<T>>,
    name: &str,
) -> Checked<&'a Spanned<T>> {
    key.ok_or_else(|| {
        source.invalid(
            raw.source.span(),
            format!(
                "the source `{}` needs the key `{name}`",
                raw.source.get_ref()
            ),
            format!("add `{name} = …` to this input"),
        )
    })
}

fn generated(source: &SourceText<'_>, raw: &RawInput) -> Checked<(InputData, Vec<Fact>)> {
    let name = needed(source, raw, raw.generator.as_ref(), "generator")?;
    let seed = needed(source, raw, raw.seed.as_ref(), "seed")?;
    let generated = generate::generate(name.get_ref(), *seed.get_ref()).ok_or_else(|| {
        source.invalid(
            name.span(),
            format!("unknown generator `{}`", name.get_ref()),
            match nearest(name.get_ref(), GENERATORS) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("the generators are {}", GENERATORS.join(", ")),
            },
        )
    })?;
    Ok((generated.data, generated.facts))
}

fn on_disk(source: &SourceText<'_>, raw: &RawInput, folder: &Folder<'_>) -> Checked<PathBuf> {
    let path = needed(source, raw, raw.path.as_ref(), "path")?;
    match folder {
        Folder::Disk(folder) => Ok(folder.join(path.get_ref())),
        Folder::Embedded(_) => Err(source.invalid(
            path.span(),
            "a scenario inside the program cannot name files outside it",
            "use the source `generated` or `directory`",
        )),
    }
}

fn directory(
    source: &SourceText<'_>,
    raw: &RawInput,
    folder: &Folder<'_>,
) -> Checked<(InputData, Vec<Fact>)> {
    let path = needed(source, raw, raw.path.as_ref(), "path")?;
    let mut files = BTreeMap::new();
    let shown = match folder {
        Folder::Embedded(fixtures) => {
            let name = path.get_ref().trim_start_matches("../fixtures/");
            if let Some(dir) = fixtures.get_dir(name) {
                embedded_files(dir, dir.path(), &mut files);
            }
            path.get_ref().clone()
        }
        Folder::Disk(folder) => {
            let root = folder.join(path.get_ref());
            let shown = root.display().to_string();
            disk_files(&root, &root, &mut files).map_err(|error| ScenarioError::Unreadable {
                file: shown.clone(),
                reason: error,
                way_out: "`path` is a folder with before/, after/ and facts.toml, relative to \
                          the scenario file"
                    .to_owned(),
            })?;
            shown
        }
    };
    let mut texts = BTreeMap::new();
    for (name, bytes) in &files {
        let file = format!("{shown}/{name}");
        let text = text_of(&file, bytes, "an input's files are text in UTF-8")?;
        texts.insert(name.as_str(), text);
    }
    let data = review_of(&texts);
    if data.files.is_empty() {
        return Err(ScenarioError::Unusable {
            file: shown,
            problem: "holds no change".to_owned(),
            way_out: "put the files before and after the change into before/ and after/".to_owned(),
        });
    }
    let file = format!("{shown}/facts.toml");
    let facts = match texts.get("facts.toml") {
        Some(text) => {
            let source = SourceText { file: &file, text };
            let raw: RawFacts = from_toml(&source)?;
            self::facts(&source, &raw.facts, &data)?
        }
        None => Vec::new(),
    };
    Ok((data, facts))
}

fn embedded_files(dir: &Dir<'_>, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in dir.entries() {
        match entry {
            DirEntry::Dir(inner) => embedded_files(inner, root, files),
            DirEntry::File(file) => {
                let name = file
                    .path()
                    .strip_prefix(root)
                    .expect("it is below its root");
                files.insert(slashes(name), file.contents().to_vec());
            }
        }
    }
}

/// Reads every file below `folder`. Links are left out: one could lead back up.
fn disk_files(folder: &Path, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            disk_files(&path, root, files)?;
        } else if !kind.is_symlink() {
            let name = path.strip_prefix(root).expect("it is below its root");
            files.insert(
                slashes(name),
                regular_file::read(&path, MAX_DOCUMENT_BYTES)?,
            );
        }
    }
    Ok(())
}

fn slashes(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Makes a change of files below `before/` and `after/`; files that are equal are left out.
fn review_of(texts: &BTreeMap<&str, &str>) -> InputData {
    let paths: BTreeSet<&str> = texts
        .keys()
        .filter_map(|name| {
            name.strip_prefix("before/")
                .or_else(|| name.strip_prefix("after/"))
        })
        .collect();
    let side = |folder: &str, path| texts.get(format!("{folder}/{path}").as_str()).copied();
    let files = paths
        .into_iter()
        .filter_map(|path| {
            let (before, after) = (side("before", path), side("after", path));
            let status = match (before, after) {
                (None, _) => "added",
                (Some(_), None) => "deleted",
                (Some(before), Some(after)) if before == after => return None,
                (Some(_), Some(_)) => "modified",
            };
            let diff = unified_diff(
                before.map(|text| DiffSide { path, text }),
                after.map(|text| DiffSide { path, text }),
            );
            Some(ChangedFile {
                path: path.to_owned(),
                status: status.to_owned(),
                diff,
                content: after.unwrap_or_default().to_owned(),
            })
        })
        .collect();
    InputData {
        files,
        ..InputData::empty(Recipe::Review)
    }
}

fn facts(source: &SourceText<'_>, raw: &[RawFact], data: &InputData) -> Checked<Vec<Fact>> {
    unique(source, raw.iter().map(|fact| &fact.id), "fact")?;
    let mut carriers: BTreeMap<String, &str> = BTreeMap::new();
    for call in &data.calls {
        carriers.insert(call.id.clone(), &call.result);
    }
    for file in &data.files {
        carriers.insert(file.path.clone(), &file.content);
        carriers.insert(diff_carrier(&file.path), &file.diff);
    }
    for document in &data.documents {
        carriers.insert(document.name.clone(), &document.text);
    }
    for table in &data.tables {
        carriers.insert(table.name.clone(), &table.text);
    }
    let facts = raw.iter().map(|raw| fact(source, raw, &carriers));
    let mut facts: Vec<Fact> = facts.collect::<Checked<_>>()?;
    if data.recipe == Recipe::Recorded {
        // Served as they are, without canaries.
        for fact in &mut facts {
            fact.carrier_bytes = carriers[&fact.carrier].len() as u64;
        }
    }
    Ok(facts)
}

fn fact(
    source: &SourceText<'_>,
    raw: &RawFact,
    carriers: &BTreeMap<String, &str>,
) -> Checked<Fact> {
    if raw.expect.get_ref().trim().is_empty() {
        return Err(source.invalid(
            raw.expect.span(),
            "`expect` is empty, so every answer would contain it",
            "write the text that a good answer contains",
        ));
    }
    let Some(text) = carriers.get(raw.carrier.get_ref()) else {
        let known: Vec<&str> = carriers.keys().map(String::as_str).collect();
        return Err(source.invalid(
            raw.carrier.span(),
            format!("the input has no `{}`", raw.carrier.get_ref()),
            match nearest(raw.carrier.get_ref(), &known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("carriers here are {}", known.join(", ")),
            },
        ));
    };
    let place = raw
        .place
        .as_ref()
        .map(|place| {
            choice(
                source,
                place,
                "place",
                &[
                    ("beginning", FactPlace::Beginning),
                    ("middle", FactPlace::Middle),
                    ("end", FactPlace::End),
                ],
            )
        })
        .transpose()?;
    Ok(Fact {
        id: raw.id.get_ref().clone(),
        expect: raw.expect.get_ref().clone(),
        carrier: raw.carrier.get_ref().clone(),
        carrier_bytes: served_bytes(text),
        place,
    })
}
