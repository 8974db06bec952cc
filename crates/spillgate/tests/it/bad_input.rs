//! What cannot be used is refused with exit code 2: place, fact, limit, way out; nothing written.

use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use crate::program::{folder, scenario_with, spillgate};

/// Refused with exit code 2 and one line; returned with the folder's path masked.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let said = spillgate(folder, arguments);
    assert_eq!(
        said.code,
        Some(2),
        "{arguments:?}: {}{}",
        said.stdout,
        said.stderr
    );
    assert_eq!(said.stdout, "", "{arguments:?}");
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    said.stderr.replace(&*folder.to_string_lossy(), "FOLDER")
}

#[test]
fn what_cannot_be_used_is_refused_with_a_way_out() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty.toml"), "").unwrap();
    fs::write(at("binary.toml"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(at("prose.toml"), "this is no TOML").unwrap();
    let sound = scenario_with(folder.path(), "review", "small");
    let text = fs::read_to_string(&sound).unwrap();
    fs::write(
        at("typo.toml"),
        text.replace("parallel_calls", "paralel_calls"),
    )
    .unwrap();
    fs::write(at("refused.toml"), text.replace("\"32768\"", "\"32k\"")).unwrap();
    fs::write(at("empty.md"), "").unwrap();
    fs::write(at("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(at("plain.txt"), "words").unwrap();
    fs::create_dir(at("a-folder")).unwrap();

    let mut refusals = String::new();
    for arguments in [
        &["accept", "--scenario", "nowhere.toml"][..],
        &["accept", "--scenario", "a-folder"],
        &["accept", "--scenario", "empty.toml"],
        &["accept", "--scenario", "binary.toml"],
        &["accept", "--scenario", "prose.toml"],
        &["accept", "--scenario", "typo.toml"],
        &["accept", "--scenario", "refused.toml"],
        &["accept", "--document", "nowhere.md"],
        &["accept", "--document", "a-folder"],
        &["accept", "--document", "empty.md"],
        &["accept", "--document", "binary.md"],
        &["accept", "--repo", "nowhere", "--range", "a..b"],
        &["accept", "--repo", ".", "--range", "a..b"],
        &["accept", "--repo", "."],
        &["accept", "--class", "small"],
        &["accept", "--reps", "0"],
        &["accept", "--jobs", "0"],
        &["accept", "--out", "plain.txt", "--quiet"],
        &["accept", "--out", "/proc/nowhere", "--quiet"],
        &["accept", "--subject", "nowhere"],
        &["accept", "--subject", "plain.txt"],
        &["accept", "--document", "plain.txt", "--expect", ""],
        &["judge", "nowhere"],
        &["judge", "a-folder"],
        &["judge", "plain.txt"],
        &["report", "a-folder"],
        &["report", "a-folder", "--run", "0"],
        &["compare", "nowhere", "a-folder"],
        &["accept", "--bless", " "],
        &["accept", "--stage", "quick", "--bless", "the first one"],
        &["step", "--job", "nowhere.json"],
        &["step", "--job", "plain.txt"],
        &["step"],
        &["mock", "--input", "enormous"],
        &["mock", "--listen", "0.0.0.0:0"],
        &["serve", "--listen", "0.0.0.0:0"],
        &["accept", "--serve", "0.0.0.0:0", "--quiet"],
        &["mock", "--scenario", "prose.toml"],
        &["list", "--scenario", "prose.toml"],
        &["no-such-verb"],
    ] {
        let said = refusal(folder.path(), arguments);
        writeln!(refusals, "$ spillgate {}\n{said}", arguments.join(" ")).unwrap();
    }
    assert!(!at("reports").exists(), "a refusal left something behind");
    insta::assert_snapshot!(refusals);
}

#[test]
fn a_port_in_use_is_named() {
    let folder = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--tools-listen"] {
        let said = refusal(folder.path(), &["mock", flag, &address]);
        assert!(
            said.contains(&format!("cannot listen on {address}")),
            "{said}"
        );
        assert!(said.contains(&format!("give {flag} a free port")), "{said}");
    }
    for arguments in [
        &["serve", "--listen"][..],
        &["accept", "--quiet", "--serve"],
    ] {
        let said = refusal(folder.path(), &[arguments, &[&*address]].concat());
        assert!(
            said.contains(&format!("cannot listen on {address}")),
            "{said}"
        );
        assert!(
            said.contains("(choose another address, or port 0"),
            "{said}"
        );
    }
}

#[test]
fn a_folder_that_cannot_be_judged_is_refused_and_not_changed() {
    let folder = folder();
    fs::create_dir(folder.path().join("cut")).unwrap();
    fs::write(folder.path().join("cut/manifest.json"), "{\"schema\":1,").unwrap();
    refusal(folder.path(), &["judge", "cut"]);
    assert_eq!(fs::read_dir(folder.path().join("cut")).unwrap().count(), 1);
}

#[test]
fn help_names_every_verb_and_exit_code() {
    let said = spillgate(Path::new("/"), &["--help"]);
    assert_eq!(said.code, Some(0));
    insta::assert_snapshot!(said.stdout);
}
