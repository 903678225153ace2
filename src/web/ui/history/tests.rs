use super::*;
use model::{Resolution, SilenceFact};
use testkit::{rows::firing, time};

fn lines(alert: &Alert, ack: Option<&Ack>) -> Vec<String> {
    let line = |step: HistoryStep| {
        let lasted = step.lasted.map(|lasted| format!(" ({lasted})")).unwrap_or_default();
        format!("{} {}: {}{lasted}", step.at.format("%H:%M"), step.state, step.text)
    };
    history(alert, ack, time("2026-03-09T12:00:00Z")).into_iter().map(line).collect()
}

#[test]
fn history_lists_states_with_durations() {
    let at = |hour: u32| time(&format!("2026-03-09T{hour:02}:00:00Z"));
    let mut alert = Alert { active_at: at(6), starts_at: None, state: AlertState::Pending, ..firing("al_1", at(6)) };
    assert_eq!(lines(&alert, None), ["06:00 pending: the condition became true (6 h)"]);
    (alert.state, alert.starts_at) = (AlertState::Firing, Some(at(7)));
    let ack = Ack {
        alert: "al_1".into(),
        author: "ann".to_owned(),
        comment: "hedged".to_owned(),
        at: at(9),
        fact: SilenceFact::default(),
    };
    let begun =
        ["06:00 pending: the condition became true (1 h)", "07:00 firing: the condition was true for the required time (2 h)"];
    assert_eq!(lines(&alert, Some(&ack)), [&begun[..], &["09:00 acknowledged: by ann: hedged (3 h)"]].concat());
    (alert.state, alert.ends_at, alert.resolution) = (AlertState::Resolved, Some(at(11)), Some(Resolution::Cleared));
    let ended = ["09:00 acknowledged: by ann: hedged (2 h)", "11:00 resolved: cleared"];
    assert_eq!(lines(&alert, Some(&ack)), [&begun[..], &ended].concat());
    let at_once = Alert { starts_at: Some(at(6)), ends_at: None, ..alert.clone() };
    assert_eq!(lines(&at_once, None), ["06:00 firing: the condition became true (6 h)"]);
    let clearing = Alert { false_since: Some(at(8)), ..at_once };
    assert_eq!(lines(&clearing, None).len(), 2);
    let event = Alert { state: AlertState::Event, ends_at: None, ..alert };
    assert_eq!(lines(&event, None), ["07:00 event: occurred once"]);
}

#[test]
fn former_episodes_are_only_the_earlier_ones() {
    let now = time("2026-03-09T12:00:00Z");
    let episode = |number: u32| Alert { episode: number, ..firing(&format!("al_{number}"), now) };
    let all: Vec<Alert> = [2, 1, 3, 4].map(episode).into();
    let ids: Vec<String> = former(&episode(3), &all).into_iter().map(|former| former.id).collect();
    assert_eq!(ids, ["al_2", "al_1"]);
}
