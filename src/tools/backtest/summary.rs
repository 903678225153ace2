//! Counts the messages of a run by rule, receiver, and week.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{Datelike, Days, NaiveDate};
use serde::Serialize;

use super::{BacktestMessage, BacktestNotification, BacktestRun};
use model::{BatchKind, Timestamp, phrase};

/// The maximum number of weeks.
const MAX_WEEKS: usize = 1_000;

/// The maximum number of pairs of rule and token in `noisiest`.
const MAX_NOISIEST: usize = 10;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BacktestSummary {
    /// The Mondays of the weeks, in order.
    pub weeks: Vec<NaiveDate>,
    /// Sorted by messages, descending.
    pub rules: Vec<TallyRow>,
    /// Sorted by messages, descending.
    pub receivers: Vec<TallyRow>,
    /// Rule, token, and messages of the pairs with the most messages, at most ten.
    pub noisiest: Vec<(String, String, u32)>,
    /// The number of alerts. A rule and a subject form one alert.
    pub alerts: u32,
    /// The number of messages. A message to two receivers counts twice.
    pub messages: u32,
    /// The number of messages about several alerts.
    pub joined: u32,
    /// The number of undelivered notifications by state: `silenced`, `inhibited`, `acknowledged`, `waiting`, `nobody`, `limited`.
    pub undelivered: BTreeMap<&'static str, u32>,
}

/// The counts of a rule or receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TallyRow {
    pub name: String,
    pub alerts: u32,
    /// A message about two rules counts for both.
    pub messages: u32,
    pub undelivered: u32,
    /// The number of messages in each of [`BacktestSummary::weeks`].
    pub by_week: Vec<u32>,
    /// The number of messages per receiver of a rule, or per rule of a receiver.
    pub shares: BTreeMap<String, u32>,
    pub tokens: u32,
}

impl TallyRow {
    /// Returns the index and the messages of the busiest week. `None` if there are no messages.
    pub fn busiest(&self) -> Option<(usize, u32)> {
        // `rev` selects the earliest of equal weeks.
        self.by_week.iter().copied().enumerate().rev().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
    }
}

impl BacktestSummary {
    /// Returns notes for people about suppressed and undelivered notifications and omitted messages.
    pub fn notes(&self, run: &BacktestRun) -> Vec<String> {
        let undelivered = |state: &str| self.undelivered.get(state).copied().unwrap_or(0);
        let suppressed: Vec<String> = ["silenced", "inhibited", "acknowledged"]
            .into_iter()
            .filter(|state| undelivered(state) > 0)
            .map(|state| format!("{} {state}", undelivered(state)))
            .collect();
        let alerts = |state: &str, reason: &str| {
            let count = undelivered(state);
            (count > 0).then(|| format!("{} {reason}.", phrase::count(count, "alert")))
        };
        let suppressed = (!suppressed.is_empty()).then(|| format!("Suppressed: {}.", suppressed.join(", ")));
        let omitted = (run.not_stored > 0).then(|| {
            format!("{} or messages not stored: the limit of a run was reached.", phrase::count(run.not_stored, "notification"))
        });
        let notes = [
            suppressed,
            alerts("nobody", "not delivered: no route matches"),
            alerts("unwanted", "not delivered: the `types` of the receiver leave it out"),
            alerts("limited", "not delivered: the `limit` of the rule was reached"),
            alerts("waiting", "pending at the end of the run, because of a group, a mute interval, or the hourly limit"),
            omitted,
        ];
        notes.into_iter().flatten().collect()
    }

    pub fn of(run: &BacktestRun) -> Self {
        let weeks = weeks(run.from, run.to);
        let mut rules = RowTally::new(weeks.len());
        let mut receivers = RowTally::new(weeks.len());
        let mut pairs: HashMap<(&str, &str), u32> = HashMap::new();
        let mut alerts: BTreeSet<&str> = BTreeSet::new();
        for rule in &run.rules {
            rules.row(rule);
        }
        for notification in &run.notifications {
            alerts.insert(&notification.alert);
            rules.count(&notification.rule, notification);
        }
        for message in &run.messages {
            let week = weeks.binary_search(&monday(message.at.date_naive())).ok();
            receivers.row(&message.receiver);
            let mut own: BTreeSet<&str> = BTreeSet::new();
            let mut about: BTreeSet<(&str, &str)> = BTreeSet::new();
            for notification in message.all() {
                receivers.count(&message.receiver, notification);
                own.insert(&notification.rule);
                // A notification about a group has no token.
                if let Some(token) = name(notification).filter(|_| message.shape != BatchKind::Digest) {
                    about.insert((&notification.rule, token));
                }
            }
            receivers.message(&message.receiver, week);
            for rule in own {
                rules.message(rule, week);
                rules.share(rule, &message.receiver);
                receivers.share(&message.receiver, rule);
            }
            about.into_iter().for_each(|pair| *pairs.entry(pair).or_default() += 1);
        }
        let mut undelivered: BTreeMap<&'static str, u32> = BTreeMap::new();
        for row in &run.undelivered {
            *undelivered.entry(row.state).or_default() += 1;
            rules.row(&row.notification.rule).undelivered += 1;
            if let Some(receiver) = &row.receiver {
                receivers.count(receiver, &row.notification);
                receivers.row(receiver).undelivered += 1;
            }
        }
        let mut noisiest: Vec<_> =
            pairs.into_iter().map(|((rule, token), count)| (rule.to_owned(), token.to_owned(), count)).collect();
        noisiest.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1))));
        noisiest.truncate(MAX_NOISIEST);
        let joined = run.messages.iter().filter(|message| is_joined(message)).count();
        Self {
            rules: rules.rows(),
            receivers: receivers.rows(),
            noisiest,
            alerts: count(alerts.len()),
            messages: count(run.messages.len()),
            joined: count(joined),
            undelivered,
            weeks,
        }
    }
}

/// Returns `true` if a message is about several alerts.
fn is_joined(message: &BacktestMessage) -> bool {
    message.notified.len() + message.counted.len() > 1
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the display name of a notification's token.
fn name(notification: &BacktestNotification) -> Option<&str> {
    notification.symbol.as_deref().or(notification.token.as_deref())
}

/// Collects the counts of all rows.
struct RowTally<'a> {
    weeks: usize,
    rows: BTreeMap<&'a str, TallyRow>,
    alerts: BTreeMap<&'a str, BTreeSet<&'a str>>,
    tokens: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> RowTally<'a> {
    fn new(weeks: usize) -> Self {
        Self { weeks, rows: BTreeMap::new(), alerts: BTreeMap::new(), tokens: BTreeMap::new() }
    }

    fn row(&mut self, name: &'a str) -> &mut TallyRow {
        let weeks = self.weeks;
        self.rows.entry(name).or_insert_with(|| TallyRow {
            name: name.to_owned(),
            by_week: vec![0; weeks],
            ..TallyRow::default()
        })
    }

    /// Counts the alert and the token of a notification for a row.
    fn count(&mut self, name: &'a str, notification: &'a BacktestNotification) {
        self.row(name);
        self.alerts.entry(name).or_default().insert(&notification.alert);
        if let Some(token) = &notification.token {
            self.tokens.entry(name).or_default().insert(token);
        }
    }

    fn message(&mut self, name: &'a str, week: Option<usize>) {
        let row = self.row(name);
        row.messages += 1;
        if let Some(count) = week.and_then(|week| row.by_week.get_mut(week)) {
            *count += 1;
        }
    }

    fn share(&mut self, name: &'a str, of: &str) {
        *self.row(name).shares.entry(of.to_owned()).or_default() += 1;
    }

    fn rows(self) -> Vec<TallyRow> {
        let size = |sets: &BTreeMap<&str, BTreeSet<&str>>, name: &str| count(sets.get(name).map_or(0, BTreeSet::len));
        let mut rows: Vec<TallyRow> = self
            .rows
            .into_values()
            .map(|row| TallyRow { alerts: size(&self.alerts, &row.name), tokens: size(&self.tokens, &row.name), ..row })
            .collect();
        rows.sort_by(|a, b| b.messages.cmp(&a.messages).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

/// Returns the Monday of a day's week.
pub(super) fn monday(day: NaiveDate) -> NaiveDate {
    day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_monday()))).unwrap_or(day)
}

fn weeks(from: Timestamp, to: Timestamp) -> Vec<NaiveDate> {
    let mut weeks = Vec::new();
    let mut next = Some(monday(from.date_naive()));
    while let Some(week) = next.filter(|week| *week <= to.date_naive() && weeks.len() < MAX_WEEKS) {
        weeks.push(week);
        next = week.checked_add_days(Days::new(7));
    }
    weeks
}
