use super::*;
use model::PollProblem;

fn cycle(minute: i64, polls: u64, failed: u64) -> PastPoll {
    let at = model::time::parse_timestamp("2026-03-09T12:00:00Z").expect("a time") - chrono::TimeDelta::minutes(minute);
    let failure = (failed > 0).then(|| PollProblem { token: Some("A<b>".to_owned()), message: "503 & <gone>".to_owned() });
    PastPoll { at, polls, failed, deferred: 0, is_empty: false, failure }
}

#[test]
fn each_cycle_says_when_and_how_it_went() {
    assert_eq!(title(&cycle(0, 1, 0)), "9 Mar 2026 12:00: answered");
    assert_eq!(title(&cycle(1, 60, 2)), "9 Mar 2026 11:59: 60 polls, 2 failed: A<b>: 503 & <gone>");
    assert_eq!(told(&cycle(1, 1, 1)), "failed: A<b>: 503 & <gone>");
    assert_eq!(told(&PastPoll { is_empty: true, ..cycle(0, 3, 0) }), "3 polls, answered, and nothing was there");
    assert_eq!(told(&PastPoll { deferred: 1, ..cycle(0, 1, 0) }), "put off: it costs more than was planned");
    let long = PollProblem { token: None, message: "x".repeat(400) };
    assert!(told(&PastPoll { failure: Some(long), ..cycle(0, 1, 1) }).chars().count() < 180);
}

#[test]
fn a_strip_is_as_wide_whatever_is_known_and_says_all_of_it_in_a_sentence() {
    let cycles = [cycle(0, 1, 0), cycle(1, 5, 2), cycle(2, 1, 1)];
    let drawn = draw(&cycles);
    assert_eq!(drawn.matches("class=\"none\"").count(), 37);
    assert_eq!(drawn.matches("class=\"failed\"").count(), 2);
    let told = "The last 3 cycles: 1 answered, 1 failed in part, 1 failed; something failed last on 9 Mar 2026 11:59";
    assert!(drawn.contains(&format!("aria-label=\"{told}\"")), "{drawn}");
    assert!(!drawn.contains("<b>") && drawn.contains("A&lt;b&gt;"), "{drawn}");
    let many: Vec<_> = (0..100).map(|minute| cycle(minute, 1, 0)).collect();
    assert_eq!(draw(&many).matches("<title>").count(), 40);
    assert_eq!(draw(&[]).matches("class=\"none\"").count(), 40);
}
