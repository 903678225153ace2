//! `init [DIR]`: a commented config, starter rules, and a token to log in with, to begin with.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::{Exit, shown, starter};

/// The commented config.
const CONFIG: &str = include_str!("init.toml");
/// Where packages and units put configs, without the root: state does not belong there.
const SYSTEM_DIR: &str = "etc/cliffwatch";
/// Where the unit of systemd/ keeps state.
const SYSTEM_DATABASE: &str = "/var/lib/cliffwatch/cliffwatch.db";
/// The file of the token that one logs in with to change something on the pages.
const TOKEN_FILE: &str = "http-token";
/// Of what may be read by everybody who reads the folder, and of what nobody but its owner may.
const OPEN: u32 = 0o666;
const PRIVATE: u32 = 0o600;

/// The schemas of config, rules and tests, which editors complete and check these files with.
const SCHEMAS: [&str; 3] = ["schemas/config.schema.json", "schemas/rules.schema.json", "schemas/tests.schema.json"];

fn schemas() -> [serde_json::Value; 3] {
    let config = daemon::config::schema();
    let tests = tools::ruletest::schema::tests(&config);
    [config, rules::schema::rules(), tests]
}

/// Write a commented config, starter rules, and a token for the pages.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Where to; here if not given
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

pub(super) fn run(init: &InitArgs) -> anyhow::Result<Exit> {
    let written = write_all(&init.directory)?;
    for path in &written {
        anstream::eprintln!("wrote {}", shown(path));
    }
    let config = init.directory.join("cliffwatch.toml");
    let flag = if init.directory == Path::new(".") || init.directory == Path::new("/").join(SYSTEM_DIR) {
        String::new()
    } else {
        format!(" --config {}", shown(&config))
    };
    anstream::eprintln!("\nNext:");
    anstream::eprintln!("  1. put your API key into {} (chmod 600)", shown(&init.directory.join("api-key")));
    anstream::eprintln!("  2. name your tokens and a receiver in {}", shown(&config));
    anstream::eprintln!("  3. cliffwatch{flag} check");
    anstream::eprintln!("  4. cliffwatch{flag} plan     # what it will cost, before anything is asked");
    anstream::eprintln!("  5. cliffwatch{flag} run");
    anstream::eprintln!(
        "\nWhoever acknowledges, silences or sends again on the pages logs in with the token in {}.",
        shown(&init.directory.join(TOKEN_FILE))
    );
    Ok(Exit::Done)
}

/// Writes everything or nothing: a file that is there is never replaced.
fn write_all(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let token = daemon::http::fresh_token().context("the system gives no random bytes for a token")?;
    // The first line of each file tells an editor its schema, which lies beside it: no network is asked.
    let mut files = vec![
        (directory.join("cliffwatch.toml"), format!("#:schema ./{}\n{}", SCHEMAS[0], config_for(directory)), OPEN),
        (directory.join(TOKEN_FILE), format!("{token}\n"), PRIVATE),
    ];
    for (folder, starters, schema) in [
        ("rules", starter::RULES, format!("../{}", SCHEMAS[1])),
        ("rules/tests", starter::TESTS, format!("../../{}", SCHEMAS[2])),
    ] {
        let file = |(name, text): &(&str, &str)| (directory.join(folder).join(name), format!("#:schema {schema}\n{text}"), OPEN);
        files.extend(starters.iter().map(file));
    }
    for (name, schema) in SCHEMAS.into_iter().zip(schemas()) {
        files.push((directory.join(name), super::print::json(&schema)?, OPEN));
    }
    if let Some((there, ..)) = files.iter().find(|(path, ..)| path.exists()) {
        anyhow::bail!("{} is there already, and nothing was written: name another directory", shown(there));
    }
    for folder in ["rules/tests", "schemas"] {
        fs::create_dir_all(directory.join(folder))
            .with_context(|| format!("the directory {} cannot be made", shown(directory)))?;
    }
    for (path, text, mode) in &files {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(*mode)
            .open(path)
            .with_context(|| format!("{} cannot be written", shown(path)))?;
        file.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", shown(path)))?;
    }
    Ok(files.into_iter().map(|(path, ..)| path).collect())
}

/// The config of a directory. That of the system may lie below any root: a package or an image is put together in one.
fn config_for(directory: &Path) -> String {
    let is_system = directory.ends_with(SYSTEM_DIR) || fs::canonicalize(directory).is_ok_and(|path| path.ends_with(SYSTEM_DIR));
    let database = if is_system { SYSTEM_DATABASE } else { "cliffwatch.db" };
    // The unit runs as a user of its own, who cannot read root's key: systemd hands it over as a credential instead.
    let comment = if is_system { "#" } else { "" };
    ["api_key_file", "token_file"].iter().fold(CONFIG.replace("@database@", database), |config, key| {
        config.replace(&format!("\n{key}"), &format!("\n{comment}{key}"))
    })
}

#[cfg(test)]
mod tests;
