//! Acceptances to look at, and dashboards to look through.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

const SPILLGATE: &str = env!("CARGO_BIN_EXE_spillgate");

/// The program, started as no step of a CI system: the tests may be one themselves.
fn program() -> Command {
    let mut command = Command::new(SPILLGATE);
    for variable in ["GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"] {
        command.env_remove(variable);
    }
    command
}

/// The run folder of `accept --stage quick` on the built-in plan, made once for all tests.
pub(crate) fn quick() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).join("browser");
        if reports.exists() {
            fs::remove_dir_all(&reports).unwrap();
        }
        let accepted = program()
            .args(["accept", "--quiet", "--stage", "quick", "--out"])
            .arg(&reports)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&accepted.stderr);
        assert!(
            matches!(accepted.status.code(), Some(0 | 3)),
            "the acceptance comes to an answer: {said}"
        );
        fs::canonicalize(reports.join("latest")).unwrap()
    })
}

/// The address of a file in the folder of [`quick`].
pub(crate) fn address(name: &str) -> String {
    format!("file://{}", quick().join(name).display())
}

/// Writes the page of the first run, and returns its address.
pub(crate) fn run_page() -> String {
    let runs = fs::read_to_string(quick().join("runs.jsonl")).unwrap();
    let first: serde_json::Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    let id = first["run_id"].as_str().unwrap();
    let mut report = program();
    report.arg("report").arg(quick()).args(["--run", id]);
    assert!(report.stdout(Stdio::null()).status().unwrap().success());
    address(&format!("run-{id}.html"))
}

/// Copies the folder of [`quick`] into `reports`, as an acceptance of its own.
pub(crate) fn finished(reports: &Path) -> String {
    let id = quick().file_name().unwrap().to_str().unwrap();
    let folder = reports.join(id);
    fs::create_dir_all(&folder).unwrap();
    // The verdict is the last file: what is read after it would count as changed since.
    let mut files: Vec<PathBuf> = fs::read_dir(quick())
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort_by_key(|file| file.ends_with("verdict.json"));
    for file in files {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    id.to_owned()
}

/// A process of the program that is killed when dropped.
pub(crate) struct Running {
    child: Child,
    /// Where its dashboard is, of one that has any.
    pub(crate) url: String,
}

impl Running {
    /// `serve` over `reports`; port 0 is any free one.
    pub(crate) fn serve(reports: &Path, port: u16) -> Self {
        let mut serve = program();
        serve
            .arg("serve")
            .arg("--reports")
            .arg(reports)
            .args(["--listen", &format!("127.0.0.1:{port}")])
            .stdout(Stdio::piped());
        let mut child = serve.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = dashboard_of(lines);
        Self { child, url }
    }

    /// `accept --stage quick --serve` on the built-in plan, as far as `gate` lets it.
    pub(crate) fn accept(reports: &Path, gate: &Gate) -> Self {
        let mut accept = program();
        accept
            .args(["accept", "--quiet", "--stage", "quick", "--jobs", "1"])
            .args(["--serve", "127.0.0.1:0", "--subject"])
            .arg(gate.subject())
            .arg("--out")
            .arg(reports)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = accept.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = dashboard_of(lines);
        Self { child, url }
    }

    pub(crate) fn port(&self) -> u16 {
        let address = self.url.trim_end_matches('/');
        address.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The address in the line that says it; what follows is read and dropped.
fn dashboard_of(
    mut lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
) -> String {
    let url = lines.find_map(|line| line.ok()?.strip_prefix("dashboard: ").map(str::to_owned));
    std::thread::spawn(move || lines.for_each(drop));
    url.expect("the program says where its dashboard is")
}

/// The built-in subject behind a gate, so that a test decides how far an acceptance gets.
pub(crate) struct Gate {
    folder: tempfile::TempDir,
    passes: u32,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "#!/bin/sh\n\
             PATH=/usr/bin:/bin\n\
             case \"$*\" in *--print-settings*) exec '{SPILLGATE}' step \"$@\" ;; esac\n\
             until [ -e '{gate}/open' ]; do\n\
             for pass in '{gate}'/pass-*; do rm \"$pass\" 2>/dev/null && break 2; done\n\
             sleep 0.02\n\
             done\n\
             exec '{SPILLGATE}' step \"$@\"\n",
            gate = folder.path().display()
        );
        let subject = folder.path().join("subject");
        fs::write(&subject, script).unwrap();
        fs::set_permissions(&subject, fs::Permissions::from_mode(0o755)).unwrap();
        Self { folder, passes: 0 }
    }

    pub(crate) fn subject(&self) -> PathBuf {
        self.folder.path().join("subject")
    }

    /// Lets `runs` more runs through.
    pub(crate) fn pass(&mut self, runs: u32) {
        for pass in self.passes..self.passes + runs {
            fs::write(self.folder.path().join(format!("pass-{pass}")), "").unwrap();
        }
        self.passes += runs;
    }

    /// Lets all others through.
    pub(crate) fn open(&self) {
        fs::write(self.folder.path().join("open"), "").unwrap();
    }
}
