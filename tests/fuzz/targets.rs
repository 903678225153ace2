//! The fuzz targets: one for each parser of external text. A target ends in bounded time for any input, panics if a guarantee is
//! broken, and prints nothing.
//!
//! `cargo test` replays the seeds and all inputs in `found/`, so that a fixed bug stays fixed.

#![allow(clippy::panic, clippy::expect_used, reason = "a panic is how a target reports a bug")]

use std::{collections::BTreeMap, path::Path, sync::LazyLock};

use daemon::config::{Environment, load_text};
use engine::route::{RouteTree, Sections};
use model::{
    change::{AllocationChange, Change, ChangeKind, Fact},
    config::{self},
    diagnostic::{self, Diagnostic, DiagnosticLevel, SourceText},
    poll::{Payload, PollOutcome, PollRequest},
    supply::{Endpoint, Record, RecordKey, Resource, Timestamp, Token, TokenId, Tracked},
    watch::Watch,
};
use rules::{
    LoadedRules, On, Rule, RuleSet, Scope, SourceFacts, Surroundings,
    aggregate::{FlowEntries, Member, Totals},
};
use source as api;
use tools::{
    ruletest::{self, TestSetup},
    simulate::{Pace, Simulation},
};

/// The fixed time of all targets.
fn now() -> Timestamp {
    "2026-03-09T12:00:00Z".parse().expect("a time")
}

fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn groups() -> BTreeMap<String, Vec<String>> {
    [("portfolio".to_owned(), vec!["arbitrum".to_owned()])].into()
}

/// Parses a rule file and renders its diagnostics. If it is valid, evaluates and renders its rules over [`Samples`].
pub fn rules(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let loaded = load(text.to_owned());
    for rule in &loaded.set.rules {
        evaluate(rule, &loaded.set);
    }
}

fn load(text: String) -> LoadedRules {
    let (receivers, groups) = (["ops".to_owned(), "desk".to_owned()], groups());
    let around = Surroundings { receivers: &receivers, groups: &groups, now: now() };
    let loaded = rules::load(&[SourceText { file: "fuzzed.toml".into(), text }], &around);
    check_diagnostics(&loaded.diagnostics, &loaded.sources);
    loaded
}

/// Checks that every diagnostic can be rendered and that each span lies within its text.
fn check_diagnostics(diagnostics: &[Diagnostic], sources: &[SourceText]) {
    let shown = diagnostic::render(diagnostics, sources, false);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "control characters are shown: {shown:?}");
    let _ = diagnostic::to_json(diagnostics, sources).to_string();
    for problem in diagnostics {
        let source = sources.iter().find(|source| source.file == problem.file);
        if let (Some(source), Some(span)) = (source, &problem.span) {
            assert!(source.text.get(span.clone()).is_some(), "{:?} is not a valid span: {}", span, problem.message);
        }
    }
}

/// Parses a condition. The first line is the rule's `on`, for example `unlock`, followed by `cliffValue >= 5000000`.
pub fn conditions(data: &[u8]) {
    let Some((on, when)) = text(data).and_then(|text| text.split_once('\n')) else { return };
    let quoted = serde_json::to_string(when).expect("a text is JSON").replace('\u{7f}', "\\u007f");
    let loaded = load(format!("[[rule]]\nalert = \"A\"\non = {:?}\nwhen = {quoted}\n", on.trim()));
    for rule in &loaded.set.rules {
        evaluate(rule, &loaded.set);
    }
}

fn evaluate(rule: &Rule, set: &RuleSet) {
    for scope in SAMPLES.scopes(rule.on, set) {
        let scope = scope.scope();
        let truth = rule.evaluate(&scope);
        assert_eq!(truth, rule.evaluate(&scope), "evaluation is deterministic");
        let (_, _) = (rule.covers(&scope), rule.clears(&scope));
        let _ = rule.clauses(&scope);
        let level = rule.level(&scope);
        let rendered = rule.render(&scope, level);
        assert!(rendered.annotations.get("summary").is_some_and(|summary| !summary.trim().is_empty()), "the summary is empty");
        assert_eq!(rendered.labels.get("alertname"), Some(&rule.name));
    }
}

/// Tokens, records, changes, and incidents to evaluate rules on.
struct Samples {
    tokens: Vec<Token>,
    records: Vec<Tracked>,
    changes: Vec<Change>,
    incidents: Vec<SourceFacts>,
}

static SAMPLES: LazyLock<Samples> = LazyLock::new(Samples::made);

/// The owner of the values that a [`Scope`] borrows.
struct Sample<'a> {
    token: Option<&'a Token>,
    record: Option<&'a Tracked>,
    change: Option<&'a Change>,
    source: Option<&'a SourceFacts>,
    totals: Option<Totals>,
}

impl Sample<'_> {
    fn scope(&self) -> Scope<'_> {
        let &Self { token, record, change, source, .. } = self;
        Scope { token, record, change, source, totals: self.totals.as_ref(), ..Scope::at(now()) }
    }
}

impl Samples {
    fn made() -> Self {
        let of = |resource, json: &str| Record::from_json(resource, json).expect("a sample");
        let json = [
            (
                Resource::Unlock,
                r#"{"unlockDate":"2026-03-16T13:00:00Z","tokenName":"Arbitrum","tokenSymbol":"ARB","listedMethod":"AI","dataSource":"x",
                "latestUpdateDate":"2026-03-01T00:00:00Z","cliffUnlocks":{"cliffAmount":92650000,"cliffValue":33150000,"valueToMarketCap":2.77,
                "allocationBreakdown":[{"allocationName":"Team","standardAllocationName":"Founder / Team","cliffAmount":60000000,
                "cliffValue":21000000,"referencePrice":0.35,"unlockDate":"2026-03-16T13:00:00Z","unlockPrecision":"month",
                "committedClaim":{"amount":5,"value":2}},{"allocationName":"\u202eInvestors\u0007","cliffAmount":1e308}]},
                "linearUnlocks":{"linearAmount":100,"linearValue":50,"allocationBreakdown":[{"allocationName":"Ecosystem","linearAmount":100,
                "dailyAmount":1,"durationOfRate":30,"beginDate":"2026-01-01T00:00:00Z","endDate":"2027-01-01T00:00:00Z"}]}}"#,
            ),
            (Resource::Unlock, r#"{"unlockDate":null,"cliffUnlocks":null}"#),
            (
                Resource::Burn,
                r#"{"burnDate":"2026-03-08T00:00:00Z","amount":1936000,"value":0,"burnType":"BURN","burnEventLabel":"Q1 <b>burn</b>",
                "metadata":{"burners":["0x1"],"burnReasons":["fees",""]}}"#,
            ),
            (Resource::Burn, "{}"),
            (Resource::Buyback, r#"{"buybackDate":"2026-03-08T00:00:00Z","tokenAmount":-1,"value":1e-320,"buybackType":"x"}"#),
            (
                Resource::Emission,
                r#"{"startDate":"2026-03-09","endDate":"2026-03-10","unlockAmount":5,"allocations":["Team",{"allocationName":"x","unlockAmount":5}]}"#,
            ),
            (Resource::Emission, "{}"),
            (
                Resource::Allocation,
                r#"{"allocationName":"Team","standardAllocationName":"Founder / Team","allocationAmount":1e9,"allocationLockedAmount":3}"#,
            ),
            (Resource::Allocation, "{}"),
            (
                Resource::Funding,
                r#"{"roundName":"Seed","fundingDate":"2026-03-01","totalAmountRaisedinThatRound":5e6,"valuation":null}"#,
            ),
        ];
        let records: Vec<Tracked> = json
            .into_iter()
            .enumerate()
            .map(|(number, (resource, json))| Tracked { key: RecordKey::from(format!("k{number}")), record: of(resource, json) })
            .collect();
        let mut arbitrum = Token::unknown(TokenId::from("arbitrum"));
        arbitrum.item = serde_json::from_str(
            r#"{"id":"arbitrum","name":"Arbitrum","symbol":"ARB","marketCap":1200000000,"circulatingSupply":4000000000,"maxSupply":1e10,
            "listedMethod":"INTERNAL","hasBurn":true,"lastUpdatedDate":"2026-03-01T00:00:00Z"}"#,
        )
        .expect("a token");
        arbitrum.groups = ["portfolio".to_owned()].into();
        let tokens = vec![arbitrum, Token::unknown(TokenId::from("unknown"))];
        let changes = ChangeKind::ALL.into_iter().flat_map(|kind| changes_of(kind, &records)).collect();
        let incident = SourceFacts {
            kind: "unreachable".into(),
            endpoint: Some("burn".into()),
            receiver: None,
            message: "no\nanswer".into(),
            count: 3,
            since: now(),
        };
        Self { tokens, records, changes, incidents: vec![incident] }
    }

    /// All samples that a rule with this `on` subscribes to.
    fn scopes(&self, on: On, set: &RuleSet) -> Vec<Sample<'_>> {
        let none = || Sample { token: None, record: None, change: None, source: None, totals: None };
        let flow_entries = || {
            [FlowEntries::of(&self.records, |_| true), FlowEntries::of(&[], |_| false)]
                .into_iter()
                .zip(&self.tokens)
                .map(|(entries, token)| (token, Totals::of(token, &entries, &set.reads, now())))
        };
        match on {
            On::Record(resource) => {
                let records = self.records.iter().filter(|tracked| tracked.record.resource() == resource);
                records
                    .flat_map(|record| self.tokens.iter().map(move |token| (token, record)))
                    .map(|(token, record)| Sample { token: Some(token), record: Some(record), ..none() })
                    .collect()
            }
            On::Change(resource, kind) => {
                let is_subscribed =
                    |change: &&Change| change.resource == Some(resource) && kind.is_none_or(|kind| kind == change.kind);
                let token = self.tokens.first();
                self.changes.iter().filter(is_subscribed).map(|change| Sample { token, change: Some(change), ..none() }).collect()
            }
            On::Token => {
                flow_entries().map(|(token, totals)| Sample { token: Some(token), totals: Some(totals), ..none() }).collect()
            }
            On::Portfolio => {
                let members = flow_entries().map(|(token, totals)| Member {
                    id: token.id.clone(),
                    symbol: token.symbol().into(),
                    name: token.symbol().into(),
                    totals: totals.into(),
                    share: Some(50.0),
                });
                let whole = |group| Totals::of_group(group, members.clone().collect(), &set.reads);
                [Some("portfolio"), None].map(|group| Sample { totals: Some(whole(group)), ..none() }).into()
            }
            On::Source => self.incidents.iter().map(|incident| Sample { source: Some(incident), ..none() }).collect(),
        }
    }
}

fn changes_of(kind: ChangeKind, records: &[Tracked]) -> Vec<Change> {
    let of = records.iter().filter(|tracked| kind.can_happen_to(tracked.record.resource()));
    of.map(|tracked| Change {
        key: Some(tracked.key.clone()),
        old: Some(tracked.record.clone()),
        new: (kind != ChangeKind::Removed).then(|| tracked.record.clone()),
        from: Some(Fact::Amount(1.0)),
        to: Some(Fact::Time(now())),
        shift_days: Some(-0.5),
        count: 1,
        allocations: vec![AllocationChange { name: "Team".into(), from: Some(Fact::Text("a".into())), ..Default::default() }],
        ..Change::of(kind, tracked.record.resource(), &"arbitrum".into())
    })
    .collect()
}

/// Runs a rule test file against the starter rules. It passes, fails, or is rejected in bounded time.
pub fn rule_tests(data: &[u8], repository: &Path) {
    let Some(text) = text(data) else { return };
    let file = repository.join("rules/tests/fuzzed.toml");
    let loaded = load_text(None, "", &Environment::default());
    let config = loaded.config.expect("the defaults are right");
    let setup = TestSetup { config: &config, base_dir: repository, only: None };
    for outcome in ruletest::run_text(SourceText { file, text: text.to_owned() }, &setup) {
        let shown = ruletest::report::plain(&outcome);
        assert!(outcome.is_passed() || shown.lines().count() > 1, "a failure without a reason: {shown}");
    }
}

/// Parses a config and renders its diagnostics. If it is valid, queries its routes.
pub fn config(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let loaded = load_text(Some(Path::new("cliffwatch.toml")), text, &Environment::default());
    check_diagnostics(&loaded.diagnostics, &loaded.sources);
    let is_wrong = loaded.diagnostics.iter().any(|problem| problem.severity == DiagnosticLevel::Error);
    assert_eq!(loaded.config.is_none(), is_wrong, "a config is returned if and only if there is no error");
    if let Some(config) = loaded.config {
        let routes = RouteTree::of(&Sections::from(&config)).expect("a config that was checked has routes");
        let labels = [("alertname".to_owned(), "A".to_owned()), ("severity".to_owned(), "critical".to_owned())].into();
        let _ = routes.route(&labels);
        let _ = format!("{config:?}");
    }
}

/// Parses an API response as each endpoint, diffs it with itself, and evaluates the starter rules on it.
pub fn responses(data: &[u8]) {
    let token = TokenId::from("arbitrum");
    let (start, end) = (now().date_naive(), now().date_naive());
    for endpoint in Endpoint::ALL {
        let request = match endpoint {
            Endpoint::TokenList => PollRequest::TokenList,
            Endpoint::Upcoming => PollRequest::Upcoming { start, end },
            Endpoint::Investors => PollRequest::Investors,
            endpoint => PollRequest::Token { endpoint, token: token.clone(), start, end },
        };
        for version in [1, 4, 5] {
            if let Ok(PollOutcome::Fresh(response)) = api::read_body(&request, version, data.to_vec(), None) {
                ingest(&token, endpoint, &response.payload);
            }
        }
    }
    let detail = PollRequest::Investor { id: "a16z".into() };
    let _ = api::read_body(&detail, 1, data.to_vec(), None);
}

struct Starters {
    rules: RuleSet,
    routes: RouteTree,
    watch: Watch,
}

static STARTERS: LazyLock<Starters> = LazyLock::new(|| {
    let files = [
        include_str!("../../rules/unlocks.toml"),
        include_str!("../../rules/changes.toml"),
        include_str!("../../rules/supply.toml"),
    ];
    let files = files.map(|text| SourceText { file: "starter.toml".into(), text: text.to_owned() });
    let (receivers, groups) = (["ops".to_owned()], groups());
    let loaded = rules::load(&files, &Surroundings { receivers: &receivers, groups: &groups, now: now() });
    assert!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    let route = config::Route { receivers: receivers.to_vec(), ..config::Route::default() };
    let ops = config::ReceiverSettings { name: "ops".into(), ..config::ReceiverSettings::default() };
    let routes = RouteTree::build(&route, &[ops]).expect("a route");
    let watch = Watch::build(&config::WatchSettings { tokens: vec!["*".into()], groups, ..config::WatchSettings::default() })
        .expect("a watch list");
    Starters { rules: loaded.set, routes, watch }
});

fn ingest(token: &TokenId, endpoint: Endpoint, payload: &Payload) {
    let Starters { rules, routes, watch } = &*STARTERS;
    let mut simulation = Simulation::new(rules, routes, watch, Pace::default(), now());
    if let Payload::Tokens(items) = payload {
        for item in items {
            simulation.token(item);
        }
        return;
    }
    if endpoint.resource().is_none() || !endpoint.is_per_token() {
        return;
    }
    simulation.response(token, endpoint, payload.clone());
    let changes = simulation.take_changes();
    assert!(changes.is_empty(), "a baseline produced changes: {changes:?}");
    let _ = simulation.take_notified();
    simulation.response(token, endpoint, payload.clone());
    let (changes, notified) = (simulation.take_changes(), simulation.take_notified());
    assert!(changes.is_empty() && notified.is_empty(), "the same response again produced output: {changes:?} {notified:?}");
}
