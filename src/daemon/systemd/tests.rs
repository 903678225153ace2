use super::*;

#[test]
fn the_watchdog_is_fed_while_every_loop_moves() {
    let markers = [ProgressMarker::default(), ProgressMarker::default()];
    let mut watch = MarkerWatch::over(markers.to_vec());
    for _ in 0..3 {
        assert!(!watch.all_moved());
        markers.iter().for_each(ProgressMarker::mark);
        assert!(watch.all_moved());
    }
}

#[test]
fn one_loop_that_hangs_starves_the_watchdog() {
    let markers = [ProgressMarker::default(), ProgressMarker::default()];
    let mut watch = MarkerWatch::over(markers.to_vec());
    for _ in 0..5 {
        markers[0].mark();
        assert!(!watch.all_moved());
    }
    markers[1].mark();
    assert!(watch.all_moved());
}

#[test]
fn loops_that_a_reload_adds_or_ends_are_followed() {
    let (old, new, gone) = (ProgressMarker::default(), ProgressMarker::default(), ProgressMarker::default());
    let mut watch = MarkerWatch::over(vec![old.clone(), gone.clone()]);
    old.mark();
    watch.follow(vec![old.clone(), new.clone()]);
    assert!(!watch.all_moved(), "the new one must move too");
    new.mark();
    assert!(watch.all_moved(), "what is gone is not waited for, and what moved before counts");
    watch.follow(vec![new.clone()]);
    assert!(!watch.all_moved());
}

#[test]
fn a_status_is_one_line() {
    assert_eq!(one_line("a\nREADY=1"), "a READY=1");
    assert_eq!(one_line(&"x".repeat(500)).len(), MAX_STATUS_CHARS);
}
