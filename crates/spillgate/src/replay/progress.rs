//! How far a replay is, drawn on a terminal alone.

use indicatif::{ProgressBar, ProgressStyle};
use spill_traces::FilesAmount;

use crate::progress::{TICK, draws};

/// Nothing is drawn where there is no terminal, or none is wanted.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    files: FilesAmount,
    read: FilesAmount,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self {
            bar: (!quiet && draws()).then(bar),
            files: FilesAmount::default(),
            read: FilesAmount::default(),
        }
    }

    pub(super) fn listed(&mut self, files: FilesAmount) {
        self.files = files;
        if let Some(bar) = &self.bar {
            bar.set_length(files.bytes.max(1));
        }
        self.draw();
    }

    pub(super) fn read(&mut self, more: FilesAmount) {
        self.read.files += more.files;
        self.read.bytes += more.bytes;
        self.draw();
    }

    fn draw(&self) {
        if let Some(bar) = &self.bar {
            bar.set_position(self.read.bytes);
            bar.set_message(words(self.read, self.files));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    let style = ProgressStyle::with_template("{bar:24.cyan} {msg}, {elapsed}");
    bar.set_style(style.expect("the template is well-formed"));
    bar.enable_steady_tick(TICK);
    bar
}

/// Such as `3/12 files, 4.1 of 97.2 MB`.
fn words(read: FilesAmount, files: FilesAmount) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    format!(
        "{}/{} files, {:.1} of {:.1} MB",
        read.files,
        files.files,
        megabytes(read.bytes),
        megabytes(files.bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_megabytes_in_words() {
        let amount = |files, bytes| FilesAmount { files, bytes };
        assert_eq!(
            words(amount(3, 4_060_000), amount(12, 97_200_000)),
            "3/12 files, 4.1 of 97.2 MB"
        );
        assert_eq!(
            words(amount(0, 0), amount(0, 0)),
            "0/0 files, 0.0 of 0.0 MB"
        );
    }
}
