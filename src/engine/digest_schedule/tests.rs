use super::*;

fn time(text: &str) -> Timestamp {
    model::wire::parse_timestamp(text).expect("a time")
}

fn schedule(at: &str, days: &[&str], timezone: &str) -> Schedule {
    let days = days.iter().map(|day| (*day).to_owned()).collect();
    let config = config::DigestSettings { at: at.into(), days, timezone: Some(timezone.into()), ahead: None };
    Schedule::of(&config).expect("a schedule")
}

/// The slots that a look every five minutes finds.
fn slots(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
    let mut slots: Vec<Timestamp> = Vec::new();
    let mut now = time(from);
    let mut last = schedule.last(now);
    while now < time(to) {
        now += TimeDelta::minutes(5);
        let slot = schedule.last(now);
        if slot > last {
            slots.extend(slot);
            last = slot;
        }
    }
    slots.iter().map(|slot| slot.format("%d %H:%M").to_string()).collect()
}

#[test]
fn a_digest_comes_once_a_day_at_its_wall_clock_time_also_when_clocks_change() {
    let morning = schedule("08:00", &[], "Europe/Paris");
    assert_eq!(slots(&morning, "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z"), ["28 07:00", "29 06:00", "30 06:00"]);
    let skipped = schedule("02:30", &[], "Europe/Paris");
    assert_eq!(slots(&skipped, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"), ["29 01:30", "30 00:30"]);
    let twice = schedule("02:30", &[], "Europe/Paris");
    assert_eq!(slots(&twice, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"), ["25 00:30", "26 01:30"]);
}

#[test]
fn the_next_digest_is_the_one_that_comes() {
    for (of, from) in [
        (schedule("08:00", &[], "Europe/Paris"), "2026-03-27T12:00:00Z"),
        (schedule("02:30", &[], "Europe/Paris"), "2026-10-24T12:00:00Z"),
        (schedule("23:45", &["sun"], "America/New_York"), "2026-03-06T00:00:00Z"),
        (schedule("00:10", &["mon"], "Pacific/Auckland"), "2026-09-25T00:00:00Z"),
    ] {
        let mut now = time(from);
        for _ in 0..6 {
            let next = of.next(now).expect("a slot");
            assert!(next > now && next - now <= TimeDelta::days(8));
            assert_eq!(of.last(next - TimeDelta::seconds(1)), of.last(now), "nothing lies between");
            assert_eq!(of.last(next), Some(next));
            now = next;
        }
    }
}

#[test]
fn a_digest_keeps_to_its_days() {
    let weekly = schedule("18:00", &["mon", "thu:fri"], "UTC");
    assert_eq!(slots(&weekly, "2026-03-08T00:00:00Z", "2026-03-16T23:00:00Z"), ["09 18:00", "12 18:00", "13 18:00", "16 18:00"]);
}

#[test]
fn what_is_wrong_with_a_digest_is_told_by_key() {
    let key = |config: config::DigestSettings| Schedule::of(&config).expect_err("wrong").0;
    let good = config::DigestSettings { at: "08:00".into(), ..config::DigestSettings::default() };
    assert_eq!(key(config::DigestSettings::default()), "at");
    assert_eq!(key(config::DigestSettings { at: "24:00".into(), ..good.clone() }), "at");
    assert_eq!(key(config::DigestSettings { days: vec!["someday".into()], ..good.clone() }), "days");
    assert_eq!(key(config::DigestSettings { timezone: Some("Paris".into()), ..good }), "timezone");
}
