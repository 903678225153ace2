//! Twilio: a text message to a phone.
//!
//! Limits (*Programmable Messaging: Message resource*): 1,600 characters per body, charged in segments of 70 to 160. The message has
//! about two segments: the title, the number of further alerts, and the link.

use std::time::Duration;

use super::marked::chars;
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, WebhookFormat, WebhookRequest};
use crate::card::{Brief, ShareStyle};
use crate::text;
use model::{config, phrase};

const ACCOUNT_SID: FormatKey =
    FormatKey { example: "AC0123456789abcdef0123456789abcdef", ..FormatKey::plain("account_sid", FormatKeyValue::Text) };
const AUTH_TOKEN: FormatKey = FormatKey::secret("auth_token", "auth_token_file", FormatKeyValue::OwnSecret);
/// A phone number of the account, or a messaging service (`MG…`).
const FROM_NUMBER: FormatKey = FormatKey { example: "+15005550006", ..FormatKey::plain("from_number", FormatKeyValue::Text) };
const TO_NUMBER: FormatKey = FormatKey { example: "+15005550009", ..FormatKey::plain("to_number", FormatKeyValue::Text) };

const MAX_TITLE_CHARS: usize = 160;
const MAX_BODY_CHARS: usize = 1_600;

/// One text message per second and phone number.
pub(super) const SPEC: FormatSpec = FormatSpec {
    address: Some("https://api.twilio.com"),
    keys: &[ACCOUNT_SID.needed(), AUTH_TOKEN.needed(), FROM_NUMBER.needed(), TO_NUMBER.needed()],
    pace: Some((1, Duration::from_secs(1))),
    ..FormatSpec::new("twilio", read)
};

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let text = |key: FormatKey| receiver.format_text(key.name).unwrap_or_default().to_owned();
    let is_number = |text: &str| text.strip_prefix('+').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let (account, from, to) = (text(ACCOUNT_SID), text(FROM_NUMBER), text(TO_NUMBER));
    if !is_number(&to) {
        return Err(KeyProblem::wrong(TO_NUMBER.name, "not a valid E.164 phone number; example: \"+15005550009\""));
    }
    if !account.starts_with("AC") || !account.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(KeyProblem::wrong(ACCOUNT_SID.name, "not a valid account SID, which begins with `AC`"));
    }
    Ok(WebhookFormat::new(move |brief, input| {
        let from_key = if from.starts_with("MG") { "MessagingServiceSid" } else { "From" };
        let body = body(brief);
        let form = [("To", to.as_str()), (from_key, from.as_str()), ("Body", body.as_str())];
        let path = input.default_path(&["2010-04-01", "Accounts", &account, "Messages.json"]);
        let authorization = Some(WebhookRequest::basic(&account, input.secret(AUTH_TOKEN)?));
        Ok(vec![WebhookRequest { path, authorization, ..WebhookRequest::form(&form) }])
    }))
}

fn body(brief: &Brief<'_>) -> String {
    let title = brief.title(ShareStyle::Short, MAX_TITLE_CHARS);
    let rest = if brief.is_single() { None } else { brief.rest_count(brief.count().saturating_sub(1)) };
    let prices = brief.entries().first().and_then(|entry| phrase::stale_prices_of(&entry.strongest.body));
    let prices = prices.map(|prices| phrase::capitalized(&prices));
    let page = brief.page_of_all().filter(|url| chars(url) <= MAX_BODY_CHARS / 2);
    let lines: Vec<String> = [Some(title), prices, rest, page].into_iter().flatten().collect();
    text::paragraph(&lines.join("\n"), MAX_BODY_CHARS)
}
