//! The reading rules: what the simulated model notices in a text.
//!
//! Every rule looks at one line at a time. A line of which only a part is visible is not read; of
//! a document's such line the whole sentences are.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use spill_scenario::{ModelSpec, strip_canaries};

use crate::record_rules;

/// Characters of a key sentence that a finding quotes.
const SENTENCE_LIMIT: usize = 160;

/// What kind of text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TextKind {
    Diff,
    File,
    Document,
    /// A JSON array of flat objects.
    Rows,
    /// Comma-separated values.
    Csv,
    Log,
    /// What a tool of a transcript returned: only patterns are looked for.
    Recorded,
}

/// Which ends of a text are cuts, with more text beyond them that is not visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Cuts {
    pub(crate) start: bool,
    pub(crate) end: bool,
}

/// Something noticed in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Byte offset in the text, canaries taken out.
    pub(crate) at: usize,
    /// The finding as an answer states it.
    pub(crate) text: String,
}

/// The rules of one model: the built-in ones and the patterns of its scenario.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    patterns: Vec<Regex>,
}

impl Rules {
    /// The rules of `model`; a pattern that is no regular expression finds nothing.
    pub(crate) fn new(model: &ModelSpec) -> Self {
        let compiled = model.patterns.iter().map(|pattern| Regex::new(pattern));
        Self {
            patterns: compiled.filter_map(Result::ok).collect(),
        }
    }

    /// The patterns in one string that differs where they do.
    pub(crate) fn key(&self) -> String {
        let patterns: Vec<_> = self.patterns.iter().map(Regex::as_str).collect();
        format!("{patterns:?}")
    }

    /// Findings in `text` by place. Canaries are taken out first.
    pub(crate) fn read(
        &self,
        kind: TextKind,
        carrier: &str,
        text: &str,
        cuts: Cuts,
    ) -> Vec<Finding> {
        let text = strip_canaries(text);
        let mut findings = match kind {
            TextKind::Diff | TextKind::File => code_findings(kind, carrier, &text, cuts),
            TextKind::Document => document_findings(&text, cuts),
            TextKind::Rows => record_rules::of_rows(carrier, &text, cuts),
            TextKind::Csv => record_rules::of_csv(carrier, &text, cuts),
            TextKind::Log => record_rules::of_log(carrier, &text, cuts),
            TextKind::Recorded => Vec::new(),
        };
        self.match_patterns(kind, carrier, &text, cuts, &mut findings);
        findings.sort_by_key(|finding| finding.at);
        findings
    }

    fn match_patterns(
        &self,
        kind: TextKind,
        carrier: &str,
        text: &str,
        cuts: Cuts,
        findings: &mut Vec<Finding>,
    ) {
        if self.patterns.is_empty() {
            return;
        }
        // Its patterns are of one place within a line: what of the line is beyond a cut does not matter.
        let whole = match kind {
            TextKind::Recorded => 0..text.len(),
            TextKind::Diff
            | TextKind::File
            | TextKind::Document
            | TextKind::Rows
            | TextKind::Csv
            | TextKind::Log => whole_lines(text, cuts),
        };
        let mut at = whole.start;
        for raw in text[whole].split_inclusive('\n') {
            if let Some(line) = code_line(kind, raw.trim_end_matches(['\n', '\r'])) {
                for pattern in &self.patterns {
                    for found in pattern.find_iter(line).filter(|found| !found.is_empty()) {
                        findings.push(Finding {
                            at,
                            text: format!("{carrier}: pattern: {}", found.as_str()),
                        });
                    }
                }
            }
            at += raw.len();
        }
    }
}

struct CodeRule {
    name: &'static str,
    regex: Regex,
}

static CODE_RULES: LazyLock<Vec<CodeRule>> = LazyLock::new(|| {
    [
        (
            "unwrap-on-input",
            r"let\s+(?:mut\s+)?(\w+)\s*=.*\.parse::<\w+>\(\)\.unwrap\(\)",
        ),
        ("swallowed-error", r"let _(\w+) = .*\.ok\(\);"),
        ("off-by-one", r"while (\w+) <= \w+\.len\(\)"),
        (
            "sql-from-input",
            r#"(\w+)\s*=\s*f"(?:SELECT|DELETE|UPDATE|INSERT) [^"]*\{"#,
        ),
        (
            "shell-injection",
            r"(\w+)\s*=\s*subprocess\.\w+\(.*shell=True",
        ),
        (
            "hard-coded-secret",
            r#"(\w+)\s*=\s*"(?:key|tok)_[a-z0-9]{12,}""#,
        ),
        ("weak-hash", r"(\w+)\s*=\s*hashlib\.md5\("),
        (
            "tls-verify-off",
            r"(\w+)\s*=\s*requests\.\w+\(.*verify=False",
        ),
        ("todo-left", r"(?:TODO|FIXME)[:( ]+(\w+)"),
    ]
    .into_iter()
    .map(|(name, pattern)| CodeRule {
        name,
        regex: Regex::new(pattern).expect("the pattern is valid"),
    })
    .collect()
});

/// What every line that a code rule matches contains: one pass over the text finds the few lines
/// that are worth a closer look.
static CODE_HINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"\(\)\.unwrap\(\)|\.ok\(\);|\.len\(\)|f"SELECT |f"DELETE |f"UPDATE |f"INSERT |shell=True|"key_|"tok_|hashlib\.md5\(|verify=False|TODO|FIXME"#,
    )
    .expect("the pattern is valid")
});

fn code_findings(kind: TextKind, carrier: &str, text: &str, cuts: Cuts) -> Vec<Finding> {
    let whole = whole_lines(text, cuts);
    let mut findings = Vec::new();
    let mut from = whole.start;
    while let Some(hint) = CODE_HINT.find(&text[from..whole.end]) {
        let bounds = line_at(text, &whole, from + hint.start());
        let line = text[bounds.clone()].trim_end_matches('\r');
        if let Some(line) = code_line(kind, line) {
            match_code(carrier, line, bounds.start, &mut findings);
        }
        from = whole.end.min(bounds.end + 1);
    }
    findings
}

fn match_code(carrier: &str, line: &str, start: usize, findings: &mut Vec<Finding>) {
    for rule in CODE_RULES.iter() {
        for found in rule.regex.captures_iter(line) {
            let at = found.get(0).map_or(0, |found| found.start());
            findings.push(Finding {
                at: start + at,
                text: format!("{carrier}: {}: {}", rule.name, &found[1]),
            });
        }
    }
}

/// The line as code: of a diff without its first sign, and not at all when it is gone after the
/// change or is a header.
fn code_line(kind: TextKind, line: &str) -> Option<&str> {
    match kind {
        TextKind::File
        | TextKind::Document
        | TextKind::Rows
        | TextKind::Csv
        | TextKind::Log
        | TextKind::Recorded => Some(line),
        TextKind::Diff if line.starts_with(['-', '@']) => None,
        TextKind::Diff => Some(line.strip_prefix(['+', ' ']).unwrap_or(line)),
    }
}

/// The part of a text that is whole lines.
pub(crate) fn whole_lines(text: &str, cuts: Cuts) -> Range<usize> {
    let start = match cuts.start {
        true => memchr::memchr(b'\n', text.as_bytes()).map_or(text.len(), |at| at + 1),
        false => 0,
    };
    let end = match cuts.end {
        true => memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1),
        false => text.len(),
    };
    start..end.max(start)
}

fn line_at(text: &str, within: &Range<usize>, at: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[within.start..at])
        .map_or(within.start, |found| within.start + found + 1);
    let end = memchr::memchr(b'\n', &bytes[at..within.end]).map_or(within.end, |found| at + found);
    start..end
}

static KEY_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u:\b)(?:must|shall|decided|deadline is|limit is)(?-u:\b)")
        .expect("the pattern is valid")
});

static HEADING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)^#{1,2} (.+)$").expect("the pattern is valid"));

fn document_findings(text: &str, cuts: Cuts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let whole = whole_lines(text, cuts);
    for heading in HEADING.captures_iter(&text[whole.clone()]) {
        let at = whole.start + heading.get(0).map_or(0, |found| found.start());
        let title = heading[1].trim();
        if !title.is_empty() {
            findings.push(Finding {
                at,
                text: format!("section: {title}"),
            });
        }
    }
    let visible = whole_sentences(text, cuts);
    let mut from = visible.start;
    while let Some(word) = KEY_WORDS.find(&text[from..visible.end]) {
        let line = line_at(text, &visible, from + word.start());
        let sentence = sentence_at(text, &line, from + word.start());
        from = visible.end.min(sentence.end.max(from + word.end()));
        if !HEADING.is_match(&text[line]) {
            let quoted = folded(&text[sentence.clone()]);
            findings.push(Finding {
                at: sentence.start,
                text: format!("key: {quoted}"),
            });
        }
    }
    findings
}

/// The part of a text from the first to the last known border of a sentence.
fn whole_sentences(text: &str, cuts: Cuts) -> Range<usize> {
    let start = match cuts.start {
        true => sentence_ends(text).next().unwrap_or(text.len()),
        false => 0,
    };
    let end = match cuts.end {
        true => last_sentence_end(text),
        false => text.len(),
    };
    start..end.max(start)
}

/// Offsets behind each line feed and each `.`, `!` or `?` that white space or the end follows.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .filter(|at| ends_sentence(bytes, *at))
        .map(|at| at + 1)
}

fn last_sentence_end(text: &str) -> usize {
    // What follows a last full stop is not visible, so it does not count as an end.
    let bytes = text.as_bytes();
    let is_end = |at: &usize| at + 1 < bytes.len() || bytes[*at] == b'\n';
    (0..bytes.len())
        .rev()
        .find(|at| is_end(at) && ends_sentence(bytes, *at))
        .map_or(0, |at| at + 1)
}

fn ends_sentence(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\n' => true,
        b'.' | b'!' | b'?' => bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace),
        _ => false,
    }
}

fn sentence_at(text: &str, line: &Range<usize>, at: usize) -> Range<usize> {
    let before = &text[line.start..at];
    let start = (0..before.len())
        .rev()
        .find(|at| ends_sentence(text.as_bytes(), line.start + at))
        .map_or(line.start, |found| line.start + found + 1);
    let end = (at..line.end)
        .find(|at| ends_sentence(text.as_bytes(), *at))
        .map_or(line.end, |found| found + 1);
    start..end
}

fn folded(sentence: &str) -> String {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    words.join(" ").chars().take(SENTENCE_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Cuts = Cuts {
        start: true,
        end: true,
    };
    const WHOLE: Cuts = Cuts {
        start: false,
        end: false,
    };

    fn check(kind: TextKind, text: &str, cuts: Cuts, expected: &[&str]) {
        let findings = Rules::default().read(kind, "p", text, cuts);
        let texts: Vec<_> = findings.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(texts, expected, "{text:?}");
    }

    fn check_rule(line: &str, expected: &str) {
        check(TextKind::File, line, WHOLE, &[expected]);
        check(TextKind::Diff, &format!("+{line}\n"), WHOLE, &[expected]);
        check(TextKind::Diff, &format!(" {line}\r\n"), WHOLE, &[expected]);
        check(TextKind::Diff, &format!("-{line}\n"), WHOLE, &[]);
        check(TextKind::File, &format!("a\n{line}\nb"), OPEN, &[expected]);
        check(TextKind::File, &format!("{line}\nb"), OPEN, &[]);
        check(TextKind::File, &format!("a\n{line}"), OPEN, &[]);
    }

    #[test]
    fn each_code_rule_finds_its_line() {
        check_rule(
            "let mut port = args[1].parse::<u16>().unwrap();",
            "p: unwrap-on-input: port",
        );
        check_rule("let _sent = tx.send(1).ok();", "p: swallowed-error: sent");
        check_rule("while i <= items.len() {", "p: off-by-one: i");
        check_rule(
            "query = f\"SELECT * FROM t WHERE id = {id}\"",
            "p: sql-from-input: query",
        );
        check_rule(
            "out = subprocess.run(cmd, shell=True)",
            "p: shell-injection: out",
        );
        check_rule(
            "TOKEN = \"tok_abcdef012345\"",
            "p: hard-coded-secret: TOKEN",
        );
        check_rule("digest = hashlib.md5(data)", "p: weak-hash: digest");
        check_rule(
            "answer = requests.get(url, verify=False)",
            "p: tls-verify-off: answer",
        );
        check_rule("// TODO(anna): later", "p: todo-left: anna");
        check_rule("# FIXME: later", "p: todo-left: later");
    }

    #[test]
    fn lines_that_only_look_like_it_are_not_found() {
        check(TextKind::File, "let x = f().unwrap();", WHOLE, &[]);
        check(TextKind::File, "if i <= items.len() {", WHOLE, &[]);
        check(TextKind::File, "TOKEN = \"tok_abc\"", WHOLE, &[]);
        check(TextKind::Diff, "@@ -1 +1 @@ TODO: x", WHOLE, &[]);
        check(TextKind::File, "", OPEN, &[]);
    }

    #[test]
    fn documents_give_sections_and_key_sentences() {
        check(
            TextKind::Document,
            "# Title \n\nWe met. It was decided  to go! Nothing else.\n### You must\n## What must be\n",
            WHOLE,
            &[
                "section: Title",
                "key: It was decided to go!",
                "key: ### You must",
                "section: What must be",
            ],
        );
        check(
            TextKind::Document,
            "The limit is 1.5 MB and the deadline is Friday",
            WHOLE,
            &["key: The limit is 1.5 MB and the deadline is Friday"],
        );
        check(TextKind::Document, "mustard and marshall", WHOLE, &[]);
        let long = format!("{} must", "é".repeat(300));
        check(
            TextKind::Document,
            &long,
            WHOLE,
            &[&format!("key: {}", "é".repeat(160))],
        );
    }

    #[test]
    fn of_a_cut_line_only_whole_sentences_count() {
        let text = "you must not. All must go. This must be 1.";
        check(TextKind::Document, text, OPEN, &["key: All must go."]);
        check(TextKind::Document, "must", OPEN, &[]);
        check(TextKind::Document, "## must\n", OPEN, &[]);
    }

    #[test]
    fn canaries_are_never_quoted() {
        check(
            TextKind::Document,
            "sgc0123456789abc\nAll must sgc0123456789abc go.\nsgc0123456789abc",
            WHOLE,
            &["key: All must go."],
        );
    }

    #[test]
    fn patterns_of_the_scenario_are_findings_too() {
        let rules = Rules {
            patterns: vec![Regex::new(r"CVE-\d+").expect("valid")],
        };
        let found = rules.read(TextKind::Diff, "p", "-CVE-1\n+CVE-2 CVE-3\n", WHOLE);
        let texts: Vec<_> = found.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(texts, ["p: pattern: CVE-2", "p: pattern: CVE-3"]);
    }
}
