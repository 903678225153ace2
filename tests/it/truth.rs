//! The labelled corrections through the running app: what a daemon that was restarted between polls told, as people would tell it.

use std::{collections::BTreeMap, path::Path};

use chrono::TimeDelta;
use cliffwatch::{
    model::{
        self,
        change::{Change, ChangeKind},
        config::EndpointVersion,
        rows::ChangeFilter,
        supply::{Endpoint, TokenId},
        wire::UnlockEvent,
    },
    service::{Edit, faults::Fault},
};
use serde_json::json;

use crate::support::{self, Setup, TestApp, item};

#[path = "../truth/mod.rs"]
mod labels;

/// The versions of one schedule, oldest first, with the time of each.
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

/// Polls of each version: enough for a removal that was held to be told.
const POLLS: i64 = 5;

/// What a daemon told of each correction, as people would tell it or not.
#[derive(Default)]
struct Told {
    right: Vec<(String, String)>,
    faults: Vec<String>,
    all: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_restarts_tells_corrections_as_people_tell_them() {
    // The version that shows all of a schedule: later ones leave out where the rate of a linear unlock changes.
    let Told { right, faults, all } = play(EndpointVersion::V(1)).await;
    assert!(right.len() * 100 >= all * 98, "{} of {all} right\n{}", right.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn cliffs_with_segments_beside_tell_what_both_in_one_version_tell() {
    let (auto, whole) = (play(EndpointVersion::Auto).await, play(EndpointVersion::V(3)).await);
    println!("auto: {} of {} right, v3: {}", auto.right.len(), auto.all, whole.right.len());
    let as_well = whole.right.iter().filter(|correction| auto.right.contains(correction)).count();
    assert!(as_well * 100 >= whole.right.len() * 98, "{as_well} of {}\n{}", whole.right.len(), auto.faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn segments_that_cannot_be_read_stay_as_known_and_are_asked_for_again() {
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
    let kinds = |told: &[Change]| told.iter().map(|change| change.kind).collect::<Vec<_>>();
    for (fault, has_more) in [(Fault::status(503), true), (Fault::Cut(120), false), (Fault::Emptied, false)] {
        app.faults.set("/v3/unlock/events", fault);
        let told = poll(&app).await;
        let expected = if has_more { vec![ChangeKind::Resized] } else { Vec::new() };
        assert_eq!(kinds(&told), expected, "{told:?}");
        app.faults.clear();
    }
    let told = poll(&app).await;
    assert_eq!(kinds(&told), [ChangeKind::Rescheduled], "{told:?}");
    app.faults.take_log();
    assert_eq!(kinds(&poll(&app).await), []);
    assert!(app.faults.log().iter().all(|request| !request.uri.starts_with("/v3/")), "asked once for each mark");
    app.hook.take();
}

/// Plays all corrections to a daemon that reads schedules in a version, and is restarted between its polls.
async fn play(version: EndpointVersion) -> Told {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let (labels, schedules) = (labels::labels(&folder), schedules(&folder));
    let first = schedules.clone();
    let setup = Setup {
        rules: "[[rule]]\nalert = \"Never\"\non = \"unlock\"\nwhen = \"cliffValue < 0\"\n".into(),
        fill: Box::new(move |edit| {
            for (token, versions) in &first {
                edit.put_token(&item(token, token))?;
                edit.put_events(token, versions[0].1.clone())?;
            }
            Ok(())
        }),
        ..Setup::default()
    };
    let mut app = TestApp::with(setup).await;
    app.restart_with(|config| config.source.unlock_events = version).await;
    poll(&app).await;
    let most = schedules.values().map(Vec::len).max().expect("schedules");
    let mut outcome = Told::default();
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
                token: Some(TokenId::from(token.as_str())),
                since: Some(since),
                limit: 1000,
                ..Default::default()
            };
            let told: Vec<Change> =
                app.app().store().changes(filter).await.expect("changes").into_iter().map(|row| row.change).collect();
            let label = labels.iter().find(|label| label.token == *token && label.at == *at).expect("a label");
            outcome.all += 1;
            let missed = labels::faults(label, &told);
            if missed.is_empty() {
                outcome.right.push((token.clone(), at.clone()));
            } else {
                let said: Vec<&str> = told.iter().map(|change| change.summary.as_str()).collect();
                outcome.faults.push(format!("{token} {at}: {}\n  told {said:?}\n  {missed:?}", label.sentence));
            }
        }
        for token in app.app().store().plan_tokens(Endpoint::UnlockEvents, app.clock.now()).await.expect("read") {
            if token.id.as_str() == "ethena" {
                println!("{round} {token:?}");
            }
        }
        assert_eq!(drift(&app, &schedules, round).await, Vec::<String>::new());
    }
    assert_eq!(outcome.all, labels.len(), "each correction was played");
    app.hook.take();
    outcome
}

async fn poll(app: &TestApp) -> Vec<Change> {
    app.poll(Endpoint::TokenList).await;
    let report = app.poll(Endpoint::UnlockEvents).await;
    assert_eq!(report.failed, []);
    report.changes
}

/// What is told, and asked for beside the cliffs, where nothing but prices moved: it should be nothing.
async fn drift(app: &TestApp, schedules: &BTreeMap<String, Versions>, round: usize) -> Vec<String> {
    let price = |number: usize| ((number + 1) * (round + 1) * 7919 % 1000 + 1) as f64 / 100.0;
    app.edit(|edit| schedules.keys().enumerate().try_for_each(|(number, token)| edit.reprice(token, price(number))));
    app.clock.set(app.clock.now() + TimeDelta::hours(6));
    let asked = app.faults.log().len();
    let told = poll(app).await;
    let log = app.faults.log();
    let of_segments = |uri: &&str| app.config.source.unlock_events == EndpointVersion::Auto && uri.starts_with("/v3/");
    let others = log[asked..].iter().map(|request| request.uri.as_str()).filter(of_segments);
    told.iter().map(|change| change.summary.clone()).chain(others.map(str::to_owned)).collect()
}
