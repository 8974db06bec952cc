//! What a process frees goes back to the system.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::host;

/// Where glibc reads the settings of its allocator, once, before `main`.
const TUNABLES_VAR: &str = "GLIBC_TUNABLES";
/// Blocks from the first size on have pages of their own, given back as soon as they are freed: the slices
/// that a model reads are among them. What is free at the heap's end goes back from the second on. Unset, both move up with the largest block
/// that was ever freed, to 32 and 64 MiB, and a host that served a load keeps its peak.
const FIXED: &str = "glibc.malloc.mmap_threshold=32768:glibc.malloc.trim_threshold=131072";

/// Replaces this process by one of the same program, arguments and environment whose allocator gives
/// back what is freed. Does nothing where that is so already, or the allocator is not glibc's.
///
/// # Errors
///
/// When the program cannot be started again; the process is then as it was.
pub(crate) fn give_back_what_is_freed() -> io::Result<()> {
    let tunables = env::var_os(TUNABLES_VAR).unwrap_or_default();
    let Some(wanted) = with_fixed(&tunables).filter(|_| cfg!(target_env = "gnu")) else {
        return Ok(());
    };
    Err(Command::new(host::this_program()?)
        .args(env::args_os().skip(1))
        .env(TUNABLES_VAR, wanted)
        .exec())
}

/// The tunables with ours; `None` when they speak of the allocator already.
fn with_fixed(tunables: &OsString) -> Option<OsString> {
    if tunables.to_string_lossy().contains("glibc.malloc.") {
        return None;
    }
    let mut wanted = tunables.clone();
    if !wanted.is_empty() {
        wanted.push(":");
    }
    wanted.push(FIXED);
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::{FIXED, with_fixed};

    #[test]
    fn tunables_are_kept_and_the_allocators_own_are_not_overruled() {
        let check = |given: &str, wanted: Option<String>| {
            let wanted = wanted.map(Into::into);
            assert_eq!(with_fixed(&given.into()), wanted, "{given}");
        };
        check("", Some(FIXED.to_owned()));
        check("glibc.cpu.x=1", Some(format!("glibc.cpu.x=1:{FIXED}")));
        check(FIXED, None);
        check("glibc.malloc.trim_threshold=1", None);
    }
}
