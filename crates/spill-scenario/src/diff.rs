use similar::TextDiff;

/// One side of a diff.
#[derive(Clone, Copy)]
pub(crate) struct DiffSide<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

/// Returns the unified diff of a file as `git diff` prints it, three lines of context; a side
/// that does not exist is `/dev/null`. Equal texts give the header line alone.
pub(crate) fn unified_diff(old: Option<DiffSide<'_>>, new: Option<DiffSide<'_>>) -> String {
    let path = |side: Option<DiffSide<'_>>, other: Option<DiffSide<'_>>| {
        side.or(other).map_or("", |side| side.path).to_owned()
    };
    let mut text = format!("diff --git a/{} b/{}\n", path(old, new), path(new, old));
    let name = |side: Option<DiffSide<'_>>, prefix: &str| {
        side.map_or_else(
            || "/dev/null".to_owned(),
            |side| format!("{prefix}/{}", side.path),
        )
    };
    match (old, new) {
        (None, Some(_)) => text.push_str("new file mode 100644\n"),
        (Some(_), None) => text.push_str("deleted file mode 100644\n"),
        (Some(_), Some(_)) | (None, None) => {}
    }
    let content = |side: Option<DiffSide<'_>>| side.map_or(String::new(), |side| side.text.into());
    let (before, after) = (content(old), content(new));
    let diff = TextDiff::from_lines(&before, &after);
    let body = diff
        .unified_diff()
        .context_radius(3)
        .header(&name(old, "a"), &name(new, "b"))
        .to_string();
    text + &body
}
