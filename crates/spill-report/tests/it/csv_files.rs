use spill_report::{Context, RULES_COLUMNS, SUMMARY_COLUMNS, SUMMARY_MEASURED_COLUMNS, render};
use spill_verdict::judge;

use crate::builder::{Case, exhaust, lose, score};

#[test]
fn summary_and_rules() {
    let case = Case::full()
        .cell("128KiB", "large", exhaust)
        .one("32KiB", "document", 2, |r| score(r, 7, 0))
        .one("off", "small", 1, lose)
        .without(|r| r.configuration == "32KiB" && r.input == "medium");
    let files = render(&case.set, &judge(&case.set), Context::default());
    insta::assert_snapshot!("summary", files.summary_csv);
    insta::assert_snapshot!("rules", files.rules_csv);
    assert_eq!(
        files.summary_csv.lines().next(),
        Some(&*SUMMARY_COLUMNS.join(","))
    );
    assert_eq!(
        files.rules_csv.lines().next(),
        Some(&*RULES_COLUMNS.join(","))
    );
}

#[test]
fn only_measured_columns_follow_what_is_measured() {
    let summary = |factor: f64| {
        let case = Case::full().every(|r| {
            r.duration_ms = r.duration_ms.map(|ms| ms * factor);
            r.process_ms = r.process_ms.map(|ms| ms * factor);
            r.cpu_ms = r.cpu_ms.map(|ms| ms * factor);
            r.peak_rss_bytes = r
                .peak_rss_bytes
                .map(|bytes| bytes + 4_096 * u64::from(factor > 1.0));
        });
        let verdict = judge(&case.set);
        (
            render(&case.set, &verdict, Context::default()).summary_csv,
            verdict,
        )
    };
    let ((one, verdict_one), (two, verdict_two)) = (summary(1.0), summary(3.0));
    assert_eq!(
        verdict_one, verdict_two,
        "no rule hangs on a measured value"
    );
    let column = |csv: &str, name: &str| -> Vec<String> {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let headers = reader.headers().expect("there is a header").clone();
        let index = headers
            .iter()
            .position(|header| header == name)
            .expect("the column is there");
        reader
            .records()
            .map(|r| r.expect("a row")[index].to_owned())
            .collect()
    };
    for name in SUMMARY_COLUMNS {
        let same = column(&one, name) == column(&two, name);
        let measured = SUMMARY_MEASURED_COLUMNS.contains(&name);
        let empty = column(&one, name).iter().all(String::is_empty);
        assert!(
            same != measured || empty,
            "{name}: same {same}, measured {measured}"
        );
    }
}
