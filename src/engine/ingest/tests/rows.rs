//! A source that drops, nulls, garbles, and restores parts of burns, buybacks, emissions, allocations, and rounds for a thousand polls,
//! with some true corrections. In the end, each true correction was reported once, and the stored records are correct.
//!
//! Rows are JSON, and the test itself lists the corrections, so that the expected result does not depend on the diff.

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

/// An endpoint and the shape of its rows.
struct Rows {
    endpoint: Endpoint,
    /// The name of the list in the payload. Empty if the payload is the list.
    list: &'static str,
    /// The field that identifies a row. A row without it is unreadable.
    date: &'static str,
    label: &'static str,
    amount: &'static str,
    /// Another field whose changes are reported.
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
    notified: Vec<Change>,
    polls: u32,
}

impl Polled {
    fn new() -> Self {
        Self { feed: Feed::new(), notified: Vec::new(), polls: 0 }
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
            start: self.feed.requested.0,
            end: self.feed.requested.1,
        };
        let response = PollResponse { dropped, ..PollResponse::clean(payload, ContentHash(0)) };
        let fetched = FetchedResponse::of_page(request.clone(), PollOutcome::Fresh(response), None);
        let snapshot = &mut self.feed.snapshot;
        let result =
            ingest(snapshot, &PlannedPoll::for_change(request), &fetched, (&Settings::default(), ListedSchedules::NONE), now);
        snapshot.records = result.after;
        snapshot.feeds = vec![(of.endpoint, result.update.state)];
        snapshot.headers = result.update.header.map(|header| (of.endpoint, header)).into_iter().collect();
        self.notified.extend(result.changes);
    }

    fn rounds(&mut self, rounds: &[wire::FundingRound], now: Timestamp) {
        let watch = Watch::build(&model::config::WatchSettings {
            tokens: vec!["*".into()],
            groups: BTreeMap::new(),
            ..model::config::WatchSettings::default()
        })
        .expect("a watch");
        let ingest = Ingest { watch: &watch, settings: Settings::default(), now };
        let (known, mut work) = (self.feed.snapshot.clone(), Work::default());
        let page = RoundsPage { rounds, covers: &|_| true, is_new: &|_| true };
        ingest.rounds(&mut work, &known, &page);
        self.feed.snapshot.records = work.tokens[0].records.to_vec();
        if self.polls > 1 {
            self.notified.extend(work.commit.changes);
        }
    }

    /// The stored records, without their keys.
    fn stored_records(&self) -> Vec<Value> {
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

/// Clears a field or makes it unreadable.
fn garble(value: &mut Value, dice: &mut Dice) {
    let garbage = [json!(null), json!(null), json!({"a": 1}), json!([[]]), json!(true)];
    *value = match value {
        Value::Number(_) if dice.throw(3) == 0 => [json!(-5.0), json!(1e31), json!("a lot")][dice.throw(3)].clone(),
        Value::Null | Value::Bool(_) => json!(null),
        Value::Array(_) | Value::Object(_) => json!(null),
        _ => garbage[dice.throw(garbage.len())].clone(),
    };
}

/// The truth with random defects. A row that was never seen before is complete, because no known fact could fill its gaps.
fn response(of: &Rows, truth: &[Value], seen: &BTreeSet<String>, dice: &mut Dice) -> Vec<Value> {
    let mut rows = truth.to_vec();
    for row in rows.iter_mut().filter(|row| seen.contains(&row.to_string())) {
        if dice.throw(4) > 0 {
            continue;
        }
        let fields: Vec<String> = row.as_object().expect("a row").keys().cloned().collect();
        for _ in 0..=dice.throw(2) {
            let field = &fields[dice.throw(fields.len())];
            // A row that is identified by label and date cannot lose both.
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

/// Makes one true correction. Returns the expected change: its kind and the new value.
type ReportedChange = (String, String);

fn correct(of: &Rows, truth: &mut Vec<Value>, number: usize, dice: &mut Dice) -> ReportedChange {
    let row = dice.throw(truth.len());
    match dice.throw(4) {
        0 => {
            truth.push((of.make)(number));
            ("added".to_owned(), truth.last().expect("one")[of.amount].to_string())
        }
        // No page proves that a round was removed.
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

/// The reported changes, in the form of [`correct`].
fn reported_changes(changes: &[Change]) -> Vec<ReportedChange> {
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

fn counted(reported: Vec<ReportedChange>) -> BTreeMap<ReportedChange, usize> {
    let mut counts = BTreeMap::new();
    for (what, value) in reported {
        let value = value.parse::<f64>().map_or(value, |number| number.to_string());
        *counts.entry((what, value)).or_default() += 1;
    }
    counts
}

#[test]
fn random_gaps_in_rows_do_not_affect_reported_changes() {
    for (place, of) in ALL.iter().enumerate() {
        let mut dice = Dice(u64::try_from(place).expect("few") + 7);
        let mut truth: Vec<Value> = (0..24).map(of.make).collect();
        let (mut polled, mut corrected) = (Polled::new(), Vec::new());
        let mut seen: BTreeSet<String> = truth.iter().map(Value::to_string).collect();
        polled.poll(of, &truth);
        for poll in 1..=POLLS {
            let before = polled.notified.len();
            // Removals need complete responses, and a row that was left out must return in time.
            match poll % 5 {
                0 | 4 => polled.poll(of, &truth),
                1 => {
                    let mut rows = truth.clone();
                    rows.remove(dice.throw(truth.len()));
                    polled.poll(of, &rows);
                }
                _ => polled.poll(of, &response(of, &truth, &seen, &mut dice)),
            }
            if poll % 5 == 0 {
                seen = truth.iter().map(Value::to_string).collect();
            }
            if poll % 20 == 10 {
                corrected.push(correct(of, &mut truth, poll + 100, &mut dice));
            }
            if std::env::var_os("RANDOM_SHOWS").is_some() {
                for change in &polled.notified[before..] {
                    println!("{} poll {poll}: {} {:?}", of.endpoint, change.summary, change.fields);
                }
            }
        }
        for _ in 0..4 {
            polled.poll(of, &truth);
        }
        let (was_notified, is_true) = (counted(reported_changes(&polled.notified)), counted(corrected));
        let wrong = was_notified.iter().filter(|(what, count)| is_true.get(what) != Some(count));
        let missed = is_true.iter().filter(|(what, _)| !was_notified.contains_key(what));
        let wrong: Vec<String> =
            wrong.map(|one| format!("reported {one:?}")).chain(missed.map(|one| format!("missed {one:?}"))).collect();
        assert!(wrong.is_empty(), "{}: {} of {}\n{}", of.endpoint, wrong.len(), is_true.len(), wrong.join("\n"));
        let sorted = |mut rows: Vec<Value>| {
            rows.sort_by_key(Value::to_string);
            rows
        };
        assert_eq!(sorted(polled.stored_records()), sorted(truth), "{}", of.endpoint);
    }
}
