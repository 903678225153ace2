//! Plans the retries of an endpoint between two of its slots. Pure.

use model::{FeedState, Timestamp};

use super::{EndpointFeeds, PlanBasis, PollPlan, plan, retry};

/// The retries of an endpoint that are due.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryPlan {
    pub polls: PollPlan,
    /// When to plan again: when the next of the other feeds is due, or when credits are available again. `None` if nothing waits.
    pub next_at: Option<Timestamp>,
}

/// Plans the retries of the endpoint `own`. `others` are all other scheduled endpoints. If `is_urgent` is set, no feed waits, and feeds that
/// were never tried are polled as well: after a start, a reload, a new key, or the first token list.
pub fn plan_retries(mut own: EndpointFeeds, others: Vec<EndpointFeeds>, is_urgent: bool, basis: &PlanBasis<'_>) -> RetryPlan {
    let endpoint = own.endpoint;
    let mut next_at: Option<Timestamp> = None;
    let mut select = |feed: &FeedState| {
        let is_untried = feed.baseline_at.is_none() && feed.failing_since.is_none();
        if is_urgent || !retry::is_early(feed) || retry::is_due(feed, basis.now) {
            return retry::is_early(feed) || (is_urgent && is_untried);
        }
        next_at = next_at.into_iter().chain(retry::due_at(feed)).min();
        false
    };
    if endpoint.is_per_token() {
        let none = FeedState::default();
        own.tokens.retain(|token| select(token.feed.as_ref().unwrap_or(&none)));
    } else if !select(&own.whole) {
        return RetryPlan { next_at, ..RetryPlan::default() };
    }
    if is_urgent {
        own.tokens.iter_mut().filter_map(|token| token.feed.as_mut()).for_each(end_wait);
        end_wait(&mut own.whole);
    }
    let others = others.into_iter().filter(|other| other.endpoint != endpoint);
    let feeds: Vec<EndpointFeeds> = std::iter::once(own).chain(others).collect();
    let polls = plan(endpoint, &feeds, basis);
    RetryPlan { next_at: next_at.into_iter().chain(polls.exhausted_until).min(), polls }
}

/// Makes a feed that failed more than once due.
fn end_wait(feed: &mut FeedState) {
    feed.tried_at = feed.failing_since.or(feed.tried_at);
}

#[cfg(test)]
mod tests {
    use model::{Endpoint, PlanToken, PollRequest, TokenId};

    use super::*;
    use crate::budget::Allowance;
    use crate::plan::priority::ListTrust;
    use testkit::time;

    fn token(id: &str, baseline_at: Option<&str>, tried_at: &str, failing_since: Option<&str>) -> PlanToken {
        let feed = FeedState {
            baseline_at: baseline_at.map(time),
            read_at: baseline_at.map(time),
            tried_at: Some(time(tried_at)),
            failing_since: failing_since.map(time),
            ..FeedState::default()
        };
        PlanToken { feed: Some(feed), ..PlanToken::unknown(TokenId::from(id)) }
    }

    fn retries(tokens: Vec<PlanToken>, is_urgent: bool, left: Option<u64>) -> (Vec<String>, Option<Timestamp>) {
        let source = model::config::SourceSettings::default();
        let now = time("2026-11-21T12:00:00Z");
        let basis = PlanBasis {
            allowance: Allowance {
                left,
                reserve: 0,
                today: left,
                for_changes: left,
                for_first_reads: left,
                reset_at: time("2026-12-01"),
            },
            spent_today: 0,
            source: &source,
            near: chrono::TimeDelta::days(7),
            now,
            trust: ListTrust::Learned,
        };
        let own = EndpointFeeds {
            endpoint: Endpoint::Burn,
            is_subscribed: true,
            next_slot: Some(time("2026-11-22")),
            slot_interval: chrono::TimeDelta::hours(1),
            whole: FeedState::default(),
            tokens,
            unreadable: Vec::new(),
        };
        let RetryPlan { polls, next_at } = plan_retries(own, Vec::new(), is_urgent, &basis);
        let id = |request: &PollRequest| request.token().map(ToString::to_string).unwrap_or_default();
        (polls.polls.iter().map(|poll| id(&poll.request)).collect(), next_at)
    }

    #[test]
    fn only_early_feeds_are_polled() {
        let tokens = vec![
            token("fine", Some("2026-11-01"), "2026-11-21", None),
            token("failed-alone", Some("2026-11-01"), "2026-11-21T11:00:00Z", Some("2026-11-21T11:00:00Z")),
            token("source-failed", Some("2026-11-01"), "2026-11-20", Some("2026-11-21T11:59:00Z")),
            token("unread", None, "2026-11-21T11:59:55Z", Some("2026-11-21T11:59:55Z")),
            token("waits", None, "2026-11-21T11:00:00Z", Some("2026-11-21T09:00:00Z")),
            PlanToken::unknown(TokenId::from("untried")),
        ];
        let (polled, next_at) = retries(tokens.clone(), false, None);
        assert_eq!(polled, ["unread", "source-failed"]);
        assert_eq!(next_at, Some(time("2026-11-21T13:00:00Z")), "two hours after the last failure");
        let (mut polled, next_at) = retries(tokens.clone(), true, None);
        polled.sort();
        assert_eq!((polled, next_at), (vec!["source-failed".into(), "unread".into(), "untried".into(), "waits".into()], None));
        assert_eq!(retries(tokens[..2].to_vec(), false, None), (Vec::new(), None));
        assert_eq!(retries(tokens, false, Some(0)).1, Some(time("2026-11-21T13:00:00Z")), "earlier than the next period");
    }
}
