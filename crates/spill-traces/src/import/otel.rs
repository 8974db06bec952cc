//! OpenTelemetry spans as OTLP JSON, in the GenAI semantic conventions or in those of OpenInference. Spans of a trace arrive in
//! any order and in several records; they are put together at the end of the file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::otel_spans::{Span, SpanKind, spans_of};
use super::{Importer, Out};
use crate::blocks;
use crate::builder::CallHead;
use crate::chain::Chains;
use crate::chat;
use crate::message::{NewMessage, ResultHead};
use crate::model::{Format, Origin, Role, Transcript};
use crate::problem::{Place, ProblemKind};
use crate::usage::Usage;

#[derive(Default)]
pub(crate) struct Otel {
    /// Spans by trace, in the order of the traces' ids.
    traces: BTreeMap<String, Vec<Span>>,
}

impl Importer for Otel {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(value) = out.parse(text, place) else {
            return;
        };
        let documents = match value {
            Value::Array(documents) => documents,
            document => vec![document],
        };
        for document in documents {
            for span in spans_of(document, place, out) {
                self.traces
                    .entry(span.trace.clone())
                    .or_default()
                    .push(span);
            }
        }
    }

    fn finish(&mut self, place: &Place, out: &mut Out<'_>) {
        let mut traces: Vec<(String, Vec<Span>)> =
            std::mem::take(&mut self.traces).into_iter().collect();
        for (_, spans) in &mut traces {
            spans.sort_by_key(|span| span.start);
        }
        traces.sort_by_key(|(_, spans)| spans.first().and_then(|span| span.start));
        for (trace, spans) in traces {
            self::trace(&trace, spans, place, out);
        }
    }

    fn is_session(&self) -> bool {
        true
    }
}

fn trace(trace: &str, spans: Vec<Span>, place: &Place, out: &mut Out<'_>) {
    let mut chains = Chains::new(Format::Otel);
    let mut tools = Vec::new();
    let mut id = None;
    for mut span in spans {
        id = id.or_else(|| span.string("gen_ai.conversation.id"));
        match span.kind() {
            SpanKind::Model => model(&mut chains, &mut span, out),
            SpanKind::Tool => tools.push(span),
            // The usage on an agent's span is that of its calls once more.
            SpanKind::Agent => out.left_out("agent spans, whose usage repeats that of their calls"),
            SpanKind::Other => out.left_out("other spans"),
        }
    }
    if chains.is_empty() {
        let detail = format!("the trace {trace} has no model spans");
        return out.problem(place, ProblemKind::Empty, detail);
    }
    for span in tools {
        tool(&mut chains, span, out);
    }
    let id = id.unwrap_or_else(|| trace.to_owned());
    for mut builder in chains.into_builders() {
        builder.transcript.id = Some(id.clone());
        out.transcript(builder);
    }
}

fn model(chains: &mut Chains, span: &mut Span, out: &mut Out<'_>) {
    let place = span.place.clone();
    let mut messages = Vec::new();
    let mut head = NewMessage::new(Role::System, &place);
    for text in span.tool_schemas() {
        head.text(Origin::ToolSchemas, text);
    }
    if let Some(system) = span.json("gen_ai.system_instructions", out) {
        blocks::append(&mut head, Origin::System, system, &mut out.problems);
    }
    if !head.is_empty() {
        messages.push(head);
    }
    for message in span.messages("gen_ai.input.messages", "llm.input_messages", out) {
        messages.extend(chat::read(message, &place, &mut out.problems));
    }
    let head = CallHead {
        id: span.string("gen_ai.response.id"),
        model: [
            "gen_ai.response.model",
            "llm.model_name",
            "gen_ai.request.model",
        ]
        .iter()
        .find_map(|name| span.string(name)),
        time: span.start,
        usage: usage(span),
        copied: false,
    };
    let ticket = chains.request(messages, head, &place);
    // OpenInference writes the items of one response as several messages.
    let mut answer: Option<NewMessage> = None;
    for message in span.messages("gen_ai.output.messages", "llm.output_messages", out) {
        let Some(message) = chat::read(message, &place, &mut out.problems) else {
            continue;
        };
        match &mut answer {
            Some(answer) => answer.pieces.extend(message.pieces),
            None => answer = Some(message),
        }
    }
    if let Some(answer) = answer {
        chains.response(ticket, answer);
    }
}

/// Input counts include what was cached, in both conventions.
fn usage(span: &Span) -> Option<Usage> {
    let first = |names: &[&str]| names.iter().find_map(|name| span.number(name));
    let input = first(&["gen_ai.usage.input_tokens", "llm.token_count.prompt"]);
    let output = first(&["gen_ai.usage.output_tokens", "llm.token_count.completion"]);
    let read = first(&[
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "llm.token_count.prompt_details.cache_read",
    ]);
    let written = first(&[
        "gen_ai.usage.cache_creation.input_tokens",
        "gen_ai.usage.details.cache_write_tokens",
        "llm.token_count.prompt_details.cache_write",
    ]);
    let mut usage = Usage::from_total(input, read, output);
    if let Some(written) = written {
        usage.cache_write_tokens = Some(written);
        usage.uncached_input_tokens = usage
            .uncached_input_tokens
            .and_then(|tokens| tokens.checked_sub(written));
    }
    usage.recorded()
}

/// A tool span's result is in the next request already, unless none followed or content was not captured there.
fn tool(chains: &mut Chains, mut span: Span, out: &mut Out<'_>) {
    let output = ["gen_ai.tool.call.result", "output.value"]
        .iter()
        .find_map(|name| span.take_string(name));
    let name = ["gen_ai.tool.name", "tool.name"]
        .iter()
        .find_map(|name| span.string(name));
    let id = span.string("gen_ai.tool.call.id");
    let Some(name) = name else {
        return out.left_out("tool spans without a tool's name (handoffs)");
    };
    let Some(output) = output else {
        return out.left_out("tool spans without a result (content not captured)");
    };
    let is_known = |transcript: &Transcript| {
        transcript.results.iter().any(|result| match &id {
            Some(id) => result.call_id.as_ref() == Some(id),
            None => {
                let pieces = transcript.pieces_of(result);
                matches!(pieces, [piece] if *piece.text == *output)
            }
        })
    };
    if chains.any(is_known) {
        return out.left_out("tool spans, whose results are in the next request");
    }
    let mut message = NewMessage::new(Role::Tool, &span.place);
    let head = ResultHead {
        call_id: id.clone(),
        tool: Some(name),
        time: span.start,
        ..ResultHead::default()
    };
    message.result(head, output);
    chains.park(message, |transcript| {
        let mut pieces = transcript.messages.iter().flat_map(|m| &m.pieces);
        id.is_some() && pieces.any(|piece| piece.call_id == id)
    });
}
