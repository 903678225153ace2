//! Random cycles of a source.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// The outcomes of one cycle for some of the feeds.
fn outcomes() -> impl Strategy<Value = Vec<FeedOutcome>> {
    let names =
        ["token_list", "upcoming", "unlock_events/a", "unlock_events/b", "unlock_events/c", "burn/a", "burn/b", "investors"];
    let result = prop_oneof![
        3 => Just(None),
        4 => (0..EVERY_FAULT.len()).prop_map(|index| Some(EVERY_FAULT[index])),
        1 => Just(Some(FailureKind::Suspended)),
    ];
    prop::collection::vec((0..names.len(), result), 0..12).prop_map(move |rows| {
        let outcome = |(index, kind): (usize, Option<FailureKind>)| match kind {
            None => fine(&[names[index]]),
            Some(kind) => failed(kind, &[names[index]]),
        };
        rows.into_iter().flat_map(outcome).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn failing_feed_is_in_exactly_one_open_alert(cycles in prop::collection::vec((outcomes(), 0_i64..90), 1..12)) {
        let mut world = World::new();
        let mut failing_feeds: HashSet<String> = HashSet::new();
        let mut everything: HashSet<String> = HashSet::new();
        for (outcomes, minutes) in cycles {
            let before: Vec<Alert> = world.firing().into_iter().cloned().collect();
            // `commit` fails on a duplicate notification id.
            world.cycle(minutes, &outcomes);
            let mut results: BTreeMap<String, (bool, bool)> = BTreeMap::new();
            for item in &outcomes {
                let (is_failing, is_requested) = results.entry(item.feed.to_string()).or_default();
                if let FeedResult::Failed(failure) = &item.result {
                    *is_failing = true;
                    *is_requested |= failure.kind != FailureKind::Suspended;
                }
            }
            for (feed, (is_failing, is_requested)) in results {
                if !is_failing {
                    failing_feeds.remove(&feed);
                } else if is_requested {
                    failing_feeds.insert(feed.clone());
                }
                everything.insert(feed);
            }
            // A failure of the whole source ends after some successes, even for feeds that were not polled.
            let feeds = FeedsByResult::of(&outcomes);
            let responding = feeds.responding();
            failing_feeds.retain(|name| {
                let wide = before.iter().find(|alert| alert.members.contains(name)).and_then(|alert| IncidentScope::of_subject(&alert.subject));
                let has_ended = match wide {
                    Some(IncidentScope::Quota | IncidentScope::Unauthorized) => !feeds.fine.is_empty(),
                    Some(IncidentScope::Source) => responding.contains(&feed(name).endpoint),
                    _ => false,
                };
                !has_ended || feeds.failing.contains_key(&feed(name))
            });
            let mut members: Vec<String> = world.firing().iter().flat_map(|alert| alert.members.clone()).collect();
            members.sort();
            let held = members.len();
            members.dedup();
            prop_assert_eq!(held, members.len(), "a feed in two alerts: {:?}", members);
            for feed in &failing_feeds {
                prop_assert!(members.contains(feed), "{} fails without an alert", feed);
            }
            for alert in world.firing() {
                prop_assert_eq!(&alert.labels["alertname"], SOURCE_TROUBLE);
                prop_assert!(!alert.notified.is_empty());
            }
        }
        let all: Vec<&str> = everything.iter().map(String::as_str).collect();
        world.cycle(1, &fine(&all));
        prop_assert_eq!(world.firing(), Vec::<&Alert>::new(), "all feeds responded");
        world.cycle(1, &fine(&all));
    }
}
