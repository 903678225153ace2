//! `init [DIR]`: writes a commented config, starter rules, their schemas, and a login token.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::{Exit, shown, starter};
use model::config::{Config, ConfigSection, SECTIONS};

/// The keys of a first config. [`fill`] adds their descriptions, and the defaults of those without a value.
const TEMPLATE: &str = include_str!("init.toml");
/// The config directory of an installed system, relative to its root. State does not belong there.
const SYSTEM_DIR: &str = "etc/cliffwatch";
/// The database of the unit of systemd/.
const SYSTEM_DATABASE: &str = "/var/lib/cliffwatch/cliffwatch.db";
/// The file of the token to log in with on the pages.
const TOKEN_FILE: &str = "http-token";
/// The file modes: readable as the umask allows, and readable by the owner only.
const OPEN: u32 = 0o666;
const PRIVATE: u32 = 0o600;

/// The schemas of configs, rules, and tests, with which editors complete and check these files.
const SCHEMAS: [&str; 3] = ["schemas/config.schema.json", "schemas/rules.schema.json", "schemas/tests.schema.json"];

fn schemas() -> [serde_json::Value; 3] {
    let config = daemon::config::schema();
    let tests = tools::ruletest::schema::tests(&config);
    [config, rules::schema::rules(), tests]
}

/// Write a commented config, starter rules, and a login token
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Directory to write to
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
    anstream::eprintln!("  1. write your API key to {} (chmod 600)", shown(&init.directory.join("api-key")));
    anstream::eprintln!("  2. set your tokens and a receiver in {}", shown(&config));
    anstream::eprintln!("  3. cliffwatch{flag} check");
    anstream::eprintln!("  4. cliffwatch{flag} plan     # shows the credits it will use, before any request");
    anstream::eprintln!("  5. cliffwatch{flag} run");
    anstream::eprintln!(
        "\nTo acknowledge, silence, or retry on the pages, log in with the token in {}.",
        shown(&init.directory.join(TOKEN_FILE))
    );
    Ok(Exit::Done)
}

/// Writes all files. If one of them exists, writes none.
fn write_all(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let token = web::fresh_token().context("cannot get random bytes for a token from the system")?;
    // The first line of each file names its schema for editors. The schemas are local files, so no network is needed.
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
        anyhow::bail!("{} already exists, so no file was written; use another directory", shown(there));
    }
    for folder in ["rules/tests", "schemas"] {
        fs::create_dir_all(directory.join(folder))
            .with_context(|| format!("cannot create the directory {}", shown(directory)))?;
    }
    for (path, text, mode) in &files {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(*mode)
            .open(path)
            .with_context(|| format!("cannot write {}", shown(path)))?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", shown(path)))?;
    }
    Ok(files.into_iter().map(|(path, ..)| path).collect())
}

/// Returns the config for a directory. The system directory may be below any root, as in the build of a package or an image.
fn config_for(directory: &Path) -> String {
    let is_system = directory.ends_with(SYSTEM_DIR) || fs::canonicalize(directory).is_ok_and(|path| path.ends_with(SYSTEM_DIR));
    let database = if is_system { SYSTEM_DATABASE } else { "cliffwatch.db" };
    // The unit runs as a user who cannot read the key of root: systemd passes it as a credential instead.
    let comment = if is_system { "#" } else { "" };
    ["api_key_file", "token_file"].iter().fold(fill(TEMPLATE).replace("@database@", database), |config, key| {
        config.replace(&format!("\n{key}"), &format!("\n{comment}{key}"))
    })
}

/// Writes before each section and key its description from the declaration, and after a key without a value its default.
fn fill(template: &str) -> String {
    let mut text = String::new();
    let mut section: Option<&ConfigSection> = None;
    for line in template.lines() {
        let header = line.trim_start_matches('#').strip_prefix('[');
        if let Some(header) = header {
            section = SECTIONS.iter().find(|section| header.strip_suffix(']') == Some(section.name) && line.starts_with('['));
        }
        let name = line.trim_start_matches('#').split(' ').next().unwrap_or_default();
        let key = section.and_then(|section| section.keys.iter().find(|key| key.name == name));
        let description = match (header, section, key) {
            (Some(_), Some(section), _) => section.description,
            (_, _, Some(key)) => key.description,
            _ => &[],
        };
        text.extend(description.iter().map(|line| format!("#{line}\n")));
        text.push_str(line);
        if let (Some(section), Some(key)) = (section, key)
            && !line.contains('=')
            && let Some(default) = Config::default_of(section.name, key.name)
        {
            text.push_str(&format!(" = {default}"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
