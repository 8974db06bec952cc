use spill_engine::ContentKind;

use super::{of_kind, previewed};

/// Looks like base64: capital and small letters, and digits.
fn base64(bytes: usize) -> String {
    "iVBORw0KGgoAAAANSUhEUgAA".repeat(bytes / 24 + 1)[..bytes].to_owned()
}

#[track_caller]
fn check_uncut(content: &str, payload: &str) {
    for cap in (100..3_000).step_by(101) {
        let text = previewed(content.as_bytes(), cap).text;
        let parts = (0..payload.len() - 24)
            .step_by(501)
            .map(|at| &payload[at..at + 24]);
        for part in parts {
            assert!(
                !text.contains(part) || text.contains(payload),
                "cap {cap}: {text}"
            );
        }
    }
}

/// No cut falls inside a payload, wherever it stands.
#[test]
fn fault_08_payloads_are_never_cut() {
    let payload = base64(40 << 10);
    let uri = format!("data:image/png;base64,{payload}");
    check_uncut(&uri, &payload);
    check_uncut(&format!("before {uri} after"), &payload);
    check_uncut(&format!("{} {uri}", "word ".repeat(400)), &payload);
    check_uncut(&format!("{uri} {}", "word ".repeat(400)), &payload);
    check_uncut(
        &format!("{{\"data\":\"{payload}\",\"mimeType\":\"image/png\"}}"),
        &payload,
    );
    check_uncut(&format!("[\"{uri}\", \"{uri}\"]"), &payload);
    check_uncut(&format!("a\n{payload}\nb\n{uri}\nc\n"), &payload);
}

#[test]
fn a_payload_is_named() {
    let payload = base64(5_000);
    let uri = format!("data:image/png;base64,{payload}");
    assert_eq!(
        of_kind(&uri, ContentKind::DataUri, 500),
        "data URI, image/png, 5022 bytes, not shown\n"
    );
    let text = of_kind(&format!("see {uri} above"), ContentKind::Text, 500);
    assert!(
        text.ends_with("see [image/png, 5022 bytes encoded] above"),
        "{text}"
    );
    let text = of_kind(
        &format!("see {payload}, {payload} above"),
        ContentKind::Text,
        500,
    );
    assert!(
        text.ends_with("see [base64, 5000 bytes encoded], [base64, 5000 bytes encoded] above"),
        "{text}"
    );
}

#[test]
fn long_words_are_no_payloads() {
    for word in ["x".repeat(5_000), "0123456789abcdef".repeat(300)] {
        let text = of_kind(&word, ContentKind::Text, 10_000);
        assert!(text.ends_with(&word));
    }
}
