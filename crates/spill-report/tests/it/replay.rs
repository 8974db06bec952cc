//! The page and the tables of a replay.

use spill_record::{ProblemRecord, ReplayRecord, SCHEMA, SessionRecord};
use spill_report::{RenderedReplay, ReplayProblems, ReplaySessions, render_replay};
use spill_verdict::judge_replay;

use crate::replay_builder::{record, sessions, totals};

fn rendered(
    record: &ReplayRecord,
    sessions: &[SessionRecord],
    problems: &[ProblemRecord],
) -> RenderedReplay {
    let totals = totals(sessions);
    let judgement = judge_replay(record, &totals).expect("gates of the sample");
    let mut taken = ReplaySessions::of(record, &totals);
    sessions.iter().for_each(|session| taken.take(session));
    let mut named = ReplayProblems::default();
    problems
        .iter()
        .for_each(|problem| named.take(problem.clone()));
    render_replay(record, &totals, &judgement, taken, named)
}

fn problem(text: &str) -> ProblemRecord {
    ProblemRecord {
        schema: SCHEMA,
        file: text.to_owned(),
        line: Some(3),
        item: None,
        kind: "torn-line".to_owned(),
        detail: text.to_owned(),
    }
}

fn sample() -> RenderedReplay {
    let gates = ["saved_input_tokens[threshold=32KiB] >= 10%"];
    rendered(&record(&gates), &sessions(), &[problem("sessions/2.jsonl")])
}

/// The page without its style sheet and script, as text.
fn body(html: &str) -> &str {
    let start = html.find("<main>").expect("a body");
    let end = html.find("</main>").expect("its end");
    &html[start..end]
}

#[test]
fn a_replay_renders_like_this() {
    insta::assert_snapshot!(body(&sample().report_html));
}

#[test]
fn the_tables_of_a_replay_read_like_this() {
    let RenderedReplay {
        thresholds_csv,
        tools_csv,
        sessions_csv,
        problems_csv,
        ..
    } = sample();
    insta::assert_snapshot!(format!(
        "{thresholds_csv}\n{tools_csv}\n{sessions_csv}\n{problems_csv}"
    ));
}

#[test]
fn equal_records_give_equal_bytes() {
    assert_eq!(sample(), sample());
}

#[test]
fn nothing_to_show_is_a_page_too() {
    let page = rendered(&record(&[]), &[], &[]).report_html;
    assert!(page.contains("No LLM call was found"), "{page}");
    let shown = body(&page);
    assert!(
        !shown.contains("NaN") && !shown.contains("inf %"),
        "{shown}"
    );
}

/// The drawing with this id.
fn drawing<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("id=\"{id}-title\"")).expect("a drawing");
    let start = page[..start].rfind("<svg").expect("its start");
    let end = page[start..].find("</svg>").expect("its end");
    &page[start..start + end]
}

/// A line needs two points: one threshold is drawn as dots.
#[test]
fn a_single_threshold_is_drawn() {
    let mut one = record(&[]);
    one.cells.truncate(1);
    let mut all = sessions();
    for session in &mut all {
        session.cells.truncate(1);
        session.outcomes.truncate(one.read_backs.len());
    }
    let page = rendered(&one, &all, &[]).report_html;
    for (id, dots) in [("chart-savings", 1), ("chart-kept", 2)] {
        let drawn = drawing(&page, id);
        assert_eq!(drawn.matches("<circle").count(), dots, "{drawn}");
    }
}

#[test]
fn a_table_without_rows_says_so() {
    let mut all = sessions();
    for session in &mut all {
        session.tools.clear();
        for cell in &mut session.cells {
            cell.tools.clear();
        }
    }
    let page = rendered(&record(&[]), &all, &[]).report_html;
    let shown = body(&page);
    assert!(
        shown.contains("Tools by what their results send"),
        "{shown}"
    );
    assert!(!shown.contains("<tbody>\n\n</tbody>"), "{shown}");
    assert!(!shown.contains("<table id=\"tools\""), "{shown}");
}

/// Long names go on in further lines, and figures do not.
#[test]
fn long_names_wrap() {
    let mut all = sessions();
    all[0].file = "projects/".repeat(12);
    let page = rendered(&record(&[]), &all, &[]).report_html;
    let (wide, word) = (
        "<th scope=\"row\" class=\"wide\">…",
        "<th scope=\"row\" class=\"word\">all<",
    );
    for cell in [wide, word] {
        assert!(body(&page).contains(cell), "{cell}: {}", body(&page));
    }
    assert!(page.contains(".scroll th.wide, .scroll td.wide { white-space: normal;"));
    assert!(!body(&page).contains("class=\"num wide\""));
}

#[test]
fn hostile_names_stay_text() {
    for evil in [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "=cmd|' /C calc'!A0",
        "a\u{202e}b\u{0}d\u{1b}[31m",
        "{{ 7777 * 7777 }}{% for x in y %}",
        "' onmouseover='x' <!-- --> \r\n,;\t",
    ] {
        let mut record = record(&[]);
        record.versions.tokenizer = evil.to_owned();
        record.left_out.insert(evil.to_owned(), 1);
        record.paths = vec![evil.to_owned()];
        let mut all = sessions();
        for session in &mut all {
            session.file = evil.to_owned();
            session.id = Some(evil.to_owned());
            session.models = vec![evil.to_owned()];
            session.not_recorded.push(evil.to_owned());
            for tool in &mut session.tools {
                tool.tool = Some(evil.to_owned());
            }
        }
        let files = rendered(&record, &all, &[problem(evil)]);
        let page = body(&files.report_html);
        for bad in [
            "<script",
            "<img",
            "onmouseover='",
            "60481729",
            "\u{202e}",
            "\u{1b}",
        ] {
            assert!(!page.contains(bad), "{evil}: {bad}");
        }
        for table in [&files.sessions_csv, &files.tools_csv, &files.problems_csv] {
            let mut reader = csv::Reader::from_reader(table.as_bytes());
            for row in reader.records() {
                let row = row.expect("rows have equal lengths");
                let executes = |cell: &str| cell.starts_with(['=', '@', '+']);
                assert!(!row.iter().any(executes), "{row:?}");
            }
        }
    }
}
