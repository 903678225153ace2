use super::*;

fn peer(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn start() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

#[test]
fn the_wait_grows_with_each_wrong_token_and_ends() {
    let (mut attempts, now) = (Attempts::default(), start());
    for _ in 0..FREE {
        attempts.failed(peer(1), now);
        assert_eq!(attempts.wait(peer(1), now), None);
    }
    let mut waits = Vec::new();
    for _ in 0..12 {
        attempts.failed(peer(1), now);
        waits.push(attempts.wait(peer(1), now).expect("a wait").num_seconds());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
    assert_eq!(attempts.wait(peer(2), now), None, "another address is free");
    assert_eq!(attempts.wait(peer(1), now + MAX_WAIT), None);
    attempts.failed(peer(2), now + MEMORY);
    assert!(!attempts.0.contains_key(&peer(1)), "it is forgotten");
}

#[test]
fn a_right_token_ends_the_wait() {
    let (mut attempts, now) = (Attempts::default(), start());
    (0..=FREE).for_each(|_| attempts.failed(peer(1), now));
    assert!(attempts.wait(peer(1), now).is_some());
    attempts.succeeded(peer(1));
    assert_eq!(attempts.wait(peer(1), now), None);
}

#[test]
fn a_clock_that_is_set_back_locks_nobody_out() {
    let (mut attempts, now) = (Attempts::default(), start());
    (0..=FREE).for_each(|_| attempts.failed(peer(1), now));
    assert_eq!(attempts.wait(peer(1), now - TimeDelta::days(400)), Some(MAX_WAIT));
}

#[test]
fn a_crowd_takes_no_more_room_than_there_is() {
    let (mut attempts, now) = (Attempts::default(), start());
    for number in 0..3_000_u32 {
        attempts.failed(IpAddr::V4(number.into()), now + TimeDelta::milliseconds(number.into()));
    }
    assert_eq!(attempts.0.len(), MAX_ADDRESSES);
    assert!(attempts.0.contains_key(&IpAddr::V4(2_999.into())));
}
