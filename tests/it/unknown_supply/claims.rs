//! Finds claims that nothing unlocks, and decides from the world whether they are true.

use std::cell::RefCell;

use cliffwatch::model::supply::Timestamp;
use serde_json::Value;

use super::{
    texts,
    world::{SourceMode, TokenWorld, World},
};

/// Phrases that say that nothing unlocks. A number before a phrase with a zero makes another number of it.
const PHRASES: [&str; 17] = [
    "no unlock",
    "no known unlock",
    "no upcoming unlock",
    "no coming supply",
    "no supply",
    "no linear unlock",
    "none known",
    "none ahead",
    "nothing to unlock",
    "nothing scheduled",
    "nothing unlocks",
    "nothing ahead",
    "nothing coming",
    "0 unlocks",
    "0 tokens",
    "0 entries",
    "0 upcoming",
];

/// Words that name what is not known. With one of them, a line makes no claim about that part.
const QUALIFIERS: [&str; 5] = ["not read yet", "cliffs only", "not known", "known only until", "incomplete"];

/// The days in which an unlock counts in every sum of the rules over thirty days.
const DAYS_IN_RULE_WINDOWS: i64 = 29;

/// JSON fields with amounts and values of supply.
const SUPPLY_FIELDS: [&str; 14] = [
    "value",
    "amount",
    "cliffValue",
    "cliffAmount",
    "linearValue",
    "linearAmount",
    "perDay",
    "perDayValue",
    "amountInWindow",
    "valueInWindow",
    "ahead_value",
    "aheadValue",
    "totalValue",
    "possibleValue",
];

/// The claims that were found.
#[derive(Debug, Default)]
pub struct Found {
    pub false_claims: Vec<String>,
    pub true_claims: usize,
}

pub struct Claims<'w> {
    world: &'w World,
    now: Timestamp,
    found: RefCell<Found>,
}

/// Why nothing may be said to unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The program cannot know it, because the source did not show it.
    Gap,
    /// Tokens unlock now or within a week.
    Unlocks,
    /// Unlocks are ahead, and their value is unknown.
    NoPrice,
}

impl<'w> Claims<'w> {
    pub fn new(world: &'w World, now: Timestamp) -> Self {
        Self { world, now, found: RefCell::default() }
    }

    pub fn take(self) -> Found {
        self.found.into_inner()
    }

    /// Returns why nothing may be claimed about a token. `None` if claims can be true.
    fn reason(&self, token: &TokenWorld) -> Option<Reason> {
        let has_gap = token.is_unread || self.world.mode == SourceMode::CliffsOnly;
        let unlocks = !token.is_unread && (token.has_cliff_within(self.now, 7) || self.shows_vesting(token));
        match (unlocks, has_gap || token.vests(self.now)) {
            (true, _) => Some(Reason::Unlocks),
            (false, true) => Some(Reason::Gap),
            (false, false) => None,
        }
    }

    /// Returns whether the source shows that tokens unlock continuously now.
    fn shows_vesting(&self, token: &TokenWorld) -> bool {
        let is_shown = matches!(self.world.mode, SourceMode::Complete);
        is_shown && token.vests(self.now)
    }

    /// Returns why no value of zero may be claimed of a token.
    fn reason_for_value(&self, token: &TokenWorld) -> Option<Reason> {
        let lacks_price = token.price.is_none() && token.has_cliff_within(self.now, DAYS_IN_RULE_WINDOWS);
        self.reason(token).or(lacks_price.then_some(Reason::NoPrice))
    }

    fn mentioned(&self, text: &str) -> Vec<&'w TokenWorld> {
        let text = text.to_lowercase();
        self.world.tokens.iter().filter(|token| text.contains(token.slug)).collect()
    }

    fn token(&self, slug: &str) -> Option<&'w TokenWorld> {
        self.world.tokens.iter().find(|token| token.slug == slug)
    }

    /// Checks JSON about the tokens that it names.
    pub fn check_json(&self, what: &str, text: &str) {
        self.check_json_of(what, None, text);
    }

    /// Checks JSON about a token, or about the tokens that it names.
    pub fn check_json_of(&self, what: &str, token: Option<&str>, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}: {text}"));
        let token = token.and_then(|slug| self.token(slug));
        self.check_value(what, "", &value, token);
    }

    fn check_value(&self, what: &str, field: &str, value: &Value, token: Option<&'w TokenWorld>) {
        match value {
            Value::String(text) => self.check_lines(what, token, &texts::plain(text)),
            Value::Array(items) => items.iter().for_each(|item| self.check_value(what, field, item, token)),
            Value::Object(fields) => {
                // An object about one token names it in a field of its own.
                let named = fields.values().filter_map(|value| value.as_str().or_else(|| value["id"].as_str()));
                let own = named.filter_map(|name| self.token(&name.to_lowercase())).next().or(token);
                fields.iter().for_each(|(name, value)| self.check_value(what, name, value, own));
            }
            Value::Number(number) if number.as_f64() == Some(0.0) && SUPPLY_FIELDS.contains(&field) => {
                let reason = token.and_then(|token| self.reason_for_value(token));
                self.report(reason, || format!("{what}: {field} is 0 of {}", token.map_or("all", |token| token.slug)));
            }
            _ => {}
        }
    }

    /// Checks the rows of a CSV file with its column names.
    pub fn check_csv(&self, what: &str, page: &str) {
        let mut lines = page.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        for line in lines {
            let token = self.mentioned(line).first().copied();
            for (name, cell) in names.iter().zip(texts::csv_cells(line)) {
                if SUPPLY_FIELDS.contains(name) && cell.parse::<f64>() == Ok(0.0) {
                    let reason = token.and_then(|token| self.reason_for_value(token));
                    self.report(reason, || format!("{what}: {name} is 0: {line}"));
                }
            }
        }
    }

    /// Checks a text about a token, or about the tokens that it names.
    pub fn check_text(&self, what: &str, token: Option<&str>, text: &str) {
        self.check_lines(what, token.and_then(|slug| self.token(slug)), &texts::plain(text));
    }

    fn check_lines(&self, what: &str, token: Option<&'w TokenWorld>, text: &str) {
        let of_text = match self.mentioned(text).as_slice() {
            [only] => Some(*only),
            _ => token,
        };
        // The sentence about a rule states its limits, such as $0.
        for line in text.lines().filter(|line| !line.starts_with("Notifies ")) {
            let mut subject = of_text.filter(|_| self.mentioned(line).len() < 2);
            for part in line.split([',', ';']) {
                subject = self.mentioned(part).last().copied().or(subject);
                self.check_part(what, subject, part, line);
            }
        }
    }

    fn check_part(&self, what: &str, subject: Option<&'w TokenWorld>, part: &str, line: &str) {
        // A template shows the known part of a sum. Only the built-in text can say that it is a part.
        if self.world.mode == SourceMode::WithoutRateChanges && line.contains("templated") {
            return;
        }
        let lower = part.to_lowercase();
        // Other lists, such as the list of changes, can be empty.
        let is_empty_list = what.starts_with("upcoming") && lower.contains("no matches");
        let is_none = lower.trim().trim_end_matches('.') == "none" || lower.trim_end().ends_with(": none");
        if is_none || is_empty_list || PHRASES.iter().any(|phrase| contains_phrase(&lower, phrase)) {
            let reason = match subject {
                Some(token) => self.reason(token).filter(|reason| !is_qualified(*reason, line)),
                None => self.reason_of_all(line),
            };
            self.report(reason, || format!("{what}: {:?} about {}", line.trim(), subject.map_or("all", |token| token.slug)));
        }
        if is_zero_value(&lower) {
            let reason = match subject {
                Some(token) => self.reason_for_value(token),
                None => self.reason_of_all(line),
            };
            self.report(reason, || {
                format!("{what}: $0 in {:?} about {}", line.trim(), subject.map_or("all", |token| token.slug))
            });
        }
    }

    /// Returns why nothing may be claimed about all tokens together.
    fn reason_of_all(&self, line: &str) -> Option<Reason> {
        self.world.tokens.iter().filter_map(|token| self.reason(token)).find(|reason| !is_qualified(*reason, line))
    }

    /// Checks only the phrases about unlocks, in a text that has other facts, too.
    pub fn check_phrases(&self, what: &str, text: &str) {
        for line in text.lines() {
            let lower = line.to_lowercase();
            if lower.contains("unlock") && PHRASES.iter().any(|phrase| contains_phrase(&lower, phrase)) {
                self.report(self.reason_of_all(line), || format!("{what}: {:?}", line.trim()));
            }
        }
    }

    fn report(&self, reason: Option<Reason>, claim: impl FnOnce() -> String) {
        let mut found = self.found.borrow_mut();
        match reason {
            Some(reason) => found.false_claims.push(format!("{reason:?}: {}", claim())),
            None => found.true_claims += 1,
        }
    }
}

/// Returns whether a line itself says that the reason is not known.
fn is_qualified(reason: Reason, line: &str) -> bool {
    reason == Reason::Gap && QUALIFIERS.iter().any(|words| line.to_lowercase().contains(words))
}

/// Returns whether a text has a phrase. Digits before it would belong to another number.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == ','))
}

/// Returns whether a text has a value of zero dollars.
fn is_zero_value(text: &str) -> bool {
    text.match_indices("$0").any(|(at, zero)| {
        let rest = &text[at + zero.len()..];
        let digits: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        digits.trim_end_matches('.').parse::<f64>().is_ok_and(|rest| rest == 0.0) || digits.trim_end_matches('.').is_empty()
    })
}
