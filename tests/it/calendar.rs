//! The calendar during the life of a schedule: unchanged polls leave it identical, and it shows moved, resized, and removed unlocks.

use chrono::TimeDelta;
use cliffwatch::daemon::view::UnlockView;
use cliffwatch::model::{CalendarRow, TokenId, UnlockListFilter, UpcomingFilter, supply::Endpoint};
use cliffwatch::web::ui::calendar::{CalendarEntry, CalendarStyle, render};

use crate::it::support::{BEGIN, TestApp, cliff, time};

fn unlocks(app: &TestApp, tokens: Option<Vec<TokenId>>) -> UnlockListFilter {
    let unlocks = UpcomingFilter { tokens, from: app.clock.now(), until: None, limit: 100 };
    UnlockListFilter { unlocks, kind: None, min_value: None, after: None }
}

async fn rows(app: &TestApp) -> Vec<CalendarRow> {
    let filter = unlocks(app, Some(vec!["alpha".into()]));
    app.app()
        .store()
        .calendar(filter, app.clock.now() - TimeDelta::days(30), usize::MAX, false, |row, _| Some(row))
        .await
        .expect("read")
}

fn text(rows: &[CalendarRow], app: &TestApp) -> String {
    let entry = |row: &CalendarRow| CalendarEntry {
        key: row.row.tracked.key.as_str().to_owned(),
        interval: row.row.tracked.record.interval().expect("dated"),
        view: UnlockView::of(&row.row, app.clock.now()).expect("an unlock"),
        modified_at: row.modified_at,
        was_modified: row.was_modified,
        is_removed: row.is_removed,
    };
    render(&rows.iter().map(entry).collect::<Vec<_>>(), &[], &CalendarStyle::default())
}

/// Advances the clock, polls, and delivers.
async fn poll_later(app: &TestApp, hours: i64) {
    app.clock.set(app.clock.now() + TimeDelta::hours(hours));
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::UnlockEvents).await;
    app.deliver().await;
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calendar_changes_only_with_moved_resized_or_removed_events() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let first = rows(&app).await;
    assert!(first.len() == 6 && first.iter().all(|row| !row.was_modified && row.modified_at == time(BEGIN)), "{first:#?}");
    for _ in 0..3 {
        poll_later(&app, 6).await;
        assert_eq!(text(&rows(&app).await, &app), text(&first, &app));
    }

    app.edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-24T12:00:00Z")));
    poll_later(&app, 6).await;
    let moved = rows(&app).await;
    let (was, is) = (&first[2], &moved[2]);
    assert_eq!(was.row.tracked.key, is.row.tracked.key, "the key of the event changed");
    assert_eq!(is.row.tracked.record.interval().map(|of| of.start), Some(time("2026-05-24T12:00:00Z")));
    assert!(is.was_modified && is.modified_at == app.clock.now() && !is.is_removed);
    assert!(moved.iter().filter(|row| row.was_modified).count() == 1);

    app.edit(|edit| edit.resize_event("alpha", time("2026-06-20T12:00:00Z"), 2.0));
    poll_later(&app, 6).await;
    assert!(rows(&app).await[3].was_modified && rows(&app).await[2].modified_at == is.modified_at);

    app.edit(|edit| {
        let months = ["2026-03-20", "2026-04-20", "2026-05-24", "2026-06-20", "2026-07-20"];
        let amount = |day: &str| if day == "2026-06-20" { 4_000_000.0 } else { 2_000_000.0 };
        let events = months.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", amount(day), "second"));
        edit.put_events("alpha", events.collect())
    });
    for _ in 0..3 {
        poll_later(&app, 6).await;
    }
    let left = rows(&app).await;
    let removed: Vec<&CalendarRow> = left.iter().filter(|row| row.is_removed).collect();
    assert_eq!(removed.len(), 1, "{left:#?}");
    assert_eq!(removed[0].row.tracked.key, first[5].row.tracked.key);
    assert!(removed[0].was_modified && text(&left, &app).contains("STATUS:CANCELLED"));
    let after_a_month = app.app().store().calendar(unlocks(&app, None), app.clock.now(), usize::MAX, false, |row, _| Some(row));
    assert!(after_a_month.await.expect("read").iter().all(|row| !row.is_removed));
}

/// Subscribers only apply an update whose SEQUENCE is higher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sequence_rises_with_each_of_three_moves_in_a_second() {
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    let sequence = |rows: &[CalendarRow]| {
        let moved = text(&rows[2..3], &app);
        let line = moved.lines().find_map(|line| line.trim_end().strip_prefix("SEQUENCE:"));
        line.map_or(0, |number| number.parse::<u32>().expect("a number"))
    };
    let mut sequences = vec![sequence(&rows(&app).await)];
    app.clock.set(time(BEGIN) + TimeDelta::hours(6));
    let days = ["2026-05-20T12:00:00Z", "2026-05-24T12:00:00Z", "2026-05-22T12:00:00Z", "2026-05-25T12:00:00Z"];
    for (from, to) in days.into_iter().zip(&days[1..]) {
        app.edit(|edit| edit.move_event("alpha", time(from), time(to)));
        app.clock.set(app.clock.now() + TimeDelta::milliseconds(300));
        app.poll(Endpoint::UnlockEvents).await;
        let moved = rows(&app).await;
        assert_eq!(moved[2].row.tracked.record.interval().map(|of| of.start), Some(time(to)));
        sequences.push(sequence(&moved));
    }
    assert!(sequences.is_sorted_by(|before, after| before < after), "{sequences:?}");
}

#[test]
fn secret_links_are_printed_and_depend_on_the_token() {
    let workdir = crate::it::binary::Workdir::new();
    let config = |token: &str| {
        format!("[watch]\ntokens = [\"arbitrum\"]\n[http]\nexternal_url = \"https://cliffwatch.example.com\"\n{token}")
    };
    let links = |token: &str| {
        workdir.write("cliffwatch.toml", &config(&format!("token = \"{token}\"\n")));
        workdir.run("feeds --format csv").ok()
    };
    let (first, second) = (links("one-long-token-of-our-own"), links("another-long-token-of-our-own"));
    for name in ["calendar.ics", "feed.atom"] {
        let link = first.lines().find(|line| line.ends_with(name)).expect("a link");
        assert!(link.contains("https://cliffwatch.example.com/feeds/") && !second.contains(link), "{first}");
    }
    assert!(!first.contains("one-long-token"));
    workdir.write("cliffwatch.toml", &config(""));
    let ran = workdir.run("feeds");
    assert!(ran.err.contains("token_file"), "{}", ran.err);
}
