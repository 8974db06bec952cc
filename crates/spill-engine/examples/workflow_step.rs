//! `workflow-step` in an agent loop: one `StepSpill` per execution of a step, one read tool, nothing left at the end.
//!
//! `cargo run -p spill-engine --example workflow_step`

#![expect(
    clippy::print_stdout,
    reason = "an example shows what the model would see"
)]

use std::error::Error;

use serde_json::{Value, json};
use spill_engine::{
    CallId, READ_TOOL, Settings, StepId, StepSpill, Switch, Threshold, ToolResult, read_tool_schema,
};

/// What the model of this example does: it calls one tool, then reads the end of what was stored.
const SCRIPT: [&str; 2] = ["run_tests", READ_TOOL];

fn main() -> Result<(), Box<dyn Error>> {
    for message in run_step()? {
        println!("{message}\n");
    }
    Ok(())
}

/// One step execution. Returns the texts of its tool messages, as they stand in the prompt.
fn run_step() -> Result<Vec<String>, Box<dyn Error>> {
    // `Settings::from_lookup` takes them from the environment; here the lowest threshold that is sensible for the example.
    let settings = Settings {
        enabled: Switch::On,
        threshold: Threshold::new(8_192)?,
        ..Settings::DEFAULT
    };
    // Counting and logging are the caller's: an `Observer` is told what happens.
    let step = StepSpill::new(settings, StepId::new("review")?, StepSpill::unobserved());
    let mut tools = vec![json!({"name": "run_tests"})];
    let mut messages = Vec::new();
    for (iteration, tool) in (1..).zip(SCRIPT) {
        let call = CallId {
            iteration,
            index: 0,
        };
        let message = if tool == READ_TOOL {
            match step.read(&last_bytes(&messages, 200)?) {
                Ok(answer) => answer.render(),
                // A refusal is an ordinary tool error: its text tells the model what to do.
                Err(refusal) => refusal.to_string(),
            }
        } else {
            let admitted = step.admit(call, tool, ToolResult::text(output()));
            // `admitted.record_text` is the original, for the record of the step; no second copy of it exists.
            admitted.prompt.as_str().to_owned()
        };
        messages.push(message);
        // The read tool joins the list once, behind the others, with the first stored result.
        if step.offers_read() && tools.len() == 1 {
            let (description, parameters) = read_tool_schema();
            tools.push(
                json!({"name": READ_TOOL, "description": description, "parameters": parameters}),
            );
        }
    }
    // On every way out: answered, failed, aborted, timed out. Dropping the `StepSpill` does the same.
    step.release();
    Ok(messages)
}

fn output() -> String {
    let passed: String = (0..2_000).map(|n| format!("test {n} ... ok\n")).collect();
    format!("{passed}\ntest result: ok. 2000 passed; 0 failed\n")
}

/// The arguments that a model would write after reading the summary.
fn last_bytes(messages: &[String], length: u64) -> Result<Value, Box<dyn Error>> {
    let summary: Value = serde_json::from_str(messages.last().ok_or("a summary")?)?;
    let size = summary["size_bytes"].as_u64().ok_or("a size")?;
    Ok(json!({
        "spillover_ref": summary["spillover_ref"],
        "range": {"offset": size - length, "length": length},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_sees_a_summary_and_reads_the_end_of_the_whole() {
        let messages = run_step().expect("the example runs");
        let [summary, slice] = messages.as_slice() else {
            panic!("{messages:?}");
        };
        assert!(summary.len() < 4_096 && output().len() > 30_000);
        let (header, text) = slice.split_once('\n').expect("a header line");
        assert!(header.contains("\"next_offset\":null"), "{header}");
        assert_eq!(text, &output()[output().len() - 200..]);
    }
}
