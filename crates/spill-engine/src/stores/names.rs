//! Sources of names.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gives numbers that names are made of.
pub trait Names: Send + Sync {
    /// The next number. A source for use across processes must not repeat itself nor be guessed.
    ///
    /// # Errors
    /// The source is not available.
    fn draw(&self) -> io::Result<u128>;
}

/// The operating system's entropy.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsNames;

impl Names for OsNames {
    fn draw(&self) -> io::Result<u128> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let flags = rustix::rand::GetRandomFlags::empty();
            match rustix::rand::getrandom(&mut bytes[filled..], flags) {
                Ok(count) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(u128::from_le_bytes(bytes))
    }
}

/// The same names in the same order for the same seed. For harness and tests: whoever knows the seed knows the names.
#[derive(Debug)]
pub struct SeededNames {
    seed: u64,
    drawn: AtomicU64,
}

impl SeededNames {
    /// Starts at the first name of `seed`.
    pub const fn new(seed: u64) -> Self {
        let drawn = AtomicU64::new(0);
        Self { seed, drawn }
    }
}

impl Names for SeededNames {
    fn draw(&self) -> io::Result<u128> {
        let counter = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut input = [0; 16];
        input[..8].copy_from_slice(&self.seed.to_le_bytes());
        input[8..].copy_from_slice(&counter.to_le_bytes());
        Ok(xxhash_rust::xxh3::xxh3_128(&input))
    }
}
