use std::collections::BTreeSet;

use proptest::prelude::*;
use spill_record::{Class, FactsOrigin};

use super::*;
use crate::built_in;
use crate::input::{Document, InputData, Recipe};

fn options(base_seed: u64, stage: Stage, repetitions: Option<u32>) -> PlanOptions {
    PlanOptions {
        base_seed,
        stage,
        repetitions,
    }
}

/// A built-in scenario with small inputs of its own, so that tests are quick.
fn scenario(name: &str, inputs: &[&str]) -> Scenario {
    let mut scenario = crate::builtin::frame(Recipe::Document).expect("the frame loads");
    scenario.name = name.to_owned();
    scenario.inputs = inputs
        .iter()
        .map(|input| Input {
            name: (*input).to_owned(),
            class: Class::Document,
            data: InputData {
                recipe: Recipe::Document,
                files: Vec::new(),
                tables: Vec::new(),
                calls: Vec::new(),
                documents: vec![Document {
                    name: "d.md".to_owned(),
                    title: "D".to_owned(),
                    text: format!("text of {input}\n"),
                }],
            },
            facts: Vec::new(),
            facts_origin: FactsOrigin::Scenario,
            notes: Vec::new(),
        })
        .collect();
    scenario
}

fn plan(scenarios: Vec<Scenario>, options: PlanOptions) -> Plan {
    expand(scenarios, options).expect("a plan")
}

#[test]
fn the_built_in_plan_has_sixty_runs_and_its_quick_stage_twenty_four() {
    let scenarios = built_in().expect("the built-in scenarios load");
    let full = plan(scenarios.clone(), options(1, Stage::Full, None));
    assert_eq!(full.record.runs.len(), 60);
    assert_eq!(full.record.repetitions, 5);
    let quick = plan(scenarios, options(1, Stage::Quick, None));
    assert_eq!(quick.record.runs.len(), 24);
    let inputs: Vec<_> = full
        .record
        .inputs
        .iter()
        .map(|input| {
            format!(
                "{} {} {}",
                input.scenario,
                input.input,
                input.class.as_str()
            )
        })
        .collect();
    assert_eq!(
        inputs,
        [
            "review small small",
            "review medium medium",
            "review large large",
            "document handbook document"
        ]
    );
    let names: Vec<_> = full
        .record
        .configurations
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["off", "128KiB", "32KiB"]);
    assert!(
        full.record.configurations[1].env.is_empty(),
        "the shipped one sets nothing"
    );
    for (input, served) in full.record.inputs.iter().zip(&full.served) {
        assert_eq!(input.largest_result_bytes, served.largest_result_bytes());
        assert!(!input.facts.is_empty());
    }
}

/// Known fault 81: promptfoo/promptfoo #360 and #1431.
/// Known fault 115: promptfoo/promptfoo #360.
#[test]
fn the_runs_of_a_pair_share_seed_and_profile_and_have_ids_of_their_own() {
    let plan = plan(
        vec![scenario("a", &["x", "y"])],
        options(7, Stage::Full, None),
    );
    let ids: BTreeSet<_> = plan.record.runs.iter().map(|run| &run.run_id).collect();
    assert_eq!(ids.len(), plan.record.runs.len());
    for pair in plan.record.runs.chunks(3) {
        assert!(pair.iter().all(|run| run.pair_id == pair[0].pair_id));
        assert!(pair.iter().all(|run| run.seed == pair[0].seed));
        assert!(pair.iter().all(|run| run.profile == pair[0].profile));
        assert_eq!(
            pair[0].seed,
            seed_of(7, "a", &pair[0].input, pair[0].repetition)
        );
        for run in pair {
            assert!(!run.run_id.contains(&run.configuration));
        }
    }
}

#[test]
fn pairs_stay_together_in_an_order_that_the_seed_decides() {
    let order = |seed| {
        plan(
            vec![scenario("a", &["x", "y", "z"])],
            options(seed, Stage::Full, None),
        )
        .execution_order
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert_ne!(order(1), (0..45).collect::<Vec<_>>());
    let mut all = order(1);
    for pair in all.chunks(3) {
        assert!(
            pair.iter().all(|run| run / 3 == pair[0] / 3),
            "{pair:?} is not one pair"
        );
    }
    all.sort_unstable();
    assert_eq!(all, (0..45).collect::<Vec<_>>());
}

/// Known fault 80: pegainfer-project/pegainfer PR #1006.
/// Known fault 117: UKGovernmentBEIS/inspect_ai PR #2959 and #5296.
#[test]
fn the_plan_hash_changes_with_whatever_a_result_depends_on() {
    let hash = |change: fn(&mut Scenario)| {
        let mut scenario = scenario("a", &["x"]);
        change(&mut scenario);
        plan(vec![scenario], options(1, Stage::Full, None)).plan_hash
    };
    let fact = |expect: &str| crate::input::Fact {
        id: "f".to_owned(),
        expect: expect.to_owned(),
        carrier: "d.md".to_owned(),
        carrier_bytes: 1,
        place: None,
    };
    let plain = hash(|_| {});
    assert_eq!(plain, hash(|_| {}));
    let mut seen = BTreeSet::from([plain.clone()]);
    let mut check_differs = |what: &str, hash: String| {
        assert!(seen.insert(hash), "{what} does not change the plan hash");
    };
    check_differs(
        "a text",
        hash(|one| one.inputs[0].data.documents[0].text.push('x')),
    );
    check_differs(
        "a title",
        hash(|one| one.inputs[0].data.documents[0].title.push('x')),
    );
    check_differs("the prompt", hash(|one| one.prompt.push('x')));
    check_differs("the system message", hash(|one| one.system.push('x')));
    check_differs(
        "a pattern",
        hash(|one| one.model.patterns.push("x".to_owned())),
    );
    check_differs("max_findings", hash(|one| one.model.max_findings += 1));
    check_differs(
        "the window",
        hash(|one| one.model.context_window_tokens += 1),
    );
    check_differs("a limit", hash(|one| one.limits.iteration_limit += 1));
    check_differs("a rule", hash(|one| one.rules.quality_allowance = 0.5));
    check_differs(
        "a threshold",
        hash(|one| one.configurations[2].threshold_bytes = Some(1)),
    );
    check_differs("repetitions", hash(|one| one.repetitions = 4));
    check_differs("the class", hash(|one| one.inputs[0].class = Class::Large));
    let with_fact = |expect: &str| {
        let mut scenario = scenario("a", &["x"]);
        scenario.inputs[0].facts.push(fact(expect));
        plan(vec![scenario], options(1, Stage::Full, None)).plan_hash
    };
    check_differs("a fact", with_fact("one"));
    check_differs("a fact's text", with_fact("two"));
    let other_seed = plan(vec![scenario("a", &["x"])], options(2, Stage::Full, None));
    check_differs("the base seed", other_seed.plan_hash);
}

/// Facts are no part of what is served: without them seeds, profiles and texts stay the same.
#[test]
fn deleting_the_facts_changes_nothing_that_is_served() {
    let scenarios = built_in().expect("the built-in scenarios load");
    let mut bare = scenarios.clone();
    for input in bare.iter_mut().flat_map(|scenario| &mut scenario.inputs) {
        input.facts.clear();
    }
    let (with, without) = (
        plan(scenarios, options(3, Stage::Quick, None)),
        plan(bare, options(3, Stage::Quick, None)),
    );
    for (one, other) in with.record.runs.iter().zip(&without.record.runs) {
        assert_eq!((one.seed, &one.profile), (other.seed, &other.profile));
    }
    for (one, other) in with.served.iter().zip(&without.served) {
        assert_eq!(one.digest(), other.digest());
    }
}

#[test]
fn served_texts_do_not_depend_on_the_repetition_and_do_depend_on_the_base_seed() {
    let digests = |seed, repetitions| {
        plan(
            vec![scenario("a", &["x"])],
            options(seed, Stage::Full, Some(repetitions)),
        )
        .served[0]
            .digest()
    };
    assert_eq!(digests(1, 1), digests(1, 9));
    assert_ne!(digests(1, 1), digests(2, 1));
}

#[test]
fn each_profile_that_no_repetition_drew_gets_one_extra_pair() {
    let scenarios = vec![scenario("a", &["x", "y", "z", "v", "w"])];
    let plan = plan(scenarios, options(1, Stage::Quick, None));
    let extra = sensitivity_runs(&plan);
    let planned: BTreeSet<_> = plan.record.runs.iter().map(|run| &run.run_id).collect();
    assert!(extra.iter().all(|run| !planned.contains(&run.run_id)));
    assert!(extra.iter().all(|run| run.repetition >= 2));
    for input in ["x", "y", "z", "v", "w"] {
        let profiles = |runs: &[PlannedRun]| -> Vec<String> {
            let runs = runs.iter().filter(|run| run.input == input);
            let distinct: BTreeSet<_> = runs
                .map(|run| (run.repetition, run.profile.clone()))
                .collect();
            distinct.into_iter().map(|(_, profile)| profile).collect()
        };
        let main: BTreeSet<_> = profiles(&plan.record.runs).into_iter().collect();
        let added = profiles(&extra);
        assert_eq!(main.len() + added.len(), 3, "{input}");
        assert!(
            added.iter().all(|profile| !main.contains(profile)),
            "{input}"
        );
    }
}

#[test]
fn profiles_are_drawn_in_their_shares() {
    let model = scenario("a", &["x"]).model;
    let count = |wanted| {
        let seeds = 0..10_000u32;
        seeds
            .filter(|one| model.draw(seed_of(1, "a", "x", *one)) == wanted)
            .count()
    };
    assert!(count(Profile::Selective).abs_diff(6_000) < 200);
    assert!(count(Profile::Diligent).abs_diff(3_000) < 200);
    assert!(count(Profile::Hasty).abs_diff(1_000) < 200);
    let mut pure = model;
    pure.population = [(Profile::Hasty, 1.0), (Profile::Selective, 0.0)].into();
    assert!((0..1_000).all(|seed| pure.draw(seed) == Profile::Hasty));
}

#[test]
fn plan_errors_name_fact_and_way_out() {
    let error = |scenarios: Vec<Scenario>, repetitions| {
        let asked = options(1, Stage::Full, repetitions);
        expand(scenarios, asked).expect_err("an error").to_string()
    };
    let other = |change: fn(&mut Scenario)| {
        let mut other = scenario("b", &["x"]);
        change(&mut other);
        error(vec![scenario("a", &["x"]), other], None)
    };
    let lines = [
        error(vec![], None),
        error(vec![scenario("a", &[])], None),
        error(vec![scenario("a", &["x"]), scenario("a", &["y"])], None),
        error(vec![scenario("a", &["x"])], Some(0)),
        error(vec![scenario("a", &["x"])], Some(334)),
        error(vec![scenario("a", &["x"])], Some(u32::MAX)),
        other(|one| one.configurations.reverse()),
        other(|one| one.rules.quality_allowance = 0.1),
        other(|one| one.repetitions = 4),
    ];
    insta::assert_snapshot!(lines.join("\n"));
    assert!(
        expand(
            vec![scenario("a", &["x"])],
            options(1, Stage::Full, Some(333))
        )
        .is_ok()
    );
}

proptest! {
    #[test]
    fn names_of_configurations_do_not_change_the_order(
        names in prop::collection::btree_set("[a-z]{1,8}", 3),
        seed in any::<u64>(),
    ) {
        let plain = plan(vec![scenario("a", &["x", "y"])], options(seed, Stage::Full, None));
        let mut renamed = scenario("a", &["x", "y"]);
        for (configuration, name) in renamed.configurations.iter_mut().zip(names) {
            configuration.name = name;
        }
        let renamed = plan(vec![renamed], options(seed, Stage::Full, None));
        prop_assert_eq!(&plain.execution_order, &renamed.execution_order);
        for (one, other) in plain.record.runs.iter().zip(&renamed.record.runs) {
            prop_assert_eq!((one.seed, &one.profile), (other.seed, &other.profile));
        }
    }
}
