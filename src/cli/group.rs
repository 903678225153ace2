//! Groups of `[watch.groups]` and globs on the command line. One that selects nothing by mistake is an error, never an empty list.

use globset::Glob;

use super::UsageError;
use super::invocation::watch_of;
use model::config::Config;
use model::{GroupMembers, TokenId, closest};
use store::Store;

/// Returns the slugs and globs of a group.
///
/// # Errors
///
/// Fails with a usage error if the group is not in the config.
pub(super) fn group_patterns<'c>(name: &str, config: &'c Config) -> Result<&'c [String], UsageError> {
    let groups = &config.watch.groups;
    groups.get(name).map(Vec::as_slice).ok_or_else(|| {
        let near = closest(name, groups.keys().map(String::as_str)).map(|near| format!("; did you mean @{near}?"));
        UsageError(format!("unknown group {name:?}{}", near.unwrap_or_default()))
    })
}

/// Returns whether a word is a glob over slugs.
pub(super) fn is_glob(word: &str) -> bool {
    word.contains(['*', '?', '[', '{'])
}

/// Checks that a glob matches a known token. Without known tokens, it may match one later.
///
/// # Errors
///
/// Fails with a usage error if the glob is not valid or matches no token.
pub(super) fn check_glob<'t>(word: &str, known: impl IntoIterator<Item = &'t TokenId>) -> Result<(), UsageError> {
    let glob = Glob::new(word).map_err(|error| UsageError(format!("{word:?} is not a valid glob: {}", error.kind())))?;
    let glob = glob.compile_matcher();
    let mut known = known.into_iter().peekable();
    if known.peek().is_none() || known.any(|id| glob.is_match(id.as_str())) {
        return Ok(());
    }
    Err(UsageError(format!("no token matches {word:?}: globs match slugs, such as \"apt*\"")))
}

/// Returns the members of groups. `None` without a group.
///
/// # Errors
///
/// Fails with a usage error if a group is not in the config.
pub(super) async fn members(groups: &[String], config: &Config, store: &Store) -> anyhow::Result<Option<GroupMembers>> {
    if groups.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = groups.iter().map(|name| name.trim().trim_start_matches('@').to_owned()).collect();
    for name in &names {
        group_patterns(name, config)?;
    }
    let patterns: Vec<String> = names.iter().map(|name| format!("@{name}")).collect();
    let watch = watch_of(&config.watch).map_err(anyhow::Error::msg)?;
    let watch = watch.narrowed(&patterns).map_err(|(_, problem, _)| UsageError(problem))?;
    let tokens: Vec<TokenId> = store.token_ids(false).await?.into_iter().filter(|id| watch.covers(id)).collect();
    Ok(Some(GroupMembers { names, tokens }))
}
