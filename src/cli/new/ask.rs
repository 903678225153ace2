//! The questions of `new rule`, in the words of a desk, on a terminal. Each has an answer that Enter takes.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use super::{About, MOST_DAYS, NewRuleArgs};
use crate::{UsageError, parse_money, parse_span, shown};
use model::config::{Config, Span};
use model::text::harmless;
use model::{SourceText, closest};

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

/// What the answers are held against.
pub(super) struct KnownNames<'a> {
    pub config: &'a Config,
    /// All rule files.
    pub rules: &'a [SourceText],
}

/// Asks for everything; the answers are as flags would be.
pub(super) fn questions(known: &KnownNames<'_>) -> anyhow::Result<NewRuleArgs> {
    anstream::eprintln!("What do you want to hear of?");
    for (number, (_, words)) in (1..).zip(CHOICES) {
        anstream::eprintln!("  {number}. {words}");
    }
    let about = ask("Number", "1", read_choice)?;
    let groups: Vec<String> = known.config.watch.groups.keys().map(|name| format!("@{name}")).collect();
    let some = if groups.is_empty() { String::new() } else { format!(", {}", groups.join(", ")) };
    let tokens = ask(&format!("Of which tokens? Slugs with commas between{some}; all for every watched token"), "all", |text| {
        read_tokens(text, &groups)
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
    let days = if about == About::NoBuyback { Some(ask("After how many days?", "35", read_days)?) } else { None };
    let window = match about {
        About::Pressure | About::Emissions => Some(ask("Over which window?", "7d", parse_span)?),
        _ => None,
    };
    let severity = ask("How much does it matter: info, warning or critical?", "warning", read_severity)?;
    let usual = free_name(about, known.rules);
    let name = Some(ask("What is it called?", &usual, |text| read_name(text, known.rules))?);
    Ok(NewRuleArgs { about: Some(about), tokens, above, within, days, window, severity, name, file: None, dry_run: false })
}

/// Whether a rule that was shown is to be written to `file`.
pub(super) fn is_to_be_written(file: &Path) -> anyhow::Result<bool> {
    ask(&format!("Write it to {}?", shown(file)), "yes", |text| match text.to_ascii_lowercase().as_str() {
        "yes" | "y" => Ok(true),
        "no" | "n" => Ok(false),
        _ => Err("yes or no".to_owned()),
    })
}

/// The usual name of a rule about this, with a number where there is one already.
pub(super) fn free_name(about: About, rules: &[SourceText]) -> String {
    let first = std::iter::once(about.name().to_owned());
    let mut names = first.chain((2..1_000).map(|number| format!("{}{number}", about.name())));
    names.find(|name| !is_taken(name, rules)).unwrap_or_else(|| about.name().to_owned())
}

fn is_taken(name: &str, rules: &[SourceText]) -> bool {
    rules.iter().any(|file| file.text.contains(&format!("{name:?}")))
}

fn read_choice(text: &str) -> Result<About, String> {
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let choice = number.and_then(|at| CHOICES.get(at)).map(|(about, _)| *about);
    choice.ok_or_else(|| format!("a number from 1 to {}", CHOICES.len()))
}

/// Slugs, globs and groups; none for `all`.
fn read_tokens(text: &str, groups: &[String]) -> Result<Vec<String>, String> {
    if text.eq_ignore_ascii_case("all") {
        return Ok(Vec::new());
    }
    let tokens = text.split(',').map(str::trim).filter(|token| !token.is_empty()).map(|token| {
        if token.starts_with('@') && !groups.iter().any(|group| group == token) {
            let meant = closest(token, groups.iter().map(String::as_str));
            return Err(match (meant, groups) {
                (Some(meant), _) => format!("there is no group {token}: did you mean {meant}?"),
                (None, []) => format!("there is no group {token}: the config has no [watch] groups"),
                (None, groups) => format!("there is no group {token}: there are {}", groups.join(", ")),
            });
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@*?[]{}".contains(c);
        match token.chars().find(|c| !is_name(*c)) {
            Some(c) => Err(format!("{token:?}: a slug has no {c:?}; put commas between several")),
            None => Ok(token.to_owned()),
        }
    });
    let tokens = tokens.collect::<Result<Vec<String>, String>>()?;
    if tokens.is_empty() { Err("a slug, such as arbitrum, or all".to_owned()) } else { Ok(tokens) }
}

fn read_days(text: &str) -> Result<u32, String> {
    let days = text.trim_end_matches(['d', ' ']).parse::<u32>().ok().filter(|days| MOST_DAYS.contains(&i64::from(*days)));
    days.ok_or_else(|| format!("a number of days, from {} to {}", MOST_DAYS.start(), MOST_DAYS.end()))
}

fn read_severity(text: &str) -> Result<String, String> {
    const WORDS: [&str; 3] = ["info", "warning", "critical"];
    let word = text.to_ascii_lowercase();
    if WORDS.contains(&word.as_str()) {
        return Ok(word);
    }
    let meant = closest(&word, WORDS).map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
    Err(format!("info, warning or critical{meant}"))
}

fn read_name(text: &str, rules: &[SourceText]) -> Result<String, String> {
    if let Some(c) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')) {
        return Err(format!("letters, digits, `-` and `_` make a name, and {c:?} is none of them"));
    }
    if is_taken(text, rules) { Err(format!("there is a rule {text} already")) } else { Ok(text.to_owned()) }
}

/// Asks until `read` takes the answer; `usual` is that of Enter.
fn ask<T>(question: &str, usual: &str, read: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<T> {
    for _ in 0..MAX_TRIES {
        anstream::eprint!("{question} [{usual}] ");
        std::io::stderr().flush()?;
        let mut line = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut line)? == 0 {
            // The end of the input stands behind the question.
            anstream::eprintln!();
            return Err(UsageError("the questions were not answered to their end, and nothing was written".to_owned()).into());
        }
        let line = String::from_utf8_lossy(&line);
        let answer = line.trim();
        let taken = match answer {
            "" => read(usual),
            // An arrow key, a half of a character.
            keys if keys.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) => {
                Err("there is a key in it that is no text: type it again".to_owned())
            }
            text => read(text),
        };
        match taken {
            Ok(answer) => return Ok(answer),
            Err(problem) => anstream::eprintln!("  {}", harmless(&problem)),
        }
    }
    Err(UsageError(format!(
        "{MAX_TRIES} answers could not be used, and nothing was written; every question has a flag, see --help"
    ))
    .into())
}

#[cfg(test)]
mod tests;
