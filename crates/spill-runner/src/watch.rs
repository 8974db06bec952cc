//! What a subject wrote: watched while it runs, searched when it has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use spill_record::StateFile;
use spill_scenario::OwnPlace;
use tokio::sync::watch;

use crate::dirs::{PLACES, RunDirs, STATE, folder_name};
use crate::folder_events::{FolderEvents, Heard};
use crate::launcher::TEMP_WAY_OUT;
use crate::leaks::Needles;
use crate::log::Log;

/// Which checks stand behind a record's leak figures.
pub(crate) const LEAK_CHECK: &str = "inotify+search";
/// The same of a subject that has no step result to compare.
pub(crate) const LEAK_CHECK_ALONE: &str = "inotify+search, no step result to compare";
/// The same where the kernel also kept the subject from writing anywhere but in its declared folders.
pub(crate) const CONFINED_LEAK_CHECK: &str = "landlock+inotify+search";

/// Standard error as a place of a finding.
const STANDARD_ERROR: &str = "standard error";
/// Files are searched in pieces of this size, each with the end of the one before.
const PIECE_BYTES: usize = 16 << 20;

/// Whether the configuration declares the state folder: what it keeps there is then listed, and
/// neither counted as written nor searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Declared,
    Undeclared,
}

impl State {
    /// The folders in which nothing may appear.
    fn forbidden(self) -> Vec<&'static str> {
        let mut places = PLACES.to_vec();
        match self {
            Self::Declared => {}
            Self::Undeclared => places.push(STATE),
        }
        places
    }
}

/// What of a subject's folders is its own affair.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Files that the harness wrote for it, with their content.
    pub(crate) written: BTreeMap<(&'static str, PathBuf), String>,
    /// Where it may keep what it likes.
    pub(crate) kept: Vec<OwnPlace>,
}

impl Own {
    /// Whether `relative` below `place` is the subject's to keep.
    fn keeps(&self, place: &str, relative: &Path) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|own| folder_name(own.folder) == place && covers(own, relative))
    }

    /// Whether what was made there is on the way to something that it keeps.
    fn leads_to_kept(&self, place: &str, relative: &Path) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|own| {
            folder_name(own.folder) == place && Path::new(&own.path).starts_with(relative)
        })
    }

    /// Whether a file is as the harness wrote it.
    fn is_untouched(&self, place: &'static str, relative: &Path, path: &Path) -> io::Result<bool> {
        match self.written.get(&(place, relative.to_owned())) {
            Some(content) => {
                let is_as_long = fs::symlink_metadata(path)?.len() == content.len() as u64;
                Ok(is_as_long && fs::read(path)? == content.as_bytes())
            }
            None => Ok(false),
        }
    }
}

/// Whether `relative` is what a place names or stands below it; a place may end in `*`.
fn covers(own: &OwnPlace, relative: &Path) -> bool {
    match own.path.strip_suffix('*') {
        Some(start) => relative.to_string_lossy().starts_with(start),
        None => relative.starts_with(&own.path),
    }
}

/// Watches the subject's folders from before its start.
pub(crate) struct Watch {
    events: FolderEvents,
    state: State,
    own: Own,
    stop: watch::Receiver<bool>,
}

/// What a run wrote and leaked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Traces {
    pub(crate) files_written: u64,
    /// Files with content that the subject kept where it may; `None` when it may nowhere.
    pub(crate) kept_files: Option<u64>,
    pub(crate) findings: Vec<String>,
    pub(crate) state_files: Vec<StateFile>,
}

/// The search cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error("the folders of the run could not be watched or searched: {0}{way_out}", way_out = way_out(.0))]
    Io(#[from] io::Error),
    #[error("the run's folder {place} is no folder any more: the subject replaced it")]
    Replaced { place: &'static str },
    #[error(
        "the control token planted in {places} was not found (a folder that the subject removes and makes anew \
         is not watched)"
    )]
    ControlMissed { places: String },
    #[error(
        "more was changed in the folders of the run than the kernel tells of (it keeps as many changes as \
         fs.inotify.max_queued_events says; raise it)"
    )]
    Overflowed,
    #[error("the search was told to stop")]
    Stopped,
}

/// What helps where there is no room for a control.
fn way_out(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(" ({TEMP_WAY_OUT})"),
        _ => String::new(),
    }
}

impl Watch {
    /// Watches folders that serve one run; searching them ends early when `stop` turns true.
    pub(crate) fn start(
        dirs: &RunDirs,
        state: State,
        own: Own,
        stop: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        Self::start_with(FolderEvents::new()?, dirs, state, own, stop)
    }

    /// Watches folders with what hears in them already, if anything does.
    pub(crate) fn start_with(
        mut events: FolderEvents,
        dirs: &RunDirs,
        state: State,
        own: Own,
        stop: watch::Receiver<bool>,
    ) -> io::Result<Self> {
        events.follow(dirs.root(), &state.forbidden())?;
        Ok(Self {
            events,
            state,
            own,
            stop,
        })
    }

    /// Ends the watch: counts what was written, searches it and the log for content.
    ///
    /// A control token is planted in each place first, as one was in the log; the search must find exactly
    /// those. Returns what heard it too, for the next run in these folders. Where more was changed than the kernel
    /// tells of, files that are gone may be missing from the count.
    pub(crate) fn finish(
        mut self,
        dirs: &RunDirs,
        log: &Log,
        needles: &Needles,
        control: &str,
    ) -> Result<(Traces, FolderEvents), WatchError> {
        let forbidden = self.state.forbidden();
        for place in forbidden.iter().copied() {
            // A link would lead the search, and the control, elsewhere.
            if !fs::symlink_metadata(dirs.place(place)).is_ok_and(|found| found.is_dir()) {
                return Err(WatchError::Replaced { place });
            }
        }
        // That leaves room for what tells of the control.
        let Heard {
            changed: mut seen,
            overflowed,
        } = self.events.heard()?;
        dirs.plant_control(&forbidden, control)?;
        seen.extend(self.events.heard()?.changed);
        seen.retain(|(place, name)| {
            let is_own = self.own.keeps(place, name) || self.own.leads_to_kept(place, name);
            name == Path::new(control) || !is_own
        });
        let mut kept = 0;
        let mut controls = BTreeSet::new();
        let mut findings = Vec::new();
        for place in forbidden.iter().copied() {
            for path in files_below(&dirs.place(place))? {
                if *self.stop.borrow() {
                    return Err(WatchError::Stopped);
                }
                let relative = path
                    .strip_prefix(dirs.place(place))
                    .unwrap_or(&path)
                    .to_owned();
                if relative == Path::new(control) {
                    if contains(&fs::read(&path)?, control) && seen.remove(&(place, relative)) {
                        controls.insert(place);
                    }
                    continue;
                }
                let name = relative.to_string_lossy().into_owned();
                let found = needles
                    .find(name.as_bytes())
                    .or(search_file(&path, needles, &self.stop)?);
                if self.own.keeps(place, &relative) {
                    kept += u64::from(found.is_some());
                    continue;
                }
                if let Some(what) = found {
                    findings.push(format!("{what} in a file below {place}"));
                }
                if !self.own.is_untouched(place, &relative, &path)? {
                    seen.insert((place, relative));
                }
            }
        }
        dirs.remove_control(&forbidden, control);
        if log.has_control() {
            controls.insert(STANDARD_ERROR);
        }
        if let Some(what) = needles.find(log.text()) {
            findings.push(format!("{what} in {STANDARD_ERROR}"));
        }
        let missed: Vec<&str> = forbidden
            .into_iter()
            .chain([STANDARD_ERROR])
            .filter(|place| !controls.contains(place))
            .collect();
        if !missed.is_empty() {
            return Err(WatchError::ControlMissed {
                places: missed.join(", "),
            });
        }
        if overflowed && seen.is_empty() && findings.is_empty() {
            return Err(WatchError::Overflowed);
        }
        let files_written = u64::try_from(seen.len()).unwrap_or(u64::MAX);
        let state_files = match self.state {
            State::Declared => state_files(&dirs.place(STATE))?,
            State::Undeclared => Vec::new(),
        };
        let traces = Traces {
            files_written,
            kept_files: (!self.own.kept.is_empty()).then_some(kept),
            findings,
            state_files,
        };
        Ok((traces, self.events))
    }
}

/// What a declared state folder holds.
fn state_files(folder: &Path) -> io::Result<Vec<StateFile>> {
    let listed = files_below(folder)?.into_iter().map(|path| {
        let relative = path.strip_prefix(folder).unwrap_or(&path);
        Ok(StateFile {
            path: relative.to_string_lossy().into_owned(),
            bytes: fs::symlink_metadata(&path)?.len(),
        })
    });
    listed.collect()
}

fn contains(bytes: &[u8], control: &str) -> bool {
    memchr::memmem::find(bytes, control.as_bytes()).is_some()
}

/// Everything below `folder` but folders, links not followed, sorted.
fn files_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn search_file(
    path: &Path,
    needles: &Needles,
    stop: &watch::Receiver<bool>,
) -> Result<Option<&'static str>, WatchError> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(None);
    }
    let mut file = fs::File::open(path)?;
    let (mut piece, mut at) = (Vec::new(), 0);
    while let Some(data) = data_from(&file, at)? {
        if *stop.borrow() {
            return Err(WatchError::Stopped);
        }
        if data > at {
            // What stands before a hole and what stands behind it are not in a row.
            piece.clear();
        }
        let kept = piece.len().min(crate::leaks::WINDOW_BYTES * 4);
        piece.drain(..piece.len() - kept);
        let limit = u64::try_from(PIECE_BYTES).expect("a small constant");
        let read = io::Read::read_to_end(&mut io::Read::take(&mut file, limit), &mut piece)?;
        if let Some(what) = needles.find(&piece) {
            return Ok(Some(what));
        }
        if read < PIECE_BYTES {
            return Ok(None);
        }
        at = data + limit;
    }
    Ok(None)
}

/// Moves to the first byte from `at` on that is not in a hole, and says where it is: a file can be given any
/// length without holding anything. `None` when there is none. Where the file system cannot tell, all is data.
fn data_from(file: &fs::File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(_) => Ok(Some(rustix::fs::seek(file, SeekFrom::Start(at))?)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test that cannot set up its folders has failed"
    )]

    use spill_scenario::OwnFolder;

    use super::*;

    const CONTENT: &str =
        "the quick brown fox jumps over the lazy dog, twice, and then rests under the old oak tree";
    const CONTROL: &str = "control-0123456789abcdef";

    /// Nobody tells it to stop.
    fn going_on() -> watch::Receiver<bool> {
        watch::channel(false).1
    }

    fn check(act: impl FnOnce(&RunDirs), log: &str, files: u64, findings: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let watch = Watch::start(&dirs, State::Undeclared, Own::default(), going_on()).unwrap();
        act(&dirs);
        let needles = Needles::new([CONTENT]);
        let (traces, _) = watch
            .finish(&dirs, &Log::of(log), &needles, CONTROL)
            .unwrap();
        assert_eq!(traces.files_written, files);
        assert_eq!(traces.findings, findings);
    }

    #[test]
    fn a_clean_run_wrote_nothing() {
        check(|_| {}, "a log line", 0, &[]);
    }

    #[test]
    fn a_file_is_counted_and_searched() {
        let write = |dirs: &RunDirs| fs::write(dirs.place("out").join("x"), CONTENT).unwrap();
        check(write, "", 1, &["64 bytes of a result in a file below out"]);
    }

    #[test]
    fn a_file_that_is_gone_is_counted() {
        let write_and_remove = |dirs: &RunDirs| {
            fs::write(dirs.place("tmp").join("x"), "y").unwrap();
            fs::remove_file(dirs.place("tmp").join("x")).unwrap();
        };
        check(write_and_remove, "", 1, &[]);
    }

    #[test]
    fn a_file_of_any_length_is_searched_where_it_holds_something() {
        let sparse = |text: &'static str| {
            move |dirs: &RunDirs| {
                let mut file = fs::File::create(dirs.place("out").join("x")).unwrap();
                file.set_len(1 << 40).unwrap();
                io::Seek::seek(&mut file, io::SeekFrom::End(-5_000)).unwrap();
                io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            }
        };
        check(
            sparse(CONTENT),
            "",
            1,
            &["64 bytes of a result in a file below out"],
        );
        check(sparse("something else"), "", 1, &[]);
    }

    #[test]
    fn no_name_keeps_a_file_from_being_searched() {
        for name in ["spillgate-control", "control", "control-0", "harness"] {
            let write = |dirs: &RunDirs| fs::write(dirs.place("home").join(name), CONTENT).unwrap();
            check(write, "", 1, &["64 bytes of a result in a file below home"]);
        }
    }

    #[test]
    fn content_across_two_pieces_is_found() {
        let write = |dirs: &RunDirs| {
            let text = ".".repeat(PIECE_BYTES - 40) + CONTENT;
            fs::write(dirs.place("out").join("x"), text).unwrap();
        };
        check(write, "", 1, &["64 bytes of a result in a file below out"]);
    }

    #[test]
    fn a_file_deep_below_is_searched() {
        let write = |dirs: &RunDirs| {
            fs::create_dir_all(dirs.place("home").join("a/b")).unwrap();
            fs::write(dirs.place("home").join("a/b/c"), CONTENT).unwrap();
        };
        // The folder that appeared and the file in it.
        check(write, "", 2, &["64 bytes of a result in a file below home"]);
    }

    #[test]
    fn a_log_line_with_content_is_found() {
        check(
            |_| {},
            &format!("DEBUG got {CONTENT}"),
            0,
            &["64 bytes of a result in standard error"],
        );
    }

    #[test]
    fn content_in_a_file_name_is_found() {
        let write =
            |dirs: &RunDirs| fs::write(dirs.place("work").join(&CONTENT[..80]), "").unwrap();
        check(write, "", 1, &["64 bytes of a result in a file below work"]);
    }

    #[test]
    fn a_declared_state_folder_is_listed_and_an_undeclared_one_is_searched() {
        let run = |state| {
            let root = tempfile::tempdir().unwrap();
            let dirs = RunDirs::create(root.path().join("run")).unwrap();
            let watch = Watch::start(&dirs, state, Own::default(), going_on()).unwrap();
            fs::create_dir(dirs.place(STATE).join("s")).unwrap();
            fs::write(dirs.place(STATE).join("s/1"), CONTENT).unwrap();
            let needles = Needles::new([CONTENT]);
            watch
                .finish(&dirs, &Log::of(""), &needles, CONTROL)
                .unwrap()
                .0
        };
        let kept = run(State::Declared);
        assert_eq!((kept.files_written, kept.findings.len()), (0, 0));
        let file = StateFile {
            path: "s/1".to_owned(),
            bytes: CONTENT.len() as u64,
        };
        assert_eq!(kept.state_files, [file]);

        let leaked = run(State::Undeclared);
        assert_eq!(leaked.files_written, 2);
        assert_eq!(
            leaked.findings,
            ["64 bytes of a result in a file below state"]
        );
        assert_eq!(leaked.state_files, []);
    }

    #[test]
    fn a_search_that_is_told_to_stop_says_nothing() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let (told, stop) = watch::channel(false);
        let watch = Watch::start(&dirs, State::Undeclared, Own::default(), stop).unwrap();
        fs::write(dirs.place("out").join("x"), CONTENT).unwrap();
        told.send_replace(true);
        let finished = watch.finish(&dirs, &Log::of(""), &Needles::new([CONTENT]), CONTROL);
        assert!(matches!(finished, Err(WatchError::Stopped)));
    }

    #[test]
    fn folders_that_serve_again_are_heard_again_and_from_then_on() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let needles = Needles::new([CONTENT]);
        let mut events = FolderEvents::new().unwrap();
        let mut run = |state, file: Option<(&str, &str)>| {
            let before = dirs.place("out").join("before");
            fs::write(&before, "of the harness").unwrap();
            fs::remove_file(before).unwrap();
            let used = std::mem::replace(&mut events, FolderEvents::new().unwrap());
            let watch = Watch::start_with(used, &dirs, state, Own::default(), going_on()).unwrap();
            if let Some((place, name)) = file {
                fs::write(dirs.place(place).join(name), CONTENT).unwrap();
                fs::remove_file(dirs.place(place).join(name)).unwrap();
            }
            let (traces, next) = watch
                .finish(&dirs, &Log::of(""), &needles, CONTROL)
                .unwrap();
            events = next;
            traces.files_written
        };
        let state = |state| move |file| (state, Some((STATE, file)));
        let (declared, undeclared) = (state(State::Declared), state(State::Undeclared));
        for ((state, file), files) in [
            ((State::Undeclared, Some(("home", "a"))), 1),
            ((State::Undeclared, None), 0),
            ((State::Undeclared, Some(("home", "a"))), 1),
            (declared("b"), 0),
            (undeclared("b"), 1),
            (declared("b"), 0),
            ((State::Declared, Some(("work", "c"))), 1),
            (undeclared("b"), 1),
        ] {
            assert_eq!(run(state, file), files, "{state:?} {file:?}");
        }
    }

    #[test]
    fn a_folder_that_was_replaced_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let check = |act: fn(&Path, &Path)| {
            let dirs = RunDirs::create(root.path().join("run")).unwrap();
            let watch = Watch::start(&dirs, State::Undeclared, Own::default(), going_on()).unwrap();
            let (out, elsewhere) = (dirs.place("out"), dirs.place("work"));
            fs::remove_dir(&out).unwrap();
            act(&out, &elsewhere);
            let finished = watch.finish(&dirs, &Log::of(""), &Needles::new([CONTENT]), CONTROL);
            assert!(matches!(
                finished,
                Err(WatchError::Replaced { place: "out" })
            ));
            assert!(!elsewhere.join(CONTROL).exists());
        };
        check(|out, elsewhere| std::os::unix::fs::symlink(elsewhere, out).unwrap());
        check(|out, _| fs::write(out, "").unwrap());
        check(|_, _| {});
    }

    #[test]
    fn a_folder_that_was_made_anew_is_not_heard_and_the_search_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let watch = Watch::start(&dirs, State::Undeclared, Own::default(), going_on()).unwrap();
        fs::remove_dir(dirs.place("out")).unwrap();
        fs::create_dir(dirs.place("out")).unwrap();
        let finished = watch.finish(&dirs, &Log::of(""), &Needles::new([CONTENT]), CONTROL);
        assert!(matches!(
            finished,
            Err(WatchError::ControlMissed { places }) if places == "out"
        ));
    }

    #[test]
    fn what_a_subject_may_keep_is_searched_and_counted_apart() {
        let place = |folder, path: &str| OwnPlace {
            folder,
            path: path.to_owned(),
        };
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        fs::write(dirs.place("home").join("settings"), "as written").unwrap();
        fs::write(dirs.place("home").join("changed"), "as written").unwrap();
        let written = ["settings", "changed"]
            .map(|name| (("home", PathBuf::from(name)), "as written".to_owned()));
        let own = Own {
            written: written.into(),
            kept: vec![
                place(OwnFolder::Home, ".local/share/agent"),
                place(OwnFolder::Tmp, ""),
                place(OwnFolder::Home, ".agent.json*"),
            ],
        };
        let watch = Watch::start(&dirs, State::Undeclared, own, going_on()).unwrap();
        let write = |folder: &str, path: &str, text: &str| {
            let path = dirs.place(folder).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("home", "changed", "otherwise");
        write("home", ".local/share/agent/a", CONTENT);
        write("home", ".local/share/agent/b", "none");
        write("tmp", "c", CONTENT);
        write("home", ".agent.json.1", "none");
        write("home", ".local/share/other", CONTENT);
        let needles = Needles::new([CONTENT]);
        let (traces, _) = watch
            .finish(&dirs, &Log::of(""), &needles, CONTROL)
            .unwrap();
        assert_eq!(traces.kept_files, Some(2));
        // The changed one and the other one.
        assert_eq!(traces.files_written, 2);
        assert_eq!(
            traces.findings,
            ["64 bytes of a result in a file below home"]
        );
    }

    /// Makes and removes more files than the kernel tells of; `None` where it tells of very many.
    fn flood(folder: &Path) -> Option<u64> {
        let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let kept: u64 = kept.trim().parse().unwrap();
        for number in 0..=(kept < 100_000).then_some(kept)? {
            let path = folder.join(number.to_string());
            fs::write(&path, "").unwrap();
            fs::remove_file(path).unwrap();
        }
        Some(kept)
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "what a test did not try is said")]
    fn more_changes_than_the_kernel_tells_of_are_no_way_out() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let finish = |own| {
            let watch = Watch::start(&dirs, State::Undeclared, own, going_on()).unwrap();
            let kept = flood(&dirs.place("home"))?;
            let needles = Needles::new([CONTENT]);
            Some((watch.finish(&dirs, &Log::of(""), &needles, CONTROL), kept))
        };
        let Some((written, kept)) = finish(Own::default()) else {
            eprintln!("NOT RUN: the kernel tells of 100,000 changes or more");
            return;
        };
        let written = written.unwrap().0.files_written;
        assert!((1..=kept).contains(&written), "{written} of {kept}");

        let own = Own {
            kept: vec![OwnPlace {
                folder: OwnFolder::Home,
                path: String::new(),
            }],
            ..Own::default()
        };
        let (all_its_own, _) = finish(own).unwrap();
        assert!(matches!(all_its_own, Err(WatchError::Overflowed)));
    }

    #[test]
    fn an_error_for_want_of_room_says_where_to_make_some() {
        let said = |kind: io::ErrorKind| WatchError::from(io::Error::from(kind)).to_string();
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert!(said(kind).contains("TMPDIR"), "{kind}");
        }
        assert!(!said(io::ErrorKind::PermissionDenied).contains("TMPDIR"));
    }

    #[test]
    fn a_log_that_was_not_read_whole_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let watch = Watch::start(&dirs, State::Undeclared, Own::default(), going_on()).unwrap();
        let log = Log::read(b"a line".to_vec());
        let finished = watch.finish(&dirs, &log, &Needles::new([CONTENT]), CONTROL);
        assert!(matches!(
            finished,
            Err(WatchError::ControlMissed { places }) if places == STANDARD_ERROR
        ));
    }

    #[test]
    fn a_search_that_misses_its_control_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let dirs = RunDirs::create(root.path().join("run")).unwrap();
        let mut watch = Watch::start(&dirs, State::Undeclared, Own::default(), going_on()).unwrap();
        watch.events.go_deaf();
        let error = watch
            .finish(&dirs, &Log::of(""), &Needles::new([CONTENT]), CONTROL)
            .unwrap_err();
        assert!(matches!(error, WatchError::ControlMissed { .. }), "{error}");
    }
}
