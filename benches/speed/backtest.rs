//! Measures `cliffwatch backtest` over three years of three hundred tokens with the starter rules.

use std::{collections::BTreeMap, path::Path, time::Instant};

use anyhow::{Context as _, ensure};
use cliffwatch::{
    daemon::config::{Environment, load_text},
    engine::{pipeline::DispatchPolicy, route::RouteTree},
    model::{
        config::{self, Config},
        supply::Timestamp,
        watch::Watch,
    },
    rules::{self, Surroundings},
    tools::{
        backtest::{BacktestSetup, BacktestSummary, History, page, run as play},
        simulate::{DeliverySetup, Pace},
    },
};

use crate::measure::{line, rate, short};

const TOKENS: usize = 300;

/// A config with a grouping route, like most configs.
const CONFIG: &str = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://127.0.0.1:1/\"\n\
    [route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\"]\n";

pub fn run() -> anyhow::Result<()> {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let folder = tempfile::tempdir()?;
    let tokens = spread(&bundled, folder.path())?;
    let (from, to): (Timestamp, Timestamp) = ("2023-06-01T00:00:00Z".parse()?, "2026-06-01T00:00:00Z".parse()?);
    let began = Instant::now();
    let history = History::read(folder.path(), Some(from), to)?;
    let reading = began.elapsed();

    let loaded = load_text(None, CONFIG, &Environment::default());
    let config: Config = loaded.config.with_context(|| format!("{:?}", loaded.diagnostics))?;
    let routes = RouteTree::build(&config.route, &config.receivers).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let groups = BTreeMap::new();
    let around = Surroundings { receivers: &["ops".to_owned()], groups: &groups, now: from };
    let files = rules::read_files(&["rules/*.toml".to_owned()], Path::new(env!("CARGO_MANIFEST_DIR")));
    let starter = rules::load(&files.files, &around);
    ensure!(starter.is_usable(), "{:?}", starter.diagnostics);
    let watch = Watch::build(&config::WatchSettings {
        tokens: vec!["*".to_owned()],
        groups: BTreeMap::new(),
        ..config::WatchSettings::default()
    })
    .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let policy =
        DispatchPolicy::of(&config.receivers, &config.delivery, config.source.stale_price).map_err(anyhow::Error::msg)?;
    let delivery = DeliverySetup::of(policy);
    let pace = Pace { evaluate_every: chrono::TimeDelta::hours(6), ..Pace::default() };
    let setup = BacktestSetup { rules: &starter.set, routes: &routes, delivery: &delivery, watch: &watch, pace };

    let began = Instant::now();
    let result = play(&history, &setup, from, to, |_| {});
    let took = began.elapsed();
    let summary = BacktestSummary::of(&result);
    let began = Instant::now();
    let bytes = page(&result, &summary, None)?.len();
    let drawing = began.elapsed();
    let days = usize::try_from((to - from).num_days())?;
    line("three years", &format!("{:.1} s", took.as_secs_f64()), &format!("{tokens} tokens, {} rules", result.rules.len()));
    line(
        "one day of one token",
        &format!("{}/s", short(rate(tokens * days, took))),
        &format!("{} alerts in {} messages", summary.alerts, summary.messages),
    );
    line("reading the files", &format!("{:.1} s", reading.as_secs_f64()), "");
    line("rendering the report", &format!("{:.2} s", drawing.as_secs_f64()), &format!("{} kB", bytes / 1_000));
    Ok(())
}

/// Links the bundled files under several slugs each, to get enough tokens.
fn spread(bundled: &Path, folder: &Path) -> anyhow::Result<usize> {
    let list: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(bundled.join("tokens.json"))?)?;
    let copies = TOKENS.div_ceil(list.len().max(1));
    let mut tokens = Vec::new();
    for copy in 0..copies {
        for token in list.iter().take(TOKENS - tokens.len().min(TOKENS)) {
            let id = token.get("tokenId").and_then(serde_json::Value::as_str).context("a token without `tokenId`")?;
            let name = format!("{id}-{copy}");
            for kind in ["unlock-events", "allocations", "burn", "buyback"] {
                let source = bundled.join(kind).join(format!("{id}.json"));
                if source.exists() {
                    std::fs::create_dir_all(folder.join(kind))?;
                    std::os::unix::fs::symlink(source, folder.join(kind).join(format!("{name}.json")))?;
                }
            }
            let mut token = token.clone();
            if let Some(fields) = token.as_object_mut() {
                fields.insert("tokenId".to_owned(), name.into());
            }
            tokens.push(token);
        }
    }
    std::fs::write(folder.join("tokens.json"), serde_json::to_vec(&tokens)?)?;
    Ok(tokens.len())
}
