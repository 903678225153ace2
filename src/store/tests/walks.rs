//! Walks through the pages of lists while a random writer changes the database between any two pages. A walk neither skips nor repeats a
//! row that stays in the list.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::TimeDelta;
use serde_json::json;
use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

const SEEDS: u64 = 4;

/// The lists whose rows have numbers in the order of the commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Changes,
    ChangesOfAToken,
    ChangesOfAKind,
    RecentChanges,
    Alerts,
    FiringAlerts,
    Deliveries,
    RecentDeliveries,
}

const LISTS: [List; 8] = [
    List::Changes,
    List::ChangesOfAToken,
    List::ChangesOfAKind,
    List::RecentChanges,
    List::Alerts,
    List::FiringAlerts,
    List::Deliveries,
    List::RecentDeliveries,
];

impl List {
    /// Selects the numbers of all rows without the code under test.
    fn sql(self) -> &'static str {
        match self {
            Self::Changes => "SELECT no FROM change",
            Self::ChangesOfAToken => "SELECT no FROM change WHERE token_no = (SELECT no FROM token WHERE id = 'sui')",
            Self::ChangesOfAKind => "SELECT no FROM change WHERE kind = 'resized'",
            Self::RecentChanges => "SELECT no FROM change WHERE at >= 1773014400000",
            Self::Alerts => "SELECT number FROM alert",
            Self::FiringAlerts => "SELECT number FROM alert WHERE state = 'firing'",
            Self::Deliveries => "SELECT no FROM delivery",
            Self::RecentDeliveries => "SELECT no FROM delivery WHERE created_at >= 1773014400000",
        }
    }

    fn rows(self, store: &Store) -> BTreeSet<i64> {
        rows(store, self.sql(), |row| row.get::<i64>(0).expect("a number")).into_iter().collect()
    }

    /// Deletes a row and what refers to it.
    fn delete(self, store: &Store, number: i64) {
        match self {
            Self::Alerts | Self::FiringAlerts => change(store, &format!("DELETE FROM alert WHERE number = {number}")),
            Self::Deliveries | Self::RecentDeliveries => change(store, &format!("DELETE FROM delivery WHERE no = {number}")),
            _ => change(store, &format!("DELETE FROM change WHERE no = {number}")),
        }
    }

    /// Returns the numbers of a page, and the number of all rows.
    async fn page(self, store: &Store, position: ListPosition, limit: u32) -> (Vec<i64>, u64) {
        let changes = ChangeFilter { position, limit, ..ChangeFilter::default() };
        let alerts = AlertFilter { limit, ..AlertFilter::default() };
        let deliveries = OutboxFilter { position, limit, ..OutboxFilter::default() };
        let changes_of = async |filter| {
            let listed = store.changes_listed(filter).await.expect("read");
            (listed.rows.iter().map(|row| row.id).collect(), listed.total)
        };
        let alerts_of = async |filter| {
            let listed = store.alerts_by_number(filter, position).await.expect("read");
            (listed.rows.iter().map(|row| row.number).collect(), listed.total)
        };
        let deliveries_of = async |filter| {
            let listed = store.outbox_listed(filter).await.expect("read");
            (listed.rows.iter().map(|row| row.id.0).collect(), listed.total)
        };
        match self {
            Self::Changes => changes_of(changes).await,
            Self::ChangesOfAToken => changes_of(ChangeFilter { tokens: Some(vec!["sui".into()]), ..changes }).await,
            Self::ChangesOfAKind => changes_of(ChangeFilter { kinds: vec![ChangeKind::Resized], ..changes }).await,
            Self::RecentChanges => changes_of(ChangeFilter { since: Some(now()), ..changes }).await,
            Self::Alerts => alerts_of(alerts).await,
            Self::FiringAlerts => alerts_of(AlertFilter { states: vec![AlertState::Firing], ..alerts }).await,
            Self::Deliveries => deliveries_of(deliveries).await,
            Self::RecentDeliveries => deliveries_of(OutboxFilter { since: Some(now()), ..deliveries }).await,
        }
    }
}

/// Writes at random: changes, alerts, and deliveries with times in any order, and updates of alerts.
struct Writer {
    random: fastrand::Rng,
    written: usize,
}

impl Writer {
    async fn write(&mut self, store: &Store) {
        let random = &mut self.random;
        // A commit can have an earlier time than the one before, because it began earlier or the clock was wrong.
        let at = now() + minutes(random.i64(-100..100));
        self.written += 1;
        let token = *random.choice(&["sui", "arbitrum"]).expect("a token");
        let kind = *random.choice(&[ChangeKind::Resized, ChangeKind::Added]).expect("a kind");
        let mut change = Change::of(kind, Resource::Unlock, &token.into());
        change.summary = format!("change {}", self.written);
        let number = if random.bool() { self.written } else { random.usize(0..=self.written) };
        let mut alert = firing(&format!("unlock/{token}/{number}"), Some(token));
        alert.updated_at = at;
        if random.u8(0..3) == 0 {
            (alert.state, alert.resolution) = (AlertState::Resolved, Some(Resolution::Passed));
        }
        let mut notified = notification(&alert, &format!("step {}", self.written), &["ops", "desk"]);
        notified.at = at;
        let commit =
            Commit { at, changes: vec![change], alerts: vec![alert], notifications: vec![notified], ..Commit::default() };
        store.commit(commit).await.expect("committed");
    }

    async fn write_some(&mut self, store: &Store) {
        for _ in 0..self.random.u8(0..3) {
            self.write(store).await;
        }
    }
}

async fn seeded(seed: u64) -> (TempDir, Store, Writer) {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let tokens = vec![token_item("sui", "SUI"), token_item("arbitrum", "ARB")];
    store.commit(at(Commit { tokens, ..Commit::default() })).await.expect("committed");
    let mut writer = Writer { random: fastrand::Rng::with_seed(seed), written: 0 };
    for _ in 0..25 {
        writer.write(&store).await;
    }
    (directory, store, writer)
}

#[tokio::test]
async fn walk_from_the_newest_row_sees_each_row_that_stays_once() {
    let mut deletions = 0;
    for seed in 0..SEEDS {
        let (_directory, store, mut writer) = seeded(seed).await;
        for list in LISTS {
            let before = list.rows(&store);
            let (mut seen, mut position, mut deleted) = (Vec::new(), ListPosition::default(), BTreeSet::new());
            loop {
                let (page, total) = list.page(&store, position, writer.random.u32(1..6)).await;
                assert_eq!(total, list.rows(&store).len() as u64, "seed {seed}, {list:?}: of all pages");
                assert!(page.is_sorted_by(|a, b| a > b), "seed {seed}, {list:?}: {page:?}");
                let Some(last) = page.last() else { break };
                position = ListPosition::after(*last);
                seen.extend(page);
                writer.write_some(&store).await;
                if writer.random.u8(0..4) == 0 {
                    // The row of the cursor may be deleted, too.
                    list.delete(&store, position.after.expect("a cursor"));
                    deleted.extend(position.after);
                }
            }
            let distinct: BTreeSet<i64> = seen.iter().copied().collect();
            assert_eq!(distinct.len(), seen.len(), "seed {seed}, {list:?}: a row is repeated: {seen:?}");
            let stayed: BTreeSet<i64> = list.rows(&store).intersection(&before).copied().collect();
            assert!(distinct.is_superset(&stayed), "seed {seed}, {list:?}: {:?}", stayed.difference(&distinct));
            deletions += deleted.len();
        }
    }
    assert!(deletions > 50, "{deletions}");
}

#[tokio::test]
async fn follower_sees_each_row_once_in_the_order_of_the_commits() {
    for seed in 0..SEEDS {
        let (_directory, store, mut writer) = seeded(seed).await;
        for list in LISTS.into_iter().filter(|list| *list != List::FiringAlerts) {
            let (mut seen, mut last) = (Vec::new(), 0);
            for step in 0.. {
                let (mut page, _) = list.page(&store, ListPosition::before(last), writer.random.u32(1..6)).await;
                page.reverse();
                assert!(page.is_sorted(), "seed {seed}, {list:?}: {page:?}");
                if page.is_empty() && step > 20 {
                    break;
                }
                last = page.last().copied().unwrap_or(last);
                seen.extend(page);
                if step < 20 {
                    writer.write_some(&store).await;
                }
            }
            let all: Vec<i64> = list.rows(&store).into_iter().collect();
            assert_eq!(seen, all, "seed {seed}, {list:?}");
        }
    }
}

/// An alert keeps its number when it is updated, and no later alert gets a lower one, also after the newest alert was deleted.
#[tokio::test]
async fn numbers_of_alerts_never_change_and_only_rise() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let number = |subject: &str| {
        let sql = format!("SELECT number FROM alert WHERE subject = '{subject}'");
        rows(&store, &sql, |row| row.get::<i64>(0).expect("a number")).pop()
    };
    let write = async |subject: &str, state: AlertState| {
        let alert = Alert { state, ..firing(subject, None) };
        store.commit(at(Commit { alerts: vec![alert], ..Commit::default() })).await.expect("committed");
    };
    write("a", AlertState::Pending).await;
    let first = number("a");
    write("b", AlertState::Firing).await;
    write("a", AlertState::Firing).await;
    assert_eq!((number("a"), number("a") < number("b")), (first, true));
    let highest = number("b");
    change(&store, "DELETE FROM alert WHERE subject = 'b'");
    write("c", AlertState::Firing).await;
    assert!(number("c") > highest);
}

fn sized(value: f64) -> Put {
    let date = (now() + TimeDelta::days(9)).to_rfc3339();
    let event = json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": value, "allocationBreakdown": [
        {"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": "second"}]}});
    put("a", Record::Unlock(read(event)))
}

/// Corrections of amounts move tokens to other places of the list. Each token that stays is still seen once.
#[tokio::test]
async fn walk_through_tokens_sees_each_token_once_while_their_values_change() {
    for (seed, sort) in (0..).zip(TokenSort::ALL) {
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let mut random = fastrand::Rng::with_seed(seed);
        let feed = |random: &mut fastrand::Rng, number: usize| {
            schedule(&format!("token-{number}"), vec![sized(f64::from(random.u32(1..1_000_000)))])
        };
        let item = |random: &mut fastrand::Rng, number: usize| {
            let mut item = token_item(&format!("token-{number}"), "T");
            item.market_cap = read(json!(random.u32(1..1_000_000)));
            item
        };
        let count = 60;
        let tokens = (0..count).map(|number| item(&mut random, number)).collect();
        let feeds = (0..count).map(|number| feed(&mut random, number)).collect();
        store.commit(Commit { at: now(), tokens, feeds, ..Commit::default() }).await.expect("committed");
        let (mut seen, mut names, mut next) = (SeenTokens::default(), Vec::new(), count);
        loop {
            let seen_before = SeenTokens::from_bytes(&seen.to_bytes()).expect("a set");
            let limit = random.u32(1..9);
            let filter = TokenFilter { text: String::new(), tokens: None, sort, at: now(), offset: 0, seen: seen_before, limit };
            let page = store.token_list(filter).await.expect("read");
            assert_eq!(page.total, next as u64, "seed {seed}");
            page.rows.iter().for_each(|row| seen.insert(row.number));
            names.extend(page.rows.iter().map(|row| row.token.id.clone()));
            if !page.has_more {
                break;
            }
            let changed: Vec<usize> = (0..5).map(|_| random.usize(0..count)).collect();
            let mut feeds: Vec<FeedUpdate> = changed.iter().map(|number| feed(&mut random, *number)).collect();
            let mut tokens: Vec<wire::TokenItem> = changed.iter().map(|number| item(&mut random, *number)).collect();
            if next < count + 5 {
                feeds.push(feed(&mut random, next));
                tokens.push(item(&mut random, next));
                next += 1;
            }
            store.commit(Commit { at: now(), tokens, feeds, ..Commit::default() }).await.expect("committed");
        }
        let distinct: HashSet<TokenId> = names.iter().cloned().collect();
        assert_eq!((distinct.len(), names.len()), (next, next), "{sort}");
    }
}

/// A schedule with a cliff unlock and with linear unlocks of several allocations that have equal dates.
fn schedule_of(random: &mut fastrand::Rng, number: usize) -> FeedUpdate {
    let date = |days: i64| (now() + TimeDelta::days(days)).to_rfc3339();
    let mut put_of = |key: usize| {
        let begin = random.i64(1..4);
        let cliff = json!({"cliffAmount": 2.0, "cliffValue": 5.0, "allocationBreakdown": [
            {"allocationName": "Team", "cliffAmount": 2.0, "cliffValue": 5.0, "unlockPrecision": "second"}]});
        let parts: Vec<serde_json::Value> = ["Advisors", "Investors", "Team", "Treasury"]
            .iter()
            .filter_map(|allocation| {
                let begin = begin - random.i64(0..2) * 9;
                let amount = f64::from(random.u8(1..9));
                let part = json!({"allocationName": allocation, "beginDate": date(begin), "endDate": date(12), "linearAmount": amount,
                    "unlockPrecision": "second"});
                (random.u8(0..4) > 0).then_some(part)
            })
            .collect();
        let cliff = (random.bool() || parts.is_empty()).then_some(cliff);
        let event = json!({"unlockDate": date(begin), "cliffUnlocks": cliff, "linearUnlocks": {"allocationBreakdown": parts}});
        put(&format!("k{key}"), Record::Unlock(read(event)))
    };
    let put = (0..2).map(&mut put_of).collect();
    schedule(&format!("token-{number}"), put)
}

/// Returns an identity of an unlock that has nothing to do with its place in the list, and how often it occurs.
fn identities<'r>(rows: impl IntoIterator<Item = &'r ListedUnlock>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        let identity = match row {
            ListedUnlock::Cliff(of) => {
                format!("cliff {} {} {:?}", of.token.id, of.tracked.key, of.tracked.record.interval().map(|of| of.start))
            }
            ListedUnlock::Linear(of) => format!("linear {} {} {} {}", of.token.id, of.allocation, of.starts_at, of.ends_at),
        };
        *counts.entry(identity).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn walk_through_upcoming_unlocks_sees_each_that_stays_once_while_schedules_are_corrected() {
    let all = || {
        let unlocks = UpcomingFilter { tokens: None, from: now(), until: None, limit: 1_000 };
        UnlockListFilter { unlocks, kind: None, min_value: None, after: None }
    };
    for seed in 0..SEEDS {
        let directory = TempDir::new().expect("a directory");
        let store = owned(&directory).await;
        let mut random = fastrand::Rng::with_seed(seed);
        let count = 15;
        let feeds = (0..count).map(|number| schedule_of(&mut random, number)).collect();
        store.commit(Commit { at: now(), feeds, ..Commit::default() }).await.expect("committed");
        // Of each identity, the lowest number at any time.
        let mut stayed = identities(&store.upcoming(all()).await.expect("read").rows);
        let mut highest = stayed.clone();
        let (mut walked, mut after, mut moved) = (Vec::new(), None, HashSet::new());
        loop {
            let mut filter = UnlockListFilter { after, ..all() };
            filter.unlocks.limit = random.u32(1..5);
            let (limit, window) = (filter.unlocks.limit as usize, filter.unlocks.window());
            // Rules filter in memory, with the same cursor.
            let page = match random.bool() {
                true => store.upcoming(filter).await.expect("read"),
                false => store.select_upcoming(filter, 10_000, false, |_, _| true).await.expect("read"),
            };
            after = page.rows.last().and_then(|row| row.cursor(window));
            let is_last = page.rows.len() < limit;
            walked.extend(page.rows);
            if is_last {
                break;
            }
            if random.u8(0..3) > 0 {
                continue;
            }
            let number = random.usize(0..count);
            moved.insert(format!("token-{number}"));
            let feed = schedule_of(&mut random, number);
            store.commit(Commit { at: now(), feeds: vec![feed], ..Commit::default() }).await.expect("committed");
            let found = identities(&store.upcoming(all()).await.expect("read").rows);
            stayed.retain(|identity, count| {
                *count = (*count).min(found.get(identity).copied().unwrap_or(0));
                *count > 0
            });
            for (identity, count) in found {
                let most = highest.entry(identity).or_default();
                *most = (*most).max(count);
            }
        }
        let walked = identities(&walked);
        for (identity, count) in &stayed {
            assert!(walked.get(identity) >= Some(count), "seed {seed}: {identity} is skipped: {walked:#?}");
        }
        for (identity, count) in &walked {
            // One that was removed and came back may be seen twice.
            let is_repeated = stayed.contains_key(identity) && *count > highest[identity];
            assert!(!is_repeated, "seed {seed}: {identity} is repeated");
        }
        assert!(stayed.len() > 10 && moved.len() > 3, "seed {seed}: {} unlocks stayed", stayed.len());
    }
}
