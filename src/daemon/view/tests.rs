use super::{AlertView, RulesView, StatusParts, StatusView, UnlockView};
use model::{
    Alert, CreditState, Endpoint, EndpointStat, Findings, NotificationOverview, NotificationState, ReceiverStatus, Record,
    StoreCounts, Token, TokenId, Tracked, UpcomingRow,
};
use testkit::{rows::firing, time};

fn row(name: &str) -> UpcomingRow {
    let event = serde_json::json!({"unlockDate": "2026-03-16T13:00:00Z", "cliffUnlocks": {"cliffAmount": 92_650_000.0, "cliffValue": 33_150_000.0,
        "valueToMarketCap": 2.77, "allocationBreakdown": [{"allocationName": "Investors", "cliffAmount": 1.0}, {"allocationName": "Team", "cliffAmount": 2.0}]}});
    let mut token = Token::unknown(TokenId::from("arbitrum"));
    token.item.symbol = name.to_owned().into();
    let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
    UpcomingRow { token, tracked: Tracked { key: "2026-03-16".into(), record }, read_at: Some(time("2026-03-09T06:00:00Z")) }
}

fn alert(summary: &str) -> Alert {
    Alert {
        labels: [("severity".to_owned(), "critical".to_owned())].into(),
        annotations: [("summary".to_owned(), summary.to_owned())].into(),
        notified: vec!["ops".into()],
        leads: vec!["7d".into()],
        ..firing("al_1", time("2026-03-09T06:00:00Z"))
    }
}

fn status(receiver: &str, was_notified: bool, state: &str) -> ReceiverStatus {
    ReceiverStatus { receiver: receiver.into(), was_notified, state: NotificationState::parse(state).expect("a state") }
}

#[test]
fn notified_receivers_are_those_that_accepted_a_message() {
    let receiver_states = [
        status("desk", false, "silenced"),
        status("mail", true, "retrying"),
        status("ops", true, "delivered"),
        status("wall", false, "dead"),
    ];
    let view = AlertView::of(&alert("x"), &receiver_states, time("2026-03-09T13:00:00Z"));
    assert_eq!(view.notified, ["mail", "ops"]);
    assert_eq!(view.notified_text(), "ops, desk (silenced), mail (last: retrying), wall (dead)");
}

#[test]
fn unlock_json_has_documented_field_names() {
    let view = UnlockView::of(&row("ARB"), time("2026-03-09T13:00:00Z")).expect("an unlock");
    let json = serde_json::to_value(&view).expect("json");
    let names: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "tokenId",
            "symbol",
            "name",
            "unlockDate",
            "precision",
            "when",
            "cliffAmount",
            "cliffValue",
            "valueToMarketCap",
            "daysUntil",
            "allocations",
            "listedMethod",
            "polledAt",
            "record"
        ]
    );
    assert_eq!(view.allocations, ["Team", "Investors"]);
    assert_eq!(view.days_until, Some(7.0));
    assert_eq!(json["unlockDate"], "2026-03-16T13:00:00Z");
}

#[test]
fn source_is_down_while_its_alert_fires() {
    let mut incident = alert("the source does not respond");
    incident.subject = "source".to_owned();
    let stat = EndpointStat {
        endpoint: Endpoint::Burn,
        feeds: 1,
        failing: 1,
        failing_since: None,
        last_success: None,
        last_try: Some(time("2026-03-09")),
        last_error: None,
        parse_warnings: 3,
        polls: 310,
        credits: 420,
        findings: Findings { by_mark: 4, by_upcoming: 1, unreported: 2, idle_marks: 3, ..Findings::default() },
    };
    let status = StatusView::of(StatusParts {
        now: time("2026-03-09T12:00:00Z"),
        counts: &StoreCounts::default(),
        endpoints: &[stat],
        credit: &CreditState::default(),
        reads: None,
        incidents: &[incident],
        receivers: Vec::new(),
        notifications: &NotificationOverview::default(),
        digests: &[],
        subscribers: &[],
        database: "cliffwatch.db".into(),
        rules: RulesView::default(),
        daemon: None,
    });
    assert_eq!(status.source_up, Some(false));
    assert_eq!(status.incidents, ["the source does not respond"]);
}
