//! The configuration as plain data: sections, keys, units. Reading and checking it is in [`load`]; the built-in defaults, with a
//! comment for each key, are in `config/default.toml`.

pub mod load;

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

/// Everything that an operator can set.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The API.
    pub source: Source,
    /// Which tokens.
    pub watch: Watch,
    /// When to ask.
    pub schedule: Schedule,
    /// How much to ask.
    pub budget: Budget,
    /// The database.
    pub store: Store,
    /// The rule files.
    pub rules: Rules,
    /// Our own HTTP.
    pub http: Http,
    /// The snapshot for others.
    pub mirror: Mirror,
    /// How deliveries are tried.
    pub delivery: Delivery,
    /// The log.
    pub log: Log,
    /// Who is told.
    #[serde(default, rename = "receiver")]
    pub receivers: Vec<Receiver>,
    /// Who is told what.
    #[serde(default)]
    pub route: Route,
    /// What goes without saying while something else fires.
    #[serde(default)]
    pub inhibit_rules: Vec<InhibitRule>,
    /// Named times of day and week that routes refer to.
    #[serde(default)]
    pub time_intervals: Vec<TimeIntervals>,
}

/// `[source]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Base address; https unless loopback.
    pub base_url: String,
    /// Older base address, for weekly emission.
    pub legacy_base_url: String,
    /// The key. Better a file or a credential.
    #[serde(default)]
    pub api_key: Option<SecretText>,
    /// File with the key, read at use. Else the systemd credential `api-key` or `api_key`.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// `auto` or `v1` … `v5`.
    pub unlock_events: Version,
    /// `auto`, `v1` or `v5`.
    pub upcoming: Version,
    /// `auto` or `v1` … `v5`.
    pub token_list: Version,
    /// `auto`, `v1` or `v5`.
    pub burn: Version,
    /// `auto`, `v1` or `v5`.
    pub buyback: Version,
    /// `auto`, `v1`, `v2` or `v5`.
    pub daily_emission: Version,
    /// `auto`, `v1`, `v2` or `v3`.
    pub weekly_emission: Version,
    /// `auto`, `v1`, `v2` or `v5`.
    pub allocations: Version,
    /// `auto`, `v1` or `v5`.
    pub investors: Version,
    /// For one whole request.
    pub timeout: Span,
    /// For connecting.
    pub connect_timeout: Span,
    /// For the longest silence while reading.
    pub read_timeout: Span,
    /// Our own pace.
    pub requests_per_minute: u32,
    /// Requests under way at once.
    pub concurrency: u32,
    /// Rows asked for on a page.
    pub page_size: u32,
    /// Largest answer, decoded.
    pub max_body: ByteSize,
    /// How far back `start` reaches.
    pub history: Span,
    /// How far ahead `end` reaches.
    pub horizon: Span,
    /// How far ahead the `upcoming` walk looks.
    pub upcoming_horizon: Span,
    /// A PEM file with a private certificate authority to trust beside the system's.
    #[serde(default)]
    pub tls_ca_file: Option<PathBuf>,
}

/// `[watch]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Slugs or globs; `*` needs the token list.
    pub tokens: Vec<String>,
    /// Named sets of slugs or globs.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
}

/// `[schedule]`: six-field cron patterns in `timezone`, or `off`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// IANA zone.
    pub timezone: String,
    pub token_list: String,
    pub upcoming: String,
    pub unlock_events: String,
    pub burn: String,
    pub buyback: String,
    pub allocations: String,
    pub daily_emission: String,
    pub weekly_emission: String,
    pub investors: String,
    /// When time-relative rules are evaluated.
    pub evaluate: String,
}

/// `[budget]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Credits that this program may spend in the API's period; none: what the API reports.
    #[serde(default)]
    pub monthly_credits: Option<u64>,
    /// Share kept for near events and retries.
    pub reserve: Percent,
    /// An event this near is read first, from the reserve too.
    pub near: Span,
}

/// `[store]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    /// The SQLite file.
    pub path: PathBuf,
    /// Complete answers without a record before it counts as removed.
    pub removal_confirmations: u32,
    /// Relative difference below which two amounts are equal.
    pub tolerance: f64,
    /// How long changes, old versions, resolved alerts and delivered messages are kept.
    pub retention: Span,
    /// How long each poll stays in the log.
    pub poll_log_retention: Span,
}

/// `[rules]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Globs, relative to the config file.
    pub paths: Vec<String>,
}

/// `[http]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Address and port; `off` for none.
    pub listen: String,
    /// How others reach us, for links in messages.
    #[serde(default)]
    pub external_url: Option<String>,
    /// Bearer token for what changes state, and for all once the address is not loopback.
    #[serde(default)]
    pub token: Option<SecretText>,
    /// File with the token. Else the systemd credential `http-token`.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Pinged after a full loop. A secret: it is an address that anyone could ping.
    #[serde(default)]
    pub dead_mans_switch: Option<SecretText>,
    /// File with that address.
    #[serde(default)]
    pub dead_mans_switch_file: Option<PathBuf>,
}

/// `[mirror]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mirror {
    /// Address and port; `off` for none.
    pub listen: String,
    /// Database of the keys that may ask; made by `cliffwatch keys add`. Without it no key is asked for.
    #[serde(default)]
    pub keys: Option<PathBuf>,
    /// Requests that one key may make in a minute; none for no bound.
    #[serde(default)]
    pub requests_per_minute: Option<u32>,
}

/// `[delivery]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// Waits before each attempt; after the last one a delivery is dead.
    pub retry: Vec<Span>,
    /// How far each wait is spread, up and down.
    pub jitter: Percent,
    /// Longest `Retry-After` that is honoured.
    pub max_retry_after: Span,
    /// For one whole attempt.
    pub timeout: Span,
    /// Deliveries under way at once for one receiver.
    pub concurrency: u32,
    /// Messages to one receiver in an hour; above it they become one summary.
    pub max_per_hour: u32,
}

/// `[log]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// `auto` (JSON unless a terminal reads), `human` or `json`.
    pub format: LogFormat,
    /// As `RUST_LOG` has it.
    pub level: String,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human on a terminal and under systemd, else JSON.
    Auto,
    /// For people.
    Human,
    /// One object a line.
    Json,
}

/// A `[[receiver]]`. Which keys it may have depends on its `type`; the check says so.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Receiver {
    /// Unique.
    pub name: String,
    /// `email` or `webhook`.
    #[serde(rename = "type")]
    pub kind: ReceiverKind,
    /// Webhook: address. A secret, since those who know it can post there.
    pub url: Option<SecretText>,
    /// Webhook: file with the address.
    pub url_file: Option<PathBuf>,
    /// Webhook: shape of the body; `cliffwatch` if not given.
    pub format: Option<String>,
    /// Webhook: signing secret of Standard Webhooks (`whsec_…` or plain text).
    pub secret: Option<SecretText>,
    /// Webhook: file with the secret; several lines sign with each, for rotation.
    pub secret_file: Option<PathBuf>,
    /// Webhook: token of a Telegram bot, or bearer token.
    pub token: Option<SecretText>,
    /// Webhook: file with the token.
    pub token_file: Option<PathBuf>,
    /// PagerDuty: integration key.
    pub routing_key: Option<SecretText>,
    /// PagerDuty: file with the integration key.
    pub routing_key_file: Option<PathBuf>,
    /// Opsgenie: key of the API integration.
    pub api_key: Option<SecretText>,
    /// Opsgenie: file with the key.
    pub api_key_file: Option<PathBuf>,
    /// ntfy: topic. A secret where topics are not protected: those who know it can read it.
    pub topic: Option<SecretText>,
    /// ntfy: file with the topic.
    pub topic_file: Option<PathBuf>,
    /// Telegram: chat, `-1001234567890` or `@channel`.
    #[serde(deserialize_with = "text_or_number")]
    pub chat_id: Option<String>,
    /// Telegram: topic within the chat.
    pub thread_id: Option<i64>,
    /// Template: the body, a template over the facts of our own.
    pub template: Option<String>,
    /// Template: file with it.
    pub template_file: Option<PathBuf>,
    /// Template: type of the body; `application/json` if not given.
    pub content_type: Option<String>,
    /// Webhook: networks (CIDR) that may be reached although private.
    pub allow_networks: Vec<String>,
    /// Email: `smtp://host:port` (STARTTLS required off loopback) or `smtps://host:port`.
    pub smtp: Option<String>,
    /// Email: login name.
    pub username: Option<String>,
    /// Email: password.
    pub password: Option<SecretText>,
    /// Email: file with the password.
    pub password_file: Option<PathBuf>,
    /// Email: sender.
    pub from: Option<String>,
    /// Email: recipients.
    pub to: Vec<String>,
    /// PEM file with a private certificate authority to trust beside the system's.
    pub tls_ca_file: Option<PathBuf>,
    /// Whether the end of an alert is told; yes if not given.
    pub send_resolved: Option<bool>,
    /// Messages in an hour, instead of `[delivery] max_per_hour`.
    pub max_per_hour: Option<u32>,
    /// What is ahead and what changed, at a time of the day.
    pub digest: Option<Digest>,
}

/// `digest` of a `[[receiver]]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Digest {
    /// `HH:MM` in `timezone`.
    pub at: String,
    /// Days of the week, such as `mon` or `mon:fri`; every day if not given.
    pub days: Vec<String>,
    /// IANA zone; UTC if not given.
    pub timezone: Option<String>,
    /// How far it looks ahead; a week if not given.
    pub ahead: Option<Span>,
}

/// What a receiver is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiverKind {
    /// HTTP POST.
    #[default]
    Webhook,
    /// Mail by SMTP.
    Email,
}

/// `[route]`, and each of its `routes`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Route {
    /// `label="value"`, with `=`, `!=`, `=~`, `!~`; all must hold. The root has none.
    pub matchers: Vec<String>,
    /// Who is told; a child without any takes its parent's.
    pub receivers: Vec<String>,
    /// Root only: who hears of receivers that are dead.
    pub fallback: Vec<String>,
    /// Labels that make one group.
    pub group_by: Option<Vec<String>>,
    /// Wait for more before the first message of a group.
    pub group_wait: Option<Span>,
    /// Wait between messages of a group.
    pub group_interval: Option<Span>,
    /// Tell again what still fires.
    pub repeat_interval: Option<Span>,
    /// Not the root: told only within one of these `time_intervals`, else kept until then.
    pub active_time_intervals: Vec<String>,
    /// Not the root: kept until none of these `time_intervals` lasts.
    pub mute_time_intervals: Vec<String>,
    /// Go on to the next sibling after a match.
    #[serde(rename = "continue")]
    pub continue_: bool,
    /// Children, first match wins unless it says `continue`.
    pub routes: Vec<Route>,
}

/// One of `[[inhibit_rules]]`: while an alert fires that `source_matchers` take, those that `target_matchers` take are not told, as
/// far as both have the same values of the labels in `equal`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct InhibitRule {
    /// For people.
    pub name: Option<String>,
    /// What must fire.
    pub source_matchers: Vec<String>,
    /// What is then not told.
    pub target_matchers: Vec<String>,
    /// Labels that both must share; a missing one counts as empty.
    pub equal: Vec<String>,
}

/// One of `[[time_intervals]]`: a name for times.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeIntervals {
    /// Unique; routes refer to it.
    pub name: String,
    /// It lasts while one of these does.
    pub time_intervals: Vec<TimeInterval>,
}

/// A time that comes again: every key that is given must fit.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeInterval {
    /// Times of the day.
    pub times: Vec<TimeRange>,
    /// `monday`, `sat`, `mon:fri`.
    pub weekdays: Vec<String>,
    /// `1`, `1:5`, `-3:-1` (from the end of the month).
    pub days_of_month: Vec<String>,
    /// `january`, `3`, `june:august`.
    pub months: Vec<String>,
    /// `2026`, `2026:2028`.
    pub years: Vec<String>,
    /// IANA zone; UTC if not given.
    pub location: Option<String>,
}

/// From `start_time` to `end_time`, which is not part of it; both `HH:MM`, the latter up to `24:00`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeRange {
    /// Begin.
    pub start_time: String,
    /// End.
    pub end_time: String,
}

/// Which version of an endpoint to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The newest that the server has.
    Auto,
    /// This one.
    V(u8),
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "auto" => Ok(Version::Auto),
            "v1" => Ok(Version::V(1)),
            "v2" => Ok(Version::V(2)),
            "v3" => Ok(Version::V(3)),
            "v4" => Ok(Version::V(4)),
            "v5" => Ok(Version::V(5)),
            other => Err(serde::de::Error::custom(format!("{other:?} is no version: write \"auto\", or \"v1\" to \"v5\""))),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version::Auto => f.write_str("auto"),
            Version::V(version) => write!(f, "v{version}"),
        }
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is never shown. `Debug` and serialization print dots.
#[derive(Clone)]
pub struct SecretText(SecretString);

impl SecretText {
    /// Takes the text out, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"•••\"")
    }
}

impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("•••")
    }
}

impl<'de> Deserialize<'de> for SecretText {
    /// Takes numbers and booleans too: the environment guesses types, and a key of digits is still a key.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Lax {
            Text(String),
            Whole(i128),
            Real(f64),
            Bool(bool),
        }
        // The message must not repeat the value.
        let lax = Lax::deserialize(deserializer).map_err(|_| serde::de::Error::custom("this secret must be a text"))?;
        Ok(match lax {
            Lax::Text(text) => text,
            Lax::Whole(number) => number.to_string(),
            Lax::Real(number) => number.to_string(),
            Lax::Bool(value) => value.to_string(),
        }
        .into())
    }
}

/// A text that looks like a number to TOML or the environment.
fn text_or_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Lax {
        Text(String),
        Whole(i64),
    }
    Ok(Option::<Lax>::deserialize(deserializer)?.map(|lax| match lax {
        Lax::Text(text) => text,
        Lax::Whole(number) => number.to_string(),
    }))
}

/// A secret that may be given inline, as a file, or as a systemd credential: resolved at each use, so that it can rotate.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The config key, for messages: `source.api_key`.
    pub key: String,
    /// Given inline.
    pub inline: Option<SecretText>,
    /// Given as a file.
    pub file: Option<PathBuf>,
    /// Names of a systemd credential to look for.
    pub credentials: Vec<String>,
}

/// A secret that could not be read. Holds no part of it.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the secret {key} from {path}")]
pub struct SecretError {
    key: String,
    path: PathBuf,
    #[source]
    source: std::io::Error,
}

/// Longest secret file that is read, bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

impl Secret {
    /// Reads it: inline, else the file, else the credential. None where it is not configured at all.
    ///
    /// # Errors
    /// Where a file is named that cannot be read.
    pub fn resolve(&self) -> Result<Option<SecretText>, SecretError> {
        if let Some(text) = &self.inline {
            return Ok(Some(text.clone()));
        }
        let read = |path: PathBuf| {
            use std::io::Read;
            let mut text = String::new();
            std::fs::File::open(&path)
                .and_then(|file| file.take(MAX_SECRET_BYTES).read_to_string(&mut text))
                .map_err(|source| SecretError { key: self.key.clone(), path, source })?;
            Ok(Some(SecretText::from(text.trim().to_owned())))
        };
        if let Some(path) = &self.file {
            return read(path.clone());
        }
        let Some(directory) = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from) else { return Ok(None) };
        match self.credentials.iter().map(|name| directory.join(name)).find(|path| path.exists()) {
            Some(path) => read(path),
            None => Ok(None),
        }
    }
}

impl Source {
    /// The API key.
    #[must_use]
    pub fn key(&self) -> Secret {
        Secret {
            key: "source.api_key".into(),
            inline: self.api_key.clone(),
            file: self.api_key_file.clone(),
            credentials: vec!["api_key".into(), "api-key".into()],
        }
    }
}

impl Http {
    /// The bearer token.
    #[must_use]
    pub fn bearer(&self) -> Secret {
        Secret {
            key: "http.token".into(),
            inline: self.token.clone(),
            file: self.token_file.clone(),
            credentials: vec!["token".into(), "http-token".into(), "http_token".into()],
        }
    }

    /// The address to ping after a full loop.
    #[must_use]
    pub fn switch(&self) -> Secret {
        Secret {
            key: "http.dead_mans_switch".into(),
            inline: self.dead_mans_switch.clone(),
            file: self.dead_mans_switch_file.clone(),
            credentials: vec!["dead_mans_switch".into(), "dead-mans-switch".into()],
        }
    }
}

impl Receiver {
    fn secret_of(&self, word: &str, inline: Option<&SecretText>, file: Option<&PathBuf>) -> Secret {
        Secret {
            key: format!("receiver {:?}: {word}", self.name),
            inline: inline.cloned(),
            file: file.cloned(),
            credentials: vec![format!("{}-{word}", self.name), format!("{}_{word}", self.name)],
        }
    }

    /// The webhook's address.
    #[must_use]
    pub fn address(&self) -> Secret {
        self.secret_of("url", self.url.as_ref(), self.url_file.as_ref())
    }

    /// The webhook's signing secrets, one a line.
    #[must_use]
    pub fn signing(&self) -> Secret {
        self.secret_of("secret", self.secret.as_ref(), self.secret_file.as_ref())
    }

    /// A secret that the webhook's format needs: `token`, `routing_key`, `api_key` or `topic`.
    #[must_use]
    pub fn means(&self, word: &str) -> Secret {
        let (inline, file) = match word {
            "token" => (&self.token, &self.token_file),
            "routing_key" => (&self.routing_key, &self.routing_key_file),
            "api_key" => (&self.api_key, &self.api_key_file),
            "topic" => (&self.topic, &self.topic_file),
            _ => (&None, &None),
        };
        self.secret_of(word, inline.as_ref(), file.as_ref())
    }

    /// The password of the mail server.
    #[must_use]
    pub fn login(&self) -> Secret {
        self.secret_of("password", self.password.as_ref(), self.password_file.as_ref())
    }
}

/// A length of time as people write it: `30s`, `90m`, `7d`, `2w`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub Duration);

impl Span {
    /// For arithmetic on instants; ten thousand years where it is longer.
    #[must_use]
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::days(3_650_000)).min(chrono::TimeDelta::days(3_650_000))
    }
}

impl std::str::FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text == "0" {
            return Ok(Span(Duration::ZERO));
        }
        humantime::parse_duration(text)
            .map(Span)
            .map_err(|_| format!("{text:?} is no length of time: write it like \"30s\", \"90m\", \"6h\", \"7d\" or \"2w\""))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let days = seconds / 86_400;
        if days > 0 && seconds.is_multiple_of(86_400) {
            return write!(f, "{days}d");
        }
        humantime::format_duration(self.0).fmt(f)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A share, written `"10%"`. Held in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Percent {
    /// As a fraction of one.
    #[must_use]
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.trim()
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok())
            .filter(|number| (0.0..=100.0).contains(number))
            .map(Percent)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no share: write it like \"10%\", from 0% to 100%")))
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0))
    }
}

/// A size, written `"16MiB"`, `"512KiB"` or as bytes. Held in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text.trim().get(digits.len()..).unwrap_or_default() {
            "" | "B" => Some(1),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            "kB" | "KB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            _ => None,
        };
        digits
            .trim()
            .parse::<u64>()
            .ok()
            .zip(unit)
            .and_then(|(number, unit)| number.checked_mul(unit))
            .filter(|bytes| *bytes > 0)
            .map(ByteSize)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no size: write it like \"16MiB\"")))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}B", self.0))
    }
}
