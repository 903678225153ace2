//! A fetch: chooses the version, walks over the pages, reserves credits, and parses the response.

use chrono::TimeDelta;
use tokio::time::sleep;

use super::{
    breaker::BreakerPermit,
    client::{ClientInner, FetchCost},
    envelope::ResponsePage,
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

/// The size in bytes above which a response is parsed on a blocking thread.
const LARGE_RESPONSE_BYTES: usize = 256 * 1024;

/// The time until the newest version is tried again after an older one worked.
const VERSION_RETRY_INTERVAL: TimeDelta = TimeDelta::days(1);

pub(super) struct FetchContext<'a> {
    pub request: &'a PollRequest,
    pub route: EndpointRoute,
    /// Overrides the configured version.
    pub version: Option<u8>,
    pub known: Option<ContentHash>,
    pub credits_left: Option<u32>,
    pub key: Option<SecretText>,
}

impl ClientInner {
    /// Fetches in the configured version, or in the version that worked last, else in the newest and then the next older one.
    ///
    /// A 404 can mean that the path or the token is unknown, even in a version that worked before. If the other version then
    /// succeeds, it is used from now on, an older one for a day. If both return 404, the token is unknown.
    pub(super) async fn try_versions(
        &self,
        fetch: &FetchContext<'_>,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let route = fetch.route;
        let (newest, next) = route.newest_and_next();
        let now = self.clock.now();
        let settled = self.learned().versions.get(route as usize).copied().flatten().filter(|(_, since)| {
            let age = now - *since;
            age >= TimeDelta::zero() && age < VERSION_RETRY_INTERVAL
        });
        let configured = fetch.version.map_or(route.configured(&self.source).1, EndpointVersion::V);
        let (first, second) = match (configured, settled) {
            (EndpointVersion::V(version), _) => (version, None),
            (EndpointVersion::Auto, Some((version, _))) if version == next => (next, Some(newest)),
            (EndpointVersion::Auto, _) => (newest, Some(next)),
        };
        let mut response = self.walk(fetch, first, permit, cost).await;
        let mut version = first;
        if let (Err(failed), Some(other)) = (&response, second)
            && failed.failure.kind == FailureKind::NotFound
        {
            let other_response = self.walk(fetch, other, permit, cost).await;
            match &other_response {
                // The token is unknown in both versions, so the first error stands.
                Err(failed) if failed.failure.kind == FailureKind::NotFound => {}
                Ok(_) => {
                    tracing::info!(
                        endpoint = %fetch.request.endpoint(),
                        version = other,
                        "the source has no v{first}, using v{other} and trying v{newest} again within a day"
                    );
                    response = other_response;
                    version = other;
                }
                Err(_) => response = other_response,
            }
        }
        if response.is_ok() && fetch.version.is_none() {
            // An older version keeps its date, so that the newest is tried again a day after its last 404.
            let since = settled.filter(|(known, _)| *known == version && version != newest).map_or(now, |(_, since)| since);
            if let Some(slot) = self.learned().versions.get_mut(route as usize) {
                *slot = Some((version, since));
            }
        }
        response
    }

    /// Walks over the pages, repeats the walk if they are inconsistent, and parses them.
    async fn walk(
        &self,
        fetch: &FetchContext<'_>,
        version: u8,
        permit: &BreakerPermit,
        cost: &mut FetchCost,
    ) -> Result<PollOutcome, FailedRequest> {
        let target = fetch.route.target(fetch.request, version);
        let what = format!("GET {}", target.display_path());
        let requested_size = target.is_paged.then_some(self.source.page_size.max(1));
        let mut problem = String::new();
        for round in 0..=self.tuning.rewalks {
            if round > 0 {
                sleep(self.backoff(0)).await;
            }
            let mut walk = PageWalk::new(target.is_list, requested_size, self.source.max_body.0, fetch.known);
            let mut number = 1;
            let inconsistency = loop {
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
                    WalkStep::Unchanged => return Ok(PollOutcome::Unchanged),
                    WalkStep::Complete => return self.read(fetch, walk, &what).await,
                    WalkStep::Inconsistent(problem) => break problem,
                    WalkStep::Invalid(kind, problem) => {
                        return Err(FailedRequest::of(kind, redact::message(&format!("{what}: {problem}"))));
                    }
                }
            };
            tracing::debug!(round, problem = %inconsistency, "{what}: inconsistent pages");
            problem = inconsistency;
        }
        let walks = self.tuning.rewalks + 1;
        let message = format!("{what}: the pages were inconsistent in {walks} attempts: {problem}");
        Err(FailedRequest::of(FailureKind::Incomplete, redact::message(&message)))
    }

    /// Reserves the credits of all remaining pages, since an incomplete walk is useless. If there are not enough, the fetch is deferred
    /// to a slot with a larger plan.
    async fn reserve_rest(
        &self,
        fetch: &FetchContext<'_>,
        pages: u64,
        what: &str,
        cost: &mut FetchCost,
    ) -> Result<(), FailedRequest> {
        let spent = cost.credits;
        let why = match fetch.credits_left {
            Some(most) if u64::from(spent) + pages > u64::from(most) => format!("only {most} were planned"),
            _ => match cost.reserved.reserve(pages).await {
                Ok(()) => return Ok(()),
                Err(failure) if failure.kind == FailureKind::QuotaExhausted => "not enough are left".to_owned(),
                Err(failure) => return Err(FailedRequest::not_sent(failure)),
            },
        };
        let message = format!("{what}: {pages} more pages cost one credit each; {spent} are used so far, and {why}");
        Err(FailedRequest::of(FailureKind::Deferred, redact::message(&message)))
    }

    async fn read(&self, fetch: &FetchContext<'_>, walk: PageWalk, what: &str) -> Result<PollOutcome, FailedRequest> {
        let pages = walk.into_pages();
        let size: usize = pages.pages.iter().map(ResponsePage::len).sum();
        let response = if size > LARGE_RESPONSE_BYTES {
            let (request, route) = (fetch.request.clone(), fetch.route);
            tokio::task::spawn_blocking(move || parse::response(&request, route, &pages))
                .await
                .unwrap_or_else(|_| Err("parsing was interrupted".to_owned()))
        } else {
            parse::response(fetch.request, fetch.route, &pages)
        };
        match response {
            Ok(response) => Ok(PollOutcome::Fresh(response)),
            Err(problem) => {
                let message = redact::without_key(&format!("{what}: {problem}"), fetch.key.as_ref());
                Err(FailedRequest::of(FailureKind::BadAnswer, redact::message(&message)))
            }
        }
    }
}
