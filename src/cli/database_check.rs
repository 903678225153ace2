//! Checks config and rules against the database: unknown tokens, matchers and silences without effect, thresholds that are never
//! exceeded, and rules that send too much. Slow checks have a time limit, and skipped ones are reported.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Invocation;
use super::invocation::{routes_of, watch_of};
use daemon::config::Loaded;
use daemon::database_url::{database_of, may_exist};
use daemon::playground::{LastYear, TrialTime, TrialWorld, last_year};
use engine::pipeline::DispatchPolicy;
use model::config::{self, Config, Route};
use model::{Diagnostic, Matcher, Positions, ReferencePrice, Resource, Silence, Timestamp, Token, TokenSnapshot, Watch, phrase};
use rules::{LabelFacts, RuleSet, check_thresholds, matches, token_hint};
use store::{Access, ErrorKind, Store, StoreError};
use tools::backtest::BacktestSummary;

/// The number of messages per week above which a rule gets a warning.
const MAX_MESSAGES_PER_WEEK: f64 = 20.0;
/// The minimum number of weeks for the average of a rule.
const MIN_WEEKS: usize = 4;
/// The time limit for reading records.
const READ_TIME: Duration = Duration::from_secs(3);
/// The name of the receiver if the config has none.
const ANYONE: &str = "(anyone)";
/// The time limits for reading and replaying the last year.
const TRIAL_TIME: TrialTime = TrialTime { read: Duration::from_secs(3), replay: Duration::from_secs(6) };

/// The facts in the database.
pub(super) struct KnownFacts {
    store: Store,
    /// The file or the server of the database, for diagnostics.
    database: PathBuf,
    /// All tokens of the token list with their groups.
    pub listed: Vec<Token>,
    /// The watched tokens with their records, as far as they were read in time.
    watched: Vec<TokenSnapshot>,
    /// The number of watched tokens that were not read in time.
    unread: usize,
    silences: Vec<Silence>,
}

/// The warnings, and notes about skipped checks.
#[derive(Debug, Default)]
pub(super) struct DatabaseWarnings {
    pub diagnostics: Vec<Diagnostic>,
    pub left_out: Vec<String>,
}

impl KnownFacts {
    /// Reads the database of a config, a file or on a server. `None` if there is no database yet, or if `[watch]` is not valid.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be opened or read.
    pub fn read(config: &Config, invocation: &Invocation) -> anyhow::Result<Option<Self>> {
        let Ok(watch) = watch_of(&config.watch) else { return Ok(None) };
        if !may_exist(&config.store) {
            return Ok(None);
        }
        let database = database_of(&config.store)?.name().to_owned();
        let now = invocation.clock.now();
        let known = super::wait(async {
            let store = invocation.open(config, Access::Read).await?;
            let ids = store.token_ids(true).await?;
            let listed = store.tokens(ids, Vec::new()).await?;
            let listed = listed.into_iter().map(|snapshot| watch.placed(snapshot.token)).collect();
            let silences = store.silences(Some(now)).await?;
            let (watched, unread) = watched(&store, &watch).await?;
            Ok(Self { store, database, listed, watched, unread, silences })
        });
        match known {
            Err(error) if error.downcast_ref().is_some_and(|error: &StoreError| error.kind() == ErrorKind::Missing) => Ok(None),
            known => known.map(Some),
        }
    }

    /// Returns the warnings about config and rules.
    pub fn check(&self, set: &RuleSet, config: &Config, loaded: &Loaded, now: Timestamp) -> DatabaseWarnings {
        let mut warnings = DatabaseWarnings::default();
        if !self.listed.is_empty() {
            warnings.diagnostics.extend(self.tokens(config, loaded));
            let labels = LabelFacts::of(set, &self.listed);
            warnings.diagnostics.extend(routes(&labels, config, loaded));
            warnings.diagnostics.extend(self.silences(&labels));
        }
        warnings.diagnostics.extend(check_thresholds(set, &self.watched, now));
        warnings.diagnostics.extend(stale_prices(&self.watched, config, &self.database, now));
        if self.unread > 0 {
            let unread = phrase::count(self.unread, "token");
            warnings.left_out.push(format!("skipped the check of thresholds for {unread}: time limit reached"));
        }
        self.messages(set, config, now, &mut warnings);
        warnings
    }

    /// Warns about items of `[watch]` and of digests that match no token.
    fn tokens(&self, config: &Config, loaded: &Loaded) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let named = config.watch.tokens.iter().enumerate().map(|(index, word)| (format!("watch.tokens[{index}]"), word));
        let grouped = config.watch.groups.iter().flat_map(|(name, words)| {
            words.iter().enumerate().map(move |(index, word)| (format!("watch.groups.{name}[{index}]"), word))
        });
        let digests =
            config.receivers.iter().enumerate().filter_map(|(index, receiver)| Some((index, receiver.digest.as_ref()?)));
        let of_digests = digests.flat_map(|(index, digest)| {
            let path = move |at: usize| format!("receiver[{index}].digest.tokens[{at}]");
            let slugs = digest.tokens.iter().enumerate().filter(|(_, word)| !word.starts_with('@'));
            slugs.map(move |(at, word)| (path(at), word))
        });
        for (path, word) in named.chain(grouped).chain(of_digests) {
            if !matches(word, false, &self.listed) {
                warnings.push(loaded.warning(&path, format!("no token matches `{word}`")).help(token_hint(word, &self.listed)));
            }
        }
        warnings
    }

    /// Returns the errors of positions whose name is not the name of one token.
    pub fn positions(&self, config: &Config) -> Vec<Diagnostic> {
        let names = super::wait(async { Ok(self.store.token_names().await?) });
        names.map(|names| Positions::of(&config.watch.positions).resolve(&names).problems).unwrap_or_default()
    }

    fn silences(&self, labels: &LabelFacts<'_>) -> Vec<Diagnostic> {
        let warning = |silence: &Silence| {
            let problem = labels.problem(&silence.matchers)?;
            let message = format!("the silence {} has no effect: {}", silence.id, problem.message);
            Some(Diagnostic::warning(&self.database, None, message).help(problem.help))
        };
        self.silences.iter().filter_map(warning).collect()
    }

    /// Warns about rules that would have sent too many messages over the last year.
    fn messages(&self, set: &RuleSet, config: &Config, now: Timestamp, warnings: &mut DatabaseWarnings) {
        let mut config = config.clone();
        if config.receivers.is_empty() {
            config.receivers.push(config::ReceiverSettings { name: ANYONE.to_owned(), ..config::ReceiverSettings::default() });
        }
        let (Ok(routes), Ok(watch)) = (routes_of(&config), watch_of(&config.watch)) else { return };
        let Ok(policy) = DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price) else { return };
        let world = TrialWorld { watch: &watch, routes: &routes, settings: &config.store };
        let played = super::wait(async { Ok(last_year(&self.store, &world, set, &policy, TRIAL_TIME, now).await?) });
        let Ok(LastYear { run, left_out, is_complete }) = played else { return };
        if !is_complete {
            let (unread, _) = left_out;
            let what = if unread > 0 { format!("{} and ", phrase::count(unread, "token")) } else { String::new() };
            warnings.left_out.push(format!(
                "the number of messages was only estimated: {what}all data after {} skipped because of the time limit; \
                run `cliffwatch backtest` for all data",
                phrase::day(run.to)
            ));
        }
        warnings.diagnostics.extend(frequent_rules(set, &BacktestSummary::of(&run)));
    }
}

/// Reads the watched tokens with their records. Also returns the number of tokens that were not read in time.
async fn watched(store: &Store, watch: &Watch) -> anyhow::Result<(Vec<TokenSnapshot>, usize)> {
    let begun = Instant::now();
    let mut snapshots = Vec::new();
    let ids: Vec<_> = store.token_ids(false).await?.into_iter().filter(|id| watch.covers(id)).collect();
    for (index, id) in ids.iter().enumerate() {
        if begun.elapsed() >= READ_TIME {
            return Ok((snapshots, ids.len() - index));
        }
        for mut snapshot in store.tokens(vec![id.clone()], model::Resource::ALL.to_vec()).await? {
            snapshot.token = watch.placed(snapshot.token);
            snapshots.push(snapshot);
        }
    }
    Ok((snapshots, 0))
}

/// Warns if most of the prices that are known with a time are stale, because every value in USD follows from them.
fn stale_prices(watched: &[TokenSnapshot], config: &Config, database: &Path, now: Timestamp) -> Option<Diagnostic> {
    let price_at = |snapshot: &TokenSnapshot| {
        let events = snapshot.records_of(Resource::Unlock).filter_map(|tracked| tracked.record.unlock());
        ReferencePrice::latest(events)?.at
    };
    let times: Vec<Timestamp> = watched.iter().filter_map(price_at).collect();
    let limit = config.source.stale_price.delta();
    let stale = times.iter().filter(|at| ReferencePrice::is_stale(**at, limit, now)).count();
    let latest = times.iter().max().filter(|_| stale * 2 > times.len())?;
    let known = phrase::count(times.len(), "token");
    let (age, day) = (phrase::duration(limit), phrase::day(*latest));
    let message = format!("the prices of {stale} of {known} are older than {age}; the latest is of {day}");
    let help = "values in USD follow from these prices: see `cliffwatch status` for polls that fail, or raise `stale_price` in `[source]`";
    Some(Diagnostic::warning(database, None, message).help(help))
}

/// Warns about matchers and labels of routes and inhibitions that no alert can have.
fn routes(labels: &LabelFacts<'_>, config: &Config, loaded: &Loaded) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    route(&config.route, "route", labels, loaded, &mut warnings);
    for (index, inhibition) in config.inhibit_rules.iter().enumerate() {
        let path = format!("inhibit_rules[{index}]");
        for (key, texts) in [("source_matchers", &inhibition.source_matchers), ("target_matchers", &inhibition.target_matchers)] {
            warnings.extend(matchers(texts, &format!("{path}.{key}"), labels, loaded));
        }
        warnings.extend(names(&inhibition.equal, &format!("{path}.equal"), labels, loaded));
    }
    warnings
}

fn route(of: &Route, path: &str, labels: &LabelFacts<'_>, loaded: &Loaded, warnings: &mut Vec<Diagnostic>) {
    warnings.extend(matchers(&of.matchers, &format!("{path}.matchers"), labels, loaded));
    warnings.extend(names(of.group_by.as_deref().unwrap_or_default(), &format!("{path}.group_by"), labels, loaded));
    for (index, child) in of.routes.iter().enumerate() {
        route(child, &format!("{path}.routes[{index}]"), labels, loaded, warnings);
    }
}

fn matchers(texts: &[String], path: &str, labels: &LabelFacts<'_>, loaded: &Loaded) -> Option<Diagnostic> {
    let parsed: Vec<Matcher> = texts.iter().map(|text| Matcher::parse(text)).collect::<Result<_, _>>().ok()?;
    let problem = labels.problem(&parsed)?;
    let place = problem.matcher.map_or_else(|| path.to_owned(), |at| format!("{path}[{at}]"));
    Some(loaded.warning(&place, problem.message).help(problem.help))
}

fn names(names: &[String], path: &str, labels: &LabelFacts<'_>, loaded: &Loaded) -> Vec<Diagnostic> {
    let unknown = names.iter().enumerate().filter(|(_, name)| *name != "..." && !labels.has(name));
    let warning = |(index, name): (usize, &String)| {
        loaded.warning(&format!("{path}[{index}]"), format!("no rule sets the label `{name}`")).help(labels.label_hint(name))
    };
    unknown.map(warning).collect()
}

/// Warns about rules that would have sent too many messages to a receiver.
fn frequent_rules(set: &RuleSet, summary: &BacktestSummary) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for row in &summary.rules {
        let Some((receiver, count)) = row.shares.iter().max_by_key(|(_, count)| **count) else { continue };
        let silent = row.by_week.iter().take_while(|count| **count == 0).count();
        let weeks = row.by_week.len().saturating_sub(silent).max(MIN_WEEKS);
        let a_week = f64::from(*count) / f64::from(u32::try_from(weeks).unwrap_or(u32::MAX));
        let Some(rule) = set.rules.iter().find(|rule| rule.name == row.name).filter(|_| a_week > MAX_MESSAGES_PER_WEEK) else {
            continue;
        };
        let message = format!(
            "`{}` would have sent {a_week:.0} messages per week to {receiver} over the last year ({count} in {})",
            rule.name,
            phrase::count(weeks, "week")
        );
        warnings.push(
            Diagnostic::warning(rule.location.file.to_path_buf(), Some(rule.location.span.clone()), message)
                .help("raise its threshold, restrict `tokens`, or group its messages; run `cliffwatch backtest` to see them"),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
