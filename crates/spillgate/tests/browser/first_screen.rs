//! What an owner decides from, before scrolling.

use serde_json::Value;

use crate::acceptance::address;
use crate::browser::{Browser, DESK, HAND, Screen};

/// What the first screen is made of.
const PARTS: [(&str, &str); 8] = [
    ("the decision", ".banner h1"),
    ("its sentence", ".banner p"),
    ("rules × candidates", "table.grid"),
    ("the denominators", "dl.counts"),
    ("the forest plot", ".forest svg"),
    ("what changed since", ".since p"),
    (
        "what it does not show",
        "section[aria-labelledby=not-shown] li",
    ),
    (
        "where it comes from",
        "section[aria-labelledby=provenance] dd",
    ),
];

/// What a phone's height has room for; links beside it lead to the rest.
const AT_HAND: [&str; 5] = [
    ".banner h1",
    ".banner p",
    "table.grid",
    "dl.counts",
    ".jump",
];

/// Elements of the page that reach over its sides, and texts of drawings that reach over the drawing's.
const CUT: &str = "
    const sides = (one) => { const box = one.getBoundingClientRect(); return [box.left, box.right]; };
    const over = (one, [left, right]) => {
        const [own_left, own_right] = sides(one);
        return own_left < left - 0.5 || own_right > right + 0.5;
    };
    const scrolls = (one) => one.closest('.scroll, .zoomable') !== null;
    const page = [0, document.documentElement.clientWidth];
    const wide = [...document.querySelectorAll('main *')].filter((one) => !scrolls(one) && over(one, page));
    const texts = [...document.querySelectorAll('svg text')].filter((one) => over(one, sides(one.ownerSVGElement)));
    return wide.concat(texts).map((one) => one.tagName + ' ' + one.className + ': ' + one.textContent.slice(0, 60));
";

async fn open(screen: Screen, scheme: &str) -> Browser {
    let browser = Browser::open().await;
    browser.resize(screen).await;
    browser
        .media("screen", &[("prefers-color-scheme", scheme)])
        .await;
    browser.go(&address("report.html")).await;
    browser
}

/// The lowest edge of what `selector` finds, in pixels from the top of the page.
async fn bottom(browser: &Browser, selector: &str) -> f64 {
    let script = format!(
        "return Math.max(...[...document.querySelectorAll({})].map((one) => one.getBoundingClientRect().bottom + scrollY));",
        Value::from(selector)
    );
    browser.ask(&script).await.as_f64().unwrap_or(f64::INFINITY)
}

async fn check_first_screen(screen: Screen, scheme: &str) {
    let browser = open(screen, scheme).await;
    let place = format!("{screen:?}, {scheme}");
    for (name, selector) in PARTS {
        let script = format!(
            "const one = document.querySelector({});\
             return one !== null && one.checkVisibility() && one.textContent.trim() !== '' && one.closest('.screen') !== null;",
            Value::from(selector)
        );
        assert_eq!(
            browser.ask(&script).await,
            Value::Bool(true),
            "{name}: {place}"
        );
    }
    let in_view = match screen {
        DESK => vec![".screen"],
        _ => AT_HAND.to_vec(),
    };
    for selector in in_view {
        let bottom = bottom(&browser, selector).await;
        let height = f64::from(screen.height);
        assert!(bottom <= height, "{selector} ends at {bottom}: {place}");
    }
    assert_eq!(browser.ask(CUT).await, serde_json::json!([]), "{place}");
    let over =
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth;";
    assert_eq!(browser.ask(over).await, 0, "{place}");
}

#[tokio::test]
async fn it_is_complete_on_a_desk_and_at_hand_in_light_and_dark() {
    for screen in [DESK, HAND] {
        for scheme in ["light", "dark"] {
            check_first_screen(screen, scheme).await;
        }
    }
}

#[tokio::test]
async fn light_is_light_and_dark_is_dark() {
    let ground =
        "return getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)[0];";
    let light = open(DESK, "light").await.ask(ground).await;
    let dark = open(DESK, "dark").await.ask(ground).await;
    assert!(
        light.as_u64() > Some(200) && dark.as_u64() < Some(50),
        "{light}, {dark}"
    );
}

/// The number of a cell leads to the row it comes from, and that to its run, whose timeline is open then.
#[tokio::test]
async fn the_run_behind_a_number_is_two_clicks_away() {
    let browser = open(DESK, "light").await;
    browser.click(".grid a[href^='#rule-3-0']").await;
    let row = "const at = document.querySelector(':target'); \
               return at.tagName + ' ' + (at.getBoundingClientRect().top < innerHeight);";
    assert_eq!(browser.ask(row).await, "TR true");
    browser.click(":target a[href^='#']").await;
    let run = browser
        .ask("return document.querySelector(':target').textContent;")
        .await;
    let run = run.as_str().unwrap();
    assert!(run.contains("answered"), "{run}");
}

/// Pages of a PDF, which counts them in its page objects.
fn pages(pdf: &[u8]) -> usize {
    let page = b"/Type /Page\n";
    pdf.windows(page.len()).filter(|part| part == page).count()
}

async fn print(browser: &Browser) -> Vec<u8> {
    use base64::Engine;
    let how = serde_json::json!({"preferCSSPageSize": true, "printBackground": true});
    let printed = browser.command("Page.printToPDF", how).await;
    let data = printed["data"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap()
}

#[tokio::test]
async fn it_fills_one_printed_page() {
    let browser = open(DESK, "dark").await;
    assert!(
        pages(&print(&browser).await) > 2,
        "the whole report is longer"
    );
    browser.media("print", &[]).await;
    let ground = "return getComputedStyle(document.body).backgroundColor;";
    assert_eq!(
        browser.ask(ground).await,
        "rgb(255, 255, 255)",
        "no dark paper"
    );
    assert_eq!(
        bottom_of_page(&browser).await,
        "page",
        "the rest begins a page"
    );
    browser
        .ask("for (const one of document.querySelectorAll('main > :not(.screen)')) one.remove();")
        .await;
    browser
        .ask("document.querySelector('.screen').style.breakAfter = 'auto';")
        .await;
    assert_eq!(pages(&print(&browser).await), 1);
}

async fn bottom_of_page(browser: &Browser) -> Value {
    browser
        .ask("return getComputedStyle(document.querySelector('.screen')).breakAfter;")
        .await
}
