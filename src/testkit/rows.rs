//! Rows for the store: a firing alert and a schedule.

use model::{Alert, AlertId, AlertState, Endpoint, FeedId, FeedState, FeedUpdate, Put, Record, Resource, Timestamp};

/// An alert of `BigCliffAhead` that fires since `at`, without notified receivers.
pub fn firing(id: &str, at: Timestamp) -> Alert {
    Alert {
        id: AlertId::from(id),
        rule: "BigCliffAhead".into(),
        name: "BigCliffAhead".into(),
        subject: "unlock/arbitrum/1".into(),
        episode: 1,
        state: AlertState::Firing,
        resolution: None,
        token: Some("arbitrum".into()),
        resource: Some(Resource::Unlock),
        key: None,
        level: None,
        labels: Default::default(),
        former_labels: Vec::new(),
        annotations: Default::default(),
        notified: Vec::new(),
        leads: Vec::new(),
        members: Vec::new(),
        active_at: at,
        starts_at: Some(at),
        ends_at: None,
        false_since: None,
        due: None,
        recheck_at: None,
        text_at: None,
        updated_at: at,
    }
}

/// The baseline of a schedule, polled at `at`, with cliffs given as dates and values.
pub fn schedule(token: &str, events: &[(&str, f64)], at: Timestamp) -> FeedUpdate {
    let put = |(date, value): &(&str, f64)| {
        let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1e6, "cliffValue": value}});
        let record = Record::Unlock(serde_json::from_value(event).expect("an event"));
        Put { key: (*date).into(), record, is_new_version: true }
    };
    FeedUpdate {
        id: FeedId::of(Endpoint::UnlockEvents, &token.into()),
        state: FeedState { baseline_at: Some(at), read_at: Some(at), tried_at: Some(at), cost: 1, ..FeedState::default() },
        put: events.iter().map(put).collect(),
        removed: Vec::new(),
        header: None,
    }
}
