//! Which settings a sweep has: from its flags to a plan.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, bail, ensure};
use spill_scenario::{Plan, PlanOptions, Profile, Scenario, configurations_of, expand, parse_size};

use crate::cli::SweepArgs;
use crate::sources;
use crate::subject::{self, Asked};

const CONTROL: &str = "off";
/// Points of one dimension at most.
const MOST: usize = 64;
/// The policy whose previews do not depend on the threshold, and a share of which cannot be set.
const PLAIN_POLICY: &str = "workflow-step";

/// The plan of all settings: what the subject is set to are configurations, what the model is set to
/// are scenarios of their own.
pub(super) fn plan(args: &SweepArgs) -> anyhow::Result<Plan> {
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
    let mut plan = expand(scenarios, options)?;
    // A stand-in for what ships is marked while scenarios are read, and is none.
    if !thresholds.contains(&spill_engine::DEFAULT_THRESHOLD_BYTES) {
        for configuration in &mut plan.record.configurations {
            configuration.shipped = false;
        }
    }
    Ok(plan)
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
