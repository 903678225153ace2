//! The notices at the top of the overview: problems of the daemon, the source, and the receivers.

use serde::Serialize;

use crate::ui::template::token_href;
use daemon::view::StatusView;
use model::{Token, phrase};

#[derive(Debug, Serialize)]
pub(super) struct Notice {
    /// `bad` or `warn`.
    pub(super) severity: &'static str,
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Empty without a link.
    pub(super) href: String,
    pub(super) link: &'static str,
}

const MAX_INCIDENTS: usize = 8;

/// Returns all notices, most severe first.
pub(super) fn of(status: &StatusView, held: &[Token]) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut add = |severity, title, text: String, href: &str, link| {
        notices.push(Notice { severity, title, text, href: href.to_owned(), link });
    };
    if let Some(daemon) = status.daemon.as_ref().filter(|daemon| !daemon.ready) {
        add("bad", "Not ready.", daemon.reason.clone().unwrap_or_else(|| "starting".to_owned()), "", "");
    }
    for incident in status.incidents.iter().take(MAX_INCIDENTS) {
        add("bad", "Incident.", incident.clone(), "/alerts?rule=SourceTrouble&state=firing", "Details");
    }
    let more = status.incidents.len().saturating_sub(MAX_INCIDENTS);
    if more > 0 {
        add("bad", "Incident.", format!("{more} more."), "/alerts?rule=SourceTrouble&state=firing", "All incidents");
    }
    let dead: Vec<String> = status
        .outbox
        .iter()
        .filter(|receiver| receiver.dead > 0)
        .map(|receiver| format!("{} to {}", phrase::grouped(receiver.dead), receiver.receiver))
        .collect();
    if !dead.is_empty() {
        let text = format!("Undelivered messages without further attempts: {}.", dead.join(", "));
        add("bad", "Dead letters.", text, "/deliveries?state=dead", "Show and retry");
    }
    if status.removals_held > 0 {
        let responses = phrase::count(status.removals_held, "held response");
        let of = if held.is_empty() { String::new() } else { format!(" of {}", phrase::names(held.iter().map(Token::symbol))) };
        let text =
            format!("{responses}{of}: most records are missing. The previous data stays in use until the removal is proven.");
        let href = held.first().map(|token| token_href(token.id.as_str())).unwrap_or_default();
        add("bad", "Held responses.", text, &href, "Show the token");
    }
    if let Some(problem) = &status.rules.problem {
        let first = problem.lines().next().unwrap_or_default().to_owned();
        add("bad", "Rule files with errors.", format!("The last valid rules stay active. {first}"), "/rules", "Show the errors");
    }
    if status.rules.is_missing {
        add("bad", "No active rules.", "Nothing is reported until a rule is enabled.".to_owned(), "/rules", "Show the rules");
    }
    if status.credits.exhausted {
        add(
            "bad",
            "Credits are used up.",
            "Polling resumes when the period ends, or within a day after the API raises its limit.".to_owned(),
            "",
            "",
        );
    }
    if status.source_up.is_none() {
        add("warn", "No data yet.", "Pages show data after the first polls.".to_owned(), "", "");
    }
    notices
}
