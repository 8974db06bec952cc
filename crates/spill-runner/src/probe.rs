//! Asks the subject, before the first run, what it makes of each configuration's settings.

use std::io;
use std::time::Duration;

use serde_json::Value;
use spill_record::ConfigurationRecord;
use tokio::sync::watch;

use crate::dirs::RunDirs;
use crate::execute::Options;
use crate::launcher::{Launchers, TEMP_WAY_OUT};
use crate::process::{self, Ended, Launch};
use crate::subject::Subject;
use crate::tree_memory::TreeMemory;

/// A configuration that is not what it is labelled with.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The subject could not be asked.
    #[error("the subject could not be asked for its settings: {0} ({TEMP_WAY_OUT})")]
    Io(#[from] io::Error),
    /// The launcher did not do its work: nothing is known of the subject.
    #[error(
        "configuration {configuration}: the subject could not be asked for its settings: {said}"
    )]
    Launcher {
        /// The configuration.
        configuration: String,
        /// The launcher's own words.
        said: String,
    },
    /// The subject has no answer.
    #[error(
        "configuration {configuration}: `{subject} --print-settings` {problem} (a subject prints \
         its settings as one JSON object and exits with 0)"
    )]
    NoAnswer {
        /// The configuration.
        configuration: String,
        /// The subject's name.
        subject: String,
        /// What happened instead.
        problem: String,
    },
    /// The subject warned about a setting: it would measure something else.
    #[error(
        "configuration {configuration}: the subject refuses a setting and would use its default: \
         {warning} (correct the configuration's env)"
    )]
    Refused {
        /// The configuration.
        configuration: String,
        /// The subject's words.
        warning: String,
    },
    /// The effective settings differ from the label.
    #[error(
        "configuration {configuration} is labelled {field} = {labelled}, but the subject would use \
         {effective} (correct the label or env in the scenario, or the subject's default)"
    )]
    Mislabelled {
        /// The configuration.
        configuration: String,
        /// The setting.
        field: &'static str,
        /// What the label says.
        labelled: String,
        /// What the subject says.
        effective: String,
    },
}

const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `step --print-settings` under each configuration's environment and returns what the
/// subject would use, in the same order; `None` for a foreign subject, which nobody can ask.
///
/// # Errors
///
/// Fails when the subject does not answer, warns about a setting, or would use other settings
/// than the configuration is labelled with.
pub async fn effective_settings(
    configurations: &[ConfigurationRecord],
    options: &Options,
) -> Result<Vec<Option<Value>>, ProbeError> {
    let mut all = Vec::new();
    match options.subject {
        Subject::BuiltIn | Subject::Command { .. } => {}
        Subject::Foreign(_) => return Ok(vec![None; configurations.len()]),
    }
    let launchers = Launchers::new(options.spillgate.clone());
    for (number, configuration) in configurations.iter().enumerate() {
        let dirs = RunDirs::create(options.temp.join(format!("probe-{number}")))?;
        let settings = ask(configuration, options, &launchers, &dirs).await?;
        compare(configuration, &settings)?;
        all.push(Some(settings));
    }
    launchers.close().await;
    Ok(all)
}

async fn ask(
    configuration: &ConfigurationRecord,
    options: &Options,
    launchers: &Launchers,
    dirs: &RunDirs,
) -> Result<Value, ProbeError> {
    let no_answer = |problem: String| ProbeError::NoAnswer {
        configuration: configuration.name.clone(),
        subject: subject_words(&options.subject),
        problem,
    };
    let launch = Launch {
        launchers,
        command: options
            .subject
            .command(&options.spillgate, &["--print-settings".into()]),
        env: process::filled(&configuration.env, dirs, 0),
        confined: options.subject == Subject::BuiltIn,
        timeout: PROBE_TIMEOUT,
        tree_memory: TreeMemory::Not,
    };
    let (_never, stop) = watch::channel(false);
    let finished = match process::run(dirs, launch, stop).await? {
        Ended::Exited(finished) => finished,
        Ended::TimedOut(_) => return Err(no_answer("gave no answer for 30 s".to_owned())),
        Ended::OutputTooLarge(_) | Ended::Cancelled => {
            return Err(no_answer("was stopped".to_owned()));
        }
    };
    match finished.report.map(|report| report.exit_code) {
        Ok(Some(0)) => {}
        Ok(Some(code)) => {
            let said = last_words(finished.log.text());
            return Err(no_answer(format!("ended with exit code {code}{said}")));
        }
        Ok(None) => return Err(no_answer("was ended by a signal".to_owned())),
        Err(said) => {
            return Err(ProbeError::Launcher {
                configuration: configuration.name.clone(),
                said,
            });
        }
    }
    let answer: Answer = serde_json::from_slice(&finished.stdout)
        .map_err(|error| no_answer(format!("did not print its settings: {error}")))?;
    match answer.warnings.into_iter().next() {
        Some(warning) => Err(ProbeError::Refused {
            configuration: configuration.name.clone(),
            warning,
        }),
        None => Ok(Value::Object(answer.settings)),
    }
}

/// The last line that the subject wrote to standard error, cut short and without control characters;
/// no result was ever near it.
fn last_words(stderr: &[u8]) -> String {
    const LONGEST: usize = 400;
    let text = String::from_utf8_lossy(stderr);
    let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let words: String = line
        .chars()
        .filter(|char| !char.is_control())
        .take(LONGEST)
        .collect();
    format!(" and said: {words}")
}

/// What `step --print-settings` prints.
#[derive(serde::Deserialize)]
struct Answer {
    settings: serde_json::Map<String, Value>,
    #[serde(default)]
    warnings: Vec<String>,
}

fn compare(configuration: &ConfigurationRecord, settings: &Value) -> Result<(), ProbeError> {
    let mislabelled = |field, labelled: String, effective: &Value| ProbeError::Mislabelled {
        configuration: configuration.name.clone(),
        field,
        labelled,
        effective: effective.to_string(),
    };
    let enabled = &settings["enabled"];
    if *enabled != Value::Bool(configuration.enabled) {
        return Err(mislabelled(
            "enabled",
            configuration.enabled.to_string(),
            enabled,
        ));
    }
    // A subject that does not say has no such setting.
    let labels = [
        ("policy", configuration.policy.clone().map(Value::from)),
        ("store", configuration.store.clone().map(Value::from)),
        (
            "preview_share",
            configuration.preview_share.map(Value::from),
        ),
    ];
    for (field, label) in labels {
        let effective = settings.get(field).unwrap_or(&Value::Null);
        if let Some(label) = label
            && !effective.is_null()
            && *effective != label
        {
            return Err(mislabelled(field, label.to_string(), effective));
        }
    }
    let Some(threshold) = configuration.threshold_bytes else {
        return Ok(());
    };
    let effective = &settings["threshold_bytes"];
    if configuration.enabled && effective.as_u64() != Some(threshold) {
        return Err(mislabelled(
            "threshold_bytes",
            threshold.to_string(),
            effective,
        ));
    }
    Ok(())
}

fn subject_words(subject: &Subject) -> String {
    match subject {
        Subject::BuiltIn => "spillgate step".to_owned(),
        Subject::Command { name, .. } => name.clone(),
        Subject::Foreign(foreign) => foreign.subject.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;
    use spill_record::ConfigurationRole;

    use super::*;

    fn check(enabled: bool, threshold_bytes: Option<u64>, settings: Value, want: Option<&str>) {
        let configuration = ConfigurationRecord {
            name: "c".to_owned(),
            role: ConfigurationRole::Candidate,
            shipped: false,
            env: BTreeMap::new(),
            enabled,
            threshold_bytes,
            policy: None,
            store: None,
            preview_share: None,
            sidecars: Vec::new(),
            effective_settings: None,
        };
        let error = compare(&configuration, &settings)
            .err()
            .map(|error| error.to_string());
        match want {
            Some(want) => assert!(error.is_some_and(|error| error.contains(want))),
            None => assert_eq!(error, None),
        }
    }

    #[test]
    fn a_label_must_be_what_the_subject_uses() {
        let on = json!({"enabled": true, "threshold_bytes": 131_072});
        check(true, Some(131_072), on.clone(), None);
        check(
            true,
            Some(32_768),
            on.clone(),
            Some("threshold_bytes = 32768"),
        );
        check(false, None, on, Some("enabled = false"));
        check(
            false,
            None,
            json!({"enabled": false, "threshold_bytes": 131_072}),
            None,
        );
        check(true, Some(131_072), json!({}), Some("would use null"));
    }

    #[test]
    fn the_last_line_of_a_log_is_cut_short_and_plain() {
        assert_eq!(last_words(b""), "");
        assert_eq!(last_words(b"one\n\x1b[31mtwo\n \n"), " and said: [31mtwo");
        let long = last_words("x".repeat(1_000).as_bytes());
        assert_eq!(long.len(), " and said: ".len() + 400);
    }

    #[test]
    fn a_policy_and_a_store_must_be_what_the_subject_uses() {
        let label = |settings: &Value| {
            let configuration = ConfigurationRecord {
                name: "c".to_owned(),
                role: ConfigurationRole::Candidate,
                shipped: false,
                env: BTreeMap::new(),
                enabled: true,
                threshold_bytes: None,
                policy: Some("envelope".to_owned()),
                store: Some("file".to_owned()),
                preview_share: Some(0.5),
                sidecars: Vec::new(),
                effective_settings: None,
            };
            let error = compare(&configuration, settings).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        let with = |policy, store, share: f64| {
            label(
                &json!({"enabled": true, "policy": policy, "store": store, "preview_share": share}),
            )
        };
        assert_eq!(with("envelope", "file", 0.5), "");
        assert!(with("inline-cap", "file", 0.5).contains("policy = \"envelope\""));
        assert!(with("envelope", "memory", 0.5).contains("store = \"file\""));
        assert!(with("envelope", "file", 1.0).contains("preview_share = 0.5"));
        assert_eq!(label(&json!({"enabled": true})), "");
    }
}
