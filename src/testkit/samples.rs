//! Sample notifications for tests: unlocks, changes, digests, and hostile text.

use std::collections::BTreeMap;

use serde_json::json;

use crate::time;
use model::{
    AlertBody, AlertStatus, AllocationChange, Change, ChangeKind, DeliveryId, DueDelivery, Fact, Labels, Notification,
    NotificationKind, Precision, Resource, RuleId, SeriesPoint, SourceBody, TokenBody, TokenId, alert_id, config,
    notification_id,
};

pub fn delivery_config() -> config::DeliverySettings {
    config::DeliverySettings::default()
}

/// A monthly schedule with five unlocks before [`unlock`] and seven after it.
fn schedule() -> Vec<SeriesPoint> {
    let months = ["2025-10", "2025-11", "2025-12", "2026-01", "2026-02", "2026-03", "2026-04", "2026-05", "2026-06", "2026-07"];
    let tail =
        [("2026-08-16T13:00:00Z", 56_130_000.0), ("2026-09-16T13:00:00Z", 56_130_000.0), ("2027-03-16T13:00:00Z", 12_000_000.0)];
    let monthly = months.iter().map(|month| (time(&format!("{month}-16T13:00:00Z")), 92_650_000.0));
    let point = |(at, amount)| SeriesPoint { at, precision: Precision::Second, amount };
    monthly.chain(tail.map(|(at, amount)| (time(at), amount))).map(point).collect()
}

/// A large cliff unlock in seven days.
pub fn unlock() -> Notification {
    let rule = RuleId::from("BigCliffAhead");
    let alert = alert_id(&rule, "unlock/arbitrum/2026-03-16T13:00:00Z", 1);
    let at = time("2026-03-09T13:00:00Z");
    Notification {
        id: notification_id(&alert, "firing"),
        alert: alert.clone(),
        kind: NotificationKind::Firing,
        at,
        receivers: vec!["ops".into()],
        body: AlertBody {
            labels: Labels::from([
                ("alertname".into(), "BigCliffAhead".into()),
                ("severity".into(), "warning".into()),
                ("team".into(), "trading".into()),
                ("token".into(), "arbitrum".into()),
            ]),
            annotations: BTreeMap::from([
                ("summary".into(), "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC".into()),
                ("description".into(), "The monthly tranche of team and investors.\nCheck hedges before Friday.".into()),
                ("runbook_url".into(), "https://wiki.example.com/unlocks?page=1&view=2".into()),
            ]),
            token: Some(TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() }),
            resource: Some(Resource::Unlock),
            record: Some(json!({
                "unlockDate": "2026-03-16T13:00:00Z",
                "listedMethod": "INTERNAL",
                "dataSource": "Arbitrum Foundation docs",
                "cliffUnlocks": {
                    "cliffAmount": 92_650_000.0,
                    "cliffValue": 33_150_000.0,
                    "valueToMarketCap": 2.77,
                    "allocationBreakdown": [
                        {"allocationName": "Investors", "cliffAmount": 36_520_000.0, "cliffValue": 13_070_000.0, "referencePrice": 0.3578},
                        {"allocationName": "Team, future team and advisors", "cliffAmount": 56_130_000.0, "cliffValue": 20_080_000.0}
                    ]
                },
                "linearUnlocks": null
            })),
            days_until: Some(7.0),
            when: Some("on 16 Mar 2026, 13:00 UTC".into()),
            lead: Some("7d".into()),
            event: Some("unlock/arbitrum/2026-03-16T13:00:00Z".into()),
            series: schedule(),
            source: SourceBody {
                polled_at: Some(time("2026-03-09T12:10:04Z")),
                listed_method: Some("INTERNAL".into()),
                data_source: Some("Arbitrum Foundation docs".into()),
                latest_update_date: Some(time("2026-02-27T08:00:00Z")),
            },
            ..AlertBody::firing(alert, "BigCliffAhead", "lead 7d", at)
        },
    }
}

/// The resolution of [`unlock`].
pub fn resolved() -> Notification {
    let firing = unlock();
    let at = time("2026-03-16T13:00:00Z");
    Notification {
        id: notification_id(&firing.alert, "resolved"),
        kind: NotificationKind::Resolved,
        at,
        body: AlertBody {
            status: AlertStatus::Resolved,
            reason: "passed".into(),
            ends_at: Some(at),
            days_until: Some(0.0),
            lead: None,
            ..firing.body
        },
        ..firing
    }
}

pub fn moved() -> Notification {
    let rule = RuleId::from("ScheduleMoved");
    let alert = alert_id(&rule, "change/aptos/unlock/rescheduled/2026-04-12", 1);
    let firing = unlock();
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &TokenId::from("aptos"));
    change.from = Some(Fact::Time(time("2026-04-12T00:00:00Z")));
    change.to = Some(Fact::Time(time("2026-05-12T00:00:00Z")));
    change.shift_days = Some(30.0);
    change.count = 2;
    change.amount = Some(37_060_000.0);
    change.summary =
        "37.06M of Core Contributors, Investors (0.37% of supply) moved from 12 Apr 2026 to 12 May 2026 (+30 days)".into();
    let part = |name: &str| AllocationChange {
        name: name.into(),
        from: Some(Fact::Time(time("2026-04-12T00:00:00Z"))),
        to: Some(Fact::Time(time("2026-05-12T00:00:00Z"))),
        shift_days: Some(30.0),
        count: 1,
        ..AllocationChange::default()
    };
    change.allocations = vec![part("Core Contributors"), part("Investors")];
    Notification {
        id: notification_id(&alert, "event"),
        alert: alert.clone(),
        kind: NotificationKind::Event,
        body: AlertBody {
            id: alert,
            rule: "ScheduleMoved".into(),
            reason: "rescheduled".into(),
            labels: Labels::from([("alertname".into(), "ScheduleMoved".into()), ("severity".into(), "critical".into())]),
            annotations: BTreeMap::new(),
            token: Some(TokenBody { id: "aptos".into(), name: "Aptos".into(), symbol: "APT".into() }),
            change: Some(change),
            days_until: Some(64.0),
            when: Some("on 12 May 2026".into()),
            event: Some("unlock/aptos/2026-04-12".into()),
            former_labels: Vec::new(),
            series: Vec::new(),
            lead: None,
            ..firing.body
        },
        ..firing
    }
}

/// Alerts of three rules about [`unlock`]: the second is the most severe, and only the third has a summary.
pub fn several_rules() -> Vec<Notification> {
    let by = |rule: &str, severity: &str, summary: Option<&str>| {
        let mut notice = unlock();
        notice.alert = alert_id(&RuleId::from(rule), "unlock/arbitrum/2026-03-16T13:00:00Z", 1);
        notice.id = notification_id(&notice.alert, "firing");
        notice.body.id = notice.alert.clone();
        notice.body.rule = rule.into();
        notice.body.labels.insert("alertname".into(), rule.into());
        notice.body.labels.insert("severity".into(), severity.into());
        notice.body.annotations.retain(|name, _| name != "summary");
        notice.body.annotations.extend(summary.map(|summary| ("summary".to_owned(), summary.to_owned())));
        notice
    };
    vec![
        by("InsiderUnlockAhead", "info", None),
        by("BigCliffAhead", "critical", None),
        by("CommittedClaimDiffers", "warning", Some("ARB: 80M announced, 92.65M scheduled to unlock on 16 Mar 2026")),
    ]
}

/// Alerts like [`unlock`] without annotations, each about another token.
pub fn group(count: usize) -> Vec<Notification> {
    let of = |n: usize| {
        let mut notice = unlock();
        let id = format!("token-{n:02}");
        notice.alert = alert_id(&RuleId::from("BigCliffAhead"), &format!("unlock/{id}"), 1);
        notice.id = notification_id(&notice.alert, "firing");
        notice.body.id = notice.alert.clone();
        notice.body.annotations.clear();
        notice.body.labels.insert("token".into(), id.clone());
        notice.body.token = Some(TokenBody { id: id.clone(), name: format!("Token {n}"), symbol: format!("T{n:02}") });
        notice.body.event = Some(format!("unlock/{id}/1"));
        notice
    };
    (1..=count).map(of).collect()
}

pub fn source_incident() -> Notification {
    let rule = RuleId::from("SourceTrouble");
    let alert = alert_id(&rule, "source/unauthorized", 1);
    let firing = unlock();
    let words = |text: &str| text.to_owned();
    Notification {
        id: notification_id(&alert, "firing"),
        alert: alert.clone(),
        kind: NotificationKind::Source,
        body: AlertBody {
            id: alert,
            rule: "SourceTrouble".into(),
            reason: "firing".into(),
            labels: Labels::from(
                [("alertname", "SourceTrouble"), ("kind", "unauthorized"), ("severity", "warning")]
                    .map(|(a, b)| (words(a), words(b))),
            ),
            annotations: BTreeMap::from([
                (words("summary"), words("The source rejects the API key (401): no new data since 9 Mar 2026, 12:10 UTC")),
                (words("description"), words("Put a valid key into the file of `api_key_file`. No restart is needed.")),
            ]),
            token: None,
            resource: None,
            record: None,
            days_until: None,
            when: None,
            lead: None,
            event: None,
            former_labels: Vec::new(),
            series: Vec::new(),
            source: SourceBody::default(),
            ..firing.body
        },
        ..firing
    }
}

pub fn digest() -> Notification {
    let rule = RuleId::from("Digest");
    let alert = alert_id(&rule, "digest/desk", 1);
    let ahead = |symbol: &str, at: &str, when: &str, value: f64, share: f64| json!({"token": symbol.to_lowercase(), "symbol": symbol, "at": at, "when": when, "value": value, "amount": value / 2.0, "share": share});
    let incident = source_incident();
    Notification {
        id: notification_id(&alert, "2026-03-09"),
        alert: alert.clone(),
        kind: NotificationKind::Digest,
        body: AlertBody {
            id: alert,
            rule: "Digest".into(),
            reason: "daily".into(),
            labels: Labels::from([("alertname".into(), "Digest".into())]),
            annotations: BTreeMap::from([
                ("summary".into(), "Digest: 2 upcoming unlocks worth $94.55M, 1 change since yesterday".into()),
                (
                    "description".into(),
                    "Upcoming until 16 Mar 2026:\n  ARB: $33.15M (2.77%) on 16 Mar 2026, 13:00 UTC\n  APT: $61.4M (1.1%) in March 2026\n\n\
                     Changes:\n  APT: unlock moved from 12 Apr 2026 to 12 May 2026 (+30 days)\n\nNo problems."
                        .into(),
                ),
            ]),
            record: Some(json!({
                "since": "2026-03-08T08:00:00Z", "at": "2026-03-09T08:00:00Z", "until": "2026-03-16T08:00:00Z",
                "ahead": [
                    ahead("ARB", "2026-03-16T13:00:00Z", "on 16 Mar 2026, 13:00 UTC", 33_150_000.0, 2.77),
                    ahead("APT", "2026-03-01T00:00:00Z", "in March 2026", 61_400_000.0, 1.1),
                ],
                "aheadLeftOut": 3, "aheadValue": 94_550_000.0, "aheadUnvalued": 1,
                "linear": [
                    {"token": "arbitrum", "symbol": "ARB", "value": 8_400_000.0, "amount": 16_800_000.0, "perDay": 2_400_000.0, "share": 0.42,
                        "changes": [{"at": "2026-03-12T00:00:00Z", "before": 2_400_000.0, "after": 1_200_000.0,
                            "causes": [{"allocation": "Team", "before": 2_400_000.0, "after": 1_200_000.0}]}], "changesLeftOut": 0},
                    {"token": "optimism", "symbol": "OP", "value": null, "amount": 700.0, "perDay": 100.0, "share": null},
                ],
                "linearLeftOut": 0, "linearValue": 8_400_000.0, "linearUnvalued": 1, "totalValue": 102_950_000.0,
                "stalePrices": {"tokens": 1, "all": false, "oldest": "2025-11-03T00:00:00Z"},
                "possible": [ahead("SUI", "2026-03-01T00:00:00Z", "in March 2026", 120_000_000.0, 3.4)], "possibleLeftOut": 0, "possibleValue": 120_000_000.0,
                "groups": [{"name": "portfolio", "value": 94_550_000.0, "events": 2, "tokens": [["APT", 61_400_000.0], ["ARB", 33_150_000.0]], "leftOut": 2}],
                "fires": [{"alert": "al_0123", "rule": "BigCliffAhead", "tone": "critical", "summary": "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026"}],
                "firesLeftOut": 3, "changesCount": 33,
                "changes": [{"at": "2026-03-09T06:00:00Z", "token": "", "symbol": "32 tokens", "text": "moved by +3 days: OP, SUI, ENA and 29 more"},
                    {"at": "2026-03-09T06:00:00Z", "token": "aptos", "symbol": "APT", "text": "unlock moved from 12 Apr 2026 to 12 May 2026 (+30 days)"}],
                "changesLeftOut": 0,
                "heldBack": [{"state": "silenced", "rule": "BigCliffAhead", "summary": "SUI: $120M (3.4%) unlocks on 1 Apr 2026"}],
                "heldBackLeftOut": 0,
                "silences": [{"matchers": "token=\"sui\"", "until": "2026-03-10T18:00:00Z", "author": "ann", "comment": "known to the exchange"}],
                "silencesLeftOut": 0, "firing": 4, "trouble": [],
            })),
            ..incident.body
        },
        ..incident
    }
}

/// Text with markup, header lines, and bidirectional marks.
pub const HOSTILE: &str =
    "<script>alert(1)</script>\r\nBcc: thief@example.com\r\n\r\n<!channel> \"'&\u{202E}gpj.exe\u{200B}\u{0000}{{ 7*7 }}";

/// [`unlock`] with hostile text in every field.
pub fn hostile() -> Notification {
    let mut notice = unlock();
    let long = format!("{HOSTILE}{}", "x".repeat(10_000));
    notice.body.token = Some(TokenBody { id: HOSTILE.into(), name: long.clone(), symbol: HOSTILE.into() });
    notice.body.rule = HOSTILE.into();
    notice.body.reason = long.clone();
    notice.body.when = Some(HOSTILE.into());
    for value in notice.body.annotations.values_mut().chain(notice.body.labels.values_mut()) {
        value.clone_from(&long);
    }
    notice.body.annotations.insert("runbook_url".into(), "javascript:alert(1)".into());
    notice.body.record = Some(json!({
        "cliffUnlocks": {"cliffValue": 1.0, "allocationBreakdown": [{"allocationName": HOSTILE, "cliffAmount": 1.0}]},
        "dataSource": HOSTILE, "burnEventLabel": long
    }));
    notice.body.source.data_source = Some(HOSTILE.into());
    notice.body.source.listed_method = Some(long);
    notice
}

/// A delivery of these notifications without attempts.
pub fn due(id: i64, receiver: &str, notifications: Vec<Notification>) -> DueDelivery {
    let at = notifications.first().map_or_else(|| time("2026-03-09T13:00:00Z"), |notice| notice.at);
    DueDelivery {
        id: DeliveryId(id),
        webhook_id: format!("msg_{id:04}"),
        receiver: receiver.into(),
        attempts: 0,
        tries: 0,
        created_at: at,
        due_at: at,
        notifications,
        batch: model::rows::Batch::default(),
        over: Vec::new(),
        replay: None,
    }
}
