//! The page that compares tokens.

use axum::extract::{Extension, State};
use axum::http::Uri;
use axum::response::Html;

use crate::http::HttpDeps;
use crate::http::access::Visitor;
use crate::http::error::{PageResult, WebError};
use crate::ui::compare::{self, ComparedBy, ComparedToken, MAX_TOKENS};
use crate::ui::page::{PageFrame, Section};
use daemon::token_names::find_token;
use model::{TokenId, TokenSupply};

/// `GET /compare?token=…&token=…&by=month&of=circulating`. A token is a slug or a ticker; empty and repeated ones are left out.
pub(super) async fn show(State(deps): State<HttpDeps>, Extension(visitor): Extension<Visitor>, uri: Uri) -> PageResult {
    let now = deps.app.clock.now();
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let has = |name: &str, value: &str| pairs.iter().any(|(key, text)| key == name && text == value);
    let by = ComparedBy { is_monthly: has("by", "month"), is_of_circulating: has("of", "circulating") };
    let texts = pairs.iter().filter(|(name, _)| name == "token").flat_map(|(_, text)| text.split(',')).map(str::trim);
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    if texts.len() > MAX_TOKENS {
        return Err(WebError::invalid_parameter(format!("token: at most {MAX_TOKENS} tokens can be compared")));
    }
    let mut ids: Vec<TokenId> = Vec::new();
    for text in texts {
        let id = find_token(&deps.app.store, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let windows = compare::windows(by, now);
    let mut tokens = Vec::new();
    for id in ids {
        // Without records: the supply is read from its own table.
        let Some(snapshot) = deps.app.store.tokens(vec![id.clone()], Vec::new()).await?.pop() else { continue };
        let supply = deps.app.store.token_supply(id, now, windows.clone()).await?;
        tokens.push(ComparedToken { snapshot, supply: supply.unwrap_or_else(|| TokenSupply::unread(windows.len())) });
    }
    let stale_price = deps.app.live.load().config.source.stale_price.delta();
    let frame = PageFrame::of(Section::Tokens, now).for_visitor(&visitor);
    Ok(Html(compare::page(&tokens, by, stale_price, now, &frame)))
}
