//! Every key and value of a config, held against the table of keys: all problems at once, each at its place, no secret in any.

use std::{
    net::{IpAddr, SocketAddr},
    ops::Range,
    path::Path,
};

use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZoneDatabase;

use super::{
    keys::{self, Key, Kind},
    tree::{Entry, Node, Place, Value},
};
use crate::{
    config::{ByteSize, Percent, ReceiverKind, Span},
    diagnostic::{Diagnostic, closest},
    notify::service::{Format, Need, template::BodyTemplate},
};

/// Receivers, routes below routes, groups: more than this is a mistake, or an attack.
const MAX_ITEMS: usize = 10_000;
/// How deep routes may nest.
const MAX_ROUTE_DEPTH: usize = 16;

/// Gathers what is wrong.
pub(super) struct Check<'a> {
    /// The file that the tree was read from.
    pub file: &'a Path,
    /// Its text, for pointing inside a value.
    pub text: &'a str,
    /// Where systemd put credentials, if it did.
    pub credentials: Option<&'a Path>,
    /// What was found.
    pub problems: Vec<Diagnostic>,
}

/// The name that problems of the environment are filed under.
pub(super) const ENVIRONMENT: &str = "environment";

impl Check<'_> {
    /// Files an error at `place`.
    pub fn error(&mut self, place: &Place, message: impl Into<String>) -> &mut Diagnostic {
        self.file_problem(Diagnostic::error, place, message.into())
    }

    /// Files a warning at `place`.
    pub fn warning(&mut self, place: &Place, message: impl Into<String>) -> &mut Diagnostic {
        self.file_problem(Diagnostic::warning, place, message.into())
    }

    fn file_problem(
        &mut self,
        make: fn(std::path::PathBuf, Option<Range<usize>>, String) -> Diagnostic,
        place: &Place,
        message: String,
    ) -> &mut Diagnostic {
        let problem = match place {
            Place::File(span) => make(self.file.to_owned(), Some(span.clone()), message),
            Place::Variable(name) if name.is_empty() => make(ENVIRONMENT.into(), None, message),
            Place::Variable(name) => make(ENVIRONMENT.into(), None, format!("{name}: {message}")),
        };
        self.problems.push(problem);
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// The whole tree.
    pub fn root(&mut self, root: &Node) {
        for entry in root.table() {
            match entry.key.as_str() {
                "receiver" => {}
                "route" => self.route(&entry.node, "[route]", 0, true),
                name @ ("inhibit_rules" | "time_intervals") => {
                    let keys = keys::section(name).unwrap_or_default();
                    self.tables(name, &format!("[[{name}]]"), &entry.node, keys);
                }
                name => match keys::section(name) {
                    Some(keys) => {
                        let title = format!("[{name}]");
                        if self.is_table(entry) {
                            self.section(&entry.node, &title, keys);
                        }
                    }
                    None => self.unknown_section(entry),
                },
            }
        }
        let names = self.receivers(root);
        self.receiver_names(root, &names);
        self.open_address(root);
        self.one_emission(root);
        self.list_for_patterns(root);
        self.open_mirror(root);
    }

    fn is_table(&mut self, entry: &Entry) -> bool {
        let is_table = matches!(entry.node.value, Value::Table(_));
        if !is_table {
            let key = &entry.key;
            let double = matches!(entry.node.value, Value::List(_));
            let problem = self.error(&entry.key_place, format!("`{key}` must be a table, not {}", entry.node.value.noun()));
            problem.help = Some(if double {
                format!("write one `[{key}]`, not `[[{key}]]`")
            } else {
                format!("write `[{key}]` and its keys below")
            });
        }
        is_table
    }

    fn unknown_section(&mut self, entry: &Entry) {
        let key = entry.key.as_str();
        let is_section = matches!(entry.node.value, Value::Table(_) | Value::List(_));
        let near = closest(key, keys::section_names());
        let home = home_of(key, "");
        let help = match (near, home) {
            (_, Some(home)) if !is_section => format!("`{key}` belongs into {}", title_of(home)),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(home)) => format!("`{key}` belongs into {}", title_of(home)),
            (None, None) => format!("the sections are {}", keys::section_names().collect::<Vec<_>>().join(", ")),
        };
        let noun = if is_section { "section" } else { "key" };
        let message = format!("unknown {noun} `{key}`");
        // A variable of another program may share our prefix: without `__` it names no key, so it is only worth a hint.
        let problem = match &entry.key_place {
            Place::Variable(name) if !name.contains("__") => {
                self.warning(&entry.key_place, format!("{message}: it has no effect"))
            }
            _ => self.error(&entry.key_place, message),
        };
        problem.help = Some(match (&entry.key_place, home) {
            (Place::Variable(_), Some(home)) => {
                format!("did you mean {}{}__{}?", super::tree::PREFIX, home.to_uppercase(), key.to_uppercase())
            }
            (Place::Variable(_), None) => format!("keys are written {}SECTION__KEY", super::tree::PREFIX),
            _ => help,
        });
    }

    fn section(&mut self, node: &Node, title: &str, keys: &'static [Key]) {
        for entry in node.table() {
            match keys.iter().find(|key| key.name == entry.key) {
                Some(key) => self.value(key, &entry.node),
                None => self.unknown_key(entry, title, keys),
            }
        }
        for key in keys.iter().filter(|key| key.kind.is_secret()) {
            let file = format!("{}_file", key.name);
            if let (Some(_), Some(twin)) = (node.get(key.name), node.get(&file)) {
                let message = format!("both `{}` and `{file}` are given", key.name);
                self.error(&twin.key_place, message).help = Some(format!("keep one; `{file}` can be changed without a restart"));
            }
        }
    }

    fn unknown_key(&mut self, entry: &Entry, title: &str, keys: &'static [Key]) {
        let key = entry.key.as_str();
        let here = title.trim_matches(['[', ']']);
        let help = match (closest(key, keys.iter().map(|key| key.name)), home_of(key, here)) {
            (_, Some(home)) if keys::find(home, key).is_some() => format!("`{key}` belongs into {}", title_of(home)),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) => format!("its keys are {}", keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
        };
        self.error(&entry.key_place, format!("unknown key `{key}` in {title}")).help = Some(help);
    }

    /// One value, by what its key may hold.
    fn value(&mut self, key: &Key, node: &Node) {
        let name = key.name;
        match key.kind {
            Kind::Secret | Kind::SecretUrl => self.secret(key, node),
            Kind::Bool => {
                if !matches!(node.value, Value::Bool(_)) {
                    self.wrong_type(name, node, "true or false", None);
                }
            }
            Kind::Count { min, max } => self.count(name, node, min, max),
            Kind::Number { min, max } => match node.value {
                #[expect(clippy::cast_precision_loss, reason = "compared with small bounds only")]
                Value::Integer(number) if (min..=max).contains(&(number as f64)) => {}
                Value::Float(number) if (min..=max).contains(&number) => {}
                Value::Integer(_) | Value::Float(_) => {
                    self.error(&node.place, format!("`{name}` must lie between {min} and {max}"));
                }
                _ => self.wrong_type(name, node, "a number", None),
            },
            Kind::Groups => self.groups(name, node),
            Kind::TextOrNumber if matches!(node.value, Value::Text(_) | Value::Integer(_)) => {}
            Kind::Routes => {}
            Kind::Table(keys) => {
                if matches!(node.value, Value::Table(_)) {
                    self.section(node, &format!("`{name}`"), keys);
                } else {
                    self.wrong_type(name, node, "a table", None);
                }
            }
            Kind::Tables(keys) => self.tables(name, &format!("`{name}`"), node, keys),
            kind if kind.is_list() => self.texts(name, kind, node),
            kind => match &node.value {
                Value::Text(text) => self.text(name, kind, text, node),
                Value::Integer(number) => {
                    let help = match kind {
                        Kind::Span(..) => Some(format!("write it with its unit: \"{number}s\"")),
                        Kind::Percent => Some(format!("write it as a share: \"{number}%\"")),
                        Kind::Size => Some(format!("write it with its unit: \"{number}MiB\" or \"{number}B\"")),
                        Kind::Version(_) => Some(format!("did you mean \"v{number}\"?")),
                        Kind::Listen => Some(format!("write address and port: \"127.0.0.1:{number}\"")),
                        _ => None,
                    };
                    self.wrong_type(name, node, "a text", help);
                }
                Value::Bool(false) if matches!(kind, Kind::Cron | Kind::Listen) => {
                    self.wrong_type(name, node, "a text", Some("did you mean \"off\"?".into()));
                }
                _ => self.wrong_type(name, node, "a text", None),
            },
        }
    }

    fn wrong_type(&mut self, name: &str, node: &Node, wanted: &str, help: Option<String>) {
        let problem = self.error(&node.place, format!("`{name}` must be {wanted}, not {}", node.value.noun()));
        problem.label = Some(format!("expected {wanted}"));
        problem.help = help;
    }

    fn count(&mut self, name: &str, node: &Node, min: i64, max: i64) {
        match &node.value {
            Value::Integer(number) if (min..=max).contains(number) => {}
            Value::Integer(_) if max == i64::MAX => {
                self.error(&node.place, format!("`{name}` must be at least {min}"));
            }
            Value::Integer(_) => {
                self.error(&node.place, format!("`{name}` must lie between {min} and {max}"));
            }
            Value::Text(text) if text.parse::<i64>().is_ok() => {
                self.wrong_type(name, node, "a whole number", Some("write it without quotes".into()));
            }
            _ => self.wrong_type(name, node, "a whole number", None),
        }
    }

    fn secret(&mut self, key: &Key, node: &Node) {
        let name = key.name;
        // The caret's length would tell that of the secret.
        let dots = match &node.place {
            Place::File(span) => Place::File(span.start..span.end.min(span.start + 3)),
            variable @ Place::Variable(_) => variable.clone(),
        };
        let node = &Node { place: dots, value: node.value.clone() };
        let text = match &node.value {
            Value::Text(text) => text.as_str(),
            // The environment and careless quoting give numbers; a key of digits is still a key.
            Value::Integer(_) | Value::Float(_) | Value::Bool(_) if key.kind == Kind::Secret => return,
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
        } else if key.kind == Kind::SecretUrl
            && let Err(problem) = address(text, true, true)
        {
            self.error(&node.place, format!("`{name}` {problem}"));
        } else if key.kind == Kind::Secret && text.chars().any(char::is_control) && name != "secret" {
            self.error(&node.place, format!("`{name}` holds a line break or another control character"));
        }
    }

    fn groups(&mut self, name: &str, node: &Node) {
        if !matches!(node.value, Value::Table(_)) {
            self.wrong_type(name, node, "a table", Some("write `groups = { portfolio = [\"arbitrum\", \"aptos\"] }`".into()));
            return;
        }
        for entry in node.table() {
            if entry.key.is_empty() || !entry.key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')) {
                self.error(&entry.key_place, format!("`{}` cannot name a group", entry.key)).help =
                    Some("use letters, digits, `-` and `_`; rules write `@name`".into());
            }
            self.texts(&entry.key, Kind::Globs, &entry.node);
        }
    }

    /// A list of tables, each with these keys.
    fn tables(&mut self, name: &str, title: &str, node: &Node, keys: &'static [Key]) {
        let Value::List(items) = &node.value else {
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
            if matches!(item.value, Value::Table(_)) {
                self.section(item, title, keys);
            } else {
                self.wrong_type(&format!("an item of {name}"), item, "a table", None);
            }
        }
    }

    fn texts(&mut self, name: &str, kind: Kind, node: &Node) {
        let Value::List(items) = &node.value else {
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
        if items.is_empty() && matches!(kind, Kind::Spans(..)) {
            self.error(&node.place, format!("`{name}` is empty: nothing would ever be sent")).help =
                Some("name at least the first wait: [\"0s\"]".into());
        }
        if items.is_empty() && name == "tokens" {
            self.warning(&node.place, "`tokens` is empty: nothing is watched").help =
                Some("name slugs, or [\"*\"] for every token of the list".into());
        }
        for item in items {
            match &item.value {
                Value::Text(text) => match kind {
                    Kind::Spans(min, max) => self.text(name, Kind::Span(min, max), text, item),
                    Kind::Mailboxes => self.text(name, Kind::Mailbox, text, item),
                    Kind::Globs => self.glob(text, item),
                    Kind::Files => {
                        if let Err(error) = globset::Glob::new(text) {
                            self.error(&item.place, format!("{text:?} is no pattern for files: {}", error.kind()));
                        }
                    }
                    Kind::Networks => self.network(text, item),
                    _ => {}
                },
                _ => self.wrong_type(&format!("an item of {name}"), item, "a text", None),
            }
        }
    }

    fn glob(&mut self, text: &str, node: &Node) {
        if let Some(group) = text.strip_prefix('@') {
            self.error(&node.place, format!("{text:?} names a group; here slugs or globs are named")).help =
                Some(format!("list the tokens of {group:?} here; in rules write `tokens = [{text:?}]`"));
        } else if text.trim().is_empty() {
            self.error(&node.place, "an empty text names no token");
        } else if let Err(error) = globset::Glob::new(text) {
            self.error(&node.place, format!("{text:?} is no glob: {}", error.kind()));
        } else if text.chars().any(|c| c.is_uppercase() || c.is_whitespace()) {
            let slug = text.trim().to_lowercase().replace(char::is_whitespace, "-");
            self.warning(&node.place, format!("{text:?} matches no token: slugs are in lower case")).help =
                Some(format!("did you mean {slug:?}?"));
        }
    }

    fn network(&mut self, text: &str, node: &Node) {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let most = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => 0,
        };
        if most == 0 || bits.is_some_and(|bits| bits.parse::<u8>().map_or(true, |bits| bits > most)) {
            self.error(&node.place, format!("{text:?} is no network")).help =
                Some("write it like \"10.0.0.0/8\" or \"fd00::/8\"".into());
        }
    }

    /// One text, by what its key may hold. `text` is never a secret here.
    fn text(&mut self, name: &str, kind: Kind, text: &str, node: &Node) {
        match kind {
            Kind::Span(min, max) => match text.parse::<Span>() {
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
            Kind::Percent if serde_json::from_value::<Percent>(text.into()).is_err() => {
                self.error(&node.place, format!("`{name}`: {text:?} is no share")).help =
                    Some("write it like \"10%\", from 0% to 100%".into());
            }
            Kind::Size if serde_json::from_value::<ByteSize>(text.into()).is_err() => {
                self.error(&node.place, format!("`{name}`: {text:?} is no size")).help = Some("write it like \"16MiB\"".into());
            }
            Kind::Version(offered) => self.version(name, offered, text, node),
            Kind::Choice(words) if !words.contains(&text) => {
                let help = match closest(text, words.iter().copied()) {
                    Some(near) => format!("did you mean {near:?}?"),
                    None => {
                        format!("it can be {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or "))
                    }
                };
                self.error(&node.place, format!("`{name}` cannot be {text:?}")).help = Some(help);
            }
            Kind::Cron => self.cron(name, text, node),
            Kind::Zone => self.zone(text, node),
            Kind::Level => {
                if let Err(problem) = crate::log::check_filter(text) {
                    let words = ["off", "error", "warn", "info", "debug", "trace"];
                    let help = closest(text, words).map_or(
                        "it can be off, error, warn, info, debug or trace, or a filter such as \"info,cliffwatch::outbox=debug\""
                            .to_owned(),
                        |near| format!("did you mean {near:?}?"),
                    );
                    self.error(&node.place, format!("`{name}`: {problem}")).help = Some(help);
                }
            }
            Kind::Listen => self.listen(name, text, node),
            Kind::Url(needs_tls) => {
                if let Err(problem) = address(text, needs_tls, false) {
                    self.error(&node.place, format!("`{name}` {problem}"));
                }
            }
            Kind::Smtp => self.smtp(name, text, node),
            Kind::Mailbox => self.mailbox(name, text, node),
            Kind::File if text.is_empty() => {
                self.error(&node.place, format!("`{name}` is empty"));
            }
            _ => {}
        }
    }

    fn version(&mut self, name: &str, offered: &[u8], text: &str, node: &Node) {
        if text == "auto" || offered.iter().any(|version| text == format!("v{version}")) {
            return;
        }
        let words: Vec<String> =
            std::iter::once("auto".to_owned()).chain(offered.iter().map(|version| format!("v{version}"))).collect();
        let bare = format!("v{}", text.trim_start_matches(['v', 'V']));
        let help = match words.iter().find(|word| **word == bare) {
            Some(word) => format!("did you mean {word:?}?"),
            None => format!("it can be {}", words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ")),
        };
        self.error(&node.place, format!("`{name}` is not offered in version {text:?}")).help = Some(help);
    }

    fn cron(&mut self, name: &str, text: &str, node: &Node) {
        if text == "off" {
            return;
        }
        let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Disallowed).build();
        let fields: Vec<&str> = text.split_whitespace().collect();
        match parser.parse(text) {
            Ok(cron) => {
                // Any instant does: a pattern that finds nothing from here finds nothing from anywhere.
                let start = jiff::civil::date(2026, 1, 1).at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
                if start.is_ok_and(|start| cron.find_next_occurrence(&start, false).is_err()) {
                    let problem = self.warning(&node.place, format!("`{name}`: {text:?} never comes"));
                    problem.label = Some("no date of the calendar fits".into());
                    problem.help = Some("write \"off\" if that is meant".into());
                }
            }
            Err(error) => {
                let help = match fields.len() {
                    1 => closest(text, ["off"])
                        .map_or("write six fields: second minute hour day month weekday, or \"off\"".into(), |off| {
                            format!("did you mean {off:?}?")
                        }),
                    5 => format!("put the second in front: \"0 {text}\""),
                    6 => "the fields are second, minute, hour, day of month, month, day of week".to_owned(),
                    _ => "write six fields: second minute hour day month weekday".to_owned(),
                };
                let bad = (fields.len() == 6).then(|| bad_field(&fields, &parser)).flatten();
                let place = bad.and_then(|(index, _)| self.inside(node, text, index)).unwrap_or_else(|| node.place.clone());
                let message = match (fields.len(), bad) {
                    (6, Some((_, noun))) => format!("`{name}`: {}, in the {noun}", plain_cron_error(&error)),
                    (6, None) => format!("`{name}`: {}", plain_cron_error(&error)),
                    (count, _) => format!("`{name}`: {text:?} has {count} field{}, not six", if count == 1 { "" } else { "s" }),
                };
                self.error(&place, message).help = Some(help);
            }
        }
    }

    /// The place of the `index`-th word inside a text that stands in the file as it is.
    fn inside(&self, node: &Node, text: &str, index: usize) -> Option<Place> {
        let Place::File(span) = &node.place else { return None };
        let raw = self.text.get(span.clone())?;
        let at = raw.find(text)?;
        let word = text.split_whitespace().nth(index)?;
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        let start = span.start + at + offset;
        Some(Place::File(start..start + word.len()))
    }

    fn zone(&mut self, text: &str, node: &Node) {
        let zones = TimeZoneDatabase::bundled();
        if zones.get(text).is_ok() {
            return;
        }
        let names: Vec<String> = zones.available().map(|name| name.as_str().to_owned()).collect();
        let wanted = text.trim().replace(' ', "_");
        let city = names.iter().find(|name| name.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(&wanted)));
        let near = city.map(String::as_str).or_else(|| closest(&wanted, names.iter().map(String::as_str)));
        let help = near.map_or("write an IANA name such as \"UTC\" or \"Europe/Paris\"".to_owned(), |near| {
            format!("did you mean {near:?}?")
        });
        self.error(&node.place, format!("{text:?} is no time zone")).help = Some(help);
    }

    fn listen(&mut self, name: &str, text: &str, node: &Node) {
        let is_local = text.strip_prefix("localhost:").is_some_and(|port| port.parse::<u16>().is_ok());
        if text == "off" || is_local || text.parse::<SocketAddr>().is_ok() {
            return;
        }
        let help = match text.parse::<u16>().ok().or_else(|| text.strip_prefix(':')?.parse().ok()) {
            Some(port) => format!("write the address too: \"127.0.0.1:{port}\""),
            None => "write address and port, such as \"127.0.0.1:9797\" or \"[::1]:9797\", or \"off\"".to_owned(),
        };
        self.error(&node.place, format!("`{name}`: {text:?} is no address with a port")).help = Some(help);
    }

    fn smtp(&mut self, name: &str, text: &str, node: &Node) {
        let example = "write it like \"smtp://mail.example.com:587\" or \"smtps://mail.example.com:465\"";
        let problem = match url::Url::parse(text) {
            Err(_) => Some(("is no address of a mail server", example)),
            Ok(url) if !matches!(url.scheme(), "smtp" | "smtps") => Some(("must begin with smtp:// or smtps://", example)),
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Some(("holds a login", "put it into `username` and `password_file`"))
            }
            Ok(url) if url.host_str().is_none_or(str::is_empty) => Some(("names no host", example)),
            Ok(url) if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() => {
                Some(("holds more than host and port", example))
            }
            Ok(_) => None,
        };
        if let Some((problem, help)) = problem {
            self.error(&node.place, format!("`{name}` {problem}")).help = Some(help.into());
        }
    }

    fn mailbox(&mut self, name: &str, text: &str, node: &Node) {
        let example = "write it like \"desk@example.com\" or \"Desk <desk@example.com>\"";
        let problem = if text.chars().any(char::is_control) {
            Some("holds a line break or another control character".to_owned())
        } else {
            match text.parse::<lettre::message::Mailbox>() {
                Err(_) => Some(format!("{text:?} is no mail address")),
                Ok(mailbox) if !AsRef::<str>::as_ref(&mailbox.email).is_ascii() => {
                    Some(format!("{text:?} has letters that few mail servers take in an address"))
                }
                Ok(_) => None,
            }
        };
        if let Some(problem) = problem {
            self.error(&node.place, format!("`{name}`: {problem}")).help = Some(example.into());
        }
    }

    // -- receivers and routes --

    /// Checks every `[[receiver]]`; answers their names.
    fn receivers(&mut self, root: &Node) -> Vec<String> {
        let Some(entry) = root.get("receiver") else {
            return Vec::new();
        };
        if !matches!(entry.node.value, Value::List(_)) {
            self.error(&entry.key_place, format!("`receiver` must be a list of tables, not {}", entry.node.value.noun())).help =
                Some("write `[[receiver]]` with double brackets, once for each".into());
            return entry.node.get("name").and_then(|name| name.node.text()).map(str::to_owned).into_iter().collect();
        }
        let mut names: Vec<String> = Vec::new();
        for node in entry.node.list().iter().take(MAX_ITEMS) {
            if !matches!(node.value, Value::Table(_)) {
                self.wrong_type("receiver", node, "a table", None);
                continue;
            }
            self.receiver(node);
            let Some(name) = node.get("name") else { continue };
            let Some(text) = name.node.text() else { continue };
            if names.iter().any(|known| known == text) {
                self.error(&name.node.place, format!("two receivers are named {text:?}")).help = Some("rename one".into());
            } else {
                names.push(text.to_owned());
            }
        }
        names
    }

    fn receiver(&mut self, node: &Node) {
        self.section(node, "[[receiver]]", keys::RECEIVER);
        let name = node.get("name").and_then(|entry| entry.node.text()).unwrap_or_default();
        match node.get("name") {
            None => {
                self.error(&node.place, "this receiver has no `name`").help =
                    Some("add `name = \"ops\"`; routes and rules use it".into());
            }
            Some(entry) => {
                let is_good = !name.is_empty()
                    && name.len() <= 64
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
                if entry.node.text().is_some() && !is_good {
                    self.error(&entry.node.place, format!("{name:?} cannot name a receiver")).help =
                        Some("use up to 64 letters, digits, `-`, `_` and `.`".into());
                }
            }
        }
        let kind = match node.get("type").map(|entry| &entry.node.value) {
            None => {
                self.error(&node.place, "this receiver has no `type`").help =
                    Some("add `type = \"email\"` or `type = \"webhook\"`".into());
                return;
            }
            Some(Value::Text(text)) if text == "email" => ReceiverKind::Email,
            Some(Value::Text(text)) if text == "webhook" => ReceiverKind::Webhook,
            Some(_) => return,
        };
        for entry in node.table() {
            if let Some(other) = keys::receiver_kind(&entry.key)
                && other != kind
            {
                let (mine, theirs) = (word_of(kind), word_of(other));
                self.error(
                    &entry.key_place,
                    format!("`{}` is a key of {theirs} receivers; this one is of type {mine:?}", entry.key),
                );
            }
        }
        match kind {
            ReceiverKind::Webhook => self.webhook(node, name),
            ReceiverKind::Email => {
                for key in ["smtp", "from", "to"] {
                    let is_there = node
                        .get(key)
                        .is_some_and(|entry| key != "to" || !entry.node.list().is_empty() || entry.node.text().is_some());
                    if !is_there {
                        let example = match key {
                            "smtp" => "smtp = \"smtp://mail.example.com:587\"",
                            "from" => "from = \"Cliffwatch <alerts@example.com>\"",
                            _ => "to = [\"desk@example.com\"]",
                        };
                        self.error(&node.place, format!("this email receiver has no `{key}`")).help =
                            Some(format!("add `{example}`"));
                    }
                }
                if node.get("username").is_some() {
                    self.needs_secret(node, name, "password");
                } else if let Some(entry) = node.get("password").or_else(|| node.get("password_file")) {
                    self.error(&entry.key_place, format!("`{}` without `username` logs nobody in", entry.key));
                }
            }
        }
    }

    /// A webhook has what its format needs, and nothing that means nothing to it.
    fn webhook(&mut self, node: &Node, name: &str) {
        let word = node.get("format").map(|entry| entry.node.text());
        let format = match word {
            None => Format::default(),
            Some(word) => match word.and_then(Format::parse) {
                Some(format) => format,
                // Told already.
                None => return,
            },
        };
        if format.address().is_none() {
            self.needs_secret(node, name, "url");
        }
        for need in format.needs() {
            match need {
                Need::ChatId if node.get("chat_id").is_none() => {
                    self.error(&node.place, "this receiver has no `chat_id`").help =
                        Some("add `chat_id = \"-1001234567890\"`, or `\"@channel\"` for a public channel".into());
                }
                Need::ChatId => {}
                Need::Template if node.get("template").is_none() && node.get("template_file").is_none() => {
                    self.error(&node.place, "this receiver has no `template`").help =
                        Some("add `template = '{\"text\": {{ title }}}'`, or `template_file`".into());
                }
                Need::Template => {}
                secret => self.needs_secret(node, name, secret.key()),
            }
        }
        for entry in node.table().iter().filter(|entry| !format.takes(&entry.key)) {
            let theirs: Vec<String> = Format::ALL
                .into_iter()
                .filter(|other| other.takes(&entry.key))
                .map(|other| format!("{:?}", other.as_str()))
                .collect();
            let message = format!("`{}` means nothing to the format {:?}", entry.key, format.as_str());
            self.error(&entry.key_place, message).help =
                Some(format!("it is for {}: take it out, or give the `format` that is meant", theirs.join(", ")));
        }
        if let (Some(_), Some(twin)) = (node.get("template"), node.get("template_file")) {
            self.error(&twin.key_place, "both `template` and `template_file` are given").help = Some("keep one".into());
        }
        let content_type = node.get("content_type").and_then(|entry| entry.node.text());
        if let Some((entry, text)) = node.get("template").and_then(|entry| Some((entry, entry.node.text()?)))
            && format == Format::Template
            && let Err(error) = BodyTemplate::new(text, content_type)
        {
            self.error(&entry.node.place, error.to_string());
        }
    }

    /// `key`, `key_file`, or a systemd credential must be there.
    fn needs_secret(&mut self, node: &Node, name: &str, key: &str) {
        let file = format!("{key}_file");
        let is_credential = self.credentials.is_some_and(|directory| {
            [format!("{name}-{key}"), format!("{name}_{key}")].iter().any(|credential| directory.join(credential).exists())
        });
        if node.get(key).is_none() && node.get(&file).is_none() && !is_credential {
            self.error(&node.place, format!("this receiver has no `{key}`")).help =
                Some(format!("add `{key}`, `{file}`, or a systemd credential `{name}-{key}`"));
        }
    }

    fn route(&mut self, node: &Node, title: &str, depth: usize, is_root: bool) {
        if !matches!(node.value, Value::Table(_)) {
            self.wrong_type(title.trim_matches(['[', ']']), node, "a table", None);
            return;
        }
        self.section(node, title, keys::ROUTE);
        for entry in node.table() {
            let misplaced = match entry.key.as_str() {
                "matchers" | "continue" if is_root => "the root of the routes takes everything",
                "fallback" if !is_root => "only [route] itself has a fallback",
                "active_time_intervals" | "mute_time_intervals" if is_root => "the root of the routes is always at work",
                _ => continue,
            };
            self.error(&entry.key_place, format!("`{}` is not for {title}: {misplaced}", entry.key));
        }
        let Some(children) = node.get("routes") else { return };
        if depth >= MAX_ROUTE_DEPTH {
            self.error(&children.key_place, format!("routes nest deeper than {MAX_ROUTE_DEPTH} levels"));
            return;
        }
        if !matches!(children.node.value, Value::List(_)) {
            self.wrong_type(
                "routes",
                &children.node,
                "a list of tables",
                Some("write `[[route.routes]]` with double brackets".into()),
            );
            return;
        }
        for child in children.node.list() {
            self.route(child, "[[route.routes]]", depth + 1, false);
        }
    }

    /// Every receiver that a route names exists; every receiver is used or may be named by a rule.
    fn receiver_names(&mut self, root: &Node, names: &[String]) {
        let mut pending: Vec<&Node> = root.get("route").map(|entry| &entry.node).into_iter().collect();
        while let Some(route) = pending.pop() {
            for key in ["receivers", "fallback"] {
                for item in route.get(key).map_or(&[][..], |entry| entry.node.list()) {
                    let Some(text) = item.text() else { continue };
                    if names.iter().any(|name| name == text) {
                        continue;
                    }
                    let help = match closest(text, names.iter().map(String::as_str)) {
                        Some(near) => format!("did you mean {near:?}?"),
                        None if names.is_empty() => "there is no [[receiver]] yet".to_owned(),
                        None => format!("the receivers are {}", names.join(", ")),
                    };
                    self.error(&item.place, format!("no receiver is named {text:?}")).help = Some(help);
                }
            }
            pending.extend(route.get("routes").map_or(&[][..], |entry| entry.node.list()));
        }
        let has_root =
            root.get("route").and_then(|route| route.node.get("receivers")).is_some_and(|entry| !entry.node.list().is_empty());
        if !names.is_empty() && !has_root {
            let place = root.get("route").or_else(|| root.get("receiver")).map_or(&root.place, |entry| &entry.key_place);
            self.warning(place, "[route] names no `receivers`: alerts that no route takes are told to nobody").help =
                Some(format!("add `[route]` with `receivers = [{:?}]`", names.first().map_or("ops", String::as_str)));
        }
    }

    /// Both emissions bring the same records, of a day and of a week: beside each other they would contradict each other for ever.
    fn one_emission(&mut self, root: &Node) {
        let Some(schedule) = root.get("schedule") else { return };
        let is_on = |key: &str| schedule.node.get(key).filter(|entry| entry.node.text().is_some_and(|text| text.trim() != "off"));
        if let (Some(_), Some(weekly)) = (is_on("daily_emission"), is_on("weekly_emission")) {
            self.error(
                &weekly.key_place,
                "`daily_emission` and `weekly_emission` are both on: the same emission would be told twice",
            )
            .help = Some("put one of them \"off\": the days give the weeks too, the weeks cost fewer credits".into());
        }
    }

    /// A pattern is filled from the token list: without it, nothing is watched.
    fn list_for_patterns(&mut self, root: &Node) {
        let of = |section: &str, key: &str| root.get(section).and_then(|entry| entry.node.get(key)).map(|entry| &entry.node);
        let Some(list) = of("schedule", "token_list").filter(|list| list.text().is_some_and(|text| text.trim() == "off")) else {
            return;
        };
        let is_pattern = |text: &str| text.contains(['*', '?', '[', '{', '!']);
        let has_pattern = match of("watch", "tokens") {
            Some(tokens) => tokens.list().iter().filter_map(Node::text).any(is_pattern),
            // The default is ["*"].
            None => true,
        };
        if has_pattern {
            self.error(&list.place, "patterns in `tokens` of [watch] are filled from the token list, which is \"off\" here")
                .help = Some("give `token_list` a time, or name every token in [watch]".into());
        }
    }

    /// An address that others can reach needs a token.
    fn open_address(&mut self, root: &Node) {
        let Some(http) = root.get("http") else { return };
        let Some(listen) = http.node.get("listen") else { return };
        let Some(address) = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok()) else {
            return;
        };
        let is_credential = self
            .credentials
            .is_some_and(|directory| ["token", "http-token", "http_token"].iter().any(|name| directory.join(name).exists()));
        if !address.ip().is_loopback()
            && http.node.get("token").is_none()
            && http.node.get("token_file").is_none()
            && !is_credential
        {
            self.error(&listen.node.place, "others can reach this address, so it needs a token").help =
                Some("add `token_file` (or a systemd credential `http-token`), or listen on 127.0.0.1".into());
        }
    }

    /// A mirror that others can reach needs keys.
    fn open_mirror(&mut self, root: &Node) {
        let Some(mirror) = root.get("mirror") else { return };
        let Some(listen) = mirror.node.get("listen") else { return };
        let address = listen.node.text().and_then(|text| text.parse::<SocketAddr>().ok());
        if address.is_some_and(|address| !address.ip().is_loopback()) && mirror.node.get("keys").is_none() {
            self.error(&listen.node.place, "others can reach this address, so it needs keys").help =
                Some("add `keys = \"mirror-keys.db\"`, filled by `cliffwatch keys add NAME --db mirror-keys.db`, or listen on 127.0.0.1".into());
        }
    }
}

/// The section that has a key of this name, other than `here`.
fn home_of(key: &str, here: &str) -> Option<&'static str> {
    keys::section_names().find(|section| *section != here && keys::find(section, key).is_some())
}

fn title_of(section: &str) -> String {
    if section == "receiver" { "[[receiver]]".to_owned() } else { format!("[{section}]") }
}

fn word_of(kind: ReceiverKind) -> &'static str {
    match kind {
        ReceiverKind::Webhook => "webhook",
        ReceiverKind::Email => "email",
    }
}

/// Whether an address can be used; what is wrong with it otherwise, without any part of it.
fn address(text: &str, needs_tls: bool, may_hold_login: bool) -> Result<(), &'static str> {
    let url = url::Url::parse(text).map_err(|_| "is no address: write it like \"https://example.com\"")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with https://");
    }
    if !may_hold_login && (!url.username().is_empty() || url.password().is_some()) {
        return Err("holds a login: that belongs into a secret of its own");
    }
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => return Err("names no host"),
    };
    if needs_tls && url.scheme() == "http" && !is_loopback {
        return Err("must be https: only loopback may be plain http");
    }
    Ok(())
}

/// The first field that is wrong by itself, with its name.
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
        _ => "this is no cron pattern",
    };
    let text = text.trim().trim_end_matches('.').replace("CronPattern", "the pattern");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
