//! The table of keys: which there are, and what each may hold. A test holds it against the structs of [`model::config`].

use std::sync::LazyLock;

use model::{Endpoint, config::ReceiverKind};
use notify::format::{FORMAT_NAMES, FormatKeyValue, format_keys};

/// What a key may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueKind {
    Text,
    /// A text, or a whole number that is one.
    TextOrNumber,
    /// A text that is never shown.
    Secret,
    /// A secret address, https unless loopback.
    SecretUrl,
    File,
    /// A public address; `true`: https unless loopback.
    Url(bool),
    /// `smtp://` or `smtps://`.
    Smtp,
    /// A length of time between two, seconds.
    Span(u64, u64),
    /// The same, or `all`.
    Reach(u64, u64),
    /// Several of them.
    Spans(u64, u64),
    /// `"10%"`.
    Percent,
    /// `"16MiB"`.
    Size,
    /// A whole number.
    Count {
        min: i64,
        max: i64,
    },
    Number {
        min: f64,
        max: f64,
    },
    /// `true` or `false`.
    Bool,
    /// A cron pattern or `off`.
    Cron,
    /// An IANA zone.
    Zone,
    /// `auto` or one of these, newest first.
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
    Files,
    /// Named lists of slugs or globs.
    Groups,
    /// Networks in CIDR notation.
    Networks,
    /// Matchers of a route; checked where routes are built.
    Matchers,
    Names,
    Texts,
    /// Those of a program: texts that may hold what is nobody's business.
    Arguments,
    /// Children of a route.
    Routes,
    /// A time of the day, `HH:MM`; checked where it is used.
    TimeOfDay,
    Table(&'static [ConfigKey]),
    /// Several of them.
    Tables(&'static [ConfigKey]),
}

impl ValueKind {
    /// Whether its value must never be shown.
    pub fn is_secret(self) -> bool {
        matches!(self, ValueKind::Secret | ValueKind::SecretUrl)
    }

    /// Whether it holds a list of texts.
    pub fn is_list(self) -> bool {
        matches!(
            self,
            ValueKind::Spans(..)
                | ValueKind::Mailboxes
                | ValueKind::Globs
                | ValueKind::Files
                | ValueKind::Networks
                | ValueKind::Matchers
                | ValueKind::Names
                | ValueKind::Texts
                | ValueKind::Arguments
        )
    }
}

/// A key of a section.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ConfigKey {
    pub name: &'static str,
    pub kind: ValueKind,
}

const fn key(name: &'static str, kind: ValueKind) -> ConfigKey {
    ConfigKey { name, kind }
}

const fn version(of: Endpoint) -> ConfigKey {
    key(of.as_str(), ValueKind::Version(of.versions()))
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 366 * DAY;

const fn count(min: i64, max: i64) -> ValueKind {
    ValueKind::Count { min, max }
}

/// All sections, in the order of the file.
pub(super) const SECTIONS: &[(&str, &[ConfigKey])] = &[
    (
        "source",
        &[
            key("base_url", ValueKind::Url(false)), // https unless loopback or in `allow_http_networks`: see `together`
            key("legacy_base_url", ValueKind::Url(false)),
            key("api_key", ValueKind::Secret),
            key("api_key_file", ValueKind::File),
            version(Endpoint::UnlockEvents),
            version(Endpoint::Upcoming),
            version(Endpoint::TokenList),
            version(Endpoint::Burn),
            version(Endpoint::Buyback),
            version(Endpoint::DailyEmission),
            version(Endpoint::WeeklyEmission),
            version(Endpoint::Allocations),
            version(Endpoint::Investors),
            key("timeout", ValueKind::Span(1, HOUR)),
            key("connect_timeout", ValueKind::Span(1, HOUR)),
            key("read_timeout", ValueKind::Span(1, HOUR)),
            key("requests_per_minute", count(1, 60_000)),
            key("concurrency", count(1, 256)),
            key("page_size", count(1, 10_000)),
            key("max_body", ValueKind::Size),
            key("history", ValueKind::Reach(0, 100 * YEAR)),
            key("horizon", ValueKind::Reach(DAY, 100 * YEAR)),
            key("upcoming_horizon", ValueKind::Span(DAY, 100 * YEAR)),
            key("tls_ca_file", ValueKind::File),
            key("allow_http_networks", ValueKind::Networks),
        ],
    ),
    ("watch", &[key("tokens", ValueKind::Globs), key("groups", ValueKind::Groups)]),
    (
        "schedule",
        &[
            key("timezone", ValueKind::Zone),
            key("token_list", ValueKind::Cron),
            key("upcoming", ValueKind::Cron),
            key("unlock_events", ValueKind::Cron),
            key("burn", ValueKind::Cron),
            key("buyback", ValueKind::Cron),
            key("allocations", ValueKind::Cron),
            key("daily_emission", ValueKind::Cron),
            key("weekly_emission", ValueKind::Cron),
            key("investors", ValueKind::Cron),
            key("evaluate", ValueKind::Cron),
        ],
    ),
    (
        "budget",
        &[key("monthly_credits", count(0, i64::MAX)), key("reserve", ValueKind::Percent), key("near", ValueKind::Span(0, YEAR))],
    ),
    (
        "store",
        &[
            key("path", ValueKind::File),
            key("url", ValueKind::Secret),
            key("url_file", ValueKind::File),
            key("tls_ca_file", ValueKind::File),
            key("removal_confirmations", count(1, 1000)),
            key("tolerance", ValueKind::Number { min: 0.0, max: 0.5 }),
            key("retention", ValueKind::Span(DAY, 100 * YEAR)),
            key("poll_log_retention", ValueKind::Span(HOUR, 100 * YEAR)),
        ],
    ),
    ("rules", &[key("paths", ValueKind::Files)]),
    (
        "http",
        &[
            key("listen", ValueKind::Listen),
            key("external_url", ValueKind::Url(false)),
            key("token", ValueKind::Secret),
            key("token_file", ValueKind::File),
            key("dead_mans_switch", ValueKind::SecretUrl),
            key("dead_mans_switch_file", ValueKind::File),
        ],
    ),
    (
        "mirror",
        &[
            key("listen", ValueKind::Listen),
            key("keys", ValueKind::File),
            key("keys_url", ValueKind::Secret),
            key("keys_url_file", ValueKind::File),
            key("requests_per_minute", count(1, 60_000)),
            key("tls_cert_file", ValueKind::File),
            key("tls_key_file", ValueKind::File),
        ],
    ),
    (
        "delivery",
        &[
            key("retry", ValueKind::Spans(0, 30 * DAY)),
            key("jitter", ValueKind::Percent),
            key("max_retry_after", ValueKind::Span(0, 7 * DAY)),
            key("timeout", ValueKind::Span(1, HOUR)),
            key("concurrency", count(1, 256)),
            key("max_per_hour", count(1, 1_000_000)),
        ],
    ),
    ("log", &[key("format", ValueKind::Choice(&["auto", "human", "json"])), key("level", ValueKind::Level)]),
];

/// Keys of a `[[receiver]]`: those of all types, then those of one type.
const ANY_RECEIVER_FIRST: &[ConfigKey] = &[key("name", ValueKind::Text), key("type", ValueKind::Choice(&ReceiverKind::WORDS))];

const ANY_WEBHOOK: &[ConfigKey] =
    &[key("url", ValueKind::SecretUrl), key("url_file", ValueKind::File), key("format", ValueKind::Choice(&FORMAT_NAMES))];

const WEBHOOK_NETWORKS: ConfigKey = key("allow_networks", ValueKind::Networks);

const EMAIL: &[ConfigKey] = &[
    key("smtp", ValueKind::Smtp),
    key("username", ValueKind::Text),
    key("password", ValueKind::Secret),
    key("password_file", ValueKind::File),
    key("from", ValueKind::Mailbox),
    key("to", ValueKind::Mailboxes),
];

const EXEC: &[ConfigKey] =
    &[key("command", ValueKind::Text), key("args", ValueKind::Arguments), key("concurrency", count(1, 64))];

const ANY_RECEIVER_LAST: &[ConfigKey] = &[
    key("tls_ca_file", ValueKind::File),
    key("send_resolved", ValueKind::Bool),
    key("max_per_hour", count(1, 1_000_000)),
    key("digest", ValueKind::Table(DIGEST)),
];

/// Keys of webhooks of all formats: what a format takes is in its table.
static WEBHOOK: LazyLock<Vec<ConfigKey>> = LazyLock::new(|| {
    let mut keys = ANY_WEBHOOK.to_vec();
    for own in format_keys() {
        let kind = match own.value {
            FormatKeyValue::TextOrNumber => ValueKind::TextOrNumber,
            FormatKeyValue::PositiveNumber => count(1, i64::MAX),
            FormatKeyValue::Text => ValueKind::Text,
            FormatKeyValue::SigningSecrets | FormatKeyValue::BearerToken | FormatKeyValue::OwnSecret => ValueKind::Secret,
        };
        keys.push(key(own.name, kind));
        keys.extend(own.file.map(|file| key(file, ValueKind::File)));
    }
    keys.push(WEBHOOK_NETWORKS);
    keys
});

/// Keys of a `[[receiver]]`, of all types.
pub(super) fn receiver() -> &'static [ConfigKey] {
    static ALL: LazyLock<Vec<ConfigKey>> =
        LazyLock::new(|| [ANY_RECEIVER_FIRST, &WEBHOOK, EMAIL, EXEC, ANY_RECEIVER_LAST].concat());
    &ALL
}

/// Keys of `digest` in a `[[receiver]]`.
const DIGEST: &[ConfigKey] = &[
    key("at", ValueKind::TimeOfDay),
    key("days", ValueKind::Texts),
    key("timezone", ValueKind::Zone),
    key("ahead", ValueKind::Span(HOUR, YEAR)),
];

/// Keys of each of `[[inhibit_rules]]`.
pub(super) const INHIBIT_RULE: &[ConfigKey] = &[
    key("name", ValueKind::Text),
    key("source_matchers", ValueKind::Matchers),
    key("target_matchers", ValueKind::Matchers),
    key("equal", ValueKind::Texts),
];

/// Keys of each of `[[time_intervals]]`.
pub(super) const TIME_INTERVALS: &[ConfigKey] =
    &[key("name", ValueKind::Text), key("time_intervals", ValueKind::Tables(TIME_INTERVAL))];

const TIME_INTERVAL: &[ConfigKey] = &[
    key("times", ValueKind::Tables(TIME_RANGE)),
    key("weekdays", ValueKind::Texts),
    key("days_of_month", ValueKind::Texts),
    key("months", ValueKind::Texts),
    key("years", ValueKind::Texts),
    key("location", ValueKind::Zone),
];

const TIME_RANGE: &[ConfigKey] = &[key("start_time", ValueKind::TimeOfDay), key("end_time", ValueKind::TimeOfDay)];

/// Keys of `[route]` and of each `[[route.routes]]`.
pub(super) const ROUTE: &[ConfigKey] = &[
    key("matchers", ValueKind::Matchers),
    key("receivers", ValueKind::Names),
    key("fallback", ValueKind::Names),
    key("group_by", ValueKind::Texts),
    key("group_wait", ValueKind::Span(0, 7 * DAY)),
    key("group_interval", ValueKind::Span(0, 30 * DAY)),
    key("repeat_interval", ValueKind::Span(MINUTE, YEAR)),
    key("active_time_intervals", ValueKind::Names),
    key("mute_time_intervals", ValueKind::Names),
    key("continue", ValueKind::Bool),
    key("routes", ValueKind::Routes),
];

/// The keys of a section; none where there is no such section.
pub(super) fn section(name: &str) -> Option<&'static [ConfigKey]> {
    match name {
        "receiver" => Some(receiver()),
        "route" => Some(ROUTE),
        "inhibit_rules" => Some(INHIBIT_RULE),
        "time_intervals" => Some(TIME_INTERVALS),
        _ => SECTIONS.iter().find(|(section, _)| *section == name).map(|(_, keys)| *keys),
    }
}

/// A key of a section.
pub(super) fn find(of: &str, name: &str) -> Option<&'static ConfigKey> {
    section(of)?.iter().find(|key| key.name == name)
}

pub(super) fn section_names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|(name, _)| *name).chain(["receiver", "route", "inhibit_rules", "time_intervals"])
}

/// Which type of receiver a key is for; none where it is for several.
pub(super) fn receiver_kind(name: &str) -> Option<ReceiverKind> {
    let holds = |keys: &[ConfigKey]| keys.iter().any(|key| key.name == name);
    [(WEBHOOK.as_slice(), ReceiverKind::Webhook), (EMAIL, ReceiverKind::Email), (EXEC, ReceiverKind::Exec)]
        .into_iter()
        .find_map(|(keys, kind)| holds(keys).then_some(kind))
}

/// Whether every key of this name, wherever it stands, may be shown with its value.
pub(super) fn is_public(name: &str) -> bool {
    let beside = [receiver(), ROUTE, INHIBIT_RULE, TIME_INTERVALS, TIME_INTERVAL, TIME_RANGE, DIGEST];
    let all = SECTIONS.iter().flat_map(|(_, keys)| keys.iter()).chain(beside.into_iter().flatten());
    let mut known = all.filter(|key| key.name == name);
    let Some(first) = known.next() else { return false };
    !std::iter::once(first).chain(known).any(|key| {
        key.kind.is_secret()
            || matches!(
                key.kind,
                ValueKind::Url(_)
                    | ValueKind::Smtp
                    | ValueKind::Groups
                    | ValueKind::Arguments
                    | ValueKind::Routes
                    | ValueKind::Table(_)
                    | ValueKind::Tables(_)
            )
    })
}

/// Words that, in a comment or a misspelt key, hint at a secret.
pub(super) const SECRET_WORDS: [&str; 9] =
    ["api_key", "token", "secret", "password", "url", "dead_mans_switch", "key", "bearer", "smtp"];
