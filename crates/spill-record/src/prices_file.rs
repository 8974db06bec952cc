//! From a price table's file to [`Prices`], with errors that name place, fact and way out.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use crate::files::open_regular;
use crate::prices::{ModelPrices, Price, Prices};

/// A price table that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PricesError {
    /// The operating system refused to read it.
    #[error("cannot read the price table {path}: {source} (name a readable TOML file)")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// It does not say what a price table says.
    #[error("{path}, line {line}, column {column}: {problem} ({way_out})")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
        /// What to do about it.
        way_out: String,
    },
}

/// A table of more bytes is no price table.
const MAX_BYTES: u64 = 1 << 20;
/// No model costs that much; a price given for one token, or in cents, soon does.
const MAX_PRICE: f64 = 1e6;
/// Digits of a price behind the point.
const DECIMALS: i32 = 6;
const EXAMPLE: &str = "README.md has an example";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTable {
    models: Spanned<BTreeMap<Spanned<String>, RawModel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    currency: Spanned<String>,
    uncached_input_per_million: Spanned<f64>,
    cache_read_per_million: Spanned<f64>,
    cache_write_per_million: Spanned<f64>,
    output_per_million: Spanned<f64>,
}

impl Prices {
    /// Reads a price table.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be read or is no price table.
    pub fn read(path: &Path) -> Result<Self, PricesError> {
        let unreadable = |source| PricesError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let file = open_regular(path).map_err(unreadable)?;
        io::Read::read_to_end(&mut io::Read::take(file, MAX_BYTES + 1), &mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            let words = format!("it has more than {MAX_BYTES} bytes");
            return Err(unreadable(io::Error::other(words)));
        }
        Self::parse(path, &bytes)
    }

    /// Reads a price table from the bytes of the file `path`, which is named in errors alone.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are no price table.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, PricesError> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let source = Source { path, text: &valid };
                let end = valid.len()..valid.len();
                return Err(source.invalid(end, "not UTF-8 text", "a price table is a TOML file"));
            }
        };
        let source = Source { path, text };
        let raw: RawTable = toml::from_str(text).map_err(|error| source.explain(&error))?;
        if raw.models.get_ref().is_empty() {
            return Err(source.invalid(raw.models.span(), "no model has a price", EXAMPLE));
        }
        let models: Result<_, _> = raw
            .models
            .into_inner()
            .into_iter()
            .map(|(name, model)| source.model(name, &model))
            .collect();
        Ok(Self {
            models: models?,
            text: text.to_owned(),
        })
    }
}

struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn model(
        &self,
        name: Spanned<String>,
        raw: &RawModel,
    ) -> Result<(String, ModelPrices), PricesError> {
        if name.get_ref().trim().is_empty() {
            return Err(self.invalid(
                name.span(),
                "a model without a name",
                "name it as requests spell it: [models.\"NAME\"]",
            ));
        }
        let currency = raw.currency.get_ref();
        if currency.len() != 3 || !currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(self.invalid(
                raw.currency.span(),
                "a currency is three capital letters",
                "such as \"USD\" or \"EUR\"",
            ));
        }
        let prices = ModelPrices {
            currency: currency.clone(),
            uncached_input: self.price(&raw.uncached_input_per_million)?,
            cache_read: self.price(&raw.cache_read_per_million)?,
            cache_write: self.price(&raw.cache_write_per_million)?,
            output: self.price(&raw.output_per_million)?,
        };
        Ok((name.into_inner(), prices))
    }

    fn price(&self, raw: &Spanned<f64>) -> Result<Price, PricesError> {
        let value = *raw.get_ref();
        if !(0.0..=MAX_PRICE).contains(&value) {
            return Err(self.invalid(
                raw.span(),
                format!("a price is from 0 to {MAX_PRICE}"),
                "give the price of a million tokens, in whole units of the currency",
            ));
        }
        let scaled = value * 10_f64.powi(DECIMALS);
        // What a double cannot hold exactly is far below a thousandth of the last digit.
        if (scaled - scaled.round()).abs() > 1e-3 {
            return Err(self.invalid(
                raw.span(),
                format!("a price has at most {DECIMALS} digits behind the point"),
                "give the price of a million tokens",
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 10¹², and rounded"
        )]
        Ok(Price(scaled.round() as u64))
    }

    fn explain(&self, error: &toml::de::Error) -> PricesError {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().trim().replace('\n', ", ");
        let mut quoted = message.split('`').skip(1).step_by(2);
        let key = quoted.next().unwrap_or_default();
        if message.starts_with("unknown field") {
            let known: Vec<&str> = quoted.collect();
            let way_out = format!("the keys here are {}", known.join(", "));
            return self.invalid(span, format!("unknown key `{key}`"), way_out);
        }
        if message.starts_with("missing field") {
            let problem = format!("the key `{key}` is missing");
            return self.invalid(span, problem, EXAMPLE);
        }
        self.invalid(span, message.replace("f64", "a number"), EXAMPLE)
    }

    fn invalid(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        way_out: impl Into<String>,
    ) -> PricesError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        PricesError::Invalid {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            problem: problem.into(),
            way_out: way_out.into(),
        }
    }
}
