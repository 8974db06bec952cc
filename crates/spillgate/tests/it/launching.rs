//! The launcher alone: a process that starts one command after another, as requests on its standard input say.

use std::fs;
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};

use crate::processes::eventually;
use crate::program::{folder, program, rows};

/// A launcher, and the socket to it.
struct Launcher {
    process: Child,
    socket: UnixStream,
}

impl Launcher {
    fn start() -> Self {
        let (socket, its) = UnixStream::pair().unwrap();
        let mut command = program();
        command.arg("launch").stdin(OwnedFd::from(its));
        Self {
            process: command.stdout(Stdio::null()).spawn().unwrap(),
            socket,
        }
    }

    /// Sends a script for a shell in `folder`; returns its standard output.
    fn send(&mut self, folder: &Path, script: &str, writable: Option<&Path>) -> impl Read + use<> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut strings = vec![text(folder)];
        let command = ["/bin/sh", "-c", script];
        strings.extend(command.map(str::to_owned));
        strings.extend(["GIVEN", "a value"].map(str::to_owned));
        strings.extend(writable.map(text));
        let strings: String = strings.iter().map(|one| format!("{one}\0")).collect();
        let head = json!({
            "bytes": strings.len(), "command": command.len(), "env": 1,
            "writable": writable.map(|_| 1), "memory": "not",
        });
        let message = format!("{head}\n{strings}");
        let (output, its_output) = std::io::pipe().unwrap();
        let streams = [its_output.as_fd(), its_output.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        assert!(beside.push(SendAncillaryMessage::ScmRights(&streams)));
        let piece = [IoSlice::new(message.as_bytes())];
        let sent = sendmsg(&self.socket, &piece, &mut beside, SendFlags::empty()).unwrap();
        self.socket.write_all(&message.as_bytes()[sent..]).unwrap();
        output
    }

    fn reply(&mut self) -> Value {
        let mut line = String::new();
        // The launcher says nothing behind its reply.
        BufReader::new(&self.socket).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// What is seen of a script that ends by itself, and what it printed.
    fn run(&mut self, script: &str) -> (Value, String) {
        let mut output = self.send(Path::new("/"), script, None);
        let reply = self.reply();
        assert_eq!(reply["reusable"], true, "{reply}");
        let mut printed = String::new();
        output.read_to_string(&mut printed).unwrap();
        (reply["seen"]["Ok"].clone(), printed)
    }

    /// Closes the socket; the launcher ends by itself.
    fn close(mut self) {
        drop(self.socket);
        assert!(self.process.wait().unwrap().success());
    }
}

fn is_gone(process: &str) -> bool {
    // A process that nobody has reaped yet is gone too.
    fs::read_to_string(format!("/proc/{process}/stat")).map_or(true, |stat| stat.contains(") Z"))
}

/// The kernel starts a child's peak at that of the process that forked it.
#[test]
fn each_command_has_figures_of_its_own_whatever_was_before_it_and_above_it() {
    let ballast = vec![1_u8; 300 << 20];
    let mut launcher = Launcher::start();
    let peak = |seen: &Value| seen["peak_rss_bytes"].as_u64().unwrap();
    let (small, _) = launcher.run("exec true");
    // Its buffer is one block.
    let (large, _) = launcher.run("exec dd if=/dev/zero of=/dev/null bs=200M count=1");
    let (after, _) = launcher.run("exec true");
    drop(ballast);
    assert_eq!(large["exit_code"], 0, "{large}");
    assert!(peak(&large) > 200 << 20, "{large}");
    for seen in [small, after] {
        assert!((1..64 << 20).contains(&peak(&seen)), "{seen}");
        assert!(seen["cpu_us"].as_u64().unwrap() < 1_000_000, "{seen}");
        assert_eq!(seen["exit_code"], 0);
    }
    launcher.close();
}

#[test]
fn a_command_has_the_environment_of_its_request_alone() {
    let mut launcher = Launcher::start();
    let (seen, printed) = launcher.run("exec /usr/bin/env");
    assert_eq!(seen["exit_code"], 0, "{seen}");
    let names: Vec<&str> = printed
        .lines()
        .filter(|line| !line.starts_with("PWD="))
        .collect();
    assert_eq!(names, ["GIVEN=a value"]);
    launcher.close();
}

#[test]
fn nothing_of_a_command_is_left_when_the_next_one_starts() {
    let mut launcher = Launcher::start();
    // One in the command's own group, and one that left it.
    let script = "sleep 600 & echo $!; setsid sleep 600 & sleep 0.1; echo $!; exit 3";
    let (seen, printed) = launcher.run(script);
    assert_eq!(seen["exit_code"], 3);
    let left: Vec<&str> = printed.lines().collect();
    assert_eq!(left.len(), 2, "{printed}");
    assert!(left.iter().all(|process| is_gone(process)), "{printed}");
    assert_eq!(launcher.run("exit 4").0["exit_code"], 4);
    launcher.close();
}

#[test]
fn a_command_ends_as_it_is_asked_to() {
    let mut launcher = Launcher::start();
    let mut output = BufReader::new(launcher.send(
        Path::new("/"),
        "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done",
        None,
    ));
    output.read_line(&mut String::new()).unwrap();
    launcher.socket.write_all(b".").unwrap();
    assert_eq!(launcher.reply()["seen"]["Ok"]["exit_code"], 7);
    launcher.close();
}

#[test]
fn a_launcher_whose_socket_closes_kills_the_whole_group_and_still_tells_what_it_saw() {
    let folder = folder();
    let mut launcher = Launcher::start();
    let script = "sleep 600 & echo $! > child; sleep 600";
    let _output = launcher.send(folder.path(), script, None);
    let child = folder.path().join("child");
    eventually("the grandchild is started", || {
        fs::read_to_string(&child).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let pid = fs::read_to_string(&child).unwrap().trim().to_owned();
    launcher.socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(launcher.reply()["seen"]["Ok"]["signal"], 9);
    launcher.process.wait().unwrap();
    eventually("the grandchild is gone", || is_gone(&pid));
}

/// What is asked before the command is there reaches it as soon as it is.
#[test]
fn a_command_does_not_outlive_a_socket_that_closed_before_its_start() {
    let mut launcher = Launcher::start();
    let _output = launcher.send(Path::new("/"), "exec sleep 600", None);
    let Launcher {
        mut process,
        socket,
    } = launcher;
    drop(socket);
    assert!(process.wait().unwrap().success());
}

#[test]
fn what_cannot_be_started_is_said_and_ends_the_launcher() {
    let mut launcher = Launcher::start();
    let _output = launcher.send(Path::new("/nowhere/at/all"), "exit 0", None);
    let reply = launcher.reply();
    let why = reply["seen"]["Err"].as_str().unwrap();
    assert!(why.contains("cannot start /bin/sh"), "{why}");
    assert_eq!(reply["reusable"], false);
    assert!(launcher.process.wait().unwrap().success());
}

#[test]
fn a_launcher_without_a_socket_says_so() {
    let output = program()
        .arg("launch")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("spillgate launch: "), "{said}");
}

/// The record says which check was in force: what the kernel forbids, or what was watched and searched.
#[test]
fn the_built_in_subject_cannot_write_where_the_kernel_can_forbid_it() {
    let folder = folder();
    crate::program::accept(folder.path(), "review", "small", &[]);
    let rows = rows(&folder.path().join("reports/latest/runs.csv"));
    let checks: std::collections::BTreeSet<&str> =
        rows.iter().map(|row| &*row["leak_check"]).collect();
    // A command that may write in one folder only tells what this kernel can do.
    let mut launcher = Launcher::start();
    let open = folder.path().join("reports");
    let script = "touch reports/inside; touch outside";
    let _output = launcher.send(folder.path(), script, Some(&open));
    let confined = launcher.reply()["seen"]["Ok"]["confined"]
        .as_bool()
        .unwrap();
    assert!(folder.path().join("reports/inside").exists());
    assert_eq!(folder.path().join("outside").exists(), !confined);
    let expected = if confined {
        "landlock+inotify+search"
    } else {
        "inotify+search"
    };
    assert_eq!(checks.into_iter().collect::<Vec<_>>(), [expected]);
    // What comes after it is not confined with it.
    let _output = launcher.send(folder.path(), "touch free", None);
    assert_eq!(launcher.reply()["seen"]["Ok"]["confined"], false);
    assert!(folder.path().join("free").exists());
    launcher.close();
}
