//! Whether a rule is active and its filters match.

use super::{ExplainQuery, Explainer};
use model::{Record, phrase};
use rules::Scope;

impl Explainer<'_> {
    /// Adds whether the rule is active and the token watched.
    pub(super) fn active_rule(&mut self) {
        let ExplainQuery { rule, case, world, .. } = *self.query;
        match rule.expires {
            Some(at) if world.now >= at => self.no(
                format!("the rule is inactive since {} (`expires`)", phrase::day(at)),
                format!("the rule expired on {}", phrase::day(at)),
            ),
            Some(at) => self.yes(format!("the rule is active until {}", phrase::day(at))),
            None => self.yes("the rule is active"),
        }
        let Some(token) = case.token else { return };
        let name = phrase::name(token.name());
        if world.watch.covers(&token.id) {
            self.yes(format!("{name} is watched"));
        } else {
            self.no(format!("{name} is not watched: `tokens` in [watch] excludes it"), format!("{name} is not watched"));
        }
    }

    /// Adds whether the rule's filters match.
    pub(super) fn filters(&mut self, scope: &Scope<'_>) {
        let rule = self.query.rule;
        if rule.covers(scope) {
            return self.yes("its filters match");
        }
        let token = self.query.case.token;
        let of_event = scope.record.and_then(|tracked| match &tracked.record {
            Record::Unlock(event) => event.listed_method.as_str(),
            _ => None,
        });
        let method = of_event.or_else(|| token?.item.listed_method.as_str()).unwrap_or("unknown");
        let token_facts = token.map_or_else(String::new, |token| {
            let groups =
                if token.groups.is_empty() { "in no group".to_owned() } else { format!("in {}", token.groups.join(", ")) };
            format!(": {} is {groups}, listed method {method}", token.id)
        });
        self.no(
            format!("its filters (`tokens`, `listed_methods`, `allocations`) exclude it{token_facts}"),
            "a filter of the rule excludes it",
        );
    }
}
