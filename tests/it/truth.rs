//! Runs the labeled corrections through the app, with restarts between polls, and compares the reported changes with the labels.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use chrono::{Datelike, TimeDelta};
use cliffwatch::{
    model::{
        change::{Change, ChangeKind},
        config::{EndpointVersion, Reach},
        rows::ChangeFilter,
        supply::{Endpoint, Timestamp, TokenId},
        wire::UnlockEvent,
    },
    service::Edit,
};
use serde_json::json;
use testkit::{faults::Fault, labels};

use crate::it::support::{self, Fill, Setup, TestApp, item, time};

/// The versions of one schedule with their times, oldest first.
type Versions = Vec<(String, Vec<UnlockEvent>)>;

fn schedules(folder: &Path) -> BTreeMap<String, Versions> {
    #[derive(serde::Deserialize)]
    struct Version {
        at: String,
        data: Vec<UnlockEvent>,
    }
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ext| ext != "jsonl") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a file");
        let versions = text.lines().map(|line| {
            let Version { at, data } = serde_json::from_str(line).expect("a version");
            (at, data)
        });
        all.insert(name, versions.collect());
    }
    all
}

/// Polls per version: enough to release a held removal.
const POLLS: i64 = 7;

/// The result of a run.
#[derive(Default)]
struct RunResult {
    /// The corrections reported as labeled: token and time.
    correct: Vec<(String, String)>,
    faults: Vec<String>,
    total: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn corrections_are_reported_as_labeled_across_restarts() {
    // The API version with complete schedules: later ones omit rate changes of linear unlocks.
    let RunResult { correct, faults, total } = play(EndpointVersion::V(1), true).await;
    assert!(correct.len() * 100 >= total * 98, "{} of {total} correct\n{}", correct.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn separately_polled_segments_give_the_same_changes() {
    // Tokens that are listed by AI have no complete version.
    let (of_ai, whole) = (play(EndpointVersion::Auto, false).await, play(EndpointVersion::V(3), true).await);
    println!("auto without v1: {} of {} correct, v3: {}", of_ai.correct.len(), of_ai.total, whole.correct.len());
    let both = whole.correct.iter().filter(|correction| of_ai.correct.contains(correction)).count();
    assert!(both * 100 >= whole.correct.len() * 98, "{both} of {}\n{}", whole.correct.len(), of_ai.faults.join("\n"));
    let auto = play(EndpointVersion::Auto, true).await;
    println!("auto: {} of {} correct", auto.correct.len(), auto.total);
    assert!(auto.correct.len() * 100 >= auto.total * 98, "{} of {}\n{}", auto.correct.len(), auto.total, auto.faults.join("\n"));
    for (years, clip) in [(1, Clip::OfServer), (2, Clip::OfServer), (2, Clip::OfConfig)] {
        let clipped = play_clipped(TimeDelta::days(365 * years), clip).await;
        let visible: Vec<_> = clipped.iter().filter(|(correction, ..)| auto.correct.contains(correction)).collect();
        let correct = visible.iter().filter(|(.., faults)| faults.is_empty()).count();
        println!("clipped at {years} years, {clip:?}: {correct} of {} visible", visible.len());
        assert!(visible.len() >= 10 && correct * 100 >= visible.len() * 98, "{correct} of {}: {visible:#?}", visible.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_segments_stay_unchanged_and_are_polled_again() {
    let schedule = |cliff: f64, end: &str| -> Vec<UnlockEvent> {
        let linear = json!({"linearAmount": 3_000_000, "allocationBreakdown": [{"allocationName": "Team", "linearAmount": 3_000_000,
            "beginDate": "2026-04-01T00:00:00Z", "endDate": end, "unlockPrecision": "second"}]});
        let begin = json!({"unlockDate": "2026-04-01T00:00:00Z", "cliffUnlocks": null, "linearUnlocks": linear});
        vec![serde_json::from_value(begin).expect("an event"), support::cliff("2026-05-01T00:00:00Z", "Seed", cliff, "second")]
    };
    let first = schedule(1e6, "2028-04-01T00:00:00Z");
    let fill = move |edit: &mut Edit<'_>| {
        edit.put_token(&item("alpha", "ALP"))?;
        edit.put_events("alpha", first.clone())
    };
    let app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
    poll(&app).await;
    app.edit(|edit| edit.put_events("alpha", schedule(2e6, "2029-04-01T00:00:00Z")));
    let kinds = |notified: &[Change]| notified.iter().map(|change| change.kind).collect::<Vec<_>>();
    for (fault, has_more) in [(Fault::status(503), true), (Fault::Cut(120), false), (Fault::Emptied, false)] {
        app.faults.set("/v1/unlock/events", fault);
        let notified = poll(&app).await;
        let expected = if has_more { vec![ChangeKind::Resized] } else { Vec::new() };
        assert_eq!(kinds(&notified), expected, "{notified:?}");
        app.faults.clear();
    }
    let notified = poll(&app).await;
    assert_eq!(kinds(&notified), [ChangeKind::Rescheduled], "{notified:?}");
    app.faults.take_log();
    assert_eq!(kinds(&poll(&app).await), []);
    assert!(
        app.faults.log().iter().all(|request| !request.uri.starts_with("/v1/unlock/events")),
        "segments are polled once per list mark"
    );
    app.hook.take();
}

#[tokio::test(flavor = "multi_thread")]
async fn correction_between_list_and_schedule_slots_is_reported_as_one_change() {
    let segment = |amount: f64| -> UnlockEvent {
        let part = json!({"allocationName": "Team", "linearAmount": amount, "beginDate": "2026-05-01T00:00:00Z",
            "endDate": "2027-05-01T00:00:00Z", "unlockPrecision": "second"});
        serde_json::from_value(json!({"unlockDate": "2026-05-01T00:00:00Z", "cliffUnlocks": null,
            "linearUnlocks": {"linearAmount": amount, "allocationBreakdown": [part]}}))
        .expect("an event")
    };
    let cliffs =
        |count: u32| (0..count).map(|k| support::cliff(&format!("2026-{:02}-15T00:00:00Z", k + 6), "Team", 1e6, "second"));
    let before: Vec<UnlockEvent> = [segment(1e6)].into_iter().chain(cliffs(6)).collect();
    let after: Vec<UnlockEvent> = [segment(4e6)].into_iter().chain(cliffs(3)).collect();
    for is_marked in [true, false] {
        let first = before.clone();
        let fill = move |edit: &mut Edit<'_>| {
            edit.put_token(&item("alpha", "ALP"))?;
            edit.put_events("alpha", first.clone())
        };
        let mut app = TestApp::with(Setup { fill: Box::new(fill), ..Setup::default() }).await;
        assert_eq!(poll(&app).await, []);
        let mut notified = Vec::new();
        for slot in 1..8 {
            app.clock.set(time(support::BEGIN) + TimeDelta::hours(6 * slot));
            app.poll(Endpoint::TokenList).await;
            if slot == 2 {
                app.edit(|edit| {
                    if !is_marked {
                        edit.silently();
                    }
                    edit.put_events("alpha", after.clone())
                });
            }
            app.restart().await;
            notified.push(app.poll(Endpoint::UnlockEvents).await.changes);
        }
        let kinds: Vec<ChangeKind> = notified.iter().flatten().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Restructured], "{notified:#?}");
        app.hook.take();
    }
}

/// The cause of a limited visibility window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Clip {
    /// The limit of the API plan.
    OfServer,
    /// The config keys `history` and `horizon`.
    OfConfig,
}

/// Replays each correction at its time with a visibility window of `reach` around today. Returns the corrections that lie within the
/// window, with the faults of the reported changes.
async fn play_clipped(reach: TimeDelta, clip: Clip) -> Vec<((String, String), Vec<String>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let labels = labels::labels(&folder);
    let mut visible = Vec::new();
    for (token, versions) in &schedules(&folder) {
        for two in versions.windows(2) {
            let [before, (at, events)] = two else { continue };
            let (old, new) = (flat(&before.1), flat(events));
            let well_within = |(day, _): &Flat| (time(day) - time(at)).abs() < reach - TimeDelta::days(10);
            if !old.symmetric_difference(&new).all(well_within) {
                continue;
            }
            let mut first = neighbors(time(at).year());
            first.insert(token.clone(), vec![before.clone()]);
            let mut app = TestApp::with(Setup { rules: NEVER.into(), fill: first_versions(&first), ..Setup::default() }).await;
            if clip == Clip::OfConfig {
                let span = Reach::Span(format!("{}d", reach.num_days()).parse().expect("a span"));
                app.restart_with(|config| (config.source.history, config.source.horizon) = (span, span)).await;
            }
            // The app needs polls of two weeks, and other tokens, to learn the window.
            for days in -DAYS_BEFORE..0 {
                assert_eq!(poll_clipped(&app, reach, clip, time(at) + TimeDelta::days(days)).await, [], "{token} {at}");
            }
            app.edit(|edit| edit.put_events(token, events.clone()));
            let mut notified = Vec::new();
            for poll in 0..POLLS {
                app.restart().await;
                notified.extend(poll_clipped(&app, reach, clip, time(at) + TimeDelta::hours(6 * poll)).await);
            }
            app.hook.take();
            assert!(notified.iter().all(|change| change.token.as_ref().is_some_and(|of| of.as_str() == token)), "{notified:#?}");
            let label = labels.iter().find(|label| label.token == *token && label.at == *at).expect("a label");
            visible.push(((token.clone(), at.clone()), labels::faults(label, &notified)));
        }
    }
    visible
}

/// Monthly schedules of other tokens, which reach both edges of every window of this test in `year`.
fn neighbors(year: i32) -> BTreeMap<String, Versions> {
    let schedule = |number: u32| -> Vec<UnlockEvent> {
        let months = (year - 3..=year + 3).flat_map(|year| (1..=12).map(move |month| (year, month)));
        let day = 3 + 6 * number;
        months
            .map(|(year, month)| support::cliff(&format!("{year}-{month:02}-{day:02}T00:00:00Z"), "Team", 1e6, "second"))
            .collect()
    };
    (0..4).map(|number| (format!("neighbor-{number}"), vec![(String::new(), schedule(number))])).collect()
}

/// Days of polls before a correction.
const DAYS_BEFORE: i64 = 15;

async fn poll_clipped(app: &TestApp, reach: TimeDelta, clip: Clip, now: Timestamp) -> Vec<Change> {
    app.clock.set(now);
    app.faults.clear();
    if clip == Clip::OfServer {
        app.faults.set("/", Fault::Clipped { first: (now - reach).date_naive(), last: (now + reach).date_naive() });
    }
    poll(app).await
}

/// The date of an allocation share, and its allocation, category, amount, and end.
type Flat = (String, [String; 4]);

fn flat(events: &[UnlockEvent]) -> BTreeSet<Flat> {
    let mut parts = BTreeSet::new();
    for event in events.iter().map(|event| serde_json::to_value(event).expect("an event")) {
        for (unlocks, amount) in [("cliffUnlocks", "cliffAmount"), ("linearUnlocks", "linearAmount")] {
            for part in event[unlocks]["allocationBreakdown"].as_array().into_iter().flatten() {
                let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let of_part = ["allocationName", "standardAllocationName", amount, "endDate"].map(|field| text(&part[field]));
                parts.insert((text(&event["unlockDate"]), of_part));
            }
        }
    }
    parts
}

const NEVER: &str = "[[rule]]\nalert = \"Never\"\non = \"unlock\"\nwhen = \"cliffValue < 0\"\n";

fn first_versions(schedules: &BTreeMap<String, Versions>) -> Fill {
    let first = schedules.clone();
    Box::new(move |edit| {
        for (token, versions) in &first {
            edit.put_token(&item(token, token))?;
            edit.put_events(token, versions[0].1.clone())?;
        }
        Ok(())
    })
}

/// Replays all corrections with an API version of schedules, and restarts the app between polls. `has_first_version` is whether the source
/// has the tokens in its first version.
async fn play(version: EndpointVersion, has_first_version: bool) -> RunResult {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let (labels, schedules) = (labels::labels(&folder), schedules(&folder));
    let setup = Setup { rules: NEVER.into(), fill: first_versions(&schedules), ..Setup::default() };
    let mut app = TestApp::with(setup).await;
    if !has_first_version {
        app.faults.set("/v1/unlock/events", Fault::status(404));
    }
    app.restart_with(|config| config.source.unlock_events = version).await;
    poll(&app).await;
    let most = schedules.values().map(Vec::len).max().expect("schedules");
    let mut outcome = RunResult::default();
    for round in 1..most {
        let since = app.clock.now() + TimeDelta::hours(1);
        app.edit(|edit| {
            for (token, versions) in &schedules {
                if let Some((_, events)) = versions.get(round) {
                    edit.put_events(token, events.clone())?;
                }
            }
            Ok(())
        });
        for _ in 0..POLLS {
            app.clock.set(app.clock.now() + TimeDelta::hours(6));
            app.restart().await;
            poll(&app).await;
        }
        for (token, versions) in &schedules {
            let Some((at, _)) = versions.get(round) else { continue };
            let filter = ChangeFilter {
                tokens: Some(vec![TokenId::from(token.as_str())]),
                since: Some(since),
                limit: 1000,
                ..Default::default()
            };
            let notified: Vec<Change> =
                app.app().store().changes(filter).await.expect("changes").into_iter().map(|row| row.change).collect();
            let label = labels.iter().find(|label| label.token == *token && label.at == *at).expect("a label");
            outcome.total += 1;
            let missed = labels::faults(label, &notified);
            if missed.is_empty() {
                outcome.correct.push((token.clone(), at.clone()));
            } else {
                let said: Vec<&str> = notified.iter().map(|change| change.summary.as_str()).collect();
                outcome.faults.push(format!("{token} {at}: {}\n  reported {said:?}\n  {missed:?}", label.sentence));
            }
        }
        assert_eq!(change_prices(&app, &schedules, round).await, Vec::<String>::new());
    }
    assert_eq!(outcome.total, labels.len(), "every correction is replayed");
    app.hook.take();
    outcome
}

async fn poll(app: &TestApp) -> Vec<Change> {
    app.poll(Endpoint::TokenList).await;
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!(report.failed, []);
    report.changes
}

/// Changes only prices. Returns the reported changes and the requests for segments, both of which should be empty.
async fn change_prices(app: &TestApp, schedules: &BTreeMap<String, Versions>, round: usize) -> Vec<String> {
    let price = |number: usize| ((number + 1) * (round + 1) * 7919 % 1000 + 1) as f64 / 100.0;
    app.edit(|edit| schedules.keys().enumerate().try_for_each(|(number, token)| edit.reprice(token, price(number))));
    app.clock.set(app.clock.now() + TimeDelta::hours(6));
    let requested = app.faults.log().len();
    let notified = poll(app).await;
    let log = app.faults.log();
    let is_older = |uri: &&str| uri.starts_with("/v3/") || uri.starts_with("/v1/unlock/events");
    let of_segments = |uri: &&str| app.config.source.unlock_events == EndpointVersion::Auto && is_older(uri);
    let others = log[requested..].iter().map(|request| request.uri.as_str()).filter(of_segments);
    notified.iter().map(|change| change.summary.clone()).chain(others.map(str::to_owned)).collect()
}
