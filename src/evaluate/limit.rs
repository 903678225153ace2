//! A rule's `limit`: what one cycle tells of it, over all of its batches, and the one summary of what was left out.

use std::collections::BTreeMap;

use super::{
    Terms, blank,
    draft::{Draft, Sketch, Tell, Urgency, remember},
    iso, plain_body,
};
use crate::{
    alert::{AlertState, Labels, NoticeKind, alert_id},
    supply::{ReceiverName, RuleId, Timestamp},
};

use chrono::TimeDelta;

/// Tokens that a summary names.
const TOKENS_IN_SUMMARY: usize = 20;

/// What the rules with a `limit` told and left out so far in one cycle.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    rules: BTreeMap<RuleId, Count>,
}

#[derive(Clone, Debug, Default)]
struct Count {
    name: String,
    limit: u32,
    told: usize,
    left_out: u32,
    /// What all that was left out has in common.
    labels: Option<Labels>,
    receivers: Vec<ReceiverName>,
    tokens: Vec<String>,
}

impl Limits {
    /// Keeps what a rule tells within its `limit`: the most urgent stay, the others are recorded, told to nobody, and counted. Ends
    /// are always told.
    pub(super) fn keep(&mut self, terms: &Terms<'_>, draft: &mut Draft) {
        let Some(limit) = terms.limit else { return };
        let alerts = &draft.alerts;
        let is_counted = |tell: &Tell| {
            tell.kind != NoticeKind::Resolved && alerts.get(tell.alert).is_some_and(|sketch| sketch.alert.rule == *terms.id)
        };
        let (mut counted, others): (Vec<_>, Vec<_>) = std::mem::take(&mut draft.tells).into_iter().partition(is_counted);
        let subject = |tell: &Tell| alerts.get(tell.alert).map(|sketch| sketch.alert.subject.as_str());
        counted.sort_by(|a, b| a.urgency.cmp(&b.urgency).then_with(|| subject(a).cmp(&subject(b))));
        let count = self.rules.entry(terms.id.clone()).or_default();
        (count.name, count.limit) = (terms.name.to_owned(), limit);
        let room = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(count.told);
        let left_out = counted.split_off(room.min(counted.len()));
        count.told += counted.len();
        for tell in &left_out {
            count.add(tell);
        }
        draft.left_out = draft.left_out.saturating_add(u32::try_from(left_out.len()).unwrap_or(u32::MAX));
        draft.tells = others;
        draft.tells.extend(counted);
    }

    /// Ends the cycle of `now`: for each rule that left something out, one alert with the labels that all of it has in common, to all
    /// who would have been told.
    pub fn summaries(self, now: Timestamp) -> Draft {
        let mut draft = Draft::default();
        for (rule, count) in self.rules.into_iter().filter(|(_, count)| count.left_out > 0) {
            let subject = format!("limit/{rule}/{}", iso(now));
            let mut alert = blank(rule, &count.name, subject, AlertState::Event, now);
            let Count { name, limit, left_out, labels, mut receivers, mut tokens, .. } = count;
            alert.labels = labels.unwrap_or_default();
            alert.labels.insert("alertname".to_owned(), name.clone());
            let alerts = if left_out == 1 { "alert" } else { "alerts" };
            alert.annotations.insert(
                "summary".to_owned(),
                format!("{name}: {left_out} more {alerts} left out by limit = {limit}; see `cliffwatch alerts --rule {name}`"),
            );
            let more = if tokens.len() > TOKENS_IN_SUMMARY { ", …" } else { "" };
            tokens.truncate(TOKENS_IN_SUMMARY);
            if !tokens.is_empty() {
                alert.annotations.insert("description".to_owned(), format!("Left out: {}{more}.", tokens.join(", ")));
            }
            alert.starts_at = Some(now);
            alert.episode = 1;
            alert.id = alert_id(&alert.rule, &alert.subject, 1);
            remember(&mut alert.told, &receivers);
            let body = plain_body(&alert, "firing", "limit", now);
            draft.tells.push(Tell {
                alert: draft.alerts.len(),
                kind: NoticeKind::Event,
                transition: "event".to_owned(),
                receivers: std::mem::take(&mut receivers),
                body,
                urgency: Urgency { distance: TimeDelta::MAX, size: 0.0 },
            });
            draft.alerts.push(Sketch { alert, is_opening: false });
        }
        draft
    }
}

impl Count {
    fn add(&mut self, tell: &Tell) {
        let labels = &tell.body.labels;
        match &mut self.labels {
            None => self.labels = Some(labels.clone()),
            Some(common) => common.retain(|name, value| labels.get(name) == Some(value)),
        }
        self.left_out = self.left_out.saturating_add(1);
        remember(&mut self.receivers, &tell.receivers);
        if let Some(token) = &tell.body.token
            && self.tokens.len() <= TOKENS_IN_SUMMARY
            && !self.tokens.contains(&token.symbol)
        {
            self.tokens.push(token.symbol.clone());
        }
    }
}
