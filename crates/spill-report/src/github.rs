use spill_verdict::{
    CandidateVerdict, Decision, Rule, RuleVerdict, State, Verdict, deciding_number, exit, plain,
};

/// Workflow commands for the log of a GitHub step, a line each: one error per rule that is broken
/// for a candidate that the ladder reached, with the input that decides.
///
/// A verdict that is no pass and breaks no rule gives one line with its sentence.
#[must_use]
pub fn github_annotations(verdict: &Verdict) -> Vec<String> {
    let candidates = verdict
        .candidates
        .iter()
        .filter(|candidate| candidate.considered);
    let broken = candidates.flat_map(|candidate| {
        let rules = Rule::ALL
            .into_iter()
            .filter_map(|rule| candidate.deciding(rule));
        rules
            .filter(|row| row.state == State::Broken)
            .map(|row| error(candidate, row))
    });
    let mut lines: Vec<String> = broken.collect();
    let level = match verdict.exit_code() {
        exit::ACCEPTED => return lines,
        exit::NOT_PROVEN => "warning",
        _ => "error",
    };
    if lines.is_empty() {
        lines.push(command(level, "spillgate", verdict.decision_sentence()));
    }
    lines
}

fn error(candidate: &CandidateVerdict, row: &RuleVerdict) -> String {
    let configuration = plain(&candidate.configuration);
    let title = format!(
        "spillgate: rule {} ({}) is broken for {configuration}",
        row.number,
        row.rule.title()
    );
    let elsewhere = candidate
        .rules
        .iter()
        .filter(|other| other.rule == row.rule && other.state == State::Broken)
        .count()
        .saturating_sub(1);
    let more = match elsewhere {
        0 => String::new(),
        count => format!(" (and on {count} further)"),
    };
    let words = format!(
        "{}{more}: {}; {}",
        row.place(),
        deciding_number(row),
        row.words
    );
    command("error", &title, &words)
}

/// A workflow command. Its value ends with its line, and its properties end at `:` and `,`.
fn command(level: &str, title: &str, message: &str) -> String {
    let escape = |text: &str| {
        text.replace('%', "%25")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    let title = escape(title).replace(':', "%3A").replace(',', "%2C");
    format!("::{level} title={title}::{}", escape(message))
}

/// What a step's output file gets: `decision`, `threshold`, `report` and `exit_code`.
///
/// `threshold` is the proposed one in bytes, `off` when spilling is to be off, and empty without a
/// decision. `report` is the path of the HTML report.
#[must_use]
pub fn github_outputs(verdict: &Verdict, report: &str) -> String {
    let threshold = match (verdict.decision, &verdict.proposed) {
        (Decision::None, _) | (_, None) => String::new(),
        (Decision::Keep | Decision::Change | Decision::Disable, Some(proposed)) => {
            match proposed.threshold_bytes {
                Some(bytes) => bytes.to_string(),
                None => "off".to_owned(),
            }
        }
    };
    [
        output("decision", verdict.decision.as_str()),
        output("threshold", &threshold),
        output("report", report),
        output("exit_code", &verdict.exit_code().to_string()),
    ]
    .concat()
}

/// One output between delimiters that do not occur in it, so that no value can set another output.
fn output(name: &str, value: &str) -> String {
    let mut delimiter = format!("spillgate_{name}");
    while value.contains(&delimiter) {
        delimiter.push('_');
    }
    format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
}

#[cfg(test)]
mod tests {
    use super::{command, output};

    #[test]
    fn a_command_is_one_line_and_its_title_ends_where_it_should() {
        assert_eq!(
            command("error", "a: b, c%", "50 %\r\n::set-output name=x::y"),
            "::error title=a%3A b%2C c%25::50 %25%0D%0A::set-output name=x::y"
        );
    }

    #[test]
    fn a_value_cannot_set_another_output() {
        assert_eq!(output("a", "b"), "a<<spillgate_a\nb\nspillgate_a\n");
        assert_eq!(
            output("a", "x\nspillgate_a\nb=c"),
            "a<<spillgate_a_\nx\nspillgate_a\nb=c\nspillgate_a_\n"
        );
    }
}
