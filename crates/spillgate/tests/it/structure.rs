//! The shape of the workspace and the truth of its documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cargo_metadata::{DependencyKind, MetadataCommand};
use spill_engine as engine;

use crate::program::repository;

/// Which crates of ours each crate may use, and whether it may use tokio.
const MAY_USE: [(&str, &[&str], bool); 14] = [
    ("spill-engine", &[], false),
    ("spill-store-object", &["spill-engine"], false),
    ("spill-tokens", &[], false),
    ("spill-record", &[], false),
    ("spill-remote", &["spill-record"], true),
    ("spill-scenario", &["spill-record"], false),
    ("spill-verdict", &["spill-record"], false),
    ("spill-report", &["spill-record", "spill-verdict"], false),
    (
        "spill-dash",
        &["spill-record", "spill-report", "spill-verdict"],
        true,
    ),
    (
        "spill-traces",
        &["spill-engine", "spill-record", "spill-tokens"],
        false,
    ),
    ("spill-agent", &["spill-engine"], true),
    ("spill-mocks", &["spill-scenario", "spill-tokens"], true),
    (
        "spill-runner",
        &["spill-mocks", "spill-record", "spill-scenario"],
        true,
    ),
    (
        "spillgate",
        &[
            "spill-agent",
            "spill-dash",
            "spill-engine",
            "spill-mocks",
            "spill-record",
            "spill-remote",
            "spill-report",
            "spill-runner",
            "spill-scenario",
            "spill-tokens",
            "spill-traces",
            "spill-verdict",
        ],
        true,
    ),
];

#[test]
fn dependencies_point_one_way() {
    let metadata = MetadataCommand::new()
        .manifest_path(repository().join("Cargo.toml"))
        .other_options(["--offline".to_owned(), "--locked".to_owned()])
        .no_deps()
        .exec()
        .unwrap();
    let rules: BTreeMap<_, _> = MAY_USE
        .iter()
        .map(|(name, may, tokio)| (*name, (may, *tokio)))
        .collect();
    let names: BTreeSet<&str> = metadata
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    assert_eq!(names, rules.keys().copied().collect());
    for package in &metadata.packages {
        let (may_use, may_tokio) = rules[package.name.as_str()];
        let normal = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal);
        for dependency in normal {
            let name = dependency.name.as_str();
            if rules.contains_key(name) {
                assert!(may_use.contains(&name), "{} uses {name}", package.name);
            }
            if name == "tokio" {
                assert!(may_tokio, "{} uses tokio", package.name);
            }
        }
    }
}

#[test]
fn the_readme_tells_the_variables_as_the_engine_has_them() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let rows = [
        (
            engine::ENABLED_VAR,
            "`true`".to_owned(),
            "`true`, `false`, `1` or `0`".to_owned(),
        ),
        (
            engine::THRESHOLD_VAR,
            format!("`{}`", engine::DEFAULT_THRESHOLD_BYTES),
            format!(
                "{} to {} bytes",
                engine::MIN_THRESHOLD_BYTES,
                engine::MAX_THRESHOLD_BYTES
            ),
        ),
        (
            engine::BUDGET_VAR,
            format!("`{}`", engine::DEFAULT_BUDGET_BYTES),
            format!(
                "{} to {} bytes",
                engine::MIN_BUDGET_BYTES,
                engine::MAX_BUDGET_BYTES
            ),
        ),
    ];
    for (variable, default, accepted) in rows {
        let row = format!("| `{variable}` | {default} | {accepted} |");
        assert!(readme.contains(&row), "README.md lacks the row: {row}");
    }
    assert!(engine::DEFAULT_ENABLED.is_on());
}

#[test]
fn the_readme_tells_the_exit_codes_as_the_verdict_has_them() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    for (code, words) in [
        (
            spill_verdict::exit::ACCEPTED,
            "the shipped default is accepted",
        ),
        (spill_verdict::exit::INTERNAL, "internal error"),
        (spill_verdict::exit::USAGE, "usage or invalid input"),
        (spill_verdict::exit::REJECTED, "the default must change"),
        (spill_verdict::exit::NOT_PROVEN, "not proven"),
        (spill_verdict::exit::INCOMPLETE, "incomplete"),
        (spill_verdict::exit::LEAK, "leak found"),
    ] {
        let row = format!("| {code} | {words}");
        assert!(readme.contains(&row), "README.md lacks the row: {row}");
    }
}

#[test]
fn the_image_is_built_with_the_rust_of_the_workspace() {
    let read = |name: &str| fs::read_to_string(repository().join(name)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, version) = manifest.split_once("rust-version = \"").unwrap();
    let version = version.split('"').next().unwrap();
    let image = format!("FROM rust:{version}-");
    assert!(
        read("Dockerfile").contains(&image),
        "Dockerfile lacks {image}"
    );
    for name in ["target", "reports"] {
        let ignored = read(".dockerignore");
        assert!(
            ignored.lines().any(|line| line == name),
            "{name} would go into the image"
        );
    }
}

/// Links of the documents that point into the repository lead somewhere.
#[test]
fn documents_point_at_what_is_there() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "docs/ci.md",
        "docs/containers.md",
        "docs/embedding.md",
        "scenarios/README.md",
        "docs/replay.md",
        "docs/scenarios.md",
    ] {
        let path = repository().join(document);
        let text = fs::read_to_string(&path).unwrap();
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if target.starts_with("http") || target.starts_with('#') {
                continue;
            }
            let file = target.split('#').next().unwrap();
            assert!(
                path.parent().unwrap().join(file).exists(),
                "{document} links to {target}"
            );
        }
    }
}
