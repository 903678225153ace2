use std::collections::BTreeMap;

use super::*;
use model::config::{self, Config};
use model::{AlertStatus, BatchKind, Silence, SourceText, read_matchers, wire};
use rules::{self, Surroundings};

const RULES: &str = r#"
[[rule]]
alert  = "Ahead"
on     = "unlock"
within = ["7d", "1d"]
labels = { severity = "{{ 'critical' if cliffAmount >= 1000 else 'warning' }}" }
[rule.annotations]
summary = "{{ token.id }} {{ cliffAmount | amount }}"

[[rule]]
alert = "Burned"
on    = "burn"
labels = { severity = "info" }

[[rule]]
alert = "Pressure"
on    = "token"
when  = 'ahead("90d").amount > 1e12 || burned("90d").amount > 1e12'
"#;

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

fn rules(text: &str) -> RuleSet {
    let source = SourceText { file: "rules.toml".into(), text: text.into() };
    let loaded =
        rules::load(&[source], &Surroundings { receivers: &["ops".to_owned()], groups: &BTreeMap::new(), now: at("2026-01-01") });
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    loaded.set
}

/// Returns a config with one receiver `ops`. `text` continues its section.
fn config(text: &str) -> Config {
    let text = format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/hook\"\n{text}");
    toml::from_str(&text).unwrap()
}

fn setup(config: &Config) -> DeliverySetup {
    DeliverySetup::of(DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).unwrap())
}

fn unlocks(events: &[(&str, f64)]) -> Payload {
    let event = |(date, amount): &(&str, f64)| {
        serde_json::from_value(serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": amount,
            "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": amount}]}}))
        .unwrap()
    };
    Payload::UnlockEvents(events.iter().map(event).collect())
}

fn burns(dates: &[&str]) -> Payload {
    let burns: Vec<wire::Burn> = dates
        .iter()
        .map(|date| {
            serde_json::from_value(serde_json::json!({"burnEventLabel": date, "burnType": "P", "burnDate": date, "amount": 5}))
                .unwrap()
        })
        .collect();
    Payload::Burns(wire::BurnData { burns: burns.into(), ..Default::default() })
}

/// Runs `script` from 1 March. Returns a line for each message: `day time shape: rule reason of token; …`.
fn sent(config: &Config, silences: Vec<Silence>, script: impl FnOnce(&mut Simulation<'_>)) -> Vec<String> {
    let rules = rules(RULES);
    let routes = RouteTree::of(&engine::route::Sections::from(config)).unwrap();
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let setup = DeliverySetup { silences, ..setup(config) };
    let mut simulation =
        Simulation::new(&rules, &routes, &watch, Pace::default(), at("2026-03-01T00:00:00Z")).with_delivery(setup);
    script(&mut simulation);
    let line = |sent: &Sent| {
        let notifications = sent.notified.iter().map(|notice| {
            let token = notice.body.token.as_ref().map_or("-", |token| token.id.as_str());
            format!("{} {} of {token}", notice.body.rule, notice.body.reason)
        });
        let counted = if sent.counted.is_empty() { String::new() } else { format!(" and {} more", sent.counted.len()) };
        format!(
            "{} {}: {}{counted}",
            sent.at.format("%d %H:%M:%S"),
            sent.batch.shape.as_str(),
            notifications.collect::<Vec<_>>().join("; ")
        )
    };
    simulation.take_sent().iter().map(line).collect()
}

fn day(day: u32, time: &str) -> Timestamp {
    at(&format!("2026-03-{day:02}T{time}Z"))
}

fn silence(matcher: &str, from: Timestamp, to: Timestamp) -> Silence {
    Silence {
        id: "si_1".into(),
        matchers: read_matchers([matcher]).unwrap(),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: from,
        ends_at: to,
        created_at: from,
    }
}

#[test]
fn lead_time_at_the_time_of_another_response_is_notified() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let notified = sent(&config, Vec::new(), |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-20", 5.0), ("2026-06-11", 5.0)]));
        simulation.response(&"x".into(), Endpoint::Burn, burns(&[]));
        // At this instant the lead time is reached and the event in June enters the 90-day window.
        simulation.advance_before(day(13, "00:00:00"));
        simulation.response(&"x".into(), Endpoint::Burn, burns(&["2026-03-12"]));
        simulation.advance(day(19, "12:00:00"));
    });
    assert_eq!(
        notified,
        [
            "13 00:00:00 single: Burned added of x",
            "13 00:00:00 single: Ahead lead 7d of x",
            "19 00:00:00 single: Ahead lead 1d of x"
        ]
    );
}

#[test]
fn group_is_sent_after_its_wait() {
    let config =
        config("[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"30s\"\ngroup_interval = \"5m\"\n");
    let notified = sent(&config, Vec::new(), |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0), ("2026-03-06", 6.0)]));
        simulation.response(&"y".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        simulation.response(&"x".into(), Endpoint::Burn, burns(&[]));
        simulation.advance(day(1, "00:01:00"));
        simulation.response(&"x".into(), Endpoint::Burn, burns(&["2026-03-01"]));
        simulation.advance(day(2, "00:00:00"));
    });
    assert_eq!(
        notified,
        [
            "01 00:00:30 group: Ahead lead 7d of x; Ahead lead 7d of x",
            "01 00:00:30 group: Ahead lead 7d of y",
            // Sent after the group interval, not after the group wait.
            "01 00:05:30 group: Burned added of x",
        ]
    );
}

#[test]
fn silenced_alert_is_sent_after_the_silence_if_it_still_fires() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let quiet = silence("token=x", day(1, "00:00:00"), day(3, "12:00:00"));
    let notified = sent(&config, vec![quiet], |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-02", 5.0), ("2026-03-06", 6.0)]));
        simulation.response(&"y".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-06", 6.0)]));
        simulation.advance(day(4, "00:00:00"));
        let undelivered = simulation.undelivered();
        let held: Vec<_> =
            undelivered.iter().map(|row| (row.by.as_ref().map(|by| by.id.as_str()), row.receiver.as_str())).collect();
        assert_eq!(held, [(Some("si_1"), "ops"); 2], "the first unlock and its resolution were never sent");
    });
    assert_eq!(notified, ["01 00:00:00 single: Ahead lead 7d of y", "03 12:00:00 single: Ahead lead 7d of x"]);
}

#[test]
fn critical_alert_inhibits_warnings_of_its_token_until_it_resolves() {
    let config = config(
        "[route]\nreceivers = [\"ops\"]\n[[inhibit_rules]]\nsource_matchers = ['severity=\"critical\"']\n\
         target_matchers = ['severity=\"warning\"']\nequal = [\"token\"]\n",
    );
    let notified = sent(&config, Vec::new(), |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-03", 5000.0), ("2026-03-06", 6.0)]));
        simulation.advance(day(4, "00:00:00"));
    });
    assert_eq!(
        notified,
        [
            "01 00:00:00 single: Ahead lead 7d of x",
            "02 00:00:00 single: Ahead lead 1d of x",
            // The inhibited notification is older.
            "03 00:00:00 single: Ahead lead 7d of x",
            "03 00:00:00 single: Ahead passed of x",
        ]
    );
}

#[test]
fn muted_route_sends_after_the_mute_interval() {
    let config = config(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = ['alertname=\"Ahead\"']\nmute_time_intervals = [\"nights\"]\n\
         [[time_intervals]]\nname = \"nights\"\n\
         time_intervals = [{ location = \"Europe/Paris\", times = [{ start_time = \"00:00\", end_time = \"07:00\" }] }]\n",
    );
    let notified = sent(&config, Vec::new(), |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        simulation.advance(day(1, "12:00:00"));
    });
    assert_eq!(notified, ["01 06:00:00 single: Ahead lead 7d of x"]);
}

#[test]
fn messages_above_the_hourly_limit_are_one_summary() {
    let config = config("max_per_hour = 2\n[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"0s\"\n");
    let notified = sent(&config, Vec::new(), |simulation| {
        for token in ["a", "b", "c", "d"] {
            simulation.response(&token.into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        }
        simulation.advance(day(1, "12:00:00"));
    });
    assert_eq!(
        notified,
        [
            "01 00:00:00 group: Ahead lead 7d of a",
            "01 00:00:00 group: Ahead lead 7d of b",
            "01 00:00:00 summary: Ahead lead 7d of c; Ahead lead 7d of d",
        ]
    );
}

#[test]
fn firing_alert_is_repeated_by_repeat_interval() {
    let config =
        config("[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"0s\"\nrepeat_interval = \"20h\"\n");
    let notified = sent(&config, Vec::new(), |simulation| {
        simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-02", 5.0)]));
        simulation.advance(day(4, "00:00:00"));
    });
    assert_eq!(
        notified,
        ["01 00:00:00 group: Ahead lead 1d of x", "01 20:00:00 group: Ahead repeat of x", "02 00:00:00 group: Ahead passed of x"]
    );
}

#[test]
fn digest_is_sent_at_its_time_with_silenced_alerts() {
    let config = config("digest = { at = \"08:00\", ahead = \"7d\" }\n[route]\nreceivers = [\"ops\"]\n");
    let quiet = silence("token=x", day(1, "00:00:00"), day(20, "00:00:00"));
    let rules = rules(RULES);
    let routes = RouteTree::of(&engine::route::Sections::from(&config)).unwrap();
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let setup = DeliverySetup { silences: vec![quiet], ..setup(&config) };
    let mut simulation = Simulation::new(&rules, &routes, &watch, Pace::default(), day(1, "00:00:00")).with_delivery(setup);
    simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
    simulation.advance(day(1, "06:00:00"));
    simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-07", 5.0)]));
    simulation.advance(day(2, "12:00:00"));
    let sent = simulation.take_sent();
    let times: Vec<_> = sent.iter().map(|sent| (sent.at, sent.batch.shape)).collect();
    assert_eq!(times, [(day(1, "08:00:00"), BatchKind::Digest), (day(2, "08:00:00"), BatchKind::Digest)]);
    let text = &sent[0].notified[0].body.annotations["description"];
    for part in ["x: 5 x (value unknown) on 7 Mar 2026", "moved from 5 to 7 Mar 2026", "silenced: x 5", "1 firing alert:"] {
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "{part:?} is missing in:\n{text}");
    }
    assert!(sent[1].notified[0].body.annotations["description"].contains("No changes since"), "the change is reported once");
}

#[test]
fn ungrouped_burst_becomes_a_storm_batch() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let notified = sent(&config, Vec::new(), |simulation| {
        // An earlier message, because the first messages to a new receiver are a welcome message.
        simulation.response(&"first".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-04", 5.0)]));
        simulation.advance(day(1, "02:00:00"));
        for token in 0..40 {
            simulation.response(&format!("t{token}").as_str().into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        }
        simulation.advance(day(1, "12:00:00"));
    });
    let (batch, before) = notified.split_last().expect("messages");
    assert!(
        batch.starts_with("01 02:00:03 batch: Ahead lead 7d of ") && before.iter().all(|one| !one.contains("batch")),
        "{notified:#?}"
    );
}

#[test]
fn first_messages_to_a_receiver_become_one_welcome_message() {
    for route in ["", "group_by = [\"token\"]\n"] {
        let config = config(&format!("[route]\nreceivers = [\"ops\"]\n{route}"));
        let notified = sent(&config, Vec::new(), |simulation| {
            for token in 0..40 {
                simulation.response(
                    &format!("t{token}").as_str().into(),
                    Endpoint::UnlockEvents,
                    unlocks(&[("2026-03-05", 5.0)]),
                );
            }
            simulation.advance(day(1, "12:00:00"));
        });
        assert_eq!(notified.len(), 1, "{notified:#?}");
        assert!(notified[0].starts_with("01 00:00:05 batch: Ahead lead 7d of "), "{notified:#?}");
    }
}

#[test]
fn condition_that_changes_after_an_instant_fires_in_the_next_minute() {
    let rules = rules(
        "[[rule]]\nalert = \"Late\"\non = \"token\"\nwhen = 'lastBuyback.daysSince > 35'\n\
         [[rule]]\nalert = \"Due\"\non = \"token\"\nwhen = 'lastBuyback.daysSince >= 35'\n\
         [[rule]]\nalert = \"Near\"\non = \"unlock\"\nwhen = 'daysUntil < 7'\n\
         [[rule]]\nalert = \"Odd\"\non = \"unlock\"\nwhen = 'daysUntil * 2.0 < 7.0'\n",
    );
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let routes = RouteTree::of(&engine::route::Sections::from(&config)).unwrap();
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let pace = Pace { evaluate_every: TimeDelta::minutes(1), ..Pace::default() };
    let mut simulation = Simulation::new(&rules, &routes, &watch, pace, day(2, "00:00:00"));
    let buyback = serde_json::from_value(serde_json::json!({"buybackDate": "2026-03-01", "tokenAmount": 5})).unwrap();
    let data = wire::BuybackData { buybacks: vec![buyback].into(), ..Default::default() };
    simulation.response(&"x".into(), Endpoint::Buyback, Payload::Buybacks(data));
    simulation.response(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-20", 5.0)]));
    simulation.advance(at("2026-04-10"));
    let notified: Vec<String> = simulation
        .take_notified()
        .iter()
        .filter(|notification| notification.body.status == AlertStatus::Firing)
        .map(|notification| format!("{} {}", notification.at.format("%m-%d %H:%M"), notification.body.rule))
        .collect();
    assert_eq!(notified, ["03-13 00:01 Near", "03-16 12:01 Odd", "04-05 00:00 Due", "04-05 00:01 Late"]);
}

/// Returns the notifications of `text` from 1 March, as `token reason: outcome or summary`.
fn notified(text: &str, script: impl FnOnce(&mut Simulation<'_>)) -> Vec<String> {
    let rules = rules(text);
    let config = config("");
    let routes = RouteTree::of(&engine::route::Sections::from(&config)).unwrap();
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".into()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .unwrap();
    let mut simulation = Simulation::new(&rules, &routes, &watch, Pace::default(), at("2026-03-01T00:00:00Z"));
    script(&mut simulation);
    let line = |notice: &Arc<Notification>| {
        let token = notice.body.token.as_ref().map_or("-", |token| token.id.as_str());
        let annotation = |name: &str| notice.body.annotations.get(name).map(String::as_str);
        format!("{token} {}: {}", notice.body.reason, annotation("outcome").or_else(|| annotation("summary")).unwrap_or_default())
    };
    simulation.notified.iter().map(line).collect()
}

#[test]
fn limit_of_a_token_rule_keeps_the_largest_of_all_tokens() {
    let rule = "[[rule]]\nalert = \"Pressure\"\non = \"token\"\nwhen = 'ahead(\"30d\").value >= 1'\nlimit = 2\n";
    let notified = notified(rule, |simulation| {
        for (token, value) in [("a", 10e6), ("b", 413e6), ("c", 1e6), ("d", 20e6)] {
            let event = serde_json::json!({"unlockDate": "2026-03-09", "cliffUnlocks": {"cliffAmount": 5, "cliffValue": value,
                "allocationBreakdown": [{"unlockDate": "2026-03-09", "allocationName": "Team", "cliffAmount": 5, "cliffValue": value}]}});
            let payload = Payload::UnlockEvents(vec![serde_json::from_value(event).unwrap()]);
            simulation.response(&token.into(), Endpoint::UnlockEvents, payload);
        }
        simulation.end_cycle();
    });
    let tokens: Vec<&str> = notified.iter().filter_map(|text| text.split(' ').next()).collect();
    assert_eq!(tokens, ["b", "d", "-"], "the two largest and the summary: {notified:#?}");
}

#[test]
fn burn_that_ends_an_alert_about_the_lack_of_one_is_its_outcome() {
    let rule = "[[rule]]\nalert = \"NoBurn\"\non = \"token\"\nwhen = 'lastBurn.daysSince > 35'\n";
    let notified = notified(rule, |simulation| {
        simulation.response(&"a".into(), Endpoint::Burn, burns(&["2026-01-01"]));
        simulation.advance(day(3, "00:00:00"));
        simulation.response(&"a".into(), Endpoint::Burn, burns(&["2026-01-01", "2026-03-02"]));
        simulation.end_cycle();
    });
    assert_eq!(notified.last().map(String::as_str), Some("a cleared: burn of 5 on 2 Mar ended this"), "{notified:#?}");
}

#[test]
fn end_of_a_linear_unlock_fires_at_its_lead_times_and_passes() {
    let vesting = |end: &str| {
        let part =
            serde_json::json!({"allocationName": "Team", "beginDate": "2026-01-01", "endDate": end, "linearAmount": 9000.0});
        let event = serde_json::json!({"unlockDate": "2026-01-01", "cliffUnlocks": null,
            "linearUnlocks": {"linearAmount": 9000.0, "allocationBreakdown": [part]}});
        Payload::UnlockEvents(vec![serde_json::from_value(event).unwrap()])
    };
    let lines = sent(&config("[route]\nreceivers = [\"ops\"]\n"), Vec::new(), |simulation| {
        simulation.response(&"sui".into(), Endpoint::UnlockEvents, vesting("2026-03-20"));
        simulation.advance(at("2026-03-15T00:00:00Z"));
        simulation.response(&"sui".into(), Endpoint::UnlockEvents, vesting("2026-03-21"));
        simulation.advance(at("2026-03-30T00:00:00Z"));
    });
    assert_eq!(
        lines,
        [
            "13 00:00:00 single: Ahead lead 7d of sui",
            "20 00:00:00 single: Ahead lead 1d of sui",
            "21 00:00:00 single: Ahead passed of sui",
        ]
    );
}
