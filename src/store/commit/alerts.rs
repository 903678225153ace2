//! Changes, alerts, and notifications. Each notification becomes one delivery or one pending row per receiver.

use rusqlite::params;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::{CommitWriter, NotificationTarget};
use crate::codec::{Millis, json, millis, one_of};
use crate::error::StoreFault;
use crate::event_log::{NewEvent, log_event, log_notification, log_transition};
use crate::sql::{PendingQuery, row_of};
use crate::{pending, series};
use model::{
    Alert, AlertBody, Change, CommitResult, DeliveryState, EventType, Interval, Labels, Notification, NotificationRole,
    ReceiverName, Record, RecordKey, Resolution, Resource, Timestamp, text::fingerprint,
};

pub(crate) const DELIVERY_NOTIFICATION_COLUMNS: [&str; 5] = ["delivery_no", "ordinal", "notification", "receiver", "role"];

impl<'a> CommitWriter<'a> {
    /// Writes changes and returns how many were written. Skips a change that a commit of the same instant already
    /// wrote.
    pub(super) fn changes(&mut self, changes: &[Change]) -> Result<u32, StoreFault> {
        let queried: Vec<PendingQuery<'_>> = changes.iter().map(|change| self.change(change)).collect::<Result<_, _>>()?;
        let mut written = 0;
        for (change, queried) in changes.iter().zip(queried) {
            let Some(number) = one_of(queried.rows()?, |row| Ok(row.get::<i64>(0)?))? else { continue };
            written += 1;
            let event = NewEvent::of(EventType::Change, number.to_string());
            log_event(self.to, self.at, &NewEvent { token: change.token.as_ref(), ..event })?;
        }
        Ok(written)
    }

    /// Inserts a change. Returns its number if it is new.
    fn change(&mut self, change: &Change) -> Result<PendingQuery<'a>, StoreFault> {
        let token = self.token_no(change.token.as_ref())?;
        let resource = change.resource.map(Resource::as_str);
        let key = change.key.as_ref().map(RecordKey::as_str);
        let body = json("a change", change)?;
        let side = |record: &Option<Record>| record.as_ref().map(|record| json("the record of a change", record)).transpose();
        let (old, new) = (side(&change.old)?, side(&change.new)?);
        let mut hasher = Xxh3Default::new();
        hasher.update(&self.at.timestamp_millis().to_be_bytes());
        hasher.update(&token.unwrap_or(0).to_be_bytes());
        for part in [resource, key, Some(body.as_str()), old.as_deref(), new.as_deref()] {
            let part = part.unwrap_or_default();
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        let mut statement = self.to.prepare_cached(
            "INSERT INTO change (at, token_no, resource, kind, key, body, old_record, new_record, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (digest) DO NOTHING
                 RETURNING no",
        )?;
        Ok(statement.send_query(params![
            Millis(self.at),
            token,
            resource,
            change.kind.as_str(),
            key,
            body,
            old,
            new,
            hasher.digest128().to_be_bytes().as_slice(),
        ])?)
    }

    /// Writes an alert. A new one gets the number of its first event, which it keeps.
    pub(crate) fn alert(&mut self, alert: &Alert) -> Result<(), StoreFault> {
        let token = self.token_no(alert.token.as_ref())?;
        log_transition(self.to, self.at, alert)?;
        let columns = AlertColumns {
            labels: alert.labels.clone(),
            former_labels: alert.former_labels.clone(),
            annotations: alert.annotations.clone(),
            notified: alert.notified.clone(),
            leads: alert.leads.clone(),
            members: alert.members.clone(),
            due: alert.due,
            text_at: alert.text_at,
        };
        self.to
            .prepare_cached(
                "INSERT INTO alert (id, rule, name, subject, episode, state, resolution, token_no, resource, key, level, active_at,
                 starts_at, ends_at, false_since, recheck_at, updated_at, body, number)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                     (SELECT coalesce(max(seq), 0) FROM event_log))
                 ON CONFLICT (id) DO UPDATE SET rule = excluded.rule, name = excluded.name, subject = excluded.subject,
                 episode = excluded.episode, state = excluded.state, resolution = excluded.resolution, token_no = excluded.token_no,
                 resource = excluded.resource, key = excluded.key, level = excluded.level, active_at = excluded.active_at,
                 starts_at = excluded.starts_at, ends_at = excluded.ends_at, false_since = excluded.false_since,
                 recheck_at = excluded.recheck_at, updated_at = excluded.updated_at, body = excluded.body",
            )?
            .execute(params![
                alert.id.as_str(),
                alert.rule.as_str(),
                alert.name,
                alert.subject,
                alert.episode,
                alert.state.as_str(),
                alert.resolution.map(Resolution::as_str),
                token,
                alert.resource.map(Resource::as_str),
                alert.key.as_ref().map(RecordKey::as_str),
                alert.level,
                Millis(alert.active_at),
                millis(alert.starts_at),
                millis(alert.ends_at),
                millis(alert.false_since),
                millis(alert.recheck_at),
                Millis(alert.updated_at),
                json("an alert", &columns)?,
            ])?;
        Ok(())
    }

    /// Stores notifications as due deliveries or as pending. Skips notifications whose id exists.
    pub(crate) fn notifications<'n>(
        &self,
        notifications: impl IntoIterator<Item = &'n Notification>,
        saved: &mut CommitResult,
    ) -> Result<(), StoreFault> {
        let queried = notifications.into_iter().map(|notification| Ok((notification, self.notification(notification)?)));
        let mut deliveries = Vec::new();
        for (notification, written) in queried.collect::<Result<Vec<_>, StoreFault>>()? {
            if written.rows()?.next()?.is_none() {
                saved.known_notifications += 1;
                continue;
            }
            if !notification.receivers.is_empty() {
                log_notification(self.to, self.at, notification)?;
            }
            for (index, receiver) in notification.receivers.iter().enumerate() {
                if notification.receivers.iter().take(index).any(|earlier| earlier == receiver) {
                    continue;
                }
                match self.target {
                    NotificationTarget::Outbox => {
                        deliveries.push((notification, receiver, self.delivery(notification, receiver)?));
                    }
                    NotificationTarget::Dispatcher => pending::add_pending(self.to, notification, receiver, self.waits_from)?,
                }
                saved.deliveries += 1;
            }
        }
        let rows = deliveries.into_iter().map(|(notification, receiver, number)| {
            let number: i64 = number.row(|row| row.get(0))?;
            let role = NotificationRole::Notified.as_str();
            row_of(params![number, 0_i64, notification.id.as_str(), receiver.as_str(), role])
        });
        let rows = rows.collect::<Result<_, _>>()?;
        Ok(self.to.insert_many("delivery_notification", &DELIVERY_NOTIFICATION_COLUMNS, rows)?)
    }

    /// Inserts a notification. Returns a row if it is new.
    fn notification(&self, notification: &Notification) -> Result<PendingQuery<'a>, StoreFault> {
        let body = AlertBody { series: Vec::new(), ..notification.body.clone() };
        let mut statement = self.to.prepare_cached(
            "INSERT INTO notification (id, alert, kind, at, receivers, body, series) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO NOTHING RETURNING 1",
        )?;
        Ok(statement.send_query(params![
            notification.id.as_str(),
            notification.alert.as_str(),
            notification.kind.as_str(),
            Millis(notification.at),
            json("the receivers of a notification", &notification.receivers)?,
            json("a notification", &body)?,
            series::pack(&notification.body.series),
        ])?)
    }

    /// Inserts the delivery of one notification. Returns its number.
    fn delivery(&self, notification: &Notification, receiver: &ReceiverName) -> Result<PendingQuery<'a>, StoreFault> {
        let mut statement = self.to.prepare_cached(
            "INSERT INTO delivery (webhook_id, receiver, state, attempts, tries, created_at, due_at, next_attempt_at, updated_at)
             VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?4, ?4) RETURNING no",
        )?;
        Ok(statement.send_query(params![
            webhook_id([notification.id.as_str()], receiver),
            receiver.as_str(),
            DeliveryState::Due.as_str(),
            Millis(self.at)
        ])?)
    }
}

/// The JSON column of an alert: the fields without their own column.
#[derive(Serialize, Deserialize)]
pub(crate) struct AlertColumns {
    pub(crate) labels: Labels,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) former_labels: Vec<Labels>,
    pub(crate) annotations: std::collections::BTreeMap<String, String>,
    pub(crate) notified: Vec<ReceiverName>,
    pub(crate) leads: Vec<String>,
    #[serde(default)]
    pub(crate) members: Vec<String>,
    pub(crate) due: Option<Interval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text_at: Option<Timestamp>,
}

/// Returns the webhook id, which stays the same for every attempt. It is derived from the notifications, so the same
/// notifications never get two ids.
pub(crate) fn webhook_id<'n>(notifications: impl IntoIterator<Item = &'n str>, receiver: &'n ReceiverName) -> String {
    format!("msg_{}", fingerprint(notifications.into_iter().chain([receiver.as_str()]), 14))
}
