//! The questions of `new rule`, in the words of a desk, on a terminal. Each has an answer that Enter takes.

use std::io::{BufRead as _, Write as _};

use super::{About, NewRuleArgs};
use crate::{UsageError, parse_money, parse_span};
use model::config::{Config, Span};

/// What is said on a pipe, where nobody can be asked.
pub(super) const USAGE: &str = "say what to hear of with --about cliffs, corrections, burns, no-buyback, pressure or emissions; \
     further --tokens, --above, --within, --days, --window, --severity, --name, --file and --dry-run";

/// Tries at one answer.
const MAX_TRIES: usize = 5;

const CHOICES: [(About, &str); 6] = [
    (About::Cliffs, "cliffs of my tokens, ahead of time"),
    (About::Corrections, "any correction of a schedule that matters"),
    (About::Burns, "burns over an amount"),
    (About::NoBuyback, "no buyback for some days"),
    (About::Pressure, "what a group unlocks in a week, over an amount"),
    (About::Emissions, "what a token emits in a week, over an amount"),
];

/// Asks for everything; the answers are as flags would be.
pub(super) fn questions(config: &Config) -> anyhow::Result<NewRuleArgs> {
    anstream::eprintln!("What do you want to hear of?");
    for (number, (_, words)) in (1..).zip(CHOICES) {
        anstream::eprintln!("  {number}. {words}");
    }
    let about = ask("Number", "1", |text| {
        let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        number.and_then(|at| CHOICES.get(at)).map(|(about, _)| *about).ok_or_else(|| "a number from the list".to_owned())
    })?;
    let groups: Vec<String> = config.watch.groups.keys().map(|name| format!("@{name}")).collect();
    let some = if groups.is_empty() { String::new() } else { format!(", {}", groups.join(", ")) };
    let tokens = ask(&format!("Of which tokens? Slugs with commas between{some}; all for every watched token"), "all", |text| {
        Ok(match text {
            "all" => Vec::new(),
            text => text.split(',').map(|token| token.trim().to_owned()).collect(),
        })
    })?;
    let above = match about.above() {
        Some(usual) => Some(ask("From which value on, in USD?", &model::format::usd(usual), parse_money)?),
        None => None,
    };
    let within = match about {
        About::Cliffs => {
            ask("How long ahead?", "30d,7d,1d", |text| text.split(',').map(parse_span).collect::<Result<Vec<Span>, _>>())?
        }
        _ => Vec::new(),
    };
    let days = match about {
        About::NoBuyback => {
            Some(ask("After how many days?", "35", |text| text.parse().map_err(|_| "a number of days".to_owned()))?)
        }
        _ => None,
    };
    let window = match about {
        About::Pressure | About::Emissions => Some(ask("Over which window?", "7d", parse_span)?),
        _ => None,
    };
    let severity = ask("How much does it matter: info, warning or critical?", "warning", |text| Ok(text.to_owned()))?;
    let name = ask("What is it called?", about.name(), |text| Ok(text.to_owned()))?;
    let name = Some(name).filter(|name| name != about.name());
    Ok(NewRuleArgs { about: Some(about), tokens, above, within, days, window, severity, name, file: None, dry_run: false })
}

fn ask<T>(question: &str, usual: &str, read: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<T> {
    for _ in 0..MAX_TRIES {
        anstream::eprint!("{question} [{usual}] ");
        std::io::stderr().flush()?;
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            break;
        }
        let answer = line.trim();
        match read(if answer.is_empty() { usual } else { answer }) {
            Ok(answer) => return Ok(answer),
            Err(problem) => anstream::eprintln!("  {problem}"),
        }
    }
    Err(UsageError(format!("there was no answer to: {question}")).into())
}
