//! What every exporter tells of its own process, under the names that all of them use. Read anew for each scrape, from `/proc/self` and
//! two calls of the system; whatever cannot be read is left out.

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

/// The family `process_…`.
#[derive(Debug, Default)]
pub(super) struct ProcessMetrics {
    started_at: OnceLock<Timestamp>,
}

impl ProcessMetrics {
    /// It is `now`, from which the begin of the process is counted back: what the machine's own clock said then may have been wrong.
    pub(super) fn set_now(&self, now: Timestamp) {
        let age = age().unwrap_or_default();
        let _known_before = self.started_at.set(now.checked_sub_signed(age).unwrap_or(now));
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        #[expect(clippy::cast_precision_loss, reason = "a fraction of a second, and seconds of a few thousand years")]
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        put(&mut encoder, "process_cpu_seconds", "Processor time that the process took", &ConstCounter::new(cpu))?;
        if let Some(at) = self.started_at.get() {
            put(&mut encoder, "process_start_time_seconds", "When the process began", &ConstGauge::new(super::seconds(*at)))?;
        }
        if let Some(kibibytes) = std::fs::read_to_string("/proc/self/status").ok().and_then(|text| resident_kib(&text)) {
            let bytes = super::whole(kibibytes.saturating_mul(1024));
            put(&mut encoder, "process_resident_memory_bytes", "Memory that the process holds", &ConstGauge::new(bytes))?;
        }
        // The folder is open itself while it is read.
        if let Some(open) = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1)) {
            put(
                &mut encoder,
                "process_open_fds",
                "Files and sockets that are open",
                &ConstGauge::new(super::whole(open as u64)),
            )?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            put(&mut encoder, "process_max_fds", "Files and sockets that may be open", &ConstGauge::new(super::whole(most)))?;
        }
        Ok(())
    }
}

fn put(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, metric: &impl EncodeMetric) -> fmt::Result {
    // A collector writes its help as it is; a registry ends it with a full stop.
    metric.encode(encoder.encode_descriptor(name, &format!("{help}."), None, metric.metric_type())?)
}

/// How long the process has run.
fn age() -> Option<TimeDelta> {
    let ticks = start_ticks(&std::fs::read_to_string("/proc/self/stat").ok()?)?;
    let uptime = clock_gettime(ClockId::Boottime);
    let uptime = uptime.tv_sec.saturating_mul(1000).saturating_add(uptime.tv_nsec / 1_000_000);
    let started = i64::try_from(ticks.saturating_mul(1000) / clock_ticks_per_second().max(1)).ok()?;
    TimeDelta::try_milliseconds(uptime.saturating_sub(started).max(0))
}

/// When a process began, in ticks since boot: the twenty-second field, counted from behind its name, which may hold anything.
fn start_ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Memory that a process holds, KiB.
fn resident_kib(status: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
