use spill_engine::{
    BUDGET_VAR, Budget, DEFAULT_THRESHOLD_BYTES, ENABLED_VAR, Settings, Switch, THRESHOLD_VAR,
    Threshold,
};

/// Looks up with one variable set; gives the settings and the number of warnings.
fn with(variable: &str, value: &str) -> (Settings, usize) {
    let (settings, warnings) =
        Settings::from_lookup(|name| (name == variable).then(|| value.to_owned()));
    for warning in &warnings {
        assert_eq!(warning.variable, variable);
        assert!(warning.to_string().contains(&warning.default), "{warning}");
    }
    (settings, warnings.len())
}

#[track_caller]
fn check_rejected(variable: &str, values: &[&str]) {
    for value in values {
        assert_eq!(
            with(variable, value),
            (Settings::DEFAULT, 1),
            "{variable}={value:?}"
        );
    }
}

#[track_caller]
fn check_threshold(value: &str, expected: u64) {
    let expected = Settings {
        threshold: Threshold::new(expected).expect("within bounds"),
        ..Settings::DEFAULT
    };
    assert_eq!(with(THRESHOLD_VAR, value), (expected, 0), "{value:?}");
}

#[track_caller]
fn check_budget(value: &str, expected: u64) {
    let expected = Settings {
        budget: Budget::new(expected).expect("within bounds"),
        ..Settings::DEFAULT
    };
    assert_eq!(with(BUDGET_VAR, value), (expected, 0), "{value:?}");
}

#[track_caller]
fn check_switch(value: &str, expected: Switch) {
    assert_eq!(
        with(ENABLED_VAR, value),
        (
            Settings {
                enabled: expected,
                ..Settings::DEFAULT
            },
            0
        ),
        "{value:?}"
    );
}

#[test]
fn defaults_are_the_shipped_ones() {
    let (settings, warnings) = Settings::from_lookup(|_| None);
    assert_eq!((settings, warnings), (Settings::DEFAULT, vec![]));
    assert_eq!(Settings::default(), Settings::DEFAULT);
    assert_eq!(settings.enabled, Switch::On);
    assert_eq!(settings.threshold.get(), 131_072);
    assert_eq!(settings.budget.get(), 16_777_216);
}

#[test]
fn blank_means_default_without_a_warning() {
    for variable in [ENABLED_VAR, THRESHOLD_VAR, BUDGET_VAR] {
        assert_eq!(with(variable, ""), (Settings::DEFAULT, 0));
        assert_eq!(with(variable, " \t"), (Settings::DEFAULT, 0));
    }
}

#[test]
fn switch_takes_four_words() {
    for value in ["true", "TRUE", "True", "1", " true\n"] {
        check_switch(value, Switch::On);
    }
    for value in ["false", "FALSE", "fAlSe", "0", "\tfalse "] {
        check_switch(value, Switch::Off);
    }
    check_rejected(
        ENABLED_VAR,
        &[
            "off",
            "on",
            "no",
            "yes",
            "2",
            "00",
            "truefalse",
            "f",
            "falsch",
            "ｆalse",
        ],
    );
}

#[test]
fn threshold_bounds_are_inclusive() {
    check_threshold("4096", 4_096);
    check_threshold("4097", 4_097);
    check_threshold("32768", 32_768);
    check_threshold("1048576", 1_048_576);
    check_threshold(" 32768 ", 32_768);
    check_threshold("0004096", 4_096);
    check_rejected(THRESHOLD_VAR, &["4095", "1048577", "0", "1"]);
}

#[test]
fn budget_bounds_are_inclusive() {
    check_budget("1048576", 1_048_576);
    check_budget("268435456", 268_435_456);
    check_rejected(BUDGET_VAR, &["1048575", "268435457", "0", "4096"]);
}

#[test]
fn odd_numbers_warn_and_default() {
    let odd = [
        "abc",
        "1e5",
        "128k",
        "128KiB",
        "131072.5",
        "131072.0",
        "-1",
        "-0",
        "+131072",
        "131072 bytes",
        "131 072",
        "131_072",
        "131,072",
        "0x20000",
        "١٣١٠٧٢",
        "１３１０７２",
        "18446744073709551616",
        "99999999999999999999999999",
        "NaN",
        "inf",
        "\0",
    ];
    check_rejected(THRESHOLD_VAR, &odd);
    check_rejected(BUDGET_VAR, &odd);
}

#[test]
fn a_bad_value_is_never_clamped_to_the_nearest_bound() {
    assert_eq!(
        with(THRESHOLD_VAR, "4095").0.threshold.get(),
        DEFAULT_THRESHOLD_BYTES
    );
    assert_eq!(
        with(THRESHOLD_VAR, "1048577").0.threshold.get(),
        DEFAULT_THRESHOLD_BYTES
    );
}

#[test]
fn one_bad_value_leaves_the_others() {
    let (settings, warnings) = Settings::from_lookup(|name| match name {
        ENABLED_VAR => Some("0".to_owned()),
        THRESHOLD_VAR => Some("oops".to_owned()),
        _ => Some("2097152".to_owned()),
    });
    assert_eq!(settings.enabled, Switch::Off);
    assert_eq!(settings.threshold.get(), DEFAULT_THRESHOLD_BYTES);
    assert_eq!(settings.budget.get(), 2_097_152);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn no_other_variable_is_looked_up() {
    let (settings, warnings) = Settings::from_lookup(|name| match name {
        ENABLED_VAR | THRESHOLD_VAR | BUDGET_VAR => None,
        other => panic!("asked for {other}"),
    });
    assert_eq!((settings, warnings), (Settings::DEFAULT, vec![]));

    let first_party =
        |name: &str| (name == "CLERUM_TOOL_SPILLOVER_ENABLED").then(|| "false".to_owned());
    assert_eq!(Settings::from_lookup(first_party).0, Settings::DEFAULT);
}

#[test]
fn warnings_name_variable_value_and_default() {
    let (_, warnings) = Settings::from_lookup(|name| match name {
        ENABLED_VAR => Some("off".to_owned()),
        THRESHOLD_VAR => Some("128k\nINFO forged".to_owned()),
        _ => Some("9".repeat(100_000)),
    });
    let lines: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
