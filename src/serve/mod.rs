//! The data service: token supply data over HTTP, in every version of the interface, from a database of its own.
//!
//! The cast: [`Service`] holds the [`Catalog`] and the rendered answers; `ask` reads a question from a request, `answer` makes the
//! payload, `emission` counts days and weeks; `import` and [`edit`](Service::edit) change the data; [`faults`] misbehaves on demand
//! for tests. The path of a request:
//!
//! ```text
//! key ─► question ─► answer (kept while the data stays as it is) ─► one credit ─► envelope
//! ```
//!
//! The promise: only an answered request costs a credit, exactly one, and never more than the key's limit; what was asked wrongly is
//! refused with the reason, and "nothing there" (an empty list) never looks like "no such token" (404).
//!
//! Where the interface leaves something open, this is what the service does:
//!
//! - `pageSize` is 50, at most 500; more is cut and `metadata.pageSize` says so. An empty list has `totalPages` 0.
//! - A parameter that a path does not take, or one given twice, is refused: a filter that is silently ignored would look like data.
//! - `upcoming` counts an event as coming until the end of its UTC day. Without filters on categories it is the token's next event.
//! - From the fourth version of the events on, allocations whose name speaks of mining or farming are left out, and totals with them.
//! - Totals over values of which some are unknown add up the known ones; they are null where none is known.
//! - The first and the last week are told in full, also where the dates asked for lie inside of them.
//! - A category filter on emission narrows amounts and allocations; the cumulative amount stays that of the whole token.
//! - Errors are `{"status": false, "statusCode": …, "errorMessage": …}`: 400 for a question that makes no sense, 401 without a good key,
//!   404 for what is unknown, 429 with `Retry-After` when credits or the rate are spent, 503 when no answer came in time. HEAD counts as GET.

mod answer;
mod ask;
mod bundled;
mod edit;
mod emission;
#[doc(hidden)]
pub mod faults;
mod import;
mod listener;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::{Path as PathParam, RawQuery, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use chrono::{DateTime, NaiveDate, TimeDelta};
use ring::{
    digest,
    rand::{SecureRandom, SystemRandom},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower_http::{catch_panic::CatchPanicLayer, compression::CompressionLayer};

use answer::Answer;
use ask::{Ask, LEGACY_ROUTES, ROUTES, Route};

pub use bundled::bundled;
pub use edit::{Edit, EditError};
pub use import::{Folder, ImportError, Imported, Problem, SourceFile};
pub use listener::Bounded;

use crate::{
    clock::Clock,
    store::catalog::{Catalog, CatalogError, KeyRow, Usage},
    supply::Timestamp,
    wire::{Credit, ErrorBody, Metadata},
};

/// Header that carries the key.
const KEY_HEADER: &str = "x-api-key";
/// Longest key that is looked at, bytes.
const MAX_KEY: usize = 256;
/// Rendered answers kept, bytes of their payloads. Beyond it all are dropped: the next questions fill it again.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Rendered answers kept.
const MAX_CACHED_ANSWERS: usize = 50_000;
/// How long another process's change of the data may go unseen.
const GENERATION_CHECK: Duration = Duration::from_secs(1);
/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that open connections get to finish once the service is asked to stop.
pub const STOP_GRACE: Duration = Duration::from_secs(5);
/// What a spent rate per minute is told to wait at least, seconds.
const MIN_RETRY_AFTER_SECS: i64 = 1;

/// Who may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// A key is required once the database ever held one, so that revoking the last key opens nothing.
    #[default]
    KeysIfAny,
    /// A key is required, also while there is none.
    Keys,
    /// No key is asked for, and none is counted.
    Open,
}

/// How the service behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who may ask.
    pub access: Access,
    /// Requests that one key may make in a minute; none for no bound.
    pub requests_per_minute: Option<u32>,
    /// Versions from before tokens were listed by a model (unlock events v1 and v2, daily emission v1, weekly emission v1 and v2,
    /// allocations v1) answer 404 for tokens of `listedMethod` `AI`. Off, they answer for every token.
    pub strict_coverage: bool,
    /// Where the time comes from.
    pub clock: Clock,
}

/// What the service could not do for whoever runs it.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The database.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Data that cannot be taken in.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A change that makes no sense for the data.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The system gave no randomness.
    #[error("cannot make a key: the system gave no random bytes")]
    Randomness,
    /// A name that keys cannot have.
    #[error("\"{0}\" is no name for a key: use 1 to 64 letters, digits, dots, dashes, underscores")]
    KeyName(String),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A listener failed while it served.
    #[error("the data service stopped serving")]
    Serve(#[source] io::Error),
}

/// Addresses that a service is bound to, with the ports that the system chose where 0 was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Of the base address.
    pub address: SocketAddr,
    /// Of the older base address, where it is served.
    pub legacy: Option<SocketAddr>,
}

/// The data service. Cheap to clone; clones share everything.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    catalog: Catalog,
    options: Options,
    cache: RwLock<Cache>,
    rates: Mutex<HashMap<Hash, Rate>>,
}

type Hash = [u8; digest::SHA256_OUTPUT_LEN];

/// Requests of one key in the current minute.
#[derive(Debug)]
struct Rate {
    minute: i64,
    requests: u32,
}

#[derive(Debug, Default)]
struct Cache {
    generation: i64,
    /// Whether a key is required, as of `checked`.
    keys_required: bool,
    checked: Option<Instant>,
    bytes: usize,
    answers: HashMap<(Ask, NaiveDate), Arc<Answer>>,
}

impl Cache {
    /// Whether somebody looked lately that the data is still the same.
    fn is_fresh(&self) -> bool {
        self.checked.is_some_and(|checked| checked.elapsed() < GENERATION_CHECK)
    }
}

impl Service {
    /// Opens the database, making it where it is not there.
    ///
    /// # Errors
    /// Where it cannot be opened, is not one of ours, or is of a newer program.
    pub fn open(path: &Path, options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::open(path)?, options))
    }

    /// A service whose data lives in memory, for as long as a clone of it does.
    ///
    /// # Errors
    /// Where memory gives out.
    pub fn in_memory(options: Options) -> Result<Self, ServiceError> {
        Ok(Self::over(Catalog::in_memory()?, options))
    }

    fn over(catalog: Catalog, options: Options) -> Self {
        Self(Arc::new(Inner { catalog, options, cache: RwLock::default(), rates: Mutex::default() }))
    }

    /// Everything of the base address.
    pub fn router(&self) -> Router {
        self.layered(self.routes(ROUTES, Envelope::Full))
    }

    /// Everything of the older base address: all of the base address, and weekly emission, whose `metadata` is `queryDate` alone.
    pub fn legacy_router(&self) -> Router {
        self.layered(self.routes(ROUTES, Envelope::Full).merge(self.routes(LEGACY_ROUTES, Envelope::DateOnly)))
    }

    /// Both, on one address and behind `faults`, for tests.
    #[doc(hidden)]
    pub fn faulty_router(&self, faults: &faults::Faults) -> Router {
        let routes = self.routes(ROUTES, Envelope::Full).merge(self.routes(LEGACY_ROUTES, Envelope::DateOnly));
        faults.outside(self.layered(faults.inside(routes)))
    }

    fn routes(&self, routes: &'static [Route], envelope: Envelope) -> Router {
        routes.iter().fold(Router::new(), |router, route| {
            let service = self.clone();
            router.route(
                route.path,
                get(move |id: Result<PathParam<String>, PathRejection>, RawQuery(query): RawQuery, headers: HeaderMap| {
                    service.clone().respond(route, envelope, id, query, headers)
                }),
            )
        })
    }

    /// What every answer passes. No handler reads a body, so none needs a bound.
    fn layered(&self, router: Router) -> Router {
        router
            .fallback(|| async { Refusal::unknown("there is no such path") })
            .method_not_allowed_fallback(|| async {
                Refusal { status: StatusCode::METHOD_NOT_ALLOWED, message: "only GET is answered here".into(), retry_after: None }
            })
            .layer(CompressionLayer::new())
            .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
                Refusal::internal("the service failed on this request").into_response()
            }))
    }

    async fn respond(
        self,
        route: &'static Route,
        envelope: Envelope,
        id: Result<PathParam<String>, PathRejection>,
        query: Option<String>,
        headers: HeaderMap,
    ) -> Response {
        let id = if route.path.ends_with("{id}") {
            match id {
                Ok(PathParam(id)) => Some(id),
                Err(_) => return Refusal::bad("the id in the path is not UTF-8").into_response(),
            }
        } else {
            None
        };
        let key = headers.get(KEY_HEADER).map(hash_of);
        let query = query.unwrap_or_default();
        if let Some(response) = self.ready(route, envelope, id.as_deref(), &query) {
            return response;
        }
        // Reading and counting wait for a disk; nothing else of the server should wait with them.
        let deadline = Instant::now() + ANSWER_TIMEOUT;
        let answering =
            tokio::task::spawn_blocking(move || self.answer(route, envelope, id.as_deref(), &query, key.as_ref(), deadline));
        match tokio::time::timeout(ANSWER_TIMEOUT, answering).await {
            Ok(Ok(Ok(response))) => response,
            Ok(Ok(Err(refusal))) => refusal.into_response(),
            Ok(Err(_)) => Refusal::internal("the service failed on this request").into_response(),
            Err(_) => Refusal::busy().into_response(),
        }
    }

    /// The answer, where it is at hand without waiting for anything: no key is asked for, and it was made before.
    fn ready(&self, route: &Route, envelope: Envelope, id: Option<&str>, query: &str) -> Option<Response> {
        let now = self.0.options.clock.now();
        let ask = Ask::read(route, id, query).ok()?;
        let cache = self.0.cache.read().unwrap_or_else(PoisonError::into_inner);
        if cache.keys_required || !cache.is_fresh() {
            return None;
        }
        let answer = Arc::clone(cache.answers.get(&(ask, now.date_naive()))?);
        drop(cache);
        Some(envelope.around(&answer, None, now))
    }

    /// The path of a request.
    fn answer(
        &self,
        route: &Route,
        envelope: Envelope,
        id: Option<&str>,
        query: &str,
        key: Option<&Hash>,
        deadline: Instant,
    ) -> Result<Response, Refusal> {
        let now = self.0.options.clock.now();
        let (generation, keys_required) = self.refresh()?;
        let key = if keys_required { Some(self.admit(key, now)?) } else { None };
        let ask = Ask::read(route, id, query)?;
        let answer = self.answer_of(ask, generation, now)?;
        if Instant::now() >= deadline {
            // Whoever asked was told so already, and must not pay for it.
            return Err(Refusal::busy());
        }
        let usage = key.map(|key| self.charge(&key, now)).transpose()?;
        Ok(envelope.around(&answer, usage, now))
    }

    /// Lets a key in that exists, has credit left and is within its rate.
    fn admit(&self, key: Option<&Hash>, now: Timestamp) -> Result<Hash, Refusal> {
        let key = *key.ok_or_else(Refusal::keyless)?;
        let row = self.0.catalog.key(&key, now)?.ok_or_else(Refusal::keyless)?;
        if row.used >= row.monthly_limit {
            return Err(Refusal::spent(row.reset_at, now));
        }
        if let Some(limit) = self.0.options.requests_per_minute {
            let minute = now.timestamp().div_euclid(60);
            let mut rates = self.0.rates.lock().unwrap_or_else(PoisonError::into_inner);
            let rate = rates.entry(key).or_insert(Rate { minute, requests: 0 });
            if rate.minute != minute {
                *rate = Rate { minute, requests: 0 };
            }
            if rate.requests >= limit {
                let wait = (minute + 1) * 60 - now.timestamp();
                return Err(Refusal::too_many(format!("more than {limit} requests in a minute"), wait));
            }
            rate.requests += 1;
        }
        Ok(key)
    }

    fn charge(&self, key: &Hash, now: Timestamp) -> Result<Usage, Refusal> {
        if let Some(usage) = self.0.catalog.charge(key, now)? {
            return Ok(usage);
        }
        // Spent or revoked by what happened since the key was let in.
        let row = self.0.catalog.key(key, now)?.ok_or_else(Refusal::keyless)?;
        Err(Refusal::spent(row.reset_at, now))
    }

    /// Looks, at most once a second, whether somebody changed the data, and forgets old answers if so.
    fn refresh(&self) -> Result<(i64, bool), Refusal> {
        {
            let cache = self.0.cache.read().unwrap_or_else(PoisonError::into_inner);
            if cache.is_fresh() {
                return Ok((cache.generation, cache.keys_required));
            }
        }
        let access = self.0.options.access;
        let (generation, keys_required) = self.0.catalog.read(|view| {
            let keys = match access {
                Access::KeysIfAny => view.has_keys()?,
                Access::Keys => true,
                Access::Open => false,
            };
            Ok::<_, CatalogError>((view.generation()?, keys))
        })?;
        let mut cache = self.0.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.generation != generation {
            *cache = Cache { generation, ..Cache::default() };
        }
        cache.keys_required = keys_required;
        cache.checked = Some(Instant::now());
        Ok((generation, keys_required))
    }

    /// Makes the next request look at the database: our own changes are seen at once.
    fn forget(&self) {
        self.0.cache.write().unwrap_or_else(PoisonError::into_inner).checked = None;
    }

    fn answer_of(&self, ask: Ask, generation: i64, now: Timestamp) -> Result<Arc<Answer>, Refusal> {
        let key = (ask, now.date_naive());
        if let Some(answer) = self.0.cache.read().unwrap_or_else(PoisonError::into_inner).answers.get(&key) {
            return Ok(Arc::clone(answer));
        }
        let strict = self.0.options.strict_coverage;
        let (answer, read_at) =
            self.0.catalog.read(|view| Ok::<_, Refusal>((answer::answer(view, &key.0, now, strict)?, view.generation()?)))?;
        let answer = Arc::new(answer);
        let mut cache = self.0.cache.write().unwrap_or_else(PoisonError::into_inner);
        // An answer read from other data than the cache holds is good for this request only.
        if cache.generation == generation && read_at == generation {
            if cache.bytes >= MAX_CACHED_BYTES || cache.answers.len() >= MAX_CACHED_ANSWERS {
                cache.answers.clear();
                cache.bytes = 0;
            }
            cache.bytes += answer.data.len();
            cache.answers.insert(key, Arc::clone(&answer));
        }
        Ok(answer)
    }

    // -- running it; these block, for as long as the database takes --

    /// Puts a data folder (or [`bundled`]) in place of the data that is there: one transaction, all or nothing. The same files a
    /// second time change nothing. Keys stay. `progress` hears the name of each file.
    ///
    /// # Errors
    /// Every problem found, with file and record; or where a file or the database cannot be used.
    pub fn import(
        &self,
        files: impl IntoIterator<Item = io::Result<SourceFile>>,
        progress: impl FnMut(&str),
    ) -> Result<Imported, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let imported = import::import(&self.0.catalog, files, now, progress)?;
        self.forget();
        Ok(imported)
    }

    /// Changes the data in one transaction: all of what `change` does, or nothing where it answers an error. Each token that is
    /// touched gets a new `lastUpdatedDate`.
    ///
    /// # Errors
    /// What `change` answers, or where the database cannot be written.
    pub fn edit<T>(&self, change: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, ServiceError> {
        let now = whole_seconds(self.0.options.clock.now());
        let result = self.0.catalog.write(|draft| {
            let mut edit = Edit::new(draft, now);
            let result = change(&mut edit)?;
            edit.finish()?;
            Ok::<_, EditError>(result)
        })?;
        self.forget();
        Ok(result)
    }

    /// Makes a key and answers it: the only time that anybody sees it.
    ///
    /// # Errors
    /// Where the name is no name or taken, or the database cannot be written.
    pub fn add_key(&self, name: &str, monthly_limit: u64) -> Result<String, ServiceError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
            return Err(ServiceError::KeyName(ask::shown(name)));
        }
        let mut bytes = [0_u8; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| ServiceError::Randomness)?;
        let mut key = String::from("cw_");
        base64::Engine::encode_string(&base64::engine::general_purpose::URL_SAFE_NO_PAD, bytes, &mut key);
        self.0.catalog.add_key(name, &sha256(key.as_bytes()), monthly_limit, self.0.options.clock.now())?;
        self.forget();
        Ok(key)
    }

    /// All keys with their usage, revoked ones too.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn keys(&self) -> Result<Vec<KeyRow>, ServiceError> {
        Ok(self.0.catalog.keys()?)
    }

    /// Ends a key at once. Answers whether one of that name was in use.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn revoke_key(&self, name: &str) -> Result<bool, ServiceError> {
        Ok(self.0.catalog.revoke_key(name, self.0.options.clock.now())?)
    }

    /// Tokens in the list.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn token_count(&self) -> Result<usize, ServiceError> {
        Ok(self.0.catalog.read(|view| view.tokens().map(|tokens| tokens.len()))?)
    }
}

fn sha256(bytes: &[u8]) -> Hash {
    let mut hash = Hash::default();
    hash.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    hash
}

/// The key itself goes no further than here.
fn hash_of(value: &HeaderValue) -> Hash {
    let bytes = value.as_bytes();
    sha256(bytes.get(..MAX_KEY).unwrap_or(bytes))
}

/// The interface has no fractions of a second.
fn whole_seconds(now: Timestamp) -> Timestamp {
    DateTime::from_timestamp(now.timestamp(), 0).unwrap_or(now)
}

/// Binds the service's addresses, tells `bound` which they are, and serves until `stop` resolves.
///
/// # Errors
/// Where an address cannot be bound, or a listener fails.
pub async fn listen(
    service: &Service,
    address: SocketAddr,
    legacy: Option<SocketAddr>,
    bound: impl FnOnce(Bound),
    stop: impl Future<Output = ()>,
) -> Result<(), ServiceError> {
    let bind = async |address: SocketAddr| {
        let listener = TcpListener::bind(address).await.map_err(|source| ServiceError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServiceError::Listen { address, source })?;
        Ok::<_, ServiceError>((listener, address))
    };
    let (main, address) = bind(address).await?;
    let older = match legacy {
        Some(legacy) => Some(bind(legacy).await?),
        None => None,
    };
    bound(Bound { address, legacy: older.as_ref().map(|(_, address)| *address) });
    let stopping = CancellationToken::new();
    // Either server's failure stops the other: half a service is not what was asked for.
    let run = async |listener, router| {
        let result = serve(listener, router, stopping.clone().cancelled_owned()).await;
        stopping.cancel();
        result.map_err(ServiceError::Serve)
    };
    let older = async {
        match older {
            Some((listener, _)) => run(listener, service.legacy_router()).await,
            None => Ok(()),
        }
    };
    let servers = async { tokio::join!(run(main, service.router()), older) };
    let mut servers = std::pin::pin!(servers);
    let (main, older) = tokio::select! {
        results = &mut servers => results,
        () = stop => {
            stopping.cancel();
            servers.await
        }
    };
    main.and(older)
}

/// Serves `router` on `listener` until `stop` resolves, then lets open requests finish for at most [`STOP_GRACE`]: a connection that
/// never finishes its request cannot hold the process.
///
/// # Errors
/// Where the listener fails.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    serve_with_grace(listener, router, stop, STOP_GRACE).await
}

async fn serve_with_grace(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
    grace: Duration,
) -> io::Result<()> {
    let (stopping, mut stopped) = tokio::sync::watch::channel(false);
    let server = axum::serve(Bounded::new(listener), router).with_graceful_shutdown(async move {
        stop.await;
        stopping.send_replace(true);
    });
    let mut server = std::pin::pin!(server.into_future());
    let deadline = async {
        // An error means that the server is gone, and with it the sender.
        let _ = stopped.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        result = &mut server => result,
        () = deadline => Ok(()),
    }
}

/// What is around a payload.
#[derive(Clone, Copy, Debug)]
enum Envelope {
    /// `metadata` with all that is known.
    Full,
    /// `metadata` with `queryDate` alone.
    DateOnly,
}

impl Envelope {
    fn around(self, answer: &Answer, usage: Option<Usage>, now: Timestamp) -> Response {
        let mut metadata = Metadata { query_date: whole_seconds(now).into(), ..Default::default() };
        if matches!(self, Envelope::Full) {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX).into();
            if let Some(usage) = usage {
                metadata.credit = Credit {
                    used: number(usage.used),
                    limit: number(usage.limit),
                    reset_at: usage.reset_at.into(),
                    ..Default::default()
                }
                .into();
            }
            if let Some(paging) = answer.paging {
                metadata.page = number(paging.page);
                metadata.page_size = number(paging.page_size);
                metadata.total_pages = number(paging.total_pages);
                metadata.total = number(paging.total);
            }
        }
        let metadata = serde_json::to_string(&metadata).unwrap_or_else(|_| "{}".into());
        let mut body = String::with_capacity(metadata.len() + answer.data.len() + 48);
        body.push_str("{\"metadata\":");
        body.push_str(&metadata);
        body.push_str(",\"status\":true,\"data\":");
        body.push_str(&answer.data);
        body.push('}');
        json(StatusCode::OK, body)
    }
}

fn json(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Answers carry the state of somebody's quota.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A request that is not answered, and why.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    /// Seconds.
    retry_after: Option<i64>,
}

impl Refusal {
    /// A question that makes no sense.
    fn bad(message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, message: message.into(), retry_after: None }
    }

    /// Something that is not there.
    fn unknown(message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, message: message.into(), retry_after: None }
    }

    /// No key, or none that opens anything: which of both is not told.
    fn keyless() -> Self {
        Self { status: StatusCode::UNAUTHORIZED, message: "x-api-key not found".into(), retry_after: None }
    }

    /// Our own fault.
    fn internal(message: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: message.into(), retry_after: None }
    }

    fn busy() -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "the service is busy: ask again later".into(),
            retry_after: Some(ANSWER_TIMEOUT.as_secs().cast_signed()),
        }
    }

    fn too_many(message: impl Into<String>, wait_secs: i64) -> Self {
        let wait = wait_secs.max(MIN_RETRY_AFTER_SECS);
        Self { status: StatusCode::TOO_MANY_REQUESTS, message: message.into(), retry_after: Some(wait) }
    }

    fn spent(reset_at: Timestamp, now: Timestamp) -> Self {
        let wait: TimeDelta = reset_at - now;
        Self::too_many(
            format!("the credits of this period are used up; they reset at {}", reset_at.to_rfc3339()),
            wait.num_seconds(),
        )
    }
}

impl From<CatalogError> for Refusal {
    fn from(error: CatalogError) -> Self {
        // The cause is for whoever runs the service; who asks learns that it is not the question.
        tracing::error!(error = &error as &dyn std::error::Error, "a request failed on the database");
        Self::internal("the service cannot read its data")
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = ErrorBody {
            status: false.into(),
            status_code: i64::from(self.status.as_u16()).into(),
            error_message: self.message.into(),
            ..Default::default()
        };
        let mut response = json(self.status, serde_json::to_string(&body).unwrap_or_else(|_| "{\"status\":false}".into()));
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
        response
    }
}
