#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its folders has failed"
)]

use super::*;
use spill_scenario::OwnFolder;

fn check(rule: &AnswerRule, stdout: &str, want: Result<&str, &str>) {
    let root = tempfile::tempdir().unwrap();
    let dirs = RunDirs::create(root.path().join("run")).unwrap();
    match (told(rule, stdout.as_bytes(), &dirs), want) {
        (Told::Answer(answer), Ok(want)) => assert_eq!(answer, want),
        (Told::Nothing(why), Err(part)) => assert!(why.contains(part), "{why}"),
        (other, _) => panic!("{other:?} is not {want:?}"),
    }
}

#[test]
fn standard_output_is_an_answer_as_it_is() {
    check(&AnswerRule::StandardOutput, "a\nb\n", Ok("a\nb\n"));
    check(&AnswerRule::StandardOutput, "", Ok(""));
}

#[test]
fn a_pointer_leads_into_one_json_value() {
    let rule = AnswerRule::Json("/a/0".to_owned());
    check(&rule, "{\n\"a\": [\"x\"]}\n", Ok("x"));
    check(&rule, r#"{"a":[1]}"#, Err("no text at \"/a/0\""));
    check(&rule, r#"{"b":["x"]}"#, Err("no text at"));
    check(
        &rule,
        "secret",
        Err("not one JSON value (Syntax error at line 1"),
    );
    check(&rule, "", Err("Eof error"));
    check(&AnswerRule::Json(String::new()), "\"x\"", Ok("x"));
}

#[test]
fn the_last_line_that_has_a_text_is_the_answer() {
    let rule = AnswerRule::JsonLines("/item/text".to_owned());
    let line = |text: &str| format!("{{\"item\":{{\"text\":\"{text}\"}}}}\n");
    check(
        &rule,
        &(line("one") + &line("two") + "{\"done\":1}\n"),
        Ok("two"),
    );
    check(&rule, &format!("log line\n{}", line("one")), Ok("one"));
    check(
        &rule,
        "{\"item\":1}\nnone",
        Err("no line of standard output"),
    );
    check(&rule, "", Err("no line of standard output"));
}

#[test]
fn a_file_is_an_answer_and_nothing_else_is() {
    let root = tempfile::tempdir().unwrap();
    let dirs = RunDirs::create(root.path().join("run")).unwrap();
    let place = |path: &str| OwnPlace {
        folder: OwnFolder::Output,
        path: path.to_owned(),
    };
    let rule = |path: &str| AnswerRule::File(place(path));
    std::fs::write(dirs.own(&place("a.md")), "done").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", dirs.own(&place("link"))).unwrap();
    assert_eq!(
        told(&rule("a.md"), b"", &dirs),
        Told::Answer("done".to_owned())
    );
    let refused = |path: &str, part: &str| match told(&rule(path), b"", &dirs) {
        Told::Nothing(why) => assert!(why.contains(part), "{why}"),
        other => panic!("{other:?}"),
    };
    refused("b.md", "{output}/b.md cannot be read");
    refused("link", "not a regular file");
    std::fs::write(dirs.own(&place("raw")), [0xff]).unwrap();
    refused("raw", "is not UTF-8");
    let long = std::fs::File::create(dirs.own(&place("long"))).unwrap();
    long.set_len(100 << 30).unwrap();
    refused("long", "64 MiB or more");
}

#[test]
fn the_models_last_message_is_asked_of_the_server() {
    let root = tempfile::tempdir().unwrap();
    let dirs = RunDirs::create(root.path().join("run")).unwrap();
    assert_eq!(told(&AnswerRule::LastMessage, b"x", &dirs), Told::AtServer);
}
