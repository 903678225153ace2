//! Where the facts come from, and how old they are.

use super::totals::summed;
use super::words::{ago, one_line};
use super::{ExplainCase, Explainer};
use model::{Resource, Timestamp, format};
use rules::aggregate::has_none;

impl Explainer<'_> {
    /// Where the facts come from, and how old they are.
    pub(super) fn facts(&mut self) {
        let now = self.now();
        let ExplainCase { token, feeds, record, change, totals, source, .. } = self.query.case;
        if let Some(source) = source {
            self.note(format!("{} since {}: {}", source.kind, format::instant(source.since), one_line(&source.message)));
            return;
        }
        if totals.is_some() {
            if token.is_some() {
                for resource in summed(self.query.rule) {
                    self.feed(resource);
                }
            }
            return;
        }
        let Some((_, feed)) = feeds.first() else {
            if record.is_none() && change.is_none() {
                self.no("the source was never asked about it, or never answered", "nothing is known of it yet");
            }
            return;
        };
        match feed.read_at {
            // The log of that cycle has the same words.
            Some(at) => {
                self.note(format!("last read {} ({} ago), cycle={}", format::instant(at), ago(now - at), format::exact(at)))
            }
            None => self.note("never read whole"),
        }
        if let Some(since) = feed.failing_since {
            self.note(format!("the source fails since {}: what is known may be old", format::instant(since)));
        }
        if let Some(since) = feed.held_since.filter(|since| *since > Timestamp::UNIX_EPOCH) {
            self.note(format!("an answer is held since {}: most of what lay ahead was missing from it", format::instant(since)));
        }
        if let Some((_, times)) = record.as_ref().and_then(|record| feed.missing.iter().find(|(key, _)| *key == record.key)) {
            let answers = if *times == 1 { "the last answer".to_owned() } else { format!("the last {times} answers") };
            self.note(format!("left out by {answers}: a removal that is not proven yet"));
        }
    }

    /// How old one of several feeds is that a sum is made of.
    fn feed(&mut self, resource: Resource) {
        let own =
            self.query.case.feeds.iter().filter(|(endpoint, _)| endpoint.is_per_token() && endpoint.resource() == Some(resource));
        let text = match own.max_by_key(|(_, state)| state.read_at).map(|(_, state)| (state.read_at, state.failing_since)) {
            Some((Some(at), None)) => {
                format!("{resource} records last read {} ({} ago)", format::instant(at), ago(self.now() - at))
            }
            Some((Some(at), Some(since))) => format!(
                "{resource} records last read {}, and the source fails since {}",
                format::instant(at),
                format::instant(since)
            ),
            _ if self.query.case.token.is_some_and(|token| has_none(&token.item, resource)) => {
                format!("the token list says that it has no {resource} records: they add up to zero")
            }
            _ => format!("{resource} records were never read: what they would add up to is missing, not zero"),
        };
        self.note(text);
    }
}
