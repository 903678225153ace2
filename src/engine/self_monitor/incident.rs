//! An open incident during a cycle: the feeds that it covers, that joined it, and that moved to another incident.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{IncidentScope, feed_of};
use super::{BATCH_WINDOW, FailingFeed, FeedsByResult};
use crate::evaluate::blank;
use model::{Alert, AlertState, Endpoint, FeedId, IncidentKind, RuleId, SOURCE_TROUBLE, Timestamp, phrase};

/// The number of feeds that may fail, while at least as many succeed, before the incident covers the whole source.
pub(super) const FEW_FEEDS: usize = 2;

/// An open alert during a cycle.
pub(super) struct Incident {
    pub(super) scope: IncidentScope,
    pub(super) alert: Alert,
    /// The alert before the cycle. `None` if this cycle opens it.
    pub(super) before: Option<Alert>,
    pub(super) members: BTreeSet<String>,
    /// The number of feeds that joined in this cycle.
    pub(super) joined: usize,
    /// The number of feeds that moved to another incident in this cycle.
    pub(super) left: usize,
    /// The kinds of failure in this cycle, each with its first message.
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

    pub(super) fn contains(&self, feed: &FeedId) -> bool {
        self.members.contains(&feed.to_string())
    }

    /// Returns whether a feed joined in this cycle that widens the known incident.
    pub(super) fn has_widened(&self) -> bool {
        let endpoint_of = |feed: FeedId| feed.endpoint;
        let known: BTreeSet<Endpoint> = self.feeds_before().map(endpoint_of).collect();
        let is_new = |member: &String| feed_of(member).map(endpoint_of).is_some_and(|endpoint| !known.contains(&endpoint));
        self.joined > 0 && (self.scope != IncidentScope::Source || self.members.iter().any(is_new))
    }

    pub(super) fn feeds_before(&self) -> impl Iterator<Item = FeedId> {
        self.before.iter().flat_map(|alert| &alert.members).filter_map(|member| feed_of(member))
    }

    /// Returns the kind before the cycle.
    pub(super) fn kind_before(&self) -> Option<IncidentKind> {
        self.before.as_ref().and_then(|alert| alert.labels.get("kind")).and_then(|word| IncidentKind::parse(word))
    }

    pub(super) fn is_of(&self, kind: IncidentKind) -> bool {
        self.kind_before() == Some(kind)
    }

    /// Returns whether the incident explains why other feeds are suspended.
    pub(super) fn explains_suspension(&self) -> bool {
        let kinds = self.kind_before().into_iter().chain(self.kinds.keys().copied());
        self.scope.width() >= 2 || kinds.into_iter().any(IncidentKind::is_source_wide)
    }

    /// Returns the kind now: the same as before, unless every failure in this cycle is of another kind.
    pub(super) fn kind(&self) -> IncidentKind {
        let before = self.kind_before();
        let now = self.kinds.keys().copied().find(|kind| *kind != IncidentKind::SUSPENDED);
        match (self.scope.width(), before, now) {
            // A missing, an unreadable, and a rejected key share an alert, but need different actions.
            (3, Some(before), Some(IncidentKind::Failure(now)))
                if now.is_about_key() && self.scope == IncidentScope::Unauthorized && !self.kinds.contains_key(&before) =>
            {
                IncidentKind::Failure(now)
            }
            (3, Some(before), _) => before,
            (_, Some(before), _) if self.kinds.is_empty() || self.kinds.contains_key(&before) => before,
            (_, _, Some(now)) => now,
            (_, before, None) => before.unwrap_or(IncidentKind::SUSPENDED),
        }
    }
}

/// Puts a failing feed into its current incident, or into a wider one that this cycle found.
pub(super) fn assign(incidents: &mut Vec<Incident>, failing: &FailingFeed<'_>, scope: &IncidentScope, now: Timestamp) {
    let name = failing.feed.to_string();
    let current = incidents.iter().position(|incident| incident.members.contains(&name));
    // A rejected key and exhausted credits need their own alert. Otherwise, a feed stays in the wider alert.
    let stays = current.and_then(|index| incidents.get(index)).is_some_and(|incident| match scope {
        IncidentScope::Quota | IncidentScope::Unauthorized => incident.scope == *scope,
        // The feed responded, so credits and key are fine.
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
        incident.kinds.entry(failing.kind).or_insert_with(|| phrase::quote(failing.message));
    }
}

/// Ends an incident of an endpoint or the source if only a few feeds still fail while others succeed. Each of these feeds gets its own
/// alert, so that they do not hide the next incident of the source. Returns the scopes that ended.
pub(super) fn narrow(incidents: &mut Vec<Incident>, feeds: &FeedsByResult<'_>, now: Timestamp) -> Vec<IncidentScope> {
    let mut narrowed = Vec::new();
    let mut leftovers = Vec::new();
    for incident in
        incidents.iter_mut().filter(|incident| matches!(incident.scope, IncidentScope::Source | IncidentScope::Endpoint(_)))
    {
        let Some(before) = &incident.before else { continue };
        let is_quiet = incident.joined == 0 && incident.left == 0 && now.signed_duration_since(before.updated_at) > BATCH_WINDOW;
        let few = incident.members.len() <= FEW_FEEDS && feeds.fine.len() >= incident.members.len().max(1);
        let left: Vec<&FailingFeed<'_>> =
            incident.members.iter().filter_map(|member| feeds.failing.get(&feed_of(member)?)).collect();
        // Feeds that were not polled in this cycle, and endpoints without tokens, do not move.
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
