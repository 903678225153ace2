//! Forgetting what is old: in small transactions, so that a commit never waits long, and never anything that is undelivered,
//! unresolved or current.

use rusqlite::{Transaction, params};

use super::{
    codec::{Millis, all, counted},
    error::Fault,
};
use crate::supply::Timestamp;

/// Rows of a log that one transaction takes out.
const BATCH_ROWS: i64 = 2000;

/// Alerts or notices that one transaction takes out, each with its deliveries and attempts.
const BATCH_ALERTS: i64 = 200;

/// What can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heap {
    Polls,
    Changes,
    Versions,
    Valuations,
    Credits,
    Alerts,
    LoneNotices,
    Silences,
    Groups,
}

impl Heap {
    pub(super) const ALL: [Heap; 9] = [
        Heap::Polls,
        Heap::Changes,
        Heap::Versions,
        Heap::Valuations,
        Heap::Credits,
        Heap::Alerts,
        Heap::LoneNotices,
        Heap::Silences,
        Heap::Groups,
    ];
}

/// Takes out one batch of what is older than `before`; answers how much, zero once nothing is left.
pub(super) fn batch(to: &Transaction<'_>, heap: Heap, before: Timestamp) -> Result<u64, Fault> {
    let rows = match heap {
        Heap::Polls => "DELETE FROM poll WHERE no IN (SELECT no FROM poll WHERE at < ?1 LIMIT ?2)",
        Heap::Changes => "DELETE FROM change WHERE no IN (SELECT no FROM change WHERE at < ?1 LIMIT ?2)",
        Heap::Versions => {
            "DELETE FROM record_version WHERE no IN (SELECT no FROM record_version WHERE replaced_at < ?1 LIMIT ?2)"
        }
        // The last known price of a token stays, however old: the next one is compared with it.
        Heap::Valuations => {
            "DELETE FROM valuation WHERE (token_no, day) IN (SELECT token_no, day FROM valuation v WHERE day < ?1
             AND EXISTS (SELECT 1 FROM valuation w WHERE w.token_no = v.token_no AND w.day > v.day) LIMIT ?2)"
        }
        Heap::Credits => "DELETE FROM credit_log WHERE no IN (SELECT no FROM credit_log WHERE at < ?1 LIMIT ?2)",
        Heap::Silences => "DELETE FROM silence WHERE id IN (SELECT id FROM silence WHERE ends_at < ?1 LIMIT ?2)",
        // One in which something still fires stays.
        Heap::Groups => {
            "DELETE FROM told_group WHERE (receiver, key) IN (SELECT receiver, key FROM told_group g WHERE told_at < ?1 AND NOT EXISTS (
                 SELECT 1 FROM group_alert m JOIN alert a ON a.id = m.alert
                 WHERE m.receiver = g.receiver AND m.key = g.key AND a.state = 'firing') LIMIT ?2)"
        }
        Heap::Alerts => return alerts(to, before),
        Heap::LoneNotices => return lone_notices(to, before),
    };
    Ok(counted(i64::try_from(to.prepare_cached(rows)?.execute(params![Millis(before), BATCH_ROWS])?).unwrap_or(i64::MAX)))
}

/// Alerts that ended or happened before, with all that was told of them. One with a delivery that is due, retrying or dead stays.
fn alerts(to: &Transaction<'_>, before: Timestamp) -> Result<u64, Fault> {
    let mut statement = to.prepare_cached(
        "SELECT id FROM alert WHERE state IN ('resolved', 'event') AND updated_at < ?1 AND NOT EXISTS (
             SELECT 1 FROM notice n JOIN delivery_notice d ON d.notice = n.id JOIN delivery v ON v.no = d.delivery_no
             WHERE n.alert = alert.id AND (v.state NOT IN ('delivered', 'dropped') OR v.updated_at >= ?1)
         ) AND NOT EXISTS (SELECT 1 FROM telling t WHERE t.alert = alert.id AND (t.state = 'waiting' OR t.since >= ?1)) LIMIT ?2",
    )?;
    let ids = all(&mut statement, params![Millis(before), BATCH_ALERTS], |row| Ok(row.get::<_, String>(0)?))?;
    for id in &ids {
        let mut statement = to.prepare_cached("SELECT id FROM notice WHERE alert = ?1")?;
        for notice in all(&mut statement, [id], |row| Ok(row.get::<_, String>(0)?))? {
            forget_notice(to, &notice)?;
        }
        for sql in
            ["DELETE FROM group_alert WHERE alert = ?1", "DELETE FROM ack WHERE alert = ?1", "DELETE FROM alert WHERE id = ?1"]
        {
            to.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(ids.len() as u64)
}

/// Notices whose alert is in no table: tests and digests.
fn lone_notices(to: &Transaction<'_>, before: Timestamp) -> Result<u64, Fault> {
    let mut statement = to.prepare_cached(
        "SELECT id FROM notice WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM alert a WHERE a.id = notice.alert) AND NOT EXISTS (
             SELECT 1 FROM delivery_notice d JOIN delivery v ON v.no = d.delivery_no
             WHERE d.notice = notice.id AND (v.state NOT IN ('delivered', 'dropped') OR v.updated_at >= ?1)
         ) AND NOT EXISTS (SELECT 1 FROM telling t WHERE t.notice = notice.id AND (t.state = 'waiting' OR t.since >= ?1)) LIMIT ?2",
    )?;
    let ids = all(&mut statement, params![Millis(before), BATCH_ALERTS], |row| Ok(row.get::<_, String>(0)?))?;
    for id in &ids {
        forget_notice(to, id)?;
    }
    Ok(ids.len() as u64)
}

/// Takes out a notice, and the deliveries that told nothing else; their attempts go with them.
fn forget_notice(to: &Transaction<'_>, id: &str) -> Result<(), Fault> {
    let mut statement = to.prepare_cached("SELECT delivery_no FROM delivery_notice WHERE notice = ?1")?;
    let deliveries = all(&mut statement, [id], |row| Ok(row.get::<_, i64>(0)?))?;
    to.prepare_cached("DELETE FROM delivery_notice WHERE notice = ?1")?.execute([id])?;
    for delivery in deliveries {
        to.prepare_cached(
            "DELETE FROM delivery WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM delivery_notice d WHERE d.delivery_no = ?1)",
        )?
        .execute([delivery])?;
    }
    to.prepare_cached("DELETE FROM notice WHERE id = ?1")?.execute([id])?;
    Ok(())
}
