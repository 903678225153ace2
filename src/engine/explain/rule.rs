//! Whether a rule is at work, and lets something in.

use super::{ExplainQuery, Explainer};
use model::{Record, format};
use rules::Scope;

impl Explainer<'_> {
    /// Whether the rule is at work, and the token watched.
    pub(super) fn at_work(&mut self) {
        let ExplainQuery { rule, case, world, .. } = *self.query;
        match rule.expires {
            Some(at) if world.now >= at => self.no(
                format!("the rule rests since {}: `expires`", format::day(at)),
                format!("the rule expired on {}", format::day(at)),
            ),
            Some(at) => self.yes(format!("the rule is at work until {}", format::day(at))),
            None => self.yes("the rule is at work"),
        }
        let Some(token) = case.token else { return };
        let name = format::name(token.name());
        if world.watch.covers(&token.id) {
            self.yes(format!("{name} is watched"));
        } else {
            self.no(format!("{name} is not watched: `tokens` in [watch] leaves it out"), format!("{name} is not watched"));
        }
    }

    /// Whether its filters let it in.
    pub(super) fn filters(&mut self, scope: &Scope<'_>) {
        let rule = self.query.rule;
        if rule.covers(scope) {
            return self.yes("its filters let it in");
        }
        let token = self.query.case.token;
        let own = scope.record.and_then(|tracked| match &tracked.record {
            Record::Unlock(event) => event.listed_method.as_str(),
            _ => None,
        });
        let method = own.or_else(|| token?.item.listed_method.as_str()).unwrap_or("not known");
        let whom = token.map_or_else(String::new, |token| {
            let groups =
                if token.groups.is_empty() { "in no group".to_owned() } else { format!("in {}", token.groups.join(", ")) };
            format!(": {} is {groups}, listed method {method}", token.id)
        });
        self.no(
            format!("its filters (`tokens`, `listed_methods`, `allocations`) leave it out{whom}"),
            "a filter of the rule leaves it out",
        );
    }
}
