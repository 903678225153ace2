use super::*;

const SOON: Duration = Duration::from_secs(1);

fn held(number: i64, age_ms: i64) -> LeaseState {
    LeaseState { number, mark: 7, holder: "other".into(), age_ms: Some(age_ms) }
}

fn decide_seen(state: &LeaseState, sign: LifeSign, ours: Option<i64>) -> LeaseAct {
    decide(Some((state, sign)), ours, SOON)
}

#[test]
fn standby_takes_over_an_expired_or_released_lease() {
    use LifeSign::{Renewed, Silent, Unseen};
    for (age_ms, wanted) in [(0, LeaseAct::StandBy), (8_999, LeaseAct::StandBy), (9_000, LeaseAct::TakeOver)] {
        assert_eq!(decide_seen(&held(5, age_ms), Unseen, None), wanted, "{age_ms}");
    }
    for age_ms in [-3_600_000, 0, 3_600_000] {
        // The database's clock does not matter.
        assert_eq!(decide_seen(&held(5, age_ms), Silent, None), LeaseAct::TakeOver, "{age_ms}");
        assert_eq!(decide_seen(&held(5, age_ms), Renewed, None), LeaseAct::StandBy, "{age_ms}");
    }
    for sign in [Unseen, Renewed, Silent] {
        assert_eq!(decide_seen(&LeaseState { age_ms: None, ..held(5, 0) }, sign, None), LeaseAct::TakeOver);
    }
    assert_eq!(decide(None, None, SOON), LeaseAct::StandBy, "a database that cannot be read is no reason to take over");
}

#[test]
fn active_instance_renews_until_another_holds_the_lease() {
    assert_eq!(decide_seen(&held(5, 3_000), LifeSign::Unseen, Some(5)), LeaseAct::Renew);
    assert_eq!(decide_seen(&held(6, 10), LifeSign::Renewed, Some(5)), LeaseAct::StepDown);
}

#[test]
fn standby_distinguishes_renewing_from_silent_holder() {
    let secs = Duration::from_secs;
    let state = |number: i64, mark: i64| LeaseState { mark, ..held(number, 0) };
    let mut watch = LeaseWatch::default();
    assert_eq!(watch.saw(&state(5, 1), secs(10), secs(12)), LifeSign::Unseen);
    assert_eq!(watch.saw(&state(5, 1), secs(20), secs(21)), LifeSign::Unseen, "the first response came eight seconds ago");
    assert_eq!(watch.saw(&state(5, 1), secs(21), secs(22)), LifeSign::Silent);
    assert_eq!(
        watch.saw(&state(5, -9), secs(22), secs(23)),
        LifeSign::Renewed,
        "although the clock of the database was set back"
    );
    assert_eq!(watch.saw(&state(5, -9), secs(31), secs(31)), LifeSign::Renewed);
    assert_eq!(watch.saw(&state(6, -9), secs(32), secs(32)), LifeSign::Renewed, "there is another holder");
    // This instance was paused for an hour.
    assert_eq!(watch.saw(&state(6, 4), secs(3_600), secs(3_601)), LifeSign::Renewed);
    assert_eq!(watch.saw(&state(6, 4), secs(3_610), secs(3_610)), LifeSign::Silent);
}

#[test]
fn active_instance_steps_down_after_a_term_without_renewal() {
    assert_eq!(decide(None, Some(5), SOON), LeaseAct::Renew, "a server that restarts is back soon");
    assert_eq!(decide(None, Some(5), TERM), LeaseAct::StepDown);
    // The process was paused: another instance may have taken over.
    assert_eq!(decide(Some((&held(5, 60_000), LifeSign::Silent)), Some(5), Duration::from_secs(60)), LeaseAct::StepDown);
}

#[test]
fn death_is_noticed_within_fifteen_seconds() {
    assert!(TERM + CHECK_INTERVAL * 2 < Duration::from_secs(15));
    assert!(RENEWAL * 2 < TERM, "one renewal that fails is no reason to step down");
}

#[test]
fn other_instances_with_other_files_are_found() {
    let at = |minutes| Timestamp::default() + TimeDelta::minutes(minutes);
    let setup = |instance: &str, fingerprint: &str, minutes| InstanceSetup {
        instance: instance.to_owned(),
        fingerprint: fingerprint.to_owned(),
        at: at(minutes),
    };
    let mut setups = Vec::new();
    report_setup(&mut setups, setup("one:1", "a", 0));
    report_setup(&mut setups, setup("two:1", "b", 4));
    assert_eq!(differing_setups(&setups, &setups[0]), ["two:1"]);
    assert_eq!(differing_setups(&setups, &setups[1]), ["one:1"]);
    // The second host restarts with the files of the first.
    report_setup(&mut setups, setup("two:9", "a", 7));
    report_setup(&mut setups, setup("one:1", "a", 7));
    assert_eq!(differing_setups(&setups, &setup("one:1", "a", 7)), [""; 0], "{setups:?}");
    report_setup(&mut setups, setup("one:1", "c", 50));
    assert_eq!(setups.len(), 1, "the other host is gone");
}
