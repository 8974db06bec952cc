//! The keys of a configuration that are settings of the built-in subject: `policy`, `store`,
//! `preview_share` and `options`. They become environment variables.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value, json};
use toml::Spanned;

use super::SourceText;
use super::check::{Checked, choice};
use super::raw::RawConfiguration;
use crate::scenario::{DEFAULT_POLICY, DEFAULT_STORE, STATE_PLACEHOLDER};

const ENABLED_VAR: &str = "CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED";
const POLICY_VAR: &str = "SPILLGATE_POLICY";
const OPTIONS_VAR: &str = "SPILLGATE_POLICY_OPTIONS";
const STORE_VAR: &str = "SPILLGATE_STORE";
const STORE_DIR_VAR: &str = "SPILLGATE_STORE_DIR";

/// The policies of the built-in subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    WorkflowStep,
    InlineCap,
    Envelope,
}

impl Policy {
    fn name(self) -> &'static str {
        match self {
            Self::WorkflowStep => DEFAULT_POLICY,
            Self::InlineCap => "inline-cap",
            Self::Envelope => "envelope",
        }
    }

    /// The option that is the policy's limit; `None` where options are not how it is set.
    fn limit_option(self) -> Option<&'static str> {
        match self {
            Self::WorkflowStep => None,
            Self::InlineCap => Some("maxInlineBytes"),
            Self::Envelope => Some("maxPayloadBytes"),
        }
    }
}

/// Where stored results are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Memory,
    File,
}

impl Store {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => DEFAULT_STORE,
            Self::File => "file",
        }
    }
}

/// What the keys say, and the variables that say it to the subject.
pub(super) struct PolicySettings {
    pub(super) policy: String,
    pub(super) store: String,
    pub(super) preview_share: Option<f64>,
    /// The label: `threshold_bytes`, or the option that stands for it.
    pub(super) threshold_bytes: Option<u64>,
    /// Only what differs from the defaults, so that the defaults themselves are measured unset.
    pub(super) env: BTreeMap<String, String>,
}

pub(super) fn settings(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    enabled: bool,
) -> Checked<PolicySettings> {
    let policy = policy(source, raw)?;
    let mut options = json_options(source, raw)?;
    let store = store(source, raw, policy)?;
    options.remove("storage");
    let preview_share = preview_share(source, raw)?;
    let mut threshold_bytes = raw.threshold_bytes.as_ref().map(|size| size.get_ref().0);
    match policy.limit_option() {
        None => no_options(source, raw, store)?,
        Some(limit) => {
            threshold_bytes = threshold(source, raw, limit, enabled, &mut options)?;
            if let Some(share) = preview_share {
                put_share(source, raw, share, &mut options)?;
            }
        }
    }
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| env.insert(name.to_owned(), value);
    if policy != Policy::WorkflowStep {
        set(POLICY_VAR, policy.name().to_owned());
        if !enabled {
            set(ENABLED_VAR, "false".to_owned());
        }
    }
    if !options.is_empty() {
        set(OPTIONS_VAR, Value::Object(options).to_string());
    }
    if store == Store::File {
        set(STORE_VAR, store.name().to_owned());
        set(STORE_DIR_VAR, STATE_PLACEHOLDER.to_owned());
    }
    Ok(PolicySettings {
        policy: policy.name().to_owned(),
        store: store.name().to_owned(),
        preview_share,
        threshold_bytes,
        env,
    })
}

/// What stands for policy and store of an agent that has its own.
const OWN: &str = "own";

/// The keys of a configuration of another agent: none of the built-in subject's settings.
pub(super) fn of_another(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
) -> Checked<PolicySettings> {
    let options = raw.options.iter().next();
    let given = [
        ("policy", raw.policy.as_ref().map(Spanned::span)),
        ("store", raw.store.as_ref().map(Spanned::span)),
        (
            "preview_share",
            raw.preview_share.as_ref().map(Spanned::span),
        ),
        ("options", options.map(|(key, _)| key.span())),
    ];
    for (key, span) in given {
        if let Some(span) = span {
            return Err(source.invalid(
                span,
                format!("`{key}` is a setting of the built-in subject"),
                "remove it; another agent's limits are variables of its `env`",
            ));
        }
    }
    Ok(PolicySettings {
        policy: OWN.to_owned(),
        store: OWN.to_owned(),
        preview_share: None,
        threshold_bytes: raw.threshold_bytes.as_ref().map(|size| size.get_ref().0),
        env: BTreeMap::new(),
    })
}

fn policy(source: &SourceText<'_>, raw: &RawConfiguration) -> Checked<Policy> {
    let Some(policy) = &raw.policy else {
        return Ok(Policy::WorkflowStep);
    };
    let policies = [Policy::WorkflowStep, Policy::InlineCap, Policy::Envelope];
    choice(
        source,
        policy,
        "policy",
        &policies.map(|one| (one.name(), one)),
    )
}

/// `store`, or what NitroStack's own name for it says; the subject is told in one way only.
fn store(source: &SourceText<'_>, raw: &RawConfiguration, policy: Policy) -> Checked<Store> {
    let stores = [Store::Memory, Store::File];
    let named = raw
        .store
        .as_ref()
        .map(|store| choice(source, store, "store", &stores.map(|one| (one.name(), one))))
        .transpose()?;
    if policy != Policy::Envelope {
        return Ok(named.unwrap_or(Store::Memory));
    }
    if let Some((span, _)) = option(raw, "storagePath") {
        return Err(source.invalid(
            span,
            "`storagePath` names a folder, and the folder is the run's own",
            "remove it and write `store = \"file\"`",
        ));
    }
    let Some((span, storage)) = option(raw, "storage") else {
        return Ok(named.unwrap_or(Store::Memory));
    };
    let storage = match storage.as_str() {
        Some("memory") => Store::Memory,
        Some("filesystem") => Store::File,
        Some(_) | None => {
            return Err(source.invalid(
                span,
                format!("`storage` is {storage}"),
                "write \"memory\" or \"filesystem\"",
            ));
        }
    };
    match named {
        Some(named) if named != storage => Err(source.invalid(
            span,
            format!(
                "`storage` is {storage_text} and `store` is \"{}\"",
                named.name(),
                storage_text = storage_text(storage)
            ),
            "keep one of them",
        )),
        Some(_) | None => Ok(storage),
    }
}

fn storage_text(store: Store) -> &'static str {
    match store {
        Store::Memory => "\"memory\"",
        Store::File => "\"filesystem\"",
    }
}

fn preview_share(source: &SourceText<'_>, raw: &RawConfiguration) -> Checked<Option<f64>> {
    let Some(share) = &raw.preview_share else {
        return Ok(None);
    };
    let value = *share.get_ref();
    if !(value > 0.0 && value <= 1.0) {
        return Err(source.invalid(
            share.span(),
            format!("`preview_share` is {value}"),
            "write a number above 0 and up to 1",
        ));
    }
    Ok(Some(value))
}

/// The policy `workflow-step` is set by its own variables, and its summary has a fixed format.
fn no_options(source: &SourceText<'_>, raw: &RawConfiguration, store: Store) -> Checked<()> {
    let refuse = |span: Range<usize>, key: &str, why: &str| {
        Err(source.invalid(
            span,
            format!("`{key}` has no meaning with the policy `{DEFAULT_POLICY}`: {why}"),
            "remove it, or choose `policy = \"inline-cap\"` or `policy = \"envelope\"`",
        ))
    };
    if let Some(share) = &raw.preview_share {
        return refuse(
            share.span(),
            "preview_share",
            "its summary has a fixed format",
        );
    }
    if let Some(key) = raw.options.keys().next() {
        return refuse(key.span(), "options", "it is set by variables in `env`");
    }
    match (&raw.store, store) {
        (Some(named), Store::File) => refuse(named.span(), "store", "it keeps results in memory"),
        (Some(_) | None, Store::Memory | Store::File) => Ok(()),
    }
}

/// The limit as `threshold_bytes` and the policy's own option say it; both stand in the options.
fn threshold(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    limit: &str,
    enabled: bool,
    options: &mut Map<String, Value>,
) -> Checked<Option<u64>> {
    let label = raw.threshold_bytes.as_ref();
    let Some((span, value)) = option(raw, limit) else {
        if let Some(label) = label {
            options.insert(limit.to_owned(), json!(label.get_ref().0));
        }
        return Ok(label.map(|label| label.get_ref().0));
    };
    let Some(bytes) = value.as_u64() else {
        return Err(source.invalid(
            span,
            format!("`{limit}` is {value}"),
            "write a whole number of bytes, from 0",
        ));
    };
    match label {
        Some(label) if label.get_ref().0 != bytes => Err(source.invalid(
            span,
            format!(
                "`{limit}` is {bytes} and `threshold_bytes` is {}",
                label.get_ref().0
            ),
            "keep one of them",
        )),
        Some(_) | None => Ok(enabled.then_some(bytes)),
    }
}

fn put_share(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    share: f64,
    options: &mut Map<String, Value>,
) -> Checked<()> {
    const SHARE: &str = "previewShare";
    if let Some((span, value)) = option(raw, SHARE)
        && value.as_f64() != Some(share)
    {
        return Err(source.invalid(
            span,
            format!("`{SHARE}` is {value} and `preview_share` is {share}"),
            "keep one of them",
        ));
    }
    options.insert(SHARE.to_owned(), json!(share));
    Ok(())
}

fn option(raw: &RawConfiguration, name: &str) -> Option<(Range<usize>, Value)> {
    let (_, value) = raw
        .options
        .iter()
        .find(|(key, _)| key.get_ref().as_str() == name)?;
    Some((value.span(), to_json(value.get_ref())?))
}

fn json_options(source: &SourceText<'_>, raw: &RawConfiguration) -> Checked<Map<String, Value>> {
    let mut options = Map::new();
    for (key, value) in &raw.options {
        let Some(json) = to_json(value.get_ref()) else {
            return Err(source.invalid(
                value.span(),
                format!("the option `{}` cannot be written as JSON", key.get_ref()),
                "use texts, finite numbers, booleans, arrays and tables",
            ));
        };
        options.insert(key.get_ref().clone(), json);
    }
    Ok(options)
}

/// `None` for what JSON has no form for: dates, infinities and NaN.
fn to_json(value: &toml::Value) -> Option<Value> {
    match value {
        toml::Value::String(text) => Some(json!(text)),
        toml::Value::Integer(number) => Some(json!(number)),
        toml::Value::Float(number) => number.is_finite().then(|| json!(number)),
        toml::Value::Boolean(on) => Some(json!(on)),
        toml::Value::Datetime(_) => None,
        toml::Value::Array(items) => items.iter().map(to_json).collect(),
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| Some((key.clone(), to_json(value)?)))
            .collect::<Option<Map<_, _>>>()
            .map(Value::Object),
    }
}

/// Joins the variables written by hand and those that the keys make. One that says something else
/// than the keys is an error, also where the keys say it by being absent.
pub(super) fn join(
    source: &SourceText<'_>,
    raw: &RawConfiguration,
    settings: &PolicySettings,
    env: &mut BTreeMap<String, String>,
) -> Checked<()> {
    for (variable, value) in &raw.env {
        let (key, default) = match variable.get_ref().as_str() {
            POLICY_VAR => ("policy", DEFAULT_POLICY),
            STORE_VAR => ("store", DEFAULT_STORE),
            STORE_DIR_VAR => ("store", ""),
            OPTIONS_VAR => ("options", "{}"),
            _ => continue,
        };
        let made = settings
            .env
            .get(variable.get_ref())
            .map_or(default, String::as_str);
        let unset = value.get_ref().trim().is_empty() && made == default;
        if !unset && !says_the_same(variable.get_ref(), value, made) {
            let name = raw.name.get_ref();
            let says = if made.is_empty() { "nothing" } else { made };
            return Err(source.invalid(
                value.span(),
                format!(
                    "the keys of `{name}` say {says} for `{}` and its environment says {}",
                    variable.get_ref(),
                    value.get_ref()
                ),
                format!("remove the variable and use the key `{key}`"),
            ));
        }
    }
    for (variable, value) in &settings.env {
        env.entry(variable.clone()).or_insert_with(|| value.clone());
    }
    Ok(())
}

fn says_the_same(variable: &str, written: &Spanned<String>, made: &str) -> bool {
    let written = written.get_ref().trim();
    if written == made {
        return true;
    }
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    match variable {
        OPTIONS_VAR => json(written).is_some() && json(written) == json(made),
        STORE_DIR_VAR => made == STATE_PLACEHOLDER && written.starts_with(STATE_PLACEHOLDER),
        _ => false,
    }
}
