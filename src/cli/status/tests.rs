use super::*;
use engine::plan::month::polls::TokenPolls;
use model::{
    AlertState, CreditState, DeliveryState, Endpoint, EndpointStat, Findings, NotificationOverview, OptOut, OptOutSource,
    ReceiverCounts, Resource, SilenceRequest, StoreCounts, SuppressedCount, config, read_matchers, wire,
};

#[test]
fn describes_source_credits_and_outbox() {
    let time = |text| wire::parse_timestamp(text).unwrap();
    let now = time("2026-03-09T12:00:00Z");
    let stat = EndpointStat {
        endpoint: Endpoint::UnlockEvents,
        feeds: 40,
        failing: 2,
        failing_since: Some(time("2026-03-09T06:00:00Z")),
        last_success: Some(time("2026-03-09T10:30:00Z")),
        last_try: Some(now),
        last_error: Some((now, "HTTP 404 for /v5/unlock/events/x".to_owned())),
        parse_warnings: 3,
        polls: 310,
        credits: 420,
        findings: Findings { by_mark: 4, by_upcoming: 1, unreported: 2, idle_marks: 3, ..Findings::default() },
    };
    let outbox = ReceiverCounts {
        receiver: "ops".into(),
        states: vec![
            (DeliveryState::Due, 1),
            (DeliveryState::Retrying, 2),
            (DeliveryState::Dead, 1),
            (DeliveryState::Delivered, 7),
        ],
        oldest_pending: Some(time("2026-03-09T11:58:00Z")),
    };
    let counts = StoreCounts {
        tokens: 41,
        tokens_listed: 40,
        records: vec![(Resource::Unlock, 900)],
        alerts: vec![(AlertState::Firing, 3)],
        outbox: vec![outbox],
        database_bytes: 3 << 20,
        ..StoreCounts::default()
    };
    let desk = config::ReceiverSettings {
        name: "desk".into(),
        kind: config::ReceiverKind::Email,
        to: vec!["desk@example.com".into(), "risk@example.com".into()],
        digest: Some(config::DigestSettings { at: "08:00".into(), timezone: Some("Europe/Paris".into()), ..Default::default() }),
        ..Default::default()
    };
    let plans =
        digest_schedule::plans(std::slice::from_ref(&desk), model::config::SourceSettings::default().stale_price).unwrap();
    let request = SilenceRequest {
        matchers: read_matchers(["token=arbitrum"]).unwrap(),
        author: "ann".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: time("2026-03-09T18:00:00Z"),
    };
    let held = SuppressedCount { receiver: "ops".into(), waiting: 2, silenced: 1, inhibited: 0, lately: 5 };
    let address = "risk@example.com".to_owned();
    let notifications = NotificationOverview {
        silences: vec![request.into_silence(now).unwrap()],
        held: vec![held],
        opt_outs: vec![OptOut { receiver: "desk".into(), address, at: now, via: OptOutSource::Link }],
        digests: vec![("digest/desk".to_owned(), time("2026-03-09T07:00:00Z"))],
        created_digests: vec![("digest-created/desk".to_owned(), time("2026-03-09T07:00:00Z"))],
        ..NotificationOverview::default()
    };
    let polls = |(token, polls): (&str, u32)| TokenPolls { token: token.into(), polls };
    let credit = CreditState { used: Some(120), limit: Some(1000), reset_at: Some(time("2026-04-01")), ..CreditState::default() };
    let status = StatusView::of(StatusParts {
        now,
        counts: &counts,
        endpoints: &[stat],
        credit: &credit,
        reads: Some(ReadsView {
            since: time("2026-03-01"),
            noticed_hours_mean: Some(5.3),
            noticed_hours_worst: Some(71.0),
            most_read: [("arbitrum", 31), ("aptos", 30)].map(polls).to_vec(),
            least_read: [("sui", 2)].map(polls).to_vec(),
            shown_days: Some(daemon::view::ShownDaysView { schedules: 3, older_kept: 12, came_into_view: 4 }),
        }),
        incidents: &[],
        receivers: vec!["desk".to_owned(), "ops".to_owned()],
        notifications: &notifications,
        digests: &plans,
        subscribers: &unsubscribe::subscribers(&[desk]),
        database: "cliffwatch.db".into(),
        rules: RulesView { count: Some(9), ..RulesView::default() },
        daemon: None,
    });
    insta::assert_snapshot!(text(&status, None));
}
