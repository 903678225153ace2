//! `plan`: what the config will ask in a month, and whether the credits last.

use std::fmt::Write as _;

use clap::Args;

use super::invocation::watch_of;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, rule_check};
use daemon::cycle::endpoint_feeds;
use daemon::place::is_there;
use daemon::schedule::{self, Job};
use engine::budget;
use engine::plan::month::looks::TokenLooks;
use engine::plan::month::{self, DAYS, Month, MonthLine, Outlook};
use model::config::{self, Config};
use model::{CreditState, Endpoint, FeedId, PlanToken, Timestamp, TokenId, format};
use rules::RuleSet;
use store::{Access, Store};

/// Tokens that `*` stands for until the list was read: about as many as the API had in 2026.
const ASSUMED_BY_STAR: u64 = 500;
/// Tokens that any other pattern stands for until then.
const ASSUMED_BY_GLOB: u64 = 10;
/// Most tokens that may be assumed by hand.
const MOST_ASSUMED: u64 = 100_000;

/// `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// Tokens to count for the patterns of [watch], instead of those of the list
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MOST_ASSUMED))]
    tokens: Option<u64>,
}

pub(super) async fn run(args: &PlanArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load()?;
    let store = match is_there(&config.store) {
        true => Some(invocation.open(&config, Access::Read).await?),
        false => None,
    };
    let now = invocation.clock.now();
    let rules = rule_check::check_rules(&config, &loaded, invocation).set;
    let (month, credit) = lay_out(&config, &rules, store.as_ref(), args.tokens, now).await?;
    if let Some(store) = store {
        store.close().await?;
    }
    let page = match invocation.format {
        OutputFormat::Json => print::json(&month)?,
        OutputFormat::Csv => listing(&month).csv(),
        OutputFormat::Table => {
            let table = if month.endpoints.is_empty() {
                "every endpoint is off: nothing is asked\n".to_owned()
            } else {
                listing(&month).table(super::width())
            };
            format!("{table}\n{}", sentences(&month, &credit, &config.budget))
        }
    };
    print::out(&page)?;
    Ok(Exit::Done)
}

/// Asks the planner what it would ask, and lays out the month.
async fn lay_out(
    config: &Config,
    rules: &RuleSet,
    store: Option<&Store>,
    by_hand: Option<u64>,
    now: Timestamp,
) -> anyhow::Result<(Month, CreditState)> {
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    let slots = schedule::jobs(&config.schedule).map_err(|(key, error)| anyhow::anyhow!("schedule.{key}: {error}"))?;
    let has_list = match store {
        Some(store) => store.feed(FeedId::whole(Endpoint::TokenList)).await?.baseline_at.is_some(),
        None => false,
    };
    let assumed = by_hand.or_else(|| (watch.needs_list() && !has_list).then(|| assumed_tokens(&config.watch)));
    let (mut feeds, mut polled) = (Vec::new(), Vec::new());
    for (job, slots) in slots {
        let Job::Poll(endpoint) = job else { continue };
        let mut known = endpoint_feeds(store, (rules, &config.mirror, &watch), endpoint, now).await?;
        if endpoint.is_per_token() {
            known.tokens = counted(known.tokens, assumed);
        }
        feeds.push(known);
        polled.push((endpoint, slots));
    }
    let credit = match store {
        Some(store) => budget::rolled(store.credit().await?, &config.budget, now),
        None => CreditState::default(),
    };
    let month = month::lay_out(feeds, &polled, assumed.is_some(), &credit, (&config.source, &config.budget), now);
    Ok((month, credit))
}

/// As many tokens as are assumed: those known first, then such of which nothing is known.
fn counted(mut tokens: Vec<PlanToken>, assumed: Option<u64>) -> Vec<PlanToken> {
    let Some(assumed) = assumed.and_then(|assumed| usize::try_from(assumed).ok()) else { return tokens };
    tokens.truncate(assumed);
    let missing = tokens.len()..assumed;
    tokens.extend(missing.map(|number| PlanToken::unknown(TokenId::from(format!("assumed-{number}").as_str()))));
    tokens
}

/// What the patterns may stand for, where the list was never read.
fn assumed_tokens(watch: &config::WatchSettings) -> u64 {
    let mut patterns = Vec::new();
    for pattern in &watch.tokens {
        match pattern.strip_prefix('@') {
            Some(group) => patterns.extend(watch.groups.get(group).into_iter().flatten()),
            None => patterns.push(pattern),
        }
    }
    let count = |pattern: &&String| match pattern.as_str() {
        "*" => ASSUMED_BY_STAR,
        slug if slug.contains(['*', '?', '[', '{', '!']) => ASSUMED_BY_GLOB,
        _ => 1,
    };
    patterns.iter().map(count).sum::<u64>().min(MOST_ASSUMED)
}

fn listing(month: &Month) -> Listing<'_, MonthLine> {
    let number = |number: u64| Cell::both(thousands(number), number.to_string());
    Listing::of(&month.endpoints)
        .words("Endpoint", "endpoint", |line| Cell::text(line.endpoint))
        .numbers("Ticks", "ticks", move |line| number(line.ticks))
        .numbers("Asks", "asks", move |line| number(line.asks))
        .numbers("Each", "creditsPerAsk", |line| {
            let each = trimmed(line.credits_per_ask);
            Cell::both(format!("{each}{}", if line.is_measured { "" } else { "?" }), each)
        })
        .numbers("Wanted", "wanted", move |line| number(line.wanted))
        .numbers("Granted", "granted", move |line| number(line.granted))
        .words("Looks again", "hoursBetweenLooks", |line| match line.hours_between_looks {
            Some(hours) => Cell::both(format!("every {}", hours_in_words(hours)), trimmed(hours)),
            None => Cell::both("never", ""),
        })
}

/// The month in sentences: what it comes to, whether it lasts, what to change.
fn sentences(month: &Month, credit: &CreditState, budget: &config::BudgetSettings) -> String {
    let mut text = String::new();
    let tokens = format!("{} {}", thousands(month.tokens), if month.tokens == 1 { "token" } else { "tokens" });
    let _ = writeln!(
        text,
        "{DAYS} days, {tokens}: {} {} wanted, {} granted.",
        thousands(month.wanted),
        if month.wanted == 1 { "credit" } else { "credits" },
        thousands(month.granted)
    );
    if let Some(allowance) = month.allowance {
        let whose = match (budget.monthly_credits, credit.limit) {
            (Some(cap), Some(limit)) if cap < limit => "your `monthly_credits`",
            (_, Some(_)) => "the limit that the API reports",
            _ => "your `monthly_credits`",
        };
        let (total, reserve) = (thousands(allowance), thousands(month.reserve));
        let _ = writeln!(text, "Allowance: {total} a month ({whose}), {reserve} of them kept for near events and proof.");
    }
    if let (Some(used), Some(limit)) = (credit.used, credit.limit) {
        let until = credit.reset_at.map(|at| format!(" until {}", format::day(at))).unwrap_or_default();
        let _ = writeln!(text, "Now: {} of {} used{until}.", thousands(used), thousands(limit));
    }
    if month.first_reads > 0 {
        let _ = writeln!(
            text,
            "First reads cost {} once, before anything else (one credit assumed for each, twice that with linear segments).",
            thousands(month.first_reads)
        );
    }
    if month.tokens_are_assumed {
        text.push_str("The token list was not read yet or is overruled: the number of tokens is assumed (--tokens N).\n");
    }
    if month.endpoints.iter().any(|line| !line.is_measured) {
        text.push_str("A cost with `?` is assumed: nothing was read there yet.\n");
    }
    text.push('\n');
    text.push_str(&outlook(month));
    text.push_str(&lateness(month));
    text
}

/// How late corrections are noticed, and whose schedule is read how often.
fn lateness(month: &Month) -> String {
    let mut text = String::new();
    if let (Some(mean), Some(worst)) = (month.noticed_hours_mean, month.noticed_hours_worst) {
        let (mean, worst) = (hours_in_words(mean), hours_in_words(worst));
        let _ = writeln!(
            text,
            "\nA correction of a schedule is noticed after {mean} on average, after {worst} at worst, if nothing tells of it."
        );
    }
    if !month.most_read.is_empty() && !month.tokens_are_assumed {
        let _ = writeln!(text, "Schedules read most: {}.", tokens_read(&month.most_read));
        let _ = writeln!(text, "Schedules read least: {}.", tokens_read(&month.least_read));
    }
    text
}

/// `arbitrum 31, aptos 30`.
pub(super) fn tokens_read(looks: &[TokenLooks]) -> String {
    looks.iter().map(|of| format!("{} {}", format::name(of.token.as_str()), of.looks)).collect::<Vec<_>>().join(", ")
}

/// Whether it lasts, and what to change if not.
fn outlook(month: &Month) -> String {
    let mut text = String::new();
    match month.verdict {
        Outlook::Unknown => text.push_str(
            "Whether it lasts is not known: the API tells its limit with the first answer; then `plan` knows it too.\n\
             Whatever the limit is, no more is spent. [budget] `monthly_credits` sets one of your own.\n",
        ),
        Outlook::InFull => text.push_str("It lasts: everything is asked at every tick.\n"),
        Outlook::Stretched => text.push_str(
            "It lasts, since looks are left out: credits go to the looks that are worth most, and the table tells how often each\n\
             schedule is looked at though nothing says that it changed. First reads, events that are near and marked changes\n\
             come first, and are not left out.\n",
        ),
        Outlook::ListsTooDear => text.push_str(
            "It lasts, but not even the lists, which tell what changed, are asked at every tick; nothing else is looked at\n\
             unless it is new or near. Ask `token_list` and `upcoming` less often in [schedule].\n",
        ),
        Outlook::FirstReadsTooDear => text.push_str(
            "It does not last: reading every token once costs more than a month has. The last ones would first be read next\n\
             month or later, and nothing is looked at twice until then. Watch fewer tokens in [watch], or put endpoints\n\
             \"off\" in [schedule].\n",
        ),
    }
    text
}

/// `12,345`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// At most one digit behind the point.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

pub(super) fn hours_in_words(hours: f64) -> String {
    match hours {
        hours if hours < 1.0 / 60.0 => format!("{} s", trimmed(hours * 3_600.0)),
        hours if hours < 2.0 => format!("{} min", trimmed(hours * 60.0)),
        hours if hours < 48.0 => format!("{} h", trimmed(hours)),
        hours => format!("{} days", trimmed(hours / 24.0)),
    }
}

#[cfg(test)]
mod tests;
