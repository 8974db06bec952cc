//! `serve`, and the dashboard beside `accept`.

use std::net::SocketAddr;
use std::path::Path;

use spill_dash::{Dashboard, Options, Token};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::ServeArgs;
use crate::remote::path_only;
use crate::{Failure, out};

const VERB: &str = "serve";
const TOKEN_VAR: &str = "SPILLGATE_TOKEN";
/// Names the threads of a dashboard beside an acceptance, so that what it costs can be told apart.
const THREAD: &str = "dashboard";

pub(crate) fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let usage = |error| Failure::usage(VERB, error);
    let reports = path_only("--reports", &args.reports).map_err(usage)?;
    if !args.allow_remote {
        let way_out = format!("add --allow-remote and set {TOKEN_VAR}, or listen on 127.0.0.1");
        reachable_here_alone(args.listen, &way_out).map_err(usage)?;
    }
    let options = options(&reports, args.listen).map_err(usage)?;
    if !reports.exists() {
        out::note(format_args!(
            "note: the folder {} is not there; it is shown once it is (another one: --reports DIR)",
            reports.display()
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(VERB, error))?;
    let ended = runtime.block_on(async {
        let dashboard = Dashboard::start(options)
            .await
            .map_err(|error| Failure::usage(VERB, error))?;
        out::line(format_args!("dashboard: {}", dashboard.url()));
        let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        let [interrupt, terminate] = signals;
        let (mut interrupt, mut terminate) = match (interrupt, terminate) {
            (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
            (Err(error), _) | (_, Err(error)) => return Err(Failure::internal(VERB, error)),
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(0)
    });
    // A file system that does not answer must not hold up the end.
    runtime.shutdown_background();
    ended
}

fn reachable_here_alone(listen: SocketAddr, way_out: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        listen.ip().is_loopback(),
        "{listen} can be reached by other hosts ({way_out})"
    );
    Ok(())
}

fn options(reports: &Path, listen: SocketAddr) -> anyhow::Result<Options> {
    let token = std::env::var(TOKEN_VAR)
        .ok()
        .filter(|text| !text.is_empty());
    Ok(Options {
        reports: reports.to_owned(),
        listen,
        token: token.as_deref().map(Token::new).transpose()?,
    })
}

/// A dashboard on a thread of its own, beside a running acceptance; it ends with the program.
pub(crate) fn beside(reports: &Path, listen: SocketAddr) -> Result<(), Failure> {
    let usage = |error| Failure::usage("accept", error);
    let way_out = "give --serve an address such as 127.0.0.1:8700; `spillgate serve --allow-remote` shows the folder to others";
    reachable_here_alone(listen, way_out).map_err(usage)?;
    let options = options(reports, listen).map_err(usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_name(THREAD)
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("accept", error))?;
    let dashboard = runtime
        .block_on(Dashboard::start(options))
        .map_err(|error| usage(error.into()))?;
    out::note(format_args!("dashboard: {}", dashboard.url()));
    let thread = std::thread::Builder::new().name(THREAD.to_owned());
    thread
        .spawn(move || {
            runtime.block_on(std::future::pending::<()>());
            drop(dashboard);
        })
        .map_err(|error| Failure::internal("accept", error))?;
    Ok(())
}
