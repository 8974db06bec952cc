//! `envelope` around data: rows leave the prompt, a JSON envelope stays, and the rows reach the next tool by reference.
//!
//! `cargo run -p spill-engine --example envelope`

#![expect(
    clippy::print_stdout,
    reason = "an example shows what the model would see"
)]

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    Bytes, Call, CallId, Envelope, EnvelopeOptions, Expansion, MemoryOptions, MemoryStore, Millis,
    Owner, Policy, ReadFailure, Reader, SpillStore, ToolResult,
};

/// The engine has no clock of its own.
const NOW: Millis = Millis::new(1_700_000_000_000);

fn main() -> Result<(), Box<dyn Error>> {
    let seen = run()?;
    println!("in the prompt:\n{:#}\n", seen.envelope);
    println!("a page, as resources/read answers:\n{:#}\n", seen.page);
    println!("the next tool gets {} rows", seen.rows_handed_on);
    Ok(())
}

struct Seen {
    envelope: Value,
    page: Value,
    rows_handed_on: usize,
}

fn run() -> Result<Seen, Box<dyn Error>> {
    let quota = MemoryOptions::shared(Bytes::new(100 << 20));
    let store = Arc::new(MemoryStore::new(quota));
    let options = EnvelopeOptions::from_json(&json!({
        "maxPayloadBytes": 4_096, "previewItems": 2, "spilloverTtlSeconds": 600,
    }))?;
    let policy = Envelope::new(options, store.clone());

    let session = Owner::new("session 1");
    let place = CallId {
        iteration: 1,
        index: 0,
    };
    let call = Call {
        now: NOW,
        ..Call::new("query", place).owned_by(&session)
    };
    let result = ToolResult {
        structured: Some(rows()),
        ..ToolResult::default()
    };
    let shaped = policy.shape(&call, result);
    let envelope: Value = serde_json::from_str(&shaped.prompt)?;
    let uri = envelope["resourceUri"].as_str().ok_or("a URI")?;

    // The model reads a page of it.
    let reader = Reader::Of(session.clone());
    let page = policy.read_resource(&format!("{uri}?offset=0&length=100"), &reader, NOW)?;

    // Or it hands the rows on without reading them: the reference is expanded before the next tool is called, for tools
    // that are allowed by name.
    let expansion = Expansion::allowing(["chart"], 1 << 20);
    let asked = json!({"title": "Orders", "rows": {"$spill": uri, "pointer": ""}});
    let expanded = expansion.expand("chart", asked, &|reference, range| {
        let key = policy.key_of(reference).ok_or(ReadFailure::NotFound)?;
        store.read(key, &reader, range, NOW)
    })?;
    let handed_on = expanded.arguments["rows"].as_array().ok_or("rows")?;
    Ok(Seen {
        rows_handed_on: handed_on.len(),
        page: page.to_json(),
        envelope,
    })
}

fn rows() -> Value {
    let row = |id: u32| json!({"id": id, "city": "Brno", "total": id * 37 % 9_973});
    (0..1_500).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_shows_two_rows_and_the_next_tool_gets_all() {
        let seen = run().expect("the example runs");
        assert_eq!(seen.envelope["totalItems"], 1_500);
        assert_eq!(seen.envelope["preview"].as_array().map(Vec::len), Some(2));
        assert!(seen.envelope.to_string().len() <= 4_096);
        let page = &seen.page["contents"][0];
        assert_eq!(page["text"].as_str().map(str::len), Some(100));
        assert_eq!(seen.rows_handed_on, 1_500);
    }
}
