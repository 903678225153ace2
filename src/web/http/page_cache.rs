//! Data that several requests share: all open overviews reload at once after an update, and a page with a preview requests the preview too.

use std::sync::Arc;

use chrono::TimeDelta;
use tokio::sync::Mutex;

use daemon::live::LiveConfig;
use model::{Pulse, Timestamp};

/// The maximum number of entries of a cache.
const MAX_ENTRIES: usize = 16;

/// The origin of the data of a page: the database in the state of `pulse`, and the active config.
#[derive(Clone, Debug)]
pub struct DataVersion {
    pub pulse: Pulse,
    pub live: Arc<LiveConfig>,
}

impl PartialEq for DataVersion {
    fn eq(&self, other: &Self) -> bool {
        self.pulse == other.pulse && Arc::ptr_eq(&self.live, &other.live)
    }
}

/// The latest value of each key, of one version. Clones share them.
#[derive(Debug)]
pub struct PageCache<K, V, T>(Arc<Mutex<Vec<CachedValue<K, V, T>>>>);

#[derive(Debug)]
struct CachedValue<K, V, T> {
    at: Timestamp,
    key: K,
    version: V,
    value: Arc<T>,
}

impl<K, V, T> Clone for PageCache<K, V, T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K, V, T> Default for PageCache<K, V, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: PartialEq, V: PartialEq, T> PageCache<K, V, T> {
    /// Returns the value of a key, if it has this version and was loaded less than `max_age` before `now`, else loads it. Concurrent callers
    /// wait for one load.
    pub async fn get<E>(
        &self,
        (key, version): (K, V),
        now: Timestamp,
        max_age: TimeDelta,
        load: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        let mut cached = self.0.lock().await;
        // The clock may have been set back.
        cached.retain(|of| (now - of.at).abs() < max_age && (of.key != key || of.version == version));
        if let Some(of) = cached.iter().find(|of| of.key == key) {
            return Ok(of.value.clone());
        }
        let value = Arc::new(load.await?);
        if cached.len() >= MAX_ENTRIES {
            cached.remove(0);
        }
        cached.push(CachedValue { at: now, key, version, value: value.clone() });
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::now;

    async fn of(cache: &PageCache<usize, usize, usize>, of: (usize, usize), at: Timestamp, loads: &mut usize) -> usize {
        let load = async {
            *loads += 1;
            Ok::<_, ()>(*loads)
        };
        *cache.get(of, at, TimeDelta::seconds(5), load).await.expect("loaded")
    }

    #[tokio::test]
    async fn value_is_loaded_again_for_another_version_and_after_its_age() {
        let (cache, mut loads) = (PageCache::default(), 0);
        let seconds = |after| now() + TimeDelta::seconds(after);
        assert_eq!(of(&cache, (1, 0), now(), &mut loads).await, 1);
        assert_eq!(of(&cache, (1, 0), seconds(4), &mut loads).await, 1);
        assert_eq!(of(&cache, (2, 0), seconds(4), &mut loads).await, 2);
        assert_eq!(of(&cache, (1, 0), seconds(5), &mut loads).await, 3);
        assert_eq!(of(&cache, (2, 0), seconds(5), &mut loads).await, 2);
        assert_eq!(of(&cache, (1, 0), seconds(-60), &mut loads).await, 4, "the clock was set back");
        assert_eq!(of(&cache, (1, 1), seconds(-60), &mut loads).await, 5);
        assert_eq!(of(&cache, (1, 0), seconds(-60), &mut loads).await, 6, "the former version is not kept");
    }

    #[tokio::test]
    async fn error_is_not_kept_and_the_oldest_value_leaves_first() {
        let cache: PageCache<usize, usize, usize> = PageCache::default();
        let failed = cache.get((0, 0), now(), TimeDelta::days(1), async { Err("broken") }).await;
        assert!(failed.is_err());
        let mut loads = 0;
        for key in 0..=MAX_ENTRIES {
            of(&cache, (key, 0), now(), &mut loads).await;
        }
        assert_eq!(of(&cache, (1, 0), now(), &mut loads).await, 2);
        assert_eq!(of(&cache, (0, 0), now(), &mut loads).await, MAX_ENTRIES + 2);
    }
}
