use proptest::collection::vec;
use proptest::prelude::*;
use spill_engine::{ContentKind, detect_content, preview_content};

const KINDS: [ContentKind; 8] = [
    ContentKind::Text,
    ContentKind::Json,
    ContentKind::JsonLines,
    ContentKind::Csv,
    ContentKind::Log,
    ContentKind::Diff,
    ContentKind::Binary,
    ContentKind::DataUri,
];

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "a",
        "\n",
        "\r\n",
        "é",
        "漢",
        "😀",
        "\0",
        "a,b,c\n",
        "{\"a\":[1,2]}",
        "{\"a\":1}\n",
        "[",
        "]",
        "\"",
        "\\",
        "data:image/png;base64,",
        "iVBORw0KGgo9aB",
        "2026-11-30T10:00:00Z ERROR x\n",
        "diff --git a/x b/x\n",
        "--- a\n",
        "+++ b\n",
        "@@ -1,2 +1,2 @@\n",
        "+x\n",
        "-x\n",
        " x\n",
        ",",
    ]);
    prop_oneof![
        vec(any::<u8>(), 0..2_000),
        any::<String>().prop_map(String::into_bytes),
        vec((piece, 1..200_usize), 0..12).prop_map(|runs| {
            runs.iter()
                .flat_map(|(piece, times)| piece.repeat(*times).into_bytes())
                .collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_as_any_kind_stay_under_any_cap(content in contents(), cap in prop_oneof![0..300_usize, 300..5_000_usize]) {
        for kind in KINDS {
            let shown = preview_content(&content, kind, cap);
            prop_assert!(shown.text.len() <= cap, "{kind:?} {}", shown.text.len());
            for place in &shown.places {
                prop_assert!(place.offset + place.length <= content.len() as u64);
            }
            prop_assert_eq!(&preview_content(&content, kind, cap), &shown, "equal input, equal preview");
        }
    }

    #[test]
    fn what_is_marked_and_what_is_shown_is_everything(content in "[ -~é漢\n]{0,3000}", cap in 200..2_000_usize) {
        let shown = preview_content(content.as_bytes(), ContentKind::Text, cap);
        let mut at = 0;
        for place in &shown.places {
            prop_assert!(place.offset >= at);
            at = place.offset + place.length;
        }
        if shown.places.len() == 1 {
            prop_assert!(shown.text.ends_with(&content) || shown.text.contains("not shown]") || at == content.len() as u64);
        }
    }

    #[test]
    fn any_media_type_will_do(content in contents(), media_type in any::<String>()) {
        let _ = detect_content(&content, Some(&media_type));
        let _ = detect_content(&content, None);
    }
}
