//! Alerts as people ask for them: lists of them, one by its id, what was told of it, and what each rule has open.

use super::codec::{Conditions, all, counted, from_json, list, one, word};
use super::counts::alert_states;
use super::error::StoreFault;
use super::outbox::notification;
use super::query::at;
use super::rows::{self, ALERT_COLUMNS};
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{Alert, AlertFilter, AlertId, AlertState, FiringAlert, Listed, Notification, ReceiverName, RuleId};

/// Messages of one alert that are read.
const MAX_NOTIFICATIONS: u32 = 200;

impl Store {
    /// Alerts, those that moved last first.
    pub async fn alerts(&self, filter: AlertFilter) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts", move |from| alerts(from, &filter)).await
    }

    /// Alerts as [`Self::alerts`] has them, and how many there are in all.
    pub async fn alerts_listed(&self, filter: AlertFilter) -> Result<Listed<Alert>, StoreError> {
        self.read("list alerts", move |from| alerts_listed(from, &filter)).await
    }

    /// One alert; none where there is none of this id, or it was forgotten.
    pub async fn alert(&self, id: AlertId) -> Result<Option<Alert>, StoreError> {
        self.read("read an alert", move |from| alert(from, &id)).await
    }

    /// All times that the same rule told of the same, as far as they are kept: the latest first, at most `limit`.
    pub async fn episodes_of(&self, of: &Alert, limit: u32) -> Result<Vec<Alert>, StoreError> {
        let (rule, subject) = (of.rule.clone(), of.subject.clone());
        self.read("read the episodes of an alert", move |from| episodes_of(from, &rule, &subject, limit)).await
    }

    /// What was decided to be told of an alert, the first first. It may outlive its alert: a digest has none.
    pub async fn notifications_of(&self, alert: AlertId) -> Result<Vec<Notification>, StoreError> {
        self.read("read what was told of an alert", move |from| notifications_of(from, &alert)).await
    }

    /// What fires, as inhibitions see it.
    pub async fn firing_labels(&self) -> Result<Vec<FiringAlert>, StoreError> {
        self.read("read the labels of what fires", firing_labels).await
    }

    /// How many alerts are in each state.
    pub async fn alert_counts(&self) -> Result<Vec<(AlertState, u64)>, StoreError> {
        self.read("count alerts", alert_states).await
    }

    /// How many alerts of each rule are pending or fire.
    pub async fn open_by_rule(&self) -> Result<Vec<(RuleId, AlertState, u64)>, StoreError> {
        self.read("count the open alerts of each rule", open_by_rule).await
    }
}

/// Rows up to which a list is put in order; of more than that, going through the latest finds a page of them sooner.
const MAX_SORTED: u64 = 2_000;

/// What a filter asks for, without the place at which the list begins. `told` are the sets of receivers that hold the one that is
/// asked for.
fn conditions(filter: &AlertFilter, told: Option<&ToldSets>) -> Conditions {
    let mut conditions = Conditions::default();
    if !filter.states.is_empty() {
        conditions.and("a.state IN (SELECT value FROM json_each(?))", list(filter.states.iter().map(|state| state.as_str())));
    }
    if !filter.ids.is_empty() {
        conditions.and("a.id IN (SELECT value FROM json_each(?))", list(filter.ids.iter().map(AlertId::as_str)));
    }
    conditions
        .and_some("? IN (a.rule, a.name)", filter.rule.as_ref().map(|rule| rule.as_str().to_owned()))
        .and_some("a.token_no = (SELECT no FROM token WHERE id = ?)", filter.token.as_ref().map(|id| id.as_str().to_owned()))
        .and_some("a.body ->> '$.labels.severity' = ?", filter.severity.clone())
        .and_some("a.updated_at >= ?", filter.since.map(at))
        .and_some("a.updated_at < ?", filter.until.map(at));
    match filter.acknowledged {
        // Few are: they are begun with.
        Some(true) => conditions.and_plain("a.id IN (SELECT alert FROM ack)"),
        Some(false) => conditions.and_plain("a.id NOT IN (SELECT alert FROM ack)"),
        None => &mut conditions,
    };
    if let Some(ToldSets { by, sets, is_rare }) = told {
        // What is joined to keeps from the index: where most were told to a receiver, the latest of them are found by their time.
        let set = if *is_rare { format!("({by})") } else { format!("(({by}) || '')") };
        conditions.and(&format!("{set} IN (SELECT value FROM json_each(?))"), list(sets.iter().map(String::as_str)));
    }
    conditions
}

/// Which sets of receivers alerts were told to that hold a certain one: few, however many alerts there are.
struct ToldSets {
    /// What a set is found by, in SQL: an index has it.
    by: &'static str,
    /// Those values of it that stand for such sets.
    sets: Vec<String>,
    /// Whether so few alerts were that they are found by it.
    is_rare: bool,
}

impl ToldSets {
    /// Goes from set to set, in the order of the index.
    fn read(from: &Transaction<'_>, receiver: &ReceiverName) -> Result<Self, StoreFault> {
        // An entry of an index has a bounded length on a server: there it is a digest of the set.
        let by = if from.is_postgres() { "a.told_set" } else { "a.body ->> '$.told'" };
        let sql = format!("SELECT {by}, a.body ->> '$.told' FROM alert a WHERE {by} > ?1 ORDER BY 1 LIMIT 1");
        let mut next = from.prepare_cached(&sql)?;
        let (mut sets, mut last) = (Vec::new(), String::new());
        while let Some((key, set)) = one(&mut next, [&last], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))? {
            if from_json::<Vec<ReceiverName>>("the receivers of alerts", "", &set)?.contains(receiver) {
                sets.push(key.clone());
            }
            last = key;
        }
        Ok(Self { by, sets, is_rare: true })
    }
}

fn alerts_listed(from: &Transaction<'_>, filter: &AlertFilter) -> Result<Listed<Alert>, StoreFault> {
    let mut told = filter.receiver.as_ref().map(|receiver| ToldSets::read(from, receiver)).transpose()?;
    if let Some(told) = told.as_mut().filter(|_| !filter.states.is_empty()) {
        // Both counts are told by an index alone; what both hold is found by whichever has less.
        let of_states = AlertFilter { states: filter.states.clone(), ..AlertFilter::default() };
        told.is_rare = alerts_total(from, &AlertFilter::default(), Some(told))? <= alerts_total(from, &of_states, None)?;
    }
    let total = alerts_total(from, filter, told.as_ref())?;
    if let Some(told) = &mut told {
        told.is_rare &= total <= MAX_SORTED;
    }
    Ok(Listed { rows: alerts_told(from, filter, told.as_ref())?, total })
}

fn alerts(from: &Transaction<'_>, filter: &AlertFilter) -> Result<Vec<Alert>, StoreFault> {
    let told = filter.receiver.as_ref().map(|receiver| ToldSets::read(from, receiver)).transpose()?;
    alerts_told(from, filter, told.as_ref())
}

fn alerts_told(from: &Transaction<'_>, filter: &AlertFilter, told: Option<&ToldSets>) -> Result<Vec<Alert>, StoreFault> {
    let mut conditions = conditions(filter, told);
    if let Some(after) = &filter.after {
        conditions
            .and("a.updated_at <= ?", after.updated_ms)
            .and(&format!("(a.updated_at < {} OR a.id > ?)", after.updated_ms), after.id.as_str().to_owned());
    }
    let (sql, values) = conditions.within(
        &format!("SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no"),
        &format!(" ORDER BY a.updated_at DESC, a.id LIMIT {}", filter.limit),
    );
    all(&mut from.prepare(&sql)?, values, rows::alert)
}

fn alerts_total(from: &Transaction<'_>, filter: &AlertFilter, told: Option<&ToldSets>) -> Result<u64, StoreFault> {
    if filter.acknowledged == Some(false) {
        // Few are acknowledged: it is quicker to count those, and all.
        let with = |acknowledged| AlertFilter { acknowledged, ..filter.clone() };
        let (all, some) = (alerts_total(from, &with(None), told)?, alerts_total(from, &with(Some(true)), told)?);
        return Ok(all.saturating_sub(some));
    }
    let (sql, values) = conditions(filter, told).within("SELECT count(*) FROM alert a", "");
    Ok(one(&mut from.prepare(&sql)?, values, |row| Ok(counted(row.get(0)?)))?.unwrap_or(0))
}

fn alert(from: &Transaction<'_>, id: &AlertId) -> Result<Option<Alert>, StoreFault> {
    let sql = format!("SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no WHERE a.id = ?1");
    one(&mut *from.prepare_cached(&sql)?, [id.as_str()], rows::alert)
}

fn episodes_of(from: &Transaction<'_>, rule: &RuleId, subject: &str, limit: u32) -> Result<Vec<Alert>, StoreFault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.rule = ?1 AND a.subject = ?2 ORDER BY a.episode DESC LIMIT ?3"
    );
    all(&mut *from.prepare_cached(&sql)?, rusqlite::params![rule.as_str(), subject, limit], rows::alert)
}

fn notifications_of(from: &Transaction<'_>, alert: &AlertId) -> Result<Vec<Notification>, StoreFault> {
    let sql = format!(
        "SELECT id, alert, kind, at, receivers, body, series FROM notice WHERE alert = ?1 ORDER BY at, id LIMIT {MAX_NOTIFICATIONS}"
    );
    all(&mut *from.prepare_cached(&sql)?, [alert.as_str()], notification)
}

fn firing_labels(from: &Transaction<'_>) -> Result<Vec<FiringAlert>, StoreFault> {
    let mut statement =
        from.prepare_cached("SELECT id, body ->> '$.labels' FROM alert WHERE state = 'firing' ORDER BY updated_at DESC, id")?;
    all(&mut statement, [], |row| {
        let id: String = row.get(0)?;
        let labels = from_json("the labels of the alert", &id, &row.get::<_, String>(1)?)?;
        Ok(FiringAlert { id: AlertId::from(id), labels })
    })
}

fn open_by_rule(from: &Transaction<'_>) -> Result<Vec<(RuleId, AlertState, u64)>, StoreFault> {
    let mut statement = from.prepare_cached(
        "SELECT rule, state, count(*) FROM alert WHERE state IN ('pending', 'firing') GROUP BY rule, state ORDER BY rule, state",
    )?;
    all(&mut statement, [], |row| {
        let (rule, state): (String, String) = (row.get(0)?, row.get(1)?);
        let state = word("the state of alerts of", &rule, &state, AlertState::parse)?;
        Ok((RuleId::from(rule), state, counted(row.get(2)?)))
    })
}
