use super::*;

#[test]
fn a_long_read_is_told_each_minute_and_a_short_one_never() {
    let reading = Reading::default();
    let begun = Instant::now();
    let after = |secs| begun + Duration::from_secs(secs);
    reading.plan(Endpoint::TokenList, 1, begun);
    reading.plan(Endpoint::UnlockEvents, 600, begun);
    reading.answered(Endpoint::TokenList, false);
    reading.end(Endpoint::TokenList);
    assert_eq!(reading.due(after(59)), []);
    for no in 0..150 {
        reading.answered(Endpoint::UnlockEvents, no % 50 == 0);
    }
    let sentences = |told: Vec<ReadProgress>| told.iter().map(ReadProgress::sentence).collect::<Vec<_>>();
    assert_eq!(sentences(reading.due(after(60))), ["unlock_events: 150 of 600 read, 3 failed, about 3 minutes to go"]);
    assert_eq!(reading.now(after(60))[0].brief(), "unlock_events 150/600, 3 failed, 3 min");
    assert_eq!(reading.due(after(119)), []);
    // What is asked once more comes on top of it.
    reading.plan(Endpoint::UnlockEvents, 10, after(119));
    (0..450).for_each(|_| reading.answered(Endpoint::UnlockEvents, false));
    assert_eq!(sentences(reading.due(after(120))), ["unlock_events: 600 of 610 read, 3 failed, about 2 seconds to go"]);
    reading.end(Endpoint::UnlockEvents);
    assert_eq!(reading.due(after(600)), []);
}

#[test]
fn nothing_is_foretold_before_the_first_answer() {
    let reading = Reading::default();
    let begun = Instant::now();
    reading.plan(Endpoint::Burn, 3, begun);
    let now = reading.now(begun + Duration::from_secs(5));
    assert_eq!(now.iter().map(ReadProgress::sentence).collect::<Vec<_>>(), ["burn: 0 of 3 read"]);
}
