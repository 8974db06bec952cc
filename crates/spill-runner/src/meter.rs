//! What a live acceptance has spent, and whether it may spend more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use spill_mocks::{Attempt, BilledTokens, Gate};
use spill_record::{CapReached, Money, Prices, PromptTokens, SCHEMA, Spending};
use tokio::sync::watch;

/// The most that may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Tokens, input and output together.
    pub tokens: Option<u64>,
    /// Money, in the currency of the price table.
    pub money: Option<Money>,
}

/// Counts what every request to a real endpoint cost, and admits no further one when a cap is reached.
///
/// It decides by what has been settled. Requests in flight have not been, so runs side by side can each
/// pass the cap by the request that they are waiting for, and by no more.
#[derive(Debug)]
pub struct Meter {
    caps: Caps,
    prices: Option<Prices>,
    counted: Mutex<Counted>,
    reached: watch::Sender<bool>,
}

#[derive(Debug)]
struct Counted {
    spending: Spending,
    money: Money,
}

impl Meter {
    /// A meter that goes on from `before`, what the folder had spent when it was left.
    #[must_use]
    pub fn new(caps: Caps, prices: Option<Prices>, before: Option<Spending>) -> Self {
        let before = before.unwrap_or_default();
        let money = before.money.as_deref().and_then(Money::parse);
        let money = money.unwrap_or_else(|| {
            let tokens = before.billed.plus(before.estimated);
            cost(prices.as_ref(), None, tokens)
        });
        let currency = prices.as_ref().and_then(currency);
        Self {
            caps,
            counted: Mutex::new(Counted {
                money,
                spending: Spending {
                    schema: SCHEMA,
                    limit_tokens: caps.tokens,
                    limit_money: caps.money.map(|money| money.to_string()),
                    currency,
                    reached: None,
                    ..before
                },
            }),
            prices,
            reached: watch::Sender::new(false),
        }
    }

    /// What was spent so far.
    #[must_use]
    pub fn spending(&self) -> Spending {
        let counted = self.lock();
        Spending {
            money: self.prices.as_ref().map(|_| counted.money.to_string()),
            ..counted.spending.clone()
        }
    }

    /// Turns true when a request was not sent since a cap is reached.
    #[must_use]
    pub fn reached(&self) -> watch::Receiver<bool> {
        self.reached.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tokens cost. A model that the table does not name counts as its dearest one.
fn cost(prices: Option<&Prices>, model: Option<&str>, tokens: PromptTokens) -> Money {
    let Some(prices) = prices else {
        return Money::default();
    };
    if let Some(prices) = model.and_then(|model| prices.of(model)) {
        return prices.cost(tokens).total();
    }
    let all = prices.models();
    let costs = all.map(|(_, prices)| prices.cost(tokens).total());
    costs.max().unwrap_or_default()
}

/// The currency of the table's first model; all have the same one where money is capped.
fn currency(prices: &Prices) -> Option<String> {
    let (_, first) = prices.models().next()?;
    Some(first.currency().to_owned())
}

impl Gate for Meter {
    fn admits(&self) -> bool {
        let mut counted = self.lock();
        let tokens = counted.spending.counted_tokens();
        let reached = if self.caps.tokens.is_some_and(|cap| tokens >= cap) {
            CapReached::Tokens
        } else if self.caps.money.is_some_and(|cap| counted.money >= cap) {
            CapReached::Money
        } else {
            return true;
        };
        counted.spending.reached = Some(reached);
        drop(counted);
        self.reached.send_replace(true);
        false
    }

    fn settle(&self, attempt: &Attempt<'_>) {
        let tokens = prompt_tokens(attempt.billed.unwrap_or(attempt.estimated));
        let cost = cost(self.prices.as_ref(), Some(attempt.model), tokens);
        let mut counted = self.lock();
        counted.money = counted.money + cost;
        let spending = &mut counted.spending;
        spending.calls += 1;
        spending.calls_without_answer += u64::from(!attempt.is_answered);
        match attempt.billed {
            Some(_) => {
                spending.billed = spending.billed.plus(tokens);
                if !attempt.is_answered {
                    spending.billed_without_answer = spending.billed_without_answer.plus(tokens);
                }
            }
            None => {
                spending.estimated = spending.estimated.plus(tokens);
                spending.calls_without_usage += u64::from(attempt.is_answered);
            }
        }
    }
}

fn prompt_tokens(tokens: BilledTokens) -> PromptTokens {
    PromptTokens {
        uncached_input_tokens: tokens.uncached_input,
        cache_read_tokens: tokens.cache_read,
        cache_write_tokens: tokens.cache_write,
        output_tokens: tokens.output,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tokens(uncached_input: u64, output: u64) -> BilledTokens {
        BilledTokens {
            uncached_input,
            output,
            ..BilledTokens::default()
        }
    }

    fn attempt(model: &str, billed: Option<BilledTokens>, is_answered: bool) -> Attempt<'_> {
        Attempt {
            model,
            billed,
            estimated: tokens(100, 10),
            is_answered,
        }
    }

    fn prices() -> Prices {
        let one = |name: &str, price: &str| {
            format!(
                "[models.{name}]\ncurrency = \"USD\"\nuncached_input_per_million = {price}\n\
                 cache_read_per_million = 0\ncache_write_per_million = 0\noutput_per_million = 0\n"
            )
        };
        let text = one("cheap", "1.0") + &one("dear", "10.0");
        Prices::parse(Path::new("prices"), text.as_bytes()).expect("a price table")
    }

    #[test]
    fn tokens_count_up_to_the_cap_and_not_beyond() {
        let caps = Caps {
            tokens: Some(1_000),
            money: None,
        };
        let meter = Meter::new(caps, None, None);
        let reached = meter.reached();
        assert!(meter.admits());
        meter.settle(&attempt("m", Some(tokens(900, 99)), true));
        assert!(meter.admits(), "999 of 1,000");
        meter.settle(&attempt("m", Some(tokens(1, 0)), true));
        assert!(!*reached.borrow());
        assert!(!meter.admits(), "1,000 of 1,000");
        assert!(*reached.borrow());
        assert_eq!(meter.spending().reached, Some(CapReached::Tokens));
        let spending = meter.spending();
        let larger = Caps {
            tokens: Some(1_001),
            money: None,
        };
        let meter = Meter::new(larger, None, Some(spending));
        assert_eq!(meter.spending().reached, None);
        assert!(meter.admits());
        assert_eq!(meter.spending().counted_tokens(), 1_000);
    }

    #[test]
    fn what_is_not_told_is_estimated_and_stands_apart() {
        let meter = Meter::new(Caps::default(), None, None);
        meter.settle(&attempt("m", None, true));
        meter.settle(&attempt("m", None, false));
        meter.settle(&attempt("m", Some(tokens(5, 1)), false));
        let spending = meter.spending();
        assert_eq!((spending.calls, spending.calls_without_answer), (3, 2));
        assert_eq!(spending.calls_without_usage, 1);
        assert_eq!(spending.billed, prompt_tokens(tokens(5, 1)));
        assert_eq!(spending.billed_without_answer, spending.billed);
        assert_eq!(spending.estimated, prompt_tokens(tokens(200, 20)));
        assert_eq!(spending.counted_tokens(), 226);
        assert_eq!(spending.money, None);
    }

    #[test]
    fn money_counts_by_model_and_an_unknown_one_as_the_dearest() {
        let caps = Caps {
            tokens: None,
            money: Money::parse("0.0021"),
        };
        let meter = Meter::new(caps, Some(prices()), None);
        meter.settle(&attempt("cheap", Some(tokens(100, 0)), true));
        assert_eq!(meter.spending().money.as_deref(), Some("0.0001"));
        meter.settle(&attempt("dear", Some(tokens(100, 0)), true));
        assert!(meter.admits());
        meter.settle(&attempt("unknown", None, true));
        let spending = meter.spending();
        assert_eq!(spending.money.as_deref(), Some("0.0021"));
        assert_eq!(spending.currency.as_deref(), Some("USD"));
        assert!(!meter.admits());
        assert_eq!(meter.spending().reached, Some(CapReached::Money));
        let untold = Spending {
            money: None,
            ..spending.clone()
        };
        for before in [spending, untold] {
            let meter = Meter::new(caps, Some(prices()), Some(before));
            assert!(!meter.admits(), "what was spent before counts");
        }
    }
}
