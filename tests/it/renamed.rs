//! A token that the list names under another slug: told once, nothing repeated, nothing asked of the old one.

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

/// `alpha` under another slug, `beta` as it was.
fn under(slug: &str) -> impl FnOnce(&mut Edit<'_>) -> Result<(), EditError> {
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

/// Ticks and deliveries of a day, with a restart.
async fn day(app: &mut TestApp, date: &str) -> Vec<String> {
    let mut told = Vec::new();
    for hours in [0, 6, 12, 18] {
        app.clock.set(time(date) + TimeDelta::hours(hours));
        app.tick().await;
        app.restart().await;
        app.deliver().await;
        told.extend(lines(&app.hook.take()));
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_listed_under_another_slug_goes_on_with_its_reminders() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    let told = day(&mut app, "2026-03-13").await;
    assert!(told.len() == 1 && told[0].starts_with("alert.reminder BigCliffAhead alpha"), "{told:#?}");

    app.edit(under("omega"));
    let mut told = day(&mut app, "2026-03-14").await;
    told.sort();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told[0].starts_with("alert.event ScheduleChanged omega: "), "{told:#?}");
    assert!(told[1].starts_with("alert.resolved BigCliffAhead alpha"), "{told:#?}");
    let changes = app.app().store().changes(ChangeFilter { limit: 100, ..ChangeFilter::default() }).await.expect("changes");
    let said: Vec<&str> = changes.iter().map(|row| row.change.summary.as_str()).collect();
    assert_eq!(said, ["the source lists ALP as omega now, no longer as alpha"]);

    app.faults.take_log();
    let told = day(&mut app, "2026-03-19").await;
    assert!(told.len() == 1 && told[0].starts_with("alert.reminder BigCliffAhead omega"), "{told:#?}");
    let told = day(&mut app, "2026-03-21").await;
    assert_eq!(told.len(), 2, "it passed, and the next one comes within 30 days: {told:#?}");
    assert!(told.iter().all(|line| line.contains("BigCliffAhead omega")), "{told:#?}");
    assert!(app.faults.log().iter().all(|request| !request.uri.contains("alpha")), "the old slug is asked for no more");
    let store = app.app().store();
    let all = vec![Resource::Unlock, Resource::Burn, Resource::Buyback];
    let known = store.tokens(vec!["alpha".into(), "omega".into()], all).await.expect("tokens");
    let counts: Vec<usize> = known.iter().map(|known| known.records.len()).collect();
    assert_eq!(counts, [0, 8], "{known:#?}");

    // A correction is told of the new slug, and the way back is a new beginning of neither.
    app.edit(|edit| edit.move_event("omega", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    let told = day(&mut app, "2026-03-22").await;
    assert!(told.len() == 1 && told[0].starts_with("alert.event ScheduleChanged omega: "), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_token_that_may_be_another_is_read_as_a_new_one() {
    let mut app = TestApp::start().await;
    assert_eq!(day(&mut app, "2026-03-01").await.len(), 1);
    app.edit(under("omega"));
    app.edit(|edit| edit.put_item("omega", |item| item.max_supply = 7e9.into()));
    let told = day(&mut app, "2026-03-02").await;
    assert!(told.iter().all(|line| !line.contains("ScheduleChanged")), "{told:#?}");
    assert_eq!(app.poll(Endpoint::TokenList).await.changes, []);
    app.deliver().await;
    app.hook.take();
}
