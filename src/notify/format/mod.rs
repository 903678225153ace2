//! The formats of webhook receivers: what each service is sent, and what it means by its answer. Pure.
//!
//! The cast: [`FORMATS`] is the table of them, a row each; beside it lies a file for each, which knows the service's limits and how
//! its text is escaped, as its public documentation has them. The config check, the schema, the pace and the sender all read the
//! table, so a new format is a row and a file. A [`WebhookFormat`] is one with its own settings, which has what it needs.
//!
//! The path: [`FormatSpec::read`] makes a [`WebhookFormat`] of a receiver's config; [`WebhookFormat::requests`] makes of a delivery the
//! requests that tell it, most often one; [`FormatSpec::outcome`] reads an answer, since some services say 200 and mean no.
//!
//! The promises: a message is never refused for its length, what is cut is counted; no text from outside mentions people, adds a
//! link or breaks the markup; a state (an incident, an alert elsewhere) is opened and closed under one key.

mod alertmanager;
mod alertmanager_api;
mod apprise;
mod cliffwatch;
mod discord;
mod fit;
mod googlechat;
mod gotify;
mod key;
mod marked;
mod matrix;
mod mattermost;
mod ntfy;
mod opsgenie;
mod pagerduty;
mod pushover;
mod request;
mod rocketchat;
mod slack;
mod teams;
mod telegram;
mod template;
mod twilio;
mod zulip;

use std::time::Duration;

use chrono::TimeDelta;

use super::{KeyProblem, card::Brief, credentials::Credentials, retry::Outcome};
use model::config;

pub use key::{Credential, FormatKey, FormatKeyValue, format_keys};
pub use request::{RequestError, WebhookRequest};
pub use template::BodyTemplate;

/// Longest wait that a service can ask for in the body of an answer, seconds.
const MAX_ASKED_SECS: f64 = 86_400.0;

/// The text that stands under a key of a config, where there is one.
pub type TextOfKey<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// A row of the table of formats.
#[derive(Debug)]
pub struct FormatSpec {
    /// The word in the config.
    pub name: &'static str,
    /// Where the service is, unless the config says otherwise. None where each user has an address of their own.
    pub address: Option<&'static str>,
    /// The keys of the config that it takes, beside those that every webhook takes.
    pub keys: &'static [FormatKey],
    /// What the service takes: so many requests at once, and one more after each pause.
    pub pace: Option<(u32, Duration)>,
    read: fn(&config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem>,
    check: fn(&TextOfKey<'_>) -> Result<(), KeyProblem>,
    outcome: fn(Outcome, &str) -> (Outcome, Option<String>),
}

/// What the file of a format brings, beside its row of the table.
trait FormatSettings: Sized {
    /// Takes its own settings from a receiver's config, which has every key that its row asks for.
    fn read(receiver: &config::ReceiverSettings) -> Result<Self, KeyProblem>;

    /// Checks what stands in a config, by key, before any file is read.
    fn check(_text_of: &TextOfKey<'_>) -> Result<(), KeyProblem> {
        Ok(())
    }

    /// The secrets that it uses in a way of its own.
    fn credentials(&self) -> Vec<Credential> {
        Vec::new()
    }

    /// The requests that tell `brief`, in their order.
    fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError>;

    /// What the service means by its answer, where its status alone does not tell, and a word on it.
    fn outcome(by_status: Outcome, _body: &str) -> (Outcome, Option<String>) {
        (by_status, None)
    }
}

/// What a format is given for one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The receiver's secrets.
    pub credentials: &'a Credentials,
    /// Whether the receiver's address has a path: a service whose address was given in full gets no second one.
    pub has_path: bool,
}

impl Given<'_> {
    /// The path of the service's own, unless the address has one.
    fn path_unless_given(&self, segments: &[&str]) -> Vec<String> {
        if self.has_path { Vec::new() } else { segments.iter().map(|segment| (*segment).to_owned()).collect() }
    }
}

macro_rules! formats {
    ($($(#[$about:meta])* $variant:ident($settings:ty) { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// A format with its own settings: it has what it needs.
        #[derive(Debug)]
        pub enum WebhookFormat {
            $($(#[$about])* $variant($settings),)+
        }

        /// The table of formats, in the order in which people are shown their names.
        pub const FORMATS: &[FormatSpec] = &[$(FormatSpec {
            $($field: $value,)+
            read: |receiver| <$settings as FormatSettings>::read(receiver).map(WebhookFormat::$variant),
            check: <$settings as FormatSettings>::check,
            outcome: <$settings as FormatSettings>::outcome,
        }),+];

        impl WebhookFormat {
            /// The secrets that it uses in a way of its own.
            pub fn credentials(&self) -> Vec<Credential> {
                match self { $(WebhookFormat::$variant(settings) => settings.credentials(),)+ }
            }

            fn requests_of_any(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
                match self { $(WebhookFormat::$variant(settings) => settings.requests(brief, given),)+ }
            }
        }
    };
}

formats! {
    /// Our own.
    Cliffwatch(cliffwatch::Cliffwatch) {
        name: "cliffwatch", address: None, keys: &[FormatKey::SIGNING, FormatKey::BEARER], pace: None,
    }
    /// What Alertmanager sends to webhooks, version 4.
    Alertmanager(alertmanager::Alertmanager) {
        name: "alertmanager", address: None, keys: &[FormatKey::SIGNING, FormatKey::BEARER], pace: None,
    }
    /// Alertmanager itself: `/api/v2/alerts`.
    AlertmanagerApi(alertmanager_api::AlertmanagerApi) {
        name: "alertmanager-api", address: None, keys: &[FormatKey::BEARER], pace: None,
    }
    /// Slack's incoming webhooks, and those who speak like them.
    Slack(slack::Slack) {
        name: "slack", address: None, keys: &[], pace: Some((5, Duration::from_secs(1))),
    }
    /// Discord's webhooks: thirty requests a minute to a channel.
    Discord(discord::Discord) {
        name: "discord", address: None, keys: &[], pace: Some((5, Duration::from_secs(2))),
    }
    /// Telegram's bots: twenty requests a minute to a group.
    Telegram(telegram::Telegram) {
        name: "telegram", address: Some("https://api.telegram.org"), keys: telegram::KEYS, pace: Some((5, Duration::from_secs(3))),
    }
    /// Microsoft Teams: four requests a second.
    Teams(teams::Teams) {
        name: "teams", address: None, keys: &[], pace: Some((4, Duration::from_millis(250))),
    }
    /// PagerDuty's events: a hundred and twenty requests a minute to an integration.
    PagerDuty(pagerduty::PagerDuty) {
        name: "pagerduty", address: Some("https://events.pagerduty.com"), keys: pagerduty::KEYS,
        pace: Some((60, Duration::from_millis(500))),
    }
    /// Opsgenie's alert API.
    Opsgenie(opsgenie::Opsgenie) {
        name: "opsgenie", address: Some("https://api.opsgenie.com"), keys: opsgenie::KEYS, pace: None,
    }
    /// ntfy, here or elsewhere: sixty requests at once, then one every five seconds.
    Ntfy(ntfy::Ntfy) {
        name: "ntfy", address: Some("https://ntfy.sh"), keys: ntfy::KEYS, pace: Some((60, Duration::from_secs(5))),
    }
    /// Mattermost's incoming webhooks.
    Mattermost(mattermost::Mattermost) {
        name: "mattermost", address: None, keys: &[], pace: Some((10, Duration::from_secs(1))),
    }
    /// Rocket.Chat's incoming webhooks.
    RocketChat(rocketchat::RocketChat) {
        name: "rocketchat", address: None, keys: &[], pace: Some((10, Duration::from_secs(1))),
    }
    /// Google Chat: a request a second to a space.
    GoogleChat(googlechat::GoogleChat) {
        name: "googlechat", address: None, keys: &[], pace: Some((1, Duration::from_secs(1))),
    }
    /// A Matrix room.
    Matrix(matrix::Matrix) {
        name: "matrix", address: None, keys: matrix::KEYS, pace: Some((5, Duration::from_secs(1))),
    }
    /// A Zulip channel.
    Zulip(zulip::Zulip) {
        name: "zulip", address: None, keys: zulip::KEYS, pace: Some((5, Duration::from_secs(1))),
    }
    /// Gotify.
    Gotify(gotify::Gotify) {
        name: "gotify", address: None, keys: gotify::KEYS, pace: None,
    }
    /// Pushover: two requests at once.
    Pushover(pushover::Pushover) {
        name: "pushover", address: Some("https://api.pushover.net"), keys: pushover::KEYS, pace: Some((2, Duration::from_millis(500))),
    }
    /// Text messages by Twilio: one a second from a number.
    Twilio(twilio::Twilio) {
        name: "twilio", address: Some("https://api.twilio.com"), keys: twilio::KEYS, pace: Some((1, Duration::from_secs(1))),
    }
    /// The Apprise gateway, which knows many more.
    Apprise(apprise::Apprise) {
        name: "apprise", address: None, keys: apprise::KEYS, pace: None,
    }
    /// A body of the operator's own.
    Template(template::OperatorTemplate) {
        name: "template", address: None, keys: template::KEYS, pace: None,
    }
}

/// The format of a receiver whose config names none.
pub const DEFAULT_FORMAT: &FormatSpec = &FORMATS[0];

/// The words of the config, in the order of [`FORMATS`].
pub const FORMAT_NAMES: [&str; FORMATS.len()] = {
    let mut names = [""; FORMATS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FORMATS[at].name;
        at += 1;
    }
    names
};

impl FormatSpec {
    pub fn named(word: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == word)
    }

    /// Whether a key of the config means anything to it. Keys that are of no format mean the same to all.
    pub fn takes(&self, key: &str) -> bool {
        self.keys.iter().any(|own| own.is_called(key)) || !format_keys().any(|known| known.is_called(key))
    }

    /// The key whose value is used in this way, where it takes one.
    pub fn key_for(&self, value: FormatKeyValue) -> Option<FormatKey> {
        self.keys.iter().find(|key| key.value == value).copied()
    }

    /// Whether its requests carry the headers of Standard Webhooks.
    pub fn is_signed(&self) -> bool {
        self.key_for(FormatKeyValue::SigningSecrets).is_some()
    }

    /// The format with the settings of `receiver`, which has every key that is needed. Reads the files that are read once.
    pub fn read(&self, receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
        (self.read)(receiver)
    }

    /// Checks what stands in a config, by key, before any file is read.
    pub fn check(&self, text_of: &TextOfKey<'_>) -> Result<(), KeyProblem> {
        (self.check)(text_of)
    }

    /// What the service means by its answer, and a word on it where its own text is not enough.
    pub fn outcome(&self, status: u16, retry_after: Option<TimeDelta>, body: &str) -> (Outcome, Option<String>) {
        (self.outcome)(Outcome::of_http_status(status, retry_after), body)
    }
}

impl WebhookFormat {
    /// The requests that tell `brief`, in their order.
    /// Fails where there is nothing to tell, or something to tell it with is missing.
    pub fn requests(&self, brief: &Brief<'_>, given: &Given<'_>) -> Result<Vec<WebhookRequest>, RequestError> {
        if brief.notifications().is_empty() {
            return Err(RequestError::Nothing);
        }
        self.requests_of_any(brief, given)
    }
}

/// Seconds that a service asks to wait, as a span within bounds.
fn asked_wait(seconds: f64) -> Option<TimeDelta> {
    #[expect(clippy::cast_possible_truncation, reason = "within bounds")]
    (seconds.is_finite() && seconds >= 0.0).then(|| TimeDelta::milliseconds((seconds.min(MAX_ASKED_SECS) * 1000.0).ceil() as i64))
}

/// `outcome`, put off as the body asks where no header did.
fn put_off(outcome: Outcome, seconds: Option<f64>) -> Outcome {
    match outcome {
        Outcome::Later { retry_after: None } => Outcome::Later { retry_after: seconds.and_then(asked_wait) },
        other => other,
    }
}

#[cfg(test)]
mod tests;
