//! The dashboard while a real acceptance runs beside it.

use std::path::Path;

use serde_json::json;

use crate::acceptance::{Gate, Running, finished};
use crate::browser::{Browser, DESK, HAND};

/// Words of rule 3's state for 128KiB, on the card of the acceptance in progress.
const RULE_3: &str = ".card.running .grid tbody tr:nth-child(3) td:nth-child(2) .badge";

async fn until_done(browser: &Browser, runs: u32) {
    let script = format!(
        "const done = document.querySelector('.card.running .done'); \
         return done !== null && done.innerText === '{runs} of 24 runs';"
    );
    browser
        .until(&format!("{runs} runs are done"), &script)
        .await;
}

/// The states that rule 3 goes through until it is broken, pair by pair.
async fn follow(browser: &Browser, gate: &mut Gate) -> (Vec<String>, u32) {
    let mut seen = vec![browser.text(RULE_3).await];
    let mut runs = 0;
    while seen.last().unwrap() != "broken so far" {
        assert!(runs < 21, "rule 3 does not turn: {seen:?}");
        gate.pass(3);
        runs += 3;
        until_done(browser, runs).await;
        let now = browser.text(RULE_3).await;
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    (seen, runs)
}

#[tokio::test]
async fn an_acceptance_is_followed_to_its_report() {
    let reports = tempfile::tempdir().unwrap();
    let mut gate = Gate::new();
    let acceptance = Running::accept(reports.path(), &gate);
    let browser = Browser::open().await;
    browser.resize(DESK).await;
    browser.go(&acceptance.url).await;
    until_done(&browser, 0).await;

    // Progress moves and a rule turns, without a reload.
    browser.ask("window.sameDocument = true;").await;
    let (seen, runs) = follow(&browser, &mut gate).await;
    assert_eq!(seen, ["not run", "holds so far", "broken so far"]);
    let value = browser
        .ask("return document.querySelector('progress').value;")
        .await;
    assert_eq!(value, runs);
    let words = browser.text(".card.running caption").await;
    assert!(words.contains("provisional"), "{words}");
    assert_eq!(browser.ask("return window.sameDocument;").await, true);
    assert_eq!(browser.text("#link").await, "live");

    // Another tab shows the same, and both go on.
    let first = browser.driver.window().await.unwrap();
    let second = browser.driver.new_tab().await.unwrap();
    browser.driver.switch_to_window(second).await.unwrap();
    browser.go(&acceptance.url).await;
    until_done(&browser, runs).await;
    gate.pass(1);
    until_done(&browser, runs + 1).await;
    browser.driver.switch_to_window(first).await.unwrap();
    until_done(&browser, runs + 1).await;

    // The run that is being made opens, from what it has so far.
    browser.click(".card.running h3 a").await;
    let report = "return document.title.startsWith('Spillgate: ');";
    browser
        .until("the report of an unfinished run is shown", report)
        .await;
    browser.driver.back().await.unwrap();
    assert_eq!(browser.console().await, [""; 0]);
    drop(acceptance);
}

#[tokio::test]
async fn a_finished_run_opens_and_a_killed_one_is_incomplete() {
    let reports = tempfile::tempdir().unwrap();
    let mut gate = Gate::new();
    let mut acceptance = Running::accept(reports.path(), &gate);
    let serve = Running::serve(reports.path(), 0);
    let browser = Browser::open().await;
    browser.resize(HAND).await;
    browser.go(&serve.url).await;
    gate.pass(2);
    until_done(&browser, 2).await;
    acceptance.kill();
    let state = "const row = document.querySelector('#acceptances tbody tr'); \
                 return row !== null && row.dataset.state === 'incomplete' && \
                 document.querySelector('.card.running') === null;";
    browser.until("the killed one is incomplete", state).await;
    let row = browser.text("#acceptances tbody tr").await;
    assert!(row.contains("no verdict"), "{row}");

    // Whole ones finish under the eyes of an open page.
    gate.open();
    let acceptance = Running::accept(reports.path(), &gate);
    let state = "const row = document.querySelector('#acceptances tbody tr'); \
                 return row.dataset.state === 'finished';";
    browser.until("the second one is finished", state).await;
    browser.click("#acceptances tbody tr a").await;
    let opened = "return document.querySelector('.banner h1') !== null && \
                  document.querySelectorAll('table').length > 10;";
    browser.until("its report is open", opened).await;
    assert_eq!(browser.console().await, [""; 0]);
    drop(acceptance);
}

/// Four acceptances: a finished one, a copy of it, one that cannot be read, one whose process is gone.
fn four(reports: &Path) -> String {
    use std::fs;
    let id = finished(reports);
    let copy = |name: &str, files: &[&str]| {
        let folder = reports.join(name);
        fs::create_dir(&folder).unwrap();
        for file in files {
            fs::copy(reports.join(&id).join(file), folder.join(file)).unwrap();
        }
    };
    copy(
        "20200101T000000.000Z-copied",
        &[
            "manifest.json",
            "runs.jsonl",
            "calls.jsonl",
            "sensitivity.jsonl",
            "verdict.json",
        ],
    );
    copy(
        "20200102T000000.000Z-ended",
        &["manifest.json", "calls.jsonl"],
    );
    fs::write(reports.join("20200102T000000.000Z-ended/runs.jsonl"), "").unwrap();
    copy("20200103T000000.000Z-broken", &[]);
    fs::write(
        reports.join("20200103T000000.000Z-broken/manifest.json"),
        "{",
    )
    .unwrap();
    id
}

/// What stands in the rows that are shown: the column of ids from its dash on.
const SHOWN: &str = "
    return [...document.querySelectorAll('#acceptances tbody tr')].filter((row) => row.checkVisibility())
        .map((row) => row.cells[0].textContent.split('-').pop());
";

#[tokio::test]
async fn filters_and_sorting_work_and_outlast_a_reload_and_a_way_back() {
    let reports = tempfile::tempdir().unwrap();
    let id = four(reports.path());
    let newest = id.rsplit('-').next().unwrap();
    let serve = Running::serve(reports.path(), 0);
    let browser = Browser::open().await;
    browser.resize(DESK).await;
    browser.go(&serve.url).await;
    assert_eq!(
        browser.ask(SHOWN).await,
        json!([newest, "broken", "ended", "copied"])
    );

    browser
        .click("#acceptances thead th:nth-child(1) button")
        .await;
    let rising = json!(["copied", "ended", "broken", newest]);
    assert_eq!(browser.ask(SHOWN).await, rising);
    // What has no exit code stands last, whichever way.
    let exit_code = "#acceptances thead th:nth-child(4) button";
    for _ in 0..2 {
        browser.click(exit_code).await;
        let shown = browser.ask(SHOWN).await;
        let last: Vec<&str> = shown.as_array().unwrap()[2..]
            .iter()
            .filter_map(|name| name.as_str())
            .collect();
        assert!(
            last.contains(&"broken") && last.contains(&"ended"),
            "{last:?}"
        );
    }
    let way = "return document.querySelector('#acceptances thead th:nth-child(4)').ariaSort;";
    assert_eq!(browser.ask(way).await, "descending");

    browser
        .click("#acceptances thead th:nth-child(1) button")
        .await;
    browser.write("select[name=state]", "finished").await;
    let kept = json!(["copied", newest]);
    assert_eq!(browser.ask(SHOWN).await, kept);
    browser.driver.refresh().await.unwrap();
    assert_eq!(browser.ask(SHOWN).await, kept, "a reload keeps the place");
    browser.click("#acceptances tbody tr:not([hidden]) a").await;
    let report = "return document.querySelector('.banner') !== null;";
    browser.until("a report is open", report).await;
    browser.driver.back().await.unwrap();
    let back = format!("const f = () => {{ {SHOWN} }}; return JSON.stringify(f()) === '{kept}';");
    browser.until("the way back keeps the place", &back).await;

    browser.write("input[name=q]", "nobody has this").await;
    assert_eq!(browser.ask(SHOWN).await, json!([]));
    assert_eq!(
        browser.text("#no-fit").await,
        "No acceptance fits the filter."
    );
    assert_eq!(browser.console().await, [""; 0]);
}

#[tokio::test]
async fn a_server_killed_and_started_again_shows_the_same_on_an_open_page() {
    let reports = tempfile::tempdir().unwrap();
    four(reports.path());
    let mut serve = Running::serve(reports.path(), 0);
    let browser = Browser::open().await;
    browser.go(&serve.url).await;
    let live = "return document.getElementById('link').textContent === 'live';";
    browser.until("the page is live", live).await;
    let before = browser.text("#board").await;
    let port = serve.port();
    serve.kill();
    let lost = "return document.getElementById('link').textContent.startsWith('connection lost');";
    browser
        .until("the page says that it is cut off", lost)
        .await;
    let serve = Running::serve(reports.path(), port);
    browser.until("the page is live again", live).await;
    assert_eq!(browser.text("#board").await, before);
    drop(serve);
}

/// Every page of it at both sizes: nothing wider than the window, no cell cut, no request elsewhere.
#[tokio::test]
async fn its_pages_fit_a_phone_and_ask_for_nothing_elsewhere() {
    let reports = tempfile::tempdir().unwrap();
    let id = four(reports.path());
    let mut gate = Gate::new();
    let acceptance = Running::accept(reports.path(), &gate);
    let browser = Browser::open().await;
    let url = acceptance.url.clone();
    browser.go(&url).await;
    until_done(&browser, 0).await;
    let runs = format!("{url}runs/{id}/runs");
    for screen in [DESK, HAND] {
        browser.resize(screen).await;
        for page in [&url, &runs] {
            browser.go(page).await;
            let over = "
                const right = document.documentElement.clientWidth + 0.5;
                return [...document.querySelectorAll('body *')].filter((one) =>
                    one.checkVisibility() && one.tagName !== 'OPTION' && one.getBoundingClientRect().right > right)
                    .map((one) => one.tagName + ': ' + one.textContent.slice(0, 60));
            ";
            assert_eq!(browser.ask(over).await, json!([]), "{page} {screen:?}");
            let wider = "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
            assert_eq!(browser.ask(wider).await, 0, "{page}");
        }
    }
    // The rules of two candidates stand on a phone without scrolling aside.
    browser.go(&url).await;
    gate.pass(15);
    until_done(&browser, 15).await;
    let aside = "
        const place = document.querySelector('.card.running .scroll');
        return place.scrollWidth - place.clientWidth;
    ";
    assert_eq!(browser.ask(aside).await, 0);
    browser.go(&runs).await;
    browser.click("tbody a[href*='/run/']").await;
    browser
        .until(
            "the run's page is open",
            "return document.title.startsWith('Spillgate: run ');",
        )
        .await;
    let asked = browser.requests().await;
    let own = |address: &&String| !address.starts_with(&url) && !address.starts_with("data:");
    let elsewhere: Vec<&String> = asked.iter().filter(own).collect();
    assert!(elsewhere.is_empty() && !asked.is_empty(), "{elsewhere:?}");
    assert_eq!(browser.console().await, [""; 0]);
}
