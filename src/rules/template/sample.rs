//! A sample scope for the trial of templates: with all fields set, or with none.

use std::sync::Arc;

use crate::aggregate::{Member, SupplyNow, Totals, Window};
use crate::on::On;
use crate::scope::{Lead, ScheduleScope, Scope, SourceFacts};
use crate::vocabulary::{FactType, Vocabulary};
use model::wire::ReadJson as _;
use model::{
    AllocationChange, Change, ChangeKind, Fact, Record, RecordKey, Resource, ScheduleBrief, Timestamp, Token, TokenId, Tracked,
    wire,
};

pub struct SampleScope {
    token: Token,
    record: Option<Tracked>,
    change: Option<Change>,
    source: Option<SourceFacts>,
    totals: Option<Totals>,
    lead: Option<Lead>,
    now: Timestamp,
}

impl SampleScope {
    pub fn of(on: On, is_full: bool, windows: &[Window]) -> Self {
        let now = wire::parse_timestamp("2026-03-09").unwrap_or_default();
        let record = |resource: Resource| {
            let json = FULL.iter().find(|(of, _)| is_full && *of == resource).map_or("{}", |(_, json)| json);
            Record::from_json(resource, json).ok()
        };
        let mut token = Token::unknown(TokenId::from("example"));
        if is_full && let Ok(item) = wire::TokenItem::read_json(FULL_TOKEN) {
            token.item = item;
            token.groups = Arc::from(["portfolio".to_owned()]);
        }
        let mut sample = Self { token, record: None, change: None, source: None, totals: None, lead: None, now };
        match on {
            On::Token => sample.totals = Some(Totals::sample(windows, is_full, now)),
            On::Portfolio => {
                let of_token = Arc::new(Totals::sample(windows, is_full, now));
                let member = Member {
                    id: sample.token.id.clone(),
                    symbol: sample.token.symbol().into(),
                    name: sample.token.name().into(),
                    totals: of_token,
                    share: is_full.then_some(100.0),
                };
                let mut totals = Totals::sample(windows, is_full, now);
                (totals.max_supply, totals.circulating_supply) = (None, None);
                let per_day_value = totals.supply.as_ref().and_then(|supply| supply.per_day_value);
                totals.supply = Some(Box::new(SupplyNow { per_day_value, ..SupplyNow::default() }));
                totals.shares.clear();
                totals.group = is_full.then(|| "portfolio".to_owned());
                totals.members = vec![member];
                sample.totals = Some(totals);
            }
            On::Record(resource) => {
                sample.record = record(resource).map(|record| Tracked { key: RecordKey::from("sample"), record });
                sample.lead = is_full.then(|| Lead { text: "7d".into(), span: chrono::TimeDelta::days(7) });
            }
            On::Change(resource, kind) => {
                let mut change = Change::of(kind.unwrap_or(ChangeKind::Revised), resource, &sample.token.id);
                if is_full {
                    let (from, to) = match Vocabulary::of(on).fact_type() {
                        FactType::Time => (Fact::Time(now), Fact::Time(now)),
                        FactType::Text => (Fact::Text("Team".into()), Fact::Text("Core team".into())),
                        _ => (Fact::Amount(1.0), Fact::Amount(2.0)),
                    };
                    (change.from, change.to) = (Some(from), Some(to));
                    (change.shift_days, change.ratio) = (Some(1.0), Some(2.0));
                    (change.amount, change.count) = (Some(1_000_000.0), 1);
                    change.allocations = vec![AllocationChange {
                        name: "Team".into(),
                        from: change.from.clone(),
                        to: change.to.clone(),
                        shift_days: Some(1.0),
                        ratio: Some(2.0),
                        count: 1,
                        ..AllocationChange::default()
                    }];
                    change.before = Some(ScheduleBrief::default());
                    change.after = Some(ScheduleBrief::default());
                    change.summary = "moved by a day".into();
                    change.old = record(resource);
                    change.new = record(resource);
                }
                sample.change = Some(change);
                sample.record =
                    record(resource).filter(|_| is_full).map(|record| Tracked { key: RecordKey::from("sample"), record });
            }
            On::Source => {
                sample.source = Some(SourceFacts {
                    kind: "unreachable".into(),
                    endpoint: is_full.then(|| "burn".into()),
                    receiver: is_full.then(|| "ops".into()),
                    message: "cannot be reached".into(),
                    count: 1,
                    since: now,
                });
            }
        }
        sample
    }

    pub fn scope(&self) -> Scope<'_> {
        Scope {
            token: (self.totals.as_ref().is_none_or(|totals| totals.members.is_empty())).then_some(&self.token),
            record: self.record.as_ref(),
            schedule: ScheduleScope { records: self.record.as_slice(), ..ScheduleScope::default() },
            change: self.change.as_ref(),
            source: self.source.as_ref(),
            totals: self.totals.as_ref(),
            lead: self.lead.as_ref(),
            is_stored: false,
            now: self.now,
        }
    }
}

/// For each resource, a record with all fields of its table.
const FULL: [(Resource, &str); 6] = [
    (
        Resource::Unlock,
        r#"{"unlockDate":"2026-03-16T01:00:00Z","tokenName":"Example","tokenSymbol":"EXA","listedMethod":"INTERNAL","dataSource":"docs",
        "referencePrice":0.5,"referencePriceUpdatedTime":"2026-03-01T00:00:00Z","latestUpdateDate":"2026-03-01T00:00:00Z",
        "cliffUnlocks":{"cliffAmount":1000000,"cliffValue":500000,"valueToMarketCap":2.5,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","allocationBreakdown":[{"unlockDate":"2026-03-16T01:00:00Z",
        "allocationName":"Team","standardAllocationName":"Founder / Team","cliffAmount":1000000,"cliffValue":500000,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","unlockPrecision":"second","committedClaim":{"amount":900000,"value":450000,"timestamp":1773622800}}]},
        "linearUnlocks":{"linearAmount":1000,"linearValue":500,"dailyAmount":10,"dailyValue":5,"referencePrice":0.5,
        "referencePriceUpdatedTime":"2026-03-01T00:00:00Z","allocationBreakdown":[{"allocationName":"Reserve","standardAllocationName":"Reserve",
        "linearAmount":1000,"linearValue":500,"referencePrice":0.5,"dailyAmount":10,"dailyValue":5,"durationOfRate":100,
        "beginDate":"2026-03-16T01:00:00Z","endDate":"2026-06-24T01:00:00Z","unlockPrecision":"second"}]}}"#,
    ),
    (
        Resource::Burn,
        r#"{"burnEventLabel":"Quarterly burn","burnType":"Buyback burn","burnDate":"2026-03-01T00:00:00Z","amount":1000,"pricePerToken":0.5,
        "value":500,"metadata":{"burners":["Foundation"],"burnReasons":["Fees"]}}"#,
    ),
    (
        Resource::Buyback,
        r#"{"buybackEventLabel":"Weekly buyback","buybackType":"Open market","buybackDate":"2026-03-01T00:00:00Z","tokenAmount":1000,"value":500,
        "spentAmount":500,"spentUnit":"USDC","targetAddress":"0x01","buyerAddress":"0x02","resolution":"day","basis":"reported"}"#,
    ),
    (
        Resource::Emission,
        r#"{"startDate":"2026-03-01T00:00:00Z","endDate":"2026-03-02T00:00:00Z","tokenName":"Example","tokenSymbol":"EXA","listedMethod":"INTERNAL",
        "unlockAmount":1000,"unlockValue":500,"referencePrice":0.5,"allocations":[{"allocationName":"Team","standardAllocationName":"Founder / Team",
        "unlockAmount":1000,"unlockValue":500}],"standardAllocations":["Founder / Team"],"totalCumulativeUnlockedAmount":5000,
        "committedClaim":{"amount":900,"value":450,"timestamp":1773622800}}"#,
    ),
    (
        Resource::Allocation,
        r#"{"allocationName":"Team","allocationType":"Scheduled","standardAllocationName":"Founder / Team","allocationUnlockedAmount":10,
        "allocationLockedAmount":90,"allocationAmount":100,"trackedAllocationPercentage":10}"#,
    ),
    (
        Resource::Funding,
        r#"{"tokenId":"example","roundName":"Series A","isLeadInvestor":true,"fundingDate":"2026-03-01T00:00:00Z",
        "totalAmountRaisedinThatRound":10000000,"valuation":100000000,"pricePerToken":0.1,"investorId":"one","investorName":"One Capital"}"#,
    ),
];

const FULL_TOKEN: &str = r#"{"id":"example","name":"Example","symbol":"EXA","listedMethod":"INTERNAL","circulatingSupply":40000000,"marketCap":20000000,
    "maxSupply":1000000000,"totalLockedAmount":950000000,"tbdLockedAmount":5000000,"unlockedAmount":45000000,"untrackedAmount":0,"hasStandardAllocation":true,
    "hasFundraising":true,"latestFundraisingRound":"Series A","hasBurn":true,"hasBuyback":true,"hasCommittedClaim":true,
    "websiteUrl":"https://example.com","lastUpdatedDate":"2026-03-01T00:00:00Z"}"#;
