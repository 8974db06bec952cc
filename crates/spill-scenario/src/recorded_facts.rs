//! Which strings of a recorded answer stem from tool results, and where to look for them.
//!
//! A fact is a string of the answer that stands in a result and was not said before: by the task, or by the recorded
//! model itself in a call's arguments. The simulated model is not given facts. It is given patterns, each of which
//! describes a place (what stands before the string, or behind it, on the same line, and how long the string is), so
//! that it can only report what it sees there.

use std::collections::HashSet;
use std::ops::Range;

use regex::Regex;

use crate::input::{Fact, place_of};
use crate::recorded::RecordedCall;

/// Facts of one recording at most: the first ones of the answer.
const MAX_FACTS: usize = 64;
/// Strings of the answer that are looked for at most.
const MAX_STRINGS: usize = 400;
/// Bytes of a string at least and at most.
const STRING_BYTES: std::ops::RangeInclusive<usize> = 4..=120;
/// Characters of what stands beside a string at most, and at least those that are no white space.
const BESIDE_MOST: usize = 32;
const BESIDE_LEAST: usize = 4;
/// Matches of a pattern in all results together at most: more would be an echo, not an answer.
const MAX_MATCHES: usize = 20;

/// What the recorded model said at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words<'t> {
    /// The text.
    pub text: &'t str,
    /// Calls whose results it had by then: the first so many.
    pub after_calls: usize,
}

/// What of a model's words stems from results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFacts {
    /// The facts, those of the last words first.
    pub facts: Vec<Fact>,
    /// Regular expressions that find them where they stand, and hold none of them.
    pub patterns: Vec<String>,
    /// Strings that stem from results and that no pattern tells apart from the text around them.
    pub without_place: u64,
    /// Whether the last words alone hold none, so that they are of all that the model said.
    pub of_all_words: bool,
}

/// Finds the facts of what a recorded model said, in the order in which it did: those of its last words, or else of all of
/// them. `told` is what it was told: system message, task, later messages.
#[must_use]
pub fn recorded_facts(words: &[Words<'_>], told: &[&str], calls: &[RecordedCall]) -> RecordedFacts {
    let Some((last, earlier)) = words.split_last() else {
        return RecordedFacts::default();
    };
    let of_last = facts_of(strings_of(last.text), words, told, calls);
    if !of_last.facts.is_empty() {
        return of_last;
    }
    let mut known = HashSet::new();
    let strings = earlier
        .iter()
        .rev()
        .flat_map(|words| strings_of(words.text));
    let strings = strings
        .filter(|string| known.insert(*string))
        .take(MAX_STRINGS);
    let of_all = facts_of(strings.collect(), words, told, calls);
    RecordedFacts {
        of_all_words: !of_all.facts.is_empty(),
        without_place: of_last.without_place + of_all.without_place,
        ..of_all
    }
}

fn facts_of(
    strings: Vec<&str>,
    words: &[Words<'_>],
    told: &[&str],
    calls: &[RecordedCall],
) -> RecordedFacts {
    let arguments: Vec<String> = calls
        .iter()
        .map(|call| texts_of(&call.arguments).join("\n"))
        .collect();
    let mut strings: Vec<(&str, Site)> = strings
        .into_iter()
        .filter(|string| !told.iter().any(|text| text.contains(string)))
        .filter_map(|string| {
            let first = words.iter().find(|words| words.text.contains(string))?;
            let had = first.after_calls.min(calls.len());
            Some((string, site_of(string, &calls[..had], &arguments)?))
        })
        .collect();
    let all: Vec<&str> = strings.iter().map(|(string, _)| *string).collect();
    strings.retain(|(string, _)| {
        let is_part = |other: &&str| other.len() > string.len() && other.contains(string);
        !all.iter().any(is_part)
    });
    strings.truncate(MAX_FACTS);
    let whole: Vec<&str> = strings.iter().map(|(string, _)| *string).collect();
    let mut found = RecordedFacts::default();
    let mut known = HashSet::new();
    for (string, site) in strings {
        let call = &calls[site.call];
        let Some(pattern) = pattern_of(&call.result, &site.range, &whole, calls) else {
            found.without_place += 1;
            continue;
        };
        found.facts.push(Fact {
            id: format!("answer-{:02}", found.facts.len() + 1),
            expect: string.to_owned(),
            carrier: call.id.clone(),
            carrier_bytes: call.result.len() as u64,
            place: Some(place_of(site.range.start, call.result.len())),
        });
        if known.insert(pattern.clone()) {
            found.patterns.push(pattern);
        }
    }
    found
}

/// Where a string stands first.
struct Site {
    call: usize,
    range: Range<usize>,
}

/// Every string and number in a call's arguments.
fn texts_of(arguments: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open: Vec<&serde_json::Value> = arguments.values().collect();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(text) => texts.push(text.clone()),
            serde_json::Value::Number(number) => texts.push(number.to_string()),
            serde_json::Value::Array(items) => open.extend(items),
            serde_json::Value::Object(fields) => open.extend(fields.values()),
            serde_json::Value::Null | serde_json::Value::Bool(_) => {}
        }
    }
    texts
}

/// The first result that holds the string, unless the recorded model had named it by then.
fn site_of(string: &str, calls: &[RecordedCall], arguments: &[String]) -> Option<Site> {
    for (index, call) in calls.iter().enumerate() {
        if arguments[index].contains(string) {
            return None;
        }
        if let Some(range) = word_in(&call.result, string) {
            return Some(Site { call: index, range });
        }
    }
    None
}

/// The first place of `string` in `text` that does not begin or end within a word.
fn word_in(text: &str, string: &str) -> Option<Range<usize>> {
    let is_word = |one: Option<char>| one.is_some_and(|one| one.is_alphanumeric() || one == '_');
    let first = is_word(string.chars().next());
    let last = is_word(string.chars().next_back());
    text.match_indices(string).find_map(|(at, _)| {
        let end = at + string.len();
        let within = (first && is_word(text[..at].chars().next_back()))
            || (last && is_word(text[end..].chars().next()));
        (!within).then_some(at..end)
    })
}

/// Strings of an answer that say something of their own: what is quoted, and words that are no plain ones.
fn strings_of(answer: &str) -> Vec<&str> {
    let mut strings: Vec<(usize, &str)> = Vec::new();
    for quote in ['`', '"'] {
        for line in answer.lines() {
            let quoted = line.split(quote).skip(1).step_by(2);
            strings.extend(quoted.map(|part| (place_in(answer, part), part.trim())));
        }
    }
    for word in answer.split_whitespace() {
        let word = word.trim_matches(|one: char| !one.is_alphanumeric() && !"/#$@".contains(one));
        if is_telling(word) {
            strings.push((place_in(answer, word), word));
        }
    }
    strings.sort_by_key(|(at, string)| (*at, std::cmp::Reverse(string.len())));
    let mut known = HashSet::new();
    strings
        .into_iter()
        .map(|(_, string)| string)
        .filter(|string| STRING_BYTES.contains(&string.len()) && known.insert(*string))
        .take(MAX_STRINGS)
        .collect()
}

/// Where a part begins in the text that it is a slice of.
fn place_in(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// A word with a digit, a sign within it, or a capital behind a small letter.
fn is_telling(word: &str) -> bool {
    let inner = word.trim_matches(|one: char| !one.is_alphanumeric());
    let has_sign = inner.contains(|one: char| "_/.:#@$%\\=".contains(one));
    let has_digit = word.contains(|one: char| one.is_ascii_digit());
    let mut letters = word.chars().zip(word.chars().skip(1));
    let has_hump = letters.any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    has_sign || has_digit || has_hump
}

/// A pattern for the string at `range`: by what stands before it, else by what stands behind it, else by its shape.
fn pattern_of(
    text: &str,
    range: &Range<usize>,
    facts: &[&str],
    calls: &[RecordedCall],
) -> Option<String> {
    let string = &text[range.clone()];
    let any = format!(".{{{}}}", string.chars().count());
    let before = before(&text[..range.start], facts);
    let behind = behind(&text[range.end..], facts);
    let candidates = [
        before.map(|before| format!("{}{any}", regex::escape(before))),
        behind.map(|behind| format!("{any}{}", regex::escape(behind))),
        shape(string),
    ];
    let line_start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[range.end..].find('\n');
    let line_end = line_end.map_or(text.len(), |at| range.end + at);
    let line = text[line_start..line_end].trim_end_matches('\r');
    candidates.into_iter().flatten().find(|pattern| {
        let Ok(regex) = Regex::new(pattern) else {
            return false;
        };
        let finds = regex
            .find_iter(line)
            .any(|found| found.as_str().contains(string));
        let of_call = |call: &RecordedCall| {
            let lines = call.result.lines().flat_map(|line| regex.find_iter(line));
            lines.take(MAX_MATCHES + 1).count()
        };
        let mut matches = 0;
        finds
            && calls.iter().all(|call| {
                matches += of_call(call);
                matches <= MAX_MATCHES
            })
    })
}

/// What stands before a string on its line, as far back as no fact is in it.
fn before<'t>(text: &'t str, facts: &[&str]) -> Option<&'t str> {
    let line = &text[text.rfind('\n').map_or(0, |at| at + 1)..];
    let start = line.char_indices().rev().nth(BESIDE_MOST - 1);
    let mut beside = &line[start.map_or(0, |(at, _)| at)..];
    for fact in facts {
        if let Some(at) = beside.rfind(fact) {
            beside = &beside[at + fact.len()..];
        }
    }
    is_enough(beside).then_some(beside)
}

/// What stands behind a string on its line, as far as no fact is in it.
fn behind<'t>(text: &'t str, facts: &[&str]) -> Option<&'t str> {
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let end = line.char_indices().nth(BESIDE_MOST);
    let mut beside = &line[..end.map_or(line.len(), |(at, _)| at)];
    for fact in facts {
        if let Some(at) = beside.find(fact) {
            beside = &beside[..at];
        }
    }
    is_enough(beside).then_some(beside)
}

fn is_enough(beside: &str) -> bool {
    beside.chars().filter(|one| !one.is_whitespace()).count() >= BESIDE_LEAST
}

/// Runs of letters and of digits with the signs between them; `None` when a plain word would do.
fn shape(string: &str) -> Option<String> {
    let mut shape = String::new();
    let mut runs = 0;
    let mut chars = string.chars().peekable();
    while let Some(one) = chars.next() {
        let (is_like, class): (fn(char) -> bool, &str) = if one.is_ascii_digit() {
            (|next| next.is_ascii_digit(), "[0-9]+")
        } else if one.is_alphabetic() {
            (char::is_alphabetic, r"\pL+")
        } else {
            shape.push_str(&regex::escape(&one.to_string()));
            continue;
        };
        while chars.next_if(|next| is_like(*next)).is_some() {}
        shape.push_str(class);
        runs += 1;
    }
    (runs > 1).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str, after_calls: usize) -> Words<'_> {
        Words { text, after_calls }
    }

    fn call(id: &str, arguments: &str, result: &str) -> RecordedCall {
        RecordedCall {
            id: id.to_owned(),
            turn: 1,
            tool: "cat".to_owned(),
            arguments: serde_json::from_str(arguments).expect("an object"),
            is_error: false,
            result: result.to_owned(),
        }
    }

    /// Facts as `string@carrier`, and patterns.
    fn check(
        answer: &str,
        said: &[&str],
        results: &[(&str, &str)],
        facts: &[&str],
        patterns: &[&str],
    ) {
        let calls: Vec<_> = results
            .iter()
            .zip(1..)
            .map(|((arguments, result), id)| call(&format!("{id}"), arguments, result))
            .collect();
        let found = recorded_facts(&[after(answer, calls.len())], said, &calls);
        let shown: Vec<_> = found
            .facts
            .iter()
            .map(|fact| format!("{}@{}", fact.expect, fact.carrier))
            .collect();
        assert_eq!(shown, facts, "{answer}");
        assert_eq!(found.patterns, patterns, "{answer}");
        for pattern in &found.patterns {
            for fact in &found.facts {
                assert!(!pattern.contains(&regex::escape(&fact.expect)), "{pattern}");
            }
        }
    }

    #[test]
    fn facts_stem_from_results_and_patterns_hold_none() {
        let row = r##"{"order_id": "#W2611340", "status": "pending"}"##;
        check(
            "Your order **#W2611340** is pending.",
            &["where is my order"],
            &[("{}", row)],
            &["#W2611340@1"],
            &[r#"\{"order_id": ".{9}"#],
        );
        // Said by the user, or by the model before a result showed it.
        check(
            "#W2611340 it is",
            &["order #W2611340?"],
            &[("{}", row)],
            &[],
            &[],
        );
        check(
            "#W2611340 it is",
            &[],
            &[(r##"{"id":"#W2611340"}"##, row)],
            &[],
            &[],
        );
        check(
            "#W2611340 it is",
            &[],
            &[("{}", row), (r##"{"id":"#W2611340"}"##, "ok")],
            &["#W2611340@1"],
            &[r#"\{"order_id": ".{9}"#],
        );
        // Of no result, within a word, plain words, nothing.
        check("#W9999999 is pending", &[], &[("{}", row)], &[], &[]);
        check("2611", &[], &[("{}", row)], &[], &[]);
        check("", &[], &[("{}", row)], &[], &[]);
        check("`x.rs`", &[], &[], &[], &[]);
    }

    #[test]
    fn a_place_is_what_stands_before_or_behind_or_a_shape() {
        check(
            "See src/lib.rs, line 1204.",
            &[],
            &[("{}", "src/lib.rs:1204: fn main\n")],
            &["src/lib.rs@1", "1204@1"],
            &[r"\pL+/\pL+\.\pL+", r".{4}: fn main"],
        );
        check(
            "It says `no such file`.",
            &[],
            &[("{}", "a\nopen: no such file\r\nb")],
            &["no such file@1"],
            &["open: .{12}"],
        );
        // Nothing tells the string apart: it is no fact.
        let many = "abc1\n".repeat(30);
        let calls = [call("1", "{}", &many)];
        let found = recorded_facts(&[after("abc1 def", 1)], &[], &calls);
        assert_eq!((found.facts.len(), found.without_place), (0, 1));
    }

    #[test]
    fn an_answer_gives_a_bounded_number_of_facts() {
        let lines: String = (0..1000)
            .map(|n| format!("key{n:04}x = value-{n:04}\n"))
            .collect();
        let answer: String = (0..1000).map(|n| format!("value-{n:04} ")).collect();
        let found = recorded_facts(&[after(&answer, 1)], &[], &[call("1", "{}", &lines)]);
        assert_eq!(found.facts.len(), MAX_FACTS);
    }

    #[test]
    fn where_the_last_words_hold_no_fact_all_words_count() {
        let calls = [
            call("1", "{}", "the disk is disk_77\n"),
            call("2", "{}", "its state is state_88, its owner owner_99\n"),
        ];
        let facts = |words: &[Words<'_>]| {
            let found = recorded_facts(words, &[], &calls);
            let facts = found.facts.into_iter().map(|fact| fact.expect);
            (facts.collect::<Vec<_>>(), found.of_all_words)
        };
        // `owner_99` was said before a result showed it: the model's own.
        let start = after("I look for owner_99", 0);
        let middle = after("it is disk_77", 1);
        let late = after("state_88 it is, of owner_99", 2);
        let both = vec!["state_88".to_owned(), "disk_77".to_owned()];
        assert_eq!(
            facts(&[start, middle, late, after("done", 2)]),
            (both, true)
        );
        let one = vec!["state_88".to_owned()];
        assert_eq!(facts(&[start, middle, late]), (one, false));
        assert_eq!(facts(&[start]), (Vec::new(), false));
        assert_eq!(facts(&[]), (Vec::new(), false));
    }
}
