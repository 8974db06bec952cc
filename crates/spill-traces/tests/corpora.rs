//! Runs the fixtures, and the corpora of the fuzz targets, through the targets' own checks.

#[path = "../fuzz/checks.rs"]
mod checks;

use std::path::{Path, PathBuf};

/// Inputs that are found below a folder.
fn inputs(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            inputs(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Runs `check` on every input of `target`, and on parts of them, so that a cut one is covered too.
#[track_caller]
fn check_corpus(fixtures: &str, target: &str, check: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    inputs(
        &root.join("../../fixtures/traces").join(fixtures),
        &mut found,
    );
    assert!(!found.is_empty(), "{target} has no fixture");
    let fixtures = found.len();
    inputs(&root.join("fuzz/corpus").join(target), &mut found);
    let of_its_own = found.len() - fixtures;
    assert!(of_its_own >= 4, "{target} has a corpus of {of_its_own}");
    found.sort();
    for path in found {
        let input = std::fs::read(&path).expect("a file");
        check(&input);
        for part in 1..20 {
            check(&input[..input.len() * part / 20]);
        }
    }
}

#[test]
fn anthropic() {
    check_corpus("anthropic", "anthropic", checks::anthropic);
}

#[test]
fn api_capture() {
    check_corpus("api-capture", "api_capture", checks::api_capture);
}

#[test]
fn atif() {
    check_corpus("atif", "atif", checks::atif);
}

#[test]
fn claude_code() {
    check_corpus("claude-code", "claude_code", checks::claude_code);
}

#[test]
fn codex() {
    check_corpus("codex", "codex", checks::codex);
}

#[test]
fn deepseek() {
    check_corpus("deepseek", "deepseek", checks::deepseek);
}

#[test]
fn gemini_cli() {
    check_corpus("gemini-cli", "gemini_cli", checks::gemini_cli);
}

#[test]
fn inspect() {
    check_corpus("inspect", "inspect", checks::inspect);
}

#[test]
fn mini_swe_agent() {
    check_corpus("mini-swe-agent", "mini_swe_agent", checks::mini_swe_agent);
}

#[test]
fn openai_chat() {
    check_corpus("openai-chat", "openai_chat", checks::openai_chat);
}

#[test]
fn otel() {
    check_corpus("otel", "otel", checks::otel);
}

#[test]
fn swe_agent() {
    check_corpus("swe-agent", "swe_agent", checks::swe_agent);
}

#[test]
fn any() {
    check_corpus("", "any", checks::any);
}
