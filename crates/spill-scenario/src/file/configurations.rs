use std::collections::BTreeMap;

use spill_record::ConfigurationRole;
use toml::Spanned;

use super::SourceText;
use super::check::{Checked, choice, safe_name, unique};
use super::policy;
use super::raw::RawConfiguration;
use crate::scenario::Configuration;

const ENABLED_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED";
const THRESHOLD_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD";

/// Whose settings the labels of configurations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Labels {
    /// The built-in subject's: it is asked for them.
    BuiltIn,
    /// Another agent's, which nobody can ask: its limits stand in `env` alone.
    Foreign,
}

/// Checks each configuration, and that together they make a ladder: one control, at least one
/// candidate, one of the candidates shipped.
pub(super) fn configurations(
    source: &SourceText<'_>,
    raw: &Spanned<Vec<RawConfiguration>>,
    labels: Labels,
) -> Checked<Vec<Configuration>> {
    unique(
        source,
        raw.get_ref().iter().map(|one| &one.name),
        "configuration",
    )?;
    let checked = raw
        .get_ref()
        .iter()
        .map(|one| configuration(source, one, labels))
        .collect::<Checked<Vec<_>>>()?;
    let place = |index: usize| raw.get_ref()[index].name.span();
    let controls = positions(&checked, |one| one.role == ConfigurationRole::Control);
    match controls[..] {
        [_] => {}
        [] => {
            return Err(source.invalid(
                raw.span(),
                "no configuration is the control",
                "give one of them `role = \"control\"`; candidates are compared with it",
            ));
        }
        [_, second, ..] => {
            return Err(source.invalid(
                place(second),
                format!("`{}` is a second control", checked[second].name),
                "keep one `role = \"control\"`, make the others candidates",
            ));
        }
    }
    if controls.len() == checked.len() {
        return Err(source.invalid(
            raw.span(),
            "no configuration is a candidate",
            "give at least one `role = \"candidate\"`",
        ));
    }
    let shipped = positions(&checked, |one| one.shipped);
    match shipped[..] {
        [one] if checked[one].role == ConfigurationRole::Candidate => {}
        [one] => {
            return Err(source.invalid(
                place(one),
                format!(
                    "`{}` is both the control and the shipped one",
                    checked[one].name
                ),
                "mark the candidate that ships today with `shipped = true`",
            ));
        }
        [] => {
            return Err(source.invalid(
                raw.span(),
                "no configuration is marked as the shipped one",
                "mark the candidate that ships today with `shipped = true`",
            ));
        }
        [first, second, ..] => {
            return Err(source.invalid(
                place(second),
                format!(
                    "`{}` and `{}` are both marked as the shipped one",
                    checked[first].name, checked[second].name
                ),
                "keep `shipped = true` at one of them",
            ));
        }
    }
    Ok(checked)
}

fn positions(all: &[Configuration], wanted: impl Fn(&Configuration) -> bool) -> Vec<usize> {
    all.iter()
        .enumerate()
        .filter(|(_, one)| wanted(one))
        .map(|(index, _)| index)
        .collect()
}

fn configuration(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    labels: Labels,
) -> Checked<Configuration> {
    let name = safe_name(source, &raw.name)?;
    let role = choice(
        source,
        &raw.role,
        "role",
        &[
            ("control", ConfigurationRole::Control),
            ("candidate", ConfigurationRole::Candidate),
        ],
    )?;
    let enabled = raw
        .enabled
        .as_ref()
        .is_none_or(|enabled| *enabled.get_ref());
    if let (false, Some(threshold)) = (enabled, &raw.threshold_bytes) {
        return Err(source.invalid(
            threshold.span(),
            format!("`{name}` is labelled as off and has a threshold"),
            "drop `threshold_bytes` or `enabled = false`",
        ));
    }
    let settings = match labels {
        Labels::BuiltIn => policy::settings(source, raw, enabled)?,
        Labels::Foreign => policy::of_another(source, raw)?,
    };
    if labels == Labels::BuiltIn && enabled && settings.threshold_bytes.is_none() {
        return Err(source.invalid(
            raw.name.span(),
            format!("`{name}` does not say what it is labelled with"),
            "add `threshold_bytes = …` or `enabled = false`",
        ));
    }
    let mut env = BTreeMap::new();
    for (name, value) in &raw.env {
        variable(source, name, value)?;
        env.insert(name.get_ref().clone(), value.get_ref().clone());
    }
    match labels {
        Labels::BuiltIn => label_matches_env(source, raw, enabled)?,
        Labels::Foreign => super::subject::configuration_env(source, &raw.env)?,
    }
    policy::join(source, raw, &settings, &mut env)?;
    Ok(Configuration {
        name,
        role,
        shipped: raw
            .shipped
            .as_ref()
            .is_some_and(|shipped| *shipped.get_ref()),
        env,
        enabled,
        threshold_bytes: settings.threshold_bytes,
        policy: settings.policy,
        store: settings.store,
        preview_share: settings.preview_share,
        sidecars: super::sidecars::sidecars(source, &raw.sidecar)?,
    })
}

/// Checks that a variable can be passed on.
pub(super) fn variable(
    source: &SourceText<'_>,
    name: &Spanned<String>,
    value: &Spanned<String>,
) -> Checked<()> {
    let written = name.get_ref();
    if written.is_empty() || written.contains(['=', '\0']) {
        return Err(source.invalid(
            name.span(),
            format!("{written:?} cannot be the name of an environment variable"),
            "use letters, digits and `_`",
        ));
    }
    if value.get_ref().contains('\0') {
        return Err(source.invalid(
            value.span(),
            format!("the value of `{written}` holds a NUL character"),
            "remove it; the system passes no such value on",
        ));
    }
    Ok(())
}

/// Compares the label with what the variables plainly say. Values that the subject would refuse
/// are found when it is asked for its settings.
fn label_matches_env(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    enabled: bool,
) -> Checked<()> {
    let name = raw.name.get_ref();
    for (variable, value) in &raw.env {
        let says = value.get_ref().trim();
        if variable.get_ref() == ENABLED_VAR {
            let switched = match says.to_ascii_lowercase().as_str() {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => continue,
            };
            if switched != enabled {
                let on = |on| if on { "on" } else { "off" };
                return Err(source.invalid(
                    value.span(),
                    format!(
                        "`{name}` is labelled as {} and its environment says {}",
                        on(enabled),
                        on(switched)
                    ),
                    "change `enabled` or the variable",
                ));
            }
        } else if variable.get_ref() == THRESHOLD_VAR {
            let label = raw.threshold_bytes.as_ref().map(|label| label.get_ref().0);
            if let (Ok(says), Some(label)) = (says.parse::<u64>(), label)
                && says != label
            {
                return Err(source.invalid(
                    value.span(),
                    format!(
                        "`{name}` is labelled with {label} bytes and its environment says {says}"
                    ),
                    "change `threshold_bytes` or the variable",
                ));
            }
        }
    }
    Ok(())
}
