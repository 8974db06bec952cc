//! API captures: JSONL of `{type: "request", request_params}` and `{type: "response", response}` records, or of records that
//! have both as `request` and `response`. Requests repeat the history, so this is the one format whose contexts are recorded.

use std::collections::VecDeque;

use serde_json::Value;

use super::{Importer, Out};
use crate::blocks;
use crate::builder::CallHead;
use crate::chain::{Chains, Ticket};
use crate::chat;
use crate::json::{str_of, string_of, take, take_array};
use crate::message::NewMessage;
use crate::model::{Format, Origin, Role};
use crate::problem::{Place, ProblemKind};
use crate::time::Timestamp;

pub(crate) struct ApiCapture {
    chains: Chains,
    open: VecDeque<Ticket>,
}

impl ApiCapture {
    pub(crate) fn new() -> Self {
        Self {
            chains: Chains::new(Format::ApiCapture),
            open: VecDeque::new(),
        }
    }
}

impl Importer for ApiCapture {
    fn record(&mut self, text: &str, place: &Place, out: &mut Out<'_>) {
        let Some(mut value) = out.parse(text, place) else {
            return;
        };
        let time = Timestamp::from_json(value.get("timestamp"));
        let request = take(&mut value, "request_params").or_else(|| take(&mut value, "request"));
        let response = take(&mut value, "response");
        if request.is_none() && response.is_none() {
            let kind = str_of(&value, "type").unwrap_or_default();
            let detail = format!("record of type {kind:?} with neither request nor response");
            return out.problem(place, ProblemKind::BadField, detail);
        }
        if let Some(request) = request {
            self.request(request, time, place, out);
        }
        if let Some(response) = response {
            self.response(response, time, place, out);
        }
    }

    fn finish(&mut self, place: &Place, out: &mut Out<'_>) {
        for _ in self.open.drain(..) {
            out.problem(place, ProblemKind::Pairing, "a request without a response");
        }
        let chains = std::mem::replace(&mut self.chains, Chains::new(Format::ApiCapture));
        for builder in chains.into_builders() {
            out.transcript(builder);
        }
    }

    fn is_session(&self) -> bool {
        true
    }
}

impl ApiCapture {
    fn request(
        &mut self,
        mut request: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) {
        if request.get("messages").is_none() {
            return out.problem(place, ProblemKind::BadField, "request without messages");
        }
        let mut messages = Vec::new();
        let mut head = NewMessage::new(Role::System, place);
        if let Some(tools) = take(&mut request, "tools") {
            head.text(Origin::ToolSchemas, tools.to_string());
        }
        if let Some(system) = take(&mut request, "system") {
            blocks::append(&mut head, Origin::System, system, &mut out.problems);
        }
        if !head.is_empty() {
            messages.push(head);
        }
        for message in take_array(&mut request, "messages") {
            messages.extend(chat::read(message, place, &mut out.problems));
        }
        let head = CallHead {
            model: string_of(&request, "model"),
            time,
            ..CallHead::default()
        };
        self.open
            .push_back(self.chains.request(messages, head, place));
    }

    fn response(
        &mut self,
        mut response: Value,
        time: Option<Timestamp>,
        place: &Place,
        out: &mut Out<'_>,
    ) {
        if self.open.len() > 1 {
            let detail = "several requests are open; the response is taken for the oldest";
            out.problem(place, ProblemKind::Pairing, detail);
        }
        let Some(ticket) = self.open.pop_front() else {
            return out.problem(place, ProblemKind::Pairing, "a response without a request");
        };
        let call = self.chains.head(ticket);
        call.id = string_of(&response, "id");
        call.time = time.or(call.time);
        call.usage = response.get("usage").and_then(chat::usage);
        if let Some(model) = string_of(&response, "model") {
            call.model = Some(model);
        }
        let message = match take_array(&mut response, "choices").into_iter().next() {
            Some(mut choice) => take(&mut choice, "message"),
            None => response.get("content").is_some().then_some(response),
        };
        let Some(message) = message else {
            return out.problem(place, ProblemKind::BadField, "response without a message");
        };
        if let Some(answer) = chat::read(message, place, &mut out.problems) {
            self.chains.response(ticket, answer);
        }
    }
}
