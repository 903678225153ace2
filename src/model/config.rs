//! The configuration as plain data. Each key is declared once, in the struct of its section: its type, default, accepted values, and
//! description (see `settings`). Reading and checking a config is in `daemon::config`.

mod delivery;
mod http;
mod keys;
mod receiver;
mod route;
mod secret;
mod source;
mod store;
mod watch;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::delivery::{DeliverySettings, LogFormat, LogSettings};
pub use self::http::{HttpSettings, MirrorSettings};
pub use self::keys::{ConfigKey, ValueKind, one_line};
pub use self::receiver::{DigestSettings, ReceiverKind, ReceiverSettings};
pub use self::route::{InhibitRule, Route, TimeInterval, TimeIntervals, TimeRange};
pub use self::secret::{Secret, SecretError, SecretText};
pub use self::source::{EndpointVersion, Reach, SourceSettings};
pub use self::store::{RulesSettings, StoreSettings};
pub use self::watch::{BudgetSettings, ScheduleSettings, WatchSettings};
pub use crate::amount::{ByteSize, Percent};
pub use crate::time::Span;

/// A section of the config file: a table at the top level whose keys have defaults.
#[derive(Clone, Copy, Debug)]
pub struct ConfigSection {
    pub name: &'static str,
    /// The lines of the description for users, each with the space that follows `///`.
    pub description: &'static [&'static str],
    pub keys: &'static [ConfigKey],
    /// Whether new values of all keys take effect only after a restart. If not, each key says so itself.
    pub needs_restart: bool,
}

macro_rules! sections {
    ($($section:ident: $settings:ty, $applied_by:ident;)*) => {
        /// Everything that an operator can set.
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $(pub $section: $settings,)*
            #[serde(rename = "receiver")]
            pub receivers: Vec<ReceiverSettings>,
            pub route: Route,
            pub inhibit_rules: Vec<InhibitRule>,
            pub time_intervals: Vec<TimeIntervals>,
        }

        /// The sections in the order of the file. Receivers, routes, inhibitions, and time intervals follow them.
        pub const SECTIONS: &[ConfigSection] = &[$(ConfigSection {
            name: stringify!($section),
            description: <$settings>::DESCRIPTION,
            keys: <$settings>::KEYS,
            needs_restart: $applied_by,
        }),*];

        impl Config {
            /// Puts back each value of `current` that only a restart replaces. Returns the keys that had another value, such as
            /// `[store] path`.
            pub fn keep_until_restart(&mut self, current: &Self) -> Vec<String> {
                let mut kept = Vec::new();
                $(
                    let keys = self.$section.keep_until_restart(&current.$section, $applied_by);
                    kept.extend(keys.into_iter().map(|key| format!("[{}] {key}", stringify!($section))));
                )*
                kept
            }

            /// The files that the config names, each with its key and the path of the key, such as `source.api_key_file`.
            /// Files of webhook formats are not among them.
            pub fn files_mut(&mut self) -> Vec<(String, &'static ConfigKey, &mut PathBuf)> {
                let mut files = Vec::new();
                $(files.extend(self.$section.files_mut().map(|(key, file)| {
                    (format!("{}.{}", stringify!($section), key.name), key, file)
                }));)*
                for (index, receiver) in self.receivers.iter_mut().enumerate() {
                    files.extend(receiver.files_mut().map(|(key, file)| (format!("receiver[{index}].{}", key.name), key, file)));
                }
                files
            }
        }
    };
}

const RESTART: bool = true;
const RELOAD: bool = false;

sections! {
    source: SourceSettings, RESTART;
    watch: WatchSettings, RELOAD;
    schedule: ScheduleSettings, RELOAD;
    budget: BudgetSettings, RELOAD;
    store: StoreSettings, RELOAD; // some of its keys need a restart
    rules: RulesSettings, RELOAD;
    http: HttpSettings, RESTART;
    mirror: MirrorSettings, RESTART;
    delivery: DeliverySettings, RELOAD;
    log: LogSettings, RESTART;
}

impl Config {
    /// The default of a key of a section. `None` if the key has no default.
    pub fn default_of(section: &str, key: &str) -> Option<Value> {
        let defaults = serde_json::to_value(Self::default()).ok()?;
        defaults.get(section)?.get(key).filter(|value| !value.is_null()).cloned()
    }
}
