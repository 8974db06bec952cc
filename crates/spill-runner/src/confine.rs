//! Keeps a thread, and what it starts, from writing outside named folders.

use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, path_beneath_rules,
};

/// The newest rules that are asked for; an older kernel is asked for what it has.
const NEWEST: ABI = ABI::V5;

/// Forbids the calling thread, for good, every kind of writing to files outside `writable`: making,
/// changing, renaming and removing them. Reading stays as it is, and so do files that are open already.
///
/// False where the kernel has no Landlock, or does not enforce all of it: nothing is then promised.
pub(crate) fn confine(writable: &[PathBuf]) -> bool {
    matches!(restricted(writable), Ok(RulesetStatus::FullyEnforced))
}

fn restricted(writable: &[PathBuf]) -> Result<RulesetStatus, RulesetError> {
    // What every kernel with Landlock can forbid has to be forbidden; more of it where there is more.
    let least = AccessFs::from_write(ABI::V1);
    let all = AccessFs::from_write(NEWEST);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(least)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .create()?
        .add_rules(path_beneath_rules(writable, all))?
        .restrict_self()?;
    Ok(match status.ruleset {
        // Partly: this kernel knows fewer kinds of writing than the newest one, all of them forbidden.
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            RulesetStatus::FullyEnforced
        }
        RulesetStatus::NotEnforced => RulesetStatus::NotEnforced,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::confine;

    #[test]
    fn a_confined_thread_writes_where_it_may_and_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (open, shut) = (folder.path().join("open"), folder.path().join("shut"));
        for place in [&open, &shut] {
            fs::create_dir(place).expect("a place");
            fs::write(place.join("there"), "as it was").expect("a file");
        }
        let inside = std::thread::scope(|scope| {
            let confined = scope.spawn(|| {
                confine(std::slice::from_ref(&open)).then(|| {
                    let tried = |place: &std::path::Path| {
                        [
                            fs::write(place.join("new"), "x").is_ok(),
                            fs::write(place.join("there"), "changed").is_ok(),
                            fs::create_dir(place.join("folder")).is_ok(),
                            fs::remove_file(place.join("there")).is_ok(),
                        ]
                    };
                    let read = fs::read_to_string(shut.join("there"));
                    (
                        tried(&open),
                        tried(&shut),
                        read.is_ok_and(|text| text == "as it was"),
                    )
                })
            });
            confined.join().expect("the thread ends")
        });
        match inside {
            Some(seen) => assert_eq!(seen, ([true; 4], [false; 4], true)),
            None => {
                use std::io::Write as _;
                // Past the test runner, which would keep it to itself.
                let mut err = std::io::stderr().lock();
                drop(writeln!(
                    err,
                    "NOT RUN: writing is confined (this kernel has no Landlock)"
                ));
            }
        }
        assert!(
            fs::write(shut.join("new"), "x").is_ok(),
            "other threads are free"
        );
    }
}
