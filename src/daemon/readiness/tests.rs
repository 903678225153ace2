use super::*;

#[test]
fn working_database_clears_only_database_failure() {
    let readiness = Readiness::starting(Timestamp::default());
    readiness.clear_store_failure();
    assert_eq!(readiness.not_ready(), Some(NotReady::Starting));
    readiness.set_phase(Phase::Running);
    readiness.set_store_failure("cannot write a batch: disk full".to_owned());
    assert_eq!(readiness.view().reason.as_deref(), Some("cannot write a batch: disk full"));
    readiness.clear_store_failure();
    assert_eq!(readiness.not_ready(), None);
    readiness.set_phase(Phase::Stopping);
    readiness.clear_store_failure();
    assert_eq!(readiness.not_ready(), Some(NotReady::Stopping));
}

#[test]
fn stopping_comes_before_database_failure() {
    let failure = Some(NotReady::StoreFails("full".to_owned()));
    for (phase, without, with) in [
        (Phase::Starting, Some(NotReady::Starting), failure.clone()),
        (Phase::Running, None, failure),
        (Phase::Stopping, Some(NotReady::Stopping), Some(NotReady::Stopping)),
    ] {
        assert_eq!((not_ready(phase, None), not_ready(phase, Some("full"))), (without, with), "{phase:?}");
    }
}
