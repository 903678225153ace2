//! Where two feeds tell of the same thing, where a part of an answer cannot be read, and where something fails half way: told once,
//! and nothing is lost.

use cliffwatch::{
    daemon::schedule::Job,
    model::{
        config::Config,
        supply::{Endpoint, Resource},
        wire,
    },
    service::faults::Fault,
};
use serde_json::{Value, json};

use crate::support::{RULES, Setup, TestApp, burn, cliff, item, lines, time};

/// Alerts of `bodies` as `status reason rule token`, in their order.
fn reasons(bodies: &[Value]) -> Vec<String> {
    let alerts = bodies.iter().flat_map(|body| body["data"]["alerts"].as_array().expect("alerts"));
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    alerts
        .map(|alert| {
            format!(
                "{} {} {} {}",
                text(&alert["status"]),
                text(&alert["reason"]),
                text(&alert["rule"]),
                text(&alert["token"]["id"])
            )
        })
        .collect()
}

// ---- upcoming and the schedule ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unlock_known_from_upcoming_stays_one_alert_when_its_schedule_is_read() {
    // A month that has begun may bring its unlock any day.
    for (precision, first, later) in [("second", "lead 30d", "lead 7d"), ("day", "lead 30d", "lead 7d"), ("month", "lead 1d", "")]
    {
        let fill = move |edit: &mut cliffwatch::service::Edit<'_>| {
            edit.put_token(&item("alpha", "ALP"))?;
            let dates = ["2026-03-20T00:00:00Z", "2026-06-20T00:00:00Z", "2026-09-20T00:00:00Z"];
            edit.put_events("alpha", dates.map(|date| cliff(date, "Team", 2e6, precision)).to_vec())
        };
        let app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
        app.poll(Endpoint::TokenList).await;
        app.poll(Endpoint::Upcoming).await;
        app.evaluate().await;
        app.deliver().await;
        let bodies = app.hook.take();
        assert_eq!(
            reasons(&bodies),
            [format!("firing {first} BigCliffAhead alpha")],
            "{precision}: upcoming alone is enough to be told"
        );
        let id = bodies[0]["data"]["alerts"][0]["id"].clone();

        assert_eq!(app.turn().await, [""; 0], "{precision}: the schedule tells nothing that was not known");
        app.at("2026-03-14T00:00:00Z");
        app.tick().await;
        app.deliver().await;
        let bodies = app.hook.take();
        if later.is_empty() {
            assert_eq!(reasons(&bodies), [""; 0], "{precision}");
        } else {
            assert_eq!(reasons(&bodies), [format!("firing {later} BigCliffAhead alpha")], "{precision}");
            assert_eq!(bodies[0]["data"]["alerts"][0]["id"], id, "{precision}: it is the same alert");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_upcoming_shows_first_is_told_once_by_the_schedule() {
    let app = TestApp::start().await;
    app.turn().await;
    app.at("2026-03-01T06:00:00Z");
    app.edit(|edit| edit.move_event("alpha", time("2026-03-20T12:00:00Z"), time("2026-03-25T12:00:00Z")));
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::Upcoming).await;
    app.evaluate().await;
    app.deliver().await;
    let mut told = reasons(&app.hook.take());
    app.tick().await;
    app.deliver().await;
    told.extend(reasons(&app.hook.take()));
    app.at("2026-03-01T12:00:00Z");
    app.tick().await;
    app.deliver().await;
    told.extend(reasons(&app.hook.take()));
    assert_eq!(told.iter().filter(|line| line.contains("ScheduleChanged")).count(), 1, "{told:#?}");
    assert!(!told.iter().any(|line| line.starts_with("resolved")), "the cliff is still ahead, within 30 days: {told:#?}");
    assert_eq!(told.len(), 1, "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_into_sight_as_the_window_slides_was_not_added_and_what_is_added_is_told() {
    let mut app = TestApp::start().await;
    app.restart_with(|config| config.source.horizon = "60d".parse().expect("a span")).await;
    app.turn().await;
    let count = async |app: &TestApp| {
        app.app().store().tokens(vec!["alpha".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len()
    };
    let before = count(&app).await;
    app.at("2026-04-01T06:00:00Z");
    app.edit(|edit| edit.move_event("alpha", time("2026-07-20T12:00:00Z"), time("2026-07-21T12:00:00Z")));
    app.tick().await;
    app.deliver().await;
    let told = reasons(&app.hook.take());
    assert!(count(&app).await > before, "the cliff of May is in sight");
    assert!(!told.iter().any(|line| line.contains("ScheduleChanged")), "{told:#?}");
    app.at("2026-04-02T06:00:00Z");
    app.edit(|edit| {
        let mut events = edit.events("alpha")?;
        events.push(cliff("2026-05-02T12:00:00Z", "Advisors", 2e6, "second"));
        edit.put_events("alpha", events)
    });
    app.tick().await;
    app.deliver().await;
    let told = reasons(&app.hook.take());
    assert_eq!(told.iter().filter(|line| line.contains("ScheduleChanged")).count(), 1, "{told:#?}");
}

// ---- the token list and the allocation table ----

fn table(max_supply: f64, team: f64) -> wire::AllocationsData {
    let row = |name: &str, amount: f64| {
        json!({"allocationName": name, "allocationType": "Scheduled", "standardAllocationName": "Reserve", "allocationUnlockedAmount": 0.0,
            "allocationLockedAmount": amount, "allocationAmount": amount, "trackedAllocationPercentage": 100})
    };
    serde_json::from_value(json!({"name": "ALP", "symbol": "ALP", "listedMethod": "INTERNAL", "maxSupply": max_supply,
        "totalUnlockedAmount": 0.0, "totalLockedAmount": max_supply, "totalUntrackedAmount": 0.0, "totalTBDLockedAmount": 0.0,
        "allocations": [row("Team", team), row("Treasury", max_supply - team)]}))
    .expect("a table")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supply_that_changes_is_told_once_whichever_feed_tells_it_first() {
    for order in [[Endpoint::TokenList, Endpoint::Allocations], [Endpoint::Allocations, Endpoint::TokenList]] {
        let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
            edit.put_token(&item("alpha", "ALP"))?;
            edit.put_allocations("alpha", table(1e9, 2e8))
        };
        let rules = "[[rule]]\nalert = \"Supply\"\non = \"allocation.supply_changed\"\n".to_owned();
        let app = TestApp::with(Setup { rules, fill: Box::new(fill), ..Setup::default() }).await;
        assert_eq!(app.turn().await, [""; 0]);
        app.edit(|edit| {
            edit.put_allocations("alpha", table(1.5e9, 2e8))?;
            edit.put_item("alpha", |item| item.max_supply = 1.5e9.into())
        });
        let mut told = Vec::new();
        for hour in ["06", "12", "18"] {
            app.at(&format!("2026-03-01T{hour}:00:00Z"));
            for endpoint in order {
                app.poll(endpoint).await;
            }
            app.deliver().await;
            told.extend(lines(&app.hook.take()));
        }
        assert_eq!(told.len(), 1, "{order:?}: {told:#?}");
        assert!(told[0].starts_with("alert.event Supply alpha"), "{told:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_supply_that_the_list_leaves_out_for_a_while_is_compared_with_the_last_known_one() {
    let rules = "[[rule]]\nalert = \"Supply\"\non = \"allocation.supply_changed\"\n".to_owned();
    let app = TestApp::with(Setup { rules, ..Setup::default() }).await;
    app.poll(Endpoint::TokenList).await;
    let mut told = Vec::new();
    for supply in [wire::Maybe::Null, wire::Maybe::Absent, 1e9.into(), wire::Maybe::Null, 3e9.into(), wire::Maybe::Null] {
        app.edit(|edit| edit.put_item("alpha", |item| item.max_supply = supply));
        let changes = app.poll(Endpoint::TokenList).await.changes;
        told.extend(changes.into_iter().map(|change| change.summary));
    }
    assert_eq!(told, ["maximum supply changed from 1.00B to 3.00B (×3)"]);
    let stats = app.app().store().poll_stats().await.expect("read");
    let odd = stats.iter().find(|stat| stat.endpoint == Endpoint::TokenList).map(|stat| stat.oddities);
    assert_eq!(odd, Some(4), "each gap is counted");
}

// ---- emission by day and by week ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_of_emission_that_give_way_to_weeks_and_come_back_tell_nothing() {
    let rules = "[[rule]]\nalert = \"Restated\"\non = \"emission.*\"\n".to_owned();
    let config = "[schedule]\ndaily_emission = \"0 40 */6 * * *\"\n".to_owned();
    let mut app = TestApp::with(Setup { rules, config, ..Setup::default() }).await;
    let mut counts = Vec::new();
    for (hour, by_day) in [("00", true), ("06", true), ("12", false), ("18", false), ("23", true)] {
        app.restart_with(|config| {
            let (on, off) = ("0 40 */6 * * *".to_owned(), "off".to_owned());
            (config.schedule.daily_emission, config.schedule.weekly_emission) = if by_day { (on, off) } else { (off, on) };
        })
        .await;
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        let cliffs = |line: &String| line.contains("Restated");
        assert_eq!(app.turn().await.into_iter().filter(cliffs).collect::<Vec<_>>(), [""; 0], "{hour}: nothing was restated");
        let snapshots = app.app().store().tokens(vec!["alpha".into()], vec![Resource::Emission]).await.expect("read");
        counts.push(snapshots[0].records.len());
    }
    assert!(counts[0] > 6, "each day is there: {counts:?}");
    assert!(counts.iter().all(|count| *count >= counts[0]), "and none is taken for removed: {counts:?}");
}

// ---- limits ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_counts_over_the_whole_cycle_whatever_its_batches() {
    const TOKENS: usize = 80;
    let fill = |edit: &mut cliffwatch::service::Edit<'_>| {
        for n in 0..TOKENS {
            let id = format!("token-{n:02}");
            edit.put_token(&item(&id, &id))?;
            edit.put_events(&id, vec![cliff("2026-03-20T12:00:00Z", "Team", 2e6, "second")])?;
        }
        Ok(())
    };
    let rules = "[[rule]]\nalert = \"Ahead\"\non = \"unlock\"\nwithin = [\"30d\"]\nlimit = 3\n".to_owned();
    let app = TestApp::with(Setup { rules, fill: Box::new(fill), ..Setup::default() }).await;
    let told = app.turn().await;
    let (summaries, single): (Vec<_>, Vec<_>) = told.iter().partition(|line| line.contains("77"));
    assert_eq!((single.len(), summaries.len()), (3, 1), "three are told, one message counts the others: {told:#?}");
    assert_eq!(app.turn().await, [""; 0]);
}

// ---- parts of an answer that cannot be read ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_odd_and_never_counts_as_removed() {
    let app = TestApp::start().await;
    app.turn().await;
    let july = "2026-07-20T12:00:00Z";
    let count =
        async || app.app().store().tokens(vec!["alpha".into()], vec![Resource::Unlock]).await.expect("read")[0].records.len();
    assert_eq!(count().await, 6);
    app.faults.set("/v5/unlock/events/alpha", Fault::Replaced { from: july.into(), to: "no date at all".into() });
    for hour in ["06", "12", "18"] {
        app.at(&format!("2026-03-01T{hour}:00:00Z"));
        assert_eq!(app.turn().await, [""; 0], "{hour}: an odd record is no trouble and no removal");
        assert_eq!(count().await, 6, "{hour}");
    }
    app.faults.clear();
    app.at("2026-03-02T00:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "it was there all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_cannot_be_read_is_noted_with_its_record_and_the_rest_is_used() {
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(|edit| {
        edit.add_burn("alpha", burn("2026-03-01T01:00:00Z", 9_000.0))?;
        edit.add_burn("alpha", burn("2026-03-01T02:00:00Z", 8_000.0))
    });
    app.faults.set("/v5/burn/alpha", Fault::Replaced { from: "8000.0".into(), to: "\"a lot\"".into() });
    app.at("2026-03-01T06:00:00Z");
    let told = app.turn().await;
    assert_eq!(told.len(), 1, "the burn whose amount cannot be read matches no rule, the other does: {told:#?}");
    assert!(told[0].contains("Burned alpha") && told[0].contains("9"), "{told:#?}");
    let noted = app.database().column("SELECT oddities FROM poll WHERE endpoint = 'burn' AND oddities_total > 0");
    let noted = noted.first().and_then(Value::as_str).expect("what was odd is in the poll log");
    assert!(
        noted.contains("burns[0].amount") && noted.contains("a lot"),
        "which field of which record, and what stood there: {noted}"
    );
}

// ---- rules that change, evaluations that fail ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_added_by_a_reload_is_evaluated_though_the_first_evaluation_fails() {
    let app = TestApp::start().await;
    app.turn().await;
    let rules = format!("{RULES}\n[[rule]]\nalert = \"Any\"\non = \"unlock\"\nwithin = [\"60d\"]\ntokens = [\"alpha\"]\n");
    std::fs::write(app.folder.path().join("rules/test.toml"), rules).expect("written");
    app.app().reload().await.expect("good rules");
    app.database().sabotage("notice");
    app.at("2026-03-01T00:01:00Z");
    let error = app.app().tick(Job::Evaluate).await.expect_err("the database refuses");
    assert!(error.to_string().contains("write"), "{error}");
    app.database().mend("notice");
    app.at("2026-03-01T00:02:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(reasons(&app.hook.take()), ["firing lead 60d Any alpha"; 2], "March and April; what failed was not lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_is_renamed_keeps_its_alerts_and_one_that_is_deleted_ends_them_with_the_reason() {
    let app = TestApp::start().await;
    assert_eq!(app.turn().await.len(), 1);
    let file = app.folder.path().join("rules/test.toml");
    let named = RULES.replacen("alert  = \"BigCliffAhead\"", "alert = \"Renamed\"\nid = \"BigCliffAhead\"", 1);
    assert_ne!(named, RULES, "the rule is there");
    std::fs::write(&file, &named).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0], "nothing is told anew");

    // The same once more tells nothing either.
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:02:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0]);

    let from = RULES.find("[[rule]]\nalert  = \"BigCliffAhead\"").expect("the rule is there");
    let rest = RULES[from + 8..].find("[[rule]]").map_or("", |next| &RULES[from + 8 + next..]);
    std::fs::write(&file, format!("{}{rest}", &RULES[..from])).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T00:03:00Z");
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(reasons(&app.hook.take()), ["resolved rule gone Renamed alpha"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_whose_tests_fail_stay_out_and_the_alert_names_line_and_owner() {
    let app = TestApp::start().await;
    app.turn().await;
    let folder = app.folder.path().join("rules");
    let owned = format!("{RULES}\n[[rule]]\nalert = \"Owned\"\non = \"burn\"\nowner = \"treasury\"\n");
    std::fs::write(folder.join("test.toml"), &owned).expect("written");
    std::fs::create_dir_all(folder.join("tests")).expect("made");
    let test = "[[test]]\nname = \"nothing of Owned\"\nstart = 2026-03-01T00:00:00Z\n[[test.input]]\ntoken = \"x\"\nburn = []\n[[test.input]]\nat = \"1d\"\ntoken = \"x\"\nadd = [{ burn = \"2026-03-01\", amount = 7 }]\n[[test.expect]]\nat = \"2d\"\nrule = \"Owned\"\nsilence = true\n";
    std::fs::write(folder.join("tests/t.toml"), test).expect("written");
    let problem = app.app().reload().await.expect_err("a test fails").full;
    assert!(problem.contains("nothing of Owned") && problem.contains("told, but not expected"), "{problem}");
    app.deliver().await;
    let told = app.hook.take();
    let told: Vec<String> = told.iter().map(|body| body["data"]["alerts"][0].to_string()).collect();
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].contains("tests/t.toml:11: the test fails: nothing of Owned"), "{told:#?}");
    assert!(told[0].contains("\"owner\":\"treasury\""), "{told:#?}");

    std::fs::write(folder.join("tests/t.toml"), test.replace("silence = true", "alert = [{ rule = \"Owned\" }]"))
        .expect("written");
    assert_eq!(
        app.app().reload().await.expect("all is well"),
        format!("{} rules at work, 1 test passed", owned.matches("[[rule]]").count())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_fails_is_asked_for_again_and_told_once() {
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")));
    app.database().sabotage("telling");
    app.at("2026-03-01T06:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.app().tick(Job::Poll(Endpoint::UnlockEvents)).await.expect_err("the database refuses");
    app.database().mend("telling");
    // Nor is anything lost between the commit and the outbox.
    app.database().sabotage("delivery_notice");
    app.at("2026-03-01T12:00:00Z");
    app.tick().await;
    assert_ne!(app.deliver().await.errors, [""; 0]);
    assert_eq!(lines(&app.hook.take()), [""; 0]);
    app.database().mend("delivery_notice");
    let told = app.turn().await;
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("alert.event ScheduleChanged alpha"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alerts_of_a_token_that_is_no_longer_watched_end() {
    let mut app = TestApp::start().await;
    assert_eq!(app.turn().await.len(), 1);
    app.restart_with(|config: &mut Config| config.watch.tokens = vec!["beta".into()]).await;
    app.at("2026-03-01T00:01:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    let told = lines(&bodies);
    assert_eq!(reasons(&bodies), ["resolved not watched any more BigCliffAhead alpha"], "{told:#?}");
    app.at("2026-03-14T00:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "and no reminder comes");
}

// ---- receivers ----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_visible_and_announced_to_the_fallback_once() {
    let app = TestApp::with(Setup { config: "fallback = [\"desk\"]\n".into(), ..Setup::default() }).await;
    app.hook.answer_always(Some(400));
    app.tick().await;
    app.deliver().await;
    let told = lines(&app.desk.take());
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("source SourceTrouble") && told[0].contains("ops"), "{told:#?}");
    assert_eq!(app.database().count("SELECT count(*) FROM delivery WHERE state = 'dead'"), 1);
    app.hook.answer_always(None);
    app.at("2026-03-02T00:00:00Z");
    app.deliver().await;
    assert_eq!(lines(&app.desk.take()), [""; 0], "announced once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_attempt_of_a_delivery_carries_the_same_id_also_after_a_restart() {
    let mut app = TestApp::start().await;
    app.hook.answer_always(Some(503));
    app.tick().await;
    for minute in [0, 5, 30] {
        app.at(&format!("2026-03-01T00:{minute:02}:00Z"));
        app.deliver().await;
        app.restart().await;
    }
    app.hook.answer_always(None);
    app.at("2026-03-01T06:00:00Z");
    app.deliver().await;
    let ids = app.hook.tried();
    assert!(ids.len() >= 3, "{ids:?}");
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(app.hook.take().len(), 1);
}
