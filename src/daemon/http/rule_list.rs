//! The rules at work, as the page and `/api/rules` show them.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::HttpDeps;
use model::{AlertFilter, AlertState, LineIndex, RuleId, Timestamp};
use rules::{On, Rule};
use store::StoreError;

/// One rule at work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleView {
    pub id: String,
    /// Its `alert` name.
    pub name: String,
    /// What it listens to, as rule files write it.
    pub on: String,
    /// Its file, with the line of its name, from 1.
    pub file: String,
    pub line: Option<usize>,
    /// Its lead times, as rule files write them.
    pub within: Vec<String>,
    /// Receivers that it names; empty where the routes decide.
    pub receivers: Vec<String>,
    pub owner: Option<String>,
    pub expires: Option<Timestamp>,
    /// Whether it rests since its `expires` has passed.
    pub is_expired: bool,
    /// When it last held for anything; null where it never did.
    pub last_match: Option<Timestamp>,
    /// Alerts of it that are pending, and that fire.
    pub pending: u64,
    pub firing: u64,
}

/// The rules at work, in the order of their files.
pub(super) async fn views(deps: &HttpDeps) -> Result<Vec<RuleView>, StoreError> {
    let now = deps.clock.now();
    let matches: HashMap<RuleId, Timestamp> = deps.store.rule_matches().await?.into_iter().collect();
    let open = deps.store.open_by_rule().await?;
    let texts = deps.readiness.texts();
    let lines: HashMap<_, _> = texts.iter().map(|source| (source.file.as_path(), LineIndex::of(&source.text))).collect();
    let live = deps.live.load_full();
    let mut matches = matches;
    for rule in live.active.rules.rules.iter().filter(|rule| rule.on == On::Source) {
        // Trouble is told whether a rule words it or not: what it matched is known by the alerts that bear its name.
        let filter = AlertFilter { rule: Some(RuleId::from(rule.name.as_str())), limit: 1, ..AlertFilter::default() };
        let last = deps.store.alerts(filter).await?.pop().map(|alert| alert.updated_at);
        matches.extend(last.map(|at| (rule.id.clone(), at)));
    }
    let count = |rule: &Rule, state| {
        let own = open.iter().filter(|(id, of, _)| *id == rule.id && *of == state);
        own.map(|(_, _, count)| count).sum()
    };
    let view = |rule: &Rule| RuleView {
        id: rule.id.to_string(),
        name: rule.name.clone(),
        on: rule.on.to_string(),
        file: shown(&rule.location.file),
        line: lines.get(&*rule.location.file).map(|lines| lines.line(rule.location.span.start)),
        within: rule.within.iter().map(|lead| lead.text.clone()).collect(),
        receivers: rule.receivers.iter().map(ToString::to_string).collect(),
        owner: rule.owner.clone(),
        expires: rule.expires,
        is_expired: rule.expires.is_some_and(|at| at <= now),
        last_match: matches.get(&rule.id).copied(),
        pending: count(rule, AlertState::Pending),
        firing: count(rule, AlertState::Firing),
    };
    Ok(live.active.rules.rules.iter().map(view).collect())
}

/// A path without the dot that a config in the present folder gives it.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// The text of one rule in its file: from its `[[rule]]` to that of the next, without the comment of the next.
pub(super) fn text_of(deps: &HttpDeps, name: &str) -> Option<String> {
    let live = deps.live.load_full();
    let rule = live.active.rules.rules.iter().find(|rule| rule.name == name || rule.id.as_str() == name)?;
    let texts = deps.readiness.texts();
    let source = texts.iter().find(|source| *source.file == *rule.location.file)?;
    Some(excerpt(&source.text, rule.location.span.start))
}

/// The table around a place.
fn excerpt(text: &str, place: usize) -> String {
    const HEAD: &str = "[[rule]]";
    let place = text.floor_char_boundary(place);
    let start = text.get(..place).and_then(|before| before.rfind(HEAD)).unwrap_or(0);
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.get(HEAD.len()..).and_then(|after| after.find("\n[[rule]]")).map_or(rest.len(), |end| HEAD.len() + end);
    let own = rest.get(..end).unwrap_or(rest);
    let lines: Vec<&str> = own.lines().collect();
    let is_aside = |line: &&&str| line.trim().is_empty() || line.starts_with('#');
    let kept = lines.len() - lines.iter().rev().take_while(is_aside).count();
    let mut excerpt = lines.into_iter().take(kept).collect::<Vec<_>>().join("\n");
    excerpt.push('\n');
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_rule_ends_before_the_next_and_its_comment() {
        let text = "# About A.\n[[rule]]\nalert = \"A\"\n[rule.labels]\nx = \"y\"\n\n# About B,\n# in two lines.\n[[rule]]\nalert = \"B\"\n";
        let at = |word: &str| text.find(word).expect("it is there");
        assert_eq!(excerpt(text, at("\"A\"")), "[[rule]]\nalert = \"A\"\n[rule.labels]\nx = \"y\"\n");
        assert_eq!(excerpt(text, at("\"B\"")), "[[rule]]\nalert = \"B\"\n");
        assert_eq!(excerpt("", 99), "\n");
    }
}
