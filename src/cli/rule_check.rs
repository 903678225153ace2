//! The rules of a config, checked: every problem in them, and what they cannot do with what the config watches and asks for.

use super::{Invocation, invocation::receiver_names};
use daemon::config::Loaded;
use daemon::place::is_there;
use model::config::{Config, ScheduleSettings};
use model::{Diagnostic, Resource, SourceText, Token, Watch};
use store::Access;

/// What came of checking the rules of a config.
pub(super) struct CheckedRules {
    /// Rules that would be at work.
    pub count: u32,
    /// What was found.
    pub diagnostics: Vec<Diagnostic>,
    /// Texts to show the problems in.
    pub sources: Vec<SourceText>,
    /// The rules that would be at work.
    pub set: rules::RuleSet,
}

/// What rules cannot do with what this config watches and asks for. It looks into the database, where there is one.
pub(super) fn advise(
    checked: &CheckedRules,
    config: &Config,
    invocation: &Invocation,
    listed: Option<&[Token]>,
) -> Vec<Diagnostic> {
    let tokens = watched(config, invocation);
    let known = rules::WatchFacts {
        tokens: tokens.as_deref(),
        listed,
        asked: &scheduled(&config.schedule),
        history: config.source.history.span(),
        horizon: config.source.horizon.span(),
    };
    rules::advise(&checked.set, &known)
}

/// Reads and checks the rules of a config.
pub(super) fn check_rules(config: &Config, loaded: &Loaded, invocation: &Invocation) -> CheckedRules {
    let files = rules::read_files(&config.rules.paths, &loaded.base_dir);
    let receivers = receiver_names(config);
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now: invocation.clock.now() };
    let checked = rules::load(&files.files, &around);
    let mut diagnostics = files.diagnostics;
    diagnostics.extend(checked.diagnostics);
    let count = u32::try_from(checked.set.rules.len()).unwrap_or(u32::MAX);
    CheckedRules { count, diagnostics, sources: files.files, set: checked.set }
}

/// The watched tokens with their groups, as far as they are known: those that the config names, and those of the database, where
/// there is one yet. None where a pattern can only be filled by a token list that was never read.
fn watched(config: &Config, invocation: &Invocation) -> Option<Vec<Token>> {
    let watch = Watch::build(&config.watch).ok()?;
    let mut ids = watch.named().to_vec();
    if watch.needs_list() {
        if !is_there(&config.store) {
            return None;
        }
        let listed = super::wait(async {
            let store = invocation.open(config, Access::Read).await?;
            Ok(store.token_ids(true).await?)
        });
        ids.extend(listed.ok().filter(|ids| !ids.is_empty())?.into_iter().filter(|id| watch.covers(id)));
    }
    Some(ids.into_iter().map(|id| watch.placed(Token::unknown(id))).collect())
}

/// The records that are read on a schedule.
fn scheduled(schedule: &ScheduleSettings) -> Vec<Resource> {
    let is_on = |pattern: &str| pattern.trim() != "off";
    [
        (Resource::Unlock, &schedule.unlock_events),
        (Resource::Unlock, &schedule.upcoming),
        (Resource::Burn, &schedule.burn),
        (Resource::Buyback, &schedule.buyback),
        (Resource::Emission, &schedule.daily_emission),
        (Resource::Emission, &schedule.weekly_emission),
        (Resource::Allocation, &schedule.allocations),
        (Resource::Funding, &schedule.investors),
    ]
    .into_iter()
    .filter(|(_, pattern)| is_on(pattern))
    .map(|(resource, _)| resource)
    .collect()
}
