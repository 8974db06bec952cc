//! Calls that fit the runs of a case.

use spill_record::{
    CallRecord, ContextBytes, PromptTokens, RunRecord, RunSet, SCHEMA, ToolCallRecord,
    ToolResultForm,
};
use spill_report::{Calls, Context, Rendered, render};
use spill_verdict::judge;

/// What tools, references and finish reasons are called.
pub(crate) struct Names<'a> {
    pub(crate) tool: &'a str,
    pub(crate) reference: &'a str,
    pub(crate) finish: &'a str,
}

pub(crate) const NAMES: Names<'_> = Names {
    tool: "read_file",
    reference: "spillover://step/i1c0.json",
    finish: "tool_calls",
};

/// A result inline, one stored and read back twice where the run stored any, and an answer.
pub(crate) fn calls_of(run: &RunRecord, names: &Names<'_>) -> Vec<CallRecord> {
    let stored = run.results_persisted.unwrap_or(0) > 0;
    let large = run.largest_result_bytes.unwrap_or(0);
    let result = |form, offset: Option<u64>, bytes: Option<u64>| ToolCallRecord {
        tool: names.tool.to_owned(),
        argument_bytes: 20,
        prompt_bytes: match form {
            ToolResultForm::Inline => large,
            ToolResultForm::Preview
            | ToolResultForm::Slice
            | ToolResultForm::Error
            | ToolResultForm::Cut => 2_000,
        },
        form,
        reference: bytes.map(|_| names.reference.to_owned()),
        offset_bytes: offset,
        stored_bytes: bytes,
    };
    let carried = if stored {
        result(ToolResultForm::Preview, None, Some(large))
    } else {
        result(ToolResultForm::Inline, None, None)
    };
    let read = |offset| vec![result(ToolResultForm::Slice, Some(offset), Some(1_000))];
    let mut news = vec![vec![], vec![carried]];
    if stored {
        news.extend([read(0), read(500)]);
    }
    let mut context = ContextBytes {
        system_bytes: 150,
        user_bytes: 250,
        tool_schema_bytes: 1_000,
        ..ContextBytes::default()
    };
    let calls = (0u64..).zip(news).map(|(call, new_results)| {
        for new in &new_results {
            match new.form {
                ToolResultForm::Inline | ToolResultForm::Error | ToolResultForm::Cut => {
                    context.inline_result_bytes += new.prompt_bytes;
                }
                ToolResultForm::Preview => context.preview_bytes += new.prompt_bytes,
                ToolResultForm::Slice => context.read_back_bytes += new.prompt_bytes,
            }
        }
        context.assistant_bytes += 40;
        CallRecord {
            schema: SCHEMA,
            run_id: run.run_id.clone(),
            call,
            iteration: call + 1,
            status: 200,
            tokens: Some(PromptTokens {
                uncached_input_tokens: 400 + call,
                cache_read_tokens: 100 * call,
                cache_write_tokens: 0,
                output_tokens: 12,
            }),
            request_bytes: 4_000,
            request_digest: "r".to_owned(),
            tools_digest: "t".to_owned(),
            context,
            new_results,
            calls_tools: vec![names.tool.to_owned()],
            finish_reason: names.finish.to_owned(),
            model_time_ms: None,
        }
    });
    calls.collect()
}

/// The calls of every run of a case.
pub(crate) fn all_calls(set: &RunSet, names: &Names<'_>) -> Vec<CallRecord> {
    set.runs
        .iter()
        .flat_map(|run| calls_of(run, names))
        .collect()
}

/// The report of a case with its calls.
pub(crate) fn rendered(set: &RunSet, names: &Names<'_>) -> Rendered {
    let verdict = judge(set);
    let mut calls = Calls::of(set, &verdict);
    let wanted = calls.wanted();
    for call in all_calls(set, names) {
        if wanted.contains(&call.run_id) {
            calls.take(call);
        }
    }
    let context = Context {
        calls: Some(&calls),
        baseline: None,
    };
    render(set, &verdict, context)
}
