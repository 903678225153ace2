//! Reads the facts for an explanation and calls the engine, for `explain` and for the page of an alert.
//!
//! [`ExplainReader`] uses one value of the active config and one time. [`StatusReader`] reads the states of notifications.
//! [`engine::explain`] makes all decisions.

mod status;

use std::sync::Arc;

use crate::cycle::ActiveRules;
use engine::digest_schedule::DigestPlan;
use engine::explain::{self, CaseOrNothing, ExplainCase, ExplainContext, ExplainQuery, ExplainTarget, Explanation, MAX_CASES};
use engine::pipeline::DispatchPolicy;
use model::corrections::PastCorrection;
use model::{
    Alert, AlertFilter, ChangeFilter, ChangeKind, ChangeRow, FiringAlert, Resource, RuleId, SOURCE_TROUBLE, Timestamp, TokenId,
    TokenSnapshot, Watch,
};
use rules::aggregate::{AggregateCache, FlowEntries, Recheck};
use rules::{On, Rule};
pub use status::{StatusReader, StatusRecords};
use store::{Store, StoreError};

/// The maximum number of alerts to read for a rule and token.
const MAX_ALERTS: u32 = 5_000;
/// The maximum number of changes to read for a rule and token.
const MAX_CHANGES: u32 = 200;
/// The number of tokens read at a time to compute aggregates.
const BATCH: usize = 256;

#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    #[error("{0} is a rule on tokens: name a token or one of its events")]
    NoToken(String),
    #[error("the token {0} is not in the database")]
    Unknown(TokenId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug)]
pub struct ExplainReader {
    pub store: Store,
    pub watch: Watch,
    pub active: Arc<ActiveRules>,
    digests: Vec<DigestPlan>,
    pub statuses: StatusReader,
    firing: Vec<FiringAlert>,
    /// The time that the explanations refer to.
    pub now: Timestamp,
}

/// Returns the target that an alert is about.
pub fn target_of(alert: &Alert) -> ExplainTarget {
    ExplainTarget {
        token: alert.token.clone(),
        resource: alert.resource,
        key: alert.key.as_ref().map(ToString::to_string),
        day: None,
        group: alert.subject.strip_prefix("portfolio/").map(str::to_owned),
        alert: Some(alert.clone()),
    }
}

impl ExplainReader {
    /// Reads the facts that all explanations share.
    pub async fn read(
        store: Store,
        watch: Watch,
        active: Arc<ActiveRules>,
        policy: &DispatchPolicy,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let statuses = StatusReader::read(&store, active.routes.clone(), policy.max_per_hour.clone(), now).await?;
        // Only inhibit rules need them, and there may be thousands.
        let firing = if active.routes.inhibit_rules().is_empty() { Vec::new() } else { store.firing_labels().await? };
        Ok(Self { store, watch, active, digests: policy.digests.clone(), statuses, firing, now })
    }

    /// Explains one rule for a target: for its event, or for the next events of the token.
    pub async fn explanations(&self, rule: &Rule, target: &ExplainTarget) -> Result<Vec<Explanation>, ExplainError> {
        match rule.on {
            On::Portfolio => return self.of_groups(rule, target).await,
            On::Source => return self.of_incidents(rule, target).await,
            _ => {}
        }
        let Some(token) = &target.token else {
            return Err(ExplainError::NoToken(rule.name.clone()));
        };
        let Some(snapshot) = self.snapshot(token).await? else { return Err(ExplainError::Unknown(token.clone())) };
        let alerts = self.alerts(&rule.id, Some(token)).await?;
        let own: Vec<&Alert> = alerts.iter().collect();
        let cases = match rule.on {
            On::Record(resource) => {
                let mut cases = explain::record_cases(rule, &snapshot, resource, target, &own, self.now);
                cases.truncate(MAX_CASES);
                if cases.is_empty() {
                    if let Some(absent) = explain::absent_record(rule, &snapshot, resource, target, &own) {
                        return Ok(vec![absent]);
                    }
                    cases.push(explain::missing_record_case(&snapshot, resource, target, &own));
                }
                cases
            }
            On::Change(resource, kind) => {
                let changes = self.changes(Some(token), resource, kind, MAX_CHANGES).await?;
                let cases = explain::change_cases(&snapshot, &changes, target, &own);
                if cases.is_empty() {
                    return Ok(vec![match changes.iter().map(|row| row.at).max() {
                        Some(latest) => explain::other_changes(rule, &snapshot.token, changes.len(), latest),
                        None => explain::unsubscribed(rule, &snapshot.token, resource, kind),
                    }]);
                }
                return self.explain_all(rule, cases).await;
            }
            _ => {
                let has_shares = self.active.rules.reads.has_shares && !snapshot.token.groups.is_empty();
                let ids = if has_shares { self.store.token_ids(false).await? } else { vec![token.clone()] };
                let cache = self.cache(ids).await?;
                let computed = cache.compute(&snapshot.token, &FlowEntries::of_snapshot(&snapshot), Recheck::Longest, self.now);
                vec![explain::token_case(&snapshot, computed.totals(), own)]
            }
        };
        self.explain_all(rule, cases).await
    }

    /// Explains one rule for one case, with the states of its notifications.
    pub async fn explain(&self, rule: &Rule, case: &ExplainCase<'_>) -> Result<Explanation, ExplainError> {
        let mut statuses = Vec::new();
        for alert in &case.alerts {
            statuses.extend(self.statuses.of_alert(&self.store, &alert.id).await?);
        }
        statuses.sort_by_key(|status| status.at);
        let read = self.statuses.records_of(&self.store, &statuses).await?;
        let Self { watch, active, digests, firing, now, .. } = self;
        let world = ExplainContext { watch, routes: &active.routes, digests, firing, now: *now };
        let records = self.statuses.records(&read);
        let corrections = self.corrections(rule, case).await?;
        Ok(explain::explain(&ExplainQuery { rule, case, statuses: &statuses, records, corrections: &corrections, world: &world }))
    }

    /// Returns the corrections that a rule reads. Empty if it reads none.
    async fn corrections(&self, rule: &Rule, case: &ExplainCase<'_>) -> Result<Vec<PastCorrection>, StoreError> {
        let (Some(longest), Some(token)) = (rule.correction_spans().iter().max(), case.token) else { return Ok(Vec::new()) };
        let at = case.change.map_or(self.now, |(_, at)| at);
        let since = at.checked_sub_signed(*longest).unwrap_or(Timestamp::MIN_UTC);
        Ok(self.store.corrections(vec![token.id.clone()], since).await?.remove(&token.id).unwrap_or_default())
    }

    async fn explain_all(&self, rule: &Rule, cases: Vec<ExplainCase<'_>>) -> Result<Vec<Explanation>, ExplainError> {
        let mut explanations = Vec::new();
        for case in &cases {
            explanations.push(self.explain(rule, case).await?);
        }
        Ok(explanations)
    }

    /// Explains a rule on groups: for the named group, else for the groups of the token, else for all groups.
    async fn of_groups(&self, rule: &Rule, target: &ExplainTarget) -> Result<Vec<Explanation>, ExplainError> {
        let mut cache = self.cache(self.store.token_ids(false).await?).await?;
        let alerts = self.alerts(&rule.id, None).await?;
        let token = match &target.token {
            None => None,
            Some(token) => self.snapshot(token).await?.map(|snapshot| snapshot.token),
        };
        let mut explanations = Vec::new();
        for case in explain::group_cases(rule, target, token.as_ref(), &mut cache, &alerts) {
            explanations.push(match case {
                CaseOrNothing::Case(case) => self.explain(rule, &case).await?,
                CaseOrNothing::Nothing(explanation) => explanation,
            });
        }
        Ok(explanations)
    }

    /// Explains a rule on the source: for each open incident and the latest resolved ones.
    async fn of_incidents(&self, rule: &Rule, target: &ExplainTarget) -> Result<Vec<Explanation>, ExplainError> {
        let alerts = self.alerts(&RuleId::from(SOURCE_TROUBLE), None).await?;
        let mut explanations = Vec::new();
        for alert in explain::incidents(alerts, target) {
            let token = match &alert.token {
                Some(id) => self.snapshot(id).await?.map(|snapshot| snapshot.token),
                None => None,
            };
            let explanation = self.explain(rule, &explain::incident_case(rule, &alert, token.as_ref())).await?;
            explanations.push(explain::of_incident(explanation, rule, &alert));
        }
        if explanations.is_empty() {
            let because = "there was never an incident of the source, a receiver, or the daemon";
            explanations.push(explain::nothing(rule, "the source", because));
        }
        Ok(explanations)
    }

    pub async fn snapshot(&self, token: &TokenId) -> Result<Option<TokenSnapshot>, ExplainError> {
        let mut snapshot = self.store.tokens(vec![token.clone()], Resource::ALL.to_vec()).await?.into_iter().next();
        if let Some(snapshot) = &mut snapshot {
            snapshot.token = self.watch.placed(snapshot.token.clone());
        }
        Ok(snapshot)
    }

    /// Returns the alerts of a rule, resolved ones included, for one token or all tokens.
    pub async fn alerts(&self, rule: &RuleId, token: Option<&TokenId>) -> Result<Vec<Alert>, ExplainError> {
        let filter = AlertFilter { rule: Some(rule.clone()), token: token.cloned(), limit: MAX_ALERTS, ..AlertFilter::default() };
        Ok(self.store.alerts(filter).await?)
    }

    pub async fn changes(
        &self,
        token: Option<&TokenId>,
        resource: Resource,
        kind: Option<ChangeKind>,
        limit: u32,
    ) -> Result<Vec<ChangeRow>, ExplainError> {
        let filter = ChangeFilter {
            tokens: token.map(|token| vec![token.clone()]),
            resources: vec![resource],
            kinds: kind.into_iter().collect(),
            limit,
            ..ChangeFilter::default()
        };
        Ok(self.store.changes(filter).await?)
    }

    /// Computes the aggregates of watched tokens from the database.
    pub async fn cache(&self, ids: Vec<TokenId>) -> Result<AggregateCache, ExplainError> {
        let mut cache = AggregateCache::default();
        cache.reset(self.active.rules.reads.clone());
        let watched: Vec<TokenId> = ids.into_iter().filter(|id| self.watch.covers(id)).collect();
        let summed = vec![Resource::Unlock, Resource::Emission, Resource::Burn, Resource::Buyback];
        for ids in watched.chunks(BATCH) {
            for mut snapshot in self.store.tokens(ids.to_vec(), summed.clone()).await? {
                snapshot.token = self.watch.placed(snapshot.token);
                let computed = cache.compute(&snapshot.token, &FlowEntries::of_snapshot(&snapshot), Recheck::Longest, self.now);
                cache.keep(computed);
            }
        }
        cache.complete(self.now);
        Ok(cache)
    }
}
