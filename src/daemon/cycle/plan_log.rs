//! The lines of the debug log about a plan: which feeds are polled, which are put off, and why. Pure.

use std::collections::BTreeMap;

use engine::budget::PollReason;
use engine::plan::{DelayCause, PollPlan};
use model::phrase::{self, count, instant_iso};

/// The maximum number of feeds that a line names.
const MAX_NAMED: usize = 40;

/// Returns the lines about a plan, the most urgent polls first. Empty if nothing is polled or put off.
pub(super) fn lines(plan: &PollPlan) -> Vec<String> {
    let mut due: BTreeMap<PollReason, Vec<String>> = BTreeMap::new();
    for poll in &plan.polls {
        due.entry(poll.why).or_default().push(format!("{} ({})", poll.request.feed(), count(poll.cost, "credit")));
    }
    let mut unpaid: BTreeMap<PollReason, Vec<String>> = BTreeMap::new();
    let mut failing = Vec::new();
    for delayed in &plan.delayed {
        match delayed.cause {
            DelayCause::Credits { why, cost } => {
                unpaid.entry(why).or_default().push(format!("{} ({})", delayed.feed, count(cost, "credit")));
            }
            DelayCause::Failing { retry_at } => failing.push(format!("{} (until {})", delayed.feed, instant_iso(retry_at))),
        }
    }
    let named = |feeds: &[String]| phrase::list_some(feeds, MAX_NAMED, 0);
    let due = due.iter().map(|(why, feeds)| format!("due ({}): {}", why.as_str(), named(feeds)));
    let unpaid = unpaid.iter().map(|(why, feeds)| format!("put off for lack of credits ({}): {}", why.as_str(), named(feeds)));
    let failing = (!failing.is_empty()).then(|| format!("put off until the next retry: {}", named(&failing)));
    due.chain(unpaid).chain(failing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::plan::{DelayedFeed, PlannedPoll};
    use model::{Endpoint, FeedId, PollRequest};

    #[test]
    fn plan_is_logged_with_the_reason_of_each_feed() {
        let feed = |token: &str| FeedId::of(Endpoint::Burn, &token.into());
        let poll = |token: &str, why, cost| {
            let day = chrono::NaiveDate::default();
            let request = PollRequest::Token { endpoint: Endpoint::Burn, token: token.into(), start: day, end: day };
            PlannedPoll { why, cost, ..PlannedPoll::for_change(request) }
        };
        let unpaid =
            |token: &str| DelayedFeed { feed: feed(token), cause: DelayCause::Credits { why: PollReason::Verify, cost: 2 } };
        let failing =
            DelayedFeed { feed: feed("gone"), cause: DelayCause::Failing { retry_at: testkit::time("2026-03-01T12:00:00Z") } };
        let plan = PollPlan {
            polls: vec![
                poll("new", PollReason::First, 1),
                poll("old", PollReason::Verify, 1),
                poll("far", PollReason::Verify, 3),
            ],
            delayed: [failing].into_iter().chain((0..50).map(|number| unpaid(&format!("t{number}")))).collect(),
            ..PollPlan::default()
        };
        let lines = lines(&plan);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        assert_eq!(lines[0], "due (first read): burn/new (1 credit)");
        assert_eq!(lines[1], "due (regular): burn/old (1 credit) and burn/far (3 credits)");
        assert!(lines[2].starts_with("put off for lack of credits (regular): burn/t0 (2 credits), "), "{}", lines[2]);
        assert!(lines[2].ends_with("burn/t39 (2 credits), and 10 more"), "{}", lines[2]);
        assert_eq!(lines[3], "put off until the next retry: burn/gone (until 2026-03-01 12:00 UTC)");
        assert_eq!(super::lines(&PollPlan::default()), [] as [&str; 0]);
    }
}
