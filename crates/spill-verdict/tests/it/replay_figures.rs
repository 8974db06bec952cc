//! What a replay's figures, gates and recommendations say, to the letter.

use spill_record::{CellPlan, Class, ReplayRecord, ReplayTotals};
use spill_verdict::{
    AdviceKind, Gate, GateState, GateVerdict, advice, classless, focus, judge_replay,
    replay_summary, replay_text, threshold_words, variant_words,
};

use crate::replay_builder::{record, session, sessions, totals};

/// Six transcripts with money: 10 as recorded, 8 in every variant.
fn priced(unpriced: u64) -> ReplayTotals {
    let mut totals = totals(&sessions());
    totals.all.as_recorded.input_cost = Some(10.0);
    for outcome in &mut totals.all.outcomes {
        outcome.input_cost = Some(8.0);
    }
    totals.all.unpriced_sessions = unpriced;
    totals
}

fn judge(gate: &str, record: &ReplayRecord, totals: &ReplayTotals) -> GateVerdict {
    let gate = Gate::parse(gate).expect("a gate");
    gate.judge(record, &totals.all).expect("one variant")
}

#[track_caller]
fn check(gate: &str, totals: &ReplayTotals, expected: f64) {
    let found = judge(gate, &record(&[]), totals);
    let observed = found.observed.expect("it is known");
    assert!((observed - expected).abs() < 1e-6, "{found:?}");
    assert_eq!(found.state, GateState::Holds, "{found:?}");
}

#[test]
fn figures_are_what_is_less_than_recorded_or_its_share() {
    let plain = totals(&sessions());
    // 4 bytes a token, half of all tokens cached, at every threshold.
    check("saved_input_bytes[threshold=32KiB] >= 0", &plain, 4e6);
    check(
        "saved_input_bytes[threshold=32KiB] >= 0%",
        &plain,
        100.0 / 6.0,
    );
    check("saved_uncached_tokens[threshold=32KiB] >= 0", &plain, 5e5);
    check(
        "saved_uncached_tokens[threshold=32KiB] >= 0%",
        &plain,
        100.0 / 6.0,
    );
    check("replaced_results >= 0%", &plain, 100.0 / 6.0);
    check("used_results >= 0", &plain, 5.0);
    check("calls_over_window >= 0%", &plain, 0.0);
    check("saved_input_tokens[threshold=32KiB] > 999999", &plain, 1e6);
    check("saved_input_tokens[threshold=32KiB] < 1000001", &plain, 1e6);
    check("saved_cost >= 0", &priced(0), 2.0);
    check("saved_cost >= 0%", &priced(0), 20.0);
    check("input_cost >= 0", &priced(0), 8.0);
    check("input_cost >= 0%", &priced(0), 80.0);
    check("input_cost[threshold=off] >= 0", &priced(0), 10.0);
}

#[test]
fn what_is_counted_needs_no_replacement() {
    let untried = totals(&[session(1, Class::Small, [None; 3])]);
    check("replaced_results <= 0", &untried, 0.0);
    check("calls >= 20", &untried, 20.0);
    check("sessions >= 1", &untried, 1.0);
}

#[track_caller]
fn check_unproven(gate: &str, record: &ReplayRecord, totals: &ReplayTotals, why: &str) {
    let found = judge(gate, record, totals);
    assert_eq!((found.state, found.observed), (GateState::NotProven, None));
    assert!(found.words.ends_with(why), "{gate}: {}", found.words);
}

#[test]
fn what_is_not_known_says_why() {
    let plain = totals(&sessions());
    let some = record(&[]);
    let prices = ": there are no prices (give --prices)";
    check_unproven("saved_cost >= 0", &some, &plain, prices);
    check_unproven("input_cost >= 0", &some, &plain, prices);
    let part = ": some transcripts have no price";
    check_unproven("saved_cost >= 0", &some, &priced(1), part);
    check_unproven("input_cost >= 0", &some, &priced(1), part);
    let mut blind = record(&[]);
    blind.window_tokens = None;
    let window = ": there is no window (give --window)";
    check_unproven("peak_context_tokens <= 50%", &blind, &plain, window);
    let mut free = priced(0);
    free.all.as_recorded.input_cost = Some(0.0);
    let nothing = ": it is a share of nothing";
    check_unproven("saved_cost >= 0%", &some, &free, nothing);
    let untried = totals(&[session(1, Class::Small, [None; 3])]);
    let words = ": no result was replaced, so it was not tried";
    check_unproven("saved_input_tokens >= 0", &some, &untried, words);
    let empty = totals(&[]);
    check_unproven("calls >= 0", &some, &empty, ": there are no LLM calls");
}

#[test]
fn a_line_has_the_state_the_figure_and_what_it_is_of() {
    let plain = totals(&sessions());
    let line = |gate: &str| judge(gate, &record(&[]), &plain).line();
    assert_eq!(
        line("saved_cost >= 0"),
        "not proven saved_cost >= 0: not known (workflow-step at 128KiB, read-back used: there are no \
         prices (give --prices); n = 6)"
    );
    assert_eq!(
        line("replaced_results[threshold=8KiB, read_back=none] >= 10"),
        "holds replaced_results[threshold=8KiB, read_back=none] >= 10: 10 (workflow-step at 8KiB, \
         read-back none; n = 6)"
    );
    assert_eq!(
        line("calls[threshold=off] < 120"),
        "broken calls[threshold=off] < 120: 120 (as recorded; n = 6)"
    );
}

fn cell(policy: &str, kib: u64, replacement: Option<u64>) -> CellPlan {
    CellPlan {
        policy: policy.to_owned(),
        threshold_bytes: kib << 10,
        replacement_bytes: replacement,
    }
}

/// What a gate is about, or the end of why it is about nothing.
#[track_caller]
fn check_variant(keys: &str, cells: &[CellPlan], read_backs: &[&str], expected: &str) {
    let gate = Gate::parse(&format!("extra_calls[{keys}] <= 0")).expect("a gate");
    let read_backs: Vec<String> = read_backs.iter().map(|name| (*name).to_owned()).collect();
    let found = match gate.variant(cells, &read_backs) {
        Ok(variant) => format!("{variant:?}"),
        Err(error) => error.to_string(),
    };
    assert!(found.contains(expected), "{keys}: {found}");
}

#[test]
fn a_variant_is_the_one_that_is_meant_or_is_asked_for() {
    let under = |cell, read_back| format!("Under {{ cell: {cell}, read_back: {read_back} }}");
    let one = [cell("a", 8, None)];
    let two = [cell("a", 8, None), cell("a", 32, None)];
    let shipped = [cell("a", 8, None), cell("a", 128, None)];
    let policies = [cell("a", 128, None), cell("b", 128, None)];
    let sizes = [cell("a", 128, None), cell("a", 128, Some(2_048))];
    let used = ["none", "used"];
    check_variant("policy=a", &one, &used, &under(0, 1));
    check_variant("policy=b", &one, &used, "is about nothing that is replayed");
    check_variant("threshold=9KiB", &one, &used, "is about nothing");
    check_variant(
        "policy=a",
        &two,
        &used,
        "is about 2 policies or thresholds, such as a at 8KiB; a at 32KiB",
    );
    // What says something of what is recorded is offered that as well.
    for (figure, offered) in [
        ("calls", true),
        ("input_tokens", true),
        ("saved_input_tokens", false),
    ] {
        let gate = Gate::parse(&format!("{figure} > 3")).expect("a gate");
        let why = gate.variant(&two, &["used".to_owned()]);
        let why = why.expect_err("two thresholds").to_string();
        assert_eq!(
            why.contains("as recorded: [threshold=off])"),
            offered,
            "{why}"
        );
    }
    check_variant("threshold=32KiB", &two, &used, &under(1, 1));
    check_variant("policy=a", &shipped, &used, &under(1, 1));
    check_variant("read_back=none", &policies, &used, "is about 2 policies");
    check_variant("threshold=128KiB", &policies, &used, "is about 2 policies");
    check_variant("policy=b", &policies, &used, &under(1, 1));
    check_variant(
        "policy=a",
        &sizes,
        &used,
        "a at 128KiB, replacements of 2KiB",
    );
    check_variant("replacement=own", &sizes, &used, &under(0, 1));
    check_variant("replacement=2KiB", &sizes, &used, &under(1, 1));
    check_variant("read_back=none", &one, &used, &under(0, 0));
    check_variant("policy=a", &one, &["whole"], &under(0, 0));
    let wanted = "such as [read_back=none] (they are none, whole)";
    check_variant("policy=a", &one, &["none", "whole"], wanted);
    check_variant("read_back=used", &one, &["none", "whole"], wanted);
}

#[track_caller]
fn check_refused(gate: &str, why: &str) {
    let refused = Gate::parse(gate).expect_err("it is refused").to_string();
    assert!(refused.contains(why), "{gate}: {refused}");
}

#[test]
fn an_expression_that_is_none_says_what_is_wrong() {
    check_refused("sessions >= 10%", "sessions is a number and no share");
    check_refused("calls >= 10%", "calls is a number and no share");
    check_refused(
        "tokens >= 1",
        "no figure is called \"tokens\"; there are saved_input_tokens, ",
    );
    check_refused("calls[policy=a >= 1", "the bracket is not closed");
    check_refused("calls[policy] >= 1", "\"policy\" is not KEY=VALUE");
    check_refused("calls[size=1] >= 1", "no key is called \"size\"");
    check_refused("calls[threshold=big] >= 1", "\"big\" is no size");
    check_refused("calls == 1", "one of >=, <=, > and < must stand");
    check_refused("calls >= many", "\"many\" is no number, share or size");
    check_refused("extra_calls >= 1KiB%", "is no number, share or size");
    let long = |bytes: usize| format!("calls >= {}1", "0".repeat(bytes - 10));
    assert!(Gate::parse(&long(400)).is_ok());
    check_refused(&long(401), "it is longer than 400 bytes");
    let size = Gate::parse("saved_input_bytes >= 1KiB").expect("a gate");
    let found = size.judge(&record(&[]), &totals(&sessions()).all);
    assert_eq!(found.map(|found| found.limit), Ok(1_024.0));
    let spaced = Gate::parse("  calls >=  1 ").expect("a gate");
    assert_eq!(spaced.text(), "calls >=  1");
    assert_eq!(size.to_string(), "saved_input_bytes >= 1KiB");
}

#[track_caller]
fn check_focus(saved: [Option<[i64; 3]>; 3], read_backs: [&str; 3], expected: (usize, usize)) {
    let mut record = record(&[]);
    record.read_backs = read_backs.map(str::to_owned).to_vec();
    let totals = totals(&[session(1, Class::Small, saved)]);
    assert_eq!(focus(&record, &totals), expected);
}

#[test]
fn transcripts_are_compared_under_what_is_recommended_or_was_tried() {
    let saved = [Some([40, 10, -60]), Some([30, 20, -10]), Some([5, 4, -1])];
    check_focus(saved, ["none", "used", "whole"], (1, 1));
    // Without the assumption used, the one that sends most; it recommends nothing here.
    check_focus(saved, ["none", "half", "whole"], (0, 2));
    let tried = [None, Some([-3, -1, -2]), Some([-3, -1, -2])];
    check_focus(tried, ["none", "half", "whole"], (1, 0));
    check_focus([None; 3], ["none", "used", "whole"], (0, 1));
}

#[track_caller]
fn check_reason(saved: [Option<[i64; 3]>; 3], kind: AdviceKind, expected: &str) {
    let found = advice(&record(&[]), &totals(&[session(1, Class::Small, saved)]));
    // All transcripts, then those of the only class.
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].class, found[1].class), (None, Some(Class::Small)));
    assert_eq!(found[0].kind, kind);
    assert_eq!(found[0].reason, expected);
}

#[test]
fn a_recommendation_says_what_it_saves_and_replaces() {
    let chosen = AdviceKind::Threshold {
        bytes: 8 << 10,
        cell: 0,
    };
    check_reason(
        [Some([40, 10, -60]), Some([30, 2, -10]), Some([5, 4, -1])],
        chosen,
        "it saves, by what is read back, 40 % (none), 10 % (used), -60 % (whole) of the input tokens; \
         it replaces 2 results of 10, of which 1 was later used word for word; no larger threshold saves \
         nearly as much",
    );
    check_reason(
        [Some([40, 0, -60]), Some([30, -2, -10]), None],
        AdviceKind::Off,
        "under the assumption used every threshold costs more than it saves",
    );
    check_reason(
        [None; 3],
        AdviceKind::NothingToReplace,
        "no result that was sent reaches the lowest threshold",
    );
    let five = advice(&record(&[]), &totals(&sessions()));
    let words = "replaces 10 results of 60, of which 5 were later";
    assert!(five[0].reason.contains(words), "{}", five[0].reason);
}

#[test]
fn policies_and_sizes_are_advised_on_one_by_one() {
    let mut record = record(&[]);
    record.cells = vec![
        cell("a", 8, None),
        cell("b", 8, None),
        cell("a", 8, Some(2_048)),
    ];
    let saved = [Some([5, 5, 5]), Some([-5, -5, -5]), Some([9, 9, 9])];
    let totals = totals(&[session(1, Class::Small, saved)]);
    let found: Vec<String> = advice(&record, &totals)
        .iter()
        .map(|one| {
            let class = one.class.map_or("all", Class::as_str);
            format!(
                "{class} {} {:?} {}",
                one.policy,
                one.replacement_bytes,
                one.words()
            )
        })
        .collect();
    let expected = ["a None 8KiB", "b None off", "a Some(2048) 8KiB"];
    let of = |class: &str| expected.map(|rest| format!("{class} {rest}"));
    assert_eq!(found, [of("all"), of("small")].concat());
    let judgement = judge_replay(&record, &totals).expect("no gate");
    let text = replay_text(&record, &totals, &judgement);
    assert!(text.contains(" a 8KiB by 2KiB"), "{text}");
    assert!(
        text.contains("all (1 transcript), a by 2KiB: 8KiB indicated"),
        "{text}"
    );
}

#[test]
fn thresholds_read_as_the_command_line_takes_them() {
    assert_eq!(threshold_words(0), "0");
    assert_eq!(threshold_words(1_000), "1000");
    assert_eq!(threshold_words(1 << 10), "1KiB");
    assert_eq!(threshold_words(1_536 << 10), "1536KiB");
    assert_eq!(threshold_words(2 << 20), "2MiB");
    let words = variant_words(&cell("a", 8, Some(1_000)), Some("used"));
    assert_eq!(words, "a at 8KiB, replacements of 1000, read-back used");
    assert_eq!(variant_words(&cell("a", 8, None), None), "a at 8KiB");
}

fn text(record: &ReplayRecord, totals: &ReplayTotals) -> String {
    let judgement = judge_replay(record, totals).expect("no gate");
    replay_text(record, totals, &judgement)
}

#[test]
fn a_text_says_what_is_missing_only_where_it_is() {
    let plain = text(&record(&[]), &totals(&sessions()));
    assert!(
        !plain.contains("no price") && !plain.contains("Lost"),
        "{plain}"
    );
    let mut unpriced = record(&[]);
    unpriced.prices = Some("prices.toml".to_owned());
    let words = "2 transcripts have no price for their model: money is of the others.";
    assert!(text(&unpriced, &priced(2)).contains(words));
    assert!(!text(&unpriced, &priced(0)).contains("no price"));
    assert!(!text(&record(&[]), &priced(2)).contains("no price"));
    let mut lost = record(&[]);
    lost.files.lost = 1;
    assert!(text(&lost, &totals(&sessions())).ends_with("Lost as a whole: 1 file of 7."));
    let mut clean = record(&[]);
    clean.problems.clear();
    assert!(!text(&clean, &totals(&sessions())).contains("Not understood"));
    let whole = totals(&[session(2, Class::Small, [None; 3])]);
    assert!(!text(&record(&[]), &whole).contains("were cut"));
    assert_eq!(text(&clean, &totals(&[])), "No transcript in 7 files.");
}

#[test]
fn files_without_a_call_are_said() {
    let mut without = record(&[]);
    without.problems = [("no-calls".to_owned(), 3)].into();
    let words = "3 files of a known format hold no LLM call: there is nothing to replay.";
    let found = text(&without, &totals(&[]));
    assert!(found.contains(words), "{found}");
    without.problems = [("no-calls".to_owned(), 1)].into();
    let words = "1 file of a known format holds no LLM call: there is nothing to replay.";
    let found = text(&without, &totals(&[]));
    assert!(found.contains(words), "{found}");
}

#[test]
fn transcripts_of_no_class_are_counted_beside_the_classes() {
    #[track_caller]
    fn check(count: usize, expected: Option<&str>) {
        let mut sessions = sessions();
        for session in sessions.iter_mut().take(count) {
            session.class = None;
        }
        let totals = totals(&sessions);
        assert_eq!(classless(&totals).as_deref(), expected);
        let text = text(&record(&[]), &totals);
        assert_eq!(text.contains("no class"), expected.is_some(), "{text}");
    }
    check(0, None);
    let one = "1 transcript is of no class and in all alone: it has no tool result.";
    check(1, Some(one));
    let two = "2 transcripts are of no class and in all alone: they have no tool result.";
    check(2, Some(two));
}

#[test]
fn calls_without_a_token_have_no_shares() {
    let mut empty = totals(&sessions());
    empty.all.as_recorded.input_tokens = 0;
    empty.all.as_recorded.cached_input_tokens = 0;
    for outcome in &mut empty.all.outcomes {
        outcome.input_tokens = 0;
    }
    let found = text(&record(&[]), &empty);
    assert!(found.contains("0 input tokens (none cached"), "{found}");
    let row = found.lines().find(|line| line.starts_with(" 8KiB"));
    let cells: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert_eq!(cells, ["8KiB", "10", "-", "-", "-"], "{found}");
}

#[test]
fn a_summary_has_shares_and_money_where_they_are_known() {
    let of = |totals: &ReplayTotals| {
        let judgement = judge_replay(&record(&[]), totals).expect("no gate");
        replay_summary(&record(&[]), totals, &judgement)
    };
    let known = of(&priced(0));
    let one = &known.variants[4];
    assert_eq!(one.saved_cost, Some(2.0));
    let share = one.saved_input_share.expect("there are tokens");
    assert!((share - 1.0 / 6.0).abs() < 1e-12, "{share}");
    assert_eq!((one.replaced_results, one.used_results), (10, 5));
    assert_eq!(
        (known.problems, known.advice[0].kind.as_str()),
        (2, "threshold")
    );
    assert_eq!(known.advice[0].threshold_bytes, Some(32 << 10));
    assert_eq!(of(&priced(1)).variants[4].saved_cost, None);
    assert_eq!(of(&totals(&[])).variants[4].saved_input_share, None);
    let mut huge = priced(0);
    huge.all.as_recorded.input_tokens = u64::MAX;
    huge.all.outcomes[4].input_tokens = 7;
    assert_eq!(of(&huge).variants[4].saved_input_tokens, i64::MAX - 7);
}
