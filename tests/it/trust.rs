//! The guarantees that operators rely on, one row for each that was once broken, with the tests that check it.

use std::path::Path;

use chrono::TimeDelta;
use cliffwatch::{
    daemon::schedule::Job,
    model::{AlertFilter, DeliveryId, OutboxFilter, config::Config, supply::Endpoint, wire},
    service::{Edit, EditError},
};
use serde_json::Value;

use crate::it::support::{RULES, Setup, TestApp, cliff, item, lines, time};

/// A file, and names of its tests.
type Tests = (&'static str, &'static [&'static str]);

/// The guarantees by number, with the tests that check them.
const GUARANTEES: [(u8, &str, &[Tests]); 22] = [
    (
        1,
        "a wrong wall clock does not change notifications",
        &[(
            "tests/it/clock.rs",
            &["wall_clock_changes_do_not_change_notifications", "processing_continues_after_a_temporary_jump_to_2036"],
        )],
    ),
    (2, "temporarily missing rules resolve no alerts", &[(HERE, &["missing_rules_stay_active_and_are_reported"])]),
    (3, "a group with firing and resolved alerts is firing", &[(HERE, &["group_with_firing_and_resolved_alerts_is_firing"])]),
    (
        4,
        "an alert storm notifies the most severe alerts first and without a limit",
        &[
            (
                HERE,
                &["storm_lists_the_most_severe_alerts_first", "hourly_limit_delays_no_critical_alert_and_reports_how_many_wait"],
            ),
            ("src/daemon/outbox/tests.rs", &["critical_delivery_is_exempt_from_hourly_limit"]),
        ],
    ),
    (
        5,
        "counted alerts can be listed; long alerts and old deliveries block no others",
        &[
            (HERE, &["counted_alerts_are_listed_by_outbox_show", "event_inhibited_by_a_long_alert_is_notified_when_it_ends"]),
            ("src/store/tests/outbox.rs", &["backlog_does_not_delay_critical_or_new_notifications"]),
        ],
    ),
    (
        6,
        "a restore brings back the backup",
        &[("tests/it/binary/restore.rs", &["restore_survives_a_crash_at_every_point", "invalid_backup_replaces_nothing"])],
    ),
    (7, "a held mass removal is released with a reason", &[(HERE, &["mass_removal_is_released_after_a_day_or_by_an_operator"])]),
    (8, "changed tokens stay due until they are evaluated", &[(HERE, &["tokens_changed_by_the_list_stay_due_after_a_failure"])]),
    (
        9,
        "a stop takes seconds and loses nothing",
        &[("tests/it/binary/signals.rs", &["sigterm_during_a_slow_first_cycle_exits_within_ten_seconds_and_loses_nothing"])],
    ),
    (
        10,
        "idle connections do not block other clients",
        &[(
            "src/service/tests/running.rs",
            &["idle_connection_is_closed_for_the_next", "clients_without_complete_requests_do_not_block_others"],
        )],
    ),
    (
        11,
        "external text cannot control a terminal, forge lines, or run as code in any output",
        &[
            ("tests/it/hostile.rs", &["commands_never_print_hostile_text", "logs_and_pages_never_contain_hostile_text"]),
            (
                "src/daemon/log/tests.rs",
                &["external_text_cannot_forge_lines_or_control_terminal", "multi_line_message_is_indented"],
            ),
            ("src/notify/mail/tests.rs", &["hostile_name_is_sanitized"]),
            ("src/notify/email/tests.rs", &["hostile_name_adds_no_header_and_no_recipient"]),
        ],
    ),
    (12, "the memory for rendering a template is bounded", &[("src/rules/tests/templates.rs", &["rendering_memory_is_limited"])]),
    (
        13,
        "only files are read, in and out is a round trip, and bytes that are no text are pointed at",
        &[
            (
                "src/service/tests/round_trip.rs",
                &[
                    "special_files_are_rejected_at_once_with_their_path",
                    "export_and_import_keep_unknown_fields",
                    "field_with_deep_nesting_is_cut_and_can_be_imported",
                    "tokens_with_ids_that_are_not_file_names_are_not_exported",
                ],
            ),
            ("src/rules/tests/files.rs", &["finds_files_by_pattern_sorted_and_limited"]),
            ("src/model/text/tests.rs", &["invalid_utf8_error_has_line_and_byte"]),
        ],
    ),
    (
        14,
        "created files are readable only by their owner",
        &[("tests/it/binary/restore.rs", &["created_files_are_readable_only_by_their_owner"])],
    ),
    (
        15,
        "private addresses are recognized in every notation",
        &[("src/notify/allowed_addresses/tests.rs", &["private_addresses_are_recognized_in_every_form"])],
    ),
    (
        16,
        "every command works while the service gets its secrets from systemd",
        &[(
            "tests/it/missing_credentials.rs",
            &[
                "commands_that_neither_poll_nor_send_need_no_secret",
                "missing_secret_is_named_with_a_command_line_that_works",
                "database_of_the_unit_makes_the_line_run_as_the_unit_user",
            ],
        )],
    ),
    (
        17,
        "messages state the facts and what to do",
        &[
            ("tests/it/missing_credentials.rs", &["acting_commands_work_without_a_user_name"]),
            (HERE, &["counts_are_pluralized_and_truncated_lists_are_reported"]),
            ("tests/receivers/mail.rs", &["configured_self_signed_certificate_is_accepted"]),
            ("src/web/http/tests.rs", &["silence_accepts_command_line_and_api_names"]),
        ],
    ),
    (
        18,
        "a recovered receiver raises no alert, and a removed one resolves its alerts",
        &[
            (HERE, &["removed_receiver_resolves_its_alerts"]),
            ("src/daemon/outbox/tests.rs", &["recovered_receiver_raises_no_further_alert"]),
        ],
    ),
    (
        19,
        "changed records are reevaluated, and a manual retry restarts the retry schedule",
        &[
            ("src/rules/tests/conditions.rs", &["member_field_of_a_portfolio_rule_triggers_evaluation"]),
            ("src/daemon/outbox/tests.rs", &["dead_letter_reports_time_since_manual_retry"]),
            ("src/engine/evaluate/tests/leads.rs", &["record_that_moves_out_and_back_notifies_again"]),
        ],
    ),
    (
        20,
        "a missing event is not explained as notified",
        &[("src/engine/explain/tests.rs", &["day_without_event_is_reported_with_the_nearest_events"])],
    ),
    (
        21,
        "a long poll reports progress, and a dry run its cost and notifications",
        &[
            ("src/daemon/cycle/progress/tests.rs", &["only_long_polls_are_reported_every_minute"]),
            ("tests/it/binary/inspect.rs", &["dry_run_commits_and_sends_nothing"]),
            ("tests/it/binary/dry_run.rs", &["dry_run_prints_cost_and_notifications"]),
        ],
    ),
    (
        22,
        "the data service returns what it has, to authorized clients",
        &[
            ("tests/service/keys.rs", &["public_address_requires_a_key", "service_with_a_certificate_serves_only_https"]),
            (
                "src/service/tests/responses.rs",
                &["errors_contain_the_credits_of_a_valid_key", "newer_versions_omit_mining_and_farming_rewards"],
            ),
            (
                "tests/service/mirror.rs",
                &["mirror_rejects_windows_before_its_history", "token_without_a_schedule_is_not_served_as_one_without_unlocks"],
            ),
            ("src/source/tests/keys.rs", &["http_is_allowed_in_configured_private_networks"]),
            ("src/source/base_server/tests.rs", &["name_that_resolves_elsewhere_is_rejected"]),
            ("tests/service/http.rs", &["head_has_the_headers_of_get_for_every_status"]),
            ("tests/service/conformance.rs", &["responses_match_the_openapi_description"]),
        ],
    ),
];

const HERE: &str = "tests/it/trust.rs";

#[test]
fn every_guarantee_lists_existing_tests() {
    assert!(GUARANTEES.iter().map(|(number, ..)| *number).eq(1..=22));
    for (number, guarantee, files) in GUARANTEES {
        for (file, tests) in files {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file");
            for test in *tests {
                assert!(text.contains(&format!("fn {test}(")), "{number}: {guarantee}: {file} has no test {test}");
            }
        }
    }
}

/// A cliff with a value in USD and a percentage of market cap.
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

/// Adds `small` small cliffs, and optionally one of 90 % of market cap of `zeta` in two hours.
fn storm(small: u32, has_large_cliff: bool) -> impl Fn(&mut Edit<'_>) -> Result<(), EditError> {
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
        edit.put_events("zeta", if has_large_cliff { vec![worst] } else { vec![valued("2026-05-01T00:00:00Z", 1.0, 0.1)] })
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

/// Delivers at once, and again after the batching delay.
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
async fn storm_lists_the_most_severe_alerts_first() {
    // Send one message first, because a new receiver would get a welcome message.
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
    let notified: Vec<i64> = bodies.iter().flat_map(values).collect();
    let mut by_value = notified.clone();
    by_value.sort_unstable_by_key(|value| -value);
    assert_eq!(notified, by_value, "the most valuable first");
    assert!(notified.len() >= 500, "{}", notified.len());
    assert!(!notified.contains(&1_000), "the smallest cliffs are only counted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hourly_limit_delays_no_critical_alert_and_reports_how_many_wait() {
    let app = TestApp::with(with(
        LEVELLED,
        "group_by = [\"token\"]\ngroup_wait = \"0s\"\n[delivery]\nmax_per_hour = 3\n",
        storm(300, false),
    ))
    .await;
    read(&app).await;
    let bodies = deliver(&app).await;
    assert_eq!(bodies.len(), 4, "expected three messages and a summary: {bodies:#?}");
    // While the hourly limit is reached, another small cliff and a critical one arrive.
    app.at("2026-03-01T00:10:00Z");
    app.edit(|edit| {
        edit.put_token(&item("later", "LAT"))?;
        edit.put_events("later", vec![valued("2026-03-03T00:00:00Z", 5.0, 0.1)])?;
        edit.put_events("zeta", vec![valued("2026-03-01T02:10:00Z", 90_000_000.0, 90.0)])
    });
    read(&app).await;
    let notified = deliver(&app).await;
    let of_zeta: Vec<&Value> =
        notified.iter().flat_map(alerts).filter(|alert| alert["labels"]["severity"] == "critical").collect();
    assert_eq!(of_zeta.len(), 1, "the critical alert is not delayed: {notified:#?}");
    let last = notified.last().expect("a message");
    let note = last["data"]["note"].as_str().unwrap_or_default();
    assert!(note.contains("1 alert waits"), "{last:#}");
    // The delayed alert is sent in the next hour.
    app.at("2026-03-01T01:10:00Z");
    let notified = deliver(&app).await;
    assert!(notified.iter().flat_map(alerts).any(|alert| alert["token"]["id"] == "later"), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counted_alerts_are_listed_by_outbox_show() {
    let app = TestApp::with(with(LEVELLED, "", storm(700, false))).await;
    read(&app).await;
    let bodies = deliver(&app).await;
    let notified: usize = bodies.iter().map(|body| alerts(body).len()).sum();
    let counted: u64 = bodies.iter().filter_map(|body| body["data"]["truncatedAlerts"].as_u64()).sum();
    assert_eq!(notified as u64 + counted, 700);
    let short = bodies.iter().find(|body| body["data"]["truncatedAlerts"] != 0).expect("a summary");
    let rows = app.app().store().outbox(OutboxFilter { limit: 100, ..OutboxFilter::default() }).await.expect("read");
    let row = rows.iter().find(|row| row.truncated_alerts > 0).expect("a summary");
    let note = short["data"]["note"].as_str().unwrap_or_default();
    assert!(note.contains(&format!("`cliffwatch outbox show {}`", row.id)), "{note}");
    let detail = app.app().store().outbox_one(DeliveryId(row.id.0)).await.expect("read").expect("the delivery");
    let all = serde_json::to_value(&detail.counted).expect("JSON");
    assert_eq!(all.as_array().expect("a list").len() as u64, counted, "all counted alerts are listed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn group_with_firing_and_resolved_alerts_is_firing() {
    let config = "group_by = [\"token\"]\ngroup_wait = \"0s\"\ngroup_interval = \"0s\"\n";
    let app = TestApp::with(Setup { config: config.into(), ..Setup::default() }).await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    // The cliff in March has passed, the one in April is within 30 days.
    app.at("2026-03-21T13:00:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    let statuses: Vec<&str> = alerts(&bodies[0]).iter().filter_map(|alert| alert["status"].as_str()).collect();
    assert_eq!(statuses, ["firing", "resolved"], "{bodies:#?}");
    assert_eq!((&bodies[0]["type"], &bodies[0]["data"]["status"]), (&"alert.firing".into(), &"firing".into()));
    // A group with only resolved alerts is resolved.
    std::fs::write(app.folder.path().join("rules/test.toml"), RULES.replace(">= 1000000", ">= 100000000")).expect("written");
    app.app().reload().await.expect("good rules");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies[0]["type"], "alert.resolved", "{bodies:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_rules_stay_active_and_are_reported() {
    let mut app = TestApp::start().await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    let file = app.folder.path().join("rules/test.toml");
    let aside = app.folder.path().join("aside.toml");
    // A deployment moves the file, an editor truncates it, or the folder is not mounted, also during a start.
    for step in 0..4 {
        match step {
            1 => std::fs::write(&file, "").expect("written"),
            3 => std::fs::rename(app.folder.path().join("rules"), app.folder.path().join("away")).expect("moved"),
            _ => std::fs::rename(&file, &aside).expect("moved"),
        }
        if step == 2 {
            app.restart().await;
        } else {
            let problem = app.app().reload().await.expect_err("the rules are missing").brief;
            assert!(problem.contains("rules"), "{problem}");
        }
        app.clock.set(app.clock.now() + TimeDelta::minutes(2));
        app.evaluate().await;
        app.deliver().await;
        let notified = lines(&app.hook.take());
        assert!(notified.iter().all(|line| line.starts_with("source SourceTrouble")), "{step}: {notified:#?}");
        assert_eq!(app.app().deps().active().rules.rules.len(), 4, "{step}: the last valid rules are active");
        match step {
            1 => std::fs::write(&file, RULES).expect("written"),
            3 => std::fs::rename(app.folder.path().join("away"), app.folder.path().join("rules")).expect("moved"),
            _ => std::fs::rename(&aside, &file).expect("moved"),
        }
        app.app().reload().await.expect("good rules");
        app.clock.set(app.clock.now() + TimeDelta::minutes(2));
        app.evaluate().await;
        app.deliver().await;
        let notified = lines(&app.hook.take());
        assert!(notified.iter().all(|line| line.starts_with("source SourceTrouble")), "{step}: {notified:#?}");
    }
    // A file that stays missing is accepted as removed after a while.
    std::fs::write(app.folder.path().join("rules/more.toml"), "[[rule]]\nalert = \"More\"\non = \"burn\"\n").expect("written");
    app.app().reload().await.expect("good rules");
    std::fs::remove_file(&file).expect("removed");
    app.app().reload().await.expect_err("the file may return");
    assert_eq!(app.app().deps().active().rules.rules.len(), 5);
    app.clock.set(app.clock.now() + TimeDelta::minutes(10));
    app.app().reload().await.expect("the removal is accepted");
    app.evaluate().await;
    app.deliver().await;
    let notified = lines(&app.hook.take());
    assert!(notified.iter().any(|line| line.starts_with("alert.resolved BigCliffAhead alpha")), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_inhibited_by_a_long_alert_is_notified_when_it_ends() {
    let config = "[[inhibit_rules]]\nsource_matchers = [\"alertname=BigCliffAhead\"]\ntarget_matchers = [\"alertname=ScheduleChanged\"]\nequal = [\"token\"]\n";
    let app = TestApp::with(Setup { config: config.into(), ..Setup::default() }).await;
    assert_eq!(app.tick_and_deliver().await.len(), 1);
    app.edit(|edit| edit.move_event("alpha", time("2026-08-20T12:00:00Z"), time("2026-08-27T12:00:00Z")));
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.tick_and_deliver().await, [""; 0], "inhibited");
    std::fs::write(app.folder.path().join("rules/test.toml"), RULES.replace(">= 1000000", ">= 100000000")).expect("written");
    app.app().reload().await.expect("good rules");
    app.at("2026-03-01T06:05:00Z");
    app.evaluate().await;
    app.deliver().await;
    app.at("2026-03-01T06:06:00Z");
    app.deliver().await;
    let notified = lines(&app.hook.take());
    assert!(notified.iter().any(|line| line.starts_with("alert.event ScheduleChanged alpha")), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mass_removal_is_released_after_a_day_or_by_an_operator() {
    let few = |edit: &mut Edit<'_>| edit.put_events("alpha", vec![cliff("2026-03-20T12:00:00Z", "Team", 2_000_000.0, "second")]);
    // Released by time: after a day and four responses.
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(few);
    for (at, is_notified) in [
        ("2026-03-01T06", false),
        ("2026-03-01T12", false),
        ("2026-03-01T18", false),
        ("2026-03-02T00", false),
        ("2026-03-02T06", true),
    ] {
        app.at(&format!("{at}:00:00Z"));
        let notified = app.tick_and_deliver().await;
        let is_change = |line: &&String| line.contains("ScheduleChanged");
        assert_eq!(notified.iter().any(|line| is_change(&line)), is_notified, "{at}: {notified:#?}");
        if is_notified {
            let line = notified.iter().find(is_change).expect("a notification");
            assert!(
                line.contains("held for 1 day") || notified.iter().any(|line| line.contains("1 day")),
                "the text lacks the reason: {notified:#?}"
            );
        }
    }
    // Released by an operator: the next response is applied.
    let app = TestApp::start().await;
    app.tick_and_deliver().await;
    app.edit(few);
    app.at("2026-03-01T06:00:00Z");
    assert_eq!(app.tick_and_deliver().await.len(), 1, "the source is reported");
    let accepted = app.app().store().accept_held("alpha".into(), app.clock.now()).await.expect("written");
    assert_eq!(accepted, 1);
    app.at("2026-03-01T12:00:00Z");
    let notified = app.tick_and_deliver().await;
    assert!(notified.iter().any(|line| line.contains("ScheduleChanged")), "{notified:#?}");
    assert!(notified.iter().any(|line| line.contains("accepted")), "the text lacks the reason: {notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_changed_by_the_list_stay_due_after_a_failure() {
    let rules = "[[rule]]\nalert = \"Small\"\non = \"unlock\"\nwithin = [\"30d\"]\nwhen = \"token.marketCap < 50000000\"\n";
    let app = TestApp::with(Setup { rules: rules.into(), ..Setup::default() }).await;
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
    app.edit(|edit| edit.put_item("alpha", |item| item.market_cap = 1e7.into()));
    app.database().sabotage("notification");
    app.at("2026-03-01T06:00:00Z");
    app.app().tick(Job::Poll(Endpoint::TokenList)).await.expect_err("the database fails");
    app.database().repair("notification");
    app.at("2026-03-01T12:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.evaluate().await;
    app.deliver().await;
    let notified = lines(&app.hook.take());
    assert_eq!(notified.len(), 1, "{notified:#?}");
    assert!(notified[0].starts_with("alert.firing Small alpha"), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removed_receiver_resolves_its_alerts() {
    let mut app = TestApp::with(Setup { config: "fallback = [\"desk\"]\n".into(), ..Setup::default() }).await;
    app.hook.respond_always(Some(410));
    app.tick().await;
    app.deliver().await;
    app.deliver().await;
    let notified = lines(&app.desk.take());
    assert!(!notified.is_empty(), "the dead receiver is reported");
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
    assert_eq!(open(&app).await, 0, "the alert of the removed receiver is resolved");
    let notified = lines(&app.desk.take());
    assert!(notified.iter().any(|line| line.contains("ops")), "{notified:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_are_pluralized_and_truncated_lists_are_reported() {
    use crate::it::binary::Workdir;
    let workdir = Workdir::new();
    workdir.write("rules/test.toml", "[[rule]]\nalert = \"One\"\non = \"burn\"\n");
    workdir.write("cliffwatch.toml", "[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\npath = \"test.db\"\n");
    std::fs::create_dir_all(workdir.path("data/burn")).expect("made");
    let list = r#"[{"tokenId": "alpha", "name": "A", "symbol": "A"}]"#;
    workdir
        .write("data/tokens.json", list)
        .write("data/burn/alpha.json", r#"{"burns": [{"burnDate": "2026-01-01", "amount": 1}]}"#);
    let imported = workdir.run("import data --db one.db").ok();
    for said in ["1 token, 0 events, ", ", 1 burn, ", "0 investors with 0 rounds"] {
        assert!(imported.contains(said), "{said}: {imported}");
    }
    assert!(workdir.run("export out --db one.db").ok().starts_with("1 token in 2 files"), "{}", workdir.run("status").err);
    assert!(workdir.run("check").err.contains("1 rule in 1 file"));
    assert_eq!(cliffwatch::model::phrase::tokens(1.0, None), "1 token");
    assert_eq!(cliffwatch::model::phrase::tokens(2.0, None), "2 tokens");
    // Each truncated list reports that it is truncated.
    let app = TestApp::with(with(LEVELLED, "", storm(20, false))).await;
    read(&app).await;
    deliver(&app).await;
    let store = app.database().setting();
    workdir.write("cliffwatch.toml", &format!("[source]\nbase_url = \"http://127.0.0.1:9\"\n[store]\n{store}\n"));
    for line in ["upcoming --limit 1", "alerts --limit 1", "outbox why --limit 1"] {
        let ran = workdir.run(&format!("--now 2026-03-01T00:00:00Z {line}"));
        assert!(ran.err.contains("showing the first 1 ") && ran.err.contains("use --limit for more"), "{line}: {}", ran.err);
        let all = workdir.run(&format!("--now 2026-03-01T00:00:00Z {line}000"));
        assert!(!all.err.contains("showing the first"), "{line}: {}", all.err);
    }
    app.hook.take();
}
