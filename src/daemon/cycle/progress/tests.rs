use super::*;

#[test]
fn only_long_polls_are_reported_every_minute() {
    let progress = Progress::default();
    let started = Instant::now();
    let after = |secs| started + Duration::from_secs(secs);
    progress.plan(Endpoint::TokenList, 1, started);
    progress.plan(Endpoint::UnlockEvents, 600, started);
    progress.responded(Endpoint::TokenList, false);
    progress.end(Endpoint::TokenList);
    assert_eq!(progress.due(after(59)), []);
    for no in 0..150 {
        progress.responded(Endpoint::UnlockEvents, no % 50 == 0);
    }
    let sentences = |due: Vec<EndpointProgress>| due.iter().map(EndpointProgress::sentence).collect::<Vec<_>>();
    assert_eq!(sentences(progress.due(after(60))), ["unlock_events: 150 of 600 read, 3 failed, about 3 min left"]);
    assert_eq!(progress.now(after(60))[0].brief(), "unlock_events 150/600, 3 failed, 3 min");
    assert_eq!(progress.due(after(119)), []);
    // Repeated polls are added to the plan.
    progress.plan(Endpoint::UnlockEvents, 10, after(119));
    (0..450).for_each(|_| progress.responded(Endpoint::UnlockEvents, false));
    assert_eq!(sentences(progress.due(after(120))), ["unlock_events: 600 of 610 read, 3 failed, about 2 s left"]);
    progress.end(Endpoint::UnlockEvents);
    assert_eq!(progress.due(after(600)), []);
}

#[test]
fn no_estimate_before_first_response() {
    let progress = Progress::default();
    let started = Instant::now();
    progress.plan(Endpoint::Burn, 3, started);
    let now = progress.now(started + Duration::from_secs(5));
    assert_eq!(now.iter().map(EndpointProgress::sentence).collect::<Vec<_>>(), ["burn: 0 of 3 read"]);
}
