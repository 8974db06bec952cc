//! A price table that a flag names.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::ensure;
use spill_record::{ModelRecord, Prices};
use spill_verdict::plain;

/// Reads the price table at `path` for a plan with these models: one without a price would leave
/// empty cells where the user asked for figures.
pub(crate) fn read(path: &Path, models: &[ModelRecord]) -> anyhow::Result<Prices> {
    let prices = Prices::read(path)?;
    let models: BTreeSet<&str> = models.iter().map(|model| &*model.model).collect();
    for model in models {
        let has: Vec<String> = prices.models().map(|(name, _)| plain(name)).collect();
        ensure!(
            prices.of(model).is_some(),
            "{} has no price of the model {} (add a table [models.\"{}\"]; it has {})",
            path.display(),
            plain(model),
            plain(model),
            has.join(", ")
        );
    }
    Ok(prices)
}
