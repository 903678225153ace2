//! One value, by what its key may hold: its type first, then what is in it.

use super::{ConfigCheck, MAX_ITEMS, scalars::address};
use crate::config::keys::{ConfigKey, ValueKind};
use crate::config::tree::{ConfigNode, ConfigValue, ValuePlace};
use model::closest;
use model::config::{ByteSize, Percent, Span};

impl ConfigCheck<'_> {
    /// One value, by what its key may hold.
    pub(super) fn value(&mut self, key: &ConfigKey, node: &ConfigNode) {
        let name = key.name;
        match key.kind {
            ValueKind::Secret | ValueKind::SecretUrl => self.secret(key, node),
            ValueKind::Bool => {
                if !matches!(node.value, ConfigValue::Bool(_)) {
                    self.wrong_type(name, node, "true or false", None);
                }
            }
            ValueKind::Count { min, max } => self.count(name, node, min, max),
            ValueKind::Number { min, max } => match node.value {
                #[expect(clippy::cast_precision_loss, reason = "compared with small bounds only")]
                ConfigValue::Integer(number) if (min..=max).contains(&(number as f64)) => {}
                ConfigValue::Float(number) if (min..=max).contains(&number) => {}
                ConfigValue::Integer(_) | ConfigValue::Float(_) => {
                    self.error(&node.place, format!("`{name}` must lie between {min} and {max}"));
                }
                _ => self.wrong_type(name, node, "a number", None),
            },
            ValueKind::Groups => self.groups(name, node),
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
                        ValueKind::Span(..) | ValueKind::Reach(..) => Some(format!("write it with its unit: \"{number}s\"")),
                        ValueKind::Percent => Some(format!("write it as a share: \"{number}%\"")),
                        ValueKind::Size => Some(format!("write it with its unit: \"{number}MiB\" or \"{number}B\"")),
                        ValueKind::Version(_) => Some(format!("did you mean \"v{number}\"?")),
                        ValueKind::Listen => Some(format!("write address and port: \"127.0.0.1:{number}\"")),
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
        let problem = self.error(&node.place, format!("`{name}` must be {wanted}, not {}", node.value.noun()));
        problem.label = Some(format!("expected {wanted}"));
        problem.help = help;
    }

    pub(super) fn count(&mut self, name: &str, node: &ConfigNode, min: i64, max: i64) {
        match &node.value {
            ConfigValue::Integer(number) if (min..=max).contains(number) => {}
            ConfigValue::Integer(_) if max == i64::MAX => {
                self.error(&node.place, format!("`{name}` must be at least {min}"));
            }
            ConfigValue::Integer(_) => {
                self.error(&node.place, format!("`{name}` must lie between {min} and {max}"));
            }
            ConfigValue::Text(text) if text.parse::<i64>().is_ok() => {
                self.wrong_type(name, node, "a whole number", Some("write it without quotes".into()));
            }
            _ => self.wrong_type(name, node, "a whole number", None),
        }
    }

    pub(super) fn secret(&mut self, key: &ConfigKey, node: &ConfigNode) {
        let name = key.name;
        // The caret's length would tell that of the secret.
        let dots = match &node.place {
            ValuePlace::File(span) => ValuePlace::File(span.start..span.end.min(span.start + 3)),
            variable @ ValuePlace::Variable(_) => variable.clone(),
        };
        let node = &ConfigNode { place: dots, value: node.value.clone() };
        let text = match &node.value {
            ConfigValue::Text(text) => text.as_str(),
            // The environment and careless quoting give numbers; a key of digits is still a key.
            ConfigValue::Integer(_) | ConfigValue::Float(_) | ConfigValue::Bool(_) if key.kind == ValueKind::Secret => return,
            _ => {
                self.error(&node.place, format!("`{name}` must be a text"));
                return;
            }
        };
        if text.trim().is_empty() {
            self.error(&node.place, format!("`{name}` is empty")).help =
                Some(format!("give it, or name a file with `{name}_file`, or leave both out"));
        } else if text.starts_with("${") || text.starts_with("$(") {
            self.error(&node.place, format!("`{name}` holds a shell variable, which is not expanded here")).help =
                Some(format!("name a file with `{name}_file`, or set the variable CLIFFWATCH_… of this key"));
        } else if key.kind == ValueKind::SecretUrl
            && let Err(problem) = address(text, true, true)
        {
            self.error(&node.place, format!("`{name}` {problem}"));
        } else if key.kind == ValueKind::Secret && text.chars().any(char::is_control) && name != "secret" {
            self.error(&node.place, format!("`{name}` holds a line break or another control character"));
        }
    }

    pub(super) fn groups(&mut self, name: &str, node: &ConfigNode) {
        if !matches!(node.value, ConfigValue::Table(_)) {
            self.wrong_type(name, node, "a table", Some("write `groups = { portfolio = [\"arbitrum\", \"aptos\"] }`".into()));
            return;
        }
        for entry in node.table() {
            if entry.key.is_empty() || !entry.key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                self.error(&entry.key_place, format!("`{}` cannot name a group", entry.key)).help =
                    Some("use letters, digits, `-` and `_`; rules write `@name`".into());
            }
            self.texts(&entry.key, ValueKind::Globs, &entry.node);
        }
    }

    /// A list of tables, each with these keys.
    pub(super) fn tables(&mut self, name: &str, title: &str, node: &ConfigNode, keys: &'static [ConfigKey]) {
        let ConfigValue::List(items) = &node.value else {
            let help =
                if title.starts_with('[') { format!("write `{title}` with double brackets") } else { "write [{ … }]".into() };
            self.wrong_type(name, node, "a list of tables", Some(help));
            return;
        };
        if items.len() > MAX_ITEMS {
            self.error(&node.place, format!("`{name}` has more than {MAX_ITEMS} items"));
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
            let help = node
                .text()
                .map(|text| if kind.is_secret() { String::new() } else { format!("write it in brackets: [{text:?}]") });
            self.wrong_type(name, node, "a list of texts", help);
            return;
        };
        if items.len() > MAX_ITEMS {
            self.error(&node.place, format!("`{name}` has more than {MAX_ITEMS} items"));
            return;
        }
        if items.is_empty() && matches!(kind, ValueKind::Spans(..)) {
            self.error(&node.place, format!("`{name}` is empty: nothing would ever be sent")).help =
                Some("name at least the first wait: [\"0s\"]".into());
        }
        if items.is_empty() && name == "tokens" {
            self.warning(&node.place, "`tokens` is empty: nothing is watched").help =
                Some("name slugs, or [\"*\"] for every token of the list".into());
        }
        for item in items {
            match &item.value {
                ConfigValue::Text(text) => match kind {
                    ValueKind::Spans(min, max) => self.text(name, ValueKind::Span(min, max), text, item),
                    ValueKind::Mailboxes => self.text(name, ValueKind::Mailbox, text, item),
                    ValueKind::Globs => self.glob(text, item),
                    ValueKind::Files => {
                        if let Err(error) = globset::Glob::new(text) {
                            self.error(&item.place, format!("{text:?} is no pattern for files: {}", error.kind()));
                        }
                    }
                    ValueKind::Networks => self.network(text, item),
                    _ => {}
                },
                _ => self.wrong_type(&format!("an item of {name}"), item, "a text", None),
            }
        }
    }

    /// One text, by what its key may hold. `text` is never a secret here.
    pub(super) fn text(&mut self, name: &str, kind: ValueKind, text: &str, node: &ConfigNode) {
        match kind {
            ValueKind::Reach(..) if text == "all" => {}
            ValueKind::Span(min, max) | ValueKind::Reach(min, max) => match text.parse::<Span>() {
                Err(_) => {
                    self.error(&node.place, format!("`{name}`: {text:?} is no length of time")).help =
                        Some("write it like \"30s\", \"90m\", \"6h\", \"7d\" or \"2w\"".into());
                }
                Ok(span) if span.0.as_secs() < min || span.0.as_secs() > max => {
                    let bound = |secs| Span(std::time::Duration::from_secs(secs));
                    self.error(&node.place, format!("`{name}` must lie between {} and {}", bound(min), bound(max)));
                }
                Ok(_) => {}
            },
            ValueKind::Percent if serde_json::from_value::<Percent>(text.into()).is_err() => {
                self.error(&node.place, format!("`{name}`: {text:?} is no share")).help =
                    Some("write it like \"10%\", from 0% to 100%".into());
            }
            ValueKind::Size if serde_json::from_value::<ByteSize>(text.into()).is_err() => {
                self.error(&node.place, format!("`{name}`: {text:?} is no size")).help = Some("write it like \"16MiB\"".into());
            }
            ValueKind::Version(offered) => self.version(name, offered, text, node),
            ValueKind::Choice(words) if !words.contains(&text) => {
                let help = match closest(text, words.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => {
                        format!("it can be {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "))
                    }
                };
                self.error(&node.place, format!("`{name}` cannot be {text:?}")).help = Some(help);
            }
            ValueKind::Cron => self.cron(name, text, node),
            ValueKind::Zone => self.zone(text, node),
            ValueKind::Level => {
                if let Err(problem) = crate::log::check_filter(text) {
                    let words = ["off", "error", "warn", "info", "debug", "trace"];
                    let help = closest(text, words).map_or(
                        "it can be off, error, warn, info, debug or trace, or a filter such as \"info,cliffwatch_daemon::outbox=debug\""
                            .to_owned(),
                        |near| format!("did you mean {near:?}?"),
                    );
                    self.error(&node.place, format!("`{name}`: {problem}")).help = Some(help);
                }
            }
            ValueKind::Listen => self.listen(name, text, node),
            ValueKind::Url(needs_tls) => {
                if let Err(problem) = address(text, needs_tls, false) {
                    self.error(&node.place, format!("`{name}` {problem}"));
                }
            }
            ValueKind::Smtp => self.smtp(name, text, node),
            ValueKind::Mailbox => self.mailbox(name, text, node),
            ValueKind::File if text.is_empty() => {
                self.error(&node.place, format!("`{name}` is empty"));
            }
            _ => {}
        }
    }
}
