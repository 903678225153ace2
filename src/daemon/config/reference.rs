//! The reference of all config keys in `docs/configuration.md`, written from their declarations.

use model::config::{Config, ConfigKey, DigestSettings, InhibitRule, ReceiverSettings, Route, SECTIONS, Span, TimeInterval};
use model::config::{TimeIntervals, TimeRange, ValueKind, one_line};

const BEGIN: &str = "<!-- Written by a test from src/model/config: do not edit. -->\n";
const END: &str = "<!-- The end of the reference. -->\n";

fn reference() -> String {
    let mut text = String::new();
    for section in SECTIONS {
        let restart = if section.needs_restart { " Changes need a restart." } else { "" };
        let description = one_line(section.description);
        text.push_str(&format!("\n### `[{}]`\n\n{description}{restart}\n\n", section.name));
        text.push_str(&table(section.keys, true, |key| {
            Config::default_of(section.name, key.name).map(|value| value.to_string())
        }));
    }
    let tables = [
        ("[[receiver]]", ReceiverSettings::DESCRIPTION, ReceiverSettings::KEYS),
        ("digest` of `[[receiver]]", DigestSettings::DESCRIPTION, DigestSettings::KEYS),
        ("[route]` and `[[route.routes]]", Route::DESCRIPTION, Route::KEYS),
        ("[[inhibit_rules]]", InhibitRule::DESCRIPTION, InhibitRule::KEYS),
        ("[[time_intervals]]", TimeIntervals::DESCRIPTION, TimeIntervals::KEYS),
        ("time_intervals` of `[[time_intervals]]", TimeInterval::DESCRIPTION, TimeInterval::KEYS),
        ("times` of `time_intervals", TimeRange::DESCRIPTION, TimeRange::KEYS),
    ];
    for (title, description, keys) in tables {
        text.push_str(&format!("\n### `{title}`\n\n{}\n\n{}", one_line(description), table(keys, false, |_| None)));
    }
    text
}

fn table(keys: &[ConfigKey], has_defaults: bool, default_of: impl Fn(&ConfigKey) -> Option<String>) -> String {
    let mut text = match has_defaults {
        true => "| Key | Value | Default | Description |\n|---|---|---|---|\n".to_owned(),
        false => "| Key | Value | Description |\n|---|---|---|\n".to_owned(),
    };
    for key in keys {
        let mut description = key.receiver.map(|kind| format!("For `{}`. ", kind.as_str())).unwrap_or_default();
        description.push_str(&one_line(key.description));
        if key.is_required {
            description.push_str(" Required.");
        }
        if key.needs_restart {
            description.push_str(" Changes need a restart.");
        }
        let default = default_of(key).map(|default| format!(" `{default}`")).unwrap_or_default();
        let default = if has_defaults { format!("{default} |") } else { String::new() };
        text.push_str(&format!("| `{}` | {} |{default} {description} |\n", key.name, accepted(key.kind)));
    }
    text
}

/// The accepted values in words.
fn accepted(kind: ValueKind) -> String {
    let words = |words: &mut dyn Iterator<Item = String>| words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let range = |min, max| format!("`{}` to `{}`", Span::from_secs(min), Span::from_secs(max));
    match kind {
        ValueKind::Text => "text".to_owned(),
        ValueKind::TextOrNumber => "text or whole number".to_owned(),
        ValueKind::Secret => "secret".to_owned(),
        ValueKind::SecretUrl => "URL, secret".to_owned(),
        ValueKind::Path | ValueKind::CertificateFile | ValueKind::SecretFile => "file".to_owned(),
        ValueKind::Url => "URL".to_owned(),
        ValueKind::Smtp => "`smtp://` or `smtps://` URL".to_owned(),
        ValueKind::Span(min, max) => format!("duration, {}", range(min, max)),
        ValueKind::Spans(min, max) => format!("list of durations, {}", range(min, max)),
        ValueKind::Reach(min, max) => format!("`all`, or a duration, {}", range(min, max)),
        ValueKind::Percent => "percentage".to_owned(),
        ValueKind::Size => "size".to_owned(),
        ValueKind::Count(min, i64::MAX) => format!("whole number, at least {min}"),
        ValueKind::Count(min, max) => format!("whole number, {min} to {max}"),
        ValueKind::Number(min, max) => format!("number, {min} to {max}"),
        ValueKind::Bool => "`true` or `false`".to_owned(),
        ValueKind::Cron => "cron pattern, or `off`".to_owned(),
        ValueKind::Zone => "IANA time zone".to_owned(),
        ValueKind::Version(versions) => {
            format!("`auto`, {}", words(&mut versions.iter().map(|version| format!("v{version}"))))
        }
        ValueKind::Choice(choices) => words(&mut choices.iter().map(|&word| word.to_owned())),
        ValueKind::Choices(choices) => format!("list of {}", words(&mut choices.iter().map(|&word| word.to_owned()))),
        ValueKind::Format => "[format](receivers.md#formats)".to_owned(),
        ValueKind::LogFilter => "log filter".to_owned(),
        ValueKind::Listen => "address and port, or `off`".to_owned(),
        ValueKind::Mailbox => "mail address".to_owned(),
        ValueKind::Mailboxes => "list of mail addresses".to_owned(),
        ValueKind::Globs => "list of slugs and globs".to_owned(),
        ValueKind::FileGlobs => "list of globs".to_owned(),
        ValueKind::Groups => "table of lists of slugs and globs".to_owned(),
        ValueKind::Positions => "table of amounts by slug or ticker".to_owned(),
        ValueKind::Networks => "list of networks (CIDR)".to_owned(),
        ValueKind::HeaderName => "name of a header".to_owned(),
        ValueKind::Origins => "list of origins".to_owned(),
        ValueKind::Matchers => "list of matchers".to_owned(),
        ValueKind::Names => "list of names".to_owned(),
        ValueKind::Texts | ValueKind::Arguments => "list of texts".to_owned(),
        ValueKind::Routes => "list of routes".to_owned(),
        ValueKind::TimeOfDay => "time of the day".to_owned(),
        ValueKind::Table(_) => "table".to_owned(),
        ValueKind::Tables(_) => "list of tables".to_owned(),
    }
}

#[test]
fn docs_have_the_reference_of_all_keys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).expect("docs/configuration.md");
    let (before, rest) = page.split_once(BEGIN).expect("the begin of the reference");
    let (_, after) = rest.split_once(END).expect("the end of the reference");
    let expected = format!("{before}{BEGIN}{}\n{END}{after}", reference());
    if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
        std::fs::write(path, &expected).expect("written");
        return;
    }
    assert_eq!(page, expected, "to update it, run `INSTA_UPDATE=always cargo test -p cliffwatch-daemon --lib reference`");
}
