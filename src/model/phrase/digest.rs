//! A digest as text: the line that stands for it, and the plain text that mail and chats show.

use std::fmt::Write as _;

use super::{MARKET_CAP, count, instant, list_some, name, one_line, share, size, usd};
use crate::{
    Severity, Timestamp,
    digest::{AheadLine, Digest, FiringLine, GroupLine, SilencedLine},
};

/// Titles of the sections of a digest.
pub const AHEAD: &str = "Upcoming unlocks";
pub const POSSIBLE: &str = "Possible in the same period, but dates are inexact; not counted above";
pub const GROUPS: &str = "Upcoming unlocks by group";
pub const CHANGES: &str = "Changes";
pub const FIRING: &str = "Firing alerts";
pub const SUPPRESSED: &str = "Suppressed notifications";
pub const SILENCES: &str = "Active silences";
pub const INCIDENTS: &str = "Incidents";

/// Replaces the section of incidents if it is empty.
pub const NO_INCIDENTS: &str = "No incidents: the source responds, and every receiver accepts messages.";

pub fn no_unlocks(until: Timestamp) -> String {
    format!("No known unlocks until {}.", instant(until))
}

pub fn no_changes(since: Timestamp) -> String {
    format!("No changes since {}.", instant(since))
}

/// Replaces the section of firing alerts if none is listed.
pub fn firing_count(firing: u32) -> String {
    if firing == 0 { "No firing alerts.".to_owned() } else { format!("{}.", count(firing, "firing alert")) }
}

/// One line for the whole digest: `Digest: 2 unlocks ($96.10M) in the next 7 days, 3 changes`.
pub fn summary(digest: &Digest) -> String {
    let all = |listed: usize, left_out: u32| listed + usize::try_from(left_out).unwrap_or_default();
    let unlocks = count(all(digest.ahead.len(), digest.ahead_left_out), "unlock");
    let possible = match all(digest.possible.len(), digest.possible_left_out) {
        0 => String::new(),
        possible => format!(", {possible} more possible{}", value(digest.possible_value)),
    };
    let days = count((digest.until - digest.at).num_days(), "day");
    let changes = count(usize::try_from(digest.changes_count).unwrap_or_default().max(digest.changes.len()), "change");
    let incidents = match digest.incident_summaries.len() {
        0 => String::new(),
        incidents => format!(", {}", count(incidents, "incident")),
    };
    format!("Digest: {unlocks}{} in the next {days}{possible}, {changes}{incidents}", value(digest.ahead_value))
}

/// The whole digest as plain text. Names from outside do not break its lines.
pub fn text(digest: &Digest) -> String {
    let mut text = String::new();
    match digest.ahead.is_empty() {
        true => _ = writeln!(text, "{}", no_unlocks(digest.until)),
        false => {
            let title = format!("{AHEAD} until {}{}", instant(digest.until), value(digest.ahead_value));
            section(&mut text, &title, digest.ahead.iter().map(ahead), digest.ahead_left_out, "cliffwatch upcoming");
        }
    }
    let title = format!("{POSSIBLE}{}", value(digest.possible_value));
    section(&mut text, &title, digest.possible.iter().map(ahead), digest.possible_left_out, "cliffwatch upcoming");
    let groups = digest.groups.iter().map(|line| format!("{}: {}", name(&line.name), group(line)));
    section(&mut text, GROUPS, groups, 0, "");
    let changes = digest.changes.iter().map(|change| match change.text.starts_with(&change.symbol) {
        true => one_line(&change.text),
        false => format!("{}: {}", name(&change.symbol), one_line(&change.text)),
    });
    match digest.changes.is_empty() {
        true => _ = writeln!(text, "\n{}", no_changes(digest.since)),
        false => {
            let title = format!("{CHANGES} since {}", instant(digest.since));
            section(&mut text, &title, changes, digest.changes_left_out, "cliffwatch changes");
        }
    }
    let fires = digest
        .fires
        .iter()
        .map(|alert| format!("{}{} ({})", severity(alert.severity), one_line(&alert.summary), one_line(&rules(alert))));
    match digest.fires.is_empty() {
        true => _ = writeln!(text, "\n{}", firing_count(digest.firing)),
        false => {
            let title = count(digest.firing, "firing alert");
            section(&mut text, &title, fires, digest.fires_left_out, "cliffwatch alerts");
        }
    }
    let title = format!("{SUPPRESSED} since {}", instant(digest.since));
    let held = digest.held_back.iter().map(|held| format!("{}: {}", held.state, one_line(&held.summary)));
    section(&mut text, &title, held, digest.held_back_left_out, "cliffwatch outbox why");
    let silences = digest.silences.iter().map(|line| format!("{}: {}", one_line(&line.matchers), one_line(&silence(line))));
    section(&mut text, SILENCES, silences, digest.silences_left_out, "cliffwatch silence list");
    match digest.incident_summaries.is_empty() {
        true => _ = writeln!(text, "\n{NO_INCIDENTS}"),
        false => section(&mut text, INCIDENTS, digest.incident_summaries.iter().map(|line| one_line(line)), 0, ""),
    }
    text.trim_start().to_owned()
}

/// The description of a test of a digest, whose text follows.
pub fn test_text(digest: &Digest) -> String {
    format!(
        "This is a test: the digest as it would be sent now. The next scheduled digest is sent at its time.\n\n{}",
        text(digest)
    )
}

fn ahead(unlock: &AheadLine) -> String {
    format!("{}: {} {}", name(&unlock.symbol), ahead_size(unlock), unlock.when)
}

/// `$96.10M (2.30% of market cap)`, or the amount if no value is known.
fn ahead_size(unlock: &AheadLine) -> String {
    let share = unlock.share.map(|percent| format!(" ({})", share(percent, MARKET_CAP))).unwrap_or_default();
    format!("{}{share}", size(unlock.value, unlock.amount, Some(&unlock.symbol)))
}

/// The unlocks of a group: `$96.10M in 3 unlocks: ARB $33.15M, OP $20.00M, and 2 more`.
pub fn group(group: &GroupLine) -> String {
    let token = |(symbol, value): &(String, f64)| match *value > 0.0 {
        true => format!("{} {}", name(symbol), usd(*value)),
        false => name(symbol),
    };
    let tokens: Vec<String> = group.tokens.iter().map(token).collect();
    let tokens = list_some(&tokens, tokens.len(), usize::try_from(group.left_out).unwrap_or_default());
    format!("{} in {}: {tokens}", usd(group.value), count(group.events, "unlock"))
}

/// The rules that fire for one event: `BigCliffAhead, also InsiderUnlockAhead`.
pub fn rules(alert: &FiringLine) -> String {
    if alert.also.is_empty() { alert.rule.clone() } else { format!("{}, also {}", alert.rule, super::list(&alert.also)) }
}

/// The end, author, and comment of a silence: `until 9 Mar 2026, 18:00 UTC, by ann: known to the exchange`.
fn silence(SilencedLine { until, author, comment, .. }: &SilencedLine) -> String {
    format!("until {}, by {author}: {comment}", instant(*until))
}

/// ` ($94.55M)`; empty if no value is known.
fn value(value: Option<f64>) -> String {
    value.map(|value| format!(" ({})", usd(value))).unwrap_or_default()
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical: ",
        Severity::Warning => "warning: ",
        Severity::Info | Severity::Good => "",
    }
}

/// Writes a section with its title, its lines, and the count of lines left out, which `command` lists. Writes nothing without lines.
fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>, left_out: u32, command: &str) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    if left_out > 0 {
        let _ = writeln!(text, "  and {left_out} more: `{command}`");
    }
}
