//! What operators rely on, a row for each way in which their trust was once broken: storms, rules that vanish for a moment, mixed
//! groups, what is only counted, templates without bounds, receivers that come back, mass removals, evaluations that are due.

use std::path::Path;

use chrono::TimeDelta;
use cliffwatch::{
    daemon::schedule::Job,
    model::{AlertFilter, DeliveryId, OutboxFilter, config::Config, supply::Endpoint, wire},
    service::{Edit, EditError},
};
use serde_json::Value;

use crate::support::{RULES, Setup, TestApp, cliff, item, lines, time};

/// A file, and tests of it.
type Tests = (&'static str, &'static [&'static str]);

/// What must hold, by number, and the tests that would fail if it did not: file, then names.
const PROMISES: [(u8, &str, &[Tests]); 22] = [
    (
        1,
        "a wrong clock moves nothing",
        &[(
            "tests/it/clock.rs",
            &["whatever_the_wall_clock_shows_the_same_is_told_at_the_same_time", "after_an_hour_in_2036_nothing_waits_for_2036"],
        )],
    ),
    (2, "rules that vanish for a moment end nothing", &[(HERE, &["rules_that_vanish_are_held_and_shown"])]),
    (3, "a mixed group is told as the strongest thing in it", &[(HERE, &["a_group_that_fires_and_resolves_is_firing"])]),
    (
        4,
        "a storm tells the worst first, and caps nothing of it",
        &[
            (HERE, &["a_storm_names_the_worst_first", "a_full_hour_holds_back_nothing_critical_and_says_how_many_wait"]),
            ("src/daemon/outbox/tests.rs", &["what_is_critical_is_sent_though_the_hour_is_full"]),
        ],
    ),
    (
        5,
        "what is only counted can be read; long alerts and long waits starve nothing",
        &[
            (
                HERE,
                &["what_is_only_counted_can_be_read_at_one_place", "an_event_that_a_long_alert_inhibits_is_told_when_that_ends"],
            ),
            ("src/store/tests/outbox.rs", &["what_waits_for_long_starves_nothing_that_is_grave_or_new"]),
        ],
    ),
    (
        6,
        "a restore puts back what was backed up",
        &[(
            "tests/it/binary/restore.rs",
            &["a_backup_is_what_is_there_after_a_restore_whatever_dies_on_the_way", "what_is_no_backup_replaces_nothing"],
        )],
    ),
    (7, "a mass removal is released with the reason", &[(HERE, &["a_mass_removal_is_released_by_time_or_by_hand"])]),
    (8, "what moved stays due until it was evaluated", &[(HERE, &["what_the_token_list_moved_stays_due"])]),
    (
        9,
        "a stop takes seconds and loses nothing",
        &[("tests/it/binary/signals.rs", &["sigterm_during_a_slow_first_cycle_leaves_within_ten_seconds_and_loses_nothing"])],
    ),
    (
        10,
        "silent connections keep nobody out",
        &[(
            "src/service/tests/running.rs",
            &["a_silent_connection_ends_and_makes_room_for_the_next", "a_crowd_that_asks_nothing_holds_up_nobody"],
        )],
    ),
    (
        11,
        "no text from outside steers, hides, forges or runs anything at any way out",
        &[
            (
                "tests/it/hostile.rs",
                &["nothing_of_a_hostile_world_gets_out_by_any_command", "nothing_of_a_hostile_world_gets_out_by_a_log_or_a_page"],
            ),
            (
                "src/daemon/log/tests.rs",
                &["a_text_from_outside_forges_no_line_and_steers_no_terminal", "a_message_of_several_lines_stays_readable"],
            ),
            ("src/notify/mail/tests.rs", &["a_hostile_name_stays_text"]),
            ("src/notify/email/tests.rs", &["a_hostile_name_adds_no_header_and_no_recipient"]),
        ],
    ),
    (12, "the memory of a rendering is bounded", &[("src/rules/tests/templates.rs", &["the_memory_of_a_rendering_is_bounded"])]),
    (
        13,
        "only files are read, in and out is a round trip, and bytes that are no text are pointed at",
        &[
            (
                "src/service/tests/round_trip.rs",
                &[
                    "what_is_no_file_of_data_is_refused_at_once_with_its_path",
                    "what_is_exported_can_be_imported_whatever_fields_the_source_invents",
                    "a_field_that_nests_too_deep_is_cut_once_and_can_be_read_again",
                    "a_token_whose_id_cannot_name_a_file_is_left_out_and_counted",
                ],
            ),
            ("src/rules/tests/files.rs", &["files_are_found_by_pattern_sorted_and_bounded"]),
            ("src/model/text/tests.rs", &["bytes_that_are_no_text_are_pointed_at"]),
        ],
    ),
    (
        14,
        "nobody else can read what the program makes",
        &[("tests/it/binary/restore.rs", &["nobody_else_can_read_what_the_program_makes"])],
    ),
    (
        15,
        "a private address is known in every disguise",
        &[("src/notify/network/tests.rs", &["private_addresses_are_known_in_every_disguise"])],
    ),
    (
        16,
        "every command works beside a service that has its secrets from systemd",
        &[(
            "tests/it/beside.rs",
            &[
                "what_neither_asks_nor_sends_needs_no_secret",
                "what_sends_or_asks_says_which_secret_is_missing_and_prints_a_line_that_works",
                "where_the_database_is_that_of_the_unit_the_line_runs_as_its_user",
            ],
        )],
    ),
    (
        17,
        "messages say what is so and what to do",
        &[
            ("tests/it/beside.rs", &["who_acts_is_named"]),
            (HERE, &["one_is_one_and_what_is_more_is_said"]),
            ("tests/receivers/mail.rs", &["a_certificate_that_a_server_signed_itself_is_taken_where_it_is_named"]),
            ("src/daemon/http/tests.rs", &["a_silence_lasts_as_long_by_http_as_by_hand"]),
        ],
    ),
    (
        18,
        "a receiver that is back raises nothing, one that was removed ends its alerts",
        &[
            (HERE, &["a_receiver_that_was_removed_ends_its_alerts"]),
            ("src/daemon/outbox/tests.rs", &["a_receiver_that_was_gone_and_works_again_raises_nothing_more"]),
        ],
    ),
    (
        19,
        "what moves is judged again, and a retry by hand begins anew",
        &[
            ("src/rules/tests/conditions.rs", &["a_rule_on_a_group_that_reads_a_field_of_its_members_is_asked_when_that_moves"]),
            ("src/daemon/outbox/tests.rs", &["the_span_until_a_dead_letter_counts_from_the_retry_by_hand"]),
            ("src/engine/evaluate/tests/leads.rs", &["a_lead_time_is_told_again_for_a_record_that_moved_out_and_back"]),
        ],
    ),
    (
        20,
        "an event that is not there is not explained as told",
        &[("src/engine/explain/tests.rs", &["a_day_that_has_no_event_says_so_with_the_nearest_whatever_once_stood_there"])],
    ),
    (
        21,
        "a long read tells how far it is, and a dry run what it will cost and tell",
        &[
            ("src/daemon/cycle/progress/tests.rs", &["a_long_read_is_told_each_minute_and_a_short_one_never"]),
            ("tests/it/binary/looking.rs", &["a_dry_run_commits_and_sends_nothing"]),
            ("tests/it/binary/dry_run.rs", &["a_dry_run_says_what_it_costs_and_what_it_would_tell"]),
        ],
    ),
    (
        22,
        "the data service tells what it knows, to whom it knows",
        &[
            (
                "tests/service/keys.rs",
                &["whoever_listens_beyond_loopback_asks_for_a_key", "with_a_certificate_the_service_is_asked_by_https_alone"],
            ),
            (
                "src/service/tests/answers.rs",
                &[
                    "whatever_a_good_key_is_refused_its_credits_are_told",
                    "events_that_pay_miners_or_farmers_are_left_out_whole_from_the_fourth_version_on",
                ],
            ),
            (
                "tests/service/mirror.rs",
                &[
                    "a_mirror_refuses_windows_from_before_its_history_and_says_from_when_it_knows",
                    "a_schedule_that_a_folder_does_not_cover_is_not_told_as_one_without_unlocks",
                ],
            ),
            ("src/source/tests/keys.rs", &["a_mirror_in_a_private_network_that_is_named_may_be_asked_by_http"]),
            ("src/source/base_server/tests.rs", &["a_name_that_leads_elsewhere_is_not_asked"]),
            ("tests/service/http.rs", &["head_has_the_headers_of_get_whatever_the_answer"]),
            ("tests/service/conformance.rs", &["the_description_says_what_is_answered"]),
        ],
    ),
];

const HERE: &str = "tests/it/trust.rs";

#[test]
fn each_promise_names_tests_that_exist() {
    assert!(PROMISES.iter().map(|(number, ..)| *number).eq(1..=22));
    for (number, promise, files) in PROMISES {
        for (file, tests) in files {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file");
            for test in *tests {
                assert!(text.contains(&format!("fn {test}(")), "{number}: {promise}: {file} has no test {test}");
            }
        }
    }
}

/// A cliff with this value in dollars and this share of the market cap in percent.
fn valued(date: &str, value: f64, percent: f64) -> wire::UnlockEvent {
    let mut event = cliff(date, "Team", value, "second");
    event.cliff_unlocks.get_mut().expect("a cliff").value_to_market_cap = percent.into();
    event
}

const LEVELLED: &str = r#"
[[rule]]
alert  = "Ahead"
on     = "unlock"
within = ["30d"]
labels = { severity = "info" }
[[rule.level]]
when   = "valueToMarketCap >= 50"
labels = { severity = "critical" }
"#;

/// So many small cliffs of `small`, and one of 90 % of the market cap of `zeta` in two hours.
fn storm(small: u32, is_worst_there: bool) -> impl Fn(&mut Edit<'_>) -> Result<(), EditError> {
    move |edit| {
        for token in 0..small.div_ceil(50) {
            let id = format!("small{token:03}");
            edit.put_token(&item(&id, "SML"))?;
            let of_it = (token * 50..small.min(token * 50 + 50)).map(|no| {
                let at = time("2026-03-02T00:00:00Z") + TimeDelta::minutes(i64::from(no));
                valued(&at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true), 1_000.0 + f64::from(no), 0.01)
            });
            edit.put_events(&id, of_it.collect())?;
        }
        edit.put_token(&item("zeta", "ZET"))?;
        let worst = valued("2026-03-01T02:00:00Z", 90_000_000.0, 90.0);
        edit.put_events("zeta", if is_worst_there { vec![worst] } else { vec![valued("2026-05-01T00:00:00Z", 1.0, 0.1)] })
    }
}

fn with(rules: &str, config: &str, fill: impl Fn(&mut Edit<'_>) -> Result<(), EditError> + 'static) -> Setup {
    Setup { rules: rules.to_owned(), config: config.to_owned(), fill: Box::new(fill), ..Setup::default() }
}

async fn read(app: &TestApp) {
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::UnlockEvents).await;
    app.evaluate().await;
}

/// Dispatches at once and after what is put together has waited.
async fn deliver(app: &TestApp) -> Vec<Value> {
    app.deliver().await;
    app.clock.set(app.clock.now() + TimeDelta::seconds(5));
    app.deliver().await;
    app.hook.take()
}

fn alerts(body: &Value) -> &Vec<Value> {
    body["data"]["alerts"].as_array().expect("alerts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_names_the_worst_first() {
    // A receiver that was told of something before: to a new one it would be a welcome.
    let app = TestApp::with(with(LEVELLED, "", |edit| {
        edit.put_token(&item("first", "FST"))?;
        edit.put_events("first", vec![valued("2026-03-02T00:00:00Z", 5.0, 0.1)])
    }))
    .await;
    read(&app).await;
    assert_eq!(deliver(&app).await.len(), 1);
    app.at("2026-03-01T01:10:00Z");
    app.edit(storm(1_000, true));
    read(&app).await;
    let mut bodies = deliver(&app).await;
    bodies.sort_by_key(|body| body["data"]["note"].as_str().map(str::to_owned));
    let first = &alerts(&bodies[0])[0];
    assert_eq!((&first["token"]["id"], &first["labels"]["severity"]), (&"zeta".into(), &"critical".into()), "{first:#}");
    let values = |body: &Value| -> Vec<i64> {
        alerts(body)
            .iter()
            .filter_map(|alert| alert["record"]["cliffUnlocks"]["cliffValue"].as_f64())
            .map(|value| value as i64)
            .collect()
    };
    let told: Vec<i64> = bodies.iter().flat_map(values).collect();
    let mut by_value = told.clone();
    by_value.sort_unstable_by_key(|value| -value);
    assert_eq!(told, by_value, "the most valuable first");
    assert!(told.len() >= 500, "{}", told.len());
    assert!(!told.contains(&1_000), "what is only counted is the least");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_hour_holds_back_nothing_critical_and_says_how_many_wait() {
    let app = TestApp::with(with(
        LEVELLED,
        "group_by = [\"token\"]\ngroup_wait = \"0s\"\n[delivery]\nmax_per_hour = 3\n",
        storm(300, false),
    ))
    .await;
    read(&app).await;
    let bodies = deliver(&app).await;
    assert_eq!(bodies.len(), 4, "three and a summary: {bodies:#?}");
    // More of the small ones come while the hour is full, and one that is critical.
    app.at("2026-03-01T00:10:00Z");
    app.edit(|edit| {
        edit.put_token(&item("later", "LAT"))?;
        edit.put_events("later", vec![valued("2026-03-03T00:00:00Z", 5.0, 0.1)])?;
        edit.put_events("zeta", vec![valued("2026-03-01T02:10:00Z", 90_000_000.0, 90.0)])
    });
    read(&app).await;
    let told = deliver(&app).await;
    let of_zeta: Vec<&Value> = told.iter().flat_map(alerts).filter(|alert| alert["labels"]["severity"] == "critical").collect();
    assert_eq!(of_zeta.len(), 1, "it does not wait behind lesser ones: {told:#?}");
    let last = told.last().expect("a message");
    let note = last["data"]["note"].as_str().unwrap_or_default();
    assert!(note.contains("1 alert waits"), "{last:#}");
    // What waited is told when the hour has room.
    app.at("2026-03-01T01:10:00Z");
    let told = deliver(&app).await;
    assert!(told.iter().flat_map(alerts).any(|alert| alert["token"]["id"] == "later"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_only_counted_can_be_read_at_one_place() {
    let app = TestApp::with(with(LEVELLED, "", storm(700, false))).await;
    read(&app).await;
    let bodies = deliver(&app).await;
    let told: usize = bodies.iter().map(|body| alerts(body).len()).sum();
    let counted: u64 = bodies.iter().filter_map(|body| body["data"]["truncatedAlerts"].as_u64()).sum();
    assert_eq!(told as u64 + counted, 700);
    let short = bodies.iter().find(|body| body["data"]["truncatedAlerts"] != 0).expect("one counts");
    let rows = app.app().store().outbox(OutboxFilter { limit: 100, ..OutboxFilter::default() }).await.expect("read");
    let row = rows.iter().find(|row| row.truncated_alerts > 0).expect("one counts");
    let note = short["data"]["note"].as_str().unwrap_or_default();
    assert!(note.contains(&format!("`cliffwatch outbox show {}`", row.id)), "{note}");
    let detail = app.app().store().outbox_one(DeliveryId(row.id.0)).await.expect("read").expect("there");
    let all = serde_json::to_value(&detail.counted).expect("JSON");
    assert_eq!(all.as_array().expect("a list").len() as u64, counted, "each can be read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_fires_and_resolves_is_firing() {
    let config = "group_by = [\"token\"]\ngroup_wait = \"0s\"\ngroup_interval = \"0s\"\n";
    let app = TestApp::with(Setup { config: config.into(), ..Setup::default() }).await;
    assert_eq!(app.turn().await.len(), 1);
    // The cliff of March is over, that of April is within thirty days.
    app.at("2026-03-21T13:00:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    let statuses: Vec<&str> = alerts(&bodies[0]).iter().filter_map(|alert| alert["status"].as_str()).collect();
    assert_eq!(statuses, ["firing", "resolved"], "{bodies:#?}");
    assert_eq!((&bodies[0]["type"], &bodies[0]["data"]["status"]), (&"alert.firing".into(), &"firing".into()));
    // One that tells ends alone says so.
    std::fs::write(app.folder.path().join("rules/test.toml"), RULES.replace(">= 1000000", ">= 100000000")).expect("written");
    app.app().reload().await.expect("good rules");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies[0]["type"], "alert.resolved", "{bodies:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_that_vanish_are_held_and_shown() {
    let mut app = TestApp::start().await;
    assert_eq!(app.turn().await.len(), 1);
    let file = app.folder.path().join("rules/test.toml");
    let aside = app.folder.path().join("aside.toml");
    // A deployment moves the file, an editor truncates it, the folder is not mounted: also at a start.
    for step in 0..4 {
        match step {
            1 => std::fs::write(&file, "").expect("written"),
            3 => std::fs::rename(app.folder.path().join("rules"), app.folder.path().join("away")).expect("moved"),
            _ => std::fs::rename(&file, &aside).expect("moved"),
        }
        if step == 2 {
            app.restart().await;
        } else {
            let problem = app.app().reload().await.expect_err("rules are gone").brief;
            assert!(problem.contains("rules"), "{problem}");
        }
        app.clock.set(app.clock.now() + TimeDelta::minutes(2));
        app.evaluate().await;
        app.deliver().await;
        let told = lines(&app.hook.take());
        assert!(told.iter().all(|line| line.starts_with("source SourceTrouble")), "{step}: {told:#?}");
        assert_eq!(app.app().deps().active().rules.rules.len(), 4, "{step}: the last good rules are at work");
        match step {
            1 => std::fs::write(&file, RULES).expect("written"),
            3 => std::fs::rename(app.folder.path().join("away"), app.folder.path().join("rules")).expect("moved"),
            _ => std::fs::rename(&aside, &file).expect("moved"),
        }
        app.app().reload().await.expect("good rules");
        app.clock.set(app.clock.now() + TimeDelta::minutes(2));
        app.evaluate().await;
        app.deliver().await;
        let told = lines(&app.hook.take());
        assert!(told.iter().all(|line| line.starts_with("source SourceTrouble")), "{step}: {told:#?}");
    }
    // One of two files that stays away is believed after a while.
    std::fs::write(app.folder.path().join("rules/more.toml"), "[[rule]]\nalert = \"More\"\non = \"burn\"\n").expect("written");
    app.app().reload().await.expect("good rules");
    std::fs::remove_file(&file).expect("removed");
    app.app().reload().await.expect_err("it may come back");
    assert_eq!(app.app().deps().active().rules.rules.len(), 5);
    app.clock.set(app.clock.now() + TimeDelta::minutes(10));
    app.app().reload().await.expect("it stayed away");
    app.evaluate().await;
    app.deliver().await;
    let told = lines(&app.hook.take());
    assert!(told.iter().any(|line| line.starts_with("alert.resolved BigCliffAhead alpha")), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_a_long_alert_inhibits_is_told_when_that_ends() {
    let config = "[[inhibit_rules]]\nsource_matchers = [\"alertname=BigCliffAhead\"]\ntarget_matchers = [\"alertname=ScheduleChanged\"]\nequal = [\"token\"]\n";
    let app = TestApp::with(Setup { config: config.into(), ..Setup::default() }).await;
    assert_eq!(app.turn().await.len(), 1);
    app.edit(|edit| edit.move_event("alpha", time("2026-08-20T12:00:00Z"), time("2026-08-27T12:00:00Z")));
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.turn().await, [""; 0], "inhibited");
    std::fs::write(app.folder.path().join("rules/test.toml"), RULES.replace(">= 1000000", ">= 100000000")).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T06:05:00Z");
    app.evaluate().await;
    app.deliver().await;
    app.at("2026-03-01T06:06:00Z");
    app.deliver().await;
    let told = lines(&app.hook.take());
    assert!(told.iter().any(|line| line.starts_with("alert.event ScheduleChanged alpha")), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mass_removal_is_released_by_time_or_by_hand() {
    let few = |edit: &mut Edit<'_>| edit.put_events("alpha", vec![cliff("2026-03-20T12:00:00Z", "Team", 2_000_000.0, "second")]);
    // By time: a day, and four answers.
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(few);
    for (at, is_told) in [
        ("2026-03-01T06", false),
        ("2026-03-01T12", false),
        ("2026-03-01T18", false),
        ("2026-03-02T00", false),
        ("2026-03-02T06", true),
    ] {
        app.at(&format!("{at}:00:00Z"));
        let told = app.turn().await;
        let is_change = |line: &&String| line.contains("ScheduleChanged");
        assert_eq!(told.iter().any(|line| is_change(&line)), is_told, "{at}: {told:#?}");
        if is_told {
            let line = told.iter().find(is_change).expect("told");
            assert!(
                line.contains("held for 24 h") || told.iter().any(|line| line.contains("24 h")),
                "the text says why: {told:#?}"
            );
        }
    }
    // By hand: the next answer is believed.
    let app = TestApp::start().await;
    app.turn().await;
    app.edit(few);
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.turn().await.len(), 1, "the source is reported");
    let accepted = app.app().store().accept_held("alpha".into()).await.expect("written");
    assert_eq!(accepted, 1);
    app.at("2026-03-01T12:00:00Z");
    let told = app.turn().await;
    assert!(told.iter().any(|line| line.contains("ScheduleChanged")), "{told:#?}");
    assert!(told.iter().any(|line| line.contains("accepted")), "the text says why: {told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_token_list_moved_stays_due() {
    let rules = "[[rule]]\nalert = \"Small\"\non = \"unlock\"\nwithin = [\"30d\"]\nwhen = \"token.marketCap < 50000000\"\n";
    let app = TestApp::with(Setup { rules: rules.into(), ..Setup::default() }).await;
    assert_eq!(app.turn().await, [""; 0]);
    app.edit(|edit| edit.put_item("alpha", |item| item.market_cap = 1e7.into()));
    app.database().sabotage("notice");
    app.at("2026-03-01T06:00:00Z");
    app.app().tick(Job::Poll(Endpoint::TokenList)).await.expect_err("the database refuses");
    app.database().mend("notice");
    app.at("2026-03-01T12:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.evaluate().await;
    app.deliver().await;
    let told = lines(&app.hook.take());
    assert_eq!(told.len(), 1, "{told:#?}");
    assert!(told[0].starts_with("alert.firing Small alpha"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_was_removed_ends_its_alerts() {
    let mut app = TestApp::with(Setup { config: "fallback = [\"desk\"]\n".into(), ..Setup::default() }).await;
    app.hook.answer_always(Some(410));
    app.tick().await;
    app.deliver().await;
    app.deliver().await;
    let told = lines(&app.desk.take());
    assert!(!told.is_empty(), "a receiver that is gone is told");
    let open = async |app: &TestApp| {
        let filter = AlertFilter { states: vec![cliffwatch::model::AlertState::Firing], limit: 100, ..AlertFilter::default() };
        let alerts = app.app().store().alerts(filter).await.expect("read");
        alerts.into_iter().filter(|alert| alert.subject == "receiver/ops").count()
    };
    assert_eq!(open(&app).await, 1);
    app.restart_with(|config: &mut Config| {
        config.receivers.retain(|receiver| receiver.name != "ops");
        config.route.receivers = vec!["desk".into()];
    })
    .await;
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(open(&app).await, 0, "nobody will ever accept for it again");
    let told = lines(&app.desk.take());
    assert!(told.iter().any(|line| line.contains("ops")), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_one_and_what_is_more_is_said() {
    use crate::binary::Desk;
    let desk = Desk::new();
    desk.write("rules/test.toml", "[[rule]]\nalert = \"One\"\non = \"burn\"\n");
    desk.write("cliffwatch.toml", "[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\npath = \"test.db\"\n");
    std::fs::create_dir_all(desk.path("data/burn")).expect("made");
    let list = r#"[{"tokenId": "alpha", "name": "A", "symbol": "A"}]"#;
    desk.write("data/tokens.json", list).write("data/burn/alpha.json", r#"{"burns": [{"burnDate": "2026-01-01", "amount": 1}]}"#);
    let imported = desk.run("import data --db one.db").ok();
    for said in ["1 token, 0 events, ", ", 1 burn, ", "0 investors with 0 rounds"] {
        assert!(imported.contains(said), "{said}: {imported}");
    }
    assert!(desk.run("export out --db one.db").ok().starts_with("1 token in 2 files"), "{}", desk.run("status").err);
    assert!(desk.run("check").err.contains("1 rule in 1 file"));
    assert_eq!(cliffwatch::model::format::tokens(1.0), "1 token");
    assert_eq!(cliffwatch::model::format::tokens(2.0), "2 tokens");
    // Each list says when it shows less than there is.
    let app = TestApp::with(with(LEVELLED, "", storm(20, false))).await;
    read(&app).await;
    deliver(&app).await;
    let store = app.database().setting();
    desk.write("cliffwatch.toml", &format!("[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\n{store}\n"));
    for line in ["upcoming --limit 1", "alerts --limit 1", "outbox why --limit 1"] {
        let ran = desk.run(&format!("--now 2026-03-01T00:00:00Z {line}"));
        assert!(ran.err.contains("there are more than 1 ") && ran.err.contains("--limit shows more"), "{line}: {}", ran.err);
        let all = desk.run(&format!("--now 2026-03-01T00:00:00Z {line}000"));
        assert!(!all.err.contains("there are more"), "{line}: {}", all.err);
    }
    app.hook.take();
}
