//! What happens in folders, told by the kernel.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask};

/// Hears what appears in a run's folders.
///
/// It goes on hearing when they serve another run: each new watch on a folder has the kernel walk the names that
/// were ever looked up there, and every run leaves some.
#[derive(Debug)]
pub(crate) struct FolderEvents {
    inotify: Inotify,
    /// Which folder an event's watch stands for.
    places: Vec<(WatchDescriptor, &'static str)>,
}

impl FolderEvents {
    /// Hears nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            inotify: Inotify::init()?,
            places: Vec::new(),
        })
    }

    /// Hears from now on in `places` below `root`, always the same one, and nowhere else.
    pub(crate) fn follow(&mut self, root: &Path, places: &[&'static str]) -> io::Result<()> {
        let mut watches = self.inotify.watches();
        for (watch, _) in self
            .places
            .extract_if(.., |(_, place)| !places.contains(place))
        {
            watches.remove(watch)?;
        }
        let mask = WatchMask::CREATE | WatchMask::MODIFY | WatchMask::MOVED_TO;
        for place in places {
            if self.places.iter().all(|(_, followed)| followed != place) {
                self.places
                    .push((watches.add(root.join(place), mask)?, place));
            }
        }
        self.heard().map(drop)
    }

    /// Forgets where events come from, as a watch that went wrong would.
    #[cfg(test)]
    pub(crate) fn go_deaf(&mut self) {
        self.places.clear();
    }

    /// What happened directly below the folders since it was last asked.
    pub(crate) fn heard(&mut self) -> io::Result<Heard> {
        let mut heard = Heard::default();
        let mut buffer = [0; 4096];
        loop {
            let events = match self.inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(heard),
                Err(error) => return Err(error),
            };
            let mut any = false;
            for event in events {
                any = true;
                heard.overflowed |= event.mask.contains(EventMask::Q_OVERFLOW);
                let place = self.places.iter().find(|(watch, _)| *watch == event.wd);
                if let (Some((_, place)), Some(name)) = (place, event.name) {
                    heard.changed.insert((*place, PathBuf::from(name)));
                }
            }
            if !any {
                return Ok(heard);
            }
        }
    }
}

/// What was heard.
#[derive(Default)]
pub(crate) struct Heard {
    /// What was created or changed, gone or not.
    pub(crate) changed: BTreeSet<(&'static str, PathBuf)>,
    /// Whether more happened than the kernel keeps until it is asked.
    pub(crate) overflowed: bool,
}
