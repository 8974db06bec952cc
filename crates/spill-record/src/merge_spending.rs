//! What the shards of a live acceptance spent, together.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::FolderError;
use crate::folder::{RunFolder, RunSet};
use crate::manifest::Mode;
use crate::spending::{ShardSpending, Spending};

/// What all parts spent at a real endpoint. Every folder counts, also one whose records another one has as well: its requests
/// were paid for. A copy of a folder counts once.
pub(crate) fn spending<'a>(
    parts: impl Iterator<Item = (&'a Path, &'a RunSet)>,
    notes: &mut Vec<String>,
) -> Result<Option<Spending>, FolderError> {
    let mut spent: BTreeMap<(u32, &str), (ShardSpending, Spending)> = BTreeMap::new();
    for (path, set) in parts {
        let manifest = &set.manifest;
        match manifest.mode {
            Mode::Simulated => return Ok(None),
            Mode::Live => {}
        }
        let told = set.spending.is_some();
        if !told {
            notes.push(format!(
                "{}: no spending.json; what it spent is the sum of its calls, and its cap is not known",
                path.display()
            ));
        }
        let sum = RunFolder::spent(path)?;
        let shard = manifest.shard.expect("parts are shards");
        let line = ShardSpending {
            acceptance_id: manifest.acceptance_id.clone(),
            shard,
            told,
            limit_tokens: sum.limit_tokens,
            limit_money: sum.limit_money.clone(),
            counted_tokens: sum.counted_tokens(),
            money: sum.money.clone(),
        };
        let key = (shard.number, manifest.acceptance_id.as_str());
        let copy = spent.get(&key).map(|(line, _)| line.counted_tokens);
        if copy.is_none_or(|known| known < line.counted_tokens) {
            spent.insert(key, (line, sum));
        }
    }
    let parts: Vec<_> = spent.into_values().collect();
    Ok(Some(Spending::sum(&parts)))
}
