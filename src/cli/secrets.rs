//! Reports secrets that a command needs but cannot read, with the searched places and a command line that has access to them.
//!
//! A service gets its secrets from systemd in a private directory, which a shell cannot read. Most commands need no secrets;
//! commands that send or poll check them first.

use std::path::{Path, PathBuf};

use super::exit::ErrorWithHint;
use super::{Invocation, shown};
use model::config::{Config, ReceiverSettings, Secret};
use model::text::error_chain;
use notify::{MissingSecret, missing_secrets};

/// The state directory of the systemd unit.
const STATE_DIRECTORY: &str = "/var/lib/cliffwatch";

/// Fails if a receiver lacks a secret, with a command line that runs `words` with the credentials of the service.
pub(super) fn need_receivers(
    receivers: &[ReceiverSettings],
    config: &Config,
    words: &[&str],
    invocation: &Invocation,
) -> Result<(), ErrorWithHint> {
    let missing: Vec<(String, MissingSecret)> = receivers
        .iter()
        .flat_map(|receiver| {
            missing_secrets(receiver).into_iter().map(|missing| (format!("receiver {:?}", receiver.name), missing))
        })
        .collect();
    reject_missing(&missing, config, words, invocation)
}

/// Fails if the source needs an API key and none is configured. A source on this machine or over plain HTTP may not need one.
pub(super) fn need_source_key(config: &Config, words: &[&str], invocation: &Invocation) -> Result<(), ErrorWithHint> {
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
    reject_missing(&missing, config, words, invocation)
}

/// Like [`need_source_key`], after the source rejected a request without a key.
pub(super) fn need_key_after_rejection(config: &Config, words: &[&str], invocation: &Invocation) -> Result<(), ErrorWithHint> {
    let secret = config.source.key();
    reject_missing(&[("[source]".to_owned(), MissingSecret { key: "api_key", secret, problem: None })], config, words, invocation)
}

fn reject_missing(
    missing: &[(String, MissingSecret)],
    config: &Config,
    words: &[&str],
    invocation: &Invocation,
) -> Result<(), ErrorWithHint> {
    let Some((owner, first)) = missing.first() else { return Ok(()) };
    let others = match missing.len() {
        1 => String::new(),
        count => format!(", and {}", model::phrase::count(count - 1, "more secret")),
    };
    let file = invocation.config_path();
    let mut hint: Vec<String> = missing.iter().map(|(owner, missing)| searched_places(owner, missing, file.as_deref())).collect();
    let absent: Vec<&Secret> =
        missing.iter().filter(|(_, missing)| missing.problem.is_none()).map(|(_, missing)| &missing.secret).collect();
    if absent.is_empty() {
        hint.push("run the command as a user who can read it:".to_owned());
        hint.push(format!("  sudo {} {}", shown(&program()), arguments(file.as_deref(), words)));
    } else {
        hint.push("to run the command with the credentials of the systemd service (file names as in its unit):".to_owned());
        hint.push(format!("  {}", systemd_run(&absent, config, file.as_deref(), words)));
        hint.push("or, if the secrets are files in a folder that you can read:".to_owned());
        let folder = folder_of(file.as_deref());
        let here = format!("CREDENTIALS_DIRECTORY={} {}", shown(&folder), shown(&program()));
        hint.push(format!("  {here} {}", arguments(file.as_deref(), words)));
    }
    Err(ErrorWithHint { error: format!("{owner} lacks the secret `{}`{others}", first.key), hint })
}

/// Describes the places where a secret was searched.
fn searched_places(owner: &str, missing: &MissingSecret, file: Option<&Path>) -> String {
    let key = missing.key;
    if let Some(problem) = &missing.problem {
        return format!("{owner} `{key}_file`: {problem}");
    }
    let config = file.map_or_else(|| "the config".to_owned(), shown);
    let credential = missing.secret.credentials.last().map_or("", String::as_str);
    let credential = missing.secret.credentials.iter().find(|name| name.contains('-')).map_or(credential, String::as_str);
    let directory = match std::env::var_os("CREDENTIALS_DIRECTORY") {
        Some(directory) => format!("in $CREDENTIALS_DIRECTORY ({})", shown(Path::new(&directory))),
        None => "but $CREDENTIALS_DIRECTORY is not set".to_owned(),
    };
    format!("{owner} `{key}`: searched `{key}` and `{key}_file` in {config}, and the credential `{credential}` {directory}")
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

/// Formats a command that runs a transient service with these credentials, and with the unit's state directory if it contains the
/// database.
fn systemd_run(secrets: &[&Secret], config: &Config, file: Option<&Path>, words: &[&str]) -> String {
    let mut line = "sudo systemd-run --pipe --wait --collect".to_owned();
    if config.store.path.starts_with(STATE_DIRECTORY) {
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

/// Returns the absolute path of this program.
fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/usr/bin/cliffwatch"))
}
