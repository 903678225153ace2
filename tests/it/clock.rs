//! Two apps with the same source: one with a randomly changed wall clock, one with a correct clock. Both must send the same
//! notifications.

use chrono::TimeDelta;
use cliffwatch::daemon::app::ClockWatch;
use cliffwatch::model::silence::{SilenceRequest, read_matchers};
use cliffwatch::model::{Clock, DeliveryState};

use crate::it::support::{BEGIN, Setup, TestApp, burn, cliff, lines, time};

/// Hours between two steps.
const STEP: i64 = 6;

fn machine() -> Setup {
    Setup { machine: Some(Clock::simulated(time(BEGIN))), ..Setup::default() }
}

/// Runs a cycle, the clock check, and deliveries. Returns the notifications, separated into other ones and those about the clock.
async fn step(app: &TestApp, watch: &mut ClockWatch) -> (Vec<String>, Vec<String>) {
    app.tick().await;
    app.app().check_clock(watch).await;
    app.deliver().await;
    let mut notified = lines(&app.hook.take());
    notified.sort();
    notified.into_iter().partition(|line| !line.contains("clock"))
}

/// Edits the source at some hours.
fn edit_source(app: &TestApp, hour: i64) {
    match hour {
        54 => app.edit(|edit| edit.add_burn("alpha", burn("2026-03-03T00:00:00Z", 9_000.0))),
        150 => app.edit(|edit| {
            let days = ["2026-03-20", "2026-04-25", "2026-05-20", "2026-06-20", "2026-07-20", "2026-08-20"];
            let cliffs = days.iter().map(|day| cliff(&format!("{day}T12:00:00Z"), "Team", 2_000_000.0, "second"));
            edit.put_events("alpha", cliffs.collect())
        }),
        204 => app.edit(|edit| edit.put_events("beta", vec![cliff("2026-06-15T00:00:00Z", "Seed", 5_000_000.0, "month")])),
        _ => {}
    }
}

async fn world(seed: u64, hours: i64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (right, mut wrong) = (TestApp::with(machine()).await, TestApp::with(machine()).await);
    let (mut watch_right, mut watch_wrong) = (ClockWatch::default(), ClockWatch::default());
    let (mut truth, mut offset) = (time(BEGIN), TimeDelta::zero());
    for hour in (0..hours).step_by(usize::try_from(STEP).expect("positive")) {
        for app in [&right, &wrong] {
            edit_source(app, hour);
        }
        offset = match random.u8(0..8) {
            0 => TimeDelta::hours(random.i64(-90_000..90_000)),
            1 => TimeDelta::hours(-8),
            2 => TimeDelta::minutes(random.i64(-400..400)),
            3 | 4 => TimeDelta::zero(),
            _ => offset,
        };
        wrong.machine.set(truth + offset);
        if random.u8(0..6) == 0 {
            wrong.restart().await;
            watch_wrong = ClockWatch::default();
        }
        let (expected, none) = step(&right, &mut watch_right).await;
        assert_eq!(none, [""; 0], "seed {seed}, hour {hour}: the correct clock was reported as wrong");
        let (notified, about_clock) = step(&wrong, &mut watch_wrong).await;
        assert_eq!(notified, expected, "seed {seed}, hour {hour}, the wall clock off by {offset}");
        let is_off = offset.abs() > TimeDelta::minutes(5);
        let open = wrong.app().store().source_alerts().await.expect("read");
        assert_eq!(
            open.iter().any(|alert| alert.subject == "clock"),
            is_off,
            "seed {seed}, hour {hour}: {offset}, {about_clock:?}"
        );
        truth += TimeDelta::hours(STEP);
        for app in [&right, &wrong] {
            app.clock.set(truth);
            app.machine.pass(TimeDelta::hours(STEP));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wall_clock_changes_do_not_change_notifications() {
    let lives: u64 = std::env::var("CLIFFWATCH_CLOCKS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for seed in 0..lives {
        world(seed, 24 * 10).await;
    }
}

/// The source has the same wrong clock, so the error cannot be detected. Once both are correct again, processing continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processing_continues_after_a_temporary_jump_to_2036() {
    let setup = Setup { config: "group_by = [\"token\"]\ngroup_wait = \"1m\"\ngroup_interval = \"5m\"\n".into(), ..machine() };
    let app = TestApp::with(setup).await;
    let mut watch = ClockWatch::default();
    let step_at = async |at: &str, watch: &mut ClockWatch| {
        app.at(at);
        app.machine.set(time(at));
        app.tick().await;
        app.app().check_clock(watch).await;
        app.deliver().await;
        app.machine.pass(TimeDelta::minutes(2));
        app.clock.pass(TimeDelta::minutes(2));
        app.deliver().await;
        lines(&app.hook.take())
    };
    step_at("2026-03-01T00:00:00Z", &mut watch).await;
    step_at("2036-03-01T00:00:00Z", &mut watch).await;
    let back = step_at("2026-03-01T06:00:00Z", &mut watch).await;
    assert!(!back.iter().any(|line| line.contains("added") || line.contains("removed")), "{back:#?}");
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-01T00:00:00Z", 9_000.0)));
    let notified = step_at("2026-03-01T12:00:00Z", &mut watch).await;
    assert!(notified.iter().any(|line| line.contains("Burned")), "{notified:#?}");
    let due = app.app().store().gauges().await.expect("read").outbox;
    assert!(due.iter().all(|receiver| receiver.of(DeliveryState::Due) + receiver.of(DeliveryState::Retrying) == 0), "{due:?}");
}

/// After a restart, the app resumes from the last trusted time until a response confirms the clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_outlives_a_clock_change_before_a_restart() {
    let mut app = TestApp::with(machine()).await;
    let mut watch = ClockWatch::default();
    let silence = SilenceRequest {
        matchers: read_matchers(["token=~alpha|beta"]).expect("matchers"),
        author: "ops".into(),
        comment: "known".into(),
        starts_at: None,
        ends_at: time(BEGIN) + TimeDelta::days(365),
    };
    app.app().store().put_silence(silence.into_silence(time(BEGIN)).expect("granted")).await.expect("written");
    step(&app, &mut watch).await;
    for ahead in [TimeDelta::days(3_600), TimeDelta::days(-3_600)] {
        app.machine.pass(TimeDelta::minutes(1));
        app.clock.pass(TimeDelta::minutes(1));
        app.machine.set(app.clock.now() + ahead);
        app.restart().await;
        app.deliver().await;
        app.evaluate().await;
        app.deliver().await;
        assert_eq!(lines(&app.hook.take()), [""; 0], "{ahead}");
        app.machine.set(app.clock.now());
    }
}

/// Moves the source's clock to `at` and replaces the machine of the app with `machine`, as a takeover, a restore, or a reboot does.
async fn continue_on(app: &mut TestApp, machine: Clock, at: &str) {
    app.at(at);
    app.machine = machine;
    app.restart().await;
}

/// A machine that has been up for `uptime` and whose wall clock is `ahead`.
fn machine_at(at: &str, uptime: TimeDelta, ahead: TimeDelta) -> Clock {
    let machine = Clock::simulated(time(at) + ahead - uptime);
    machine.pass(uptime);
    machine.restarted()
}

/// Without the identity of the machine, the stored time would continue on the new one, 25 days ahead of its correct wall clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_of_another_machine_is_ignored() {
    let mut app = TestApp::with(machine()).await;
    let mut watch = ClockWatch::default();
    let (notified, _) = step(&app, &mut watch).await;
    assert_eq!(notified.len(), 1, "the cliff within 30 days: {notified:#?}");
    assert!(app.app().store().saved_clock().await.expect("read").is_some());
    let at = "2026-03-02T00:00:00Z";
    continue_on(&mut app, machine_at(at, TimeDelta::days(26), TimeDelta::zero()), at).await;
    assert_eq!(app.machine.now(), time(at));
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0], "the cliff in 18 days is not within 7 days");
    assert!(!app.machine.state().is_settled, "pruning waits for the source");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_of_an_earlier_boot_does_not_continue() {
    let mut app = TestApp::with(machine()).await;
    app.tick_and_deliver().await;
    app.app().check_clock(&mut ClockWatch::default()).await;
    // Off for three days. The service starts after the boot took longer than the last one.
    let rebooted = app.machine.rebooted(TimeDelta::days(3));
    rebooted.pass(TimeDelta::minutes(20));
    continue_on(&mut app, rebooted, "2026-03-04T00:20:00Z").await;
    assert_eq!(app.machine.now(), time("2026-03-04T00:20:00Z"));
}

/// The clock of one instance is a minute ahead, that of the other two minutes behind. Both count as right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_with_a_slower_clock_decides_nothing_again() {
    let mut app = TestApp::with(Setup { config: "group_wait = \"0s\"\n".into(), ..machine() }).await;
    let mut watch = ClockWatch::default();
    step(&app, &mut watch).await;
    for (at, expected) in [("2026-03-13T11:59:30Z", "7 days"), ("2026-03-20T11:59:30Z", "alert.resolved")] {
        continue_on(&mut app, machine_at(at, TimeDelta::hours(1), TimeDelta::minutes(1)), at).await;
        let (notified, _) = step(&app, &mut ClockWatch::default()).await;
        assert!(notified.iter().any(|line| line.contains(expected)), "{at}: {notified:#?}");
        continue_on(&mut app, machine_at(at, TimeDelta::hours(9), TimeDelta::minutes(-2)), at).await;
        let (again, _) = step(&app, &mut ClockWatch::default()).await;
        assert_eq!(again, [""; 0], "{at}");
        // The slower clock reaches the date.
        app.machine.pass(TimeDelta::minutes(4));
        app.clock.pass(TimeDelta::minutes(4));
        let (again, _) = step(&app, &mut ClockWatch::default()).await;
        assert_eq!(again, [""; 0], "{at}");
    }
}

/// A takeover by an instance whose clock is eight minutes behind: no message waits until that clock has caught up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_with_a_slower_clock_delays_no_message() {
    let config =
        "group_by = [\"token\"]\ngroup_wait = \"0s\"\ngroup_interval = \"1m\"\n[delivery]\nretry = [\"0s\", \"30s\", \"30s\"]\n";
    let mut app = TestApp::with(Setup { config: config.into(), ..machine() }).await;
    let mut watch = ClockWatch::default();
    step(&app, &mut watch).await;
    let burned = |app: &TestApp, token: &str, amount: f64| {
        app.edit(|edit| edit.add_burn(token, burn("2026-03-01T00:00:00Z", amount)));
    };
    let at = "2026-03-02T00:00:00Z";
    continue_on(&mut app, machine_at(at, TimeDelta::hours(1), TimeDelta::minutes(4)), at).await;
    burned(&app, "alpha", 7_000.0);
    let (notified, _) = step(&app, &mut ClockWatch::default()).await;
    assert!(notified.len() == 1 && notified[0].contains("Burned alpha"), "{notified:#?}");
    burned(&app, "beta", 8_000.0);
    app.hook.respond_always(Some(503));
    let (notified, _) = step(&app, &mut ClockWatch::default()).await;
    assert_eq!(notified, [""; 0], "a retry waits");
    assert_eq!(app.rows("SELECT state FROM delivery WHERE state <> 'delivered'"), [["retrying"]]);
    app.hook.respond_always(None);

    let at = "2026-03-02T00:00:30Z";
    continue_on(&mut app, machine_at(at, TimeDelta::hours(9), TimeDelta::minutes(-4)), at).await;
    burned(&app, "alpha", 9_000.0);
    let (mut notified, _) = step(&app, &mut ClockWatch::default()).await;
    app.machine.pass(TimeDelta::seconds(61));
    app.clock.pass(TimeDelta::seconds(61));
    app.deliver().await;
    notified.extend(lines(&app.hook.take()));
    notified.sort();
    let rules: Vec<_> = notified.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(rules, ["alert.event Burned alpha", "alert.event Burned beta"], "{notified:#?}");
}

/// While the evaluation waits for a clock that is behind, each correction still has an alert of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_with_a_slower_clock_reports_every_correction() {
    let mut app = TestApp::with(Setup { config: "group_wait = \"0s\"\n".into(), ..machine() }).await;
    step(&app, &mut ClockWatch::default()).await;
    let at = "2026-03-02T00:00:00Z";
    continue_on(&mut app, machine_at(at, TimeDelta::hours(1), TimeDelta::minutes(4)), at).await;
    step(&app, &mut ClockWatch::default()).await;
    continue_on(&mut app, machine_at(at, TimeDelta::hours(9), TimeDelta::minutes(-4)), at).await;
    for day in 21..24 {
        let days = |day: u32| time(&format!("2026-08-{day}T12:00:00Z"));
        app.edit(|edit| edit.move_event("alpha", days(day - 1), days(day)));
        let (notified, _) = step(&app, &mut ClockWatch::default()).await;
        assert!(notified.len() == 1 && notified[0].contains(&format!("to {day} Aug 2026")), "{day}: {notified:#?}");
        app.machine.pass(TimeDelta::minutes(1));
        app.clock.pass(TimeDelta::minutes(1));
    }
}

/// A standby started while its clock was a day ahead, and polls nothing. At its takeover, the time of the latest evaluation contradicts it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takeover_with_a_wrong_clock_decides_nothing_before_the_source_responds() {
    let mut app = TestApp::with(Setup { config: "group_wait = \"0s\"\n".into(), ..machine() }).await;
    step(&app, &mut ClockWatch::default()).await;
    let at = "2026-03-12T18:00:00Z";
    app.at(at);
    app.machine.set(time(at));
    app.machine.pass(TimeDelta::days(11));
    app.machine.set(time(at));
    step(&app, &mut ClockWatch::default()).await;
    continue_on(&mut app, machine_at(at, TimeDelta::hours(9), TimeDelta::days(1)), at).await;
    app.app().require_time_confirmation().await;
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(lines(&app.hook.take()), [""; 0], "the cliff is not within 7 days yet");
    let (notified, _) = step(&app, &mut ClockWatch::default()).await;
    assert_eq!(notified, [""; 0], "the source corrects the time");
    app.machine.pass(TimeDelta::hours(18));
    app.clock.pass(TimeDelta::hours(18));
    let (notified, _) = step(&app, &mut ClockWatch::default()).await;
    assert!(notified.len() == 1 && notified[0].contains("7 days"), "{notified:#?}");
}
