//! A file that a flag names for output: checked before anything is run, written whole.

use std::path::Path;

use spill_record::RunFolder;

/// What the flag `--metrics-file` names.
pub(crate) const METRICS_FILE: &str = "the metrics file";

/// A place for a file.
pub(crate) struct OutputFile<'a> {
    folder: &'a Path,
    name: &'a str,
}

impl<'a> OutputFile<'a> {
    /// The place `path` for `what`, such as "the metrics file". A link, a folder or a device there is refused: the file
    /// would be put in its place, not into it.
    pub(crate) fn at(what: &str, path: &'a Path) -> anyhow::Result<Self> {
        let found = std::fs::symlink_metadata(path);
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(name), true) = (name, found.map_or(true, |found| found.is_file())) else {
            anyhow::bail!(
                "{what} {} would replace something that is no regular file (name another)",
                path.display()
            );
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        anyhow::ensure!(
            folder.is_dir(),
            "the folder of {what} {} is not there (make it, or name another)",
            path.display()
        );
        Ok(Self { folder, name })
    }

    /// Writes it whole: whoever reads it meanwhile reads the old one.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        Ok(RunFolder::write_derived(
            self.folder,
            self.name,
            text.as_bytes(),
        )?)
    }
}
