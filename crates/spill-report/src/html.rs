use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The style sheet of every page.
pub const STYLE: &str = include_str!("templates/report.css");

/// Sorts and filters tables; a page without it shows the same.
const SCRIPT: &str = include_str!("templates/tables.js");

const TEMPLATES: [(&str, &str); 9] = [
    ("parts.html", include_str!("templates/parts.html")),
    ("head.html", include_str!("templates/head.html")),
    ("foot.html", include_str!("templates/foot.html")),
    ("report.html", include_str!("templates/report.html")),
    ("run.html", include_str!("templates/run.html")),
    ("sweep.html", include_str!("templates/sweep.html")),
    ("replay.html", include_str!("templates/replay.html")),
    ("compare.html", include_str!("templates/compare.html")),
    ("subjects.html", include_str!("templates/subjects.html")),
];

/// One of the templates, filled; `page` has a `title` among its fields.
pub(crate) fn html(template: &str, page: impl Serialize) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax.expect("the default delimiters do not clash"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    for (name, text) in TEMPLATES {
        environment
            .add_template(name, text)
            .expect("the templates are part of the program and parse");
    }
    let page = Value::from(Serde(page));
    let (style, script) = (inline(STYLE), inline(SCRIPT));
    environment
        .get_template(template)
        .and_then(|template| {
            template.render(context! {
                page => page,
                style_hash => hash(&style),
                script_hash => hash(&script),
                style => style,
                script => script,
            })
        })
        .expect("the template names only what the page has")
}

/// The text between an element's tags, which is what its hash is over.
fn inline(text: &str) -> String {
    format!("\n{text}")
}

/// A hash as a Content-Security-Policy spells it.
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(Sha256::digest(text)))
}
