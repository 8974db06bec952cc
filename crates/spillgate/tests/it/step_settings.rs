//! `step --print-settings`: what the environment gives, and what it may not hold.

use serde_json::{Value, json};

use crate::program::{Said, folder, program};

fn print_settings(variables: &[(&str, &str)]) -> Said {
    let folder = folder();
    let output = program()
        .args(["step", "--print-settings"])
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(folder.path())
        .output()
        .unwrap();
    Said {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn the_settings_in_force_are_printed() {
    let said = print_settings(&[
        ("SPILLGATE_POLICY", "inline-cap"),
        ("SPILLGATE_POLICY_OPTIONS", r#"{"maxInlineBytes":32768}"#),
        ("SPILLGATE_STORE", "file"),
        ("SPILLGATE_STORE_DIR", "/var/spill"),
        ("SPILLGATE_EXPAND_TOOLS", "search"),
        ("SPILLGATE_TURN_BYTES", "100000"),
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let printed: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(
        printed,
        json!({
            "settings": {
                "enabled": true, "threshold_bytes": 32_768, "budget_bytes": 536_870_912,
                "policy": "inline-cap", "store": "file", "preview_share": 1.0,
                "options": {"maxInlineBytes": 32_768},
                "turn_bytes": 100_000, "expand_tools": ["search"],
            },
            "warnings": [],
        })
    );
}

#[test]
fn a_place_that_cannot_hold_results_is_a_warning_of_the_settings() {
    let folder = folder();
    let place = folder.path().canonicalize().unwrap().join("taken");
    std::fs::write(&place, "").unwrap();
    let place = place.to_string_lossy();
    let said = print_settings(&[
        ("SPILLGATE_POLICY", "envelope"),
        ("SPILLGATE_STORE", "file"),
        ("SPILLGATE_STORE_DIR", &place),
    ]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let printed: Value = serde_json::from_str(&said.stdout).unwrap();
    let warning = printed["warnings"][0].as_str().unwrap();
    assert!(warning.contains(&*place), "{warning}");
}

/// One line on standard error that names the variable, exit code 2, nothing printed.
fn check_refused(variables: &[(&str, &str)], why: &str) {
    let said = print_settings(variables);
    assert_eq!(said.code, Some(2), "{}{}", said.stdout, said.stderr);
    assert_eq!(said.stdout, "");
    assert!(said.stderr.contains(why), "{}", said.stderr);
}

#[test]
fn settings_that_no_step_can_run_with_end_it_with_exit_code_2() {
    check_refused(
        &[("SPILLGATE_POLICY", "none")],
        "SPILLGATE_POLICY is \"none\": use workflow-step, inline-cap or envelope",
    );
    check_refused(
        &[("SPILLGATE_STORE", "file"), ("SPILLGATE_STORE_DIR", "/s")],
        "the workflow-step policy keeps results in memory",
    );
    check_refused(
        &[
            ("SPILLGATE_POLICY", "envelope"),
            ("SPILLGATE_POLICY_OPTIONS", r#"{"maxPayloadBytes":"10k"}"#),
        ],
        "maxPayloadBytes must be a non-negative integer",
    );
}
