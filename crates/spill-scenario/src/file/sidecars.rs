//! `[[configurations.sidecar]]`: what stands between subject and servers.

use std::collections::BTreeMap;

use spill_record::{SidecarBefore, SidecarRecord};
use toml::Spanned;

use super::SourceText;
use super::check::{Checked, choice, safe_name, unique};
use super::configurations::variable;
use super::raw::RawSidecar;
use crate::sidecar::{WORDS, fill};

/// Time until a sidecar's port accepts a connection, where its table does not say.
const START_TIMEOUT_MS: u64 = 10_000;

pub(super) fn sidecars(source: &SourceText<'_>, raw: &[RawSidecar]) -> Checked<Vec<SidecarRecord>> {
    unique(source, raw.iter().map(|one| &one.name), "sidecar")?;
    raw.iter().map(|one| sidecar(source, one)).collect()
}

fn sidecar(source: &SourceText<'_>, raw: &RawSidecar) -> Checked<SidecarRecord> {
    let name = safe_name(source, &raw.name)?;
    let servers = [SidecarBefore::Llm, SidecarBefore::Tools].map(|one| (one.as_str(), one));
    let before = choice(source, &raw.before, "server", &servers)?;
    let mut env = BTreeMap::new();
    for (name, value) in &raw.env {
        variable(source, name, value)?;
        template(source, value)?;
        env.insert(name.get_ref().clone(), value.get_ref().clone());
    }
    let command = command(source, &raw.command)?;
    for needed in ["{listen_port}", "{upstream_url}"] {
        let mut texts = command.iter().chain(env.values());
        if !texts.any(|text| text.contains(needed)) {
            return Err(source.invalid(
                raw.command.span(),
                format!("the sidecar `{name}` is not told {needed}"),
                format!("write {needed} in its `command` or its `env`"),
            ));
        }
    }
    Ok(SidecarRecord {
        name,
        before,
        command,
        env,
        start_timeout_ms: match &raw.start_timeout_ms {
            None => START_TIMEOUT_MS,
            Some(none) if *none.get_ref() == 0 => {
                return Err(source.invalid(
                    none.span(),
                    "`start_timeout_ms` is 0, so no sidecar would start in time",
                    format!("write at least 1; the default is {START_TIMEOUT_MS}"),
                ));
            }
            Some(limit) => *limit.get_ref(),
        },
    })
}

fn command(source: &SourceText<'_>, raw: &Spanned<Vec<Spanned<String>>>) -> Checked<Vec<String>> {
    let Some(program) = raw.get_ref().first() else {
        return Err(source.invalid(
            raw.span(),
            "`command` is empty",
            "write the program and its arguments",
        ));
    };
    let word = program.get_ref();
    if word.is_empty() || (word.contains('/') && !word.starts_with('/')) {
        return Err(source.invalid(
            program.span(),
            format!("{word:?} is no program that every run finds"),
            "write its absolute path, or the name of a program of the system",
        ));
    }
    let words = raw.get_ref().iter();
    words
        .map(|word| template(source, word).map(|()| word.get_ref().clone()))
        .collect()
}

fn template(source: &SourceText<'_>, text: &Spanned<String>) -> Checked<()> {
    if text.get_ref().contains('\0') {
        return Err(source.invalid(
            text.span(),
            "the text holds a NUL character",
            "remove it; the system passes no such text on",
        ));
    }
    fill(text.get_ref(), |_| String::new())
        .map(drop)
        .map_err(|unknown| {
            let known = WORDS.map(|word| format!("{{{word}}}")).join(", ");
            source.invalid(
                text.span(),
                format!("unknown placeholder `{unknown}`"),
                format!("known are {known}; write `{{{unknown}}}` for the text itself"),
            )
        })
}
