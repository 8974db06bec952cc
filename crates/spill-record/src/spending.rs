//! What a live acceptance has spent at its endpoint: `spending.json`.

use std::io;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::PromptTokens;
use crate::error::FolderError;
use crate::files::{check_schema, malformed, read_bounded, unreadable, write_whole};
use crate::folder::RunFolder;
use crate::prices::Money;
use crate::{SCHEMA, Shard};

const SPENDING: &str = "spending.json";

/// Which cap stopped an acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapReached {
    /// The one on tokens.
    Tokens,
    /// The one on money.
    Money,
}

/// What was sent to a real endpoint and what that cost so far, beside the caps on it.
///
/// It counts every request, those of runs that left no record included, so it can be more than what
/// `calls.jsonl` adds up to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// Version of the record format.
    pub schema: u32,
    /// Most tokens, input and output together, after which no further request is sent.
    pub limit_tokens: Option<u64>,
    /// Most money, an exact decimal in `currency`, after which no further request is sent.
    pub limit_money: Option<String>,
    /// The currency of the price table.
    pub currency: Option<String>,
    /// Requests sent to the endpoint, each attempt for itself.
    pub calls: u64,
    /// Of them, those that brought no whole answer.
    pub calls_without_answer: u64,
    /// Of the whole answers, those without usage.
    pub calls_without_usage: u64,
    /// Tokens as the endpoint billed them.
    pub billed: PromptTokens,
    /// Of them, those of requests that brought no whole answer.
    pub billed_without_answer: PromptTokens,
    /// Tokens of requests whose usage the endpoint did not tell, by our own count; they count against
    /// the caps and stand in no other figure.
    pub estimated: PromptTokens,
    /// What `billed` and `estimated` cost, an exact decimal in `currency`.
    pub money: Option<String>,
    /// The cap that was reached, if one was.
    pub reached: Option<CapReached>,
    /// In a merged folder, the folders that this is the sum of; each had caps of its own, and the sum has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<ShardSpending>,
}

/// What one shard's folder spent, and its caps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShardSpending {
    /// The folder's acceptance.
    pub acceptance_id: String,
    /// Which part of the plan it is.
    pub shard: Shard,
    /// Whether the folder told what it spent; else its tokens are the sum of its calls, and its caps are not known.
    pub told: bool,
    /// Its cap on tokens.
    pub limit_tokens: Option<u64>,
    /// Its cap on money.
    pub limit_money: Option<String>,
    /// Tokens that count against the cap.
    pub counted_tokens: u64,
    /// What they cost, where that is known.
    pub money: Option<String>,
}

impl Spending {
    /// Tokens that count against the cap.
    #[must_use]
    pub fn counted_tokens(&self) -> u64 {
        let of = |tokens: PromptTokens| tokens.input_tokens().saturating_add(tokens.output_tokens);
        of(self.billed).saturating_add(of(self.estimated))
    }

    /// The sum of what shards spent. Money is unknown where one of them does not know its own.
    pub(crate) fn sum(parts: &[(ShardSpending, Self)]) -> Self {
        let known = parts.iter().map(|(_, part)| part.money.as_deref());
        let money = known
            .map(|money| money.and_then(Money::parse))
            .try_fold(Money::default(), |sum, money| Some(sum + money?));
        let mut all = Self {
            schema: SCHEMA,
            currency: parts.iter().find_map(|(_, part)| part.currency.clone()),
            money: money.map(|money| money.to_string()),
            ..Self::default()
        };
        for (shard, part) in parts {
            all.calls += part.calls;
            all.calls_without_answer += part.calls_without_answer;
            all.calls_without_usage += part.calls_without_usage;
            all.billed = all.billed.plus(part.billed);
            all.billed_without_answer = all.billed_without_answer.plus(part.billed_without_answer);
            all.estimated = all.estimated.plus(part.estimated);
            all.shards.push(shard.clone());
        }
        all
    }
}

impl RunFolder {
    /// Writes what was spent so far, in the place of what was known before.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::write_derived`].
    pub fn write_spending(folder: &Path, spending: &Spending) -> Result<(), FolderError> {
        let mut text = serde_json::to_string_pretty(spending)
            .expect("what was spent has string keys and whole numbers");
        text.push('\n');
        write_whole(folder, SPENDING, text.as_bytes())
    }

    /// What was spent when the folder was left: by its own account, or by its calls where those say more, as after a kill.
    ///
    /// # Errors
    ///
    /// As [`RunFolder::read_spending`] and [`RunFolder::each_call_of`].
    pub fn spent(folder: &Path) -> Result<Spending, FolderError> {
        let told = Self::read_spending(folder)?.unwrap_or_default();
        let (mut calls, mut billed) = (0, PromptTokens::default());
        Self::each_call_of(
            folder,
            |_| true,
            |call| {
                calls += 1;
                billed = billed.plus(call.tokens.unwrap_or_default());
            },
        )?;
        let sum = billed.input_tokens().saturating_add(billed.output_tokens);
        if sum <= told.counted_tokens() {
            return Ok(told);
        }
        Ok(Spending {
            calls: told.calls.max(calls),
            billed,
            estimated: PromptTokens::default(),
            money: None,
            ..told
        })
    }

    /// Reads what was spent; `None` in a folder of simulated mode.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or is not one that this program writes.
    pub fn read_spending(folder: &Path) -> Result<Option<Spending>, FolderError> {
        let path = folder.join(SPENDING);
        let text = match read_bounded(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(unreadable(&path, source)),
            Ok(text) => text,
        };
        check_schema(&path, 1, &text)?;
        let spending = serde_json::from_slice(&text);
        spending
            .map(Some)
            .map_err(|error| malformed(&path, error.line(), &error))
    }
}
