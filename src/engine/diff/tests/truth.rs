//! The changes of real corrections, compared with labels that were written by hand.

use std::path::Path;

use model::{change::Change, supply::Tracked, wire::UnlockEvent};

use super::{known, settle};
use crate::removal::ProofPolicy;
use testkit::labels;

#[derive(serde::Deserialize)]
struct Version {
    at: String,
    data: Vec<UnlockEvent>,
}

/// The changes of each correction in a folder.
fn corrections(folder: &Path) -> Vec<(String, String, Vec<Change>)> {
    let mut all = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    files.sort();
    for path in files {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut snapshot: Option<Vec<Tracked>> = None;
        for line in std::fs::read_to_string(&path).expect("a file").lines() {
            let Version { at, data } = serde_json::from_str(line).expect("a version");
            snapshot = Some(match snapshot {
                None => known(&data),
                Some(snapshot) => {
                    let (snapshot, notified) = settle(snapshot, &data, ProofPolicy::default());
                    all.push((name.clone(), at, notified));
                    snapshot
                }
            });
        }
    }
    all
}

#[test]
fn corrections_match_hand_written_labels() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/revisions");
    let labels = labels::labels(&folder);
    let notified = corrections(&folder);
    assert_eq!(notified.len(), labels.len(), "each correction has a label");
    let mut right = 0;
    let mut table = String::new();
    for (token, at, changes) in &notified {
        let label = labels.iter().find(|label| label.token == *token && label.at == *at).expect("a label");
        let faults = labels::faults(label, changes);
        right += usize::from(faults.is_empty());
        if !faults.is_empty() || std::env::var_os("TRUTH_ALL").is_some() {
            table.push_str(&format!("{token} {at}\n  truth: {}\n", label.sentence));
            for change in changes {
                table.push_str(&format!("  reported {}: {}\n", change.kind, change.summary));
            }
            for fault in faults {
                table.push_str(&format!("  FAULT {fault}\n"));
            }
        }
    }
    println!("{table}{right} of {} right", notified.len());
    assert!(right * 100 >= notified.len() * 98, "{table}{right} of {} right", notified.len());
}
