//! Decides which deliveries a replay sends again.

use std::collections::HashSet;

use chrono::TimeDelta;

use model::{DeliveryState, ReplayCandidate, ReplayPlan, ReplayState, Timestamp};

/// The time after the end of a replayed delivery in which another request leaves it out, unless that includes recent ones. So a request that
/// is sent twice by mistake, or by two users, sends each message once.
pub const REPLAY_PAUSE: TimeDelta = TimeDelta::minutes(10);

/// Returns the deliveries to send again: delivered ones and dead letters. Pending deliveries are sent anyway. A dropped delivery was
/// dropped on purpose. With `includes_recent`, deliveries of a replay that ended just before are sent again.
#[must_use]
pub fn plan(state: &ReplayState, includes_recent: bool, now: Timestamp) -> ReplayPlan {
    let unfinished: HashSet<Timestamp> = state.unfinished.iter().copied().collect();
    // A dead letter is sent again at once: its replay failed.
    let is_recent = |candidate: &ReplayCandidate| {
        let is_paused = |requested_at: Timestamp| unfinished.contains(&requested_at) || candidate.updated_at > now - REPLAY_PAUSE;
        !includes_recent && candidate.state == DeliveryState::Delivered && candidate.replayed_at.is_some_and(is_paused)
    };
    let mut plan = ReplayPlan::default();
    for candidate in &state.candidates {
        match candidate.state {
            DeliveryState::Due | DeliveryState::Retrying => plan.pending += 1,
            DeliveryState::Dropped => plan.dropped += 1,
            DeliveryState::Delivered | DeliveryState::Dead if is_recent(candidate) => plan.recently_replayed += 1,
            DeliveryState::Delivered | DeliveryState::Dead => plan.deliveries.push(candidate.id),
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::DeliveryId;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn candidate(id: i64, state: DeliveryState, ended: i64, replayed: Option<i64>) -> ReplayCandidate {
        ReplayCandidate { id: DeliveryId(id), state, updated_at: at(ended), replayed_at: replayed.map(at) }
    }

    #[test]
    fn only_ended_deliveries_are_sent_again() {
        let states = DeliveryState::ALL.into_iter().zip(1..);
        let candidates = states.map(|(state, id)| candidate(id, state, 0, None)).collect();
        let plan = plan(&ReplayState { candidates, unfinished: Vec::new() }, false, at(60));
        let expected =
            ReplayPlan { deliveries: vec![DeliveryId(3), DeliveryId(4)], pending: 2, dropped: 1, recently_replayed: 0 };
        assert_eq!(plan, expected);
    }

    #[test]
    fn recent_replay_is_not_repeated_unless_requested() {
        let candidates = vec![
            candidate(1, DeliveryState::Delivered, 59, None),
            candidate(2, DeliveryState::Delivered, 55, Some(54)),
            candidate(3, DeliveryState::Delivered, 50, Some(49)),
            candidate(4, DeliveryState::Dead, 59, Some(58)),
            candidate(5, DeliveryState::Delivered, 20, Some(10)),
        ];
        let state = ReplayState { candidates, unfinished: vec![at(10)] };
        let ids = |includes_recent| plan(&state, includes_recent, at(60)).deliveries.iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(ids(false), [1, 3, 4]);
        assert_eq!(plan(&state, false, at(60)).recently_replayed, 2);
        assert_eq!(ids(true), [1, 2, 3, 4, 5]);
    }
}
