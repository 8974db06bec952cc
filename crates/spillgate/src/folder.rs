//! `judge` and `report`, and the end of `accept`: everything that is rebuilt from a run folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use spill_record::{FolderKind, LiveFolder, RunFolder, RunSet};
use spill_report::{Calls, Context, EVENT_SCHEMA, Event, Rendered};
use spill_verdict::Verdict;

use crate::cli::{FolderArgs, ReportArgs};
use crate::remote::Folders;
use crate::{Failure, baseline, github, out, prices, replay, sweep};

/// There only when a run leaked.
const LEAKS: &str = "leaks.sarif";

pub(crate) fn judge(args: &FolderArgs) -> Result<u8, Failure> {
    const VERB: &str = "judge";
    let folders = Folders::one(&args.dir).map_err(|error| Failure::usage(VERB, error))?;
    let dir = folders.path();
    let judge = || {
        if replay::is_replay(dir) {
            let rebuilt = replay::rebuild(VERB, dir)?;
            rebuilt.print(args.json);
            return Ok(rebuilt.exit_code());
        }
        if sweep::is_sweep(dir) {
            let swept = sweep::rebuild(dir).map_err(|error| Failure::usage(VERB, error))?;
            swept.print(args.json, &folders.named(dir));
            return Ok(swept.code());
        }
        let judged = finish(VERB, dir, &folders.named(dir))?;
        judged.print(VERB, args.json)?;
        Ok(judged.code())
    };
    judge().map_err(|failure: Failure| failure.map(|error| folders.error(error)))
}

pub(crate) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    const VERB: &str = "report";
    let folders = Folders::one(&args.dir).map_err(|error| Failure::usage(VERB, error))?;
    let told = report_on(args, folders.path());
    let told = told.map_err(|failure| failure.map(|error| folders.error(error)))?;
    folders
        .give_back()
        .map_err(|error| Failure::usage(VERB, error))?;
    match told {
        Told::Page(page) => out::line(folders.named(&page)),
        Told::Judged(judged) => judged.print(VERB, true)?,
        Told::Replay(rebuilt) => rebuilt.print(true),
        Told::Sweep(swept) => swept.print(true, &folders.named(folders.path())),
    }
    Ok(0)
}

/// What `report` tells once the files are written.
enum Told {
    Page(PathBuf),
    Judged(Box<Judged>),
    Replay(Box<replay::Rebuilt>),
    Sweep(Box<sweep::Swept>),
}

fn report_on(args: &ReportArgs, dir: &Path) -> Result<Told, Failure> {
    let page = dir.join("report.html");
    if replay::is_replay(dir) {
        let rebuilt = report_replay(args, dir)?;
        return Ok(if args.json {
            Told::Replay(Box::new(rebuilt))
        } else {
            Told::Page(page)
        });
    }
    if let Some(id) = &args.run {
        let page = run_page(dir, id).map_err(|error| Failure::usage("report", error))?;
        return Ok(Told::Page(page));
    }
    if sweep::is_sweep(dir) {
        return report_sweep(args, dir).map_err(|error| Failure::usage("report", error));
    }
    if let Some(prices) = &args.prices {
        set_prices(dir, prices).map_err(|error| Failure::usage("report", error))?;
    }
    let (judged, _) = rebuild("report", dir)?;
    Ok(if args.json {
        Told::Judged(Box::new(judged))
    } else {
        Told::Page(page)
    })
}

fn report_sweep(args: &ReportArgs, dir: &Path) -> anyhow::Result<Told> {
    anyhow::ensure!(
        args.prices.is_none(),
        "{} holds a sweep, which tells tokens and no money (leave --prices out)",
        dir.display()
    );
    let swept = sweep::rebuild(dir)?;
    Ok(if args.json {
        Told::Sweep(Box::new(swept))
    } else {
        Told::Page(dir.join("sweep.html"))
    })
}

fn report_replay(args: &ReportArgs, dir: &Path) -> Result<replay::Rebuilt, Failure> {
    if args.run.is_some() || args.prices.is_some() {
        let error = anyhow::anyhow!(
            "{} holds a replay, which has no runs, and its prices from the start (leave --run and --prices out)",
            dir.display()
        );
        return Err(Failure::usage("report", error));
    }
    replay::rebuild("report", dir)
}

/// Puts the price table at `prices` into `folder`, which is a run folder.
fn set_prices(folder: &Path, prices: &Path) -> anyhow::Result<()> {
    let manifest = LiveFolder::open(folder)?;
    let prices = prices::read(prices, &manifest.set().manifest.plan.models)?;
    Ok(RunFolder::write_prices(folder, &prices)?)
}

/// Writes the page of the run whose id is `id` or begins so, and returns its path.
fn run_page(folder: &Path, id: &str) -> anyhow::Result<PathBuf> {
    let set = RunFolder::read(folder)?;
    let runs = set.runs.iter().chain(&set.sensitivity);
    let ids: BTreeSet<&str> = runs
        .map(|run| &*run.run_id)
        .filter(|run_id| !id.is_empty() && run_id.starts_with(id))
        .collect();
    let found: &str = if ids.contains(id) {
        id
    } else {
        let mut ids = ids.iter();
        match (ids.next(), ids.len()) {
            (Some(one), 0) => one,
            (None, _) => anyhow::bail!(
                "{} has no run {id:?} (ids stand in its runs.csv, column run_id)",
                folder.display()
            ),
            (Some(_), more) => anyhow::bail!(
                "{} runs of {} begin with {id:?} (give more of the id)",
                more + 1,
                folder.display()
            ),
        }
    };
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    anyhow::ensure!(
        found.len() <= 128 && found.chars().all(safe),
        "the id {found:?} cannot be part of a file's name (the folder was not made by this program)"
    );
    let mut calls = Vec::new();
    RunFolder::each_call_of(folder, |run_id| run_id == found, |call| calls.push(call))?;
    let page = spill_report::run_page(&set, &calls, found)
        .ok_or_else(|| anyhow::anyhow!("the run {found:?} left no record"))?;
    let name = format!("run-{found}.html");
    RunFolder::write_derived(folder, &name, page.as_bytes())?;
    Ok(folder.join(name))
}

/// A judged folder, to be told.
pub(crate) struct Judged {
    verdict: Verdict,
    /// What runs cost, for the terminal; `None` without a price table.
    money: Option<String>,
}

impl Judged {
    /// The verdict's exit code.
    pub(crate) fn code(&self) -> u8 {
        self.verdict.exit_code()
    }

    /// The last event of an acceptance.
    pub(crate) fn event(&self, folder: &str) -> Event {
        Event::Verdict {
            schema: EVENT_SCHEMA,
            exit_code: self.code(),
            folder: folder.to_owned(),
            verdict: Box::new(self.verdict.clone()),
        }
    }

    /// Prints the verdict: as JSON, or as sentence and tables.
    pub(crate) fn print(&self, verb: &'static str, json: bool) -> Result<(), Failure> {
        if json {
            return out::json(verb, &self.verdict);
        }
        out::decision(self.verdict.decision_sentence(), self.verdict.decision);
        out::line(spill_verdict::terminal_table(&self.verdict));
        if let Some(money) = &self.money {
            out::line(money);
        }
        Ok(())
    }
}

/// Judges a folder's records, writes every derived file, and tells the CI system that runs this.
/// `shown` is what people call the folder.
pub(crate) fn finish(verb: &'static str, folder: &Path, shown: &str) -> Result<Judged, Failure> {
    let (judged, rendered) = rebuild(verb, folder)?;
    github::tell(
        &judged.verdict,
        &rendered.summary_md,
        &format!("{shown}/report.html"),
    );
    Ok(judged)
}

/// Judges a folder's records and writes every derived file.
fn rebuild(verb: &'static str, folder: &Path) -> Result<(Judged, Rendered), Failure> {
    let usage = |error| Failure::usage(verb, error);
    let (set, verdict) = judged(folder).map_err(usage)?;
    let mut calls = Calls::of(&set, &verdict);
    let wanted = calls.wanted();
    RunFolder::each_call_of(folder, |id| wanted.contains(id), |call| calls.take(call))
        .map_err(|error| usage(error.into()))?;
    let baseline = baseline::beside(folder);
    let context = Context {
        calls: Some(&calls),
        baseline: baseline.as_ref(),
    };
    let rendered = spill_report::render(&set, &verdict, context);
    RunFolder::write_runs_csv(folder, &set).map_err(|error| usage(error.into()))?;
    let files = [
        ("summary.csv", &rendered.summary_csv),
        ("rules.csv", &rendered.rules_csv),
        ("report.html", &rendered.report_html),
        ("junit.xml", &rendered.junit_xml),
        ("summary.md", &rendered.summary_md),
    ];
    let write = |name, text: &String| {
        let written = RunFolder::write_derived(folder, name, text.as_bytes());
        written.map_err(|error| usage(error.into()))
    };
    for (name, text) in files {
        write(name, text)?;
    }
    write_or_remove(folder, LEAKS, rendered.leaks_sarif.as_deref()).map_err(usage)?;
    // The last one: where it stands, all of them do.
    write("verdict.json", &rendered.verdict_json)?;
    let money = spill_report::terminal_money(&set);
    Ok((Judged { verdict, money }, rendered))
}

/// Reads a folder's records, says what of them is torn, and judges them.
pub(crate) fn judged(folder: &Path) -> anyhow::Result<(RunSet, Verdict)> {
    let set = RunFolder::read(folder)?;
    match set.manifest.kind {
        FolderKind::Acceptance => {}
        FolderKind::Sweep => anyhow::bail!(
            "{} holds a sweep, in which nothing is judged (read its sweep.html or sweep.csv; `spillgate report` renders them)",
            folder.display()
        ),
    }
    for torn in &set.torn {
        out::note(format_args!(
            "note: {} ends in a torn line (line {}, {} bytes), which is left out",
            torn.file, torn.line, torn.bytes
        ));
    }
    let verdict = spill_verdict::judge(&set);
    Ok((set, verdict))
}

/// Writes a file that is there only when there is something to say.
fn write_or_remove(folder: &Path, name: &str, text: Option<&str>) -> anyhow::Result<()> {
    let path = folder.join(name);
    match text {
        Some(text) => RunFolder::write_derived(folder, name, text.as_bytes())?,
        None => match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                anyhow::bail!(
                    "the outdated {} cannot be removed: {error} (remove it, or make the folder writable)",
                    path.display()
                );
            }
            Ok(()) | Err(_) => {}
        },
    }
    Ok(())
}
