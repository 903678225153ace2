//! A digest in words: the line that stands for it, and all of it as plain text, which mail and chats show as it is.

use std::fmt::Write as _;

use super::{AheadLine, Digest, GroupLine};
use crate::{Tone, format};

impl Digest {
    /// The line that stands for all of it.
    pub fn summary(&self) -> String {
        let count = |listed: usize, more: u32| listed + usize::try_from(more).unwrap_or_default();
        let unlocks = count(self.ahead.len(), self.ahead_left_out);
        let possible = count(self.possible.len(), self.possible_left_out);
        let days = (self.until - self.at).num_days();
        let changes = usize::try_from(self.changes_count).unwrap_or_default().max(self.changes.len());
        let possible = match possible {
            0 => String::new(),
            _ => format!(", {possible} more possible{}", worth(self.possible_value)),
        };
        let trouble = if self.trouble.is_empty() { String::new() } else { ", trouble".to_owned() };
        format!(
            "Digest: {}{} in the next {}{possible}, {}{trouble}",
            format::count(unlocks, "unlock"),
            worth(self.ahead_value),
            format::count(usize::try_from(days).unwrap_or_default(), "day"),
            format::count(changes, "change"),
        )
    }

    /// All of it as plain text. Names from outside do not break its lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.unlocks_text(&mut text);
        let since = format::instant(self.since);
        let changes = self.changes.iter().map(|change| match change.text.starts_with(&change.symbol) {
            true => format::sentence(&change.text),
            false => format!("{}: {}", format::name(&change.symbol), format::sentence(&change.text)),
        });
        match self.changes.is_empty() {
            true => _ = writeln!(text, "\nNothing changed since {since}."),
            false => part(&mut text, &format!("Changed since {since}"), changes, self.changes_left_out, "cliffwatch changes"),
        }
        let firing = format::count(usize::try_from(self.firing).unwrap_or_default(), "alert");
        let verb = if self.firing == 1 { "fires" } else { "fire" };
        let fires = self.fires.iter().map(|alert| {
            format!("{}{} ({})", tone_words(alert.tone), format::sentence(&alert.summary), format::sentence(&alert.rules()))
        });
        match self.fires.is_empty() {
            true => _ = writeln!(text, "\n{firing} {verb} now."),
            false => {
                part(&mut text, &format!("{firing} {verb} now"), fires, self.fires_left_out, "cliffwatch alerts");
            }
        }
        let held = self.held_back.iter().map(|held| format!("{}: {}", held.state, format::sentence(&held.summary)));
        part(&mut text, "Not told to you since", held, self.held_back_left_out, "cliffwatch outbox why");
        let silenced = self.silences.iter();
        let silenced = silenced.map(|of| format!("{}: {}", format::sentence(&of.matchers), format::sentence(&of.words())));
        part(&mut text, "Silenced now", silenced, self.silences_left_out, "cliffwatch silence list");
        if self.trouble.is_empty() {
            text.push_str("\nThe source answers, and every receiver takes its messages.\n");
        } else {
            part(&mut text, "Trouble", self.trouble.iter().map(|trouble| format::sentence(trouble)), 0, "");
        }
        text.trim_start().to_owned()
    }

    fn unlocks_text(&self, text: &mut String) {
        let until = format::instant(self.until);
        let line = |unlock: &AheadLine| format!("{}: {} {}", format::name(&unlock.symbol), unlock.size(), unlock.when);
        match self.ahead.is_empty() {
            true => _ = writeln!(text, "No unlock is known until {until}."),
            false => {
                let title = format!("Unlocks until {until}{}", worth(self.ahead_value));
                part(text, &title, self.ahead.iter().map(line), self.ahead_left_out, "cliffwatch upcoming");
            }
        }
        let title = format!("{POSSIBLE}{}", worth(self.possible_value));
        part(text, &title, self.possible.iter().map(line), self.possible_left_out, "cliffwatch upcoming");
        let group = |group: &GroupLine| format!("{}: {}", format::name(&group.name), group.words());
        part(text, "Of these, by group", self.groups.iter().map(group), 0, "");
    }
}

/// How the unlocks are headed that are in no sum.
pub const POSSIBLE: &str = "Possible too, some time in their month or week: not counted above";

impl GroupLine {
    /// `$96.10M in 3 unlocks: ARB $33.15M, OP $20.00M and 2 more`.
    pub fn words(&self) -> String {
        let token = |(symbol, value): &(String, f64)| match *value > 0.0 {
            true => format!("{} {}", format::name(symbol), format::usd(*value)),
            false => format::name(symbol),
        };
        let mut tokens = self.tokens.iter().map(token).collect::<Vec<_>>().join(", ");
        if self.left_out > 0 {
            let _ = write!(tokens, " and {} more", self.left_out);
        }
        let events = format::count(usize::try_from(self.events).unwrap_or_default(), "unlock");
        format!("{} in {events}: {tokens}", format::usd(self.value))
    }
}

/// ` ($94.55M)`; nothing where no value is known.
fn worth(value: Option<f64>) -> String {
    value.map(|value| format!(" ({})", format::usd(value))).unwrap_or_default()
}

fn tone_words(tone: Tone) -> &'static str {
    match tone {
        Tone::Critical => "critical: ",
        Tone::Warning => "warning: ",
        Tone::Info | Tone::Good => "",
    }
}

/// A part with its title and lines, and how many more there are; nothing where there are none.
fn part(text: &mut String, title: &str, lines: impl Iterator<Item = String>, more: u32, how: &str) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for line in lines {
        let _ = writeln!(text, "- {line}");
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: `{how}`");
    }
}
