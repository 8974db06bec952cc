//! Peak memory as kernels tell it: in KiB, but in bytes on Apple's.

/// The unit of `ru_maxrss` on an operating system, as Rust names it.
fn unit_bytes(os: &str) -> u64 {
    match os {
        "macos" | "ios" | "tvos" | "watchos" | "visionos" => 1,
        _ => 1024,
    }
}

/// `ru_maxrss` in bytes on the operating system that this program was built for.
pub(crate) fn peak_rss_bytes(max_rss: i64) -> u64 {
    bytes_on(std::env::consts::OS, max_rss)
}

fn bytes_on(os: &str, max_rss: i64) -> u64 {
    u64::try_from(max_rss)
        .unwrap_or(0)
        .saturating_mul(unit_bytes(os))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of 24.5 MB reads as that on each system, and not as 24,512 MiB on one of them.
    ///
    /// Known fault 83: nix-rust/nix #2331; psf/pyperf PR #173; wildcat-finance/skills #822.
    #[test]
    fn peak_memory_has_the_unit_of_the_system() {
        let check =
            |os: &str, max_rss: i64, bytes: u64| assert_eq!(bytes_on(os, max_rss), bytes, "{os}");
        check("linux", 24_512, 25_100_288);
        check("freebsd", 24_512, 25_100_288);
        check("macos", 25_100_288, 25_100_288);
        check("linux", 0, 0);
        check("linux", -1, 0);
        check("linux", i64::MAX, u64::MAX);
    }

    /// This process's own peak is less than a terabyte: the unit that is used here is the one of this system.
    ///
    /// Known fault 83: nix-rust/nix #2331; psf/pyperf PR #173; wildcat-finance/skills #822.
    #[test]
    fn the_unit_is_that_of_this_system() {
        use nix::sys::resource::{UsageWho, getrusage};
        let usage = getrusage(UsageWho::RUSAGE_SELF).expect("a process knows its usage");
        let bytes = peak_rss_bytes(usage.max_rss());
        assert!((1 << 20..1 << 40).contains(&bytes), "{bytes} bytes");
    }
}
