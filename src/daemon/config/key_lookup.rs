//! Looks up config keys. [`model::config`] declares them, except for the keys of single webhook formats.

use std::sync::LazyLock;

use model::config::{
    ConfigKey, DigestSettings, InhibitRule, ReceiverKind, ReceiverSettings, Route, SECTIONS, TimeInterval, TimeIntervals,
    TimeRange, ValueKind,
};
use notify::format::{FormatKeyValue, format_keys};

/// The keys of a `[[receiver]]` of any type and format. `notify::format` declares the keys of formats, so that a new format is one file.
pub(super) fn receiver() -> &'static [ConfigKey] {
    static ALL: LazyLock<Vec<ConfigKey>> = LazyLock::new(|| {
        let of_formats = format_keys().flat_map(|key| {
            let kind = match key.value {
                FormatKeyValue::TextOrNumber => ValueKind::TextOrNumber,
                FormatKeyValue::PositiveNumber => ValueKind::Count(1, i64::MAX),
                FormatKeyValue::Text => ValueKind::Text,
                FormatKeyValue::SigningSecrets | FormatKeyValue::BearerToken | FormatKeyValue::OwnSecret => ValueKind::Secret,
            };
            let file = if kind.is_secret() { ValueKind::SecretFile } else { ValueKind::Path };
            let key_of = |name, kind| ConfigKey::new(name, kind, &[]).webhook();
            std::iter::once(key_of(key.name, kind)).chain(key.file.map(|name| key_of(name, file)))
        });
        ReceiverSettings::KEYS.iter().copied().chain(of_formats).collect()
    });
    &ALL
}

/// The tables at the top level that are not sections, with their keys.
fn tables() -> [(&'static str, &'static [ConfigKey]); 4] {
    [
        ("receiver", receiver()),
        ("route", Route::KEYS),
        ("inhibit_rules", InhibitRule::KEYS),
        ("time_intervals", TimeIntervals::KEYS),
    ]
}

fn all() -> impl Iterator<Item = (&'static str, &'static [ConfigKey])> {
    SECTIONS.iter().map(|section| (section.name, section.keys)).chain(tables())
}

/// The keys of a section or table at the top level.
pub(super) fn section(name: &str) -> Option<&'static [ConfigKey]> {
    all().find(|(section, _)| *section == name).map(|(_, keys)| keys)
}

pub(super) fn find(section_name: &str, name: &str) -> Option<&'static ConfigKey> {
    section(section_name)?.iter().find(|key| key.name == name)
}

pub(super) fn section_names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, _)| name)
}

/// The only receiver type that accepts a key. `None` if several do.
pub(super) fn receiver_kind(name: &str) -> Option<ReceiverKind> {
    find("receiver", name)?.receiver
}

/// Returns whether the value of every key of this name, in any table, may be shown.
pub(super) fn is_public(name: &str) -> bool {
    let nested = [DigestSettings::KEYS, TimeInterval::KEYS, TimeRange::KEYS];
    let mut known = all().map(|(_, keys)| keys).chain(nested).flatten().filter(|key| key.name == name).peekable();
    known.peek().is_some()
        && !known.any(|key| {
            key.kind.is_secret()
                || matches!(
                    key.kind,
                    ValueKind::Url
                        | ValueKind::Smtp
                        | ValueKind::Groups
                        | ValueKind::Positions
                        | ValueKind::Arguments
                        | ValueKind::Routes
                        | ValueKind::Table(_)
                        | ValueKind::Tables(_)
                )
        })
}

/// Words that indicate a secret in a comment or in a misspelled key.
pub(super) const SECRET_WORDS: [&str; 9] =
    ["api_key", "token", "secret", "password", "url", "dead_mans_switch", "key", "bearer", "smtp"];
