//! The client: fetches complete responses within limits of time, size, rate, and credits.
//!
//! A fetch gets a permit of the [breaker](super::breaker). For each version, it [walks](super::page_walk) over the pages. Each page
//! needs the [rate limiter](super::rate_limiter), a [credit](super::credit_gate), a request, and the [envelope](super::envelope).
//! Then it compares the hash and [parses](super::parse) changed data. The key is sent in one header, only to the configured servers.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use super::{
    BreakerState, ClientError, Tuning,
    base_server::{BaseServer, install_crypto_provider},
    body_buffers::BodyBuffers,
    breaker::{Breaker, SourceHealth, same_key},
    combined_unlocks,
    credit_gate::{CreditGate, OpenGate, ReservedCredits},
    fetch::FetchContext,
    rate_limiter::RateLimiter,
    redact,
    route::EndpointRoute,
    versions::RouteVersions,
};
use model::poll::{
    FailureKind, FetchedResponse, LAST_WITH_SEGMENTS, LinearRequest, PollFailure, PollOutcome, PollRequest, WITH_RATE_CHANGES,
};
use model::{
    clock::Clock,
    config::{EndpointVersion, SecretError, SecretText, SourceSettings},
    supply::{ContentHash, Endpoint, Timestamp},
    wire::Credit,
};

/// The time limit of a fetch, including waits.
const FETCH_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The client of the API. Clones share connections and all state.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientInner>,
}

pub(super) struct ClientInner {
    pub current: BaseServer,
    pub legacy: BaseServer,
    pub source: SourceSettings,
    pub clock: Clock,
    pub tuning: Tuning,
    pub breaker: Arc<Breaker>,
    pub rate_limiter: RateLimiter,
    pub fetches: Semaphore,
    pub learned: Mutex<LearnedState>,
    pub buffers: BodyBuffers,
    gate: Arc<dyn CreditGate>,
}

/// Facts from previous responses.
#[derive(Default)]
pub(super) struct LearnedState {
    /// The responses to the newest version of each route.
    pub versions: [RouteVersions; EndpointRoute::COUNT],
    /// The last reported quota.
    pub credit: Option<Credit>,
    /// The last time that the key was accepted.
    pub accepted_at: Option<Timestamp>,
    /// The key that was last read.
    pub key: Option<CachedKey>,
}

pub(super) struct CachedKey {
    /// When it was read. `None` if it must be read again.
    read_at: Option<Instant>,
    key: Option<SecretText>,
}

/// The cost and the results of a fetch so far.
pub(super) struct FetchCost {
    /// The credits reserved for further requests.
    pub reserved: ReservedCredits,
    /// The quota reported for the current request.
    pub reported: Option<Credit>,
    /// The API's time of that response.
    pub query_date: Option<Timestamp>,
    pub credits: u32,
    pub pages: u32,
    pub requests: u32,
    pub credit: Option<Credit>,
    pub bytes: u64,
    pub status: Option<u16>,
    pub version: Option<u8>,
}

impl FetchCost {
    fn new(gate: Arc<dyn CreditGate>) -> Self {
        Self {
            reserved: ReservedCredits::none(gate),
            reported: None,
            query_date: None,
            credits: 0,
            pages: 0,
            requests: 0,
            credit: None,
            bytes: 0,
            status: None,
            version: None,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("host", &self.inner.current.base.host_str()).field("breaker", &self.breaker()).finish()
    }
}

impl Client {
    /// Creates a client for `[source]`. Does not read the key.
    ///
    /// # Errors
    ///
    /// Fails if a URL, a version, or the certificates are not valid.
    pub fn new(source: &SourceSettings, clock: Clock) -> Result<Self, ClientError> {
        Self::with_tuning(source, clock, Tuning::default(), Arc::new(OpenGate))
    }

    /// Like [`Client::new`], with custom timeouts and limits, and a gate that reserves the credits of each request.
    ///
    /// # Errors
    ///
    /// Like [`Client::new`].
    #[doc(hidden)]
    pub fn with_tuning(
        source: &SourceSettings,
        clock: Clock,
        tuning: Tuning,
        gate: Arc<dyn CreditGate>,
    ) -> Result<Self, ClientError> {
        install_crypto_provider();
        for route in EndpointRoute::ALL {
            let (key, version) = route.configured(source);
            if let EndpointVersion::V(number) = version
                && !route.versions().contains(&number)
            {
                let known = route.versions().iter().rev().map(|known| format!("\"v{known}\"")).collect::<Vec<_>>().join(", ");
                return Err(ClientError::Version { key, version, known });
            }
        }
        let inner = ClientInner {
            current: BaseServer::new("base_url", &source.base_url, source)?,
            legacy: BaseServer::new("legacy_base_url", &source.legacy_base_url, source)?,
            source: source.clone(),
            clock,
            tuning,
            breaker: Arc::new(Breaker::new(tuning)),
            rate_limiter: RateLimiter::new(source.requests_per_minute, tuning.minute),
            fetches: Semaphore::new(usize::try_from(source.concurrency).unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS)),
            learned: Mutex::default(),
            buffers: BodyBuffers::default(),
            gate,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Fetches a complete response, with all pages, retries, and versions.
    ///
    /// `known` is the hash of the last response of this feed, `credits_left` the limit of credits for this fetch. `took` does not
    /// include the wait for other fetches.
    pub async fn fetch(&self, request: &PollRequest, known: Option<ContentHash>, credits_left: Option<u32>) -> FetchedResponse {
        self.fetch_version(request, None, known, credits_left).await
    }

    /// Like [`Client::fetch`] without a known hash, for a schedule with linear unlocks. If the version of the response omits them, also
    /// fetches the linear unlocks of an older version, and daily emission ahead, as `linear` says. If these cannot be read, the response has none and
    /// a parse warning. `credits_left` limits the credits of all fetches; `None` sets no limit.
    pub async fn fetch_with_linear(
        &self,
        request: &PollRequest,
        linear: LinearRequest,
        credits_left: Option<u32>,
    ) -> FetchedResponse {
        let response = self.fetch(request, None, credits_left).await;
        self.complete_linear(response, linear, credits_left).await
    }

    /// Completes a response about a schedule like [`Client::fetch_with_linear`]. `credits_left` limits the credits of the response and of
    /// all fetches.
    pub async fn complete_linear(
        &self,
        mut response: FetchedResponse,
        linear: LinearRequest,
        credits_left: Option<u32>,
    ) -> FetchedResponse {
        let request = &response.request.clone();
        if !matches!(response.outcome, PollOutcome::Fresh(_)) || response.shows_linear() == Some(true) {
            return response;
        }
        let left = |spent: u32| credits_left.map(|left| left.saturating_sub(spent));
        if let Some(version) = linear.segments {
            let mut segments = self.fetch_version(request, Some(version), None, left(response.credits)).await;
            let lacks_rate_changes = version == WITH_RATE_CHANGES && is_not_found(&segments);
            if lacks_rate_changes {
                let spent = response.credits + segments.credits;
                let older = self.fetch_version(request, Some(LAST_WITH_SEGMENTS), None, left(spent)).await;
                segments = combined_unlocks::with_cost_of(older, &segments);
            }
            response = combined_unlocks::combined(response, segments, lacks_rate_changes);
        }
        if let (Some((first, last)), Some(token)) = (linear.ahead, request.token())
            && response.segments.is_none_or(|segments| segments.is_read)
        {
            let endpoint = Endpoint::DailyEmission;
            let days = PollRequest::Token { endpoint, token: token.clone(), start: first, end: last };
            let ahead = self.fetch(&days, None, left(response.credits)).await;
            response = combined_unlocks::with_ahead(response, ahead, (first, last));
        }
        response
    }

    async fn fetch_version(
        &self,
        request: &PollRequest,
        version: Option<u8>,
        known: Option<ContentHash>,
        credits_left: Option<u32>,
    ) -> FetchedResponse {
        let inner = &*self.inner;
        // The semaphore is never closed.
        let _permit = inner.fetches.acquire().await.ok();
        let began = Instant::now();
        let mut cost = FetchCost::new(inner.gate.clone());
        let outcome = match timeout(FETCH_TIMEOUT, inner.fetch(request, version, known, credits_left, &mut cost)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("{} timed out after {} min", name_of(request), FETCH_TIMEOUT.as_secs() / 60);
                PollOutcome::Failed(PollFailure { kind: FailureKind::Timeout, message, retry_at: None })
            }
        };
        FetchedResponse {
            request: request.clone(),
            outcome,
            credits: cost.credits,
            pages: cost.pages,
            requests: cost.requests,
            credit: cost.credit,
            bytes: cost.bytes,
            took: began.elapsed(),
            status: cost.status,
            version: cost.version,
            segments: None,
            ahead: None,
            without_cliffs: Vec::new(),
        }
    }

    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.inner.breaker.state()
    }

    /// Ends the wait after failures of the source or a rejected key: the next fetch reads the key again and sends a request. A rate
    /// limit of the source continues.
    pub fn end_wait(&self) {
        if let Some(cached) = &mut self.inner.learned().key {
            cached.read_at = None;
        }
        self.inner.breaker.end_wait(self.inner.clock.now());
    }
}

fn unreadable(error: &SecretError) -> String {
    let (path, cause) = error.file_and_cause();
    format!("cannot read the API key from {}: {cause}", path.display())
}

fn is_not_found(fetched: &FetchedResponse) -> bool {
    matches!(&fetched.outcome, PollOutcome::Failed(failure) if failure.kind == FailureKind::NotFound)
}

/// Returns the name of a request, for errors before its path is known.
fn name_of(request: &PollRequest) -> String {
    match request {
        PollRequest::Token { endpoint, token, .. } => format!("{endpoint} of {}", redact::excerpt(token.as_str())),
        PollRequest::Investor { id } => format!("investor {}", redact::excerpt(id)),
        PollRequest::TokenList | PollRequest::Upcoming { .. } | PollRequest::Investors => request.endpoint().to_string(),
    }
}

impl ClientInner {
    pub(super) fn learned(&self) -> MutexGuard<'_, LearnedState> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(
        &self,
        request: &PollRequest,
        version: Option<u8>,
        known: Option<ContentHash>,
        credits_left: Option<u32>,
        cost: &mut FetchCost,
    ) -> PollOutcome {
        let name = name_of(request);
        let failed = |kind, message: String, retry_at| {
            PollOutcome::Failed(PollFailure { kind, message: redact::message(&message), retry_at })
        };
        let route = match EndpointRoute::of(request) {
            Ok(route) => route,
            Err(problem) => return failed(FailureKind::NotFound, format!("{name} was not requested: {problem}"), None),
        };
        if credits_left == Some(0) {
            let resets = self.learned().credit.as_ref().and_then(|credit| credit.reset_at.copied());
            return failed(FailureKind::QuotaExhausted, format!("{name} was not requested: no credits left"), resets);
        }
        let key = match self.key().await {
            Ok(key) => key,
            Err(problem) => {
                self.breaker.key_unusable(&problem, self.clock.now());
                return failed(FailureKind::UnusableKey, format!("{problem}; {name} was not requested"), None);
            }
        };
        let permit = match self.breaker.enter(&name, key.as_ref(), &self.clock).await {
            Ok(permit) => permit,
            Err(failure) => return PollOutcome::Failed(failure),
        };
        let fetch = FetchContext { request, route, version, known, credits_left, key };
        let (outcome, health) = match self.try_versions(&fetch, &permit, cost).await {
            Ok(outcome) => (outcome, SourceHealth::Responded),
            Err(failed) => (PollOutcome::Failed(failed.failure), failed.health),
        };
        self.breaker.conclude(permit, health, fetch.key.as_ref(), self.clock.now());
        outcome
    }

    /// Returns the key, which is read again after a few seconds so that it can be rotated.
    async fn key(&self) -> Result<Option<SecretText>, String> {
        if let Some(CachedKey { read_at: Some(read_at), key }) = &self.learned().key
            && read_at.elapsed() < self.tuning.key_cache
        {
            return Ok(key.clone());
        }
        let secret = self.source.key();
        let key = tokio::task::spawn_blocking(move || secret.resolve().map_err(|error| unreadable(&error)))
            .await
            .map_err(|_| "reading the API key was interrupted".to_owned())??
            .filter(|key| !key.expose().trim().is_empty());
        let mut learned = self.learned();
        if let Some(before) = &learned.key
            && !same_key(before.key.as_ref(), key.as_ref())
        {
            learned.accepted_at = None;
            learned.credit = None;
        }
        learned.key = Some(CachedKey { read_at: Some(Instant::now()), key: key.clone() });
        Ok(key)
    }
}
