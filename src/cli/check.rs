//! `check`: config and rules, every problem at once.

use clap::Args;

use super::{Context, Exit, Format, UsageError, engine, print, shown};
use crate::{
    config::load::{self, Environment},
    diagnostic::{self, Severity},
};

/// Check config and rules: every problem at once.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Exit with 3 where there are warnings and no errors
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(check: &Check, context: &Context) -> anyhow::Result<Exit> {
    if context.format == Format::Csv {
        return Err(UsageError("problems are printed as table or json".to_owned()).into());
    }
    let path = context.config_path();
    let loaded = load::load(path.as_deref(), &Environment::of_process());
    let mut diagnostics = loaded.diagnostics.clone();
    let mut sources = loaded.sources.clone();
    let mut rules = None;
    if let Some(config) = &loaded.config {
        let checked = engine::check_rules(config, &loaded, context);
        rules = Some((checked.count, checked.sources.len()));
        let advice = engine::advise(&checked, config, context);
        diagnostics.extend(checked.diagnostics);
        diagnostics.extend(advice);
        sources.extend(checked.sources);
    }
    match context.format {
        Format::Json => print::out(&print::json(&diagnostic::to_json(&diagnostics, &sources))?)?,
        _ => {
            anstream::eprint!("{}", diagnostic::render(&diagnostics, &sources, context.color));
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
    Ok(verdict(diagnostics.iter().map(|diagnostic| diagnostic.severity).max(), check.strict))
}

fn count_of(rules: u32, files: usize) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!("{rules} rule{} in {files} file{}", plural(rules as usize), plural(files))
}

fn verdict(worst: Option<Severity>, strict: bool) -> Exit {
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
        assert_eq!(verdict(None, true), Exit::Done);
        assert_eq!(verdict(Some(Severity::Warning), false), Exit::Done);
        assert_eq!(verdict(Some(Severity::Warning), true), Exit::OnlyWarnings);
        assert_eq!(verdict(Some(Severity::Error), true), Exit::Failed);
    }
}
