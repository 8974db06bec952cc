//! The `[subject]` table, and the same keys in a file of their own.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::SourceText;
use super::check::{Checked, choice, safe_name};
use super::configurations::{Labels, configurations};
use super::raw::RawConfiguration;
use crate::scenario::Configuration;
use crate::subject::{AnswerRule, ForeignSubject, OwnFolder, OwnPlace, SubjectFile, SubjectPreset};
use crate::template::{Template, known_placeholders};

/// Wire formats that the mock LLM speaks.
const DIALECTS: [&str; 4] = ["chat", "responses", "messages", "gemini"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSubject {
    name: Spanned<String>,
    command: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    env: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    files: Vec<RawFile>,
    answer: RawAnswer,
    #[serde(default)]
    state: Vec<Spanned<String>>,
    dialect: Option<Spanned<String>>,
    install: Option<Spanned<String>>,
    run_timeout_ms: Option<Spanned<u64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    path: Spanned<String>,
    content: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAnswer {
    from: Spanned<String>,
    pointer: Option<Spanned<String>>,
    path: Option<Spanned<String>>,
}

/// A file of one subject.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSubjectFile {
    subject: Spanned<RawSubject>,
    configurations: Option<Spanned<Vec<RawConfiguration>>>,
}

pub(super) fn preset(source: &SourceText<'_>, raw: &RawSubjectFile) -> Checked<SubjectPreset> {
    let own = raw.configurations.as_ref();
    let configurations = own
        .map(|own| configurations(source, own, Labels::Foreign))
        .transpose()?;
    Ok(SubjectPreset {
        subject: subject(
            source,
            &raw.subject,
            configurations.as_deref().unwrap_or_default(),
        )?,
        configurations,
    })
}

/// Checks a subject; `configurations` are those under which it runs.
pub(super) fn subject(
    source: &SourceText<'_>,
    raw: &Spanned<RawSubject>,
    configurations: &[Configuration],
) -> Checked<ForeignSubject> {
    let raw = raw.get_ref();
    let Some((program, arguments)) = raw.command.get_ref().split_first() else {
        return Err(source.invalid(
            raw.command.span(),
            "`command` is empty",
            "write the program and its arguments",
        ));
    };
    if program.get_ref().is_empty() || program.get_ref().contains('\0') {
        return Err(source.invalid(
            program.span(),
            "the command names no program",
            "write a program of the search path, or the path of one",
        ));
    }
    let env = environment(source, &raw.env)?;
    let known = |name: &str| {
        env.contains_key(name)
            || (!configurations.is_empty()
                && configurations.iter().all(|one| one.env.contains_key(name)))
    };
    let filled = |text: &Spanned<String>| -> Checked<Template> {
        let template = template(source, text)?;
        let unknown = template.variables().find(|name| !known(name));
        match unknown {
            Some(name) => Err(source.invalid(
                text.span(),
                format!("`{{env:{name}}}` has no value under every configuration"),
                format!(
                    "set `{name}` in the subject's `env`; a configuration's own goes before it"
                ),
            )),
            None => Ok(template),
        }
    };
    let arguments = arguments.iter().map(&filled).collect::<Checked<Vec<_>>>()?;
    let files = raw.files.iter().map(|file| {
        let place = place(source, &file.path)?;
        if place.path.is_empty() {
            return Err(source.invalid(
                file.path.span(),
                format!("`{}` names a folder", file.path.get_ref()),
                "write the path of a file, such as \".agent/settings.json\"",
            ));
        }
        Ok(SubjectFile {
            place,
            content: filled(&file.content)?,
        })
    });
    let files = files.collect::<Checked<Vec<_>>>()?;
    let state = raw.state.iter().map(|own| place(source, own));
    let words = DIALECTS.map(|word| (word, word));
    let dialect = raw.dialect.as_ref();
    let dialect = dialect.map(|word| choice(source, word, "dialect", &words));
    Ok(ForeignSubject {
        name: safe_name(source, &raw.name)?,
        program: program.get_ref().clone(),
        arguments,
        files,
        answer: answer(source, &raw.answer)?,
        state: state.collect::<Checked<Vec<_>>>()?,
        dialect: dialect.transpose()?.map(str::to_owned),
        install: raw.install.as_ref().map(|how| how.get_ref().clone()),
        run_timeout_ms: timeout(source, raw.run_timeout_ms.as_ref())?,
        env,
    })
}

fn timeout(source: &SourceText<'_>, raw: Option<&Spanned<u64>>) -> Checked<Option<u64>> {
    match raw {
        Some(none) if *none.get_ref() == 0 => Err(source.invalid(
            none.span(),
            "`run_timeout_ms` is 0, so every run would be killed at once",
            "write at least 1, or leave it out for the scenario's",
        )),
        given => Ok(given.map(|time| *time.get_ref())),
    }
}

fn template(source: &SourceText<'_>, text: &Spanned<String>) -> Checked<Template> {
    if text.get_ref().contains('\0') {
        return Err(source.invalid(
            text.span(),
            "the text holds a NUL character",
            "remove it; the system passes no such text on",
        ));
    }
    Template::parse(text.get_ref()).map_err(|unknown| {
        let written = unknown.written;
        source.invalid(
            text.span(),
            format!("unknown placeholder `{written}`"),
            format!(
                "known are {}, each also as {{NAME:json}}; write `{{{written}}}` for the text itself",
                known_placeholders()
            ),
        )
    })
}

fn environment(
    source: &SourceText<'_>,
    raw: &BTreeMap<Spanned<String>, Spanned<String>>,
) -> Checked<BTreeMap<String, Template>> {
    let mut env = BTreeMap::new();
    for (name, value) in raw {
        super::configurations::variable(source, name, value)?;
        let value_template = template(source, value)?;
        no_variables(source, value, &value_template)?;
        env.insert(name.get_ref().clone(), value_template);
    }
    Ok(env)
}

/// A variable's value does not hang on another variable.
fn no_variables(
    source: &SourceText<'_>,
    written: &Spanned<String>,
    value: &Template,
) -> Checked<()> {
    match value.variables().next() {
        Some(name) => Err(source.invalid(
            written.span(),
            format!("a variable's value names another one, `{{env:{name}}}`"),
            "write the value itself",
        )),
        None => Ok(()),
    }
}

/// Checks the environment of a foreign subject's configuration: it may have placeholders.
pub(super) fn configuration_env(
    source: &SourceText<'_>,
    raw: &BTreeMap<Spanned<String>, Spanned<String>>,
) -> Checked<()> {
    environment(source, raw).map(drop)
}

/// A path below one of the run's folders; below home, where it names none.
fn place(source: &SourceText<'_>, raw: &Spanned<String>) -> Checked<OwnPlace> {
    let written = raw.get_ref();
    let named = OwnFolder::ALL.into_iter().find_map(|folder| {
        let rest = written.strip_prefix(folder.placeholder())?;
        let is_whole = rest.is_empty() || rest.starts_with('/');
        is_whole.then(|| (folder, rest.trim_start_matches('/')))
    });
    let (folder, path) = named.unwrap_or((OwnFolder::Home, written));
    let path = path.trim_end_matches('/');
    let is_sound = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\0', '{']);
    let sound = match path {
        "" => named.is_some(),
        path => path.split('/').all(is_sound),
    };
    if !sound {
        return Err(source.invalid(
            raw.span(),
            format!("{written:?} is no path below one of the run's folders"),
            "write a path below home, such as \".agent/settings.json\", or start it with {work}, {tmp} or {output}",
        ));
    }
    Ok(OwnPlace {
        folder,
        path: path.to_owned(),
    })
}

fn answer(source: &SourceText<'_>, raw: &RawAnswer) -> Checked<AnswerRule> {
    #[derive(Clone, Copy)]
    enum From {
        Output,
        LastLine,
        File,
        Model,
    }
    let from = choice(
        source,
        &raw.from,
        "place of an answer",
        &[
            ("stdout", From::Output),
            ("last-line", From::LastLine),
            ("file", From::File),
            ("model", From::Model),
        ],
    )?;
    let word = raw.from.get_ref();
    let unused = |key: &str, given: Option<&Spanned<String>>| match given {
        Some(given) => Err(source.invalid(
            given.span(),
            format!("`{key}` has no meaning for an answer from `{word}`"),
            "remove it",
        )),
        None => Ok(()),
    };
    let missing = |key: &str, example: &str| {
        source.invalid(
            raw.from.span(),
            format!("an answer from `{word}` needs `{key}`"),
            format!("add `{key} = \"{example}\"`"),
        )
    };
    match from {
        From::Output => {
            unused("path", raw.path.as_ref())?;
            Ok(match &raw.pointer {
                Some(given) => AnswerRule::Json(pointer(source, given)?),
                None => AnswerRule::StandardOutput,
            })
        }
        From::LastLine => {
            unused("path", raw.path.as_ref())?;
            let given = raw.pointer.as_ref();
            let given = given.ok_or_else(|| missing("pointer", "/text"))?;
            Ok(AnswerRule::JsonLines(pointer(source, given)?))
        }
        From::File => {
            unused("pointer", raw.pointer.as_ref())?;
            let given = raw.path.as_ref();
            let given = given.ok_or_else(|| missing("path", "{output}/answer.md"))?;
            Ok(AnswerRule::File(place(source, given)?))
        }
        From::Model => {
            unused("pointer", raw.pointer.as_ref())?;
            unused("path", raw.path.as_ref())?;
            Ok(AnswerRule::LastMessage)
        }
    }
}

fn pointer(source: &SourceText<'_>, raw: &Spanned<String>) -> Checked<String> {
    let pointer = raw.get_ref();
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(source.invalid(
            raw.span(),
            format!("{pointer:?} is no JSON pointer"),
            format!("write `/{pointer}`, or an empty text for the whole value"),
        ));
    }
    Ok(pointer.clone())
}

#[cfg(test)]
mod tests;
