//! The client: asks one thing to its end, within bounds of time, size, rate and credits, and always answers.
//!
//! The path of a fetch: a permit of the [breaker](super::breaker) → for each version to try, a [walk](super::page_walk) over the
//! pages → for each page, a turn of the [rate limiter](super::rate_limiter), a
//! [credit](super::credit_gate), one request, its [envelope](super::envelope), retries →
//! the hash, and [reading](super::parse) where it differs → what the fetch says of the source, for the breaker. The key goes out in
//! one header, to the configured servers only.

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
    breaker::{Breaker, SourceHealth, same_key},
    credit_gate::{CreditGate, HeldCredits, OpenGate},
    fetch::FetchContext,
    rate_limiter::RateLimiter,
    redact,
    route::EndpointRoute,
    segments,
};
use model::poll::{FailureKind, FetchedAnswer, LAST_WITH_SEGMENTS, PollFailure, PollOutcome, PollRequest};
use model::{
    clock::Clock,
    config::{EndpointVersion, SecretText, SourceSettings},
    supply::{ContentHash, Timestamp},
    text::error_chain,
    wire::Credit,
};

/// How long a whole fetch may take, waiting for turns included.
const FETCH_LIMIT: Duration = Duration::from_secs(3_600);

/// The client of the API. Clones share connections, rate limiter, breaker and what was learnt of the source.
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
    pub learnt: Mutex<LearntOfSource>,
    gate: Arc<dyn CreditGate>,
}

/// What the answers so far have taught.
#[derive(Default)]
pub(super) struct LearntOfSource {
    /// Which version answered last, and since when that is known, for each route.
    pub versions: [Option<(u8, Timestamp)>; EndpointRoute::COUNT],
    /// Quota as last reported.
    pub credit: Option<Credit>,
    /// When the key was last accepted.
    pub accepted_at: Option<Timestamp>,
    /// The key as last read, and when.
    pub key: Option<(Instant, Option<SecretText>)>,
}

/// What a fetch has cost and learnt so far.
pub(super) struct FetchCost {
    /// For requests that were not sent yet.
    pub held: HeldCredits,
    /// What the request under way reported.
    pub reported: Option<Credit>,
    /// The API's time when it answered that request.
    pub told_at: Option<Timestamp>,
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
            held: HeldCredits::none(gate),
            reported: None,
            told_at: None,
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
    /// A client for `[source]`. `clock` tells when waits that the source asks for are over.
    ///
    /// # Errors
    /// Where an address is not https, a version does not exist, or certificates cannot be read.
    pub fn new(source: &SourceSettings, clock: Clock) -> Result<Self, ClientError> {
        Self::with_tuning(source, clock, Tuning::default(), Arc::new(OpenGate))
    }

    /// As [`Client::new`], with waits and counts of the caller's choice, and a gate that is asked before each request.
    ///
    /// # Errors
    /// As [`Client::new`].
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
            learnt: Mutex::default(),
            gate,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Asks one thing to its end: all pages, retries and versions. It always answers, and never half.
    ///
    /// `known` is the hash of the last answer of this feed, `credits_left` the most credits that this fetch may spend. `took`
    /// does not count the wait for other fetches to finish.
    pub async fn fetch(&self, request: &PollRequest, known: Option<ContentHash>, credits_left: Option<u32>) -> FetchedAnswer {
        self.fetch_version(request, None, known, credits_left).await
    }

    /// Asks for a token's schedule as [`Client::fetch`] does, and for the linear segments that newer versions leave out beside it: one
    /// answer with both. Where the segments cannot be read, it is an answer without them.
    pub async fn fetch_with_segments(&self, request: &PollRequest, credits_left: Option<u32>) -> FetchedAnswer {
        let cliffs = self.fetch(request, None, credits_left).await;
        if !matches!(cliffs.outcome, PollOutcome::Fresh(_)) || cliffs.shows_linear() == Some(true) {
            return cliffs;
        }
        let credits_left = credits_left.map(|left| left.saturating_sub(cliffs.credits));
        let segments = self.fetch_version(request, Some(LAST_WITH_SEGMENTS), None, credits_left).await;
        segments::joined(cliffs, segments)
    }

    async fn fetch_version(
        &self,
        request: &PollRequest,
        version: Option<u8>,
        known: Option<ContentHash>,
        credits_left: Option<u32>,
    ) -> FetchedAnswer {
        let inner = &*self.inner;
        // The semaphore is never closed; were it, fetching without it would still be right.
        let _permit = inner.fetches.acquire().await.ok();
        let began = Instant::now();
        let mut cost = FetchCost::new(inner.gate.clone());
        let outcome = match timeout(FETCH_LIMIT, inner.fetch(request, version, known, credits_left, &mut cost)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let message = format!("{}: not answered to its end within {} min", name_of(request), FETCH_LIMIT.as_secs() / 60);
                PollOutcome::Failed(PollFailure { kind: FailureKind::Timeout, message, retry_at: None })
            }
        };
        FetchedAnswer {
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
            without_cliffs: Vec::new(),
        }
    }

    /// How the client stands to the source, for status and metrics.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.inner.breaker.state()
    }
}

/// What is asked, before its version is known.
fn name_of(request: &PollRequest) -> String {
    match request {
        PollRequest::Token { endpoint, token, .. } => format!("{endpoint} of {}", redact::excerpt(token.as_str())),
        PollRequest::Investor { id } => format!("investor {}", redact::excerpt(id)),
        PollRequest::TokenList | PollRequest::Upcoming { .. } | PollRequest::Investors => request.endpoint().to_string(),
    }
}

impl ClientInner {
    pub(super) fn learnt(&self) -> MutexGuard<'_, LearntOfSource> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
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
            Err(problem) => return failed(FailureKind::NotFound, format!("{name} was not asked for: {problem}"), None),
        };
        if credits_left == Some(0) {
            let resets = self.learnt().credit.as_ref().and_then(|credit| credit.reset_at.copied());
            return failed(FailureKind::QuotaExhausted, format!("{name} was not asked for: no credits are left for it"), resets);
        }
        let key = match self.key().await {
            Ok(key) => key,
            Err(problem) => {
                return failed(FailureKind::Unauthorized, format!("{name} was not asked for: {problem}"), None);
            }
        };
        let permit = match self.breaker.enter(&name, key.as_ref(), &self.clock).await {
            Ok(permit) => permit,
            Err(failure) => return PollOutcome::Failed(failure),
        };
        let fetch = FetchContext { request, route, version, known, credits_left, key };
        let (outcome, health) = match self.try_versions(&fetch, &permit, cost).await {
            Ok(outcome) => (outcome, SourceHealth::Answered),
            Err(failed) => (PollOutcome::Failed(failed.failure), failed.health),
        };
        self.breaker.conclude(permit, health, fetch.key.as_ref(), self.clock.now());
        outcome
    }

    /// The key as it is now: read again after a few seconds, so that it can rotate.
    async fn key(&self) -> Result<Option<SecretText>, String> {
        if let Some((read_at, key)) = &self.learnt().key
            && read_at.elapsed() < self.tuning.key_cache
        {
            return Ok(key.clone());
        }
        let secret = self.source.key();
        let key = tokio::task::spawn_blocking(move || secret.resolve().map_err(|error| error_chain(&error)))
            .await
            .map_err(|_| "the key could not be read".to_owned())??
            // An empty file is no key.
            .filter(|key| !key.expose().trim().is_empty());
        let mut learnt = self.learnt();
        if let Some((_, before)) = &learnt.key
            && !same_key(before.as_ref(), key.as_ref())
        {
            learnt.accepted_at = None;
            learnt.credit = None;
        }
        learnt.key = Some((Instant::now(), key.clone()));
        Ok(key)
    }
}
