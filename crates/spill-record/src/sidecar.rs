use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The server that a sidecar stands before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SidecarBefore {
    /// The model.
    Llm,
    /// The tools.
    Tools,
}

impl SidecarBefore {
    /// The server's name as files and reports spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Tools => "tools",
        }
    }
}

/// A command that stands between subject and a server in every run of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SidecarRecord {
    /// Its name, unique within the configuration.
    pub name: String,
    /// The server that it stands before.
    pub before: SidecarBefore,
    /// The program and its arguments, as they are written: with placeholders.
    pub command: Vec<String>,
    /// Environment variables that it is given, as they are written.
    pub env: BTreeMap<String, String>,
    /// Time until its port accepts a connection at most.
    pub start_timeout_ms: u64,
}

/// What a sidecar took and left in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SidecarRun {
    /// Its name.
    pub name: String,
    /// Peak memory of its largest process (measured).
    pub peak_rss_bytes: Option<u64>,
    /// Processor time, user and system (measured).
    pub cpu_ms: Option<f64>,
    /// Bytes that it printed, on standard output and standard error (measured).
    pub log_bytes: Option<u64>,
    /// Files that appeared outside its declared state folder; the run's `files_written` counts them too.
    pub files_written: Option<u64>,
    /// Files that it left in its declared state folder.
    pub state_files: Option<u64>,
    /// Their bytes together (measured).
    pub state_bytes: Option<u64>,
    /// Places where it left result content or a canary; the run's `leak_findings` names them too.
    pub leak_findings: Vec<String>,
}

impl SidecarRun {
    /// The record without what is measured.
    #[must_use]
    pub(crate) fn unmeasured(&self) -> Self {
        Self {
            peak_rss_bytes: None,
            cpu_ms: None,
            log_bytes: None,
            state_bytes: None,
            ..self.clone()
        }
    }
}
