//! The runtime that does the I/O for all sessions, and blocking waits for it. A separate runtime lets a session work in
//! commands, in tests, and on threads of another runtime.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::PgFault;
use super::url::PostgresUrl;

/// The timeout of a connection attempt: to a single server, and to each of several.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_EACH_TIMEOUT: Duration = Duration::from_millis(2_500);

static DRIVER: OnceLock<Runtime> = OnceLock::new();

/// Held while the runtime is created. Dropping a second runtime would panic on a thread of another runtime.
static INIT: Mutex<()> = Mutex::new(());

fn driver() -> Result<&'static Runtime, PgFault> {
    let _init = INIT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = DRIVER.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("store-postgres").enable_all().build();
    let runtime = runtime.map_err(|error| PgFault::Unreachable(Box::new(error)))?;
    Ok(DRIVER.get_or_init(|| runtime))
}

/// Connects to the first server that accepts us, starting with the last one that did. Returns the index of the server.
pub(super) fn connect(place: &Arc<PostgresUrl>) -> Result<(Client, usize), PgFault> {
    let runtime = driver()?;
    let servers = place.servers().len();
    let each = if servers > 1 { CONNECT_EACH_TIMEOUT } else { CONNECT_TIMEOUT };
    let limit = each * u32::try_from(servers).unwrap_or(1) + Duration::from_secs(1);
    let place = place.clone();
    let connecting = runtime.spawn(async move { connect_to_any(&place, each).await });
    match wait(connecting, limit) {
        Some(Ok(connected)) => connected,
        Some(Err(error)) => Err(PgFault::Unreachable(Box::new(error))),
        None => Err(PgFault::Timeout),
    }
}

async fn connect_to_any(place: &PostgresUrl, each: Duration) -> Result<(Client, usize), PgFault> {
    let mut failed = None;
    for at in place.connection_order() {
        match connect_to(place, at, each).await {
            Ok(client) => {
                place.mark_accepted(at);
                return Ok((client, at));
            }
            Err(fault) => failed = Some(more_specific(failed, fault)),
        }
    }
    Err(failed.unwrap_or(PgFault::Timeout))
}

/// Checks in the background which of several servers accepts us now.
pub(super) fn probe_servers(place: &Arc<PostgresUrl>) {
    let place = place.clone();
    if let Ok(runtime) = driver() {
        runtime.spawn(async move { connect_to_any(&place, CONNECT_EACH_TIMEOUT).await.map(drop) });
    }
}

/// Asks the server, in the background, to end the running statement of a connection.
pub(super) fn cancel(place: &PostgresUrl, client: &Client) {
    let (token, tls) = (client.cancel_token(), place.tls());
    if let (Ok(runtime), Ok(tls)) = (driver(), tls) {
        // If this fails, the time limit of the server ends the statement.
        runtime.spawn(async move { tokio::time::timeout(CONNECT_TIMEOUT, token.cancel_query(tls)).await.map(drop) });
    }
}

/// Connects to one server, with a timeout, because a frozen server accepts connections without responding.
async fn connect_to(place: &PostgresUrl, at: usize, limit: Duration) -> Result<Client, PgFault> {
    let Some(server) = place.servers().get(at) else { return Err(PgFault::Timeout) };
    let connecting = server.connect(place.tls()?);
    let connected = tokio::time::timeout(limit, connecting).await.map_err(|_| PgFault::Timeout)?;
    let (client, connection) = connected.map_err(|error| place.classify(error))?;
    // The next query reports how the connection ended.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Returns the first fault that is not a lost connection, else the latest fault.
fn more_specific(former: Option<PgFault>, fault: PgFault) -> PgFault {
    match former {
        Some(former) if !former.is_lost() => former,
        _ => fault,
    }
}

/// Unparks a waiting thread.
struct WaitingThread(Thread);

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The interval of the checks whether to continue waiting.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Blocks until a future that another thread drives is ready. Returns `None` after the timeout. The future must not
/// need this thread's runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>, limit: Duration) -> Option<T> {
    wait_while(future, limit, || true)
}

/// Like [`wait`], but also stops and returns `None` once `should_wait` returns `false`.
pub(super) fn wait_while<T>(future: impl Future<Output = T>, limit: Duration, should_wait: impl Fn() -> bool) -> Option<T> {
    let waker = Waker::from(Arc::new(WaitingThread(thread::current())));
    let mut context = Context::from_waker(&waker);
    // On a thread of a runtime, tokio would suspend the future after a number of steps until its task yields, which it does not here.
    let mut future = std::pin::pin!(tokio::task::unconstrained(future));
    let begun = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero() && should_wait())?;
        thread::park_timeout(left.min(CHECK_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_often_in_one_task_ends() {
        let slots = tokio::sync::Semaphore::new(1);
        for _ in 0..1_000 {
            let slot = wait(slots.acquire(), Duration::from_secs(60)).expect("a slot").expect("open");
            drop(slot);
        }
    }
}
