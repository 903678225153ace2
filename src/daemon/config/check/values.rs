//! Checks one value: first its type, then its content.

use super::{ConfigCheck, MAX_ITEMS, scalars::check_url};
use crate::config::tree::{ConfigNode, ConfigValue, Location};
use model::closest;
use model::config::{ByteSize, ConfigKey, Percent, Span, ValueKind};
use notify::format::FORMAT_NAMES;

impl ConfigCheck<'_> {
    pub(super) fn value(&mut self, key: &ConfigKey, node: &ConfigNode) {
        let name = key.name;
        match key.kind {
            ValueKind::Secret | ValueKind::SecretUrl => self.secret(key, node),
            ValueKind::Bool => {
                if !matches!(node.value, ConfigValue::Bool(_)) {
                    self.wrong_type(name, node, "true or false", None);
                }
            }
            ValueKind::Count(min, max) => self.count(name, node, min, max),
            ValueKind::Number(min, max) => match node.value {
                #[expect(clippy::cast_precision_loss, reason = "compared with small bounds only")]
                ConfigValue::Integer(number) if (min..=max).contains(&(number as f64)) => {}
                ConfigValue::Float(number) if (min..=max).contains(&number) => {}
                ConfigValue::Integer(_) | ConfigValue::Float(_) => {
                    self.error(&node.location, format!("`{name}` must be between {min} and {max}"));
                }
                _ => self.wrong_type(name, node, "a number", None),
            },
            ValueKind::Groups => self.groups(name, node),
            ValueKind::Positions => self.positions(name, node),
            ValueKind::TextOrNumber if matches!(node.value, ConfigValue::Text(_) | ConfigValue::Integer(_)) => {}
            ValueKind::Routes => {}
            ValueKind::Table(keys) => {
                if matches!(node.value, ConfigValue::Table(_)) {
                    self.section(node, &format!("`{name}`"), keys);
                } else {
                    self.wrong_type(name, node, "a table", None);
                }
            }
            ValueKind::Tables(keys) => self.tables(name, &format!("`{name}`"), node, keys),
            kind if kind.is_list() => self.texts(name, kind, node),
            kind => match &node.value {
                ConfigValue::Text(text) => self.text(name, kind, text, node),
                ConfigValue::Integer(number) => {
                    let help = match kind {
                        ValueKind::Span(..) | ValueKind::Reach(..) => Some(format!("add a unit: \"{number}s\"")),
                        ValueKind::Percent => Some(format!("write a percentage: \"{number}%\"")),
                        ValueKind::Size => Some(format!("add a unit: \"{number}MiB\" or \"{number}B\"")),
                        ValueKind::Version(_) => Some(format!("did you mean \"v{number}\"?")),
                        ValueKind::Listen => Some(format!("add the address: \"127.0.0.1:{number}\"")),
                        _ => None,
                    };
                    self.wrong_type(name, node, "a text", help);
                }
                ConfigValue::Bool(false) if matches!(kind, ValueKind::Cron | ValueKind::Listen) => {
                    self.wrong_type(name, node, "a text", Some("did you mean \"off\"?".into()));
                }
                _ => self.wrong_type(name, node, "a text", None),
            },
        }
    }

    pub(super) fn wrong_type(&mut self, name: &str, node: &ConfigNode, wanted: &str, help: Option<String>) {
        let problem = self.error(&node.location, format!("`{name}` must be {wanted}, not {}", node.value.noun()));
        problem.label = Some(format!("expected {wanted}"));
        problem.help = help;
    }

    pub(super) fn count(&mut self, name: &str, node: &ConfigNode, min: i64, max: i64) {
        match &node.value {
            ConfigValue::Integer(number) if (min..=max).contains(number) => {}
            ConfigValue::Integer(_) if max == i64::MAX => {
                self.error(&node.location, format!("`{name}` must be at least {min}"));
            }
            ConfigValue::Integer(_) => {
                self.error(&node.location, format!("`{name}` must be between {min} and {max}"));
            }
            ConfigValue::Text(text) if text.parse::<i64>().is_ok() => {
                self.wrong_type(name, node, "a whole number", Some("remove the quotes".into()));
            }
            _ => self.wrong_type(name, node, "a whole number", None),
        }
    }

    pub(super) fn secret(&mut self, key: &ConfigKey, node: &ConfigNode) {
        let name = key.name;
        // A longer span would show the length of the secret.
        let location = match &node.location {
            Location::File(span) => Location::File(span.start..span.end.min(span.start + 3)),
            variable @ Location::Variable(_) => variable.clone(),
        };
        let node = &ConfigNode { location, value: node.value.clone() };
        let text = match &node.value {
            ConfigValue::Text(text) => text.as_str(),
            // A key of digits is a number in the environment, or in a file without quotes.
            ConfigValue::Integer(_) | ConfigValue::Float(_) | ConfigValue::Bool(_) if key.kind == ValueKind::Secret => return,
            _ => {
                self.error(&node.location, format!("`{name}` must be a text"));
                return;
            }
        };
        if text.trim().is_empty() {
            self.error(&node.location, format!("`{name}` is empty")).help =
                Some(format!("set it, or name a file with `{name}_file`, or remove both"));
        } else if text.starts_with("${") || text.starts_with("$(") {
            self.error(&node.location, format!("`{name}` contains a shell variable, which is not expanded")).help = Some(
                format!("name a file with `{name}_file`, or set the key as an environment variable: CLIFFWATCH_<SECTION>__<KEY>"),
            );
        } else if key.kind == ValueKind::SecretUrl
            && let Err(problem) = check_url(text, true, true)
        {
            self.error(&node.location, format!("`{name}` {problem}"));
        } else if key.kind == ValueKind::Secret && text.chars().any(char::is_control) && name != "secret" {
            self.error(&node.location, format!("`{name}` contains a line break or another control character"));
        }
    }

    pub(super) fn groups(&mut self, name: &str, node: &ConfigNode) {
        if !matches!(node.value, ConfigValue::Table(_)) {
            self.wrong_type(name, node, "a table", Some("write `groups = { portfolio = [\"arbitrum\", \"aptos\"] }`".into()));
            return;
        }
        for entry in node.table() {
            if entry.key.is_empty() || !entry.key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                self.error(&entry.key_location, format!("`{}` is not a valid group name", entry.key)).help =
                    Some("use letters, digits, `-`, and `_`; rules refer to the group as `@name`".into());
            }
            self.texts(&entry.key, ValueKind::Globs, &entry.node);
        }
    }

    /// Checks amounts. The messages do not repeat them.
    fn positions(&mut self, name: &str, node: &ConfigNode) {
        if !matches!(node.value, ConfigValue::Table(_)) {
            self.wrong_type(name, node, "a table", Some("write `positions = { arbitrum = 250000, APT = 1200.5 }`".into()));
            return;
        }
        for entry in node.table() {
            let is_amount = match entry.node.value {
                ConfigValue::Integer(amount) => amount >= 0,
                ConfigValue::Float(amount) => amount.is_finite() && amount >= 0.0,
                _ => false,
            };
            if !is_amount {
                let message = format!("the position of `{}` must be an amount in tokens: a number from 0", entry.key);
                self.error(&entry.key_location, message).help = Some("write it like `arbitrum = 250000`, without quotes".into());
            }
        }
    }

    pub(super) fn tables(&mut self, name: &str, title: &str, node: &ConfigNode, keys: &'static [ConfigKey]) {
        let ConfigValue::List(items) = &node.value else {
            let help = if title.starts_with('[') {
                format!("write `{title}` with double brackets")
            } else {
                "write it as [{ … }]".into()
            };
            self.wrong_type(name, node, "a list of tables", Some(help));
            return;
        };
        if items.len() > MAX_ITEMS {
            self.error(&node.location, format!("`{name}` has more than {MAX_ITEMS} items"));
            return;
        }
        for item in items {
            if matches!(item.value, ConfigValue::Table(_)) {
                self.section(item, title, keys);
            } else {
                self.wrong_type(&format!("an item of {name}"), item, "a table", None);
            }
        }
    }

    pub(super) fn texts(&mut self, name: &str, kind: ValueKind, node: &ConfigNode) {
        let ConfigValue::List(items) = &node.value else {
            let help = node.text().map(|text| if kind.is_secret() { String::new() } else { format!("add brackets: [{text:?}]") });
            self.wrong_type(name, node, "a list of texts", help);
            return;
        };
        if items.len() > MAX_ITEMS {
            self.error(&node.location, format!("`{name}` has more than {MAX_ITEMS} items"));
            return;
        }
        if items.is_empty() && matches!(kind, ValueKind::Spans(..)) {
            self.error(&node.location, format!("`{name}` is empty: nothing would be sent")).help =
                Some("add at least the first wait: [\"0s\"]".into());
        }
        if items.is_empty() && matches!(kind, ValueKind::Choices(_)) {
            self.error(&node.location, format!("`{name}` is empty: nothing would be sent")).help =
                Some("remove it to get everything".into());
        }
        if items.is_empty() && name == "tokens" {
            self.warning(&node.location, "`tokens` is empty: nothing is watched").help =
                Some("list slugs, or [\"*\"] for every token".into());
        }
        for item in items {
            match &item.value {
                ConfigValue::Text(text) => match kind {
                    ValueKind::Spans(min, max) => self.text(name, ValueKind::Span(min, max), text, item),
                    ValueKind::Mailboxes => self.text(name, ValueKind::Mailbox, text, item),
                    ValueKind::Globs => self.glob(text, item),
                    ValueKind::FileGlobs => {
                        if let Err(error) = globset::Glob::new(text) {
                            self.error(&item.location, format!("{text:?} is not a valid file glob: {}", error.kind()));
                        }
                    }
                    ValueKind::Networks => self.network(text, item),
                    ValueKind::Origins => self.origin(text, item),
                    ValueKind::Choices(words) => self.choice(name, words, text, item),
                    _ => {}
                },
                _ => self.wrong_type(&format!("an item of {name}"), item, "a text", None),
            }
        }
    }

    /// Checks a text that is not a secret.
    pub(super) fn text(&mut self, name: &str, kind: ValueKind, text: &str, node: &ConfigNode) {
        match kind {
            ValueKind::Reach(..) if text == "all" => {}
            ValueKind::Span(min, max) | ValueKind::Reach(min, max) => match text.parse::<Span>() {
                Err(_) => {
                    self.error(&node.location, format!("`{name}`: {text:?} is not a valid duration")).help =
                        Some("examples: \"30s\", \"90m\", \"6h\", \"7d\", \"2w\"".into());
                }
                Ok(span) if span.0.as_secs() < min || span.0.as_secs() > max => {
                    let bound = |secs| Span(std::time::Duration::from_secs(secs));
                    self.error(&node.location, format!("`{name}` must be between {} and {}", bound(min), bound(max)));
                }
                Ok(_) => {}
            },
            ValueKind::Percent if serde_json::from_value::<Percent>(text.into()).is_err() => {
                self.error(&node.location, format!("`{name}`: {text:?} is not a valid percentage")).help =
                    Some("example: \"10%\"; from 0% to 100%".into());
            }
            ValueKind::Size if serde_json::from_value::<ByteSize>(text.into()).is_err() => {
                self.error(&node.location, format!("`{name}`: {text:?} is not a valid size")).help =
                    Some("example: \"16MiB\"".into());
            }
            ValueKind::Version(offered) => self.version(name, offered, text, node),
            ValueKind::Format => self.choice(name, &FORMAT_NAMES, text, node),
            ValueKind::Choice(words) => self.choice(name, words, text, node),
            ValueKind::Cron => self.cron(name, text, node),
            ValueKind::Zone => self.zone(text, node),
            ValueKind::LogFilter => {
                if let Err(problem) = crate::log::check_filter(text) {
                    let words = ["off", "error", "warn", "info", "debug", "trace"];
                    let help = closest(text, words).map_or(
                        "use off, error, warn, info, debug, trace, or a filter such as \"info,cliffwatch_daemon::outbox=debug\""
                            .to_owned(),
                        |near| format!("did you mean {near:?}?"),
                    );
                    self.error(&node.location, format!("`{name}`: {problem}")).help = Some(help);
                }
            }
            ValueKind::HeaderName if reqwest::header::HeaderName::try_from(text).is_err() => {
                self.error(&node.location, format!("`{name}`: {text:?} is not a valid name of a header")).help =
                    Some("example: \"X-Forwarded-User\"".into());
            }
            ValueKind::Listen => self.listen(name, text, node),
            ValueKind::Url => {
                // Whether it must use https depends on other keys: see `together`.
                if let Err(problem) = check_url(text, false, false) {
                    self.error(&node.location, format!("`{name}` {problem}"));
                }
            }
            ValueKind::Smtp => self.smtp(name, text, node),
            ValueKind::Mailbox => self.mailbox(name, text, node),
            file if file.is_file() && text.is_empty() => {
                self.error(&node.location, format!("`{name}` is empty"));
            }
            _ => {}
        }
    }

    fn choice(&mut self, name: &str, words: &[&str], text: &str, node: &ConfigNode) {
        if words.contains(&text) {
            return;
        }
        let help = match closest(text, words.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("use one of {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")),
        };
        self.error(&node.location, format!("`{name}` cannot be {text:?}")).help = Some(help);
    }
}
