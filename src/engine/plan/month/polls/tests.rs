use super::*;
use model::{FeedState, wire};

fn hour(hour: i64) -> Timestamp {
    wire::parse_timestamp("2026-03-01").expect("a timestamp") + TimeDelta::hours(hour)
}

fn token(id: &str, baseline: i64) -> PlanToken {
    let feed = FeedState { baseline_at: Some(hour(baseline)), read_at: Some(hour(baseline)), ..FeedState::default() };
    PlanToken { feed: Some(feed), ..PlanToken::unknown(TokenId::from(id)) }
}

fn summary(tokens: &[PlanToken], reads: &[(&str, i64)]) -> PollSummary {
    let feeds = [EndpointFeeds {
        endpoint: Endpoint::UnlockEvents,
        is_subscribed: true,
        next_slot: None,
        slot_interval: chrono::TimeDelta::hours(1),
        whole: FeedState::default(),
        tokens: tokens.to_vec(),
        unreadable: Vec::new(),
    }];
    let reads = reads.iter().map(|(token, at)| (TokenId::from(*token), hour(*at))).collect();
    PollSummary::from_polls(&feeds, reads, [0, 0], TimeDelta::days(7), (hour(0), hour(100)))
}

#[test]
fn mean_delay_weights_long_gaps_more() {
    let (even, uneven) = ([("a", 25), ("a", 50), ("a", 75)], [("a", 10), ("a", 20), ("a", 90)]);
    let noticed = |reads: &[(&str, i64)]| summary(&[token("a", -500)], reads).noticed_hours.expect("known");
    let [(mean, worst), (uneven_mean, uneven_worst)] = [&even, &uneven].map(|reads| noticed(reads));
    assert!((mean - 12.5).abs() < 0.01 && (worst - 25.0).abs() < 0.01, "{mean} {worst}");
    // Gaps of 10, 10, 70, and 10 hours: a correction falls into the long one in seven of ten cases.
    assert!((uneven_mean - 26.0).abs() < 0.01 && (uneven_worst - 70.0).abs() < 0.01, "{uneven_mean} {uneven_worst}");
    assert!((noticed(&[]).1 - 100.0).abs() < 0.01, "no polls in the period");
}

#[test]
fn time_before_the_baseline_is_not_counted() {
    let (mean, worst) = summary(&[token("new", 80)], &[("new", 80), ("new", 90)]).noticed_hours.expect("known");
    assert!((mean - 5.0).abs() < 0.01 && (worst - 10.0).abs() < 0.01, "{mean} {worst}");
}

#[test]
fn names_ten_most_and_ten_least_polled_tokens() {
    let ids: Vec<String> = (0..14).map(|n| format!("t{n:02}")).collect();
    let tokens: Vec<PlanToken> = ids.iter().map(|id| token(id, -500)).collect();
    let reads: Vec<(&str, i64)> =
        ids.iter().enumerate().flat_map(|(n, id)| (0..n).map(move |read| (id.as_str(), 5 * read as i64 + 1))).collect();
    let of = summary(&tokens, &reads);
    let polls = |all: &[TokenPolls]| all.iter().map(|of| of.polls).collect::<Vec<_>>();
    assert_eq!(polls(&of.most_read), [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]);
    assert_eq!(polls(&of.least_read), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
