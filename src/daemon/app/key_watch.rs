//! Retries failed polls as soon as the file of the API key changes, so that a corrected key needs no restart.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::App;
use crate::reload::WATCH_INTERVAL;

impl App {
    /// Ends the waits of failed polls: of the client after failures or a rejected key, and of the schedule.
    pub(crate) fn retry_failed_polls(&self) {
        self.deps.api.end_wait();
        if let Some(schedule) = self.schedule.get() {
            schedule.retry_now();
        }
    }

    /// Watches the file of the API key. Reads only its metadata.
    pub(super) async fn watch_key(&self) {
        let Some(path) = self.deps.source.key().path() else { return std::future::pending().await };
        let mut last = stamp(path.clone()).await;
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            let current = stamp(path.clone()).await;
            if current != last {
                last = current;
                tracing::info!("the file of the API key changed: retrying failed polls");
                self.retry_failed_polls();
            }
        }
    }
}

/// Returns what changes with the content or the permissions of a file. `None` if the file is missing.
async fn stamp(path: PathBuf) -> Option<(u64, u64, i64, i64)> {
    let metadata = tokio::task::spawn_blocking(move || std::fs::metadata(path)).await.ok()?.ok()?;
    Some((metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec()))
}
