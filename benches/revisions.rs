//! Runs the diff on real corrections of unlock schedules.
//!
//! `cargo bench --bench revisions [-- FOLDER]` reads the `*.jsonl` files of the folder (default `$CLIFFWATCH_REVISIONS`, then
//! `data/revisions`): one file per token, one line per version, `{"at": …, "data": [unlock events]}`. Each version is polled until all
//! changes are reported, with two confirmations for a removal, as in the daemon. If the folder has labels (`truth.toml`), each correction
//! is compared with its label; `--faults` shows only the differences.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use cliffwatch::{
    engine::{
        diff::{UnlockPoll, apply, baseline_unlocks, diff_unlocks},
        removal::{MIN_HOLD, ProofPolicy, RemovalProof, ResponseQuality},
    },
    model::{
        change::Change,
        supply::{Hold, Timestamp, TokenId, Tracked},
        wire::UnlockEvent,
    },
};
use testkit::labels;

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
    let labels = if folder.join("truth.toml").exists() { labels::labels(&folder) } else { Vec::new() };
    let (mut matching, mut labeled, only_faults) = (0, 0, std::env::args().any(|arg| arg == "--faults"));
    println!("{:<22} {:<10} {:>7} {:>5} {:>4}  changes", "token", "at", "differ", "polls", "count");
    let (mut corrections, mut differ_all, mut reported_all, mut worst) = (0, 0, 0, 0);
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
                    let mut reported: Vec<Change> = Vec::new();
                    let mut missing = Vec::new();
                    let mut polls = 0;
                    loop {
                        let hold = Some(Hold { since: version.at - MIN_HOLD, is_accepted: false });
                        let proof =
                            RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &missing, hold, version.at);
                        let start = Instant::now();
                        let diff = diff_unlocks(&UnlockPoll::of(&token, version.at), &snapshot, &proof, &version.data);
                        took += start.elapsed();
                        polls += 1;
                        snapshot = apply(&snapshot, &diff);
                        reported.extend(diff.changes);
                        missing = diff.missing;
                        if (missing.is_empty() && !diff.held) || polls == 10 {
                            break;
                        }
                    }
                    let differ = differences(&before, &version.data);
                    let at = version.at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
                    let label = labels.iter().find(|label| label.token == token.as_str() && label.at == at);
                    let faults = label.map(|label| labels::faults(label, &reported)).unwrap_or_default();
                    labeled += usize::from(label.is_some());
                    matching += usize::from(label.is_some() && faults.is_empty());
                    if let Some(label) = label.filter(|_| !faults.is_empty()) {
                        println!("  label: {}\n  but: {}", label.sentence, faults.join("; "));
                    }
                    let is_shown = !only_faults || !faults.is_empty();
                    let line = format!(
                        "{:<22} {:<10} {differ:>7} {polls:>5} {:>4}  {}",
                        token.as_str(),
                        version.at.format("%Y-%m-%d").to_string(),
                        reported.len(),
                        reported
                            .iter()
                            .map(|change| format!("{}: {}", change.kind, change.summary))
                            .collect::<Vec<_>>()
                            .join(" | ")
                    );
                    if is_shown {
                        println!("{line}");
                    }
                    corrections += 1;
                    differ_all += differ;
                    reported_all += reported.len();
                    worst = worst.max(reported.len());
                    for change in &reported {
                        *kinds.entry(change.kind.as_str()).or_default() += 1;
                    }
                    snapshot
                }
            };
            known = Some((snapshot, version.data));
        }
    }
    println!(
        "\n{corrections} corrections, {differ_all} tranche differences, {reported_all} changes reported (at most {worst} for one)"
    );
    if labeled > 0 {
        println!("{matching} of {labeled} are reported as labeled");
    }
    println!("kinds: {}", kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", "));
    println!("all diffs took {:.1} ms", took.as_secs_f64() * 1e3);
    Ok(())
}

/// The number of changes in a plain comparison of tranches: rows that exist only before or only after, whichever are more.
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
    let (mut left, matching) = (flat(before), flat(after));
    for (row, count) in matching {
        *left.entry(row).or_default() -= count;
    }
    let (removed, added) = left
        .values()
        .fold((0, 0), |(removed, added), count| if *count > 0 { (removed + count, added) } else { (removed, added - count) });
    usize::try_from(removed.max(added)).unwrap_or_default()
}
