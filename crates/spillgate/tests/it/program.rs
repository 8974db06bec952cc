//! The program under test and small scenarios for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub(crate) const SPILLGATE: &str = env!("CARGO_BIN_EXE_spillgate");

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A tar archive of one file that holds `content`.
pub(crate) fn tar(content: &[u8]) -> Vec<u8> {
    let mut archive = vec![0; 512];
    archive[..9].copy_from_slice(b"one.jsonl");
    archive[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    archive[257..265].copy_from_slice(b"ustar\x0000");
    archive.extend_from_slice(content);
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}

/// What a call of the program gave.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn spillgate(folder: &Path, arguments: &[&str]) -> Said {
    spillgate_with(folder, arguments, &[])
}

/// The program, started as no step of a CI system: the tests may be one themselves.
pub(crate) fn program() -> Command {
    let mut command = Command::new(SPILLGATE);
    for variable in ["GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(variable);
    }
    command
}

/// As [`spillgate`], as a step of a GitHub workflow with these variables.
pub(crate) fn spillgate_with(folder: &Path, arguments: &[&str], step: &[(&str, &Path)]) -> Said {
    let mut command = program();
    command.envs(step.iter().copied());
    said(
        command
            .args(arguments)
            .current_dir(folder)
            .output()
            .unwrap(),
    )
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The built-in scenario `name` reduced to the input `input`, written into `folder`.
pub(crate) fn scenario_with(folder: &Path, name: &str, input: &str) -> PathBuf {
    let root = repository();
    let text = fs::read_to_string(root.join(format!("scenarios/{name}.toml"))).unwrap();
    let mut blocks: Vec<&str> = text.split("[[inputs]]").collect();
    let rest_at = blocks.last().unwrap().find("[model]").unwrap();
    let (last, rest) = blocks.pop().unwrap().split_at(rest_at);
    blocks.push(last);
    let wanted = blocks[1..]
        .iter()
        .find(|block| block.contains(&format!("name = \"{input}\"")))
        .unwrap_or_else(|| panic!("{name}.toml has no input {input}"));
    let reduced = format!("{}[[inputs]]{wanted}\n{rest}", blocks[0])
        .replace("../fixtures", &root.join("fixtures").to_string_lossy());
    let path = folder.join(format!("{name}-{input}.toml"));
    fs::write(&path, reduced).unwrap();
    path
}

/// Runs `accept --quiet` on one input with two repetitions; the run folder is `reports/latest`.
pub(crate) fn accept(folder: &Path, name: &str, input: &str, more: &[&str]) -> Said {
    let scenario = scenario_with(folder, name, input);
    let scenario = scenario.to_string_lossy();
    let mut arguments = vec![
        "accept",
        "--quiet",
        "--stage",
        "quick",
        "--scenario",
        &scenario,
    ];
    arguments.extend_from_slice(more);
    spillgate(folder, &arguments)
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// One row of a CSV file by column name.
pub(crate) type Row = std::collections::BTreeMap<String, String>;

pub(crate) fn rows(path: &Path) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    reader
        .records()
        .map(|record| {
            let record = record.unwrap();
            header
                .iter()
                .zip(record.iter())
                .map(|(name, cell)| (name.to_owned(), cell.to_owned()))
                .collect()
        })
        .collect()
}

pub(crate) fn verdict(folder: &Path) -> serde_json::Value {
    let path = folder.join("reports/latest/verdict.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A mock server of its own process; killed when dropped.
pub(crate) struct Mock {
    child: Child,
    pub(crate) llm: String,
    pub(crate) tools: String,
}

impl Mock {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = program()
            .arg("mock")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut url = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(name).unwrap().trim().to_owned()
        };
        let (llm, tools) = (url("llm"), url("tools"));
        Self { child, llm, tools }
    }

    /// A job for these servers, written into `folder`.
    pub(crate) fn job(&self, folder: &Path, timeout_ms: u64) -> PathBuf {
        let job = serde_json::json!({
            "stepId": "review", "model": "simulated-1", "prompt": "Review the change.",
            "llmUrl": self.llm, "mcpUrl": self.tools, "iterationLimit": 250,
            "stepTimeoutMs": timeout_ms,
        });
        let path = folder.join("job.json");
        fs::write(&path, job.to_string()).unwrap();
        path
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
