//! The prompts of `new rule` on a terminal. Each has a default value for Enter.

use std::io::{BufRead as _, Write as _};
use std::path::Path;

use super::{DAYS, KnownTokens, NewRuleArgs, RuleTopic};
use crate::{UsageError, parse_money, parse_span, shown};
use model::config::{Config, Span};
use model::text::harmless;
use model::{SourceText, closest};
use tools::new_rule::{free_name, is_taken};

/// The error if the input is not a terminal.
pub(super) const USAGE: &str = "--about is required: cliffs, corrections, burns, no-buyback, pressure, or emissions; \
optional are --tokens, --above, --within, --days, --window, --severity, --name, --file, and --dry-run";

/// The maximum number of attempts to enter a value.
const MAX_ATTEMPTS: usize = 5;

const CHOICES: [(RuleTopic, &str); 6] = [
    (RuleTopic::Cliffs, "upcoming cliffs"),
    (RuleTopic::Corrections, "significant schedule corrections"),
    (RuleTopic::Burns, "burns above a value"),
    (RuleTopic::NoBuyback, "no buyback for a number of days"),
    (RuleTopic::Pressure, "unlocks of a group in a window, above a value"),
    (RuleTopic::Emissions, "emissions of a token in a window, above a value"),
];

/// The names that inputs are checked against.
pub(super) struct KnownNames<'a> {
    pub config: &'a Config,
    pub rules: &'a [SourceText],
    pub tokens: &'a KnownTokens,
}

/// Prompts for all values. Returns them like options.
pub(super) fn prompts(known: &KnownNames<'_>) -> anyhow::Result<NewRuleArgs> {
    anstream::eprintln!("What do you want alerts about?");
    for (number, (_, words)) in (1..).zip(CHOICES) {
        anstream::eprintln!("  {number}. {words}");
    }
    let about = prompt("Number", "1", read_choice)?;
    let groups: Vec<String> = known.config.watch.groups.keys().map(|name| format!("@{name}")).collect();
    let some = if groups.is_empty() { String::new() } else { format!(", {}", groups.join(", ")) };
    let tokens = prompt(&format!("Tokens: slugs or tickers, separated by commas{some}, or all"), "all", |text| {
        read_tokens(text, &groups, known.tokens)
    })?;
    let above = match about.default_value() {
        Some(usual) => Some(prompt("Minimum value in USD", &model::phrase::usd(usual), parse_money)?),
        None => None,
    };
    let within = match about {
        RuleTopic::Cliffs => {
            prompt("Lead times", "30d,7d,1d", |text| text.split(',').map(parse_span).collect::<Result<Vec<Span>, _>>())?
        }
        _ => Vec::new(),
    };
    let days = if about == RuleTopic::NoBuyback { Some(prompt("Days without a buyback", "35", read_days)?) } else { None };
    let window = match about {
        RuleTopic::Pressure | RuleTopic::Emissions => Some(prompt("Window length", "7d", parse_span)?),
        _ => None,
    };
    let severity = prompt("Severity: info, warning, or critical", "warning", read_severity)?;
    let usual = free_name(about, known.rules);
    let name = Some(prompt("Name of the alert", &usual, |text| read_name(text, known.rules))?);
    Ok(NewRuleArgs { about: Some(about), tokens, above, within, days, window, severity, name, file: None, dry_run: false })
}

/// Prompts for confirmation to write the rule to `file`.
pub(super) fn confirm_write(file: &Path) -> anyhow::Result<bool> {
    prompt(&format!("Write the rule to {}?", shown(file)), "yes", |text| match text.to_ascii_lowercase().as_str() {
        "yes" | "y" => Ok(true),
        "no" | "n" => Ok(false),
        _ => Err("enter yes or no".to_owned()),
    })
}

fn read_choice(text: &str) -> Result<RuleTopic, String> {
    let number = text.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let choice = number.and_then(|at| CHOICES.get(at)).map(|(about, _)| *about);
    choice.ok_or_else(|| format!("enter a number from 1 to {}", CHOICES.len()))
}

/// Parses slugs, globs, and groups. Empty for `all`.
fn read_tokens(text: &str, groups: &[String], known: &KnownTokens) -> Result<Vec<String>, String> {
    if text.eq_ignore_ascii_case("all") {
        return Ok(Vec::new());
    }
    let tokens = text.split(',').map(str::trim).filter(|token| !token.is_empty()).map(|token| {
        if token.starts_with('@') && !groups.iter().any(|group| group == token) {
            let meant = closest(token, groups.iter().map(String::as_str));
            return Err(match (meant, groups) {
                (Some(meant), _) => format!("unknown group {token}: did you mean {meant}?"),
                (None, []) => format!("unknown group {token}: the config defines no [watch.groups]"),
                (None, groups) => format!("unknown group {token}: expected one of {}", groups.join(", ")),
            });
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@*?[]{}".contains(c);
        match token.chars().find(|c| !is_name(*c)) {
            Some(c) => Err(format!("{token:?}: a slug cannot contain {c:?}; separate slugs by commas")),
            None => known.slug(token).map_err(|error| error.to_string()),
        }
    });
    let tokens = tokens.collect::<Result<Vec<String>, String>>()?;
    if tokens.is_empty() { Err("enter a slug, such as arbitrum, or all".to_owned()) } else { Ok(tokens) }
}

fn read_days(text: &str) -> Result<u32, String> {
    let days = text.trim_end_matches(['d', ' ']).parse::<u32>().ok().filter(|days| DAYS.contains(&i64::from(*days)));
    days.ok_or_else(|| format!("enter a number of days from {} to {}", DAYS.start(), DAYS.end()))
}

fn read_severity(text: &str) -> Result<String, String> {
    const WORDS: [&str; 3] = ["info", "warning", "critical"];
    let word = text.to_ascii_lowercase();
    if WORDS.contains(&word.as_str()) {
        return Ok(word);
    }
    let meant = closest(&word, WORDS).map(|meant| format!(": did you mean {meant}?")).unwrap_or_default();
    Err(format!("enter info, warning, or critical{meant}"))
}

fn read_name(text: &str, rules: &[SourceText]) -> Result<String, String> {
    if let Some(c) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_')) {
        return Err(format!("a name cannot contain {c:?}: use letters, digits, `-`, and `_`"));
    }
    if is_taken(text, rules) { Err(format!("a rule with the name {text} already exists")) } else { Ok(text.to_owned()) }
}

/// Prompts until `read` accepts the input. Enter selects `usual`.
fn prompt<T>(prompt: &str, usual: &str, read: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<T> {
    for _ in 0..MAX_ATTEMPTS {
        anstream::eprint!("{prompt} [{usual}] ");
        std::io::stderr().flush()?;
        let mut line = Vec::new();
        if std::io::stdin().lock().read_until(b'\n', &mut line)? == 0 {
            // Without Enter, the cursor is still behind the prompt.
            anstream::eprintln!();
            return Err(UsageError("the input ended before the last prompt, no files were written".to_owned()).into());
        }
        let line = String::from_utf8_lossy(&line);
        let input = line.trim();
        let taken = match input {
            "" => read(usual),
            // For example an arrow key, or an incomplete character.
            keys if keys.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) => {
                Err("the input contains a control character: type it again".to_owned())
            }
            text => read(text),
        };
        match taken {
            Ok(input) => return Ok(input),
            Err(problem) => anstream::eprintln!("  {}", harmless(&problem)),
        }
    }
    Err(UsageError(format!(
        "{MAX_ATTEMPTS} inputs were not valid, so no files were written; pass the values as options instead, see --help"
    ))
    .into())
}

#[cfg(test)]
mod tests;
