mod properties;

use super::{own::RECEIVER, scope::IncidentScope, writer::IncidentFacts, *};
use crate::evaluate::{Evaluation, RuleTerms, blank};
use model::{
    AlertId, AlertState, AlertStatus, DeliveryId, Endpoint, FailureKind, Notification, NotificationId, NotificationKind,
    ReceiverName, Resolution, RuleId, SOURCE_TROUBLE, config, wire,
};
use rules::{On, Rendered, RuleSet, Scope, SourceFacts, Truth};

/// A rule on the source, as an operator may write it.
#[derive(Clone)]
struct Fake {
    id: RuleId,
    receivers: Vec<ReceiverName>,
    holds: fn(&SourceFacts) -> bool,
}

impl RuleEval for Fake {
    fn terms(&self) -> RuleTerms<'_> {
        RuleTerms {
            id: &self.id,
            name: self.id.as_str(),
            on: On::Source,
            within: &[],
            since: TimeDelta::zero(),
            pending_for: TimeDelta::zero(),
            keep_firing_for: TimeDelta::zero(),
            limit: None,
            receivers: &self.receivers,
            expires: None,
            is_clock_dependent: false,
            edges: &[],
        }
    }
    fn covers(&self, _: &Scope<'_>) -> bool {
        true
    }
    fn evaluate(&self, scope: &Scope<'_>) -> Truth {
        if scope.source.is_some_and(self.holds) { Truth::True } else { Truth::False }
    }
    fn clears(&self, _: &Scope<'_>) -> bool {
        false
    }
    fn level(&self, _: &Scope<'_>) -> Option<u32> {
        None
    }
    fn render(&self, scope: &Scope<'_>, _: Option<u32>) -> Rendered {
        let facts = scope.source.expect("a rule on the source sees an incident");
        let pairs = [("alertname", self.id.as_str()), ("severity", "critical"), ("kind", "mine")];
        Rendered {
            labels: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            annotations: BTreeMap::from([("summary".to_owned(), format!("OH NO: {}", facts.message))]),
            error: None,
        }
    }
}

/// Many cycles of the source, with the stored alerts.
struct World {
    rules: Vec<Fake>,
    routes: RouteTree,
    unwatched: Vec<FeedId>,
    alerts: BTreeMap<AlertId, Alert>,
    notified: BTreeMap<NotificationId, Notification>,
    now: Timestamp,
}

fn routes() -> RouteTree {
    let receiver =
        |name: &str, send_resolved| config::ReceiverSettings { name: name.into(), send_resolved, ..Default::default() };
    let critical =
        config::Route { matchers: vec!["severity=critical".into()], receivers: vec!["desk".into()], ..Default::default() };
    let root = config::Route { receivers: vec!["ops".into(), "desk".into()], routes: vec![critical], ..Default::default() };
    RouteTree::build(&root, &[receiver("ops", None), receiver("desk", None), receiver("night", Some(false))]).expect("routes")
}

impl World {
    fn new() -> Self {
        Self {
            rules: Vec::new(),
            routes: routes(),
            unwatched: Vec::new(),
            alerts: BTreeMap::new(),
            notified: BTreeMap::new(),
            now: wire::parse_timestamp("2026-03-01").expect("a timestamp"),
        }
    }

    /// Runs a cycle `minutes` after the last one. Returns its notifications, such as `firing source (timeout)`.
    fn cycle(&mut self, minutes: i64, outcomes: &[FeedOutcome]) -> Vec<String> {
        self.now += TimeDelta::minutes(minutes);
        let open: Vec<Alert> = self.alerts.values().filter(|alert| alert.state == AlertState::Firing).cloned().collect();
        let cycle = CycleOutcome { outcomes, open: &open, is_watched: &|feed| !self.unwatched.contains(feed), token: &|_| None };
        let transitions = watch_with(&cycle, &self.rules, &self.routes, self.now);
        let latest: Vec<u32> = transitions
            .openings()
            .iter()
            .map(|(rule, subject)| {
                let same = self.alerts.values().filter(|alert| alert.rule == *rule && alert.subject == *subject);
                same.map(|alert| alert.episode).max().unwrap_or(0)
            })
            .collect();
        self.commit(transitions.assign_episodes(&latest))
    }

    fn commit(&mut self, evaluation: Evaluation) -> Vec<String> {
        for alert in evaluation.alerts {
            self.alerts.insert(alert.id.clone(), alert);
        }
        let mut notified = Vec::new();
        for notification in evaluation.notifications {
            assert_eq!(notification.kind, NotificationKind::Source);
            assert!(!self.notified.contains_key(&notification.id), "sent twice: {notification:?}");
            let alert = &self.alerts[&notification.alert];
            notified.push(format!("{} {} ({})", notification.body.status, alert.subject, notification.body.reason));
            self.notified.insert(notification.id.clone(), notification);
        }
        notified
    }

    fn firing(&self) -> Vec<&Alert> {
        self.alerts.values().filter(|alert| alert.state == AlertState::Firing).collect()
    }
}

const NOTHING: [&str; 0] = [];

fn feed(text: &str) -> FeedId {
    feed_of(text).unwrap_or_else(|| panic!("{text} is not a feed"))
}

fn fine(feeds: &[&str]) -> Vec<FeedOutcome> {
    feeds.iter().map(|text| FeedOutcome { feed: feed(text), result: FeedResult::Fine }).collect()
}

fn failed(kind: FailureKind, feeds: &[&str]) -> Vec<FeedOutcome> {
    let failure = PollFailure { kind, message: format!("GET /v4/x: {kind}"), retry_at: None };
    feeds.iter().map(|text| FeedOutcome { feed: feed(text), result: FeedResult::Failed(failure.clone()) }).collect()
}

fn tokens(endpoint: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{endpoint}/token-{index}")).collect()
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

const EVERY_FAULT: [FailureKind; 17] = [
    FailureKind::Unreachable,
    FailureKind::Timeout,
    FailureKind::ServerError,
    FailureKind::NoKey,
    FailureKind::UnusableKey,
    FailureKind::Unauthorized,
    FailureKind::Forbidden,
    FailureKind::RateLimited,
    FailureKind::QuotaExhausted,
    FailureKind::NotFound,
    FailureKind::UnexpectedStatus,
    FailureKind::BadAnswer,
    FailureKind::TooLarge,
    FailureKind::Incomplete,
    FailureKind::Emptied,
    FailureKind::NotStored,
    FailureKind::Unreadable,
];

#[test]
fn only_a_response_shows_that_the_source_responds() {
    let of = |kinds: &[FailureKind]| {
        let outcomes: Vec<FeedOutcome> = kinds.iter().flat_map(|kind| failed(*kind, &["burn/a"])).collect();
        has_responded(&outcomes)
    };
    use FailureKind::{QuotaExhausted, Suspended, Timeout, Unauthorized, Unreachable, Unreadable, UnusableKey};
    assert_eq!((of(&[Timeout, Suspended]), of(&[Unreachable, Unreadable])), (Some(false), Some(false)));
    assert_eq!((of(&[Unauthorized]), of(&[Timeout, Unauthorized])), (Some(true), Some(true)));
    for unsent in [&[][..], &[Suspended], &[QuotaExhausted], &[UnusableKey], &[Unreadable]] {
        assert_eq!(of(unsent), None, "{unsent:?}");
    }
    assert_eq!(has_responded(&fine(&["burn/a"])), Some(true));
}

#[test]
fn every_fault_makes_one_alert_and_one_recovery() {
    for kind in EVERY_FAULT {
        for names in [
            vec!["token_list"],
            vec!["unlock_events/a", "unlock_events/b"],
            vec!["unlock_events/a", "unlock_events/b", "unlock_events/c"],
            vec!["token_list", "upcoming", "unlock_events/a", "burn/a"],
        ] {
            let mut world = World::new();
            assert_eq!(world.cycle(0, &fine(&names)), NOTHING, "{kind}");
            let notified = world.cycle(1, &failed(kind, &names));
            assert!(notified.len() == 1 && notified[0].starts_with("firing source"), "{kind} {names:?}: {notified:?}");
            for _ in 0..200 {
                assert_eq!(world.cycle(7, &failed(kind, &names)), NOTHING, "{kind}");
            }
            let notified = world.cycle(1, &fine(&names));
            assert!(notified.len() == 1 && notified[0].starts_with("resolved source"), "{kind} {names:?}: {notified:?}");
            assert_eq!(world.cycle(1, &fine(&names)), NOTHING);
            assert_eq!(world.alerts.len(), 1, "{kind} {names:?}");
        }
    }
}

#[test]
fn endpoints_that_fail_in_different_cycles_share_one_alert() {
    for kind in EVERY_FAULT {
        let mut world = World::new();
        let unlocks = tokens("unlock_events", 5);
        assert_eq!(world.cycle(0, &failed(kind, &["token_list"])).len(), 1, "{kind}");
        assert_eq!(world.cycle(5, &failed(kind, &["upcoming"])), NOTHING, "{kind}");
        assert_eq!(world.cycle(5, &failed(kind, &refs(&unlocks))), NOTHING, "{kind}");
        assert_eq!(world.firing()[0].members.len(), 7);
        if kind.is_about_key() || kind == FailureKind::QuotaExhausted {
            assert_eq!(world.cycle(300, &fine(&["token_list"])).len(), 1, "one response proves that the key is valid");
            continue;
        }
        assert_eq!(world.cycle(300, &fine(&["token_list"])), NOTHING, "the others have not responded yet");
        assert_eq!(world.cycle(5, &fine(&["upcoming"])), NOTHING);
        assert_eq!(world.cycle(5, &fine(&refs(&unlocks))).len(), 1, "{kind}");
        assert_eq!(world.firing().len(), 0);
    }
}

#[test]
fn source_alert_ends_after_one_good_cycle_of_few_feeds() {
    for kind in [FailureKind::QuotaExhausted, FailureKind::Unauthorized, FailureKind::Timeout, FailureKind::RateLimited] {
        let mut world = World::new();
        let unlocks = tokens("unlock_events", 50);
        assert_eq!(world.cycle(0, &failed(kind, &refs(&unlocks))).len(), 1, "{kind}");
        assert_eq!(world.cycle(300, &fine(&refs(&unlocks[..2]))).len(), 1, "{kind}");
        assert_eq!(world.firing().len(), 0, "{kind}");
    }
}

#[test]
fn late_feed_sends_one_reminder() {
    let mut world = World::new();
    assert_eq!(world.cycle(0, &failed(FailureKind::Timeout, &["token_list"])), ["firing source (timeout)"]);
    assert_eq!(world.cycle(60, &failed(FailureKind::Timeout, &["upcoming"])), NOTHING, "within the hour");
    assert_eq!(world.cycle(1, &failed(FailureKind::Timeout, &["investors"])), ["firing source (more feeds)"]);
    let summary = &world.firing()[0].annotations["summary"];
    assert!(["token_list", "upcoming", "investors"].iter().all(|feed| summary.contains(feed)), "{summary}");
    assert_eq!(world.cycle(1, &failed(FailureKind::Timeout, &["burn/a"])), NOTHING, "one reminder a day is enough");
    assert_eq!(world.cycle(24 * 60, &failed(FailureKind::Timeout, &["burn/b"])), NOTHING, "burns fail already");
    assert_eq!(world.cycle(1, &failed(FailureKind::Timeout, &["buyback/b"])), ["firing source (more feeds)"]);
}

#[test]
fn stuck_feed_does_not_hide_the_next_incident() {
    let all = ["unlock_events/a", "unlock_events/b", "unlock_events/c", "unlock_events/d"];
    let but_one = || {
        let mut outcomes = fine(&all[1..]);
        outcomes.extend(failed(FailureKind::ServerError, &all[..1]));
        outcomes
    };
    let mut world = World::new();
    assert_eq!(world.cycle(0, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.cycle(5, &but_one()), NOTHING, "the others may follow soon");
    assert_eq!(world.cycle(30, &but_one()), NOTHING);
    let mut notified = world.cycle(31, &but_one());
    notified.sort();
    assert_eq!(notified, ["firing source/unlock_events/a (server_error)", "resolved source (recovered)"]);
    assert_eq!(world.cycle(5, &but_one()), NOTHING);
    assert_eq!(world.cycle(5, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source (recovered)"]);
    assert_eq!(world.firing().len(), 0);
}

#[test]
fn single_failing_token_gets_its_own_alert() {
    let mut world = World::new();
    let mut outcomes = fine(&["unlock_events/b", "unlock_events/c"]);
    outcomes.extend(failed(FailureKind::ServerError, &["unlock_events/a"]));
    assert_eq!(world.cycle(0, &outcomes), ["firing source/unlock_events/a (server_error)"]);
    let labels = &world.firing()[0].labels;
    assert_eq!((labels["endpoint"].as_str(), labels["token"].as_str()), ("unlock_events", "a"));
    assert_eq!((labels["alertname"].as_str(), labels["severity"].as_str()), (SOURCE_TROUBLE, "warning"));
    assert_eq!(world.firing()[0].token, None, "the alert does not belong to the token's rules");
    assert_eq!(world.cycle(5, &outcomes), NOTHING);
    assert_eq!(world.cycle(5, &fine(&["unlock_events/a"])), ["resolved source/unlock_events/a (recovered)"]);
}

#[test]
fn wider_incident_takes_over_the_narrower_one() {
    let mut world = World::new();
    let mut outcomes = fine(&["unlock_events/b", "unlock_events/c"]);
    outcomes.extend(failed(FailureKind::ServerError, &["unlock_events/a"]));
    world.cycle(0, &outcomes);
    let all = ["unlock_events/a", "unlock_events/b", "unlock_events/c"];
    assert_eq!(world.cycle(5, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.firing().len(), 1, "the narrower alert ends without a notification");
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source (recovered)"], "one recovery");
}

#[test]
fn bad_responses_for_most_tokens_make_an_endpoint_alert() {
    let kind = FailureKind::BadAnswer;
    let mut world = World::new();
    let mut outcomes = fine(&["unlock_events/c", "unlock_events/d", "unlock_events/e"]);
    outcomes.extend(failed(kind, &["unlock_events/a", "unlock_events/b"]));
    assert_eq!(
        world.cycle(0, &outcomes),
        ["firing source/unlock_events/a (bad_answer)", "firing source/unlock_events/b (bad_answer)"]
    );
    let mut outcomes = fine(&["unlock_events/d", "unlock_events/e"]);
    outcomes.extend(failed(kind, &["unlock_events/a", "unlock_events/b", "unlock_events/c"]));
    assert_eq!(world.cycle(5, &outcomes), ["firing source/unlock_events (bad_answer)"]);
    assert_eq!(world.firing().len(), 1);

    // Many failures among many feeds make one alert, too.
    let mut world = World::new();
    let mut outcomes = fine(&refs(&tokens("burn", 100)));
    outcomes.extend(failed(kind, &refs(&tokens("unlock_events", 40))));
    outcomes.extend(fine(&refs(&(100..200).map(|index| format!("unlock_events/token-{index}")).collect::<Vec<_>>())));
    assert_eq!(world.cycle(0, &outcomes), ["firing source/unlock_events (bad_answer)"]);
    let summary = &world.firing()[0].annotations["summary"];
    assert!(summary.ends_with("40 feeds (unlock_events 40)"), "{summary}");
}

#[test]
fn held_response_makes_a_token_alert() {
    let mut world = World::new();
    let mut outcomes = fine(&["unlock_events/b"]);
    outcomes.push(FeedOutcome {
        feed: feed("unlock_events/a"),
        result: FeedResult::Held("12 of 14 upcoming events are missing".into()),
    });
    assert_eq!(world.cycle(0, &outcomes), ["firing source/unlock_events/a (held)"]);
    let description = &world.firing()[0].annotations["description"];
    assert!(description.starts_with("12 of 14 upcoming events are missing. "), "{description}");
    assert_eq!(world.cycle(5, &outcomes), NOTHING);
    assert_eq!(world.cycle(5, &fine(&["unlock_events/a"])).len(), 1);
}

#[test]
fn rejected_key_and_exhausted_quota_get_their_own_alerts() {
    let mut world = World::new();
    let all = ["token_list", "unlock_events/a"];
    assert_eq!(world.cycle(0, &failed(FailureKind::Unreachable, &all)), ["firing source (unreachable)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &all)), NOTHING, "a change of kind sends nothing");
    assert_eq!(world.firing()[0].labels["kind"], "timeout", "but updates the label");
    assert_eq!(world.cycle(5, &failed(FailureKind::Unauthorized, &all)), ["firing source/unauthorized (unauthorized)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::QuotaExhausted, &all)), ["firing source/quota (quota_exhausted)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &all)), NOTHING);
    assert_eq!(world.firing().len(), 1);
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source/quota (recovered)"]);
}

#[test]
fn alert_about_the_key_follows_its_cause() {
    let mut world = World::new();
    let all = ["token_list", "unlock_events/a"];
    assert_eq!(world.cycle(0, &failed(FailureKind::UnusableKey, &all)), ["firing source/unauthorized (unusable_key)"]);
    assert!(world.firing()[0].annotations["summary"].starts_with("The API key cannot be used, so no request was sent"));
    let open: Vec<Alert> = world.alerts.values().cloned().collect();
    assert_eq!(SourceState::of(&open, false), SourceState::KeyUnusable);
    assert_eq!(world.cycle(5, &failed(FailureKind::Unauthorized, &all)), NOTHING, "the same alert");
    assert_eq!(world.firing()[0].labels["kind"], "unauthorized");
    assert!(world.firing()[0].annotations["summary"].starts_with("The source rejects the API key"));
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &all)), NOTHING);
    assert_eq!(world.firing()[0].labels["kind"], "unauthorized", "a timeout proves nothing about the key");
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source/unauthorized (recovered)"]);
}

#[test]
fn suspended_feeds_keep_the_alert_open_and_open_no_other() {
    let mut world = World::new();
    let mut outcomes = failed(FailureKind::ServerError, &["unlock_events/a", "unlock_events/b", "unlock_events/c"]);
    outcomes.extend(failed(FailureKind::Suspended, &refs(&tokens("unlock_events", 50))));
    assert_eq!(world.cycle(0, &outcomes), ["firing source (server_error)"]);
    assert_eq!(world.firing()[0].members.len(), 3);
    assert_eq!(world.cycle(5, &failed(FailureKind::Suspended, &refs(&tokens("burn", 50)))), NOTHING);
    let mut outcomes = fine(&["unlock_events/a", "unlock_events/b", "unlock_events/c"]);
    outcomes.extend(failed(FailureKind::Suspended, &["unlock_events/token-1"]));
    assert_eq!(world.cycle(5, &outcomes), NOTHING, "stays open while a feed is suspended");
    assert_eq!(world.firing()[0].labels["kind"], "server_error");
    assert_eq!(world.cycle(5, &fine(&["unlock_events/token-1"])), ["resolved source (recovered)"]);

    let mut world = World::new();
    let notified = world.cycle(0, &failed(FailureKind::Suspended, &["token_list", "burn/a"]));
    assert_eq!(notified, ["firing source (suspended)"], "no other alert explains the suspension");
}

#[test]
fn alert_ends_when_its_feeds_are_no_longer_watched() {
    let mut world = World::new();
    let mut outcomes = fine(&["burn/b"]);
    outcomes.extend(failed(FailureKind::NotFound, &["burn/a"]));
    assert_eq!(world.cycle(0, &outcomes), ["firing source/burn/a (not_found)"]);
    world.unwatched.push(feed("burn/a"));
    assert_eq!(world.cycle(5, &fine(&["burn/b"])), ["resolved source/burn/a (unwatched)"]);
    let alert = world.alerts.values().next().expect("an alert");
    assert_eq!(alert.resolution, Some(Resolution::Unwatched));
    assert_eq!(alert.annotations["summary"], "No longer watched: burn of a");
}

#[test]
fn recovery_states_the_duration() {
    let mut world = World::new();
    world.cycle(0, &failed(FailureKind::Unreachable, &["token_list"]));
    world.cycle(70, &fine(&["token_list"]));
    let alert = world.alerts.values().next().expect("an alert");
    assert_eq!(alert.annotations["summary"], "The source responds again after 70 min (unreachable): token_list");
    assert!(alert.annotations["description"].contains("No known data was lost"), "{:?}", alert.annotations);
    assert_eq!(
        world.cycle(5, &failed(FailureKind::Unreachable, &["token_list"])).len(),
        1,
        "the next failure starts a new episode"
    );
    assert_eq!(world.firing()[0].episode, 2);
}

#[test]
fn rule_rewords_and_routes_but_keeps_the_kind() {
    let mut world = World::new();
    let rule = Fake { id: "Down".into(), receivers: vec!["night".into()], holds: |facts| facts.kind == "timeout" };
    world.rules = vec![Fake { id: "Other".into(), holds: |_| false, ..rule.clone() }, rule];
    assert_eq!(world.cycle(0, &failed(FailureKind::Timeout, &["token_list"])), ["firing source (timeout)"]);
    let notification = world.notified.values().next().expect("a notification").clone();
    assert_eq!(notification.receivers, ["night".into()]);
    assert_eq!((notification.body.rule.as_str(), notification.body.labels["kind"].as_str()), ("Down", "timeout"));
    assert_eq!(notification.body.labels["severity"], "critical");
    assert_eq!(notification.body.annotations["summary"], "OH NO: The source does not respond in time: token_list");
    world.rules.clear();
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &["token_list"])), NOTHING, "the same alert without the rule");
    assert_eq!(world.cycle(5, &fine(&["token_list"])), NOTHING, "the notified receiver has `send_resolved = false`");
    assert!(world.firing().is_empty());
}

#[test]
fn external_text_is_one_bounded_line() {
    let mut world = World::new();
    let message = format!("bad\r\n\u{1b}[31m\u{202e}{}", "x".repeat(10_000));
    let failure = PollFailure { kind: FailureKind::BadAnswer, message, retry_at: None };
    world.cycle(0, &[FeedOutcome { feed: feed("token_list"), result: FeedResult::Failed(failure) }]);
    let description = &world.firing()[0].annotations["description"];
    assert!(description.chars().count() < 800);
    assert!(!description.contains(|c: char| c.is_control() || c == '\u{202e}'), "{description}");
}

#[test]
fn feed_text_round_trips() {
    for text in ["token_list", "unlock_events/arbitrum", "burn/odd/slug"] {
        assert_eq!(feed(text).to_string(), text);
    }
    assert_eq!(feed_of("nonsense/a"), None);
    for kind in IncidentKind::all() {
        assert_eq!(IncidentKind::parse(kind.as_str()), Some(kind));
    }
    for place in [
        IncidentScope::Source,
        IncidentScope::Quota,
        IncidentScope::Unauthorized,
        IncidentScope::Endpoint(Endpoint::Burn),
        IncidentScope::Feed(feed("burn/quota")),
    ] {
        assert_eq!(IncidentScope::of_subject(&place.subject()), Some(place));
    }
    assert_eq!(IncidentScope::of_subject("receiver/source"), None);
}

fn context<'a>(rules: &'a RuleSet, routes: &'a RouteTree, now: &str) -> EvaluationContext<'a> {
    EvaluationContext {
        rules,
        routes,
        now: wire::parse_timestamp(now).expect("a timestamp"),
        keeps_removed: false,
        stale_price: TimeDelta::MAX,
    }
}

#[test]
fn receiver_outage_goes_to_other_receivers_without_a_loop() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    let since = at.now - TimeDelta::minutes(20);
    let (alert, notification) = receiver_dead(&"ops".into(), "connection refused", 3, since, 4, &at);
    assert_eq!((alert.subject.as_str(), alert.episode, alert.token.as_ref()), ("receiver/ops", 5, None));
    assert_eq!(notification.receivers, ["desk".into()]);
    assert_eq!(alert.annotations["summary"], "Receiver ops has accepted no messages for 20 min: 3 deliveries are waiting");

    let dead = dead_letter(DeliveryId(7), &"ops".into(), std::slice::from_ref(&notification), "410 Gone", &at);
    assert_eq!(dead, None, "the failure of an alert about a receiver is not reported");
    let mut event = notification.clone();
    event.kind = NotificationKind::Firing;
    let (alert, announcement) = dead_letter(DeliveryId(7), &"ops".into(), &[event], "410 Gone", &at).expect("announced");
    assert_eq!((alert.subject.as_str(), alert.state), ("dead/7", AlertState::Event));
    assert_eq!(announcement.receivers, ["desk".into()]);
    assert!(announcement.body.annotations["description"].contains("410 Gone"));
    assert_eq!(dead_letter(DeliveryId(8), &"desk".into(), &[announcement], "timeout", &at), None);

    let later = context(&rules, &routes, "2026-03-01T02:00:00Z");
    let (alert, _) = receiver_dead(&"ops".into(), "connection refused", 3, since, 4, &at);
    let (alert, notification) = recovered(&alert, &later);
    assert_eq!((alert.state, notification.body.status.as_str()), (AlertState::Resolved, "resolved"));
    assert_eq!(notification.receivers, ["desk".into()]);
    assert_eq!(alert.annotations["summary"], "Receiver ops accepts messages again after 80 min");
}

#[test]
fn rule_that_names_the_dead_receiver_reaches_others() {
    fn text(receiver: &ReceiverName) -> IncidentFacts<'_> {
        IncidentFacts { kind: RECEIVER, receiver: Some(receiver), count: 1, ..IncidentFacts::default() }
    }
    let notified = |named: &[&str], dead: &str| {
        let receivers = named.iter().map(|name| ReceiverName::from(*name)).collect();
        let rules = [Fake { id: "Dead".into(), receivers, holds: |facts| facts.kind == RECEIVER }];
        let (routes, dead) = (routes(), ReceiverName::from(dead));
        let writer = IncidentWriter { rules: &rules, routes: &routes, now: Timestamp::UNIX_EPOCH };
        let mut alert = blank("x".into(), "x", receiver_subject(&dead), AlertState::Firing, Timestamp::UNIX_EPOCH);
        let notified = writer.write_text(&mut Transitions::default(), &mut alert, &text(&dead), None, Some(&dead));
        notified.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(notified(&["night"], "ops"), ["night"]);
    assert_eq!(notified(&["ops", "night"], "ops"), ["night"], "not the receiver that is down");
    assert_eq!(notified(&["ops"], "ops"), ["desk"], "the fallback, if the rule names no other receiver");
    assert_eq!(notified(&[], "desk"), ["ops"], "its labels would route it to the receiver that is down");
}

#[test]
fn outage_of_the_only_receiver_is_stored_without_notification() {
    let only = config::ReceiverSettings { name: "ops".into(), ..Default::default() };
    let routes = RouteTree::build(&config::Route::default(), &[only]).expect("routes");
    let rules = RuleSet::default();
    let at = context(&rules, &routes, "2026-03-01");
    let (alert, notification) = receiver_dead(&"ops".into(), "refused", 1, at.now, 0, &at);
    assert_eq!((alert.state, notification.receivers.len()), (AlertState::Firing, 0));
}

#[test]
fn daemon_incidents_are_sent_once_and_resolve() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    for (alert, notification) in [
        reload_failed(2, "rules/a.toml:3:1: unknown key", &["desk".to_owned()], 0, &at),
        store_damaged("database disk image is malformed", 0, &at),
        store_full("database or disk is full", 0, &at),
    ] {
        assert_eq!((alert.state, alert.episode, notification.kind), (AlertState::Firing, 1, NotificationKind::Source));
        assert_eq!(notification.receivers, ["ops".into(), "desk".into()]);
        assert_eq!(notification.body.status, AlertStatus::Firing);
        let (ended, end) = recovered(&alert, &at);
        assert_eq!((ended.id, end.alert, end.body.status.as_str()), (alert.id.clone(), alert.id, "resolved"));
        assert_ne!(end.id, notification.id);
    }
    let (one, first) = template_failed(&"Big".into(), Some("alice"), "undefined value", &at);
    let later = context(&rules, &routes, "2026-03-01T23:00:00Z");
    let (_, second) = template_failed(&"Big".into(), Some("alice"), "undefined value", &later);
    assert_eq!((one.state, one.labels["owner"].as_str()), (AlertState::Event, "alice"));
    assert_eq!(first.id, second.id, "once a day");
    let tomorrow = context(&rules, &routes, "2026-03-02T01:00:00Z");
    assert_ne!(template_failed(&"Big".into(), None, "undefined value", &tomorrow).1.id, first.id);
}

#[test]
fn lasting_incidents_have_a_known_kind() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    let alerts = [
        receiver_dead(&"ops".into(), "refused", 1, at.now, 0, &at).0,
        reload_failed(2, "unknown key", &[], 0, &at).0,
        store_damaged("malformed", 0, &at).0,
        store_full("full", 0, &at).0,
        store_unreachable("one:7", "connection refused", at.now, &at).0,
        instances_differ("one:7", &["two:8".to_owned()], 0, &at).0,
        clock_differs(TimeDelta::hours(1), true, 0, &at).0,
    ];
    let kinds: Vec<_> = alerts.iter().map(incident_kind).collect();
    assert_eq!(kinds, ["receiver", "reload", "store_damaged", "store_full", "store_unreachable", "instances", "clock"]);
    assert!(IncidentKind::all().all(|kind| incident_kinds().any(|known| known == kind.as_str())));
    let mut strange = alerts[0].clone();
    strange.labels.insert("kind".to_owned(), "from a later version".to_owned());
    assert_eq!(incident_kind(&strange), "other");
}
