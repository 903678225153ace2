//! The receivers of an alert, and what would suppress or delay it now.

use super::{ExplainContext, ExplainQuery, ExplainStep, Explainer, Mark};
use crate::evaluate::RuleEval as _;
use crate::route::{GroupBy, Grouping, Inhibitor};
use model::{AlertId, AlertState, Labels, ReceiverName, phrase};
use rules::Lead;

impl<'a> Explainer<'a> {
    /// Adds labels, text, receivers, and what would suppress or delay a notification now.
    pub(super) fn routes(&mut self, lead: Option<&'a Lead>, is_notified: bool) {
        let (rule, routes) = (self.query.rule, self.query.world.routes);
        let scope = self.scope(lead);
        let rendered = rule.render(&scope, rule.level(&scope));
        let labels: Vec<String> = rendered.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let receivers = rule.terms().receivers_for(routes, &rendered.labels);
        let by = if rule.receivers.is_empty() { "receivers by route" } else { "receivers of the rule" };
        let names: Vec<&str> = receivers.iter().map(ReceiverName::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let mark = if receivers.is_empty() && !is_notified { Mark::No } else { Mark::Note };
        let mut step = ExplainStep::new(mark, format!("{by}: {names}"));
        step.parts.push(ExplainStep::new(Mark::Note, format!("labels: {}", labels.join(", "))));
        if let Some(summary) = rendered.annotations.get("summary") {
            step.parts.push(ExplainStep::new(Mark::Note, format!("text: {}", phrase::one_line(summary))));
        }
        if let Some(error) = &rendered.error {
            step.parts.push(ExplainStep::new(Mark::No, format!("a template fails, so the built-in text is sent: {error}")));
        }
        if let Some(limit) = rule.limit {
            step.parts.push(ExplainStep::new(Mark::Note, format!("at most {limit} per evaluation (`limit`)")));
        }
        for receiver in &receivers {
            step.parts.push(self.describe_route(&rendered.labels, receiver));
        }
        self.steps.push(step);
        self.suppression(&rendered.labels);
    }

    /// Describes how an alert with these labels reaches a receiver: the route and its grouping. Adds a part if the route is muted
    /// now, and one if the receiver has a digest.
    fn describe_route(&self, labels: &Labels, receiver: &ReceiverName) -> ExplainStep {
        let ExplainContext { routes, digests, now, .. } = *self.query.world;
        let leaf = routes.leaf(labels, receiver);
        let grouping = leaf.grouping();
        let route = match leaf.key() {
            "{}" => "the root route".to_owned(),
            key => format!("route {key}"),
        };
        let mut step = ExplainStep::new(Mark::Note, format!("{receiver}: {route}, {}", grouped(grouping)));
        if let Some(name) = routes.muted(grouping, now) {
            let until = phrase::instant(routes.unmuted_at(grouping, now));
            step.parts.push(ExplainStep::new(Mark::No, format!("muted by {name} until {until}, and sent then")));
        }
        let types = routes.types_of(receiver);
        if !types.is_empty() {
            let names: Vec<&str> = types.iter().map(|kind| kind.as_str()).collect();
            step.parts
                .push(ExplainStep::new(Mark::Note, format!("wants only messages of the types {} (`types`)", names.join(", "))));
        }
        let digest = digests.iter().find(|plan| plan.receiver == *receiver).and_then(|plan| plan.schedule.next(now));
        if let Some(at) = digest {
            step.parts.push(ExplainStep::new(
                Mark::Note,
                format!("the next digest is due {} and includes suppressed alerts", phrase::instant(at)),
            ));
        }
        step
    }

    /// Adds what would suppress a notification now, regardless of earlier ones.
    fn suppression(&mut self, labels: &Labels) {
        let ExplainQuery { records, case, world, .. } = *self.query;
        let ExplainContext { routes, firing, now, .. } = *world;
        let silence = records.silences.iter().find(|silence| silence.suppresses(labels, now));
        if let Some(silence) = silence {
            self.steps.push(ExplainStep::new(
                Mark::No,
                format!(
                    "silence {} suppresses it until {} ({} by {}: {})",
                    silence.id,
                    phrase::instant(silence.ends_at),
                    silence.matchers_line(),
                    silence.author,
                    silence.comment
                ),
            ));
        }
        let id = case.alerts.iter().find(|alert| alert.state == AlertState::Firing).map(|alert| alert.id.clone());
        let id = id.unwrap_or_else(|| AlertId::from(""));
        let inhibitor = Inhibitor::new(routes.inhibit_rules(), firing);
        if let Some(by) = inhibitor.of(&id, labels) {
            let labels = firing.iter().find(|firing| firing.id == *by).map(|firing| &firing.labels);
            let name = labels.and_then(|labels| labels.get("alertname")).map(|name| format!(" ({name})")).unwrap_or_default();
            self.steps.push(ExplainStep::new(Mark::No, format!("alert {by}{name} fires and inhibits it (`inhibit_rules`)")));
        }
    }
}

fn grouped(grouping: &Grouping) -> String {
    let by = match &grouping.by {
        GroupBy::Alert => return "each alert alone, at once".to_owned(),
        GroupBy::AllLabels => "by all labels".to_owned(),
        GroupBy::Labels(names) if names.is_empty() => "all in one group".to_owned(),
        GroupBy::Labels(names) => format!("grouped by {}", names.join(", ")),
    };
    format!("{by}, sent after {} and then at most every {}", phrase::duration(grouping.wait), phrase::duration(grouping.interval))
}
