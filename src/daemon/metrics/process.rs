//! The standard `process_…` metrics. Each scrape reads them from `/proc/self` and system calls. Values that cannot be read are
//! left out.

use std::fmt;
use std::sync::OnceLock;

use chrono::TimeDelta;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use rustix::{
    param::clock_ticks_per_second,
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use model::Timestamp;

/// The `process_…` metrics.
#[derive(Debug, Default)]
pub(super) struct ProcessMetrics {
    started_at: OnceLock<Timestamp>,
}

impl ProcessMetrics {
    /// Sets the start time of the process from the trusted current time and the process's age, because the system clock may be
    /// wrong.
    pub(super) fn set_now(&self, now: Timestamp) {
        let age = age().unwrap_or_default();
        let _ = self.started_at.set(now.checked_sub_signed(age).unwrap_or(now));
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "a fraction of a second, and seconds of a few thousand years")]
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        put(&mut encoder, "process_cpu_seconds", "Total CPU time", &ConstCounter::new(cpu))?;
        if let Some(at) = self.started_at.get() {
            put(&mut encoder, "process_start_time_seconds", "Start time of the process", &ConstGauge::new(super::seconds(*at)))?;
        }
        if let Some(kibibytes) = std::fs::read_to_string("/proc/self/status").ok().and_then(|text| resident_kib(&text)) {
            let bytes = super::whole(kibibytes.saturating_mul(1024));
            put(&mut encoder, "process_resident_memory_bytes", "Resident memory size", &ConstGauge::new(bytes))?;
        }
        // Reading the directory opens one more descriptor.
        if let Some(open) = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1)) {
            put(
                &mut encoder,
                "process_open_fds",
                "Number of open file descriptors",
                &ConstGauge::new(super::whole(open as u64)),
            )?;
        }
        if let Some(max) = getrlimit(Resource::Nofile).current {
            put(&mut encoder, "process_max_fds", "Maximum number of open file descriptors", &ConstGauge::new(super::whole(max)))?;
        }
        Ok(())
    }
}

fn put(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    // A registry ends the help text with a period; a collector must do so itself.
    metric.encode(encoder.encode_descriptor(name, &format!("{help}."), None, metric.metric_type())?)
}

/// Returns the time since the start of the process.
fn age() -> Option<TimeDelta> {
    let ticks = start_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
    let uptime = clock_gettime(ClockId::Boottime);
    let uptime = uptime.tv_sec.saturating_mul(1000).saturating_add(uptime.tv_nsec / 1_000_000);
    let started = i64::try_from(ticks.saturating_mul(1000) / clock_ticks_per_second().max(1)).ok()?;
    TimeDelta::try_milliseconds(uptime.saturating_sub(started).max(0))
}

/// Parses the start time of a process in ticks since boot, which is field 22. The fields are counted from the end of the process name,
/// which may contain spaces and parentheses.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Parses the resident memory in KiB.
fn resident_kib(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
