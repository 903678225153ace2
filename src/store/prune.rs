//! Forgetting what is old: in small transactions, so that a commit never waits long, and never anything that is undelivered,
//! unresolved or current.

use std::time::Duration;

use chrono::TimeDelta;
use rusqlite::params;

use super::codec::{Millis, all, counted};
use super::error::StoreFault;
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{PruneResult, Timestamp};

impl Store {
    /// Forgets what is older than `retention` (rows of the poll log: than `poll_log_retention`), in small transactions between which
    /// commits go on. What is undelivered, unresolved or current stays. Fails where a batch failed; those before it are done.
    pub async fn prune(
        &self,
        now: Timestamp,
        retention: Duration,
        poll_log_retention: Duration,
    ) -> Result<PruneResult, StoreError> {
        let ago = |span: Duration| TimeDelta::from_std(span).ok().and_then(|span| now.checked_sub_signed(span));
        let mut pruned = PruneResult::default();
        for target in PruneTarget::ALL {
            let span = if target == PruneTarget::Polls { poll_log_retention } else { retention };
            // A span that reaches back before all time keeps everything.
            let Some(before) = ago(span) else { continue };
            let taken = match target {
                PruneTarget::Polls => &mut pruned.polls,
                PruneTarget::Changes => &mut pruned.changes,
                PruneTarget::Versions | PruneTarget::Schedules => &mut pruned.versions,
                PruneTarget::Silences | PruneTarget::Groups => &mut pruned.logs,
                PruneTarget::Alerts => &mut pruned.alerts,
                PruneTarget::LoneNotifications => &mut pruned.notifications,
            };
            loop {
                match self.write("forget what is old", move |to| batch(to, target, before)).await? {
                    0 => break,
                    rows => *taken += rows,
                }
            }
        }
        Ok(pruned)
    }
}

/// Rows of a log that one transaction takes out.
const BATCH_ROWS: i64 = 2000;

/// Rows that one transaction takes out, each of which holds some or all of a schedule.
const BATCH_SCHEDULES: i64 = 500;

/// Alerts or notifications that one transaction takes out, each with its deliveries and attempts.
const BATCH_ALERTS: i64 = 200;

/// What can be forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PruneTarget {
    Polls,
    Changes,
    Versions,
    Schedules,
    Alerts,
    LoneNotifications,
    Silences,
    Groups,
}

impl PruneTarget {
    const ALL: [PruneTarget; 8] = [
        PruneTarget::Polls,
        PruneTarget::Changes,
        PruneTarget::Versions,
        PruneTarget::Schedules,
        PruneTarget::Alerts,
        PruneTarget::LoneNotifications,
        PruneTarget::Silences,
        PruneTarget::Groups,
    ];
}

/// Takes out one batch of what is older than `before`; answers how much, zero once nothing is left.
fn batch(to: &Transaction<'_>, target: PruneTarget, before: Timestamp) -> Result<u64, StoreFault> {
    let rows = match target {
        PruneTarget::Polls => "DELETE FROM poll WHERE no IN (SELECT no FROM poll WHERE at < ?1 LIMIT ?2)",
        PruneTarget::Changes => "DELETE FROM change WHERE no IN (SELECT no FROM change WHERE at < ?1 LIMIT ?2)",
        PruneTarget::Versions => {
            "DELETE FROM record_version WHERE no IN (SELECT no FROM record_version WHERE replaced_at < ?1 LIMIT ?2)"
        }
        PruneTarget::Silences => "DELETE FROM silence WHERE id IN (SELECT id FROM silence WHERE ends_at < ?1 LIMIT ?2)",
        // One in which something still fires stays.
        PruneTarget::Groups => {
            "DELETE FROM told_group WHERE (receiver, key) IN (SELECT receiver, key FROM told_group g WHERE told_at < ?1 AND NOT EXISTS (
                 SELECT 1 FROM group_alert m JOIN alert a ON a.id = m.alert
                 WHERE m.receiver = g.receiver AND m.key = g.key AND a.state = 'firing') LIMIT ?2)"
        }
        PruneTarget::Schedules => return schedules(to, before),
        PruneTarget::Alerts => return alerts(to, before),
        PruneTarget::LoneNotifications => return lone_notifications(to, before),
    };
    Ok(counted(i64::try_from(to.prepare_cached(rows)?.execute_counted(params![Millis(before), BATCH_ROWS])?).unwrap_or(i64::MAX)))
}

/// Events of schedules that were replaced before.
fn schedules(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let mut statement = to.prepare_cached("SELECT no, versions FROM schedule_version WHERE replaced_at < ?1 LIMIT ?2")?;
    let rows = all(&mut statement, params![Millis(before), BATCH_SCHEDULES], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    let mut taken = 0;
    for (no, versions) in rows {
        to.prepare_cached("DELETE FROM schedule_version WHERE no = ?1")?.execute([no])?;
        // A row is never of none; what says so goes all the same, and the work goes on.
        taken += counted(versions).max(1);
    }
    Ok(taken)
}

/// Alerts that ended or happened before, with all that was told of them. One with a delivery that is due, retrying or dead stays.
fn alerts(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
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
            forget_notification(to, &notice)?;
        }
        for sql in
            ["DELETE FROM group_alert WHERE alert = ?1", "DELETE FROM ack WHERE alert = ?1", "DELETE FROM alert WHERE id = ?1"]
        {
            to.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(ids.len() as u64)
}

/// Notifications whose alert is in no table: tests and digests.
fn lone_notifications(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let mut statement = to.prepare_cached(
        "SELECT id FROM notice WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM alert a WHERE a.id = notice.alert) AND NOT EXISTS (
             SELECT 1 FROM delivery_notice d JOIN delivery v ON v.no = d.delivery_no
             WHERE d.notice = notice.id AND (v.state NOT IN ('delivered', 'dropped') OR v.updated_at >= ?1)
         ) AND NOT EXISTS (SELECT 1 FROM telling t WHERE t.notice = notice.id AND (t.state = 'waiting' OR t.since >= ?1)) LIMIT ?2",
    )?;
    let ids = all(&mut statement, params![Millis(before), BATCH_ALERTS], |row| Ok(row.get::<_, String>(0)?))?;
    for id in &ids {
        forget_notification(to, id)?;
    }
    Ok(ids.len() as u64)
}

/// Takes out a notification, and the deliveries that told nothing else; their attempts go with them.
fn forget_notification(to: &Transaction<'_>, id: &str) -> Result<(), StoreFault> {
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
