//! Delivery attempts, and the log.

use super::keys::{DAY, HOUR, MINUTE, settings};
use super::{Percent, Span};

settings! {
    /// The attempts to send a delivery.
    pub struct DeliverySettings {
        /// The wait before each attempt. After the last one a delivery becomes a dead letter, which is announced.
        retry: Vec<Span> = RETRY.map(Span::from_secs).to_vec() => Spans(0, 30 * DAY);
        /// The random variation of each wait, up and down.
        jitter: Percent = Percent(20.0) => Percent;
        /// The longest `Retry-After` that is honored.
        max_retry_after: Span = Span::from_secs(HOUR) => Span(0, 7 * DAY);
        /// The time limit of one attempt.
        timeout: Span = Span::from_secs(15) => Span(1, HOUR);
        /// The number of simultaneous attempts for one receiver.
        concurrency: u32 = 4 => Count(1, 256);
        /// The number of messages to one receiver per hour. Any more are combined into one summary.
        max_per_hour: u32 = 300 => Count(1, 1_000_000);
    }
}

/// In seconds.
const RETRY: [u64; 11] = [0, 5, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

settings! {
    /// The log of the daemon and of the commands.
    pub struct LogSettings {
        /// `auto` is `human` on a terminal and under systemd, and `json` elsewhere.
        format: LogFormat = LogFormat::Auto => Choice(&LogFormat::WORDS);
        /// `off`, `error`, `warn`, `info`, `debug`, or `trace`; or a filter as in `RUST_LOG`.
        level: String = "info".into() => LogFilter;
    }
}

crate::words! {
    LogFormat {
        Auto = "auto",
        Human = "human",
        /// One JSON object per line.
        Json = "json",
    }
}
