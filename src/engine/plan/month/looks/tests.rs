use super::*;
use model::{FeedState, wire};

fn hour(hour: i64) -> Timestamp {
    wire::parse_timestamp("2026-03-01").expect("a timestamp") + TimeDelta::hours(hour)
}

fn token(id: &str, baseline: i64) -> PlanToken {
    let feed = FeedState { baseline_at: Some(hour(baseline)), read_at: Some(hour(baseline)), ..FeedState::default() };
    PlanToken { feed: Some(feed), ..PlanToken::unknown(TokenId::from(id)) }
}

fn summary(tokens: &[PlanToken], reads: &[(&str, i64)]) -> LookSummary {
    let feeds = [EndpointFeeds {
        endpoint: Endpoint::UnlockEvents,
        is_heard: true,
        whole: FeedState::default(),
        tokens: tokens.to_vec(),
    }];
    let reads = reads.iter().map(|(token, at)| (TokenId::from(*token), hour(*at))).collect();
    LookSummary::of_reads(&feeds, reads, [0, 0], TimeDelta::days(7), (hour(0), hour(100)))
}

#[test]
fn a_correction_waits_for_half_of_the_gap_that_it_falls_into() {
    let (even, uneven) = ([("a", 25), ("a", 50), ("a", 75)], [("a", 10), ("a", 20), ("a", 90)]);
    let noticed = |reads: &[(&str, i64)]| summary(&[token("a", -500)], reads).noticed_hours.expect("known");
    let [(mean, worst), (late, latest)] = [&even, &uneven].map(|reads| noticed(reads));
    assert!((mean - 12.5).abs() < 0.01 && (worst - 25.0).abs() < 0.01, "{mean} {worst}");
    // Gaps of 10, 10, 70 and 10: it falls into the long one in seven of ten cases.
    assert!((late - 26.0).abs() < 0.01 && (latest - 70.0).abs() < 0.01, "{late} {latest}");
    assert!((noticed(&[]).1 - 100.0).abs() < 0.01, "not read at all in the period");
}

#[test]
fn what_came_before_the_first_read_is_nobodys_delay() {
    let (mean, worst) = summary(&[token("new", 80)], &[("new", 80), ("new", 90)]).noticed_hours.expect("known");
    assert!((mean - 5.0).abs() < 0.01 && (worst - 10.0).abs() < 0.01, "{mean} {worst}");
}

#[test]
fn ten_tokens_are_named_of_those_read_most_and_of_those_read_least() {
    let ids: Vec<String> = (0..14).map(|n| format!("t{n:02}")).collect();
    let tokens: Vec<PlanToken> = ids.iter().map(|id| token(id, -500)).collect();
    let reads: Vec<(&str, i64)> =
        ids.iter().enumerate().flat_map(|(n, id)| (0..n).map(move |read| (id.as_str(), 5 * read as i64 + 1))).collect();
    let of = summary(&tokens, &reads);
    let looks = |all: &[TokenLooks]| all.iter().map(|of| of.looks).collect::<Vec<_>>();
    assert_eq!(looks(&of.most_read), [13, 12, 11, 10, 9, 8, 7, 6, 5, 4]);
    assert_eq!(looks(&of.least_read), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}
