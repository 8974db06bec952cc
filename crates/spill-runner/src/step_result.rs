//! What the runner reads of a subject's step result; see the subject's own documentation.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use spill_record::EndReason;

/// The step result of any subject: one JSON object on standard output.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepResult {
    pub(crate) end_reason: EndReason,
    pub(crate) iterations: u64,
    pub(crate) hit_iteration_limit: bool,
    pub(crate) final_answer: Option<String>,
    pub(crate) tools_called: Vec<ToolCalled>,
    pub(crate) tokens_used: Option<TokensUsed>,
    pub(crate) body_bytes: u64,
    pub(crate) llm_calls: u64,
    pub(crate) llm_retries: u64,
    pub(crate) spill: SpillUsage,
    pub(crate) duration_ms: f64,
    pub(crate) settings: Option<Value>,
    pub(crate) error: Option<String>,
}

/// An entry of `toolsCalled`; a read-back has no result.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolCalled {
    pub(crate) result: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokensUsed {
    pub(crate) uncached_input: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) output: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpillUsage {
    pub(crate) persisted: u64,
    pub(crate) persisted_by_tool: BTreeMap<String, u64>,
    pub(crate) store_peak_bytes: u64,
    pub(crate) reads: u64,
    pub(crate) reads_with_range: u64,
    pub(crate) read_bytes: u64,
    pub(crate) reread_bytes: u64,
    pub(crate) distinct_read: u64,
}

/// Reads a step result from what the subject printed: the last line that is not blank.
pub(crate) fn parse(stdout: &[u8]) -> Result<StepResult, String> {
    let text = std::str::from_utf8(stdout)
        .map_err(|error| format!("standard output is not UTF-8: {error}"))?;
    let line = text
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .ok_or("nothing was printed on standard output")?;
    // The parser's own message may quote what the subject printed; its position cannot.
    serde_json::from_str(line).map_err(|error| {
        format!(
            "standard output does not end in a step result ({:?} error at column {})",
            error.classify(),
            error.column()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(stdout: &[u8], want: &str) {
        let error = parse(stdout).expect_err("this is no step result");
        assert!(error.contains(want), "{error}");
    }

    #[test]
    fn what_is_no_step_result_is_refused_without_quoting_it() {
        check_refused(b"", "nothing was printed");
        check_refused(b" \n\n", "nothing was printed");
        check_refused(b"\xff\xfe", "not UTF-8");
        check_refused(b"hello", "Syntax error at column 1");
        check_refused(b"{}", "Data error at column 2");
        let secret = parse(b"{\"endReason\":\"secret\"}").expect_err("no such reason");
        assert!(!secret.contains("secret"), "{secret}");
    }
}
