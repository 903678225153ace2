//! Random schedules of several tokens, and how much of them the source shows.

use chrono::TimeDelta;
use cliffwatch::{
    model::supply::Timestamp,
    service::{Edit, EditError},
};
use serde_json::{Value, json};
use testkit::faults::{Fault, Faults};

use crate::it::support::{self, BEGIN, item};

/// The slugs of the tokens. No product text contains one of these words by chance.
const SLUGS: [&str; 7] = ["aqualis", "birchen", "cedarix", "dunemar", "elmwort", "fernyx", "gorsely"];

/// The linear unlocks that the source shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceMode {
    Complete,
    /// Neither an older API version nor daily emission is available.
    CliffsOnly,
    /// Only daily emission shows linear unlocks.
    EmissionOnly,
    /// Changes of a rate are missing, and daily emission is not available.
    WithoutRateChanges,
}

impl SourceMode {
    pub const ALL: [Self; 4] = [Self::Complete, Self::CliffsOnly, Self::EmissionOnly, Self::WithoutRateChanges];

    fn absent_paths(self) -> &'static [&'static str] {
        const OLDER: [&str; 3] = ["/v1/unlock/events", "/v2/unlock/events", "/v3/unlock/events"];
        const ALL: [&str; 9] = [
            "/v1/unlock/events",
            "/v2/unlock/events",
            "/v3/unlock/events",
            "/v1/daily-emission",
            "/v2/daily-emission",
            "/v5/daily-emission",
            "/v1/emission",
            "/v2/emission",
            "/v3/emission",
        ];
        match self {
            Self::Complete => &[],
            Self::CliffsOnly => &ALL,
            Self::EmissionOnly => &OLDER,
            Self::WithoutRateChanges => &["/v1/unlock/events", "/v1/daily-emission", "/v2/daily-emission", "/v5/daily-emission"],
        }
    }
}

/// A cliff unlock: days after [`start`], precision, and tokens.
#[derive(Clone, Debug)]
pub struct Cliff {
    days: i64,
    precision: &'static str,
    tokens: f64,
}

/// A linear unlock. The days are after [`start`].
#[derive(Clone, Debug)]
pub struct Vesting {
    from: i64,
    until: i64,
    tokens: f64,
}

#[derive(Clone, Debug)]
pub struct TokenWorld {
    pub slug: &'static str,
    pub is_unread: bool,
    /// USD per token.
    pub price: Option<f64>,
    has_market_cap: bool,
    cliffs: Vec<Cliff>,
    vestings: Vec<Vesting>,
    /// Tokens whose date is to be determined.
    undated: Option<f64>,
}

#[derive(Clone, Debug)]
pub struct World {
    pub mode: SourceMode,
    pub tokens: Vec<TokenWorld>,
}

pub fn start() -> Timestamp {
    support::time(BEGIN)
}

fn at(days: i64) -> String {
    (start() + TimeDelta::days(days)).to_rfc3339()
}

impl TokenWorld {
    fn random(slug: &'static str, random: &mut fastrand::Rng) -> Self {
        let tokens = |random: &mut fastrand::Rng| f64::from(random.u32(1..1000)) * 1e4;
        let vesting = |random: &mut fastrand::Rng| {
            let from = random.i64(-60..50);
            Vesting { from, until: from + random.i64(1..200), tokens: tokens(random) }
        };
        let cliff = |random: &mut fastrand::Rng| Cliff {
            days: random.i64(-20..100),
            precision: ["second", "day", "week", "month"][random.usize(..4)],
            tokens: tokens(random),
        };
        Self {
            slug,
            is_unread: random.u8(..6) == 0,
            price: (random.u8(..3) > 0).then(|| f64::from(random.u32(1..500)) / 100.0),
            has_market_cap: random.u8(..4) > 0,
            cliffs: (0..random.usize(..4)).map(|_| cliff(random)).collect(),
            vestings: (0..[0, 0, 1, 2][random.usize(..4)]).map(|_| vesting(random)).collect(),
            undated: (random.u8(..4) == 0).then(|| tokens(random)),
        }
    }

    /// Returns whether tokens unlock continuously at an instant.
    pub fn vests(&self, now: Timestamp) -> bool {
        let day = (now - start()).num_hours() as f64 / 24.0;
        self.vestings.iter().any(|of| of.from as f64 <= day && day < of.until as f64)
    }

    /// Returns whether a cliff unlock happens within some days after `now`. Only exact ones, which count on their day.
    pub fn has_cliff_within(&self, now: Timestamp, days: i64) -> bool {
        let day = (now - start()).num_days();
        self.cliffs.iter().any(|of| of.precision == "second" && (day + 1..day + days).contains(&of.days))
    }

    fn events(&self) -> Vec<Value> {
        let price = self.price;
        let value = |tokens: f64| price.map(|price| price * tokens);
        let named = |fields: Value| {
            let mut fields = fields;
            fields["tokenName"] = self.slug.into();
            fields["tokenSymbol"] = self.slug.to_uppercase().into();
            fields
        };
        let cliff = |date: String, precision: &str, tokens: f64| {
            named(
                json!({"unlockDate": date, "linearUnlocks": null, "cliffUnlocks": {"cliffAmount": tokens, "cliffValue": value(tokens),
                "valueToMarketCap": self.has_market_cap.then(|| value(tokens).map(|value| value / 1e6)).flatten(),
                "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": tokens, "cliffValue": value(tokens),
                "unlockPrecision": precision, "referencePrice": price, "referencePriceUpdatedTime": price.map(|_| at(-1))}]}}),
            )
        };
        let vesting = |of: &Vesting| {
            named(json!({"unlockDate": at(of.from), "cliffUnlocks": null, "linearUnlocks": {"linearAmount": of.tokens,
                "linearValue": value(of.tokens), "allocationBreakdown": [{"allocationName": format!("Community {}", of.from),
                "linearAmount": of.tokens, "linearValue": value(of.tokens), "beginDate": at(of.from), "endDate": at(of.until),
                "unlockPrecision": "second", "referencePrice": price, "referencePriceUpdatedTime": price.map(|_| at(-1))}]}}))
        };
        let mut events: Vec<Value> = self.cliffs.iter().map(|of| cliff(at(of.days), of.precision, of.tokens)).collect();
        events.extend(self.vestings.iter().map(vesting));
        events.extend(self.undated.map(|tokens| cliff(at(70), "tbd", tokens)));
        // One event for each date.
        events.sort_by_key(|event| event["unlockDate"].as_str().map(str::to_owned));
        events.dedup_by_key(|event| event["unlockDate"].as_str().map(str::to_owned));
        events
    }
}

impl World {
    pub fn random(mode: SourceMode, random: &mut fastrand::Rng) -> Self {
        Self { mode, tokens: SLUGS.map(|slug| TokenWorld::random(slug, random).dated_apart()).to_vec() }
    }

    pub fn fill(&self, edit: &mut Edit<'_>) -> Result<(), EditError> {
        for token in &self.tokens {
            let mut entry = item(token.slug, &token.slug.to_uppercase());
            if !token.has_market_cap {
                entry.market_cap = serde_json::from_value(Value::Null).expect("no market cap");
            }
            edit.put_token(&entry)?;
        }
        self.put_events(edit)
    }

    pub fn put_events(&self, edit: &mut Edit<'_>) -> Result<(), EditError> {
        for token in &self.tokens {
            let events = serde_json::from_value(token.events().into()).expect("events");
            edit.put_events(token.slug, events)?;
        }
        Ok(())
    }

    pub fn set_faults(&self, faults: &Faults) {
        for path in self.mode.absent_paths() {
            faults.set(path, Fault::status(404));
        }
        for token in self.tokens.iter().filter(|token| token.is_unread) {
            faults.set(&format!("/v5/unlock/events/{}", token.slug), Fault::status(500));
        }
    }

    /// Corrects the amounts of some cliffs.
    pub fn resize_cliffs(&mut self, random: &mut fastrand::Rng) {
        for cliff in self.tokens.iter_mut().flat_map(|token| &mut token.cliffs) {
            if random.bool() {
                cliff.tokens *= 1.5;
            }
        }
    }
}

impl TokenWorld {
    /// Gives each unlock a date of its own, so that the events do not have to be merged.
    fn dated_apart(mut self) -> Self {
        let mut taken = vec![70];
        let mut free = |day: i64| {
            let free = (day..).find(|day| !taken.contains(day)).unwrap_or(day);
            taken.push(free);
            free
        };
        self.cliffs.iter_mut().for_each(|of| of.days = free(of.days));
        for of in &mut self.vestings {
            let begin = free(of.from);
            (of.from, of.until) = (begin, of.until + begin - of.from);
        }
        self
    }
}
