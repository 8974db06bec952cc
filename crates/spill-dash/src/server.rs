//! The server: pages, events, figures.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use futures::stream;
use jiff::Timestamp;
use rustix::fs::OFlags;
use spill_record::{FolderError, FolderKind, RunFolder, RunSet};
use spill_report::{Calls, Context};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::board::Board;
use crate::error::DashError;
use crate::guard::{self, COOKIE, Refusal, TOKEN_LEAST, Token};
use crate::page;
use crate::reports::Reports;

/// Between two looks at the folders.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A comment that keeps idle connections open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Answers of a folder's report that are kept.
const REPORTS_KEPT: usize = 8;
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// What a report's own policy, which allows its one script by its digest, cannot say for itself.
const REPORT_POLICY: &str = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Files of a run folder that are served, with their types.
const FILES: [(&str, &str); 12] = [
    ("runs.csv", "text/csv; charset=utf-8"),
    ("summary.csv", "text/csv; charset=utf-8"),
    ("rules.csv", "text/csv; charset=utf-8"),
    ("verdict.json", "application/json"),
    ("manifest.json", "application/json"),
    ("runs.jsonl", "application/jsonl"),
    ("calls.jsonl", "application/jsonl"),
    ("junit.xml", "application/xml"),
    ("summary.md", "text/markdown; charset=utf-8"),
    ("leaks.sarif", "application/json"),
    ("sweep.json", "application/json"),
    ("sweep.csv", "text/csv; charset=utf-8"),
];

/// What a dashboard shows, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that holds the run folders.
    pub reports: PathBuf,
    /// Where it listens; any address that is no loopback one needs a token.
    pub listen: SocketAddr,
    /// What opens it.
    pub token: Option<Token>,
}

/// A running dashboard; dropped, it ends.
#[derive(Debug)]
pub struct Dashboard {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Dashboard {
    /// Binds the address and begins to look.
    ///
    /// # Errors
    ///
    /// Fails when strangers could look in, the address cannot be bound, or the reports folder cannot be
    /// listed.
    pub async fn start(options: Options) -> Result<Self, DashError> {
        let Options {
            reports,
            listen,
            token,
        } = options;
        if !listen.ip().is_loopback() && token.is_none() {
            return Err(DashError::Open {
                address: listen,
                least: TOKEN_LEAST,
            });
        }
        let reports = Reports::open(&reports)?;
        let listen_error = |source| DashError::Listen {
            address: listen,
            source,
        };
        let listener = TcpListener::bind(listen).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let (sender, shown) = watch::channel(Arc::new(Shown::of(&reports)));
        let reports = Arc::new(Mutex::new(reports));
        let look = tokio::spawn(look(reports.clone(), sender));
        let shared = Arc::new(Shared {
            reports,
            shown,
            address,
            token,
            rendered: Mutex::new(Vec::new()),
        });
        let serve = tokio::spawn(async move {
            let served = axum::serve(listener, router(shared));
            // It ends with the task; there is no other end.
            drop(served.await);
        });
        Ok(Self {
            address,
            tasks: [look, serve],
        })
    }

    /// Its address, as a browser takes it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What is served to everybody until the next look: made once, however many look.
#[derive(Debug)]
struct Shown {
    board: Board,
    fragment: String,
    metrics: Bytes,
}

impl Shown {
    fn of(reports: &Reports) -> Self {
        let board = reports.board(Timestamp::now());
        Self {
            fragment: page::fragment(&board),
            metrics: reports.metrics(&board).into(),
            board,
        }
    }
}

struct Shared {
    reports: Arc<Mutex<Reports>>,
    shown: watch::Receiver<Arc<Shown>>,
    address: SocketAddr,
    token: Option<Token>,
    /// Reports by folder, newest last; each as of what it shows.
    rendered: Mutex<Vec<(String, AsOf, Arc<str>)>>,
}

/// What a report shows of its folder: the runs recorded, and whether they can still be more.
type AsOf = (u64, bool);

/// Looks again and again; whoever is slow to read misses looks, and holds up nobody.
async fn look(reports: Arc<Mutex<Reports>>, sender: watch::Sender<Arc<Shown>>) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let reports = reports.clone();
        let before = sender.borrow().clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            // A folder that cannot be listed for a moment keeps what was seen of it.
            drop(reports.look());
            let board = reports.board(Timestamp::now());
            (board != before.board).then(|| Shown::of(&reports))
        });
        match looked.await {
            Ok(Some(shown)) => drop(sender.send_replace(Arc::new(shown))),
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(index))
        .route("/events", get(events))
        .route("/metrics", get(metrics))
        .route("/api/board", get(board))
        .route("/dash.css", get(style))
        .route("/dash.js", get(script))
        .route("/login", get(ask_token).post(take_token))
        .route("/runs/{id}/", get(report))
        .route("/runs/{id}/runs", get(run_list))
        .route("/runs/{id}/run/{run}", get(run_page))
        .route("/runs/{id}/files/{name}", get(file))
        .layer(middleware::from_fn_with_state(shared.clone(), guarded))
        .with_state(shared)
}

/// Lets only those in who may, and sets the headers that every answer has.
async fn guarded(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let refusal = guard::check(request.headers(), shared.address, shared.token.as_ref()).err();
    let path = request.uri().path();
    let open = matches!(path, "/login" | "/dash.css");
    let mut response = match refusal {
        None => next.run(request).await,
        Some(Refusal::Token) if open => next.run(request).await,
        Some(Refusal::Token) if path == "/" => Redirect::to("/login").into_response(),
        Some(Refusal::Token) => said(
            StatusCode::UNAUTHORIZED,
            "a token is needed: Authorization: Bearer <token>",
        ),
        Some(Refusal::Hosts) => said(StatusCode::BAD_REQUEST, "a request has one Host header"),
        Some(Refusal::Host) => said(
            StatusCode::MISDIRECTED_REQUEST,
            "this dashboard answers under its own address alone",
        ),
        Some(Refusal::Origin) => said(
            StatusCode::FORBIDDEN,
            "this dashboard answers its own pages alone",
        ),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    response
}

fn said(status: StatusCode, words: &'static str) -> Response {
    (status, format!("{words}\n")).into_response()
}

async fn index(State(shared): State<Arc<Shared>>) -> Html<String> {
    let shown = shared.shown.borrow().clone();
    Html(page::page(&shown.fragment))
}

async fn events(
    State(shared): State<Arc<Shared>>,
) -> Sse<impl futures::Stream<Item = Result<Event, Infallible>>> {
    let receiver = shared.shown.clone();
    let events = stream::unfold((receiver, true), |(mut receiver, first)| async move {
        if !first {
            receiver.changed().await.ok()?;
        }
        let shown = receiver.borrow_and_update().clone();
        let event = Event::default().event("board").data(&shown.fragment);
        Some((Ok(event), (receiver, false)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let shown = shared.shown.borrow().clone();
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shown.metrics.clone()).into_response()
}

async fn board(State(shared): State<Arc<Shared>>) -> Response {
    let shown = shared.shown.borrow().clone();
    axum::Json(&shown.board).into_response()
}

async fn style() -> Response {
    (
        [(header::CONTENT_TYPE, "text/css; charset=utf-8")],
        page::STYLE,
    )
        .into_response()
}

async fn script() -> Response {
    let kind = "text/javascript; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], page::SCRIPT).into_response()
}

async fn ask_token() -> Html<String> {
    Html(page::login())
}

/// Turns a token into a cookie that scripts cannot read.
async fn take_token(State(shared): State<Arc<Shared>>, body: String) -> Response {
    let offered = body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, _)| *name == "token")
        .map(|(_, value)| value);
    let admitted = match (&shared.token, offered) {
        (Some(token), Some(offered)) => token.admits(offered),
        (None, _) => true,
        (Some(_), None) => false,
    };
    if !admitted {
        return said(StatusCode::UNAUTHORIZED, "this is not the token");
    }
    let cookie = format!(
        "{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/",
        offered.unwrap_or_default()
    );
    match HeaderValue::from_str(&cookie) {
        Ok(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        Err(_) => said(StatusCode::UNAUTHORIZED, "this is not the token"),
    }
}

/// The path of a run folder that the board shows.
fn folder(shared: &Shared, id: &str) -> Option<PathBuf> {
    let reports = shared
        .reports
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    reports.folder(id)
}

async fn report(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let Some(path) = folder(&shared, &id) else {
        return said(StatusCode::NOT_FOUND, "there is no such acceptance");
    };
    let as_of = {
        let shown = shared.shown.borrow();
        let card = shown.board.cards.iter().find(|card| card.id == id);
        card.map_or((0, true), |card| (card.done, card.provisional))
    };
    if let Some(html) = kept(&shared, &id, as_of) {
        return report_page(html);
    }
    let rendered = tokio::task::spawn_blocking(move || render(&path));
    match rendered.await {
        Ok(Ok(html)) => {
            let html: Arc<str> = html.into();
            let mut rendered = shared
                .rendered
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            rendered.retain(|(known, _, _)| *known != id);
            if rendered.len() >= REPORTS_KEPT {
                rendered.remove(0);
            }
            rendered.push((id, as_of, html.clone()));
            report_page(html)
        }
        Ok(Err(error)) => (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
        Err(_) => said(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the report could not be made",
        ),
    }
}

/// The report of a folder, as `spillgate report` renders it, but for what changed since the accepted
/// run: that is part of the written one.
fn render(path: &std::path::Path) -> Result<String, FolderError> {
    let set = RunFolder::read(path)?;
    match set.manifest.kind {
        FolderKind::Acceptance => {}
        FolderKind::Sweep => return render_sweep(path, &set),
    }
    let verdict = spill_verdict::judge(&set);
    let mut calls = Calls::of(&set, &verdict);
    let wanted = calls.wanted();
    RunFolder::each_call_of(path, |id| wanted.contains(id), |call| calls.take(call))?;
    let context = Context {
        calls: Some(&calls),
        baseline: None,
    };
    Ok(spill_report::render(&set, &verdict, context).report_html)
}

/// The curves of a sweep's folder, as `spillgate sweep` renders them.
fn render_sweep(path: &std::path::Path, set: &RunSet) -> Result<String, FolderError> {
    let sweep = spill_verdict::sweep(set);
    let mut calls = Calls::of_control(set);
    let wanted = calls.wanted();
    RunFolder::each_call_of(path, |id| wanted.contains(id), |call| calls.take(call))?;
    Ok(spill_report::sweep(set, &sweep, &calls).html)
}

/// All runs of a folder, each with a link to its page.
async fn run_list(State(shared): State<Arc<Shared>>, Path(id): Path<String>) -> Response {
    let Some(path) = folder(&shared, &id) else {
        return said(StatusCode::NOT_FOUND, "there is no such acceptance");
    };
    match tokio::task::spawn_blocking(move || RunFolder::read(&path)).await {
        Ok(Ok(set)) => Html(page::runs(&id, &set)).into_response(),
        Ok(Err(error)) => (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
        Err(_) => said(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the page could not be made",
        ),
    }
}

fn kept(shared: &Shared, id: &str, as_of: AsOf) -> Option<Arc<str>> {
    let rendered = shared
        .rendered
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let found = rendered
        .iter()
        .find(|(known, of, _)| known == id && *of == as_of);
    found.map(|(_, _, html)| html.clone())
}

fn report_page(html: Arc<str>) -> Response {
    let policy = [(header::CONTENT_SECURITY_POLICY, REPORT_POLICY)];
    (policy, Html(html.to_string())).into_response()
}

async fn run_page(
    State(shared): State<Arc<Shared>>,
    Path((id, run)): Path<(String, String)>,
) -> Response {
    let Some(path) = folder(&shared, &id) else {
        return said(StatusCode::NOT_FOUND, "there is no such acceptance");
    };
    let rendered = tokio::task::spawn_blocking(move || {
        let set = RunFolder::read(&path)?;
        let mut calls = Vec::new();
        RunFolder::each_call_of(&path, |id| id == run, |call| calls.push(call))?;
        Ok::<_, FolderError>(spill_report::run_page(&set, &calls, &run))
    });
    match rendered.await {
        Ok(Ok(Some(html))) => report_page(html.into()),
        Ok(Ok(None)) => said(
            StatusCode::NOT_FOUND,
            "there is no such run in this acceptance",
        ),
        Ok(Err(error)) => (StatusCode::CONFLICT, format!("{error}\n")).into_response(),
        Err(_) => said(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the page could not be made",
        ),
    }
}

async fn file(
    State(shared): State<Arc<Shared>>,
    Path((id, name)): Path<(String, String)>,
) -> Response {
    let known = FILES.iter().find(|(known, _)| *known == name);
    let (Some(path), Some((name, kind))) = (folder(&shared, &id), known) else {
        return said(StatusCode::NOT_FOUND, "there is no such file");
    };
    match open_regular(&path.join(name)).await {
        Ok(file) => {
            let body = Body::from_stream(pieces(file));
            ([(header::CONTENT_TYPE, *kind)], body).into_response()
        }
        Err(_) => said(StatusCode::NOT_FOUND, "there is no such file"),
    }
}

/// Opens a file of a run folder; a link in its place is not followed, a pipe is not waited for.
async fn open_regular(path: &std::path::Path) -> io::Result<tokio::fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut options = tokio::fs::OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path).await?;
    if file.metadata().await?.is_file() {
        Ok(file)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The bytes of a file, a piece at a time.
fn pieces(file: tokio::fs::File) -> impl futures::Stream<Item = io::Result<Vec<u8>>> {
    stream::unfold(Some(file), |file| async move {
        let mut file = file?;
        let mut piece = vec![0; 64 << 10];
        match tokio::io::AsyncReadExt::read(&mut file, &mut piece).await {
            Ok(0) => None,
            Ok(read) => {
                piece.truncate(read);
                Some((Ok(piece), Some(file)))
            }
            Err(error) => Some((Err(error), None)),
        }
    })
}
