//! `--llm`: a real endpoint in place of the simulated model, and what may be spent there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use spill_mocks::{Endpoint, EndpointApi, EndpointKey, Upstream, UpstreamOptions};
use spill_record::{
    Api, EndReason, EndpointRecord, Outcome, Prices, RunFolder, RunRecord, Spending,
};
use spill_runner::{Caps, Meter, Subject};
use spill_scenario::Plan;
use spill_verdict::{attainable, counted, grouped, plain};
use tokio::sync::watch;

use crate::cli::{AcceptArgs, LiveArgs};
use crate::out;

/// An acceptance is stopped when the endpoint failed so many runs in a row.
const GIVE_UP_AFTER: u32 = 3;
/// Time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// A longer file is none of certificates.
const MOST_CA_BYTES: u64 = 4 << 20;

/// A real endpoint, and the meter of what is spent there.
pub(crate) struct Live {
    upstream: Arc<Upstream>,
    meter: Arc<Meter>,
    record: EndpointRecord,
}

/// Reads `--llm`; what it holds is not quoted, since it might be a key.
pub(crate) fn endpoint(args: &LiveArgs) -> anyhow::Result<Option<Endpoint>> {
    let endpoint = args.llm.as_deref().map(Endpoint::parse);
    endpoint.transpose().context("--llm")
}

/// What a plan costs at most and can show at best, a line each, to be read before money is spent.
pub(crate) fn outlook(plan: &Plan) -> Vec<String> {
    let limit = |name: &str| {
        let mut scenarios = plan.scenarios.iter();
        let scenario = scenarios.find(|scenario| scenario.name == name);
        scenario.map_or(0, |scenario| scenario.limits.iteration_limit)
    };
    let runs = &plan.record.runs;
    let requests = runs.iter().map(|run| limit(&run.scenario)).sum();
    let mut lines = vec![format!(
        "live: {} of at most {} together, and what is tried again",
        counted(runs.len() as u64, "run"),
        counted(requests, "request"),
    )];
    let proofs = attainable(&plan.record);
    lines.extend(proofs.into_iter().map(|line| format!("attainable: {line}")));
    lines
}

/// What the flags ask for, before anything is made.
pub(crate) struct Wanted {
    endpoint: Endpoint,
    key: EndpointKey,
    caps: Caps,
}

impl Wanted {
    /// Takes key and caps.
    pub(crate) fn of(
        args: &AcceptArgs,
        endpoint: Endpoint,
        subject: &Subject,
        plan: &Plan,
    ) -> anyhow::Result<Self> {
        speaks_its_api(subject, endpoint.api())?;
        Ok(Self {
            caps: caps(args, plan)?,
            key: key(&args.live, endpoint.api())?,
            endpoint,
        })
    }

    /// Goes on from what `folder` had spent, if one is gone on with, and says what is about to be done.
    pub(crate) fn open(
        self,
        args: &AcceptArgs,
        plan: &Plan,
        prices: Option<&Prices>,
        folder: Option<&Path>,
    ) -> anyhow::Result<Live> {
        let Self {
            endpoint,
            key,
            caps,
        } = self;
        let (prices, before) = match folder {
            None => (prices.cloned(), None),
            Some(folder) => (
                RunFolder::read_prices(folder)?,
                Some(RunFolder::spent(folder)?),
            ),
        };
        if caps.money.is_some() {
            one_currency(prices.as_ref())?;
        }
        let options = UpstreamOptions {
            connect_timeout: CONNECT_TIMEOUT,
            read_timeout: Duration::from_secs(args.llm_timeout),
            extra_roots: args.llm_ca.as_deref().map(certificates).transpose()?,
        };
        if !args.quiet {
            announce(&endpoint, plan, caps, prices.as_ref(), before.as_ref());
        }
        let record = EndpointRecord {
            api: match endpoint.api() {
                EndpointApi::OpenAi => Api::Openai,
                EndpointApi::Anthropic => Api::Anthropic,
            },
            host: endpoint.host().to_owned(),
        };
        let meter = Arc::new(Meter::new(caps, prices, before));
        let gate = Arc::clone(&meter);
        let upstream = Upstream::new(endpoint, key, &options, gate).context("--llm-ca")?;
        Ok(Live {
            upstream: Arc::new(upstream),
            meter,
            record,
        })
    }
}

impl Live {
    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        Arc::clone(&self.upstream)
    }

    pub(crate) fn record(&self) -> EndpointRecord {
        self.record.clone()
    }

    /// Whether the endpoint is there and takes the key.
    pub(crate) async fn check(&self) -> anyhow::Result<()> {
        self.upstream.check().await.context("--llm")
    }

    /// Watches over an acceptance into `folder`, which `stop` ends.
    pub(crate) fn guard(&self, stop: watch::Sender<bool>, folder: &Path) -> anyhow::Result<Guard> {
        let mut reached = self.meter.reached();
        let at_cap = stop.clone();
        tokio::spawn(async move {
            if reached.wait_for(|reached| *reached).await.is_ok() {
                at_cap.send_replace(true);
            }
        });
        let guard = Guard {
            upstream: self.upstream(),
            meter: Arc::clone(&self.meter),
            folder: folder.to_owned(),
            stop,
            failed_in_a_row: 0,
            last_failure: None,
        };
        guard.write()?;
        Ok(guard)
    }
}

/// Keeps what was spent beside the records, and stops an acceptance whose endpoint fails.
pub(crate) struct Guard {
    upstream: Arc<Upstream>,
    meter: Arc<Meter>,
    folder: PathBuf,
    stop: watch::Sender<bool>,
    failed_in_a_row: u32,
    last_failure: Option<String>,
}

impl Guard {
    /// Takes the next run's record.
    pub(crate) fn saw(&mut self, record: &RunRecord) -> anyhow::Result<()> {
        self.write()?;
        let is_failure = record.outcome == Outcome::Infrastructure
            && record.end_reason == EndReason::EndpointFailed;
        if !is_failure {
            self.failed_in_a_row = 0;
            return Ok(());
        }
        self.failed_in_a_row += 1;
        self.last_failure.clone_from(&record.error);
        if self.failed_in_a_row == GIVE_UP_AFTER || self.upstream.not_there().is_some() {
            self.stop.send_replace(true);
        }
        Ok(())
    }

    fn write(&self) -> anyhow::Result<()> {
        Ok(RunFolder::write_spending(
            &self.folder,
            &self.meter.spending(),
        )?)
    }

    /// Says what was spent, and why the acceptance ended early if it did.
    pub(crate) fn end(self, quiet: bool) -> anyhow::Result<()> {
        self.write()?;
        let spending = self.meter.spending();
        if let Some(error) = self.upstream.not_there() {
            bail!(
                "--llm: {error}; no request was answered, and {0} holds the runs that were lost (with the right address go on with --resume {0}, with another model run again)",
                self.folder.display()
            );
        }
        if self.failed_in_a_row >= GIVE_UP_AFTER {
            let last = plain(self.last_failure.as_deref().unwrap_or_default());
            out::note(format_args!(
                "stopped early: the endpoint failed {GIVE_UP_AFTER} runs in a row, last: {last} (see to it, then go on with --resume {})",
                self.folder.display()
            ));
        }
        if spending.reached.is_some() {
            out::note(format_args!(
                "stopped early: the spending cap is reached (go on with --resume {} and a larger one)",
                self.folder.display()
            ));
        }
        if !quiet {
            out::note(spent(&spending));
        }
        Ok(())
    }
}

/// What was spent, in a line.
pub(crate) fn spent(spending: &Spending) -> String {
    let mut words = format!(
        "spent: {} in {}",
        counted(spending.counted_tokens(), "token"),
        counted(spending.calls, "request")
    );
    if let (Some(money), Some(currency)) = (&spending.money, &spending.currency) {
        words = format!("{words}, {money} {currency}");
    }
    let estimated = spending.estimated.input_tokens() + spending.estimated.output_tokens;
    if estimated > 0 {
        words = format!(
            "{words}; {} of the tokens are our own count, since the endpoint did not tell",
            grouped(estimated)
        );
    }
    words
}

fn speaks_its_api(subject: &Subject, api: EndpointApi) -> anyhow::Result<()> {
    let dialect = match subject {
        Subject::BuiltIn | Subject::Command { .. } => "chat",
        Subject::Foreign(foreign) => match foreign.subject.dialect.as_deref() {
            Some(dialect) => dialect,
            // The first request will tell.
            None => return Ok(()),
        },
    };
    let name = subject.name();
    match (api, dialect) {
        (EndpointApi::OpenAi, "chat" | "responses") | (EndpointApi::Anthropic, "messages") => {
            Ok(())
        }
        (EndpointApi::Anthropic, _) => bail!(
            "the subject {name} speaks {dialect}, and an anthropic: endpoint messages alone (run an agent that speaks them, such as --subject claude-code, or take the provider's OpenAI-compatible address: --llm openai:https://api.anthropic.com/v1 --llm-key-env ANTHROPIC_API_KEY)"
        ),
        (EndpointApi::OpenAi, _) => bail!(
            "the subject {name} speaks {dialect}, and an openai: endpoint chat completions and responses alone (run another subject, or an endpoint of its own API)"
        ),
    }
}

fn caps(args: &AcceptArgs, plan: &Plan) -> anyhow::Result<Caps> {
    let caps = Caps {
        tokens: args.spend_tokens,
        money: args.spend_money,
    };
    if caps == Caps::default() {
        bail!(
            "a live acceptance needs a cap on what it may spend: --spend-tokens N, or --spend-money X with --prices FILE ({})",
            outlook(plan).first().map_or("", String::as_str)
        );
    }
    ensure!(
        caps.money.is_none() || args.prices.is_some() || args.resume.is_some(),
        "{NEEDS_PRICES}"
    );
    Ok(caps)
}

const NEEDS_PRICES: &str = "--spend-money needs --prices FILE, which names the currency";

/// Money can be capped only where all prices are of one currency.
fn one_currency(prices: Option<&Prices>) -> anyhow::Result<()> {
    let prices = prices.context(NEEDS_PRICES)?;
    let mut currencies = prices.models().map(|(_, prices)| prices.currency());
    let first = currencies.next().unwrap_or_default();
    ensure!(
        currencies.all(|currency| currency == first),
        "--spend-money: the price table has several currencies (leave one of them)"
    );
    Ok(())
}

/// The key, from the environment alone.
fn key(args: &LiveArgs, api: EndpointApi) -> anyhow::Result<EndpointKey> {
    let own = match api {
        EndpointApi::OpenAi => "OPENAI_API_KEY",
        EndpointApi::Anthropic => "ANTHROPIC_API_KEY",
    };
    let name = args.llm_key_env.as_deref().unwrap_or(own);
    let text = std::env::var_os(name).with_context(|| {
        format!(
            "the variable {} is not set (export it with the endpoint's key, or any word where it takes none; --llm-key-env names another variable)",
            plain(name)
        )
    })?;
    let text = text.to_str().unwrap_or(" ? ");
    EndpointKey::new(text).with_context(|| format!("the variable {}", plain(name)))
}

fn certificates(path: &Path) -> anyhow::Result<Vec<u8>> {
    let unreadable = || format!("--llm-ca: {} cannot be read", path.display());
    let found = std::fs::metadata(path).with_context(unreadable)?;
    ensure!(
        found.is_file() && found.len() <= MOST_CA_BYTES,
        "--llm-ca: {} is no file of certificates (give one in PEM)",
        path.display()
    );
    std::fs::read(path).with_context(unreadable)
}

/// Says what is about to be done, before it costs anything.
fn announce(
    endpoint: &Endpoint,
    plan: &Plan,
    caps: Caps,
    prices: Option<&Prices>,
    before: Option<&Spending>,
) {
    let mut models: Vec<String> = plan
        .record
        .models
        .iter()
        .map(|one| plain(&one.model))
        .collect();
    models.dedup();
    out::note(format_args!(
        "live: the model is {} at {}",
        models.join(", "),
        plain(endpoint.host())
    ));
    if endpoint.is_in_the_clear() {
        out::note(format_args!(
            "note: key and prompts go to {} unencrypted",
            plain(endpoint.host())
        ));
    }
    for line in outlook(plan) {
        out::note(line);
    }
    let mut most = Vec::new();
    if let Some(tokens) = caps.tokens {
        most.push(counted(tokens, "token"));
    }
    if let Some(money) = caps.money {
        let currency = prices.and_then(|prices| prices.models().next());
        let currency = currency.map_or("", |(_, prices)| prices.currency());
        most.push(format!("{money} {currency}"));
    }
    let spent = before.map_or(0, Spending::counted_tokens);
    let spent = match spent {
        0 => String::new(),
        spent => format!(", and {} are spent already", counted(spent, "token")),
    };
    out::note(format_args!(
        "cap: {}{spent}; runs side by side can each pass it by the request they wait for",
        most.join(" and ")
    ));
}
