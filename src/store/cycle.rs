//! What a cycle reads: whom to ask, what was known, whose time has come.

use std::cmp::Ordering;

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, all_of, from_json, one, one_of, small, time, word};
use super::error::StoreFault;
use super::rows::{ALERT_COLUMNS, FEED_COLUMNS, alert, feed_state, token, tracked};
use super::sql::{Question, Row, Transaction};
use super::{Store, StoreError, schedule};
use model::{
    Alert, Endpoint, FeedId, FeedState, PlanToken, Resource, RuleId, Timestamp, Token, TokenId, TokenSnapshot, Tracked,
    wire::InvestorItem,
};

impl Store {
    /// All tokens with what planning reads of `endpoint`, by slug.
    pub async fn plan_tokens(&self, endpoint: Endpoint, now: Timestamp) -> Result<Vec<PlanToken>, StoreError> {
        self.read("read what planning needs", move |from| plan_tokens(from, endpoint, now)).await
    }

    /// What is remembered of a feed; the default where it was never tried.
    pub async fn feed(&self, id: FeedId) -> Result<FeedState, StoreError> {
        self.read("read the state of a feed", move |from| feed(from, &id)).await
    }

    /// Tokens with feeds, records of `resources` and open alerts, in the order of `ids`. A token unknown to the database comes
    /// back empty. Records are in the order of time and key, those without a date last.
    pub async fn tokens(&self, ids: Vec<TokenId>, resources: Vec<Resource>) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read tokens", move |from| tokens(from, &ids, &resources)).await
    }

    /// Tokens with what is remembered of `endpoint` and nothing else, not even their names, in the order of `ids`: all that an answer
    /// needs that brings nothing new.
    pub async fn tokens_with_feed(&self, ids: Vec<TokenId>, endpoint: Endpoint) -> Result<Vec<TokenSnapshot>, StoreError> {
        self.read("read the state of feeds", move |from| tokens_with_feed(from, ids, endpoint)).await
    }

    /// Tokens with an unlock that begins in one of the windows (from exclusive, to inclusive), or with an open alert that is to be
    /// evaluated again by `now`.
    pub async fn tokens_due(&self, windows: Vec<(Timestamp, Timestamp)>, now: Timestamp) -> Result<Vec<TokenId>, StoreError> {
        self.read("read whose time has come", move |from| tokens_due(from, &windows, now)).await
    }

    /// Tokens with an open alert, and those with records of `resources`: for whom other rules may come to something else.
    pub async fn tokens_to_reevaluate(&self, resources: Vec<Resource>) -> Result<Vec<TokenId>, StoreError> {
        self.read("read whom other rules may concern", move |from| tokens_to_reevaluate(from, &resources)).await
    }

    /// Latest episode of (rule, subject), for each pair asked; zero where there was none.
    pub async fn episodes(&self, pairs: Vec<(RuleId, String)>) -> Result<Vec<u32>, StoreError> {
        self.read("read episodes of alerts", move |from| episodes(from, &pairs)).await
    }

    /// Open alerts that belong to no token: about the source, and about groups of tokens.
    pub async fn alerts_of_no_token(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts of no token", alerts_of_no_token).await
    }

    /// Open alerts about the source, receivers and this program itself.
    pub async fn source_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.read("read alerts about the source", source_alerts).await
    }

    /// Up to when time-relative rules have been evaluated; none before the first time.
    pub async fn evaluated_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.read("read up to when rules were evaluated", evaluated_until).await
    }

    /// Investors as the list told them, by slug.
    pub async fn investors(&self) -> Result<Vec<InvestorItem>, StoreError> {
        self.read("read investors", investors).await
    }

    /// Slugs of investors with a round that came after `since` and still waits for facts.
    pub async fn awaited_investors(&self, since: Timestamp) -> Result<Vec<String>, StoreError> {
        self.read("read whose rounds wait for facts", move |from| awaited_investors(from, since)).await
    }

    /// The last slot for which each scheduled job ran.
    pub async fn job_slots(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.read("read when jobs ran", job_slots).await
    }

    /// Has what is held of a token believed with its next answer; answers how many feeds that concerns.
    pub async fn accept_held(&self, token: TokenId) -> Result<usize, StoreError> {
        self.act("accept what is held", move |to| accept_held(to, &token)).await
    }

    /// The texts of the last rule files without errors, as [`keep_good_rules`](Self::keep_good_rules) was given them.
    pub async fn good_rules(&self) -> Result<Option<String>, StoreError> {
        self.read("read the last good rules", good_rules).await
    }

    /// Remembers rule files without errors, so that a start with bad ones can go on with these.
    pub async fn keep_good_rules(&self, texts: String) -> Result<(), StoreError> {
        self.write("remember the good rules", move |to| keep_good_rules(to, &texts)).await
    }
}

/// No unlock stands for a longer time than a month: how far before a time one may begin that has not passed by then.
pub(super) const LONGEST_INTERVAL: TimeDelta = TimeDelta::days(31);

/// Tokens with an unlock that begins in a window.
pub(super) const IN_WINDOW: &str = "SELECT DISTINCT token_no FROM record
     WHERE resource = 'unlock' AND starts_at > ?1 AND starts_at <= ?2 AND token_no IS NOT NULL";

/// Tokens with an alert that time may have changed. Left alone, SQLite would rather read all open alerts.
pub(super) const TO_RECHECK: &str = "SELECT DISTINCT token_no FROM alert INDEXED BY alert_recheck
     WHERE state IN ('pending', 'firing') AND recheck_at IS NOT NULL AND recheck_at <= ?1 AND token_no IS NOT NULL";

/// Tokens that may be asked about: not those that the list names under another slug.
fn plan_tokens(from: &Transaction<'_>, endpoint: Endpoint, now: Timestamp) -> Result<Vec<PlanToken>, StoreFault> {
    let sql = format!(
        "SELECT t.id, t.listed, t.last_updated, t.has_burn, t.has_buyback,
         (SELECT min(r.starts_at) FROM record r WHERE r.token_no = t.no AND r.resource = 'unlock' AND r.starts_at > ?2),
         (SELECT r.share FROM record r
          WHERE r.token_no = t.no AND r.resource = 'unlock' AND r.starts_at > ?2 ORDER BY r.starts_at LIMIT 1),
         coalesce(f.header ->> '$.segmentsAbsent', f.header ->> '$.segmentsRead'), f.no, {FEED_COLUMNS} FROM token t LEFT JOIN feed f ON f.token_no = t.no AND f.endpoint = ?1
         WHERE t.unlisted_at IS NULL OR NOT EXISTS
         (SELECT 1 FROM feed m WHERE m.token_no = t.no AND m.header ->> '$.cliffwatchRenamedTo' IS NOT NULL) ORDER BY t.id"
    );
    // Of ten thousand tokens these are some megabytes: no more room than they need.
    let count: i64 = from.prepare_cached("SELECT count(*) FROM token")?.query_row([], |row| row.get(0))?;
    let mut tokens = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let mut statement = from.prepare_cached(&sql)?;
    let mut rows = statement.query(params![endpoint.as_str(), Millis(now)])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let feed = row.get::<_, Option<i64>>(8)?.map(|_| feed_state(&row, 9, &id)).transpose()?;
        let segments: Option<String> = row.get(7)?;
        tokens.push(PlanToken {
            listed: row.get(1)?,
            last_updated: time(row.get(2)?),
            has_burn: row.get(3)?,
            has_buyback: row.get(4)?,
            next_event: time(row.get(5)?),
            next_size: row.get(6)?,
            feed,
            // What cannot be read is read again.
            segments: segments.and_then(|text| serde_json::from_str(&text).ok()),
            id: TokenId::from(id),
        });
    }
    Ok(tokens)
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

fn tokens(from: &Transaction<'_>, ids: &[TokenId], resources: &[Resource]) -> Result<Vec<TokenSnapshot>, StoreFault> {
    let mut snapshots = Vec::with_capacity(ids.len());
    for ids in ids.chunks(READ_TOGETHER) {
        let rows = ids.iter().map(|id| ask_token(from, id)).collect::<Result<Vec<_>, _>>()?;
        let rows = rows.into_iter().map(|row| one_of(row.rows()?, |row| Ok((row.get::<_, i64>(0)?, token(row, 1)?))));
        let mut known = Vec::with_capacity(ids.len());
        for (row, id) in rows.zip(ids) {
            let row = row?.map(|(no, token)| Ok::<_, StoreFault>((token, TokenQuestions::put(from, no, resources)?)));
            known.push((id, row.transpose()?));
        }
        for (id, row) in known {
            snapshots.push(match row {
                Some((token, asked)) => asked.read(TokenSnapshot::of(token), id)?,
                None => TokenSnapshot::of(Token::unknown(id.clone())),
            });
        }
    }
    Ok(snapshots)
}

/// Tokens that are asked for before the first answer is read: what is kept of that many is in memory twice.
pub(super) const READ_TOGETHER: usize = 32;

fn ask_token<'a>(from: &Transaction<'a>, id: &TokenId) -> Result<Question<'a>, StoreFault> {
    Ok(from.prepare_cached("SELECT no, id, item, name, symbol FROM token WHERE id = ?1")?.ask([id.as_str()])?)
}

/// What is asked about one token.
struct TokenQuestions<'a> {
    feeds: Question<'a>,
    /// Of each resource its records; of unlocks the schedule.
    records: Vec<(Resource, Question<'a>)>,
    alerts: Question<'a>,
}

impl<'a> TokenQuestions<'a> {
    fn put(from: &Transaction<'a>, no: i64, resources: &[Resource]) -> Result<Self, StoreFault> {
        let feeds = format!("SELECT f.endpoint, f.header, {FEED_COLUMNS} FROM feed f WHERE f.token_no = ?1 ORDER BY f.no");
        let alerts = format!(
            "SELECT {ALERT_COLUMNS} FROM alert a JOIN token t ON t.no = a.token_no
             WHERE a.token_no = ?1 AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
        );
        let mut records: Vec<(Resource, Question<'a>)> = Vec::with_capacity(resources.len());
        for resource in resources {
            if records.iter().any(|(earlier, _)| earlier == resource) {
                continue;
            }
            let sql = "SELECT starts_at, key, body FROM record WHERE token_no = ?1 AND resource = ?2 ORDER BY starts_at, key";
            let asked = match resource {
                Resource::Unlock => from.prepare_cached(schedule::OF_TOKEN)?.ask([no])?,
                _ => from.prepare_cached(sql)?.ask(params![no, resource.as_str()])?,
            };
            records.push((*resource, asked));
        }
        Ok(Self { feeds: from.prepare_cached(&feeds)?.ask([no])?, records, alerts: from.prepare_cached(&alerts)?.ask([no])? })
    }

    /// Fills a snapshot with the answers.
    fn read(self, mut snapshot: TokenSnapshot, id: &TokenId) -> Result<TokenSnapshot, StoreFault> {
        let feeds = all_of(self.feeds.rows()?, |row| {
            let endpoint = word("the endpoint of a feed", id.as_str(), &row.get::<_, String>(0)?, Endpoint::parse)?;
            let header = row.get::<_, Option<String>>(1)?;
            let header = header.map(|text| from_json("the header of a feed", id.as_str(), &text)).transpose()?;
            Ok((endpoint, feed_state(row, 2, id.as_str())?, header))
        })?;
        for (endpoint, state, header) in feeds {
            snapshot.feeds.push((endpoint, state));
            snapshot.headers.extend(header.map(|header| (endpoint, header)));
        }
        let mut records = Vec::new();
        for (resource, asked) in self.records {
            if resource == Resource::Unlock {
                let millis = |tracked: &Tracked| tracked.record.interval().map(|interval| interval.start.timestamp_millis());
                let schedule = one_of(asked.rows()?, |row| schedule::read(row, id.as_str()))?.unwrap_or_default();
                records.extend(schedule.into_iter().map(|tracked| (millis(&tracked), tracked)));
                continue;
            }
            records.extend(all_of(asked.rows()?, |row| {
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

/// Tokens with the state of one feed and nothing else, not even their names.
fn tokens_with_feed(from: &Transaction<'_>, ids: Vec<TokenId>, endpoint: Endpoint) -> Result<Vec<TokenSnapshot>, StoreFault> {
    let sql = format!("SELECT {FEED_COLUMNS} FROM token t JOIN feed f ON f.token_no = t.no AND f.endpoint = ?2 WHERE t.id = ?1");
    let mut statement = from.prepare_cached(&sql)?;
    let asked = ids.into_iter().map(|id| Ok((statement.ask(params![id.as_str(), endpoint.as_str()])?, id)));
    let read = |(state, id): (Question<'_>, TokenId)| {
        let state = one_of(state.rows()?, |row| feed_state(row, 0, id.as_str()))?;
        Ok(TokenSnapshot {
            feeds: state.map(|state| (endpoint, state)).into_iter().collect(),
            ..TokenSnapshot::of(Token::unknown(id))
        })
    };
    asked.collect::<Result<Vec<_>, StoreFault>>()?.into_iter().map(read).collect()
}

fn undated_last(a: Option<i64>, b: Option<i64>) -> Ordering {
    (a.is_none(), a).cmp(&(b.is_none(), b))
}

fn tokens_due(from: &Transaction<'_>, windows: &[(Timestamp, Timestamp)], now: Timestamp) -> Result<Vec<TokenId>, StoreFault> {
    let mut numbers = std::collections::BTreeSet::new();
    let mut in_window = from.prepare_cached(IN_WINDOW)?;
    for (after, until) in windows {
        numbers.extend(all(&mut in_window, params![Millis(*after), Millis(*until)], |row| Ok(row.get::<_, i64>(0)?))?);
    }
    let mut to_recheck = from.prepare_cached(TO_RECHECK)?;
    numbers.extend(all(&mut to_recheck, [Millis(now)], |row| Ok(row.get::<_, i64>(0)?))?);
    let mut name = from.prepare_cached("SELECT id FROM token WHERE no = ?1")?;
    let asked = numbers.into_iter().map(|no| name.ask([no])).collect::<Result<Vec<_>, _>>()?;
    let mut ids = Vec::with_capacity(asked.len());
    for name in asked {
        ids.extend(one_of(name.rows()?, |row| Ok(TokenId::from(row.get::<_, String>(0)?)))?);
    }
    ids.sort();
    Ok(ids)
}

fn tokens_to_reevaluate(from: &Transaction<'_>, resources: &[Resource]) -> Result<Vec<TokenId>, StoreFault> {
    let id = |row: &Row<'_>| Ok(TokenId::from(row.get::<_, String>(0)?));
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
    let asked = pairs.iter().map(|(rule, subject)| latest.ask(params![rule.as_str(), subject])).collect::<Result<Vec<_>, _>>()?;
    asked.into_iter().map(|asked| Ok(asked.row(|row| row.get(0)).map(small)?)).collect()
}

/// Open alerts that belong to no token: of the source, and of groups of tokens.
fn alerts_of_no_token(from: &Transaction<'_>) -> Result<Vec<Alert>, StoreFault> {
    let sql = format!(
        "SELECT {ALERT_COLUMNS} FROM alert a LEFT JOIN token t ON t.no = a.token_no
         WHERE a.token_no IS NULL AND a.state IN ('pending', 'firing') ORDER BY a.active_at, a.id"
    );
    all(&mut *from.prepare_cached(&sql)?, [], alert)
}

/// Those of them that are about the source, receivers and this program itself.
fn source_alerts(from: &Transaction<'_>) -> Result<Vec<Alert>, StoreFault> {
    let mut alerts = alerts_of_no_token(from)?;
    alerts.retain(|alert| alert.rule.as_str() == model::alert::SOURCE_TROUBLE);
    Ok(alerts)
}

fn evaluated_until(from: &Transaction<'_>) -> Result<Option<Timestamp>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT CAST(value AS BIGINT) FROM meta WHERE key = 'evaluated_until'")?;
    one(&mut statement, [], |row| Ok(row.get::<_, Millis>(0)?.0))
}

pub(super) fn investors(from: &Transaction<'_>) -> Result<Vec<InvestorItem>, StoreFault> {
    all(&mut *from.prepare_cached("SELECT id, item FROM investor ORDER BY id")?, [], |row| {
        from_json("the list item of the investor", &row.get::<_, String>(0)?, &row.get::<_, String>(1)?)
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
        Ok((row.get(0)?, row.get::<_, Millis>(1)?.0))
    })
}

fn accept_held(to: &Transaction<'_>, token: &TokenId) -> Result<usize, StoreFault> {
    let sql = "UPDATE feed SET held_since = 0 WHERE held_since IS NOT NULL AND token_no = (SELECT no FROM token WHERE id = ?1)";
    Ok(to.prepare_cached(sql)?.execute_counted([token.as_str()])?)
}

fn good_rules(from: &Transaction<'_>) -> Result<Option<String>, StoreFault> {
    let mut statement = from.prepare_cached("SELECT value FROM meta WHERE key = 'good_rules'")?;
    let mut rows = statement.query([])?;
    Ok(rows.next()?.map(|row| row.get(0)).transpose()?)
}

fn keep_good_rules(to: &Transaction<'_>, texts: &str) -> Result<(), StoreFault> {
    to.prepare_cached(
        "INSERT INTO meta (key, value) VALUES ('good_rules', ?1) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    )?
    .execute([texts])?;
    Ok(())
}
