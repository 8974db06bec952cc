//! What each variable means, and what a bad one is told.

use std::path;

use serde_json::json;
use spill_engine::{DEFAULT_BUDGET_BYTES, DEFAULT_THRESHOLD_BYTES, ENABLED_VAR};

use super::*;

type Variables<'a> = &'a [(&'a str, &'a str)];

fn looked_up(variables: Variables<'_>) -> Result<SpillSettings, SettingsError> {
    let lookup = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    SpillSettings::from_lookup(lookup).map(|(settings, _)| settings)
}

#[track_caller]
fn check_refused(variables: Variables<'_>, message: &str) {
    let error = looked_up(variables).expect_err(message);
    assert_eq!(error.to_string(), message);
}

#[track_caller]
fn check_effective(variables: Variables<'_>, expected: &Value) {
    let settings = looked_up(variables).expect("good settings");
    let effective = EffectiveSettings::from(&settings);
    assert_eq!(&json!(effective), expected);
}

const INLINE_CAP: (&str, &str) = (POLICY_VAR, "inline-cap");
const ENVELOPE: (&str, &str) = (POLICY_VAR, "envelope");
const FILE: (&str, &str) = (STORE_VAR, "file");
const DIR: (&str, &str) = (STORE_DIR_VAR, "/s");

#[test]
fn nothing_set_is_the_workflow_step_policy() {
    let expected = json!({
        "enabled": true, "threshold_bytes": DEFAULT_THRESHOLD_BYTES, "budget_bytes": DEFAULT_BUDGET_BYTES,
        "policy": "workflow-step", "store": "memory", "preview_share": null, "options": {},
        "turn_bytes": null, "expand_tools": [],
    });
    check_effective(&[], &expected);
    check_effective(
        &[
            (POLICY_VAR, " workflow-step "),
            (OPTIONS_VAR, "{}"),
            (STORE_VAR, ""),
        ],
        &expected,
    );
    let settings = looked_up(&[]).expect("good settings");
    assert_eq!(settings, Settings::DEFAULT.into());
}

#[test]
fn each_setting_changes_what_is_in_force() {
    check_effective(
        &[
            INLINE_CAP,
            (OPTIONS_VAR, r#"{"maxInlineBytes":10,"previewShare":0.5}"#),
            FILE,
            DIR,
            (TURN_BYTES_VAR, "99"),
            (EXPAND_TOOLS_VAR, "a, b"),
            (ENABLED_VAR, "false"),
        ],
        &json!({
            "enabled": false, "threshold_bytes": 10, "budget_bytes": 512 << 20,
            "policy": "inline-cap", "store": "file", "preview_share": 0.5,
            "options": {"maxInlineBytes": 10, "previewShare": 0.5},
            "turn_bytes": 99, "expand_tools": ["a", "b"],
        }),
    );
    check_effective(
        &[INLINE_CAP],
        &json!({
            "enabled": true, "threshold_bytes": null, "budget_bytes": DEFAULT_BUDGET_BYTES,
            "policy": "inline-cap", "store": "memory", "preview_share": 1.0, "options": {},
            "turn_bytes": null, "expand_tools": [],
        }),
    );
    check_effective(
        &[ENVELOPE],
        &json!({
            "enabled": true, "threshold_bytes": 10_240, "budget_bytes": DEFAULT_BUDGET_BYTES,
            "policy": "envelope", "store": "memory", "preview_share": 1.0, "options": {},
            "turn_bytes": null, "expand_tools": [],
        }),
    );
    let seeded = looked_up(&[(STORE_SEED_VAR, "18446744073709551615")]);
    assert_eq!(seeded.expect("good settings").seed, Some(u64::MAX));
}

#[test]
fn the_store_of_an_envelope_has_two_names() {
    let store = |variables: Variables<'_>| {
        let variables = [&[ENVELOPE], variables].concat();
        looked_up(&variables).expect("good settings").store
    };
    let here = path::absolute("./.spillover_cache").expect("a path");
    let memory = StoreSettings::Memory;
    let file = |place: &str| StoreSettings::File(PathBuf::from(place));
    let filesystem = |more: &'static str| (OPTIONS_VAR, more);
    assert_eq!(store(&[]), memory);
    assert_eq!(store(&[DIR]), memory, "a directory alone is only swept");
    assert_eq!(store(&[FILE, DIR]), file("/s"));
    assert_eq!(
        store(&[filesystem(r#"{"storage":"filesystem"}"#)]),
        StoreSettings::File(here)
    );
    assert_eq!(
        store(&[filesystem(r#"{"storage":"filesystem"}"#), DIR]),
        file("/s")
    );
    assert_eq!(
        store(&[filesystem(r#"{"storagePath":"/s/"}"#), FILE]),
        file("/s")
    );
    assert_eq!(
        store(&[
            filesystem(r#"{"storage":"filesystem","storagePath":"/s"}"#),
            FILE,
            DIR
        ]),
        file("/s")
    );
    assert_eq!(store(&[filesystem(r#"{"storage":"memory"}"#)]), memory);
}

#[test]
fn a_directory_is_swept_also_without_a_file_store() {
    let sweep = |variables: Variables<'_>| looked_up(variables).expect("good settings").sweep;
    assert_eq!(sweep(&[]), None);
    assert_eq!(sweep(&[DIR]), Some(PathBuf::from("/s")));
    assert_eq!(
        sweep(&[DIR, (ENABLED_VAR, "false")]),
        Some(PathBuf::from("/s"))
    );
    assert_eq!(sweep(&[INLINE_CAP, FILE, DIR]), Some(PathBuf::from("/s")));
}

#[test]
fn bad_values_name_variable_value_and_choices() {
    check_refused(
        &[(POLICY_VAR, "cap")],
        "SPILLGATE_POLICY is \"cap\": use workflow-step, inline-cap or envelope",
    );
    check_refused(
        &[INLINE_CAP, (STORE_VAR, "disk")],
        "SPILLGATE_STORE is \"disk\": use memory or file",
    );
    check_refused(
        &[INLINE_CAP, FILE],
        "SPILLGATE_STORE is \"file\": set SPILLGATE_STORE_DIR to its directory",
    );
    check_refused(
        &[FILE, DIR],
        "SPILLGATE_STORE is \"file\": the workflow-step policy keeps results in memory (use memory, or another \
         SPILLGATE_POLICY)",
    );
    check_refused(
        &[(OPTIONS_VAR, r#"{"maxInlineBytes":1}"#)],
        "SPILLGATE_POLICY_OPTIONS is \"{\\\"maxInlineBytes\\\":1}\": the workflow-step policy has no options \
         (unset it, use CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED and its kin, or set SPILLGATE_POLICY to inline-cap or \
         envelope)",
    );
    check_refused(
        &[INLINE_CAP, (OPTIONS_VAR, "[]")],
        "SPILLGATE_POLICY_OPTIONS is \"[]\": write one JSON object of the policy's options (invalid type: sequence, \
         expected a map at line 1 column 0)",
    );
    check_refused(
        &[INLINE_CAP, (OPTIONS_VAR, r#"{"maxInlineBytes":-1}"#)],
        "SPILLGATE_POLICY_OPTIONS is \"{\\\"maxInlineBytes\\\":-1}\": spill-policy: maxInlineBytes must be a \
         non-negative integer (got -1)",
    );
    let both = r#"{"storage":"filesystem","storagePath":"/t"}"#;
    check_refused(
        &[ENVELOPE, (OPTIONS_VAR, both), (STORE_VAR, "memory")],
        "SPILLGATE_STORE is \"memory\": option storage of SPILLGATE_POLICY_OPTIONS says otherwise (give one)",
    );
    check_refused(
        &[ENVELOPE, (OPTIONS_VAR, both), FILE, DIR],
        "SPILLGATE_STORE_DIR is \"/s\": option storagePath of SPILLGATE_POLICY_OPTIONS says otherwise (give one)",
    );
    check_refused(
        &[(TURN_BYTES_VAR, "0")],
        "SPILLGATE_TURN_BYTES is \"0\": write a number of bytes from 1, or unset it for no bound",
    );
    check_refused(
        &[(TURN_BYTES_VAR, "+1")],
        "SPILLGATE_TURN_BYTES is \"+1\": write a whole number from 0 to 18446744073709551615",
    );
    check_refused(
        &[(STORE_SEED_VAR, "18446744073709551616")],
        "SPILLGATE_STORE_SEED is \"18446744073709551616\": write a whole number from 0 to 18446744073709551615",
    );
    check_refused(
        &[(EXPAND_TOOLS_VAR, "a,,b")],
        "SPILLGATE_EXPAND_TOOLS is \"a,,b\": write names of tools separated by commas, or unset it for none",
    );
}
