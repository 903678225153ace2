//! Checks every key and value of a config against the declared keys. Reports all problems at once, each with its location, and no secret.

mod receivers;
mod routes;
mod scalars;
mod together;
mod values;

use std::{ops::Range, path::Path};

use super::key_lookup;
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, Location};
use model::{Diagnostic, DiagnosticLevel, closest, config::ConfigKey};

/// The maximum number of receivers, groups, or items of any list.
const MAX_ITEMS: usize = 10_000;

/// Collects the problems of a config.
pub(super) struct ConfigCheck<'a> {
    pub file: &'a Path,
    /// The text of the file, to locate a part of a value.
    pub text: &'a str,
    /// The directory of the systemd credentials.
    pub credentials: Option<&'a Path>,
    /// Whether the text has no syntax errors. If it has one, keys that seem to be missing may come after it.
    pub is_complete: bool,
    pub problems: Vec<Diagnostic>,
}

/// The file name in problems of environment variables.
pub(super) const ENVIRONMENT: &str = "environment";

impl ConfigCheck<'_> {
    pub fn error(&mut self, location: &Location, message: impl Into<String>) -> &mut Diagnostic {
        self.add_problem(Diagnostic::error, location, message.into())
    }

    pub fn warning(&mut self, location: &Location, message: impl Into<String>) -> &mut Diagnostic {
        self.add_problem(Diagnostic::warning, location, message.into())
    }

    /// Reports that a key is missing, unless it may come after a syntax error.
    fn missing_key(&mut self, severity: DiagnosticLevel, table: &ConfigNode, message: String, help: String) {
        if self.is_complete {
            let make = if severity == DiagnosticLevel::Error { Diagnostic::error } else { Diagnostic::warning };
            self.add_problem(make, &table.location, message).help = Some(help);
        }
    }

    fn add_problem(
        &mut self,
        make: fn(std::path::PathBuf, Option<Range<usize>>, String) -> Diagnostic,
        location: &Location,
        message: String,
    ) -> &mut Diagnostic {
        let problem = match location {
            Location::File(span) => make(self.file.to_owned(), Some(span.clone()), message),
            Location::Variable(name) if name.is_empty() => make(ENVIRONMENT.into(), None, message),
            Location::Variable(name) => make(ENVIRONMENT.into(), None, format!("{name}: {message}")),
        };
        self.problems.push(problem);
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// Checks the whole config.
    pub fn root(&mut self, root: &ConfigNode) {
        for entry in root.table() {
            match entry.key.as_str() {
                "receiver" => {}
                "route" => self.route(&entry.node, "[route]", 0, true),
                name @ ("inhibit_rules" | "time_intervals") => {
                    let keys = key_lookup::section(name).unwrap_or_default();
                    self.tables(name, &format!("[[{name}]]"), &entry.node, keys);
                }
                name => match key_lookup::section(name) {
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
        self.source_addresses(root);
        self.one_emission(root);
        self.list_for_patterns(root);
        self.proxies(root);
        self.open_mirror(root);
    }

    fn is_table(&mut self, entry: &ConfigEntry) -> bool {
        let is_table = matches!(entry.node.value, ConfigValue::Table(_));
        if !is_table {
            let key = &entry.key;
            let double = matches!(entry.node.value, ConfigValue::List(_));
            let problem = self.error(&entry.key_location, format!("`{key}` must be a table, not {}", entry.node.value.noun()));
            problem.help = Some(if double {
                format!("write one `[{key}]`, not `[[{key}]]`")
            } else {
                format!("write `[{key}]` and its keys below")
            });
        }
        is_table
    }

    fn unknown_section(&mut self, entry: &ConfigEntry) {
        let key = entry.key.as_str();
        let is_section = matches!(entry.node.value, ConfigValue::Table(_) | ConfigValue::List(_));
        let near = closest(key, key_lookup::section_names());
        let owner = section_with(key, "");
        let help = match (near, owner) {
            (_, Some(owner)) if !is_section => format!("`{key}` belongs in {}", title_of(owner)),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(owner)) => format!("`{key}` belongs in {}", title_of(owner)),
            (None, None) => format!("the sections are {}", key_lookup::section_names().collect::<Vec<_>>().join(", ")),
        };
        let noun = if is_section { "section" } else { "key" };
        let message = format!("unknown {noun} `{key}`");
        // Another program may use our prefix. A name without `__` cannot be a key, so a warning is enough.
        let problem = match &entry.key_location {
            Location::Variable(name) if !name.contains("__") => {
                self.warning(&entry.key_location, format!("{message}: it has no effect"))
            }
            _ => self.error(&entry.key_location, message),
        };
        problem.help = Some(match (&entry.key_location, owner) {
            (Location::Variable(_), Some(owner)) => {
                format!("did you mean {}{}__{}?", super::tree::PREFIX, owner.to_uppercase(), key.to_uppercase())
            }
            (Location::Variable(_), None) => format!("a key is written as {}SECTION__KEY", super::tree::PREFIX),
            _ => help,
        });
    }

    fn section(&mut self, node: &ConfigNode, title: &str, keys: &'static [ConfigKey]) {
        for entry in node.table() {
            match keys.iter().find(|key| key.name == entry.key) {
                Some(key) => self.value(key, &entry.node),
                None => self.unknown_key(entry, title, keys),
            }
        }
        for key in keys.iter().filter(|key| key.kind.is_secret()) {
            let file = format!("{}_file", key.name);
            if let (Some(_), Some(entry)) = (node.get(key.name), node.get(&file)) {
                let message = format!("`{}` and `{file}` are both set", key.name);
                self.error(&entry.key_location, message).help =
                    Some(format!("remove one; `{file}` can change without a restart"));
            }
        }
    }

    fn unknown_key(&mut self, entry: &ConfigEntry, title: &str, keys: &'static [ConfigKey]) {
        let key = entry.key.as_str();
        let here = title.trim_matches(['[', ']']);
        let help = match (closest(key, keys.iter().map(|key| key.name)), section_with(key, here)) {
            (_, Some(owner)) if key_lookup::find(owner, key).is_some() => format!("`{key}` belongs in {}", title_of(owner)),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) => format!("its keys are {}", keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
        };
        self.error(&entry.key_location, format!("unknown key `{key}` in {title}")).help = Some(help);
    }
}

/// The section other than `here` that has a key of this name.
fn section_with(key: &str, here: &str) -> Option<&'static str> {
    key_lookup::section_names().find(|section| *section != here && key_lookup::find(section, key).is_some())
}

fn title_of(section: &str) -> String {
    if section == "receiver" { "[[receiver]]".to_owned() } else { format!("[{section}]") }
}
