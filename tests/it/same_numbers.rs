//! A rule, the explanation of its alert, the alert page, the API, and the messages give the same numbers, before and after a correction.
//! The expected numbers are sums that this test makes from its own schedule.

use std::net::SocketAddr;

use chrono::TimeDelta;
use cliffwatch::{
    model::supply::Timestamp,
    service::{Edit, EditError},
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::it::{
    hostile::out::Received,
    support::{BEGIN, Setup, TestApp, item, time},
    unknown_supply::texts,
};

const RULES: &str = r#"
[[rule]]
alert  = "Cliff"
on     = "unlock"
tokens = ["alpha"]
within = ["30d", "7d"]
when   = "cliffValue >= 1000 && valueToMarketCap >= 0.001 && cliffAmount >= 1"

[[rule]]
alert  = "Window"
on     = "token"
tokens = ["alpha"]
when   = '''ahead("30d").value >= 1 && ahead("30d").amount >= 1 && ahead("30d").cliff.value >= 1
    && ahead("30d").linear.value >= 0 && ahead("30d").linear.amount >= 0'''

[[rule]]
alert = "Book"
on    = "portfolio"
when  = 'ahead("30d").value >= 1 && ahead("30d").cliff.value >= 1'
"#;

/// The facts about a token. Each has one cliff unlock, and may unlock linearly.
#[derive(Clone)]
struct Schedule {
    slug: &'static str,
    /// USD per token.
    price: f64,
    circulating: f64,
    cliff_at: Timestamp,
    cliff: f64,
    /// Start, end, and tokens.
    vesting: Option<(Timestamp, Timestamp, f64)>,
}

/// Sums of one token in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    cliff: f64,
    linear: f64,
    price: f64,
}

impl Schedule {
    fn market_cap(&self) -> f64 {
        self.circulating * self.price
    }

    fn ahead(&self, now: Timestamp, days: i64) -> Sums {
        let until = now + TimeDelta::days(days);
        let is_in = now < self.cliff_at && self.cliff_at <= until;
        let linear = self.vesting.map_or(0.0, |(from, to, tokens)| {
            let seconds = (to.min(until) - from.max(now)).num_seconds().max(0);
            tokens * seconds as f64 / (to - from).num_seconds() as f64
        });
        Sums { cliff: if is_in { self.cliff } else { 0.0 }, linear, price: self.price }
    }

    fn put(&self, edit: &mut Edit<'_>) -> Result<(), EditError> {
        let (price, at) = (self.price, self.cliff_at.to_rfc3339());
        let value = self.cliff * price;
        let cliff = json!({"unlockDate": at, "tokenName": self.slug, "tokenSymbol": self.slug, "linearUnlocks": null, "cliffUnlocks": {
            "cliffAmount": self.cliff, "cliffValue": value, "valueToMarketCap": value / self.market_cap() * 100.0,
            "allocationBreakdown": [{"unlockDate": at, "allocationName": "Team", "cliffAmount": self.cliff, "cliffValue": value,
            "unlockPrecision": "second", "referencePrice": price, "referencePriceUpdatedTime": BEGIN}]}});
        let linear = self.vesting.map(|(from, to, tokens)| {
            json!({"unlockDate": from.to_rfc3339(), "cliffUnlocks": null, "linearUnlocks": {"linearAmount": tokens,
                "linearValue": tokens * price, "allocationBreakdown": [{"allocationName": "Community", "linearAmount": tokens,
                "linearValue": tokens * price, "beginDate": from.to_rfc3339(), "endDate": to.to_rfc3339(),
                "unlockPrecision": "second", "referencePrice": price, "referencePriceUpdatedTime": BEGIN}]}})
        });
        let events: Vec<Value> = linear.into_iter().chain([cliff]).collect();
        let mut entry = item(self.slug, &self.slug.to_uppercase());
        entry.circulating_supply = self.circulating.into();
        entry.market_cap = self.market_cap().into();
        edit.put_token(&entry)?;
        edit.put_events(self.slug, serde_json::from_value(events.into()).expect("events"))
    }
}

impl Sums {
    fn tokens(self) -> f64 {
        self.cliff + self.linear
    }

    fn usd(self) -> f64 {
        self.tokens() * self.price
    }
}

/// `1.50M`, as people read it.
fn short(number: f64) -> String {
    for (scale, unit) in [(1e9, "B"), (1e6, "M"), (1e3, "K")] {
        if number >= scale {
            return format!("{:.2}{unit}", number / scale);
        }
    }
    number.to_string()
}

fn usd(number: f64) -> String {
    format!("${}", short(number))
}

fn of_market_cap(value: f64, market_cap: f64) -> String {
    format!("{:.2}% of market cap", value / market_cap * 100.0)
}

/// The required texts of an alert, and the numbers that its condition compares.
struct Expected {
    rule: &'static str,
    texts: Vec<String>,
    compared: Vec<(&'static str, f64)>,
}

/// Names the parts of a sum of cliffs and linear unlocks.
fn parts(linear: f64, cliffs: f64, count: usize) -> Vec<String> {
    let cliff = if count == 1 { "1 cliff".to_owned() } else { format!("{count} cliffs") };
    match linear > 0.0 {
        true => vec![format!("{} vest continuously", usd(linear)), format!("{} in {cliff}", usd(cliffs))],
        false => vec![format!("to unlock in the next 30 days in {cliff}")],
    }
}

/// The expected numbers of `alpha` and of both tokens together. The cliff of `alpha` is always in the window.
fn expected(tokens: &[Schedule; 2], now: Timestamp) -> [Expected; 3] {
    let [alpha, beta] = tokens;
    let (ahead, other) = (alpha.ahead(now, 30), beta.ahead(now, 30));
    let value = alpha.cliff * alpha.price;
    let all = ahead.usd() + other.usd();
    let cliffs = ahead.cliff * ahead.price + other.cliff * other.price;
    let linear = ahead.linear * ahead.price;
    let share = of_market_cap(value, alpha.market_cap());
    let window = [format!("{} tokens", short(ahead.tokens())), usd(ahead.usd()), of_market_cap(ahead.usd(), alpha.market_cap())];
    let book = [usd(all), of_market_cap(all, alpha.market_cap() + beta.market_cap())];
    let count = 1 + usize::from(other.cliff > 0.0);
    [
        Expected {
            rule: "Cliff",
            texts: vec![usd(value), share, alpha.cliff_at.format("%-d %b %Y, %H:%M UTC").to_string()],
            compared: vec![
                ("cliffValue", value),
                ("valueToMarketCap", value / alpha.market_cap() * 100.0),
                ("cliffAmount", alpha.cliff),
            ],
        },
        Expected {
            rule: "Window",
            texts: window.into_iter().chain(parts(linear, ahead.cliff * ahead.price, 1)).collect(),
            compared: vec![
                ("ahead(\"30d\").value", ahead.usd()),
                ("ahead(\"30d\").amount", ahead.tokens()),
                ("ahead(\"30d\").cliff.value", ahead.cliff * ahead.price),
                ("ahead(\"30d\").linear.value", linear),
                ("ahead(\"30d\").linear.amount", ahead.linear),
            ],
        },
        Expected {
            rule: "Book",
            texts: book.into_iter().chain(parts(linear, cliffs, count)).collect(),
            compared: vec![("ahead(\"30d\").value", all), ("ahead(\"30d\").cliff.value", cliffs)],
        },
    ]
}

/// Returns the number that an explanation shows for a name: `cliffValue = 1,277,000,000`.
fn compared(explanation: &Value, name: &str) -> Option<f64> {
    let text = explanation.to_string().replace("\\\"", "\"");
    let (_, rest) = text.split_once(&format!("{name} = "))?;
    let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).collect();
    digits.replace(',', "").trim_end_matches('.').parse().ok()
}

fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 * expected.abs()
}

struct Fixture {
    app: TestApp,
    mails: Received,
    seen_mails: usize,
    /// The summary of the last message of each rule.
    notified: [Option<String>; 3],
    _ending: tokio_util::sync::DropGuard,
}

impl Fixture {
    async fn new(tokens: &[Schedule; 2]) -> Self {
        let ending = CancellationToken::new();
        let (mails, mail) = Received::mails(ending.clone()).await;
        let config = format!(
            "group_wait = \"0s\"\ngroup_by = [\"alertname\"]\n[[route.routes]]\nmatchers = []\nreceivers = [\"ops\", \"mail\"]\n\
             [[receiver]]\nname = \"mail\"\ntype = \"email\"\nsmtp = \"smtp://{mail}\"\nfrom = \"Cliffwatch <a@example.com>\"\n\
             to = [\"b@example.com\"]\n[watch.groups]\nbook = [\"alpha\", \"beta\"]\n"
        );
        let filled = tokens.clone();
        let fill = move |edit: &mut Edit<'_>| filled.iter().try_for_each(|token| token.put(edit));
        let setup = Setup { rules: RULES.to_owned(), config, fill: Box::new(fill), ..Setup::default() };
        let mut app = TestApp::with(setup).await;
        app.restart_with(|config| config.http.listen = "127.0.0.1:0".to_owned()).await;
        Self { app, mails, seen_mails: 0, notified: [None, None, None], _ending: ending.drop_guard() }
    }

    /// Polls, evaluates, and delivers at an instant. Returns the rules of the messages.
    async fn run_at(&mut self, tokens: &[Schedule; 2], now: Timestamp) -> Vec<String> {
        self.app.clock.set(now);
        self.app.tick().await;
        self.app.deliver().await;
        self.app.deliver().await;
        let expected = expected(tokens, now);
        let mut sent = Vec::new();
        for message in self.app.hook.take() {
            for alert in message["data"]["alerts"].as_array().expect("alerts") {
                let index = expected.iter().position(|of| alert["rule"] == of.rule).expect("a rule");
                let summary = alert["annotations"]["summary"].as_str().expect("a summary");
                for text in &expected[index].texts {
                    assert!(summary.contains(text), "{now}: message without {text:?}: {alert:#}");
                }
                check_body(alert, tokens, now);
                self.notified[index] = Some(summary.to_owned());
                sent.push(expected[index].rule.to_owned());
            }
        }
        self.check_mails(&expected, &sent);
        sent
    }

    fn check_mails(&mut self, expected: &[Expected; 3], sent: &[String]) {
        let mails = self.mails.all();
        let new = &mails[self.seen_mails..];
        assert_eq!(new.len(), sent.len(), "each message goes to both receivers: {sent:?}");
        for rule in sent {
            let of = expected.iter().find(|of| of.rule == rule).expect("a rule");
            let has_all = |part: &String| of.texts.iter().all(|text| texts::plain(part).contains(text.as_str()));
            let parts: Vec<Vec<String>> = new.iter().map(|(_, mail)| texts::parts_of_mail(mail)).collect();
            // The text and the page of one of the mails.
            let is_complete = |parts: &Vec<String>| parts.iter().filter(|part| has_all(part)).count() >= 2;
            assert!(parts.iter().any(is_complete), "{rule}: no mail has {:?}: {parts:#?}", of.texts);
        }
        self.seen_mails = mails.len();
    }

    /// Compares the API, the page, and the explanation of each alert with the expected numbers.
    /// Returns the number of alerts whose text differs from their last message.
    async fn check_pages(&mut self, tokens: &[Schedule; 2], what: &str) -> usize {
        let now = self.app.clock.now();
        let (expected, notified) = (expected(tokens, now), self.notified.clone());
        let mut changed = 0;
        let check = async |address: SocketAddr| {
            let list: Value = json_of(&get(address, "/api/v1/alerts?state=firing").await);
            for (of, notified) in expected.iter().zip(&notified) {
                let row = list.as_array().expect("alerts").iter().find(|alert| alert["rule"] == of.rule);
                let id =
                    row.unwrap_or_else(|| panic!("{what}: {} does not fire: {list:#}", of.rule))["id"].as_str().expect("an id");
                let alert: Value = json_of(&get(address, &format!("/api/v1/alerts/{id}")).await);
                let page = get(address, &format!("/alerts/{id}")).await;
                let summary = alert["summary"].as_str().expect("a summary");
                let listed = row.expect("a row")["summary"].as_str().expect("a summary");
                for text in &of.texts {
                    for (place, has) in [("API", summary), ("list", listed), ("page", page.as_str())] {
                        assert!(has.contains(text.as_str()), "{what}, {place} of {}: no {text:?}: {has}", of.rule);
                    }
                }
                for (name, number) in &of.compared {
                    let found = compared(&alert["explanation"], name);
                    let is_same = found.is_some_and(|found| is_near(found, *number));
                    assert!(is_same, "{what}: {} compares {name} = {found:?}, not {number}: {:#}", of.rule, alert["explanation"]);
                }
                let as_notified = alert["asNotified"]["summary"].as_str();
                let is_changed = notified.as_deref() != Some(summary);
                assert_eq!(as_notified, notified.as_deref().filter(|_| is_changed), "{what}: {}: {alert:#}", of.rule);
                assert_eq!(page.contains("As notified on"), is_changed, "{what}: {}", of.rule);
                changed += usize::from(is_changed);
                if of.rule == "Cliff" {
                    check_body(&alert, tokens, now);
                }
            }
        };
        self.app.with_pages(check).await;
        changed
    }
}

/// Compares the record or the members of an alert with the schedules.
fn check_body(alert: &Value, tokens: &[Schedule; 2], now: Timestamp) {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let record = &alert["record"];
    if record.is_object() {
        let (alpha, cliff) = (&tokens[0], &record["cliffUnlocks"]);
        let value = alpha.cliff * alpha.price;
        assert!(is_near(number(&cliff["cliffAmount"]), alpha.cliff), "{alert:#}");
        assert!(is_near(number(&cliff["cliffValue"]), value), "{value}: {alert:#}");
        assert!(is_near(number(&cliff["valueToMarketCap"]), value / alpha.market_cap() * 100.0), "{alert:#}");
        assert_eq!(time(record["unlockDate"].as_str().expect("a date")), alpha.cliff_at, "{alert:#}");
    }
    for member in alert["members"].as_array().into_iter().flatten() {
        let of = tokens.iter().find(|of| member["token"]["id"] == of.slug).expect("a token");
        let sums = of.ahead(now, 30);
        assert!(is_near(number(&member["amount"]), sums.tokens()) && is_near(number(&member["value"]), sums.usd()), "{member:#}");
        let all: f64 = tokens.iter().map(Schedule::market_cap).sum();
        assert!(is_near(number(&member["share"]), of.market_cap() / all * 100.0), "{member:#}");
    }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let response = reqwest::get(format!("http://{address}{path}")).await.expect("a response");
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.text().await.expect("a text")
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The number of random worlds.
const WORLDS: u64 = 3;

/// The number of corrections in a world, one a day.
const CORRECTIONS: i64 = 5;

fn day(days: i64) -> Timestamp {
    time(BEGIN) + TimeDelta::days(days)
}

/// A cliff after all corrections, in the window of each of them.
fn random_cliff_date(random: &mut fastrand::Rng) -> Timestamp {
    day(random.i64(14..29)) + TimeDelta::hours(random.i64(0..24))
}

/// A linear unlock that ends before, in, or after the window. It always begins at the same time: without its first event, the old one
/// would count until its removal is proven.
fn random_vesting(random: &mut fastrand::Rng) -> (Timestamp, Timestamp, f64) {
    (day(-40), day(random.i64(1..150)), f64::from(random.u32(50..900)) * 1e5)
}

fn random_tokens(random: &mut fastrand::Rng) -> [Schedule; 2] {
    let token = |slug: &'static str, random: &mut fastrand::Rng| Schedule {
        slug,
        price: f64::from(random.u32(10..900)) / 100.0,
        circulating: f64::from(random.u32(10..90)) * 1e6,
        cliff_at: random_cliff_date(random),
        cliff: f64::from(random.u32(100..9000)) * 1e3,
        vesting: None,
    };
    let mut tokens = ["alpha", "beta"].map(|slug| token(slug, random));
    tokens[0].vesting = Some(random_vesting(random));
    tokens
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rule_page_and_message_give_the_same_numbers_before_and_after_corrections() {
    let mut changed = 0;
    for seed in 0..WORLDS {
        let random = &mut fastrand::Rng::with_seed(seed);
        let mut tokens = random_tokens(random);
        let mut fixture = Fixture::new(&tokens).await;
        let mut sent = fixture.run_at(&tokens, day(0)).await;
        sent.sort();
        assert_eq!(sent, ["Book", "Cliff", "Window"]);
        fixture.check_pages(&tokens, &format!("world {seed}")).await;
        for number in 1..=CORRECTIONS {
            let alpha = &mut tokens[0];
            let kind = if number < 5 { number } else { random.i64(1..5) };
            match kind {
                1 => alpha.cliff *= f64::from(random.u32(30..300)) / 100.0,
                2 => alpha.cliff_at = random_cliff_date(random),
                3 => alpha.price *= f64::from(random.u32(30..300)) / 100.0,
                _ => alpha.vesting = Some(random_vesting(random)),
            }
            let price = alpha.price;
            match kind {
                3 => fixture.app.edit(|edit| edit.reprice("alpha", price)),
                _ => fixture.app.edit(|edit| tokens[0].put(edit)),
            }
            fixture.run_at(&tokens, day(number)).await;
            changed += fixture.check_pages(&tokens, &format!("world {seed}, correction {number} of kind {kind}")).await;
        }
        let near = tokens[0].cliff_at - TimeDelta::days(6);
        let sent = fixture.run_at(&tokens, near).await;
        assert!(sent.contains(&"Cliff".to_owned()), "the reminder at 7 days has the current numbers: {sent:?}");
        fixture.check_pages(&tokens, &format!("world {seed}, after the reminder")).await;
        fixture.app.hook.take();
    }
    assert!(changed > 10, "corrections change texts after their messages: {changed}");
}
