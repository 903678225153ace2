//! Secrets that a command needs and that are not to be had here: which, where they were looked for, and a command line that has them.
//!
//! A service gets its secrets from systemd, in a directory that only it sees. Whoever stands beside it with a shell has none of them, and
//! most commands need none; those that send or ask say what they miss before they do anything.

use std::path::{Path, PathBuf};

use super::exit::Hinted;
use super::{Invocation, shown};
use model::config::{Config, ReceiverSettings, Secret};
use model::text::error_chain;
use notify::{MissingSecret, missing_secrets};

/// Where the unit keeps its state; what runs beside it as its user needs the same.
const STATE: &str = "/var/lib/cliffwatch";

/// Fails where the receivers miss secrets, with a command line that runs `words` with the credentials of the service.
pub(super) fn need_receivers(
    receivers: &[ReceiverSettings],
    config: &Config,
    words: &[&str],
    invocation: &Invocation,
) -> Result<(), Hinted> {
    let missing: Vec<(String, MissingSecret)> = receivers
        .iter()
        .flat_map(|receiver| {
            missing_secrets(receiver).into_iter().map(|missing| (format!("receiver {:?}", receiver.name), missing))
        })
        .collect();
    refuse(&missing, config, words, invocation)
}

/// Fails where the source needs a key and none is here. A service of one's own, on this machine or
/// in a network of one's own, may need none.
pub(super) fn need_source_key(config: &Config, words: &[&str], invocation: &Invocation) -> Result<(), Hinted> {
    let address = config.source.base_url.trim();
    let host = address.split_once("://").map_or(address, |(_, host)| host);
    let is_here = address.starts_with("http://") || ["127.", "localhost", "[::1]"].iter().any(|here| host.starts_with(here));
    let secret = config.source.key();
    let missing = match secret.resolve() {
        Ok(Some(_)) => Vec::new(),
        Ok(None) if is_here => Vec::new(),
        Ok(None) => vec![("[source]".to_owned(), MissingSecret { key: "api_key", secret, problem: None })],
        Err(error) => {
            let problem = Some(error_chain(&error));
            vec![("[source]".to_owned(), MissingSecret { key: "api_key", secret, problem })]
        }
    };
    refuse(&missing, config, words, invocation)
}

/// As [`need_source_key`], where the source was asked and said so itself.
pub(super) fn need_key_after_all(config: &Config, words: &[&str], invocation: &Invocation) -> Result<(), Hinted> {
    let secret = config.source.key();
    refuse(&[("[source]".to_owned(), MissingSecret { key: "api_key", secret, problem: None })], config, words, invocation)
}

fn refuse(missing: &[(String, MissingSecret)], config: &Config, words: &[&str], invocation: &Invocation) -> Result<(), Hinted> {
    let Some((owner, first)) = missing.first() else { return Ok(()) };
    let others = match missing.len() {
        1 => String::new(),
        count => format!(", and {} more", model::format::count(count - 1, "secret")),
    };
    let file = invocation.config_path();
    let mut hint: Vec<String> = missing.iter().map(|(owner, missing)| looked_for(owner, missing, file.as_deref())).collect();
    let absent: Vec<&Secret> =
        missing.iter().filter(|(_, missing)| missing.problem.is_none()).map(|(_, missing)| &missing.secret).collect();
    if absent.is_empty() {
        hint.push("run it as somebody who may read it:".to_owned());
        hint.push(format!("  sudo {} {}", shown(&program()), arguments(file.as_deref(), words)));
    } else {
        hint.push("a service has such secrets from systemd; to run this with them (names of files as in its unit):".to_owned());
        hint.push(format!("  {}", systemd_run(&absent, config, file.as_deref(), words)));
        hint.push("or, where they lie in one folder that you may read:".to_owned());
        let folder = folder_of(file.as_deref());
        let here = format!("CREDENTIALS_DIRECTORY={} {}", shown(&folder), shown(&program()));
        hint.push(format!("  {here} {}", arguments(file.as_deref(), words)));
    }
    Err(Hinted { error: format!("{owner} misses its secret `{}`{others}", first.key), hint })
}

/// Where a secret was looked for.
fn looked_for(owner: &str, missing: &MissingSecret, file: Option<&Path>) -> String {
    let key = missing.key;
    if let Some(problem) = &missing.problem {
        return format!("{owner} `{key}_file`: {problem}");
    }
    let config = file.map_or_else(|| "the config".to_owned(), shown);
    let credential = missing.secret.credentials.last().map_or("", String::as_str);
    let credential = missing.secret.credentials.iter().find(|name| name.contains('-')).map_or(credential, String::as_str);
    let directory = match std::env::var_os("CREDENTIALS_DIRECTORY") {
        Some(directory) => format!("in $CREDENTIALS_DIRECTORY ({})", shown(Path::new(&directory))),
        None => "but there is no $CREDENTIALS_DIRECTORY here".to_owned(),
    };
    format!(
        "{owner} `{key}`: looked for `{key}` and `{key}_file` in {config}, and for the credential `{credential}`, {directory}"
    )
}

fn folder_of(file: Option<&Path>) -> PathBuf {
    let file = file.map(absolute);
    file.as_deref().and_then(Path::parent).unwrap_or(Path::new("/etc/cliffwatch")).to_owned()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn arguments(file: Option<&Path>, words: &[&str]) -> String {
    let config = file.map(|file| format!("--config {} ", shown(&absolute(file))));
    format!("{}{}", config.unwrap_or_default(), words.join(" "))
}

/// A transient service that has these credentials, and the state of the unit where the database lies there.
fn systemd_run(secrets: &[&Secret], config: &Config, file: Option<&Path>, words: &[&str]) -> String {
    let mut line = "sudo systemd-run --pipe --wait --collect".to_owned();
    if config.store.path.starts_with(STATE) {
        line.push_str(" -p DynamicUser=yes -p User=cliffwatch -p StateDirectory=cliffwatch");
    }
    let folder = folder_of(file);
    for secret in secrets {
        let name = secret.credentials.iter().find(|name| name.contains('-')).or_else(|| secret.credentials.first());
        let Some(name) = name else { continue };
        line.push_str(&format!(" -p LoadCredential={name}:{}", shown(&folder.join(name))));
    }
    format!("{line} {} {}", shown(&program()), arguments(file, words))
}

/// This program, as a shell finds it from anywhere.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/cliffwatch"))
}
