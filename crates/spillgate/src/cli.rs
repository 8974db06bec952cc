//! The command line: verbs, flags, their help.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use spill_record::{Class, Money, Shard, Stage};

const EXIT_CODES: &str = "Exit codes: 0 the shipped default is accepted · 1 internal error · 2 usage or \
invalid input · 3 the default must change (the verdict says to what) · 4 not proven · 5 incomplete · \
6 leak found · 7 the gate failed its self-test";

/// Decides by evidence what stays in an agent's prompt.
#[derive(Debug, Parser)]
#[command(name = "spillgate", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Verb {
    /// The verb that this process was started with.
    ///
    /// # Errors
    ///
    /// What the command line itself answers: help, the version, or what it cannot take.
    pub(crate) fn of_command_line() -> Result<Self, clap::Error> {
        let given: Vec<OsString> = std::env::args_os().collect();
        if let Some(args) = step_alone(&given) {
            return Ok(Self::Step(args));
        }
        Ok(Cli::try_parse_from(given)?.verb)
    }
}

/// The arguments of `step`, read without the other verbs; `None` when it is another verb, or for the whole
/// command line to answer. Every run starts it, and building the flags of all verbs is a good part of its start.
fn step_alone(given: &[OsString]) -> Option<StepArgs> {
    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: StepArgs,
    }
    let (_program, from_verb) = given.split_first()?;
    if from_verb.first()? != "step" {
        return None;
    }
    Some(Alone::try_parse_from(from_verb).ok()?.args)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the matrix, judge it, write the run folder, exit by the verdict
    #[command(
        after_help = "Example: spillgate accept --document handbook.md --expect 'section: Limits'\n\
Example: spillgate accept --scenario my.toml --llm openai:https://api.openai.com/v1 --model NAME --spend-tokens 5000000"
    )]
    Accept(Box<AcceptArgs>),
    /// Join the run folders of a plan's shards, then judge and render the whole
    #[command(after_help = "Example: spillgate merge shards/* --out reports")]
    Merge(MergeArgs),
    /// Print the plan that `accept` would run, and run nothing
    #[command(after_help = "Example: spillgate list --stage quick --json")]
    List(ListArgs),
    /// Judge a run folder again and exit by its verdict
    #[command(after_help = "Example: spillgate judge reports/latest")]
    Judge(FolderArgs),
    /// Render a run folder's reports again, or the page of one run
    #[command(after_help = "Example: spillgate report reports/latest --run 9bfa0366")]
    Report(ReportArgs),
    /// Render run folders side by side: what differs between two of one subject, or what several subjects made of it
    #[command(
        after_help = "Example: spillgate compare reports/baseline reports/latest\n\
Example: spillgate compare agents/built-in/latest agents/codex/latest --csv agents.csv"
    )]
    Compare(CompareArgs),
    /// Show what recorded transcripts would have sent under other thresholds
    #[command(
        after_help = "Example: spillgate replay my-sessions/ --thresholds 8KiB,32KiB,128KiB \
--gate 'saved_input_tokens[threshold=32KiB] >= 10%'"
    )]
    Replay(ReplayArgs),
    /// Make scenarios
    Scenario(ScenarioArgs),
    /// Write a commented scenario to start from
    #[command(after_help = "Example: spillgate init --recipe document --out my.toml")]
    Init(InitArgs),
    /// Show run folders live in a browser, and their figures to Prometheus
    #[command(after_help = "Example: spillgate serve --reports reports --listen 127.0.0.1:8700")]
    Serve(ServeArgs),
    /// Run one agentic step: the built-in subject
    #[command(after_help = "Example: spillgate step --print-settings")]
    Step(StepArgs),
    /// Serve the mock LLM and the mock tools alone, for other clients
    #[command(after_help = "Example: spillgate mock --input medium --listen 127.0.0.1:8080")]
    Mock(MockArgs),
    /// Run thresholds, and what else can be set, against cost and quality
    #[command(
        after_help = "Example: spillgate sweep --thresholds 8KiB..512KiB --profile selective,hasty"
    )]
    Sweep(SweepArgs),
    /// Plant faults in real runs and show that the gate catches each of them
    #[command(
        after_help = "Example: spillgate self-test\nExit codes: 0 every fault is caught · 7 one is missed"
    )]
    SelfTest(SelfTestArgs),
    /// Run one agentic step with a planted fault; used by `self-test`
    #[command(hide = true)]
    Planted(PlantedArgs),
    /// Print the completion script of a shell
    #[command(
        after_help = "Example: spillgate completions bash > ~/.local/share/bash-completion/completions/spillgate"
    )]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each verb into a folder
    #[command(after_help = "Example: spillgate man --out ~/.local/share/man/man1")]
    Man(ManArgs),
    /// Start a subject and report its peak memory; used by `accept`
    #[command(hide = true)]
    Launch,
}

#[derive(Debug, Args)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Pairs that run at the same time [default: the number of processors]
    #[arg(long, value_name = "J", value_parser = positive)]
    pub(crate) jobs: Option<usize>,
    /// Folder in which the run folder is made, or s3://BUCKET/PREFIX to publish it there while it grows
    #[arg(long, value_name = "DIR|URL", default_value = "reports")]
    pub(crate) out: PathBuf,
    /// Folder for the local run folder of an --out that is a URL; it stays [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// The agent under test: built-in, codex, claude-code, opencode, gemini-cli, a subject file NAME.toml
    /// (docs/subjects.md), or an executable that takes `step`'s arguments and environment
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) subject: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Most tokens that a live acceptance may spend, input and output together; --resume counts what was spent
    #[arg(long, value_name = "N", requires = "llm", value_parser = clap::value_parser!(u64).range(1..), help_heading = LIVE)]
    pub(crate) spend_tokens: Option<u64>,
    /// Most money that a live acceptance may spend, in the currency of --prices
    #[arg(long, value_name = "X", requires = "llm", value_parser = money, help_heading = LIVE)]
    pub(crate) spend_money: Option<Money>,
    /// Certificates in PEM that are trusted beside Mozilla's
    #[arg(long, value_name = "FILE", requires = "llm", help_heading = LIVE)]
    pub(crate) llm_ca: Option<PathBuf>,
    /// Seconds without a byte after which a request to the endpoint is lost
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=3600), help_heading = LIVE)]
    pub(crate) llm_timeout: u64,
    /// Cgroup of version 2 with the memory controller for its children: the peak memory of another agent's
    /// process tree is then the kernel's own figure, in place of samples
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Price table, a TOML file: tells what the runs' tokens cost, and is kept in the run folder
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Go on with this run folder, a path or a URL: what it lacks is run, and what the harness failed is run
    /// again. `auto`: with the newest in --out that is of this plan and part and lacks runs; where there is none,
    /// begin one
    #[arg(long, value_name = "DIR|URL", conflicts_with = "prices")]
    pub(crate) resume: Option<PathBuf>,
    /// Run one part of the plan, such as 2/4, and judge nothing; `auto/4` takes the part's number from
    /// JOB_COMPLETION_INDEX (from 0), CI_NODE_INDEX or SLURM_ARRAY_TASK_ID (from 1)
    #[arg(long, value_name = "M/N", value_parser = crate::shard::parse, conflicts_with = "bless")]
    pub(crate) shard: Option<Shard>,
    /// Make this run the accepted one, DIR/baseline, for this reason (only on exit 0 or 3)
    #[arg(long, value_name = "REASON", value_parser = reason)]
    pub(crate) bless: Option<String>,
    /// Show the acceptance live in a browser while it runs: on 127.0.0.1:8700, or the address given
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:8700", value_parser = address)]
    pub(crate) serve: Option<SocketAddr>,
    /// Write the acceptance's figures there, for Prometheus' textfile collector
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Measure, after the runs, what so many executions of the built-in subject take of one host, such as
    /// 1,8,32: all in one process at once, under each configuration
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = at_least_one, conflicts_with_all = ["shard", "llm"])]
    pub(crate) executions: Vec<NonZeroU32>,
    /// Memory that the host has for them
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "executions", default_value = "2GiB")]
    pub(crate) memory_limit: u64,
    /// Print no progress
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print events, one JSON object a line; the last one holds the verdict (with --quiet it is the only one)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// The agent under test, as `accept` takes it; it need not be installed
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) subject: Option<PathBuf>,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The heading of what concerns a real endpoint.
const LIVE: &str = "A real endpoint (docs/live.md)";

/// A real endpoint in place of the simulated model.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// The endpoint, by its API and the base address that the vendor's clients take:
    /// openai:https://HOST/v1 or anthropic:https://HOST. A cap on what may be spent is needed
    #[arg(long, value_name = "API:URL", help_heading = LIVE)]
    pub(crate) llm: Option<String>,
    /// The model, in place of the scenarios' own
    #[arg(long, value_name = "NAME", requires = "llm", value_parser = model_name, help_heading = LIVE)]
    pub(crate) model: Option<String>,
    /// Environment variable that holds the key [default: OPENAI_API_KEY or ANTHROPIC_API_KEY]
    #[arg(long, value_name = "VARIABLE", requires = "llm", help_heading = LIVE)]
    pub(crate) llm_key_env: Option<String>,
}

/// What is run, on what.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Scenario files in place of the built-in ones
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["document", "repo"])]
    pub(crate) scenario: Vec<PathBuf>,
    /// Summarise this text file in place of the built-in inputs
    #[arg(long, value_name = "FILE", conflicts_with = "repo")]
    pub(crate) document: Option<PathBuf>,
    /// Review a range of this git repository in place of the built-in inputs
    #[arg(long, value_name = "DIR", requires = "range")]
    pub(crate) repo: Option<PathBuf>,
    /// The range to review, as git spells it
    #[arg(
        long,
        value_name = "A..B",
        requires = "repo",
        allow_hyphen_values = true
    )]
    pub(crate) range: Option<String>,
    /// Class of the real input, in place of the one that its largest result gives
    #[arg(long, value_name = "CLASS", value_enum)]
    pub(crate) class: Option<ClassArg>,
    /// Texts that a good answer contains; without any, facts are derived from the whole text
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    pub(crate) expect: Vec<String>,
    /// `quick` runs 2 repetitions, `full` the scenario's own number
    #[arg(long, value_enum, default_value = "full")]
    pub(crate) stage: StageArg,
    /// Repetitions of each cell, in place of the stage's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) reps: Option<u32>,
    /// Seed from which all others are derived
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StageArg {
    Quick,
    Full,
}

impl From<StageArg> for Stage {
    fn from(stage: StageArg) -> Self {
        match stage {
            StageArg::Quick => Self::Quick,
            StageArg::Full => Self::Full,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ClassArg {
    Small,
    Medium,
    Large,
    Document,
}

impl From<ClassArg> for Class {
    fn from(class: ClassArg) -> Self {
        match class {
            ClassArg::Small => Self::Small,
            ClassArg::Medium => Self::Medium,
            ClassArg::Large => Self::Large,
            ClassArg::Document => Self::Document,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// The run folder, such as reports/latest, or its URL: nothing is then written there
    #[arg(value_name = "DIR|URL")]
    pub(crate) dir: PathBuf,
    /// Print the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run folder, such as reports/latest, or its URL
    #[arg(value_name = "DIR|URL")]
    pub(crate) dir: PathBuf,
    /// Write the page of this run alone, run-ID.html: its id or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with_all = ["json", "prices"])]
    pub(crate) run: Option<String>,
    /// Put this price table, a TOML file, into the folder, in the place of one that it has
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Print the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Run folders, such as reports/baseline and reports/latest, or their URLs: two of one subject, or folders of
    /// several subjects that had the same inputs
    #[arg(value_name = "DIR|URL", required = true, num_args = 2..)]
    pub(crate) folders: Vec<PathBuf>,
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "compare.html")]
    pub(crate) out: PathBuf,
    /// Write the figures of several subjects there, a row for each input, subject and configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Print what differs, or the figures, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Transcripts: files, or folders of them, plain or packed (.zst, .gz, .zip)
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Thresholds from which on results leave the prompt; off, which is always there, is as recorded
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "off,4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB"
    )]
    pub(crate) thresholds: Vec<String>,
    /// Policies: workflow-step, inline-cap, envelope
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "workflow-step"
    )]
    pub(crate) policy: Vec<String>,
    /// Most bytes of a replacement: own (the policy's own), or a size, for inline-cap and envelope
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "own"
    )]
    pub(crate) replacement: Vec<String>,
    /// What is read back of a replaced result: none, whole, a share such as 0.25, each at once; or used, used:0.25, when the
    /// transcript shows that the model used it
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,used,whole"
    )]
    pub(crate) read_back: Vec<String>,
    /// Context window that the largest inputs are held against
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub(crate) window: Option<u64>,
    /// Price table, a TOML file: tells what the inputs cost
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Block of the prompt cache that is assumed
    #[arg(long, value_name = "TOKENS", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cache_block: u64,
    /// Least prompt that it holds
    #[arg(long, value_name = "TOKENS", default_value_t = 1024)]
    pub(crate) cache_minimum: u64,
    /// Something that must hold, such as 'saved_input_tokens >= 10%'; may be given several times
    #[arg(long, value_name = "EXPR")]
    pub(crate) gate: Vec<String>,
    /// Folder in which the replay's folder is made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub(crate) out: PathBuf,
    /// Files that are read at the same time [default: the number of processors]
    #[arg(long, value_name = "J", value_parser = positive)]
    pub(crate) jobs: Option<usize>,
    /// Print no progress
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    #[command(subcommand)]
    pub(crate) verb: ScenarioVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ScenarioVerb {
    /// Turn a recorded transcript into a scenario whose tools return what they returned then
    #[command(
        after_help = "Example: spillgate scenario from-trace session.jsonl --out my-session\nThe folder holds the transcript's content: keep it where the transcript may be kept."
    )]
    FromTrace(FromTraceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FromTraceArgs {
    /// The transcript: any format that `replay` reads, plain or packed
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which session of the file: its id, or else its number among those with tool results
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Folder for scenario.toml and calls.jsonl, new or empty [default: recorded-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The file; one that is there is not overwritten
    #[arg(long, value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) out: PathBuf,
    /// What the agent is asked to do
    #[arg(long, value_enum, default_value = "review")]
    pub(crate) recipe: InitRecipe,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum InitRecipe {
    /// Review a change
    Review,
    /// Summarise a document
    Document,
    /// Answer questions about tables and logs
    Records,
}

impl InitRecipe {
    /// The recipe's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Document => "document",
            Self::Records => "records",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Folder that holds the run folders
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub(crate) reports: PathBuf,
    /// Address to listen on; one that is not a loopback address needs --allow-remote
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8700", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Let other hosts in that have the token of the environment variable SPILLGATE_TOKEN
    #[arg(long)]
    pub(crate) allow_remote: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    /// The job, a JSON file
    #[arg(long, value_name = "FILE", required_unless_present = "print_settings")]
    pub(crate) job: Option<PathBuf>,
    /// Print the settings that the environment gives, and run nothing
    #[arg(long)]
    pub(crate) print_settings: bool,
    /// Run so many executions of the step at once, in this process; prints a line for each as it ends, and
    /// at last what they took of memory
    #[arg(long, value_name = "N", value_parser = at_least_one, conflicts_with = "print_settings")]
    pub(crate) executions: Option<NonZeroU32>,
    /// With --executions, print the last line alone
    #[arg(long, requires = "executions")]
    pub(crate) totals: bool,
    /// Write the step's spill counters there, for Prometheus' textfile collector
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MockArgs {
    /// Scenario file in place of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Input of the scenario [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) input: Option<String>,
    /// Seed of the run
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Loopback address of the mock LLM
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) listen: SocketAddr,
    /// Loopback address of the mock tool server
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) tools_listen: SocketAddr,
    /// Serve the tools alone, on standard input and output, in place of both servers
    #[arg(long, conflicts_with_all = ["listen", "tools_listen"])]
    pub(crate) stdio: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Run folders of the plan's shards; a URL that holds several stands for all of them
    #[arg(value_name = "DIR|URL", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Folder in which the joined run folder is made, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "DIR|URL", default_value = "reports")]
    pub(crate) out: PathBuf,
    /// Print the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Thresholds: sizes with commas between, and ranges, which double from the first to the last
    #[arg(long, value_name = "LIST", default_value = "8KiB..512KiB")]
    pub(crate) thresholds: String,
    /// The spill policy whose limit is swept
    #[arg(long, value_name = "POLICY", default_value = "workflow-step",
        value_parser = ["workflow-step", "inline-cap", "envelope"])]
    pub(crate) policy: String,
    /// Shares of the limit that a preview may fill
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) preview_share: Vec<f64>,
    /// Profiles, each as the only one of the simulated model
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) profile: Vec<String>,
    /// Context windows of the simulated model, in tokens
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = tokens)]
    pub(crate) window: Vec<u64>,
    /// Bytes that one read of the simulated model asks for at most
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub(crate) read_cap: Vec<u64>,
    /// Runs at the same time [default: the number of processors]
    #[arg(long, value_name = "J", value_parser = positive)]
    pub(crate) jobs: Option<usize>,
    /// Folder in which the run folder is made
    #[arg(long, value_name = "DIR", default_value = "reports")]
    pub(crate) out: PathBuf,
    /// Go on with this sweep's folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Print no progress
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Print the curves as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn money(text: &str) -> Result<Money, String> {
    Money::parse(text)
        .filter(|money| *money > Money::default())
        .ok_or_else(|| format!("{text:?} is no amount above 0 (write 5 or 12.50)"))
}

fn size(text: &str) -> Result<u64, String> {
    let most = u64::MAX >> 30;
    spill_scenario::parse_size(text)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| {
            format!("{text:?} is no size from 1 to {most}GiB (write 131072, 128KiB or 1MiB)")
        })
}

#[derive(Debug, Args)]
pub(crate) struct SelfTestArgs {
    /// Print the outcomes as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlantedArgs {
    /// The arguments of `step`, or `relay PORT URL [FAULT]`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for spillgate.1 and a page for each verb
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

fn reason(text: &str) -> Result<String, String> {
    const LONGEST: usize = 500;
    match text.trim() {
        "" => Err("a reason is needed: it is what later readers of the baseline have".to_owned()),
        long if long.len() > LONGEST => Err(format!("a reason has at most {LONGEST} bytes")),
        reason => Ok(reason.to_owned()),
    }
}

fn model_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("the name of a model is needed, as the endpoint spells it".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<NonZeroU32, String> {
    let most = u32::MAX;
    text.trim()
        .parse()
        .map_err(|_| format!("a whole number from 1 to {most} is needed"))
}

fn tokens(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => {
            let most = u64::MAX;
            Err(format!(
                "it is no whole number of tokens from 1 to {most} (write 200000)"
            ))
        }
        Ok(number) => Ok(number),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "an address is an IP address and a port from 0 to 65535; names are not looked up (write 127.0.0.1:8700, or \
         [::1]:8700)"
            .to_owned()
    })
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("a whole number from 1 to {} is needed", usize::MAX)),
        Ok(number) => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// What `step` alone reads of a command line is what all verbs together read of it.
    #[test]
    fn step_is_read_alone_as_among_all_verbs() {
        let check = |line: &str, alone: bool| {
            let given: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let read = step_alone(&given);
            assert_eq!(read.is_some(), alone, "{line}");
            if let Some(read) = read {
                let whole = Cli::try_parse_from(&given).expect("a command line").verb;
                assert_eq!(format!("{:?}", Verb::Step(read)), format!("{whole:?}"));
            }
        };
        check("spillgate step --job a.json", true);
        check("spillgate step --job=a.json --executions 3 --totals", true);
        check("spillgate step --print-settings", true);
        check("spillgate step --job step --metrics-file step", true);
        for refused in [
            "",
            " --help",
            " --version",
            " --job a.json --totals",
            " --jo a",
        ] {
            check(&format!("spillgate step{refused}"), false);
        }
        check("spillgate accept --job step", false);
        check("spillgate --help step", false);
        check("spillgate", false);
    }
}
