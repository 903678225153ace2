//! The thread that moves bytes to the server and back, and how others wait for it.
//!
//! It is a runtime of its own, so that a session works in a command, in a test and on a thread of another runtime alike.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::PgFault;
use super::place::PostgresPlace;

/// How long a connection may take to come about, by one address and by each of several.
const CONNECT: Duration = Duration::from_secs(5);
const CONNECT_EACH: Duration = Duration::from_millis(2_500);

static DRIVER: OnceLock<Runtime> = OnceLock::new();

/// Held while it is made: of two, one would have to end at once, which a thread of another runtime may not let it.
static MAKING: Mutex<()> = Mutex::new(());

fn driver() -> Result<&'static Runtime, PgFault> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = DRIVER.get() {
        return Ok(runtime);
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).thread_name("store-postgres").enable_all().build();
    let runtime = runtime.map_err(|error| PgFault::Unreachable(Box::new(error)))?;
    Ok(DRIVER.get_or_init(|| runtime))
}

/// Connects to the first of the place's servers that lets us in, beginning with the one that did so last; their answers are read from
/// then on, until the client is dropped. Says which it is.
pub(super) fn connect(place: &Arc<PostgresPlace>) -> Result<(Client, usize), PgFault> {
    let runtime = driver()?;
    let servers = place.servers().len();
    let each = if servers > 1 { CONNECT_EACH } else { CONNECT };
    let limit = each * u32::try_from(servers).unwrap_or(1) + Duration::from_secs(1);
    let place = place.clone();
    let connecting = runtime.spawn(async move { connect_in_turn(&place, each).await });
    match wait(connecting, limit) {
        Some(Ok(connected)) => connected,
        Some(Err(error)) => Err(PgFault::Unreachable(Box::new(error))),
        None => Err(PgFault::Silent),
    }
}

async fn connect_in_turn(place: &PostgresPlace, each: Duration) -> Result<(Client, usize), PgFault> {
    let mut failed = None;
    for at in place.in_turn() {
        match connect_to(place, at, each).await {
            Ok(client) => {
                place.enter(at);
                return Ok((client, at));
            }
            Err(fault) => failed = Some(more_telling(failed, fault)),
        }
    }
    Err(failed.unwrap_or(PgFault::Silent))
}

/// Finds out, beside whoever waits for an answer, which of several servers lets us in now.
pub(super) fn look_around(place: &Arc<PostgresPlace>) {
    let place = place.clone();
    if let Ok(runtime) = driver() {
        runtime.spawn(async move { connect_in_turn(&place, CONNECT_EACH).await.map(drop) });
    }
}

/// Connects to one server; whatever came about is given up at the limit, since one that is frozen takes connections and says nothing.
async fn connect_to(place: &PostgresPlace, at: usize, limit: Duration) -> Result<Client, PgFault> {
    let Some(server) = place.servers().get(at) else { return Err(PgFault::Silent) };
    let connecting = server.connect(place.tls()?);
    let connected = tokio::time::timeout(limit, connecting).await.map_err(|_| PgFault::Silent)?;
    let (client, connection) = connected.map_err(|error| place.explained(error))?;
    // How it ended is told to whoever asks next.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Of two servers' answers the one that somebody has to do something about.
fn more_telling(former: Option<PgFault>, fault: PgFault) -> PgFault {
    match former {
        Some(former) if !former.is_lost() => former,
        _ => fault,
    }
}

/// Wakes a thread that waits.
struct WaitingThread(Thread);

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// How often it is asked whether waiting still makes sense.
const LOOK_UP: Duration = Duration::from_millis(250);

/// Waits on this thread for a future that another one drives; none where it takes longer than the limit. What is waited for must not
/// need this thread's own runtime.
pub(crate) fn wait<T>(future: impl Future<Output = T>, limit: Duration) -> Option<T> {
    wait_while(future, limit, || true)
}

/// As [`wait`], for as long as `makes_sense` says so.
pub(super) fn wait_while<T>(future: impl Future<Output = T>, limit: Duration, makes_sense: impl Fn() -> bool) -> Option<T> {
    let waker = Waker::from(Arc::new(WaitingThread(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    let begun = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        let left = limit.checked_sub(begun.elapsed()).filter(|left| !left.is_zero() && makes_sense())?;
        thread::park_timeout(left.min(LOOK_UP));
    }
}
