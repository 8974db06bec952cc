//! What people see: on a real terminal, in a log, and with names that would drive a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::pty::{Winsize, openpty};

use crate::program::{folder, program, repository, scenario_with, spillgate};

const COLUMNS: u16 = 80;
const ROWS: u16 = 50;

/// What a program wrote to its terminal, and what was to be seen on it after each read.
struct Seen {
    bytes: Vec<u8>,
    frames: Vec<String>,
    code: Option<i32>,
}

impl Seen {
    /// The escape sequences in what was written, without their numbers: `[m` for a colour.
    fn escapes(&self) -> Vec<String> {
        let mut kinds = Vec::new();
        let mut rest = self.bytes.as_slice();
        while let Some(at) = rest.iter().position(|byte| *byte == 0x1b) {
            rest = &rest[at + 1..];
            let text = rest.iter().map(|byte| char::from(*byte));
            let end = rest
                .iter()
                .skip(1)
                .position(|byte| (0x40..=0x7e).contains(byte))
                .map_or(rest.len(), |end| end + 2);
            let is_number = |c: &char| !c.is_ascii_digit() && *c != ';';
            kinds.push(text.take(end).filter(is_number).collect());
        }
        kinds
    }

    fn last(&self) -> &str {
        self.frames.last().unwrap()
    }
}

/// Runs a command whose input and outputs are one terminal of 80 columns.
fn on_terminal(command: &mut Command) -> Seen {
    let size = Winsize {
        ws_row: ROWS,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(Some(&size), None).unwrap();
    let side = || Stdio::from(terminal.slave.try_clone().unwrap());
    let mut child = command
        .env("TERM", "xterm-256color")
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    // Only the program itself holds the other side now: reading ends with it.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    drop(terminal.slave);
    let mut master = File::from(terminal.master);
    let cells = |count| NonZero::new(count).unwrap();
    let mut screen = vt100::Parser::new(cells(ROWS), cells(COLUMNS), 0);
    let (mut bytes, mut frames) = (Vec::new(), vec![String::new()]);
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = master.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
        screen.process(&chunk[..count]);
        frames.push(screen.screen().contents());
    }
    let code = child.wait().unwrap().code();
    Seen {
        bytes,
        frames,
        code,
    }
}

fn accept_quick(folder: &Path, more: &[&str]) -> Command {
    let mut command = program();
    command
        .current_dir(folder)
        .env_remove("NO_COLOR")
        .args(["accept", "--stage", "quick"])
        .args(more);
    command
}

/// A quick acceptance of the small review.
fn accept_small(folder: &Path) -> Command {
    let scenario = scenario_with(folder, "review", "small");
    accept_quick(folder, &["--scenario", &scenario.to_string_lossy()])
}

#[test]
fn progress_is_drawn_on_a_terminal_and_gone_when_the_verdict_stands() {
    let folder = folder();
    let seen = on_terminal(&mut accept_small(folder.path()));
    assert_eq!(seen.code, Some(4), "{}", seen.last());
    let drawn = |words: &[&str]| {
        let has = |frame: &&String| words.iter().all(|words| frame.contains(words));
        assert!(
            seen.frames.iter().any(|frame| has(&frame)),
            "never drawn: {words:?}"
        );
    };
    drawn(&["/6 runs, ", " left"]);
    drawn(&["128KiB (provisional): ", "32KiB (provisional): "]);
    let last = seen.last();
    for gone in ["(provisional)", "/6 runs", "left"] {
        assert!(!last.contains(gone), "{gone} is still there: {last}");
    }
    assert!(last.contains("report: reports/"), "{last}");
    assert!(seen.escapes().contains(&"[m".to_owned()), "no colour");
}

#[test]
fn no_color_means_no_colour_and_quiet_means_no_progress() {
    let folder = folder();
    let seen = on_terminal(accept_small(folder.path()).env("NO_COLOR", "1"));
    let colours = |seen: &Seen| seen.escapes().iter().filter(|kind| *kind == "[m").count();
    assert_eq!(colours(&seen), 0);
    assert!(
        !seen.escapes().is_empty(),
        "the bar is drawn without colours too"
    );

    let seen = on_terminal(
        accept_small(folder.path())
            .env("NO_COLOR", "1")
            .arg("--quiet"),
    );
    assert_eq!(seen.escapes(), [""; 0]);
    assert!(!seen.frames.iter().any(|frame| frame.contains("runs, ")));

    let seen = on_terminal(
        accept_small(folder.path())
            .env("NO_COLOR", "1")
            .arg("--json"),
    );
    assert_eq!(seen.escapes(), [""; 0], "events are for programs");
}

#[test]
fn a_replay_draws_files_and_megabytes_on_a_terminal_alone() {
    let folder = folder();
    let fixtures = repository().join("fixtures/traces");
    let fixtures = fixtures.to_string_lossy();
    let replay = |more: &[&str]| {
        let mut command = program();
        command
            .current_dir(folder.path())
            .env("NO_COLOR", "1")
            .args(["replay", &fixtures, "--thresholds", "8KiB"])
            .args(more);
        command
    };
    let seen = on_terminal(&mut replay(&[]));
    assert_eq!(seen.code, Some(0), "{}", seen.last());
    let drawn = |frame: &str| frame.contains(" files, ") && frame.contains(" MB, ");
    assert!(seen.frames.iter().any(|frame| drawn(frame)), "never drawn");
    assert!(!drawn(seen.last()), "still there: {}", seen.last());
    for flag in ["--quiet", "--json"] {
        let seen = on_terminal(&mut replay(&[flag]));
        assert_eq!(seen.escapes(), [""; 0], "{flag}");
    }
    let said = spillgate(
        folder.path(),
        &["replay", &fixtures, "--thresholds", "8KiB"],
    );
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(!all.contains(" MB, ") && !all.contains('\u{1b}'), "{all}");
}

#[test]
fn where_there_is_no_terminal_a_few_lines_tell() {
    let folder = folder();
    let scenario = scenario_with(folder.path(), "review", "small");
    let scenario = scenario.to_string_lossy();
    let arguments = ["accept", "--reps", "20", "--scenario", &scenario];
    let said = spillgate(folder.path(), &arguments);
    assert_eq!(said.code, Some(4), "{}", said.stderr);
    assert!(!said.stderr.contains('\u{1b}') && !said.stdout.contains('\u{1b}'));
    let lines: Vec<&str> = said.stderr.lines().collect();
    let progress: Vec<&&str> = lines
        .iter()
        .filter(|line| line.contains("/60 runs, "))
        .collect();
    assert_eq!(progress.len(), 6, "{}", said.stderr);
    assert!(progress[5].starts_with("60/60 runs, "), "{}", progress[5]);
    let rules = lines.iter().filter(|line| line.contains("(provisional)"));
    assert_eq!(rules.count(), 12, "{}", said.stderr);
    for line in said
        .stdout
        .lines()
        .filter(|line| !line.starts_with("report: "))
        .skip(1)
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

/// Sets a title, clears the screen, colours, reorders, hides.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\u{9b}5m\u{202e}\u{200b}";

/// Known fault 93: dorny/test-reporter PR #795; oekazuma/svelte-vitals PR #465; microsoft/markitdown PR #2266.
#[test]
fn names_from_outside_do_not_drive_the_terminal() {
    let folder = folder();
    let document = format!("{HOSTILE}.md");
    let text: String = (0..2_000)
        .map(|number| format!("# Part {number}\n\nIt was decided to keep part {number}.\n\n"))
        .collect();
    fs::write(folder.path().join(&document), text).unwrap();
    let checked = |seen: &Seen, what: &str| {
        let shown = String::from_utf8_lossy(&seen.bytes);
        for bad in [
            "\u{1b}]",
            "\u{1b}[2J",
            "\u{1b}[31m",
            "\u{9b}",
            "\u{7}",
            "\u{202e}",
            "\u{200b}",
        ] {
            assert!(
                !shown.contains(bad),
                "{what} lets {bad:?} through: {shown:?}"
            );
        }
        assert!(shown.contains("red"), "{what} does not name it: {shown:?}");
    };
    let mut command = accept_quick(folder.path(), &["--reps", "1", "--document", &document]);
    let seen = on_terminal(command.env("NO_COLOR", "1"));
    checked(&seen, "accept");

    let plain = |arguments: &[&str]| {
        let mut command = program();
        command.current_dir(folder.path()).args(arguments);
        on_terminal(&mut command)
    };
    checked(&plain(&["list", "--document", &document]), "list");
    checked(
        &plain(&["list", "--json", "--document", &document]),
        "list --json",
    );
    for arguments in [
        &["judge", HOSTILE][..],
        &["report", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
        &["accept", "--scenario", HOSTILE],
        &["accept", "--prices", HOSTILE],
        &["accept", "--subject", HOSTILE],
        &["accept", HOSTILE],
        &[HOSTILE],
        &["mock", "--input", HOSTILE],
        &["completions", HOSTILE],
    ] {
        let seen = plain(arguments);
        assert_eq!(seen.code, Some(2), "{arguments:?}");
        checked(&seen, &format!("{arguments:?}"));
    }
}

/// Says it past what the test runner keeps back.
fn not_run(what: &str) {
    let words = format!("NOT RUN: {what} (it is not installed)\n");
    std::io::stderr().write_all(words.as_bytes()).unwrap();
}

#[test]
fn shells_take_the_completions() {
    let folder = folder();
    for (shell, check) in [
        ("bash", &["bash", "-n"][..]),
        ("zsh", &["zsh", "-n"]),
        ("fish", &["fish", "--no-execute"]),
    ] {
        let said = spillgate(folder.path(), &["completions", shell]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        for word in ["accept", "completions", "--prices", "--metrics-file"] {
            assert!(
                said.stdout.contains(word.trim_start_matches('-')),
                "{shell}: {word}"
            );
        }
        assert!(
            !said.stdout.contains("launch"),
            "{shell} offers what is hidden"
        );
        let script = folder.path().join(shell);
        fs::write(&script, &said.stdout).unwrap();
        match Command::new(check[0])
            .args(&check[1..])
            .arg(&script)
            .output()
        {
            Ok(checked) => assert!(checked.status.success(), "{shell}: {checked:?}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                not_run(&format!("{shell} on its completions"));
            }
            Err(error) => panic!("{shell}: {error}"),
        }
    }
}

/// What bash offers after `words`, by the script itself.
#[test]
fn bash_completes_verbs_and_flags() {
    let folder = folder();
    let script = folder.path().join("completions.bash");
    let said = spillgate(folder.path(), &["completions", "bash"]);
    fs::write(&script, said.stdout).unwrap();
    let offered = |words: &[&str]| -> String {
        let list = words
            .iter()
            .map(|word| format!("'{word}'"))
            .collect::<Vec<_>>()
            .join(" ");
        let last = words.len() - 1;
        let code = format!(
            "source {}; COMP_WORDS=({list}); COMP_CWORD={last}; \
             _spillgate spillgate '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words[last],
            words[last - 1],
        );
        let output = Command::new("bash").arg("-c").arg(code).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(offered(&["spillgate", "acc"]), "accept");
    assert_eq!(offered(&["spillgate", "accept", "--pri"]), "--prices");
    assert_eq!(offered(&["spillgate", "completions", "f"]), "fish");
    assert_eq!(offered(&["spillgate", "accept", "--stage", "q"]), "quick");
}

#[test]
fn manual_pages_are_written_for_every_verb() {
    let folder = folder();
    let said = spillgate(folder.path(), &["man", "--out", "man1"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let mut names: Vec<_> = fs::read_dir(folder.path().join("man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for verb in [
        "accept",
        "compare",
        "completions",
        "judge",
        "list",
        "man",
        "mock",
        "report",
    ] {
        assert!(names.contains(&format!("spillgate-{verb}.1")), "{names:?}");
    }
    assert_eq!(said.stdout.lines().count(), names.len());
    let main = fs::read_to_string(folder.path().join("man1/spillgate.1")).unwrap();
    assert_eq!(spillgate(folder.path(), &["man"]).stdout, main);
    assert!(main.contains("3 the default must change"), "{main}");
    assert!(!main.contains("launch"));
    for name in names {
        let page = folder.path().join("man1").join(&name);
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-wall", "-z"]).arg(&page);
        match groff.output() {
            Ok(checked) => {
                let words = String::from_utf8_lossy(&checked.stderr).into_owned();
                assert!(
                    checked.status.success() && words.is_empty(),
                    "{name}: {words}"
                );
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                not_run(&format!("groff on {name}"));
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    fs::write(folder.path().join("plain"), "").unwrap();
    let said = spillgate(folder.path(), &["man", "--out", "plain/below"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("choose a writable one with --out"),
        "{}",
        said.stderr
    );
}
