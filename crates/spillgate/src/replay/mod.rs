//! `replay`: recorded transcripts under other thresholds.

mod plan;
mod progress;
mod rebuild;

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Context;

use spill_record::{FolderError, ReplayFiles, ReplayFolder, ReplayRecord};
use spill_tokens::TokenCounter;
use spill_traces::{ReplayedFile, ReplayedItem, replay_files};

use crate::cli::ReplayArgs;
use crate::remote::path_only;
use crate::{Failure, host, out};

use progress::Progress;

pub(crate) use rebuild::{Rebuilt, is_replay, rebuild};

const VERB: &str = "replay";
/// Counts of texts that are remembered; the bound on memory that does not depend on a transcript.
const KNOWN_COUNTS: usize = 2_000_000;
/// How often another name is tried when a folder of the same millisecond stands already.
const NAME_TRIES: u32 = 20;

/// Whether what was named is a file or a folder; what a pipe brings is not read.
fn can_be_read(path: &Path) -> anyhow::Result<()> {
    let meta = std::fs::metadata(path).with_context(|| {
        format!(
            "{} cannot be read (name a transcript, or a folder of them)",
            path.display()
        )
    })?;
    anyhow::ensure!(
        meta.is_file() || meta.is_dir(),
        "{} is neither a file nor a folder (name a transcript, or a folder of them; what a pipe brings goes into a file first)",
        path.display()
    );
    Ok(())
}

pub(crate) fn run(args: &ReplayArgs) -> Result<u8, Failure> {
    let usage = |error: anyhow::Error| Failure::usage(VERB, error);
    for path in &args.paths {
        can_be_read(path).map_err(usage)?;
    }
    let asked = plan::asked(args).map_err(usage)?;
    let counter = TokenCounter::o200k_base().remembering(KNOWN_COUNTS);
    let threads = args.jobs.and_then(NonZeroUsize::new);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let out = path_only("--out of a replay", &args.out).map_err(usage)?;
    let (folder, record) =
        new_folder(&out, asked.record(counter.name())).map_err(|error| usage(error.into()))?;
    let mut writing = Writing { folder, record };
    let mut progress = Progress::new(args.quiet || args.json);
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let done = replay_files(&args.paths, &asked.plan, &counter, threads, &mut |item| {
        writing.take(item, &mut progress)
    });
    drop(progress);
    done.map_err(|error| usage(error.into()))?;
    let Writing { folder, record } = writing;
    let path = folder.path().to_owned();
    folder.finish(record).map_err(|error| usage(error.into()))?;
    let rebuilt = rebuild(VERB, &path)?;
    rebuilt.note_problems();
    rebuilt.print(args.json);
    if !args.json {
        out::line(format_args!(
            "report: {}",
            path.join("report.html").display()
        ));
    }
    Ok(rebuilt.exit_code())
}

/// The folder that is being written, and what its record has to say of the files.
struct Writing {
    folder: ReplayFolder,
    record: ReplayRecord,
}

impl Writing {
    fn take(&mut self, item: ReplayedItem, progress: &mut Progress) -> Result<(), FolderError> {
        match item {
            ReplayedItem::Session(session) => {
                for (kind, count) in &session.problems {
                    *self.record.problems.entry(kind.clone()).or_default() += count;
                }
                self.folder.append(&session)
            }
            ReplayedItem::Superseded {
                session_id,
                left_out,
            } => {
                self.record.superseded.insert(session_id);
                *self.record.left_out.entry(left_out.to_owned()).or_default() += 1;
                Ok(())
            }
            ReplayedItem::Problem(problem) => self.folder.append_problem(&problem),
            ReplayedItem::File(file) => {
                self.file(file);
                Ok(())
            }
            ReplayedItem::Listed(files) => {
                progress.listed(files);
                Ok(())
            }
            ReplayedItem::Read(more) => {
                progress.read(more);
                Ok(())
            }
        }
    }

    fn file(&mut self, file: ReplayedFile) {
        let ReplayFiles {
            read,
            with_transcripts,
            lost,
        } = &mut self.record.files;
        *read += 1;
        *with_transcripts += u64::from(file.transcripts > 0);
        *lost += u64::from(file.lost);
        for (kind, count) in file.problems {
            *self.record.problems.entry(kind).or_default() += count;
        }
        for (kind, count) in file.left_out {
            *self.record.left_out.entry(kind).or_default() += count;
        }
    }
}

fn new_folder(
    out: &Path,
    mut record: ReplayRecord,
) -> Result<(ReplayFolder, ReplayRecord), FolderError> {
    let asked = record.replay_id.clone();
    let mut tries = 0;
    loop {
        let (started_at, name) = host::now();
        record.started_at = started_at;
        record.replay_id = format!("{name}-replay-{asked}");
        match ReplayFolder::create(out, &record.replay_id) {
            Err(FolderError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists && tries < NAME_TRIES =>
            {
                tries += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            made => return Ok((made?, record)),
        }
    }
}
