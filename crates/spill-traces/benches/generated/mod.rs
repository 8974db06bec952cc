//! Transcripts made up from a seed, for measurements: agents that look at parts of a source tree again and again.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

/// Bytes of each agent's source tree; a little under half of what its results hold together.
const TREE_BYTES: usize = 1 << 20;

/// A small generator of numbers; the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.roll() >> 11).unwrap_or(0) % most.max(1)
    }
}

const WORDS: [&str; 24] = [
    "ledger", "window", "settle", "entry", "amount", "refund", "period", "account", "balance",
    "order", "reader", "writer", "index", "offset", "length", "buffer", "limit", "result", "error",
    "config", "request", "session", "policy", "record",
];

fn tree(dice: &mut Dice) -> String {
    let mut text = String::with_capacity(TREE_BYTES + 200);
    while text.len() < TREE_BYTES {
        let word = |dice: &mut Dice| WORDS[dice.below(WORDS.len())];
        let (a, b, c) = (word(dice), word(dice), word(dice));
        let number = dice.below(10_000);
        let line = match dice.below(6) {
            0 => writeln!(text, "    let {a}_{b} = self.{c}.{a}({number})?;"),
            1 => writeln!(
                text,
                "    // The {a} of a {b} is never below {number} where the {c} says so."
            ),
            2 => writeln!(
                text,
                "pub fn {a}_{b}({c}: &{a}::{b}, {a}: u64) -> Result<{c}, {a}::Error> {{"
            ),
            3 => writeln!(text, "}}\n"),
            4 => writeln!(text, "        \"{a}\" => Some({b}_{number}.{c}()),"),
            _ => writeln!(text, "src/{a}/{b}.rs:{number}: warning: unused {c}"),
        };
        line.expect("a string takes every write");
    }
    text
}

/// How large a result is: most are small, some large, few very large.
fn size(dice: &mut Dice) -> usize {
    match dice.below(100) {
        0..70 => 500 + dice.below(6_000),
        70..92 => 6_000 + dice.below(20_000),
        92..99 => 30_000 + dice.below(70_000),
        _ => 130_000 + dice.below(200_000),
    }
}

/// A conversation of at least `bytes` bytes of JSON.
pub(crate) fn conversation(seed: u64, bytes: usize) -> String {
    let mut dice = Dice::new(seed);
    let tree = tree(&mut dice);
    let mut messages = vec![
        json!({"role": "system", "content": "You fix issues in a repository, step by step."}),
        json!({"role": "user", "content": format!("Fix issue {seed}.")}),
    ];
    let mut written = 0;
    while written < bytes {
        let size = size(&mut dice).min(tree.len() / 2);
        let start = dice.below(tree.len() - size);
        let result = &tree[start..start + size];
        let id = format!("call_{}", messages.len());
        let quoted = &result[..result.len().min(120)];
        let arguments =
            json!({"path": WORDS[dice.below(WORDS.len())], "about": quoted}).to_string();
        let tool = ["read_file", "search", "run", "list"][dice.below(4)];
        let function = json!({"name": tool, "arguments": arguments});
        let call = json!([{"id": id, "type": "function", "function": function}]);
        messages
            .push(json!({"role": "assistant", "content": "I look further.", "tool_calls": call}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
        written += size + 300;
    }
    messages.push(json!({"role": "assistant", "content": "It is done."}));
    Value::from(messages).to_string()
}

/// Writes `files` conversations of about `bytes` bytes each; the bytes in all.
pub(crate) fn write(folder: &Path, files: u64, bytes: usize) -> std::io::Result<u64> {
    let mut all = 0;
    for seed in 0..files {
        let text = conversation(seed + 1, bytes);
        all += text.len() as u64;
        std::fs::write(folder.join(format!("{seed:04}.json")), text)?;
    }
    Ok(all)
}
