//! Tests of imports and edits.

use super::*;

#[tokio::test]
async fn only_changed_files_update_the_date() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let first = everything(&server).await;
    service.0.options.clock.set(parse_timestamp("2026-01-12T10:00:00Z").unwrap());
    let again = service.import(files(FILES), |_| {}).unwrap();
    assert_eq!((again.changed, again.tokens, again.events, again.rounds), (0, 2, 4, 4));
    let mut second = everything(&server).await;
    for (one, other) in first.iter().zip(&mut second) {
        other["metadata"]["queryDate"] = one["metadata"]["queryDate"].clone();
    }
    assert_eq!(first, second);

    let moved = ALPHA.replace("2026-03-01", "2026-03-08");
    let mut other: Vec<(&str, &str)> = FILES.to_vec();
    other[2].1 = &moved;
    assert_eq!(service.import(files(&other), |_| {}).unwrap().changed, 1);
    let (_, list) = server.request("/v5/token/list").await;
    assert_eq!(list["data"][0]["lastUpdatedDate"], "2026-01-12T10:00:00Z");
    assert_eq!(server.request("/v4/unlock/events?tokenId=alpha").await.1["data"][1]["unlockDate"], "2026-03-08T00:00:00Z");
}

#[tokio::test]
async fn invalid_file_is_reported_and_nothing_is_imported() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = everything(&server).await;
    let bad_events = ALPHA
        .replacen(
            "\"cliffAmount\":80,\"cliffValue\":160,\"valueToMarketCap\"",
            "\"cliffAmount\":\"lots\",\"cliffValue\":160,\"valueToMarketCap\"",
            1,
        )
        .replacen("{\"unlockDate\":\"2026-02-09T00:00:00Z\",\"tokenName\"", "{\"tokenName\"", 1);
    let mut bad: Vec<(&str, &str)> = FILES.to_vec();
    bad[2].1 = &bad_events;
    bad[4].1 = "{\"burns\": [";
    bad.push(("burn/unknown.json", "{}"));
    let error = service.import(files(&bad), |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "nothing was imported: 4 problems in the data\n  \
         unlock-events/alpha.json: [3].cliffUnlocks.cliffAmount: expected a number, got the text \"lots\"\n  \
         unlock-events/alpha.json: [2]: unlockDate is missing\n  \
         burn/alpha.json: EOF while parsing a list at line 1 column 11\n  \
         burn/unknown.json: the token is not in tokens.json"
    );
    assert_eq!(everything(&server).await, before);
}

#[test]
fn foreign_and_newer_databases_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let error = Service::open(&path, options()).unwrap_err().to_string();
    assert!(error.contains("is not a database of the data service"), "{error}");
    let newer = folder.path().join("newer.db");
    drop(Service::open(&newer, options()).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = Service::open(&newer, options()).unwrap_err().to_string();
    assert!(error.contains("has schema 99, this version supports up to 1"), "{error}");
}

#[test]
fn bundled_data_matches_the_folder() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("data");
    let folder: Vec<SourceFile> = DataFolder::open(&root).unwrap().map(Result::unwrap).collect();
    let ours: Vec<SourceFile> = bundled().map(Result::unwrap).collect();
    let names = |files: &[SourceFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&folder));
    assert!(ours.iter().zip(&folder).all(|(ours, theirs)| ours.text == theirs.text));
    assert!(ours.iter().map(|file| file.text.len()).sum::<usize>() < 4_000_000);
    let service = Service::in_memory(options()).unwrap();
    let imported = service.import(bundled(), |_| {}).unwrap();
    assert!(imported.tokens >= 40 && imported.burns > 0 && imported.buybacks > 0 && imported.rounds > 0, "{imported:?}");
    assert_eq!(service.import(DataFolder::open(&root).unwrap(), |_| {}).unwrap().changed, 0);
}

#[test]
fn bundled_versions_are_those_of_the_folder() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/revisions"));
    let mut names: Vec<String> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".jsonl"));
    names.sort();
    let ours: Vec<SourceFile> = bundled_versions().map(Result::unwrap).collect();
    assert_eq!(ours.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), names);
    for file in ours {
        assert!(file.text == std::fs::read_to_string(root.join(&file.path)).unwrap(), "{}", file.path);
    }
}

#[tokio::test]
async fn edit_updates_everything_that_depends_on_it() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let at = |date: &str| parse_timestamp(date).unwrap();
    service
        .edit(|edit| {
            edit.move_event("alpha", at("2026-03-01"), at("2026-03-04"))?;
            edit.resize_event("alpha", at("2026-03-04"), 1.5)?;
            edit.add_burn("beta", Burn { burn_date: at("2026-01-11").into(), amount: 7.0.into(), ..Default::default() })
        })
        .unwrap();
    let events = server.data("/v5/unlock/events/alpha").await;
    assert_eq!(events[1]["unlockDate"], "2026-03-04T00:00:00Z");
    assert_eq!(events[1]["cliffUnlocks"]["allocationBreakdown"][0]["unlockDate"], "2026-03-04T00:00:00Z");
    assert_eq!(events[1]["latestUpdateDate"], "2026-01-12T09:00:00Z");
    near(&events[1]["cliffUnlocks"]["cliffAmount"], 120.0);
    near(&events[1]["cliffUnlocks"]["valueToMarketCap"], 2.4);
    let table = server.data("/v5/allocations/alpha").await;
    near(&table["allocations"][1]["allocationLockedAmount"], 100.0);
    // 40 more for investors and 15.5 more for advisors: 39 reduce the untracked amount, the rest raises the max supply.
    near(&table["totalUntrackedAmount"], 0.0);
    near(&table["maxSupply"], 1016.5);
    let list = server.data("/v5/token/list").await;
    assert_eq!(list[0]["lastUpdatedDate"], "2026-01-12T09:00:00Z");
    near(&list[0]["totalLockedAmount"], 661.0 + 55.5);
    assert_eq!(list[1]["hasBurn"], true);
    near(&server.data("/v5/burn/beta").await["totalBurnAmount"], 7.0);

    // A renamed allocation keeps its amounts, and half of a split event moves. The sums stay.
    let table = server.data("/v5/allocations/alpha").await;
    let name = table["allocations"][1]["allocationName"].as_str().unwrap().to_owned();
    service
        .edit(|edit| {
            edit.rename_allocation("alpha", &name, "Backers")?;
            edit.split_event("alpha", at("2026-03-04"), at("2026-04-04"))
        })
        .unwrap();
    let renamed = server.data("/v5/allocations/alpha").await;
    assert_eq!(renamed["allocations"][1]["allocationName"], "Backers");
    for field in ["allocationAmount", "allocationLockedAmount", "allocationUnlockedAmount"] {
        assert_eq!(renamed["allocations"][1][field], table["allocations"][1][field], "{field}");
    }
    assert_eq!(renamed["maxSupply"], table["maxSupply"]);
    let events = server.data("/v5/unlock/events/alpha").await;
    near(&events[1]["cliffUnlocks"]["cliffAmount"], 60.0);
    near(&events[2]["cliffUnlocks"]["cliffAmount"], 60.0);
    assert_eq!(events[2]["unlockDate"], "2026-04-04T00:00:00Z");
    service.edit(|edit| edit.remove_event("alpha", at("2026-04-04"))).unwrap();

    let error = service.edit(|edit| edit.remove_event("alpha", at("2026-03-01"))).unwrap_err().to_string();
    assert_eq!(error, "token \"alpha\" has no unlock event at 2026-03-01 00:00:00 UTC");
    service.edit(|edit| edit.remove_event("alpha", at("2026-03-04"))).unwrap();
    assert_eq!(server.data("/v5/unlock/events/alpha").await.as_array().unwrap().len(), 1);
    service
        .edit(|edit| {
            edit.silently();
            edit.resize_event("alpha", at("2026-01-05"), 2.0)
        })
        .unwrap();
    near(&server.data("/v5/unlock/events/alpha").await[0]["cliffUnlocks"]["cliffAmount"], 300.0);
    // Each edit within the same second set a later date; the silent edit did not change it.
    assert_eq!(server.data("/v5/token/list").await[0]["lastUpdatedDate"], "2026-01-12T09:00:03Z");
}

#[tokio::test]
async fn new_price_changes_values_but_not_the_date() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = (server.data("/v5/token/list").await, server.data("/v3/unlock/events?tokenId=alpha").await);
    service.edit(|edit| edit.reprice("alpha", 3.0)).unwrap();
    let after = (server.data("/v5/token/list").await, server.data("/v3/unlock/events?tokenId=alpha").await);
    assert_eq!(after.0[0]["lastUpdatedDate"], before.0[0]["lastUpdatedDate"]);
    near(&after.0[0]["marketCap"], 15_000.0);
    for (one, other) in before.1.as_array().unwrap().iter().zip(after.1.as_array().unwrap()) {
        assert_eq!((&one["latestUpdateDate"], &one["unlockDate"]), (&other["latestUpdateDate"], &other["unlockDate"]));
        assert_eq!(one["cliffUnlocks"]["cliffAmount"], other["cliffUnlocks"]["cliffAmount"]);
    }
    near(&after.1[0]["cliffUnlocks"]["cliffValue"], 450.0);
    near(&after.1[0]["cliffUnlocks"]["valueToMarketCap"], 3.0);
    near(&after.1[1]["linearUnlocks"]["allocationBreakdown"][0]["dailyValue"], 30.0);
}

#[tokio::test]
async fn failed_edit_is_rolled_back() {
    let service = small(options());
    let server = Server::start(service.router()).await;
    let before = everything(&server).await;
    let at = |date: &str| parse_timestamp(date).unwrap();
    service
        .edit(|edit| {
            edit.remove_event("alpha", at("2026-01-05"))?;
            edit.remove_event("unknown", at("2026-01-05"))
        })
        .unwrap_err();
    assert_eq!(everything(&server).await, before);
}
