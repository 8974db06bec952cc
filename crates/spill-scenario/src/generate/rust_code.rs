use super::block::Block;
use super::rng::Rng;
use super::words::{ItemNames, adjective, camel, noun, two_nouns, verb};

const LEVELS: &[&str] = &["trace", "debug", "info"];
const INTEGERS: &[&str] = &["u32", "u64", "usize"];

pub(super) fn header(rng: &mut Rng) -> Vec<String> {
    let (subject, peer) = two_nouns(rng);
    let text = format!(
        "//! Keeps the {subject} side of the {peer} service consistent.
//!
//! Everything here works on values that were loaded before; storage and transport belong to
//! their own modules.

use std::collections::{{BTreeMap, HashMap, VecDeque}};
use std::sync::Arc;
use std::time::Duration;

use crate::config::{}Config;
use crate::error::{{Error, Result}};
use crate::model::{{{}, {}}};
",
        camel(subject),
        camel(adjective(rng)) + &camel(noun(rng)),
        camel(peer) + "Row",
    );
    text.trim_end().lines().map(str::to_owned).collect()
}

pub(super) fn block(rng: &mut Rng, names: &mut ItemNames) -> Block {
    let text = match rng.below(10) {
        0 => record(rng, names),
        1 | 2 => implementation(rng, names),
        3 => filter(rng, names),
        4 => aggregate(rng, names),
        5 => transition(rng, names),
        6 => retry(rng, names),
        7 => parse(rng, names),
        8 => window(rng, names),
        _ => render(rng, names),
    };
    Block::from_template(&text)
}

pub(super) fn statement(rng: &mut Rng) -> Vec<String> {
    let (a, b) = two_nouns(rng);
    let c = adjective(rng);
    let n = rng.between(2, 900);
    let text = match rng.below(12) {
        0 => format!("let {c}_{a} = {b}s.iter().filter(|row| row.is_{c}()).count();"),
        1 => format!(
            "tracing::{}!({a} = {n}, \"{c} {a} seen before the {b}\");",
            rng.pick(LEVELS)
        ),
        2 => format!("let {a}_limit = self.config.{b}_limit.min({n});"),
        3 => format!("if {a}_{b}.is_empty() {{\n    return Err(Error::missing(\"{c} {a}\"));\n}}"),
        4 => format!("let {a} = {b}s.get(&key).cloned().unwrap_or_default();"),
        5 => format!("self.metrics.{a}_{b}.increment({n});"),
        6 => format!("let mut {c}_{b}s = Vec::with_capacity({n});"),
        7 => format!("for {a} in {c}_{a}s.drain(..) {{\n    {b}s.push({a}.into_{b}());\n}}"),
        8 => format!("let {a}_wait = Duration::from_millis({n}).saturating_mul(attempt);"),
        9 => format!("let Some({a}) = self.{b}s.first() else {{\n    return Ok(Vec::new());\n}};"),
        10 => format!("debug_assert!({a}_len >= {b}_len, \"{c} {a} shrank\");"),
        _ => format!("let {a}_{b} = Arc::clone(&self.{c}_{b});"),
    };
    text.lines().map(str::to_owned).collect()
}

fn record(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.type_name(rng);
    let (owner, state) = (noun(rng), adjective(rng));
    let fields: String = (0..rng.between(3, 6))
        .map(|index| {
            let (field, kind) = (noun(rng), rng.pick(INTEGERS));
            format!("    /// The {} {field} as the {owner} reported it.\n    pub {field}_{index}: {kind},\n", adjective(rng))
        })
        .collect();
    format!(
        "/// What is known about one {owner} while it is {state}.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct {name} {{
    /// Stable across restarts.
    pub id: String,
{fields}}}

impl {name} {{
    /// Says whether the {owner} may leave the {state} set.
    pub fn is_settled(&self, now_ms: u64) -> bool {{
        let age = now_ms.saturating_sub(self.seen_ms());
        @
        let grace = Duration::from_secs({}).as_millis() as u64;
        let quiet = self.id.starts_with(\"{}-\");
        age > grace && !quiet
    }}
}}",
        rng.between(5, 900),
        noun(rng),
    )
}

fn implementation(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.type_name(rng);
    let (item, key) = two_nouns(rng);
    let (first, second) = (names.function(rng), names.function(rng));
    let constant = names.constant(rng);
    format!(
        "/// Upper bound on {item}s that are held at once.
const {constant}: usize = {};

/// Holds {item}s by {key}, oldest first.
pub struct {name} {{
    by_{key}: BTreeMap<String, VecDeque<u64>>,
    held: usize,
}}

impl {name} {{
    /// Adds one {item}; the oldest one makes room when there is none.
    pub fn {first}(&mut self, {key}: &str, {item}: u64) -> Result<usize> {{
        let queue = self.by_{key}.entry({key}.to_owned()).or_default();
        @
        if self.held >= {constant} {{
            let dropped = queue.pop_front().ok_or_else(|| Error::full(\"{item}\"))?;
            tracing::{}!(dropped, \"{item} made room\");
            self.held -= 1;
        }}
        queue.push_back({item});
        self.held += 1;
        Ok(queue.len())
    }}

    /// Returns the {item}s of `{key}` that are newer than `floor`.
    pub fn {second}(&self, {key}: &str, floor: u64) -> Vec<u64> {{
        let Some(queue) = self.by_{key}.get({key}) else {{
            return Vec::new();
        }};
        queue.iter().copied().filter(|{item}| *{item} > floor).collect()
    }}
}}",
        rng.between(16, 4096),
        rng.pick(LEVELS),
    )
}

fn filter(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, state) = (noun(rng), adjective(rng));
    let kind = camel(item);
    format!(
        "/// Returns the {state} {item}s of `batch`, oldest first.
///
/// A {item} without a time counts as {state}: it was written before times were recorded.
pub fn {name}(batch: &[{kind}Row], now_ms: u64) -> Vec<&{kind}Row> {{
    let cutoff = now_ms.saturating_sub({});
    @
    let mut kept: Vec<&{kind}Row> = batch
        .iter()
        .filter(|row| row.updated_ms.is_none_or(|at| at < cutoff))
        .collect();
    kept.sort_by_key(|row| row.updated_ms);
    kept
}}",
        rng.between(1_000, 900_000),
    )
}

fn aggregate(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, key) = two_nouns(rng);
    format!(
        "/// Sums the amounts of `rows` by {key}; {item}s without a {key} are left out.
pub fn {name}(rows: &[(Option<String>, i64)]) -> HashMap<String, i64> {{
    let mut totals: HashMap<String, i64> = HashMap::new();
    @
    for ({key}, amount) in rows {{
        let Some({key}) = {key} else {{
            continue;
        }};
        let total = totals.entry({key}.clone()).or_insert(0);
        *total = total.saturating_add(*amount);
    }}
    totals.retain(|_, total| *total != 0);
    totals
}}"
    )
}

fn transition(rng: &mut Rng, names: &mut ItemNames) -> String {
    let (kind, name) = (names.type_name(rng), names.function(rng));
    let states: Vec<String> = (0..4)
        .map(|index| camel(adjective(rng)) + ["First", "Second", "Third", "Last"][index])
        .collect();
    let item = noun(rng);
    format!(
        "/// The life of one {item}.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum {kind} {{
    /// Nothing was sent yet.
    {0},
    /// Waiting for the other side.
    {1},
    /// Confirmed, not yet written.
    {2},
    /// Nothing more happens to it.
    {3},
}}

/// Returns the state after `attempts` deliveries of the {item}.
pub fn {name}(state: {kind}, attempts: u32) -> {kind} {{
    let exhausted = attempts > {4};
    @
    match state {{
        {kind}::{0} if exhausted => {kind}::{3},
        {kind}::{0} => {kind}::{1},
        {kind}::{1} if exhausted => {kind}::{3},
        {kind}::{1} => {kind}::{2},
        {kind}::{2} | {kind}::{3} => {kind}::{3},
    }}
}}",
        states[0],
        states[1],
        states[2],
        states[3],
        rng.between(2, 12),
    )
}

fn retry(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, action) = (noun(rng), verb(rng));
    format!(
        "/// Tries to {action} the {item} until it works or the attempts are used up.
///
/// # Errors
///
/// The last attempt's error.
pub fn {name}<T>(attempts: u32, mut {action}: impl FnMut(u32) -> Result<T>) -> Result<T> {{
    let mut last = Error::missing(\"{item}\");
    @
    for attempt in 0..attempts {{
        match {action}(attempt) {{
            Ok(value) => return Ok(value),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => last = error,
        }}
        std::thread::sleep(Duration::from_millis({} << attempt.min({})));
    }}
    Err(last)
}}",
        rng.between(5, 80),
        rng.between(3, 8),
    )
}

fn parse(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, field) = two_nouns(rng);
    format!(
        "/// Reads one `{item}={field}` line of the {item} file.
///
/// # Errors
///
/// When the sign is missing or the {field} is not a number.
pub fn {name}(line: &str) -> Result<(String, u64)> {{
    let line = line.trim_start_matches('\\u{{feff}}').trim();
    @
    let ({item}, {field}) = line
        .split_once('=')
        .ok_or_else(|| Error::syntax(\"{item}\", line))?;
    let {field} = {field}
        .trim()
        .parse()
        .map_err(|_| Error::syntax(\"{field}\", line))?;
    Ok(({item}.trim().to_owned(), {field}))
}}"
    )
}

fn window(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, rate) = two_nouns(rng);
    let width = rng.between(2, 60);
    format!(
        "/// Smooths {item} rates over {width} samples; shorter series are returned as they are.
pub fn {name}({rate}s: &[f64]) -> Vec<f64> {{
    const WIDTH: usize = {width};
    @
    if {rate}s.len() < WIDTH {{
        return {rate}s.to_vec();
    }}
    {rate}s
        .windows(WIDTH)
        .map(|window| window.iter().sum::<f64>() / WIDTH as f64)
        .collect()
}}"
    )
}

fn render(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, owner, state) = (noun(rng), noun(rng), adjective(rng));
    format!(
        "/// Renders the {item} table that the {owner} page shows.
pub fn {name}(rows: &BTreeMap<String, u64>, width: usize) -> String {{
    let mut out = String::with_capacity(rows.len() * width);
    @
    for (label, {item}) in rows {{
        let label: String = label.chars().take(width.saturating_sub({})).collect();
        out.push_str(&format!(\"{{label:<width$}} {{{item}:>8}}\\n\"));
    }}
    if rows.is_empty() {{
        out.push_str(\"no {state} {item}s\\n\");
    }}
    out
}}",
        rng.between(8, 14),
    )
}
