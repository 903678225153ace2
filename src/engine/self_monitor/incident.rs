//! An incident on its way through a cycle: which feeds it holds, which joined it and which went on to another.

use std::collections::{BTreeMap, BTreeSet};

use super::kind::IncidentKind;
use super::scope::{IncidentScope, feed_of};
use super::texts::clip;
use super::{FOLD_WITHIN, FailingFeed, FeedsByResult};
use crate::evaluate::blank;
use model::{Alert, AlertState, Endpoint, FeedId, RuleId, SOURCE_TROUBLE, Timestamp};

/// So many feeds may fail by themselves, while at least as many others answer, before the source as a whole is blamed.
pub(super) const FEW_FEEDS: usize = 2;

/// An alert on the way through a cycle.
pub(super) struct Incident {
    pub(super) scope: IncidentScope,
    pub(super) alert: Alert,
    /// As it was before the cycle; none for one that the cycle opens.
    pub(super) before: Option<Alert>,
    pub(super) members: BTreeSet<String>,
    /// How many feeds came to it in this cycle.
    pub(super) joined: usize,
    /// How many went on to another alert.
    pub(super) left: usize,
    /// What its feeds failed with in this cycle, with the first message.
    pub(super) kinds: BTreeMap<IncidentKind, String>,
}

impl Incident {
    pub(super) fn of(alert: &Alert) -> Option<Self> {
        if alert.rule.as_str() != SOURCE_TROUBLE || alert.state != AlertState::Firing {
            return None;
        }
        Some(Self {
            scope: IncidentScope::of_subject(&alert.subject)?,
            alert: alert.clone(),
            before: Some(alert.clone()),
            members: alert.members.iter().cloned().collect(),
            joined: 0,
            left: 0,
            kinds: BTreeMap::new(),
        })
    }

    pub(super) fn open(scope: IncidentScope, now: Timestamp) -> Self {
        let mut alert = blank(RuleId::from(SOURCE_TROUBLE), SOURCE_TROUBLE, scope.subject(), AlertState::Firing, now);
        alert.starts_at = Some(now);
        Self { scope, alert, before: None, members: BTreeSet::new(), joined: 0, left: 0, kinds: BTreeMap::new() }
    }

    pub(super) fn holds(&self, feed: &FeedId) -> bool {
        self.members.contains(&feed.to_string())
    }

    /// Whether a feed came to it in this cycle that tells more of the incident.
    pub(super) fn brings_news(&self) -> bool {
        let endpoint_of = |feed: FeedId| feed.endpoint;
        let known: BTreeSet<Endpoint> = self.feeds_before().map(endpoint_of).collect();
        let is_new = |member: &String| feed_of(member).map(endpoint_of).is_some_and(|endpoint| !known.contains(&endpoint));
        self.joined > 0 && (self.scope != IncidentScope::Source || self.members.iter().any(is_new))
    }

    pub(super) fn feeds_before(&self) -> impl Iterator<Item = FeedId> {
        self.before.iter().flat_map(|alert| &alert.members).filter_map(|member| feed_of(member))
    }

    /// What it was told as.
    pub(super) fn kind_before(&self) -> Option<IncidentKind> {
        self.before.as_ref().and_then(|alert| alert.labels.get("kind")).and_then(|word| IncidentKind::of_word(word))
    }

    pub(super) fn is_of(&self, kind: IncidentKind) -> bool {
        self.kind_before() == Some(kind)
    }

    /// Whether it says why other feeds are not asked at present.
    pub(super) fn explains_silence(&self) -> bool {
        let told = self.kind_before().into_iter().chain(self.kinds.keys().copied());
        self.scope.width() >= 2 || told.into_iter().any(IncidentKind::is_source_wide)
    }

    /// What it is to be called now: as before, unless all that failed in this cycle failed with something else.
    pub(super) fn kind(&self) -> IncidentKind {
        let before = self.kind_before();
        let now = self.kinds.keys().copied().find(|kind| *kind != IncidentKind::SUSPENDED);
        match (self.scope.width(), before, now) {
            (3, Some(before), _) => before,
            (_, Some(before), _) if self.kinds.is_empty() || self.kinds.contains_key(&before) => before,
            (_, _, Some(now)) => now,
            (_, before, None) => before.unwrap_or(IncidentKind::SUSPENDED),
        }
    }
}

/// Puts a failing feed into its incident: the one that holds it already, unless this cycle found a wider one.
pub(super) fn assign(incidents: &mut Vec<Incident>, failing: &FailingFeed<'_>, scope: &IncidentScope, now: Timestamp) {
    let name = failing.feed.to_string();
    let current = incidents.iter().position(|incident| incident.members.contains(&name));
    // What needs a hand of its own is told anew, whatever it was before; else the wider alert keeps its feeds.
    let stays = current.and_then(|index| incidents.get(index)).is_some_and(|incident| match scope {
        IncidentScope::Quota | IncidentScope::Unauthorized => incident.scope == *scope,
        // It answered for itself, so credits and key are good.
        _ if incident.scope.width() == 3 => failing.kind.is_source_wide(),
        _ => incident.scope.width() >= scope.width(),
    });
    let target = if stays { current } else { incidents.iter().position(|incident| incident.scope == *scope) };
    if let (false, Some(from)) = (stays, current.and_then(|index| incidents.get_mut(index))) {
        from.members.remove(&name);
        from.left += 1;
    }
    let index = target.unwrap_or_else(|| {
        incidents.push(Incident::open(scope.clone(), now));
        incidents.len() - 1
    });
    if let Some(incident) = incidents.get_mut(index) {
        if incident.members.insert(name) {
            incident.joined += 1;
        }
        incident.kinds.entry(failing.kind).or_insert_with(|| clip(failing.message));
    }
}

/// Ends an incident of much of the source of which only a few feeds are left, that go on failing while others answer: each of them
/// gets an alert of its own, so that the next incident of the source is not hidden behind them. The scopes that were narrowed.
pub(super) fn narrow(incidents: &mut Vec<Incident>, feeds: &FeedsByResult<'_>, now: Timestamp) -> Vec<IncidentScope> {
    let mut narrowed = Vec::new();
    let mut leftovers = Vec::new();
    for incident in
        incidents.iter_mut().filter(|incident| matches!(incident.scope, IncidentScope::Source | IncidentScope::Endpoint(_)))
    {
        let Some(before) = &incident.before else { continue };
        let is_quiet = incident.joined == 0 && incident.left == 0 && now.signed_duration_since(before.updated_at) > FOLD_WITHIN;
        let few = incident.members.len() <= FEW_FEEDS && feeds.fine.len() >= incident.members.len().max(1);
        let left: Vec<&FailingFeed<'_>> =
            incident.members.iter().filter_map(|member| feeds.failing.get(&feed_of(member)?)).collect();
        // Those that were not asked in this cycle, or stand for the same endpoint, are no leftovers yet.
        let are_all_left = left.len() == incident.members.len() && !left.is_empty();
        if is_quiet && few && are_all_left && left.iter().all(|failing| IncidentScope::alone(failing.feed) != incident.scope) {
            incident.members.clear();
            narrowed.push(incident.scope.clone());
            leftovers.extend(left);
        }
    }
    for failing in leftovers {
        assign(incidents, failing, &IncidentScope::alone(failing.feed), now);
    }
    narrowed
}
