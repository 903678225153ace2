//! Twilio: a text message to a phone.
//!
//! Limits (*Programmable Messaging: Message resource*): a body of 1,600 characters, which is charged by parts of 70 to 160. So one is
//! sent what fits into about two parts: the title, how many more there are, and the page.

use super::marked::chars;
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, ShareStyle};
use crate::text;
use model::config;

const ACCOUNT_SID: FormatKey =
    FormatKey { example: "AC0123456789abcdef0123456789abcdef", ..FormatKey::plain("account_sid", FormatKeyValue::Text) };
const AUTH_TOKEN: FormatKey = FormatKey::secret("auth_token", "auth_token_file", FormatKeyValue::OwnSecret);
/// A number of one's own, or a messaging service (`MG…`).
const FROM_NUMBER: FormatKey = FormatKey { example: "+15005550006", ..FormatKey::plain("from_number", FormatKeyValue::Text) };
const TO_NUMBER: FormatKey = FormatKey { example: "+15005550009", ..FormatKey::plain("to_number", FormatKeyValue::Text) };

pub(super) const KEYS: &[FormatKey] = &[ACCOUNT_SID.needed(), AUTH_TOKEN.needed(), FROM_NUMBER.needed(), TO_NUMBER.needed()];

/// Of the title.
const MAX_TITLE_CHARS: usize = 160;

/// Of everything.
const MAX_BODY_CHARS: usize = 1_600;

/// An account, its number, and whose phone it is.
#[derive(Debug)]
pub struct Twilio {
    account: String,
    auth_token: Credential,
    from: String,
    to: String,
}

impl FormatSettings for Twilio {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        let text = |key: FormatKey| receiver.format_text(key.name).unwrap_or_default().to_owned();
        let is_number =
            |text: &str| text.strip_prefix('+').is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let (account, from, to) = (text(ACCOUNT_SID), text(FROM_NUMBER), text(TO_NUMBER));
        if !is_number(&to) {
            return Err(KeyProblem::wrong(TO_NUMBER.name, "it must be a number as E.164 has it, such as \"+15005550009\""));
        }
        if !account.starts_with("AC") || !account.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(KeyProblem::wrong(ACCOUNT_SID.name, "it must be the id of an account, which begins with `AC`"));
        }
        Ok(Self { account, auth_token: AUTH_TOKEN.credential(receiver), from, to })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.auth_token.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let from = if self.from.starts_with("MG") { "MessagingServiceSid" } else { "From" };
        let body = body(brief);
        let form = [("To", self.to.as_str()), (from, self.from.as_str()), ("Body", body.as_str())];
        let path = given.path_unless_given(&["2010-04-01", "Accounts", &self.account, "Messages.json"]);
        let authorization = Some(WebhookRequest::basic(&self.account, given.credentials.need(&self.auth_token)?));
        Ok(vec![WebhookRequest { path, authorization, ..WebhookRequest::form(&form) }])
    }
}

fn body(brief: &Brief<'_>) -> String {
    let title = brief.title(ShareStyle::Short, MAX_TITLE_CHARS);
    let rest = if brief.is_single() { String::new() } else { brief.rest_words(brief.count().saturating_sub(1)) };
    let page = brief.page_of_all().filter(|url| chars(url) <= MAX_BODY_CHARS / 2).unwrap_or_default();
    let lines: Vec<String> = [title, rest, page].into_iter().filter(|line| !line.is_empty()).collect();
    text::paragraph(&lines.join("\n"), MAX_BODY_CHARS)
}
