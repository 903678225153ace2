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

/// A config with one receiver `ops`; `text` begins inside its section.
fn config(text: &str) -> Config {
    let text = format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/hook\"\n{text}");
    toml::from_str(&format!("{}{text}", model::config::DEFAULTS)).unwrap()
}

fn setup(config: &Config) -> DeliverySetup {
    DeliverySetup::of(DispatchPolicy::of(&config.receivers, &config.delivery).unwrap())
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

/// Plays `script` from the begin of March, and gives a line for each message: `day time shape: rule reason of token; …`.
fn sent(config: &Config, silences: Vec<Silence>, script: impl FnOnce(&mut Simulation<'_>)) -> Vec<String> {
    let rules = rules(RULES);
    let routes = RouteTree::of(&engine::route::Sections::from(config)).unwrap();
    let watch = Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups: BTreeMap::new() }).unwrap();
    let setup = DeliverySetup { silences, ..setup(config) };
    let mut simulation =
        Simulation::new(&rules, &routes, &watch, Pace::default(), at("2026-03-01T00:00:00Z")).with_delivery(setup);
    script(&mut simulation);
    let line = |sent: &Sent| {
        let tellings = sent.told.iter().map(|notice| {
            let token = notice.body.token.as_ref().map_or("-", |token| token.id.as_str());
            format!("{} {} of {token}", notice.body.rule, notice.body.reason)
        });
        let counted = if sent.counted.is_empty() { String::new() } else { format!(" and {} more", sent.counted.len()) };
        format!(
            "{} {}: {}{counted}",
            sent.at.format("%d %H:%M:%S"),
            sent.bundle.shape.as_str(),
            tellings.collect::<Vec<_>>().join("; ")
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
fn a_lead_time_that_comes_up_with_another_answer_or_another_window_is_told() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let told = sent(&config, Vec::new(), |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-20", 5.0), ("2026-06-11", 5.0)]));
        simulation.answer(&"x".into(), Endpoint::Burn, burns(&[]));
        // At this very instant the lead time begins and the event of June comes within ninety days.
        simulation.advance_before(day(13, "00:00:00"));
        simulation.answer(&"x".into(), Endpoint::Burn, burns(&["2026-03-12"]));
        simulation.advance(day(19, "12:00:00"));
    });
    assert_eq!(
        told,
        [
            "13 00:00:00 single: Burned added of x",
            "13 00:00:00 single: Ahead lead 7d of x",
            "19 00:00:00 single: Ahead lead 1d of x"
        ]
    );
}

#[test]
fn what_comes_together_is_one_message_of_its_group_after_its_wait() {
    let config =
        config("[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"30s\"\ngroup_interval = \"5m\"\n");
    let told = sent(&config, Vec::new(), |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0), ("2026-03-06", 6.0)]));
        simulation.answer(&"y".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        simulation.answer(&"x".into(), Endpoint::Burn, burns(&[]));
        simulation.advance(day(1, "00:01:00"));
        simulation.answer(&"x".into(), Endpoint::Burn, burns(&["2026-03-01"]));
        simulation.advance(day(2, "00:00:00"));
    });
    assert_eq!(
        told,
        [
            "01 00:00:30 group: Ahead lead 7d of x; Ahead lead 7d of x",
            "01 00:00:30 group: Ahead lead 7d of y",
            // Not before the interval is over, although its wait is.
            "01 00:05:30 group: Burned added of x",
        ]
    );
}

#[test]
fn a_silence_holds_back_and_what_still_fires_is_told_after_its_end() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let quiet = silence("token=x", day(1, "00:00:00"), day(3, "12:00:00"));
    let told = sent(&config, vec![quiet], |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-02", 5.0), ("2026-03-06", 6.0)]));
        simulation.answer(&"y".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-06", 6.0)]));
        simulation.advance(day(4, "00:00:00"));
        let undelivered = simulation.undelivered();
        let held: Vec<_> =
            undelivered.iter().map(|row| (row.by.as_ref().map(|by| by.id.as_str()), row.receiver.as_str())).collect();
        assert_eq!(held, [(Some("si_1"), "ops"); 2], "the first unlock and its end, which nobody was told of");
    });
    assert_eq!(told, ["01 00:00:00 single: Ahead lead 7d of y", "03 12:00:00 single: Ahead lead 7d of x"]);
}

#[test]
fn a_critical_alert_speaks_for_the_others_of_its_token_until_it_ends() {
    let config = config(
        "[route]\nreceivers = [\"ops\"]\n[[inhibit_rules]]\nsource_matchers = ['severity=\"critical\"']\n\
         target_matchers = ['severity=\"warning\"']\nequal = [\"token\"]\n",
    );
    let told = sent(&config, Vec::new(), |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-03", 5000.0), ("2026-03-06", 6.0)]));
        simulation.advance(day(4, "00:00:00"));
    });
    assert_eq!(
        told,
        [
            "01 00:00:00 single: Ahead lead 7d of x",
            "02 00:00:00 single: Ahead lead 1d of x",
            // What was held back has waited longer.
            "03 00:00:00 single: Ahead lead 7d of x",
            "03 00:00:00 single: Ahead passed of x",
        ]
    );
}

#[test]
fn a_muted_route_keeps_what_it_has_until_the_morning() {
    let config = config(
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = ['alertname=\"Ahead\"']\nmute_time_intervals = [\"nights\"]\n\
         [[time_intervals]]\nname = \"nights\"\n\
         time_intervals = [{ location = \"Europe/Paris\", times = [{ start_time = \"00:00\", end_time = \"07:00\" }] }]\n",
    );
    let told = sent(&config, Vec::new(), |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        simulation.advance(day(1, "12:00:00"));
    });
    assert_eq!(told, ["01 06:00:00 single: Ahead lead 7d of x"]);
}

#[test]
fn what_is_above_the_hour_of_a_receiver_is_one_summary() {
    let config = config("max_per_hour = 2\n[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"0s\"\n");
    let told = sent(&config, Vec::new(), |simulation| {
        for token in ["a", "b", "c", "d"] {
            simulation.answer(&token.into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        }
        simulation.advance(day(1, "12:00:00"));
    });
    assert_eq!(
        told,
        [
            "01 00:00:00 group: Ahead lead 7d of a",
            "01 00:00:00 group: Ahead lead 7d of b",
            "01 00:00:00 summary: Ahead lead 7d of c; Ahead lead 7d of d",
        ]
    );
}

#[test]
fn what_still_fires_is_told_again_as_often_as_its_route_says() {
    let config =
        config("[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\ngroup_wait = \"0s\"\nrepeat_interval = \"20h\"\n");
    let told = sent(&config, Vec::new(), |simulation| {
        simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-02", 5.0)]));
        simulation.advance(day(4, "00:00:00"));
    });
    assert_eq!(
        told,
        ["01 00:00:00 group: Ahead lead 1d of x", "01 20:00:00 group: Ahead repeat of x", "02 00:00:00 group: Ahead passed of x"]
    );
}

#[test]
fn a_digest_comes_at_its_time_and_tells_what_was_held_back() {
    let config = config("digest = { at = \"08:00\", ahead = \"7d\" }\n[route]\nreceivers = [\"ops\"]\n");
    let quiet = silence("token=x", day(1, "00:00:00"), day(20, "00:00:00"));
    let rules = rules(RULES);
    let routes = RouteTree::of(&engine::route::Sections::from(&config)).unwrap();
    let watch = Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups: BTreeMap::new() }).unwrap();
    let setup = DeliverySetup { silences: vec![quiet], ..setup(&config) };
    let mut simulation = Simulation::new(&rules, &routes, &watch, Pace::default(), day(1, "00:00:00")).with_delivery(setup);
    simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
    simulation.advance(day(1, "06:00:00"));
    simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-07", 5.0)]));
    simulation.advance(day(2, "12:00:00"));
    let sent = simulation.take_sent();
    let times: Vec<_> = sent.iter().map(|sent| (sent.at, sent.bundle.shape)).collect();
    assert_eq!(times, [(day(1, "08:00:00"), BatchKind::Digest), (day(2, "08:00:00"), BatchKind::Digest)]);
    let text = &sent[0].told[0].body.annotations["description"];
    for part in ["X: 5 tokens on 7 Mar 2026", "moved from 5 to 7 Mar 2026", "silenced: x 5", "1 alert fires now"] {
        assert!(text.to_lowercase().contains(&part.to_lowercase()), "{part:?} is not in:\n{text}");
    }
    assert!(sent[1].told[0].body.annotations["description"].contains("Nothing changed since"), "told once");
}

#[test]
fn many_at_once_that_no_route_groups_are_put_together() {
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let told = sent(&config, Vec::new(), |simulation| {
        // One that knows the receiver: what a new one is told first is put together anyway.
        simulation.answer(&"first".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-04", 5.0)]));
        simulation.advance(day(1, "02:00:00"));
        for token in 0..40 {
            simulation.answer(&format!("t{token}").as_str().into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
        }
        simulation.advance(day(1, "12:00:00"));
    });
    let (batch, before) = told.split_last().expect("messages");
    assert!(
        batch.starts_with("01 02:00:03 fold: Ahead lead 7d of ") && before.iter().all(|one| !one.contains("fold")),
        "{told:#?}"
    );
}

#[test]
fn the_first_that_a_receiver_is_told_of_many_tokens_is_one_welcome() {
    for route in ["", "group_by = [\"token\"]\n"] {
        let config = config(&format!("[route]\nreceivers = [\"ops\"]\n{route}"));
        let told = sent(&config, Vec::new(), |simulation| {
            for token in 0..40 {
                simulation.answer(&format!("t{token}").as_str().into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-05", 5.0)]));
            }
            simulation.advance(day(1, "12:00:00"));
        });
        assert_eq!(told.len(), 1, "{told:#?}");
        assert!(told[0].starts_with("01 00:00:05 fold: Ahead lead 7d of "), "{told:#?}");
    }
}

#[test]
fn what_turns_just_after_an_instant_is_told_at_the_next_minute() {
    let rules = rules(
        "[[rule]]\nalert = \"Late\"\non = \"token\"\nwhen = 'lastBuyback.daysSince > 35'\n\
         [[rule]]\nalert = \"Due\"\non = \"token\"\nwhen = 'lastBuyback.daysSince >= 35'\n\
         [[rule]]\nalert = \"Near\"\non = \"unlock\"\nwhen = 'daysUntil < 7'\n\
         [[rule]]\nalert = \"Odd\"\non = \"unlock\"\nwhen = 'daysUntil * 2.0 < 7.0'\n",
    );
    let config = config("[route]\nreceivers = [\"ops\"]\n");
    let routes = RouteTree::of(&engine::route::Sections::from(&config)).unwrap();
    let watch = Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups: BTreeMap::new() }).unwrap();
    let pace = Pace { look_every: TimeDelta::minutes(1), ..Pace::default() };
    let mut simulation = Simulation::new(&rules, &routes, &watch, pace, day(2, "00:00:00"));
    let buyback = serde_json::from_value(serde_json::json!({"buybackDate": "2026-03-01", "tokenAmount": 5})).unwrap();
    let data = wire::BuybackData { buybacks: vec![buyback].into(), ..Default::default() };
    simulation.answer(&"x".into(), Endpoint::Buyback, Payload::Buybacks(data));
    simulation.answer(&"x".into(), Endpoint::UnlockEvents, unlocks(&[("2026-03-20", 5.0)]));
    simulation.advance(at("2026-04-10"));
    let told: Vec<String> = simulation
        .take_told()
        .iter()
        .filter(|notification| notification.body.status == AlertStatus::Firing)
        .map(|notification| format!("{} {}", notification.at.format("%m-%d %H:%M"), notification.body.rule))
        .collect();
    assert_eq!(told, ["03-13 00:01 Near", "03-16 12:01 Odd", "04-05 00:00 Due", "04-05 00:01 Late"]);
}
