//! From flags to what every transcript is put under.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use spill_record::{
    CacheRecord, CellPlan, Prices, PromptTokens, ReplayFiles, ReplayRecord, SCHEMA, Versions,
    digest_parts,
};
use spill_scenario::parse_size;
use spill_traces::{Cache, InputPrice, Policy, PolicyName, PricedInput, ReadBack, ReplayPlan};
use spill_verdict::{Gate, plain};

use crate::cli::ReplayArgs;

/// Cells and assumptions together; each transcript's record has an entry for each.
const MOST_VARIANTS: usize = 1_000;

/// What was asked for.
pub(super) struct Asked {
    pub(super) plan: ReplayPlan,
    cells: Vec<CellPlan>,
    gates: Vec<Gate>,
    paths: Vec<String>,
    prices: Option<(String, String)>,
}

/// Reads the flags. Nothing is written or read but the price table.
pub(super) fn asked(args: &ReplayArgs) -> anyhow::Result<Asked> {
    let read_backs = distinct(&args.read_back, |text| Ok(text.parse::<ReadBack>()?))?;
    let (cells, policies) = cells(args)?;
    let variants = cells.len() * read_backs.len();
    ensure!(
        variants <= MOST_VARIANTS,
        "{variants} policies, thresholds, sizes and read-backs together, the limit is {MOST_VARIANTS} (name fewer)"
    );
    let names: Vec<String> = read_backs.iter().map(ToString::to_string).collect();
    let mut gates = Vec::new();
    for text in &args.gate {
        let gate = Gate::parse(text)?;
        gate.variant(&cells, &names)?;
        if let Some(flag) = gate.lacks(args.prices.is_some(), args.window.is_some()) {
            bail!(
                "the gate {:?} cannot be reckoned without {flag} (give it, or leave the gate out)",
                gate.text()
            );
        }
        gates.push(gate);
    }
    let prices = args.prices.as_deref().map(Prices::read).transpose()?;
    let currency = prices.as_ref().map(one_currency).transpose()?;
    let text = prices.as_ref().map(|prices| prices.text().to_owned());
    Ok(Asked {
        plan: ReplayPlan {
            policies,
            read_backs,
            cache: Cache {
                block_tokens: args.cache_block,
                minimum_tokens: args.cache_minimum,
            },
            window_tokens: args.window,
            price: prices.map(price),
        },
        cells,
        gates,
        paths: args
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        prices: text.zip(currency),
    })
}

/// Items in order, each once.
fn distinct<T: PartialEq>(
    texts: &[String],
    read: impl Fn(&str) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut found = Vec::new();
    for text in texts {
        let one = read(text.trim())?;
        if !found.contains(&one) {
            found.push(one);
        }
    }
    Ok(found)
}

fn size(text: &str) -> anyhow::Result<u64> {
    parse_size(text).with_context(|| format!("{text:?} is no size (write 32768, 32KiB or 1MiB)"))
}

/// Every policy with every threshold and every size of replacements that it has.
fn cells(args: &ReplayArgs) -> anyhow::Result<(Vec<CellPlan>, Vec<Policy>)> {
    let names = distinct(&args.policy, |text| Ok(text.parse::<PolicyName>()?))?;
    // Off is what is recorded, and always there.
    let thresholds = distinct(&args.thresholds, |text| match text {
        "off" => Ok(None),
        text => size(text).map(Some),
    })?;
    let mut thresholds: Vec<u64> = thresholds.into_iter().flatten().collect();
    thresholds.sort_unstable();
    ensure!(
        !thresholds.is_empty(),
        "--thresholds names none but off, which is what is recorded (add one, such as 32KiB)"
    );
    let sizes = distinct(&args.replacement, |text| match text {
        "own" => Ok(None),
        text => size(text).map(Some),
    })?;
    let (mut cells, mut policies) = (Vec::new(), Vec::new());
    for name in names {
        for replacement in &sizes {
            for threshold in &thresholds {
                let policy = Policy::new(name, *threshold, *replacement)?;
                cells.push(CellPlan {
                    policy: name.name().to_owned(),
                    threshold_bytes: *threshold,
                    replacement_bytes: *replacement,
                });
                policies.push(policy);
            }
        }
    }
    Ok((cells, policies))
}

/// The currency of a table, whose prices are added up.
fn one_currency(prices: &Prices) -> anyhow::Result<String> {
    let currencies: BTreeSet<&str> = prices.models().map(|(_, model)| model.currency()).collect();
    let mut currencies = currencies.into_iter();
    match (currencies.next(), currencies.next()) {
        (Some(one), None) => Ok(one.to_owned()),
        (Some(one), Some(other)) => bail!(
            "the price table has prices in {} and in {}, which cannot be added up (give a table in one currency)",
            plain(one),
            plain(other)
        ),
        (None, _) => bail!("the price table has no models (add a table [models.\"NAME\"])"),
    }
}

fn price(prices: Prices) -> Box<InputPrice> {
    Box::new(move |model, input: PricedInput| {
        let cost = prices.of(model?)?.cost(PromptTokens {
            uncached_input_tokens: input.uncached_tokens,
            cache_read_tokens: input.cache_read_tokens,
            cache_write_tokens: input.cache_write_tokens,
            output_tokens: 0,
        });
        Some(cost.total().to_f64())
    })
}

impl Asked {
    /// The record, of which time, files and sessions are not known yet; for an id it has the hash of what was asked.
    pub(super) fn record(&self, tokenizer: &str) -> ReplayRecord {
        let mut record = ReplayRecord {
            schema: SCHEMA,
            replay_id: String::new(),
            started_at: String::new(),
            versions: Versions {
                spillgate: env!("CARGO_PKG_VERSION").to_owned(),
                tokenizer: tokenizer.to_owned(),
            },
            paths: self.paths.clone(),
            cells: self.cells.clone(),
            read_backs: self
                .plan
                .read_backs
                .iter()
                .map(ToString::to_string)
                .collect(),
            cache: CacheRecord {
                block_tokens: self.plan.cache.block_tokens,
                minimum_tokens: self.plan.cache.minimum_tokens,
            },
            window_tokens: self.plan.window_tokens,
            prices: self.prices.as_ref().map(|(text, _)| text.clone()),
            currency: self.prices.as_ref().map(|(_, currency)| currency.clone()),
            gates: self.gates.iter().map(ToString::to_string).collect(),
            files: ReplayFiles::default(),
            sessions: 0,
            superseded: BTreeSet::new(),
            problems: std::collections::BTreeMap::new(),
            left_out: std::collections::BTreeMap::new(),
            sessions_digest: String::new(),
        };
        let text = format!("{record:?}");
        record.replay_id = digest_parts(&[&text]);
        record
    }
}
