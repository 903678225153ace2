//! Checks of texts with a syntax: cron patterns, time zones, URLs, globs, networks, and mail addresses.

use std::net::SocketAddr;

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZoneDatabase;

use super::ConfigCheck;
use crate::config::tree::{ConfigNode, Location};
use model::closest;
use notify::Network;

impl ConfigCheck<'_> {
    pub(super) fn glob(&mut self, text: &str, node: &ConfigNode) {
        if let Some(group) = text.strip_prefix('@') {
            self.error(&node.location, format!("{text:?} is a group, but only slugs and globs are allowed here")).help =
                Some(format!("list the tokens of {group:?} here, or use the group in rules: `tokens = [{text:?}]`"));
        } else if text.trim().is_empty() {
            self.error(&node.location, "an empty text matches no token");
        } else if let Err(error) = globset::Glob::new(text) {
            self.error(&node.location, format!("{text:?} is not a valid glob: {}", error.kind()));
        } else if text.chars().any(|c| c.is_uppercase() || c.is_whitespace()) {
            let slug = text.trim().to_lowercase().replace(char::is_whitespace, "-");
            self.warning(&node.location, format!("{text:?} matches no token: slugs are in lowercase without spaces")).help =
                Some(format!("did you mean {slug:?}?"));
        }
    }

    pub(super) fn network(&mut self, text: &str, node: &ConfigNode) {
        if text.parse::<Network>().is_err() {
            self.error(&node.location, format!("{text:?} is not a valid network")).help =
                Some("examples: \"10.0.0.0/8\", \"fd00::/8\"".into());
        }
    }

    /// Checks the origin of a web page. Browsers send it in one form only, and the server compares texts.
    pub(super) fn origin(&mut self, text: &str, node: &ConfigNode) {
        let origin = origin_of(text);
        if origin.as_deref() == Some(text) {
            return;
        }
        // A host without a scheme.
        let is_host = text.contains(['.', ':']) && !text.contains("://");
        let help = match origin.or_else(|| origin_of(&format!("https://{text}")).filter(|_| is_host)) {
            _ if text.contains('*') => "list each origin: with a wildcard, every web page could use the API".to_owned(),
            Some(origin) => format!("did you mean {origin:?}?"),
            None => "examples: \"https://desk.example.com\", \"http://localhost:3000\"".to_owned(),
        };
        self.error(&node.location, format!("{text:?} is not a valid origin: expected scheme, host, and port")).help = Some(help);
    }

    pub(super) fn version(&mut self, name: &str, offered: &[u8], text: &str, node: &ConfigNode) {
        if text == "auto" || offered.iter().any(|version| text == format!("v{version}")) {
            return;
        }
        let words: Vec<String> =
            std::iter::once("auto".to_owned()).chain(offered.iter().rev().map(|version| format!("v{version}"))).collect();
        let bare = format!("v{}", text.trim_start_matches(['v', 'V']));
        let help = match words.iter().find(|word| **word == bare) {
            Some(word) => format!("did you mean {word:?}?"),
            None => format!("use one of {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")),
        };
        self.error(&node.location, format!("`{name}` has no version {text:?}")).help = Some(help);
    }

    pub(super) fn cron(&mut self, name: &str, text: &str, node: &ConfigNode) {
        if text == "off" {
            return;
        }
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
        let fields: Vec<&str> = text.split_whitespace().collect();
        match parser.parse(text) {
            // A field without any number never matches, and the search for a match would take minutes.
            Ok(_) if fields.iter().any(|field| field.split(',').any(str::is_empty)) => {
                let message = format!("`{name}`: {text:?} has an empty item in a list");
                self.error(&node.location, message).help = Some("write one comma between two numbers".to_owned());
            }
            Ok(cron) => {
                // Any instant will do: a pattern without a match after one instant has none after any other.
                let start = jiff::civil::date(2026, 1, 1).at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
                if start.is_ok_and(|start| cron.find_next_occurrence(&start, false).is_err()) {
                    let problem = self.warning(&node.location, format!("`{name}`: {text:?} never matches"));
                    problem.label = Some("no calendar date matches".into());
                    problem.help = Some("to turn the job off, write \"off\"".into());
                }
            }
            Err(error) => {
                let help = match fields.len() {
                    1 => closest(text, ["off"])
                        .map_or("write six fields: second minute hour day month weekday, or \"off\"".into(), |off| {
                            format!("did you mean {off:?}?")
                        }),
                    5 => format!("add the second in front: \"0 {text}\""),
                    6 => "the fields are second, minute, hour, day of month, month, day of week".to_owned(),
                    _ => "write six fields: second minute hour day month weekday".to_owned(),
                };
                let bad = (fields.len() == 6).then(|| bad_field(&fields, &parser)).flatten();
                let location = bad.and_then(|(index, _)| self.inside(node, text, index)).unwrap_or_else(|| node.location.clone());
                let message = match (fields.len(), bad) {
                    (6, Some((_, noun))) => format!("`{name}`: {}, in the {noun}", plain_cron_error(&error)),
                    (6, None) => format!("`{name}`: {}", plain_cron_error(&error)),
                    (count, _) => {
                        format!("`{name}`: {text:?} has {count} field{} instead of six", if count == 1 { "" } else { "s" })
                    }
                };
                self.error(&location, message).help = Some(help);
            }
        }
    }

    /// The location of the `index`-th word of a text. `None` if the file writes the text with escapes.
    pub(super) fn inside(&self, node: &ConfigNode, text: &str, index: usize) -> Option<Location> {
        let Location::File(span) = &node.location else { return None };
        let raw = self.text.get(span.clone())?;
        let at = raw.find(text)?;
        let word = text.split_whitespace().nth(index)?;
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        let start = span.start + at + offset;
        Some(Location::File(start..start + word.len()))
    }

    pub(super) fn zone(&mut self, text: &str, node: &ConfigNode) {
        let zones = TimeZoneDatabase::bundled();
        if zones.get(text).is_ok() {
            return;
        }
        let names: Vec<String> = zones.available().map(|name| name.as_str().to_owned()).collect();
        let wanted = text.trim().replace(' ', "_");
        let city = names.iter().find(|name| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&wanted)));
        let near = city.map(String::as_str).or_else(|| closest(&wanted, names.iter().map(String::as_str)));
        let help = near
            .map_or("use an IANA name such as \"UTC\" or \"Europe/Paris\"".to_owned(), |near| format!("did you mean {near:?}?"));
        self.error(&node.location, format!("{text:?} is not a valid time zone")).help = Some(help);
    }

    pub(super) fn listen(&mut self, name: &str, text: &str, node: &ConfigNode) {
        let is_local = text.strip_prefix("localhost:").is_some_and(|port| port.parse::<u16>().is_ok());
        if text == "off" || is_local || text.parse::<SocketAddr>().is_ok() {
            return;
        }
        let help = match text.parse::<u16>().ok().or_else(|| text.strip_prefix(':')?.parse().ok()) {
            Some(port) => format!("add the address: \"127.0.0.1:{port}\""),
            None => "use an address and a port, such as \"127.0.0.1:9797\" or \"[::1]:9797\", or \"off\"".to_owned(),
        };
        self.error(&node.location, format!("`{name}`: {text:?} is not a valid address with a port")).help = Some(help);
    }

    pub(super) fn smtp(&mut self, name: &str, text: &str, node: &ConfigNode) {
        let example = "examples: \"smtp://mail.example.com:587\", \"smtps://mail.example.com:465\"";
        let problem = match url::Url::parse(text) {
            Err(_) => Some(("is not the URL of a mail server", example)),
            Ok(url) if !matches!(url.scheme(), "smtp" | "smtps") => Some(("must start with smtp:// or smtps://", example)),
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Some(("contains a user name or password", "use `username` and `password_file` instead"))
            }
            Ok(url) if url.host_str().is_none_or(str::is_empty) => Some(("has no host", example)),
            Ok(url) if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() => {
                Some(("has more than a host and a port", example))
            }
            Ok(_) => None,
        };
        if let Some((problem, help)) = problem {
            self.error(&node.location, format!("`{name}` {problem}")).help = Some(help.into());
        }
    }

    pub(super) fn mailbox(&mut self, name: &str, text: &str, node: &ConfigNode) {
        let example = "examples: \"desk@example.com\", \"Desk <desk@example.com>\"";
        let problem = if text.chars().any(char::is_control) {
            Some("contains a line break or another control character".to_owned())
        } else {
            match text.parse::<lettre::message::Mailbox>() {
                Err(_) => Some(format!("{text:?} is not a valid mail address")),
                Ok(mailbox) if !AsRef::<str>::as_ref(&mailbox.email).is_ascii() => {
                    Some(format!("{text:?} contains non-ASCII letters, which few mail servers accept in an address"))
                }
                Ok(_) => None,
            }
        };
        if let Some(problem) = problem {
            self.error(&node.location, format!("`{name}`: {problem}")).help = Some(example.into());
        }
    }
}

pub(super) const PLAIN_HTTP: &str = "must use https: plain http is allowed on loopback only";

/// Returns what is wrong with a URL. The message contains no part of the URL, which may be a secret.
pub(super) fn check_url(text: &str, needs_tls: bool, may_have_login: bool) -> Result<(), &'static str> {
    let url = url::Url::parse(text).map_err(|_| "is not a valid URL: expected one like \"https://example.com\"")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must start with https://");
    }
    if !may_have_login && (!url.username().is_empty() || url.password().is_some()) {
        return Err("contains a user name or password: use a separate secret for it");
    }
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err("has no host"),
    };
    if needs_tls && url.scheme() == "http" && !is_loopback {
        return Err(PLAIN_HTTP);
    }
    Ok(())
}

/// The origin of a URL, as browsers write it. `None` if the text is not the URL of a web page.
fn origin_of(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok()?;
    let is_page = matches!(url.scheme(), "http" | "https") && url.host_str().is_some_and(|host| !host.contains('*'));
    is_page.then(|| url.origin().ascii_serialization())
}

/// The index and the name of the first field that is not valid.
fn bad_field(fields: &[&str], parser: &CronParser) -> Option<(usize, &'static str)> {
    let nouns = ["second", "minute", "hour", "day of month", "month", "day of week"];
    (0..nouns.len()).find_map(|index| {
        let alone: Vec<&str> =
            (0..nouns.len()).map(|at| if at == index { fields.get(at).copied().unwrap_or("*") } else { "*" }).collect();
        parser.parse(&alone.join(" ")).is_err().then(|| nouns.get(index).map(|noun| (index, *noun))).flatten()
    })
}

fn plain_cron_error(error: &croner::errors::CronError) -> String {
    use croner::errors::CronError;
    let text = match error {
        CronError::InvalidPattern(text) | CronError::IllegalCharacters(text) | CronError::ComponentError(text) => text.as_str(),
        _ => "this is not a valid cron pattern",
    };
    let text = text.trim().trim_end_matches('.').replace("CronPattern", "the pattern");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
