//! The age and the origin of the facts.

use super::{ExplainCase, Explainer};
use model::{Resource, phrase};
use rules::aggregate::has_none;

impl Explainer<'_> {
    /// Adds when the facts were last read, and whether the source has problems with them.
    pub(super) fn facts(&mut self) {
        let now = self.now();
        let ExplainCase { token, feeds, record, change, totals, source, .. } = self.query.case;
        if let Some(source) = source {
            self.note(format!("{} since {}: {}", source.kind, phrase::instant(source.since), phrase::one_line(&source.message)));
            return;
        }
        if totals.is_some() {
            if token.is_some() {
                for resource in self.query.rule.summed_resources() {
                    self.feed(resource);
                }
            }
            return;
        }
        let Some((_, feed)) = feeds.first() else {
            if record.is_none() && change.is_none() {
                self.no("the source was never polled for it, or every poll failed", "no facts are known yet");
            }
            return;
        };
        match feed.read_at {
            // The log lines of that cycle have the same `cycle` field.
            Some(at) => self.note(format!(
                "last read {} ({} ago), cycle={}",
                phrase::instant(at),
                phrase::duration(now - at),
                phrase::rfc3339(at)
            )),
            None => self.note("never read completely"),
        }
        if let Some(since) = feed.failing_since {
            self.note(format!("polls fail since {}: the known facts may be old", phrase::instant(since)));
        }
        if let Some(hold) = feed.hold.filter(|hold| !hold.is_accepted) {
            self.note(format!(
                "a response is held since {}: most upcoming records were missing from it",
                phrase::instant(hold.since)
            ));
        }
        if let Some((_, times)) = record.as_ref().and_then(|record| feed.missing.iter().find(|(key, _)| *key == record.key)) {
            let responses = if *times == 1 { "the last response".to_owned() } else { format!("the last {times} responses") };
            self.note(format!("missing from {responses}; its removal is not proven yet"));
        }
    }

    /// Adds the age of one feed that contributes to an aggregate.
    fn feed(&mut self, resource: Resource) {
        let feeds =
            self.query.case.feeds.iter().filter(|(endpoint, _)| endpoint.is_per_token() && endpoint.resource() == Some(resource));
        let text = match feeds.max_by_key(|(_, state)| state.read_at).map(|(_, state)| (state.read_at, state.failing_since)) {
            Some((Some(at), None)) => {
                format!("{resource} records last read {} ({} ago)", phrase::instant(at), phrase::duration(self.now() - at))
            }
            Some((Some(at), Some(since))) => {
                format!("{resource} records last read {}, polls fail since {}", phrase::instant(at), phrase::instant(since))
            }
            _ if self.query.case.token.is_some_and(|token| has_none(&token.item, resource)) => {
                format!("the token list reports no {resource} records, so the sum is zero")
            }
            _ => format!("{resource} records were never read, so the sum is missing, not zero"),
        };
        self.note(text);
    }
}
