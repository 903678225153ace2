//! Totals and per-endpoint statistics for `status`, the pages, and the metrics.

use std::{collections::HashMap, path::Path};

use super::codec::{Millis, all, counted, from_json, one, small, time, word};
use super::connection::sibling_path;
use super::credit::credit;
use super::error::StoreFault;
use super::sql::{Engine, Row, Transaction};
use super::{Store, StoreError};
use model::{
    AlertState, DeliveryState, Endpoint, EndpointStat, Findings, PeriodReads, ReceiverCounts, ReceiverName, Resource,
    StoreCounts, StoreGauges, TokenId,
};

/// The largest credit limit for which the polls of a period are counted.
const MAX_COUNTED_CREDITS: u64 = 100_000;

impl Store {
    /// Counts tokens, records, alerts, deliveries, and feeds with problems, and returns the size of the database in bytes.
    pub async fn counts(&self) -> Result<StoreCounts, StoreError> {
        let path = self.handle.path.clone();
        let counting = move |from: &Transaction<'_>| {
            let mut counts = counts(from)?;
            counts.database_bytes = database_bytes(from, &path)?;
            Ok(counts)
        };
        self.read("count the rows", counting).await
    }

    /// Counts the deliveries of each receiver.
    pub async fn receiver_counts(&self) -> Result<Vec<ReceiverCounts>, StoreError> {
        self.read("count the outbox", receivers).await
    }

    /// Returns the values of the metrics.
    pub async fn gauges(&self) -> Result<StoreGauges, StoreError> {
        self.read("read the gauges", gauges).await
    }

    /// Returns statistics for each endpoint that was ever polled.
    pub async fn poll_stats(&self) -> Result<Vec<EndpointStat>, StoreError> {
        self.read("read the endpoint statistics", endpoint_stats).await
    }

    /// Returns when feeds of an endpoint were read in the current quota period, oldest first. Returns `None` if the
    /// period is unknown or has too many reads. The poll log may not reach back to the start of the period.
    pub async fn reads_of_period(&self, endpoint: Endpoint) -> Result<Option<PeriodReads>, StoreError> {
        self.read("read the polls of the quota period", move |from| reads_of_period(from, endpoint)).await
    }
}

fn reads_of_period(from: &Transaction<'_>, endpoint: Endpoint) -> Result<Option<PeriodReads>, StoreFault> {
    let quota = credit(from)?;
    let Some(begin) = quota.period_start.filter(|_| quota.own() <= MAX_COUNTED_CREDITS) else { return Ok(None) };
    let kept = one(&mut *from.prepare_cached("SELECT min(at) FROM poll")?, [], |row| Ok(time(row.get(0)?)))?.flatten();
    let since = kept.map_or(begin, |kept| kept.max(begin));
    let mut reads = from.prepare_cached(
        "SELECT t.id, p.at FROM poll p JOIN token t ON t.no = p.token_no
         WHERE p.endpoint = ?1 AND p.at >= ?2 AND p.outcome IN ('fresh', 'unchanged') ORDER BY p.at, p.no",
    )?;
    let reads = all(&mut reads, (endpoint.as_str(), Millis(since)), |row| {
        let id: String = row.get(0)?;
        Ok((TokenId::from(id), row.get::<Millis>(1)?.0))
    })?;
    Ok(Some(PeriodReads { since, reads }))
}

/// Counts all tokens and the listed ones. Reads only the index.
pub(super) const TOKENS: &str = "SELECT count(*), coalesce(sum(listed), 0) FROM token";

/// Counts held feeds, missing records, and failing feeds. Reads only the index.
pub(super) fn feeds_sql(engine: Engine) -> String {
    format!("SELECT count(held_since), coalesce(sum(CASE WHEN missing <> '[]' THEN json_array_length(missing) END), 0), count(failing_since)
     FROM feed {}", engine.indexed_by("feed_status"))
}

/// Returns the feed statistics of each endpoint. Reads only the index, which contains the findings as numbers. A server returns a row for
/// each text of findings, because it would parse the text once for each number of each feed.
pub(super) fn feed_stats_sql(engine: Engine) -> String {
    if engine == Engine::Postgres {
        return "SELECT endpoint, count(*), count(failing_since), min(failing_since), max(read_at), max(tried_at), findings
             FROM feed GROUP BY endpoint, findings ORDER BY endpoint"
            .to_owned();
    }
    format!("SELECT endpoint, count(*), count(failing_since), min(failing_since), max(read_at), max(tried_at),
        coalesce(sum(CAST(findings ->> 'by_mark' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'by_upcoming' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'unreported' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'idle_marks' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'idle_upcoming' AS BIGINT)), 0), coalesce(sum(CAST(findings ->> 'undecided' AS BIGINT)), 0),
        coalesce(sum(CAST(findings ->> 'undecided_upcoming' AS BIGINT)), 0)
    FROM feed {} GROUP BY endpoint", engine.indexed_by("feed_status"))
}

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
        .prepare_cached(&feeds_sql(from.engine()))?
        .query_row([], |row| Ok((counted(row.get(0)?), counted(row.get(1)?), counted(row.get(2)?))))?;
    Ok(counts)
}

/// Returns the disk usage: the file with its WAL, or our tables with their indexes.
fn database_bytes(from: &Transaction<'_>, path: &Path) -> Result<u64, StoreFault> {
    if from.engine() == Engine::Postgres {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
             WHERE relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";
        return Ok(from.prepare_cached(sql)?.query_row([], |row| row.get(0)).map(counted)?);
    }
    let files = [path.to_owned(), sibling_path(path, "-wal")];
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
        Ok((word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?, row.get::<Millis>(1)?.0))
    })?;
    Ok(StoreGauges { alerts: alert_states(from)?, outbox: receivers(from)?, removals_held, last_success })
}

pub(super) fn alert_states(from: &Transaction<'_>) -> Result<Vec<(AlertState, u64)>, StoreFault> {
    // Most alerts are events. The total is cheap, so events are the total minus all other states.
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
    let indexed = from.engine().indexed_by("delivery_due");
    // A server would search all deliveries in the order of their times.
    let sql = format!(
        "WITH due AS MATERIALIZED (SELECT created_at FROM delivery {indexed} WHERE receiver = ?1 AND state IN ('due', 'retrying'))
         SELECT min(created_at) FROM due"
    );
    let mut oldest = from.prepare_cached(&sql)?;
    for receiver in &mut receivers {
        receiver.oldest_pending = one(&mut oldest, [receiver.receiver.as_str()], |row| Ok(time(row.get(0)?)))?.flatten();
    }
    Ok(receivers)
}

/// Counts the deliveries of each receiver by state.
fn delivery_counts(from: &Transaction<'_>) -> Result<Vec<(String, DeliveryState, u64)>, StoreFault> {
    let read = |row: &Row<'_>| {
        let receiver: String = row.get(0)?;
        let state = word("the state of a delivery to", &receiver, &row.get::<String>(1)?, DeliveryState::parse)?;
        Ok((receiver, state, counted(row.get(2)?)))
    };
    // In index order, to avoid a sort.
    let sql = "SELECT receiver, state, count(*) FROM delivery WHERE state IN ('due', 'retrying', 'dead', 'dropped') GROUP BY state, receiver";
    let mut rows = all(&mut *from.prepare_cached(sql)?, [], read)?;
    // Most deliveries are `delivered`, and receivers are few. The total is cheap, so the count of the last receiver is
    // the remainder.
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

fn feed_stats(from: &Transaction<'_>) -> Result<Vec<EndpointStat>, StoreFault> {
    let is_parsed_here = from.engine() == Engine::Postgres;
    let mut statement = from.prepare_cached(&feed_stats_sql(from.engine()))?;
    let rows = all(&mut statement, [], |row| {
        let endpoint: String = row.get(0)?;
        let findings = match is_parsed_here {
            true => from_json("the findings of a feed of", &endpoint, &row.get::<String>(6)?)?,
            false => Findings {
                by_mark: small(row.get(6)?),
                by_upcoming: small(row.get(7)?),
                unreported: small(row.get(8)?),
                idle_marks: small(row.get(9)?),
                idle_upcoming: small(row.get(10)?),
                undecided: small(row.get(11)?),
                undecided_upcoming: small(row.get(12)?),
                ..Findings::default()
            },
        };
        Ok(EndpointStat {
            endpoint: word("the endpoint of a feed", &endpoint, &endpoint, Endpoint::parse)?,
            feeds: counted(row.get(1)?),
            failing: counted(row.get(2)?),
            failing_since: time(row.get(3)?),
            last_success: time(row.get(4)?),
            last_try: time(row.get(5)?),
            last_error: None,
            parse_warnings: 0,
            polls: 0,
            credits: 0,
            findings,
        })
    })?;
    let mut stats: Vec<EndpointStat> = Vec::new();
    for row in rows {
        match stats.last_mut().filter(|last| last.endpoint == row.endpoint) {
            Some(last) => last.add_feeds(&row),
            None => stats.push(row),
        }
    }
    Ok(stats)
}

fn endpoint_stats(from: &Transaction<'_>) -> Result<Vec<EndpointStat>, StoreFault> {
    let mut stats = feed_stats(from)?;
    let mut last_error = from.prepare_cached(&format!(
        "SELECT at, coalesce(error, outcome) FROM poll {}
         WHERE endpoint = ?1 AND outcome NOT IN ('fresh', 'unchanged') ORDER BY at DESC, no DESC LIMIT 1",
        from.engine().indexed_by("poll_failed")
    ))?;
    for stat in &mut stats {
        stat.last_error = one(&mut last_error, [stat.endpoint.as_str()], |row| Ok((row.get::<Millis>(0)?.0, row.get(1)?)))?;
    }
    let mut parse_warnings =
        from.prepare_cached("SELECT coalesce(sum(parse_warnings_total), 0) FROM poll WHERE endpoint = ?1 AND at > ?2")?;
    for stat in &mut stats {
        let Some(since) = stat.last_success.and_then(|at| at.checked_sub_signed(chrono::TimeDelta::days(1))) else { continue };
        stat.parse_warnings =
            one(&mut parse_warnings, (stat.endpoint.as_str(), Millis(since)), |row| Ok(counted(row.get(0)?)))?.unwrap_or(0);
    }
    // Without a limit there is no budget to show, and the log of a period may be long.
    let quota = credit(from)?;
    if let Some(since) = quota.period_start.filter(|_| quota.own() <= MAX_COUNTED_CREDITS) {
        let mut spent =
            from.prepare_cached("SELECT count(*), coalesce(sum(credits), 0) FROM poll WHERE endpoint = ?1 AND at >= ?2")?;
        for stat in &mut stats {
            let row =
                one(&mut spent, (stat.endpoint.as_str(), Millis(since)), |row| Ok((counted(row.get(0)?), counted(row.get(1)?))))?;
            (stat.polls, stat.credits) = row.unwrap_or_default();
        }
    }
    stats.sort_by_key(|stat| stat.endpoint);
    Ok(stats)
}
