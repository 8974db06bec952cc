//! `inline-cap` over files: several sessions share one private directory, and each reads its own results only.
//!
//! `cargo run -p spill-engine --example inline_cap`

#![expect(
    clippy::print_stdout,
    reason = "an example shows what the model would see"
)]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use spill_engine::{
    AnswerCap, Ask, Call, CallId, FileOptions, FileStore, InlineCap, InlineCapOptions, Millis,
    Owner, Pattern, Pipeline, Reader, Reading, SearchAsk, SpillStore, ToolResult, Verdict,
};

const CAP: u64 = 2_000;
/// The engine has no clock of its own.
const NOW: Millis = Millis::new(1_700_000_000_000);

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let seen = run(&home.path().canonicalize()?)?;
    println!("in the prompt:\n{}\n", seen.replacement);
    println!("the model searches:\n{}\n", seen.found);
    println!("another session reads: {}", seen.refused);
    Ok(())
}

struct Seen {
    replacement: String,
    found: String,
    refused: String,
}

/// A call of a session, what replaces its result, and a search in what was stored.
fn run(home: &Path) -> Result<Seen, Box<dyn Error>> {
    // One store for all sessions and processes. The directory is made 0700 at the first result; `probe` makes it now, so
    // that a wrong configuration fails at the start and not in a session.
    let store = Arc::new(FileStore::new(FileOptions::new(home.join("spill")))?);
    store.probe()?;
    let policy = Arc::new(InlineCap::new(InlineCapOptions::capped(CAP), store.clone()));
    let pipeline = Pipeline::new().around_all(policy);

    let session = Owner::new("session 1");
    let call = Call {
        now: NOW,
        ..Call::new(
            "build",
            CallId {
                iteration: 1,
                index: 0,
            },
        )
        .owned_by(&session)
    };
    let spill_engine::Passed::Shaped { shaped, .. } =
        pipeline.run(&call, ToolResult::text(build_log()))
    else {
        return Err("there is no transform that could block".into());
    };
    let Verdict::Replace { spilled, .. } = &shaped.verdict else {
        return Err("the log is over the cap".into());
    };

    // The reading side: what the `read` and `grep` tools of the session answer, bounded by the same cap.
    let key = store.key_of(&spilled.reference).ok_or("a locator")?;
    let cap = AnswerCap::new(CAP).ok_or("a cap")?;
    let ask = Ask::Search(SearchAsk {
        pattern: Pattern::Regex("^error".to_owned()),
        context: 48,
        from: 0,
        most: None,
    });
    let own = Reading::new(&*store, Reader::Of(session.clone()), cap);
    let found = own.answer(key, &ask, NOW)?.render();
    let other = Reading::new(&*store, Reader::Of(Owner::new("session 2")), cap);
    let refused = match other.answer(key, &ask, NOW) {
        Ok(_) => "the whole result".to_owned(),
        Err(refusal) => refusal.to_string(),
    };
    // When the session ends, and not before: its references stand in its prompt as long as it lives.
    store.release(&session);
    Ok(Seen {
        replacement: shaped.prompt.to_string(),
        found,
        refused,
    })
}

fn build_log() -> String {
    let line = |n: usize| match n {
        700 => "error[E0308]: mismatched types in src/size.rs\n".to_owned(),
        _ => format!("   Compiling part-{n} v1.0.{n}\n"),
    };
    (0..1_000).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replacement_is_within_the_cap_and_the_whole_can_be_searched_by_its_owner() {
        let home = tempfile::tempdir().expect("a directory");
        let root = home.path().canonicalize().expect("a directory");
        let seen = run(&root).expect("the example runs");
        assert!(seen.replacement.len() <= 2_000);
        assert!(seen.found.contains("mismatched types"), "{}", seen.found);
        assert!(!seen.refused.contains("mismatched"), "{}", seen.refused);
        let left = std::fs::read_dir(root.join("spill")).expect("the store");
        let names: Vec<_> = left
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert!(names.len() <= 1, "nothing but the lock is left: {names:?}");
    }
}
