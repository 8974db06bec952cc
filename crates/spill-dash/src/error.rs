use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The dashboard could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DashError {
    /// The address cannot be bound.
    #[error(
        "cannot listen on {address}: {source} (choose another address, or port 0 for a free one)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The refusal.
        source: io::Error,
    },
    /// Strangers could look in.
    #[error(
        "{address} is no loopback address, and there is no token (set SPILLGATE_TOKEN to at least {least} \
         characters, or listen on 127.0.0.1)"
    )]
    Open {
        /// The address.
        address: SocketAddr,
        /// Characters that a token has at least.
        least: usize,
    },
    /// The token is too short to keep anybody out.
    #[error("the token has fewer than {least} characters (set SPILLGATE_TOKEN to a longer one)")]
    ShortToken {
        /// Characters that a token has at least.
        least: usize,
    },
    /// The reports folder cannot be listed.
    #[error("cannot read the reports folder {path}: {source} (name one with --reports)")]
    Reports {
        /// The folder.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
}
