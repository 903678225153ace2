//! The active rules, as the page and `/api/v1/rules` show them.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::HttpDeps;
use model::{AlertFilter, AlertState, LineIndex, RuleId, Timestamp};
use rules::{On, Rule};
use store::StoreError;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleView {
    pub id: String,
    /// The key `alert` of the rule.
    pub name: String,
    /// The resource or change that the rule subscribes to, as in the rule file.
    pub on: String,
    /// The effect of the rule in one sentence.
    pub sentence: String,
    pub file: String,
    /// The line of the rule's name, from 1.
    pub line: Option<usize>,
    /// Lead times, as in the rule file.
    pub within: Vec<String>,
    /// Empty if routing selects the receivers.
    pub receivers: Vec<String>,
    pub owner: Option<String>,
    pub expires: Option<Timestamp>,
    /// Whether the rule is disabled because `expires` has passed.
    pub is_expired: bool,
    /// The time of the last match. `None` if the rule never matched.
    pub last_match: Option<Timestamp>,
    /// The numbers of pending and firing alerts.
    pub pending: u64,
    pub firing: u64,
}

/// Returns the active rules, in the order of their files.
pub(super) async fn rule_views(deps: &HttpDeps) -> Result<Vec<RuleView>, StoreError> {
    let now = deps.app.clock.now();
    let mut matches: HashMap<RuleId, Timestamp> = deps.app.store.rule_matches().await?.into_iter().collect();
    let open = deps.app.store.open_by_rule().await?;
    let texts = deps.app.readiness.texts();
    let lines: HashMap<_, _> = texts.iter().map(|source| (source.file.as_path(), LineIndex::of(&source.text))).collect();
    let live = deps.app.live.load_full();
    for rule in live.active.rules.rules.iter().filter(|rule| rule.on == On::Source) {
        // The self-monitor raises source alerts without evaluating the rule, so the last match is the latest alert with its name.
        let filter = AlertFilter { rule: Some(RuleId::from(rule.name.as_str())), limit: 1, ..AlertFilter::default() };
        let last = deps.app.store.alerts(filter).await?.pop().map(|alert| alert.updated_at);
        matches.extend(last.map(|at| (rule.id.clone(), at)));
    }
    let count = |rule: &Rule, state| {
        let counts = open.iter().filter(|(id, of, _)| *id == rule.id && *of == state);
        counts.map(|(_, _, count)| count).sum()
    };
    let view = |rule: &Rule| RuleView {
        id: rule.id.to_string(),
        name: rule.name.clone(),
        on: rule.on.to_string(),
        sentence: rule.sentence(),
        file: display_path(&rule.location.file),
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

/// Returns a path without the leading `./` that a config in the current folder adds.
fn display_path(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// Returns the effect of a rule in one sentence. `None` if no active rule has this name or id.
pub(super) fn rule_sentence(deps: &HttpDeps, name: &str) -> Option<String> {
    let live = deps.app.live.load_full();
    live.active.rules.rules.iter().find(|rule| rule.name == name || rule.id.as_str() == name).map(Rule::sentence)
}

/// Returns the text of a rule in its file. `None` if no active rule has this name or id.
pub(super) fn rule_text(deps: &HttpDeps, name: &str) -> Option<String> {
    let live = deps.app.live.load_full();
    let rule = live.active.rules.rules.iter().find(|rule| rule.name == name || rule.id.as_str() == name)?;
    let texts = deps.app.readiness.texts();
    let source = texts.iter().find(|source| *source.file == *rule.location.file)?;
    Some(excerpt(&source.text, rule.location.span.start))
}

/// Returns the `[[rule]]` table around a byte offset, without the comment above the next table.
fn excerpt(text: &str, offset: usize) -> String {
    let table = rules::rule_table_at(text, offset).unwrap_or(text);
    let lines: Vec<&str> = table.lines().collect();
    let is_blank_or_comment = |line: &&&str| line.trim().is_empty() || line.starts_with('#');
    let count = lines.len() - lines.iter().rev().take_while(is_blank_or_comment).count();
    let mut excerpt = lines.into_iter().take(count).collect::<Vec<_>>().join("\n");
    excerpt.push('\n');
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_ends_before_the_comment_of_the_next_rule() {
        let text = "# About A.\n[[rule]]\nalert = \"A\"\n[rule.labels]\nx = \"y\"\n\n# About B,\n# in two lines.\n[[rule]]\nalert = \"B\"\n";
        let at = |word: &str| text.find(word).expect("it is there");
        assert_eq!(excerpt(text, at("\"A\"")), "[[rule]]\nalert = \"A\"\n[rule.labels]\nx = \"y\"\n");
        assert_eq!(excerpt(text, at("\"B\"")), "[[rule]]\nalert = \"B\"\n");
        assert_eq!(excerpt("", 99), "\n");
    }
}
