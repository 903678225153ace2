//! Finds the tokens, groups, rules, and receivers that a path or a parameter names. An unknown name is an error, never an empty list.

use super::HttpDeps;
use super::error::WebError;
use super::error_code::ErrorCode;
use super::parameters::{GROUP, RECEIVER, RULE, TOKEN, TOKENS};
use super::query::ListQuery;
use daemon::live::LiveConfig;
use daemon::token_names::find_token;
use model::{OutboxFilter, ReceiverName, RuleId, SOURCE_TROUBLE, TokenId};

/// The maximum number of tokens, groups, or rules in one request.
const MAX_NAMES: usize = 1000;

/// Returns the token of the parameter `token`: a slug or a ticker.
pub(super) async fn token(deps: &HttpDeps, query: &ListQuery) -> Result<Option<TokenId>, WebError> {
    match query.text(TOKEN) {
        None => Ok(None),
        Some(text) => Ok(Some(find_token(&deps.app.store, text).await?)),
    }
}

/// Returns the tokens of the parameter `token`, a comma-separated list of slugs and tickers, without duplicates.
pub(super) async fn tokens(deps: &HttpDeps, query: &ListQuery) -> Result<Vec<TokenId>, WebError> {
    let texts = query.items(TOKENS, |word| Some(word.to_owned()))?;
    check_count(texts.len())?;
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    // Most names are slugs, and one query finds them all.
    let slugs = deps.app.store.known_tokens(texts.iter().map(|text| TokenId::from(text.as_str())).collect()).await?;
    let mut tokens = Vec::with_capacity(texts.len());
    for text in texts {
        let slug = TokenId::from(text.as_str());
        let id = if slugs.contains(&slug) { slug } else { find_token(&deps.app.store, &text).await? };
        if !tokens.contains(&id) {
            tokens.push(id);
        }
    }
    Ok(tokens)
}

/// Returns the groups of a comma-separated list.
pub(super) fn groups(query: &ListQuery, live: &LiveConfig) -> Result<Vec<String>, WebError> {
    let groups = query.items(GROUP, |word| Some(word.trim_start_matches('@').to_owned()))?;
    check_count(groups.len())?;
    match groups.iter().find(|group| !live.watch.has_group(group)) {
        Some(unknown) => {
            let message = format!("[watch.groups] has no group {unknown:?}");
            let known = live.watch.groups();
            Err(WebError::unknown_name(ErrorCode::UnknownGroup, message, unknown, known))
        }
        None => Ok(groups),
    }
}

/// Returns the rule of the parameter `rule`, by name or id. A rule that is no longer active is known as long as it has alerts.
pub(super) async fn rule_of_alerts(deps: &HttpDeps, query: &ListQuery) -> Result<Option<RuleId>, WebError> {
    let Some(text) = query.text(RULE) else { return Ok(None) };
    let (live, rule) = (deps.app.live.load_full(), RuleId::from(text));
    let is_active = |name: &str| live.active.rules.rules.iter().any(|rule| rule.name == name || rule.id.as_str() == name);
    if text == SOURCE_TROUBLE || is_active(text) {
        return Ok(Some(rule));
    }
    match deps.app.store.has_alerts_of(rule.clone()).await? {
        true => Ok(Some(rule)),
        false => Err(unknown_rule(&live, text)),
    }
}

/// Returns the error for a name that is not the name or id of an active rule.
pub(super) fn unknown_rule(live: &LiveConfig, name: &str) -> WebError {
    let known = live.active.rules.rules.iter().map(|rule| rule.name.as_str());
    WebError::unknown_name(ErrorCode::UnknownRule, format!("no active rule is named {name:?}"), name, known)
}

/// Returns the receiver of the parameter `receiver`. One that has left the config is known as long as it has deliveries.
pub(super) async fn receiver(deps: &HttpDeps, query: &ListQuery) -> Result<Option<ReceiverName>, WebError> {
    let Some(text) = query.text(RECEIVER) else { return Ok(None) };
    let (live, receiver) = (deps.app.live.load_full(), ReceiverName::from(text));
    let known = || live.config.receivers.iter().map(|receiver| receiver.name.as_str());
    if known().any(|name| name == text) {
        return Ok(Some(receiver));
    }
    let filter = OutboxFilter { receiver: Some(receiver.clone()), limit: 1, ..OutboxFilter::default() };
    if deps.app.store.outbox(filter).await?.is_empty() {
        let message = format!("the config has no receiver {text:?}");
        return Err(WebError::unknown_name(ErrorCode::UnknownReceiver, message, text, known()));
    }
    Ok(Some(receiver))
}

pub(super) fn check_count(names: usize) -> Result<(), WebError> {
    if names > MAX_NAMES {
        return Err(WebError::invalid_parameter(format!("too many names: at most {MAX_NAMES} are allowed")));
    }
    Ok(())
}
