use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::{Scenario, ScenarioError, defaults, load};

/// The smallest scenario that says all it has to.
const PLAIN: &str = r#"name = "mine"
recipe = "review"
system = "You review."
prompt = "Review."

[[inputs]]
name = "one"
source = "generated"
generator = "review-small"
seed = 1

[[configurations]]
name = "off"
role = "control"
enabled = false

[[configurations]]
name = "on"
role = "candidate"
shipped = true
threshold_bytes = "128KiB"
"#;

fn load_text(text: impl AsRef<[u8]>) -> Result<Scenario, ScenarioError> {
    let folder = TempDir::new().expect("a temporary folder");
    load_in(&folder, text)
}

fn load_in(folder: &TempDir, text: impl AsRef<[u8]>) -> Result<Scenario, ScenarioError> {
    let path = folder.path().join("mine.toml");
    fs::write(&path, text).expect("a file");
    load(&path).map_err(|error| ScenarioError::Plan {
        problem: error
            .to_string()
            .replace(&folder.path().display().to_string(), "DIR"),
        way_out: String::new(),
    })
}

fn error_of(text: impl AsRef<[u8]>) -> String {
    match load_text(text) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string().trim_end_matches(" ()").to_owned(),
    }
}

/// The error after replacing one piece of the plain scenario.
fn with(from: &str, to: &str) -> String {
    assert_eq!(PLAIN.matches(from).count(), 1, "{from:?} is there once");
    format!("{to:?}\n    {}", error_of(PLAIN.replace(from, to)))
}

/// The error after putting a line in front of the first table.
fn plus(line: &str) -> String {
    with(
        "prompt = \"Review.\"\n",
        &format!("prompt = \"Review.\"\n{line}\n"),
    )
}

/// The error after adding a table at the end.
fn table(text: &str) -> String {
    format!("{text:?}\n    {}", error_of(format!("{PLAIN}\n{text}\n")))
}

#[test]
fn what_is_left_out_has_the_defaults() {
    let scenario = load_text(PLAIN).expect("a scenario");
    assert_eq!(scenario.repetitions, defaults::REPETITIONS);
    assert_eq!(scenario.limits.iteration_limit, defaults::ITERATION_LIMIT);
    assert_eq!(scenario.limits.max_runs, defaults::MAX_RUNS);
    assert_eq!(scenario.model.slice_bytes, defaults::SLICE_BYTES);
    assert_eq!(scenario.model.population, defaults::POPULATION.into());
    assert_eq!(scenario.configurations[1].threshold_bytes, Some(131_072));
    assert_eq!(scenario.inputs[0].class, spill_record::Class::Small);
    assert!(!scenario.model.composite);
    let composite = format!("{PLAIN}[model]\ncomposite = true\n");
    assert!(load_text(composite).expect("a scenario").model.composite);
}

#[test]
fn files_that_are_no_scenario() {
    let folder = TempDir::new().expect("a temporary folder");
    let read = |path: &Path| {
        let error = load(path).expect_err("an error").to_string();
        error.replace(&folder.path().display().to_string(), "DIR")
    };
    let lines = [
        error_of(""),
        error_of(" \n\n"),
        error_of(b"name = \"caf\xe9\"\n"),
        error_of(b"\x7fELF\x02\x01\0\0\0\0"),
        error_of("this is prose, not TOML\n"),
        error_of("name = \"a\"\nname = \"b\"\n"),
        error_of("name = \"open\n"),
        error_of("{\"name\": \"json\"}"),
        error_of("name = \"mine\"\n"),
        read(&folder.path().join("missing.toml")),
        read(folder.path()),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

/// Known fault 96: grafana/k6 #1526.
#[test]
fn keys_and_types() {
    let lines = [
        plus("repetition = 5"),
        plus("temperature = 0.5"),
        with("prompt = \"Review.\"", "promt = \"Review.\""),
        with("prompt = \"Review.\"", ""),
        with("seed = 1", "seed = \"one\""),
        with("seed = 1", "seed = -1"),
        with("shipped = true", "shipped = \"yes\""),
        with(
            "threshold_bytes = \"128KiB\"",
            "threshold_bytes = \"128kB\"",
        ),
        with("threshold_bytes = \"128KiB\"", "threshold_bytes = -1"),
        with("threshold_bytes = \"128KiB\"", "threshold_bytes = 1.5"),
        with(
            "threshold_bytes = \"128KiB\"",
            "treshold_bytes = \"128KiB\"",
        ),
        plus("repetitions = 5.5"),
        plus("repetitions = 5000000000"),
        table("[model]\nslice = 5"),
        table("[limits]\niteration_limits = 5"),
        table("[rules]\nallowance = 5"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn impossible_values() {
    let lines = [
        plus("repetitions = 0"),
        plus("repetitions = 501"),
        with("name = \"mine\"", "name = \"../mine\""),
        with("name = \"mine\"", "name = \"\""),
        with("name = \"one\"", "name = \"-one\""),
        with("name = \"on\"", "name = \"a/b\""),
        with("recipe = \"review\"", "recipe = \"reviews\""),
        with("recipe = \"review\"", "recipe = \"chat\""),
        with("recipe = \"review\"", "recipe = \"document\""),
        with("prompt = \"Review.\"", "prompt = \"  \""),
        table("[limits]\niteration_limit = 0"),
        table("[limits]\nrun_timeout_ms = 5"),
        table("[limits]\nmax_runs = 9"),
        table("[model]\nslice_bytes = 0"),
        table("[model]\nname = \"a b\""),
        table("[model]\ncomposite = \"yes\""),
        format!(
            "a document with a composite tool\n    {}",
            error_of(format!(
                "{}\n[model]\ncomposite = true\n",
                PLAIN.replace("recipe = \"review\"", "recipe = \"document\"")
            ))
        ),
        table("[model]\npatterns = [\"(open\"]"),
        table("[model]\npopulation = { selective = 0.6, hasty = 0.1 }"),
        table("[model]\npopulation = { selective = 1.5, hasty = -0.5 }"),
        table("[model]\npopulation = { selective = nan }"),
        table("[model]\npopulation = { selectiv = 1.0 }"),
        table("[model]\npopulation = { careless = 1.0 }"),
        table("[rules]\nquality_allowance = 1.5"),
        table("[rules]\ninput_tokens_ratio_limit = nan"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn configurations_that_make_no_ladder() {
    let enabled = "CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED";
    let threshold = "CLERUM_WORKFLOW_TOOL_SPILLOVER_THRESHOLD";
    let env = |name: &str, value: &str| {
        with(
            "shipped = true",
            &format!("shipped = true\nenv = {{ {name} = \"{value}\" }}"),
        )
    };
    let more = |text: &str| table(&format!("[[configurations]]\n{text}"));
    let lines = [
        with(
            "role = \"control\"\nenabled = false",
            "role = \"candidate\"\nenabled = false",
        ),
        with("role = \"candidate\"", "role = \"control\""),
        with("role = \"candidate\"", "role = \"contestant\""),
        with("shipped = true\n", ""),
        with("enabled = false", "enabled = false\nshipped = true"),
        format!(
            "the control ships\n    {}",
            error_of(
                PLAIN
                    .replace("shipped = true\n", "")
                    .replace("enabled = false", "enabled = false\nshipped = true")
            )
        ),
        with("shipped = true", "enabled = true"),
        with("name = \"on\"", "name = \"off\""),
        with("threshold_bytes = \"128KiB\"\n", ""),
        with("enabled = false", "enabled = false\nthreshold_bytes = 5"),
        more("name = \"b\"\nrole = \"candidate\"\nshipped = true\nthreshold_bytes = 5"),
        env(enabled, "false"),
        env(threshold, "32768"),
        with(
            "enabled = false",
            &format!("enabled = false\nenv = {{ {enabled} = \" TRUE \" }}"),
        ),
        with(
            "shipped = true",
            "shipped = true\nenv = { \"A=B\" = \"x\" }",
        ),
        with("shipped = true", "shipped = true\nenv = { A = 5 }"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

/// The plain scenario's candidate with these lines in place of its threshold.
fn candidate(lines: &str) -> String {
    PLAIN.replace("threshold_bytes = \"128KiB\"\n", &format!("{lines}\n"))
}

/// The variables that these lines of a candidate make, and its label.
fn check_settings(lines: &str, label: &str, env: &[(&str, &str)]) {
    let scenario = load_text(candidate(lines)).expect("a scenario");
    let made = &scenario.configurations[1];
    let share = made.preview_share;
    assert_eq!(
        format!(
            "{} {} {share:?} {:?}",
            made.policy, made.store, made.threshold_bytes
        ),
        label,
        "{lines}"
    );
    let made: Vec<(&str, &str)> = made
        .env
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(made, env, "{lines}");
}

#[test]
fn settings_of_a_policy_become_variables() {
    const POLICY: &str = "SPILLGATE_POLICY";
    const OPTIONS: &str = "SPILLGATE_POLICY_OPTIONS";
    check_settings(
        "threshold_bytes = 5",
        "workflow-step memory None Some(5)",
        &[],
    );
    check_settings(
        "threshold_bytes = 5\npolicy = \"workflow-step\"\nstore = \"memory\"\noptions = {}",
        "workflow-step memory None Some(5)",
        &[],
    );
    check_settings(
        "threshold_bytes = \"32KiB\"\npolicy = \"inline-cap\"",
        "inline-cap memory None Some(32768)",
        &[
            (POLICY, "inline-cap"),
            (OPTIONS, r#"{"maxInlineBytes":32768}"#),
        ],
    );
    check_settings(
        "policy = \"inline-cap\"\noptions = { layout = \"glued\", maxInlineBytes = 0 }",
        "inline-cap memory None Some(0)",
        &[
            (POLICY, "inline-cap"),
            (OPTIONS, r#"{"layout":"glued","maxInlineBytes":0}"#),
        ],
    );
    check_settings(
        "threshold_bytes = 10240\npolicy = \"envelope\"\nstore = \"file\"\npreview_share = 1\n\
         options = { maxPayloadBytes = 10240, previewShare = 1.0 }",
        "envelope file Some(1.0) Some(10240)",
        &[
            (POLICY, "envelope"),
            (OPTIONS, r#"{"maxPayloadBytes":10240,"previewShare":1.0}"#),
            ("SPILLGATE_STORE", "file"),
            ("SPILLGATE_STORE_DIR", "{state}"),
        ],
    );
    check_settings(
        "policy = \"envelope\"\noptions = { maxPayloadBytes = 9, storage = \"filesystem\" }",
        "envelope file None Some(9)",
        &[
            (POLICY, "envelope"),
            (OPTIONS, r#"{"maxPayloadBytes":9}"#),
            ("SPILLGATE_STORE", "file"),
            ("SPILLGATE_STORE_DIR", "{state}"),
        ],
    );
    check_settings(
        "enabled = false\npolicy = \"inline-cap\"\nstore = \"file\"\npreview_share = 0.25",
        "inline-cap file Some(0.25) None",
        &[
            ("CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED", "false"),
            (POLICY, "inline-cap"),
            (OPTIONS, r#"{"previewShare":0.25}"#),
            ("SPILLGATE_STORE", "file"),
            ("SPILLGATE_STORE_DIR", "{state}"),
        ],
    );
    check_settings(
        "threshold_bytes = 7\npolicy = \"inline-cap\"\nstore = \"file\"\n\
         env = { SPILLGATE_POLICY_OPTIONS = '{ \"maxInlineBytes\": 7 }', \
         SPILLGATE_STORE_DIR = \"{state}/results\", SPILLGATE_TURN_BYTES = \"9\" }",
        "inline-cap file None Some(7)",
        &[
            (POLICY, "inline-cap"),
            (OPTIONS, r#"{ "maxInlineBytes": 7 }"#),
            ("SPILLGATE_STORE", "file"),
            ("SPILLGATE_STORE_DIR", "{state}/results"),
            ("SPILLGATE_TURN_BYTES", "9"),
        ],
    );
}

#[test]
fn settings_of_a_policy_that_contradict_each_other() {
    let of = |lines: &str| format!("{lines:?}\n    {}", error_of(candidate(lines)));
    let capped = |lines: &str| of(&format!("threshold_bytes = 9\n{lines}"));
    let cap = |lines: &str| capped(&format!("policy = \"inline-cap\"\n{lines}"));
    let envelope = |lines: &str| capped(&format!("policy = \"envelope\"\n{lines}"));
    let lines = [
        capped("policy = \"inline-cups\""),
        capped("policy = \"head-tail\""),
        capped("policy = 5"),
        capped("store = \"files\""),
        capped("store = \"redis\""),
        capped("store = \"file\""),
        capped("preview_share = 0.5"),
        capped("options = { maxInlineBytes = 9 }"),
        of("policy = \"inline-cap\""),
        of("policy = \"envelope\"\noptions = { previewItems = 3 }"),
        of("enabled = false\nthreshold_bytes = 9\npolicy = \"inline-cap\""),
        cap("preview_share = 0"),
        cap("preview_share = 1.01"),
        cap("preview_share = nan"),
        cap("preview_share = \"half\""),
        cap("preview_share = 0.5\noptions = { previewShare = 0.6 }"),
        cap("options = { maxInlineBytes = 10 }"),
        cap("options = { maxInlineBytes = \"9\" }"),
        cap("options = { maxInlineBytes = -9 }"),
        cap("options = { since = 2026-01-01 }"),
        cap("options = { ratio = inf }"),
        cap("options = 5"),
        envelope("options = { maxPayloadBytes = 10 }"),
        envelope("options = { storagePath = \"cache\" }"),
        envelope("options = { storage = \"disk\" }"),
        envelope("store = \"memory\"\noptions = { storage = \"filesystem\" }"),
        capped("env = { SPILLGATE_POLICY = \"inline-cap\" }"),
        capped("env = { SPILLGATE_STORE = \"file\" }"),
        capped("env = { SPILLGATE_STORE_DIR = \"cache\" }"),
        capped("env = { SPILLGATE_POLICY_OPTIONS = '{\"layout\":\"glued\"}' }"),
        cap("env = { SPILLGATE_POLICY = \"envelope\" }"),
        cap("env = { SPILLGATE_POLICY = \"\" }"),
        cap("env = { SPILLGATE_POLICY_OPTIONS = '{\"maxInlineBytes\":10}' }"),
        cap("env = { SPILLGATE_POLICY_OPTIONS = 'open' }"),
        cap("store = \"file\"\nenv = { SPILLGATE_STORE_DIR = \"cache\" }"),
        cap("env = { CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED = \"false\" }"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn settings_that_only_the_subject_can_judge_are_left_to_it() {
    let refused = "shipped = true\nenv = { CLERUM_WORKFLOW_TOOL_SPILLOVER_ENABLED = \"perhaps\" }";
    load_text(PLAIN.replace("shipped = true", refused)).expect("a scenario");
    let unknown = "threshold_bytes = 9\npolicy = \"envelope\"\noptions = { previewRows = 3 }";
    load_text(candidate(unknown)).expect("a scenario");
}

#[test]
fn inputs_that_lead_nowhere() {
    let second = |text: &str| table(&format!("[[inputs]]\nname = \"two\"\n{text}"));
    let lines = [
        with(
            "generator = \"review-small\"",
            "generator = \"review-smal\"",
        ),
        with("generator = \"review-small\"", "generator = \"poems\""),
        with("generator = \"review-small\"", ""),
        with("source = \"generated\"", "source = \"generatd\""),
        with("seed = 1", "seed = 1\npath = \"x\""),
        with("seed = 1", "seed = 1\nclass = \"huge\""),
        table(
            "[[inputs]]\nname = \"one\"\nsource = \"generated\"\ngenerator = \"handbook\"\nseed = 1",
        ),
        second("source = \"directory\""),
        second("source = \"directory\"\npath = \"no/folder\""),
        second("source = \"document\"\npath = \"missing.md\""),
        second("source = \"repository\"\npath = \".\""),
        second("source = \"repository\"\npath = \"no/folder\"\nrange = \"A..B\""),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    let none = PLAIN.replace("[[inputs]]", "[[inputs_]]");
    assert!(error_of(none).contains("unknown key"));
    let start = PLAIN.find("[[inputs]]").expect("there");
    let end = PLAIN.find("[[configurations]]").expect("there");
    let empty = format!("inputs = []\n{}{}", &PLAIN[..start], &PLAIN[end..]);
    insta::assert_snapshot!(error_of(empty));
}

const DIRECTORY: &str = "source = \"directory\"\npath = \"change\"\n";

/// Loads a scenario whose input is a folder with these files.
fn directory(files: &[(&str, &str)]) -> Result<Scenario, ScenarioError> {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, text) in files {
        let path = folder.path().join("change").join(name);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let generated = "source = \"generated\"\ngenerator = \"review-small\"\nseed = 1\n";
    load_in(&folder, PLAIN.replace(generated, DIRECTORY))
}

#[test]
fn a_directory_of_files_before_and_after_is_a_change() {
    let scenario = directory(&[
        ("before/a.py", "x = 1\n"),
        ("after/a.py", "x = 2\n"),
        ("before/same.py", "y = 1\n"),
        ("after/same.py", "y = 1\n"),
        ("before/gone.py", "z = 1\n"),
        ("after/new/n.py", "n = 1"),
        (
            "facts.toml",
            "[[facts]]\nid = \"f\"\nexpect = \"x\"\ncarrier = \"diff of a.py\"\n",
        ),
    ])
    .expect("a scenario");
    let input = &scenario.inputs[0];
    let files: Vec<_> = input
        .data
        .files
        .iter()
        .map(|file| format!("{} {}\n{}", file.status, file.path, file.diff))
        .collect();
    insta::assert_snapshot!(files.join("\n"));
    assert_eq!(input.facts[0].carrier, "diff of a.py");
    assert_eq!(input.facts[0].place, None);
}

#[test]
fn facts_that_fit_nothing() {
    let fact = |text: &str| {
        let error = directory(&[("after/a.py", "x = 1\n"), ("facts.toml", text)]);
        error
            .expect_err("an error")
            .to_string()
            .trim_end_matches(" ()")
            .to_owned()
    };
    let lines = [
        fact("[[facts]]\nid = \"f\"\nexpect = \"\"\ncarrier = \"a.py\"\n"),
        fact("[[facts]]\nid = \"f\"\nexpect = \"x\"\ncarrier = \"b.py\"\n"),
        fact("[[facts]]\nid = \"f\"\nexpect = \"x\"\ncarrier = \"elsewhere/other.rs\"\n"),
        fact("[[facts]]\nid = \"f\"\nexpect = \"x\"\ncarrier = \"a.py\"\nplace = \"ending\"\n"),
        fact("[[fact]]\nid = \"f\"\n"),
        fact(
            "[[facts]]\nid = \"f\"\nexpect = \"x\"\ncarrier = \"a.py\"\n\
             [[facts]]\nid = \"f\"\nexpect = \"y\"\ncarrier = \"a.py\"\n",
        ),
        directory(&[("facts.toml", "")])
            .expect_err("an error")
            .to_string(),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_checked_in_scenarios_load_from_disk_as_they_are_built_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let from_disk: Vec<_> = ["review.toml", "document.toml"]
        .iter()
        .map(|name| load(&root.join(name)).expect("a scenario"))
        .collect();
    assert_eq!(
        from_disk,
        crate::built_in().expect("the built-in scenarios load")
    );
}

fn checked_in(name: &str) -> Scenario {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    load(&root.join(name)).expect("a scenario")
}

/// Name, policy, store and limit of each configuration.
fn configurations_of(scenario: &Scenario) -> Vec<String> {
    let shown = scenario.configurations.iter().map(|one| {
        let limit = one.threshold_bytes.map_or(0, |limit| limit);
        format!("{} {} {} {limit}", one.name, one.policy, one.store)
    });
    shown.collect()
}

#[test]
fn the_policies_are_compared_on_the_built_in_inputs() {
    let pairs = [
        ("policies.toml", "review.toml"),
        ("policies-document.toml", "document.toml"),
    ];
    let scenarios: Vec<_> = pairs
        .iter()
        .map(|(name, like)| {
            let (scenario, like) = (checked_in(name), checked_in(like));
            let same = Scenario {
                name: like.name.clone(),
                configurations: like.configurations.clone(),
                ..scenario.clone()
            };
            assert_eq!(same, like, "{name}");
            scenario
        })
        .collect();
    assert_eq!(
        configurations_of(&scenarios[0]),
        [
            "off workflow-step memory 0",
            "workflow-step workflow-step memory 32768",
            "inline-cap inline-cap memory 32768",
            "envelope envelope memory 32768",
            "inline-cap-file inline-cap file 32768",
        ]
    );
    let options = crate::PlanOptions {
        base_seed: 1,
        stage: crate::Stage::Full,
        repetitions: None,
    };
    let plan = crate::expand(scenarios, options).expect("they fit into one plan");
    assert_eq!(plan.record.runs.len(), 100);
}

#[test]
fn records_are_replayed_at_four_sizes_and_each_policys_default() {
    let scenario = checked_in("records.toml");
    let mut shown = configurations_of(&scenario);
    assert_eq!(shown.remove(0), "off workflow-step memory 0");
    let limits = |policy: &str| -> Vec<u64> {
        let of = scenario
            .configurations
            .iter()
            .filter(|one| one.policy == policy && one.enabled);
        of.filter_map(|one| one.threshold_bytes).collect()
    };
    let sizes = [10, 15, 20, 25].map(|size| size * 1024);
    for (policy, default) in [
        ("workflow-step", 131_072),
        ("inline-cap", 50_000),
        ("envelope", 10_240),
    ] {
        let mut expected: Vec<u64> = sizes.into_iter().filter(|size| *size != default).collect();
        expected.insert(0, default);
        assert_eq!(limits(policy), expected, "{policy}");
    }
    let of_default = &scenario.configurations[1];
    assert!(of_default.shipped && of_default.env.is_empty());
    assert_eq!(scenario.inputs[0].facts.len(), 19);
    assert_eq!(scenario.inputs[0].class, spill_record::Class::Large);
    let natural = super::natural_class(&scenario.inputs[0].data);
    assert_eq!(natural, scenario.inputs[0].class);
}

#[test]
fn the_built_in_scenarios_spell_the_defaults_out() {
    for scenario in crate::built_in().expect("the built-in scenarios load") {
        assert_eq!(scenario.repetitions, defaults::REPETITIONS);
        assert_eq!(scenario.model.name, defaults::MODEL_NAME);
        assert_eq!(scenario.model.population, defaults::POPULATION.into());
        assert_eq!(
            scenario.model.context_window_tokens,
            defaults::CONTEXT_WINDOW_TOKENS
        );
        assert_eq!(scenario.model.parallel_calls, defaults::PARALLEL_CALLS);
        assert_eq!(scenario.model.slice_bytes, defaults::SLICE_BYTES);
        assert_eq!(
            scenario.model.reading_budget_bytes,
            defaults::READING_BUDGET_BYTES
        );
        assert_eq!(scenario.model.max_findings, defaults::MAX_FINDINGS);
        assert_eq!(scenario.limits.iteration_limit, defaults::ITERATION_LIMIT);
        assert_eq!(scenario.limits.step_timeout_ms, defaults::STEP_TIMEOUT_MS);
        assert_eq!(scenario.limits.run_timeout_ms, defaults::RUN_TIMEOUT_MS);
        assert_eq!(scenario.limits.max_runs, defaults::MAX_RUNS);
        let rules = &scenario.rules;
        assert_eq!(
            rules.input_tokens_ratio_limit,
            defaults::INPUT_TOKENS_RATIO_LIMIT
        );
        assert_eq!(
            rules.large_input_tokens_ratio_limit,
            defaults::LARGE_INPUT_TOKENS_RATIO_LIMIT
        );
        assert_eq!(rules.quality_allowance, defaults::QUALITY_ALLOWANCE);
        assert_eq!(rules.derived_facts_needed, defaults::DERIVED_FACTS_NEEDED);
        assert_eq!(rules.infrastructure_budget, defaults::INFRASTRUCTURE_BUDGET);
    }
}

/// The table stands in the module's documentation and in scenarios/README.md, word for word.
#[test]
fn the_table_of_defaults_is_the_same_in_both_places() {
    let readme = include_str!("../../../../scenarios/README.md");
    let module = include_str!("../defaults.rs");
    let rows = |text: &str, prefix: &str| -> Vec<String> {
        text.lines()
            .filter_map(|line| line.strip_prefix(prefix))
            .filter(|line| {
                line.starts_with("| `")
                    && ["https://", "no published figure", "transcripts"]
                        .iter()
                        .any(|source| line.contains(source))
            })
            .map(str::to_owned)
            .collect()
    };
    let in_module = rows(module, "//! ");
    assert_eq!(in_module.len(), 10);
    assert_eq!(rows(readme, ""), in_module);
    let population = defaults::POPULATION
        .map(|(profile, share)| format!("{} {share}", profile.name()))
        .join(", ");
    for (key, value) in [
        (
            "context_window_tokens",
            defaults::CONTEXT_WINDOW_TOKENS.to_string(),
        ),
        ("iteration_limit", defaults::ITERATION_LIMIT.to_string()),
        ("parallel_calls", defaults::PARALLEL_CALLS.to_string()),
        ("slice_bytes", defaults::SLICE_BYTES.to_string()),
        ("window_lines", defaults::WINDOW_LINES.to_string()),
        (
            "reading_budget_bytes",
            defaults::READING_BUDGET_BYTES.to_string(),
        ),
        ("population", population),
        ("max_findings", defaults::MAX_FINDINGS.to_string()),
    ] {
        let start = format!("| `{key}` | {value} | ");
        assert!(
            in_module.iter().any(|row| row.starts_with(&start)),
            "no row {start:?}"
        );
    }
}

fn fault(lines: &str) -> String {
    table(&format!("[[fault]]\n{lines}"))
}

#[test]
fn faults_that_fit_no_server() {
    let lines = [
        fault("server = \"llm\"\nkind = \"reset\""),
        fault("server = \"model\"\nkind = \"reset\"\ncall = 1"),
        fault("server = \"llm\"\nkind = \"resset\"\ncall = 1"),
        fault("server = \"tools\"\nkind = \"reset\"\ncall = 1"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 0"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 3\nlast_call = 2"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 1\ntimes = 0"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 1\nshare = 1.5"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 1\ndelay_ms = 5"),
        fault("server = \"tools\"\nkind = \"result_bytes\"\ncall = 1"),
        fault("server = \"tools\"\nkind = \"result_bytes\"\ncall = 1\nbytes = 1"),
        fault("server = \"tools\"\nkind = \"http_error\"\ncall = 1\nstatus = 200"),
        fault("server = \"llm\"\nkind = \"reset\"\ncall = 1\nend_reason = \"mismatch\""),
        table("[expect]\nend_reason = \"answer\""),
        table("[expect]\notherwise = \"answered\""),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn faults_of_a_pair_are_those_of_its_repetition_and_seed() {
    let scenario = checked_in("faults/llm-refusals.toml");
    let names = |repetition| -> Vec<&str> {
        let faults = scenario.faults_of(7, repetition);
        faults.iter().map(|fault| fault.kind.name()).collect()
    };
    assert_eq!(names(3), ["server_error"]);
    assert_eq!(names(7), ["context_window"]);
    let record = scenario.model_record();
    assert_eq!(record.faults[3], "llm call 2: server_error, repetition 3");
    assert_eq!(
        record.faults[1],
        "llm call 3 x20: rate_limit, repetition 1, ends as model_error"
    );
}

#[test]
fn times_and_curves_that_are_none() {
    let lines = [
        table("[model.latency]\noverhead_ms = -1.0"),
        table("[model.latency]\nsleep_scale = 2.0"),
        table("[model.latency]\noverhead = 1.0"),
        table("[model]\nrecall = []"),
        table("[model]\nrecall = [[10, 0.5], [10, 0.4]]"),
        table("[model]\nrecall = [[10, 1.5]]"),
        table("[model]\npopulation = { forgetfull = 1.0 }"),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_latency_table_takes_the_defaults_for_what_it_leaves_out() {
    let text = format!("{PLAIN}\n[model.latency]\nqueue_ms = 7.0\n");
    let scenario = load_text(text).expect("a scenario");
    let expected = spill_record::LatencyRecord {
        queue_ms: 7.0,
        ..defaults::LATENCY
    };
    assert_eq!(scenario.model.latency, Some(expected));
    assert_eq!(load_text(PLAIN).expect("a scenario").model.latency, None);
    let habits = checked_in("habits.toml");
    assert_eq!(habits.model.recall, defaults::RECALL);
    assert!(habits.model_record().latency.is_some());
    assert_eq!(checked_in("review.toml").model_record().recall, []);
}

const RELAY: &str = "name = \"zip\"\nbefore = \"llm\"\ncommand = [\"/bin/zip\", \"{listen_port}\", \"{upstream_url}\"]";

fn sidecar(lines: &str) -> String {
    table(&format!("[[configurations.sidecar]]\n{lines}"))
}

#[test]
fn sidecars_that_cannot_stand_anywhere() {
    let otherwise = |part: &str, other: &str| {
        assert!(RELAY.contains(part), "{part}");
        sidecar(&RELAY.replace(part, other))
    };
    let lines = [
        otherwise("before", "behind"),
        otherwise("\"llm\"", "\"model\""),
        otherwise("\"/bin/zip\", \"{listen_port}\", \"{upstream_url}\"", ""),
        otherwise("/bin/zip", ""),
        otherwise("/bin/zip", "bin/zip"),
        otherwise("{listen_port}", "{port}"),
        otherwise("{listen_port}", "80"),
        otherwise("{upstream_url}", "http://127.0.0.1:80"),
        sidecar(&format!("{RELAY}\nstart_timeout_ms = 0")),
        sidecar(&format!("{RELAY}\nenv = {{ A = \"{{home}}\" }}")),
        sidecar(&format!("{RELAY}\n[[configurations.sidecar]]\n{RELAY}")),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_sidecar_is_part_of_its_configuration_alone_and_of_the_plan() {
    let plan_hash = |text: String| {
        let scenario = load_text(text).expect("a scenario");
        let options = crate::PlanOptions {
            stage: spill_record::Stage::Quick,
            repetitions: Some(1),
            base_seed: 1,
        };
        let plan = crate::expand(vec![scenario], options).expect("a plan");
        let sidecars: Vec<usize> = plan
            .record
            .configurations
            .iter()
            .map(|one| one.sidecars.len())
            .collect();
        (sidecars, plan.plan_hash)
    };
    let (none, plain) = plan_hash(PLAIN.to_owned());
    let with = |relay: &str| plan_hash(format!("{PLAIN}\n[[configurations.sidecar]]\n{relay}\n"));
    let (one, relayed) = with(RELAY);
    let (_, other) = with(&RELAY.replace("/bin/zip", "/bin/other"));
    assert_eq!((none, one), (vec![0, 0], vec![0, 1]));
    assert_ne!(plain, relayed);
    assert_ne!(relayed, other);
}
