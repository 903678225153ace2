//! The parameters of lists and feeds. A list names the ones that it accepts; parsing, error messages, OpenAPI, and the links of pages
//! follow from that.

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
    Number,
    Integer,
    Boolean,
}

impl ParameterKind {
    /// Returns `true` if `text` is a valid value.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            ParameterKind::Text | ParameterKind::Texts => true,
            ParameterKind::Number => text.parse::<f64>().is_ok(),
            ParameterKind::Integer => text.parse::<u32>().is_ok(),
            ParameterKind::Boolean => text.parse::<bool>().is_ok(),
        }
    }

    pub fn expected(self) -> &'static str {
        match self {
            ParameterKind::Text | ParameterKind::Texts => "a text",
            ParameterKind::Number => "a number such as 5000000",
            ParameterKind::Integer => "a whole number such as 100",
            ParameterKind::Boolean => "true or false",
        }
    }
}

const fn parameter(name: &'static str, kind: ParameterKind, description: &'static str) -> Parameter {
    Parameter { name, kind, description }
}

const fn text(name: &'static str, description: &'static str) -> Parameter {
    parameter(name, ParameterKind::Text, description)
}

pub(super) const TOKEN: Parameter = text("token", "Slug of a token.");
pub(super) const TOKENS: Parameter = text("token", "Slugs of tokens, separated by commas.");
pub(super) const GROUP: Parameter = text("group", "Names of groups in `[watch.groups]`, separated by commas.");
pub(super) const ONE_GROUP: Parameter = text("group", "Name of a group in `[watch.groups]`. The default is all watched tokens.");
pub(super) const WITHIN: Parameter =
    text("within", "Maximum time until the unlock, such as `30d`. Of a linear unlock, only the part within this time counts.");
pub(super) const MIN_VALUE: Parameter = parameter(
    "min_value",
    ParameterKind::Number,
    "Minimum value in USD; of a linear unlock, the value within the selected time.",
);
pub(super) const UNLOCK_TYPE: Parameter = text("type", "`cliff` or `linear`; the default is both.");
pub(super) const RULE: Parameter = text("rule", "Name or id of a rule.");
pub(super) const RULES: Parameter = text("rule", "Names or ids of rules whose condition must be true, separated by commas.");
pub(super) const SEARCH: Parameter = text("q", "Part of a slug, name, or ticker.");
pub(super) const SORT: Parameter = text("sort", "`value`, `share`, `month`, `per_day`, `next`, `market_cap`, or `name`.");
pub(super) const KIND: Parameter = text("kind", "Kind of change, such as `rescheduled`.");
pub(super) const RESOURCE: Parameter = text("resource", "`unlock`, `burn`, `buyback`, `emission`, `allocation`, or `funding`.");
pub(super) const SINCE: Parameter = text("since", "Maximum age, such as `7d`. Excludes `from`.");
pub(super) const FROM: Parameter = text("from", "Start of the time range, inclusive: an instant, or a day such as `2026-03-09`.");
pub(super) const TO: Parameter =
    text("to", "End of the time range: an instant (exclusive), or a day such as `2026-03-09` (inclusive).");
pub(super) const STATE: Parameter = text("state", "`pending`, `firing`, `resolved`, or `event`; several separated by commas.");
pub(super) const DELIVERY_STATE: Parameter =
    text("state", "`due`, `retrying`, `delivered`, `dead`, or `dropped`; several separated by commas.");
pub(super) const SEVERITY: Parameter = text("severity", "Value of the label `severity`.");
pub(super) const ACKNOWLEDGED: Parameter =
    parameter("acknowledged", ParameterKind::Boolean, "Only acknowledged alerts, or only unacknowledged ones.");
pub(super) const RECEIVER: Parameter = text("receiver", "Name of a receiver.");
pub(super) const MATCHER: Parameter =
    parameter("matcher", ParameterKind::Texts, "A matcher such as `token=\"arbitrum\"`. Can be repeated; all must match.");
pub(super) const LIMIT: Parameter = parameter(
    "limit",
    ParameterKind::Integer,
    "Maximum number of rows. The default is 100, the maximum 10,000. A list also ends at about 4 MiB.",
);
pub(super) const AFTER: Parameter = text("after", "Cursor of a page, from `next` of the previous page.");
pub(super) const PAGED: Parameter = parameter(
    "paged",
    ParameterKind::Boolean,
    "Whether to return an object with `total`, `next`, and `items` instead of a bare array.",
);

/// The additional parameters of lists with pages.
pub(super) const PAGING: [Parameter; 3] = [LIMIT, AFTER, PAGED];

// Parameters of feeds and web pages, which are not part of the API.
pub(super) const MONTH_SPAN: Parameter = text("spans", "`day` or `month`: the length of entries with month precision.");
pub(super) const LINEAR: Parameter = parameter(
    "linear",
    ParameterKind::Boolean,
    "Whether to include starts, ends, and rate changes of linear unlocks. The default is `true`.",
);
pub(super) const ALARM: Parameter = text("alarm", "Time of the alarm before an entry, such as `1d`.");
pub(super) const MONTH: Parameter = text("month", "A month such as `2026-03`. The default is the current one.");
pub(super) const VIEW: Parameter = text("view", "`list` for a list instead of a month of days.");
pub(super) const UNLOCK_ORDER: Parameter = text("sort", "`date`, `value`, or `share`.");
pub(super) const OFFSET: Parameter = parameter("offset", ParameterKind::Integer, "Number of rows to skip.");
pub(super) const CHOSEN: Parameter = text("chosen", "`all` to select all alerts on the page.");
