//! The table of keys: which there are, and what each may hold. A test holds it against the structs of [`crate::config`].

use crate::{config::ReceiverKind, notify::service::Format};

/// What a key may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A text, or a whole number that is one.
    TextOrNumber,
    /// A text that is never shown.
    Secret,
    /// A secret address, https unless loopback.
    SecretUrl,
    /// A path.
    File,
    /// A public address; `true`: https unless loopback.
    Url(bool),
    /// `smtp://` or `smtps://`.
    Smtp,
    /// A length of time between two, seconds.
    Span(u64, u64),
    /// Several of them.
    Spans(u64, u64),
    /// `"10%"`.
    Percent,
    /// `"16MiB"`.
    Size,
    /// A whole number.
    Count { min: i64, max: i64 },
    /// A number.
    Number { min: f64, max: f64 },
    /// `true` or `false`.
    Bool,
    /// A cron pattern or `off`.
    Cron,
    /// An IANA zone.
    Zone,
    /// `auto` or one of these.
    Version(&'static [u8]),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A log filter.
    Level,
    /// Address and port, or `off`.
    Listen,
    /// A mail address.
    Mailbox,
    /// Several of them.
    Mailboxes,
    /// Slugs or globs of tokens.
    Globs,
    /// Globs of files.
    Files,
    /// Named lists of slugs or globs.
    Groups,
    /// Networks in CIDR notation.
    Networks,
    /// Matchers of a route; checked where routes are built.
    Matchers,
    /// Names of receivers.
    Names,
    /// Texts.
    Texts,
    /// Children of a route.
    Routes,
    /// A time of the day, `HH:MM`; checked where it is used.
    TimeOfDay,
    /// A table with keys of its own.
    Table(&'static [Key]),
    /// Several of them.
    Tables(&'static [Key]),
}

impl Kind {
    /// Whether its value must never be shown.
    pub fn is_secret(self) -> bool {
        matches!(self, Kind::Secret | Kind::SecretUrl)
    }

    /// Whether it holds a list of texts.
    pub fn is_list(self) -> bool {
        matches!(
            self,
            Kind::Spans(..)
                | Kind::Mailboxes
                | Kind::Globs
                | Kind::Files
                | Kind::Networks
                | Kind::Matchers
                | Kind::Names
                | Kind::Texts
        )
    }
}

/// A key of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Key {
    pub name: &'static str,
    pub kind: Kind,
}

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name, kind }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 366 * DAY;

const fn count(min: i64, max: i64) -> Kind {
    Kind::Count { min, max }
}

/// All sections, in the order of the file.
pub(super) const SECTIONS: &[(&str, &[Key])] = &[
    (
        "source",
        &[
            key("base_url", Kind::Url(true)),
            key("legacy_base_url", Kind::Url(true)),
            key("api_key", Kind::Secret),
            key("api_key_file", Kind::File),
            key("unlock_events", Kind::Version(&[1, 2, 3, 4, 5])),
            key("upcoming", Kind::Version(&[1, 5])),
            key("token_list", Kind::Version(&[1, 2, 3, 4, 5])),
            key("burn", Kind::Version(&[1, 5])),
            key("buyback", Kind::Version(&[1, 5])),
            key("daily_emission", Kind::Version(&[1, 2, 5])),
            key("weekly_emission", Kind::Version(&[1, 2, 3])),
            key("allocations", Kind::Version(&[1, 2, 5])),
            key("investors", Kind::Version(&[1, 5])),
            key("timeout", Kind::Span(1, HOUR)),
            key("connect_timeout", Kind::Span(1, HOUR)),
            key("read_timeout", Kind::Span(1, HOUR)),
            key("requests_per_minute", count(1, 60_000)),
            key("concurrency", count(1, 256)),
            key("page_size", count(1, 10_000)),
            key("max_body", Kind::Size),
            key("history", Kind::Span(0, 100 * YEAR)),
            key("horizon", Kind::Span(DAY, 100 * YEAR)),
            key("upcoming_horizon", Kind::Span(DAY, 100 * YEAR)),
            key("tls_ca_file", Kind::File),
        ],
    ),
    ("watch", &[key("tokens", Kind::Globs), key("groups", Kind::Groups)]),
    (
        "schedule",
        &[
            key("timezone", Kind::Zone),
            key("token_list", Kind::Cron),
            key("upcoming", Kind::Cron),
            key("unlock_events", Kind::Cron),
            key("burn", Kind::Cron),
            key("buyback", Kind::Cron),
            key("allocations", Kind::Cron),
            key("daily_emission", Kind::Cron),
            key("weekly_emission", Kind::Cron),
            key("investors", Kind::Cron),
            key("evaluate", Kind::Cron),
        ],
    ),
    ("budget", &[key("monthly_credits", count(0, i64::MAX)), key("reserve", Kind::Percent), key("near", Kind::Span(0, YEAR))]),
    (
        "store",
        &[
            key("path", Kind::File),
            key("removal_confirmations", count(1, 1000)),
            key("tolerance", Kind::Number { min: 0.0, max: 0.5 }),
            key("retention", Kind::Span(DAY, 100 * YEAR)),
            key("poll_log_retention", Kind::Span(HOUR, 100 * YEAR)),
        ],
    ),
    ("rules", &[key("paths", Kind::Files)]),
    (
        "http",
        &[
            key("listen", Kind::Listen),
            key("external_url", Kind::Url(false)),
            key("token", Kind::Secret),
            key("token_file", Kind::File),
            key("dead_mans_switch", Kind::SecretUrl),
            key("dead_mans_switch_file", Kind::File),
        ],
    ),
    ("mirror", &[key("listen", Kind::Listen), key("keys", Kind::File), key("requests_per_minute", count(1, 60_000))]),
    (
        "delivery",
        &[
            key("retry", Kind::Spans(0, 30 * DAY)),
            key("jitter", Kind::Percent),
            key("max_retry_after", Kind::Span(0, 7 * DAY)),
            key("timeout", Kind::Span(1, HOUR)),
            key("concurrency", count(1, 256)),
            key("max_per_hour", count(1, 1_000_000)),
        ],
    ),
    ("log", &[key("format", Kind::Choice(&["auto", "human", "json"])), key("level", Kind::Level)]),
];

/// Keys of a `[[receiver]]`, of all types.
pub(super) const RECEIVER: &[Key] = &[
    key("name", Kind::Text),
    key("type", Kind::Choice(&["email", "webhook"])),
    key("url", Kind::SecretUrl),
    key("url_file", Kind::File),
    key("format", Kind::Choice(&Format::WORDS)),
    key("secret", Kind::Secret),
    key("secret_file", Kind::File),
    key("token", Kind::Secret),
    key("token_file", Kind::File),
    key("routing_key", Kind::Secret),
    key("routing_key_file", Kind::File),
    key("api_key", Kind::Secret),
    key("api_key_file", Kind::File),
    key("topic", Kind::Secret),
    key("topic_file", Kind::File),
    key("chat_id", Kind::TextOrNumber),
    key("thread_id", count(1, i64::MAX)),
    key("template", Kind::Text),
    key("template_file", Kind::File),
    key("content_type", Kind::Text),
    key("allow_networks", Kind::Networks),
    key("smtp", Kind::Smtp),
    key("username", Kind::Text),
    key("password", Kind::Secret),
    key("password_file", Kind::File),
    key("from", Kind::Mailbox),
    key("to", Kind::Mailboxes),
    key("tls_ca_file", Kind::File),
    key("send_resolved", Kind::Bool),
    key("max_per_hour", count(1, 1_000_000)),
    key("digest", Kind::Table(DIGEST)),
];

/// Keys of `digest` in a `[[receiver]]`.
const DIGEST: &[Key] =
    &[key("at", Kind::TimeOfDay), key("days", Kind::Texts), key("timezone", Kind::Zone), key("ahead", Kind::Span(HOUR, YEAR))];

/// Keys of each of `[[inhibit_rules]]`.
pub(super) const INHIBIT_RULE: &[Key] = &[
    key("name", Kind::Text),
    key("source_matchers", Kind::Matchers),
    key("target_matchers", Kind::Matchers),
    key("equal", Kind::Texts),
];

/// Keys of each of `[[time_intervals]]`.
pub(super) const TIME_INTERVALS: &[Key] = &[key("name", Kind::Text), key("time_intervals", Kind::Tables(TIME_INTERVAL))];

const TIME_INTERVAL: &[Key] = &[
    key("times", Kind::Tables(TIME_RANGE)),
    key("weekdays", Kind::Texts),
    key("days_of_month", Kind::Texts),
    key("months", Kind::Texts),
    key("years", Kind::Texts),
    key("location", Kind::Zone),
];

const TIME_RANGE: &[Key] = &[key("start_time", Kind::TimeOfDay), key("end_time", Kind::TimeOfDay)];

/// Keys of `[route]` and of each `[[route.routes]]`.
pub(super) const ROUTE: &[Key] = &[
    key("matchers", Kind::Matchers),
    key("receivers", Kind::Names),
    key("fallback", Kind::Names),
    key("group_by", Kind::Texts),
    key("group_wait", Kind::Span(0, 7 * DAY)),
    key("group_interval", Kind::Span(0, 30 * DAY)),
    key("repeat_interval", Kind::Span(MINUTE, YEAR)),
    key("active_time_intervals", Kind::Names),
    key("mute_time_intervals", Kind::Names),
    key("continue", Kind::Bool),
    key("routes", Kind::Routes),
];

/// The keys of a section; none where there is no such section.
pub(super) fn section(name: &str) -> Option<&'static [Key]> {
    match name {
        "receiver" => Some(RECEIVER),
        "route" => Some(ROUTE),
        "inhibit_rules" => Some(INHIBIT_RULE),
        "time_intervals" => Some(TIME_INTERVALS),
        _ => SECTIONS.iter().find(|(section, _)| *section == name).map(|(_, keys)| *keys),
    }
}

/// A key of a section.
pub(super) fn find(of: &str, name: &str) -> Option<&'static Key> {
    section(of)?.iter().find(|key| key.name == name)
}

/// Names of all sections.
pub(super) fn section_names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|(name, _)| *name).chain(["receiver", "route", "inhibit_rules", "time_intervals"])
}

/// Which type of receiver a key is for; none where it is for both.
pub(super) fn receiver_kind(name: &str) -> Option<ReceiverKind> {
    match name {
        "url" | "url_file" | "format" | "secret" | "secret_file" | "allow_networks" | "token" | "token_file" | "routing_key"
        | "routing_key_file" | "api_key" | "api_key_file" | "topic" | "topic_file" | "chat_id" | "thread_id" | "template"
        | "template_file" | "content_type" => Some(ReceiverKind::Webhook),
        "smtp" | "username" | "password" | "password_file" | "from" | "to" => Some(ReceiverKind::Email),
        _ => None,
    }
}

/// Whether every key of this name, wherever it stands, may be shown with its value.
pub(super) fn is_public(name: &str) -> bool {
    let beside = [RECEIVER, ROUTE, INHIBIT_RULE, TIME_INTERVALS, TIME_INTERVAL, TIME_RANGE, DIGEST];
    let all = SECTIONS.iter().flat_map(|(_, keys)| keys.iter()).chain(beside.into_iter().flatten());
    let mut known = all.filter(|key| key.name == name);
    let Some(first) = known.next() else { return false };
    !std::iter::once(first).chain(known).any(|key| {
        key.kind.is_secret()
            || matches!(key.kind, Kind::Url(_) | Kind::Smtp | Kind::Groups | Kind::Routes | Kind::Table(_) | Kind::Tables(_))
    })
}

/// Words that, in a comment or a misspelt key, hint at a secret.
pub(super) const SECRET_WORDS: [&str; 9] =
    ["api_key", "token", "secret", "password", "url", "dead_mans_switch", "key", "bearer", "smtp"];
