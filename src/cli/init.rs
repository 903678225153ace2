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
    let mut files = vec![(directory.join("cliffwatch.toml"), config)];
    for (folder, starters) in [("rules", starter::RULES), ("rules/tests", starter::TESTS)] {
        files.extend(starters.iter().map(|(name, text)| (directory.join(folder).join(name), (*text).to_owned())));
    }
    if let Some((there, _)) = files.iter().find(|(path, _)| path.exists()) {
        anyhow::bail!("{} is there already, and nothing was written: name another directory", shown(there));
    }
    fs::create_dir_all(directory.join("rules/tests"))
        .with_context(|| format!("the directory {} cannot be made", shown(directory)))?;
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
mod tests {
    use super::*;
    use daemon::config::{Environment, load};
    use model::diagnostic;

    #[test]
    fn what_it_writes_passes_the_check() {
        let directory = tempfile::tempdir().unwrap();
        let written = write_all(directory.path()).unwrap();
        assert_eq!(written.len(), 7);
        fs::write(directory.path().join("api-key"), "k").unwrap();
        let loaded = load(Some(&directory.path().join("cliffwatch.toml")), &Environment::default());
        assert_eq!(diagnostic::render(&loaded.diagnostics, &loaded.sources, false), "");
        assert!(loaded.config.is_some());
    }

    #[test]
    fn every_example_in_it_is_right_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cliffwatch.toml");
        // A commented key is written `#key = …`, prose `# …`.
        let text: String = CONFIG
            .replace("@database@", "cliffwatch.db")
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        for name in ["api-key", "ops-url", "ops-secret", "desk-password", "http-token"] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        fs::write(&path, &text).unwrap();
        let loaded = load(Some(&path), &Environment::default());
        assert_eq!(diagnostic::render(&loaded.diagnostics, &loaded.sources, false), "");
        assert_eq!(loaded.config.unwrap().receivers.len(), 2);
    }

    #[test]
    fn it_never_replaces_a_file() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("rules")).unwrap();
        fs::write(directory.path().join("rules/changes.toml"), "mine").unwrap();
        let error = write_all(directory.path()).unwrap_err().to_string();
        assert!(error.contains("changes.toml is there already"), "{error}");
        assert_eq!(fs::read_to_string(directory.path().join("rules/changes.toml")).unwrap(), "mine");
        assert!(!directory.path().join("cliffwatch.toml").exists());
    }
}
