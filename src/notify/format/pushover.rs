//! Pushover: a message to a phone.
//!
//! Limits (*Message API*): a message of 1,024 characters, a title of 250, an address of 512. It shows plain text. 429 says that the
//! application's messages of the month are used up.

use serde_json::{Value, json};

use super::marked::{MarkedText, Marks, Room, chars, marked};
use super::{Credential, FormatKey, FormatKeyValue, FormatSettings, Given, KeyProblem, RequestError, WebhookRequest};
use crate::card::{Brief, Tone};
use crate::retry::Outcome;
use model::config;

/// The application's token.
const TOKEN: FormatKey = FormatKey::secret("token", "token_file", FormatKeyValue::OwnSecret);
/// The key of a user or group.
const USER_KEY: FormatKey = FormatKey::secret("user_key", "user_key_file", FormatKeyValue::OwnSecret);

pub(super) const KEYS: &[FormatKey] = &[TOKEN.needed(), USER_KEY.needed()];

const ROOM: Room = Room { title_chars: 250, text: 1_000, size: chars };

const MAX_URL_CHARS: usize = 512;

/// Who sends, and whose phone rings.
#[derive(Debug)]
pub struct Pushover {
    token: Credential,
    user_key: Credential,
}

impl FormatSettings for Pushover {
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem> {
        Ok(Self { token: TOKEN.credential(receiver), user_key: USER_KEY.credential(receiver) })
    }

    fn credentials(&self) -> Vec<Credential> {
        vec![self.token.clone(), self.user_key.clone()]
    }

    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        let (token, user) = (given.credentials.need(&self.token)?, given.credentials.need(&self.user_key)?);
        let path = given.path_unless_given(&["1", "messages.json"]);
        Ok(vec![WebhookRequest { path, ..WebhookRequest::json(&body(brief, token, user))? }])
    }

    fn outcome(by_status: Outcome, body: &str) -> (Outcome, Option<String>) {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        match (by_status, parsed.get("status").and_then(Value::as_i64)) {
            (Outcome::Accepted, Some(1)) => (Outcome::Accepted, None),
            (Outcome::Accepted, _) => (Outcome::Refused, Some("this is no answer of Pushover that says yes".to_owned())),
            (other, _) => (other, None),
        }
    }
}

fn body(brief: &Brief<'_>, token: &str, user: &str) -> Value {
    let MarkedText { title, text } = marked(brief, &Marks::PLAIN_WITHOUT_LINKS, &ROOM);
    // 1 rings through quiet hours; 2, which rings until somebody answers, is for a pager.
    let priority = match brief.tone() {
        Tone::Critical => 1,
        Tone::Warning | Tone::Info => 0,
        Tone::Good => -1,
    };
    let mut body = json!({"token": token, "user": user, "title": title, "message": text, "priority": priority});
    let page = brief.page_of_all().filter(|url| chars(url) <= MAX_URL_CHARS);
    if let (Some(url), Some(body)) = (page, body.as_object_mut()) {
        body.extend([("url".to_owned(), url.into()), ("url_title".to_owned(), brief.words_of_page().into())]);
    }
    body
}
