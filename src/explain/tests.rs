use std::collections::BTreeMap;

use super::*;
use crate::{
    alert::{Labels, Resolution},
    config,
    diagnostic::SourceText,
    rules::{self, RuleSet, Surroundings},
    supply::{AlertId, DeliveryId, Record, TokenId},
    wire,
};

const RULE: &str = r#"
[[rule]]
alert  = "Big"
on     = "unlock"
within = ["30d", "7d"]
when   = "(cliffValue >= 5000000 || valueToMarketCap >= 2) && !(tokenSymbol == \"XX\")"
"#;

fn at(text: &str) -> Timestamp {
    wire::parse_timestamp(text).unwrap()
}

fn set(text: &str) -> RuleSet {
    let source = SourceText { file: "rules.toml".into(), text: text.into() };
    let loaded =
        rules::load(&[source], &Surroundings { receivers: &["ops".to_owned()], groups: &BTreeMap::new(), now: at("2026-01-01") });
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    loaded.set
}

fn record(json: serde_json::Value) -> Tracked {
    Tracked { key: "k".into(), record: Record::Unlock(serde_json::from_value(json).unwrap()) }
}

fn event() -> serde_json::Value {
    serde_json::json!({"unlockDate": "2026-03-16T00:00:00Z", "tokenSymbol": "ARB",
        "cliffUnlocks": {"cliffAmount": 1e6, "cliffValue": 1.5e6, "valueToMarketCap": 2.5, "allocationBreakdown": []}})
}

/// Asks, and gives the steps as lines with the sentence at the end.
fn ask(rule: &str, record: &Tracked, now: &str, alerts: &[Alert], deliveries: &[OutboxRow]) -> (bool, String) {
    let set = set(rule);
    let receivers = [config::Receiver { name: "ops".into(), ..config::Receiver::default() }];
    let routes = RouteTree::build(&config::Route::default(), &receivers).unwrap();
    let token = Token::unknown(TokenId::from("arbitrum"));
    let feed = FeedState { read_at: Some(at("2026-02-01")), ..FeedState::default() };
    let answer = explain(&Question {
        rule: &set.rules[0],
        token: &token,
        is_watched: true,
        feed: Some(&feed),
        record: Some(record),
        change: None,
        alerts,
        deliveries,
        routes: &routes,
        now: at(now),
    });
    fn lines(steps: &[Step], depth: usize, text: &mut String) {
        for step in steps {
            text.push_str(&format!("{}{} {}\n", "  ".repeat(depth), step.mark.sign(), step.text));
            lines(&step.parts, depth + 1, text);
        }
    }
    let mut text = String::new();
    lines(&answer.steps, 0, &mut text);
    (answer.fired, format!("{text}so: {}", answer.so))
}

fn says(rule: &str, event: serde_json::Value, now: &str, expected: &[&str]) {
    let (_, text) = ask(rule, &record(event), now, &[], &[]);
    for line in expected {
        assert!(text.contains(line), "{line:?} is not said in:\n{text}");
    }
}

#[test]
fn each_clause_is_told_with_its_value_and_its_truth() {
    says(
        RULE,
        event(),
        "2026-03-01",
        &[
            "✓ when: all of these must hold\n  ✓ one of these must hold\n    ✗ cliffValue >= 5000000  [cliffValue = 1,500,000]\n    ✓ valueToMarketCap >= 2  [valueToMarketCap = 2.5]\n  ✓ this must not hold\n    ✗ tokenSymbol == \"XX\"  [tokenSymbol = \"ARB\"]",
            "✓ it is due on 16 Mar 2026, in 15 days: within 30d\n  ✓ 30d: since 14 Feb 2026, 00:00 UTC\n  ✗ 7d: from 9 Mar 2026",
            "so: not fired yet, although all holds",
        ],
    );
}

#[test]
fn what_keeps_an_alert_back_is_the_reason() {
    let mut small = event();
    small["cliffUnlocks"]["valueToMarketCap"] = 1.0.into();
    says(
        RULE,
        small,
        "2026-03-01",
        &[
            "so: not fired, because none of these is true: cliffValue >= 5000000  [cliffValue = 1,500,000], valueToMarketCap >= 2  [valueToMarketCap = 1]",
        ],
    );
    says(
        RULE,
        event(),
        "2026-01-01",
        &["so: not fired, because it is due on 16 Mar 2026, beyond the longest lead time, which begins 14 Feb 2026"],
    );
    says(RULE, event(), "2026-04-01", &["so: not fired, because it is over since 16 Mar 2026"]);
    says(
        &format!("{RULE}\ntokens = [\"sui\"]"),
        event(),
        "2026-03-01",
        &["so: not fired, because a filter of the rule leaves it out"],
    );
    says(
        &format!("{RULE}\nexpires = \"2026-02-01\""),
        event(),
        "2026-03-01",
        &["so: not fired, because the rule expired on 1 Feb 2026"],
    );
    let mut undated = event();
    undated["unlockDate"] = serde_json::Value::Null;
    says(RULE, undated, "2026-03-01", &["so: not fired, because it has no date yet"]);
}

#[test]
fn a_missing_field_is_named_and_is_neither_true_nor_false() {
    let mut bare = event();
    bare["cliffUnlocks"] = serde_json::json!({"cliffAmount": 1e6});
    says(
        RULE,
        bare.clone(),
        "2026-03-01",
        &[
            "? cliffValue >= 5000000  [cliffValue is missing]",
            "so: not fired, because `cliffValue`, `valueToMarketCap` are missing",
        ],
    );
    says(
        &format!("{RULE}\nmissing = \"fire\""),
        bare,
        "2026-03-01",
        &["(cliffValue, valueToMarketCap missing, and `missing = \"fire\"`)", "so: not fired yet"],
    );
}

fn alert(state: AlertState) -> Alert {
    Alert {
        id: AlertId::from("al_1"),
        rule: "Big".into(),
        name: "Big".into(),
        subject: "unlock/arbitrum/k".into(),
        episode: 1,
        state,
        resolution: None,
        token: Some("arbitrum".into()),
        resource: Some(Resource::Unlock),
        key: Some("k".into()),
        level: None,
        labels: Labels::new(),
        annotations: BTreeMap::new(),
        told: vec!["ops".into()],
        leads: vec!["30d".into()],
        former_labels: Vec::new(),
        members: Vec::new(),
        active_at: at("2026-02-14"),
        starts_at: Some(at("2026-02-14")),
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        updated_at: at("2026-02-14"),
    }
}

fn delivery(state: DeliveryState) -> OutboxRow {
    OutboxRow {
        id: DeliveryId(7),
        webhook_id: "msg_1".into(),
        receiver: "ops".into(),
        state,
        attempts: 3,
        next_attempt_at: None,
        last_answer: Some("503 try\nlater".into()),
        created_at: at("2026-02-14"),
        delivered_at: (state == DeliveryState::Delivered).then(|| at("2026-02-14T00:00:05Z")),
        alerts: Vec::new(),
        shape: Default::default(),
        truncated_alerts: 0,
    }
}

#[test]
fn the_end_says_when_it_fired_and_what_became_of_each_delivery() {
    for (state, so) in [
        (DeliveryState::Delivered, "so: fired at 14 Feb 2026 and is firing, delivered to ops at 14 Feb 2026, 00:00 UTC"),
        (DeliveryState::Retrying, "not yet delivered to ops (3 attempts failed)"),
        (DeliveryState::Dead, "never delivered to ops (given up after 3 attempts)"),
        (DeliveryState::Dropped, "never delivered to ops (dropped by hand)"),
    ] {
        let (fired, text) = ask(RULE, &record(event()), "2026-03-01", &[alert(AlertState::Firing)], &[delivery(state)]);
        let so = so.replace("14 Feb 2026 and", "14 Feb 2026, 00:00 UTC and");
        assert!(fired && (text.contains(&so) || text.contains(&so.replace(", 00:00 UTC", ""))), "{so}\n{text}");
        assert!(text.contains("lead times told: 30d"), "{text}");
    }
    let ended =
        Alert { resolution: Some(Resolution::Passed), ends_at: Some(at("2026-03-16T06:00:00Z")), ..alert(AlertState::Resolved) };
    let (_, text) = ask(RULE, &record(event()), "2026-04-01", &[ended], &[]);
    assert!(
        text.ends_with("and ended at 16 Mar 2026, 06:00 UTC (passed), told to nobody: no receiver was named for it"),
        "{text}"
    );
}

#[test]
fn a_pending_alert_says_when_it_will_fire() {
    let pending = Alert { starts_at: None, active_at: at("2026-03-01"), told: Vec::new(), ..alert(AlertState::Pending) };
    let (fired, text) = ask(&format!("{RULE}\nfor = \"2h\""), &record(event()), "2026-03-01T01:00:00Z", &[pending], &[]);
    assert!(!fired && text.contains("`for` asks for 2 h: it fires at 1 Mar 2026, 02:00 UTC, if it still holds"), "{text}");
}
