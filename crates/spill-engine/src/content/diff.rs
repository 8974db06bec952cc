//! Unified diffs: the files with their hunks and where each stands.

use std::fmt::Write as _;

use super::Place;
use super::rows::lines;
use super::sheet::{Sheet, clip, marker, marker_bytes};

/// The longest path shown.
const PATH_BYTES: usize = 160;

struct File {
    path: String,
    start: usize,
    end: usize,
    added: u64,
    removed: u64,
    hunks: Vec<Hunk>,
}

struct Hunk {
    start: usize,
    end: usize,
    line: u64,
    range: String,
    /// Lines that the hunk still holds, old and new: inside, `---` and `+++` are content.
    left: (u64, u64),
}

pub(super) fn preview(content: &[u8], cap: usize) -> Option<Sheet> {
    let files = parse(content);
    if files.is_empty() {
        return None;
    }
    let sum = |count: fn(&File) -> u64| files.iter().map(count).sum::<u64>();
    let first = format!(
        "diff of {} files, +{} -{} lines, {} bytes",
        files.len(),
        sum(|file| file.added),
        sum(|file| file.removed),
        content.len()
    );
    let mut sheet = Sheet::new(&first, cap);
    for file in &files {
        if !write_file(&mut sheet, file, marker_bytes(content.len())) {
            sheet.line(&marker(&(file.start..content.len()), content.len()));
            break;
        }
    }
    Some(sheet)
}

/// One line: the path, its counts, its place, and as many hunks as fit. False when not even the path fits.
fn write_file(sheet: &mut Sheet, file: &File, marked: usize) -> bool {
    let Some(path) = clip(file.path.as_bytes(), PATH_BYTES) else {
        return false;
    };
    let mut line = format!(
        "{path} (+{} -{}) at {}",
        file.added, file.removed, file.start
    );
    let room = sheet.left().saturating_sub(marked + 32);
    if line.len() >= room {
        return false;
    }
    let mut places = vec![place(file.start, file.end, None)];
    for (shown, hunk) in file.hunks.iter().enumerate() {
        let said = format!("; {} at {}", hunk.range, hunk.start);
        if line.len() + said.len() >= room {
            write!(line, "; {} hunks more", file.hunks.len() - shown)
                .expect("writing to a String cannot fail");
            break;
        }
        line.push_str(&said);
        places.push(place(hunk.start, hunk.end, Some(hunk.line)));
    }
    let fits = sheet.line(&line);
    if fits {
        sheet.places.append(&mut places);
    }
    fits
}

fn place(start: usize, end: usize, line: Option<u64>) -> Place {
    Place {
        offset: start as u64,
        length: (end - start) as u64,
        line,
    }
}

fn parse(content: &[u8]) -> Vec<File> {
    let mut parser = Parser::default();
    for (number, range) in (1..).zip(lines(content)) {
        parser.line(number, range.start, range.end, &content[range]);
    }
    parser
        .files
        .retain(|file| !file.hunks.is_empty() || file.path_is_sure());
    parser.files
}

impl File {
    fn path_is_sure(&self) -> bool {
        !self.path.is_empty()
    }
}

#[derive(Default)]
struct Parser {
    files: Vec<File>,
    /// The file was begun by a `diff` line, so `---` belongs to it.
    headed: bool,
}

impl Parser {
    fn line(&mut self, number: u64, start: usize, end: usize, line: &[u8]) {
        if self.inside_hunk(end, line) {
            return;
        }
        if let Some(names) = line.strip_prefix(b"diff ") {
            self.begin(start, &names_of(names));
            self.headed = true;
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            if !self.headed {
                self.begin(start, &path_of(name));
            }
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            self.named(&path_of(name));
            self.headed = false;
        } else if let Some(hunk) = hunk(number, start, end, line)
            && let Some(file) = self.files.last_mut()
        {
            self.headed = false;
            file.hunks.push(hunk);
        }
        if let Some(file) = self.files.last_mut() {
            file.end = end;
        }
    }

    /// Takes a line that the current hunk still waits for.
    fn inside_hunk(&mut self, end: usize, line: &[u8]) -> bool {
        let Some(file) = self.files.last_mut() else {
            return false;
        };
        let Some(hunk) = file.hunks.last_mut().filter(|hunk| hunk.left != (0, 0)) else {
            return false;
        };
        match line.first() {
            Some(b'+') => {
                hunk.left.1 = hunk.left.1.saturating_sub(1);
                file.added += 1;
            }
            Some(b'-') => {
                hunk.left.0 = hunk.left.0.saturating_sub(1);
                file.removed += 1;
            }
            Some(b' ' | b'\n' | b'\r') => {
                hunk.left = (hunk.left.0.saturating_sub(1), hunk.left.1.saturating_sub(1));
            }
            Some(b'\\') => {}
            _ => {
                // Not a hunk's line: the counts were wrong.
                hunk.left = (0, 0);
                return false;
            }
        }
        hunk.end = end;
        file.end = end;
        true
    }

    fn begin(&mut self, start: usize, path: &str) {
        self.files.push(File {
            path: path.to_owned(),
            start,
            end: start,
            added: 0,
            removed: 0,
            hunks: Vec::new(),
        });
    }

    /// The new name counts, unless the file was deleted.
    fn named(&mut self, path: &str) {
        if let Some(file) = self.files.last_mut()
            && path != "/dev/null"
            && file.hunks.is_empty()
        {
            path.clone_into(&mut file.path);
        }
    }
}

/// `a/x b/x` of a `diff --git` line: the second name.
fn names_of(names: &[u8]) -> String {
    let names = String::from_utf8_lossy(names.trim_ascii_end());
    let name = names.rfind(" b/").map(|at| &names[at + 3..]);
    let last = || names.rsplit(' ').next().unwrap_or_default();
    name.unwrap_or_else(last).to_owned()
}

/// A name without `a/` or `b/` and without the time behind a tab.
fn path_of(name: &[u8]) -> String {
    let name = name.split(|byte| *byte == b'\t').next().unwrap_or_default();
    let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
    let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
    bare.map(str::to_owned).unwrap_or(name)
}

/// `@@ -a,b +c,d @@`, counts of 1 left out.
fn hunk(number: u64, start: usize, end: usize, line: &[u8]) -> Option<Hunk> {
    let line = str::from_utf8(line.get(..line.len().min(80)).unwrap_or_default())
        .unwrap_or_else(|error| str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default());
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let count = |range: &str| {
        let (first, count) = range.split_once(',').unwrap_or((range, "1"));
        first.parse::<u64>().ok()?;
        count.parse::<u64>().ok()
    };
    Some(Hunk {
        start,
        end,
        line: number,
        left: (count(old)?, count(new)?),
        range: format!("@@ -{ranges} @@"),
    })
}
