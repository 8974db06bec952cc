//! The scenario file of a recording, as text.

use std::fmt::Write;

use spill_record::{FactPlace, is_unsafe};

use crate::input::Fact;

/// What a scenario of the recipe `recorded` says beside its calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedScenario {
    /// The scenario's and the input's name.
    pub name: String,
    /// The step's system message.
    pub system: String,
    /// The step's prompt.
    pub prompt: String,
    /// The file of its calls, beside it.
    pub calls_file: String,
    /// Calls that one answer asks for at most.
    pub parallel_calls: u64,
    /// Iterations of one step at most.
    pub iteration_limit: u64,
    /// What the answer is scored against.
    pub facts: Vec<Fact>,
    /// What the simulated model looks for.
    pub patterns: Vec<String>,
    /// What the recording lacks, and what was left out; one line each.
    pub notes: Vec<String>,
}

const HEAD: &str = "\
# A recorded transcript as a scenario: the tools return what they returned to the recorded agent.
#
# It holds the transcript's content: task, arguments, results, and strings of the answer. Treat it as you treat
# the transcript. Every key is described in scenarios/README.md.
";

const MODEL: &str = r#"# The simulated model asks for the recorded calls in their order, reads back what was stored according to its
# profile, and reports what `patterns` match in the texts that it sees. They describe places and hold no fact.
[model]
name = "simulated-1"
context_window_tokens = 400000
slice_bytes = "32KiB"
reading_budget_bytes = "128KiB"
max_findings = 400
population = { selective = 0.6, diligent = 0.3, hasty = 0.1 }
"#;

const CONFIGURATIONS: &str = r#"
# Candidates are tried in the order in which they stand here.
[[configurations]]
name = "off"
role = "control"
enabled = false
env = { CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED = "false" }

# What ships today: no variable is set, so that the shipped default itself is measured.
[[configurations]]
name = "128KiB"
role = "candidate"
shipped = true
threshold_bytes = "128KiB"

[[configurations]]
name = "32KiB"
role = "candidate"
threshold_bytes = "32KiB"
env = { CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD = "32768" }
"#;

/// The thresholds of a recorded scenario's candidates, in bytes: the shipped one first.
pub const RECORDED_THRESHOLDS: [u64; 2] = [131_072, 32_768];

impl RecordedScenario {
    /// Returns the file's text: off, 128 KiB and 32 KiB on this recording.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        let mut line = |line: std::fmt::Arguments<'_>| {
            text.write_fmt(line).expect("a string takes every write");
            text.push('\n');
        };
        line(format_args!("\nname = {}", quoted(&self.name)));
        line(format_args!("recipe = \"recorded\"\n"));
        line(format_args!("system = {}\n", quoted(&self.system)));
        line(format_args!("prompt = {}\n", quoted(&self.prompt)));
        line(format_args!(
            "repetitions = 5              # of each cell at stage full; stage quick takes 2\n"
        ));
        line(format_args!("[[inputs]]\nname = {}", quoted(&self.name)));
        line(format_args!(
            "source = \"recorded\"\npath = {}",
            quoted(&self.calls_file)
        ));
        line(format_args!("notes = {}\n", list(&self.notes)));
        if !self.facts.is_empty() {
            line(format_args!(
                "# Strings of the recorded answer that stem from results."
            ));
        }
        for fact in &self.facts {
            line(format_args!("[[inputs.facts]]\nid = {}", quoted(&fact.id)));
            line(format_args!(
                "expect = {}\ncarrier = {}",
                quoted(&fact.expect),
                quoted(&fact.carrier)
            ));
            if let Some(place) = fact.place {
                line(format_args!("place = {}", quoted(place_name(place))));
            }
            line(format_args!(""));
        }
        line(format_args!(
            "{MODEL}parallel_calls = {}",
            self.parallel_calls
        ));
        line(format_args!("patterns = {}\n", list(&self.patterns)));
        line(format_args!(
            "[limits]\niteration_limit = {}",
            self.iteration_limit
        ));
        text.push_str(CONFIGURATIONS);
        text
    }
}

fn place_name(place: FactPlace) -> &'static str {
    match place {
        FactPlace::Beginning => "beginning",
        FactPlace::Middle => "middle",
        FactPlace::End => "end",
    }
}

fn list(texts: &[String]) -> String {
    let mut list = "[".to_owned();
    for text in texts {
        list.push_str("\n    ");
        list.push_str(&quoted(text));
        list.push(',');
    }
    if !texts.is_empty() {
        list.push('\n');
    }
    list.push(']');
    list
}

/// A basic string of TOML. What could drive a terminal or reorder text is written as an escape; a text of several lines
/// stays one.
fn quoted(text: &str) -> String {
    let is_long = text.contains('\n');
    let mut quoted = if is_long { "\"\"\"\n" } else { "\"" }.to_owned();
    for one in text.chars() {
        match one {
            '\n' if is_long => quoted.push('\n'),
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(one);
            }
            one if is_unsafe(one) => {
                write!(quoted, "\\u{:04X}", u32::from(one)).expect("a string takes every write");
            }
            one => quoted.push(one),
        }
    }
    quoted.push_str(if is_long { "\"\"\"" } else { "\"" });
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>(), lines in "[a\n\r\"\\\\\u{202e}\0\t ]{0,20}") {
            for text in [text, lines] {
                let toml = format!("key = {}", quoted(&text));
                let table: toml::Table = toml.parse().expect("valid TOML");
                prop_assert_eq!(table["key"].as_str(), Some(text.as_str()));
                prop_assert!(toml.chars().all(|one| one == '\n' || !is_unsafe(one)));
            }
        }
    }
}
