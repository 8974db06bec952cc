//! From a journal entry to a record; the mocks know nothing of the record's format.

use spill_mocks::{LlmCallEntry, NewResult, ResultForm};
use spill_record::{
    CallRecord, ContextBytes, PromptTokens, SCHEMA, ToolCallRecord, ToolResultForm,
};

/// The record of one LLM call.
pub(crate) fn call_record(run_id: &str, entry: &LlmCallEntry) -> CallRecord {
    let context = entry.context;
    CallRecord {
        schema: SCHEMA,
        run_id: run_id.to_owned(),
        call: entry.call,
        iteration: entry.iteration,
        status: entry.status,
        tokens: (!entry.usage_is_missing).then_some(PromptTokens {
            uncached_input_tokens: entry.uncached_input_tokens,
            cache_read_tokens: entry.cache_read_tokens,
            cache_write_tokens: entry.cache_write_tokens,
            output_tokens: entry.output_tokens,
        }),
        request_bytes: entry.request_bytes,
        request_digest: entry.request_digest.clone(),
        tools_digest: entry.tools_digest.clone(),
        context: ContextBytes {
            system_bytes: context.system_bytes,
            user_bytes: context.user_bytes,
            assistant_bytes: context.assistant_bytes,
            inline_result_bytes: context.inline_result_bytes,
            preview_bytes: context.preview_bytes,
            read_back_bytes: context.read_back_bytes,
            tool_schema_bytes: context.tool_schema_bytes,
        },
        new_results: entry.new_results.iter().map(tool_call_record).collect(),
        calls_tools: entry.calls_tools.clone(),
        finish_reason: entry.finish_reason.clone(),
        model_time_ms: entry.model_time_ms,
    }
}

fn tool_call_record(result: &NewResult) -> ToolCallRecord {
    ToolCallRecord {
        tool: result.tool.clone(),
        argument_bytes: result.argument_bytes,
        prompt_bytes: result.prompt_bytes,
        form: match result.form {
            ResultForm::Inline => ToolResultForm::Inline,
            ResultForm::Preview => ToolResultForm::Preview,
            ResultForm::Slice => ToolResultForm::Slice,
            ResultForm::Error => ToolResultForm::Error,
            ResultForm::Cut => ToolResultForm::Cut,
        },
        reference: result.reference.clone(),
        offset_bytes: result.offset_bytes,
        stored_bytes: result.stored_bytes,
    }
}
