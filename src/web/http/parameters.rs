//! The parameters of lists and feeds. A list names the ones that it accepts; parsing, error messages, OpenAPI, and the links of pages
//! follow from that.

use chrono::TimeDelta;

use model::config::Span;
use model::{AlertState, ChangeKind, DeliveryState, EventType, Resource, TokenSort, UnlockKind, UnlockOrder, meant};

/// A parameter of a query string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    /// The description in the OpenAPI document.
    pub description: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Text,
    /// A required text that can be repeated.
    Texts,
    /// Names, separated by commas or repeated.
    Names,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, separated by commas or repeated.
    Words(&'static [&'static str]),
    /// A number that is not negative.
    Number,
    /// A whole number, from and to these values.
    Integer(u32, u32),
    Boolean,
    /// The cursor of a page, as a response returned it.
    Cursor,
    /// A duration such as `7d`.
    Duration,
}

/// The longest duration: 100 years.
const LONGEST_DURATION: TimeDelta = TimeDelta::days(36_500);

/// The maximum length of a text or a name.
pub(super) const MAX_TEXT: usize = 2_000;

/// The maximum length of a cursor. The one of a walk through a hundred thousand tokens is shorter.
pub(super) const MAX_CURSOR: usize = 20_000;

impl ParameterKind {
    /// Checks a value. Returns what is expected instead, and the words that may be meant.
    pub fn check(self, text: &str) -> Result<(), (String, Vec<&'static str>)> {
        let expected = |text: &str| (text.to_owned(), Vec::new());
        let is_valid = match self {
            ParameterKind::Text | ParameterKind::Texts => text.len() <= MAX_TEXT,
            ParameterKind::Names => text.split(',').all(|name| name.len() <= MAX_TEXT),
            ParameterKind::Word(words) => return check_word(text, words),
            ParameterKind::Words(words) => return text.split(',').try_for_each(|word| check_word(word.trim(), words)),
            ParameterKind::Number => text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
            ParameterKind::Integer(min, max) => text.parse::<u32>().is_ok_and(|number| (min..=max).contains(&number)),
            ParameterKind::Boolean => text.parse::<bool>().is_ok(),
            ParameterKind::Cursor => text.len() <= MAX_CURSOR,
            ParameterKind::Duration => text.parse::<Span>().is_ok_and(|span| span.delta() <= LONGEST_DURATION),
        };
        match (is_valid, self) {
            (true, _) => Ok(()),
            (false, ParameterKind::Number) => Err(expected("a number such as 5000000, not negative")),
            (false, ParameterKind::Integer(min, u32::MAX)) => Err((format!("a whole number from {min}"), Vec::new())),
            (false, ParameterKind::Integer(min, max)) => Err((format!("a whole number from {min} to {max}"), Vec::new())),
            (false, ParameterKind::Boolean) => Err(expected("true or false")),
            (false, ParameterKind::Duration) => Err(expected("a duration such as 36h or 7d, at most 36500d")),
            (false, ParameterKind::Cursor) => Err((format!("at most {MAX_CURSOR} bytes"), Vec::new())),
            (false, _) => Err((format!("at most {MAX_TEXT} bytes"), Vec::new())),
        }
    }

    /// Returns whether a request can repeat the parameter.
    pub fn is_repeatable(self) -> bool {
        matches!(self, ParameterKind::Texts | ParameterKind::Names | ParameterKind::Words(_))
    }
}

fn check_word(word: &str, words: &'static [&'static str]) -> Result<(), (String, Vec<&'static str>)> {
    if words.contains(&word) {
        return Ok(());
    }
    let suggestions = meant(word, words).into_iter().collect();
    Err((format!("one of {}", words.join(", ")), suggestions))
}

const fn parameter(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { name, kind, description }
}

const fn text(name: &'static str, description: &'static str) -> Parameter {
    parameter(name, ParameterKind::Text, description)
}

const fn names(name: &'static str, description: &'static str) -> Parameter {
    parameter(name, ParameterKind::Names, description)
}

const fn words(name: &'static str, words: &'static [&'static str], description: &'static str) -> Parameter {
    parameter(name, ParameterKind::Words(words), description)
}

const fn duration(name: &'static str, description: &'static str) -> Parameter {
    parameter(name, ParameterKind::Duration, description)
}

/// The maximum of `limit` in a list.
pub(super) const MAX_ROWS: u32 = 10_000;
/// The maximum of `limit` in the feed of changes.
pub(super) const MAX_FEED_ENTRIES: u32 = 1_000;

pub(super) const TOKEN: Parameter = text("token", "Slug or ticker of a token.");
pub(super) const TOKENS: Parameter = names("token", "Slugs or tickers of tokens, separated by commas.");
pub(super) const GROUP: Parameter = names("group", "Names of groups in `[watch.groups]`, separated by commas.");
pub(super) const ONE_GROUP: Parameter = text("group", "Name of a group in `[watch.groups]`. The default is all watched tokens.");
pub(super) const WITHIN: Parameter = duration(
    "within",
    "Maximum time until the unlock, such as `30d`. Of a linear unlock, only the part within this time counts.",
);
pub(super) const MIN_VALUE: Parameter = parameter(
    "min_value",
    ParameterKind::Number,
    "Minimum value in USD; of a linear unlock, the value within the selected time.",
);
pub(super) const UNLOCK_TYPE: Parameter =
    words("type", &UnlockKind::WORDS, "Types of unlocks, separated by commas; the default is both.");
pub(super) const RULE: Parameter = text("rule", "Name or id of a rule.");
pub(super) const RULES: Parameter = names("rule", "Names or ids of rules whose condition must be true, separated by commas.");
pub(super) const SEARCH: Parameter = text("q", "Part of a slug, name, or ticker.");
pub(super) const SORT: Parameter =
    parameter("sort", ParameterKind::Word(&TokenSort::WORDS), "Order of the list. The default is `value`.");
pub(super) const KIND: Parameter =
    words("kind", &ChangeKind::WORDS, "Kinds of changes, such as `rescheduled`, separated by commas.");
pub(super) const RESOURCE: Parameter = words("resource", &Resource::WORDS, "Types of records, separated by commas.");
pub(super) const SINCE: Parameter = duration("since", "Maximum age, such as `7d`. Excludes `from`.");
pub(super) const FROM: Parameter = text("from", "Start of the time range, inclusive: an instant, or a day such as `2026-03-09`.");
pub(super) const TO: Parameter =
    text("to", "End of the time range: an instant (exclusive), or a day such as `2026-03-09` (inclusive).");
pub(super) const STATE: Parameter = words("state", &AlertState::WORDS, "States, separated by commas.");
pub(super) const DELIVERY_STATE: Parameter = words("state", &DeliveryState::WORDS, "States, separated by commas.");
pub(super) const SEVERITY: Parameter = text("severity", "Value of the label `severity`.");
pub(super) const ACKNOWLEDGED: Parameter =
    parameter("acknowledged", ParameterKind::Boolean, "Only acknowledged alerts, or only unacknowledged ones.");
pub(super) const ASSIGNEE: Parameter = text("assignee", "Name of the person who takes care of the alert.");
pub(super) const RECEIVER: Parameter = text("receiver", "Name of a receiver.");
pub(super) const MATCHER: Parameter =
    parameter("matcher", ParameterKind::Texts, "A matcher such as `token=\"arbitrum\"`. Can be repeated; all must match.");
pub(super) const LIMIT: Parameter = parameter(
    "limit",
    ParameterKind::Integer(1, MAX_ROWS),
    "Maximum number of rows. The default is 100, the maximum 10,000. A list also ends at about 4 MiB.",
);
pub(super) const AFTER: Parameter =
    parameter("after", ParameterKind::Cursor, "Cursor of a page, from `next` of the previous page.");
pub(super) const BEFORE: Parameter = parameter(
    "before",
    ParameterKind::Cursor,
    "Cursor from `previous` of a page: the rows before that page, the nearest ones if there are more than `limit`. Rows that are \
     committed later appear there. `0` is before the oldest row. Excludes `after`.",
);
pub(super) const ALERT_SORT: Parameter = parameter(
    "sort",
    ParameterKind::Word(&["newest", "updated"]),
    "Order of the list: `newest` by the commit that began the alert, the default, or `updated` by the latest update. A walk through \
     pages by `updated` can skip an alert that is updated meanwhile.",
);
pub(super) const PAGED: Parameter = parameter(
    "paged",
    ParameterKind::Boolean,
    "Whether to return an object with `total`, `next`, and `items` instead of a bare array.",
);

/// The additional parameters of lists with pages.
pub(super) const PAGING: [Parameter; 3] = [LIMIT, AFTER, PAGED];

/// The maximum of `limit` for events.
pub(super) const MAX_EVENTS: u32 = 200;

pub(super) const EVENT_AFTER: Parameter = parameter(
    "after",
    ParameterKind::Integer(0, u32::MAX),
    "Number of the last event that the client has processed: `next` of the previous response. The default is the beginning of the log.",
);
pub(super) const EVENT_TYPE: Parameter =
    words("type", &EventType::WORDS, "Types of events, separated by commas; the default is all.");
pub(super) const AUDIT_TYPE: Parameter =
    words("type", &EventType::WORDS_OF_USERS, "Types of actions, separated by commas; the default is all.");
pub(super) const AUTHOR: Parameter = text("author", "Name of an access key or of a user.");
pub(super) const EVENT_LIMIT: Parameter = parameter(
    "limit",
    ParameterKind::Integer(1, MAX_EVENTS),
    "Maximum number of events. The default is 100, the maximum 200. A response also ends at about 4 MiB.",
);
pub(super) const WAIT: Parameter = duration(
    "wait",
    "Time to wait if there are no events after the cursor, such as `30s`, at most 30 s. The response comes as soon as there is one.",
);

pub(super) const PAGES: Parameter = parameter(
    "pages",
    ParameterKind::Boolean,
    "For web pages: only `news` whenever there may be new data, without `id` and body.",
);

// Parameters of feeds and web pages.
pub(super) const MONTH_SPAN: Parameter =
    parameter("spans", ParameterKind::Word(&["day", "month"]), "The length of entries with month precision.");
pub(super) const LINEAR: Parameter = parameter(
    "linear",
    ParameterKind::Boolean,
    "Whether to include starts, ends, and rate changes of linear unlocks. The default is `true`.",
);
pub(super) const ALARM: Parameter = duration("alarm", "Time of the alarm before an entry, such as `1d`.");
pub(super) const MONTH: Parameter = text("month", "A month such as `2026-03`. The default is the current one.");
pub(super) const VIEW: Parameter = text("view", "`list` for a list instead of a month of days.");
pub(super) const UNLOCK_ORDER: Parameter =
    parameter("sort", ParameterKind::Word(&UnlockOrder::WORDS), "The order of the list. The default is `date`.");
pub(super) const OFFSET: Parameter = parameter("offset", ParameterKind::Integer(0, u32::MAX), "Number of rows to skip.");
pub(super) const FEED_LIMIT: Parameter = parameter(
    "limit",
    ParameterKind::Integer(1, MAX_FEED_ENTRIES),
    "Maximum number of entries. The default is 100, the maximum 1,000.",
);
pub(super) const CALENDAR_LIMIT: Parameter = parameter(
    "limit",
    ParameterKind::Integer(1, MAX_ROWS),
    "Maximum number of entries. The default is 10,000, also the maximum.",
);
pub(super) const CHOSEN: Parameter = text("chosen", "`all` to select all alerts on the page.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_each_name_is_limited_but_not_of_the_list() {
        let names = vec!["arbitrum"; 1_000].join(",");
        assert_eq!(TOKENS.kind.check(&names), Ok(()));
        assert!(TOKENS.kind.check(&"x".repeat(MAX_TEXT + 1)).is_err());
    }
}
