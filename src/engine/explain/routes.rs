//! Who is told of an alert, and what would suppress it or make it wait now.

use super::words::{one_line, span};
use super::{ExplainQuery, ExplainStep, ExplainWorld, Explainer, Mark};
use crate::evaluate::RuleEval as _;
use crate::route::{GroupBy, Grouping, Inhibitor};
use model::{AlertId, AlertState, Labels, ReceiverName, format};
use rules::Lead;

impl<'a> Explainer<'a> {
    /// Labels, text, who is told, and what would suppress it or make it wait now.
    pub(super) fn routes(&mut self, lead: Option<&'a Lead>, is_told: bool) {
        let (rule, routes) = (self.query.rule, self.query.world.routes);
        let scope = self.scope(lead);
        let rendered = rule.render(&scope, rule.level(&scope));
        let labels: Vec<String> = rendered.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let receivers = rule.terms().audience(routes, &rendered.labels);
        let by = if rule.receivers.is_empty() { "the routes lead to" } else { "the rule names" };
        let names: Vec<&str> = receivers.iter().map(ReceiverName::as_str).collect();
        let names = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        let mark = if receivers.is_empty() && !is_told { Mark::No } else { Mark::Note };
        let mut step = ExplainStep::new(mark, format!("{by} {names}"));
        step.parts.push(ExplainStep::new(Mark::Note, format!("labels: {}", labels.join(", "))));
        if let Some(summary) = rendered.annotations.get("summary") {
            step.parts.push(ExplainStep::new(Mark::Note, format!("text: {}", one_line(summary))));
        }
        if let Some(error) = &rendered.error {
            step.parts.push(ExplainStep::new(Mark::No, format!("a template fails, and the built-in text is sent: {error}")));
        }
        if let Some(limit) = rule.limit {
            step.parts.push(ExplainStep::new(Mark::Note, format!("at most {limit} from one evaluation: `limit`")));
        }
        for receiver in &receivers {
            step.parts.push(self.route_to(&rendered.labels, receiver));
        }
        self.steps.push(step);
        self.suppression(&rendered.labels);
    }

    /// How a receiver would be told: its route, its group, whether it is muted now.
    fn route_to(&self, labels: &Labels, receiver: &ReceiverName) -> ExplainStep {
        let ExplainWorld { routes, digests, now, .. } = *self.query.world;
        let leaf = routes.leaf(labels, receiver);
        let grouping = leaf.grouping();
        let route = match leaf.key() {
            "{}" => "the root route".to_owned(),
            key => format!("route {key}"),
        };
        let mut step = ExplainStep::new(Mark::Note, format!("{receiver}: {route}, {}", grouped(grouping)));
        if let Some(name) = routes.muted(grouping, now) {
            let until = format::instant(routes.heard_again(grouping, now));
            step.parts.push(ExplainStep::new(Mark::No, format!("muted by {name} until {until}: it waits, and is told then")));
        }
        let digest = digests.iter().find(|plan| plan.receiver == *receiver).and_then(|plan| plan.schedule.next(now));
        if let Some(at) = digest {
            step.parts.push(ExplainStep::new(
                Mark::Note,
                format!("the next digest is due {}, and says what was held back", format::instant(at)),
            ));
        }
        step
    }

    /// What would hide it now, whatever became of what was said before.
    fn suppression(&mut self, labels: &Labels) {
        let ExplainQuery { records, case, world, .. } = *self.query;
        let ExplainWorld { routes, firing, now, .. } = *world;
        let silence = records.silences.iter().find(|silence| silence.hides(labels, now));
        if let Some(silence) = silence {
            self.steps.push(ExplainStep::new(
                Mark::No,
                format!(
                    "silence {} hides it until {} ({} by {}: {})",
                    silence.id,
                    format::instant(silence.ends_at),
                    silence.matchers_line(),
                    silence.author,
                    silence.comment
                ),
            ));
        }
        let own = case.alerts.iter().find(|alert| alert.state == AlertState::Firing).map(|alert| alert.id.clone());
        let own = own.unwrap_or_else(|| AlertId::from(""));
        let inhibitor = Inhibitor::new(routes.inhibit_rules(), firing);
        if let Some(by) = inhibitor.of(&own, labels) {
            let labels = firing.iter().find(|firing| firing.id == *by).map(|firing| &firing.labels);
            let name = labels.and_then(|labels| labels.get("alertname")).map(|name| format!(" ({name})")).unwrap_or_default();
            self.steps.push(ExplainStep::new(Mark::No, format!("alert {by}{name} fires and inhibits it: `inhibit_rules`")));
        }
    }
}

fn grouped(grouping: &Grouping) -> String {
    let by = match &grouping.by {
        GroupBy::Alert => return "each alert by itself, at once".to_owned(),
        GroupBy::AllLabels => "by all labels".to_owned(),
        GroupBy::Labels(names) if names.is_empty() => "all in one group".to_owned(),
        GroupBy::Labels(names) => format!("grouped by {}", names.join(", ")),
    };
    format!("{by}, told after {} and then at most every {}", span(grouping.wait), span(grouping.interval))
}
