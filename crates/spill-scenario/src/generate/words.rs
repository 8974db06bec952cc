use std::collections::BTreeSet;

use super::rng::Rng;

const NOUNS: &[&str] = &[
    "invoice",
    "shipment",
    "tenant",
    "ledger",
    "session",
    "quota",
    "webhook",
    "snapshot",
    "replica",
    "segment",
    "voucher",
    "catalog",
    "roster",
    "lease",
    "bucket",
    "payload",
    "cursor",
    "manifest",
    "region",
    "channel",
    "account",
    "refund",
    "parcel",
    "contract",
    "sensor",
    "reading",
    "permit",
    "checkpoint",
    "partition",
    "worker",
    "journal",
    "receipt",
];
const VERBS: &[&str] = &[
    "load",
    "merge",
    "reconcile",
    "validate",
    "prune",
    "resolve",
    "archive",
    "publish",
    "rebuild",
    "schedule",
    "compact",
    "replay",
    "collect",
    "drain",
    "audit",
    "assign",
    "rotate",
    "estimate",
    "promote",
    "settle",
    "group",
    "sample",
    "refresh",
    "restore",
];
const ADJECTIVES: &[&str] = &[
    "stale", "pending", "active", "orphaned", "remote", "cached", "expired", "partial", "primary",
    "recent", "failed", "deferred", "shared", "local", "overdue", "frozen",
];
const ROLES: &[&str] = &[
    "store", "registry", "planner", "queue", "window", "tracker", "router", "pool", "index",
    "budget", "gateway", "monitor",
];

/// Names that were handed out for one input; none is the beginning of another.
#[derive(Default)]
pub(super) struct UniqueNames {
    used: BTreeSet<String>,
}

impl UniqueNames {
    /// A name of three words that neither begins an earlier one nor begins with one.
    pub(super) fn next(&mut self, rng: &mut Rng) -> String {
        loop {
            let name = format!("{}_{}_{}", adjective(rng), noun(rng), rng.pick(ROLES));
            let clashes = self
                .used
                .iter()
                .any(|used| used.starts_with(&name) || name.starts_with(used));
            if !clashes {
                self.used.insert(name.clone());
                return name;
            }
        }
    }
}

/// Names of one file's items; a name is handed out once.
#[derive(Default)]
pub(super) struct ItemNames {
    used: BTreeSet<String>,
}

impl ItemNames {
    /// A function's name.
    pub(super) fn function(&mut self, rng: &mut Rng) -> String {
        self.unique(rng, |rng| match rng.below(3) {
            0 => format!("{}_{}", verb(rng), noun(rng)),
            1 => format!("{}_{}_{}", verb(rng), adjective(rng), noun(rng)),
            _ => format!("{}_{}_{}", verb(rng), noun(rng), rng.pick(ROLES)),
        })
    }

    /// A type's name in camel case.
    pub(super) fn type_name(&mut self, rng: &mut Rng) -> String {
        let snake = self.unique(rng, |rng| match rng.below(2) {
            0 => format!("{}_{}", noun(rng), rng.pick(ROLES)),
            _ => format!("{}_{}_{}", adjective(rng), noun(rng), rng.pick(ROLES)),
        });
        camel(&snake)
    }

    /// A constant's name in upper case.
    pub(super) fn constant(&mut self, rng: &mut Rng) -> String {
        self.unique(rng, |rng| {
            format!(
                "max_{}_{}_{}",
                adjective(rng),
                noun(rng),
                rng.pick(&["count", "age", "size"])
            )
        })
        .to_uppercase()
    }

    fn unique(&mut self, rng: &mut Rng, make: impl Fn(&mut Rng) -> String) -> String {
        let mut name = make(rng);
        while !self.used.insert(name.clone()) {
            name = format!("{}_{}", make(rng), noun(rng));
        }
        name
    }
}

pub(super) fn noun(rng: &mut Rng) -> &'static str {
    rng.pick(NOUNS)
}

pub(super) fn verb(rng: &mut Rng) -> &'static str {
    rng.pick(VERBS)
}

pub(super) fn adjective(rng: &mut Rng) -> &'static str {
    rng.pick(ADJECTIVES)
}

pub(super) fn camel(snake: &str) -> String {
    snake
        .split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().collect::<String>() + letters.as_str()
            })
        })
        .collect()
}

/// Two different nouns.
pub(super) fn two_nouns(rng: &mut Rng) -> (&'static str, &'static str) {
    let first = rng.below(NOUNS.len());
    let second = (first + 1 + rng.below(NOUNS.len() - 1)) % NOUNS.len();
    (NOUNS[first], NOUNS[second])
}
