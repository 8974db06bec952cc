//! What may be logged.

use spill_engine::SettingWarning;
use tracing::Metadata;

/// Whether a log line comes from this project's own crates.
///
/// The MCP client logs whole messages, tool results included, at its most verbose levels. A
/// program that runs steps installs this as its subscriber's filter; then no level shows content.
#[must_use]
pub fn is_own_log(metadata: &Metadata<'_>) -> bool {
    let root = metadata.target().split("::").next().unwrap_or_default();
    root == "spillgate" || root.starts_with("spill_")
}

/// Logs one warning for each setting that was refused.
pub fn log_setting_warnings(warnings: &[SettingWarning]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}
