//! `init [DIR]`: a commented config and starter rules, to begin with.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use super::{Exit, shown, starter};

/// The commented config.
const CONFIG: &str = include_str!("init.toml");
/// Where packages and units put configs: state does not belong there.
const SYSTEM_DIR: &str = "/etc/cliffwatch";
/// Where the unit of systemd/ keeps state.
const SYSTEM_DATABASE: &str = "/var/lib/cliffwatch/cliffwatch.db";

/// The schemas of config, rules and tests, which editors complete and check these files with.
const SCHEMAS: [&str; 3] = ["schemas/config.schema.json", "schemas/rules.schema.json", "schemas/tests.schema.json"];

fn schemas() -> [serde_json::Value; 3] {
    let config = daemon::config::schema();
    let tests = tools::ruletest::schema::tests(&config);
    [config, rules::schema::rules(), tests]
}

/// Write a commented config and starter rules.
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
    let flag = if init.directory == Path::new(".") || init.directory == Path::new(SYSTEM_DIR) {
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
    Ok(Exit::Done)
}

/// Writes everything or nothing: a file that is there is never replaced.
fn write_all(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_system =
        fs::canonicalize(directory).is_ok_and(|path| path == Path::new(SYSTEM_DIR)) || directory == Path::new(SYSTEM_DIR);
    let database = if is_system { SYSTEM_DATABASE } else { "cliffwatch.db" };
    // The unit runs as a user of its own, who cannot read root's key: systemd hands it over as a credential instead.
    let key = if is_system { "#api_key_file" } else { "api_key_file" };
    let config = CONFIG.replace("@database@", database).replace("\napi_key_file", &format!("\n{key}"));
    // The first line of each file tells an editor its schema, which lies beside it: no network is asked.
    let mut files = vec![(directory.join("cliffwatch.toml"), format!("#:schema ./{}\n{config}", SCHEMAS[0]))];
    for (folder, starters, schema) in [
        ("rules", starter::RULES, format!("../{}", SCHEMAS[1])),
        ("rules/tests", starter::TESTS, format!("../../{}", SCHEMAS[2])),
    ] {
        let file = |(name, text): &(&str, &str)| (directory.join(folder).join(name), format!("#:schema {schema}\n{text}"));
        files.extend(starters.iter().map(file));
    }
    for (name, schema) in SCHEMAS.into_iter().zip(schemas()) {
        files.push((directory.join(name), super::print::json(&schema)?));
    }
    if let Some((there, _)) = files.iter().find(|(path, _)| path.exists()) {
        anyhow::bail!("{} is there already, and nothing was written: name another directory", shown(there));
    }
    for folder in ["rules/tests", "schemas"] {
        fs::create_dir_all(directory.join(folder))
            .with_context(|| format!("the directory {} cannot be made", shown(directory)))?;
    }
    for (path, text) in &files {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .with_context(|| format!("{} cannot be written", shown(path)))?;
        file.write_all(text.as_bytes()).with_context(|| format!("{} cannot be written", shown(path)))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

#[cfg(test)]
mod tests;
