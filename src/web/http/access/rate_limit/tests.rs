use super::*;

fn peer(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

fn start() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

#[test]
fn wait_doubles_with_each_failure() {
    let (mut logins, now) = (FailedLogins::default(), start());
    for _ in 0..FREE_FAILURES {
        logins.record_failure(peer(1), now);
        assert_eq!(logins.retry_after(peer(1), now), None);
    }
    let mut waits = Vec::new();
    for _ in 0..12 {
        logins.record_failure(peer(1), now);
        waits.push(logins.retry_after(peer(1), now).expect("a wait").num_seconds());
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
    assert_eq!(logins.retry_after(peer(2), now), None, "another address does not wait");
    assert_eq!(logins.retry_after(peer(1), now + MAX_WAIT), None);
    logins.record_failure(peer(2), now + RETENTION);
    assert!(!logins.0.contains_key(&peer(1)), "old failures are deleted");
}

#[test]
fn success_clears_failures() {
    let (mut logins, now) = (FailedLogins::default(), start());
    (0..=FREE_FAILURES).for_each(|_| logins.record_failure(peer(1), now));
    assert!(logins.retry_after(peer(1), now).is_some());
    logins.record_success(peer(1));
    assert_eq!(logins.retry_after(peer(1), now), None);
}

#[test]
fn clock_set_back_does_not_extend_the_wait() {
    let (mut logins, now) = (FailedLogins::default(), start());
    (0..=FREE_FAILURES).for_each(|_| logins.record_failure(peer(1), now));
    assert_eq!(logins.retry_after(peer(1), now - TimeDelta::days(400)), Some(MAX_WAIT));
}

#[test]
fn number_of_addresses_is_limited() {
    let (mut logins, now) = (FailedLogins::default(), start());
    for number in 0..3_000_u32 {
        logins.record_failure(IpAddr::V4(number.into()), now + TimeDelta::milliseconds(number.into()));
    }
    assert_eq!(logins.0.len(), MAX_ADDRESSES);
    assert!(logins.0.contains_key(&IpAddr::V4(2_999.into())));
}
