//! Every way to replace a result names a reference, and the call that its hint names resolves it.

use std::sync::Arc;

use serde_json::{Value, json};
use spill_engine::{
    AnswerCap, Ask, Block, Call, Envelope, FileOptions, FileStore, InlineCap, MemoryOptions,
    MemoryStore, Millis, Pattern, Payload, Policy, READ_TOOL, Reader, Reading, SearchAsk,
    SeededNames, Settings, SharedText, SpillStore, ToolResult, Verdict,
};

use super::{CALL, cap_options, envelope_options, owner, rows, step};

/// Output of a command: it has no path of its own.
fn output() -> String {
    (0..2_000).map(|line| format!("output {line}\n")).collect()
}

fn stores(home: &tempfile::TempDir) -> [Arc<dyn SpillStore>; 2] {
    let root = home.path().canonicalize().expect("it exists").join("spill");
    let names = Arc::new(SeededNames::new(3));
    let memory = MemoryOptions::shared(spill_engine::Bytes::new(1 << 30)).with_names(names);
    [
        Arc::new(MemoryStore::new(memory)),
        Arc::new(FileStore::new(FileOptions::new(root)).expect("a path")),
    ]
}

/// Reads the notice as a model does, and makes both calls that it names: a read with offset and limit, and a grep.
#[track_caller]
fn check_notice(store: &dyn SpillStore, prompt: &str, whole: &str) {
    let (_, notice) = prompt
        .rsplit_once("Full formatted result stored at: ")
        .expect("a notice");
    let (locator, hint) = notice.split_once(". ").expect("a hint");
    assert!(
        hint.starts_with("Use read with offset/limit, or grep this path"),
        "{hint}"
    );
    let key = store.key_of(locator).expect("the locator leads somewhere");
    let cap = AnswerCap::new(4_096).expect("a cap");
    let reading = Reading::new(store, Reader::Of(owner()), cap);
    let arguments = json!({"offset": 100, "length": 50});
    let ask = Ask::from_arguments(arguments.as_object().expect("an object")).expect("an ask");
    let read = reading.answer(key, &ask, Millis::new(0)).expect("a read");
    assert_eq!(read.bytes(), &whole.as_bytes()[100..150]);
    let last = whole.trim_end().rsplit(['\n', ',']).next().expect("an end");
    let grep = Ask::Search(SearchAsk {
        pattern: Pattern::Literal(last.to_owned()),
        context: 0,
        from: 0,
        most: None,
    });
    let found = reading.answer(key, &grep, Millis::new(0)).expect("a grep");
    assert!(found.text().contains(last));
}

#[test]
fn fault_39_the_hint_of_each_capped_text_can_be_followed() {
    let home = tempfile::tempdir().expect("a directory");
    let owner = owner();
    let call = Call::new("run", CALL).owned_by(&owner);
    let text = output();
    let value = rows(800);
    for store in stores(&home) {
        for options in [
            json!({"maxInlineBytes": 300}),
            json!({"maxInlineBytes": 700}),
            json!({"maxInlineBytes": 5_000}),
            json!({"maxInlineBytes": 5_000, "layout": "glued"}),
            json!({"maxInlineBytes": 5_000, "preview": "content"}),
            json!({"maxInlineBytes": 5_000, "previewShare": 0.1}),
            json!({"maxInlineBytes": 5_000, "mixedContent": "bound-text"}),
        ] {
            let policy = InlineCap::new(cap_options(&options), store.clone());
            let shaped = |result: ToolResult| policy.shape(&call, result).prompt.to_string();
            check_notice(&*store, &shaped(ToolResult::text(text.clone())), &text);
            check_notice(&*store, &shaped(ToolResult::error(text.clone())), &text);
            let structured = ToolResult {
                structured: Some(value.clone()),
                ..ToolResult::default()
            };
            check_notice(&*store, &shaped(structured), &value.to_string());
            let log = policy.shape_log(&call, ToolResult::text(text.clone()));
            check_notice(&*store, &log.prompt, &text);
            let mut arriving = policy.begin(call);
            arriving.push(text.as_bytes());
            check_notice(&*store, &arriving.finish(false).prompt, &text);
            if options.get("mixedContent").is_some() {
                let mixed = ToolResult {
                    blocks: vec![
                        Block::Other(json!({"type": "image"})),
                        Block::Text(text.clone()),
                    ],
                    ..ToolResult::default()
                };
                let prompt: Value = serde_json::from_str(&shaped(mixed)).expect("JSON");
                check_notice(&*store, prompt[1]["text"].as_str().expect("a text"), &text);
            }
        }
    }
}

/// The envelope's hint: `resources/read` with the URI, and with a range behind it.
#[track_caller]
fn check_envelope(policy: &Envelope, envelope: &str) {
    let envelope: Value = serde_json::from_str(envelope).expect("JSON");
    let hint = envelope["hint"].as_str().expect("a hint");
    assert!(hint.contains("resources/read with URI '"), "{hint}");
    let uri = hint.split('\'').nth(1).expect("a URI");
    assert_eq!(envelope["resourceUri"], uri, "the same in both places");
    let reader = Reader::Of(owner());
    let read = |uri: &str| {
        policy
            .read_resource(uri, &reader, Millis::new(0))
            .expect("a read")
    };
    let size = envelope["sizeBytes"].as_u64().expect("a number");
    assert_eq!((read(uri).offset, read(uri).size), (0, size));
    if let Some((_, rest)) = hint.split_once("(add ") {
        let range = rest.split(' ').next().expect("a range");
        let part = read(&format!("{uri}{range}"));
        assert_eq!((part.offset, part.size), (0, size));
        assert!(!part.text.is_empty());
        let next = part.next_offset.expect("more");
        assert_eq!(read(&format!("{uri}?offset={next}&length=8")).offset, next);
    }
}

#[test]
fn fault_39_the_hint_of_each_envelope_can_be_followed() {
    let home = tempfile::tempdir().expect("a directory");
    let owner = owner();
    let call = Call::new("run", CALL).owned_by(&owner);
    let text = SharedText::from(output());
    let blocks = vec![Block::Text(output()), Block::Text(output())];
    for store in stores(&home) {
        for options in [
            json!({"maxPayloadBytes": 700}),
            json!({"maxPayloadBytes": 5_000}),
            json!({"maxPayloadBytes": 5_000, "preview": "content"}),
            json!({"maxPayloadBytes": 5_000, "previewShare": 0.2}),
            json!({"maxPayloadBytes": 5_000, "form": "observed"}),
            json!({"maxPayloadBytes": 5_000, "resourceUriPrefix": "their://place/?x=1&"}),
        ] {
            let policy = Envelope::new(envelope_options(&options), store.clone());
            let value = rows(800);
            for payload in [
                Payload::Text(&text),
                Payload::Json(&value),
                Payload::Blocks(&blocks),
                Payload::Bytes(&[7; 9_000]),
            ] {
                let Verdict::Replace { text, .. } = policy.wrap(&call, payload) else {
                    panic!("replaced")
                };
                check_envelope(&policy, &text);
            }
            let mut arriving = policy.begin(call);
            arriving.push(text.as_bytes());
            check_envelope(&policy, &arriving.finish(false).prompt);
        }
    }
}

#[test]
fn fault_39_the_hint_of_each_summary_can_be_followed() {
    let step = step(Settings::DEFAULT);
    let text = output().repeat(20);
    let results = [
        ToolResult::text(text.clone()),
        ToolResult::error(text),
        ToolResult {
            structured: Some(rows(8_000)),
            ..ToolResult::default()
        },
        ToolResult {
            blocks: vec![
                Block::Text("x".repeat(200 << 10)),
                Block::Text(String::new()),
            ],
            ..ToolResult::default()
        },
    ];
    for (index, result) in (0..).zip(results) {
        let call = spill_engine::CallId { index, ..CALL };
        let shaped = step.shape(&Call::new("run", call), result);
        let summary: Value = serde_json::from_str(&shaped.prompt).expect("JSON");
        let how = summary["how_to_read"].as_str().expect("a hint");
        assert!(how.contains(READ_TOOL), "{how}");
        let most = how
            .rsplit_once("at most ")
            .and_then(|(_, rest)| rest.split(' ').next())
            .and_then(|most| most.parse::<u64>().ok())
            .expect("a cap");
        let arguments = json!({
            "spillover_ref": summary["spillover_ref"],
            "range": {"offset": 1_000, "length": most},
        });
        let answer = step.read(&arguments).expect("the call that the hint names");
        assert!(
            answer
                .text()
                .as_bytes()
                .starts_with(&shaped.record_text.as_bytes()[1_000..1_100])
        );
    }
}
