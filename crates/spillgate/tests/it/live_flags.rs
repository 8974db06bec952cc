//! What a live acceptance needs, and what is said before it costs anything.

use std::path::PathBuf;

use crate::live::KEY;
use crate::program::{folder, program, said};

/// Refused with exit code 2, before anything is run, with these words and without the key.
fn check_refused(arguments: &[&str], without: Option<&str>, words: &str) {
    let folder = folder();
    let mut command = program();
    command.args(arguments).current_dir(folder.path());
    for variable in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "EMPTY",
        "SPACED",
        "SHORT",
    ] {
        command.env(variable, KEY);
    }
    command
        .env("EMPTY", "")
        .env("SHORT", "n")
        .env("SPACED", format!("{KEY} {KEY}"));
    if let Some(variable) = without {
        command.env_remove(variable);
    }
    let said = said(command.output().unwrap());
    assert_eq!(said.code, Some(2), "{arguments:?}: {}", said.stderr);
    assert!(
        said.stderr.contains(words),
        "{arguments:?}: {}",
        said.stderr
    );
    assert!(!said.stderr.contains(KEY), "{}", said.stderr);
    assert!(!folder.path().join("reports").exists());
}

#[test]
fn what_a_live_acceptance_needs_is_asked_for() {
    let local = "openai:http://127.0.0.1:9/v1";
    let with = |more: &[&'static str]| {
        let mut all = vec!["accept", "--llm", local, "--model", "m"];
        all.extend(more);
        all
    };
    let cap = "--spend-tokens";
    check_refused(
        &["accept", "--llm", local, "--model", " ", cap, "9"],
        None,
        "the name of a model is needed",
    );
    check_refused(&with(&[]), None, "needs a cap on what it may spend");
    check_refused(
        &with(&["--spend-money", "1"]),
        None,
        "--spend-money needs --prices",
    );
    check_refused(&with(&["--spend-money", "0"]), None, "no amount above 0");
    check_refused(
        &with(&[cap, "9"]),
        Some("OPENAI_API_KEY"),
        "the variable OPENAI_API_KEY is not set",
    );
    check_refused(
        &with(&[cap, "9", "--llm-key-env", "NONE"]),
        None,
        "the variable NONE is not set",
    );
    check_refused(
        &with(&[cap, "9", "--llm-key-env", "EMPTY"]),
        None,
        "the variable EMPTY: is empty",
    );
    check_refused(
        &with(&[cap, "9", "--llm-key-env", "SPACED"]),
        None,
        "holds spaces",
    );
    check_refused(
        &with(&[cap, "9", "--llm-key-env", "SHORT"]),
        None,
        "the variable SHORT: has fewer than 8 characters",
    );
    check_refused(
        &with(&[cap, "9", "--llm-ca", "missing.pem"]),
        None,
        "missing.pem cannot be read",
    );
    check_refused(&["accept", "--model", "m"], None, "--llm");
    check_refused(
        &["accept", "--llm", local, cap, "9"],
        None,
        "names no model of a real endpoint",
    );
    let anthropic = "anthropic:http://127.0.0.1:9";
    let built_in = ["accept", "--llm", anthropic, "--model", "m", cap, "9"];
    check_refused(&built_in, None, "--subject claude-code");
    for (address, words) in [
        (format!("openai:http://{KEY}@host/v1"), "holds credentials"),
        (format!("openai:http://host/v1?key={KEY}"), "holds a query"),
        (KEY.to_owned(), "does not begin with openai: or anthropic:"),
        (format!("openai:{KEY}"), "no http:// or https:// address"),
    ] {
        check_refused(
            &["accept", "--llm", &address, "--model", "m", cap, "9"],
            None,
            words,
        );
        check_refused(&["list", "--llm", &address, "--model", "m"], None, words);
    }
    let faulty: PathBuf = crate::program::repository().join("scenarios/faults/llm-refusals.toml");
    let faulty = faulty.to_string_lossy();
    let planned = [
        "accept",
        "--llm",
        local,
        "--model",
        "m",
        cap,
        "9",
        "--scenario",
        &faulty,
    ];
    check_refused(&planned, None, "plans faults");
}

#[test]
fn list_says_what_a_live_plan_can_show_before_money_is_spent() {
    let folder = folder();
    let live = [
        "list",
        "--llm",
        "openai:http://127.0.0.1:9/v1",
        "--model",
        "m",
        "--reps",
        "30",
    ];
    let listed = said(
        program()
            .args(live)
            .current_dir(folder.path())
            .output()
            .unwrap(),
    );
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    for words in [
        "360 runs",
        "live: 360 runs of at most 90,000 requests together",
        "attainable: rule 1 can hold: 30 pairs",
        "attainable: rule 3 can hold: the bound of a median is value 20 of 30",
    ] {
        assert!(listed.stdout.contains(words), "{words}: {}", listed.stdout);
    }
    let simulated = said(
        program()
            .arg("list")
            .current_dir(folder.path())
            .output()
            .unwrap(),
    );
    assert!(
        !simulated.stdout.contains("attainable"),
        "{}",
        simulated.stdout
    );
}
