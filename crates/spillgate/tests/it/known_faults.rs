//! The faults that others reported of their agent loops, harnesses, gates and reports: each has tests whose documentation
//! names it as `Known fault NUMBER: where it was reported.` The numbers go on from those of the engine's own catalogue.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::repository;

/// Where each was reported. Sections: the agent's loop (from 59), accounting and statistics (from 70), report and gate (from
/// 86), gates, repetitions, tokens, mocks and reports at large (from 95).
const REPORTED: [(u32, &str); 66] = [
    (59, "earendil-works/pi #7053"),
    (60, "anthropics/claude-code #31330"),
    (61, "anthropics/claude-code #91514 and #83913"),
    (62, "nikolai-vysotskyi/trace-mcp PR #1016"),
    (70, "NousResearch/hermes-agent #12023"),
    (
        71,
        "kyegomez/swarms #2159; NorthlandPositronics/Cogtrix #2376; activeagents/activeagent PR #362",
    ),
    (
        72,
        "adolfousier/opencrabs #1636; earendil-works/pi PR #2148; tembo/agent-studio PR #238; omnigent-ai/omnigent #1801",
    ),
    (73, "open-telemetry/semantic-conventions-genai #476"),
    (74, "NOFireAI/ravel #928"),
    (75, "UKGovernmentBEIS/inspect_ai #3707"),
    (76, "bird-bench/mini_dev #47"),
    (77, "smarr/ReBenchDB #224; MDA2AV/HttpArena PR #1322"),
    (78, "OpenHFT/JLBH #37"),
    (
        79,
        "lexmount/browseruse-agent-bench PR #93; specula-org/tlaps-bench PR #60",
    ),
    (80, "pegainfer-project/pegainfer PR #1006"),
    (81, "promptfoo/promptfoo #360 and #1431"),
    (82, "BerriAI/litellm PR #37525"),
    (
        83,
        "nix-rust/nix #2331; psf/pyperf PR #173; wildcat-finance/skills #822",
    ),
    (84, "matsonj/eval-connections #11"),
    (85, "Lamatic/AgentKit PR #229"),
    (86, "chrishayuk/larql #287 and PR #317"),
    (87, "andymai/occt-wasm PR #44"),
    (88, "developerz-ai/wurk PR #68"),
    (89, "bheisler/criterion.rs #824; ordo-one/benchmark #235"),
    (90, "lvlup-sw/exarchos PR #826"),
    (91, "confident-ai/deepeval PR #3234"),
    (92, "AndreaBozzo/dataprof PR #629"),
    (
        93,
        "dorny/test-reporter PR #795; oekazuma/svelte-vitals PR #465; microsoft/markitdown PR #2266",
    ),
    (94, "seiggy/lucia-dotnet PR #238"),
    (95, "grafana/k6 #1346"),
    (96, "grafana/k6 #1526"),
    (97, "grafana/k6 #1498"),
    (98, "grafana/k6 #590"),
    (99, "bheisler/criterion.rs #824"),
    (100, "lance0/rustbgpd #339"),
    (101, "chrishayuk/larql #287"),
    (102, "i-dot-ai/themefinder PR #119"),
    (103, "coder/xum PR #3232"),
    (104, "GoogleChrome/lighthouse-ci (assertions.js default)"),
    (105, "GoogleChrome/lighthouse-ci #1064"),
    (106, "promptfoo/promptfoo #5847"),
    (107, "sierra-research/tau2-bench #493"),
    (108, "sierra-research/tau2-bench #543"),
    (109, "sierra-research/tau2-bench #82"),
    (110, "allenai/olmo-eval PR #338"),
    (111, "UKGovernmentBEIS/inspect_ai #2914"),
    (112, "CherryHQ/stella #1054"),
    (113, "hud-evals/hud-python PR #526"),
    (114, "ai-dynamo/dynamo PR #3674"),
    (115, "promptfoo/promptfoo #360"),
    (116, "monarch-initiative/deep-research-client PR #77"),
    (117, "UKGovernmentBEIS/inspect_ai PR #2959 and #5296"),
    (118, "marin-community/marin #7789"),
    (
        119,
        "PrimeIntellect-ai/verifiers #803 and #1376; huggingface/OpenEnv #1154; sipyourdrink/bernstein #5919",
    ),
    (120, "promptfoo/promptfoo #4673"),
    (121, "UKGovernmentBEIS/inspect_ai PR #3946"),
    (122, "ai-dynamo/dynamo #14254"),
    (123, "vllm-project/vllm #21104 and #10847"),
    (124, "kevin1024/vcrpy #842 and #516"),
    (125, "CopilotKit/aimock PR #166"),
    (126, "OpenHands/OpenHands-CLI #427 review"),
    (127, "promptfoo/promptfoo #8805"),
    (
        128,
        "anthropics/skills #1394; anthropics/claude-plugins-official #5589; sjnims/claude-code-plugin-eval #82; oracletrace PR #85",
    ),
    (129, "UKGovernmentBEIS/inspect_ai #1375, #2249 and #2418"),
    (130, "Flank/flank #1634"),
    (131, "gatling/gatling #4500"),
];

/// Of these only a part applies here; the part that does is tested.
const PARTS: [(u32, &str); 7] = [
    (
        71,
        "the built-in subject asks for whole replies; what is tested is that our endpoint tells a stream's usage as clients expect it",
    ),
    (
        81,
        "there is no cache of answers that a repetition could be served from; what is tested is that repetitions are runs of their own",
    ),
    (
        84,
        "no rule reads a duration; what is tested is that the model's own clock has no waiting in it",
    ),
    (
        94,
        "the page's table sorts in the browser, where what is no number stays last; what is tested is that nothing run is no 0",
    ),
    (
        101,
        "what `make` makes of an exit code is `make`'s: README.md says so, and the code stands in verdict.json as well",
    ),
    (
        115,
        "as 81: there is no cache of answers; what is tested is that repetitions are runs of their own",
    ),
    (
        129,
        "there is no viewer; what is tested is the size of the page, which holds no transcript",
    ),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                sources(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The faults that the tests of a source name, with the test and where it was reported.
fn named(source: &str) -> Vec<(u32, String, String)> {
    let (mut found, mut waiting, mut is_test) = (Vec::new(), Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("/// Known fault ") {
            let (number, reported) = doc.split_once(": ").unwrap_or((doc, ""));
            let number: u32 = number.parse().expect("a number follows");
            waiting.push((number, reported.trim_end_matches('.').to_owned()));
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else if !line.starts_with("//") {
            let name = line.trim_start_matches("async ");
            if let (Some(name), true) = (name.strip_prefix("fn "), is_test) {
                let name = name.split('(').next().unwrap_or_default();
                let tests = waiting.drain(..);
                found.extend(tests.map(|(number, reported)| (number, name.to_owned(), reported)));
            }
            assert!(
                waiting.is_empty(),
                "{waiting:?} stand above no test: {line}"
            );
            is_test = false;
        }
    }
    found
}

#[test]
fn every_known_fault_has_a_test_that_names_it() {
    let mut files = Vec::new();
    sources(&repository().join("crates"), &mut files);
    let mut tested: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for file in files {
        for (number, test, reported) in named(&fs::read_to_string(&file).unwrap()) {
            let known = REPORTED.iter().find(|(known, _)| *known == number);
            let place = format!("{}: {test}", file.display());
            assert_eq!(
                known.map(|(_, reported)| *reported),
                Some(&*reported),
                "{place}"
            );
            tested.entry(number).or_default().push(place);
        }
    }
    let missing: Vec<u32> = REPORTED
        .iter()
        .map(|(number, _)| *number)
        .filter(|number| !tested.contains_key(number))
        .collect();
    assert!(missing.is_empty(), "without a test: {missing:?}");
    assert!(REPORTED.is_sorted_by(|one, other| one.0 < other.0));
    for (number, rest) in PARTS {
        assert!(tested.contains_key(&number) && !rest.is_empty(), "{number}");
    }
}

#[test]
fn names_are_read_as_they_are_meant() {
    let source = "/// What it is.\n///\n/// Known fault 7: a/b #1.\n/// Known fault 8: c/d PR #2.\n#[tokio::test(x)]\nasync fn it() {}\n#[test]\nfn other() {}";
    let expected = [(7, "it", "a/b #1"), (8, "it", "c/d PR #2")];
    let expected =
        expected.map(|(number, test, reported)| (number, test.to_owned(), reported.to_owned()));
    assert_eq!(named(source), expected);
}

#[test]
#[should_panic(expected = "stand above no test")]
fn a_name_above_no_test_is_refused() {
    named("/// Known fault 7: a/b #1.\nfn helper() {}");
}
