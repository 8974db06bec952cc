//! What runner and launcher say to each other on the socket that is the launcher's standard input.
//!
//! The runner sends a request, with the subject's standard output and standard error beside it, and the
//! launcher replies when the subject has ended. Until then the runner may send [`END`], or shut its side
//! down to have the subject killed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::LaunchReport;
use crate::tree_memory::TreeMemory;

/// Asks the subject's process group to end. A request begins otherwise: its head is a JSON object on one line.
pub(super) const END: u8 = b'.';
const LINE_END: u8 = b'\n';

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// The working folder.
    pub(crate) folder: PathBuf,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// The whole environment: the launcher's own is not inherited.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The only folders that may be written in, where they are to be the only ones.
    pub(crate) writable: Option<Vec<PathBuf>>,
    /// How the memory of the whole tree of processes is measured.
    pub(crate) tree_memory: TreeMemory,
}

/// How the memory of the tree is measured, the cgroup's place apart.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Memory {
    Not,
    Sampled,
    Group,
}

/// How many strings follow of each kind, in this order, each with a NUL behind it: no string that a
/// process is given can hold one.
#[derive(Serialize, Deserialize)]
struct Head {
    bytes: usize,
    command: usize,
    env: usize,
    writable: Option<usize>,
    memory: Memory,
}

impl Request {
    /// Its bytes on the socket.
    ///
    /// # Errors
    ///
    /// Fails when a string holds a NUL.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut strings = vec![self.folder.as_os_str()];
        strings.extend(self.command.iter().map(OsString::as_os_str));
        for (name, value) in &self.env {
            strings.extend([name.as_os_str(), value.as_os_str()]);
        }
        let writable = self.writable.iter().flatten();
        strings.extend(writable.map(|folder| folder.as_os_str()));
        let memory = match &self.tree_memory {
            TreeMemory::Not => Memory::Not,
            TreeMemory::Sampled => Memory::Sampled,
            TreeMemory::Group(parent) => {
                strings.push(parent.as_os_str());
                Memory::Group
            }
        };
        if let Some(string) = strings.iter().find(|string| string.as_bytes().contains(&0)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a NUL byte cannot be passed to a process: {string:?}"),
            ));
        }
        let head = Head {
            bytes: strings.iter().map(|string| string.len() + 1).sum(),
            command: self.command.len(),
            env: self.env.len(),
            writable: self.writable.as_ref().map(Vec::len),
            memory,
        };
        let mut bytes = serde_json::to_vec(&head)?;
        bytes.push(LINE_END);
        for string in strings {
            bytes.extend_from_slice(string.as_bytes());
            bytes.push(0);
        }
        Ok(bytes)
    }

    /// Takes a request from the start of `bytes`; `None` while it is not whole.
    ///
    /// # Errors
    ///
    /// Fails when `bytes` do not begin with a request.
    pub(super) fn take(bytes: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let Some(line) = memchr::memchr(LINE_END, bytes) else {
            return Ok(None);
        };
        let head: Head = serde_json::from_slice(&bytes[..line])?;
        let start = line + 1;
        if bytes.len() - start < head.bytes {
            return Ok(None);
        }
        let rest = bytes.split_off(start + head.bytes);
        let all = std::mem::replace(bytes, rest);
        let mut strings = all[start..].split(|byte| *byte == 0);
        let mut next = || match strings.next() {
            Some(string) => Ok(OsString::from_vec(string.to_vec())),
            None => Err(io::Error::other("a request has fewer strings than it says")),
        };
        let folder = next()?.into();
        let command = (0..head.command)
            .map(|_| next())
            .collect::<Result<_, _>>()?;
        let env = (0..head.env).map(|_| Ok((next()?, next()?)));
        let env = env.collect::<io::Result<_>>()?;
        let writable = head.writable.map(|count| {
            let folders = (0..count).map(|_| next().map(PathBuf::from));
            folders.collect::<io::Result<_>>()
        });
        Ok(Some(Self {
            folder,
            command,
            env,
            writable: writable.transpose()?,
            tree_memory: match head.memory {
                Memory::Not => TreeMemory::Not,
                Memory::Sampled => TreeMemory::Sampled,
                Memory::Group => TreeMemory::Group(next()?.into()),
            },
        }))
    }

    /// What is started, for messages.
    pub(super) fn program(&self) -> &OsStr {
        self.command
            .first()
            .map_or(OsStr::new(""), |program| program)
    }
}

/// The launcher's answer, a JSON object on one line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    /// What it saw, or why nothing was started.
    pub(crate) seen: Result<LaunchReport, String>,
    /// Whether it may be sent another request: nothing of this one is left.
    pub(crate) reusable: bool,
}

impl Reply {
    pub(super) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(LINE_END);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(tree_memory: TreeMemory, writable: Option<Vec<PathBuf>>) -> Request {
        Request {
            folder: "/runs/ä b".into(),
            command: vec!["sh".into(), "-c".into(), "a\nb {".into(), "".into()],
            env: vec![
                ("A".into(), OsString::from_vec(vec![0xff, b'=', b'\n'])),
                ("B".into(), "".into()),
            ],
            writable,
            tree_memory,
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_sent_in_whatever_pieces_it_comes() {
        let check = |request: Request| {
            let sent = request.to_bytes().expect("no string holds a NUL");
            let mut bytes = Vec::new();
            for (at, byte) in sent.iter().enumerate() {
                assert_eq!(Request::take(&mut bytes).expect("a part"), None, "{at}");
                bytes.push(*byte);
            }
            bytes.push(END);
            let read = Request::take(&mut bytes).expect("a request");
            assert_eq!(read, Some(request));
            assert_eq!(bytes, [END], "what follows is left");
        };
        check(request(TreeMemory::Not, None));
        check(request(TreeMemory::Sampled, Some(Vec::new())));
        let folders = vec!["/a".into(), "/b".into()];
        check(request(TreeMemory::Group("/g".into()), Some(folders)));
    }

    #[test]
    fn a_string_that_no_process_can_be_given_is_refused() {
        let mut request = request(TreeMemory::Not, None);
        request.env.push(("C".into(), "x\0y".into()));
        let error = request.to_bytes().expect_err("a NUL");
        assert!(error.to_string().contains(r#""x\0y""#), "{error}");
    }

    #[test]
    fn what_is_no_request_is_an_error() {
        for bytes in ["x\n", "{}\n", "\n"] {
            assert!(
                Request::take(&mut bytes.as_bytes().to_vec()).is_err(),
                "{bytes}"
            );
        }
        let short = r#"{"bytes":2,"command":3,"env":0,"writable":null,"memory":"not"}"#;
        let mut bytes = format!("{short}\na\0").into_bytes();
        assert!(Request::take(&mut bytes).is_err());
    }
}
