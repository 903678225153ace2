//! Readiness: whether the daemon works, and why not where it does not; with what else it knows of itself.
//!
//! Here it is decided what makes the daemon not ready and what makes it ready again; the app, the schedule and the reload say what
//! happened, and `/-/ready`, the status page and systemd show it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ui::view::{DaemonView, RulesView};
use engine::self_monitor::SourceState;
use model::{Diagnostic, SourceText, Timestamp};
use tools::ruletest::TestOutcome;

/// Why the daemon is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// It has just begun.
    Starting,
    /// It was asked to stop.
    Stopping,
    /// The last cycle could not use the database; with the error, for people.
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

/// What the rule files were when they were last read, good or bad.
#[derive(Clone, Debug)]
pub struct RuleLoad {
    pub at: Timestamp,
    /// Everything that was found in them.
    pub diagnostics: Vec<Diagnostic>,
    pub texts: Vec<SourceText>,
    /// How the tests beside them ended; none where they were not run, as at a start.
    pub outcomes: Option<Vec<TestOutcome>>,
}

/// What the daemon knows of itself. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<Mutex<DaemonState>>);

#[derive(Debug)]
struct DaemonState {
    started_at: Timestamp,
    not_ready: Option<NotReady>,
    last_cycle: Option<(Timestamp, String)>,
    rules: Option<u32>,
    rules_problem: Option<String>,
    last_reload_at: Option<Timestamp>,
    source: Option<SourceState>,
    last_load: Option<Arc<RuleLoad>>,
    texts: Arc<Vec<SourceText>>,
    standing: Option<String>,
}

impl Readiness {
    /// Of a daemon that has just begun and is not ready.
    pub fn starting(at: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(DaemonState {
            started_at: at,
            not_ready: Some(NotReady::Starting),
            last_cycle: None,
            rules: None,
            rules_problem: None,
            last_reload_at: None,
            source: None,
            last_load: None,
            texts: Arc::default(),
            standing: None,
        })))
    }

    fn with<T>(&self, read: impl FnOnce(&mut DaemonState) -> T) -> T {
        read(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_ready(&self) {
        self.with(|state| state.not_ready = None);
    }

    /// It does not (or no longer) work.
    pub fn set_not_ready(&self, reason: NotReady) {
        self.with(|state| state.not_ready = Some(reason));
    }

    /// Whether it is the active one of several instances, in words for people.
    pub fn stands(&self, text: &str) {
        self.with(|state| state.standing = Some(text.to_owned()));
    }

    /// A cycle used the database: where that was the reason, it is ready again.
    pub fn store_works(&self) {
        self.with(|state| drop(state.not_ready.take_if(|reason| matches!(reason, NotReady::StoreFails(_)))));
    }

    /// A cycle ended; `text` is what its report says in a line.
    pub fn cycle_ended(&self, at: Timestamp, text: impl Into<String>) {
        self.with(|state| state.last_cycle = Some((at, text.into())));
    }

    /// So many rules are at work, from files that were good.
    pub fn rules_loaded(&self, at: Timestamp, count: usize) {
        self.with(|state| {
            state.rules = Some(u32::try_from(count).unwrap_or(u32::MAX));
            state.rules_problem = None;
            state.last_reload_at = Some(at);
        });
    }

    /// The files are bad; the rules before them go on working.
    pub fn reload_failed(&self, at: Timestamp, problem: impl Into<String>) {
        self.with(|state| {
            state.rules_problem = Some(problem.into());
            state.last_reload_at = Some(at);
        });
    }

    /// The files were read.
    pub fn rules_read(&self, load: RuleLoad) {
        self.with(|state| state.last_load = Some(Arc::new(load)));
    }

    /// What came of the last reading; none before the first.
    pub fn last_load(&self) -> Option<Arc<RuleLoad>> {
        self.with(|state| state.last_load.clone())
    }

    /// The rules at work are those of these files.
    pub fn texts_at_work(&self, texts: Vec<SourceText>) {
        self.with(|state| state.texts = Arc::new(texts));
    }

    /// The files of the rules at work.
    pub fn texts(&self) -> Arc<Vec<SourceText>> {
        self.with(|state| state.texts.clone())
    }

    /// Why it is not ready; none where it is.
    pub fn not_ready(&self) -> Option<NotReady> {
        self.with(|state| state.not_ready.clone())
    }

    /// How the source stands: a daemon that cannot ask it is ready all the same, since it goes on with what it knows.
    pub fn source_is(&self, state: SourceState) {
        self.with(|daemon| daemon.source = Some(state));
    }

    /// How the source stood when that was last looked at.
    pub fn source(&self) -> Option<SourceState> {
        self.with(|daemon| daemon.source)
    }

    pub fn rules(&self) -> RulesView {
        self.with(|state| RulesView { count: state.rules, problem: state.rules_problem.clone() })
    }

    pub fn view(&self) -> DaemonView {
        self.with(|state| DaemonView {
            ready: state.not_ready.is_none(),
            reason: state.not_ready.as_ref().map(ToString::to_string),
            started_at: state.started_at,
            last_cycle_at: state.last_cycle.as_ref().map(|(at, _)| *at),
            last_cycle: state.last_cycle.as_ref().map(|(_, text)| text.clone()),
            last_reload_at: state.last_reload_at,
            standing: state.standing.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
