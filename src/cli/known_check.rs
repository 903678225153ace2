//! Config and rules against what the database knows: tokens that are named otherwise, matchers and silences that nothing answers to,
//! thresholds out of reach, rules that say too much. What takes long is bounded in time, and what was left out is said.

use std::time::{Duration, Instant};

use super::Invocation;
use super::invocation::{routes_of, watch_of};
use daemon::config::Loaded;
use daemon::playground::{LastYear, TrialTime, TrialWorld, last_year};
use engine::pipeline::DispatchPolicy;
use model::config::{self, Config, Route};
use model::{Diagnostic, Matcher, Silence, Timestamp, Token, TokenSnapshot, Watch, format};
use rules::{LabelFacts, RuleSet, doubt_thresholds, matches, token_hint};
use store::{Access, Store};
use tools::backtest::BacktestSummary;

/// Messages a week beyond which a rule is doubted.
const MOST_A_WEEK: f64 = 20.0;
/// A rule that has told for a shorter time is counted as if it had for so long.
const FEWEST_WEEKS: usize = 4;
/// How long records are read at most.
const READ_TIME: Duration = Duration::from_secs(3);
/// Stands for the receiver of a config that has none.
const ANYONE: &str = "(anyone)";
/// How long the last year is read and played at most.
const TRIAL_TIME: TrialTime = TrialTime { read: Duration::from_secs(3), play: Duration::from_secs(6) };

/// What a database knows.
pub(super) struct KnownFacts {
    store: Store,
    /// All tokens of the token list, with their groups.
    pub listed: Vec<Token>,
    /// Those of them that are watched, and others that are, with their records as far as they could be read.
    watched: Vec<TokenSnapshot>,
    /// Watched tokens whose records were not read in time.
    unread: usize,
    silences: Vec<Silence>,
}

/// What is doubted, and what could not be looked at.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    pub diagnostics: Vec<Diagnostic>,
    pub left_out: Vec<String>,
}

impl KnownFacts {
    /// Reads the database of a config; none where there is none yet, or where it cannot be opened.
    pub fn read(config: &Config, invocation: &Invocation) -> Option<Self> {
        if !config.store.path.exists() {
            return None;
        }
        let watch = watch_of(&config.watch).ok()?;
        let now = invocation.clock.now();
        super::wait(async {
            let store = invocation.open(config, Access::Read).await?;
            let ids = store.token_ids(true).await?;
            let listed = store.tokens(ids, Vec::new()).await?;
            let listed = listed.into_iter().map(|snapshot| watch.placed(snapshot.token)).collect();
            let silences = store.silences(Some(now)).await?;
            let (watched, unread) = watched(&store, &watch).await?;
            Ok(Self { store, listed, watched, unread, silences })
        })
        .ok()
    }

    /// What is doubted of config and rules.
    pub fn check(&self, set: &RuleSet, config: &Config, loaded: &Loaded, now: Timestamp) -> Doubts {
        let mut doubts = Doubts::default();
        if !self.listed.is_empty() {
            doubts.diagnostics.extend(self.tokens(config, loaded));
            let labels = LabelFacts::of(set, &self.listed);
            doubts.diagnostics.extend(routes(&labels, config, loaded));
            doubts.diagnostics.extend(self.silences(&labels, config));
        }
        doubts.diagnostics.extend(doubt_thresholds(set, &self.watched, now));
        if self.unread > 0 {
            let unread = format::count(self.unread, "token");
            doubts.left_out.push(format!("thresholds were not held against the records of {unread}: there was no time left"));
        }
        self.messages(set, config, now, &mut doubts);
        doubts
    }

    /// Tokens and groups of `[watch]` that match nothing.
    fn tokens(&self, config: &Config, loaded: &Loaded) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let named = config.watch.tokens.iter().enumerate().map(|(index, word)| (format!("watch.tokens[{index}]"), word));
        let grouped = config.watch.groups.iter().flat_map(|(name, words)| {
            words.iter().enumerate().map(move |(index, word)| (format!("watch.groups.{name}[{index}]"), word))
        });
        for (path, word) in named.chain(grouped) {
            if !matches(word, false, &self.listed) {
                warnings.push(loaded.warning(&path, format!("no token matches `{word}`")).help(token_hint(word, &self.listed)));
            }
        }
        warnings
    }

    fn silences(&self, labels: &LabelFacts<'_>, config: &Config) -> Vec<Diagnostic> {
        let warning = |silence: &Silence| {
            let problem = labels.problem(&silence.matchers)?;
            let message = format!("the silence {} hides nothing: {}", silence.id, problem.message);
            Some(Diagnostic::warning(&config.store.path, None, message).help(problem.help))
        };
        self.silences.iter().filter_map(warning).collect()
    }

    /// Rules that would have sent too much over the last year.
    fn messages(&self, set: &RuleSet, config: &Config, now: Timestamp, doubts: &mut Doubts) {
        let mut config = config.clone();
        if config.receivers.is_empty() {
            config.receivers.push(config::ReceiverSettings { name: ANYONE.to_owned(), ..config::ReceiverSettings::default() });
        }
        let (Ok(routes), Ok(watch)) = (routes_of(&config), watch_of(&config.watch)) else { return };
        let Ok(policy) = DispatchPolicy::of(&config.receivers, &config.delivery) else { return };
        let world = TrialWorld { watch: &watch, routes: &routes, settings: &config.store };
        let played = super::wait(async { Ok(last_year(&self.store, &world, set, &policy, TRIAL_TIME, now).await?) });
        let Ok(LastYear { run, left_out, is_whole }) = played else { return };
        if !is_whole {
            let (unread, _) = left_out;
            let what = if unread > 0 { format!("{} and ", format::count(unread, "token")) } else { String::new() };
            doubts.left_out.push(format!(
                "how many messages rules would have sent was counted in part: {what}what came after {} was left out; \
                 `cliffwatch backtest` plays all",
                format::day(run.to)
            ));
        }
        doubts.diagnostics.extend(too_many(set, &BacktestSummary::of(&run)));
    }
}

/// The watched tokens with their records, as far as time reaches, and how many were not read.
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

/// Matchers and labels of routes and inhibitions that no alert can have.
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

/// Warnings of rules that would have sent one receiver more than enough.
fn too_many(set: &RuleSet, summary: &BacktestSummary) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for row in &summary.rules {
        let Some((receiver, count)) = row.shares.iter().max_by_key(|(_, count)| **count) else { continue };
        let silent = row.by_week.iter().take_while(|count| **count == 0).count();
        let weeks = row.by_week.len().saturating_sub(silent).max(FEWEST_WEEKS);
        let a_week = f64::from(*count) / f64::from(u32::try_from(weeks).unwrap_or(u32::MAX));
        let Some(rule) = set.rules.iter().find(|rule| rule.name == row.name).filter(|_| a_week > MOST_A_WEEK) else { continue };
        let message = format!(
            "`{}` would have sent {receiver} {a_week:.0} messages a week over the last year ({count} in {})",
            rule.name,
            format::count(weeks, "week")
        );
        warnings.push(
            Diagnostic::warning(rule.location.file.to_path_buf(), Some(rule.location.span.clone()), message)
                .help("raise its threshold, name `tokens`, or group its messages; `cliffwatch backtest` shows them"),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
