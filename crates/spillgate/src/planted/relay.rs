//! A sidecar that forwards bytes, sound or with a fault.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;

use crate::out;

/// Bytes that are forwarded at once.
const PIECE_BYTES: usize = 64 << 10;
/// Connections after which `dies` ends: the one that asks whether it listens, and one of the subject's.
const LIFE: usize = 2;

/// Names the folder that `writes` writes in; without it, the working one.
const FOLDER_VAR: &str = "RELAY_FOLDER";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Forwards, and nothing else.
    Sound,
    /// Writes what it forwards on standard error.
    Logs,
    /// Writes what it forwards on standard output.
    Prints,
    /// Writes what it forwards into a file.
    Writes,
    /// Ends in the middle.
    Dies,
}

/// `PORT URL [FAULT]`.
pub(super) fn run(arguments: &[OsString]) -> anyhow::Result<u8> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let (port, url, fault) = match words[..] {
        [port, url] => (port, url, "sound"),
        [port, url, fault] => (port, url, fault),
        _ => anyhow::bail!("write PORT URL [FAULT]"),
    };
    let fault = match fault {
        "sound" => Fault::Sound,
        "logs" => Fault::Logs,
        "prints" => Fault::Prints,
        "writes" => Fault::Writes,
        "dies" => Fault::Dies,
        "deaf" => loop {
            std::thread::park();
        },
        "ends" => return Ok(9),
        other => anyhow::bail!("there is no relay {other:?}"),
    };
    let upstream = url
        .strip_prefix("http://")
        .context("the URL is no http://")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    let count = AtomicUsize::new(0);
    for near in listener.incoming() {
        if fault == Fault::Dies && count.fetch_add(1, Ordering::Relaxed) + 1 == LIFE {
            return Ok(9);
        }
        let near = near?;
        let far = TcpStream::connect(upstream)?;
        let (near_again, far_again) = (near.try_clone()?, far.try_clone()?);
        // A connection that breaks is the subject's to notice.
        std::thread::spawn(move || drop(forward(near, far, Fault::Sound)));
        std::thread::spawn(move || drop(forward(far_again, near_again, fault)));
    }
    Ok(0)
}

/// Forwards until one side closes.
fn forward(mut from: TcpStream, mut to: TcpStream, fault: Fault) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = from.read(&mut piece)?;
        if read == 0 {
            return to.shutdown(Shutdown::Write);
        }
        to.write_all(&piece[..read])?;
        let text = String::from_utf8_lossy(&piece[..read]);
        match fault {
            Fault::Sound | Fault::Dies => {}
            Fault::Logs => out::note(text),
            Fault::Prints => out::line(text),
            Fault::Writes => {
                let mut file = fs::OpenOptions::new();
                let folder = env::var_os(FOLDER_VAR).map_or_else(PathBuf::new, PathBuf::from);
                let mut file = file
                    .create(true)
                    .append(true)
                    .open(folder.join("relayed.txt"))?;
                file.write_all(&piece[..read])?;
            }
        }
    }
}
