//! `sweep`: thresholds, and what else can be set, against cost and quality.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use spill_record::{ConfigurationRole, Outcome, PlannedRun, RunFolder, RunRecord, RunSet};
use spill_report::Calls;
use spill_runner::{FinishedRun, Harness, Options, Subject, effective_settings, pairs_of};
use spill_scenario::{Plan, PlanOptions, Profile, Scenario, configurations_of, expand, parse_size};
use spill_verdict::{counted, exit, grouped, recommendation_line};

use crate::cli::SweepArgs;
use crate::subject::{self, Asked};
use crate::temp::Temp;
use crate::work::same_acceptance;
use crate::{Failure, accept, host, out, sources};

const VERB: &str = "sweep";
const CONTROL: &str = "off";
/// Points of one dimension at most.
const MOST: usize = 64;
/// The policy whose previews do not depend on the threshold, and a share of which cannot be set.
const PLAIN_POLICY: &str = "workflow-step";

pub(crate) fn run(args: &SweepArgs) -> Result<u8, Failure> {
    let plan = plan(args).map_err(|error| Failure::usage(VERB, error))?;
    let temp = Temp::create()
        .context("no temporary folder can be made (set TMPDIR to a writable one)")
        .map_err(|error| Failure::usage(VERB, error))?;
    let options = Options {
        spillgate: host::this_program().map_err(|error| Failure::internal(VERB, error))?,
        subject: Subject::BuiltIn,
        jobs: args
            .jobs
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        temp: temp.path().to_owned(),
        cgroup: None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let folder = runtime
        .block_on(measure(args, plan, &options))
        .map_err(|error| Failure::usage(VERB, error))?;
    drop(temp);
    render(args, &folder).map_err(|error| Failure::usage(VERB, error))
}

/// Derives the curves from the folder and tells what they recommend.
fn render(args: &SweepArgs, folder: &std::path::Path) -> anyhow::Result<u8> {
    let set = RunFolder::read(folder)?;
    let sweep = spill_verdict::sweep(&set);
    let mut calls = Calls::of_control(&set);
    let wanted = calls.wanted();
    RunFolder::each_call_of(folder, |id| wanted.contains(id), |call| calls.take(call))?;
    let rendered = spill_report::sweep(&set, &sweep, &calls);
    RunFolder::write_runs_csv(folder, &set)?;
    for (name, text) in [
        ("sweep.json", &rendered.json),
        ("sweep.csv", &rendered.csv),
        ("sweep.html", &rendered.html),
    ] {
        RunFolder::write_derived(folder, name, text.as_bytes())?;
    }
    if args.json {
        out::line(rendered.json.trim_end());
    } else {
        for curve in &sweep.curves {
            out::line(recommendation_line(curve));
        }
        out::line(rendered.table);
        let page = folder.join("sweep.html");
        out::line(format_args!("report: {}", page.display()));
    }
    if sweep.missing > 0 {
        out::note(format_args!(
            "{} without a record: go on with --resume {}",
            counted(sweep.missing, "run"),
            folder.display()
        ));
        return Ok(exit::INCOMPLETE);
    }
    Ok(exit::ACCEPTED)
}

/// The plan of all settings: what the subject is set to are configurations, what the model is set to
/// are scenarios of their own.
fn plan(args: &SweepArgs) -> anyhow::Result<Plan> {
    let thresholds = thresholds(&args.thresholds)?;
    let configurations = configurations_of(
        "the sweep's configurations",
        &configurations_text(args, &thresholds)?,
    )?;
    let mut scenarios = Vec::new();
    for scenario in subject::under(&Asked::BuiltIn, sources::settled_scenarios(&args.plan)?)? {
        for mut variant in variants(args, &scenario)? {
            variant.configurations.clone_from(&configurations);
            scenarios.push(variant);
        }
    }
    let options = PlanOptions {
        base_seed: args.plan.seed,
        stage: args.plan.stage.into(),
        repetitions: args.plan.reps,
    };
    Ok(expand(scenarios, options)?)
}

/// Reads `8KiB,32KiB` or `8KiB..512KiB` (powers of two times the first), ascending.
fn thresholds(text: &str) -> anyhow::Result<Vec<u64>> {
    let size = |text: &str| {
        parse_size(text).with_context(|| {
            format!("--thresholds: {text:?} is no size (write 131072, 128KiB or 1MiB, or a range 8KiB..512KiB)")
        })
    };
    let mut sizes = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => sizes.push(size(part)?),
            Some((first, last)) => {
                let (first, last) = (size(first)?, size(last)?);
                ensure!(
                    0 < first && first <= last,
                    "--thresholds {part:?}: a range goes from a size above 0 to a larger one"
                );
                let powers = std::iter::successors(Some(first), |size| size.checked_mul(2));
                sizes.extend(powers.take_while(|size| *size <= last));
            }
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    ensure!(
        !sizes.is_empty(),
        "--thresholds is empty (write 8KiB..512KiB, or sizes with commas between)"
    );
    ensure!(
        sizes.len() <= MOST,
        "--thresholds: {} points, at most {MOST} are swept at once",
        sizes.len()
    );
    let (least, most) = (
        spill_engine::MIN_THRESHOLD_BYTES,
        spill_engine::MAX_THRESHOLD_BYTES,
    );
    for size in &sizes {
        ensure!(
            (least..=most).contains(size),
            "--thresholds: {size} bytes is outside the subject's bounds, {least} to {most} (leave it out; storing nothing is always swept)"
        );
    }
    Ok(sizes)
}

/// The configurations as a scenario file would spell them.
fn configurations_text(args: &SweepArgs, thresholds: &[u64]) -> anyhow::Result<String> {
    let policy = args.policy.as_str();
    let mut text = format!(
        "[[configurations]]\nname = \"{CONTROL}\"\nrole = \"control\"\nenabled = false\n\
         env = {{ {} = \"false\" }}\n",
        spill_engine::ENABLED_VAR
    );
    let shares: Vec<Option<f64>> = if args.preview_share.is_empty() {
        vec![None]
    } else {
        ensure!(
            policy != PLAIN_POLICY,
            "--preview-share: the previews of {PLAIN_POLICY} have a fixed size (name another --policy)"
        );
        args.preview_share.iter().copied().map(Some).collect()
    };
    // What ships today is marked where it is swept; else the first point stands in for it, since a ladder
    // of candidates has one.
    let default = spill_engine::DEFAULT_THRESHOLD_BYTES;
    let marked = if thresholds.contains(&default) {
        default
    } else {
        thresholds[0]
    };
    let mut marked = Some(marked);
    for bytes in thresholds {
        for share in &shares {
            let name = match share {
                None => spelled(*bytes),
                Some(share) => format!("{}-share-{share}", spelled(*bytes)),
            };
            let shipped = marked == Some(*bytes);
            write!(
                text,
                "[[configurations]]\nname = \"{name}\"\nrole = \"candidate\"\nshipped = {shipped}\n\
                 threshold_bytes = {bytes}\n"
            )?;
            marked = marked.filter(|_| !shipped);
            if policy == PLAIN_POLICY {
                let name = spill_engine::THRESHOLD_VAR;
                writeln!(text, "env = {{ {name} = \"{bytes}\" }}")?;
            } else {
                writeln!(text, "policy = \"{policy}\"")?;
            }
            if let Some(share) = share {
                writeln!(text, "preview_share = {share:?}")?;
            }
        }
    }
    Ok(text)
}

/// A size as a configuration's name: `32KiB`, `1MiB`, or bytes.
fn spelled(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        _ => format!("{bytes}B"),
    }
}

/// The scenario under each setting of the model, with a name of its own.
fn variants(args: &SweepArgs, scenario: &Scenario) -> anyhow::Result<Vec<Scenario>> {
    let mut all = vec![scenario.clone()];
    if !args.profile.is_empty() {
        let mut profiles = Vec::new();
        for name in &args.profile {
            let Some(profile) = Profile::parse(name) else {
                let known: Vec<&str> = Profile::ALL.iter().map(|one| one.name()).collect();
                bail!("--profile {name:?} is none of {}", known.join(", "));
            };
            profiles.push(profile);
        }
        all = each(&all, &profiles, |scenario, profile| {
            scenario.name = format!("{}-{}", scenario.name, profile.name());
            scenario.model.population = BTreeMap::from([(*profile, 1.0)]);
        });
    }
    if !args.window.is_empty() {
        all = each(&all, &args.window, |scenario, tokens| {
            scenario.name = format!("{}-window-{tokens}", scenario.name);
            scenario.model.context_window_tokens = *tokens;
        });
    }
    if !args.read_cap.is_empty() {
        all = each(&all, &args.read_cap, |scenario, bytes| {
            scenario.name = format!("{}-reads-{}", scenario.name, spelled(*bytes));
            scenario.model.slice_bytes = *bytes;
        });
    }
    Ok(all)
}

fn each<T>(all: &[Scenario], values: &[T], set: impl Fn(&mut Scenario, &T)) -> Vec<Scenario> {
    let with = |scenario: &Scenario, value: &T| {
        let mut variant = scenario.clone();
        set(&mut variant, value);
        variant
    };
    all.iter()
        .flat_map(|scenario| values.iter().map(move |value| (scenario, value)))
        .map(|(scenario, value)| with(scenario, value))
        .collect()
}

/// Runs the control, then each threshold from the lowest on those pairs in which the one before it
/// still stored something.
async fn measure(args: &SweepArgs, mut plan: Plan, options: &Options) -> anyhow::Result<PathBuf> {
    let settings = effective_settings(&plan.record.configurations, options).await?;
    for (configuration, settings) in plan.record.configurations.iter_mut().zip(settings) {
        configuration.effective_settings = settings;
    }
    let plan = Arc::new(plan);
    let harness = Harness::start(plan.clone(), options.clone()).await?;
    let manifest = accept::manifest(&plan, options, harness.tokenizer(), None);
    let (mut folder, mut known) = match &args.resume {
        None => (
            RunFolder::create(&args.out, &manifest)?,
            RunSet {
                manifest: manifest.clone(),
                runs: Vec::new(),
                sensitivity: Vec::new(),
                executions: Vec::new(),
                torn: Vec::new(),
                prices: None,
            },
        ),
        Some(path) => {
            let (folder, held) = RunFolder::reopen(path)?;
            same_acceptance(path, &held.set.manifest, &manifest)?;
            (folder, held.set)
        }
    };
    let stop = accept::stop_on_signals()?;
    let (mut made, mut spared) = (0_u64, 0_u64);
    let order = in_stages(&plan);
    for (number, stage) in order.iter().enumerate() {
        let recorded: HashSet<&str> = known.runs.iter().map(|run| &*run.run_id).collect();
        let lacking: Vec<&PlannedRun> = stage
            .runs
            .iter()
            .filter(|run| !recorded.contains(&*run.run_id))
            .copied()
            .collect();
        let (control, lower) = stages_before(&order, number);
        let same = settled(&known.runs, control, &lower);
        let mut fresh = Vec::new();
        let mut to_make = Vec::new();
        for run in lacking {
            match same.get(&*run.pair_id) {
                Some(control) => {
                    let record = copy_of(control, run, &plan);
                    folder.append(&record, &[])?;
                    spared += 1;
                    fresh.push(record);
                }
                None => to_make.push(run.clone()),
            }
        }
        made += to_make.len() as u64;
        if !args.quiet && !to_make.is_empty() {
            out::note(format_args!(
                "{}: {} to make",
                stage.name,
                counted(to_make.len() as u64, "run")
            ));
        }
        let mut record = |finished: FinishedRun| {
            folder.append(&finished.record, &finished.calls)?;
            fresh.push(finished.record);
            Ok(())
        };
        harness
            .execute(pairs_of(to_make), stop.clone(), &mut record)
            .await?;
        known.runs.extend(fresh);
        if *stop.borrow() {
            out::note("interrupted: the folder holds the runs that had finished");
            break;
        }
    }
    if !args.quiet {
        out::note(format_args!(
            "{} made, {} known without one",
            counted(made, "run"),
            grouped(spared)
        ));
    }
    Ok(folder.path().to_owned())
}

/// The runs of one configuration, in the plan's order of execution.
struct Stage<'a> {
    name: &'a str,
    /// Settings that differ in the threshold alone have one group; `None` for the control.
    group: Option<String>,
    runs: Vec<&'a PlannedRun>,
}

fn in_stages(plan: &Plan) -> Vec<Stage<'_>> {
    plan.record
        .configurations
        .iter()
        .map(|one| Stage {
            name: &one.name,
            group: match one.role {
                ConfigurationRole::Control => None,
                ConfigurationRole::Candidate => Some(format!("{:?}", one.preview_share)),
            },
            runs: plan
                .execution_order
                .iter()
                .map(|&index| &plan.record.runs[index])
                .filter(|run| run.configuration == one.name)
                .collect(),
        })
        .collect()
}

/// The configuration of the control, and those of lower thresholds that differ from stage `number` in
/// nothing else.
fn stages_before<'a>(stages: &[Stage<'a>], number: usize) -> (&'a str, Vec<&'a str>) {
    let control = stages.iter().find(|stage| stage.group.is_none());
    let lower = stages[..number]
        .iter()
        .filter(|stage| stage.group.is_some() && stage.group == stages[number].group)
        .map(|stage| stage.name)
        .collect();
    (control.map_or("", |stage| stage.name), lower)
}

/// By pair, the control's run where a lower threshold stored nothing: what is stored at a threshold is
/// stored at every lower one, and a run that stores nothing sends the control's requests.
fn settled<'a>(
    runs: &'a [RunRecord],
    control: &str,
    lower: &[&str],
) -> HashMap<&'a str, &'a RunRecord> {
    let finished = |run: &&RunRecord| match run.outcome {
        Outcome::Succeeded | Outcome::Failed => true,
        Outcome::Infrastructure => false,
    };
    let nothing: HashSet<&str> = runs
        .iter()
        .filter(finished)
        .filter(|run| lower.contains(&&*run.configuration) && run.results_persisted == Some(0))
        .map(|run| &*run.pair_id)
        .collect();
    runs.iter()
        .filter(finished)
        .filter(|run| run.configuration == control && nothing.contains(&*run.pair_id))
        .map(|run| (&*run.pair_id, run))
        .collect()
}

/// The control's record as the one of `run`, without what was measured.
fn copy_of(control: &RunRecord, run: &PlannedRun, plan: &Plan) -> RunRecord {
    let configuration = plan
        .record
        .configurations
        .iter()
        .find(|one| one.name == run.configuration)
        .expect("a planned run names a configuration of its plan");
    RunRecord {
        run_id: run.run_id.clone(),
        configuration: run.configuration.clone(),
        policy: configuration.policy.clone(),
        store: configuration.store.clone(),
        threshold_bytes: configuration.threshold_bytes,
        preview_share: configuration.preview_share,
        effective_settings: configuration.effective_settings.clone(),
        same_as: Some(control.run_id.clone()),
        ..control.unmeasured()
    }
}

#[cfg(test)]
mod tests {
    use super::thresholds;

    #[track_caller]
    fn check(text: &str, expected: &[u64]) {
        assert_eq!(thresholds(text).unwrap_or_default(), expected, "{text}");
    }

    #[test]
    fn thresholds_are_lists_and_ranges() {
        check("8KiB", &[8_192]);
        check("32KiB,8KiB,8192", &[8_192, 32_768]);
        check("8KiB..64KiB", &[8_192, 16_384, 32_768, 65_536]);
        check("6KiB..20KiB,1MiB", &[6_144, 12_288, 1_048_576]);
        for wrong in [
            "",
            "x",
            "8KiB..",
            "64KiB..8KiB",
            "0..8KiB",
            "1KiB",
            "2MiB",
            "-1",
        ] {
            assert!(thresholds(wrong).is_err(), "{wrong:?}");
        }
    }
}
