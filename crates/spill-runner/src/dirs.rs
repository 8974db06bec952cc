//! The folders of runs.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use spill_scenario::{OwnFolder, OwnPlace};

use crate::folder_events::FolderEvents;

/// The subject's folders by the name that findings use.
pub(crate) const PLACES: [&str; 4] = ["home", "tmp", "out", "work"];

/// The declared state folder, by the name that findings use.
pub(crate) const STATE: &str = "state";

/// The name that findings use for one of a subject's folders.
pub(crate) fn folder_name(folder: OwnFolder) -> &'static str {
    match folder {
        OwnFolder::Home => "home",
        OwnFolder::Work => "work",
        OwnFolder::Tmp => "tmp",
        OwnFolder::Output => "out",
    }
}

const HARNESS: &str = "harness";
/// What control files are links to.
const CONTROL_SOURCE: &str = "control";

/// The folders of one run. Those of the subject start empty and are watched and searched.
#[derive(Debug)]
pub(crate) struct RunDirs {
    root: PathBuf,
    /// Kind and permissions of the subject's folders as they were made.
    made: Vec<u32>,
}

impl RunDirs {
    pub(crate) fn create(root: PathBuf) -> io::Result<Self> {
        fs::create_dir(&root)?;
        let mut dirs = Self {
            root,
            made: Vec::new(),
        };
        for place in PLACES.iter().chain(&[STATE, HARNESS]) {
            fs::create_dir(dirs.place(place))?;
        }
        // A store keeps results only where nobody else can read them.
        fs::set_permissions(dirs.place(STATE), fs::Permissions::from_mode(0o700))?;
        dirs.made = dirs.modes()?;
        Ok(dirs)
    }

    /// The same folders for the next run, when this one left nothing in them.
    fn emptied(self) -> Option<Self> {
        self.is_as_made().unwrap_or(false).then_some(self)
    }

    fn is_as_made(&self) -> io::Result<bool> {
        for place in PLACES.iter().chain(&[STATE]) {
            if fs::read_dir(self.place(place))?.next().is_some() {
                return Ok(false);
            }
        }
        Ok(self.modes()? == self.made)
    }

    fn modes(&self) -> io::Result<Vec<u32>> {
        let places = PLACES.iter().chain(&[STATE]);
        let modes = places.map(|place| Ok(fs::symlink_metadata(self.place(place))?.mode()));
        modes.collect()
    }

    /// What all of them are below; every process of the run has it in its environment.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where a place of the subject's own stands.
    pub(crate) fn own(&self, own: &OwnPlace) -> PathBuf {
        self.place(folder_name(own.folder)).join(&own.path)
    }

    /// Writes a file of the harness's own, over that of the run before; returns where it stands.
    ///
    /// Shortened only when it is written: some file systems send a file that was emptied and written anew to the
    /// disk at once.
    pub(crate) fn write_harness_file(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.root.join(HARNESS).join(name);
        let mut open = fs::OpenOptions::new();
        let mut file = open.write(true).create(true).truncate(false).open(&path)?;
        file.write_all(text.as_bytes())?;
        file.set_len(text.len() as u64)?;
        Ok(path)
    }

    /// Puts a file that is named `control` and holds it into each of `places`: of a name that no subject knows,
    /// since what stands under it is not searched for content.
    pub(crate) fn plant_control(&self, places: &[&str], control: &str) -> io::Result<()> {
        let source = self.write_harness_file(CONTROL_SOURCE, control)?;
        for place in places {
            let planted = self.place(place).join(control);
            if fs::hard_link(&source, &planted).is_err() {
                // Some file systems have no links.
                fs::write(planted, control)?;
            }
        }
        Ok(())
    }

    /// Takes these files away again.
    pub(crate) fn remove_control(&self, places: &[&str], control: &str) {
        for place in places {
            // What is left there keeps the folders from serving again.
            drop(fs::remove_file(self.place(place).join(control)));
        }
    }
}

impl Drop for RunDirs {
    fn drop(&mut self) {
        // What cannot be removed goes with the acceptance's temporary folder.
        drop(fs::remove_dir_all(&self.root));
    }
}

/// The folders of the runs that go one after the other.
///
/// Those that a run left empty serve the next one: making and removing a dozen entries a run is a tenth
/// of what a small run costs, since file systems look for inodes beside those just freed.
#[derive(Debug)]
pub(crate) struct Rooms {
    stem: PathBuf,
    root: PathBuf,
    made: u32,
    spare: Option<(RunDirs, FolderEvents)>,
}

impl Rooms {
    /// Folders at `stem`, with a number behind it.
    pub(crate) fn new(stem: PathBuf) -> Self {
        Self {
            root: stem.clone(),
            stem,
            made: 0,
            spare: None,
        }
    }

    /// Where the last ones that were taken stand; others may be made beside it, under longer names.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Empty folders, and what hears in them.
    pub(crate) fn take(&mut self) -> io::Result<(RunDirs, FolderEvents)> {
        if let Some(spare) = self.spare.take() {
            return Ok(spare);
        }
        self.made += 1;
        let mut root = self.stem.clone().into_os_string();
        root.push(format!("-{}", self.made));
        self.root = root.into();
        Ok((RunDirs::create(self.root.clone())?, FolderEvents::new()?))
    }

    /// Takes folders back when the run is over, and what heard the control token in each of them; those in which
    /// something is left are removed.
    pub(crate) fn give_back(&mut self, dirs: RunDirs, events: FolderEvents) {
        self.spare = dirs.emptied().map(|dirs| (dirs, events));
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test that cannot set up its folders has failed"
    )]

    use super::*;

    /// Whether folders in which `act` was done serve another run, with nothing left in them.
    fn check(what: &str, act: impl FnOnce(&RunDirs), again: bool) {
        let temp = tempfile::tempdir().unwrap();
        let mut rooms = Rooms::new(temp.path().join("0"));
        let (dirs, events) = rooms.take().unwrap();
        let first = dirs.root.clone();
        let places = ["home", STATE];
        dirs.plant_control(&places, "control-1").unwrap();
        act(&dirs);
        dirs.remove_control(&places, "control-1");
        rooms.give_back(dirs, events);
        let (next, _) = rooms.take().unwrap();
        assert_eq!(next.root == first, again, "{what}");
        assert_eq!(first.exists(), again, "{what}");
        for place in PLACES.iter().chain(&[STATE]) {
            let left = fs::read_dir(next.place(place)).unwrap().count();
            assert_eq!(left, 0, "{what}: {place}");
        }
        let state = fs::metadata(next.place(STATE)).unwrap();
        assert_eq!(state.mode() & 0o777, 0o700, "{what}");
        drop((rooms, next));
        let left = fs::read_dir(temp.path()).unwrap().count();
        assert_eq!(left, 0, "{what}");
    }

    #[test]
    fn folders_serve_again_only_as_they_were_made() {
        check("nothing", |_| {}, true);
        let planted = |dirs: &RunDirs| dirs.plant_control(&["home"], "another").unwrap();
        check("a control that was not taken away", planted, false);
        let write = |dirs: &RunDirs| fs::write(dirs.place("out").join("x"), "").unwrap();
        check("a file", write, false);
        let below = |dirs: &RunDirs| fs::create_dir(dirs.place(STATE).join("x")).unwrap();
        check("a folder", below, false);
        let mode = |dirs: &RunDirs| {
            fs::set_permissions(dirs.place("home"), fs::Permissions::from_mode(0o500)).unwrap();
        };
        check("another mode", mode, false);
        let link = |dirs: &RunDirs| {
            fs::remove_dir(dirs.place("tmp")).unwrap();
            std::os::unix::fs::symlink(dirs.place("work"), dirs.place("tmp")).unwrap();
        };
        check("a link", link, false);
        let gone = |dirs: &RunDirs| fs::remove_dir(dirs.place("work")).unwrap();
        check("a folder that is gone", gone, false);
    }
}
