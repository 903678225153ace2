//! What a judgement comes to: alerts and notices whose episodes are not numbered yet, and the verdict they become.

use std::{cmp::Ordering, collections::BTreeMap};

use chrono::TimeDelta;

use crate::{
    alert::{Alert, AlertBody, Notice, NoticeKind, alert_id, notice_id},
    supply::{ReceiverName, Record, RuleId, Timestamp},
};

/// What a judgement comes to, before episodes are numbered.
#[derive(Clone, Debug, Default)]
#[must_use = "a draft becomes a verdict by `number`"]
pub struct Draft {
    pub(super) alerts: Vec<Sketch>,
    pub(super) tells: Vec<Tell>,
    pub(super) rule_matches: BTreeMap<RuleId, Timestamp>,
    pub(super) template_errors: BTreeMap<RuleId, String>,
    pub(super) left_out: u32,
}

/// What is to be written and told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Alerts that are new or moved on, whole.
    pub alerts: Vec<Alert>,
    /// What is to be told, the nearest date first.
    pub notices: Vec<Notice>,
    /// Rules that held for something, with the time.
    pub rule_matches: Vec<(RuleId, Timestamp)>,
    /// Rules with a template that failed, with the first error of each; [`crate::trouble::template_failed`] makes it known.
    pub template_errors: Vec<(RuleId, String)>,
    /// Notices that were left out by a rule's `limit`.
    pub left_out: u32,
}

/// An alert that is new or moved on.
#[derive(Clone, Debug)]
pub(super) struct Sketch {
    pub(super) alert: Alert,
    /// Its episode is not known yet.
    pub(super) is_opening: bool,
}

/// Something to tell of an alert of the same draft.
#[derive(Clone, Debug)]
pub(super) struct Tell {
    pub(super) alert: usize,
    pub(super) kind: NoticeKind,
    pub(super) transition: String,
    pub(super) receivers: Vec<ReceiverName>,
    pub(super) body: AlertBody,
    pub(super) urgency: Urgency,
}

/// What is told first, and kept where `limit` leaves some out: the nearest date, then the greatest amount.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Urgency {
    /// Between now and the record's time; the greatest for what has none.
    pub(super) distance: TimeDelta,
    /// USD; tokens where no value is known.
    pub(super) size: f64,
}

impl Urgency {
    pub(super) fn of(record: Option<&Record>, now: Timestamp) -> Self {
        let distance = match record.and_then(Record::interval) {
            None => TimeDelta::MAX,
            Some(interval) if now < interval.start => interval.start - now,
            Some(interval) if now < interval.end => TimeDelta::zero(),
            Some(interval) => now - interval.end,
        };
        Self { distance, size: record.and_then(size_of).unwrap_or_default() }
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        self.distance.cmp(&other.distance).then_with(|| other.size.total_cmp(&self.size))
    }
}

fn size_of(record: &Record) -> Option<f64> {
    match record {
        Record::Unlock(event) => event.cliff_value().or(event.cliff_amount()),
        Record::Burn(burn) => burn.value.copied().or(burn.amount.copied()),
        Record::Buyback(buyback) => buyback.value.copied().or(buyback.token_amount.copied()),
        Record::Emission(emission) => emission.unlock_value.copied().or(emission.unlock_amount.copied()),
        Record::Allocation(_) | Record::Funding(_) => None,
    }
}

impl Draft {
    /// The alerts that this draft opens, by rule and subject: the store knows the latest episode of each.
    #[must_use]
    pub fn openings(&self) -> Vec<(RuleId, String)> {
        self.alerts
            .iter()
            .filter(|sketch| sketch.is_opening)
            .map(|sketch| (sketch.alert.rule.clone(), sketch.alert.subject.clone()))
            .collect()
    }

    /// This draft and another, as one: `trouble` and `evaluate` of one cycle go into one transaction.
    pub fn join(mut self, other: Draft) -> Draft {
        let offset = self.alerts.len();
        self.alerts.extend(other.alerts);
        self.tells.extend(other.tells.into_iter().map(|tell| Tell { alert: tell.alert + offset, ..tell }));
        self.rule_matches.extend(other.rule_matches);
        for (rule, error) in other.template_errors {
            self.template_errors.entry(rule).or_insert(error);
        }
        self.left_out += other.left_out;
        self
    }

    /// Numbers what it opens, given the latest episode of each of [`openings`](Self::openings), in that order; zero (and whatever
    /// is missing at the end) where there was none.
    #[must_use]
    pub fn number(self, latest: &[u32]) -> Verdict {
        let mut latest = latest.iter();
        let mut alerts = self.alerts;
        for sketch in alerts.iter_mut().filter(|sketch| sketch.is_opening) {
            let alert = &mut sketch.alert;
            alert.episode = latest.next().copied().unwrap_or(0).saturating_add(1);
            alert.id = alert_id(&alert.rule, &alert.subject, alert.episode);
        }
        let mut tells = self.tells;
        tells.sort_by(|a, b| {
            let key =
                |tell: &Tell| alerts.get(tell.alert).map(|sketch| (sketch.alert.rule.clone(), sketch.alert.subject.clone()));
            a.urgency.cmp(&b.urgency).then_with(|| key(a).cmp(&key(b)))
        });
        let notices = tells
            .into_iter()
            .filter_map(|tell| {
                let alert = &alerts.get(tell.alert)?.alert;
                Some(Notice {
                    id: notice_id(&alert.id, &tell.transition),
                    alert: alert.id.clone(),
                    kind: tell.kind,
                    at: alert.updated_at,
                    receivers: tell.receivers,
                    body: AlertBody { id: alert.id.clone(), ..tell.body },
                })
            })
            .collect();
        let mut alerts: Vec<_> = alerts.into_iter().map(|sketch| sketch.alert).collect();
        alerts.sort_by(|a, b| (&a.rule, &a.subject, a.episode).cmp(&(&b.rule, &b.subject, b.episode)));
        Verdict {
            alerts,
            notices,
            rule_matches: self.rule_matches.into_iter().collect(),
            template_errors: self.template_errors.into_iter().collect(),
            left_out: self.left_out,
        }
    }

    /// Adds an alert with what is told of it; the receivers count as told where that is the alert's begin or a reminder.
    pub(crate) fn add(&mut self, mut alert: Alert, is_opening: bool, tell: Option<Telling>) {
        if let Some(Telling { kind, transition, receivers, body, is_resolution }) = tell {
            if !is_resolution {
                remember(&mut alert.told, &receivers);
            }
            let urgency = Urgency { distance: TimeDelta::MAX, size: 0.0 };
            self.tells.push(Tell { alert: self.alerts.len(), kind, transition, receivers, body, urgency });
        }
        self.alerts.push(Sketch { alert, is_opening });
    }

    /// Notes that a rule held.
    pub(crate) fn matched(&mut self, rule: &RuleId, now: Timestamp) {
        if !self.rule_matches.contains_key(rule) {
            self.rule_matches.insert(rule.clone(), now);
        }
    }

    /// Notes that a template of a rule failed; the first error of each rule is kept.
    pub(crate) fn template_failed(&mut self, rule: &RuleId, error: Option<String>) {
        if let Some(error) = error {
            self.template_errors.entry(rule.clone()).or_insert(error);
        }
    }
}

/// What is told of an alert, as [`crate::trouble`] hands it to a draft.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    pub kind: NoticeKind,
    pub transition: String,
    pub receivers: Vec<ReceiverName>,
    pub body: AlertBody,
    pub is_resolution: bool,
}

/// Adds to those who were told.
pub(super) fn remember(told: &mut Vec<ReceiverName>, receivers: &[ReceiverName]) {
    for receiver in receivers {
        if !told.contains(receiver) {
            told.push(receiver.clone());
        }
    }
}
