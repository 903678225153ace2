//! The current text of an open alert, for display.
//!
//! An evaluation renders the stored text of an alert again only if its facts changed, so that time alone causes no writes. Built-in stored
//! texts have no time until the date, but a template can state one. Pages, API, commands, and digests show the text that [`current_text`]
//! renders from the stored facts. Sent notifications do not change.

use std::collections::BTreeMap;

use super::{ScheduleFeed, polled_at};
use crate::evaluate::{self, EvaluationContext, TokenFacts};
use model::{Alert, AlertState, Resource, TokenId, TokenSnapshot};
use rules::aggregate::{FlowEntries, Totals};

/// The resources whose records are summed in totals.
const SUMMED: [Resource; 4] = [Resource::Unlock, Resource::Emission, Resource::Burn, Resource::Buyback];

/// Returns the token and the resources that [`current_text`] needs. `None` if the text of the alert does not depend on the time: it has
/// ended, it is an event, or it is about a group or the source.
pub fn facts_for_text(alert: &Alert) -> Option<(&TokenId, Vec<Resource>)> {
    let is_open = matches!(alert.state, AlertState::Pending | AlertState::Firing);
    let token = alert.token.as_ref().filter(|_| is_open)?;
    Some((token, alert.resource.map_or_else(|| SUMMED.to_vec(), |resource| vec![resource])))
}

/// Returns the annotations of an open alert, from the current facts and time. `snapshot` has the resources of [`facts_for_text`]. `None`
/// if the stored text applies: the rule or the record no longer exists, a template fails, or rules read shares of groups.
pub fn current_text(
    alert: &Alert,
    snapshot: &TokenSnapshot,
    context: &EvaluationContext<'_>,
) -> Option<BTreeMap<String, String>> {
    with_facts(snapshot, context, |facts| evaluate::current_text(alert, facts, || totals(snapshot, context), context))
}

/// Calls `render` with the stored facts of a token.
pub(super) fn with_facts<T>(
    snapshot: &TokenSnapshot,
    context: &EvaluationContext<'_>,
    render: impl FnOnce(&TokenFacts<'_>) -> T,
) -> T {
    let linear = ScheduleFeed::of(snapshot).filter(|_| context.rules.reads_rate_steps).map(|feed| feed.linear());
    render(&TokenFacts {
        token: &snapshot.token,
        is_watched: true,
        records: &snapshot.records,
        linear: linear.as_ref(),
        // Texts do not read them.
        corrections: &[],
        resources: &[],
        changes: &[],
        added: &[],
        late: &[],
        alerts: &[],
        polled_at: &polled_at(&snapshot.feeds),
    })
}

/// Computes the totals of a token. `None` if rules read its share of a group, which needs the totals of all its tokens.
fn totals(snapshot: &TokenSnapshot, context: &EvaluationContext<'_>) -> Option<Totals> {
    let reads = &context.rules.reads;
    (!reads.has_shares).then(|| Totals::of(&snapshot.token, &FlowEntries::of_snapshot(snapshot), reads, context.now))
}
