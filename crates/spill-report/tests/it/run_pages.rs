use spill_report::run_page;

use crate::builder::Case;
use crate::calls::{NAMES, all_calls};
use crate::html::{needs_nothing, text};

#[test]
fn the_page_of_a_run() {
    let set = Case::full().set;
    let run = set
        .runs
        .iter()
        .find(|run| run.configuration == "128KiB" && run.input == "large")
        .expect("the case has it");
    let html = run_page(&set, &all_calls(&set, &NAMES), &run.run_id).expect("the run has a page");
    needs_nothing(&html);
    insta::assert_snapshot!("run_page", text(&html));
}

#[test]
fn a_run_without_calls_says_so_and_a_foreign_one_has_no_page() {
    let set = Case::full().set;
    let html = run_page(&set, &[], &set.runs[0].run_id).expect("the run has a page");
    assert!(html.contains("Not measured: this folder holds no calls of the run."));
    assert_eq!(run_page(&set, &[], "nobody"), None);
}

#[test]
fn a_long_run_has_a_bounded_page() {
    let set = Case::full().set;
    let one = &all_calls(&set, &NAMES)[1];
    let calls = vec![one.clone(); 50_000];
    let html = run_page(&set, &calls, &one.run_id).expect("the run has a page");
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    assert!(html.contains("49000 further calls"));
}
