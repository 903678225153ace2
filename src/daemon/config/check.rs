//! Every key and value of a config, held against the table of keys: all problems at once, each at its place, no secret in any.

mod receivers;
mod routes;
mod scalars;
mod together;
mod values;

use std::{ops::Range, path::Path};

use super::keys::{self, ConfigKey};
use super::tree::{ConfigEntry, ConfigNode, ConfigValue, ValuePlace};
use model::{Diagnostic, closest};

/// Receivers, routes below routes, groups: more than this is a mistake, or an attack.
const MAX_ITEMS: usize = 10_000;

/// Gathers what is wrong.
pub(super) struct ConfigCheck<'a> {
    /// The file that the tree was read from.
    pub file: &'a Path,
    /// Its text, for pointing inside a value.
    pub text: &'a str,
    /// Where systemd put credentials, if it did.
    pub credentials: Option<&'a Path>,
    pub problems: Vec<Diagnostic>,
}

/// The name that problems of the environment are filed under.
pub(super) const ENVIRONMENT: &str = "environment";

impl ConfigCheck<'_> {
    /// Files an error at `place`.
    pub fn error(&mut self, place: &ValuePlace, message: impl Into<String>) -> &mut Diagnostic {
        self.file_problem(Diagnostic::error, place, message.into())
    }

    /// Files a warning at `place`.
    pub fn warning(&mut self, place: &ValuePlace, message: impl Into<String>) -> &mut Diagnostic {
        self.file_problem(Diagnostic::warning, place, message.into())
    }

    fn file_problem(
        &mut self,
        make: fn(std::path::PathBuf, Option<Range<usize>>, String) -> Diagnostic,
        place: &ValuePlace,
        message: String,
    ) -> &mut Diagnostic {
        let problem = match place {
            ValuePlace::File(span) => make(self.file.to_owned(), Some(span.clone()), message),
            ValuePlace::Variable(name) if name.is_empty() => make(ENVIRONMENT.into(), None, message),
            ValuePlace::Variable(name) => make(ENVIRONMENT.into(), None, format!("{name}: {message}")),
        };
        self.problems.push(problem);
        let last = self.problems.len() - 1;
        &mut self.problems[last]
    }

    /// The whole tree.
    pub fn root(&mut self, root: &ConfigNode) {
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
        self.source_addresses(root);
        self.one_emission(root);
        self.list_for_patterns(root);
        self.open_mirror(root);
    }

    fn is_table(&mut self, entry: &ConfigEntry) -> bool {
        let is_table = matches!(entry.node.value, ConfigValue::Table(_));
        if !is_table {
            let key = &entry.key;
            let double = matches!(entry.node.value, ConfigValue::List(_));
            let problem = self.error(&entry.key_place, format!("`{key}` must be a table, not {}", entry.node.value.noun()));
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
            ValuePlace::Variable(name) if !name.contains("__") => {
                self.warning(&entry.key_place, format!("{message}: it has no effect"))
            }
            _ => self.error(&entry.key_place, message),
        };
        problem.help = Some(match (&entry.key_place, home) {
            (ValuePlace::Variable(_), Some(home)) => {
                format!("did you mean {}{}__{}?", super::tree::PREFIX, home.to_uppercase(), key.to_uppercase())
            }
            (ValuePlace::Variable(_), None) => format!("keys are written {}SECTION__KEY", super::tree::PREFIX),
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
            if let (Some(_), Some(twin)) = (node.get(key.name), node.get(&file)) {
                let message = format!("both `{}` and `{file}` are given", key.name);
                self.error(&twin.key_place, message).help = Some(format!("keep one; `{file}` can be changed without a restart"));
            }
        }
    }

    fn unknown_key(&mut self, entry: &ConfigEntry, title: &str, keys: &'static [ConfigKey]) {
        let key = entry.key.as_str();
        let here = title.trim_matches(['[', ']']);
        let help = match (closest(key, keys.iter().map(|key| key.name)), home_of(key, here)) {
            (_, Some(home)) if keys::find(home, key).is_some() => format!("`{key}` belongs into {}", title_of(home)),
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, _) => format!("its keys are {}", keys.iter().map(|key| key.name).collect::<Vec<_>>().join(", ")),
        };
        self.error(&entry.key_place, format!("unknown key `{key}` in {title}")).help = Some(help);
    }
}

/// The section that has a key of this name, other than `here`.
fn home_of(key: &str, here: &str) -> Option<&'static str> {
    keys::section_names().find(|section| *section != here && keys::find(section, key).is_some())
}

fn title_of(section: &str) -> String {
    if section == "receiver" { "[[receiver]]".to_owned() } else { format!("[{section}]") }
}
