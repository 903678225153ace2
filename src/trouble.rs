//! Trouble with the source, a receiver or this program, told as alerts of its own.
//!
//! [`watch`] takes what came of each feed in a cycle and the source alerts that are open, and answers with a draft as
//! [`crate::evaluate`] does. One cause is told once: whatever says something of the source as a whole becomes the alert `source`;
//! a key that is refused and credits that are spent have alerts of their own, since each asks for something else to be done; bad
//! answers are told of the endpoint where most of it is bad, else of the token. An alert remembers which feeds fail
//! ([`Alert::members`]) and ends when each of them has answered since, or is no longer watched. Feeds that join within
//! [`FOLD_WITHIN`] do so in silence; feeds that join later are told as a reminder, at most once a day. Where all of the source is
//! in trouble, one more feed of an endpoint that fails already is no news at all: which of them are asked before the client gives up
//! for a while is chance.
//!
//! Source alerts go out without any rule. The first rule `on = "source"` that holds for one may reword, relabel and route it; the
//! alert stays the same alert when rules change, and the label `kind` stays what it is.
//!
//! The other functions make one alert each: a receiver that is dead, a dead letter, rules that could not be reloaded, a database
//! that is damaged or full, a template that failed. Trouble with a receiver goes to the fallback, never to the receiver itself, and
//! what told of such trouble is not announced again when it dies: there is no loop. Pure: the time comes in as `now`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::{
    alert::{Alert, AlertBody, AlertState, Labels, Notice, NoticeKind, Resolution, SOURCE_TROUBLE, alert_id, notice_id},
    api::{Failure, FailureKind},
    evaluate::{Context, Draft, Judge, Telling, blank, plain_body, token_body},
    route::RouteTree,
    rules::{On, Scope, SourceFacts, Truth},
    supply::{DeliveryId, Endpoint, FeedId, ReceiverName, RuleId, Timestamp, Token, TokenId},
};

/// How long feeds join an open alert in silence.
pub const FOLD_WITHIN: TimeDelta = TimeDelta::hours(1);

/// So many feeds may fail by themselves, while at least as many others answer, before the source as a whole is blamed.
const FEW_FEEDS: usize = 2;

/// So many tokens of an endpoint get an alert each from one cycle; more are told as one.
const MOST_ALERTS_EACH: usize = 10;

/// Feeds that a message names; the others are counted.
const FEEDS_IN_MESSAGE: usize = 12;

/// Messages that the announcement of a dead letter repeats; the others are counted.
const TEXTS_IN_MESSAGE: usize = 3;

/// Characters of a text from outside that a message repeats.
const LONGEST_TEXT: usize = 500;

/// What came of one feed in a cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedNews {
    /// Which feed.
    pub feed: FeedId,
    /// What came of it.
    pub result: FeedResult,
}

/// Whether a feed was read.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedResult {
    /// It gave a complete, valid answer that was taken.
    Fine,
    /// It gave none, or was not asked ([`FailureKind::Suspended`], [`FailureKind::QuotaExhausted`]).
    Failed(Failure),
    /// Its answer is held, because most of the token's coming records are not in it; with what is held, for people.
    Held(String),
}

/// A cycle, as far as trouble is concerned.
#[derive(Clone, Copy)]
pub struct Cycle<'a> {
    /// What came of each feed that was to be asked. A feed named twice has failed if it failed once.
    pub news: &'a [FeedNews],
    /// All open alerts that belong to no token.
    pub open: &'a [Alert],
    /// Whether a feed is still asked for at all.
    pub is_watched: &'a dyn Fn(&FeedId) -> bool,
    /// What is known of a token, for messages and for rules.
    pub token: &'a dyn Fn(&TokenId) -> Option<&'a Token>,
}

/// Opens, moves on and ends the alerts about the source.
pub fn watch(cycle: &Cycle<'_>, context: &Context<'_>) -> Draft {
    watch_with(cycle, &context.rules.rules, context.routes, context.now)
}

/// A kind of trouble with a feed: a failure, or an answer that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Failure(FailureKind),
    Held,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Failure(kind) => kind.as_str(),
            Kind::Held => "held",
        }
    }

    fn is_source_wide(self) -> bool {
        matches!(self, Kind::Failure(kind) if kind.is_source_wide())
    }

    fn of_word(word: &str) -> Option<Self> {
        ALL_KINDS.into_iter().find(|kind| kind.as_str() == word)
    }

    /// What is the matter, as the begin of a sentence.
    fn phrase(self) -> &'static str {
        match self {
            Kind::Failure(FailureKind::Unreachable) => "The source cannot be reached",
            Kind::Failure(FailureKind::Timeout) => "The source does not answer in time",
            Kind::Failure(FailureKind::ServerError) => "The source answers with errors of its own",
            Kind::Failure(FailureKind::Unauthorized) => "The source refuses the API key",
            Kind::Failure(FailureKind::RateLimited) => "The source wants to be asked less often",
            Kind::Failure(FailureKind::QuotaExhausted) => "The credits of this period are spent",
            Kind::Failure(FailureKind::NotFound) => "The source does not have what is asked for",
            Kind::Failure(FailureKind::UnexpectedStatus) => "The source answers with an unexpected status",
            Kind::Failure(FailureKind::BadAnswer) => "The source gives answers that cannot be read",
            Kind::Failure(FailureKind::TooLarge) => "The source gives answers larger than max_body",
            Kind::Failure(FailureKind::Incomplete) => "The source gives incomplete answers",
            Kind::Failure(FailureKind::Emptied) => "The source gives empty answers where there were records",
            Kind::Failure(FailureKind::Suspended) => "The source is not asked for a while, after repeated failures",
            Kind::Held => "Most coming records are missing from an answer, which is held",
        }
    }

    /// What to do, or what this program does.
    fn advice(self) -> &'static str {
        match self {
            Kind::Failure(FailureKind::Unauthorized) => "Check source.api_key, or the file or credential that holds it.",
            Kind::Failure(FailureKind::QuotaExhausted) => {
                "Asking goes on when the period ends; `cliffwatch plan` shows what the schedule costs."
            }
            Kind::Failure(FailureKind::RateLimited) => "It is asked again when it allows; requests_per_minute sets the pace.",
            Kind::Failure(FailureKind::NotFound) => "Check the spelling in watch.tokens, or whether the source dropped it.",
            Kind::Failure(FailureKind::TooLarge) => "Raise source.max_body if the answer is genuine.",
            Kind::Held => "The answer is believed once further complete answers repeat it.",
            _ => "It is asked again by itself.",
        }
    }
}

/// Not asked.
const SUSPENDED: Kind = Kind::Failure(FailureKind::Suspended);

const ALL_KINDS: [Kind; 14] = [
    Kind::Failure(FailureKind::Unreachable),
    Kind::Failure(FailureKind::Timeout),
    Kind::Failure(FailureKind::ServerError),
    Kind::Failure(FailureKind::Unauthorized),
    Kind::Failure(FailureKind::RateLimited),
    Kind::Failure(FailureKind::QuotaExhausted),
    Kind::Failure(FailureKind::NotFound),
    Kind::Failure(FailureKind::UnexpectedStatus),
    Kind::Failure(FailureKind::BadAnswer),
    Kind::Failure(FailureKind::TooLarge),
    Kind::Failure(FailureKind::Incomplete),
    Kind::Failure(FailureKind::Emptied),
    Kind::Failure(FailureKind::Suspended),
    Kind::Held,
];

/// What an alert about the source is about. The narrowest comes first: a wider one takes in the feeds of a narrower one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// One feed of one token.
    Feed(FeedId),
    /// An endpoint.
    Endpoint(Endpoint),
    /// All of it.
    Source,
    /// The credits are spent.
    Quota,
    /// The key is refused.
    Unauthorized,
}

impl Place {
    fn subject(&self) -> String {
        match self {
            Place::Feed(feed) => format!("source/{feed}"),
            Place::Endpoint(endpoint) => format!("source/{endpoint}"),
            Place::Source => "source".to_owned(),
            Place::Quota => "source/quota".to_owned(),
            Place::Unauthorized => "source/unauthorized".to_owned(),
        }
    }

    /// The narrowest place of a feed.
    fn alone(feed: &FeedId) -> Self {
        match &feed.token {
            Some(_) => Place::Feed(feed.clone()),
            None => Place::Endpoint(feed.endpoint),
        }
    }

    fn of_subject(subject: &str) -> Option<Self> {
        Some(match subject.strip_prefix("source")? {
            "" => Place::Source,
            "/quota" => Place::Quota,
            "/unauthorized" => Place::Unauthorized,
            rest => match feed_of(rest.strip_prefix('/')?)? {
                FeedId { endpoint, token: None } => Place::Endpoint(endpoint),
                feed => Place::Feed(feed),
            },
        })
    }

    fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Place::Feed(feed) => Some(feed.endpoint),
            Place::Endpoint(endpoint) => Some(*endpoint),
            Place::Source | Place::Quota | Place::Unauthorized => None,
        }
    }

    fn token(&self) -> Option<&TokenId> {
        if let Place::Feed(feed) = self { feed.token.as_ref() } else { None }
    }

    /// 0 for a feed, 1 for an endpoint, 2 for the source, 3 for what needs a hand of its own.
    fn width(&self) -> u8 {
        match self {
            Place::Feed(_) => 0,
            Place::Endpoint(_) => 1,
            Place::Source => 2,
            Place::Quota | Place::Unauthorized => 3,
        }
    }
}

/// Reads a feed back from how it is written: `unlock_events/arbitrum`, `token_list`.
pub(crate) fn feed_of(text: &str) -> Option<FeedId> {
    match text.split_once('/') {
        Some((endpoint, token)) => Some(FeedId { endpoint: Endpoint::parse(endpoint)?, token: Some(token.into()) }),
        None => Some(FeedId::whole(Endpoint::parse(text)?)),
    }
}

/// A feed that failed in this cycle.
struct Failing<'a> {
    feed: &'a FeedId,
    kind: Kind,
    message: &'a str,
}

/// An alert on the way through a cycle.
struct Case {
    place: Place,
    alert: Alert,
    /// As it was before the cycle; none for one that the cycle opens.
    before: Option<Alert>,
    members: BTreeSet<String>,
    /// How many feeds came to it in this cycle.
    joined: usize,
    /// How many went on to another alert.
    left: usize,
    /// What its feeds failed with in this cycle, with the first message.
    kinds: BTreeMap<Kind, String>,
}

fn watch_with<J: Judge>(cycle: &Cycle<'_>, rules: &[J], routes: &RouteTree, now: Timestamp) -> Draft {
    let mut failing: BTreeMap<&FeedId, Failing<'_>> = BTreeMap::new();
    let mut fine: BTreeSet<&FeedId> = BTreeSet::new();
    for FeedNews { feed, result } in cycle.news {
        let (kind, message) = match result {
            FeedResult::Fine => {
                fine.insert(feed);
                continue;
            }
            FeedResult::Failed(failure) => (Kind::Failure(failure.kind), failure.message.as_str()),
            FeedResult::Held(what) => (Kind::Held, what.as_str()),
        };
        let news = Failing { feed, kind, message };
        match failing.get_mut(feed) {
            // That it was not asked says less than any answer.
            Some(known) if known.kind == SUSPENDED => *known = news,
            Some(_) => {}
            None => drop(failing.insert(feed, news)),
        }
    }
    fine.retain(|feed| !failing.contains_key(feed));

    let mut cases: Vec<Case> = cycle.open.iter().filter_map(Case::of).collect();
    let is_suspended = failing.values().any(|failing| failing.kind == SUSPENDED);
    let places = places(&failing, &fine, &cases);
    // Those that were not asked come last: by then it is known whether anything tells why.
    let (last, first): (Vec<_>, Vec<_>) = failing.values().partition(|failing| failing.kind == SUSPENDED);
    for failing in first.into_iter().chain(last) {
        let Some(place) = places.get(failing.feed) else { continue };
        if failing.kind == SUSPENDED
            && cases.iter().any(Case::explains_silence)
            && !cases.iter().any(|case| case.holds(failing.feed))
        {
            continue;
        }
        settle(&mut cases, failing, place, now);
    }

    let narrowed = narrow(&mut cases, &failing, fine.len(), now);

    let mut draft = Draft::default();
    let teller = Teller { rules, routes, now };
    for mut case in cases {
        let count = case.members.len();
        case.members.retain(|member| match feed_of(member) {
            Some(feed) => !fine.contains(&feed) && (cycle.is_watched)(&feed),
            None => false,
        });
        let has_answered = count > case.members.len();
        let waits = is_suspended && case.place.width() >= 2;
        if case.members.is_empty() && !waits {
            let how = match (has_answered, case.left > 0) {
                _ if narrowed.contains(&case.place) => End::Narrowed,
                (false, true) => End::Merged,
                (true, _) if case.feeds_before().any(|feed| fine.contains(&feed)) => End::Answered,
                (true, _) => End::Unwatched,
                (false, false) => End::Answered,
            };
            teller.end(&mut draft, case, how, cycle);
        } else {
            teller.go_on(&mut draft, case, cycle);
        }
    }
    draft
}

/// Which alert each failing feed belongs to, judged by this cycle as a whole.
fn places<'a>(
    failing: &BTreeMap<&'a FeedId, Failing<'a>>,
    fine: &BTreeSet<&FeedId>,
    cases: &[Case],
) -> BTreeMap<&'a FeedId, Place> {
    let wide: Vec<_> = failing.values().filter(|failing| failing.kind.is_source_wide()).collect();
    let endpoints: BTreeSet<Endpoint> = failing.keys().map(|feed| feed.endpoint).collect();
    let nothing_answers = fine.is_empty() && endpoints.len() > 1;
    let is_source_open = cases.iter().any(|case| case.place == Place::Source);
    let few = wide.len() <= FEW_FEEDS && fine.len() >= wide.len() && !is_source_open;

    // How many tokens of an endpoint were asked, and fail in the same way.
    let mut asked_of: BTreeMap<Endpoint, usize> = BTreeMap::new();
    let mut alike: BTreeMap<(Endpoint, Kind), usize> = BTreeMap::new();
    for feed in failing.keys().copied().chain(fine.iter().copied()) {
        *asked_of.entry(feed.endpoint).or_default() += 1;
    }
    for failing in failing.values() {
        *alike.entry((failing.feed.endpoint, failing.kind)).or_default() += 1;
    }
    failing
        .values()
        .map(|failing| {
            let endpoint = failing.feed.endpoint;
            let place = match failing.kind {
                Kind::Failure(FailureKind::Unauthorized) => Place::Unauthorized,
                Kind::Failure(FailureKind::QuotaExhausted) => Place::Quota,
                _ if nothing_answers => Place::Source,
                kind if kind.is_source_wide() && (!few || kind == SUSPENDED) => Place::Source,
                kind => {
                    let alike = alike.get(&(endpoint, kind)).copied().unwrap_or_default();
                    let asked = asked_of.get(&endpoint).copied().unwrap_or_default();
                    let most = (alike >= 3 && alike * 2 > asked) || (alike >= 2 && alike == asked) || alike > MOST_ALERTS_EACH;
                    let is_open = cases.iter().any(|case| case.place == Place::Endpoint(endpoint));
                    if failing.feed.token.is_some() && !most && !is_open {
                        Place::Feed(failing.feed.clone())
                    } else if let Some(same) = cases.iter().find(|case| case.place.width() > 0 && case.is_of(kind)) {
                        // The same trouble at another endpoint is the same trouble.
                        same.place.clone()
                    } else {
                        Place::Endpoint(endpoint)
                    }
                }
            };
            (failing.feed, place)
        })
        .collect()
}

/// Puts a failing feed into its alert: the one that holds it already, unless this cycle found a wider one.
fn settle(cases: &mut Vec<Case>, failing: &Failing<'_>, place: &Place, now: Timestamp) {
    let name = failing.feed.to_string();
    let current = cases.iter().position(|case| case.members.contains(&name));
    // What needs a hand of its own is told anew, whatever it was before; else the wider alert keeps its feeds.
    let stays = current.and_then(|index| cases.get(index)).is_some_and(|case| match place {
        Place::Quota | Place::Unauthorized => case.place == *place,
        _ => case.place.width() >= place.width(),
    });
    let target = if stays { current } else { cases.iter().position(|case| case.place == *place) };
    if let (false, Some(from)) = (stays, current.and_then(|index| cases.get_mut(index))) {
        from.members.remove(&name);
        from.left += 1;
    }
    let index = target.unwrap_or_else(|| {
        cases.push(Case::open(place.clone(), now));
        cases.len() - 1
    });
    if let Some(case) = cases.get_mut(index) {
        if case.members.insert(name) {
            case.joined += 1;
        }
        case.kinds.entry(failing.kind).or_insert_with(|| clip(failing.message));
    }
}

/// Ends an alert about much of the source of which only a few feeds are left, that go on failing while others answer: each of them
/// gets an alert of its own, so that the next trouble of the source is not hidden behind them. The places that were narrowed.
fn narrow(cases: &mut Vec<Case>, failing: &BTreeMap<&FeedId, Failing<'_>>, answered: usize, now: Timestamp) -> Vec<Place> {
    let mut narrowed = Vec::new();
    let mut leftovers = Vec::new();
    for case in cases.iter_mut().filter(|case| matches!(case.place, Place::Source | Place::Endpoint(_))) {
        let Some(before) = &case.before else { continue };
        let is_quiet = case.joined == 0 && case.left == 0 && now.signed_duration_since(before.updated_at) > FOLD_WITHIN;
        let few = case.members.len() <= FEW_FEEDS && answered >= case.members.len().max(1);
        let left: Vec<&Failing<'_>> = case.members.iter().filter_map(|member| failing.get(&feed_of(member)?)).collect();
        // Those that were not asked in this cycle, or stand for the same endpoint, are no leftovers yet.
        let are_all_left = left.len() == case.members.len() && !left.is_empty();
        if is_quiet && few && are_all_left && left.iter().all(|failing| Place::alone(failing.feed) != case.place) {
            case.members.clear();
            narrowed.push(case.place.clone());
            leftovers.extend(left);
        }
    }
    for failing in leftovers {
        settle(cases, failing, &Place::alone(failing.feed), now);
    }
    narrowed
}

impl Case {
    fn of(alert: &Alert) -> Option<Self> {
        if alert.rule.as_str() != SOURCE_TROUBLE || alert.state != AlertState::Firing {
            return None;
        }
        Some(Self {
            place: Place::of_subject(&alert.subject)?,
            alert: alert.clone(),
            before: Some(alert.clone()),
            members: alert.members.iter().cloned().collect(),
            joined: 0,
            left: 0,
            kinds: BTreeMap::new(),
        })
    }

    fn open(place: Place, now: Timestamp) -> Self {
        let mut alert = blank(RuleId::from(SOURCE_TROUBLE), SOURCE_TROUBLE, place.subject(), AlertState::Firing, now);
        alert.starts_at = Some(now);
        Self { place, alert, before: None, members: BTreeSet::new(), joined: 0, left: 0, kinds: BTreeMap::new() }
    }

    fn holds(&self, feed: &FeedId) -> bool {
        self.members.contains(&feed.to_string())
    }

    /// Whether a feed came to it in this cycle that tells more of the trouble.
    fn brings_news(&self) -> bool {
        let endpoint_of = |feed: FeedId| feed.endpoint;
        let known: BTreeSet<Endpoint> = self.feeds_before().map(endpoint_of).collect();
        let is_new = |member: &String| feed_of(member).map(endpoint_of).is_some_and(|endpoint| !known.contains(&endpoint));
        self.joined > 0 && (self.place != Place::Source || self.members.iter().any(is_new))
    }

    fn feeds_before(&self) -> impl Iterator<Item = FeedId> {
        self.before.iter().flat_map(|alert| &alert.members).filter_map(|member| feed_of(member))
    }

    /// What it was told as.
    fn kind_before(&self) -> Option<Kind> {
        self.before.as_ref().and_then(|alert| alert.labels.get("kind")).and_then(|word| Kind::of_word(word))
    }

    fn is_of(&self, kind: Kind) -> bool {
        self.kind_before() == Some(kind)
    }

    /// Whether it says why other feeds are not asked at present.
    fn explains_silence(&self) -> bool {
        let told = self.kind_before().into_iter().chain(self.kinds.keys().copied());
        self.place.width() >= 2 || told.into_iter().any(Kind::is_source_wide)
    }

    /// What it is to be called now: as before, unless all that failed in this cycle failed with something else.
    fn kind(&self) -> Kind {
        let before = self.kind_before();
        let now = self.kinds.keys().copied().find(|kind| *kind != SUSPENDED);
        match (self.place.width(), before, now) {
            (3, Some(before), _) => before,
            (_, Some(before), _) if self.kinds.is_empty() || self.kinds.contains_key(&before) => before,
            (_, _, Some(now)) => now,
            (_, before, None) => before.unwrap_or(SUSPENDED),
        }
    }
}

/// How trouble with the source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its feeds have answered.
    Answered,
    /// Its feeds are no longer watched.
    Unwatched,
    /// A wider alert has taken over its feeds, and was told.
    Merged,
    /// All but a few of its feeds have answered; those have alerts of their own now.
    Narrowed,
}

/// Makes alerts and what is told of them.
struct Teller<'a, J> {
    rules: &'a [J],
    routes: &'a RouteTree,
    now: Timestamp,
}

/// What is to be said of a trouble.
struct Words<'a> {
    kind: &'a str,
    endpoint: Option<Endpoint>,
    token: Option<&'a TokenId>,
    receiver: Option<&'a ReceiverName>,
    /// Further labels.
    labels: Vec<(&'a str, String)>,
    summary: String,
    description: String,
    count: usize,
    since: Timestamp,
}

impl<J: Judge> Teller<'_, J> {
    /// An alert that is open after the cycle: told where it is new, where a feed joins late for the first time; else kept.
    fn go_on(&self, draft: &mut Draft, mut case: Case, cycle: &Cycle<'_>) {
        let kind = case.kind();
        let is_new = case.before.is_none();
        let since = case.alert.starts_at.unwrap_or(self.now);
        case.alert.members = case.members.iter().cloned().collect();
        let joined = format!("joined {}", self.now.format("%Y-%m-%d"));
        let joins_late = !is_new
            && case.brings_news()
            && self.now.signed_duration_since(since) > FOLD_WITHIN
            && !case.alert.leads.contains(&joined);
        let has_turned = case.kind_before() != Some(kind);
        if !(is_new || joins_late || has_turned) {
            if case.before.as_ref() != Some(&case.alert) {
                case.alert.updated_at = self.now;
                draft.add(case.alert, false, None);
            }
            return;
        }
        let token = case.place.token().and_then(|id| (cycle.token)(id));
        let message = case.kinds.get(&kind).map(|message| format!("{} ", sentence(message))).unwrap_or_default();
        let words = Words {
            kind: kind.as_str(),
            endpoint: case.place.endpoint(),
            token: case.place.token(),
            receiver: None,
            labels: Vec::new(),
            summary: format!("{}: {}", kind.phrase(), feeds_in_words(&case.members, token)),
            description: format!(
                "{message}What is known stays: nothing counts as removed without a complete answer. {}",
                kind.advice()
            ),
            count: case.members.len(),
            since,
        };
        let receivers = self.word(draft, &mut case.alert, &words, token, None);
        case.alert.updated_at = self.now;
        let (transition, reason) = match (is_new, joins_late) {
            (true, _) => ("firing", kind.as_str()),
            (false, true) => (joined.as_str(), "more feeds"),
            (false, false) => return draft.add(case.alert, false, None),
        };
        if joins_late {
            case.alert.leads = vec![joined.clone()];
        }
        let body = AlertBody { token: token.map(token_body), ..plain_body(&case.alert, "firing", reason, self.now) };
        let telling =
            Telling { kind: NoticeKind::Source, transition: transition.to_owned(), receivers, body, is_resolution: false };
        draft.add(case.alert, is_new, Some(telling));
    }

    /// An alert that is over. Its labels stay what was told.
    fn end(&self, draft: &mut Draft, case: Case, how: End, cycle: &Cycle<'_>) {
        // Opened and over in one cycle: nothing happened.
        let Some(before) = &case.before else { return };
        let since = before.starts_at.unwrap_or(self.now);
        let feeds: BTreeSet<String> = before.members.iter().cloned().collect();
        let (lasted, from) = (span_in_words(self.now.signed_duration_since(since)), instant(since));
        let kind = case.kind_before().map_or("failing", Kind::as_str);
        let (resolution, summary, description) = match how {
            End::Answered | End::Merged => (
                Resolution::Cleared,
                format!("The source answers again after {lasted} ({kind}): {}", feeds_in_words(&feeds, None)),
                format!(
                    "It failed from {from} to {}. Nothing known was lost meanwhile; what changed is told with the answers that came \
                     now. The data is as of {}.",
                    instant(self.now),
                    instant(self.now)
                ),
            ),
            End::Narrowed => (
                Resolution::Cleared,
                format!("The source answers again after {lasted} ({kind}), except for {}", feeds_in_words(&feeds, None)),
                format!("It failed from {from} on. What still fails is told by itself. Nothing known was lost meanwhile."),
            ),
            End::Unwatched => (
                Resolution::RuleGone,
                format!("No longer watched: {}", feeds_in_words(&feeds, None)),
                format!("It failed since {from} ({kind}), and is no longer asked for."),
            ),
        };
        let token = case.place.token().and_then(|id| (cycle.token)(id));
        let (alert, mut telling) = self.over(case.alert, resolution, summary, description);
        telling.body.token = token.map(token_body);
        if how == End::Unwatched {
            telling.body.reason = "no longer watched".to_owned();
        }
        draft.add(alert, false, (how != End::Merged && !telling.receivers.is_empty()).then_some(telling));
    }

    /// Ends an alert, with what is told of it to those who heard that it fires.
    fn over(&self, mut alert: Alert, resolution: Resolution, summary: String, description: String) -> (Alert, Telling) {
        alert.state = AlertState::Resolved;
        alert.resolution = Some(resolution);
        alert.ends_at = Some(self.now);
        alert.updated_at = self.now;
        alert.members.clear();
        alert.annotations.insert("summary".to_owned(), summary);
        alert.annotations.insert("description".to_owned(), description);
        let receivers = alert.told.iter().filter(|receiver| self.routes.tells_ends_to(receiver)).cloned().collect();
        let body = plain_body(&alert, "resolved", "recovered", self.now);
        let transition = "resolved".to_owned();
        (alert, Telling { kind: NoticeKind::Source, transition, receivers, body, is_resolution: true })
    }

    /// Gives an alert its labels and annotations, in the words of the first rule on the source that holds, and says who is told.
    /// `dead` is a receiver that the trouble is about: it is never told, and where no rule names others the fallback is.
    fn word(
        &self,
        draft: &mut Draft,
        alert: &mut Alert,
        words: &Words<'_>,
        token: Option<&Token>,
        dead: Option<&ReceiverName>,
    ) -> Vec<ReceiverName> {
        let severity = ("severity", "warning".to_owned());
        let name = ("alertname", SOURCE_TROUBLE.to_owned());
        let kind = ("kind", words.kind.to_owned());
        let endpoint = words.endpoint.map(|endpoint| ("endpoint", endpoint.to_string()));
        let about = words.token.map(|token| ("token", token.to_string()));
        let receiver = words.receiver.map(|receiver| ("receiver", receiver.to_string()));
        let named = [Some(name), Some(kind), Some(severity), endpoint, about, receiver];
        let labels = named.into_iter().flatten().chain(words.labels.iter().cloned());
        alert.labels = labels.map(|(name, value)| (name.to_owned(), value)).collect::<Labels>();
        alert.annotations = BTreeMap::from([
            ("summary".to_owned(), words.summary.clone()),
            ("description".to_owned(), words.description.clone()),
        ]);
        alert.name = SOURCE_TROUBLE.to_owned();

        let facts = SourceFacts {
            kind: words.kind.to_owned(),
            endpoint: words.endpoint.map(|endpoint| endpoint.to_string()),
            receiver: words.receiver.map(ToString::to_string),
            message: words.summary.clone(),
            count: u32::try_from(words.count).unwrap_or(u32::MAX),
            since: words.since,
        };
        let scope = Scope { token, record: None, change: None, source: Some(&facts), totals: None, lead: None, now: self.now };
        let rule = self.rules.iter().find(|rule| {
            let terms = rule.terms();
            terms.on == On::Source && terms.is_awake(self.now) && rule.covers(&scope) && rule.holds(&scope) == Truth::True
        });
        let mut receivers = match rule {
            None => self.routes.route(&alert.labels),
            Some(rule) => {
                let terms = rule.terms();
                draft.matched(terms.id, self.now);
                let rendered = rule.render(&scope, rule.level(&scope));
                draft.template_failed(terms.id, rendered.error);
                alert.name = terms.name.to_owned();
                // `kind` stays: it is how this room knows its own alerts.
                alert.labels.extend(rendered.labels.into_iter().filter(|(name, _)| name != "kind"));
                alert.annotations.extend(rendered.annotations);
                terms.audience(self.routes, &alert.labels)
            }
        };
        if let Some(dead) = dead {
            let is_named = rule.is_some_and(|rule| !rule.terms().receivers.is_empty());
            receivers.retain(|receiver| receiver != dead);
            if !is_named || receivers.is_empty() {
                receivers = self.routes.fallback(dead);
            }
        }
        receivers
    }
}

/// `unlock_events of ARB (arbitrum)`, some feeds by name, or `120 feeds (burn 30, unlock_events 90)`.
fn feeds_in_words(members: &BTreeSet<String>, token: Option<&Token>) -> String {
    clip(&name_feeds(members, token))
}

fn name_feeds(members: &BTreeSet<String>, token: Option<&Token>) -> String {
    let feeds: Vec<FeedId> = members.iter().filter_map(|member| feed_of(member)).collect();
    if let [feed] = feeds.as_slice() {
        return match (&feed.token, token) {
            (Some(id), Some(token)) if token.symbol() != id.as_str() => format!("{} of {} ({id})", feed.endpoint, token.symbol()),
            (Some(id), _) => format!("{} of {id}", feed.endpoint),
            (None, _) => feed.endpoint.to_string(),
        };
    }
    if feeds.len() <= FEEDS_IN_MESSAGE {
        return feeds.iter().map(FeedId::to_string).collect::<Vec<_>>().join(", ");
    }
    let mut counts: BTreeMap<Endpoint, usize> = BTreeMap::new();
    for feed in &feeds {
        *counts.entry(feed.endpoint).or_default() += 1;
    }
    let parts: Vec<_> = counts.iter().map(|(endpoint, count)| format!("{endpoint} {count}")).collect();
    format!("{} feeds ({})", feeds.len(), parts.join(", "))
}

/// A text from outside, of one line and bounded, without control characters and marks that turn the direction of writing.
fn clip(text: &str) -> String {
    let is_hostile =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    let clean = text.chars().filter(|c| !is_hostile(*c)).map(|c| if c.is_control() { ' ' } else { c });
    let mut clipped: String = clean.take(LONGEST_TEXT).collect();
    if text.chars().count() > LONGEST_TEXT {
        clipped.push('…');
    }
    clipped.trim().to_owned()
}

/// With a full stop at its end.
fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

/// `2026-03-16 01:00 UTC`.
fn instant(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M UTC").to_string()
}

/// `under a minute`, `25 min`, `3 h 5 min`, `2 d 4 h`.
fn span_in_words(span: TimeDelta) -> String {
    let (days, hours, minutes) = (span.num_days(), span.num_hours() % 24, span.num_minutes() % 60);
    match (days, hours, minutes) {
        (days, hours, _) if days > 0 => format!("{days} d {hours} h"),
        (_, hours, minutes) if hours > 0 => format!("{hours} h {minutes} min"),
        (_, _, minutes) if minutes > 0 => format!("{minutes} min"),
        _ => "under a minute".to_owned(),
    }
}

/// One trouble that is no feed's.
struct One<'a> {
    subject: String,
    state: AlertState,
    episode: u32,
    words: Words<'a>,
    dead: Option<&'a ReceiverName>,
}

/// Makes the alert and the notice of one trouble.
fn raise(one: One<'_>, context: &Context<'_>) -> (Alert, Notice) {
    let teller = Teller { rules: &context.rules.rules, routes: context.routes, now: context.now };
    let mut alert = blank(RuleId::from(SOURCE_TROUBLE), SOURCE_TROUBLE, one.subject, one.state, context.now);
    alert.episode = one.episode;
    alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
    alert.active_at = one.words.since;
    alert.starts_at = Some(one.words.since);
    // What a template fails with here is known from the rule's own alerts; the built-in words stand in its place.
    let receivers = teller.word(&mut Draft::default(), &mut alert, &one.words, None, one.dead);
    alert.told.clone_from(&receivers);
    let body = plain_body(&alert, "firing", one.words.kind, context.now);
    let transition = if one.state == AlertState::Event { "event" } else { "firing" };
    let id = notice_id(&alert.id, transition);
    let notice = Notice { id, alert: alert.id.clone(), kind: NoticeKind::Source, at: context.now, receivers, body };
    (alert, notice)
}

/// A receiver does not accept anything since `since`. `waiting` deliveries wait for it; `latest_episode` is the store's for
/// ([`SOURCE_TROUBLE`], [`receiver_subject`]). Told to the fallback.
#[must_use]
pub fn receiver_dead(
    receiver: &ReceiverName,
    reason: &str,
    waiting: u32,
    since: Timestamp,
    latest_episode: u32,
    context: &Context<'_>,
) -> (Alert, Notice) {
    let lasted = span_in_words(context.now.signed_duration_since(since));
    let words = Words {
        kind: RECEIVER,
        endpoint: None,
        token: None,
        receiver: Some(receiver),
        labels: Vec::new(),
        summary: format!("Receiver {receiver} accepts nothing for {lasted}: {waiting} deliveries wait"),
        description: format!(
            "{} Its deliveries are tried again by themselves; `cliffwatch outbox list` shows them.",
            sentence(&clip(reason))
        ),
        count: usize::try_from(waiting).unwrap_or(usize::MAX),
        since,
    };
    let (state, episode) = (AlertState::Firing, latest_episode.saturating_add(1));
    raise(One { subject: receiver_subject(receiver), state, episode, words, dead: Some(receiver) }, context)
}

/// The subject of the alert about a dead receiver.
#[must_use]
pub fn receiver_subject(receiver: &ReceiverName) -> String {
    format!("receiver/{receiver}")
}

/// A delivery was given up. None where all that it told was itself about a receiver or a dead letter: that would make a loop.
/// Told to the fallback of its receiver, once: the same delivery, retried by hand and dead again, makes the same notice.
#[must_use]
pub fn dead_letter(
    delivery: DeliveryId,
    receiver: &ReceiverName,
    notices: &[Notice],
    reason: &str,
    context: &Context<'_>,
) -> Option<(Alert, Notice)> {
    let is_announcement = |notice: &Notice| {
        notice.kind == NoticeKind::Source
            && notice.body.labels.get("kind").is_some_and(|kind| [RECEIVER, DEAD_LETTER].contains(&kind.as_str()))
    };
    if notices.iter().all(is_announcement) {
        return None;
    }
    let lost: Vec<String> = notices
        .iter()
        .take(TEXTS_IN_MESSAGE)
        .map(|notice| {
            let body = &notice.body;
            let text = body.annotations.get("summary").filter(|text| !text.is_empty()).unwrap_or(&body.rule);
            format!("[{}] {}", body.reason, clip(text))
        })
        .collect();
    let more = notices.len().saturating_sub(lost.len());
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let words = Words {
        kind: DEAD_LETTER,
        endpoint: None,
        token: None,
        receiver: Some(receiver),
        labels: Vec::new(),
        summary: format!("Not delivered to {receiver}: {}{more}", lost.join("; ")),
        description: format!(
            "Delivery {delivery} was given up: {} `cliffwatch outbox show {delivery}` shows each attempt, `cliffwatch outbox retry \
             {delivery}` sends it again.",
            sentence(&clip(reason))
        ),
        count: notices.len(),
        since: context.now,
    };
    Some(raise(
        One { subject: format!("dead/{delivery}"), state: AlertState::Event, episode: 1, words, dead: Some(receiver) },
        context,
    ))
}

/// A changed config or changed rules could not be put to work: those before stay. `problem` says the places, a line each; `owners` are those of the rules
/// concerned; `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`RELOAD_SUBJECT`]).
#[must_use]
pub fn reload_failed(
    problems: u32,
    problem: &str,
    owners: &[String],
    latest_episode: u32,
    context: &Context<'_>,
) -> (Alert, Notice) {
    let noun = if problems == 1 { "problem" } else { "problems" };
    let advice = "`cliffwatch check` and `cliffwatch test` show every problem with its place.";
    let words = Words {
        kind: "reload",
        endpoint: None,
        token: None,
        receiver: None,
        labels: if owners.is_empty() { Vec::new() } else { vec![("owner", owners.join(", "))] },
        summary: format!("Changed files have {problems} {noun}: what was at work before stays"),
        description: format!("{} {advice}", sentence(&clip(problem))),
        count: 1,
        since: context.now,
    };
    let episode = latest_episode.saturating_add(1);
    raise(One { subject: RELOAD_SUBJECT.to_owned(), state: AlertState::Firing, episode, words, dead: None }, context)
}

/// The subject of the alert about a failed reload.
pub const RELOAD_SUBJECT: &str = "reload";

/// The database is damaged. `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`DAMAGED_SUBJECT`]), or zero where it cannot
/// be asked.
#[must_use]
pub fn store_damaged(error: &str, latest_episode: u32, context: &Context<'_>) -> (Alert, Notice) {
    let summary = "The database is damaged".to_owned();
    let description = format!("{} Stop the daemon and put back a copy that `cliffwatch backup` made.", sentence(&clip(error)));
    own(DAMAGED_SUBJECT, "store_damaged", summary, description, latest_episode, context)
}

/// The subject of the alert about a damaged database.
pub const DAMAGED_SUBJECT: &str = "store/damaged";

/// The disk of the database is full: nothing can be recorded, so nothing is told but this, and polls are repeated until there is
/// room. `latest_episode` is the store's for ([`SOURCE_TROUBLE`], [`FULL_SUBJECT`]), or zero where it cannot be asked.
#[must_use]
pub fn store_full(error: &str, latest_episode: u32, context: &Context<'_>) -> (Alert, Notice) {
    let summary = "The disk of the database is full: nothing new can be recorded".to_owned();
    let description = format!("{} Free space; what could not be recorded is asked for again.", sentence(&clip(error)));
    own(FULL_SUBJECT, "store_full", summary, description, latest_episode, context)
}

/// The subject of the alert about a full disk.
pub const FULL_SUBJECT: &str = "store/full";

/// A template of a rule failed, and the built-in text stood in its place. Labelled with the rule's owner, so that routes can send
/// it there; once a day for each rule.
#[must_use]
pub fn template_failed(rule: &RuleId, owner: Option<&str>, error: &str, context: &Context<'_>) -> (Alert, Notice) {
    let mut labels = vec![("rule", rule.to_string())];
    labels.extend(owner.map(|owner| ("owner", owner.to_owned())));
    let words = Words {
        kind: "template",
        endpoint: None,
        token: None,
        receiver: None,
        labels,
        summary: format!("A template of the rule {rule} failed: the built-in text was sent in its place"),
        description: sentence(&clip(error)),
        count: 1,
        since: context.now,
    };
    let subject = format!("template/{rule}/{}", context.now.format("%Y-%m-%d"));
    raise(One { subject, state: AlertState::Event, episode: 1, words, dead: None }, context)
}

/// The end of a trouble that one of the functions above raised: told to those who heard of it.
#[must_use]
pub fn recovered(alert: &Alert, context: &Context<'_>) -> (Alert, Notice) {
    let since = alert.starts_at.unwrap_or(alert.active_at);
    let lasted = span_in_words(context.now.signed_duration_since(since));
    let summary = match alert.subject.as_str() {
        RELOAD_SUBJECT => "The changed configuration was loaded".to_owned(),
        DAMAGED_SUBJECT => "The database is sound again".to_owned(),
        FULL_SUBJECT => "The database can be written again".to_owned(),
        subject => match subject.strip_prefix("receiver/") {
            Some(receiver) => format!("Receiver {receiver} accepts deliveries again after {lasted}"),
            None => format!("{} is over after {lasted}", alert.name),
        },
    };
    let description = format!("It lasted from {} to {}.", instant(since), instant(context.now));
    let teller = Teller { rules: &context.rules.rules, routes: context.routes, now: context.now };
    let (alert, telling) = teller.over(alert.clone(), Resolution::Cleared, summary, description);
    let Telling { kind, transition, receivers, body, .. } = telling;
    let id = notice_id(&alert.id, &transition);
    let notice = Notice { id, alert: alert.id.clone(), kind, at: context.now, receivers, body };
    (alert, notice)
}

/// Trouble of this program itself, routed like any alert.
fn own(
    subject: &str,
    kind: &str,
    summary: String,
    description: String,
    latest_episode: u32,
    context: &Context<'_>,
) -> (Alert, Notice) {
    let words = Words {
        kind,
        endpoint: None,
        token: None,
        receiver: None,
        labels: Vec::new(),
        summary,
        description,
        count: 1,
        since: context.now,
    };
    let episode = latest_episode.saturating_add(1);
    raise(One { subject: subject.to_owned(), state: AlertState::Firing, episode, words, dead: None }, context)
}

/// `kind` of an alert about a receiver.
const RECEIVER: &str = "receiver";

/// `kind` of an alert about a delivery that was given up.
const DEAD_LETTER: &str = "dead_letter";

#[cfg(test)]
mod tests;
