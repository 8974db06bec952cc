//! How a file store asks the system: a call that a signal interrupted is made again, a write that took a part goes on. All
//! calls that change the directory, and those that find out what is in it, go through here, so that the tests of this folder
//! can let any one of them fail, and everything stop at any one of them.

use std::fs::File;
use std::io;

use rustix::io::Errno;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Open,
    Make,
    Lock,
    Examine,
    List,
    Read,
    Truncate,
    Write,
    Flush,
    Rename,
    Remove,
}

/// Asks until no signal interrupts.
pub(super) fn ask<T>(what: Ask, mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        let answer = match refused(what) {
            None => call(),
            Some(error) => Err(error),
        };
        match answer {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Writes all of `bytes` at the file's end of what was written.
pub(super) fn write_all(file: &File, bytes: &[u8]) -> io::Result<()> {
    all(bytes, |rest| rustix::io::write(file, rest))
}

/// Writes all of `bytes` from `offset` on.
pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let length = bytes.len();
    all(bytes, |rest| {
        rustix::io::pwrite(file, rest, offset + (length - rest.len()) as u64)
    })
}

fn all(mut bytes: &[u8], mut write: impl FnMut(&[u8]) -> Result<usize, Errno>) -> io::Result<()> {
    while !bytes.is_empty() {
        let most = most_taken(bytes.len());
        match ask(Ask::Write, || write(&bytes[..most]))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => bytes = &bytes[taken..],
        }
    }
    Ok(())
}

#[cfg(not(test))]
const fn refused(_: Ask) -> Option<Errno> {
    None
}

#[cfg(not(test))]
const fn most_taken(bytes: usize) -> usize {
    bytes
}

#[cfg(test)]
pub(super) use plan::{most_taken, refused};

/// What the tests let happen on their own thread.
#[cfg(test)]
pub(super) mod plan {
    use std::cell::RefCell;

    use rustix::io::Errno;

    use super::Ask;

    /// What happens at one ask, counted from 0.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::stores::file) enum How {
        /// It fails once.
        Fails(Errno),
        /// It and every later write fails.
        Full(Errno),
        /// It and every later write takes this many bytes at most.
        Short(usize),
        /// The process ends there: nothing that comes later happens.
        Dies,
    }

    struct Plan {
        at: usize,
        how: How,
        asked: usize,
        met: Option<Ask>,
    }

    thread_local! {
        static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
    }

    /// Runs `work` with the ask numbered `at` going wrong; the ask it was, `None` when there were not so many.
    pub(in crate::stores::file) fn with(at: usize, how: How, work: impl FnOnce()) -> Option<Ask> {
        PLAN.set(Some(Plan {
            at,
            how,
            asked: 0,
            met: None,
        }));
        work();
        PLAN.take().and_then(|plan| plan.met)
    }

    pub(in crate::stores::file) fn refused(what: Ask) -> Option<Errno> {
        PLAN.with_borrow_mut(|plan| {
            let plan = plan.as_mut()?;
            let number = plan.asked;
            plan.asked += 1;
            if number == plan.at {
                plan.met = Some(what);
            }
            match plan.how {
                How::Fails(error) if number == plan.at => Some(error),
                How::Full(error) if number >= plan.at && what == Ask::Write => Some(error),
                How::Dies if number >= plan.at => Some(Errno::IO),
                How::Fails(_) | How::Full(_) | How::Short(_) | How::Dies => None,
            }
        })
    }

    pub(in crate::stores::file) fn most_taken(bytes: usize) -> usize {
        PLAN.with_borrow(|plan| match plan {
            Some(plan) if plan.asked >= plan.at => match plan.how {
                How::Short(most) => bytes.min(most),
                How::Fails(_) | How::Full(_) | How::Dies => bytes,
            },
            Some(_) | None => bytes,
        })
    }
}
