//! Hostile text in the place of every text that a run folder holds.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use spill_record::RunSet;

/// What names, answers and errors from outside may be, one of each kind.
pub(crate) const KINDS: [(&str, &str); 17] = [
    ("script", "</script><script>alert(1)</script>"),
    ("attribute", "\"><img src=x onerror=alert(1)>"),
    ("handler", "' onmouseover='x' <!-- --> ]]>"),
    (
        "style",
        "</style></svg></title></textarea><svg onload=alert(1)>",
    ),
    ("address", "javascript:alert(1)//"),
    ("template", "{{ 7777 * 7777 }}{% for x in y %}&lt;&#39;"),
    ("formula", "=cmd|' /C calc'!A0"),
    ("wide formula", "＝1+1"),
    ("hidden formula", " \t\r@SUM(1)"),
    ("right to left", "a\u{202e}b\u{200f}c\u{2066}d"),
    ("zero", "a\u{0}b"),
    ("terminal", "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\u{7f}"),
    ("lines", "a\r\nb\n\nc\u{2028}d\u{85}"),
    ("Markdown", "a|b\\|c`d`[e](f)![g](h) # * _ ~ @i"),
    (
        "command",
        "%0A::error::x\n::set-output name=decision::keep\nspillgate_decision",
    ),
    ("wide", "文書🙂👩‍👩‍👧‍👦é\u{301}"),
    ("label", "a\"b\\c\\n{d=\"e\"} 1\n# HELP x"),
];

/// How a text at a place, such as `/plan/runs/-/run_id`, is replaced.
pub(crate) type Spoil<'a> = &'a dyn Fn(&str, &str) -> String;

/// The same set with every free text replaced by `text` and what it was; ids and names that belonged
/// together still do. What is no free text, such as an outcome, stays.
///
/// Of what drives a terminal, ids get nothing: the verdict spells them harmlessly, and a link from it
/// to a record would be lost.
pub(crate) fn everywhere(set: &RunSet, text: &str) -> RunSet {
    let tame: String = text
        .chars()
        .filter(|c| !spill_record::is_unsafe(*c))
        .collect();
    replaced(set, &|place, old| {
        let is_id = place.ends_with("run_id") || place.ends_with("pair_id");
        format!("{}{old}", if is_id { &tame } else { text })
    })
}

/// The same set with every free text replaced, ids as well.
pub(crate) fn replaced(set: &RunSet, spoil: Spoil<'_>) -> RunSet {
    RunSet {
        manifest: spoiled(&set.manifest, spoil),
        runs: spoiled(&set.runs, spoil),
        sensitivity: spoiled(&set.sensitivity, spoil),
        executions: spoiled(&set.executions, spoil),
        torn: set.torn.clone(),
        prices: set.prices.clone(),
        spending: set.spending.clone(),
    }
}

/// A value with its free texts replaced: those that it takes other texts for.
pub(crate) fn spoiled<T>(value: &T, spoil: Spoil<'_>) -> T
where
    T: Serialize + DeserializeOwned,
{
    let mut json = serde_json::to_value(value).expect("a record is JSON");
    let mut places = BTreeSet::new();
    list(&json, "", &mut places);
    for place in places {
        let mut other = json.clone();
        replace(&mut other, "", &place, spoil);
        let read: Result<T, _> = serde_json::from_value(other.clone());
        let kept = read.is_ok_and(|read| serde_json::to_value(read).is_ok_and(|v| v == other));
        if kept {
            json = other;
        }
    }
    serde_json::from_value(json).expect("every replacement was taken")
}

/// Places of texts: fields by name, elements alike; `/*` at the end are the keys of a map.
fn list(value: &Value, at: &str, places: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => {
            places.insert(at.to_owned());
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| list(item, &format!("{at}/-"), places)),
        Value::Object(fields) => {
            places.insert(format!("{at}/*"));
            for (name, field) in fields {
                list(field, &format!("{at}/{name}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace(value: &mut Value, at: &str, place: &str, spoil: Spoil<'_>) {
    match value {
        Value::String(text) if at == place => *text = spoil(place, text),
        Value::Array(items) => {
            let at = format!("{at}/-");
            for item in items {
                replace(item, &at, place, spoil);
            }
        }
        Value::Object(fields) if format!("{at}/*") == place => {
            let renamed = std::mem::take(fields).into_iter();
            *fields = renamed
                .map(|(name, field)| (spoil(place, &name), field))
                .collect();
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                replace(field, &format!("{at}/{name}"), place, spoil);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Every tag of a page with the names of its attributes: what a text from outside must not change.
pub(crate) fn skeleton(html: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        let close = open + rest[open..].find('>').expect("a tag is closed");
        let tag = &rest[open + 1..close];
        tags.push(tag.split('"').step_by(2).collect::<Vec<_>>().join(""));
        rest = &rest[close + 1..];
    }
    tags
}

/// The first character that drives a terminal, or reorders or hides what stands beside it.
pub(crate) fn bad(text: &str) -> Option<char> {
    text.chars()
        .find(|c| spill_record::is_unsafe(*c) && *c != '\n')
}
