use std::collections::BTreeSet;

use spill_record::{RunSet, ToolResultForm};
use spill_report::{LargestResults, NotComparable, SubjectRuns, SubjectsRendered, subjects};

use crate::builder::{Case, fail, lose};
use crate::calls::{NAMES, all_calls};
use crate::html::{attribute, needs_nothing, text};

/// What the calls of a folder tell; those of `cut` have their results cut.
pub(crate) fn largest(set: &RunSet, cut: bool) -> LargestResults {
    let mut largest = LargestResults::default();
    for mut call in all_calls(set, &NAMES) {
        for result in &mut call.new_results {
            if cut && result.form == ToolResultForm::Preview {
                result.form = ToolResultForm::Cut;
                result.reference = None;
            }
        }
        largest.take(&call);
    }
    largest
}

/// The same runs by another subject, with its own limits, of which the servers alone tell.
pub(crate) fn of_subject(set: &RunSet, subject: &str) -> RunSet {
    let mut other = set.clone();
    other.manifest.subject = subject.to_owned();
    for run in &mut other.runs {
        run.subject = subject.to_owned();
        run.sampled_memory_bytes = run.peak_rss_bytes.take();
        run.duration_ms = None;
        run.kept_files = Some(2);
    }
    other
}

fn rendered(sets: &[&RunSet]) -> Result<SubjectsRendered, NotComparable> {
    let largest: Vec<LargestResults> = (0..).zip(sets).map(|(n, s)| largest(s, n == 1)).collect();
    let runs = sets.iter().zip(&largest);
    let runs = runs.map(|(set, largest)| SubjectRuns { set, largest });
    subjects(&runs.collect::<Vec<_>>())
}

fn one_document(case: Case) -> RunSet {
    let kept = |input: &str| input == "document" || input == "large";
    case.set(|set| {
        set.manifest.plan.inputs.retain(|one| kept(&one.input));
        set.manifest.plan.runs.retain(|one| kept(&one.input));
        set.runs.retain(|one| kept(&one.input));
    })
    .set
}

/// Two subjects, of which the second fails, loses and lacks runs, and one with the first input alone.
fn three() -> [RunSet; 3] {
    let ours = one_document(Case::full());
    let theirs = Case::full()
        .cell("32KiB", "large", fail)
        .one("128KiB", "large", 1, lose)
        .one("off", "document", 0, |run| {
            run.leak_findings = vec!["a canary in a file".to_owned()];
            run.files_written = Some(1);
        })
        .without(|run| run.configuration == "128KiB" && run.repetition == 3);
    let theirs = of_subject(&one_document(theirs), "agent");
    let mut third = of_subject(&ours, "third");
    third.manifest.plan.inputs.truncate(1);
    let first = third.manifest.plan.inputs[0].input.clone();
    third.manifest.plan.runs.retain(|run| run.input == first);
    third.runs.retain(|run| run.input == first);
    [ours, theirs, third]
}

#[test]
fn subjects_stand_side_by_side() {
    let sets = three();
    let rendered = rendered(&sets.each_ref()).expect("they had the same");
    needs_nothing(&rendered.html);
    insta::assert_snapshot!("page", text(&rendered.html));
    insta::assert_snapshot!("table", rendered.table);
    insta::assert_snapshot!("csv", rendered.csv);
    insta::assert_snapshot!("json", rendered.json);
    let ids = attribute(&rendered.html, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "an id is used twice");
    for labels in attribute(&rendered.html, "aria-labelledby") {
        assert!(unique.contains(labels), "{labels} is not there");
    }
    let again = self::rendered(&sets.each_ref()).expect("they had the same");
    assert_eq!(again.html, rendered.html);
}

/// Without what the subject, its calls and its servers did not tell, there is nothing in the place of figures.
#[test]
fn what_was_not_measured_is_no_zero() {
    let ours = one_document(Case::full());
    let bare = Case::full().every(|run| {
        (run.iterations, run.input_tokens, run.output_tokens) = (None, None, None);
        (run.peak_rss_bytes, run.process_ms, run.kept_files) = (None, None, None);
        (run.facts_found, run.quality, run.files_written) = (None, None, None);
        run.subject = "bare".to_owned();
    });
    let mut bare = one_document(bare);
    bare.manifest.subject = "bare".to_owned();
    let (known, nothing) = (largest(&ours, false), LargestResults::default());
    let runs = [(&ours, &known), (&bare, &nothing)];
    let runs = runs.map(|(set, largest)| SubjectRuns { set, largest });
    let rendered = subjects(&runs).expect("they had the same");
    let rows: Vec<&str> = rendered.csv.lines().collect();
    let bare_rows = || rows.iter().filter(|row| row.contains(",bare,"));
    assert_eq!(bare_rows().count(), 6);
    for row in bare_rows() {
        let (_, figures) = row
            .split_once(",5,5,0,0,0,")
            .unwrap_or_else(|| panic!("{row}"));
        assert_eq!(figures, ",,,,,,,,,,0,,,,,,,", "{row}");
    }
    assert!(rendered.html.contains("not measured: no calls"));
    assert!(rendered.table.contains("not measured: no calls"));
}

/// What `alter` makes of the second subject's folder is refused, in words that hold `words`.
fn check_refused(words: &str, alter: impl FnOnce(&mut RunSet)) {
    let ours = one_document(Case::full());
    let mut theirs = of_subject(&ours, "agent");
    assert!(rendered(&[&ours, &theirs]).is_ok());
    alter(&mut theirs);
    let refused = rendered(&[&ours, &theirs]).expect_err("they had not the same");
    assert_eq!(refused.folders, (0, 1));
    assert!(refused.words.contains(words), "{}", refused.words);
}

#[test]
fn what_subjects_were_not_given_alike_is_not_compared() {
    check_refused("another content of document", |set| {
        set.manifest.plan.inputs[1].content_digest = "other".to_owned();
    });
    check_refused("another content of review/large", |set| {
        set.manifest.plan.inputs[0].facts.pop();
    });
    check_refused("simulated model or the limits", |set| {
        set.manifest.plan.models[0].slice_bytes += 1;
    });
    check_refused("simulated model or the limits", |set| {
        set.manifest.plan.models[1].faults = vec!["llm 429".to_owned()];
    });
    check_refused("seeds, profiles or repetitions", |set| {
        set.manifest.plan.runs[0].seed += 1;
    });
    check_refused("seeds, profiles or repetitions", |set| {
        set.manifest.plan.runs.retain(|run| run.repetition < 4);
    });
    check_refused("seeds, profiles or repetitions", |set| {
        set.manifest.plan.runs[0].profile = "hasty".to_owned();
    });
    check_refused("other versions of the program", |set| {
        set.manifest.versions.tokenizer = "another".to_owned();
    });
    check_refused("the model server or the model", |set| {
        set.manifest.mode = spill_record::Mode::Live;
    });
    check_refused("same subject of review/large", |set| {
        set.manifest.subject = "built-in".to_owned();
    });
    check_refused("no input was run with two", |set| {
        for input in &mut set.manifest.plan.inputs {
            input.input.push_str("-other");
        }
    });
}

#[test]
fn a_subjects_own_timeouts_and_rules_do_not_matter() {
    let ours = one_document(Case::full());
    let mut theirs = of_subject(&ours, "agent");
    theirs.manifest.plan.models[0].run_timeout_ms = 300_000;
    theirs.manifest.plan.rules.quality_allowance = 0.5;
    theirs.manifest.plan_hash = "another".to_owned();
    assert!(rendered(&[&ours, &theirs]).is_ok());
}
