//! How a file is packed, by its first bytes.

/// How many first bytes tell every packing: a block of a tar archive.
pub(crate) const HEAD_BYTES: usize = 512;

/// How a file is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Zstd,
    Gzip,
    Zip,
    /// One that is not read, with its name.
    Unread(&'static str),
}

impl Packing {
    /// The packing of what begins with `head`, its first [`HEAD_BYTES`] or all there are.
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            // The second is a frame that is skipped, with which parallel compressors begin.
            [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Self::Zstd,
            [0x1F, 0x8B, ..] => Self::Gzip,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Self::Zip,
            _ => unread(head).map_or(Self::Plain, Self::Unread),
        }
    }
}

/// The first bytes of what is not read. None of them begins a text: each holds, or is sure to be followed by, bytes that a
/// text has not.
const UNREAD: [(&[u8], &str); 24] = [
    (b"BZh", "bzip2 data"),
    (b"\xFD7zXZ\0", "xz data"),
    (b"\x5D\0\0", "lzma data"),
    (b"LZIP", "lzip data"),
    (b"\x04\x22\x4D\x18", "lz4 data"),
    (b"\x02\x21\x4C\x18", "lz4 data"),
    (b"\xFF\x06\0\0sNaPpY", "snappy data"),
    (b"\x89LZO\0", "lzop data"),
    (b"\x1F\x9D", "compress data (.Z)"),
    (b"\x1F\xA0", "compress data (.Z)"),
    (b"\x1F\x1E", "pack data (.z)"),
    (b"\x78\x01", "zlib data"),
    (b"\x78\x9C", "zlib data"),
    (b"\x78\xDA", "zlib data"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
    (b"Rar!\x1A\x07", "a rar archive"),
    (b"PK\x07\x08", "a part of a split zip archive"),
    (b"MSCF\0", "a cab archive"),
    (b"xar!\0", "a xar archive"),
    (b"!<arch>\n", "an ar archive"),
    (b"070701", "a cpio archive"),
    (b"070702", "a cpio archive"),
    (b"070707", "a cpio archive"),
    (b"\xC7\x71", "a cpio archive"),
];

/// Marks of letters and digits alone, which only data behind them tells from a text.
fn needs_data(mark: &[u8]) -> bool {
    mark.iter().all(u8::is_ascii_graphic)
}

fn unread(head: &[u8]) -> Option<&'static str> {
    if is_tar(head) {
        return Some("a tar archive");
    }
    let (mark, name) = UNREAD.iter().find(|(mark, _)| head.starts_with(mark))?;
    (!needs_data(mark) || !is_text(head)).then_some(name)
}

/// Whether these may be the first bytes of a text in UTF-8, which ends anywhere.
fn is_text(head: &[u8]) -> bool {
    let utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    utf8 && !head.contains(&0)
}

/// Where the header of a tar archive's entry says `ustar`: POSIX's and GNU's.
const TAR_MAGIC: usize = 257;
/// Where it has the sum of its own bytes, in octal digits; the sum takes these eight for blanks.
const TAR_SUM: std::ops::Range<usize> = 148..156;

/// Whether it is a tar archive's first header: one that says so, or, as those of before POSIX do not, whose sum is right.
fn is_tar(head: &[u8]) -> bool {
    let says_so = head
        .get(TAR_MAGIC..)
        .is_some_and(|rest| rest.starts_with(b"ustar"));
    // A text may have the word at that place, and has no NUL before it.
    if says_so && head[..TAR_MAGIC].contains(&0) {
        return true;
    }
    if head.len() < HEAD_BYTES || is_text(head) {
        return false;
    }
    let digits: Vec<u8> = head[TAR_SUM]
        .iter()
        .copied()
        .filter(u8::is_ascii_graphic)
        .collect();
    let said = std::str::from_utf8(&digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 8).ok());
    let blanks = 8 * u64::from(b' ');
    let header = head[..HEAD_BYTES].iter().map(|byte| u64::from(*byte));
    let sum = header.sum::<u64>() + blanks;
    let of_sum = head[TAR_SUM].iter().map(|byte| u64::from(*byte));
    said == Some(sum - of_sum.sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header as the tar programs of before POSIX wrote it.
    fn old_header() -> Vec<u8> {
        let mut header = vec![0; HEAD_BYTES];
        header[..7].copy_from_slice(b"a.jsonl");
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(b"00000000012");
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        let sum = format!("{:06o}\0 ", sum + 8 * 32);
        header[TAR_SUM].copy_from_slice(sum.as_bytes());
        header
    }

    #[track_caller]
    fn check(head: &[u8], packing: Packing) {
        assert_eq!(Packing::of(head), packing);
    }

    #[test]
    fn an_old_tar_archive_is_told_by_its_sum() {
        let mut header = old_header();
        check(&header, Packing::Unread("a tar archive"));
        check(&header[..HEAD_BYTES - 1], Packing::Plain);
        header[0] = b'b';
        check(&header, Packing::Plain);
        check(&[0; HEAD_BYTES], Packing::Plain);
    }

    #[test]
    fn a_text_is_no_packing_whatever_its_words() {
        let word = format!("{{\"{}ustar\"}}", " ".repeat(TAR_MAGIC - 2));
        assert_eq!(word.find("ustar"), Some(TAR_MAGIC));
        check(word.as_bytes(), Packing::Plain);
        check(b"BZh is how bzip2 begins", Packing::Plain);
        check(b"070701", Packing::Plain);
        check("LZIP ü".as_bytes(), Packing::Plain);
        // Cut within a character.
        check(&"LZIP ü".as_bytes()[..6], Packing::Plain);
        check(b"LZIP\x01\xFF", Packing::Unread("lzip data"));
        check(b"BZh91AY&SY\xAC\x0B", Packing::Unread("bzip2 data"));
        check(b"", Packing::Plain);
    }
}
