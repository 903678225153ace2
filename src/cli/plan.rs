//! `plan`: estimates the polls and credits of a month, and compares them with the limit.

use std::fmt::Write as _;

use clap::Args;

use super::invocation::watch_of;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, rule_check};
use daemon::cycle::endpoint_feeds;
use daemon::database_url::may_exist;
use daemon::schedule::{self, Job};
use engine::budget;
use engine::plan::month::polls::TokenPolls;
use engine::plan::month::{self, DAYS, Month, MonthLine, Outlook, TOKENS_PER_ROW_FEED};
use model::config::{self, Config};
use model::{CreditState, Endpoint, FeedId, PlanToken, Timestamp, TokenId, phrase};
use rules::RuleSet;
use store::{Access, Store};

/// The number of tokens assumed for `*` if the list was never read: about as many as the API had in 2026.
const ASSUMED_BY_STAR: u64 = 500;
/// The number of tokens assumed for any other pattern if the list was never read.
const ASSUMED_BY_GLOB: u64 = 10;
/// The maximum of `--tokens`.
const MAX_TOKENS: u64 = 100_000;

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    /// Number of watched tokens to assume, instead of the actual number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_TOKENS))]
    tokens: Option<u64>,
}

pub(super) async fn run(args: &PlanArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, loaded) = invocation.load()?;
    let store = match may_exist(&config.store) {
        true => Some(invocation.open(&config, Access::Read).await?),
        false => None,
    };
    let now = invocation.clock.now();
    let rules = rule_check::check_rules(&config, &loaded, invocation).set;
    let (month, credit) = simulate_month(&config, &rules, store.as_ref(), args.tokens, now).await?;
    if let Some(store) = store {
        store.close().await?;
    }
    let page = match invocation.format {
        OutputFormat::Json => print::json(&month)?,
        OutputFormat::Csv => listing(&month).csv(),
        OutputFormat::Table => {
            let table = if month.endpoints.is_empty() {
                "all endpoints are off, so nothing is polled\n".to_owned()
            } else {
                listing(&month).table(super::width())
            };
            format!("{table}\n{}", sentences(&month, &credit, &config.budget))
        }
    };
    print::out(&page)?;
    Ok(Exit::Done)
}

/// Runs the planner for a month.
async fn simulate_month(
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
    let month = month::plan_month(feeds, &polled, assumed.is_some(), &credit, (&config.source, &config.budget), now);
    Ok((month, credit))
}

/// Returns exactly `assumed` tokens: known ones first, then placeholders. Returns all known tokens if no number is assumed.
fn counted(mut tokens: Vec<PlanToken>, assumed: Option<u64>) -> Vec<PlanToken> {
    let Some(assumed) = assumed.and_then(|assumed| usize::try_from(assumed).ok()) else { return tokens };
    tokens.truncate(assumed);
    let missing = tokens.len()..assumed;
    tokens.extend(missing.map(|number| PlanToken::unknown(TokenId::from(format!("assumed-{number}").as_str()))));
    tokens
}

/// Returns the number of tokens to assume for the patterns if the list was never read.
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
    patterns.iter().map(count).sum::<u64>().min(MAX_TOKENS)
}

fn listing(month: &Month) -> Listing<'_, MonthLine> {
    let number = |number: u64| Cell::both(phrase::grouped(number), number.to_string());
    Listing::of(&month.endpoints)
        .left_column("Endpoint", "endpoint", |line| Cell::text(line.endpoint))
        .right_column("Slots", "ticks", move |line| number(line.ticks))
        .right_column("Polls", "asks", move |line| number(line.polls))
        .right_column("Each", "creditsPerAsk", |line| {
            let each = trimmed(line.credits_per_poll);
            Cell::both(format!("{each}{}", if line.is_measured { "" } else { "?" }), each)
        })
        .right_column("Wanted", "wanted", move |line| number(line.wanted))
        .right_column("Granted", "granted", move |line| number(line.granted))
        .right_column("Listed", "grantedIfReported", move |line| number(line.granted_if_reported))
        .right_column("Silent", "grantedIfSilent", move |line| number(line.granted_if_silent))
        .left_column("Every", "hoursBetweenPolls", |line| match line.hours_between_polls {
            Some(hours) => Cell::both(phrase::duration_of_days(hours / 24.0), trimmed(hours)),
            None => Cell::both("never", ""),
        })
}

/// Describes the month: the total, whether the credits are sufficient, and what to change.
fn sentences(month: &Month, credit: &CreditState, budget: &config::BudgetSettings) -> String {
    let mut text = String::new();
    let tokens = phrase::grouped_count(month.tokens, "token");
    let _ = writeln!(
        text,
        "{DAYS} days, {tokens}: {} wanted, {} granted.",
        phrase::grouped_count(month.wanted, "credit"),
        phrase::grouped(month.granted)
    );
    if let Some(allowance) = month.allowance {
        let whose = match (budget.monthly_credits, credit.limit) {
            (Some(cap), Some(limit)) if cap < limit => "your `monthly_credits`",
            (_, Some(_)) => "the limit that the API reports",
            _ => "your `monthly_credits`",
        };
        let (total, reserve) = (phrase::grouped(allowance), phrase::grouped(month.reserve));
        let _ = writeln!(
            text,
            "Limit: {total} credits per month ({whose}), {reserve} of them reserved for near events and removal proofs."
        );
    }
    if let (Some(used), Some(limit)) = (credit.used, credit.limit) {
        let until = credit.reset_at.map(|at| format!(" until {}", phrase::day(at))).unwrap_or_default();
        let _ = writeln!(text, "Current period: {} of {} used{until}.", phrase::grouped(used), phrase::grouped(limit));
    }
    text.push_str(
        "Each, Wanted, Granted, Listed, and Silent are credits. Granted assumes that the lists report as many corrections as before, Listed\n\
        that the token list reports all of them, and Silent that no list reports any.\n",
    );
    if month.first_reads > 0 {
        let _ = writeln!(
            text,
            "The first polls cost {} credits once (assuming 1 credit each, 2 with linear segments, and 3 with daily emission ahead).",
            phrase::grouped(month.first_reads)
        );
    }
    match month.first_pass_days {
        Some(days) if days >= 1.0 => {
            let _ = writeln!(
                text,
                "Every schedule is polled once within {}, those with the next unlocks first.",
                phrase::duration_of_days(days)
            );
        }
        None if month.first_reads > 0 && month.allowance.is_some() => {
            let _ = writeln!(
                text,
                "Polling every schedule once takes longer than {DAYS} days. Those with the next unlocks are first."
            );
        }
        _ => {}
    }
    if month.tokens_are_assumed {
        text.push_str("The number of tokens is assumed, because the token list was never polled, or --tokens is set.\n");
    }
    let is_assumed = |endpoint| month.endpoints.iter().any(|line| line.endpoint == endpoint && !line.is_measured);
    if is_assumed(Endpoint::TokenList) && (is_assumed(Endpoint::Burn) || is_assumed(Endpoint::Buyback)) {
        let _ = writeln!(
            text,
            "One token in {TOKENS_PER_ROW_FEED}, but at least one, is assumed to have burns and buybacks, because the token list was never \
             polled."
        );
    }
    if month.endpoints.iter().any(|line| !line.is_measured) {
        text.push_str("A cost with `?` is assumed, because the endpoint was never polled.\n");
    }
    text.push('\n');
    text.push_str(&credits_text(month));
    text.push_str(&delay_text(month));
    text
}

/// Describes the delay until corrections are found, and the tokens that are polled most and least.
fn delay_text(month: &Month) -> String {
    let mut text = String::new();
    if let (Some(mean), Some(worst)) = (month.noticed_hours_mean, month.noticed_hours_worst) {
        let (mean, worst) = (phrase::duration_of_days(mean / 24.0), phrase::duration_of_days(worst / 24.0));
        let _ = writeln!(
            text,
            "\nA schedule correction is found after {mean} on average, and after {worst} at most if no list reports it."
        );
        if let (Some(reported), Some(silent)) = (month.noticed_hours_mean_if_reported, month.noticed_hours_mean_if_silent) {
            let [reported, silent] = [reported, silent].map(|hours| phrase::duration_of_days(hours / 24.0));
            let _ = writeln!(
                text,
                "This is {reported} if the token list reports all corrections, and {silent} if no list reports any. The daemon learns which is true."
            );
        }
    }
    if !month.most_read.is_empty() && !month.tokens_are_assumed {
        let _ = writeln!(text, "Most polled schedules: {}.", tokens_read(&month.most_read));
        let _ = writeln!(text, "Least polled schedules: {}.", tokens_read(&month.least_read));
    }
    text
}

/// Formats poll counts: `arbitrum 31, aptos 30`.
pub(super) fn tokens_read(polls: &[TokenPolls]) -> String {
    polls.iter().map(|of| format!("{} {}", phrase::name(of.token.as_str()), of.polls)).collect::<Vec<_>>().join(", ")
}

/// Describes whether the credits of a month are sufficient for all polls. If not, names the polls that are skipped or delayed and
/// the setting to change.
fn credits_text(month: &Month) -> String {
    let mut text = String::new();
    match month.outlook {
        Outlook::Unknown => text.push_str(
            "Whether the credits are sufficient is unknown until the API reports its limit with the first response.\n\
            The daemon never exceeds that limit. To set your own, use [budget] `monthly_credits`.\n",
        ),
        Outlook::InFull => text.push_str("The credits are sufficient: everything is polled in every slot.\n"),
        Outlook::Stretched => text.push_str(
            "The credits are sufficient because some polls are skipped: polls with a higher priority come first, and the table shows how often\n\
            each unchanged schedule is polled. The split depends on whether the lists report corrections. First polls, near events, and\n\
            reported changes come before all others.\n",
        ),
        Outlook::ListsTooExpensive => text.push_str(
            "The credits are sufficient, but not for polling the lists, which report changes, in every slot. Other schedules are only polled\n\
            if they are new or near. Poll `token_list` and `upcoming` less often in [schedule].\n",
        ),
        Outlook::FirstReadsTooExpensive => text.push_str(
            "The credits are not sufficient: polling every token once costs more than the limit of a month. The last tokens are first polled\n\
            next month or later. Watch fewer tokens in [watch], or set endpoints to \"off\" in [schedule].\n",
        ),
    }
    text
}

/// Formats a number with at most one decimal place.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests;
