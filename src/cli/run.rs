//! `run`: runs the daemon.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use anyhow::Context as _;

use super::{Exit, Invocation};
use daemon::app::{self, App, AppError};
use daemon::config::{Environment, Loaded};
use daemon::reload::Origin;
use model::{config::Config, program, text::error_chain};

pub(super) fn run(invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = load_checked(invocation)?;
    daemon::log::start(&config.log, invocation.verbose)?;
    let ended = block_on_workers(async {
        invocation.need_commit_for_live_database(&config).await?;
        let mut stop = app::stop_requested();
        // Also completes for a signal that arrives while the app ends for a restart.
        let mut late_stop = app::stop_requested();
        let opening = App::open_daemon(config, &loaded.base_dir, invocation.clock.clone(), web::serve_waiting);
        let opened = tokio::select! {
            opened = opening => opened,
            () = &mut stop => return Ok(DaemonEnd::Done),
            // A new process reads the config again, such as another address of the database.
            () = valid_config_after_reload_request(invocation) => return Ok(DaemonEnd::Restart),
        };
        let mut app = match opened {
            Err(error) if error.needs_restart() => return Ok(restart_after(&error, &mut late_stop).await),
            opened => opened?,
        };
        if let Some(path) = loaded.path {
            app = app.with_origin(Origin { path, environment: Environment::from_process() });
        }
        let started = |address: Option<SocketAddr>| match address {
            Some(address) => {
                tracing::info!(%address, "cliffwatch {} started; web pages at http://{address}/", program::version_line())
            }
            None => tracing::info!("cliffwatch {} started", program::version_line()),
        };
        match app.run(web::serve, stop, started).await {
            Err(error) if error.needs_restart() => Ok(restart_after(&error, &mut late_stop).await),
            ended => Ok(ended.map(|()| DaemonEnd::Done)?),
        }
    })?;
    match ended {
        DaemonEnd::Done => Ok(Exit::Done),
        DaemonEnd::Restart => Err(restart_process()),
    }
}

/// The pause before a restart after an error of the database.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Pauses before a restart. A stop that was requested since the start of the process takes precedence.
async fn restart_after(error: &AppError, stop: &mut (impl Future<Output = ()> + Unpin)) -> DaemonEnd {
    let pause = if matches!(error, AppError::LeaseLost) {
        Duration::ZERO
    } else {
        tracing::warn!(error = error_chain(error), "the database cannot be used");
        RESTART_PAUSE
    };
    tokio::select! {
        biased;
        () = stop => DaemonEnd::Done,
        () = tokio::time::sleep(pause) => DaemonEnd::Restart,
    }
}

/// Loads the config and builds its receivers. Prints their errors and fails if there are any.
fn load_checked(invocation: &Invocation) -> anyhow::Result<(Config, Loaded)> {
    let (config, loaded) = invocation.load_file()?;
    let problems: Vec<_> = loaded.receiver_problems(&config).into_iter().map(|(_, problem)| problem).collect();
    if problems.is_empty() { Ok((config, loaded)) } else { Err(invocation.print_errors(&problems, &loaded.sources)) }
}

/// Waits for a reload request while the config is valid. If the config has errors, logs them, keeps the previous config, and waits for
/// the next request.
async fn valid_config_after_reload_request(invocation: &Invocation) {
    let mut requests = app::ReloadRequests::listen();
    loop {
        requests.next().await;
        match load_checked(invocation) {
            Ok(_) => return,
            Err(error) => tracing::error!("the changed config has errors; the previous config stays active: {error:#}"),
        }
    }
}

/// The reason for the end of a run.
enum DaemonEnd {
    Done,
    /// Another instance is active, so this one restarts as a standby.
    Restart,
}

/// Replaces this process with a new one of the same program and process id, so that no running work continues. Returns only if
/// that fails.
fn restart_process() -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    tracing::info!("restarting");
    // Run the executable by its path to keep the process name. If an upgrade removed the file, /proc/self/exe still works.
    let named = std::env::current_exe().ok().filter(|program| program.exists());
    let program = named.unwrap_or_else(|| "/proc/self/exe".into());
    let error = std::process::Command::new(program).args(std::env::args_os().skip(1)).exec();
    anyhow::Error::new(error).context("cannot restart the program")
}

/// Runs a future on worker threads.
pub(super) fn block_on_workers<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    source::install_crypto_provider();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("cannot start the runtime")?;
    let future: Pin<Box<dyn Future<Output = anyhow::Result<T>>>> = Box::pin(future);
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}
