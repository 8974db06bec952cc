//! How often the bounds of live mode cover the truth, and how often each rule errs, by simulation.
//!
//! Prints the tables of `docs/statistics.md`: `cargo run --release -p spill-verdict --example coverage`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use spill_verdict::State;
use spill_verdict::statistics::{
    Bounds, PairedCounts, difference_bounds, mean_bounds, median_bounds, not_above, not_below,
    rate_upper_bound, signs, wilson,
};

const EXPERIMENTS: u32 = 4_000;
const PAIRS: [u64; 5] = [5, 10, 20, 30, 60];
/// How much of a pair both arms share.
const CORRELATION: f64 = 0.8;
const NOISE: f64 = 0.2;
const FACTS: u32 = 20;
const MARGIN: f64 = 0.10;

fn main() {
    println!("## What the bounds cover\n");
    println!("| bound | truth | {} |", heads());
    println!("|---|---|{}", "---|".repeat(PAIRS.len()));
    coverage("success rate, below (Wilson)", "95 %", |random, n| {
        let won = count(n, || chance(random, 0.95));
        wilson(won, n).is_some_and(|b| b.lower <= 0.95)
    });
    coverage("success rate, above (Wilson)", "95 %", |random, n| {
        let won = count(n, || chance(random, 0.95));
        wilson(won, n).is_some_and(|b| b.upper >= 0.95)
    });
    coverage(
        "difference of rates, below (Newcombe)",
        "-10 points",
        |random, n| {
            difference_bounds(successes(random, n, 0.95, 0.85))
                .is_some_and(|b| b.lower <= -0.10 + 1e-9)
        },
    );
    coverage("difference of rates, below (Newcombe)", "0", |random, n| {
        difference_bounds(successes(random, n, 0.95, 0.95)).is_some_and(|b| b.lower <= 0.0)
    });
    coverage(
        "new limit hits, above (Clopper–Pearson)",
        "5 %",
        |random, n| rate_upper_bound(count(n, || chance(random, 0.05)), n) >= 0.05,
    );
    coverage(
        "median ratio, above (order statistic)",
        "1.0",
        |random, n| median_bounds(&ratios(random, n, 1.0)).is_some_and(|b| b.upper >= 1.0),
    );
    coverage(
        "mean quality difference, below (bootstrap)",
        "0",
        |random, n| qualities(random, n, 0.9, 0.9).lower <= 1e-9,
    );
    coverage(
        "mean quality difference, below (bootstrap)",
        "-10 points",
        |random, n| qualities(random, n, 0.9, 0.8).lower <= -0.10 + 1e-9,
    );

    println!("\n## How often the rules err\n");
    println!("| rule | truth | state | {} |", heads());
    println!("|---|---|---|{}", "---|".repeat(PAIRS.len()));
    let success = |on: f64| {
        move |random: &mut ChaCha8Rng, n| {
            difference_bounds(successes(random, n, 0.95, on))
                .map_or(State::NotProven, |b| not_below(b, MARGIN))
        }
    };
    errs(
        "1, margin 10 points",
        "equal, 95 %",
        State::Holds,
        success(0.95),
    );
    errs(
        "1, margin 10 points",
        "equal, 95 %",
        State::Broken,
        success(0.95),
    );
    errs(
        "1, margin 10 points",
        "85 against 95 %: false accept",
        State::Holds,
        success(0.85),
    );
    let literal = |random: &mut ChaCha8Rng, n| {
        let counts = successes(random, n, 0.95, 0.95);
        if counts.gained < counts.lost {
            State::Broken
        } else {
            State::Holds
        }
    };
    errs(
        "1, literal",
        "equal, 95 %: false reject",
        State::Broken,
        literal,
    );
    let limit = |rate: f64| {
        move |random: &mut ChaCha8Rng, n| {
            if count(n, || chance(random, rate)) == 0 {
                State::Holds
            } else {
                State::Broken
            }
        }
    };
    errs("2", "1 % new hits: rejected", State::Broken, limit(0.01));
    errs("2", "5 % new hits: false accept", State::Holds, limit(0.05));
    let tokens = |truth: f64| {
        move |random: &mut ChaCha8Rng, n| {
            median_bounds(&ratios(random, n, truth)).map_or(State::NotProven, |b| not_above(b, 1.1))
        }
    };
    errs("3, at most 1.10", "equal", State::Holds, tokens(1.0));
    errs(
        "3, at most 1.10",
        "equal: false reject",
        State::Broken,
        tokens(1.0),
    );
    errs(
        "3, at most 1.10",
        "ratio 1.10: false accept",
        State::Holds,
        tokens(1.1),
    );
    let large =
        |truth: f64| move |random: &mut ChaCha8Rng, n| signs(&ratios(random, n, truth), 1.0).state;
    errs("3, large", "equal: false accept", State::Holds, large(1.0));
    errs("3, large", "ratio 0.90", State::Holds, large(0.9));
    errs("3, large", "ratio 0.80", State::Holds, large(0.8));
    errs(
        "3, large",
        "ratio 0.90: false reject",
        State::Broken,
        large(0.9),
    );
    let quality = |on: f64| {
        move |random: &mut ChaCha8Rng, n| not_below(qualities(random, n, 0.9, on), MARGIN)
    };
    errs(
        "4, without the minimum of 20",
        "equal, 90 %",
        State::Holds,
        quality(0.9),
    );
    errs(
        "4, without the minimum of 20",
        "equal, 90 %: false reject",
        State::Broken,
        quality(0.9),
    );
    errs(
        "4, without the minimum of 20",
        "80 against 90 %: false accept",
        State::Holds,
        quality(0.8),
    );
}

fn heads() -> String {
    PAIRS.map(|n| format!("n = {n}")).join(" | ")
}

/// The share of experiments in which a bound covers the truth.
fn coverage(what: &str, truth: &str, covers: impl Fn(&mut ChaCha8Rng, u64) -> bool) {
    let shares = PAIRS.map(|n| share(n, |random| covers(random, n)));
    println!("| {what} | {truth} | {} |", shares.join(" | "));
}

/// The share of experiments that end in `state`.
fn errs(rule: &str, truth: &str, state: State, judge: impl Fn(&mut ChaCha8Rng, u64) -> State) {
    let shares = PAIRS.map(|n| share(n, |random| judge(random, n) == state));
    println!(
        "| {rule} | {truth} | {} | {} |",
        state.words(),
        shares.join(" | ")
    );
}

fn share(n: u64, event: impl Fn(&mut ChaCha8Rng) -> bool) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(n);
    let seen = (0..EXPERIMENTS).filter(|_| event(&mut random)).count();
    format!("{:.1} %", 100.0 * seen as f64 / f64::from(EXPERIMENTS))
}

fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

fn chance(random: &mut ChaCha8Rng, p: f64) -> bool {
    uniform(random) < p
}

fn count(n: u64, mut event: impl FnMut() -> bool) -> u64 {
    (0..n).filter(|_| event()).count() as u64
}

/// A standard normal draw (Box and Muller 1958).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (1.0 - uniform(random), uniform(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Pairs whose arms share one draw with the probability [`CORRELATION`].
fn successes(random: &mut ChaCha8Rng, n: u64, off: f64, on: f64) -> PairedCounts {
    let mut counts = PairedCounts::default();
    for _ in 0..n {
        let first = uniform(random);
        let second = if chance(random, CORRELATION) {
            first
        } else {
            uniform(random)
        };
        let cell = match (second < on, first < off) {
            (true, true) => &mut counts.both,
            (true, false) => &mut counts.gained,
            (false, true) => &mut counts.lost,
            (false, false) => &mut counts.neither,
        };
        *cell += 1;
    }
    counts
}

/// Ratios within pairs of tokens with [`NOISE`] on each arm, of which [`CORRELATION`] is shared.
fn ratios(random: &mut ChaCha8Rng, n: u64, truth: f64) -> Vec<f64> {
    let own = NOISE * (2.0 * (1.0 - CORRELATION)).sqrt();
    (0..n)
        .map(|_| truth * (own * normal(random)).exp())
        .collect()
}

/// Bounds of the mean difference of the share of [`FACTS`] facts found.
fn qualities(random: &mut ChaCha8Rng, n: u64, off: f64, on: f64) -> Bounds {
    let differences: Vec<f64> = (0..n)
        .map(|_| {
            let (mut a, mut b) = (0_i32, 0_i32);
            for _ in 0..FACTS {
                let first = uniform(random);
                let second = if chance(random, CORRELATION) {
                    first
                } else {
                    uniform(random)
                };
                a += i32::from(first < off);
                b += i32::from(second < on);
            }
            f64::from(b - a) / f64::from(FACTS)
        })
        .collect();
    let seed = random.next_u64();
    mean_bounds(&differences, seed).expect("there are pairs")
}
