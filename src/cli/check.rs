//! `check`: config and rules, every problem at once.

use clap::Args;

use super::{Exit, Invocation, OutputFormat, UsageError, known_check::KnownFacts, print, rule_check, shown};
use daemon::config::{self as loading, Environment};
use daemon::place::{PlaceProblem, place_of};
use model::{Diagnostic, Severity, config::Config, diagnostic, text::error_chain, text::harmless};
use notify::{ReceiverProblem, Receivers};
use store::{Place, Store, StoreError};

/// Check config and rules: every problem at once.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Exit with 3 where there are warnings and no errors
    #[arg(long)]
    strict: bool,
    /// Hold nothing against what the database knows
    #[arg(long)]
    no_db: bool,
}

pub(super) fn run(check: &CheckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if invocation.format == OutputFormat::Csv {
        return Err(UsageError("problems are printed as table or json".to_owned()).into());
    }
    let path = invocation.config_path();
    let loaded = loading::load(path.as_deref(), &Environment::of_process());
    let mut diagnostics = loaded.diagnostics.clone();
    let mut sources = loaded.sources.clone();
    let mut rules = None;
    let mut left_out = Vec::new();
    if let Some(config) = &loaded.config {
        let checked = rule_check::check_rules(config, &loaded, invocation);
        rules = Some((checked.count, checked.sources.len()));
        let known = if check.no_db { None } else { KnownFacts::read(config, invocation) };
        let listed = known.as_ref().map(|known| known.listed.as_slice()).filter(|listed| !listed.is_empty());
        diagnostics.extend(rule_check::advise(&checked, config, invocation, listed));
        if let Some(known) = &known {
            let doubts = known.check(&checked.set, config, &loaded, invocation.clock.now());
            diagnostics.extend(doubts.diagnostics);
            left_out = doubts.left_out;
        }
        diagnostics.extend(checked.diagnostics);
        diagnostics.extend(receivers(config, &loaded));
        diagnostics.extend(database(config, &loaded));
        // Whatever else may come later: with a key that is named and not there, nothing can be asked.
        let key = config.source.api_key_file.as_deref().map(loading::missing_file);
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| Some(&diagnostic.message) == key.as_ref()) {
            diagnostic.severity = Severity::Error;
        }
        sources.extend(checked.sources);
    }
    for note in left_out {
        anstream::eprintln!("note: {}", harmless(&note));
    }
    match invocation.format {
        OutputFormat::Json => print::out(&print::json(&diagnostic::to_json(&diagnostics, &sources))?)?,
        _ => {
            anstream::eprint!("{}", diagnostic::render(&diagnostics, &sources, invocation.color));
            let what = path.as_deref().map_or_else(|| "no config file: the defaults".to_owned(), shown);
            match (&loaded.config, rules) {
                (Some(config), Some((count, files))) => {
                    let receivers = match config.receivers.len() {
                        0 => "no receivers, so alerts are kept and shown but sent to nobody".to_owned(),
                        1 => "1 receiver".to_owned(),
                        count => format!("{count} receivers"),
                    };
                    anstream::eprintln!("{what}: {receivers}; {}", count_of(count, files));
                }
                _ => anstream::eprintln!("{what}: the rules are checked once the config is right"),
            }
        }
    }
    Ok(exit_of(diagnostics.iter().map(|diagnostic| diagnostic.severity).max(), check.strict))
}

/// What only shows when receivers are built: keys that are no keys, certificates that are none. A file that cannot be read here may
/// well be there where the daemon runs.
fn receivers(config: &Config, loaded: &loading::Loaded) -> Vec<Diagnostic> {
    let built = Receivers::build(&config.receivers, &config.delivery, config.http.external_url.as_deref());
    let problems = built.err().unwrap_or_default();
    // What is given nowhere was told by the check of the config, and a service may have it. With credentials of our own, this is all.
    let is_service = std::env::var_os("CREDENTIALS_DIRECTORY").is_some();
    let diagnostics = problems.into_iter().filter(|problem| is_service || !problem.problem.is_absent).map(
        |ReceiverProblem { receiver, problem }| {
            let name = config.receivers.get(receiver).map_or("", |receiver| receiver.name.as_str());
            let is_missing_here = problem.is_unreadable;
            Diagnostic {
                severity: if is_missing_here { Severity::Warning } else { Severity::Error },
                file: loaded.path.clone().unwrap_or_else(|| "environment".into()),
                span: None,
                message: format!("receiver {name:?}: `{}`: {}", problem.key, problem.message),
                label: None,
                help: is_missing_here.then(|| "the daemon does not start without it".to_owned()),
            }
        },
    );
    diagnostics.collect()
}

/// A database that the daemon would not open. One that is not there yet is made; one that this user may not read may well be open to the
/// daemon's.
fn database(config: &Config, loaded: &loading::Loaded) -> Option<Diagnostic> {
    let file = loaded.path.clone().unwrap_or_else(|| "environment".into());
    let path = match place_of(&config.store) {
        Ok(Place::File(path)) => path,
        // Whether a server can be reached from here says nothing of the daemon.
        Ok(Place::Server(_)) | Err(PlaceProblem::Unreadable(_)) => return None,
        Err(problem) => return Some(Diagnostic::error(file, None, error_chain(&problem))),
    };
    let error = Store::look_at(&path).err()?;
    matches!(error, StoreError::Newer { .. } | StoreError::NotOurs { .. } | StoreError::RestoreUnfinished { .. })
        .then(|| Diagnostic::error(file, None, error.to_string()))
}

fn count_of(rules: u32, files: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!("{rules} rule{} in {files} file{}", plural(rules as usize), plural(files))
}

fn exit_of(worst: Option<Severity>, strict: bool) -> Exit {
    match worst {
        Some(Severity::Error) => Exit::Failed,
        Some(Severity::Warning) if strict => Exit::OnlyWarnings,
        _ => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_fail_unless_strict() {
        assert_eq!(exit_of(None, true), Exit::Done);
        assert_eq!(exit_of(Some(Severity::Warning), false), Exit::Done);
        assert_eq!(exit_of(Some(Severity::Warning), true), Exit::OnlyWarnings);
        assert_eq!(exit_of(Some(Severity::Error), true), Exit::Failed);
    }
}
