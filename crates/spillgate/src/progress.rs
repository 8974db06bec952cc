//! Progress of an acceptance: drawn on a terminal, a few lines elsewhere, or events for programs.

use std::cmp::max;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use console::truncate_str;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use spill_record::{LiveFolder, Outcome, RunRecord};
use spill_report::{EVENT_SCHEMA, Event, Pace, Standing, standings};

use crate::out;

/// What is told while runs are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing.
    Nothing,
    /// People read it, on standard error.
    Words,
    /// Programs read it, on standard output.
    Events,
}

pub(crate) struct Progress {
    how: How,
    started: Instant,
    planned: u64,
    done: u64,
    not_succeeded: u64,
    rules: Option<Rules>,
}

enum How {
    Bar(ProgressBar),
    Lines,
    Events,
    Quiet,
}

/// Times that progress is printed over a whole plan where there is no terminal.
const TIMES: u64 = 6;
/// Candidates whose rules are shown.
const CANDIDATES: usize = 3;
/// Columns of a line.
const WIDTH: usize = 79;
/// How often the bar is drawn anew without news, so that the time left runs down.
pub(crate) const TICK: Duration = Duration::from_millis(250);

impl Progress {
    /// Progress of the acceptance whose folder is `folder`.
    pub(crate) fn new(told: Told, folder: &Path, planned: usize) -> Self {
        let how = match told {
            Told::Nothing => How::Quiet,
            Told::Events => How::Events,
            Told::Words if draws() => How::Bar(bar(planned as u64)),
            Told::Words => How::Lines,
        };
        Self {
            rules: match how {
                How::Quiet => None,
                How::Bar(_) | How::Lines | How::Events => Rules::of(folder),
            },
            how,
            started: Instant::now(),
            planned: planned as u64,
            done: 0,
            not_succeeded: 0,
        }
    }

    /// Tells that a planned run is recorded.
    pub(crate) fn finished(&mut self, run: &RunRecord) {
        self.done += 1;
        self.not_succeeded += u64::from(run.outcome != Outcome::Succeeded);
        let pace = self.pace();
        match &self.how {
            How::Quiet => {}
            How::Bar(bar) => {
                bar.set_position(self.done);
                if let Some(standings) = self.rules.as_mut().and_then(Rules::look_now_and_then) {
                    bar.set_message(message(self.not_succeeded, standings));
                }
            }
            How::Lines
                if self.done * TIMES / max(self.planned, 1)
                    != (self.done - 1) * TIMES / max(self.planned, 1) =>
            {
                out::note(format_args!(
                    "{}/{} runs, {}",
                    self.done,
                    self.planned,
                    pace_words(&pace)
                ));
                let standings = self.rules.as_mut().map_or(&[][..], Rules::look);
                for line in message(self.not_succeeded, standings).lines() {
                    out::note(format_args!("  {line}"));
                }
            }
            How::Lines => {}
            How::Events => {
                out::line(Event::of_run(run, pace).line());
                if let Some(standings) = self.rules.as_mut().and_then(Rules::look_now_and_then) {
                    let rules = Event::Rules {
                        schema: EVENT_SCHEMA,
                        provisional: true,
                        candidates: standings.to_vec(),
                    };
                    out::line(rules.line());
                }
            }
        }
    }

    /// Tells that the runs are over, by a signal or because all are made.
    pub(crate) fn close(self, interrupted: bool) {
        let pace = self.pace();
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
        if !interrupted {
            return;
        }
        out::note("interrupted: the folder holds the runs that had finished");
        if let How::Events = self.how {
            let schema = EVENT_SCHEMA;
            out::line(Event::Interrupted { schema, pace }.line());
        }
    }

    fn pace(&self) -> Pace {
        pace(
            self.done,
            self.planned,
            self.not_succeeded,
            self.started.elapsed(),
        )
    }
}

/// Whether standard error is a terminal that can draw.
pub(crate) fn draws() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn bar(planned: u64) -> ProgressBar {
    let bar = ProgressBar::new(planned);
    let template = "{bar:24.cyan} {pos}/{len} runs, {pace}\n{msg}";
    let style = ProgressStyle::with_template(template)
        .expect("the template is well-formed")
        .with_key(
            "pace",
            |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                let planned = state.len().unwrap_or_default();
                let words = pace_words(&pace(state.pos(), planned, 0, state.elapsed()));
                text.write_str(&words).expect("a line takes every write");
            },
        );
    bar.set_style(style);
    bar.enable_steady_tick(TICK);
    bar
}

fn pace(done: u64, planned: u64, not_succeeded: u64, elapsed: Duration) -> Pace {
    let seconds = elapsed.as_secs_f64();
    let rate = (done > 0 && seconds > 0.0).then(|| done as f64 / seconds);
    let left = planned.saturating_sub(done) as f64;
    Pace {
        done,
        planned,
        not_succeeded,
        runs_per_second: rate,
        eta_ms: rate.map(|rate| whole(left / rate * 1_000.0)),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times are not negative, and the cast saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Rate and time left, such as `41.2 runs/s, 1 min 20 s left`.
fn pace_words(pace: &Pace) -> String {
    let (Some(rate), Some(eta)) = (pace.runs_per_second, pace.eta_ms) else {
        return "no time known yet".to_owned();
    };
    let rate = if rate >= 1.0 {
        format!("{rate:.1} runs/s")
    } else {
        format!("{:.1} runs/min", rate * 60.0)
    };
    format!("{rate}, {} left", time_words(eta.div_ceil(1_000)))
}

fn time_words(seconds: u64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {} min", minutes % 60),
    }
}

/// What stands below the bar: what went wrong, and the rules of the first candidates.
fn message(not_succeeded: u64, standings: &[Standing]) -> String {
    let mut text = String::new();
    let mut line = |words: &str| {
        let lead = if text.is_empty() { "" } else { "\n" };
        let words = truncate_str(words, WIDTH, "…");
        write!(text, "{lead}{words}").expect("a string takes every write");
    };
    if not_succeeded > 0 {
        line(&format!("{not_succeeded} did not succeed"));
    }
    for standing in standings.iter().take(CANDIDATES) {
        line(&standing.words());
    }
    if standings.len() > CANDIDATES {
        line(&format!("and {} more", standings.len() - CANDIDATES));
    }
    text
}

/// The rules as they stand, judged on the records in the folder.
struct Rules {
    live: LiveFolder,
    next: Instant,
    standings: Vec<Standing>,
}

impl Rules {
    /// Time between two judgements, and how much longer than one of them it is at least: judging a
    /// large folder must not slow what is judged.
    const PAUSE: Duration = Duration::from_millis(200);
    const SHARE: u32 = 20;

    fn of(folder: &Path) -> Option<Self> {
        Some(Self {
            live: LiveFolder::open(folder).ok()?,
            next: Instant::now(),
            standings: Vec::new(),
        })
    }

    /// The standings where they are due and have turned.
    fn look_now_and_then(&mut self) -> Option<&[Standing]> {
        if Instant::now() < self.next {
            return None;
        }
        let before = std::mem::take(&mut self.standings);
        let turned = self.look() != before;
        turned.then_some(&*self.standings)
    }

    fn look(&mut self) -> &[Standing] {
        let start = Instant::now();
        if self.live.look(|_| {}).is_ok() {
            self.standings = standings(&spill_verdict::standing(self.live.set()));
        }
        let took = start.elapsed();
        self.next = Instant::now() + max(Self::PAUSE, took * Self::SHARE);
        &self.standings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_in_words() {
        let check = |done, seconds, words: &str| {
            let pace = pace(done, 60, 0, Duration::from_secs_f64(seconds));
            assert_eq!(pace_words(&pace), words);
        };
        check(0, 5.0, "no time known yet");
        check(30, 10.0, "3.0 runs/s, 10 s left");
        check(1, 10.0, "6.0 runs/min, 9 min 50 s left");
        check(1, 600.0, "0.1 runs/min, 9 h 50 min left");
        check(60, 10.0, "6.0 runs/s, 0 s left");
    }

    #[test]
    fn a_message_has_few_and_short_lines() {
        let standing = |name: String| Standing {
            configuration: name,
            considered: true,
            state: spill_verdict::State::NotRun,
            holds: 1,
            broken: 0,
            not_proven: 0,
            open: 3,
            rules: Vec::new(),
        };
        let many: Vec<_> = (0..20)
            .map(|n| standing(format!("{n}{}", "文\u{1b}[2J".repeat(40))))
            .collect();
        let text = message(7, &many);
        assert_eq!(text.lines().count(), 5, "{text}");
        for line in text.lines() {
            assert!(console::measure_text_width(line) <= 79, "{line}");
            assert!(!line.contains('\u{1b}'), "{line:?}");
        }
        assert!(text.ends_with("and 17 more"));
        assert_eq!(message(0, &[]), "");
    }
}
