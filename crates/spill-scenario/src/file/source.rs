use serde::de::DeserializeOwned;

use super::SourceText;
use crate::error::{Place, ScenarioError};

/// Returns the bytes as text, or says where they stop being text.
pub(crate) fn text_of<'a>(
    file: &str,
    bytes: &'a [u8],
    way_out: &str,
) -> Result<&'a str, ScenarioError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let before = std::str::from_utf8(valid).expect("it is valid up to there");
        ScenarioError::Invalid {
            place: Place::at(file, before, before.len()),
            problem: "not UTF-8 text".to_owned(),
            way_out: way_out.to_owned(),
        }
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(at) = text.find('\0') {
        return Err(ScenarioError::Invalid {
            place: Place::at(file, text, at),
            problem: "a NUL byte; this is a binary file".to_owned(),
            way_out: way_out.to_owned(),
        });
    }
    Ok(text)
}

/// Reads TOML into `T`, with errors that name place, fact and way out.
pub(super) fn from_toml<T: DeserializeOwned>(source: &SourceText<'_>) -> Result<T, ScenarioError> {
    if let Err(error) = source.text.parse::<toml::Table>() {
        return Err(source.invalid(
            error.span().unwrap_or(0..0),
            format!("not TOML: {}", error.message().trim().replace('\n', ", ")),
            "see https://toml.io for the format and scenarios/review.toml for an example",
        ));
    }
    toml::from_str(source.text).map_err(|error| explain(source, &error))
}

fn explain(source: &SourceText<'_>, error: &toml::de::Error) -> ScenarioError {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().trim();
    let mut quoted = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field") {
        let key = quoted.next().unwrap_or_default().to_owned();
        let known: Vec<&str> = quoted.collect();
        let way_out = nearest(&key, &known).map_or_else(
            || format!("the keys here are {}", known.join(", ")),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        return source.invalid(span, format!("unknown key `{key}`"), way_out);
    }
    if message.starts_with("missing field") {
        let key = quoted.next().unwrap_or_default().to_owned();
        return source.invalid(
            span,
            format!("the key `{key}` is missing"),
            format!("add `{key} = …`; scenarios/README.md describes every key"),
        );
    }
    let message = ["u32", "u64"]
        .iter()
        .fold(message.to_owned(), |message, kind| {
            message.replace(
                &format!("expected {kind}"),
                "expected a whole number that fits",
            )
        });
    let message = message.replace("expected f64", "expected a number");
    source.invalid(span, message, "scenarios/README.md describes every key")
}

/// Returns the known word that a typo most likely stands for, when one is close enough.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's edit distance, in characters.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_only_when_it_is_near() {
        let known = ["repetitions", "prompt", "model"];
        assert_eq!(nearest("repetition", &known), Some("repetitions"));
        assert_eq!(nearest("promt", &known), Some("prompt"));
        assert_eq!(nearest("temperature", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
