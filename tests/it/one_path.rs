//! The daemon and the simulation are fed the same random weeks, and must make the same messages at the same times, to the letter.
//!
//! The daemon is the real app with its database and a manual clock; its source is replaced by answers at hand. The simulation is what
//! rule tests and backtests run. Both hear the same answers, faults, silences, acknowledgements and reloads; the daemon alone is also
//! restarted. The daemon is evaluated and dispatched on a grid of minutes, and at the instants at which the simulation sent something:
//! what either of them would tell at another time shows as a difference.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use cliffwatch::{
    daemon::cycle::{ActiveRules, run_cycle_over},
    engine::{
        pipeline::DispatchPolicy,
        plan::PlannedPoll,
        route::{RouteTree, Sections},
    },
    model::{
        AlertFilter,
        alert::{AlertBody, AlertState, Notification},
        diagnostic::SourceText,
        poll::{FailureKind, FetchedAnswer, Payload, PollAnswer, PollFailure, PollOutcome, PollRequest},
        silence::{SilenceRequest, read_matchers},
        supply::{ContentHash, Endpoint, Timestamp, TokenId},
        watch::Watch,
        wire,
    },
    rules::{self, Surroundings},
    tools::simulate::{DeliverySetup, Pace, Sent, Simulation},
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::support::{Setup, TestApp, burn, buyback, cliff, item, time};

/// Weeks that are tried, unless `PROPTEST_CASES` says otherwise; each takes some seconds in a debug build.
const WEEKS: u32 = 5;
/// Hours of a week, which is a working week: the rest of the time goes into more of them.
const HOURS: i64 = 96;
const TOKENS: [(&str, &str); 3] = [("alpha", "ALP"), ("beta", "BET"), ("gamma", "GAM")];
const BEGIN: &str = crate::support::BEGIN;

/// Groups, waits, intervals, mute times, an inhibition, repeats and digests, and an hour that is soon full.
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
labels = { severity = "notice" }

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

/// What one week brings, in its order.
#[derive(Clone, Debug)]
enum Happening {
    /// An answer about each token, of one endpoint: what each token says, or why it says nothing.
    Poll(Polled, [Said; 3]),
    /// The token list, with market caps.
    List([u8; 3]),
    /// Somebody silences a token, for some hours.
    Silence(usize, i64),
    /// Somebody acknowledges the alert of that number, of those that fire.
    Acknowledge(usize),
    /// The daemon starts anew.
    Restart,
    /// Rules with another threshold are put to work.
    Reload(bool),
}

#[derive(Clone, Copy, Debug)]
enum Polled {
    Unlocks,
    Burns,
    Buybacks,
}

/// What a token says: a number turns what it said before into something else.
#[derive(Clone, Copy, Debug)]
enum Said {
    New(u8),
    Same,
    Failed(FailureKind),
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        5 => any::<u8>().prop_map(Said::New),
        2 => Just(Said::Same),
        1 => prop_oneof![
            Just(FailureKind::ServerError), Just(FailureKind::Timeout), Just(FailureKind::Unauthorized),
            Just(FailureKind::NotFound), Just(FailureKind::BadAnswer)
        ].prop_map(Said::Failed),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let polled = prop_oneof![3 => Just(Polled::Unlocks), 2 => Just(Polled::Burns), 2 => Just(Polled::Buybacks)];
    prop_oneof![
        10 => (polled, [said(), said(), said()]).prop_map(|(polled, said)| Happening::Poll(polled, said)),
        1 => any::<[u8; 3]>().prop_map(Happening::List),
        2 => (0_usize..3, 1_i64..30).prop_map(|(token, hours)| Happening::Silence(token, hours)),
        2 => (0_usize..9).prop_map(Happening::Acknowledge),
        2 => Just(Happening::Restart),
        1 => any::<bool>().prop_map(Happening::Reload),
    ]
}

/// What happens, by the hour of the week.
fn week() -> impl Strategy<Value = BTreeMap<i64, Vec<Happening>>> {
    let hour = (1..HOURS, proptest::collection::vec(happening(), 1..4));
    proptest::collection::vec(hour, 8..24).prop_map(|hours| hours.into_iter().collect())
}

/// What the source would say of a token.
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

    /// Turns what is said of `polled` into something else; `now` is the hour.
    fn turn(&mut self, polled: Polled, how: u8, now: i64) {
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
            Polled::Unlocks => Payload::UnlockEvents(
                self.cliffs.iter().map(|(hour, amount)| cliff(&at(*hour), "Team", *amount, "second")).collect(),
            ),
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

impl Polled {
    fn endpoint(self) -> Endpoint {
        match self {
            Polled::Unlocks => Endpoint::UnlockEvents,
            Polled::Burns => Endpoint::Burn,
            Polled::Buybacks => Endpoint::Buyback,
        }
    }
}

/// A request with what came of it.
fn answered(request: PollRequest, outcome: PollOutcome) -> (PlannedPoll, FetchedAnswer) {
    let ask = PlannedPoll::of(request.clone());
    let fetched = FetchedAnswer { credits: 0, ..FetchedAnswer::of_page(request, outcome, Some(3)) };
    (ask, fetched)
}

fn fresh(payload: Payload) -> PollOutcome {
    PollOutcome::Fresh(PollAnswer::clean(payload, ContentHash(1)))
}

/// A message as both sides make it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    at: i64,
    receiver: String,
    /// Its group and its note, as JSON.
    batch: String,
    /// What it tells, counts and merges: the role, the id, when it was decided, and the whole text, as JSON.
    tells: Vec<(String, String, i64, String)>,
}

fn simulated(sent: Vec<Sent>) -> Vec<Made> {
    let tell = |role: &str, notification: &Notification| {
        let body = canonical(&serde_json::to_value(&notification.body).expect("JSON"));
        (role.to_owned(), notification.id.to_string(), notification.at.timestamp_millis(), body)
    };
    sent.into_iter()
        .map(|sent| {
            let tells = sent.told.iter().map(|told| tell("told", told));
            let tells = tells.chain(sent.counted.iter().map(|told| tell("counted", told)));
            Made {
                at: sent.at.timestamp_millis(),
                receiver: sent.receiver.to_string(),
                batch: canonical(&serde_json::to_value(&sent.bundle).expect("JSON")),
                tells: tells.chain(sent.merged.iter().map(|told| tell("merged", told))).collect(),
            }
        })
        .collect()
}

impl Made {
    /// What it is, in a line.
    fn line(&self) -> String {
        let tells = self.tells.iter().map(|(role, _, _, body)| {
            let body: Value = serde_json::from_str(body).expect("JSON");
            format!("{role} {} {} {}", body["rule"], body["reason"], body["annotations"]["summary"])
        });
        let batch: Value = serde_json::from_str(&self.batch).expect("JSON");
        let at = Timestamp::from_timestamp_millis(self.at).expect("a time").format("%d %H:%M:%S");
        let tells: Vec<String> = tells.collect();
        format!("{at} {} {} {}: {}", self.receiver, batch["shape"], batch["toldBefore"], tells.join("; "))
    }
}

/// What one side made and the other did not, in lines; where only details differ, the first of them.
fn difference(live: &[Made], again: &[Made]) -> String {
    let only = |of: &[Made], other: &[Made]| of.iter().filter(|made| !other.contains(made)).cloned().collect::<Vec<_>>();
    let (live, again) = (only(live, again), only(again, live));
    let lines = |of: &[Made]| of.iter().take(6).map(Made::line).collect::<Vec<_>>();
    let (live_lines, again_lines) = (lines(&live), lines(&again));
    let mut text = format!("the daemon alone: {live_lines:#?}\nthe simulation alone: {again_lines:#?}");
    if live_lines == again_lines
        && let (Some(live), Some(again)) = (live.first(), again.first())
    {
        let (live, again) = (format!("{live:?}"), format!("{again:?}"));
        let at = live.bytes().zip(again.bytes()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| text.chars().skip(at.saturating_sub(150)).take(300).collect::<String>();
        text.push_str(&format!("\nthe details: {}\nand: {}", around(&live), around(&again)));
    }
    text
}

/// JSON with its keys in order.
fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let ordered: BTreeMap<&String, Value> = map.iter().map(|(key, value)| (key, sorted(value))).collect();
                ordered.into_iter().map(|(key, value)| (key.clone(), value)).collect::<serde_json::Map<_, _>>().into()
            }
            Value::Array(list) => list.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    sorted(value).to_string()
}

/// What the daemon's database says that it made, and what it tells nobody: by what.
async fn recorded(app: &TestApp) -> (Vec<Made>, Vec<(String, String, String)>) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let number = |value: &Value| value.as_i64().expect("a number");
    let json = |value: &Value| canonical(&serde_json::from_str(value.as_str().expect("a text")).expect("JSON"));
    let nothing = Value::from(serde_json::to_string(&cliffwatch::model::rows::Batch::default()).expect("JSON"));
    let mut bodies: BTreeMap<String, String> = BTreeMap::new();
    for row in app.rows("SELECT DISTINCT alert FROM notice") {
        let [alert] = row.as_slice() else { panic!("{row:?}") };
        let told = app.app().store().notifications_of(text(alert).as_str().into()).await.expect("read");
        let body = |body: &AlertBody| canonical(&serde_json::to_value(body).expect("JSON"));
        bodies.extend(told.iter().map(|told| (told.id.as_str().to_owned(), body(&told.body))));
    }
    let mut tells: BTreeMap<i64, Vec<(String, String, i64, String)>> = BTreeMap::new();
    for row in app.rows(
        "SELECT d.delivery_no, d.role, n.id, n.at FROM delivery_notice d JOIN notice n ON n.id = d.notice
         ORDER BY d.delivery_no, d.ordinal",
    ) {
        let [delivery, role, id, at] = row.as_slice() else { panic!("{row:?}") };
        let body = bodies.get(&text(id)).expect("one of an alert's messages").clone();
        tells.entry(number(delivery)).or_default().push((text(role), text(id), number(at), body));
    }
    let made = app.rows("SELECT no, created_at, receiver, bundle FROM delivery ORDER BY no").into_iter().map(|row| {
        let [no, at, receiver, batch] = row.as_slice() else { panic!("{row:?}") };
        let batch = if batch.is_null() { &nothing } else { batch };
        Made {
            at: number(at),
            receiver: text(receiver),
            batch: json(batch),
            tells: tells.remove(&number(no)).unwrap_or_default(),
        }
    });
    let made = made.collect();
    let untold = app.rows("SELECT notice, receiver, state FROM telling").into_iter().map(|row| {
        let [notice, receiver, state] = row.as_slice() else { panic!("{row:?}") };
        (text(notice), text(receiver), text(state))
    });
    (made, untold.collect())
}

/// Both sides of a week.
struct World<'a> {
    app: TestApp,
    simulation: Simulation<'a>,
    facts: [Facts; 3],
    /// The rules as they are, and those with another threshold.
    active: &'a [ActiveRules; 2],
    texts: &'a [String; 2],
    /// Up to when the daemon was evaluated.
    until: Timestamp,
    made: Vec<Made>,
}

impl World<'_> {
    /// One cycle of the daemon over `answers`, with its dispatch, and the same in the simulation.
    async fn poll(&mut self, endpoint: Endpoint, answers: Vec<(PlannedPoll, FetchedAnswer)>) {
        let now = self.app.clock.now();
        match answers.first().map(|(_, fetched)| &fetched.outcome) {
            Some(PollOutcome::Fresh(PollAnswer { payload: Payload::Tokens(items), .. })) => self.simulation.tokens(items),
            _ => self.simulation.ingest(answers.clone()),
        }
        self.simulation.end_cycle();
        run_cycle_over(self.app.app().deps(), endpoint, answers, now).await.expect("a cycle");
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

    /// Asks all tokens of one endpoint.
    async fn ask(&mut self, polled: Polled, said: [Said; 3], hour: i64) {
        let mut answers = Vec::new();
        for ((facts, said), (id, _)) in self.facts.iter_mut().zip(said).zip(TOKENS) {
            let token = TokenId::from(id);
            let (start, end) = (chrono::NaiveDate::MIN, chrono::NaiveDate::MAX);
            let request = PollRequest::Token { endpoint: polled.endpoint(), token, start, end };
            let outcome = match said {
                Said::New(how) => {
                    facts.turn(polled, how, hour);
                    fresh(facts.payload(polled))
                }
                Said::Same if how_many(facts, polled).is_multiple_of(2) => PollOutcome::Unchanged,
                Said::Same => fresh(facts.payload(polled)),
                Said::Failed(kind) => {
                    PollOutcome::Failed(PollFailure { kind, message: format!("{id}: it did not work"), retry_at: None })
                }
            };
            answers.push(answered(request, outcome));
        }
        self.poll(polled.endpoint(), answers).await;
    }

    async fn list(&mut self, caps: [u8; 3]) {
        let items = TOKENS.iter().zip(caps).map(|((id, symbol), cap)| {
            let mut item = item(id, symbol);
            item.market_cap = (1e6 * f64::from(cap)).into();
            item
        });
        let payload = fresh(Payload::Tokens(items.collect()));
        self.poll(Endpoint::TokenList, vec![answered(PollRequest::TokenList, payload)]).await;
    }

    /// Lets time pass on both sides up to `until`, exclusive: on a grid of minutes, and whenever the simulation's dispatcher has
    /// something to do, as that of the daemon looks every other second.
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

    async fn happen(&mut self, happening: Happening, hour: i64) {
        let now = self.app.clock.now();
        match happening {
            Happening::Poll(polled, said) => self.ask(polled, said, hour).await,
            Happening::List(caps) => self.list(caps).await,
            Happening::Silence(token, hours) => {
                let (id, _) = TOKENS[token];
                let wish = SilenceRequest {
                    matchers: read_matchers([format!("token={id}").as_str()]).expect("matchers"),
                    author: "ann".to_owned(),
                    comment: "known to the exchange".to_owned(),
                    starts_at: None,
                    ends_at: now + TimeDelta::hours(hours),
                };
                let silence = wish.grant(now).expect("granted");
                self.app.app().store().put_silence(silence.clone()).await.expect("written");
                self.simulation.put_silence(silence);
            }
            Happening::Acknowledge(number) => {
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
            Happening::Restart => {
                self.simulation.advance(now);
                self.app.restart().await;
                self.evaluate().await;
            }
            Happening::Reload(other) => {
                let which = usize::from(other);
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

/// A number that differs with what a token says, for a choice that both sides make alike.
fn how_many(facts: &Facts, polled: Polled) -> usize {
    match polled {
        Polled::Unlocks => facts.cliffs.len(),
        Polled::Burns => facts.burns.len(),
        Polled::Buybacks => facts.buybacks.len(),
    }
}

async fn play(happenings: BTreeMap<i64, Vec<Happening>>) -> Result<(usize, usize), TestCaseError> {
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
        ActiveRules { rules: loaded.set, routes: RouteTree::of(&Sections::from(&config)).expect("routes") }
    });
    let watch = Watch::build(&config.watch).expect("a watch");
    let policy = DispatchPolicy::of(&config.receivers, &config.delivery).expect("a policy");
    let pace = Pace { poll_every: None, look_every: TimeDelta::minutes(1), ..Pace::default() };
    let simulation = Simulation::new(&active[0].rules, &active[0].routes, &watch, pace, begin)
        .with_delivery(DeliverySetup::of(policy))
        .monitoring();
    let facts = std::array::from_fn(Facts::of);
    let (active, texts) = (&active, &texts);
    let mut world = World { app, simulation, facts, active, texts, until: begin, made: Vec::new() };

    world.dispatch().await;
    world.list([100, 100, 100]).await;
    world.evaluate().await;
    for polled in [Polled::Unlocks, Polled::Burns, Polled::Buybacks] {
        world.ask(polled, [Said::New(3), Said::New(8), Said::New(15)], 0).await;
    }
    world.simulation.advance(begin);
    world.evaluate().await;
    world.collect();
    for (hour, happenings) in happenings {
        let at = begin + TimeDelta::hours(hour);
        world.pass(at).await;
        for happening in happenings {
            world.happen(happening, hour).await;
        }
        world.simulation.advance(at);
        world.evaluate().await;
        world.collect();
    }
    world.pass(begin + TimeDelta::hours(HOURS)).await;
    world.app.hook.take();
    world.app.desk.take();

    let (mut live, mut untold) = recorded(&world.app).await;
    let untold_again = world.simulation.undelivered().into_iter();
    let mut untold_again: Vec<_> = untold_again
        .map(|row| {
            let state = row.by.map_or("waiting", |by| by.by.as_str());
            (row.notice.to_string(), row.receiver.to_string(), state.to_owned())
        })
        .collect();
    let mut again = world.made;
    live.sort();
    again.sort();
    prop_assert!(live == again, "{}", difference(&live, &again));
    untold.sort();
    untold_again.sort();
    prop_assert_eq!(&untold, &untold_again);
    Ok((live.len(), untold.len()))
}

#[test]
fn the_daemon_and_the_simulation_make_the_same_messages_of_the_same_weeks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let weeks = if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { WEEKS };
    let config = ProptestConfig { cases: weeks, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() };
    let counts = std::cell::Cell::new((0, 0));
    TestRunner::new(config)
        .run(&week(), |week| {
            let (made, untold) = runtime.block_on(play(week))?;
            let (all_made, all_untold) = counts.get();
            counts.set((all_made + made, all_untold + untold));
            Ok(())
        })
        .expect("the same messages");
    let (made, untold) = counts.get();
    assert!(made > 30 * WEEKS as usize && untold > 0, "the weeks tell too little: {made} messages, {untold} not told");
}
