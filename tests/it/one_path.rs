//! Daemon and simulation process the same random weeks and must send identical messages at identical times.
//!
//! The daemon is the real app with a database and a manual clock, but with generated responses. The simulation is the one that rule
//! tests and backtests use. Both get the same responses, faults, silences, acknowledgements, and reloads; only the daemon restarts. The
//! daemon is evaluated and dispatched on a grid of minutes and at each instant at which the simulation sends a message, so a message at
//! another time shows as a difference.

mod messages;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use cliffwatch::{
    daemon::cycle::{ActiveRules, run_cycle_with},
    engine::{
        pipeline::DispatchPolicy,
        plan::PlannedPoll,
        route::{RouteTree, Sections},
    },
    model::{
        AlertFilter,
        alert::AlertState,
        diagnostic::SourceText,
        poll::{FailureKind, FetchedResponse, Payload, PollFailure, PollOutcome, PollRequest, PollResponse},
        silence::{SilenceRequest, read_matchers},
        supply::{ContentHash, Endpoint, Timestamp, TokenId},
        watch::Watch,
        wire,
    },
    rules::{self, Surroundings},
    tools::simulate::{DeliverySetup, Pace, Simulation},
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::json;

use messages::{Message, difference, recorded, simulated};

use crate::it::support::{Setup, TestApp, burn, buyback, cliff, item, time};

/// The default number of random weeks, which `PROPTEST_CASES` overrides. Each takes some seconds in a debug build.
const WEEKS: u32 = 5;
/// The length of a week: four days are enough, and leave time for more weeks.
const HOURS: i64 = 96;
const TOKENS: [(&str, &str); 3] = [("alpha", "ALP"), ("beta", "BET"), ("gamma", "GAM")];
const BEGIN: &str = crate::it::support::BEGIN;

/// Uses all parts of routing: groups, waits, intervals, mute times, inhibition, repeats, digests, and a low hourly limit.
const CONFIG: &str = r#"
group_by = ["token"]
group_wait = "30s"
group_interval = "5m"
repeat_interval = "7h"
[[route.routes]]
matchers = ['alertname="Burned"']
receivers = ["desk"]
mute_time_intervals = ["nights"]
[[route.routes]]
matchers = ['alertname=~"Changed|Grown"']
receivers = ["desk", "ops"]
group_by = ["alertname", "severity"]
group_wait = "0s"
group_interval = "1h"
[[route.routes]]
matchers = ['alertname="BoughtBack"']
receivers = ["desk"]
group_by = []
[[time_intervals]]
name = "nights"
time_intervals = [{ times = [{ start_time = "00:00", end_time = "07:00" }] }]
[[inhibit_rules]]
source_matchers = ['severity="critical"']
target_matchers = ['alertname="Smaller"']
equal = ["token"]
"#;

const RULES: &str = r#"
[[rule]]
alert  = "Big"
on     = "unlock"
within = ["5d", "36h", "1d", "2h"]
when   = "cliffValue >= 1000000"
labels = { severity = "{{ 'critical' if cliffValue >= 4000000 else 'warning' }}" }
[rule.annotations]
summary = "{{ token.symbol }} {{ cliffValue | usd }} {{ when }}"

[[rule]]
alert  = "Smaller"
on     = "unlock"
within = ["60h"]
when   = "cliffValue >= 500000"
labels = { severity = "info" }

[[rule]]
alert = "Near"
on    = "unlock"
when  = "daysUntil < 1.5 && cliffValue > 2000000"
for   = "30m"
keep_firing_for = "1h"

[[rule]]
alert = "Changed"
on    = "unlock.*"
limit = 2
labels = { severity = "notification" }

[[rule]]
alert = "Unsteady"
on    = "unlock"
when  = "corrections('30h').count >= 2 && corrections('4d').shiftDays < 20"

[[rule]]
alert = "Back"
on    = "unlock.rescheduled"
when  = "change.shiftDays < 0 && corrections('3d').shiftDays >= 0"

[[rule]]
alert = "Grown"
on    = "token"
when  = 'ahead("4d").value > burned("30d").value + 3000000'

[[rule]]
alert = "Late"
on    = "token"
when  = "lastBuyback.daysSince > 2"

[[rule]]
alert = "All"
on    = "portfolio"
when  = 'ahead("3d").value > 4000000'

[[rule]]
alert = "Burned"
on    = "burn"
when  = "amount >= 1000"
[rule.annotations]
summary = "{{ token.symbol }} {{ 'x' * 3 if amount > 6000 else amount | amount }}"

[[rule]]
alert = "BoughtBack"
on    = "buyback"
"#;

/// A step of a random week.
#[derive(Clone, Debug)]
enum Event {
    /// Responses of one endpoint, one for each token.
    Poll(Polled, [Reply; 3]),
    /// The token list with new market caps.
    List([u8; 3]),
    /// A silence for a token: its index and the hours.
    Silence(usize, i64),
    /// An acknowledgement of the firing alert with this index.
    Acknowledge(usize),
    /// A restart of the daemon.
    Restart,
    /// A reload, with changed thresholds or the original ones.
    Reload(bool),
}

#[derive(Clone, Copy, Debug)]
enum Polled {
    Unlocks,
    Burns,
    Buybacks,
}

/// The response for one token. The number of `New` selects a change of the previous facts.
#[derive(Clone, Copy, Debug)]
enum Reply {
    New(u8),
    Same,
    Failed(FailureKind),
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        5 => any::<u8>().prop_map(Reply::New),
        2 => Just(Reply::Same),
        1 => prop_oneof![
            Just(FailureKind::ServerError), Just(FailureKind::Timeout), Just(FailureKind::Unauthorized),
            Just(FailureKind::NotFound), Just(FailureKind::BadAnswer)
        ].prop_map(Reply::Failed),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let polled = prop_oneof![3 => Just(Polled::Unlocks), 2 => Just(Polled::Burns), 2 => Just(Polled::Buybacks)];
    prop_oneof![
        10 => (polled, [reply(), reply(), reply()]).prop_map(|(polled, replies)| Event::Poll(polled, replies)),
        1 => any::<[u8; 3]>().prop_map(Event::List),
        2 => (0_usize..3, 1_i64..30).prop_map(|(token, hours)| Event::Silence(token, hours)),
        2 => (0_usize..9).prop_map(Event::Acknowledge),
        2 => Just(Event::Restart),
        1 => any::<bool>().prop_map(Event::Reload),
    ]
}

/// The events of a week, keyed by hour.
fn week() -> impl Strategy<Value = BTreeMap<i64, Vec<Event>>> {
    let hour = (1..HOURS, proptest::collection::vec(event(), 1..4));
    proptest::collection::vec(hour, 8..24).prop_map(|hours| hours.into_iter().collect())
}

/// The current facts of a token at the source, with hours since [`BEGIN`].
#[derive(Clone, Debug)]
struct Facts {
    cliffs: Vec<(i64, f64)>,
    burns: Vec<(i64, f64)>,
    buybacks: Vec<(i64, f64)>,
}

impl Facts {
    fn of(token: usize) -> Self {
        let at = i64::try_from(token).expect("few");
        let cliffs = vec![(40 + at * 7, 2_500_000.0), (75 + at, 600_000.0), (130, 4_500_000.0), (400, 1_500_000.0), (800, 9e5)];
        Self { cliffs, burns: vec![(-200, 5_000.0)], buybacks: vec![(-30 - at, 5_000.0)] }
    }

    /// Changes the facts of an endpoint. `now` is the hour.
    fn mutate(&mut self, polled: Polled, how: u8, now: i64) {
        let small = i64::from(how % 7);
        match polled {
            Polled::Unlocks => {
                let index = usize::from(how / 7) % self.cliffs.len().max(1);
                match (how % 5, self.cliffs.get_mut(index)) {
                    (0, Some(cliff)) if cliff.0 > now => cliff.0 += (small + 1) * 5,
                    (1, Some(cliff)) if cliff.0 > now => cliff.1 *= 2.0,
                    (2, Some(cliff)) if cliff.0 > now => cliff.1 *= 0.5,
                    (3, Some(cliff)) if cliff.0 > now + 100 => drop(self.cliffs.remove(index)),
                    _ => self.cliffs.push((now + 20 + small * 9, 700_000.0 * f64::from(how % 9 + 1))),
                }
                self.cliffs.sort_by_key(|cliff| cliff.0);
                self.cliffs.dedup_by_key(|cliff| cliff.0);
            }
            Polled::Burns => self.burns.push((now - small - 1, 900.0 * f64::from(how % 9 + 1))),
            Polled::Buybacks => self.buybacks.push((now - small - 1, 500.0 * f64::from(how % 9 + 1))),
        }
    }

    fn payload(&self, polled: Polled) -> Payload {
        let at = |hour: i64| (time(BEGIN) + TimeDelta::hours(hour)).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        match polled {
            Polled::Unlocks => {
                // Every other event also begins a linear unlock of a month, so that spans adjoin, overlap, and change the rate.
                let event = |(index, (hour, amount)): (usize, &(i64, f64))| {
                    let event = cliff(&at(*hour), "Team", *amount, "second");
                    if index.is_multiple_of(2) { with_linear(event, &at(*hour), &at(hour + 720), amount / 8.0) } else { event }
                };
                Payload::UnlockEvents(self.cliffs.iter().enumerate().map(event).collect())
            }
            Polled::Burns => Payload::Burns(wire::BurnData {
                burns: self.burns.iter().map(|(hour, amount)| burn(&at(*hour), *amount)).collect::<Vec<_>>().into(),
                ..Default::default()
            }),
            Polled::Buybacks => Payload::Buybacks(wire::BuybackData {
                buybacks: self.buybacks.iter().map(|(hour, amount)| buyback(&at(*hour), *amount)).collect::<Vec<_>>().into(),
                ..Default::default()
            }),
        }
    }
}

/// Adds a linear unlock to an event.
fn with_linear(event: wire::UnlockEvent, begin: &str, end: &str, amount: f64) -> wire::UnlockEvent {
    let mut event = serde_json::to_value(event).expect("JSON");
    event["linearUnlocks"] = serde_json::json!({"allocationBreakdown": [{"allocationName": "Treasury", "beginDate": begin,
        "endDate": end, "linearAmount": amount, "unlockPrecision": "second"}]});
    serde_json::from_value(event).expect("an event")
}

impl Polled {
    fn endpoint(self) -> Endpoint {
        match self {
            Polled::Unlocks => Endpoint::UnlockEvents,
            Polled::Burns => Endpoint::Burn,
            Polled::Buybacks => Endpoint::Buyback,
        }
    }
}

/// A poll and its outcome.
fn responded(request: PollRequest, outcome: PollOutcome) -> (PlannedPoll, FetchedResponse) {
    let planned = PlannedPoll::for_change(request.clone());
    let fetched = FetchedResponse { credits: 0, ..FetchedResponse::of_page(request, outcome, Some(3)) };
    (planned, fetched)
}

fn fresh(payload: Payload) -> PollOutcome {
    PollOutcome::Fresh(PollResponse::clean(payload, ContentHash(1)))
}

/// Daemon and simulation during a week.
struct World<'a> {
    app: TestApp,
    simulation: Simulation<'a>,
    facts: [Facts; 3],
    /// The original rules, and those with changed thresholds.
    active: &'a [ActiveRules; 2],
    texts: &'a [String; 2],
    /// The index of the active rules.
    which: usize,
    /// The time of the daemon's last evaluation.
    until: Timestamp,
    made: Vec<Message>,
}

impl World<'_> {
    /// Runs one cycle over `responses` and a dispatch on both sides.
    async fn poll(&mut self, endpoint: Endpoint, responses: Vec<(PlannedPoll, FetchedResponse)>) {
        let now = self.app.clock.now();
        match responses.first().map(|(_, fetched)| &fetched.outcome) {
            Some(PollOutcome::Fresh(PollResponse { payload: Payload::Tokens(items), .. })) => self.simulation.tokens(items),
            _ => self.simulation.ingest(responses.clone()),
        }
        self.simulation.end_cycle();
        run_cycle_with(self.app.app().deps(), endpoint, responses, now).await.expect("a cycle");
        self.dispatch().await;
    }

    async fn dispatch(&self) {
        let report = self.app.deliver().await;
        assert_eq!(report.errors, [""; 0]);
    }

    async fn evaluate(&mut self) {
        self.app.evaluate().await;
        self.dispatch().await;
    }

    /// Polls one endpoint for all tokens.
    async fn poll_tokens(&mut self, polled: Polled, replies: [Reply; 3], hour: i64) {
        let mut responses = Vec::new();
        for ((facts, reply), (id, _)) in self.facts.iter_mut().zip(replies).zip(TOKENS) {
            let token = TokenId::from(id);
            let (start, end) = (chrono::NaiveDate::MIN, chrono::NaiveDate::MAX);
            let request = PollRequest::Token { endpoint: polled.endpoint(), token, start, end };
            let outcome = match reply {
                Reply::New(how) => {
                    facts.mutate(polled, how, hour);
                    fresh(facts.payload(polled))
                }
                Reply::Same if fact_count(facts, polled).is_multiple_of(2) => PollOutcome::Unchanged,
                Reply::Same => fresh(facts.payload(polled)),
                Reply::Failed(kind) => {
                    PollOutcome::Failed(PollFailure { kind, message: format!("{id}: failed"), retry_at: None })
                }
            };
            responses.push(responded(request, outcome));
        }
        self.poll(polled.endpoint(), responses).await;
    }

    async fn list(&mut self, caps: [u8; 3]) {
        let items = TOKENS.iter().zip(caps).map(|((id, symbol), cap)| {
            let mut item = item(id, symbol);
            item.market_cap = (1e6 * f64::from(cap)).into();
            item
        });
        let payload = fresh(Payload::Tokens(items.collect()));
        self.poll(Endpoint::TokenList, vec![responded(PollRequest::TokenList, payload)]).await;
    }

    /// Advances both sides to `until`, exclusive: on a grid of minutes, and whenever the simulation's dispatcher has work. The real
    /// daemon dispatches every other second.
    async fn pass(&mut self, until: Timestamp) {
        loop {
            let hour = self.until - TimeDelta::seconds(self.until.timestamp() % 3_600);
            let grid = [0, 1, 30, 31, 60].map(|minute| hour + TimeDelta::minutes(minute));
            let evaluated = grid.into_iter().find(|at| *at > self.until);
            let dispatched = self.simulation.next_delivery().filter(|at| *at > self.until);
            let Some(at) = [evaluated, dispatched].into_iter().flatten().min().filter(|at| *at < until) else { break };
            self.simulation.advance(at);
            self.app.clock.set(at);
            if evaluated == Some(at) {
                self.app.evaluate().await;
            }
            self.dispatch().await;
            self.until = at;
        }
        self.simulation.advance_before(until);
        self.collect();
        self.app.clock.set(until);
        self.until = until;
    }

    fn collect(&mut self) {
        self.made.extend(simulated(self.simulation.take_sent()));
    }

    async fn apply(&mut self, event: Event, hour: i64) {
        let now = self.app.clock.now();
        match event {
            Event::Poll(polled, replies) => self.poll_tokens(polled, replies, hour).await,
            Event::List(caps) => self.list(caps).await,
            Event::Silence(token, hours) => {
                let (id, _) = TOKENS[token];
                let request = SilenceRequest {
                    matchers: read_matchers([format!("token={id}").as_str()]).expect("matchers"),
                    author: "ann".to_owned(),
                    comment: "known to the exchange".to_owned(),
                    starts_at: None,
                    ends_at: now + TimeDelta::hours(hours),
                };
                let silence = request.into_silence(now).expect("granted");
                self.app.app().store().put_silence(silence.clone()).await.expect("written");
                self.simulation.put_silence(silence);
            }
            Event::Acknowledge(number) => {
                let store = self.app.app().store();
                let firing = AlertFilter { states: vec![AlertState::Firing], limit: 10_000, ..AlertFilter::default() };
                let mut firing = store.alerts(firing).await.expect("read");
                firing.sort_by(|a, b| a.id.cmp(&b.id));
                let Some(alert) = firing.get(number) else { return };
                store.acknowledge(alert.id.to_string(), "bob".into(), String::new(), now).await.expect("written");
                for ack in store.acks().await.expect("read") {
                    self.simulation.put_ack(ack);
                }
            }
            Event::Restart => {
                // A start evaluates every token, like a reload.
                let active = &self.active[self.which];
                self.simulation.reload(&active.rules, &active.routes);
                self.simulation.advance(now);
                self.app.restart().await;
                self.evaluate().await;
            }
            Event::Reload(other) => {
                let which = usize::from(other);
                self.which = which;
                std::fs::write(self.app.folder.path().join("rules/test.toml"), &self.texts[which]).expect("written");
                self.app.app().reload().await.expect("good rules");
                self.simulation.reload(&self.active[which].rules, &self.active[which].routes);
                self.simulation.advance(now);
                self.evaluate().await;
            }
        }
        self.collect();
    }
}

/// The number of facts of an endpoint. Its parity decides whether an equal response is sent as unchanged.
fn fact_count(facts: &Facts, polled: Polled) -> usize {
    match polled {
        Polled::Unlocks => facts.cliffs.len(),
        Polled::Burns => facts.burns.len(),
        Polled::Buybacks => facts.buybacks.len(),
    }
}

async fn play(events: BTreeMap<i64, Vec<Event>>) -> Result<(usize, usize), TestCaseError> {
    let begin = time(BEGIN);
    let texts = [RULES.to_owned(), RULES.replace(">= 1000000", ">= 2000000").replace("> 4000000", "> 5000000")];
    let setup = Setup {
        tokens: json!(["alpha", "beta", "gamma"]),
        rules: texts[0].clone(),
        config: CONFIG.to_owned(),
        fill: Box::new(|_| Ok(())),
        ..Setup::default()
    };
    let mut app = TestApp::with(setup).await;
    app.restart_with(|config| {
        for receiver in &mut config.receivers {
            if receiver.name == "desk" {
                receiver.digest = Some(cliffwatch::model::config::DigestSettings { at: "08:00".into(), ..Default::default() });
            }
            receiver.max_per_hour = (receiver.name == "ops").then_some(4);
        }
    })
    .await;
    let config = app.config.clone();
    let names: Vec<String> = config.receivers.iter().map(|receiver| receiver.name.clone()).collect();
    let active = [0, 1].map(|which| {
        let source = SourceText { file: "rules/test.toml".into(), text: texts[which].clone() };
        let groups = BTreeMap::new();
        let around = Surroundings { receivers: &names, groups: &groups, now: begin };
        let loaded = rules::load(&[source], &around);
        assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
        ActiveRules {
            rules: loaded.set,
            routes: RouteTree::of(&Sections::from(&config)).expect("routes"),
            ..ActiveRules::default()
        }
    });
    let watch = Watch::build(&config.watch).expect("a watch");
    let policy = DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).expect("a policy");
    let pace = Pace { poll_every: None, evaluate_every: TimeDelta::minutes(1), ..Pace::default() };
    let simulation = Simulation::new(&active[0].rules, &active[0].routes, &watch, pace, begin)
        .with_delivery(DeliverySetup::of(policy))
        .monitoring();
    let facts = std::array::from_fn(Facts::of);
    let (active, texts) = (&active, &texts);
    let mut world = World { app, simulation, facts, active, texts, which: 0, until: begin, made: Vec::new() };

    world.dispatch().await;
    world.list([100, 100, 100]).await;
    world.evaluate().await;
    for polled in [Polled::Unlocks, Polled::Burns, Polled::Buybacks] {
        world.poll_tokens(polled, [Reply::New(3), Reply::New(8), Reply::New(15)], 0).await;
    }
    world.simulation.advance(begin);
    world.evaluate().await;
    world.collect();
    for (hour, events) in events {
        let at = begin + TimeDelta::hours(hour);
        world.pass(at).await;
        for event in events {
            world.apply(event, hour).await;
        }
        world.simulation.advance(at);
        world.evaluate().await;
        world.collect();
    }
    world.pass(begin + TimeDelta::hours(HOURS)).await;
    world.app.hook.take();
    world.app.desk.take();

    let (mut live, mut undelivered) = recorded(&world.app).await;
    let undelivered_again = world.simulation.undelivered().into_iter();
    let mut undelivered_again: Vec<_> = undelivered_again
        .map(|row| {
            let state = row.by.map_or("waiting", |by| by.by.as_str());
            (row.notice.to_string(), row.receiver.to_string(), state.to_owned())
        })
        .collect();
    let mut again = world.made;
    live.sort();
    again.sort();
    prop_assert!(live == again, "{}", difference(&live, &again));
    undelivered.sort();
    undelivered_again.sort();
    prop_assert_eq!(&undelivered, &undelivered_again);
    Ok((live.len(), undelivered.len()))
}

#[test]
fn daemon_and_simulation_send_the_same_messages() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let weeks = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { WEEKS };
    let config = ProptestConfig { cases: weeks, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() };
    let counts = std::cell::Cell::new((0, 0));
    TestRunner::new(config)
        .run(&week(), |week| {
            let (made, undelivered) = runtime.block_on(play(week))?;
            let (all_made, all_undelivered) = counts.get();
            counts.set((all_made + made, all_undelivered + undelivered));
            Ok(())
        })
        .expect("the same messages");
    let (made, undelivered) = counts.get();
    assert!(made > 30 * WEEKS as usize && undelivered > 0, "too few messages: {made} sent, {undelivered} undelivered");
}
