//! The readiness of the daemon.
//!
//! [`not_ready`] decides. The app, the schedule, and a reload record their state in [`Readiness`]; `/-/ready`, the status page, and
//! systemd show it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::view::{DaemonView, RulesView};
use engine::self_monitor::SourceState;
use model::{Alert, Diagnostic, SourceText, Timestamp};
use tools::ruletest::TestOutcome;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Running,
    Stopping,
}

/// The reason why the daemon is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    Starting,
    Stopping,
    /// The database could not be used, with the error.
    StoreFails(String),
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReady::Starting => f.write_str("starting"),
            NotReady::Stopping => f.write_str("stopping"),
            NotReady::StoreFails(error) => f.write_str(error),
        }
    }
}

/// Decides whether the daemon is ready: `None` if it is. `store_failure` is the error of the last use of the database, if it failed.
///
/// Neither a source that cannot be polled nor rule files with errors count: the daemon continues with the known facts and the last
/// valid rules. A standby instance is in [`Phase::Running`].
pub fn not_ready(phase: Phase, store_failure: Option<&str>) -> Option<NotReady> {
    match (phase, store_failure) {
        (Phase::Stopping, _) => Some(NotReady::Stopping),
        (_, Some(error)) => Some(NotReady::StoreFails(error.to_owned())),
        (Phase::Starting, None) => Some(NotReady::Starting),
        (Phase::Running, None) => None,
    }
}

/// The rule files as they were last read, with or without errors.
#[derive(Clone, Debug)]
pub struct RuleLoad {
    pub at: Timestamp,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    pub texts: Vec<SourceText>,
    /// The results of the rule tests. `None` if they were not run, as at a start.
    pub outcomes: Option<Vec<TestOutcome>>,
}

/// The state of the daemon. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<DaemonState>>);

#[derive(Debug)]
struct DaemonState {
    started_at: Timestamp,
    phase: Phase,
    store_failure: Option<String>,
    /// The open incident about a database that cannot be written, which therefore cannot be stored there.
    store_incident: Option<Alert>,
    last_cycle: Option<(Timestamp, String)>,
    rules: Option<u32>,
    /// Whether the config expects rules.
    expects_rules: bool,
    rules_problem: Option<String>,
    last_reload_at: Option<Timestamp>,
    source: Option<SourceState>,
    last_load: Option<Arc<RuleLoad>>,
    texts: Arc<Vec<SourceText>>,
    instance_role: Option<String>,
    setup_difference: Option<String>,
}

impl DaemonState {
    fn not_ready(&self) -> Option<NotReady> {
        not_ready(self.phase, self.store_failure.as_deref())
    }
}

impl Readiness {
    pub fn starting(at: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(DaemonState {
            started_at: at,
            phase: Phase::Starting,
            store_failure: None,
            store_incident: None,
            last_cycle: None,
            rules: None,
            expects_rules: true,
            rules_problem: None,
            last_reload_at: None,
            source: None,
            last_load: None,
            texts: Arc::default(),
            instance_role: None,
            setup_difference: None,
        })))
    }

    fn with<T>(&self, read: impl FnOnce(&mut DaemonState) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_phase(&self, phase: Phase) {
        self.with(|state| state.phase = phase);
    }

    /// Records that the database could not be used. Returns `true` if it was usable before, or if the error is a new one.
    pub fn set_store_failure(&self, error: String) -> bool {
        self.with(|state| state.store_failure.replace(error) != state.store_failure)
    }

    /// Returns whether the last use of the database succeeded.
    pub fn is_store_usable(&self) -> bool {
        self.with(|state| state.store_failure.is_none())
    }

    /// Records that the database was used without an error.
    pub fn clear_store_failure(&self) {
        self.with(|state| state.store_failure = None);
    }

    /// Records the incident about a database that cannot be written. Returns `false` if one is open already.
    pub fn open_store_incident(&self, alert: &Alert) -> bool {
        self.with(|state| {
            let is_new = state.store_incident.is_none();
            state.store_incident.get_or_insert_with(|| alert.clone());
            is_new
        })
    }

    /// Ends the incident about a database that cannot be written, and returns it.
    pub fn close_store_incident(&self) -> Option<Alert> {
        self.with(|state| state.store_incident.take())
    }

    /// Returns the open incident about a database that cannot be written, which the database therefore does not contain.
    pub fn store_incident(&self) -> Option<Alert> {
        self.with(|state| state.store_incident.clone())
    }

    /// Records whether this is the active one of several instances, as a text for users.
    pub fn set_instance_role(&self, role: &str) {
        self.with(|state| state.instance_role = Some(role.to_owned()));
    }

    /// Records how config and rules differ from those of other instances, as a text for users. `None` if they do not.
    pub fn set_setup_difference(&self, difference: Option<String>) {
        self.with(|state| state.setup_difference = difference);
    }

    /// The role of this instance, as a text for users. `None` for a single instance.
    pub fn instance_role(&self) -> Option<String> {
        self.with(|state| state.instance_role.clone())
    }

    /// Records the end of a cycle, with its report in one line.
    pub fn set_last_cycle(&self, at: Timestamp, report: impl Into<String>) {
        self.with(|state| state.last_cycle = Some((at, report.into())));
    }

    /// Records that the rules of valid files are active. `paths` are the globs of `[rules] paths`.
    pub fn set_rules_loaded(&self, at: Timestamp, count: usize, paths: &[String]) {
        self.with(|state| {
            state.expects_rules = !paths.is_empty();
            state.rules = Some(u32::try_from(count).unwrap_or(u32::MAX));
            state.rules_problem = None;
            state.last_reload_at = Some(at);
        });
    }

    /// Records that the files have errors. The previous rules stay active.
    pub fn set_reload_failed(&self, at: Timestamp, problem: impl Into<String>) {
        self.with(|state| {
            state.rules_problem = Some(problem.into());
            state.last_reload_at = Some(at);
        });
    }

    pub fn set_last_load(&self, load: RuleLoad) {
        self.with(|state| state.last_load = Some(Arc::new(load)));
    }

    /// The result of the last read of the rule files. `None` before the first.
    pub fn last_load(&self) -> Option<Arc<RuleLoad>> {
        self.with(|state| state.last_load.clone())
    }

    /// Sets the files of the active rules.
    pub fn set_texts(&self, texts: Vec<SourceText>) {
        self.with(|state| state.texts = Arc::new(texts));
    }

    /// The files of the active rules.
    pub fn texts(&self) -> Arc<Vec<SourceText>> {
        self.with(|state| state.texts.clone())
    }

    /// The reason why the daemon is not ready. `None` if it is.
    pub fn not_ready(&self) -> Option<NotReady> {
        self.with(|state| state.not_ready())
    }

    pub fn set_source(&self, state: SourceState) {
        self.with(|daemon| daemon.source = Some(state));
    }

    /// The state of the source. `None` until it was first read from the database.
    pub fn source(&self) -> Option<SourceState> {
        self.with(|daemon| daemon.source)
    }

    pub fn rules(&self) -> RulesView {
        self.with(|state| RulesView {
            count: state.rules,
            problem: state.rules_problem.clone(),
            is_missing: state.expects_rules && state.rules == Some(0),
        })
    }

    pub fn view(&self) -> DaemonView {
        self.with(|state| {
            let not_ready = state.not_ready();
            DaemonView {
                ready: not_ready.is_none(),
                reason: not_ready.map(|reason| reason.to_string()),
                started_at: state.started_at,
                last_cycle_at: state.last_cycle.as_ref().map(|(at, _)| *at),
                last_cycle: state.last_cycle.as_ref().map(|(_, text)| text.clone()),
                last_reload_at: state.last_reload_at,
                standby_reason: state.instance_role.as_ref().map(|role| match &state.setup_difference {
                    Some(difference) => format!("{role}; {difference}"),
                    None => role.clone(),
                }),
            }
        })
    }
}

#[cfg(test)]
mod tests;
