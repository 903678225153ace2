use super::*;

#[test]
fn a_database_that_works_again_ends_only_what_the_database_began() {
    let readiness = Readiness::starting(Timestamp::default());
    readiness.store_works();
    assert_eq!(readiness.not_ready(), Some(NotReady::Starting));
    readiness.set_ready();
    readiness.set_not_ready(NotReady::StoreFails("cannot write a batch: disk full".to_owned()));
    assert_eq!(readiness.view().reason.as_deref(), Some("cannot write a batch: disk full"));
    readiness.store_works();
    assert_eq!(readiness.not_ready(), None);
    readiness.set_not_ready(NotReady::Stopping);
    readiness.store_works();
    assert_eq!(readiness.not_ready(), Some(NotReady::Stopping));
}
