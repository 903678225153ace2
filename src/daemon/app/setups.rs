//! Compares config and rules of the instances on one database. After a takeover, the new active instance's config and rules apply.

use std::time::{Duration, Instant};

use serde_json::json;
use xxhash_rust::xxh3::Xxh3;

use super::App;
use crate::database_url::instance_name;
use crate::live::LiveConfig;
use crate::systemd;
use model::lease::{InstanceSetup, SETUP_INTERVAL, differing_setups};
use model::{SourceText, text::error_chain};

/// The time after which a difference is an incident. A deployment to two machines takes less.
const REPORT_AFTER: Duration = Duration::from_secs(5 * 60);

/// The result of the last comparison.
#[derive(Debug, Default)]
pub(super) struct SetupWatch {
    compared_at: Option<Instant>,
    /// The instances that differ.
    others: Vec<String>,
    differs_since: Option<Instant>,
    is_reported: Option<bool>,
}

impl SetupWatch {
    /// Records the instances that differ. Returns whether the incident begins or ends now.
    fn note(&mut self, others: Vec<String>, at: Instant) -> Option<bool> {
        self.differs_since = if others.is_empty() { None } else { self.differs_since.or(Some(at)) };
        self.others = others;
        let is_incident = self.differs_since.is_some_and(|since| at.duration_since(since) >= REPORT_AFTER);
        // While a difference is new, an incident of an earlier active instance stays.
        let is_decided = is_incident || self.differs_since.is_none();
        (is_decided && self.is_reported.replace(is_incident) != Some(is_incident)).then_some(is_incident)
    }
}

impl App {
    /// Reports config and rules of this instance, and compares them with the other instances': log, status, and readiness show a
    /// difference, and the active instance makes it an incident. Does nothing if the last comparison is recent.
    pub(super) async fn compare_setups(&self, watch: &mut SetupWatch) {
        let now = Instant::now();
        if !self.store().is_shared() || watch.compared_at.is_some_and(|at| now.duration_since(at) < SETUP_INTERVAL) {
            return;
        }
        watch.compared_at = Some(now);
        let fingerprint = fingerprint(&self.deps.setup(), &self.readiness.texts());
        let own = InstanceSetup { instance: instance_name(), fingerprint, at: self.clock.now() };
        let setups = match self.store().report_setup(own.clone()).await {
            Ok(setups) => setups,
            Err(error) => return tracing::debug!(error = error_chain(&error), "cannot compare the instances"),
        };
        let others = differing_setups(&setups, &own);
        if others != watch.others {
            let text = match others.as_slice() {
                [] => "config and rules of all instances are equal again".to_owned(),
                others => format!("config or rules differ from those of {}", others.join(", ")),
            };
            tracing::warn!("{text}");
            systemd::status(&format!("{}; {text}", self.role()));
            self.readiness.set_setup_difference((!others.is_empty()).then_some(text));
        }
        match watch.note(others, now) {
            Some(true) => self.alerts.instances_differ(&own.instance, &watch.others).await,
            Some(false) => self.alerts.instances_agree().await,
            None => {}
        }
    }
}

/// Returns a hash of everything that affects what is polled, evaluated, and sent. Addresses, the location of the database, and the log may
/// differ between machines.
fn fingerprint(live: &LiveConfig, texts: &[SourceText]) -> String {
    let config = &live.config;
    let mut rules: Vec<_> =
        texts.iter().map(|source| (source.file.file_name().unwrap_or_default(), source.text.as_str())).collect();
    rules.sort_unstable();
    let rules: Vec<_> = rules.into_iter().map(|(file, text)| (file.to_string_lossy(), text)).collect();
    let setup = json!([
        &config.source,
        &config.watch,
        &config.schedule,
        &config.budget,
        (config.store.removal_confirmations, config.store.tolerance),
        &config.delivery,
        &config.receivers,
        &config.route,
        &config.inhibit_rules,
        &config.time_intervals,
        rules,
    ]);
    let mut hash = Xxh3::new();
    hash.update(setup.to_string().as_bytes());
    format!("{:032x}", hash.digest128())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::Config;
    use rules::RuleSet;

    fn of(change: impl FnOnce(&mut Config), rules: &[(&str, &str)]) -> String {
        let mut config = Config::default();
        change(&mut config);
        let live = LiveConfig::build_now(config, RuleSet::default()).expect("a config");
        let texts: Vec<_> = rules.iter().map(|(file, text)| SourceText { file: file.into(), text: (*text).to_owned() }).collect();
        fingerprint(&live, &texts)
    }

    #[test]
    fn fingerprint_covers_decisions_but_not_locations() {
        let rules = [("/etc/cliffwatch/rules/a.toml", "x")];
        let own = of(|_| {}, &rules);
        assert_eq!(own, of(|config| config.http.listen = "127.0.0.1:1".to_owned(), &[("/srv/rules/a.toml", "x")]));
        assert_ne!(own, of(|_| {}, &[("/etc/cliffwatch/rules/a.toml", "y")]));
        assert_ne!(own, of(|config| config.watch.tokens = vec!["aptos".to_owned()], &rules));
    }

    #[test]
    fn difference_that_lasts_is_an_incident() {
        let (mut watch, begin) = (SetupWatch::default(), Instant::now());
        let other = || vec!["two:8".to_owned()];
        assert_eq!(watch.note(other(), begin), None, "a deployment may be in progress");
        assert_eq!(watch.note(other(), begin + REPORT_AFTER), Some(true));
        assert_eq!(watch.note(other(), begin + REPORT_AFTER * 2), None);
        assert_eq!(watch.note(Vec::new(), begin + REPORT_AFTER * 3), Some(false));
        assert_eq!(watch.note(Vec::new(), begin + REPORT_AFTER * 4), None);
    }
}
