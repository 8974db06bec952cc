//! The report's pages as a browser takes them: silent, alone, readable without scripts and in any colours.

use serde_json::{Value, json};

use crate::acceptance::{address, run_page};
use crate::browser::{Browser, DESK, HAND};

/// The text of every table, cell by cell.
const CELLS: &str = "
    return [...document.querySelectorAll('table')].map((table) =>
        [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
";

async fn open(page: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(DESK).await;
    browser.go(page).await;
    browser
}

#[tokio::test]
async fn pages_say_nothing_to_the_console_and_ask_for_nothing() {
    let run = run_page();
    for page in [address("report.html"), run] {
        let browser = open(&page).await;
        browser.click("th button, button.zoom").await;
        assert_eq!(browser.console().await, [""; 0], "{page}");
        let asked = browser.requests().await;
        let others: Vec<&String> = asked.iter().filter(|address| **address != page).collect();
        assert!(
            others.is_empty() && asked.contains(&page),
            "{page}: {asked:?}"
        );
    }
}

/// The console and the requests are seen at all.
#[tokio::test]
async fn a_page_that_errs_or_asks_would_be_found() {
    let page = "data:text/html,<link rel=icon href='data:,'><img src='http://127.0.0.1:9/x'><script>console.error('alas')</script>";
    let browser = open(page).await;
    let said = browser.console().await;
    assert!(said.iter().any(|line| line.contains("alas")), "{said:?}");
    let asked = browser.requests().await;
    assert!(
        asked.contains(&"http://127.0.0.1:9/x".to_owned()),
        "{asked:?}"
    );
}

#[tokio::test]
async fn scripts_off_still_show_every_number() {
    for page in [address("report.html"), run_page()] {
        let with = open(&page).await;
        let without = Browser::open().await;
        let off = json!({"value": true});
        without
            .command("Emulation.setScriptExecutionDisabled", off)
            .await;
        without.go(&page).await;
        let buttons = "return document.querySelectorAll('main button').length;";
        assert_ne!(with.ask(buttons).await, 0, "scripts are on");
        assert_eq!(without.ask(buttons).await, 0, "scripts are off");
        let cells = without.ask(CELLS).await;
        assert_eq!(with.ask(CELLS).await, cells, "{page}");
        assert!(cells.as_array().unwrap().len() > 1, "{page}");
        let hidden = "
            return [...document.querySelectorAll('table')].filter((table) =>
                !table.closest('details') && !table.checkVisibility()).length;
        ";
        assert_eq!(without.ask(hidden).await, 0, "{page}");
    }
}

/// Sorting a column and filtering rows, as a reader does.
#[tokio::test]
async fn tables_sort_and_filter() {
    let browser = open(&address("report.html")).await;
    let tokens = "
        const table = document.querySelector('#runs ~ .card table');
        const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.startsWith('input tokens'));
        table.tHead.rows[0].cells[column].querySelector('button').click();
        return [...table.tBodies[0].rows].map((row) => Number(row.cells[column].textContent.replaceAll(',', '')));
    ";
    let sorted = |values: &Value| -> Vec<u64> {
        let values = values.as_array().unwrap();
        values.iter().map(|value| value.as_u64().unwrap()).collect()
    };
    let rising = sorted(&browser.ask(tokens).await);
    assert!(
        rising.is_sorted() && rising.first() < rising.last(),
        "{rising:?}"
    );
    let falling = sorted(&browser.ask(tokens).await);
    assert!(falling.iter().rev().is_sorted(), "{falling:?}");
    browser.write("#runs ~ .filter input", "128KiB").await;
    let shown = "
        const rows = [...document.querySelector('#runs ~ .card table').tBodies[0].rows];
        const shown = rows.filter((row) => !row.hidden);
        return [shown.length > 0, shown.length < rows.length, shown.every((row) => row.textContent.includes('128KiB'))];
    ";
    assert_eq!(browser.ask(shown).await, json!([true, true, true]));
}

/// Contrast of every mark of a drawing with what it stands on, and whether every state keeps a frame.
const FORCED: &str = "
    const parse = (text) => (text.match(/[0-9.]+/g) || []).map(Number);
    const light = (text) => {
        const [r, g, b] = parse(text).map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = light(getComputedStyle(document.body).backgroundColor);
    const contrast = (text) => {
        const own = light(text);
        return (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05);
    };
    const faint = [];
    for (const one of document.querySelectorAll('svg [class]')) {
        const style = getComputedStyle(one);
        const paints = [style.fill, style.stroke].filter((paint) => paint.startsWith('rgb'));
        const own = one.getAttribute('class').startsWith('s-') ? style.stroke : style.fill;
        if (paints.length && contrast(own) < 3) faint.push(one.getAttribute('class') + ' ' + own);
    }
    const bare = [...document.querySelectorAll('.badge')].filter((one) =>
        parseFloat(getComputedStyle(one).borderTopWidth) < 1).map((one) => one.textContent);
    return [[...new Set(faint)], bare];
";

#[tokio::test]
async fn forced_colours_lose_no_mark_and_no_state() {
    for page in [address("report.html"), run_page()] {
        let browser = open(&page).await;
        for scheme in ["light", "dark"] {
            let forced = [
                ("forced-colors", "active"),
                ("prefers-color-scheme", scheme),
            ];
            browser.media("screen", &forced).await;
            let active = "return matchMedia('(forced-colors: active)').matches;";
            assert_eq!(browser.ask(active).await, true);
            assert_eq!(
                browser.ask(FORCED).await,
                json!([[], []]),
                "{page}, {scheme}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_moves_where_less_motion_is_asked_for() {
    for page in [address("report.html"), run_page()] {
        let browser = open(&page).await;
        let still = [("prefers-reduced-motion", "reduce")];
        browser.media("screen", &still).await;
        let moving = "
            const time = (text) => text.split(',').some((part) => parseFloat(part) > 0);
            const moving = [...document.querySelectorAll('*')].filter((one) => {
                const style = getComputedStyle(one);
                return time(style.transitionDuration) || time(style.animationDuration) || style.scrollBehavior === 'smooth';
            });
            return moving.length + document.getAnimations().length;
        ";
        assert_eq!(browser.ask(moving).await, 0, "{page}");
    }
}

/// On a phone every table that is wider than the page scrolls by itself and can be reached by keyboard.
#[tokio::test]
async fn wide_tables_scroll_in_their_own_place() {
    for page in [address("report.html"), run_page()] {
        let browser = open(&page).await;
        browser.resize(HAND).await;
        let stuck = "
            return [...document.querySelectorAll('main table')].filter((table) => {
                const place = table.closest('.scroll');
                return table.checkVisibility() && table.offsetWidth > innerWidth && !(place && place.tabIndex === 0);
            }).map((table) => table.textContent.slice(0, 60));
        ";
        assert_eq!(browser.ask(stuck).await, json!([]), "{page}");
        let over =
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
        assert_eq!(browser.ask(over).await, 0, "{page}");
    }
}
