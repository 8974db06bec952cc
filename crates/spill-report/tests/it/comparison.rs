use spill_record::{Blessing, SCHEMA};
use spill_report::{Baseline, Context, compare, differences, render};
use spill_verdict::judge;

use crate::builder::{Case, exhaust};
use crate::html::{attribute, needs_nothing, text};

/// The case as the accepted run.
fn baseline(case: Case, id: &str) -> Baseline {
    let set = case
        .set(|set| set.manifest.acceptance_id = id.to_owned())
        .set;
    Baseline {
        verdict: judge(&set),
        blessing: Blessing {
            schema: SCHEMA,
            acceptance_id: id.to_owned(),
            reason: "the first one".to_owned(),
            blessed_at: "2026-02-03T04:05:06Z".to_owned(),
            commit: None,
            dirty: None,
            exit_code: 0,
            records_digest: String::new(),
        },
        set,
    }
}

/// What the report of `case` says on changes: first screen, then section.
fn since(case: &Case, baseline: &Baseline) -> String {
    let context = Context {
        calls: None,
        baseline: Some(baseline),
    };
    let html = render(&case.set, &judge(&case.set), context).report_html;
    let strip = &html[html.find("id=\"since-title\"").expect("the strip is there")..];
    let strip = &strip[..strip.find("</section>").expect("it ends")];
    let section = &html[html
        .find("<h2 id=\"since\">")
        .expect("the section is there")..];
    let section = &section[..section.find("<h2 id=\"assumptions\">").expect("it ends")];
    text(&format!("<body><p {strip}\n{section}"))
}

#[test]
fn what_changed_since_the_accepted_report() {
    let now = Case::full().cell("128KiB", "large", exhaust);
    insta::assert_snapshot!("since", since(&now, &baseline(Case::full(), "other")));
    let id = now.set.manifest.acceptance_id.clone();
    let same = since(&now, &baseline(Case::full(), &id));
    assert!(
        same.contains("This run is the accepted one, accepted on 2026-02-03: the first one."),
        "{same}"
    );
    // Who wrote a sentence has ended it.
    let mut ended = baseline(Case::full(), &id);
    ended.blessing.reason = "The first one.".to_owned();
    let once = since(&now, &ended);
    assert!(
        once.contains("2026-02-03: The first one.") && !once.contains(".."),
        "{once}"
    );
    "other".clone_into(&mut ended.set.manifest.acceptance_id);
    let once = since(&now, &ended);
    assert!(
        once.contains("2026-02-03: The first one.") && !once.contains(".."),
        "{once}"
    );
    let equal = since(
        &now,
        &baseline(Case::full().cell("128KiB", "large", exhaust), "other"),
    );
    assert!(
        equal.contains("; 0 of 34 rule results and 0 figures changed."),
        "{equal}"
    );
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let case = Case::full();
    let verdict = judge(&case.set);
    let found = differences((&case.set, &verdict), (&case.set, &verdict));
    assert!(found.same_plan && found.changed.is_empty());
    assert!(found.unchanged > 60, "{}", found.unchanged);
}

#[test]
fn differences_are_named_on_both_sides() {
    let (a, b) = (Case::full(), Case::full().cell("128KiB", "large", exhaust));
    let narrower = Case::full().set(|set| {
        set.manifest.plan_hash = "another".to_owned();
        set.manifest.plan.configurations.pop();
        set.manifest
            .plan
            .runs
            .retain(|run| run.configuration != "32KiB");
        set.runs.retain(|run| run.configuration != "32KiB");
    });
    let said = |a: &Case, b: &Case| {
        let found = differences((&a.set, &judge(&a.set)), (&b.set, &judge(&b.set)));
        let lines = found
            .changed
            .iter()
            .map(|d| format!("{}: {} -> {}", d.what, d.a, d.b));
        format!(
            "same plan: {}\n{}",
            found.same_plan,
            lines.collect::<Vec<_>>().join("\n")
        )
    };
    insta::assert_snapshot!("differences", said(&a, &b));
    let absent = said(&a, &narrower);
    assert!(
        absent.contains("all rules, 32KiB: holds -> not there"),
        "{absent}"
    );
    assert!(said(&narrower, &a).contains("all rules, 32KiB: not there -> holds"));
}

#[test]
fn the_page_of_two_runs() {
    let (a, b) = (
        Case::full().set,
        Case::full().cell("128KiB", "large", exhaust).set,
    );
    let html = compare((&a, &judge(&a)), (&b, &judge(&b)));
    needs_nothing(&html);
    insta::assert_snapshot!("compare", text(&html));
    let ids = attribute(&html, "id");
    let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is used twice");
}
