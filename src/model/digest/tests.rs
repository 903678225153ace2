use super::*;
use crate::{RateCause, RateChange};

fn time(text: &str) -> Timestamp {
    crate::wire::parse_timestamp(text).expect("a time")
}

#[test]
fn selection_has_a_label() {
    let selection = DigestSelection { order: DigestOrder::Share, limit: 10, min_value: 1e6 };
    assert_eq!(selection.label(), "10 largest by share of market cap, from $1.00M");
    assert_eq!(DigestSelection::default().label(), "50 largest by value");
}

fn hostile_vesting() -> Vec<LinearLine> {
    vec![
        LinearLine {
            token: "arbitrum".into(),
            symbol: "ARB".into(),
            value: Some(8_400_000.0),
            amount: Some(16_800_000.0),
            per_day: Some(2_400_000.0),
            share: Some(0.42),
            changes: vec![RateChange {
                at: time("2026-03-12T00:00:00Z"),
                before: 2_400_000.0,
                after: 1_200_000.0,
                causes: vec![RateCause { allocation: "Te\nam".into(), before: 2_400_000.0, after: 1_200_000.0 }],
            }],
            changes_left_out: 2,
        },
        LinearLine {
            token: "evil".into(),
            symbol: "EV\nIL".into(),
            value: None,
            amount: Some(700.0),
            per_day: Some(100.0),
            share: None,
            changes: Vec::new(),
            changes_left_out: 0,
        },
    ]
}

fn hostile_digest() -> Digest {
    let unlock = |symbol: &str, value| AheadLine {
        token: "x".into(),
        symbol: symbol.into(),
        at: time("2026-03-16T13:00:00Z"),
        when: "on 16 Mar 2026, 13:00 UTC".into(),
        value,
        amount: Some(92_650_000.0),
        share: value.map(|_| 2.3),
    };
    Digest {
        since: time("2026-03-08T07:00:00Z"),
        at: time("2026-03-09T07:00:00Z"),
        until: time("2026-03-16T07:00:00Z"),
        tokens: Vec::new(),
        selection: DigestSelection::default(),
        positions: Vec::new(),
        positions_left_out: 0,
        ahead: vec![unlock("ARB", Some(96_100_000.0)), unlock("EV\nIL", None)],
        ahead_left_out: 0,
        ahead_value: Some(96_100_000.0),
        ahead_unvalued: 1,
        linear: hostile_vesting(),
        linear_left_out: 1,
        linear_value: Some(8_400_000.0),
        linear_unvalued: 1,
        total_value: Some(104_500_000.0),
        gaps: SupplyGaps { tokens: 40, unread: 2, cliffs_only: 1, linear_until: None },
        stale_prices: Some(StalePrices { tokens: 2, all: false, oldest: time("2025-11-03T00:00:00Z") }),
        possible: vec![AheadLine { when: "in March 2026".into(), ..unlock("SUI", Some(120_000_000.0)) }],
        possible_left_out: 0,
        possible_value: Some(120_000_000.0),
        groups: vec![GroupLine {
            name: "portfolio".into(),
            value: Some(104_500_000.0),
            events: 2,
            cliff_value: Some(96_100_000.0),
            linear_tokens: 2,
            linear_value: Some(8_400_000.0),
            tokens: vec![("ARB".into(), Some(104_500_000.0)), ("EV\nIL".into(), None)],
            left_out: 4,
        }],
        changes: vec![ChangedLine {
            at: time("2026-03-08T12:00:00Z"),
            token: "aptos".into(),
            symbol: "APT".into(),
            text: "APT: the unlock of 12 Mar 2026 moved by +4 days".into(),
        }],
        changes_left_out: 2,
        changes_count: 3,
        held_back: vec![SuppressedLine {
            state: NotificationState::Silenced,
            rule: "Big".into(),
            summary: "SUI: $5.0M unlocks".into(),
        }],
        held_back_left_out: 0,
        silences: vec![SilencedLine {
            matchers: "token=\"sui\"".into(),
            until: time("2026-03-10T18:00:00Z"),
            author: "ann".into(),
            comment: "known\r\nto the exchange".into(),
        }],
        silences_left_out: 0,
        firing: 2,
        fires: vec![FiringLine {
            alert: "al_1".into(),
            rule: "BigCliffAhead".into(),
            also: vec!["InsiderUnlockAhead".into()],
            severity: Severity::Critical,
            value: Some(98_200_000.0),
            summary: "ARB: $96.1M unlocks on 16 Mar 2026".into(),
        }],
        fires_left_out: 1,
        incident_summaries: vec!["The source does not respond in time".into()],
    }
}

/// A digest of seven days, of unlocks alone.
fn only_unlocks(at: Timestamp, unlocks: &DigestAhead) -> DigestMaterial<'_> {
    DigestMaterial {
        since: at - SUPPRESSED_WINDOW,
        at,
        ahead: TimeDelta::days(7),
        unlocks,
        tokens: &[],
        selection: DigestSelection::default(),
        changes: &[],
        statuses: &[],
        silences: &[],
        firing: 0,
        fires: &[],
        incidents: 0,
        incident_summaries: &[],
    }
}

#[test]
fn digest_text_keeps_hostile_names_on_their_lines() {
    let digest = hostile_digest();
    insta::assert_snapshot!(format!("{}\n\n{}", phrase::digest::summary(&digest), phrase::digest::text(&digest)));
    let notification = digest.notification(&"desk".into(), digest.at);
    assert_eq!(notification.id, digest.notification(&"desk".into(), digest.until).id, "the same slot is the same message");
    let (test, later) =
        (digest.test_notification(&"desk".into(), digest.at), digest.test_notification(&"desk".into(), digest.until));
    assert!(test.id != notification.id && test.alert != notification.alert && test.id != later.id, "a test takes no slot");
    assert!(test.is_digest() && notification.is_digest() && test.kind == NotificationKind::Test);
    assert!(test.body.annotations["description"].starts_with("This is a test"));
    assert_eq!(serde_json::from_value::<Digest>(notification.body.record.expect("a record")).expect("reads"), digest);
}

fn upcoming(token: &str, date: &str, precision: &str, value: f64) -> UpcomingRow {
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffValue": value,
        "allocationBreakdown": [{"cliffValue": value, "unlockPrecision": precision}]}});
    let record = crate::Record::Unlock(serde_json::from_value(event).expect("an event"));
    let mut token = crate::Token::unknown(token.into());
    token.groups = std::sync::Arc::from(["book".to_owned()]);
    UpcomingRow { token, tracked: crate::Tracked { key: date.into(), record }, read_at: None }
}

#[test]
fn sum_includes_month_by_nominal_date() {
    let at = time("2026-03-09T07:00:00Z");
    let rows = vec![
        upcoming("past", "2026-03-01", "month", 1_000.0),
        upcoming("later", "2026-03-31", "month", 2_000.0),
        upcoming("small", "2026-03-12T13:00:00Z", "second", 10.0),
        upcoming("now", "2026-03-12", "month", 40.0),
        upcoming("today", "2026-03-09", "day", 5.0),
    ];
    let unlocks = DigestAhead::of(rows, SumWindow::of(at, TimeDelta::days(7)), DigestSelection::default());
    let digest = Digest::of(&only_unlocks(at, &unlocks));
    let names = |lines: &[AheadLine]| lines.iter().map(|line| line.token.clone()).collect::<Vec<_>>();
    assert_eq!((names(&digest.ahead), digest.ahead_value), (vec!["now".into(), "small".into()], Some(50.0)));
    assert_eq!(
        (names(&digest.possible), digest.possible_value),
        (vec!["later".into(), "past".into(), "today".into()], Some(3_005.0))
    );
    assert_eq!(
        phrase::digest::summary(&digest),
        "Digest: 2 unlocks ($50) in the next 7 days, 3 more possible ($3.00K), 0 changes"
    );
    assert_eq!(phrase::digest::group(&digest.groups[0]), "$50 in 2 unlocks: now $40 and small $10");
}

#[test]
fn selection_sets_the_order_and_the_number_of_lines_and_the_sums_stay() {
    let at = time("2026-03-09T07:00:00Z");
    let window = SumWindow::of(at, TimeDelta::days(7));
    // Value in USD, and percent of market cap.
    let unlock = |token: &str, date: &str, value: Option<f64>, share: f64| {
        let mut row = upcoming(token, date, "second", 0.0);
        let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": value,
            "valueToMarketCap": share, "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0,
            "unlockPrecision": "second"}]}});
        row.tracked.record = crate::Record::Unlock(serde_json::from_value(event).expect("an event"));
        row
    };
    let lines = |selection: DigestSelection| {
        let rows = vec![
            unlock("large", "2026-03-14T09:00:00Z", Some(900.0), 0.1),
            unlock("middle", "2026-03-12T09:00:00Z", Some(500.0), 3.0),
            unlock("small", "2026-03-10T09:00:00Z", Some(20.0), 9.0),
            unlock("unknown", "2026-03-11T09:00:00Z", None, 5.0),
        ];
        let digest = Digest::of(&DigestMaterial { selection, ..only_unlocks(at, &DigestAhead::of(rows, window, selection)) });
        assert_eq!((digest.ahead_value, digest.ahead_unvalued), (Some(1_420.0), 1), "{selection:?}");
        assert_eq!(digest.ahead.len() + digest.ahead_left_out as usize, 4);
        digest.ahead.into_iter().map(|line| line.token).collect::<Vec<_>>()
    };
    let all = DigestSelection::default();
    assert_eq!(lines(all), ["large", "middle", "small", "unknown"]);
    assert_eq!(lines(DigestSelection { order: DigestOrder::Date, ..all }), ["small", "unknown", "middle", "large"]);
    assert_eq!(lines(DigestSelection { order: DigestOrder::Share, limit: 2, ..all }), ["small", "unknown"]);
    // The largest ones are listed, by date.
    assert_eq!(lines(DigestSelection { order: DigestOrder::Date, limit: 2, ..all }), ["middle", "large"]);
    // An unknown value may be large.
    assert_eq!(lines(DigestSelection { min_value: 100.0, ..all }), ["large", "middle", "unknown"]);
}

#[test]
fn headline_names_the_selection() {
    let at = time("2026-03-09T07:00:00Z");
    let headline = |tokens: &[&str], selection: DigestSelection| {
        let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
        let unlocks = DigestAhead::default();
        let digest = Digest::of(&DigestMaterial { tokens: &tokens, selection, ..only_unlocks(at, &unlocks) });
        let notification = digest.notification(&"desk".into(), at);
        notification.body.annotations["summary"].split(':').next().unwrap_or_default().to_owned()
    };
    let all = DigestSelection::default();
    assert_eq!(headline(&[], all), "Digest");
    assert_eq!(headline(&["@portfolio"], all), "Digest of @portfolio");
    assert_eq!(headline(&["a", "b", "c", "d"], all), "Digest of a, b, c, and 1 more");
    let top = DigestSelection { order: DigestOrder::Share, limit: 10, ..all };
    assert_eq!(headline(&[], top), "Digest, 10 largest by share of market cap");
    let large = DigestSelection { min_value: 1e6, limit: 5, ..all };
    assert_eq!(headline(&["@portfolio"], large), "Digest of @portfolio, from $1.00M, 5 largest by value");
}

/// The stored digest has no positions, and one that is sent has those of its receiver.
#[test]
fn positions_are_added_to_a_copy_of_a_digest() {
    let at = time("2026-03-09T07:00:00Z");
    let stored = Digest::of(&only_unlocks(at, &DigestAhead::default())).notification(&"desk".into(), at);
    let window = stored.digest_period().expect("a digest");
    assert_eq!((window.at, window.until), (at, at + TimeDelta::days(7)));
    let mut supply = crate::TokenSupply::unread(1);
    supply.known = crate::KnownSupply::All;
    supply.price = Some(crate::ReferencePrice { usd: 2.0, at: None });
    supply.windows[0].cliff.add(Some(5000.0), Some(10_000.0));
    let position = |amount: f64| crate::Position::of(amount).expect("an amount");
    let unread = crate::TokenSupply::unread(1);
    let lines = vec![
        PositionLine::of(&TokenId::from("aptos"), "APT", position(7.0), &unread),
        PositionLine::of(&TokenId::from("arbitrum"), "ARB", position(250.0), &supply),
    ];
    assert!(!format!("{lines:?}").contains("250"), "the amount is hidden");
    let sent = stored.with_positions(lines).expect("a digest");
    assert_eq!(sent.id, stored.id);
    assert!(!serde_json::to_string(&stored).expect("JSON").contains("position"), "{stored:?}");
    let text = &sent.body.annotations["description"];
    let expected = "Your positions:\n- ARB: $500 (250 ARB); unlocks of $10.00K are 20× the position\n- APT: 7 APT (value unknown); unlocks not known";
    assert!(text.contains(expected), "{text}");
}

fn vesting(token: &str, per_day: f64, price: Option<f64>, window: SumWindow) -> TokenVesting {
    let (start, end) = (window.at.timestamp_millis(), (window.at + TimeDelta::days(10)).timestamp_millis());
    let piece = crate::LinearPiece::new(start, end, Some(per_day * 10.0)).expect("a piece");
    let precision = crate::Precision::Second;
    let unlock = crate::LinearUnlock { piece, allocation: "Team", category: None, precision, keys: None, is_end_known: true };
    let mut token = crate::Token::unknown(token.into());
    token.groups = std::sync::Arc::from(["book".to_owned()]);
    let price = price.map(|usd| crate::ReferencePrice { usd, at: None });
    TokenVesting::of(token, &[unlock], price, window).expect("something vests")
}

#[test]
fn headline_and_groups_add_linear_unlocks_and_name_unknown_values() {
    let at = time("2026-03-09T07:00:00Z");
    let window = SumWindow::of(at, TimeDelta::days(7));
    let texts = |rows: Vec<UpcomingRow>, vestings: Vec<TokenVesting>| {
        let mut unlocks = DigestAhead::of(rows, window, DigestSelection::default());
        unlocks.add_vesting(vestings, DigestSelection::default());
        let digest = Digest::of(&only_unlocks(at, &unlocks));
        (phrase::digest::summary(&digest), phrase::digest::group(&digest.groups[0]))
    };
    let cliff = || upcoming("arb", "2026-03-12T13:00:00Z", "second", 30.0);
    assert_eq!(
        texts(vec![cliff()], vec![vesting("arb", 10.0, Some(2.0), window), vesting("op", 1.0, None, window)]),
        (
            "Digest: $170 in the next 7 days: 1 cliff ($30) and linear vesting ($140, 1 of unknown value), 0 changes".to_owned(),
            "$170, 1 cliff ($30) and linear vesting ($140): arb $170 and op (value unknown)".to_owned()
        )
    );
    assert_eq!(
        texts(Vec::new(), vec![vesting("op", 1.0, None, window)]),
        (
            "Digest: linear vesting (value unknown) in the next 7 days, 0 changes".to_owned(),
            "linear vesting (value unknown): op (value unknown)".to_owned()
        )
    );
    // Only the lines of the digest are listed; the sums include the others.
    let many: Vec<TokenVesting> = (0..60).map(|number| vesting(&format!("t{number:02}"), 1.0, Some(1.0), window)).collect();
    assert!(texts(Vec::new(), many).0.starts_with("Digest: linear vesting ($420) in the next 7 days"));
}

#[test]
fn digest_says_what_is_not_known() {
    let at = time("2026-03-09T07:00:00Z");
    let texts = |gaps: SupplyGaps| {
        let unlocks = DigestAhead { gaps, ..DigestAhead::default() };
        let digest = Digest::of(&only_unlocks(at, &unlocks));
        (phrase::digest::summary(&digest), phrase::digest::no_unlocks(&digest), phrase::digest::gaps(&digest))
    };
    let complete = SupplyGaps { tokens: 3, linear_until: Some(at + TimeDelta::days(7)), ..SupplyGaps::default() };
    let (summary, unlocks, gaps) = texts(complete);
    assert_eq!((summary.as_str(), gaps), ("Digest: 0 unlocks in the next 7 days, 0 changes", None));
    assert_eq!(unlocks, "No known unlocks until 16 Mar 2026, 07:00 UTC.");
    let (summary, unlocks, gaps) = texts(SupplyGaps { unread: 3, ..complete });
    assert_eq!(summary, "Digest: unlocks of the next 7 days not known, 0 changes");
    assert_eq!(unlocks, "Upcoming unlocks are not known: no schedule was read yet.");
    assert_eq!(gaps.as_deref(), Some("Incomplete: 3 tokens not read yet."));
    // A list can show the next unlock of a token whose schedule was never read.
    let mut listed = DigestAhead { gaps: SupplyGaps { unread: 3, ..complete }, ..DigestAhead::default() };
    listed.add_vesting(vec![vesting("arb", 1.0, Some(1.0), SumWindow::of(at, TimeDelta::days(7)))], DigestSelection::default());
    let summary = phrase::digest::summary(&Digest::of(&only_unlocks(at, &listed)));
    assert!(summary.starts_with("Digest: linear vesting ($7) in the next 7 days, incomplete"), "{summary}");
    let until = Some(at + TimeDelta::days(2));
    let (summary, unlocks, gaps) = texts(SupplyGaps { unread: 1, cliffs_only: 1, linear_until: until, ..complete });
    assert_eq!(summary, "Digest: 0 unlocks in the next 7 days, incomplete, 0 changes");
    assert_eq!(unlocks, "No known unlocks until 16 Mar 2026, 07:00 UTC, but the known schedules are incomplete.");
    let expected = "Incomplete: 1 token not read yet; 1 token with cliffs only, because linear unlocks were not read; linear unlocks are \
                    known only until 11 Mar 2026 for at least one token.";
    assert_eq!(gaps.as_deref(), Some(expected));
}

#[test]
fn firing_lines_are_one_per_event_by_value() {
    let alert = |id: &str, rule: &str, severity: &str, token: Option<(&str, &str)>| Alert {
        id: id.into(),
        rule: rule.into(),
        name: rule.into(),
        subject: rule.into(),
        episode: 1,
        state: crate::AlertState::Firing,
        resolution: None,
        token: token.map(|(token, _)| token.into()),
        resource: token.map(|_| Resource::Unlock),
        key: token.map(|(_, key)| key.into()),
        level: None,
        labels: Labels::from([("severity".to_owned(), severity.to_owned())]),
        former_labels: Vec::new(),
        annotations: BTreeMap::new(),
        notified: Vec::new(),
        leads: Vec::new(),
        members: Vec::new(),
        active_at: time("2026-03-09"),
        starts_at: None,
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        text_at: None,
        updated_at: time("2026-03-09"),
    };
    let (big, small) = (Some(("big", "2026-03-12")), Some(("small", "2026-03-10")));
    let fires = [
        alert("al_1", "Insiders", "info", small),
        alert("al_2", "Pressure", "info", None),
        alert("al_3", "Claim", "info", big),
        alert("al_4", "Cliff", "warning", small),
        alert("al_5", "Cliff", "warning", big),
    ];
    let value = |alert: &Alert| match alert.key.as_ref()?.as_str() {
        "2026-03-12" => Some(900.0),
        _ => Some(10.0),
    };
    let fires: Vec<ValuedAlert> = fires.into_iter().map(|alert| ValuedAlert { value: value(&alert), alert }).collect();
    let notified: Vec<String> = firing_lines(&fires.iter().collect::<Vec<_>>())
        .iter()
        .map(|line| format!("{} {}", line.alert, phrase::digest::rules(line)))
        .collect();
    assert_eq!(notified, ["al_5 Cliff, also Claim", "al_4 Cliff, also Insiders", "al_2 Pressure"]);
}

#[test]
fn sums_include_unlisted_unlocks() {
    let at = time("2026-03-09T07:00:00Z");
    let rows: Vec<UpcomingRow> =
        (0..60).map(|i| upcoming(&format!("t{}", i % 30), "2026-03-12", "day", f64::from(i + 1))).collect();
    let unlocks = DigestAhead::of(rows, SumWindow::of(at, TimeDelta::days(7)), DigestSelection::default());
    assert_eq!((unlocks.counted.rows.len(), unlocks.counted.more, unlocks.counted.more_value), (50, 10, Some(55.0)));
    assert_eq!(unlocks.by_token.len(), 10, "a number for each token, not a row for each unlock");
    let material = DigestMaterial { firing: 9, incidents: 2, ..only_unlocks(at, &unlocks) };
    let digest = Digest::of(&material);
    assert_eq!(phrase::digest::summary(&digest), "Digest: 60 unlocks ($1.83K) in the next 7 days, 0 changes");
    assert_eq!((digest.ahead.len(), digest.ahead_left_out, digest.fires_left_out), (50, 10, 7));
    let group = digest.groups.first().expect("a group");
    assert_eq!((group.events, group.value, group.left_out), (60, Some(1_830.0), 22));
    assert_eq!(group.tokens.first(), Some(&("t29".to_owned(), Some(90.0))));
}
