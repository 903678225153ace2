//! What stands in red at the top: what is wrong with the watching itself, so that nobody takes silence for peace.

use serde::Serialize;

use crate::ui::template::{grouped, token_href};
use crate::ui::view::StatusView;
use model::{Token, format};

/// Something that is wrong.
#[derive(Debug, Serialize)]
pub(super) struct Notice {
    /// `bad` or `warn`.
    pub(super) tone: &'static str,
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Where more of it is; empty for nowhere.
    pub(super) href: String,
    pub(super) link: &'static str,
}

/// Longest list of incidents.
const MAX_TROUBLES: usize = 8;

/// Everything that is wrong, the gravest first.
pub(super) fn of(status: &StatusView, held: &[Token]) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut add = |tone, title, text: String, href: &str, link| {
        notices.push(Notice { tone, title, text, href: href.to_owned(), link });
    };
    if let Some(daemon) = status.daemon.as_ref().filter(|daemon| !daemon.ready) {
        add("bad", "Not ready.", daemon.reason.clone().unwrap_or_else(|| "starting".to_owned()), "", "");
    }
    for trouble in status.troubles.iter().take(MAX_TROUBLES) {
        add("bad", "Incident.", trouble.clone(), "/alerts?rule=SourceTrouble&state=firing", "Details");
    }
    let more = status.troubles.len().saturating_sub(MAX_TROUBLES);
    if more > 0 {
        add("bad", "Incident.", format!("And {more} more."), "/alerts?rule=SourceTrouble&state=firing", "All incidents");
    }
    let dead: Vec<String> = status
        .outbox
        .iter()
        .filter(|receiver| receiver.dead > 0)
        .map(|receiver| format!("{} to {}", grouped(receiver.dead), receiver.receiver))
        .collect();
    if !dead.is_empty() {
        let text = format!("Messages that could not be delivered: {}.", dead.join(", "));
        add("bad", "Dead letters.", text, "/deliveries?state=dead", "See why, and send again");
    }
    if status.removals_held > 0 {
        let answers = format::count(usize::try_from(status.removals_held).unwrap_or(usize::MAX), "answer");
        let of = if held.is_empty() { String::new() } else { format!(" of {}", format::names(held.iter().map(Token::symbol))) };
        let text = format!("{answers}{of}: most records of a token vanished at once. What was known stays until that is proven.");
        let href = held.first().map(|token| token_href(token.id.as_str())).unwrap_or_default();
        add("bad", "Held back.", text, &href, "See what is known");
    }
    if let Some(problem) = &status.rules.problem {
        let first = problem.lines().next().unwrap_or_default().to_owned();
        add("bad", "Rule files with errors.", format!("The rules before them are at work. {first}"), "/rules", "See the errors");
    }
    if status.credits.exhausted {
        add("bad", "Credits are spent.", "Nothing is asked until the period ends.".to_owned(), "", "");
    }
    if status.source_up.is_none() {
        add("warn", "Nothing was polled yet.", "The pages fill as the source answers.".to_owned(), "", "");
    }
    notices
}
