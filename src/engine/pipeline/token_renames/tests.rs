//! Renames need evidence, and reminders, records, and resolutions survive them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    diff::Settings,
    evaluate::Limits,
    pipeline::{self, ActiveRules},
    route::{RouteTree, Sections},
};
use model::corrections::CorrectionsByToken;
use model::{AlertId, Timestamp, Watch, config, diagnostic::SourceText};
use rules::Surroundings;

fn item(id: &str, more: serde_json::Value) -> wire::TokenItem {
    let mut row = json!({"id": id, "name": "Alpha", "symbol": "ALP", "maxSupply": 1e9, "circulatingSupply": 4e8});
    if let (Some(row), serde_json::Value::Object(more)) = (row.as_object_mut(), more) {
        row.extend(more);
    }
    serde_json::from_value(row).expect("an item")
}

fn pairs(gone: &[wire::TokenItem], new: &[wire::TokenItem]) -> Vec<(String, String)> {
    renamed_tokens(gone, new).into_iter().map(|(from, to)| (from.to_string(), to.to_string())).collect()
}

#[test]
fn rename_needs_equal_texts_equal_figures_and_a_unique_match() {
    let old = item("alpha", json!({}));
    let is = |new: wire::TokenItem| !pairs(std::slice::from_ref(&old), &[new]).is_empty();
    assert!(is(item("alpha-new", json!({}))));
    assert!(is(item("alpha-new", json!({"name": "ALPHA ", "circulatingSupply": 4.02e8, "maxSupply": null}))));
    for other in [
        json!({"maxSupply": 2e9}),
        json!({"circulatingSupply": 9e8}),
        json!({"name": "Alpha Two"}),
        json!({"symbol": "ALP2"}),
        json!({"symbol": null}),
        // Texts alone are not enough.
        json!({"maxSupply": null, "circulatingSupply": null}),
        json!({"maxSupply": 0.0, "circulatingSupply": 0.0}),
    ] {
        assert!(!is(item("alpha-new", other.clone())), "{other}");
    }
    // An equal website compensates for a changed name.
    let with_website = |id: &str, symbol: &str| item(id, json!({"symbol": symbol, "websiteUrl": "https://alpha.example"}));
    assert_eq!(pairs(&[with_website("alpha", "ALP")], &[with_website("omega", "OMG")]).len(), 1);
    // Two tokens with the same name: it may be either.
    assert_eq!(pairs(std::slice::from_ref(&old), &[item("one", json!({})), item("two", json!({}))]), []);
    assert_eq!(pairs(&[old.clone(), item("beta", json!({}))], &[item("one", json!({}))]), []);
    assert_eq!(pairs(&[old], &[item("one", json!({})), item("two", json!({"maxSupply": 3.0}))]), []);
}

#[test]
fn work_grows_with_the_number_of_renames_only() {
    let row = |id: String, name: &str, symbol: &str| item(&id, json!({"name": name, "symbol": symbol, "maxSupply": 7.0}));
    for (count, symbol) in [(2_000, None), (2_000, Some("SAME"))] {
        let rows = |suffix: &str| -> Vec<wire::TokenItem> {
            let each = (0..count).map(|n| (format!("t{n}{suffix}"), format!("name {n}"), format!("S{n}")));
            each.map(|(id, name, own)| row(id, &name, symbol.unwrap_or(&own))).collect()
        };
        let (missing, new) = (rows(""), rows("-x"));
        let (missing, new) = (TextIndex::of(&missing), TextIndex::of(&new));
        let found = renamed_in(&missing, &new).len();
        assert_eq!(found, if symbol.is_some() { 0 } else { count }, "a shared ticker leaves it open which token is which");
        let examined = missing.examined.get() + new.examined.get();
        assert!(examined <= 6 * count, "{examined} rows examined");
    }
}

proptest! {
    #[test]
    fn every_renamed_token_of_a_list_is_found(
        tokens in prop::collection::btree_map("[a-z]{4,9}", (1..900_u32, 0..3_u8), 1..40),
    ) {
        // Each token has a unique name. Some get another slug, some another slug and other figures, some leave.
        let row = |id: &str, name: &str, supply: f64| item(id, json!({"name": name, "symbol": name, "maxSupply": supply}));
        let gone: Vec<_> = tokens.iter().map(|(name, (supply, _))| row(name, name, f64::from(*supply))).collect();
        let of = |what: u8| tokens.iter().filter(move |(_, (_, of))| *of == what);
        let renamed = of(0).map(|(name, (supply, _))| row(&format!("{name}-x"), name, f64::from(*supply)));
        let other = of(1).map(|(name, (supply, _))| row(&format!("{name}-x"), name, f64::from(*supply) * 7.0));
        let mut new: Vec<_> = renamed.chain(other).collect();
        new.reverse();
        let mut found = pairs(&gone, &new);
        found.sort();
        let expected: Vec<_> = of(0).map(|(name, _)| (name.clone(), format!("{name}-x"))).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn rename_neither_loses_nor_repeats_reminders(
        days in prop::collection::btree_set(1..80_i64, 1..6), at in 0..80_i64, back in prop::option::of(1..40_i64),
    ) {
        let mut stays = World::of(&days);
        let mut moves = World::of(&days);
        for day in 0..82 {
            if day == at {
                moves.rename("alpha", "omega", day);
            }
            if back.is_some_and(|later| day == at + later) {
                moves.rename("omega", "alpha", day);
            }
            stays.tick(day);
            moves.tick(day);
        }
        let (renames, notified): (Vec<String>, Vec<String>) = moves.notified.iter().cloned().partition(|line| line.contains("renamed"));
        prop_assert_eq!(&notified, &stays.notified);
        // Each rename is notified once, and the alerts go on without a message.
        prop_assert!(renames.iter().all(|line| line.starts_with("change ")), "{:?}", renames);
        prop_assert_eq!(renames.len(), 1 + usize::from(back.is_some_and(|later| at + later < 82)));
        prop_assert!(moves.tokens.values().all(|known| known.alerts.is_empty()), "every alert is resolved");
    }
}

fn begin() -> Timestamp {
    wire::parse_timestamp("2026-03-01T00:00:00Z").expect("a time")
}

/// Tokens that are evaluated once a day, with their stored state.
struct World {
    rules: ActiveRules,
    watch: Watch,
    tokens: BTreeMap<TokenId, TokenSnapshot>,
    episodes: BTreeMap<(RuleId, String), u32>,
    notified: Vec<String>,
    /// The stored alerts by id.
    alerts: BTreeMap<AlertId, Alert>,
}

impl World {
    fn of(days: &std::collections::BTreeSet<i64>) -> Self {
        let text = "[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"30d\", \"7d\", \"1d\"]\n\
                    [[rule]]\nalert = \"Moved\"\non = \"unlock.*\"\n";
        let source = SourceText { file: "rules.toml".into(), text: text.into() };
        let around = Surroundings { receivers: &["ops".to_owned()], groups: &BTreeMap::new(), now: begin() };
        let rules = rules::load(&[source], &around);
        assert!(rules.is_usable(), "{:?}", rules.diagnostics);
        let text = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/\"\n";
        let config = toml::from_str::<config::Config>(text).expect("a config");
        let routes = RouteTree::of(&Sections::from(&config)).expect("routes");
        let record = |day: &i64| {
            let date = (begin() + TimeDelta::days(*day) + TimeDelta::hours(12)).to_rfc3339();
            let event = json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 5.0, "allocationBreakdown": []}});
            Tracked { key: date.as_str().into(), record: Record::Unlock(serde_json::from_value(event).expect("an event")) }
        };
        let feed = FeedState { baseline_at: Some(begin()), read_at: Some(begin()), ..FeedState::default() };
        let token = Token { item: item("alpha", json!({})), ..Token::unknown("alpha".into()) };
        let known = TokenSnapshot {
            feeds: vec![(Endpoint::UnlockEvents, feed)],
            records: days.iter().map(record).collect(),
            ..TokenSnapshot::of(token)
        };
        Self {
            rules: ActiveRules { rules: rules.set, routes, ..ActiveRules::default() },
            watch: Watch::build(&config.watch).expect("a watch"),
            tokens: BTreeMap::from([("alpha".into(), known)]),
            episodes: BTreeMap::new(),
            notified: Vec::new(),
            alerts: BTreeMap::new(),
        }
    }

    fn ingest(&self, day: i64) -> Ingest<'_> {
        Ingest { watch: &self.watch, settings: Settings::default(), now: begin() + TimeDelta::days(day) }
    }

    fn tick(&mut self, day: i64) {
        let tokens = self.tokens.clone();
        let work = Work { tokens: tokens.values().map(|known| self.ingest(day).as_known(known)).collect(), ..Work::default() };
        self.write(work, day);
    }

    fn rename(&mut self, from: &str, to: &str, day: i64) {
        let (from, to): (TokenId, TokenId) = (from.into(), to.into());
        let old = self.tokens[&from].clone();
        let before = self.tokens.get(&to).cloned().unwrap_or_else(|| TokenSnapshot::of(Token::unknown(to.clone())));
        assert!(is_unread(&before) && !is_unread(&old));
        let renaming = Renaming::of(&old, &before, &item(to.as_str(), json!({})), &[], &[]);
        let latest: Vec<u32> = renaming.openings().iter().map(|of| self.episodes.get(of).copied().unwrap_or_default()).collect();
        let new = renaming.into_token(&latest, &before, begin() + TimeDelta::days(day));
        let mut work = Work::default();
        self.ingest(day).renamed(&mut work, &old, &before, &new);
        self.write(work, day);
        for before in &old.alerts {
            let is_former = |other: &Alert| other.subject == before.subject && other.resolution == Some(Resolution::Renamed);
            assert!(self.alerts.values().any(is_former), "a closed alert stays for each one that moved");
            assert_eq!(self.alerts[&before.id].token, Some(to.clone()), "the alert moved with its id");
        }
    }

    fn write(&mut self, work: Work<'_>, day: i64) {
        let now = begin() + TimeDelta::days(day);
        let draft =
            pipeline::step(&work.tokens, &[], &CorrectionsByToken::new(), &self.rules.context(now), &mut Limits::default());
        let latest: Vec<u32> = draft.openings().iter().map(|of| self.episodes.get(of).copied().unwrap_or_default()).collect();
        let commit = pipeline::conclude(work.commit, draft, &latest, now).commit;
        for update in commit.feeds {
            let id = update.id.token.clone().expect("of a token");
            let known = self.tokens.entry(id.clone()).or_insert_with(|| TokenSnapshot::of(Token::unknown(id)));
            let diff = crate::diff::Diff { put: update.put, removed: update.removed, ..Default::default() };
            known.records = crate::diff::apply(&known.records, &diff);
            known.feeds = vec![(update.id.endpoint, update.state)];
            known.headers = update.header.map(|header| (update.id.endpoint, header)).into_iter().collect();
        }
        for alert in commit.alerts {
            let latest = self.episodes.entry((alert.rule.clone(), alert.subject.clone())).or_default();
            *latest = alert.episode.max(*latest);
            self.tokens.values_mut().for_each(|known| known.alerts.retain(|other| other.id != alert.id));
            let known = self.tokens.get_mut(alert.token.as_ref().expect("of a token")).expect("known");
            let place = |of: &Alert| (of.rule.clone(), of.subject.clone(), of.episode);
            let is_taken = |other: &Alert| other.id != alert.id && place(other) == place(&alert);
            assert!(!self.alerts.values().any(is_taken), "an episode of a subject is unique: {alert:?}");
            let before = self.alerts.insert(alert.id.clone(), alert.clone());
            assert!(before.is_none_or(|before| before.active_at == alert.active_at), "another alert had the id: {alert:?}");
            if matches!(alert.state, AlertState::Pending | AlertState::Firing) {
                known.alerts.push(alert);
            }
        }
        for note in commit.notifications {
            let record = note.body.record.as_ref().map_or(String::new(), |record| record["unlockDate"].to_string());
            let word = match note.kind {
                model::NotificationKind::Resolved => "resolved",
                model::NotificationKind::Event => "change",
                _ => "told",
            };
            // The first notification and a reminder have different text.
            self.notified.push(format!("{word} {} {record} on day {day}", note.body.reason));
        }
    }
}

/// A firing alert of the token `slug` for each subject.
fn firing(rule: &str, subject: &str, slug: Option<&str>, members: &[&str]) -> Alert {
    let mut alert = crate::evaluate::blank(rule.into(), rule, subject.to_owned(), AlertState::Firing, begin());
    alert.id = alert_id(&alert.rule, subject, 1);
    alert.episode = 1;
    alert.token = slug.map(TokenId::from);
    alert.labels = Labels::from([("alertname".into(), rule.into()), ("token".into(), "ken".into())]);
    alert.notified = vec!["ops".into()];
    alert.members = members.iter().map(ToString::to_string).collect();
    alert
}

#[test]
fn alerts_incidents_and_silences_move_with_their_ids() {
    // The slug is part of the word "token", which must stay.
    let token = |slug: &str| TokenSnapshot::of(Token::unknown(slug.into()));
    let total = firing("Outruns", "token/ken", Some("ken"), &[]);
    let old = TokenSnapshot { alerts: vec![total.clone()], ..token("ken") };
    let incidents = [
        firing(SOURCE_TROUBLE, "source/burn/ken", None, &["burn/ken"]),
        firing(SOURCE_TROUBLE, "source/unlock_events", None, &["unlock_events/beta", "unlock_events/ken"]),
        firing(SOURCE_TROUBLE, "source/burn/token", None, &["burn/token"]),
        firing("Group", "portfolio/ken", None, &[]),
    ];
    let silence = |matchers: &[&str]| Silence {
        id: format!("si_{}", matchers.join(",")),
        matchers: matchers.iter().map(|text| model::Matcher::parse(text).expect("a matcher")).collect(),
        author: "ann".to_owned(),
        comment: "known".to_owned(),
        starts_at: begin(),
        ends_at: begin() + TimeDelta::days(1),
        created_at: begin(),
    };
    let silences = [
        silence(&["severity=warning", "token=ken"]),
        silence(&["token=~\"ken|beta\"", "token!=beta"]),
        silence(&["token=~\"ken|omega\""]),
        silence(&["token=beta"]),
        silence(&["severity=warning"]),
        silence(&["severity=warning", "token!=beta"]),
    ];
    let to = token("omega");
    let renaming = Renaming::of(&old, &to, &item("omega", json!({})), &incidents, &silences);
    let subjects: Vec<String> = renaming.openings().into_iter().map(|(_, subject)| subject).collect();
    assert_eq!(subjects, ["token/omega", "source/burn/omega"]);
    let new = renaming.into_token(&[3, 0], &to, begin());
    let of = |id: &AlertId| new.alerts.iter().find(|alert| alert.id == *id).expect("stored");

    let moved = of(&total.id);
    assert_eq!((moved.subject.as_str(), moved.episode, moved.token.as_ref()), ("token/omega", 4, Some(&"omega".into())));
    assert_eq!(
        (moved.state, &moved.notified, &moved.labels["token"]),
        (AlertState::Firing, &total.notified, &"omega".to_owned())
    );
    assert_eq!(moved.former_labels, std::slice::from_ref(&total.labels), "receivers know the alert by the old slug");
    assert_eq!(new.snapshot.alerts, std::slice::from_ref(moved));
    let former = new.alerts.iter().find(|alert| alert.subject == "token/ken").expect("the history of the old slug");
    assert_eq!((former.state, former.resolution), (AlertState::Resolved, Some(Resolution::Renamed)));
    assert!(former.id != total.id && former.notified.is_empty() && former.token == Some("ken".into()));

    let burn = of(&incidents[0].id);
    assert_eq!((burn.subject.as_str(), burn.labels["token"].as_str()), ("source/burn/omega", "omega"));
    assert_eq!(burn.members, ["burn/omega"]);
    let events = of(&incidents[1].id);
    assert_eq!((events.subject.as_str(), events.episode), ("source/unlock_events", 1));
    assert_eq!(events.members, ["unlock_events/beta", "unlock_events/omega"]);
    assert!(new.alerts.iter().all(|alert| alert.id != incidents[2].id && alert.id != incidents[3].id));

    let added: Vec<String> = new.silences.iter().map(Silence::matchers_line).collect();
    assert_eq!(added, ["severity=\"warning\", token=\"omega\"", "token=\"omega\""]);
    let back: Vec<Silence> =
        new.silences.iter().filter_map(|silence| silence.under_new_slug(&"omega".into(), &"ken".into())).collect();
    let again = back[0].under_new_slug(&"ken".into(), &"omega".into()).expect("a silence");
    assert_eq!(again.id, new.silences[0].id, "the same silence is not stored twice");
}

/// A token can have the name of an endpoint as its slug. The incident of that endpoint is not its own.
#[test]
fn incident_of_an_endpoint_keeps_its_subject_when_a_token_of_that_name_is_renamed() {
    let token = |slug: &str| TokenSnapshot::of(Token::unknown(slug.into()));
    let incidents = [
        firing(SOURCE_TROUBLE, "source/burn", None, &["burn/beta", "burn/burn"]),
        firing(SOURCE_TROUBLE, "source/emission/burn", None, &["emission/burn"]),
    ];
    let renaming = Renaming::of(&token("burn"), &token("omega"), &item("omega", json!({})), &incidents, &[]);
    let new = renaming.into_token(&[0], &token("omega"), begin());
    let of = |id: &AlertId| new.alerts.iter().find(|alert| alert.id == *id).expect("stored");
    let moved: Vec<_> = incidents.iter().map(|incident| of(&incident.id)).collect();
    assert_eq!(moved[0].subject, "source/burn");
    assert_eq!(moved[0].members, ["burn/beta", "burn/omega"]);
    assert_eq!(moved[1].subject, "source/emission/omega");
}

#[test]
fn relisted_slug_does_not_get_the_ids_of_alerts_that_moved() {
    let mut world = World::of(&std::collections::BTreeSet::from([20]));
    world.tick(1);
    let moved: Vec<AlertId> = world.alerts.keys().cloned().collect();
    assert_eq!(moved.len(), 1);
    let unlocks = world.tokens[&TokenId::from("alpha")].records.clone();
    world.rename("alpha", "omega", 2);
    // Another token gets the slug, with an unlock on the same day.
    let alpha = world.tokens.get_mut(&TokenId::from("alpha")).expect("known");
    (alpha.records, alpha.headers) = (unlocks, Vec::new());
    world.tick(3);
    let open =
        |slug: &str| -> Vec<AlertId> { world.tokens[&TokenId::from(slug)].alerts.iter().map(|alert| alert.id.clone()).collect() };
    assert_eq!(open("omega"), moved);
    assert!(open("alpha").len() == 1 && open("alpha") != moved);
}
