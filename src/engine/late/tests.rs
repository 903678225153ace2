//! Burns, buybacks, and funding rounds with late facts, through ingest and evaluation.

use std::collections::BTreeMap;

use super::*;
use crate::ingest::ListedSchedules;
use crate::{
    diff::Settings,
    evaluate::Limits,
    pipeline::{self, ActiveRules, Ingest, RoundsPage, Work},
    plan::PlannedPoll,
};
use model::corrections::CorrectionsByToken;
use model::{
    config,
    diagnostic::SourceText,
    poll::{FetchedResponse, Payload, PollOutcome, PollRequest, PollResponse},
    rows::TokenSnapshot,
    supply::{ContentHash, Endpoint, Resource, Token, TokenId},
    watch::Watch,
    wire,
};
use rules::Surroundings;

fn at(day: u32, hour: u32) -> Timestamp {
    wire::parse_timestamp(&format!("2026-03-{day:02}T{hour:02}:00:00Z")).expect("a time")
}

/// A token whose burns are polled and evaluated. The known facts go through JSON between polls, as in a restart.
struct Daemon {
    rules: ActiveRules,
    watch: Watch,
    snapshot: TokenSnapshot,
    notified: Vec<String>,
    changes: usize,
}

impl Daemon {
    fn with(rules: &str) -> Self {
        let now = at(1, 0);
        let source = SourceText { file: "rules.toml".into(), text: rules.into() };
        let loaded = rules::load(&[source], &Surroundings { receivers: &["ops".to_owned()], groups: &BTreeMap::new(), now });
        assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
        let text = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/\"\n";
        let config = toml::from_str::<config::Config>(text).expect("a config");
        let routes = crate::route::RouteTree::of(&crate::route::Sections::from(&config)).expect("routes");
        let watch = Watch::build(&config.watch).expect("a watch");
        let token: TokenId = "aptos".into();
        Self {
            rules: ActiveRules { rules: loaded.set, routes, ..ActiveRules::default() },
            watch,
            snapshot: TokenSnapshot::of(Token::unknown(token)),
            notified: Vec::new(),
            changes: 0,
        }
    }

    fn poll(&mut self, now: Timestamp, burns: &str) {
        let json = format!(r#"{{"tokenId":"aptos","tokenName":"Aptos","tokenSymbol":"APT","burns":[{burns}]}}"#);
        let (data, report) = wire::gather(|| serde_json::from_str::<wire::BurnData>(&json).expect("burns"));
        let request = PollRequest::Token {
            endpoint: Endpoint::Burn,
            token: self.snapshot.token.id.clone(),
            start: at(1, 0).date_naive() - chrono::Days::new(365),
            end: at(31, 0).date_naive(),
        };
        let fetched = FetchedResponse::of_page(
            request.clone(),
            PollOutcome::Fresh(PollResponse {
                payload: Payload::Burns(data),
                hash: ContentHash(1),
                parse_warnings: report.parse_warnings,
                parse_warnings_total: report.total,
                dropped: report.dropped,
            }),
            None,
        );
        let poll = PlannedPoll::for_change(request);
        let mut work = Work::default();
        let ingest = Ingest { watch: &self.watch, settings: Settings::default(), now };
        let known = self.snapshot.clone();
        let ingested = ingest.response(&mut work, &known, &poll, &fetched, ListedSchedules::NONE);
        assert!(ingested.failure.is_none());
        let mut limits = Limits::default();
        let transitions = pipeline::step(&work.tokens, &[], &CorrectionsByToken::new(), &self.rules.context(now), &mut limits);
        let step = pipeline::conclude(work.commit, transitions, &[], now);
        self.notified.extend(step.commit.notifications.iter().map(|note| note.id.to_string()));
        self.changes += step.commit.changes.len();
        let after = work.tokens.into_iter().next().expect("news").records.into_owned();
        let through_json = |tracked: Tracked| {
            let json = serde_json::to_string(&tracked.record).expect("JSON");
            Tracked { key: tracked.key, record: Record::from_json(Resource::Burn, &json).expect("a burn") }
        };
        self.snapshot.records = after.into_iter().map(through_json).collect();
        for update in step.commit.feeds {
            self.snapshot.feeds = vec![(Endpoint::Burn, update.state)];
            if let Some(header) = update.header {
                let header = serde_json::from_str(&header.to_string()).expect("JSON");
                self.snapshot.headers = vec![(Endpoint::Burn, header)];
            }
        }
    }
}

/// Ingests a page of an investor with these rounds. Returns the ids of the notifications.
fn poll_rounds(daemon: &mut Daemon, now: Timestamp, rounds: &str) -> Vec<String> {
    let rounds: Vec<wire::FundingRound> = serde_json::from_str(&format!("[{rounds}]")).expect("rounds");
    let ingest = Ingest { watch: &daemon.watch, settings: Settings::default(), now };
    let (known, mut work) = (daemon.snapshot.clone(), Work::default());
    // Rounds before this date are part of the baseline.
    let is_new = |record: &Record| record.interval().is_some_and(|round| round.start >= at(4, 0));
    let page = RoundsPage { rounds: &rounds, covers: &|_| true, is_new: &is_new };
    ingest.rounds(&mut work, &known, &page);
    let transitions =
        pipeline::step(&work.tokens, &[], &CorrectionsByToken::new(), &daemon.rules.context(now), &mut Limits::default());
    let step = pipeline::conclude(work.commit, transitions, &[], now);
    daemon.snapshot.records = work.tokens.iter().flat_map(|update| update.records.to_vec()).collect();
    for update in step.commit.feeds {
        daemon.snapshot.feeds = vec![(Endpoint::Investors, update.state)];
        daemon.snapshot.headers = update.header.map(|header| (Endpoint::Investors, header)).into_iter().collect();
    }
    step.commit.notifications.iter().map(|note| note.id.to_string()).collect()
}

#[test]
fn round_is_evaluated_once_when_the_needed_fact_arrives() {
    let round = |day: u32, rest: &str| {
        format!(
            r#"{{"investorId":"fund","tokenId":"aptos","roundName":"Series {day}","fundingDate":"2026-03-{day:02}T00:00:00Z"{rest}}}"#
        )
    };
    for (field, value) in [("totalAmountRaisedinThatRound", "2000000"), ("valuation", "2000000"), ("isLeadInvestor", "true")] {
        let when = if value == "true" { "isLeadInvestor".to_owned() } else { format!("{field} >= 1000000") };
        let mut daemon = Daemon::with(&format!("[[rule]]\nalert = \"BigRound\"\non = \"funding\"\nwhen = \"{when}\"\n"));
        let late = format!(r#","{field}":{value}"#);
        let mut notified = Vec::new();
        for (day, rounds) in [
            (3, round(1, "")),
            (5, format!("{},{}", round(1, ""), round(4, ""))),
            (6, format!("{},{}", round(1, &late), round(4, &late))),
            (7, format!("{},{}", round(1, &late), round(4, ""))),
            (8, format!("{},{}", round(1, &late), round(4, &late))),
        ] {
            notified.push(poll_rounds(&mut daemon, at(day, 0), &rounds).len());
        }
        assert_eq!(notified, [0, 0, 1, 0, 0], "{field}");
    }
}

const BIG: &str = "[[rule]]\nalert = \"BigBurn\"\non = \"burn\"\nwhen = \"value >= 1000000\"\n";

fn burn(day: u32, rest: &str) -> String {
    format!(r#"{{"burnEventLabel":"Gas","burnType":"PROGRAMMATIC","burnDate":"2026-03-{day:02}T00:00:00Z","amount":500{rest}}}"#)
}

fn all(burns: &[String]) -> String {
    burns.join(",")
}

#[test]
fn burn_is_evaluated_once_when_the_needed_fact_arrives() {
    let mut daemon = Daemon::with(BIG);
    let old = burn(1, "");
    daemon.poll(at(3, 0), &old);
    daemon.poll(at(4, 0), &all(&[old.clone(), burn(4, "")]));
    assert_eq!(daemon.notified, [] as [&str; 0], "the condition is unknown");
    daemon.poll(at(4, 6), &all(&[old.clone(), burn(4, r#","value":null"#)]));
    assert_eq!(daemon.notified, [] as [&str; 0]);
    daemon.poll(at(5, 0), &all(&[old.clone(), burn(4, r#","value":2000000"#)]));
    assert_eq!(daemon.notified.len(), 1);
    // The price arrives later, and the value disappears and returns: no further notification.
    daemon.poll(at(5, 6), &all(&[old.clone(), burn(4, r#","value":2000000,"pricePerToken":4000"#)]));
    daemon.poll(at(5, 12), &all(&[old.clone(), burn(4, "")]));
    daemon.poll(at(5, 18), &all(&[old.clone(), burn(4, r#","value":2500000"#)]));
    assert_eq!(daemon.notified.len(), 1);
    // A burn of the baseline never notifies, even if its facts arrive later.
    daemon.poll(at(6, 0), &all(&[burn(1, r#","value":9000000"#), burn(4, r#","value":2500000"#)]));
    assert_eq!(daemon.notified.len(), 1);
}

#[test]
fn record_decided_on_arrival_is_not_evaluated_again() {
    let either = "[[rule]]\nalert = \"BigBurn\"\non = \"burn\"\nwhen = \"value >= 1000000 || amount >= 400\"\n";
    let fire = "[[rule]]\nalert = \"BigBurn\"\non = \"burn\"\nwhen = \"value >= 1000000\"\nmissing = \"fire\"\n";
    for rule in [either, fire] {
        let mut daemon = Daemon::with(rule);
        daemon.poll(at(3, 0), &burn(1, ""));
        daemon.poll(at(4, 0), &all(&[burn(1, ""), burn(4, "")]));
        assert_eq!(daemon.notified.len(), 1);
        daemon.poll(at(5, 0), &all(&[burn(1, ""), burn(4, r#","value":2000000"#)]));
        assert_eq!(daemon.notified.len(), 1);
    }
    let mut daemon = Daemon::with(BIG);
    daemon.poll(at(3, 0), &burn(1, ""));
    daemon.poll(at(4, 0), &all(&[burn(1, ""), burn(4, r#","value":5"#)]));
    daemon.poll(at(5, 0), &all(&[burn(1, ""), burn(4, r#","value":2000000,"pricePerToken":4"#)]));
    assert_eq!(daemon.notified, [] as [&str; 0], "a restated value is a change, not an arrival");
}

#[test]
fn late_fact_counts_only_within_since() {
    for (since, is_notified) in [("2d", false), ("7d", true)] {
        let mut daemon = Daemon::with(&format!("{BIG}since = \"{since}\"\n"));
        daemon.poll(at(3, 0), &burn(1, ""));
        daemon.poll(at(4, 0), &all(&[burn(1, ""), burn(3, "")]));
        daemon.poll(at(9, 0), &all(&[burn(1, ""), burn(3, r#","value":2000000"#)]));
        assert_eq!(daemon.notified.len(), usize::from(is_notified), "{since}");
    }
    // A burn that was older than `since` on arrival never notifies.
    let mut daemon = Daemon::with(&format!("{BIG}since = \"2d\"\n"));
    daemon.poll(at(10, 0), &burn(1, ""));
    daemon.poll(at(11, 0), &all(&[burn(1, ""), burn(5, "")]));
    daemon.poll(at(12, 0), &all(&[burn(1, ""), burn(5, r#","value":2000000"#)]));
    assert_eq!(daemon.notified, [] as [&str; 0]);
}

#[test]
fn burn_that_loses_facts_keeps_the_known_ones() {
    let mut daemon = Daemon::with("[[rule]]\nalert = \"Any\"\non = \"burn.*\"\n");
    let whole = all(&[burn(1, r#","value":5"#), burn(2, r#","value":7"#)]);
    daemon.poll(at(3, 0), &whole);
    for garbled in [
        all(&[burn(1, r#","value":null"#), burn(2, "")]),
        whole.replace("\"amount\":500", "\"amount\":null"),
        whole.replace("\"amount\":500", "\"amount\":-500"),
        whole.replace("\"burnEventLabel\":\"Gas\",", ""),
        whole.replace("\"burnType\":\"PROGRAMMATIC\"", "\"burnType\":null"),
        whole.replace("\"burnEventLabel\":\"Gas\",", "").replace("\"amount\":500", "\"amount\":null"),
        whole.clone(),
    ] {
        let before = daemon.snapshot.records.clone();
        daemon.poll(at(4, 0), &garbled);
        assert_eq!((daemon.changes, daemon.notified.len()), (0, 0), "{garbled}");
        assert_eq!(daemon.snapshot.records, before);
    }
}
