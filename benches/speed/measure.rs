//! Clocks and formatting of results.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

/// The name of a section and its function.
pub type Section = (&'static str, fn() -> anyhow::Result<()>);

/// The minimum duration of a measurement.
const BUDGET: Duration = Duration::from_millis(1_500);
/// The minimum number of rounds.
const ROUNDS: u32 = 5;

/// Returns the best time of several rounds.
pub fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let began = Instant::now();
    let mut best = Duration::MAX;
    let mut rounds = 0;
    while rounds < ROUNDS || began.elapsed() < BUDGET {
        let start = Instant::now();
        black_box(run());
        best = best.min(start.elapsed());
        rounds += 1;
    }
    best
}

/// The processor time of all threads of this process.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The rate per second.
pub fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

/// The ratio of two durations, `a / b`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

/// The duration in milliseconds.
pub fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

/// Formats a number in short: `1.23 M`, `12 k`, `1.5 k`, `0.3`.
pub fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2} M", n / 1e6),
        n if n >= 1e4 => format!("{:.0} k", n / 1e3),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n => format!("{n:.1}"),
    }
}

/// Prints a result line: the measured work, the main figure, and details.
pub fn line(what: &str, figure: &str, more: &str) {
    println!("  {what:<46} {figure:>22}   {more}");
}

/// Sorts durations and returns the percentile at `share` (0 to 1).
pub fn percentile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let index = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
    times.get(index).copied().unwrap_or_default()
}
