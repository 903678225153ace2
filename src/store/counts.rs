//! How much there is of everything, and how each endpoint fares: for `status`, the pages and the metrics.

use std::{collections::HashMap, path::Path};

use super::codec::{Millis, all, counted, one, small, time, word};
use super::connection::beside;
use super::credit::credit;
use super::error::StoreFault;
use super::sql::{Row, Transaction};
use super::{Store, StoreError};
use model::{
    AlertState, DeliveryState, Endpoint, EndpointStat, Findings, PeriodReads, ReceiverCounts, ReceiverName, Resource,
    StoreCounts, StoreGauges, TokenId,
};

/// Credits of a period up to which its looks are counted.
const MOST_COUNTED: u64 = 100_000;

impl Store {
    /// How much there is of everything.
    pub async fn counts(&self) -> Result<StoreCounts, StoreError> {
        let path = self.0.path.clone();
        let counting = move |from: &Transaction<'_>| {
            let mut counts = counts(from)?;
            counts.database_bytes = database_bytes(from, &path)?;
            Ok(counts)
        };
        self.read("count what there is", counting).await
    }

    /// How much is in the outbox of each receiver that ever had anything there.
    pub async fn receiver_counts(&self) -> Result<Vec<ReceiverCounts>, StoreError> {
        self.read("count the outbox", receivers).await
    }

    /// What the metrics show.
    pub async fn gauges(&self) -> Result<StoreGauges, StoreError> {
        self.read("read the gauges", gauges).await
    }

    /// How each endpoint fares that was ever asked.
    pub async fn poll_stats(&self) -> Result<Vec<EndpointStat>, StoreError> {
        self.read("read how endpoints fare", endpoint_stats).await
    }

    /// When feeds of an endpoint were read since the quota's period began, as far as the poll log goes back, in the order of time;
    /// none where no period is known, or it has more reads than are gone through.
    pub async fn reads_of_period(&self, endpoint: Endpoint) -> Result<Option<PeriodReads>, StoreError> {
        self.read("read when feeds were read", move |from| reads_of_period(from, endpoint)).await
    }
}

fn reads_of_period(from: &Transaction<'_>, endpoint: Endpoint) -> Result<Option<PeriodReads>, StoreFault> {
    let quota = credit(from)?;
    let Some(begin) = quota.period_start.filter(|_| quota.own() <= MOST_COUNTED) else { return Ok(None) };
    let kept = one(&mut *from.prepare_cached("SELECT min(at) FROM poll")?, [], |row| Ok(time(row.get(0)?)))?.flatten();
    let since = kept.map_or(begin, |kept| kept.max(begin));
    let mut reads = from.prepare_cached(
        "SELECT t.id, p.at FROM poll p JOIN token t ON t.no = p.token_no
         WHERE p.endpoint = ?1 AND p.at >= ?2 AND p.outcome IN ('fresh', 'unchanged') ORDER BY p.at, p.no",
    )?;
    let reads = all(&mut reads, (endpoint.as_str(), Millis(since)), |row| {
        let id: String = row.get(0)?;
        Ok((TokenId::from(id), row.get::<_, Millis>(1)?.0))
    })?;
    Ok(Some(PeriodReads { since, reads }))
}

/// Tokens, and those that are listed: both by the index alone.
pub(super) const TOKENS: &str = "SELECT count(*), coalesce(sum(listed), 0) FROM token";

/// Feeds that are held, what they miss, and those that fail: by the index alone.
pub(super) const FEEDS: &str = "SELECT count(held_since), coalesce(sum(CASE WHEN missing <> '[]' THEN json_array_length(missing) END), 0), count(failing_since)
     FROM feed INDEXED BY feed_fares";

/// How the feeds of each endpoint fare: by the index alone, which has what was found as numbers.
pub(super) const FARES: &str = "SELECT endpoint, count(*), count(failing_since), min(failing_since), max(read_at), max(tried_at),
        coalesce(sum(CAST(findings ->> 'by_mark' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'by_upcoming' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'untold' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'idle_marks' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'idle_upcoming' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'undecided' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'undecided_upcoming' AS BIGINT)), 0)
    FROM feed INDEXED BY feed_fares GROUP BY endpoint";

fn counts(from: &Transaction<'_>) -> Result<StoreCounts, StoreFault> {
    let mut counts = StoreCounts::default();
    (counts.tokens, counts.tokens_listed) =
        from.prepare_cached(TOKENS)?.query_row([], |row| Ok((counted(row.get(0)?), counted(row.get(1)?))))?;

    let records: HashMap<Resource, u64> = all(&mut *from.prepare_cached("SELECT resource, records FROM tally")?, [], |row| {
        let resource: String = row.get(0)?;
        Ok((word("the resource of the tally of", &resource, &resource, Resource::parse)?, counted(row.get(1)?)))
    })?
    .into_iter()
    .collect();
    counts.records = Resource::ALL.into_iter().map(|resource| (resource, records.get(&resource).copied().unwrap_or(0))).collect();

    counts.alerts = alert_states(from)?;
    counts.outbox = receivers(from)?;
    (counts.removals_held, counts.removals_awaiting_proof, counts.feeds_failing) = from
        .prepare_cached(FEEDS)?
        .query_row([], |row| Ok((counted(row.get(0)?), counted(row.get(1)?), counted(row.get(2)?))))?;
    Ok(counts)
}

/// What the database takes on a disk: the file with its WAL, or our tables with their indexes.
fn database_bytes(from: &Transaction<'_>, path: &Path) -> Result<u64, StoreFault> {
    if from.is_postgres() {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
             WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
        return Ok(from.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(counted)?);
    }
    let files = [path.to_owned(), beside(path, "-wal")];
    Ok(files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|file| file.len()).sum())
}

fn gauges(from: &Transaction<'_>) -> Result<StoreGauges, StoreFault> {
    let removals_held =
        from.prepare_cached("SELECT count(held_since) FROM feed")?.query_row([], |row| Ok(counted(row.get(0)?)))?;
    let mut statement = from.prepare_cached(
        "SELECT endpoint, max(read_at) FROM feed WHERE read_at IS NOT NULL GROUP BY endpoint ORDER BY endpoint",
    )?;
    let last_success = all(&mut statement, [], |row| {
        let endpoint: String = row.get(0)?;
        Ok((word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?, row.get::<_, Millis>(1)?.0))
    })?;
    Ok(StoreGauges { alerts: alert_states(from)?, outbox: receivers(from)?, removals_held, last_success })
}

pub(super) fn alert_states(from: &Transaction<'_>) -> Result<Vec<(AlertState, u64)>, StoreFault> {
    // What happened once is what is left of all of them, whose number a table tells sooner than its rows can be counted.
    let total = counted(from.prepare_cached("SELECT count(*) FROM alert")?.query_row([], |row| row.get(0))?);
    let mut of = from.prepare_cached("SELECT count(*) FROM alert WHERE state = ?1")?;
    let mut states: HashMap<AlertState, u64> = HashMap::new();
    for state in AlertState::ALL.into_iter().filter(|state| *state != AlertState::Event) {
        states.insert(state, counted(of.query_row([state.as_str()], |row| row.get(0))?));
    }
    states.insert(AlertState::Event, total.saturating_sub(states.values().sum()));
    Ok(AlertState::ALL.into_iter().map(|state| (state, states.get(&state).copied().unwrap_or(0))).collect())
}

fn receivers(from: &Transaction<'_>) -> Result<Vec<ReceiverCounts>, StoreFault> {
    let mut rows = delivery_counts(from)?;
    rows.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    let mut receivers: Vec<ReceiverCounts> = Vec::new();
    for (name, state, number) in rows {
        if receivers.last().is_none_or(|last| last.receiver.as_str() != name) {
            let states = DeliveryState::ALL.into_iter().map(|state| (state, 0)).collect();
            receivers.push(ReceiverCounts { receiver: ReceiverName::from(name), states, oldest_pending: None });
        }
        if let Some((_, count)) = receivers.last_mut().and_then(|last| last.states.iter_mut().find(|(of, _)| *of == state)) {
            *count = number;
        }
    }
    let mut oldest = from.prepare_cached(
        "SELECT min(created_at) FROM delivery INDEXED BY delivery_due WHERE receiver = ?1 AND state IN ('due', 'retrying')",
    )?;
    for receiver in &mut receivers {
        receiver.oldest_pending = one(&mut oldest, [receiver.receiver.as_str()], |row| Ok(time(row.get(0)?)))?.flatten();
    }
    Ok(receivers)
}

/// How many deliveries each receiver has in each state.
fn delivery_counts(from: &Transaction<'_>) -> Result<Vec<(String, DeliveryState, u64)>, StoreFault> {
    let read = |row: &Row<'_>| {
        let receiver: String = row.get(0)?;
        let state = word("the state of a delivery to", &receiver, &row.get::<_, String>(1)?, DeliveryState::parse)?;
        Ok((receiver, state, counted(row.get(2)?)))
    };
    // In the order of the index, which counts them without sorting.
    if from.is_postgres() {
        let sql = "SELECT receiver, state, count(*) FROM delivery GROUP BY state, receiver";
        return all(&mut *from.prepare_cached(sql)?, [], read);
    }
    let sql = "SELECT receiver, state, count(*) FROM delivery WHERE state IN ('due', 'retrying', 'dead', 'dropped') GROUP BY state, receiver";
    let mut rows = all(&mut *from.prepare_cached(sql)?, [], read)?;
    // Nearly all were delivered. Their receivers are few, and what the last of them took is left of all, whose number a table tells
    // at once.
    let total = counted(from.prepare_cached("SELECT count(*) FROM delivery")?.query_row([], |row| row.get(0))?);
    let mut left = total.saturating_sub(rows.iter().map(|(.., count)| count).sum());
    let mut next = from
        .prepare_cached("SELECT receiver FROM delivery WHERE state = 'delivered' AND receiver > ?1 ORDER BY receiver LIMIT 1")?;
    let mut count = from.prepare_cached("SELECT count(*) FROM delivery WHERE state = 'delivered' AND receiver = ?1")?;
    let mut receiver: Option<String> = one(&mut next, [""], |row| Ok(row.get(0)?))?;
    while let Some(of) = receiver {
        receiver = one(&mut next, [of.as_str()], |row| Ok(row.get(0)?))?;
        let own = match receiver {
            Some(_) => counted(count.query_row([of.as_str()], |row| row.get(0))?),
            None => left,
        };
        left = left.saturating_sub(own);
        rows.push((of, DeliveryState::Delivered, own));
    }
    Ok(rows)
}

fn endpoint_stats(from: &Transaction<'_>) -> Result<Vec<EndpointStat>, StoreFault> {
    let mut statement = from.prepare_cached(FARES)?;
    let mut stats = all(&mut statement, [], |row| {
        let endpoint: String = row.get(0)?;
        Ok(EndpointStat {
            endpoint: word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?,
            feeds: counted(row.get(1)?),
            failing: counted(row.get(2)?),
            failing_since: time(row.get(3)?),
            last_success: time(row.get(4)?),
            last_try: time(row.get(5)?),
            last_error: None,
            oddities: 0,
            looks: 0,
            credits: 0,
            findings: Findings {
                by_mark: small(row.get(6)?),
                by_upcoming: small(row.get(7)?),
                untold: small(row.get(8)?),
                idle_marks: small(row.get(9)?),
                idle_upcoming: small(row.get(10)?),
                undecided: small(row.get(11)?),
                undecided_upcoming: small(row.get(12)?),
                ..Findings::default()
            },
        })
    })?;
    let mut last_error = from.prepare_cached(
        "SELECT at, coalesce(error, outcome) FROM poll INDEXED BY poll_failed
         WHERE endpoint = ?1 AND outcome NOT IN ('fresh', 'unchanged') ORDER BY at DESC, no DESC LIMIT 1",
    )?;
    for stat in &mut stats {
        stat.last_error = one(&mut last_error, [stat.endpoint.as_str()], |row| Ok((row.get::<_, Millis>(0)?.0, row.get(1)?)))?;
    }
    let mut oddities =
        from.prepare_cached("SELECT coalesce(sum(oddities_total), 0) FROM poll WHERE endpoint = ?1 AND at > ?2")?;
    for stat in &mut stats {
        let Some(since) = stat.last_success.and_then(|at| at.checked_sub_signed(chrono::TimeDelta::days(1))) else { continue };
        stat.oddities = one(&mut oddities, (stat.endpoint.as_str(), Millis(since)), |row| Ok(counted(row.get(0)?)))?.unwrap_or(0);
    }
    // Without a limit there is nothing to keep within, and the log of a period may be long.
    let quota = credit(from)?;
    if let Some(since) = quota.period_start.filter(|_| quota.own() <= MOST_COUNTED) {
        let mut spent =
            from.prepare_cached("SELECT count(*), coalesce(sum(credits), 0) FROM poll WHERE endpoint = ?1 AND at >= ?2")?;
        for stat in &mut stats {
            let row =
                one(&mut spent, (stat.endpoint.as_str(), Millis(since)), |row| Ok((counted(row.get(0)?), counted(row.get(1)?))))?;
            (stat.looks, stat.credits) = row.unwrap_or_default();
        }
    }
    stats.sort_by_key(|stat| stat.endpoint);
    Ok(stats)
}
