//! A digest as text: the line that stands for it, and the plain text that mail and chats show.

use std::fmt::Write as _;

use super::linear::{rate_change_causes, rates};
use super::{
    MARKET_CAP, UNKNOWN_AMOUNT, VALUE_UNKNOWN, count, day, instant, list_some, missing_supply, name, noun, one_line, share, size,
    usd,
};
use crate::{
    PositionLine, RateChange, Severity, Timestamp,
    digest::{
        AheadLine, Digest, DigestOrder, DigestSelection, FiringLine, GroupLine, LinearLine, MAX_LINES, SilencedLine, StalePrices,
    },
};

/// Titles of the sections of a digest.
pub const AHEAD: &str = "Upcoming unlocks";
pub const VESTING: &str = "Vesting continuously";
pub const POSSIBLE: &str = "Possible in the same period, but dates are inexact; not counted above";
pub const GROUPS: &str = "Upcoming unlocks by group";
pub const POSITIONS: &str = "Your positions";
pub const CHANGES: &str = "Changes";
pub const FIRING: &str = "Firing alerts";
pub const SUPPRESSED: &str = "Suppressed notifications";
pub const SILENCES: &str = "Active silences";
pub const INCIDENTS: &str = "Incidents";

/// Replaces the section of incidents if it is empty.
pub const NO_INCIDENTS: &str = "No incidents: the source responds, and every receiver accepts messages.";

/// Replaces the section of upcoming unlocks if it is empty.
pub fn no_unlocks(digest: &Digest) -> String {
    if digest.gaps.is_nothing_known() {
        return "Upcoming unlocks are not known: no schedule was read yet.".to_owned();
    }
    let unlocks = if digest.linear.is_empty() { "unlocks" } else { "cliff unlocks" };
    let note = if is_incomplete(digest) { ", but the known schedules are incomplete" } else { "" };
    format!("No known {unlocks} until {}{note}.", instant(digest.until))
}

fn is_incomplete(digest: &Digest) -> bool {
    digest.gaps.are_before(digest.until)
}

/// The gaps in the sums of a digest: `Incomplete: 2 tokens not read yet; 1 token with cliffs only, because …`. `None` if nothing is
/// missing.
pub fn gaps(digest: &Digest) -> Option<String> {
    is_incomplete(digest).then(|| format!("Incomplete: {}.", missing_supply(&digest.gaps, digest.until).join("; ")))
}

pub fn no_changes(since: Timestamp) -> String {
    format!("No changes since {}.", instant(since))
}

/// Replaces the section of firing alerts if none is listed.
pub fn firing_count(firing: u32) -> String {
    if firing == 0 { "No firing alerts.".to_owned() } else { format!("{}.", count(firing, "firing alert")) }
}

/// One line for the whole digest: `Digest: $1.52B in the next 7 days: 12 cliffs ($584.00M) and linear vesting ($936.00M), 3 changes`.
pub fn summary(digest: &Digest) -> String {
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
    let of = DigestSums::of(digest);
    let unlocks = match (of.cliffs > 0, of.linear_tokens > 0) {
        (true, true) => format!("{} in the next {days}: {}", known(of.total_value), of.parts()),
        (false, true) => format!("{} in the next {days}", of.linear()),
        (false, false) if digest.gaps.is_nothing_known() => format!("unlocks of the next {days} not known"),
        _ => format!("{}{} in the next {days}", count(of.cliffs, "unlock"), of.cliff_note()),
    };
    let is_empty = of.cliffs == 0 && of.linear_tokens == 0;
    let incomplete = if is_incomplete(digest) && !(is_empty && digest.gaps.is_nothing_known()) { ", incomplete" } else { "" };
    format!("{}: {unlocks}{incomplete}{possible}, {changes}{incidents}", title("Digest", digest))
}

/// A title with what the digest selects: `Upcoming unlocks of @portfolio, 10 largest by share of market cap`.
pub fn title(title: &str, digest: &Digest) -> String {
    let tokens: Vec<String> = digest.tokens.iter().map(|pattern| name(pattern)).collect();
    let tokens = if tokens.is_empty() { String::new() } else { format!(" of {}", list_some(&tokens, MAX_PATTERNS, 0)) };
    let DigestSelection { order, limit, min_value } = digest.selection;
    let least = if min_value > 0.0 { format!(", from {}", usd(min_value)) } else { String::new() };
    let size = match order {
        DigestOrder::Value | DigestOrder::Date => "value".to_owned(),
        DigestOrder::Share => format!("share of {MARKET_CAP}"),
    };
    let top = if limit < MAX_LINES { format!(", {limit} largest by {size}") } else { String::new() };
    format!("{title}{tokens}{least}{top}")
}

/// The number of patterns of tokens in a title.
const MAX_PATTERNS: usize = 3;

fn all(listed: usize, left_out: u32) -> u32 {
    u32::try_from(listed).unwrap_or(u32::MAX).saturating_add(left_out)
}

/// The sums of cliff and linear unlocks. Values are in USD, `None` if no value is known.
struct DigestSums {
    cliffs: u32,
    cliff_value: Option<f64>,
    /// The number of cliff unlocks without a value.
    cliff_unvalued: u32,
    linear_tokens: u32,
    linear_value: Option<f64>,
    linear_unvalued: u32,
    total_value: Option<f64>,
}

impl DigestSums {
    fn of(digest: &Digest) -> Self {
        Self {
            cliffs: all(digest.ahead.len(), digest.ahead_left_out),
            cliff_value: digest.ahead_value,
            cliff_unvalued: digest.ahead_unvalued,
            linear_tokens: all(digest.linear.len(), digest.linear_left_out),
            linear_value: digest.linear_value,
            linear_unvalued: digest.linear_unvalued,
            total_value: digest.total_value,
        }
    }

    fn of_group(group: &GroupLine) -> Self {
        Self {
            cliffs: group.events,
            cliff_value: group.cliff_value,
            cliff_unvalued: 0,
            linear_tokens: group.linear_tokens,
            linear_value: group.linear_value,
            linear_unvalued: 0,
            total_value: group.value,
        }
    }

    /// `12 cliffs ($584.00M) and linear vesting ($936.00M)`.
    fn parts(&self) -> String {
        format!("{}{} and {}", count(self.cliffs, "cliff"), self.cliff_note(), self.linear())
    }

    fn cliff_note(&self) -> String {
        if self.cliffs == 0 { String::new() } else { note(self.cliff_value, self.cliff_unvalued) }
    }

    fn linear(&self) -> String {
        format!("linear vesting{}", note(self.linear_value, self.linear_unvalued))
    }
}

/// ` ($584.00M)`, ` ($584.00M, 2 of unknown value)`, or ` (value unknown)`.
fn note(value: Option<f64>, unvalued: u32) -> String {
    match value {
        None => format!(" ({VALUE_UNKNOWN})"),
        Some(value) if unvalued > 0 => format!(" ({}, {unvalued} of unknown value)", usd(value)),
        Some(value) => format!(" ({})", usd(value)),
    }
}

/// A value in USD, or that it is unknown.
fn known(value: Option<f64>) -> String {
    value.map_or_else(|| VALUE_UNKNOWN.to_owned(), usd)
}

/// The total of cliff and linear unlocks: `$1.52B until 16 Mar 2026, 08:00 UTC: 12 cliffs ($584.00M) and linear vesting ($936.00M).` `None`
/// unless there are both.
pub fn total(digest: &Digest) -> Option<String> {
    let of = DigestSums::of(digest);
    let total = || super::capitalized(&format!("{} until {}: {}.", known(of.total_value), instant(digest.until), of.parts()));
    (of.cliffs > 0 && of.linear_tokens > 0).then(total)
}

/// Names stale prices: `Values are at prices of 3 Nov 2025.` `None` if no price is stale.
pub fn stale_prices(digest: &Digest) -> Option<String> {
    let StalePrices { tokens, all, oldest } = digest.stale_prices?;
    Some(match (all, tokens) {
        (true, 1) => format!("Values are at prices of {}.", day(oldest)),
        (true, _) => format!("Values are at prices of {} or later.", day(oldest)),
        (false, _) => format!("Values of {} are at prices of {} or later.", count(tokens, "token"), day(oldest)),
    })
}

/// The linear unlocks of a token: `$8.40M (0.42% of market cap), 16.80M ARB at 2.40M per day; falls from …`.
pub fn vesting(line: &LinearLine) -> String {
    let (size, changes) = vesting_texts(line);
    if changes.is_empty() { size } else { format!("{size}; {changes}") }
}

/// The size of a token's linear unlocks, and the rate changes: `falls from 2.40M to 1.20M per day on 12 Mar 2026 (Team)`.
pub fn vesting_texts(line: &LinearLine) -> (String, String) {
    let share = line.share.map(|percent| format!(" ({})", share(percent, MARKET_CAP))).unwrap_or_default();
    let amount = line
        .amount
        .map_or_else(|| format!(", {UNKNOWN_AMOUNT}"), |amount| format!(", {}", super::tokens(amount, Some(&line.symbol))));
    let rate = line.per_day.map(|rate| format!(" at {} per day", super::amount(rate))).unwrap_or_default();
    let change = |change: &RateChange| {
        let causes = rate_change_causes(change).map(|causes| format!(" ({causes})")).unwrap_or_default();
        format!("{} on {}{causes}", rates(change), day(change.at))
    };
    let mut changes: Vec<String> = line.changes.iter().map(change).collect();
    if line.changes_left_out > 0 {
        changes.push(format!("{} more {}", line.changes_left_out, noun(line.changes_left_out, "rate change")));
    }
    (format!("{}{share}{amount}{rate}", known(line.value)), changes.join("; "))
}

/// The text of a firing alert, with the current value of its unlock if the text does not have it.
pub fn firing(alert: &FiringLine) -> String {
    let current = alert.value.map(usd).filter(|value| !alert.summary.contains(value.as_str()));
    format!("{}{}", alert.summary, current.map(|value| format!(", now {value}")).unwrap_or_default())
}

/// The whole digest as plain text. Names from outside do not break its lines.
pub fn text(digest: &Digest) -> String {
    let mut text = String::new();
    for line in [total(digest), gaps(digest), stale_prices(digest)].into_iter().flatten() {
        let _ = writeln!(text, "{line}");
    }
    match digest.ahead.is_empty() {
        true => _ = writeln!(text, "\n{}", no_unlocks(digest)),
        false => {
            let title =
                format!("{} until {}{}", title(AHEAD, digest), instant(digest.until), DigestSums::of(digest).cliff_note());
            section(&mut text, &title, digest.ahead.iter().map(ahead), digest.ahead_left_out, "cliffwatch upcoming");
        }
    }
    let title = format!("{VESTING} until {}{}", instant(digest.until), note(digest.linear_value, digest.linear_unvalued));
    let linear = digest.linear.iter().map(|line| format!("{}: {}", name(&line.symbol), vesting(line)));
    section(&mut text, &title, linear, digest.linear_left_out, "cliffwatch upcoming --type linear");
    let title = format!("{POSSIBLE}{}", value(digest.possible_value));
    section(&mut text, &title, digest.possible.iter().map(ahead), digest.possible_left_out, "cliffwatch upcoming");
    let groups = digest.groups.iter().map(|line| format!("{}: {}", name(&line.name), group(line)));
    section(&mut text, GROUPS, groups, 0, "");
    let positions = digest.positions.iter().map(|line| format!("{}: {}", name(&line.symbol), position(line)));
    section(&mut text, POSITIONS, positions, digest.positions_left_out, "cliffwatch upcoming");
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
        .map(|alert| format!("{}{} ({})", severity(alert.severity), one_line(&firing(alert)), one_line(&rules(alert))));
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
    let note = if unlock.value.is_none() { format!(" ({VALUE_UNKNOWN})") } else { String::new() };
    format!("{}{share}{note}", size(unlock.value, unlock.amount, Some(&unlock.symbol)))
}

/// The unlocks of a group: `$96.10M in 3 unlocks: ARB $33.15M, OP $20.00M, and 2 more`.
pub fn group(group: &GroupLine) -> String {
    let token = |(symbol, value): &(String, Option<f64>)| match value {
        Some(value) => format!("{} {}", name(symbol), usd(*value)),
        None => format!("{} ({VALUE_UNKNOWN})", name(symbol)),
    };
    let tokens: Vec<String> = group.tokens.iter().map(token).collect();
    let tokens = list_some(&tokens, tokens.len(), usize::try_from(group.left_out).unwrap_or_default());
    let of = DigestSums::of_group(group);
    let unlocks = match (of.cliffs > 0, of.linear_tokens > 0) {
        (true, true) => format!("{}, {}", known(of.total_value), of.parts()),
        (false, true) => of.linear(),
        _ => match of.total_value {
            Some(value) => format!("{} in {}", usd(value), count(of.cliffs, "unlock")),
            None => format!("{} ({VALUE_UNKNOWN})", count(of.cliffs, "unlock")),
        },
    };
    format!("{unlocks}: {tokens}")
}

/// A position and its unlocks in the period: `$250.00K (250.00K ARB); unlocks of $5.00M are 20× the position`.
pub fn position(line: &PositionLine) -> String {
    let PositionLine { symbol, amount, value, unlock_amount, unlock_value, unlock_multiple, .. } = line;
    let held = match value {
        Some(value) => format!("{} ({})", usd(*value), super::tokens(*amount, Some(symbol))),
        None => format!("{} ({VALUE_UNKNOWN})", super::tokens(*amount, Some(symbol))),
    };
    let multiple = unlock_multiple.map(|multiple| format!(" are {} the position", super::multiple(multiple))).unwrap_or_default();
    match unlock_amount {
        None => format!("{held}; unlocks not known"),
        Some(amount) if *amount <= 0.0 => format!("{held}; no unlocks"),
        Some(amount) => format!("{held}; unlocks of {}{multiple}", size(*unlock_value, Some(*amount), Some(symbol))),
    }
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
