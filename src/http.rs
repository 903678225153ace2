//! The daemon's own HTTP: status page, health, metrics, `/api/…`, reload.
//!
//! A request passes the gate first ([`guard`]): on loopback its `Host` must name us, which keeps other people's web pages out (DNS
//! rebinding); off loopback it must carry the bearer token, `/-/healthy` alone excepted. What changes something needs the token
//! always. Then a handler asks the store and renders; those of [`silences`] alone write, and [`unsubscribe`], whose links carry their
//! own proof and pass no gate.

mod silences;
mod unsubscribe;
mod upcoming;

use std::{
    future::Future,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{Html, IntoResponse, Response},
    routing::{delete, get, post},
};
use base64::Engine as _;
use ring::hmac;
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;
use tower_http::{
    catch_panic::CatchPanicLayer, compression::CompressionLayer, limit::RequestBodyLimitLayer,
    set_header::SetResponseHeaderLayer, timeout::TimeoutLayer,
};
use url::Url;

use crate::{
    alert::{Alert, AlertState},
    change::ChangeKind,
    clock::Clock,
    config::{self, Secret, Span},
    cycle::Judgement,
    digest::{self, Plan},
    metrics::{self, Metrics},
    notify::unsubscribe::{Subscriber, subscribers},
    store::{
        Store, StoreError,
        model::{AlertFilter, ChangeFilter, DeliveryState, OutboxFilter, UpcomingFilter},
    },
    supply::{ReceiverName, Resource, RuleId, Timestamp, TokenId},
    ui::{
        self, ChangeLine, Page,
        view::{AlertView, DaemonView, RulesView, StatusParts, StatusView, UnlockView, change_line},
    },
    watch::Watch,
};

/// For one whole request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest request body: that of a silence.
const MAX_REQUEST_BYTES: usize = 16 * 1024;
/// Connections at once; more wait in the listen queue.
const MAX_CONNECTIONS: usize = 128;
/// How long open requests may take after the word to stop: a half-sent header would otherwise hold the door for ever.
const STOP_DEADLINE: Duration = Duration::from_secs(5);
/// Rows of a list where no `limit` is given.
const DEFAULT_ROWS: u32 = 100;
/// Most rows of a list.
const MAX_ROWS: u32 = 10_000;
/// Unlocks, alerts, changes and deliveries on the status page.
const PAGE_ROWS: u32 = 15;

/// What the daemon knows of its own health: written by the app, the schedule and the reload, read here. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Health(Arc<Mutex<HealthState>>);

#[derive(Debug)]
struct HealthState {
    started_at: Timestamp,
    not_ready: Option<String>,
    last_cycle: Option<(Timestamp, String)>,
    rules: Option<u32>,
    rules_problem: Option<String>,
    last_reload_at: Option<Timestamp>,
}

impl Health {
    /// Of a daemon that has just begun and is not ready.
    #[must_use]
    pub fn starting(at: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(HealthState {
            started_at: at,
            not_ready: Some("starting".to_owned()),
            last_cycle: None,
            rules: None,
            rules_problem: None,
            last_reload_at: None,
        })))
    }

    fn with<T>(&self, read: impl FnOnce(&mut HealthState) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// It works.
    pub fn set_ready(&self) {
        self.with(|state| state.not_ready = None);
    }

    /// It does not (or no longer) work; `reason` is shown to whoever asks.
    pub fn set_not_ready(&self, reason: impl Into<String>) {
        self.with(|state| state.not_ready = Some(reason.into()));
    }

    /// A cycle ended; `text` is what its report says in a line.
    pub fn cycle_ended(&self, at: Timestamp, text: impl Into<String>) {
        self.with(|state| state.last_cycle = Some((at, text.into())));
    }

    /// So many rules are at work, from files that were good.
    pub fn rules_loaded(&self, at: Timestamp, count: u32) {
        self.with(|state| {
            state.rules = Some(count);
            state.rules_problem = None;
            state.last_reload_at = Some(at);
        });
    }

    /// The files are bad; the rules before them go on working.
    pub fn reload_failed(&self, at: Timestamp, problem: impl Into<String>) {
        self.with(|state| {
            state.rules_problem = Some(problem.into());
            state.last_reload_at = Some(at);
        });
    }

    /// Why it is not ready; none where it is.
    #[must_use]
    pub fn not_ready(&self) -> Option<String> {
        self.with(|state| state.not_ready.clone())
    }

    /// The rules, for the status.
    #[must_use]
    pub fn rules(&self) -> RulesView {
        self.with(|state| RulesView { count: state.rules, problem: state.rules_problem.clone() })
    }

    /// The daemon, for the status.
    #[must_use]
    pub fn view(&self) -> DaemonView {
        self.with(|state| DaemonView {
            ready: state.not_ready.is_none(),
            reason: state.not_ready.clone(),
            started_at: state.started_at,
            last_cycle_at: state.last_cycle.as_ref().map(|(at, _)| *at),
            last_cycle: state.last_cycle.as_ref().map(|(_, text)| text.clone()),
            last_reload_at: state.last_reload_at,
        })
    }
}

/// Reloads config and rules: what is at work now in a line, or every problem as text.
pub type Reload = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<String, String>> + Send>> + Send + Sync>;

/// Who is told.
#[derive(Clone, Debug, Default)]
pub struct Audience {
    /// Receivers of the config, by name, in their order.
    pub receivers: Vec<ReceiverName>,
    /// Digests of the config.
    pub digests: Vec<Plan>,
    /// Who gets them by mail.
    pub subscribers: Vec<Subscriber>,
}

impl Audience {
    /// Those of a config. A digest that cannot be is left out; the check of the config tells it.
    #[must_use]
    pub fn of(receivers: &[config::Receiver]) -> Self {
        Self {
            receivers: receivers.iter().map(|receiver| ReceiverName::from(receiver.name.as_str())).collect(),
            digests: digest::plans(receivers).unwrap_or_default(),
            subscribers: subscribers(receivers),
        }
    }
}

/// What the handlers need.
#[derive(Clone)]
pub struct Deps {
    /// The database.
    pub store: Store,
    /// What `/metrics` shows.
    pub metrics: Arc<Metrics>,
    /// What the daemon says of itself.
    pub health: Health,
    /// The time.
    pub clock: Clock,
    /// The bearer token.
    pub bearer: Secret,
    /// Where we listen, as bound.
    pub address: SocketAddr,
    /// Rules and routes at work at the moment.
    pub judgement: Arc<dyn Fn() -> Arc<Judgement> + Send + Sync>,
    /// The tokens that are watched, and their groups.
    pub watch: Arc<dyn Fn() -> Watch + Send + Sync>,
    /// `[http] external_url`.
    pub external_url: Option<Url>,
    /// Who is told, as the config at work has it.
    pub audience: Arc<dyn Fn() -> Audience + Send + Sync>,
    /// The database file, for the status.
    pub database: PathBuf,
    /// What `POST /-/reload` does.
    pub reload: Reload,
}

/// All routes.
pub fn router(deps: Deps) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/-/ready", get(ready))
        .route("/-/reload", post(reload))
        .route("/metrics", get(metrics_page))
        .route("/api/status", get(status))
        .route("/api/upcoming", get(upcoming::list))
        .route("/calendar.ics", get(upcoming::calendar))
        .route("/api/changes", get(changes))
        .route("/api/alerts", get(alerts))
        .route("/api/outbox", get(outbox))
        .route("/api/silences", get(silences::list).post(silences::add))
        .route("/api/silences/{id}", delete(silences::expire))
        .route("/api/acks", get(silences::acks).post(silences::acknowledge))
        .layer(middleware::from_fn_with_state(deps.clone(), guard))
        // Asked by load balancers and probes that hold no secret; it tells nothing but that we are.
        .route("/-/healthy", get(async || "healthy\n"))
        .route(&format!("/{}/{{tag}}", unsubscribe::PATH), get(unsubscribe::ask).post(unsubscribe::stop))
        .fallback(async || (StatusCode::NOT_FOUND, "there is nothing here\n"))
        .layer(CompressionLayer::new())
        .layer(SetResponseHeaderLayer::if_not_present(header::CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .layer(SetResponseHeaderLayer::overriding(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
        .layer(SetResponseHeaderLayer::overriding(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
        .layer(SetResponseHeaderLayer::if_not_present(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(
                "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            ),
        ))
        .layer(RequestBodyLimitLayer::new(MAX_REQUEST_BYTES))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, REQUEST_TIMEOUT))
        .layer(CatchPanicLayer::new())
        .with_state(deps)
}

/// Answers requests until `stop`, then finishes those under way, at most [`STOP_DEADLINE`] long.
///
/// # Errors
/// Where the listener fails for good.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    let listener = Capped { listener, seats: Arc::new(Semaphore::new(MAX_CONNECTIONS)) };
    let stopping = stop.clone();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move { stopping.cancelled().await });
    tokio::select! {
        served = serving => served,
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(STOP_DEADLINE).await;
        } => Ok(()),
    }
}

// -- the gate --

async fn guard(State(deps): State<Deps>, request: Request, next: Next) -> Response {
    let is_change = !matches!(*request.method(), Method::GET | Method::HEAD) || request.uri().path() == "/-/reload";
    let is_open = !deps.address.ip().is_loopback();
    if !is_open && !is_our_host(request.headers(), request.uri().host(), deps.external_url.as_ref().and_then(Url::host_str)) {
        return (StatusCode::FORBIDDEN, "this address is not served under that name\n").into_response();
    }
    if is_open || is_change {
        // Browsers and calendars know no bearer tokens, but ask for a password. What they send by themselves may only read: another
        // site's page could make a browser send it.
        let takes = if is_change { &["bearer"][..] } else { &["bearer", "basic"] };
        match has_token(&deps.bearer, request.headers(), takes) {
            Ok(true) => {}
            Ok(false) => {
                let mut refusal = (StatusCode::UNAUTHORIZED, "a bearer token is needed: [http] token\n").into_response();
                for scheme in takes {
                    let challenge = match *scheme {
                        "basic" => "Basic realm=\"cliffwatch: the token is the password\", charset=\"UTF-8\"",
                        _ => "Bearer realm=\"cliffwatch\"",
                    };
                    refusal.headers_mut().append(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                }
                return refusal;
            }
            Err(error) => {
                tracing::error!(%error, "the token of [http] cannot be read");
                return (StatusCode::INTERNAL_SERVER_ERROR, "the token cannot be checked; the log says why\n").into_response();
            }
        }
    }
    next.run(request).await
}

/// Whether the request names a host that is ours: a page of another origin that resolves its own name to 127.0.0.1 cannot.
fn is_our_host(headers: &HeaderMap, of_uri: Option<&str>, external: Option<&str>) -> bool {
    let Some(host) = of_uri.or_else(|| headers.get(header::HOST).and_then(|host| host.to_str().ok())) else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || external.is_some_and(|external| external.eq_ignore_ascii_case(name))
}

/// Whether the request carries the token, in one of these schemes: as a bearer token, or as the password of a basic authorization,
/// whatever its user name. Without a token configured, none does.
fn has_token(bearer: &Secret, headers: &HeaderMap, schemes: &[&str]) -> Result<bool, crate::config::SecretError> {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
        let (scheme, rest) = value.split_once(' ')?;
        let scheme = schemes.iter().find(|known| scheme.eq_ignore_ascii_case(known))?;
        if *scheme == "bearer" {
            return Some(rest.trim().to_owned());
        }
        let pair = String::from_utf8(base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?).ok()?;
        Some(pair.split_once(':')?.1.to_owned())
    });
    let Some(expected) = bearer.resolve()? else { return Ok(false) };
    let Some(given) = given.filter(|given| !given.is_empty() && !expected.expose().is_empty()) else {
        return Ok(false);
    };
    // Both are hashed under a key of this moment, so that the time of the comparison tells nothing of the token.
    let Ok(key) = hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new()) else {
        return Ok(false);
    };
    let tag = hmac::sign(&key, expected.expose().as_bytes());
    Ok(hmac::verify(&key, given.as_bytes(), tag.as_ref()).is_ok())
}

// -- handlers --

/// An answer that could not be made.
enum Refusal {
    Store(StoreError),
    Bad(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Refusal::Bad(problem) => (StatusCode::BAD_REQUEST, Json(serde_json::json!({ "error": problem }))).into_response(),
            Refusal::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a page could not be made");
                let problem = "the database cannot be read; the log says why";
                (StatusCode::INTERNAL_SERVER_ERROR, Json(serde_json::json!({ "error": problem }))).into_response()
            }
        }
    }
}

async fn ready(State(deps): State<Deps>) -> Response {
    match deps.health.not_ready() {
        None => "ready\n".into_response(),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reason}\n")).into_response(),
    }
}

async fn reload(State(deps): State<Deps>) -> Response {
    match (deps.reload)().await {
        Ok(text) => format!("{text}\n").into_response(),
        Err(problems) => (StatusCode::UNPROCESSABLE_ENTITY, format!("{problems}\n")).into_response(),
    }
}

async fn metrics_page(State(deps): State<Deps>, headers: HeaderMap) -> impl IntoResponse {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let (kind, page) = metrics::negotiated(accept, deps.metrics.encode());
    ([(header::CONTENT_TYPE, kind), (header::VARY, "accept")], page)
}

async fn status_view(deps: &Deps) -> Result<StatusView, StoreError> {
    let now = deps.clock.now();
    let counts = deps.store.counts().await?;
    let endpoints = deps.store.poll_stats().await?;
    let credit = deps.store.credit().await?;
    let troubles = deps.store.source_alerts().await?;
    let telling = deps.store.telling(now, now - digest::DAY).await?;
    let audience = (deps.audience)();
    Ok(StatusView::of(StatusParts {
        now,
        counts: &counts,
        endpoints: &endpoints,
        credit: &credit,
        troubles: &troubles,
        receivers: audience.receivers.iter().map(|name| name.as_str().to_owned()).collect(),
        telling: &telling,
        digests: &audience.digests,
        subscribers: &audience.subscribers,
        database: deps.database.clone(),
        rules: deps.health.rules(),
        daemon: Some(deps.health.view()),
    }))
}

async fn page(State(deps): State<Deps>) -> Result<Html<String>, Refusal> {
    let now = deps.clock.now();
    let firing = AlertFilter { states: vec![AlertState::Firing], limit: PAGE_ROWS, ..AlertFilter::default() };
    let changes = deps.store.changes(ChangeFilter { limit: PAGE_ROWS, ..ChangeFilter::default() }).await?;
    let upcoming = deps.store.upcoming(UpcomingFilter { tokens: None, from: now, until: None, limit: PAGE_ROWS }).await?;
    let alerts = deps.store.alerts(firing).await?;
    let page = Page {
        status: status_view(&deps).await?,
        upcoming: upcoming.iter().filter_map(|row| UnlockView::of(row, now)).collect(),
        alerts: alert_views(&deps, &alerts).await?,
        changes: changes
            .iter()
            .map(|row| ChangeLine { at: row.at.format("%Y-%m-%d %H:%M").to_string(), text: change_line(row) })
            .collect(),
        deliveries: deps.store.outbox(OutboxFilter { limit: PAGE_ROWS, ..OutboxFilter::default() }).await?,
    };
    Ok(Html(ui::render(&page)))
}

async fn status(State(deps): State<Deps>) -> Result<Json<StatusView>, Refusal> {
    Ok(Json(status_view(&deps).await?))
}

/// Parameters of the lists. All are optional; those that a list does not know are refused, since a misspelt filter lets everything in.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", default)]
struct Asked {
    token: Option<String>,
    group: Option<String>,
    within: Option<String>,
    min_value: Option<f64>,
    kind: Option<String>,
    resource: Option<String>,
    since: Option<String>,
    state: Option<String>,
    rule: Option<String>,
    receiver: Option<String>,
    limit: Option<u32>,
}

impl Asked {
    fn limit(&self) -> u32 {
        self.limit.unwrap_or(DEFAULT_ROWS).clamp(1, MAX_ROWS)
    }

    /// Refuses parameters that this list has no use for.
    fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        let given = [
            ("token", self.token.is_some()),
            ("group", self.group.is_some()),
            ("within", self.within.is_some()),
            ("min_value", self.min_value.is_some()),
            ("kind", self.kind.is_some()),
            ("resource", self.resource.is_some()),
            ("since", self.since.is_some()),
            ("state", self.state.is_some()),
            ("rule", self.rule.is_some()),
            ("receiver", self.receiver.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && !known.contains(name)) {
            Some((name, _)) => Err(Refusal::Bad(format!("`{name}` is no parameter here; there are {}, limit", known.join(", ")))),
            None => Ok(()),
        }
    }
}

/// The words of a comma-separated parameter, each read by `parse`.
fn words<T>(name: &str, text: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Refusal> {
    text.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| parse(word).ok_or_else(|| Refusal::Bad(format!("{word:?} is no {name}"))))
        .collect()
}

fn span(name: &str, text: Option<&str>) -> Result<Option<chrono::TimeDelta>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let span: Span = text.parse().map_err(|error| Refusal::Bad(format!("{name}: {error}")))?;
    Ok(Some(span.delta()))
}

type Parameters = Result<Query<Asked>, axum::extract::rejection::QueryRejection>;

fn asked(parameters: Parameters) -> Result<Asked, Refusal> {
    parameters.map(|Query(asked)| asked).map_err(|rejection| Refusal::Bad(rejection.body_text()))
}

async fn changes(State(deps): State<Deps>, parameters: Parameters) -> Result<Response, Refusal> {
    let asked = asked(parameters)?;
    asked.only(&["token", "kind", "resource", "since"])?;
    let now = deps.clock.now();
    let filter = ChangeFilter {
        token: asked.token.as_deref().map(TokenId::from),
        kind: words("kind", asked.kind.as_deref(), ChangeKind::parse)?.into_iter().next(),
        resource: words("resource", asked.resource.as_deref(), Resource::parse)?.into_iter().next(),
        since: span("since", asked.since.as_deref())?.and_then(|span| now.checked_sub_signed(span)),
        until: None,
        limit: asked.limit(),
    };
    Ok(Json(deps.store.changes(filter).await?).into_response())
}

async fn alerts(State(deps): State<Deps>, parameters: Parameters) -> Result<Json<Vec<AlertView>>, Refusal> {
    let asked = asked(parameters)?;
    asked.only(&["state", "rule", "token"])?;
    let filter = AlertFilter {
        states: words("state", asked.state.as_deref(), AlertState::parse)?,
        rule: asked.rule.as_deref().map(RuleId::from),
        token: asked.token.as_deref().map(TokenId::from),
        limit: asked.limit(),
    };
    let alerts = deps.store.alerts(filter).await?;
    Ok(Json(alert_views(&deps, &alerts).await?))
}

async fn alert_views(deps: &Deps, alerts: &[Alert]) -> Result<Vec<AlertView>, StoreError> {
    let standings = deps.store.standings(alerts.iter().map(|alert| alert.id.clone()).collect()).await?;
    Ok(AlertView::all(alerts, &standings))
}

async fn outbox(State(deps): State<Deps>, parameters: Parameters) -> Result<Response, Refusal> {
    let asked = asked(parameters)?;
    asked.only(&["receiver", "state"])?;
    let filter = OutboxFilter {
        receiver: asked.receiver.as_deref().map(ReceiverName::from),
        states: words("state", asked.state.as_deref(), DeliveryState::parse)?,
        limit: asked.limit(),
    };
    Ok(Json(deps.store.outbox(filter).await?).into_response())
}

// -- a listener with a limited number of seats --

struct Capped {
    listener: TcpListener,
    seats: Arc<Semaphore>,
}

/// A connection with its seat.
struct Seated {
    stream: TcpStream,
    _seat: Option<OwnedSemaphorePermit>,
}

impl axum::serve::Listener for Capped {
    type Io = Seated;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Seated, SocketAddr) {
        let seat = Arc::clone(&self.seats).acquire_owned().await.ok();
        let (stream, peer) = axum::serve::Listener::accept(&mut self.listener).await;
        (Seated { stream, _seat: seat }, peer)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Seated {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Seated {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
