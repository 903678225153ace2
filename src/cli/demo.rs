//! `demo`: runs everything on loopback, without an API key or a config: the data service with the bundled schedules, a daemon
//! that polls it, a webhook and a mail receiver, and a scripted correction that the diff detects.
//!
//! The daemon runs as usual, with a schedule, HTTP, the starter rules, and a database on disk. The demo prints the messages that
//! the receivers get.

mod correction;
mod files;
mod printing;
mod receivers;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;

use super::{Exit, Invocation, parse_address, run::block_on_workers};
use correction::{CORRECTION_AFTER, run_corrections};
use daemon::app::{self, App, AppError, Drive};
use files::{DemoAddresses, write_files};
use model::{Clock, phrase};
use printing::{DemoLine, print_lines};
use service::{Options, Service, ServiceError};

/// The time limit for printing the last lines after everything else has ended.
const PRINT_TIMEOUT: Duration = Duration::from_secs(2);
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// Folder for database, config, and rules; default: a temporary folder, removed at the end
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Address of the web pages
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: String,
}

#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("cannot {doing}")]
    Io { doing: &'static str, source: io::Error },
    #[error("cannot fill the data service")]
    Service(#[from] ServiceError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error("cannot create a token: the system provides no random bytes")]
    NoRandom,
    #[error("the demo's config is not valid:\n{0}")]
    Config(String),
    #[error("{} exists and does not belong to the demo: choose another folder with --dir", .0.display())]
    NotOurs(PathBuf),
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { doing, source }
}

pub(super) fn run(args: &DemoArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    daemon::log::start_quiet(invocation.verbose);
    let listen = parse_address(&args.listen, "--listen")?;
    block_on_workers(async {
        let folder = match &args.dir {
            Some(folder) => folder.clone(),
            None => fresh_folder().context("cannot create a folder for the demo")?,
        };
        let ran = run_until(&folder, listen, app::stop_requested()).await;
        if args.dir.is_none() {
            // A folder that cannot be removed is in the system's temporary folder.
            std::fs::remove_dir_all(&folder).ok();
        }
        ran?;
        Ok(Exit::Done)
    })
}

/// Runs until `stop`. `folder` contains database, config, and rules; `listen` is the address of the web pages.
async fn run_until(folder: &Path, listen: SocketAddr, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), DemoError> {
    let began = Instant::now();
    let (print, lines) = mpsc::unbounded_channel();
    let printing = tokio::spawn(print_lines(lines, began));
    let ending = CancellationToken::new();

    let service = Service::in_memory(Options { access: service::AccessPolicy::Open, ..Options::default() })?;
    let imported = service.import(service::bundled(), |_| {})?;
    let source = bind("open the data service").await?;
    let source_address = source.local_addr().map_err(io_error("open the data service"))?;
    let router = service.router();
    tokio::spawn(service::serve(source, router, ending.clone().cancelled_owned()));

    let webhook_address = receivers::webhook(print.clone(), ending.clone()).await?;
    let mail_address = receivers::mail_server(print.clone(), ending.clone()).await?;

    let listen = bound_address(listen).map_err(io_error("find a port for the pages"))?;
    let token = web::fresh_token().ok_or(DemoError::NoRandom)?;
    let addresses = DemoAddresses { source: source_address, webhook: webhook_address, mail: mail_address, listen };
    write_files(folder, &addresses, &token, Clock::system().now())?;
    let loaded = daemon::config::load(Some(&folder.join("cliffwatch.toml")), &daemon::config::Environment::default());
    let Some(config) = loaded.config else {
        return Err(DemoError::Config(model::diagnostic::render(&loaded.diagnostics, &loaded.sources, false)));
    };
    let app = App::open(config, folder, Clock::system(), Drive::Schedule).await?;

    let opening = DemoOpening {
        tokens: imported.tokens,
        events: imported.events,
        service: source_address,
        webhook: webhook_address,
        mail: mail_address,
        folder: folder.to_owned(),
        token,
    };
    let say = print.clone();
    let started = move |address: Option<SocketAddr>| {
        say.send(DemoLine::Text(opening.text(address))).ok();
    };
    let correction = tokio::spawn(run_corrections(service.clone(), print.clone(), ending.clone()));
    let ran = app.run(web::serve, stop, started).await;
    ending.cancel();
    correction.abort();
    print.send(DemoLine::End).ok();
    // Wait for the last lines to be printed.
    let printed = tokio::time::timeout(PRINT_TIMEOUT, printing).await;
    ran?;
    let printed = printed.ok().and_then(Result::ok).unwrap_or_default();
    let _written = writeln!(anstream::stdout(), "\nThe demo has ended: {}.", printed.text());
    Ok(())
}

/// The introduction that is printed once everything runs.
struct DemoOpening {
    tokens: usize,
    events: usize,
    service: SocketAddr,
    webhook: SocketAddr,
    mail: SocketAddr,
    folder: PathBuf,
    token: String,
}

impl DemoOpening {
    fn text(&self, page: Option<SocketAddr>) -> String {
        let page = page.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
        let Self { service, webhook, mail, folder, token, .. } = self;
        let (tokens, events) = (phrase::count(self.tokens, "token"), phrase::count(self.events, "unlock event"));
        let (after, folder) = (CORRECTION_AFTER.as_secs(), folder.display());
        format!(
            "cliffwatch demo: {tokens} with {events}, real schedules\n\
             \n  web pages      {page}\
             \n  log in with    {token}\
             \n  data service   http://{service}/v5/token/list\
             \n  webhook        http://{webhook}/hook\
             \n  mail server    smtp://{mail}\
             \n  try            cliffwatch --config {folder}/cliffwatch.toml status\n\
             \nThe first messages are about upcoming unlocks. After {after} s the source publishes corrections, and within two minutes\n\
             the desk gets its digest. Log in to see the positions. Press Ctrl-C to stop.\n"
        )
    }
}

async fn bind(doing: &'static str) -> Result<TcpListener, DemoError> {
    TcpListener::bind("127.0.0.1:0").await.map_err(io_error(doing))
}

/// Returns the address with a free port if its port is 0. Messages link to the pages, so the port must be known before they
/// start.
fn bound_address(listen: SocketAddr) -> io::Result<SocketAddr> {
    if listen.port() != 0 {
        return Ok(listen);
    }
    std::net::TcpListener::bind(listen)?.local_addr()
}

/// Creates a temporary folder.
fn fresh_folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
