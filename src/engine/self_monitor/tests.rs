use std::collections::HashSet;

use proptest::prelude::*;

use super::{kind::IncidentKind, own::RECEIVER, scope::IncidentScope, texts::LONGEST_TEXT, writer::IncidentText, *};
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
            hold: TimeDelta::zero(),
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
    fn holds(&self, scope: &Scope<'_>) -> Truth {
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

/// The source over many cycles, with the alerts as the store keeps them.
struct World {
    rules: Vec<Fake>,
    routes: RouteTree,
    unwatched: Vec<FeedId>,
    alerts: BTreeMap<AlertId, Alert>,
    told: BTreeMap<NotificationId, Notification>,
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
            told: BTreeMap::new(),
            now: wire::parse_timestamp("2026-03-01").expect("a timestamp"),
        }
    }

    /// A cycle `minutes` after the last one; what is told now: `firing source (timeout)`.
    fn cycle(&mut self, minutes: i64, news: &[FeedNews]) -> Vec<String> {
        self.now += TimeDelta::minutes(minutes);
        let open: Vec<Alert> = self.alerts.values().filter(|alert| alert.state == AlertState::Firing).cloned().collect();
        let cycle = CycleNews { news, open: &open, is_watched: &|feed| !self.unwatched.contains(feed), token: &|_| None };
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
        let mut told = Vec::new();
        for notice in evaluation.notifications {
            assert_eq!(notice.kind, NotificationKind::Source);
            assert!(!self.told.contains_key(&notice.id), "told twice: {notice:?}");
            let alert = &self.alerts[&notice.alert];
            told.push(format!("{} {} ({})", notice.body.status, alert.subject, notice.body.reason));
            self.told.insert(notice.id.clone(), notice);
        }
        told
    }

    fn firing(&self) -> Vec<&Alert> {
        self.alerts.values().filter(|alert| alert.state == AlertState::Firing).collect()
    }
}

const NOTHING: [&str; 0] = [];

fn feed(text: &str) -> FeedId {
    feed_of(text).unwrap_or_else(|| panic!("{text} is no feed"))
}

fn fine(feeds: &[&str]) -> Vec<FeedNews> {
    feeds.iter().map(|text| FeedNews { feed: feed(text), result: FeedResult::Fine }).collect()
}

fn failed(kind: FailureKind, feeds: &[&str]) -> Vec<FeedNews> {
    let failure = PollFailure { kind, message: format!("GET /v4/x: {kind}"), retry_at: None };
    feeds.iter().map(|text| FeedNews { feed: feed(text), result: FeedResult::Failed(failure.clone()) }).collect()
}

fn tokens(endpoint: &str, count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{endpoint}/token-{index}")).collect()
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

const EVERY_FAULT: [FailureKind; 14] = [
    FailureKind::Unreachable,
    FailureKind::Timeout,
    FailureKind::ServerError,
    FailureKind::NoKey,
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
];

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
            let told = world.cycle(1, &failed(kind, &names));
            assert!(told.len() == 1 && told[0].starts_with("firing source"), "{kind} {names:?}: {told:?}");
            for _ in 0..200 {
                assert_eq!(world.cycle(7, &failed(kind, &names)), NOTHING, "{kind}");
            }
            let told = world.cycle(1, &fine(&names));
            assert!(told.len() == 1 && told[0].starts_with("resolved source"), "{kind} {names:?}: {told:?}");
            assert_eq!(world.cycle(1, &fine(&names)), NOTHING);
            assert_eq!(world.alerts.len(), 1, "{kind} {names:?}");
        }
    }
}

#[test]
fn endpoints_that_fail_in_cycles_of_their_own_are_one_alert() {
    for kind in EVERY_FAULT {
        let mut world = World::new();
        let unlocks = tokens("unlock_events", 5);
        assert_eq!(world.cycle(0, &failed(kind, &["token_list"])).len(), 1, "{kind}");
        assert_eq!(world.cycle(5, &failed(kind, &["upcoming"])), NOTHING, "{kind}");
        assert_eq!(world.cycle(5, &failed(kind, &refs(&unlocks))), NOTHING, "{kind}");
        assert_eq!(world.firing()[0].members.len(), 7);
        if matches!(kind, FailureKind::NoKey | FailureKind::Unauthorized | FailureKind::QuotaExhausted) {
            assert_eq!(world.cycle(300, &fine(&["token_list"])).len(), 1, "one answer shows that the source takes the key");
            continue;
        }
        assert_eq!(world.cycle(300, &fine(&["token_list"])), NOTHING, "the others have not answered yet");
        assert_eq!(world.cycle(5, &fine(&["upcoming"])), NOTHING);
        assert_eq!(world.cycle(5, &fine(&refs(&unlocks))).len(), 1, "{kind}");
        assert_eq!(world.firing().len(), 0);
    }
}

#[test]
fn what_concerned_all_ends_with_one_good_cycle_though_few_are_asked() {
    for kind in [FailureKind::QuotaExhausted, FailureKind::Unauthorized, FailureKind::Timeout, FailureKind::RateLimited] {
        let mut world = World::new();
        let unlocks = tokens("unlock_events", 50);
        assert_eq!(world.cycle(0, &failed(kind, &refs(&unlocks))).len(), 1, "{kind}");
        assert_eq!(world.cycle(300, &fine(&refs(&unlocks[..2]))).len(), 1, "{kind}");
        assert_eq!(world.firing().len(), 0, "{kind}");
    }
}

#[test]
fn a_feed_that_joins_late_is_told_once() {
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
fn a_feed_that_never_recovers_does_not_hide_the_next_trouble() {
    let all = ["unlock_events/a", "unlock_events/b", "unlock_events/c", "unlock_events/d"];
    let but_one = || {
        let mut news = fine(&all[1..]);
        news.extend(failed(FailureKind::ServerError, &all[..1]));
        news
    };
    let mut world = World::new();
    assert_eq!(world.cycle(0, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.cycle(5, &but_one()), NOTHING, "the others may follow soon");
    assert_eq!(world.cycle(30, &but_one()), NOTHING);
    let mut told = world.cycle(31, &but_one());
    told.sort();
    assert_eq!(told, ["firing source/unlock_events/a (server_error)", "resolved source (recovered)"]);
    assert_eq!(world.cycle(5, &but_one()), NOTHING);
    assert_eq!(world.cycle(5, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source (recovered)"]);
    assert_eq!(world.firing().len(), 0);
}

#[test]
fn one_token_that_fails_while_others_answer_is_told_of_that_token() {
    let mut world = World::new();
    let mut news = fine(&["unlock_events/b", "unlock_events/c"]);
    news.extend(failed(FailureKind::ServerError, &["unlock_events/a"]));
    assert_eq!(world.cycle(0, &news), ["firing source/unlock_events/a (server_error)"]);
    let labels = &world.firing()[0].labels;
    assert_eq!((labels["endpoint"].as_str(), labels["token"].as_str()), ("unlock_events", "a"));
    assert_eq!((labels["alertname"].as_str(), labels["severity"].as_str()), (SOURCE_TROUBLE, "warning"));
    assert_eq!(world.firing()[0].token, None, "it is no alert of the token's rules");
    assert_eq!(world.cycle(5, &news), NOTHING);
    assert_eq!(world.cycle(5, &fine(&["unlock_events/a"])), ["resolved source/unlock_events/a (recovered)"]);
}

#[test]
fn a_wider_trouble_takes_in_the_narrower_one() {
    let mut world = World::new();
    let mut news = fine(&["unlock_events/b", "unlock_events/c"]);
    news.extend(failed(FailureKind::ServerError, &["unlock_events/a"]));
    world.cycle(0, &news);
    let all = ["unlock_events/a", "unlock_events/b", "unlock_events/c"];
    assert_eq!(world.cycle(5, &failed(FailureKind::ServerError, &all)), ["firing source (server_error)"]);
    assert_eq!(world.firing().len(), 1, "the narrower one is over, in silence");
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source (recovered)"], "one recovery");
}

#[test]
fn bad_answers_for_most_of_an_endpoint_are_told_of_the_endpoint() {
    let kind = FailureKind::BadAnswer;
    let mut world = World::new();
    let mut news = fine(&["unlock_events/c", "unlock_events/d", "unlock_events/e"]);
    news.extend(failed(kind, &["unlock_events/a", "unlock_events/b"]));
    assert_eq!(
        world.cycle(0, &news),
        ["firing source/unlock_events/a (bad_answer)", "firing source/unlock_events/b (bad_answer)"]
    );
    let mut news = fine(&["unlock_events/d", "unlock_events/e"]);
    news.extend(failed(kind, &["unlock_events/a", "unlock_events/b", "unlock_events/c"]));
    assert_eq!(world.cycle(5, &news), ["firing source/unlock_events (bad_answer)"]);
    assert_eq!(world.firing().len(), 1);

    // Many of a great many: no flood either.
    let mut world = World::new();
    let mut news = fine(&refs(&tokens("burn", 100)));
    news.extend(failed(kind, &refs(&tokens("unlock_events", 40))));
    news.extend(fine(&refs(&(100..200).map(|index| format!("unlock_events/token-{index}")).collect::<Vec<_>>())));
    assert_eq!(world.cycle(0, &news), ["firing source/unlock_events (bad_answer)"]);
    let summary = &world.firing()[0].annotations["summary"];
    assert!(summary.ends_with("40 feeds (unlock_events 40)"), "{summary}");
}

#[test]
fn a_held_answer_is_told_of_its_token() {
    let mut world = World::new();
    let mut news = fine(&["unlock_events/b"]);
    news.push(FeedNews { feed: feed("unlock_events/a"), result: FeedResult::Held("12 of 14 coming events are gone".into()) });
    assert_eq!(world.cycle(0, &news), ["firing source/unlock_events/a (held)"]);
    let description = &world.firing()[0].annotations["description"];
    assert!(description.starts_with("12 of 14 coming events are gone. "), "{description}");
    assert_eq!(world.cycle(5, &news), NOTHING);
    assert_eq!(world.cycle(5, &fine(&["unlock_events/a"])).len(), 1);
}

#[test]
fn a_refused_key_and_a_spent_quota_are_told_anew() {
    let mut world = World::new();
    let all = ["token_list", "unlock_events/a"];
    assert_eq!(world.cycle(0, &failed(FailureKind::Unreachable, &all)), ["firing source (unreachable)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &all)), NOTHING, "another kind is no news");
    assert_eq!(world.firing()[0].labels["kind"], "timeout", "but it is called by it");
    assert_eq!(world.cycle(5, &failed(FailureKind::Unauthorized, &all)), ["firing source/unauthorized (unauthorized)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::QuotaExhausted, &all)), ["firing source/quota (quota_exhausted)"]);
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &all)), NOTHING);
    assert_eq!(world.firing().len(), 1);
    assert_eq!(world.cycle(5, &fine(&all)), ["resolved source/quota (recovered)"]);
}

#[test]
fn what_was_not_asked_keeps_an_alert_open_and_opens_none_beside_it() {
    let mut world = World::new();
    let mut news = failed(FailureKind::ServerError, &["unlock_events/a", "unlock_events/b", "unlock_events/c"]);
    news.extend(failed(FailureKind::Suspended, &refs(&tokens("unlock_events", 50))));
    assert_eq!(world.cycle(0, &news), ["firing source (server_error)"]);
    assert_eq!(world.firing()[0].members.len(), 3);
    assert_eq!(world.cycle(5, &failed(FailureKind::Suspended, &refs(&tokens("burn", 50)))), NOTHING);
    let mut news = fine(&["unlock_events/a", "unlock_events/b", "unlock_events/c"]);
    news.extend(failed(FailureKind::Suspended, &["unlock_events/token-1"]));
    assert_eq!(world.cycle(5, &news), NOTHING, "not while anything is held back");
    assert_eq!(world.firing()[0].labels["kind"], "server_error");
    assert_eq!(world.cycle(5, &fine(&["unlock_events/token-1"])), ["resolved source (recovered)"]);

    let mut world = World::new();
    let told = world.cycle(0, &failed(FailureKind::Suspended, &["token_list", "burn/a"]));
    assert_eq!(told, ["firing source (suspended)"], "with nothing else that says why");
}

#[test]
fn an_alert_ends_when_its_feeds_are_no_longer_watched() {
    let mut world = World::new();
    let mut news = fine(&["burn/b"]);
    news.extend(failed(FailureKind::NotFound, &["burn/a"]));
    assert_eq!(world.cycle(0, &news), ["firing source/burn/a (not_found)"]);
    world.unwatched.push(feed("burn/a"));
    assert_eq!(world.cycle(5, &fine(&["burn/b"])), ["resolved source/burn/a (not watched any more)"]);
    let alert = world.alerts.values().next().expect("an alert");
    assert_eq!(alert.resolution, Some(Resolution::Unwatched));
    assert_eq!(alert.annotations["summary"], "No longer watched: burn of a");
}

#[test]
fn a_recovery_says_how_long_it_lasted() {
    let mut world = World::new();
    world.cycle(0, &failed(FailureKind::Unreachable, &["token_list"]));
    world.cycle(70, &fine(&["token_list"]));
    let alert = world.alerts.values().next().expect("an alert");
    assert_eq!(alert.annotations["summary"], "The source answers again after 1 h 10 min (unreachable): token_list");
    assert!(alert.annotations["description"].contains("Nothing known was lost"), "{:?}", alert.annotations);
    assert_eq!(world.cycle(5, &failed(FailureKind::Unreachable, &["token_list"])).len(), 1, "another time is another episode");
    assert_eq!(world.firing()[0].episode, 2);
}

#[test]
fn a_rule_may_reword_and_route_but_never_hide_the_kind() {
    let mut world = World::new();
    let rule = Fake { id: "Down".into(), receivers: vec!["night".into()], holds: |facts| facts.kind == "timeout" };
    world.rules = vec![Fake { id: "Other".into(), holds: |_| false, ..rule.clone() }, rule];
    assert_eq!(world.cycle(0, &failed(FailureKind::Timeout, &["token_list"])), ["firing source (timeout)"]);
    let notice = world.told.values().next().expect("a notice").clone();
    assert_eq!(notice.receivers, ["night".into()]);
    assert_eq!((notice.body.rule.as_str(), notice.body.labels["kind"].as_str()), ("Down", "timeout"));
    assert_eq!(notice.body.labels["severity"], "critical");
    assert_eq!(notice.body.annotations["summary"], "OH NO: The source does not answer in time: token_list");
    world.rules.clear();
    assert_eq!(world.cycle(5, &failed(FailureKind::Timeout, &["token_list"])), NOTHING, "the same alert without the rule");
    assert_eq!(world.cycle(5, &fine(&["token_list"])), NOTHING, "the one who heard wants no ends");
    assert!(world.firing().is_empty());
}

#[test]
fn text_from_outside_is_one_bounded_line() {
    let mut world = World::new();
    let message = format!("bad\r\n\u{1b}[31m\u{202e}{}", "x".repeat(10_000));
    let failure = PollFailure { kind: FailureKind::BadAnswer, message, retry_at: None };
    world.cycle(0, &[FeedNews { feed: feed("token_list"), result: FeedResult::Failed(failure) }]);
    let description = &world.firing()[0].annotations["description"];
    assert!(description.chars().count() < LONGEST_TEXT + 300);
    assert!(!description.contains(|c: char| c.is_control() || c == '\u{202e}'), "{description}");
}

#[test]
fn a_feed_is_read_back_as_it_was_written() {
    for text in ["token_list", "unlock_events/arbitrum", "burn/odd/slug"] {
        assert_eq!(feed(text).to_string(), text);
    }
    assert_eq!(feed_of("nonsense/a"), None);
    for kind in IncidentKind::ALL {
        assert_eq!(IncidentKind::of_word(kind.as_str()), Some(kind));
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
    EvaluationContext { rules, routes, now: wire::parse_timestamp(now).expect("a timestamp") }
}

#[test]
fn a_dead_receiver_is_told_to_the_others_and_never_in_a_loop() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    let since = at.now - TimeDelta::minutes(20);
    let (alert, notice) = receiver_dead(&"ops".into(), "connection refused", 3, since, 4, &at);
    assert_eq!((alert.subject.as_str(), alert.episode, alert.token.as_ref()), ("receiver/ops", 5, None));
    assert_eq!(notice.receivers, ["desk".into()]);
    assert_eq!(alert.annotations["summary"], "Receiver ops accepts nothing for 20 min: 3 deliveries wait");

    let dead = dead_letter(DeliveryId(7), &"ops".into(), std::slice::from_ref(&notice), "410 Gone", &at);
    assert_eq!(dead, None, "what tells of a receiver is not announced when it dies");
    let mut event = notice.clone();
    event.kind = NotificationKind::Firing;
    let (alert, announcement) = dead_letter(DeliveryId(7), &"ops".into(), &[event], "410 Gone", &at).expect("announced");
    assert_eq!((alert.subject.as_str(), alert.state), ("dead/7", AlertState::Event));
    assert_eq!(announcement.receivers, ["desk".into()]);
    assert!(announcement.body.annotations["description"].contains("410 Gone"));
    assert_eq!(dead_letter(DeliveryId(8), &"desk".into(), &[announcement], "timeout", &at), None);

    let later = context(&rules, &routes, "2026-03-01T02:00:00Z");
    let (alert, _) = receiver_dead(&"ops".into(), "connection refused", 3, since, 4, &at);
    let (alert, notice) = recovered(&alert, &later);
    assert_eq!((alert.state, notice.body.status.as_str()), (AlertState::Resolved, "resolved"));
    assert_eq!(notice.receivers, ["desk".into()]);
    assert_eq!(alert.annotations["summary"], "Receiver ops accepts deliveries again after 1 h 20 min");
}

#[test]
fn a_rule_that_names_the_dead_receiver_reaches_the_others() {
    fn text(receiver: &ReceiverName) -> IncidentText<'_> {
        IncidentText { kind: RECEIVER, receiver: Some(receiver), count: 1, ..IncidentText::default() }
    }
    let told = |named: &[&str], dead: &str| {
        let receivers = named.iter().map(|name| ReceiverName::from(*name)).collect();
        let rules = [Fake { id: "Dead".into(), receivers, holds: |facts| facts.kind == RECEIVER }];
        let (routes, dead) = (routes(), ReceiverName::from(dead));
        let writer = IncidentWriter { rules: &rules, routes: &routes, now: Timestamp::UNIX_EPOCH };
        let mut alert = blank("x".into(), "x", receiver_subject(&dead), AlertState::Firing, Timestamp::UNIX_EPOCH);
        let told = writer.word(&mut Transitions::default(), &mut alert, &text(&dead), None, Some(&dead));
        told.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&["night"], "ops"), ["night"]);
    assert_eq!(told(&["ops", "night"], "ops"), ["night"], "not the dead one");
    assert_eq!(told(&["ops"], "ops"), ["desk"], "the fallback, where the rule names nobody else");
    assert_eq!(told(&[], "desk"), ["ops"], "its labels would lead to the dead one");
}

#[test]
fn with_one_receiver_its_death_is_recorded_and_told_to_nobody() {
    let only = config::ReceiverSettings { name: "ops".into(), ..Default::default() };
    let routes = RouteTree::build(&config::Route::default(), &[only]).expect("routes");
    let rules = RuleSet::default();
    let at = context(&rules, &routes, "2026-03-01");
    let (alert, notice) = receiver_dead(&"ops".into(), "refused", 1, at.now, 0, &at);
    assert_eq!((alert.state, notice.receivers.len()), (AlertState::Firing, 0));
}

#[test]
fn incidents_of_this_program_are_told_once_each_and_end() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    for (alert, notice) in [
        reload_failed(2, "rules/a.toml:3:1: unknown key", &["desk".to_owned()], 0, &at),
        store_damaged("database disk image is malformed", 0, &at),
        store_full("database or disk is full", 0, &at),
    ] {
        assert_eq!((alert.state, alert.episode, notice.kind), (AlertState::Firing, 1, NotificationKind::Source));
        assert_eq!(notice.receivers, ["ops".into(), "desk".into()]);
        assert_eq!(notice.body.status, AlertStatus::Firing);
        let (ended, end) = recovered(&alert, &at);
        assert_eq!((ended.id, end.alert, end.body.status.as_str()), (alert.id.clone(), alert.id, "resolved"));
        assert_ne!(end.id, notice.id);
    }
    let (one, first) = template_failed(&"Big".into(), Some("alice"), "undefined value", &at);
    let later = context(&rules, &routes, "2026-03-01T23:00:00Z");
    let (_, second) = template_failed(&"Big".into(), Some("alice"), "undefined value", &later);
    assert_eq!((one.state, one.labels["owner"].as_str()), (AlertState::Event, "alice"));
    assert_eq!(first.id, second.id, "once a day");
    let tomorrow = context(&rules, &routes, "2026-03-02T01:00:00Z");
    assert_ne!(template_failed(&"Big".into(), None, "undefined value", &tomorrow).1.id, first.id);
}

/// What one cycle brings for some of the feeds: none (fine) or a kind of failure.
fn news() -> impl Strategy<Value = Vec<FeedNews>> {
    let names =
        ["token_list", "upcoming", "unlock_events/a", "unlock_events/b", "unlock_events/c", "burn/a", "burn/b", "investors"];
    let result = prop_oneof![
        3 => Just(None),
        4 => (0..EVERY_FAULT.len()).prop_map(|index| Some(EVERY_FAULT[index])),
        1 => Just(Some(FailureKind::Suspended)),
    ];
    prop::collection::vec((0..names.len(), result), 0..12).prop_map(move |rows| {
        let one = |(index, kind): (usize, Option<FailureKind>)| match kind {
            None => fine(&[names[index]]),
            Some(kind) => failed(kind, &[names[index]]),
        };
        rows.into_iter().flat_map(one).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_failing_feed_is_in_one_open_alert_until_it_answers(cycles in prop::collection::vec((news(), 0_i64..90), 1..12)) {
        let mut world = World::new();
        let mut ailing: HashSet<String> = HashSet::new();
        let mut everything: HashSet<String> = HashSet::new();
        for (news, minutes) in cycles {
            let before: Vec<Alert> = world.firing().into_iter().cloned().collect();
            // Notification ids are unique over the whole run: `commit` fails on one that is told twice.
            world.cycle(minutes, &news);
            let mut results: BTreeMap<String, (bool, bool)> = BTreeMap::new();
            for item in &news {
                let (is_failing, is_asked) = results.entry(item.feed.to_string()).or_default();
                if let FeedResult::Failed(failure) = &item.result {
                    *is_failing = true;
                    *is_asked |= failure.kind != FailureKind::Suspended;
                }
            }
            for (feed, (is_failing, is_asked)) in results {
                if !is_failing {
                    ailing.remove(&feed);
                } else if is_asked {
                    ailing.insert(feed.clone());
                }
                everything.insert(feed);
            }
            // What concerned all is over once some have answered, the others unasked.
            let feeds = FeedsByResult::of(&news);
            let answering = feeds.answering();
            ailing.retain(|name| {
                let wide = before.iter().find(|alert| alert.members.contains(name)).and_then(|alert| IncidentScope::of_subject(&alert.subject));
                let is_over = match wide {
                    Some(IncidentScope::Quota | IncidentScope::Unauthorized) => !feeds.fine.is_empty(),
                    Some(IncidentScope::Source) => answering.contains(&feed(name).endpoint),
                    _ => false,
                };
                !is_over || feeds.failing.contains_key(&feed(name))
            });
            let mut members: Vec<String> = world.firing().iter().flat_map(|alert| alert.members.clone()).collect();
            members.sort();
            let held = members.len();
            members.dedup();
            prop_assert_eq!(held, members.len(), "a feed in two alerts: {:?}", members);
            for feed in &ailing {
                prop_assert!(members.contains(feed), "{} fails and no alert says so", feed);
            }
            for alert in world.firing() {
                prop_assert_eq!(&alert.labels["alertname"], SOURCE_TROUBLE);
                prop_assert!(!alert.told.is_empty());
            }
        }
        let all: Vec<&str> = everything.iter().map(String::as_str).collect();
        world.cycle(1, &fine(&all));
        prop_assert_eq!(world.firing(), Vec::<&Alert>::new(), "all have answered");
        world.cycle(1, &fine(&all));
    }
}

#[test]
fn whatever_lasts_has_a_kind_that_is_counted() {
    let (rules, routes) = (RuleSet::default(), routes());
    let at = context(&rules, &routes, "2026-03-01T01:00:00Z");
    let alerts = [
        receiver_dead(&"ops".into(), "refused", 1, at.now, 0, &at).0,
        reload_failed(2, "unknown key", &[], 0, &at).0,
        store_damaged("malformed", 0, &at).0,
        store_full("full", 0, &at).0,
        clock_differs(TimeDelta::hours(1), true, 0, &at).0,
    ];
    let kinds: Vec<_> = alerts.iter().map(incident_kind).collect();
    assert_eq!(kinds, ["receiver", "reload", "store_damaged", "store_full", "clock"]);
    assert!(IncidentKind::ALL.iter().all(|kind| incident_kinds().any(|known| known == kind.as_str())));
    let mut strange = alerts[0].clone();
    strange.labels.insert("kind".to_owned(), "of a later version".to_owned());
    assert_eq!(incident_kind(&strange), "other");
}
