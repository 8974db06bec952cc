//! How much an import may read.

/// Bounds on input. What exceeds one is refused with a problem that names it; nothing is cut silently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one line or one JSON document after decompression: the bound on memory.
    pub record_bytes: u64,
    /// Bytes that one file on disk may grow to when it is decompressed, all its entries together.
    pub decompressed_bytes: u64,
    /// Entries of one archive.
    pub entries: usize,
    /// Compressed streams and archives within each other.
    pub nesting: u32,
    /// Folders within each other.
    pub depth: u32,
}

impl Limits {
    /// 256 MiB a record, 4 GiB a file, 100,000 entries, 3 layers of compression, 64 folders deep.
    pub const DEFAULT: Self = Self {
        record_bytes: 256 << 20,
        decompressed_bytes: 4 << 30,
        entries: 100_000,
        nesting: 3,
        depth: 64,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
