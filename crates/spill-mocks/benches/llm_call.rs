//! What one more LLM call costs the mock server, at 25 and at 250 calls before it: contexts of
//! 100 KB and 1 MB, each grown by the same 4 KB.
//!
//! `call` answers the request: parse, count, decide, journal, reply. `moved` is the least that a
//! context costs whatever the server does with it: it is compared once with the one before.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use spill_mocks::{MockRun, Registry};
use spill_scenario::{
    Class, FactsOrigin, Input, InputData, ModelSpec, Profile, Recipe, ServedInput,
};

const RUN: &str = "bench";
const TURN_BYTES: usize = 4000;
const CALLS: [(&str, usize); 2] = [("100KB", 25), ("1MB", 250)];
/// More files than any request has read, so that the model always asks for another.
const FILES: usize = 300;

fn run() -> MockRun {
    let input = Input {
        name: "input".to_owned(),
        class: Class::Large,
        data: InputData {
            recipe: Recipe::Review,
            files: Vec::new(),
            documents: Vec::new(),
            tables: Vec::new(),
            calls: Vec::new(),
        },
        facts: Vec::new(),
        facts_origin: FactsOrigin::Derived,
        notes: Vec::new(),
    };
    MockRun {
        run_id: RUN.to_owned(),
        recipe: Recipe::Review,
        served: Arc::new(ServedInput::new(&input, 1)),
        seed: 7,
        scenario: "bench".to_owned(),
        model: Arc::new(ModelSpec {
            name: "simulated".to_owned(),
            population: BTreeMap::from([(Profile::Selective, 1.0)]),
            context_window_tokens: 10_000_000,
            parallel_calls: 1,
            slice_bytes: 16_384,
            window_lines: 40,
            reading_budget_bytes: 65_536,
            max_findings: 100,
            patterns: Vec::new(),
            composite: false,
            recall: spill_scenario::defaults::RECALL.to_vec(),
            latency: None,
        }),
        profile: Profile::Selective,
        faults: Arc::from([]),
    }
}

fn path(number: usize) -> String {
    format!("src/module_{number:03}.rs")
}

/// A call and its result, as the built-in subject appends them.
fn turn(id: &str, tool: &str, arguments: &Value, result: &str) -> [Value; 2] {
    let call = json!({
        "id": id,
        "type": "function",
        "function": {"name": tool, "arguments": arguments.to_string()},
    });
    let content = format!("<tool-result>\n{result}\n</tool-result>");
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": content}),
    ]
}

/// The request after `calls` results.
fn request(calls: usize) -> Bytes {
    let list: Vec<Value> = (0..FILES)
        .map(|number| json!({"path": path(number), "status": "added", "diff_bytes": 1}))
        .collect();
    let list = Value::from(list).to_string();
    let mut messages = vec![
        json!({"role": "system", "content": "You review code changes."}),
        json!({"role": "user", "content": "Review the change."}),
    ];
    messages.extend(turn("call_list", "list_changed_files", &json!({}), &list));
    for number in 0..calls {
        let line =
            format!("+    let value_{number} = config.get(\"größe\").unwrap_or({number});\n");
        let diff = line.repeat(TURN_BYTES / line.len());
        let arguments = json!({"path": path(number)});
        messages.extend(turn(
            &format!("call_{number}"),
            "read_diff",
            &arguments,
            &diff,
        ));
    }
    let tool = |name: &str| {
        let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        json!({"type": "function", "function": {"name": name, "parameters": schema}})
    };
    let tools = ["list_changed_files", "read_diff", "read_file", "search"].map(tool);
    let body = json!({"model": "simulated", "messages": messages, "tools": tools});
    body.to_string().into()
}

fn one_more_call(criterion: &mut Criterion) {
    let tokens = Arc::default();
    let mut group = criterion.benchmark_group("llm");
    for (name, calls) in CALLS {
        let [before, after] = [request(calls - 1), request(calls)];
        group.bench_function(BenchmarkId::new("call", name), |bencher| {
            bencher.iter_batched(
                || {
                    let registry = Registry::new(Arc::clone(&tokens));
                    registry.register(run());
                    let reply = registry.chat(RUN, before.clone());
                    assert!(reply.is_some_and(|reply| !reply.starts_with(b"{\"error\"")));
                    (registry, after.clone())
                },
                |(registry, body)| {
                    let reply = registry.chat(RUN, body);
                    (registry, reply)
                },
                BatchSize::PerIteration,
            );
        });
        group.bench_function(BenchmarkId::new("moved", name), |bencher| {
            let same = Bytes::copy_from_slice(&after);
            bencher.iter(|| black_box(&*after) == black_box(&*same));
        });
    }
    group.finish();
}

criterion_group!(benches, one_more_call);
criterion_main!(benches);
