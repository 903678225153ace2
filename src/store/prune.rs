//! Deletes old rows in small transactions, so that commits do not wait long. Never deletes anything undelivered,
//! unresolved, or current.

use std::time::Duration;

use chrono::TimeDelta;
use rusqlite::params;

use super::audit::MIN_AUDIT_RETENTION;
use super::codec::{Millis, all, counted, one};
use super::error::StoreFault;
use super::outbox::{count_deleted, delete_old_counts};
use super::sql::Transaction;
use super::{Store, StoreError};
use model::{NotificationKind, PruneResult, Timestamp};

impl Store {
    /// Deletes rows older than `retention`; the poll log uses `poll_log_retention`. Undelivered, unresolved, and
    /// current data stays.
    ///
    /// # Errors
    ///
    /// Fails if a batch fails; earlier batches stay deleted.
    pub async fn prune(
        &self,
        now: Timestamp,
        retention: Duration,
        poll_log_retention: Duration,
    ) -> Result<PruneResult, StoreError> {
        let ago = |span: Duration| TimeDelta::from_std(span).ok().and_then(|span| now.checked_sub_signed(span));
        let mut pruned = PruneResult::default();
        for target in PruneTarget::ALL {
            let span = match target {
                PruneTarget::Polls => poll_log_retention,
                PruneTarget::Audit => retention.max(MIN_AUDIT_RETENTION.to_std().unwrap_or_default()),
                _ => retention,
            };
            // A retention that exceeds the representable time keeps everything.
            let Some(before) = ago(span) else { continue };
            let taken = match target {
                PruneTarget::Polls => &mut pruned.polls,
                PruneTarget::Changes => &mut pruned.changes,
                PruneTarget::Events => &mut pruned.events,
                PruneTarget::Versions | PruneTarget::Schedules => &mut pruned.versions,
                PruneTarget::Silences | PruneTarget::Groups | PruneTarget::DeletedDeliveries | PruneTarget::Audit => {
                    &mut pruned.logs
                }
                PruneTarget::Alerts => &mut pruned.alerts,
                PruneTarget::OrphanNotifications => &mut pruned.notifications,
            };
            loop {
                match self.write("delete old rows", move |to| batch(to, target, before)).await? {
                    0 => break,
                    rows => *taken += rows,
                }
            }
        }
        Ok(pruned)
    }
}

/// The number of log rows deleted per transaction.
const BATCH_ROWS: i64 = 2000;

/// The number of schedule versions deleted per transaction. Their rows are large.
const BATCH_SCHEDULES: i64 = 500;

/// The number of alerts or notifications deleted per transaction, each with its deliveries and attempts.
const BATCH_ALERTS: i64 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PruneTarget {
    /// Before the records that the events are about.
    Events,
    Polls,
    Changes,
    Versions,
    Schedules,
    Alerts,
    OrphanNotifications,
    Silences,
    Groups,
    DeletedDeliveries,
    /// Actions of users.
    Audit,
}

impl PruneTarget {
    const ALL: [PruneTarget; 11] = [
        PruneTarget::Events,
        PruneTarget::Polls,
        PruneTarget::Changes,
        PruneTarget::Versions,
        PruneTarget::Schedules,
        PruneTarget::Alerts,
        PruneTarget::OrphanNotifications,
        PruneTarget::Silences,
        PruneTarget::Groups,
        PruneTarget::DeletedDeliveries,
        PruneTarget::Audit,
    ];
}

/// Deletes one batch of rows older than `before`. Returns the number deleted, 0 if none is left.
fn batch(to: &Transaction<'_>, target: PruneTarget, before: Timestamp) -> Result<u64, StoreFault> {
    let rows = match target {
        PruneTarget::Polls => "DELETE FROM poll WHERE no IN (SELECT no FROM poll WHERE at < ?1 LIMIT ?2)",
        PruneTarget::Changes => "DELETE FROM change WHERE no IN (SELECT no FROM change WHERE at < ?1 LIMIT ?2)",
        PruneTarget::Versions => {
            "DELETE FROM record_version WHERE no IN (SELECT no FROM record_version WHERE replaced_at < ?1 LIMIT ?2)"
        }
        PruneTarget::Silences => "DELETE FROM silence WHERE id IN (SELECT id FROM silence WHERE ends_at < ?1 LIMIT ?2)",
        PruneTarget::Audit => "DELETE FROM audit WHERE no IN (SELECT no FROM audit WHERE at < ?1 LIMIT ?2)",
        // Keep groups that contain a firing alert.
        PruneTarget::Groups => {
            "DELETE FROM notification_group WHERE (receiver, key) IN (SELECT receiver, key FROM notification_group g WHERE notified_at < ?1 AND NOT EXISTS (
                 SELECT 1 FROM group_alert m JOIN alert a ON a.id = m.alert
                 WHERE m.receiver = g.receiver AND m.key = g.key AND a.state = 'firing') LIMIT ?2)"
        }
        PruneTarget::Events => return events(to, before),
        PruneTarget::DeletedDeliveries => return Ok(delete_old_counts(to, before)? as u64),
        PruneTarget::Schedules => return schedules(to, before),
        PruneTarget::Alerts => return alerts(to, before),
        PruneTarget::OrphanNotifications => return orphan_notifications(to, before),
    };
    Ok(counted(i64::try_from(to.prepare_cached(rows)?.execute_counted(params![Millis(before), BATCH_ROWS])?).unwrap_or(i64::MAX)))
}

/// Deletes the oldest events, up to the first one that is not older than `before`, so that no gap appears. The newest event stays, because
/// the next number follows from it.
fn events(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let sql = "SELECT seq, at FROM event_log WHERE seq < (SELECT max(seq) FROM event_log) ORDER BY seq LIMIT ?1";
    let oldest = all(&mut *to.prepare_cached(sql)?, [BATCH_ROWS], |row| Ok((row.get::<i64>(0)?, row.get::<Millis>(1)?.0)))?;
    let Some((until, _)) = oldest.into_iter().take_while(|(_, at)| *at < before).last() else { return Ok(0) };
    let deleted = to.prepare_cached("DELETE FROM event_log WHERE seq <= ?1")?.execute_counted([until])?;
    Ok(counted(i64::try_from(deleted).unwrap_or(i64::MAX)))
}

/// Deletes old schedule versions. Returns the number of event versions.
fn schedules(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let mut statement = to.prepare_cached("SELECT no, versions FROM schedule_version WHERE replaced_at < ?1 LIMIT ?2")?;
    let rows = all(&mut statement, params![Millis(before), BATCH_SCHEDULES], |row| Ok((row.get::<i64>(0)?, row.get(1)?)))?;
    let mut taken = 0;
    for (no, versions) in rows {
        to.prepare_cached("DELETE FROM schedule_version WHERE no = ?1")?.execute([no])?;
        // Count at least 1, so that an empty row does not end the loop.
        taken += counted(versions).max(1);
    }
    Ok(taken)
}

/// Deletes old resolved alerts and events, with their notifications. Keeps alerts with a pending or dead delivery.
fn alerts(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let mut statement = to.prepare_cached(
        "SELECT id FROM alert WHERE state IN ('resolved', 'event') AND updated_at < ?1 AND NOT EXISTS (
             SELECT 1 FROM notification n JOIN delivery_notification d ON d.notification = n.id JOIN delivery v ON v.no = d.delivery_no
             WHERE n.alert = alert.id AND (v.state NOT IN ('delivered', 'dropped') OR v.updated_at >= ?1)
         ) AND NOT EXISTS (SELECT 1 FROM pending_notification t WHERE t.alert = alert.id AND (t.state = 'waiting' OR t.since >= ?1)) LIMIT ?2",
    )?;
    let ids = all(&mut statement, params![Millis(before), BATCH_ALERTS], |row| Ok(row.get::<String>(0)?))?;
    for id in &ids {
        let mut statement = to.prepare_cached("SELECT id FROM notification WHERE alert = ?1")?;
        for notice in all(&mut statement, [id], |row| Ok(row.get::<String>(0)?))? {
            delete_notification(to, &notice)?;
        }
        for sql in
            ["DELETE FROM group_alert WHERE alert = ?1", "DELETE FROM ack WHERE alert = ?1", "DELETE FROM alert WHERE id = ?1"]
        {
            to.prepare_cached(sql)?.execute([id])?;
        }
    }
    Ok(ids.len() as u64)
}

/// Deletes notifications without an alert, such as tests and digests.
fn orphan_notifications(to: &Transaction<'_>, before: Timestamp) -> Result<u64, StoreFault> {
    let mut statement = to.prepare_cached(
        "SELECT id FROM notification WHERE at < ?1 AND NOT EXISTS (SELECT 1 FROM alert a WHERE a.id = notification.alert) AND NOT EXISTS (
             SELECT 1 FROM delivery_notification d JOIN delivery v ON v.no = d.delivery_no
             WHERE d.notification = notification.id AND (v.state NOT IN ('delivered', 'dropped') OR v.updated_at >= ?1)
         ) AND NOT EXISTS (SELECT 1 FROM pending_notification t WHERE t.notification = notification.id AND (t.state = 'waiting' OR t.since >= ?1)) LIMIT ?2",
    )?;
    let ids = all(&mut statement, params![Millis(before), BATCH_ALERTS], |row| Ok(row.get::<String>(0)?))?;
    for id in &ids {
        delete_notification(to, id)?;
    }
    Ok(ids.len() as u64)
}

/// Deletes a notification, and the deliveries that contain no other notification, which are counted. Attempts are deleted by cascade.
fn delete_notification(to: &Transaction<'_>, id: &str) -> Result<(), StoreFault> {
    let kind =
        one(&mut *to.prepare_cached("SELECT kind FROM notification WHERE id = ?1")?, [id], |row| Ok(row.get::<String>(0)?))?;
    let is_test = kind.as_deref() == Some(NotificationKind::Test.as_str());
    let mut statement = to.prepare_cached("SELECT delivery_no FROM delivery_notification WHERE notification = ?1")?;
    let deliveries = all(&mut statement, [id], |row| Ok(row.get::<i64>(0)?))?;
    to.prepare_cached("DELETE FROM delivery_notification WHERE notification = ?1")?.execute([id])?;
    for delivery in deliveries {
        let mut statement = to.prepare_cached(
            "DELETE FROM delivery WHERE no = ?1 AND NOT EXISTS (SELECT 1 FROM delivery_notification d WHERE d.delivery_no = ?1)
             RETURNING receiver, created_at",
        )?;
        let deleted = one(&mut statement, [delivery], |row| Ok((row.get::<String>(0)?, row.get::<Millis>(1)?.0)))?;
        if let Some((receiver, created_at)) = deleted.filter(|_| !is_test) {
            count_deleted(to, &receiver, created_at)?;
        }
    }
    to.prepare_cached("DELETE FROM notification WHERE id = ?1")?.execute([id])?;
    Ok(())
}
