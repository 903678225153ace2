//! Checks the receivers: their names, and the keys that the type and the format of each one require and accept.

use super::{ConfigCheck, MAX_ITEMS};
use crate::config::key_lookup;
use crate::config::tree::{ConfigEntry, ConfigNode, ConfigValue, Location};
use model::{DiagnosticLevel, config::ReceiverKind};
use notify::format::{DEFAULT_FORMAT, FORMATS, FormatKey, FormatSpec, format_keys};

/// The keys that an email receiver requires, each with an example.
const REQUIRED_FOR_EMAIL: [(&str, &str); 3] = [
    ("smtp", "smtp = \"smtp://mail.example.com:587\""),
    ("from", "from = \"Cliffwatch <alerts@example.com>\""),
    ("to", "to = [\"desk@example.com\"]"),
];

impl ConfigCheck<'_> {
    /// Checks every `[[receiver]]` and returns the names.
    pub(super) fn receivers(&mut self, root: &ConfigNode) -> Vec<String> {
        let Some(entry) = root.get("receiver") else {
            return Vec::new();
        };
        if !matches!(entry.node.value, ConfigValue::List(_)) {
            self.error(&entry.key_location, format!("`receiver` must be a list of tables, not {}", entry.node.value.noun()))
                .help = Some("write `[[receiver]]` with double brackets, once for each".into());
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
                self.error(&name.node.location, format!("two receivers are named {text:?}")).help =
                    Some("rename one of them".into());
            } else {
                names.push(text.to_owned());
            }
        }
        names
    }

    fn receiver(&mut self, node: &ConfigNode) {
        self.section(node, "[[receiver]]", key_lookup::receiver());
        let name = self.receiver_name(node);
        let Some(kind) = self.receiver_kind(node) else { return };
        for entry in node.table() {
            if let Some(other) = key_lookup::receiver_kind(&entry.key)
                && other != kind
            {
                let (mine, theirs) = (kind.as_str(), other.as_str());
                let message = format!("`{}` is a key of {theirs} receivers; this one is of type {mine:?}", entry.key);
                self.error(&entry.key_location, message);
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
            let help = "add a name for routes and rules, such as `name = \"ops\"`";
            self.missing_key(DiagnosticLevel::Error, node, "this receiver has no `name`".into(), help.into());
            return "";
        };
        let name = entry.node.text().unwrap_or_default();
        let is_valid = !name.is_empty()
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if entry.node.text().is_some() && !is_valid {
            self.error(&entry.node.location, format!("{name:?} is not a valid receiver name")).help =
                Some("use up to 64 letters, digits, `-`, `_`, and `.`".into());
        }
        name
    }

    /// The type of a receiver. `None` if it is missing or not valid, which is reported.
    fn receiver_kind(&mut self, node: &ConfigNode) -> Option<ReceiverKind> {
        let Some(entry) = node.get("type") else {
            let all = ReceiverKind::WORDS.map(|word| format!("`type = {word:?}`"));
            let help = format!("add {}", all.join(" or "));
            self.missing_key(DiagnosticLevel::Error, node, "this receiver has no `type`".into(), help);
            return None;
        };
        ReceiverKind::parse(entry.node.text()?)
    }

    fn email(&mut self, node: &ConfigNode, name: &str) {
        for (key, example) in REQUIRED_FOR_EMAIL {
            let is_set = |entry: &ConfigEntry| match &entry.node.value {
                ConfigValue::List(items) => !items.is_empty(),
                ConfigValue::Text(_) => true,
                _ => key != "to",
            };
            if !node.get(key).is_some_and(is_set) {
                let message = format!("this email receiver has no `{key}`");
                self.missing_key(DiagnosticLevel::Error, node, message, format!("add `{example}`"));
            }
        }
        if node.get("username").is_some() {
            self.require_secret(node, name, "password");
        } else if let Some(entry) = node.get("password").or_else(|| node.get("password_file")) {
            self.error(&entry.key_location, format!("`{}` has no effect without `username`", entry.key));
        }
    }

    /// Checks that a program has an absolute path and comes from the file. Whether the program exists is checked where receivers are built.
    fn exec(&mut self, node: &ConfigNode) {
        if matches!(node.location, Location::Variable(_)) {
            self.error(
                &node.location,
                "a receiver of type \"exec\" is not allowed in the environment, only in the config file",
            )
            .help = Some("otherwise, a user who can set a variable could run any program".into());
        }
        if let Some(entry) = node.get("tls_ca_file") {
            self.error(
                &entry.key_location,
                "`tls_ca_file` has no effect on a receiver of type \"exec\", which makes no connection",
            );
        }
        match node.get("command") {
            None => {
                let help = "add `command = \"/usr/local/lib/cliffwatch/notify\"`";
                self.missing_key(DiagnosticLevel::Error, node, "this exec receiver has no `command`".into(), help.into());
            }
            Some(entry) => {
                let text = entry.node.text().unwrap_or("/");
                if !text.starts_with('/') {
                    self.error(&entry.node.location, "`command` must be an absolute path").help =
                        Some("put arguments in `args`; neither a shell nor PATH is used".into());
                } else if text.contains('\0') {
                    self.error(&entry.node.location, "`command` contains a NUL character");
                }
            }
        }
        let Some(args) = node.get("args") else { return };
        for arg in std::iter::once(&args.node).chain(args.node.list()) {
            let text = arg.text().unwrap_or_default();
            if text.contains('\0') {
                self.error(&arg.location, "this argument contains a NUL character");
            } else if text.contains("{{") || text.contains("${") {
                self.warning(&arg.location, "placeholders in arguments are not replaced").help =
                    Some("the program reads the message as JSON from standard input".into());
            }
        }
    }

    /// Checks that a webhook has every key that its format requires, and only keys that the format accepts.
    fn webhook(&mut self, node: &ConfigNode, name: &str) {
        let format = match node.get("format").map(|entry| entry.node.text()) {
            None => DEFAULT_FORMAT,
            Some(word) => match word.and_then(FormatSpec::named) {
                Some(format) => format,
                // Already reported.
                None => return,
            },
        };
        if format.address.is_none() {
            self.require_secret(node, name, "url");
        }
        for key in format.keys.iter().filter(|key| key.is_needed) {
            self.require(node, name, key);
        }
        for entry in node.table().iter().filter(|entry| !format.takes(&entry.key)) {
            let takers = FORMATS.iter().filter(|other| other.takes(&entry.key));
            let theirs: Vec<String> = takers.map(|other| format!("{:?}", other.name)).collect();
            let message = format!("`{}` has no effect with the format {:?}", entry.key, format.name);
            self.error(&entry.key_location, message).help =
                Some(format!("it belongs to {}: remove it, or set `format`", theirs.join(", ")));
        }
        // For secrets, the check of the table reports this.
        for key in format_keys().filter(|key| !key.value.is_secret()) {
            let file = key.file.and_then(|file| node.get(file));
            if let (Some(_), Some(file)) = (node.get(key.name), file) {
                let message = format!("`{}` and `{}` are both set", key.name, file.key);
                self.error(&file.key_location, message).help = Some("remove one".into());
            }
        }
        let text_of = |key: &str| node.get(key).and_then(|entry| entry.node.text()).map(str::to_owned);
        if let Err(problem) = format.check(&text_of) {
            let location = node.get(problem.key).map_or(&node.location, |entry| &entry.node.location);
            self.error(location, problem.message);
        }
    }

    fn require(&mut self, node: &ConfigNode, name: &str, key: &FormatKey) {
        if key.value.is_secret() {
            return self.require_secret(node, name, key.name);
        }
        if node.get(key.name).is_none() && key.file.is_none_or(|file| node.get(file).is_none()) {
            let message = format!("this receiver has no `{}`", key.name);
            self.missing_key(DiagnosticLevel::Error, node, message, format!("add {}", key.example));
        }
    }

    /// Warns if neither `key`, nor `key_file`, nor a systemd credential exists. It is not an error, because the service may have
    /// credentials that this process cannot see; the start of the daemon rejects a missing secret.
    fn require_secret(&mut self, node: &ConfigNode, name: &str, key: &str) {
        let file = format!("{key}_file");
        let is_credential = self.credentials.is_some_and(|directory| {
            [format!("{name}-{key}"), format!("{name}_{key}")].iter().any(|credential| directory.join(credential).exists())
        });
        if node.get(key).is_none() && node.get(&file).is_none() && !is_credential {
            let help =
                format!("the daemon does not start without it: add `{key}`, `{file}`, or the systemd credential `{name}-{key}`");
            self.missing_key(DiagnosticLevel::Warning, node, format!("this receiver has no `{key}`"), help);
        }
    }
}
