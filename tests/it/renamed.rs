//! A token renamed in the list: reported once, without repeats, and the old slug is not polled again.

use chrono::TimeDelta;
use cliffwatch::{
    model::{Endpoint, Resource, rows::ChangeFilter, wire::UnlockEvent},
    service::{Edit, EditError},
};

use crate::support::{TestApp, burn, buyback, cliff, item, lines, time};

const DAYS: [&str; 6] = ["2026-03-20", "2026-04-20", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];

fn schedule() -> Vec<UnlockEvent> {
    DAYS.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2e6, "second")).collect()
}

/// Renames `alpha` and leaves `beta` unchanged.
fn rename_alpha(slug: &str) -> impl FnOnce(&mut Edit<'_>) -> Result<(), EditError> {
    let slug = slug.to_owned();
    move |edit| {
        edit.clear()?;
        edit.put_token(&item(&slug, "ALP"))?;
        edit.put_token(&item("beta", "BET"))?;
        edit.put_events(&slug, schedule())?;
        edit.put_events("beta", vec![cliff("2026-05-15T00:00:00Z", "Seed", 5e6, "month")])?;
        for token in [slug.as_str(), "beta"] {
            edit.add_burn(token, burn("2026-01-10T00:00:00Z", 5e3))?;
            edit.add_buyback(token, buyback("2026-01-11T00:00:00Z", 5e3))?;
        }
        Ok(())
    }
}

/// Runs the cycles and deliveries of a day, with restarts.
async fn day(app: &mut TestApp, date: &str) -> Vec<String> {
    let mut notified = Vec::new();
    for hours in [0, 6, 12, 18] {
        app.clock.set(time(date) + TimeDelta::hours(hours));
        app.tick().await;
        app.restart().await;
        app.deliver().await;
        notified.extend(lines(&app.hook.take()));
    }
    notified
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renamed_token_keeps_its_reminders() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    let notified = day(&mut app, "2026-03-13").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.reminder BigCliffAhead alpha"), "{notified:#?}");

    app.edit(rename_alpha("omega"));
    let mut notified = day(&mut app, "2026-03-14").await;
    notified.sort();
    assert_eq!(notified.len(), 2, "{notified:#?}");
    assert!(notified[0].starts_with("alert.event ScheduleChanged omega: "), "{notified:#?}");
    assert!(notified[1].starts_with("alert.resolved BigCliffAhead alpha"), "{notified:#?}");
    let changes = app.app().store().changes(ChangeFilter { limit: 100, ..ChangeFilter::default() }).await.expect("changes");
    let said: Vec<&str> = changes.iter().map(|row| row.change.summary.as_str()).collect();
    assert_eq!(said, ["the source lists ALP as omega now, no longer as alpha"]);

    app.faults.take_log();
    let notified = day(&mut app, "2026-03-19").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.reminder BigCliffAhead omega"), "{notified:#?}");
    let notified = day(&mut app, "2026-03-21").await;
    assert_eq!(notified.len(), 2, "one unlock passed, and the next is within 30 days: {notified:#?}");
    assert!(notified.iter().all(|line| line.contains("BigCliffAhead omega")), "{notified:#?}");
    assert!(app.faults.log().iter().all(|request| !request.uri.contains("alpha")), "the old slug is still polled");
    let store = app.app().store();
    let all = vec![Resource::Unlock, Resource::Burn, Resource::Buyback];
    let known = store.tokens(vec!["alpha".into(), "omega".into()], all).await.expect("tokens");
    let counts: Vec<usize> = known.iter().map(|known| known.records.len()).collect();
    assert_eq!(counts, [0, 8], "{known:#?}");

    // A later correction is notified for the new slug.
    app.edit(|edit| edit.move_event("omega", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    let notified = day(&mut app, "2026-03-22").await;
    assert!(notified.len() == 1 && notified[0].starts_with("alert.event ScheduleChanged omega: "), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_rename_is_treated_as_a_new_token() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    app.edit(rename_alpha("omega"));
    app.edit(|edit| edit.put_item("omega", |item| item.max_supply = 7e9.into()));
    let notified = day(&mut app, "2026-03-02").await;
    assert!(notified.iter().all(|line| !line.contains("ScheduleChanged")), "{notified:#?}");
    assert_eq!(app.poll(Endpoint::TokenList).await.changes, []);
    app.deliver().await;
    app.hook.take();
}
