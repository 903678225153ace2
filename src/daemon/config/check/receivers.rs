//! The receivers of a config: their names, and what type and format of each need and take.

use super::{ConfigCheck, MAX_ITEMS};
use crate::config::keys;
use crate::config::tree::{ConfigEntry, ConfigNode, ConfigValue, ValuePlace};
use model::config::ReceiverKind;
use notify::format::{DEFAULT_FORMAT, FORMATS, FormatKey, FormatSpec, format_keys};

/// What no email receiver can do without, with an example.
const NEEDED_FOR_EMAIL: [(&str, &str); 3] = [
    ("smtp", "smtp = \"smtp://mail.example.com:587\""),
    ("from", "from = \"Cliffwatch <alerts@example.com>\""),
    ("to", "to = [\"desk@example.com\"]"),
];

impl ConfigCheck<'_> {
    /// Checks every `[[receiver]]`; answers their names.
    pub(super) fn receivers(&mut self, root: &ConfigNode) -> Vec<String> {
        let Some(entry) = root.get("receiver") else {
            return Vec::new();
        };
        if !matches!(entry.node.value, ConfigValue::List(_)) {
            self.error(&entry.key_place, format!("`receiver` must be a list of tables, not {}", entry.node.value.noun())).help =
                Some("write `[[receiver]]` with double brackets, once for each".into());
            return entry.node.get("name").and_then(|name| name.node.text()).map(str::to_owned).into_iter().collect();
        }
        let mut names: Vec<String> = Vec::new();
        for node in entry.node.list().iter().take(MAX_ITEMS) {
            if !matches!(node.value, ConfigValue::Table(_)) {
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

    fn receiver(&mut self, node: &ConfigNode) {
        self.section(node, "[[receiver]]", keys::receiver());
        let name = self.receiver_name(node);
        let Some(kind) = self.receiver_kind(node) else { return };
        for entry in node.table() {
            if let Some(other) = keys::receiver_kind(&entry.key)
                && other != kind
            {
                let (mine, theirs) = (kind.as_str(), other.as_str());
                let message = format!("`{}` is a key of {theirs} receivers; this one is of type {mine:?}", entry.key);
                self.error(&entry.key_place, message);
            }
        }
        match kind {
            ReceiverKind::Webhook => self.webhook(node, name),
            ReceiverKind::Email => self.email(node, name),
            ReceiverKind::Exec => self.exec(node),
        }
    }

    fn receiver_name<'n>(&mut self, node: &'n ConfigNode) -> &'n str {
        let Some(entry) = node.get("name") else {
            self.error(&node.place, "this receiver has no `name`").help =
                Some("add `name = \"ops\"`; routes and rules use it".into());
            return "";
        };
        let name = entry.node.text().unwrap_or_default();
        let is_good = !name.is_empty()
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if entry.node.text().is_some() && !is_good {
            self.error(&entry.node.place, format!("{name:?} cannot name a receiver")).help =
                Some("use up to 64 letters, digits, `-`, `_` and `.`".into());
        }
        name
    }

    /// The type of a receiver; None where it is wrong, which was told.
    fn receiver_kind(&mut self, node: &ConfigNode) -> Option<ReceiverKind> {
        let Some(entry) = node.get("type") else {
            let all = ReceiverKind::WORDS.map(|word| format!("`type = {word:?}`"));
            self.error(&node.place, "this receiver has no `type`").help = Some(format!("add {}", all.join(" or ")));
            return None;
        };
        ReceiverKind::parse(entry.node.text()?)
    }

    fn email(&mut self, node: &ConfigNode, name: &str) {
        for (key, example) in NEEDED_FOR_EMAIL {
            let is_given = |entry: &ConfigEntry| match &entry.node.value {
                ConfigValue::List(items) => !items.is_empty(),
                ConfigValue::Text(_) => true,
                _ => key != "to",
            };
            if !node.get(key).is_some_and(is_given) {
                self.error(&node.place, format!("this email receiver has no `{key}`")).help = Some(format!("add `{example}`"));
            }
        }
        if node.get("username").is_some() {
            self.needs_secret(node, name, "password");
        } else if let Some(entry) = node.get("password").or_else(|| node.get("password_file")) {
            self.error(&entry.key_place, format!("`{}` without `username` logs nobody in", entry.key));
        }
    }

    /// A program is named by its whole path, in the file, and its arguments are fixed. Whether it is there is looked at where receivers
    /// are built.
    fn exec(&mut self, node: &ConfigNode) {
        if matches!(node.place, ValuePlace::Variable(_)) {
            self.error(&node.place, "a receiver of type \"exec\" stands in the config file, never in the environment").help =
                Some("whoever sets a variable must not decide what is run".into());
        }
        if let Some(entry) = node.get("tls_ca_file") {
            self.error(&entry.key_place, "`tls_ca_file` means nothing to a receiver of type \"exec\": it connects nowhere");
        }
        match node.get("command") {
            None => {
                self.error(&node.place, "this exec receiver has no `command`").help =
                    Some("add `command = \"/usr/local/lib/cliffwatch/notify\"`".into());
            }
            Some(entry) => {
                let text = entry.node.text().unwrap_or("/");
                if !text.starts_with('/') {
                    self.error(&entry.node.place, "`command` must be an absolute path").help =
                        Some("arguments stand in `args`; there is no shell, and no PATH is searched".into());
                } else if text.contains('\0') {
                    self.error(&entry.node.place, "`command` holds a NUL, which no path can");
                }
            }
        }
        let Some(args) = node.get("args") else { return };
        for arg in std::iter::once(&args.node).chain(args.node.list()) {
            let text = arg.text().unwrap_or_default();
            if text.contains('\0') {
                self.error(&arg.place, "this argument holds a NUL, which none can");
            } else if text.contains("{{") || text.contains("${") {
                self.warning(&arg.place, "arguments are passed as they stand: nothing is filled in").help =
                    Some("what the message says is in the JSON on standard input".into());
            }
        }
    }

    /// A webhook has what its format needs, and nothing that means nothing to it.
    fn webhook(&mut self, node: &ConfigNode, name: &str) {
        let format = match node.get("format").map(|entry| entry.node.text()) {
            None => DEFAULT_FORMAT,
            Some(word) => match word.and_then(FormatSpec::named) {
                Some(format) => format,
                // Told already.
                None => return,
            },
        };
        if format.address.is_none() {
            self.needs_secret(node, name, "url");
        }
        for key in format.keys.iter().filter(|key| key.is_needed) {
            self.needs(node, name, key);
        }
        for entry in node.table().iter().filter(|entry| !format.takes(&entry.key)) {
            let takers = FORMATS.iter().filter(|other| other.takes(&entry.key));
            let theirs: Vec<String> = takers.map(|other| format!("{:?}", other.name)).collect();
            let message = format!("`{}` means nothing to the format {:?}", entry.key, format.name);
            self.error(&entry.key_place, message).help =
                Some(format!("it is for {}: take it out, or give the `format` that is meant", theirs.join(", ")));
        }
        // Of secrets the check of every section says so.
        for key in format_keys().filter(|key| !key.value.is_secret()) {
            let twin = key.file.and_then(|file| node.get(file));
            if let (Some(_), Some(twin)) = (node.get(key.name), twin) {
                let message = format!("both `{}` and `{}` are given", key.name, twin.key);
                self.error(&twin.key_place, message).help = Some("keep one".into());
            }
        }
        let text_of = |key: &str| node.get(key).and_then(|entry| entry.node.text()).map(str::to_owned);
        if let Err(problem) = format.check(&text_of) {
            let place = node.get(problem.key).map_or(&node.place, |entry| &entry.node.place);
            self.error(place, problem.message);
        }
    }

    fn needs(&mut self, node: &ConfigNode, name: &str, key: &FormatKey) {
        if key.value.is_secret() {
            return self.needs_secret(node, name, key.name);
        }
        if node.get(key.name).is_none() && key.file.is_none_or(|file| node.get(file).is_none()) {
            self.error(&node.place, format!("this receiver has no `{}`", key.name)).help = Some(format!("add {}", key.example));
        }
    }

    /// `key`, `key_file`, or a systemd credential must be there. A service beside this process may have credentials that it has not, so
    /// only a start refuses what is missing.
    fn needs_secret(&mut self, node: &ConfigNode, name: &str, key: &str) {
        let file = format!("{key}_file");
        let is_credential = self.credentials.is_some_and(|directory| {
            [format!("{name}-{key}"), format!("{name}_{key}")].iter().any(|credential| directory.join(credential).exists())
        });
        if node.get(key).is_none() && node.get(&file).is_none() && !is_credential {
            self.warning(&node.place, format!("this receiver has no `{key}`")).help = Some(format!(
                "the daemon does not start without it: add `{key}`, `{file}`, or give its service the credential `{name}-{key}`"
            ));
        }
    }
}
