use std::fs;

use tempfile::TempDir;

use super::*;

/// A repository with two commits: `v1` and `v2`.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new(before: &[(&str, &[u8])], after: &[(&str, Option<&[u8]>)]) -> Self {
        let fixture = Self {
            folder: TempDir::new().expect("a temporary folder"),
        };
        fixture.git(&["init", "-q", "-b", "main"]);
        for (name, bytes) in before {
            fixture.write(name, bytes);
        }
        fixture.commit("v1");
        for (name, bytes) in after {
            match bytes {
                Some(bytes) => fixture.write(name, bytes),
                None => fs::remove_file(fixture.folder.path().join(name)).expect("it was there"),
            }
        }
        fixture.commit("v2");
        fixture
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }

    fn commit(&self, tag: &str) {
        self.git(&["add", "-A"]);
        self.git(&[
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            tag,
        ]);
        self.git(&["tag", tag]);
    }

    fn git(&self, arguments: &[&str]) {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let status = command
            .arg("-C")
            .arg(self.folder.path())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .status()
            .expect("git is there");
        assert!(status.success(), "git {arguments:?}");
    }

    fn read(&self, range: &str) -> Result<(InputData, Vec<String>), ScenarioError> {
        read(self.folder.path(), range)
    }

    fn error(&self, range: &str) -> String {
        let error = self.read(range).expect_err("an error").to_string();
        error.replace(&self.folder.path().display().to_string(), "REPO")
    }
}

fn plain() -> Fixture {
    Fixture::new(&[("a.txt", b"one\n")], &[("a.txt", Some(b"two\n"))])
}

#[test]
fn every_kind_of_change_is_taken_or_noted() {
    let long = "the same long line\n".repeat(20);
    let fixture = Fixture::new(
        &[
            ("changed.rs", b"fn a() {}\n"),
            ("gone.py", b"x = 1\n"),
            ("old name.txt", long.as_bytes()),
            ("same.txt", b"same\n"),
            ("was.bin", b"\0\x01"),
        ],
        &[
            ("changed.rs", Some(b"fn a() {}\nfn b() {}\n")),
            ("gone.py", None),
            ("old name.txt", None),
            ("new name.txt", Some(format!("{long}more\n").as_bytes())),
            ("-c.txt", Some(b"a name like an option\n")),
            (":(glob)x", Some(b"a name like a pathspec\n")),
            ("data.bin", Some(b"\0\x01\x02")),
            ("was.bin", None),
            ("latin1.txt", Some(b"caf\xe9\n")),
            ("line\nbreak", Some(b"x\n")),
            ("w\u{f6}rter/\u{e4}.txt", Some("ä\n".as_bytes())),
        ],
    );
    let (data, notes) = fixture.read("v1..v2").expect("a change");
    let files: Vec<_> = data
        .files
        .iter()
        .map(|file| format!("{} {} {}", file.status, file.path, file.content.len()))
        .collect();
    insta::assert_snapshot!(format!("{}\n\n{}", files.join("\n"), notes.join("\n")));
    let changed = data
        .files
        .iter()
        .find(|file| file.path == "changed.rs")
        .expect("it changed");
    insta::assert_snapshot!(changed.diff);
    let renamed = data
        .files
        .iter()
        .find(|file| file.status == "renamed")
        .expect("it was renamed");
    assert!(
        renamed.diff.contains("rename from old name.txt\n"),
        "{}",
        renamed.diff
    );
    assert!(renamed.diff.contains("\n+more\n"), "{}", renamed.diff);
    let deleted = data
        .files
        .iter()
        .find(|file| file.path == "gone.py")
        .expect("it is gone");
    assert!(deleted.diff.contains("\n-x = 1\n"), "{}", deleted.diff);
}

#[cfg(unix)]
#[test]
fn links_are_left_out() {
    let fixture = plain();
    std::os::unix::fs::symlink("/etc/passwd", fixture.folder.path().join("link")).expect("a link");
    fixture.write("b.txt", b"b\n");
    fixture.commit("v3");
    let (data, notes) = fixture.read("v2..v3").expect("a change");
    assert_eq!(data.files.len(), 1);
    assert_eq!(notes, ["left out link: it is a symbolic link"]);
}

#[test]
fn three_dots_start_at_the_common_ancestor() {
    let fixture = plain();
    fixture.git(&["checkout", "-q", "-b", "side", "v1"]);
    fixture.write("side.txt", b"side\n");
    fixture.commit("v3");
    let paths = |range| -> Vec<String> {
        let (data, _) = fixture.read(range).expect("a change");
        data.files.into_iter().map(|file| file.path).collect()
    };
    assert_eq!(paths("v2...v3"), ["side.txt"]);
    assert_eq!(paths("v2..v3"), ["a.txt", "side.txt"]);
    assert_eq!(
        paths("v2.."),
        ["a.txt", "side.txt"],
        "a missing side is HEAD"
    );
}

#[test]
fn a_folder_inside_the_repository_gives_the_whole_range() {
    let fixture = plain();
    fs::create_dir(fixture.folder.path().join("inner")).expect("a folder");
    let (data, _) = read(&fixture.folder.path().join("inner"), "v1..v2").expect("a change");
    assert_eq!(data.files[0].path, "a.txt");
}

#[test]
fn settings_of_the_repository_run_nothing_and_change_nothing() {
    let fixture = plain();
    let plainly = fixture.read("v1..v2").expect("a change").0;
    let witness = fixture.folder.path().join("witness");
    let command = format!("touch {}", witness.display());
    for (key, value) in [
        ("diff.external", command.as_str()),
        ("diff.custom.textconv", &command),
        ("diff.custom.command", &command),
        ("core.fsmonitor", &command),
        ("core.pager", &command),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.context", "0"),
        ("diff.algorithm", "patience"),
        ("color.ui", "always"),
    ] {
        fixture.git(&["config", key, value]);
    }
    fixture.write(".git/info/attributes", b"* diff=custom\n");
    assert_eq!(fixture.read("v1..v2").expect("a change").0, plainly);
    assert!(
        !witness.exists(),
        "a command of the repository's settings ran"
    );
}

#[test]
fn errors_name_place_fact_and_way_out() {
    let fixture = plain();
    let elsewhere = TempDir::new().expect("a temporary folder");
    let outside = read(elsewhere.path(), "v1..v2")
        .expect_err("no repository")
        .to_string();
    let missing = read(Path::new("no/such/folder"), "v1..v2")
        .expect_err("no folder")
        .to_string();
    let no_git = Git {
        program: OsStr::new("no-such-git"),
        folder: fixture.folder.path(),
    }
    .read("v1..v2")
    .expect_err("no git")
    .to_string();
    let binary = Fixture::new(&[("a", b"\0")], &[("a", Some(b"\0\0"))]);
    let lines = [
        fixture.error("nowhere..v2"),
        fixture.error("v1..nowhere"),
        fixture.error("v1"),
        fixture.error(""),
        fixture.error("v1..v1"),
        fixture.error("--output=x..v2"),
        fixture.error("v1..--help"),
        fixture.error("v1..v2\n"),
        fixture.error("v1:a.txt..v2"),
        binary.error("v1..v2"),
        outside.replace(&elsewhere.path().display().to_string(), "ELSEWHERE"),
        missing,
        no_git.replace(&fixture.folder.path().display().to_string(), "REPO"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    assert!(!fixture.folder.path().join("x").exists());
}
