//! The labelled corrections through the running app: what a daemon that was restarted between polls told, as people would tell it.

use std::{collections::BTreeMap, path::Path};

use cliffwatch::model::{
    self,
    change::Change,
    rows::ChangeFilter,
    supply::{Endpoint, TokenId},
    wire::UnlockEvent,
};
use serde_json::json;

use crate::support::{Setup, TestApp, item};

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

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_restarts_tells_corrections_as_people_tell_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions");
    let (labels, schedules) = (labels::labels(&folder), schedules(&folder));
    let first = schedules.clone();
    let setup = Setup {
        rules: "[[rule]]\nalert = \"Never\"\non = \"unlock\"\nwhen = \"cliffValue < 0\"\n".into(),
        tokens: json!(["*"]),
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
    // The version that shows all of a schedule: later ones leave out where the rate of a linear unlock changes.
    app.restart_with(|config| config.source.unlock_events = cliffwatch::model::config::EndpointVersion::V(1)).await;
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::UnlockEvents).await;
    let most = schedules.values().map(Vec::len).max().expect("schedules");
    let (mut right, mut all, mut faults) = (0, 0, Vec::new());
    for version in 1..most {
        let since = app.clock.now() + chrono::TimeDelta::hours(1);
        app.edit(|edit| {
            for (token, versions) in &schedules {
                if let Some((_, events)) = versions.get(version) {
                    edit.put_events(token, events.clone())?;
                }
            }
            Ok(())
        });
        for _ in 0..POLLS {
            app.clock.set(app.clock.now() + chrono::TimeDelta::hours(6));
            app.restart().await;
            app.poll(Endpoint::UnlockEvents).await;
        }
        for (token, versions) in &schedules {
            let Some((at, _)) = versions.get(version) else { continue };
            let filter = ChangeFilter {
                token: Some(TokenId::from(token.as_str())),
                since: Some(since),
                limit: 1000,
                ..Default::default()
            };
            let told: Vec<Change> =
                app.app().store().changes(filter).await.expect("changes").into_iter().map(|row| row.change).collect();
            let label = labels.iter().find(|label| label.token == *token && label.at == *at).expect("a label");
            all += 1;
            let missed = labels::faults(label, &told);
            right += usize::from(missed.is_empty());
            if !missed.is_empty() {
                let said: Vec<&str> = told.iter().map(|change| change.summary.as_str()).collect();
                faults.push(format!("{token} {at}: {}\n  told {said:?}\n  {missed:?}", label.sentence));
            }
        }
    }
    assert_eq!(all, labels.len(), "each correction was played");
    assert!(right * 100 >= all * 98, "{right} of {all} right\n{}", faults.join("\n"));
    app.hook.take();
}
