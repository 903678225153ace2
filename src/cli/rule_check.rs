//! Checks the rules of a config, and warns about rules that cannot work with the watched tokens and polled data.

use super::{Invocation, invocation::receiver_names};
use std::path::Path;

use daemon::config::Loaded;
use daemon::database_url::may_exist;
use model::config::{Config, ScheduleSettings};
use model::{Diagnostic, Resource, SourceText, Token, Watch};
use rules::RuleFiles;
use store::Access;

/// The checked rules of a config.
pub(super) struct CheckedRules {
    /// The number of enabled rules.
    pub count: u32,
    pub diagnostics: Vec<Diagnostic>,
    /// The texts of the rule files, for diagnostics.
    pub sources: Vec<SourceText>,
    pub set: rules::RuleSet,
}

/// Returns warnings about rules that cannot work with the watched tokens and polled data. Reads the database if there is one.
pub(super) fn advise(
    checked: &CheckedRules,
    config: &Config,
    invocation: &Invocation,
    listed: Option<&[Token]>,
) -> Vec<Diagnostic> {
    let tokens = watched_tokens(config, invocation);
    let known = rules::WatchFacts {
        tokens: tokens.as_deref(),
        listed,
        requested: &scheduled(&config.schedule),
        history: config.source.history.span(),
        horizon: config.source.horizon.span(),
    };
    rules::advise(&checked.set, &known)
}

impl CheckedRules {
    /// Returns whether a file is one of the rule files.
    pub fn has_file(&self, file: &Path) -> bool {
        self.sources.iter().any(|source| source.file == file)
    }
}

/// Checks the rules of a config.
pub(super) fn check_rules(config: &Config, loaded: &Loaded, invocation: &Invocation) -> CheckedRules {
    check_files(rules::read_files(&config.rules.paths, &loaded.base_dir), config, invocation)
}

/// Checks rule files in place of the files of a config.
pub(super) fn check_files(files: RuleFiles, config: &Config, invocation: &Invocation) -> CheckedRules {
    let receivers = receiver_names(config);
    let around = rules::Surroundings { receivers: &receivers, groups: &config.watch.groups, now: invocation.clock.now() };
    let checked = rules::load(&files.files, &around);
    let mut diagnostics = files.diagnostics;
    diagnostics.extend(checked.missing(&config.rules.paths));
    diagnostics.extend(checked.diagnostics);
    let count = u32::try_from(checked.set.rules.len()).unwrap_or(u32::MAX);
    CheckedRules { count, diagnostics, sources: files.files, set: checked.set }
}

/// Returns the watched tokens with their groups, from the config and the database. `None` if a pattern needs a token list that
/// was never read.
fn watched_tokens(config: &Config, invocation: &Invocation) -> Option<Vec<Token>> {
    let watch = Watch::build(&config.watch).ok()?;
    let mut ids = watch.named().to_vec();
    if watch.needs_list() {
        if !may_exist(&config.store) {
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

/// Returns the resources that are polled on a schedule.
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
