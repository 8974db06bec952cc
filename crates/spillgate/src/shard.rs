//! Parts of a plan: which one a process of an engine is, and the whole made of all of them.

use std::path::{Path, PathBuf};

use spill_record::{RunFolder, Shard};

use crate::cli::MergeArgs;
use crate::folder::{self, Judged};
use crate::remote::{Away, Folders, Place};
use crate::{Failure, live, out};

const VERB: &str = "merge";
/// Where engines say which of their processes one is, and how they count.
const INDEX_VARS: [(&str, u32); 3] = [
    ("JOB_COMPLETION_INDEX", 0),
    ("CI_NODE_INDEX", 1),
    ("SLURM_ARRAY_TASK_ID", 1),
];

/// Reads `m/n`, or `auto/n` with the number from the environment.
pub(crate) fn parse(text: &str) -> Result<Shard, String> {
    match text.strip_prefix("auto/") {
        None => text.parse(),
        Some(of) => {
            let is_count = of.parse().is_ok_and(|of| Shard::new(1, of).is_some());
            if !is_count {
                return Err(format!(
                    "{text:?} does not say of how many parts (write auto/n, such as auto/4, with n from 1 to {})",
                    Shard::MOST
                ));
            }
            let lookup = |name: &str| std::env::var(name).ok();
            format!("{}/{of}", number_from(lookup)?).parse()
        }
    }
}

fn number_from(lookup: impl Fn(&str) -> Option<String>) -> Result<u32, String> {
    for (name, first) in INDEX_VARS {
        let Some(text) = lookup(name) else {
            continue;
        };
        let number = text.trim().parse::<u32>().ok();
        return number
            .and_then(|number| (number + 1).checked_sub(first))
            .filter(|number| *number > 0)
            .ok_or_else(|| {
                format!(
                    "{name} is {text:?}, which is no number from {first} on (write --shard m/n)"
                )
            });
    }
    Err("no variable tells the part: JOB_COMPLETION_INDEX, CI_NODE_INDEX and SLURM_ARRAY_TASK_ID are not \
         set (write --shard m/n)"
        .to_owned())
}

pub(crate) fn merge(args: &MergeArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage(VERB, error);
    let folders = Folders::of(&args.dirs).map_err(usage)?;
    match Place::of(&args.out).map_err(usage)? {
        Place::Folder(reports) => {
            let (folder, judged) = join(&folders, &reports, None)?;
            RunFolder::mark_latest(&reports, &folder).map_err(|error| usage(error.into()))?;
            tell(&judged, &folder.display().to_string(), args.json)
        }
        Place::Store(place) => {
            let away = Away::to(place, None).map_err(usage)?;
            let joined = join(&folders, away.work(), Some(&away)).and_then(|(folder, judged)| {
                let url = away.publish(&folder).map_err(usage)?;
                tell(&judged, &url, args.json)
            });
            away.end(joined.is_ok());
            joined
        }
    }
}

/// Joins the folders into one in `reports`, and judges it.
fn join(
    folders: &Folders,
    reports: &Path,
    away: Option<&Away>,
) -> Result<(PathBuf, Judged), Failure> {
    let merged = spill_record::merge(folders.paths(), reports)
        .map_err(|error| Failure::usage(VERB, folders.error(error)))?;
    for note in &merged.notes {
        out::note(format_args!("note: {}", folders.renamed(note)));
    }
    let shown = match away {
        None => merged.folder.display().to_string(),
        Some(away) => away.url_of(&merged.folder),
    };
    let judged = folder::finish(VERB, &merged.folder, &shown)?;
    let spending = RunFolder::read_spending(&merged.folder);
    if let Some(spending) = spending.map_err(|error| Failure::internal(VERB, error))? {
        out::note(live::spent(&spending));
    }
    Ok((merged.folder, judged))
}

fn tell(judged: &Judged, shown: &str, json: bool) -> Result<u8, Failure> {
    judged.print(VERB, json)?;
    if !json {
        out::line(format_args!("report: {shown}/report.html"));
    }
    Ok(judged.code())
}

#[cfg(test)]
mod tests {
    use super::number_from;

    #[track_caller]
    fn check(name: &str, value: &str, expected: Option<u32>) {
        let number = number_from(|asked| (asked == name).then(|| value.to_owned()));
        assert_eq!(number.ok(), expected, "{name}={value}");
    }

    #[test]
    fn engines_count_from_nought_or_from_one() {
        check("JOB_COMPLETION_INDEX", "0", Some(1));
        check("JOB_COMPLETION_INDEX", "3", Some(4));
        check("CI_NODE_INDEX", "1", Some(1));
        check("CI_NODE_INDEX", "0", None);
        check("SLURM_ARRAY_TASK_ID", "7", Some(7));
        check("CI_NODE_INDEX", "first", None);
        check("SOMETHING_ELSE", "1", None);
    }
}
