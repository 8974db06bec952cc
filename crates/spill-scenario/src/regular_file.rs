use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a regular file of at most `limit` bytes.
///
/// What is no regular file is refused before it is opened: a pipe could wait for ever, a device
/// could never end. The limit holds for what is read, whatever size the file system states.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let about = std::fs::metadata(path)?;
    if about.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !about.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let problem = format!("larger than the limit of {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test that cannot set up its folder has failed"
    )]

    use super::*;

    #[test]
    fn the_limit_itself_is_read_and_one_byte_more_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(
            read(&path, 4).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn what_never_ends_is_refused() {
        let check = |path: &Path, kind| assert_eq!(read(path, 5).unwrap_err().kind(), kind);
        check(Path::new("/dev/zero"), io::ErrorKind::InvalidInput);
        check(Path::new("/dev/null"), io::ErrorKind::InvalidInput);
        check(Path::new("/"), io::ErrorKind::IsADirectory);
        check(Path::new("/nowhere"), io::ErrorKind::NotFound);
    }
}
