use crate::error::ScenarioError;
use crate::subject::{AnswerRule, OwnFolder, SubjectPreset};
use crate::{Slot, built_in, built_in_subject, subject_names};

const SOUND: &str = r#"
[subject]
name = "agent"
command = ["agent", "--url", "{llm_url}", "{prompt}"]
answer = { from = "stdout" }
state = [".agent", "{tmp}/cache"]

[subject.env]
KEY = "{key}"

[[subject.files]]
path = ".agent/settings.json"
content = '{"mcp":"{mcp_url}","limit":{env:LIMIT}}'

[[configurations]]
name = "off"
role = "control"
enabled = false
env = { LIMIT = "0" }

[[configurations]]
name = "default"
role = "candidate"
shipped = true
env = { LIMIT = "9" }
"#;

fn read(text: &str) -> Result<SubjectPreset, ScenarioError> {
    crate::file::subject_of("agent.toml", text.as_bytes())
}

/// The sound file with a part in place of another one.
fn with(part: &str, other: &str) -> String {
    assert!(SOUND.contains(part), "{part}");
    SOUND.replacen(part, other, 1)
}

fn check_refused(text: &str, want: &str) {
    let error = read(text).map(drop).map_err(|error| error.to_string());
    let said = error.expect_err("it is refused");
    assert!(said.contains(want), "{said}");
    assert!(said.starts_with("agent.toml:"), "{said}");
}

#[test]
fn a_subject_is_read() {
    let preset = read(SOUND).expect("it is sound");
    let subject = &preset.subject;
    assert_eq!(subject.program, "agent");
    assert_eq!(subject.arguments.len(), 3);
    assert_eq!(subject.answer, AnswerRule::StandardOutput);
    let own: Vec<_> = subject
        .state
        .iter()
        .map(|own| (own.folder, &*own.path))
        .collect();
    let want = [(OwnFolder::Home, ".agent"), (OwnFolder::Tmp, "cache")];
    assert_eq!(own, want);
    let content = subject.files[0].content.fill(|slot| match slot {
        Slot::McpUrl => "u".to_owned(),
        Slot::Env(name) => format!("${name}"),
        other => format!("{other:?}"),
    });
    assert_eq!(content, r#"{"mcp":"u","limit":$LIMIT}"#);
    let configurations = preset.configurations.expect("it has its own");
    assert_eq!(configurations[0].policy, "own");
    assert_eq!(configurations[1].threshold_bytes, None);
}

#[test]
fn the_documents_example_is_sound() {
    let text = include_str!("../../../../../docs/subjects.md");
    let example = text.split("```toml\n").nth(1).expect("there is one");
    let example = example.split("```").next().expect("it ends");
    read(example).expect("it is sound");
}

#[test]
fn every_rule_for_an_answer_is_read() {
    let check = |written: &str, want: AnswerRule| {
        let text = with(
            "answer = { from = \"stdout\" }",
            &format!("answer = {written}"),
        );
        assert_eq!(read(&text).expect("it is sound").subject.answer, want);
    };
    check(
        r#"{ from = "stdout", pointer = "/a" }"#,
        AnswerRule::Json("/a".to_owned()),
    );
    check(
        r#"{ from = "last-line", pointer = "/a" }"#,
        AnswerRule::JsonLines("/a".to_owned()),
    );
    check(r#"{ from = "model" }"#, AnswerRule::LastMessage);
    let text = with(
        r#"{ from = "stdout" }"#,
        r#"{ from = "file", path = "{output}/a.md" }"#,
    );
    let AnswerRule::File(place) = read(&text).expect("it is sound").subject.answer else {
        panic!("it is a file");
    };
    assert_eq!((place.folder, &*place.path), (OwnFolder::Output, "a.md"));
}

#[test]
fn what_is_wrong_is_named_with_place_and_way_out() {
    check_refused(
        &with("{prompt}", "{promt}"),
        "unknown placeholder `{promt}`",
    );
    check_refused(
        &with("{key}", "{keys}"),
        "agent.toml:9:7: unknown placeholder `{keys}`",
    );
    check_refused(&with("{key}", "{env:LIMIT}"), "names another one");
    check_refused(&with("{env:LIMIT}", "{env:LIMITS}"), "`{env:LIMITS}`");
    check_refused(&with("{ LIMIT = \"9\" }", "{}"), "`{env:LIMIT}`");
    check_refused(&with("\"9\"", "\"{nine}\""), "unknown placeholder `{nine}`");
    check_refused(&with("\"stdout\"", "\"stdot\""), "did you mean `stdout`?");
    check_refused(&with("\"stdout\"", "\"file\""), "needs `path`");
    check_refused(&with("\"stdout\"", "\"last-line\""), "needs `pointer`");
    check_refused(
        &with("\"stdout\"", "\"model\", pointer = \"/a\""),
        "`pointer` has no meaning",
    );
    check_refused(
        &with("\"stdout\"", "\"stdout\", pointer = \"a\""),
        "write `/a`",
    );
    check_refused(&with("\".agent\"", "\"../up\""), "is no path below");
    check_refused(&with("\".agent\"", "\"/etc\""), "is no path below");
    check_refused(&with("\".agent\"", "\"\""), "is no path below");
    check_refused(&with(".agent/settings.json", "{work}"), "names a folder");
    check_refused(
        &with(
            "command = [\"agent\", \"--url\", \"{llm_url}\", \"{prompt}\"]",
            "command = []",
        ),
        "`command` is empty",
    );
    check_refused(
        &with("shipped = true", "shipped = true\npolicy = \"envelope\""),
        "`policy` is a setting of the built-in subject",
    );
    check_refused(
        &with("name = \"agent\"", "name = \"agent\"\nrun_timeout_ms = 0"),
        "`run_timeout_ms` is 0",
    );
    check_refused(
        &with("name = \"agent\"", "name = \"agent\"\ndialect = \"smtp\""),
        "is not a dialect",
    );
    check_refused(&with("state =", "states ="), "did you mean `state`?");
}

#[test]
fn every_subject_that_ships_is_sound_and_runs_the_built_in_scenarios() {
    for name in subject_names() {
        let preset = built_in_subject(name)
            .expect("it is sound")
            .expect("it is there");
        assert_eq!(preset.subject.name, name);
        for scenario in built_in().expect("they are sound") {
            let under = scenario.with_subject(&preset).expect("it fits");
            assert_eq!(under.subject.as_ref(), Some(&preset.subject));
        }
    }
    assert_eq!(built_in_subject("nobody").expect("no fault"), None);
}

#[test]
fn a_subject_without_configurations_takes_those_of_no_built_in_scenario() {
    let bare = SOUND.split("[[configurations]]").next().expect("a head");
    let bare = bare.replace("{env:LIMIT}", "1");
    let preset = read(&bare).expect("it is sound");
    let scenario = built_in().expect("they are sound").remove(0);
    let error = scenario.clone().with_subject(&preset);
    let said = error.expect_err("it is refused").to_string();
    assert!(said.contains("has no configurations"), "{said}");

    let preset = read(SOUND).expect("it is sound");
    let once = scenario.with_subject(&preset).expect("it fits");
    let said = once.with_subject(&preset).expect_err("refused").to_string();
    assert!(said.contains("leave --subject out"), "{said}");
}
