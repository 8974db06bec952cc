//! Texts with placeholders: `{llm_url}`, `{env:NAME}`, `{prompt:json}`.
//!
//! A placeholder is a word of small letters in braces. Other braces stand for themselves, so that JSON
//! and TOML need no escapes; `{{word}}` is written where `{word}` itself is meant.

use std::sync::LazyLock;

use regex::Regex;

/// What a placeholder stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The model's base address, ending in `/v1`.
    LlmUrl,
    /// The same without `/v1`.
    LlmRoot,
    /// The tools' address.
    McpUrl,
    /// The scenario's prompt.
    Prompt,
    /// The scenario's system message.
    System,
    /// The run's own home folder.
    Home,
    /// Its working folder.
    Work,
    /// Its output folder.
    Output,
    /// Its temporary folder.
    Tmp,
    /// The model's name.
    Model,
    /// A dummy key, which names the run.
    Key,
    /// The caller's search path for programs.
    Path,
    /// The scenario's limit of iterations.
    IterationLimit,
    /// A variable of the subject's environment under the configuration.
    Env(String),
}

/// Placeholders and what they stand for.
const WORDS: [(&str, Slot); 13] = [
    ("llm_url", Slot::LlmUrl),
    ("llm_root", Slot::LlmRoot),
    ("mcp_url", Slot::McpUrl),
    ("prompt", Slot::Prompt),
    ("system", Slot::System),
    ("home", Slot::Home),
    ("work", Slot::Work),
    ("output", Slot::Output),
    ("tmp", Slot::Tmp),
    ("model", Slot::Model),
    ("key", Slot::Key),
    ("path", Slot::Path),
    ("iteration_limit", Slot::IterationLimit),
];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Slot { slot: Slot, as_json: bool },
}

static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{([a-z_]+(?::[A-Za-z0-9_]+)?)\}\}|\{([a-z_]+)(?::([A-Za-z0-9_]+))?\}")
        .expect("the pattern is valid")
});

/// Writes `text` with `value` for each of its words in braces, by the rules of a [`Template`].
pub(crate) fn fill_words(
    text: &str,
    value: impl Fn(&str) -> Option<String>,
) -> Result<String, UnknownPlaceholder> {
    let mut filled = String::new();
    let mut written = 0;
    for found in PLACEHOLDER.captures_iter(text) {
        let whole = found.get(0).expect("a match has a whole");
        filled.push_str(&text[written..whole.start()]);
        written = whole.end();
        let text = match (found.get(1), found.get(3)) {
            (Some(word), _) => Some(format!("{{{}}}", word.as_str())),
            (None, None) => value(&found[2]),
            (None, Some(_)) => None,
        };
        filled.push_str(&text.ok_or_else(|| UnknownPlaceholder {
            written: whole.as_str().to_owned(),
        })?);
    }
    filled.push_str(&text[written..]);
    Ok(filled)
}

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// A placeholder that stands for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownPlaceholder {
    /// As it is written, in its braces.
    pub(crate) written: String,
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, UnknownPlaceholder> {
        let mut parts = Vec::new();
        let mut written = 0;
        for found in PLACEHOLDER.captures_iter(text) {
            let whole = found.get(0).expect("a match has a whole");
            parts.push(Part::Text(text[written..whole.start()].to_owned()));
            written = whole.end();
            parts.push(match found.get(1) {
                Some(word) => Part::Text(format!("{{{}}}", word.as_str())),
                None => {
                    slot(&found[2], found.get(3).map(|more| more.as_str())).ok_or_else(|| {
                        UnknownPlaceholder {
                            written: whole.as_str().to_owned(),
                        }
                    })?
                }
            });
        }
        parts.push(Part::Text(text[written..].to_owned()));
        Ok(Self(parts))
    }

    /// A text that was checked when its file was read.
    ///
    /// # Panics
    ///
    /// When the text has an unknown placeholder.
    #[must_use]
    pub fn checked(text: &str) -> Self {
        Self::parse(text).expect("the text was checked when its file was read")
    }

    /// Writes the text, with `value` for each placeholder.
    #[must_use]
    pub fn fill(&self, value: impl Fn(&Slot) -> String) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Slot { slot, as_json } if *as_json => {
                serde_json::Value::String(value(slot)).to_string()
            }
            Part::Slot { slot, .. } => value(slot),
        });
        parts.collect()
    }

    /// The variables that it asks for.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Slot {
                slot: Slot::Env(name),
                ..
            } => Some(name.as_str()),
            Part::Slot { .. } | Part::Text(_) => None,
        })
    }
}

fn slot(word: &str, more: Option<&str>) -> Option<Part> {
    let named = || WORDS.into_iter().find(|(known, _)| *known == word);
    match (word, more) {
        ("env", Some(name)) => Some(Part::Slot {
            slot: Slot::Env(name.to_owned()),
            as_json: false,
        }),
        (_, None) => named().map(|(_, slot)| Part::Slot {
            slot,
            as_json: false,
        }),
        (_, Some("json")) => named().map(|(_, slot)| Part::Slot {
            slot,
            as_json: true,
        }),
        (_, Some(_)) => None,
    }
}

/// The words that a text may have in braces, for messages.
pub(crate) fn known_placeholders() -> String {
    let words = WORDS.map(|(word, _)| format!("{{{word}}}"));
    format!("{} and {{env:NAME}}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let template = Template::parse(text).map_err(|unknown| unknown.written)?;
        Ok(template.fill(|slot| match slot {
            Slot::Prompt => "say \"hi\"\n".to_owned(),
            Slot::Env(name) => format!("<{name}>"),
            other => format!("<{other:?}>"),
        }))
    }

    fn check(text: &str, want: Result<&str, &str>) {
        let want = want.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(fill(text), want, "{text}");
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        check("", Ok(""));
        check("plain", Ok("plain"));
        check("{llm_url}/x{key}", Ok("<LlmUrl>/x<Key>"));
        check("{env:LIMIT}", Ok("<LIMIT>"));
        check(r#"{"url":"{mcp_url}"}"#, Ok(r#"{"url":"<McpUrl>"}"#));
        check("{ home } {} {A} {1}", Ok("{ home } {} {A} {1}"));
        check("{{home}} {{env:A}}", Ok("{home} {env:A}"));
        check("{prompt}", Ok("say \"hi\"\n"));
        check("{prompt:json}", Ok(r#""say \"hi\"\n""#));
    }

    #[test]
    fn what_stands_for_nothing_is_told() {
        check("a {hom} b", Err("{hom}"));
        check("{env}", Err("{env}"));
        check("{home:html}", Err("{home:html}"));
    }

    proptest! {
        #[test]
        fn a_text_without_braces_is_itself(text in "[^{}]*") {
            prop_assert_eq!(fill(&text), Ok(text));
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = Template::parse(&text);
        }
    }
}
