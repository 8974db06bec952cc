//! The report and the dashboard in a real browser: Chromium without a window, driven by ChromeDriver.
//!
//! Built with the feature `browser-tests` alone, since both programs are needed; `scripts/test.sh`
//! installs them where it may, and says so where the tests did not run.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

mod acceptance;
mod browser;

mod dashboard;
mod first_screen;
mod report;
