//! Explains at the current time of a simulation why a rule notified or did not, like the daemon's `explain`.

use super::Simulation;
use engine::explain::{
    self, CaseOrNothing, ExplainCase, ExplainContext, ExplainQuery, ExplainTarget, Explanation, StatusEvidence,
};
use model::{Alert, ChangeKind, ChangeRow, Resource, SOURCE_TROUBLE, TokenSnapshot};
use rules::aggregate::{AggregateCache, FlowEntries, Recheck};
use rules::{On, Rule};

/// The maximum number of explained tokens if none is named, and of explained records for a token.
const MAX_EXPLAINED: usize = 3;

impl Simulation<'_> {
    /// Explains why a rule notified about a token or did not. Without a token, explains a limited number of known tokens. Empty
    /// if the rule is unknown or has no possible subject.
    pub fn explain(&self, rule: &str, token: Option<&str>) -> Vec<Explanation> {
        let Some(rule) = self.rules.rules.iter().find(|known| known.name == rule) else { return Vec::new() };
        let is_meant = |snapshot: &&TokenSnapshot| {
            token.is_none_or(|token| snapshot.token.id.as_str() == token || snapshot.token.symbol() == token)
        };
        match rule.on {
            On::Source => Vec::new(),
            On::Portfolio => self.explain_groups(rule),
            _ => {
                let snapshots = self.memory.tokens.values().filter(is_meant).take(MAX_EXPLAINED);
                snapshots.flat_map(|snapshot| self.explain_token(rule, snapshot)).collect()
            }
        }
    }

    fn explain_token(&self, rule: &Rule, snapshot: &TokenSnapshot) -> Vec<Explanation> {
        let target = ExplainTarget { token: Some(snapshot.token.id.clone()), ..ExplainTarget::default() };
        let own: Vec<&Alert> = snapshot.alerts.iter().filter(|alert| alert.rule == rule.id).collect();
        match rule.on {
            On::Record(resource) => {
                let mut cases = explain::record_cases(rule, snapshot, resource, &target, &own, self.now);
                cases.truncate(MAX_EXPLAINED);
                if cases.is_empty() {
                    cases.push(explain::missing_record_case(snapshot, resource, &target, &own));
                }
                cases.iter().map(|case| self.explain_case(rule, case)).collect()
            }
            On::Change(resource, kind) => {
                let rows = self.change_rows(snapshot, resource, kind);
                let cases = explain::change_cases(snapshot, &rows, &target, &own);
                if cases.is_empty() {
                    return vec![explain::unsubscribed(rule, &snapshot.token, resource, kind)];
                }
                cases.iter().map(|case| self.explain_case(rule, case)).collect()
            }
            _ => {
                let computed = self.totals_of_all().compute(
                    &snapshot.token,
                    &FlowEntries::of_snapshot(snapshot),
                    Recheck::Longest,
                    self.now,
                );
                vec![self.explain_case(rule, &explain::token_case(snapshot, computed.totals(), own))]
            }
        }
    }

    fn explain_groups(&self, rule: &Rule) -> Vec<Explanation> {
        let is_own = |alert: &&Alert| alert.rule == rule.id && alert.rule.as_str() != SOURCE_TROUBLE;
        let alerts: Vec<Alert> = self.memory.global_alerts.iter().filter(is_own).cloned().collect();
        let mut cache = self.totals_of_all();
        let cases = explain::group_cases(rule, &ExplainTarget::default(), None, &mut cache, &alerts);
        let notified = cases.into_iter().take(MAX_EXPLAINED).map(|case| match case {
            CaseOrNothing::Case(case) => self.explain_case(rule, &case),
            CaseOrNothing::Nothing(explanation) => explanation,
        });
        notified.collect()
    }

    fn explain_case(&self, rule: &Rule, case: &ExplainCase<'_>) -> Explanation {
        let world = ExplainContext { watch: self.watch, routes: self.routes, digests: &[], firing: &[], now: self.now };
        let records = StatusEvidence { silences: &[], inhibitors: &[], acks: &[], prospects: &[], deliveries: &[] };
        let corrections = case.token.map_or(&[][..], |token| self.memory.corrections_of(&token.id));
        explain::explain(&ExplainQuery { rule, case, statuses: &[], records, corrections, world: &world })
    }

    /// Returns the changes of a token that were not taken yet, latest first.
    fn change_rows(&self, snapshot: &TokenSnapshot, resource: Resource, kind: Option<ChangeKind>) -> Vec<ChangeRow> {
        let token = &snapshot.token;
        let is_subscribed = |change: &model::Change| {
            change.token.as_ref() == Some(&token.id)
                && change.resource == Some(resource)
                && kind.is_none_or(|kind| change.kind == kind)
        };
        let own = self.changes.iter().rev().filter(|(_, change)| is_subscribed(change));
        let rows = (1..).zip(own).map(|(id, (at, change))| ChangeRow {
            id,
            at: *at,
            token: token.id.clone(),
            symbol: Some(token.symbol().to_owned()),
            resource,
            key: change.key.clone(),
            change: change.clone(),
        });
        rows.collect()
    }

    /// Returns the aggregates of all tokens.
    fn totals_of_all(&self) -> AggregateCache {
        let mut cache = AggregateCache::default();
        cache.reset(self.rules.reads.clone());
        for snapshot in self.memory.tokens.values() {
            let computed = cache.compute(&snapshot.token, &FlowEntries::of_snapshot(snapshot), Recheck::Longest, self.now);
            cache.keep(computed);
        }
        cache.complete(self.now);
        cache
    }
}
