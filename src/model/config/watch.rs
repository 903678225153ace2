//! The watched tokens, when they are polled, and the credits that polling may use.

use std::{collections::BTreeMap, path::PathBuf};

use super::keys::{DAY, YEAR, settings};
use super::{Percent, Span};
use crate::PositionTable;

settings! {
    /// The tokens to poll and to evaluate rules for.
    pub struct WatchSettings {
        /// Slugs or globs. Globs, such as `*` for every token, require the token list.
        tokens: Vec<String> = vec!["*".into()] => Globs;
        /// Named sets of slugs or globs. Rules and commands refer to one as `@name`.
        groups: BTreeMap<String, Vec<String>> => Groups;
        /// The tokens that you hold: slug or ticker, and amount in tokens. Only people who are logged in see them.
        positions: PositionTable => Positions;
        /// A CSV file with the columns `token` and `amount`, in addition to `positions`.
        positions_file: Option<PathBuf> => Path;
    }
}

settings! {
    /// When each endpoint may be polled: six-field cron patterns (second, minute, hour, day of month, month, day of week), or `off`.
    pub struct ScheduleSettings {
        /// The time zone of the patterns.
        timezone: String = "UTC".into() => Zone;
        /// When the token list is polled.
        token_list: String = "0 0 * * * *".into() => Cron;
        /// When the next unlock of each token is polled.
        upcoming: String = "0 5 */6 * * *".into() => Cron;
        /// When unlock schedules are polled.
        unlock_events: String = "0 10 * * * *".into() => Cron;
        /// When burns are polled.
        burn: String = "0 20 */6 * * *".into() => Cron;
        /// When buybacks are polled.
        buyback: String = "0 25 */6 * * *".into() => Cron;
        /// When allocations are polled.
        allocations: String = "0 30 3 * * *".into() => Cron;
        /// When daily emissions are polled. Either this or `weekly_emission` must be `off`.
        daily_emission: String = "off".into() => Cron;
        /// When weekly emissions are polled.
        weekly_emission: String = "off".into() => Cron;
        /// When funding rounds are polled.
        investors: String = "off".into() => Cron;
        /// When rules that depend on the time are evaluated. This makes no requests.
        evaluate: String = "0 * * * * *".into() => Cron;
    }
}

settings! {
    /// The credits that polling may use.
    pub struct BudgetSettings {
        /// The number of credits to use in each period of the API. Without it, the limit that the API reports applies. It never raises
        /// that limit.
        monthly_credits: Option<u64> => Count(0, i64::MAX);
        /// The share of the credits that is reserved for near events, retries, and removal proofs.
        reserve: Percent = Percent(10.0) => Percent;
        /// A token whose next event is at most this far ahead is polled first and may use the reserve.
        near: Span = Span::from_secs(7 * DAY) => Span(0, YEAR);
    }
}
