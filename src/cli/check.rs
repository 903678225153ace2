//! `check`: reports all problems of config and rules.

use std::path::{Path, PathBuf};

use clap::Args;

use super::rule_source::read_rules;
use super::{Exit, Invocation, OutputFormat, UsageError, database_check::KnownFacts, print, rule_check, shown};
use daemon::config::{self as loading, Environment};
use daemon::database_url::{DatabaseUrlError, database_of};
use model::{Diagnostic, DiagnosticLevel, PositionTable, config::Config, diagnostic, phrase, text::error_chain, text::harmless};
use store::{DatabaseLocation, ErrorKind, Store};

/// Check config and rules, and report all problems
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Exit with code 3 if there are only warnings
    #[arg(long)]
    strict: bool,
    /// Skip the checks that read the database
    #[arg(long)]
    no_db: bool,
    /// Folder of rules to check instead of those in the config, or `-` for one rule file on standard input; reports only their problems
    #[arg(long, value_name = "DIR")]
    rules: Option<PathBuf>,
    /// Treat your positions as unknown, so that the result does not depend on them
    #[arg(long)]
    no_positions: bool,
}

impl CheckArgs {
    fn hide_positions(&self, config: &mut Config) {
        if self.no_positions {
            config.watch.positions = PositionTable::default();
        }
    }

    /// Reads the database, if there is one. If that fails, adds a note to `left_out`: the daemon may be able to read it.
    fn known_facts(&self, config: &Config, invocation: &Invocation, left_out: &mut Vec<String>) -> Option<KnownFacts> {
        if self.no_db {
            return None;
        }
        let known = KnownFacts::read(config, invocation);
        known.unwrap_or_else(|error| {
            left_out.push(format!("skipped the checks that read the database: {error:#}"));
            None
        })
    }
}

pub(super) fn run(check: &CheckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("check does not support --format csv: use table or json".to_owned()).into());
    }
    if let Some(source) = &check.rules {
        return run_rules(source, check, invocation);
    }
    let path = invocation.config_path();
    let mut loaded = loading::load(path.as_deref(), &Environment::from_process());
    if let Some(config) = loaded.config.as_mut() {
        check.hide_positions(config);
    }
    let mut diagnostics = loaded.diagnostics.clone();
    let mut sources = loaded.sources.clone();
    let mut rules = None;
    let mut left_out = Vec::new();
    if let Some(config) = &loaded.config {
        let checked = rule_check::check_rules(config, &loaded, invocation);
        rules = Some((checked.count, checked.sources.len()));
        let known = check.known_facts(config, invocation, &mut left_out);
        let listed = known.as_ref().map(|known| known.listed.as_slice()).filter(|listed| !listed.is_empty());
        diagnostics.extend(rule_check::advise(&checked, config, invocation, listed));
        if let Some(known) = &known {
            diagnostics.extend(known.positions(config));
            let warnings = known.check(&checked.set, config, &loaded, invocation.clock.now());
            diagnostics.extend(warnings.diagnostics);
            left_out.extend(warnings.left_out);
        }
        diagnostics.extend(config.watch.positions.problems.iter().cloned());
        sources.extend(config.watch.positions.sources.iter().filter(|source| Some(&source.file) != path.as_ref()).cloned());
        diagnostics.extend(checked.diagnostics);
        diagnostics.extend(receivers(config, &loaded));
        diagnostics.extend(database(config, &loaded));
        // A missing API key is an error here, because polling is impossible without it.
        let key = config.source.api_key_file.as_deref().map(loading::missing_file);
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| Some(&diagnostic.message) == key.as_ref()) {
            diagnostic.severity = DiagnosticLevel::Error;
        }
        sources.extend(checked.sources);
    }
    print_notes(&left_out);
    match invocation.format {
        OutputFormat::Json => print::out(&print::json(&diagnostic::to_json(&diagnostics, &sources))?)?,
        _ => {
            anstream::eprint!("{}", diagnostic::render(&diagnostics, &sources, invocation.color));
            let what = path.as_deref().map_or_else(|| "no config file, using the defaults".to_owned(), shown);
            match (&loaded.config, rules) {
                (Some(config), Some((count, files))) => {
                    let receivers = match config.receivers.len() {
                        0 => "no receivers, so alerts are stored but not sent".to_owned(),
                        1 => "1 receiver".to_owned(),
                        count => format!("{count} receivers"),
                    };
                    anstream::eprintln!("{what}: {receivers}; {}", rule_count(count, files));
                }
                _ => anstream::eprintln!("{what}: fix the config to check the rules"),
            }
        }
    }
    Ok(exit_code(diagnostics.iter().map(|diagnostic| diagnostic.severity).max(), check.strict))
}

/// Checks rules that are not in the config. Reports only the problems of these rules.
///
/// # Errors
///
/// Fails if the config has errors, or if the rules cannot be read.
fn run_rules(source: &Path, check: &CheckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (mut config, loaded) = invocation.load()?;
    check.hide_positions(&mut config);
    let checked = rule_check::check_files(read_rules(source)?, &config, invocation);
    let mut left_out = Vec::new();
    let known = check.known_facts(&config, invocation, &mut left_out);
    let listed = known.as_ref().map(|known| known.listed.as_slice()).filter(|listed| !listed.is_empty());
    let mut diagnostics = rule_check::advise(&checked, &config, invocation, listed);
    if let Some(known) = &known {
        let warnings = known.check(&checked.set, &config, &loaded, invocation.clock.now());
        diagnostics.extend(warnings.diagnostics.into_iter().filter(|found| checked.has_file(&found.file)));
        left_out.extend(warnings.left_out);
    }
    print_notes(&left_out);
    diagnostics.extend(checked.diagnostics);
    match invocation.format {
        OutputFormat::Json => print::out(&print::json(&diagnostic::to_json(&diagnostics, &checked.sources))?)?,
        _ => {
            anstream::eprint!("{}", diagnostic::render(&diagnostics, &checked.sources, invocation.color));
            anstream::eprintln!("{}", rule_count(checked.count, checked.sources.len()));
        }
    }
    Ok(exit_code(diagnostics.iter().map(|diagnostic| diagnostic.severity).max(), check.strict))
}

/// Returns problems that appear only when receivers are built, such as invalid keys or certificates. An unreadable file is only a
/// warning, because the daemon may be able to read it.
fn receivers(config: &Config, loaded: &loading::Loaded) -> Vec<Diagnostic> {
    // The check of the config already reports missing secrets, except under a service with its own credentials.
    let is_service = std::env::var_os("CREDENTIALS_DIRECTORY").is_some();
    let problems = loaded.receiver_problems(config).into_iter().filter(|(problem, _)| is_service || !problem.is_absent);
    let diagnostics = problems.map(|(problem, diagnostic)| {
        if !problem.is_unreadable {
            return diagnostic;
        }
        let warning = Diagnostic { severity: DiagnosticLevel::Warning, ..diagnostic };
        warning.help("the daemon does not start without it")
    });
    diagnostics.collect()
}

/// Returns an error if the daemon would refuse the database. A missing database is created, and the daemon may be able to read
/// one that this user cannot.
fn database(config: &Config, loaded: &loading::Loaded) -> Option<Diagnostic> {
    let file = loaded.path.clone().unwrap_or_else(|| "environment".into());
    let path = match database_of(&config.store) {
        Ok(DatabaseLocation::File(path)) => path,
        // The daemon may reach the server even if this machine does not, and the reverse.
        Ok(DatabaseLocation::Server(_)) | Err(DatabaseUrlError::Unreadable(_)) => return None,
        Err(problem) => return Some(Diagnostic::error(file, None, error_chain(&problem))),
    };
    let error = Store::check_file(&path).err()?;
    matches!(error.kind(), ErrorKind::Newer | ErrorKind::Foreign | ErrorKind::RestoreUnfinished)
        .then(|| Diagnostic::error(file, None, error.to_string()))
}

fn print_notes(notes: &[String]) {
    for note in notes {
        anstream::eprintln!("note: {}", harmless(note));
    }
}

fn rule_count(rules: u32, files: usize) -> String {
    format!("{} in {}", phrase::count(rules, "rule"), phrase::count(files, "file"))
}

fn exit_code(worst: Option<DiagnosticLevel>, strict: bool) -> Exit {
    match worst {
        Some(DiagnosticLevel::Error) => Exit::Failed,
        Some(DiagnosticLevel::Warning) if strict => Exit::OnlyWarnings,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_fail_only_with_strict() {
        assert_eq!(exit_code(None, true), Exit::Done);
        assert_eq!(exit_code(Some(DiagnosticLevel::Warning), false), Exit::Done);
        assert_eq!(exit_code(Some(DiagnosticLevel::Warning), true), Exit::OnlyWarnings);
        assert_eq!(exit_code(Some(DiagnosticLevel::Error), true), Exit::Failed);
    }
}
