//! Import and export of data folders.

use std::{fs, path::Path, process::Command};

use cliffwatch::service::{DataFolder, Service};
use serde_json::Value;

use crate::service::support::{Server, bundled, options};

const PATHS: &[&str] = &[
    "/v5/token/list",
    "/v1/unlock/events?tokenId=optimism",
    "/v3/unlock/events?tokenId=arbitrum",
    "/v5/unlock/events/upcoming?pageSize=500",
    "/v5/allocations/sei",
    "/v2/daily-emission?tokenId=arbitrum",
    "/v3/emission?tokenId=optimism",
    "/v5/burn/bnb",
    "/v5/burn/okb",
    "/v5/buyback/hyperliquid",
    "/v1/fundraising/investors/list",
    "/v5/fundraising/investors/polychain",
    "/v5/fundraising/token/sei",
];

async fn responses(service: &Service) -> Vec<Value> {
    let server = Server::of(service).await;
    let mut responses = Vec::new();
    for path in PATHS {
        responses.push(server.data(path).await);
    }
    responses
}

#[tokio::test]
async fn exported_and_imported_data_gives_the_same_responses() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let exported = bundled().export(&out, &mut |_| {}).unwrap();
    assert_eq!((exported.tokens, exported.files), (59, 130));
    let again = Service::open(&folder.path().join("again.db"), options()).unwrap();
    again.import(DataFolder::open(&out).unwrap(), |_| {}).unwrap();
    let (before, after) = (responses(bundled()).await, responses(&again).await);
    for ((path, before), after) in PATHS.iter().zip(before).zip(after) {
        assert_eq!(before, after, "{path}");
    }
    assert_eq!(again.import(DataFolder::open(&out).unwrap(), |_| {}).unwrap().changed, 0, "a second import changes nothing");
    let error = bundled().export(&out, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("is not empty"), "{error}");
}

/// The import command reports every problem with file and record, imports nothing, and prints no progress bar to a pipe.
#[test]
fn import_rejects_a_folder_and_reports_all_problems() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("unlock-events")).unwrap();
    fs::create_dir_all(data.join("burn")).unwrap();
    let write = |name: &str, text: &str| fs::write(data.join(name), text).unwrap();
    write("tokens.json", r#"[{"tokenId": "alpha", "name": "Alpha", "symbol": "A"}, {"tokenId": "alpha"}, {"name": "No id"}]"#);
    write(
        "unlock-events/alpha.json",
        r#"[{"unlockDate": "2026-01-01T00:00:00Z", "linearUnlocks": {"linearAmount": 5, "allocationBreakdown": [
             {"allocationName": "Team", "linearAmount": 5, "beginDate": "2026-02-01T00:00:00Z", "endDate": "2026-01-01T00:00:00Z"}]}, "cliffUnlocks": null},
            {"unlockDate": "soon", "cliffUnlocks": {"cliffAmount": -3, "allocationBreakdown": []}}]"#,
    );
    write("burn/alpha.json", r#"{"burns": [{"burnDate": "2026-01-01T00:00:00Z", "amount": -1}]}"#);
    write("burn/beta.json", r#"{"burns": []}"#);
    let import = |db: &Path| {
        let run = Command::new(env!("CARGO_BIN_EXE_cliffwatch")).arg("import").arg(&data).arg("--db").arg(db).output().unwrap();
        (run.status.code(), String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    let db = folder.path().join("x.db");
    let (code, out, output) = import(&db);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    for problem in [
        "nothing was imported: 8 problems in the data",
        "tokens.json: [1]: duplicate token \"alpha\"",
        "tokens.json: [2]: tokenId must be a slug",
        "unlock-events/alpha.json: [0].linearUnlocks.allocationBreakdown[0]: endDate is before beginDate",
        "unlock-events/alpha.json: [1].unlockDate: expected a timestamp",
        "unlock-events/alpha.json: [1]: unlockDate is missing",
        "unlock-events/alpha.json: [1].cliffUnlocks.cliffAmount: expected a number, got -3, which is negative",
        "burn/alpha.json: burns[0].amount: expected a number, got -1, which is negative",
        "burn/beta.json: the token is not in tokens.json",
    ] {
        assert!(output.contains(problem), "{problem}\n{output}");
    }
    assert!(!output.contains('\r'), "a pipe gets no progress bar");
    assert_eq!(Service::open(&db, options()).unwrap().token_count().unwrap(), 0);

    let missing = folder.path().join("missing");
    let run =
        Command::new(env!("CARGO_BIN_EXE_cliffwatch")).arg("export").arg(&missing).args(["--db", "no-such.db"]).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    assert!(String::from_utf8(run.stderr).unwrap().contains("cannot read no-such.db") && !Path::new("no-such.db").exists());
}
