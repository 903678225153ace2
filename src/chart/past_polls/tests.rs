use super::*;
use model::PollProblem;

fn cycle(minute: i64, polls: u64, failed: u64) -> PastPoll {
    let at = model::time::parse_timestamp("2026-03-09T12:00:00Z").expect("a time") - chrono::TimeDelta::minutes(minute);
    let failure = (failed > 0).then(|| PollProblem { token: Some("A<b>".to_owned()), message: "503 & <gone>".to_owned() });
    PastPoll { at, polls, failed, deferred: 0, is_empty: false, failure }
}

#[test]
fn strip_has_a_fixed_number_of_marks() {
    let cycles = [cycle(0, 1, 0), cycle(1, 5, 2), cycle(2, 1, 1)];
    let drawn = draw(&cycles);
    assert_eq!(drawn.matches("class=\"none\"").count(), 37);
    assert_eq!(drawn.matches("class=\"failed\"").count(), 2);
    let label = "Last 3 cycles: 1 succeeded, 1 partly failed, 1 failed; last failure on 2026-03-09 11:59 UTC";
    assert!(drawn.contains(&format!("aria-label=\"{label}\"")), "{drawn}");
    assert!(!drawn.contains("<b>") && drawn.contains("A&lt;b&gt;"), "{drawn}");
    let many: Vec<_> = (0..100).map(|minute| cycle(minute, 1, 0)).collect();
    assert_eq!(draw(&many).matches("<title>").count(), 40);
    assert_eq!(draw(&[]).matches("class=\"none\"").count(), 40);
}
