//! Progress on standard error: a bar on a terminal, a line now and then elsewhere.

use std::cell::Cell;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use spill_record::{Outcome, RunRecord};

use crate::out;

pub(crate) struct Progress {
    how: How,
    total: usize,
    done: Cell<usize>,
    not_succeeded: Cell<usize>,
}

enum How {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

/// Lines printed over a whole plan where there is no terminal.
const LINES: usize = 6;

impl Progress {
    pub(crate) fn new(quiet: bool, total: usize) -> Self {
        let how = if quiet {
            How::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(total as u64);
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs {eta} {msg}")
                .expect("the template is well-formed");
            bar.set_style(style);
            How::Bar(bar)
        } else {
            How::Lines
        };
        Self {
            how,
            total,
            done: Cell::new(0),
            not_succeeded: Cell::new(0),
        }
    }

    pub(crate) fn finished(&self, record: &RunRecord) {
        let done = self.done.get() + 1;
        self.done.set(done);
        if record.outcome != Outcome::Succeeded {
            self.not_succeeded.set(self.not_succeeded.get() + 1);
        }
        let unhappy = match self.not_succeeded.get() {
            0 => String::new(),
            count => format!("{count} did not succeed"),
        };
        match &self.how {
            How::Bar(bar) => {
                bar.set_message(unhappy);
                bar.inc(1);
            }
            How::Lines if done * LINES / self.total != (done - 1) * LINES / self.total => {
                out::note(format_args!("{done}/{} runs {unhappy}", self.total));
            }
            How::Lines | How::Quiet => {}
        }
    }

    pub(crate) fn close(&self) {
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }
}
