//! A source that drops, nulls, garbles and restores parts of burns, buybacks, emissions, allocations and rounds for a thousand polls,
//! with true corrections among that: in the end the true ones were told, each once, and what is kept is the truth.
//!
//! Rows are JSON, and the list of what was corrected is made here: nothing of the comparison is used to say what is true.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;
use crate::pipeline::{Ingest, RoundsPage, Work};
use model::{watch::Watch, wire::Maybe};

const POLLS: usize = 1_000;

struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("32 bits") % sides.max(1)
    }
}

/// An endpoint with the shape of its rows.
struct Rows {
    endpoint: Endpoint,
    /// The list in the payload; empty where the payload is the list.
    list: &'static str,
    /// What no row is told from another without; a row that lacks it cannot be read.
    date: &'static str,
    label: &'static str,
    amount: &'static str,
    /// Another fact that is told when it changes.
    text: &'static str,
    make: fn(usize) -> Value,
}

fn day(number: usize) -> String {
    (time("2025-01-01") + Days::new(u64::try_from(number).expect("few"))).format("%Y-%m-%dT00:00:00Z").to_string()
}

fn amount(number: usize) -> f64 {
    f64::from(u32::try_from(number % 97 + 3).expect("few")) * 1_001.0
}

const ALL: [Rows; 6] = [
    Rows {
        endpoint: Endpoint::Burn,
        list: "burns",
        date: "burnDate",
        label: "burnEventLabel",
        amount: "amount",
        text: "",
        make: |n| {
            json!({"burnEventLabel": format!("Burn {}", n % 3), "burnType": "PROGRAMMATIC", "burnDate": day(n / 2), "amount": amount(n),
                "pricePerToken": 2.0, "value": amount(n) * 2.0, "metadata": {"burners": ["PROJECT"], "burnReasons": ["GOVERNANCE"]}})
        },
    },
    Rows {
        endpoint: Endpoint::Buyback,
        list: "buybacks",
        date: "buybackDate",
        label: "buybackEventLabel",
        amount: "tokenAmount",
        text: "basis",
        make: |n| {
            json!({"buybackEventLabel": format!("Buyback {}", n % 3), "buybackType": "TREASURY_BUYBACK", "buybackDate": day(n / 2),
                "tokenAmount": amount(n), "value": amount(n) * 2.0, "spentAmount": amount(n) * 2.0, "spentUnit": "USDC",
                "targetAddress": format!("0x{n}"), "buyerAddress": "0xabc", "resolution": "period_net", "basis": "estimated"})
        },
    },
    Rows {
        endpoint: Endpoint::DailyEmission,
        list: "",
        date: "startDate",
        label: "",
        amount: "unlockAmount",
        text: "listedMethod",
        make: |n| {
            json!({"startDate": day(n), "endDate": day(n + 1), "listedMethod": "AI", "unlockAmount": amount(n), "unlockValue": 3.0,
                "referencePrice": 2.0, "allocations": [
                    {"allocationName": "Team", "standardAllocationName": "Founder / Team", "unlockAmount": amount(n) / 4.0, "unlockValue": 1.0},
                    {"allocationName": "Farm", "standardAllocationName": "Community", "unlockAmount": amount(n) * 0.75, "unlockValue": 2.0}]})
        },
    },
    Rows {
        endpoint: Endpoint::WeeklyEmission,
        list: "",
        date: "startDate",
        label: "",
        amount: "unlockAmount",
        text: "",
        make: |n| json!({"startDate": day(n * 7), "endDate": day(n * 7 + 7), "unlockAmount": amount(n), "unlockValue": 3.0}),
    },
    Rows {
        endpoint: Endpoint::Allocations,
        list: "allocations",
        date: "allocationName",
        label: "",
        amount: "allocationAmount",
        text: "standardAllocationName",
        make: |n| {
            json!({"allocationName": format!("Allocation {n}"), "allocationType": "Scheduled", "standardAllocationName": "Community",
                "allocationAmount": amount(n), "allocationUnlockedAmount": 1.0, "allocationLockedAmount": 2.0})
        },
    },
    Rows {
        endpoint: Endpoint::Investors,
        list: "fundingRounds",
        date: "tokenId",
        label: "roundName",
        amount: "totalAmountRaisedinThatRound",
        text: "",
        make: |n| {
            json!({"tokenId": "arbitrum", "roundName": format!("Series {n}"), "isLeadInvestor": n.is_multiple_of(2), "fundingDate": day(n * 9),
                "totalAmountRaisedinThatRound": amount(n), "valuation": amount(n) * 10.0, "pricePerToken": 0.5,
                "investorId": "fund", "investorName": "Fund"})
        },
    },
];

/// A token whose rows are polled.
struct Polled {
    feed: Feed,
    told: Vec<Change>,
    polls: u32,
}

impl Polled {
    fn new() -> Self {
        Self { feed: Feed::new(), told: Vec::new(), polls: 0 }
    }

    fn poll(&mut self, of: &Rows, rows: &[Value]) {
        let usable: Vec<&Value> = rows.iter().filter(|row| row[of.date].is_string()).collect();
        let data = if of.list.is_empty() { json!(usable) } else { json!({of.list: usable}) };
        let (payload, report) = wire::gather(|| payload(of.endpoint, &data.to_string()));
        let dropped = report.dropped + rows.len() - usable.len();
        self.polls += 1;
        let now = time("2026-03-09") + TimeDelta::hours(i64::from(self.polls));
        if let Payload::Investor(detail) = &payload {
            self.rounds(detail.funding_rounds.items(), now);
            return;
        }
        let request = PollRequest::Token {
            endpoint: of.endpoint,
            token: "arbitrum".into(),
            start: self.feed.asked.0,
            end: self.feed.asked.1,
        };
        let answer = PollAnswer { dropped, ..PollAnswer::clean(payload, ContentHash(0)) };
        let fetched = FetchedAnswer::of_page(request.clone(), PollOutcome::Fresh(answer), None);
        let snapshot = &mut self.feed.snapshot;
        let result = ingest(snapshot, &PlannedPoll::of(request), &fetched, &Settings::default(), now);
        snapshot.records = result.after;
        snapshot.feeds = vec![(of.endpoint, result.update.state)];
        snapshot.headers = result.update.header.map(|header| (of.endpoint, header)).into_iter().collect();
        self.told.extend(result.changes);
    }

    fn rounds(&mut self, rounds: &[wire::FundingRound], now: Timestamp) {
        let watch =
            Watch::build(&model::config::WatchSettings { tokens: vec!["*".into()], groups: BTreeMap::new() }).expect("a watch");
        let ingest = Ingest { watch: &watch, settings: Settings::default(), now };
        let (known, mut work) = (self.feed.snapshot.clone(), Work::default());
        let page = RoundsPage { rounds, speaks_of: &|_| true, is_news: &|_| true };
        ingest.rounds(&mut work, &known, &page);
        self.feed.snapshot.records = work.tokens[0].records.to_vec();
        if self.polls > 1 {
            self.told.extend(work.commit.changes);
        }
    }

    /// What is kept, without the names that a row has in the database.
    fn kept(&self) -> Vec<Value> {
        self.feed.snapshot.records.iter().map(|tracked| serde_json::to_value(&tracked.record).expect("JSON")).collect()
    }
}

fn payload(endpoint: Endpoint, json: &str) -> Payload {
    fn read<T: serde::de::DeserializeOwned>(json: &str) -> T {
        serde_json::from_str(json).expect("JSON")
    }
    match endpoint {
        Endpoint::Burn => Payload::Burns(read(json)),
        Endpoint::Buyback => Payload::Buybacks(read(json)),
        Endpoint::Allocations => Payload::Allocations(read(json)),
        Endpoint::Investors => Payload::Investor(read(json)),
        _ => Payload::Emissions(read::<Maybe<Vec<wire::Emission>>>(json).into_option().expect("rows")),
    }
}

/// Makes a gap of a field, or garbles it.
fn garble(value: &mut Value, dice: &mut Dice) {
    let garbage = [json!(null), json!(null), json!({"a": 1}), json!([[]]), json!(true)];
    *value = match value {
        Value::Number(_) if dice.throw(3) == 0 => [json!(-5.0), json!(1e31), json!("a lot")][dice.throw(3)].clone(),
        Value::Null | Value::Bool(_) => json!(null),
        Value::Array(_) | Value::Object(_) => json!(null),
        _ => garbage[dice.throw(garbage.len())].clone(),
    };
}

/// What a bad day of the source makes of the truth. A row of which nothing was seen before is whole: what was never known cannot be held.
fn answer(of: &Rows, truth: &[Value], seen: &BTreeSet<String>, dice: &mut Dice) -> Vec<Value> {
    let mut rows = truth.to_vec();
    for row in rows.iter_mut().filter(|row| seen.contains(&row.to_string())) {
        if dice.throw(4) > 0 {
            continue;
        }
        let fields: Vec<String> = row.as_object().expect("a row").keys().cloned().collect();
        for _ in 0..=dice.throw(2) {
            let field = &fields[dice.throw(fields.len())];
            // What is told apart by its label and its date alone cannot lose both.
            if *field == of.date && !of.label.is_empty() && row[of.label].is_null()
                || *field == of.label && row[of.date].is_null()
            {
                continue;
            }
            if matches!(field.as_str(), "investorId" | "investorName") {
                continue;
            }
            match (dice.throw(3), &mut row[field]) {
                (0, Value::Object(inner)) => inner.values_mut().for_each(|value| {
                    if dice.throw(2) == 0 {
                        *value = json!(null)
                    }
                }),
                (0, Value::Array(items)) if items.iter().any(Value::is_object) => {
                    let item = dice.throw(items.len());
                    match ["unlockAmount", "allocationName", "unlockValue", ""][dice.throw(4)] {
                        "" => drop(items.remove(item)),
                        field => garble(&mut items[item][field], dice),
                    }
                }
                (1, _) if *field != of.date => drop(row.as_object_mut().expect("a row").remove(field)),
                (_, value) => garble(value, dice),
            }
        }
    }
    if dice.throw(2) == 0 {
        rows.reverse();
    }
    rows
}

/// One true correction, as what is to be told of it: what happened, and what there is now.
type ChangeTold = (String, String);

fn correct(of: &Rows, truth: &mut Vec<Value>, number: usize, dice: &mut Dice) -> ChangeTold {
    let row = dice.throw(truth.len());
    match dice.throw(4) {
        0 => {
            truth.push((of.make)(number));
            ("added".to_owned(), truth.last().expect("one")[of.amount].to_string())
        }
        // Of rounds no page proves an absence.
        1 if truth.len() > 8 && of.endpoint != Endpoint::Investors => {
            let gone = truth.remove(row);
            ("removed".to_owned(), gone[of.amount].to_string())
        }
        2 if !of.text.is_empty() => {
            truth[row][of.text] = json!(format!("text {number}"));
            (of.text.to_owned(), truth[row][of.text].to_string())
        }
        _ => {
            truth[row][of.amount] = json!(amount(number) + 0.5);
            (of.amount.to_owned(), truth[row][of.amount].to_string())
        }
    }
}

/// What was told, as [`correct`] says it.
fn told(changes: &[Change]) -> Vec<ChangeTold> {
    let text = |fact: &Option<model::change::Fact>| match fact {
        Some(model::change::Fact::Amount(amount)) => amount.to_string(),
        other => format!("{other:?}"),
    };
    let mut all = Vec::new();
    for change in changes {
        match change.kind {
            ChangeKind::Added => all.push(("added".to_owned(), text(&change.to))),
            ChangeKind::Removed => all.push(("removed".to_owned(), text(&change.from))),
            ChangeKind::SupplyChanged => {}
            _ => all.extend(change.fields.iter().map(|field| (field.field.clone(), field.to.to_string()))),
        }
    }
    all
}

fn counted(told: Vec<ChangeTold>) -> BTreeMap<ChangeTold, usize> {
    let mut counts = BTreeMap::new();
    for (what, value) in told {
        let value = value.parse::<f64>().map_or(value, |number| number.to_string());
        *counts.entry((what, value)).or_default() += 1;
    }
    counts
}

#[test]
fn rows_of_a_source_that_loses_parts_at_random_are_told_as_what_happened() {
    for (place, of) in ALL.iter().enumerate() {
        let mut dice = Dice(u64::try_from(place).expect("few") + 7);
        let mut truth: Vec<Value> = (0..24).map(of.make).collect();
        let (mut polled, mut corrected) = (Polled::new(), Vec::new());
        let mut seen: BTreeSet<String> = truth.iter().map(Value::to_string).collect();
        polled.poll(of, &truth);
        for poll in 1..=POLLS {
            let before = polled.told.len();
            // Removals need whole answers, and a row that is left out without a word must be back in time.
            match poll % 5 {
                0 | 4 => polled.poll(of, &truth),
                1 => {
                    let mut rows = truth.clone();
                    rows.remove(dice.throw(truth.len()));
                    polled.poll(of, &rows);
                }
                _ => polled.poll(of, &answer(of, &truth, &seen, &mut dice)),
            }
            if poll % 5 == 0 {
                seen = truth.iter().map(Value::to_string).collect();
            }
            if poll % 20 == 10 {
                corrected.push(correct(of, &mut truth, poll + 100, &mut dice));
            }
            if std::env::var_os("RANDOM_SHOWS").is_some() {
                for change in &polled.told[before..] {
                    println!("{} poll {poll}: {} {:?}", of.endpoint, change.summary, change.fields);
                }
            }
        }
        for _ in 0..4 {
            polled.poll(of, &truth);
        }
        let (was_told, is_true) = (counted(told(&polled.told)), counted(corrected));
        let wrong = was_told.iter().filter(|(what, count)| is_true.get(what) != Some(count));
        let missed = is_true.iter().filter(|(what, _)| !was_told.contains_key(what));
        let wrong: Vec<String> =
            wrong.map(|one| format!("told {one:?}")).chain(missed.map(|one| format!("missed {one:?}"))).collect();
        assert!(wrong.is_empty(), "{}: {} of {}\n{}", of.endpoint, wrong.len(), is_true.len(), wrong.join("\n"));
        let sorted = |mut rows: Vec<Value>| {
            rows.sort_by_key(Value::to_string);
            rows
        };
        assert_eq!(sorted(polled.kept()), sorted(truth), "{}", of.endpoint);
    }
}
