//! A live page over run folders, and their figures for Prometheus.
//!
//! A [`Dashboard`] looks at the folders below one reports folder twice a second, reading only what was
//! appended, and shows what it saw to any number of browsers and scrapers. It reads run folders and nothing
//! else: it does not know the program that writes them, cannot slow it, and shows the same after a
//! restart.
//!
//! It refuses to be seen by strangers: an address other than a loopback one needs a token, a request
//! whose `Host` or `Origin` is not its own gets no answer, and no path of a request reaches the file
//! system: run folders and files in them are looked up by name in closed lists.

mod board;
mod chart;
mod error;
mod guard;
mod metrics;
mod page;
mod reports;
mod server;

pub use board::{Board, Card, CardRule, CardState};
pub use error::DashError;
pub use guard::Token;
pub use metrics::{textfile, zero_metrics};
pub use reports::{Reports, folder_metrics};
pub use server::{Dashboard, Options};
