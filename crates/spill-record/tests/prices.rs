//! The price table from outside: what it says is exact, and what it cannot say is named with its place.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its own table has failed"
)]

use std::path::Path;

use proptest::prelude::*;
use spill_record::{Cost, Prices, PricesError, PromptTokens};

const TABLE: &str = r#"# As of 2026-11-01.
[models."simulated-1"]
currency = "USD"
uncached_input_per_million = 3
cache_read_per_million = 0.3
cache_write_per_million = 3.75
output_per_million = 15.000001
"#;

fn parse(text: &str) -> Result<Prices, PricesError> {
    Prices::parse(Path::new("prices.toml"), text.as_bytes())
}

fn tokens(uncached: u64, read: u64, written: u64, output: u64) -> PromptTokens {
    PromptTokens {
        uncached_input_tokens: uncached,
        cache_read_tokens: read,
        cache_write_tokens: written,
        output_tokens: output,
    }
}

fn check(tokens: PromptTokens, total: &str) {
    let prices = parse(TABLE).unwrap();
    let cost = prices.of("simulated-1").unwrap().cost(tokens);
    assert_eq!(cost.total().to_string(), total);
}

#[test]
fn costs_are_exact() {
    check(tokens(0, 0, 0, 0), "0");
    check(tokens(1, 0, 0, 0), "0.000003");
    check(tokens(0, 1, 0, 0), "0.0000003");
    check(tokens(1_000_000, 1_000_000, 1_000_000, 0), "7.05");
    check(tokens(0, 0, 0, 1), "0.000015000001");
    check(tokens(u64::MAX, 0, 0, 0), "55340232221128.654845");
}

#[test]
fn a_table_is_kept_as_it_was_written() {
    let prices = parse(TABLE).unwrap();
    assert_eq!(prices.text(), TABLE);
    let [(name, model)]: [_; 1] = prices.models().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((name, model.currency()), ("simulated-1", "USD"));
    let shown = model.by_bucket().map(|price| price.to_string());
    assert_eq!(shown, ["3", "0.3", "3.75", "15.000001"]);
    assert!(prices.of("simulated").is_none(), "names are exact");
}

/// `line` stands in the place of the line of the table that begins with the same key.
fn with(line: &str) -> String {
    let key = line.split(['=', ' ']).next().unwrap();
    TABLE
        .lines()
        .map(|old| if old.starts_with(key) { line } else { old }.to_owned() + "\n")
        .collect()
}

fn refused(text: &str, words: &str) {
    let error = parse(text).expect_err(text).to_string();
    assert_eq!(error, words);
}

#[test]
fn a_refusal_names_place_fact_and_way_out() {
    refused(
        "",
        "prices.toml, line 1, column 1: the key `models` is missing (README.md has an example)",
    );
    refused(
        "[models]\n",
        "prices.toml, line 1, column 1: no model has a price (README.md has an example)",
    );
    refused(
        &with("output_per_million = -1"),
        "prices.toml, line 7, column 22: a price is from 0 to 1000000 (give the price of a million tokens, in whole units of the currency)",
    );
    refused(
        &with("output_per_million = nan"),
        "prices.toml, line 7, column 22: a price is from 0 to 1000000 (give the price of a million tokens, in whole units of the currency)",
    );
    refused(
        &with("output_per_million = 0.0000003"),
        "prices.toml, line 7, column 22: a price has at most 6 digits behind the point (give the price of a million tokens)",
    );
    refused(
        &with("output_per_million = \"15\""),
        "prices.toml, line 7, column 22: invalid type: string \"15\", expected a number (README.md has an example)",
    );
    refused(
        &with("currency = \"dollars\""),
        "prices.toml, line 3, column 12: a currency is three capital letters (such as \"USD\" or \"EUR\")",
    );
    refused(
        &TABLE.replace("cache_read", "cached"),
        "prices.toml, line 5, column 1: unknown key `cached_per_million` (the keys here are currency, uncached_input_per_million, cache_read_per_million, cache_write_per_million, output_per_million)",
    );
    refused(
        &TABLE.replace("output_per_million = 15.000001\n", ""),
        "prices.toml, line 2, column 1: the key `output_per_million` is missing (README.md has an example)",
    );
    refused(
        &TABLE.replace("simulated-1", " "),
        "prices.toml, line 2, column 9: a model without a name (name it as requests spell it: [models.\"NAME\"])",
    );
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    for text in ["[models\n", "a = 1\n= 2\n", &format!("{TABLE}{TABLE}")] {
        let error = parse(text).expect_err(text);
        assert!(matches!(error, PricesError::Invalid { .. }), "{error}");
    }
    let error = Prices::parse(Path::new("p"), b"# fine\n\xff").unwrap_err();
    assert_eq!(
        error.to_string(),
        "p, line 2, column 1: not UTF-8 text (a price table is a TOML file)"
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        folder.path(),
        &folder.path().join("none"),
        Path::new("/dev/zero"),
    ] {
        let error = Prices::read(path).unwrap_err();
        assert!(matches!(error, PricesError::Unreadable { .. }), "{error}");
    }
    let large = folder.path().join("large");
    std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    let error = Prices::read(&large).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cost_of_a_sum_is_the_sum_of_the_costs(
        all in proptest::collection::vec(proptest::array::uniform4(0_u64..1 << 40), 1..6),
    ) {
        let prices = parse(TABLE).unwrap();
        let model = prices.of("simulated-1").unwrap();
        let of = |[a, b, c, d]: [u64; 4]| tokens(a, b, c, d);
        let summed: Cost = all.iter().map(|tokens| model.cost(of(*tokens))).sum();
        let sum = all.iter().fold([0; 4], |sum, one| std::array::from_fn(|at| sum[at] + one[at]));
        prop_assert_eq!(summed, model.cost(of(sum)));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(Prices::parse(Path::new("p"), &bytes));
    }

    #[test]
    fn six_digits_are_kept(millionths in 0_u64..=1_000_000_000_000) {
        let price = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
        let prices = parse(&with(&format!("output_per_million = {price}"))).unwrap();
        let shown = prices.of("simulated-1").unwrap().by_bucket()[3].to_string();
        let trimmed = price.trim_end_matches('0').trim_end_matches('.');
        prop_assert_eq!(shown, if trimmed.is_empty() { "0" } else { trimmed });
    }
}
