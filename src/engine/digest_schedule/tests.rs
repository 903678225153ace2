use super::*;
use testkit::time;

fn schedule(at: &str, days: &[&str], timezone: &str) -> Schedule {
    let days = days.iter().map(|day| (*day).to_owned()).collect();
    let config =
        config::DigestSettings { at: at.into(), days, timezone: Some(timezone.into()), ..config::DigestSettings::default() };
    Schedule::of(&config).expect("a schedule")
}

/// Returns the slots that a check every five minutes finds.
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
fn digest_has_one_slot_per_day_even_when_clocks_change() {
    let morning = schedule("08:00", &[], "Europe/Paris");
    assert_eq!(slots(&morning, "2026-03-27T12:00:00Z", "2026-03-30T12:00:00Z"), ["28 07:00", "29 06:00", "30 06:00"]);
    let skipped = schedule("02:30", &[], "Europe/Paris");
    assert_eq!(slots(&skipped, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"), ["29 01:30", "30 00:30"]);
    let twice = schedule("02:30", &[], "Europe/Paris");
    assert_eq!(slots(&twice, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"), ["25 00:30", "26 01:30"]);
}

#[test]
fn next_slot_becomes_the_last_slot() {
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
            assert_eq!(of.last(next - TimeDelta::seconds(1)), of.last(now), "there is no slot in between");
            assert_eq!(of.last(next), Some(next));
            now = next;
        }
    }
}

#[test]
fn digest_is_sent_on_its_days_only() {
    let weekly = schedule("18:00", &["mon", "thu:fri"], "UTC");
    assert_eq!(slots(&weekly, "2026-03-08T00:00:00Z", "2026-03-16T23:00:00Z"), ["09 18:00", "12 18:00", "13 18:00", "16 18:00"]);
}

#[test]
fn reports_problems_by_key() {
    let key = |config: config::DigestSettings| Schedule::of(&config).expect_err("wrong").0;
    let good = config::DigestSettings { at: "08:00".into(), ..config::DigestSettings::default() };
    assert_eq!(key(config::DigestSettings::default()), "at");
    assert_eq!(key(config::DigestSettings { at: "24:00".into(), ..good.clone() }), "at");
    assert_eq!(key(config::DigestSettings { days: vec!["someday".into()], ..good.clone() }), "days");
    assert_eq!(key(config::DigestSettings { timezone: Some("Paris".into()), ..good }), "timezone");
}
