use super::*;

#[test]
fn watchdog_is_fed_while_all_loops_progress() {
    let markers = [ProgressMarker::default(), ProgressMarker::default()];
    let mut watch = MarkerWatch::new(markers.to_vec());
    for _ in 0..3 {
        assert!(!watch.all_risen());
        markers.iter().for_each(ProgressMarker::mark);
        assert!(watch.all_risen());
    }
}

#[test]
fn hung_loop_starves_watchdog() {
    let markers = [ProgressMarker::default(), ProgressMarker::default()];
    let mut watch = MarkerWatch::new(markers.to_vec());
    for _ in 0..5 {
        markers[0].mark();
        assert!(!watch.all_risen());
    }
    markers[1].mark();
    assert!(watch.all_risen());
}

#[test]
fn watchdog_follows_loops_that_reload_adds_or_ends() {
    let (old, new, gone) = (ProgressMarker::default(), ProgressMarker::default(), ProgressMarker::default());
    let mut watch = MarkerWatch::new(vec![old.clone(), gone.clone()]);
    old.mark();
    watch.set_markers(vec![old.clone(), new.clone()]);
    assert!(!watch.all_risen(), "the new marker must rise too");
    new.mark();
    assert!(watch.all_risen(), "the removed marker is ignored, and earlier progress counts");
    watch.set_markers(vec![new.clone()]);
    assert!(!watch.all_risen());
}

#[test]
fn status_is_one_line() {
    assert_eq!(one_line("a\nREADY=1"), "a READY=1");
    assert_eq!(one_line(&"x".repeat(500)).len(), MAX_STATUS_CHARS);
}
