//! Real corrections of unlock schedules, and what the diff tells of them.
//!
//! `cargo bench --bench revisions [-- FOLDER]` reads `*.jsonl` of the folder (else `$CLIFFWATCH_REVISIONS`, else `data/revisions`): one
//! file per token, one line per version, `{"at": …, "data": [unlock events]}`. Each version is polled until all is told, as a
//! daemon would, with two confirmations for a removal. Where the folder has labels (`truth.toml`), each correction is compared with
//! its label; `--faults` shows only those that are told otherwise.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use cliffwatch::model;
#[allow(clippy::expect_used, reason = "labels that cannot be read end the bench")]
#[path = "../tests/truth/mod.rs"]
mod truth;

use cliffwatch::{
    engine::diff::{Hold, Settings, UnlockPoll, apply, baseline_unlocks, diff_unlocks},
    model::{
        change::Change,
        supply::{Timestamp, TokenId, Tracked},
        wire::UnlockEvent,
    },
};

#[derive(serde::Deserialize)]
struct Version {
    at: Timestamp,
    data: Vec<UnlockEvent>,
}

fn main() -> anyhow::Result<()> {
    let folder = std::env::args()
        .skip(1)
        .find(|arg| !arg.starts_with("--"))
        .or_else(|| std::env::var("CLIFFWATCH_REVISIONS").ok())
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/revisions"), PathBuf::from);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "jsonl"));
    files.sort();
    let settings = Settings { hold: Hold::Lasted, ..Settings::default() };
    let labels = if folder.join("truth.toml").exists() { truth::labels(&folder) } else { Vec::new() };
    let (mut right, mut labelled, only_faults) = (0, 0, std::env::args().any(|arg| arg == "--faults"));
    println!("{:<22} {:<10} {:>7} {:>5} {:>4}  told", "token", "at", "differ", "polls", "told");
    let (mut corrections, mut differ_all, mut told_all, mut worst) = (0, 0, 0, 0);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut took = Duration::ZERO;
    for path in files {
        let token: TokenId = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default().into();
        let mut known: Option<(Vec<Tracked>, Vec<UnlockEvent>)> = None;
        for line in fs::read_to_string(&path)?.lines() {
            let version: Version = serde_json::from_str(line)?;
            let snapshot = match known {
                None => apply(
                    &[],
                    &cliffwatch::engine::diff::Diff {
                        put: baseline_unlocks(&[], &version.data, Default::default()),
                        ..Default::default()
                    },
                ),
                Some((mut snapshot, before)) => {
                    let mut told: Vec<Change> = Vec::new();
                    let mut missing = Vec::new();
                    let mut polls = 0;
                    loop {
                        let start = Instant::now();
                        let diff =
                            diff_unlocks(&UnlockPoll::of(&token, &settings, version.at), &snapshot, &missing, &version.data);
                        took += start.elapsed();
                        polls += 1;
                        snapshot = apply(&snapshot, &diff);
                        told.extend(diff.changes);
                        missing = diff.missing;
                        if (missing.is_empty() && !diff.held) || polls == 10 {
                            break;
                        }
                    }
                    let differ = differences(&before, &version.data);
                    let at = version.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
                    let label = labels.iter().find(|label| label.token == token.as_str() && label.at == at);
                    let faults = label.map(|label| truth::faults(label, &told)).unwrap_or_default();
                    labelled += usize::from(label.is_some());
                    right += usize::from(label.is_some() && faults.is_empty());
                    if let Some(label) = label.filter(|_| !faults.is_empty()) {
                        println!("  a person says: {}\n  but: {}", label.sentence, faults.join("; "));
                    }
                    let is_shown = !only_faults || !faults.is_empty();
                    let line = format!(
                        "{:<22} {:<10} {differ:>7} {polls:>5} {:>4}  {}",
                        token.as_str(),
                        version.at.format("%Y-%m-%d").to_string(),
                        told.len(),
                        told.iter().map(|change| format!("{}: {}", change.kind, change.summary)).collect::<Vec<_>>().join(" | ")
                    );
                    if is_shown {
                        println!("{line}");
                    }
                    corrections += 1;
                    differ_all += differ;
                    told_all += told.len();
                    worst = worst.max(told.len());
                    for change in &told {
                        *kinds.entry(change.kind.as_str()).or_default() += 1;
                    }
                    snapshot
                }
            };
            known = Some((snapshot, version.data));
        }
    }
    println!("\n{corrections} corrections, {differ_all} tranche differences, {told_all} changes told (at most {worst} for one)");
    if labelled > 0 {
        println!("{right} of {labelled} are told as they were labelled by hand");
    }
    println!("kinds: {}", kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", "));
    println!("the diffs took {:.1} ms in all", took.as_secs_f64() * 1e3);
    Ok(())
}

/// What a comparison tranche by tranche would tell: rows of (allocation, category, dates, amount, precision) that are on one side only.
fn differences(before: &[UnlockEvent], after: &[UnlockEvent]) -> usize {
    let flat = |events: &[UnlockEvent]| {
        let mut rows: BTreeMap<String, i64> = BTreeMap::new();
        for event in events {
            let at = event.unlock_date.copied();
            for part in event.cliff_unlocks.get().map_or(&[][..], |cliffs| cliffs.allocation_breakdown.items()) {
                let row = (&part.allocation_name, &part.standard_allocation_name, at, &part.cliff_amount, &part.unlock_precision);
                *rows.entry(format!("{row:?}")).or_default() += 1;
            }
            for part in event.linear_unlocks.get().map_or(&[][..], |linears| linears.allocation_breakdown.items()) {
                let row = (
                    &part.allocation_name,
                    &part.standard_allocation_name,
                    &part.begin_date,
                    &part.end_date,
                    &part.linear_amount,
                    &part.unlock_precision,
                );
                *rows.entry(format!("{row:?}")).or_default() += 1;
            }
        }
        rows
    };
    let (mut left, right) = (flat(before), flat(after));
    for (row, count) in right {
        *left.entry(row).or_default() -= count;
    }
    let (gone, come) =
        left.values().fold((0, 0), |(gone, come), count| if *count > 0 { (gone + count, come) } else { (gone, come - count) });
    usize::try_from(gone.max(come)).unwrap_or_default()
}
