use spill_record::{RunSet, SidecarRun};
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
fn the_page_of_a_run_has_what_was_measured_of_its_sidecars() {
    let bare = Case::full().set;
    let id = bare.runs[0].run_id.clone();
    let page = |set: &RunSet| run_page(set, &[], &id).expect("the run has a page");
    assert!(!page(&bare).contains("idecar"));
    let mut set = bare;
    set.runs[0].sidecars = vec![SidecarRun {
        name: "proxy <b>".to_owned(),
        peak_rss_bytes: Some(3 << 20),
        cpu_ms: None,
        log_bytes: Some(7),
        files_written: Some(0),
        state_files: Some(1),
        state_bytes: Some(12),
        leak_findings: vec!["content in a file".to_owned()],
    }];
    let html = page(&set);
    needs_nothing(&html);
    let row = "| proxy &lt;b&gt; | 3.0 MiB | n&#x2f;a | 7 B | 12 B | 0 | 1 |";
    assert!(text(&html).contains(row), "{}", text(&html));
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
