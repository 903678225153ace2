use super::*;
use model::PollProblem;

#[test]
fn consecutive_equal_outcomes_share_a_row() {
    let at = model::time::parse_timestamp("2026-03-09T12:00:00Z").expect("a time");
    let cycle = |minute: i64, failed: u64| PastPoll {
        at: at - chrono::TimeDelta::minutes(minute),
        polls: 1,
        failed,
        deferred: 0,
        is_empty: false,
        failure: (failed > 0).then(|| PollProblem { token: None, message: "503".to_owned() }),
    };
    let polls =
        PastPolls { endpoint: Endpoint::Burn, cycles: vec![cycle(0, 0), cycle(1, 0), cycle(2, 1), cycle(3, 1), cycle(4, 0)] };
    let outcome: Vec<_> =
        rows(&polls).into_iter().map(|row| (row.cycles, row.has_failed, row.outcome, row.until - row.from)).collect();
    let minutes = chrono::TimeDelta::minutes;
    let expected = [(2, false, "succeeded", 1), (2, true, "failed: 503", 1), (1, false, "succeeded", 0)];
    assert_eq!(outcome, expected.map(|(cycles, failed, outcome, span)| (cycles, failed, outcome.to_owned(), minutes(span))));

    let turns: Vec<_> = (0..40).map(|minute| cycle(minute, u64::from(minute % 2 == 0))).collect();
    assert_eq!(rows(&PastPolls { endpoint: Endpoint::Burn, cycles: turns }).len(), MAX_ENDPOINT_ROWS);
}
