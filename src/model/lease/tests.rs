use super::*;

const SOON: Duration = Duration::from_secs(1);

fn held(number: i64, age_ms: i64) -> LeaseState {
    LeaseState { number, holder: "other".into(), age_ms: Some(age_ms) }
}

#[test]
fn whoever_stands_by_takes_over_once_the_term_is_over_or_the_lease_was_given_back() {
    for (age_ms, wanted) in [(0, LeaseAct::StandBy), (8_999, LeaseAct::StandBy), (9_000, LeaseAct::TakeOver)] {
        assert_eq!(decide(Some(&held(5, age_ms)), None, SOON), wanted, "{age_ms}");
    }
    // The clock of the database was set back: the lease is young.
    assert_eq!(decide(Some(&held(5, -60_000)), None, SOON), LeaseAct::StandBy);
    assert_eq!(decide(Some(&LeaseState { age_ms: None, ..held(5, 0) }), None, SOON), LeaseAct::TakeOver);
    assert_eq!(decide(None, None, SOON), LeaseAct::StandBy, "a database that cannot be asked is no reason to take over");
}

#[test]
fn the_active_one_renews_until_another_has_the_lease() {
    assert_eq!(decide(Some(&held(5, 3_000)), Some(5), SOON), LeaseAct::Renew);
    assert_eq!(decide(Some(&held(6, 10)), Some(5), SOON), LeaseAct::StepDown);
}

#[test]
fn the_active_one_steps_down_once_it_could_not_renew_for_the_term() {
    assert_eq!(decide(None, Some(5), SOON), LeaseAct::Renew, "a server that restarts is back soon");
    assert_eq!(decide(None, Some(5), TERM), LeaseAct::StepDown);
    // It was paused: nobody may have taken over, but somebody might.
    assert_eq!(decide(Some(&held(5, 60_000)), Some(5), Duration::from_secs(60)), LeaseAct::StepDown);
}

#[test]
fn a_death_is_noticed_within_fifteen_seconds() {
    assert!(TERM + LOOK * 2 < Duration::from_secs(15));
    assert!(RENEWAL * 2 < TERM, "one renewal that fails is no reason to step down");
}
