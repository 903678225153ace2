use super::*;
use crate::config::{Environment, load_text};
use model::Commit;
use store::{Access, Opening};
use testkit::rows::schedule;

fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).expect("a time")
}

/// A database from yesterday: two tokens with unlocks before and after now.
async fn world() -> (Store, Arc<LiveConfig>) {
    let directory = tempfile::tempdir().expect("a directory").keep();
    let path = directory.join("cliffwatch.db");
    let store = Store::open(Opening { path: path.clone(), access: Access::Own, now: now() }).await.expect("a store");
    let at = now() - TimeDelta::days(1);
    let feed = |token: &str, events: &[(&str, f64)]| schedule(token, events, at);
    // The tests' now is 21 Sep 2026.
    let feeds = vec![
        feed("arbitrum", &[("2026-03-16T13:00:00Z", 9e6), ("2026-06-16T13:00:00Z", 9e6), ("2026-09-24T13:00:00Z", 9e6)]),
        feed("sui", &[("2026-10-01T00:00:00Z", 2e6)]),
    ];
    store.commit(Commit { at, feeds, ..Commit::default() }).await.expect("committed");
    let text =
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n[route]\nreceivers = [\"ops\"]\n";
    let mut config = load_text(None, text, &Environment::default()).config.expect("good");
    config.store.path = path;
    (store, Arc::new(LiveConfig::build_now(config, RuleSet::default()).expect("builds")))
}

async fn tried(text: &str) -> Trial {
    let (store, live) = world().await;
    let permit = Playground::default().try_acquire().expect("free");
    try_out(&store, live.clone(), live.watch.clone(), text.to_owned(), now(), permit).await.expect("readable")
}

#[tokio::test]
async fn trial_returns_current_matches_and_messages_of_last_year() {
    let rule = "[[rule]]\nalert = \"Big\"\non = \"unlock\"\nwithin = [\"7d\"]\nwhen = \"cliffValue >= 5000000\"\n";
    let trial = tried(rule).await;
    assert!(trial.diagnostics.is_empty(), "{:?}", trial.diagnostics);
    let outcome = trial.outcome.expect("an outcome");
    let now_firing: Vec<_> = outcome.matches.iter().map(|notified| notified.token.as_deref()).collect();
    assert_eq!(now_firing, [Some("arbitrum")], "the unlock in three days");
    let firing: Vec<_> = outcome.run.notifications.iter().filter(|notified| notified.kind == "alert.firing").collect();
    let days: Vec<String> = firing.iter().map(|notified| notified.at.format("%m-%d").to_string()).collect();
    assert_eq!(days, ["03-09", "06-09", "09-17"], "as if the schedule had been known for the whole year");
    assert!(outcome.summary.messages >= 3 && outcome.run.to == now() && !outcome.is_once, "{:?}", outcome.summary);
    assert_eq!((outcome.recorded_since, outcome.left_out), (Some(now() - TimeDelta::days(1)), (0, 2)));
}

#[tokio::test]
async fn invalid_text_is_reported_and_not_replayed() {
    for (text, expected) in [
        ("[[rule]]\nalert = \"Big\"\non = \"unlock\"\nwhen = \"clifValue >= 5\"\n", "clifValue"),
        ("", "no rule"),
        ("[[rule]]\nalert = \"Big\"\non = \"unlock\"\nenabled = false\n", "no rule"),
        ("not toml", ""),
    ] {
        let trial = tried(text).await;
        assert!(trial.outcome.is_none(), "{text}");
        assert!(trial.diagnostics.iter().any(|problem| problem.message.contains(expected)), "{text}: {:?}", trial.diagnostics);
    }
    let many: String = (0..=MAX_RULES).map(|n| format!("[[rule]]\nalert = \"R{n}\"\non = \"unlock\"\n")).collect();
    assert!(tried(&many).await.outcome.is_none());
}

#[tokio::test]
async fn rule_on_changes_has_no_current_matches() {
    let outcome = tried("[[rule]]\nalert = \"Moved\"\non = \"unlock.rescheduled\"\n").await.outcome.expect("an outcome");
    assert!(outcome.is_once && outcome.matches.is_empty() && outcome.run.messages.is_empty());
}

#[test]
fn second_trial_waits_for_first() {
    let playground = Playground::default();
    let permit = playground.try_acquire().expect("free");
    assert!(playground.try_acquire().is_none());
    drop(permit);
    assert!(playground.try_acquire().is_some());
}
