//! The audit log: each action once, with its author, on both engines.

use tempfile::TempDir;

use super::support::*;
use crate::Store;
use model::*;

fn ann() -> Actor {
    Actor { name: "ann".into(), via: ActorSource::Key }
}

fn silence(id: &str) -> Silence {
    Silence {
        id: id.to_owned(),
        matchers: vec![Matcher::parse("token=arbitrum").expect("a matcher")],
        author: "ann".into(),
        comment: "a planned move".into(),
        starts_at: now(),
        ends_at: now() + minutes(60),
        created_at: now(),
    }
}

/// Returns all rows, oldest first, as author, type, and subject.
async fn logged(store: &Store) -> Vec<(String, &'static str, String)> {
    let listed = store.audit(AuditFilter { limit: 99, ..AuditFilter::default() }).await.expect("read");
    assert_eq!(listed.total, listed.rows.len() as u64);
    listed.rows.into_iter().rev().map(|row| (row.actor.name, row.kind.as_str(), row.subject)).collect()
}

#[tokio::test]
async fn each_action_has_a_row_with_its_author() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let ids: Vec<DeliveryId> = notify(&store, "a", &["ops", "desk"]).await.iter().map(|due| due.id).collect();
    let acting = store.acting_as(ann());
    let alert = firing("unlock/arbitrum/x", None).id;
    store.commit(at(Commit { alerts: vec![firing("unlock/arbitrum/x", None)], ..Commit::default() })).await.expect("committed");

    acting.put_silence(silence("si_1")).await.expect("written");
    acting.expire_silence("si_1".into(), now() + minutes(1)).await.expect("ended");
    acting.acknowledge(alert.to_string(), "ann".into(), "known".into(), now()).await.expect("acknowledged");
    acting.unacknowledge(alert.clone(), now()).await.expect("removed");
    acting.retry_at(vec![ids[0]], now()).await.expect("retried");
    acting.drop_at(vec![ids[1]], now()).await.expect("dropped");
    let opt_out = OptOut { receiver: "desk".into(), address: "a@example.com".into(), at: now(), via: OptOutSource::Hand };
    acting.opt_out(opt_out.clone()).await.expect("written");
    acting.opt_in("desk".into(), "a@example.com".into(), now()).await.expect("written");
    let key = AccessKey { name: "bot".into(), role: AccessRole::Act, created_at: now() };
    acting.add_access_key(key, [1; 32]).await.expect("added");
    acting.revoke_access_key("bot".into(), now()).await.expect("revoked");
    acting
        .log_action(EventType::RuleSaved, LoggedAction::new("Big", Some("rules/big.toml".into())), now())
        .await
        .expect("written");

    let (first, second) = (ids[0].to_string(), ids[1].to_string());
    let expected = [
        ("silence.created", "si_1"),
        ("silence.expired", "si_1"),
        ("acknowledgement.added", alert.as_str()),
        ("acknowledgement.removed", alert.as_str()),
        ("delivery.retried", first.as_str()),
        ("delivery.dropped", second.as_str()),
        ("digest.stopped", "desk"),
        ("digest.resumed", "desk"),
        ("access-key.added", "bot"),
        ("access-key.revoked", "bot"),
        ("rule.saved", "Big"),
    ];
    assert_eq!(logged(&store).await, expected.map(|(kind, subject)| ("ann".to_owned(), kind, subject.to_owned())));

    // Without effect, and without an author: no row.
    acting.expire_silence("si_1".into(), now() + minutes(2)).await.expect("read");
    acting.unacknowledge(alert.clone(), now()).await.expect("read");
    acting.drop_at(vec![ids[1]], now()).await.expect("read");
    acting.revoke_access_key("bot".into(), now()).await.expect("read");
    store.put_silence(silence("si_2")).await.expect("written");
    assert_eq!(logged(&store).await.len(), expected.len());
}

#[tokio::test]
async fn list_is_filtered_and_walked_in_both_directions() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (ann, bob) = (store.acting_as(ann()), store.acting_as(Actor { name: "bob".into(), via: ActorSource::Proxy }));
    for number in 0..5 {
        let by = if number % 2 == 0 { &ann } else { &bob };
        by.put_silence(Silence { created_at: now() + minutes(number), ..silence(&format!("si_{number}")) })
            .await
            .expect("written");
    }
    let subjects = async |filter: AuditFilter| {
        let listed = store.audit(AuditFilter { limit: filter.limit.max(1), ..filter }).await.expect("read");
        (listed.total, listed.rows.iter().map(|row| row.subject.clone()).collect::<Vec<_>>())
    };
    let all = AuditFilter { limit: 99, ..AuditFilter::default() };
    assert_eq!(subjects(all.clone()).await, (5, ["si_4", "si_3", "si_2", "si_1", "si_0"].map(str::to_owned).to_vec()));
    let by_bob = AuditFilter { actor: Some("bob".into()), ..all.clone() };
    assert_eq!(subjects(by_bob).await, (2, ["si_3", "si_1"].map(str::to_owned).to_vec()));
    let ended = AuditFilter { kinds: vec![EventType::SilenceExpired], ..all.clone() };
    assert_eq!(subjects(ended).await, (0, vec![]));
    let middle = AuditFilter { since: Some(now() + minutes(1)), until: Some(now() + minutes(3)), ..all.clone() };
    assert_eq!(subjects(middle).await, (2, ["si_2", "si_1"].map(str::to_owned).to_vec()));
    let rows = store.audit(all.clone()).await.expect("read").rows;
    let after = ListPosition { after: Some(rows[1].no), ..ListPosition::default() };
    let older = AuditFilter { position: after, limit: 2, ..all.clone() };
    assert_eq!(subjects(older).await.1, ["si_2", "si_1"].map(str::to_owned));
    let before = ListPosition { before: Some(rows[3].no), ..ListPosition::default() };
    assert_eq!(subjects(AuditFilter { position: before, limit: 2, ..all }).await.1, ["si_3", "si_2"].map(str::to_owned));
    assert_eq!(store.audit_actors().await.expect("read"), ["ann", "bob"]);
}

#[tokio::test]
async fn audit_log_is_kept_longer_than_other_rows() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    store.acting_as(ann()).put_silence(silence("si_1")).await.expect("written");
    let month = std::time::Duration::from_secs(30 * 86_400);
    let later = now() + crate::audit::MIN_AUDIT_RETENTION;
    store.prune(later, month, month).await.expect("pruned");
    assert_eq!(logged(&store).await.len(), 1);
    store.prune(later + minutes(1), month, month).await.expect("pruned");
    assert_eq!(logged(&store).await.len(), 0);
}

#[tokio::test]
async fn notes_and_assignees_belong_to_one_alert() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (one, other) = (firing("unlock/arbitrum/x", Some("arbitrum")), firing("unlock/arbitrum/y", Some("arbitrum")));
    store.commit(at(Commit { alerts: vec![one.clone(), other.clone()], ..Commit::default() })).await.expect("committed");
    let acting = store.acting_as(ann());
    let note = |alert: &AlertId, text: &str| {
        UserAction::AddNote(note::NewNote { alert: alert.clone(), author: "ann".into(), text: text.into() })
    };
    let assign = |assignee: Option<&str>| {
        let assignee = assignee.map(str::to_owned);
        UserAction::Assign(note::NewAssignment { alert: one.id.clone(), author: "ann".into(), assignee })
    };
    for text in ["first", "second"] {
        assert_eq!(acting.perform(note(&one.id, text), now()).await.expect("performed"), ActionOutcome::Done);
    }
    let unknown = AlertId::from("al_nothing");
    assert_eq!(acting.perform(note(&unknown, "x"), now()).await.expect("performed"), ActionOutcome::Unknown);
    let texts = |notes: Vec<note::AlertNote>| notes.into_iter().map(|note| note.text).collect::<Vec<_>>();
    assert_eq!(texts(store.notes(one.id.clone()).await.expect("read")), ["first", "second"]);
    assert_eq!(texts(store.notes(other.id.clone()).await.expect("read")), [""; 0]);

    let assigned_to = async |name: &str| {
        let filter = AlertFilter { assignee: Some(name.into()), limit: 9, ..AlertFilter::default() };
        store.alerts(filter).await.expect("read").into_iter().map(|alert| alert.id).collect::<Vec<_>>()
    };
    for assignee in [Some("bob"), Some("bob"), Some("eve")] {
        acting.perform(assign(assignee), now()).await.expect("performed");
    }
    assert_eq!((assigned_to("bob").await, assigned_to("eve").await), (vec![], vec![one.id.clone()]));
    let assignments = store.assignments(vec![one.id.clone(), other.id.clone()]).await.expect("read");
    assert_eq!(assignments.len(), 1);
    assert_eq!(assignments[&one.id].assignee, "eve");
    for _ in 0..2 {
        acting.perform(assign(None), now()).await.expect("performed");
    }
    assert!(assigned_to("eve").await.is_empty());
    let kinds: Vec<_> = logged(&store).await.into_iter().map(|(_, kind, _)| kind).collect();
    let assigned = "alert.assigned";
    assert_eq!(kinds, ["note.added", "note.added", assigned, assigned, assigned], "what changed nothing has no row");

    // The number of notes is limited.
    for _ in 2..note::MAX_NOTES {
        assert_eq!(acting.perform(note(&one.id, "more"), now()).await.expect("performed"), ActionOutcome::Done);
    }
    assert_eq!(acting.perform(note(&one.id, "too many"), now()).await.expect("performed"), ActionOutcome::TooManyNotes);

    // They go with the alert.
    acting.perform(assign(Some("bob")), now()).await.expect("performed");
    let resolved = Alert { state: AlertState::Resolved, resolution: Some(Resolution::Passed), ..one.clone() };
    store.commit(at(Commit { alerts: vec![resolved], ..Commit::default() })).await.expect("committed");
    let month = std::time::Duration::from_secs(30 * 86_400);
    store.prune(now() + chrono::TimeDelta::days(60), month, month).await.expect("pruned");
    assert!(store.alert(one.id.clone()).await.expect("read").is_none());
    assert_eq!((count(&store, "note"), count(&store, "assignee")), (0, 0));
}
