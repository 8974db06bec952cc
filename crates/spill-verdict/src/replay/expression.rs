//! The parts of a gate's expression.

use std::collections::BTreeSet;

use spill_record::{CellPlan, parse_size};

use super::figure::ReplayFigure;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Selector {
    pub(super) policy: Option<String>,
    pub(super) threshold: Option<Threshold>,
    /// `Some(None)` is the policy's own size.
    pub(super) replacement: Option<Option<u64>>,
    pub(super) read_back: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Threshold {
    /// As recorded.
    Off,
    Bytes(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    AtLeast,
    AtMost,
    Above,
    Below,
}

impl Compare {
    pub(super) fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtLeast => value >= limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::Below => value < limit,
        }
    }
}

impl Selector {
    pub(super) fn admits(&self, cell: &CellPlan) -> bool {
        self.policy.as_ref().is_none_or(|name| *name == cell.policy)
            && self
                .threshold
                .is_none_or(|threshold| threshold == Threshold::Bytes(cell.threshold_bytes))
            && self
                .replacement
                .is_none_or(|bytes| bytes == cell.replacement_bytes)
    }
}

pub(super) fn unknown_figure(name: &str) -> String {
    let names: Vec<&str> = ReplayFigure::ALL.iter().map(|f| f.name()).collect();
    let name: String = name.chars().take(40).collect();
    format!(
        "no figure is called {name:?}; there are {}",
        names.join(", ")
    )
}

/// The bracket, if there is one, and what stands behind it.
pub(super) fn selector(rest: &str) -> Result<(Selector, &str), String> {
    let mut selector = Selector::default();
    let Some(inside) = rest.strip_prefix('[') else {
        return Ok((selector, rest));
    };
    let Some((pairs, rest)) = inside.split_once(']') else {
        return Err("the bracket is not closed".to_owned());
    };
    let mut given = BTreeSet::new();
    for pair in pairs.split(',') {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!("{:?} is not KEY=VALUE", pair.trim()));
        };
        if !given.insert(key.trim()) {
            return Err(format!(
                "the bracket names {:?} twice: a gate is about one of each (write two gates)",
                key.trim()
            ));
        }
        let value = value.trim();
        let size = || {
            let size = parse_size(value);
            size.ok_or_else(|| format!("{value:?} is no size such as 32768 or 32KiB"))
        };
        match key.trim() {
            "policy" => selector.policy = Some(value.to_owned()),
            "threshold" if value == "off" => selector.threshold = Some(Threshold::Off),
            "threshold" => selector.threshold = Some(Threshold::Bytes(size()?)),
            "replacement" if value == "own" => selector.replacement = Some(None),
            "replacement" => selector.replacement = Some(Some(size()?)),
            "read_back" => selector.read_back = Some(value.to_owned()),
            other => {
                return Err(format!(
                    "no key is called {other:?}; there are policy, threshold, replacement and read_back"
                ));
            }
        }
    }
    let beside =
        selector.policy.is_some() || selector.replacement.is_some() || selector.read_back.is_some();
    if selector.threshold == Some(Threshold::Off) && beside {
        return Err(
            "off is what is recorded, under no policy, replacement or read-back: name it alone, [threshold=off]"
                .to_owned(),
        );
    }
    Ok((selector, rest))
}

/// The sign, and what stands behind it.
pub(super) fn compare(rest: &str) -> Result<(Compare, &str), String> {
    let signs = [
        (">=", Compare::AtLeast),
        ("<=", Compare::AtMost),
        (">", Compare::Above),
        ("<", Compare::Below),
    ];
    let found = signs.into_iter().find_map(|(sign, compare)| {
        let rest = rest.strip_prefix(sign)?;
        Some((compare, rest))
    });
    found.ok_or_else(|| "one of >=, <=, > and < must stand behind the figure".to_owned())
}

/// The limit, and whether it is a share.
pub(super) fn limit(text: &str) -> Result<(f64, bool), String> {
    let (number, is_share) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (text, false),
    };
    let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let parsed = number
        .chars()
        .all(plain)
        .then(|| number.parse::<f64>().ok())
        .flatten();
    #[expect(
        clippy::cast_precision_loss,
        reason = "sizes are far below the numbers that lose digits"
    )]
    let size = || {
        (!is_share)
            .then(|| parse_size(number))
            .flatten()
            .map(|size| size as f64)
    };
    let limit = parsed.or_else(size).filter(|limit| limit.is_finite());
    limit
        .map(|limit| (limit, is_share))
        .ok_or_else(|| format!("{text:?} is no number, share or size such as 1000, 10% or 1MiB"))
}
