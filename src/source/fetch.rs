//! A fetch, from its versions to its records: the version to ask, a walk over the pages, the credits it may cost, and reading.

use chrono::TimeDelta;
use tokio::time::sleep;

use super::{
    breaker::BreakerPermit,
    client::{ClientInner, FetchCost},
    envelope::AnswerPage,
    failed_request::FailedRequest,
    page_walk::{PageWalk, WalkStep},
    parse, redact,
    route::EndpointRoute,
};
use model::{
    config::{EndpointVersion, SecretText},
    poll::{FailureKind, PollOutcome, PollRequest},
    supply::ContentHash,
};

/// Answers above this size are read on a thread of their own, bytes.
const LARGE_ANSWER: usize = 256 * 1024;

/// How long a version that answered is trusted before the newest is tried again.
const VERSION_TRUST: TimeDelta = TimeDelta::days(1);

/// A fetch under way.
pub(super) struct FetchContext<'a> {
    pub request: &'a PollRequest,
    pub route: EndpointRoute,
    /// A version to ask in place of the one that is configured.
    pub version: Option<u8>,
    pub known: Option<ContentHash>,
    pub credits_left: Option<u32>,
    pub key: Option<SecretText>,
}

impl ClientInner {
    /// Asks in the version that is configured or known to answer; where none is known, in the newest and then in the next older
    /// one.
    ///
    /// A 404 says either that the path is unknown or that the token is, also of a version that answered before: it may be gone since.
    /// Only a success in the other version tells: then that version is settled on, an older one for a day. Where both say 404, it is
    /// the token, and nothing is settled.
    pub(super) async fn try_versions(
        &self,
        fetch: &FetchContext<'_>,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let route = fetch.route;
        let (newest, next) = route.newest_and_next();
        let now = self.clock.now();
        let settled = self.learnt().versions.get(route as usize).copied().flatten().filter(|(_, since)| {
            let age = now - *since;
            age >= TimeDelta::zero() && age < VERSION_TRUST
        });
        let configured = fetch.version.map_or(route.configured(&self.source).1, EndpointVersion::V);
        let (first, second) = match (configured, settled) {
            (EndpointVersion::V(version), _) => (version, None),
            (EndpointVersion::Auto, Some((version, _))) if version == next => (next, Some(newest)),
            (EndpointVersion::Auto, _) => (newest, Some(next)),
        };
        let mut answer = self.walk(fetch, first, permit, cost).await;
        let mut version = first;
        if let (Err(failed), Some(other)) = (&answer, second)
            && failed.failure.kind == FailureKind::NotFound
        {
            let other_answer = self.walk(fetch, other, permit, cost).await;
            match &other_answer {
                // Both do not know it: what the first said stands.
                Err(failed) if failed.failure.kind == FailureKind::NotFound => {}
                Ok(_) => {
                    tracing::info!(
                        endpoint = %fetch.request.endpoint(),
                        version = other,
                        "the source does not know v{first}; using v{other}, and v{newest} again within a day"
                    );
                    answer = other_answer;
                    version = other;
                }
                Err(_) => answer = other_answer,
            }
        }
        if answer.is_ok() && fetch.version.is_none() {
            // An older version keeps its date, so that the newest is tried again a day after it was last missed.
            let since = settled.filter(|(known, _)| *known == version && version != newest).map_or(now, |(_, since)| since);
            if let Some(slot) = self.learnt().versions.get_mut(route as usize) {
                *slot = Some((version, since));
            }
        }
        answer
    }

    /// Walks over the pages, once more where they do not fit together, and reads them.
    async fn walk(
        &self,
        fetch: &FetchContext<'_>,
        version: u8,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let target = fetch.route.target(fetch.request, version);
        let what = format!("GET {}", target.display_path());
        let asked_size = target.is_paged.then_some(self.source.page_size.max(1));
        let mut problem = String::new();
        for round in 0..=self.tuning.rewalks {
            if round > 0 {
                sleep(self.backoff(0)).await;
            }
            let mut walk = PageWalk::new(target.is_list, asked_size, self.source.max_body.0, fetch.known);
            let mut number = 1;
            let shifted = loop {
                if number > 1 {
                    self.reserve_rest(fetch, walk.pages_left(), &what, cost).await?;
                }
                let name = if number == 1 { what.clone() } else { format!("{what} (page {number} of {})", walk.page_count()) };
                let size = walk.page_size();
                let page = self.page(fetch, &target, &name, number, size, permit, cost).await?;
                cost.version = Some(version);
                let step = walk.take(page);
                cost.pages = u32::try_from(walk.page_count()).unwrap_or(u32::MAX);
                match step {
                    WalkStep::Next(next) => number = next,
                    WalkStep::Same => return Ok(PollOutcome::Unchanged),
                    WalkStep::Whole => return self.read(fetch, walk, &what).await,
                    WalkStep::Shifted(problem) => break problem,
                    WalkStep::Hopeless(kind, problem) => {
                        return Err(FailedRequest::of(kind, redact::message(&format!("{what}: {problem}"))));
                    }
                }
            };
            tracing::debug!(round, problem = %shifted, "{what}: the pages do not fit together");
            problem = shifted;
        }
        let walks = self.tuning.rewalks + 1;
        let message = format!("{what}: the pages did not fit together in {walks} walks: {problem}");
        Err(FailedRequest::of(FailureKind::Incomplete, redact::message(&message)))
    }

    /// Takes the credits of all pages that are left, since half a walk is worth nothing. Where that is more than was planned, or more
    /// than is left, the walk waits for a slot that plans as much.
    async fn reserve_rest(
        &self,
        fetch: &FetchContext<'_>,
        pages: u64,
        what: &str,
        cost: &mut FetchCost,
    ) -> Result<(), FailedRequest> {
        let spent = cost.credits;
        let why = match fetch.credits_left {
            Some(most) if u64::from(spent) + pages > u64::from(most) => format!("{most} were planned"),
            _ => match cost.held.reserve(pages).await {
                Ok(()) => return Ok(()),
                Err(failure) if failure.kind == FailureKind::QuotaExhausted => "fewer are left".to_owned(),
                Err(failure) => return Err(FailedRequest::unasked(failure)),
            },
        };
        let message = format!("{what}: {pages} more pages are to be read at one credit each, {spent} are spent on it and {why}");
        Err(FailedRequest::of(FailureKind::Deferred, redact::message(&message)))
    }

    /// Reads a whole answer.
    async fn read(&self, fetch: &FetchContext<'_>, walk: PageWalk, what: &str) -> Result<PollOutcome, FailedRequest> {
        let pages = walk.into_pages();
        let size: usize = pages.pages.iter().map(AnswerPage::len).sum();
        let answer = if size > LARGE_ANSWER {
            let (request, route) = (fetch.request.clone(), fetch.route);
            tokio::task::spawn_blocking(move || parse::answer(&request, route, &pages))
                .await
                .unwrap_or_else(|_| Err("reading it failed".to_owned()))
        } else {
            parse::answer(fetch.request, fetch.route, &pages)
        };
        match answer {
            Ok(answer) => Ok(PollOutcome::Fresh(answer)),
            Err(problem) => {
                let message = redact::without_key(&format!("{what}: {problem}"), fetch.key.as_ref());
                Err(FailedRequest::of(FailureKind::BadAnswer, redact::message(&message)))
            }
        }
    }
}
