//! `mock`: the mock servers alone.

use std::io::BufRead;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use spill_mocks::{LlmServer, MockRun, Registry, ToolServer};
use spill_scenario::{Scenario, ServedInput, built_in, canary_seed, load};

use crate::cli::MockArgs;
use crate::{Failure, out};

const VERB: &str = "mock";
/// The run that other clients are part of.
const RUN_ID: &str = "mock";

pub(crate) fn run(args: &MockArgs) -> Result<u8, Failure> {
    let run = mock_run(args).map_err(|error| Failure::usage(VERB, error))?;
    if args.stdio {
        serve_stdio(run).map_err(|error| Failure::usage(VERB, error))?;
        return Ok(0);
    }
    for address in [args.listen, args.tools_listen] {
        check_loopback(address).map_err(|error| Failure::usage(VERB, error))?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    runtime
        .block_on(serve(args, run))
        .map_err(|error| Failure::usage(VERB, error))?;
    Ok(0)
}

fn check_loopback(address: SocketAddr) -> anyhow::Result<()> {
    anyhow::ensure!(
        address.ip().is_loopback(),
        "{address} is not a loopback address (the mock servers listen on 127.0.0.1 only)"
    );
    Ok(())
}

fn mock_run(args: &MockArgs) -> anyhow::Result<MockRun> {
    let scenarios = match &args.scenario {
        Some(path) => vec![load(path)?],
        None => built_in()?,
    };
    let names = || -> Vec<String> {
        let inputs = |scenario: &Scenario| -> Vec<String> {
            scenario
                .inputs
                .iter()
                .map(|input| input.name.clone())
                .collect()
        };
        scenarios.iter().flat_map(inputs).collect()
    };
    let (scenario, input) = scenarios
        .iter()
        .flat_map(|scenario| scenario.inputs.iter().map(move |input| (scenario, input)))
        .find(|(_, input)| args.input.as_ref().is_none_or(|name| *name == input.name))
        .with_context(|| {
            let asked = args.input.as_deref().unwrap_or("");
            format!(
                "there is no input {asked} (give --input one of {})",
                names().join(", ")
            )
        })?;
    let profile = scenario.model.draw(args.seed);
    let seed = canary_seed(args.seed, &scenario.name, &input.name);
    Ok(MockRun {
        run_id: RUN_ID.to_owned(),
        recipe: scenario.recipe,
        served: Arc::new(ServedInput::new(input, seed)),
        seed: args.seed,
        scenario: scenario.name.clone(),
        model: Arc::new(scenario.model.clone()),
        profile,
        faults: scenario.faults_of(args.seed, 0).into(),
    })
}

/// Answers each line of standard input with one of standard output, until the input ends.
fn serve_stdio(run: MockRun) -> anyhow::Result<()> {
    let registry = Registry::new(Arc::default());
    registry.register(run);
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line.context("standard input cannot be read")?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(answer) = registry.tools_message(RUN_ID, &line) {
            out::line(format_args!("{}", String::from_utf8_lossy(&answer)));
        }
        anyhow::ensure!(
            !out::lost(),
            "an answer cannot be printed (give standard output a place)"
        );
    }
    Ok(())
}

async fn serve(args: &MockArgs, run: MockRun) -> anyhow::Result<()> {
    let registry = Arc::new(Registry::new(Arc::default()));
    let spoils_tools = run
        .faults
        .iter()
        .any(|fault| fault.kind.server() == "tools");
    registry.register(run);
    let in_use = |address: SocketAddr, flag: &str| {
        format!("cannot listen on {address} (give {flag} a free port, or port 0 for any)")
    };
    let llm = LlmServer::start(args.listen, registry.clone())
        .await
        .with_context(|| in_use(args.listen, "--listen"))?;
    let tools = ToolServer::start(args.tools_listen, registry)
        .await
        .with_context(|| in_use(args.tools_listen, "--tools-listen"))?;
    out::line(format_args!("llm {}", llm.base_url(RUN_ID)));
    let tools_url = if spoils_tools {
        llm.tools_url(RUN_ID)
    } else {
        tools.url(RUN_ID)
    };
    out::line(format_args!("tools {tools_url}"));
    out::line(format_args!("root {}", llm.root_url(RUN_ID)));
    anyhow::ensure!(
        !out::lost(),
        "the addresses cannot be printed (give standard output a place)"
    );
    tokio::signal::ctrl_c()
        .await
        .context("signals cannot be listened to")
}
