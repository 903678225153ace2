//! The subject of an alert on a record.

use super::body::{plain_body, token_body};
use super::lifecycle::AlertSubject;
use super::{TokenFacts, series};
use model::{
    Alert, AlertBody, AlertStatus, Change, RateChangeBody, Record, ReferencePrice, Resource, SourceBody, Timestamp, Tracked,
    phrase,
};
use rules::{CorrectionScope, Lead, ScheduleScope, Scope};

/// A record of a token, with the change or the lead time that applies.
#[derive(Clone, Copy)]
pub(super) struct RecordSubject<'a> {
    pub facts: &'a TokenFacts<'a>,
    pub record: Option<&'a Tracked>,
    pub change: Option<&'a Change>,
    pub lead: Option<&'a Lead>,
}

impl<'a> RecordSubject<'a> {
    pub fn of(facts: &'a TokenFacts<'a>, record: Option<&'a Tracked>) -> Self {
        Self { facts, record, change: None, lead: None }
    }

    fn record(&self) -> Option<&'a Record> {
        self.record.map(|tracked| &tracked.record)
    }

    /// Returns the change of the daily release. `None` if the record is not an end of linear unlocks.
    fn rate_change(&self, now: Timestamp) -> Option<RateChangeBody> {
        let end = self.record()?.unlock().filter(|event| event.is_linear_end())?;
        Some(RateChangeBody::of(self.scope(now).schedule.rate_step_of(end), end.reference_price.copied()))
    }

    /// Returns the origin of the facts, from the record if it has one, else from the token.
    fn source(&self, resource: Option<Resource>) -> SourceBody {
        let item = &self.facts.token.item;
        let mut source = SourceBody {
            polled_at: resource.and_then(|resource| self.facts.polled_at(resource)),
            listed_method: item.listed_method.as_str().map(str::to_owned),
            data_source: None,
            latest_update_date: item.last_updated_date.copied(),
        };
        match self.record() {
            Some(Record::Unlock(event)) => {
                source.listed_method = event.listed_method.as_str().map(str::to_owned).or(source.listed_method);
                source.data_source = event.data_source.as_str().map(str::to_owned);
                source.latest_update_date = event.latest_update_date.copied().or(source.latest_update_date);
            }
            Some(Record::Emission(emission)) => {
                source.listed_method = emission.listed_method.as_str().map(str::to_owned).or(source.listed_method);
            }
            _ => {}
        }
        source
    }
}

impl AlertSubject for RecordSubject<'_> {
    fn scope(&self, now: Timestamp) -> Scope<'_> {
        Scope {
            token: Some(self.facts.token),
            record: self.record,
            schedule: ScheduleScope {
                records: self.facts.records,
                linear: self.facts.linear,
                corrections: Some(CorrectionScope {
                    earlier: self.facts.corrections,
                    // A rule on changes compares its change with those before it.
                    current: if self.change.is_none() { self.facts.changes } else { &[] },
                }),
            },
            change: self.change,
            lead: self.lead,
            ..Scope::at(now)
        }
    }

    fn body(&self, alert: &Alert, status: AlertStatus, reason: &str, now: Timestamp) -> AlertBody {
        let interval = self.record().map_or(alert.due, Record::interval);
        let (token, rate_change) = (self.facts.token, self.rate_change(now));
        AlertBody {
            token: Some(token_body(token)),
            resource: alert.resource,
            record: self.record().and_then(|record| serde_json::to_value(record).ok()),
            change: self.change.cloned(),
            days_until: interval.map(|interval| interval.days_until(now)),
            when: interval.map(|interval| phrase::when_at(&interval, now)),
            lead: self.lead.map(|lead| lead.text.clone()),
            event: self.record.map(|tracked| format!("{}/{}/{}", tracked.record.resource().as_str(), token.id, tracked.key)),
            rate_change,
            series: self
                .record
                .filter(|_| rate_change.is_none())
                .map(|tracked| series::around(tracked, self.facts.records))
                .unwrap_or_default(),
            source: self.source(alert.resource),
            ..plain_body(alert, status, reason, now)
        }
    }

    /// Only the values of unlocks are at market prices. Burns and buybacks are valued at the prices of their days.
    fn price_at(&self) -> Option<Timestamp> {
        let event = self.record()?.unlock()?;
        let linear = || event.linear_unlocks.get().and_then(|linear| linear.linear_value.copied());
        let rate = || event.reference_price.copied().filter(|_| event.is_linear_end());
        event.cliff_value().or_else(linear).or_else(|| event.value_to_market_cap()).or_else(rate)?;
        ReferencePrice::latest([event])?.at
    }

    fn for_resolution(self) -> Self {
        Self { change: None, lead: None, ..self }
    }
}
