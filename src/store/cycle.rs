//! The reads of a cycle: poll candidates, known facts, and due evaluations.

use rusqlite::params;
use std::cmp::Ordering;

use super::audit::log_action;
use super::codec::{Millis, all, all_of, all_readable, from_json, one, one_of, small, time, word};
use super::error::StoreFault;
use super::rows::{ALERT_COLUMNS, FEED_COLUMNS, alert, feed_state, token, tracked};
use super::sql::{Engine, PendingQuery, Row, Transaction};
use super::{Store, StoreError, schedule};
use model::{
    Alert, Endpoint, EventType, FeedId, FeedState, FeedUpdate, LinearReads, ListedMethod, LoggedAction, PlanToken, PlanTokens,
    Resource, RuleId, Timestamp, Token, TokenId, TokenSnapshot, Tracked, UnreadableToken, wire::InvestorItem,
};

impl Store {
    /// Returns all tokens that may be polled, by slug, with the planning data for `endpoint`.
    pub async fn plan_tokens(&self, endpoint: Endpoint, now: Timestamp) -> Result<PlanTokens, StoreError> {
        self.read("read the planning data", move |from| plan_tokens(from, endpoint, now)).await
    }

    /// Collects facts from the state and the header of the schedule of each token. Records and damaged rows are left out. Only one header
    /// is in memory at a time.
    pub async fn fold_schedule_feeds<T: Default + Send + 'static>(&self, fold: fn(&mut T, &FeedUpdate)) -> Result<T, StoreError> {
        self.read("read the feeds of schedules", move |from| fold_schedule_feeds(from, fold)).await
    }

    /// Returns the state of a feed, or the default if it was never polled.
    pub async fn feed(&self, id: FeedId) -> Result<FeedState, StoreError> {
        self.read("read the state of a feed", move |from| feed(from, &id)).await
    }

    /// Returns tokens with feeds, records of `resources`, and open alerts, in the order of `ids`. An unknown token is
    /// returned empty. Records are sorted by time and key, undated ones last.
    pub async fn tokens(&self, ids: Vec<TokenId>, resources: Vec<Resource>) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read tokens", move |from| tokens(from, &ids, &resources)).await
    }

    /// Returns tokens with the state of `endpoint` and nothing else, not even names, in the order of `ids`. Enough to
    /// process an unchanged response.
    pub async fn tokens_with_feed(&self, ids: Vec<TokenId>, endpoint: Endpoint) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read the state of feeds", move |from| tokens_with_feed(from, ids, endpoint)).await
    }

    /// Returns tokens with an unlock that starts in one of the windows (start exclusive, end inclusive), or with an
    /// open alert whose recheck is due at `now`.
    pub async fn tokens_due(&self, windows: Vec<(Timestamp, Timestamp)>, now: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the tokens that are due", move |from| tokens_due(from, &windows, now)).await
    }

    /// Returns tokens that changed rules may affect: those with an open alert or with records of `resources`.
    pub async fn tokens_to_reevaluate(&self, resources: Vec<Resource>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read the tokens to reevaluate", move |from| tokens_to_reevaluate(from, &resources)).await
    }

    /// Returns the latest episode of each (rule, subject) pair, or 0 if the alert never fired.
    pub async fn episodes(&self, pairs: Vec<(RuleId, String)>) -> Result<Vec<u32>, StoreError> {
        self.read("read episodes of alerts", move |from| episodes(from, &pairs)).await
    }

    /// Returns open alerts without a token: about the source, and about groups of tokens. Damaged rows are left out.
    pub async fn global_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts without a token", global_alerts).await
    }

    /// Returns open alerts about the source, receivers, and the daemon itself. Damaged rows are left out.
    pub async fn source_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts about the source", source_alerts).await
    }

    /// Returns the time up to which time-relative rules were evaluated, or `None` before the first evaluation.
    pub async fn evaluated_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read the time of the last evaluation", |from| millis_of(from, "evaluated_until")).await
    }

    /// Returns the latest time of an evaluation, or `None` before the first one.
    pub async fn evaluated_at(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read the time of the latest evaluation", |from| millis_of(from, "evaluated_at")).await
    }

    /// Returns the investors of the list, by slug. Damaged rows are left out, and the next list replaces them.
    pub async fn investors(&self) -> Result<Vec<InvestorItem>, StoreError> {
        self.read("read investors", investors).await
    }

    /// Returns the slugs of investors with a round that was added after `since` and still lacks facts.
    pub async fn awaited_investors(&self, since: Timestamp) -> Result<Vec<String>, StoreError> {
        self.read("read the investors of incomplete rounds", move |from| awaited_investors(from, since)).await
    }

    /// Returns the last slot in which each scheduled job ran.
    pub async fn job_slots(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.read("read the job slots", job_slots).await
    }

    /// Accepts the held responses of a token, starting with the next poll. Returns the number of feeds.
    pub async fn accept_held(&self, token: TokenId, now: Timestamp) -> Result<usize, StoreError> {
        self.act("accept held responses", move |to| accept_held(to, &token, now)).await
    }

    /// Returns the texts of the last valid rule files, as stored by [`save_good_rules`](Self::save_good_rules).
    pub async fn good_rules(&self) -> Result<Option<String>, StoreError> {
        self.read("read the last valid rules", good_rules).await
    }

    /// Stores valid rule files, so that a start with invalid files can use them.
    pub async fn save_good_rules(&self, texts: String) -> Result<(), StoreError> {
        self.write("store the valid rules", move |to| save_good_rules(to, &texts)).await
    }
}

/// Selects tokens with an unlock that starts in a window.
pub(super) const IN_WINDOW: &str = "SELECT DISTINCT token_no FROM record
     WHERE resource = 'unlock' AND starts_at > ?1 AND starts_at <= ?2 AND token_no IS NOT NULL";

/// Selects tokens with a due recheck. The index is forced because SQLite would otherwise scan all open alerts.
pub(super) fn to_recheck_sql(engine: Engine) -> String {
    format!(
        "SELECT DISTINCT token_no FROM alert {}
         WHERE state IN ('pending', 'firing') AND recheck_at IS NOT NULL AND recheck_at <= ?1 AND token_no IS NOT NULL",
        engine.indexed_by("alert_recheck")
    )
}

/// Selects all tokens except those listed under another slug now.
fn plan_tokens(from: &Transaction<'_>, endpoint: Endpoint, now: Timestamp) -> Result<PlanTokens, StoreFault> {
    let (item, header) = (from.engine().json("t.item"), from.engine().json("f.header"));
    let sql = format!(
        "SELECT t.id, t.listed, t.last_updated, t.has_burn, t.has_buyback,
         (SELECT min(r.starts_at) FROM record r WHERE r.token_no = t.no AND r.resource = 'unlock' AND r.starts_at > ?2),
         (SELECT r.share FROM record r
          WHERE r.token_no = t.no AND r.resource = 'unlock' AND r.starts_at > ?2 ORDER BY r.starts_at LIMIT 1),
         coalesce({header} ->> '$.segmentsAbsent', {header} ->> '$.segmentsRead'), f.no, {item} ->> '$.listedMethod',
         {header} ->> '$.rateChangesAbsent', CAST({header} ->> '$.needsAhead' AS TEXT), {header} ->> '$.linearAhead.readAt',
         {header} ->> '$.aheadAbsent', {FEED_COLUMNS} FROM token t LEFT JOIN feed f ON f.token_no = t.no AND f.endpoint = ?1
         WHERE t.unlisted_at IS NULL OR NOT EXISTS
         (SELECT 1 FROM feed m WHERE m.token_no = t.no AND {} ->> '$.cliffwatchRenamedTo' IS NOT NULL) ORDER BY t.id",
        from.engine().json("m.header")
    );
    // Reserve the exact size: ten thousand tokens take several megabytes.
    let count: i64 = from.prepare_cached("SELECT count(*) FROM token")?.query_row([], |row| row.get(0))?;
    let mut found = PlanTokens { tokens: Vec::with_capacity(usize::try_from(count).unwrap_or_default()), unreadable: Vec::new() };
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query(params![endpoint.as_str(), Millis(now)])?;
    while let Some(row) = rows.next()? {
        let id = TokenId::from(row.get::<String>(0)?);
        match plan_token(&row, &id) {
            Ok(token) => found.tokens.push(token),
            Err(fault) => match fault.unreadable() {
                Some(error) => found.unreadable.push(UnreadableToken { id, error }),
                None => return Err(fault),
            },
        }
    }
    Ok(found)
}

fn plan_token(row: &Row<'_>, id: &TokenId) -> Result<PlanToken, StoreFault> {
    let feed = row.get::<Option<i64>>(8)?.map(|_| feed_state(row, 14, id.as_str())).transpose()?;
    let segments: Option<String> = row.get(7)?;
    let method: Option<String> = row.get(9)?;
    Ok(PlanToken {
        listed: row.get(1)?,
        last_updated: time(row.get(2)?),
        has_burn: row.get(3)?,
        has_buyback: row.get(4)?,
        next_event: time(row.get(5)?),
        next_size: row.get(6)?,
        feed,
        // Segments that cannot be parsed are fetched again.
        segments: segments.and_then(|text| serde_json::from_str(&text).ok()),
        linear: linear_reads(row)?,
        listed_method: method.as_deref().map(ListedMethod::of),
        id: id.clone(),
    })
}

/// Returns the reads that completed the linear unlocks of a schedule. `None` if nothing is stored. What cannot be parsed is read again.
fn linear_reads(row: &Row<'_>) -> Result<Option<Box<LinearReads>>, StoreFault> {
    let at = |column| Ok::<_, StoreFault>(row.get::<Option<String>>(column)?.and_then(|text| text.parse().ok()));
    let absence: Option<String> = row.get(10)?;
    // SQLite returns a JSON boolean as a number, PostgreSQL as text.
    let needs_ahead: Option<String> = row.get(11)?;
    let reads = LinearReads {
        rate_changes_absent: absence.and_then(|text| serde_json::from_str(&text).ok()),
        needs_ahead: needs_ahead.map(|flag| flag == "1" || flag == "true"),
        ahead_at: at(12)?,
        ahead_absent: at(13)?,
    };
    Ok((reads != LinearReads::default()).then(|| Box::new(reads)))
}

fn feed(from: &Transaction<'_>, id: &FeedId) -> Result<FeedState, StoreFault> {
    let sql = format!(
        "SELECT {FEED_COLUMNS} FROM feed f WHERE f.endpoint = ?1
         AND f.token_no = CASE WHEN CAST(?2 AS TEXT) IS NULL THEN 0 ELSE (SELECT no FROM token WHERE id = ?2) END"
    );
    let token = id.token.as_ref().map(TokenId::as_str);
    let state =
        one(&mut *from.prepare_cached(&sql)?, params![id.endpoint.as_str(), token], |row| feed_state(row, 0, &id.to_string()))?;
    Ok(state.unwrap_or_default())
}

fn fold_schedule_feeds<T: Default>(from: &Transaction<'_>, fold: fn(&mut T, &FeedUpdate)) -> Result<T, StoreFault> {
    let mut facts = T::default();
    let sql = format!(
        "SELECT t.id, f.header, {FEED_COLUMNS} FROM feed f JOIN token t ON t.no = f.token_no
         WHERE f.endpoint = ?1 AND f.header IS NOT NULL"
    );
    all_readable(&mut *from.prepare_cached(&sql)?, [Endpoint::UnlockEvents.as_str()], |row| {
        let token: String = row.get(0)?;
        let header = from_json("the header of a feed", &token, &row.get::<String>(1)?)?;
        let state = feed_state(row, 2, &token)?;
        let id = FeedId { endpoint: Endpoint::UnlockEvents, token: Some(token.as_str().into()) };
        fold(&mut facts, &FeedUpdate { id, state, put: Vec::new(), removed: Vec::new(), header: Some(header) });
        Ok(())
    })?;
    Ok(facts)
}

pub(super) fn tokens(from: &Transaction<'_>, ids: &[TokenId], resources: &[Resource]) -> Result<Vec<TokenSnapshot>, StoreFault> {
    let mut snapshots = Vec::with_capacity(ids.len());
    for ids in ids.chunks(READ_TOGETHER) {
        let rows = ids.iter().map(|id| query_token(from, id)).collect::<Result<Vec<_>, _>>()?;
        let rows = rows.into_iter().map(|row| one_of(row.rows()?, |row| Ok((row.get::<i64>(0)?, token(row, 1)?))));
        let mut known = Vec::with_capacity(ids.len());
        for (row, id) in rows.zip(ids) {
            let row = row?.map(|(no, token)| Ok::<_, StoreFault>((token, TokenQueries::put(from, no, resources)?)));
            known.push((id, row.transpose()?));
        }
        for (id, row) in known {
            snapshots.push(match row {
                Some((token, queried)) => queried.read(TokenSnapshot::of(token), id)?,
                None => TokenSnapshot::of(Token::unknown(id.clone())),
            });
        }
    }
    Ok(snapshots)
}

/// The number of tokens whose lookups are sent in one batch. Their rows are briefly in memory twice.
pub(super) const READ_TOGETHER: usize = 32;

fn query_token<'a>(from: &Transaction<'a>, id: &TokenId) -> Result<PendingQuery<'a>, StoreFault> {
    Ok(from.prepare_cached("SELECT no, id, item, name, symbol FROM token WHERE id = ?1")?.send_query([id.as_str()])?)
}

/// The pending lookups of one token.
struct TokenQueries<'a> {
    feeds: PendingQuery<'a>,
    /// The records of each resource. Unlocks are stored as one packed schedule.
    records: Vec<(Resource, PendingQuery<'a>)>,
    alerts: PendingQuery<'a>,
}

impl<'a> TokenQueries<'a> {
    fn put(from: &Transaction<'a>, no: i64, resources: &[Resource]) -> Result<Self, StoreFault> {
        let feeds = format!("SELECT f.endpoint, f.header, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 ORDER BY f.no");
        let alerts = format!(
            "SELECT {ALERT_COLUMNS} FROM alert a JOIN token t ON t.no = a.token_no
             WHERE a.token_no = ?1 AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
        );
        let mut records: Vec<(Resource, PendingQuery<'a>)> = Vec::with_capacity(resources.len());
        for resource in resources {
            if records.iter().any(|(earlier, _)| earlier == resource) {
                continue;
            }
            let sql = "SELECT starts_at, key, body FROM record WHERE token_no = ?1 AND resource = ?2 ORDER BY starts_at, key";
            let queried = match resource {
                Resource::Unlock => from.prepare_cached(schedule::OF_TOKEN)?.send_query([no])?,
                _ => from.prepare_cached(sql)?.send_query(params![no, resource.as_str()])?,
            };
            records.push((*resource, queried));
        }
        Ok(Self {
            feeds: from.prepare_cached(&feeds)?.send_query([no])?,
            records,
            alerts: from.prepare_cached(&alerts)?.send_query([no])?,
        })
    }

    /// Reads the results into a snapshot.
    fn read(self, mut snapshot: TokenSnapshot, id: &TokenId) -> Result<TokenSnapshot, StoreFault> {
        let feeds = all_of(self.feeds.rows()?, |row| {
            let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<String>(0)?, Endpoint::parse)?;
            let header = row.get::<Option<String>>(1)?;
            let header = header.map(|text| from_json("the header of a feed", id.as_str(), &text)).transpose()?;
            Ok((endpoint, feed_state(row, 2, id.as_str())?, header))
        })?;
        for (endpoint, state, header) in feeds {
            snapshot.feeds.push((endpoint, state));
            snapshot.headers.extend(header.map(|header| (endpoint, header)));
        }
        let mut records = Vec::new();
        for (resource, queried) in self.records {
            if resource == Resource::Unlock {
                let millis = |tracked: &Tracked| tracked.record.interval().map(|interval| interval.start.timestamp_millis());
                let schedule = one_of(queried.rows()?, |row| schedule::read(row, id.as_str()))?.unwrap_or_default();
                records.extend(schedule.into_iter().map(|tracked| (millis(&tracked), tracked)));
                continue;
            }
            records.extend(all_of(queried.rows()?, |row| {
                let starts_at: Option<i64> = row.get(0)?;
                Ok((starts_at, tracked(row, 1, resource, id.as_str())?))
            })?);
        }
        records.sort_by(|(a_at, a), (b_at, b)| undated_last(*a_at, *b_at).then_with(|| a.key.cmp(&b.key)));
        snapshot.records = records.into_iter().map(|(_, tracked)| tracked).collect();
        snapshot.alerts = all_of(self.alerts.rows()?, alert)?;
        Ok(snapshot)
    }
}

fn tokens_with_feed(from: &Transaction<'_>, ids: Vec<TokenId>, endpoint: Endpoint) -> Result<Vec<TokenSnapshot>, StoreFault> {
    let sql = format!("SELECT {FEED_COLUMNS} FROM token t JOIN feed f ON f.token_no = t.no AND f.endpoint = ?2 WHERE t.id = ?1");
    let mut statement = from.prepare_cached(&sql)?;
    let queried = ids.into_iter().map(|id| Ok((statement.send_query(params![id.as_str(), endpoint.as_str()])?, id)));
    let read = |(state, id): (PendingQuery<'_>, TokenId)| {
        let state = one_of(state.rows()?, |row| feed_state(row, 0, id.as_str()))?;
        Ok(TokenSnapshot {
            feeds: state.map(|state| (endpoint, state)).into_iter().collect(),
            ..TokenSnapshot::of(Token::unknown(id))
        })
    };
    queried.collect::<Result<Vec<_>, StoreFault>>()?.into_iter().map(read).collect()
}

fn undated_last(a: Option<i64>, b: Option<i64>) -> Ordering {
    (a.is_none(), a).cmp(&(b.is_none(), b))
}

fn tokens_due(from: &Transaction<'_>, windows: &[(Timestamp, Timestamp)], now: Timestamp) -> Result<Vec<TokenId>, StoreFault> {
    let mut numbers = std::collections::BTreeSet::new();
    let mut in_window = from.prepare_cached(IN_WINDOW)?;
    for (after, until) in windows {
        numbers.extend(all(&mut in_window, params![Millis(*after), Millis(*until)], |row| Ok(row.get::<i64>(0)?))?);
    }
    let mut to_recheck = from.prepare_cached(&to_recheck_sql(from.engine()))?;
    numbers.extend(all(&mut to_recheck, [Millis(now)], |row| Ok(row.get::<i64>(0)?))?);
    let mut name = from.prepare_cached("SELECT id FROM token WHERE no = ?1")?;
    let queried = numbers.into_iter().map(|no| name.send_query([no])).collect::<Result<Vec<_>, _>>()?;
    let mut ids = Vec::with_capacity(queried.len());
    for name in queried {
        ids.extend(one_of(name.rows()?, |row| Ok(TokenId::from(row.get::<String>(0)?)))?);
    }
    ids.sort();
    Ok(ids)
}

fn tokens_to_reevaluate(from: &Transaction<'_>, resources: &[Resource]) -> Result<Vec<TokenId>, StoreFault> {
    let id = |row: &Row<'_>| Ok(TokenId::from(row.get::<String>(0)?));
    let open = "SELECT DISTINCT t.id FROM alert a JOIN token t ON t.no = a.token_no WHERE a.state IN ('pending', 'firing')";
    let mut ids = all(&mut *from.prepare_cached(open)?, [], id)?;
    let holding = "SELECT t.id FROM token t
         WHERE EXISTS (SELECT 1 FROM record r WHERE r.token_no = t.no AND r.resource = ?1)";
    for resource in resources {
        ids.extend(all(&mut *from.prepare_cached(holding)?, [resource.as_str()], id)?);
    }
    ids.sort();
    ids.dedup();
    Ok(ids)
}

fn episodes(from: &Transaction<'_>, pairs: &[(RuleId, String)]) -> Result<Vec<u32>, StoreFault> {
    let mut latest = from.prepare_cached("SELECT coalesce(max(episode), 0) FROM alert WHERE rule = ?1 AND subject = ?2")?;
    let queried =
        pairs.iter().map(|(rule, subject)| latest.send_query(params![rule.as_str(), subject])).collect::<Result<Vec<_>, _>>()?;
    queried.into_iter().map(|queried| Ok(queried.row(|row| row.get(0)).map(small)?)).collect()
}

fn global_alerts(from: &Transaction<'_>) -> Result<Vec<Alert>, StoreFault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.token_no IS NULL AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
    );
    all_readable(&mut *from.prepare_cached(&sql)?, [], alert)
}

fn source_alerts(from: &Transaction<'_>) -> Result<Vec<Alert>, StoreFault> {
    let mut alerts = global_alerts(from)?;
    alerts.retain(|alert| alert.rule.as_str() == model::alert::SOURCE_TROUBLE);
    Ok(alerts)
}

/// Reads a time of `meta`.
fn millis_of(from: &Transaction<'_>, key: &str) -> Result<Option<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT CAST(value AS BIGINT) FROM meta WHERE key = ?1")?;
    one(&mut statement, [key], |row| Ok(row.get::<Millis>(0)?.0))
}

pub(super) fn investors(from: &Transaction<'_>) -> Result<Vec<InvestorItem>, StoreFault> {
    all_readable(&mut *from.prepare_cached("SELECT id, item FROM investor ORDER BY id")?, [], |row| {
        from_json("the list item of the investor", &row.get::<String>(0)?, &row.get::<String>(1)?)
    })
}

fn awaited_investors(from: &Transaction<'_>, since: Timestamp) -> Result<Vec<String>, StoreFault> {
    let sql = "SELECT DISTINCT r.body ->> 'investorId' FROM feed f CROSS JOIN json_each(f.header, '$.cliffwatchWaiting') w
               JOIN record r ON r.scope_no = f.token_no AND r.resource = 'funding' AND r.key = w.key AND r.body IS NOT NULL
               WHERE f.endpoint = 'investors' AND unixepoch(w.value) >= ?1 AND r.body ->> 'investorId' IS NOT NULL ORDER BY 1";
    all(&mut *from.prepare_cached(sql)?, [since.timestamp()], |row| Ok(row.get(0)?))
}

pub(super) fn job_slots(from: &Transaction<'_>) -> Result<Vec<(String, Timestamp)>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT name, slot FROM job ORDER BY name")?, [], |row| {
        Ok((row.get(0)?, row.get::<Millis>(1)?.0))
    })
}

pub(super) fn accept_held(to: &Transaction<'_>, token: &TokenId, now: Timestamp) -> Result<usize, StoreFault> {
    let sql =
        "UPDATE feed SET hold_accepted = 1 WHERE held_since IS NOT NULL AND token_no = (SELECT no FROM token WHERE id = ?1)";
    let accepted = to.prepare_cached(sql)?.execute_counted([token.as_str()])?;
    if accepted > 0 {
        let action = LoggedAction::new(token.as_str(), None);
        log_action(to, EventType::ResponseAccepted, Some(token), &action, now)?;
    }
    Ok(accepted)
}

fn good_rules(from: &Transaction<'_>) -> Result<Option<String>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'good_rules'")?;
    let mut rows = statement.query([])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

fn save_good_rules(to: &Transaction<'_>, texts: &str) -> Result<(), StoreFault> {
    to.prepare_cached(
        "INSERT INTO meta (key, value) VALUES ('good_rules', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )?
    .execute([texts])?;
    Ok(())
}
