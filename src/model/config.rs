//! The configuration as plain data: sections, keys, units. Reading and checking it is in `daemon::config`; the built-in defaults, with a
//! comment for each key, are in `config/default.toml`.

mod delivery;
mod http;
mod receiver;
mod route;
mod secret;
mod source;
mod store;
mod watch;

use serde::{Deserialize, Serialize};

pub use self::delivery::{DeliverySettings, LogFormat, LogSettings};
pub use self::http::{HttpSettings, MirrorSettings};
pub use self::receiver::{DigestSettings, ReceiverKind, ReceiverSettings};
pub use self::route::{InhibitRule, Route, TimeInterval, TimeIntervals, TimeRange};
pub use self::secret::{Secret, SecretError, SecretText};
pub use self::source::{EndpointVersion, Reach, SourceSettings};
pub use self::store::{RulesSettings, StoreSettings};
pub use self::watch::{BudgetSettings, ScheduleSettings, WatchSettings};
pub use crate::amount::{ByteSize, Percent};
pub use crate::time::Span;

/// The defaults, commented.
pub const DEFAULTS: &str = include_str!("config/default.toml");

/// Everything that an operator can set.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The API.
    pub source: SourceSettings,
    pub watch: WatchSettings,
    pub schedule: ScheduleSettings,
    /// How much to ask.
    pub budget: BudgetSettings,
    pub store: StoreSettings,
    /// The rule files.
    pub rules: RulesSettings,
    /// Our own HTTP.
    pub http: HttpSettings,
    /// The snapshot for others.
    pub mirror: MirrorSettings,
    /// How deliveries are tried.
    pub delivery: DeliverySettings,
    pub log: LogSettings,
    #[serde(default, rename = "receiver")]
    pub receivers: Vec<ReceiverSettings>,
    #[serde(default)]
    pub route: Route,
    /// What goes without saying while something else fires.
    #[serde(default)]
    pub inhibit_rules: Vec<InhibitRule>,
    /// Named times of day and week that routes refer to.
    #[serde(default)]
    pub time_intervals: Vec<TimeIntervals>,
}
