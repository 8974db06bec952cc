use super::block::Block;
use super::rng::Rng;
use super::words::{ItemNames, adjective, noun, two_nouns, verb};

const LEVELS: &[&str] = &["debug", "info", "warning"];

pub(super) fn header(rng: &mut Rng) -> Vec<String> {
    let (subject, peer) = two_nouns(rng);
    let text = format!(
        "\"\"\"Jobs that keep {subject} data and the {peer} service in step.

Each job is a plain function over rows that the caller has loaded; only the functions at the end
of this module talk to other systems.
\"\"\"

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import requests

from {peer}_service.errors import {0}Error
from {peer}_service.models import {0}Row

log = logging.getLogger(__name__)",
        super::words::camel(subject),
    );
    text.lines().map(str::to_owned).collect()
}

pub(super) fn block(rng: &mut Rng, names: &mut ItemNames) -> Block {
    let text = match rng.below(9) {
        0 => record(rng, names),
        1 | 2 => class(rng, names),
        3 => grouping(rng, names),
        4 => paging(rng, names),
        5 => checksum(rng, names),
        6 => settings(rng, names),
        7 => batches(rng, names),
        _ => report(rng, names),
    };
    Block::from_template(&text)
}

pub(super) fn statement(rng: &mut Rng) -> Vec<String> {
    let (a, b) = two_nouns(rng);
    let c = adjective(rng);
    let n = rng.between(2, 900);
    let text = match rng.below(12) {
        0 => format!("{c}_{a}s = [row for row in {b}s if row.{c}]"),
        1 => format!(
            "log.{}(\"%d {c} {a}s before the {b}\", {n})",
            rng.pick(LEVELS)
        ),
        2 => format!("{a}_limit = min(config.get(\"{b}_limit\", {n}), {n})"),
        3 => format!("if not {a}_{b}:\n    raise ValueError(\"the {c} {a} has no {b}\")"),
        4 => format!("{a} = {b}s.get(key) or {{}}"),
        5 => format!("metrics.increment(\"{a}.{b}\", {n})"),
        6 => format!("{c}_{b}s = sorted({b}s, key=lambda row: row.{a}_id)"),
        7 => format!("for {a} in {c}_{a}s:\n    {b}s.append({a}.to_{b}())"),
        8 => format!("{a}_wait = min({n}, 2**attempt * 0.1)"),
        9 => format!("{a}_by_{b} = {{row.{b}_id: row for row in {c}_{a}s}}"),
        10 => format!("assert {a}_count >= {b}_count, \"{c} {a} shrank\""),
        _ => format!("with {a}_lock:\n    {b}s.update({c}_{b}s)"),
    };
    text.lines().map(str::to_owned).collect()
}

fn record(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.type_name(rng);
    let (owner, state) = (noun(rng), adjective(rng));
    let fields: String = (0..rng.between(3, 6))
        .map(|index| format!("    {}_{index}: int = {}\n", noun(rng), rng.between(0, 400)))
        .collect();
    format!(
        "@dataclass(frozen=True)
class {name}:
    \"\"\"What is known about one {owner} while it is {state}.\"\"\"

    id: str
{fields}    tags: dict[str, str] = field(default_factory=dict)

    def is_settled(self, now: float) -> bool:
        \"\"\"Say whether the {owner} may leave the {state} set.\"\"\"
        age = now - self.seen_at
        @
        grace = {}
        quiet = self.id.startswith(\"{}-\")
        tagged = self.tags.get(\"{owner}\", \"\") != \"\"
        return age > grace and not quiet and tagged",
        rng.between(5, 900),
        noun(rng),
    )
}

fn class(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.type_name(rng);
    let (item, key) = two_nouns(rng);
    let (first, second) = (names.function(rng), names.function(rng));
    format!(
        "class {name}:
    \"\"\"Holds {item}s by {key}, oldest first.\"\"\"

    limit = {}

    def __init__(self) -> None:
        self._by_{key}: dict[str, list[int]] = defaultdict(list)
        self._held = 0

    def {first}(self, {key}: str, {item}: int) -> int:
        \"\"\"Add one {item}; the oldest one makes room when there is none.\"\"\"
        queue = self._by_{key}[{key}]
        @
        if self._held >= self.limit and queue:
            dropped = queue.pop(0)
            log.{}(\"{item} %s made room\", dropped)
            self._held -= 1
        queue.append({item})
        self._held += 1
        return len(queue)

    def {second}(self, {key}: str, floor: int) -> list[int]:
        \"\"\"Return the {item}s of one {key} that are newer than ``floor``.\"\"\"
        return [{item} for {item} in self._by_{key}.get({key}, []) if {item} > floor]",
        rng.between(16, 4096),
        rng.pick(LEVELS),
    )
}

fn grouping(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, key) = two_nouns(rng);
    format!(
        "def {name}(rows: list[dict]) -> dict[str, int]:
    \"\"\"Sum the amounts of ``rows`` by {key}.

    {item}s without a {key} are left out, and so are sums of zero.
    \"\"\"
    totals: dict[str, int] = defaultdict(int)
    @
    for row in rows:
        {key} = row.get(\"{key}\")
        if {key} is None:
            continue
        totals[{key}] += int(row.get(\"amount\", 0))
    return {{{key}: total for {key}, total in totals.items() if total}}"
    )
}

fn paging(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, peer) = two_nouns(rng);
    format!(
        "def {name}(session: requests.Session, base: str) -> list[dict]:
    \"\"\"Fetch every {item} of the {peer} service, page by page.\"\"\"
    found: list[dict] = []
    page = 1
    @
    while True:
        answer = session.get(base + \"/{item}s\", params={{\"page\": page}}, timeout={})
        answer.raise_for_status()
        rows = answer.json()[\"{item}s\"]
        found.extend(rows)
        if len(rows) < {}:
            return found
        page += 1",
        rng.between(3, 30),
        rng.between(20, 200),
    )
}

fn checksum(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, action) = (noun(rng), verb(rng));
    format!(
        "def {name}(folder: Path) -> dict[str, str]:
    \"\"\"Return the digest of every {item} file, for the job that can {action} them.\"\"\"
    digests: dict[str, str] = {{}}
    @
    for path in sorted(folder.glob(\"*.{item}\")):
        hasher = hashlib.sha256()
        with path.open(\"rb\") as handle:
            while chunk := handle.read({}):
                hasher.update(chunk)
        digests[path.name] = hasher.hexdigest()
    return digests",
        rng.between(1, 64) * 1024,
    )
}

fn settings(rng: &mut Rng, names: &mut ItemNames) -> String {
    let (name, constant) = (names.function(rng), names.constant(rng));
    let (item, state) = (noun(rng), adjective(rng));
    format!(
        "{constant} = {}


def {name}(path: Path) -> dict:
    \"\"\"Load the {item} settings; a missing file means the {state} defaults.\"\"\"
    defaults = {{\"{item}_limit\": {constant}, \"{state}\": False}}
    @
    if not path.exists():
        log.info(\"no {item} settings at %s\", path)
        return defaults
    loaded = json.loads(path.read_text(encoding=\"utf-8\"))
    unknown = set(loaded) - set(defaults)
    if unknown:
        raise KeyError(f\"unknown {item} settings: {{sorted(unknown)}}\")
    return {{**defaults, **loaded}}",
        rng.between(10, 5000),
    )
}

fn batches(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, action) = (noun(rng), verb(rng));
    format!(
        "def {name}({item}s: list[dict], size: int = {}) -> list[list[dict]]:
    \"\"\"Cut {item}s into batches that one call can {action}.\"\"\"
    if size < 1:
        raise ValueError(\"a batch holds at least one {item}\")
    @
    batches: list[list[dict]] = []
    for start in range(0, len({item}s), size):
        batches.append({item}s[start : start + size])
    log.debug(\"%d {item}s in %d batches\", len({item}s), len(batches))
    return batches",
        rng.between(10, 500),
    )
}

fn report(rng: &mut Rng, names: &mut ItemNames) -> String {
    let name = names.function(rng);
    let (item, owner, state) = (noun(rng), noun(rng), adjective(rng));
    format!(
        "def {name}(rows: dict[str, int], width: int = {}) -> str:
    \"\"\"Render the {item} table that the {owner} page shows.\"\"\"
    lines: list[str] = []
    @
    for label, {item} in sorted(rows.items()):
        lines.append(label[:width].ljust(width) + str({item}).rjust(8))
    if not lines:
        lines.append(\"no {state} {item}s\")
    return \"\\n\".join(lines)",
        rng.between(20, 48),
    )
}
