//! Measures rules on records: conditions only, and complete evaluations.

use std::{collections::BTreeMap, path::Path};

use anyhow::ensure;
use cliffwatch::{
    daemon::config::{Environment, load_text},
    engine::{
        diff::{Diff, apply, baseline_unlocks},
        evaluate::{EvaluationContext, Limits, TokenFacts, evaluate},
        route::RouteTree,
    },
    model::{
        config::Config,
        supply::{Resource, Timestamp, Token, Tracked},
    },
    rules::{self, Scope, Surroundings, Truth},
};

use crate::{
    made::{Schedules, bundled},
    measure::{best, line, rate, short},
};

/// Conditions that are never true, so that only the evaluation is measured.
const QUIET: [&str; 5] = [
    "cliffValue >= 1e15",
    "valueToMarketCap >= 1000 || cliffValue >= 1e15",
    "cliffAmount >= token.circulatingSupply * 100",
    "token.symbol == 'NONE' && cliffValue >= 5000000",
    "cliffValue >= 1e15 && valueToMarketCap >= 2 && listedMethod == 'INTERNAL'",
];

pub fn run() -> anyhow::Result<()> {
    let now: Timestamp = "2025-06-01T00:00:00Z".parse()?;
    let loaded = load_text(None, include_str!("quiet.toml"), &Environment { variables: Vec::new(), credentials: None });
    let config: Config = loaded.config.ok_or_else(|| anyhow::anyhow!("{:?}", loaded.diagnostics))?;
    let routes = RouteTree::build(&config.route, &config.receivers).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let mut known: Vec<(Token, Vec<Tracked>)> = Vec::new();
    for (number, (id, events, _)) in bundled()?.into_iter().enumerate() {
        let token = Token { item: Schedules::item(number)?, ..Token::unknown(id) };
        known.push((token, apply(&[], &Diff { put: baseline_unlocks(&[], &events, now), ..Diff::default() })));
    }
    let records: usize = known.iter().map(|(_, records)| records.len()).sum();
    let facts: Vec<TokenFacts<'_>> = known
        .iter()
        .map(|(token, records)| TokenFacts {
            token,
            is_watched: true,
            records,
            linear: None,
            resources: &[Resource::Unlock],
            changes: &[],
            corrections: &[],
            added: &[],
            late: &[],
            alerts: &[],
            polled_at: &[],
        })
        .collect();

    let text = QUIET.iter().enumerate().fold(String::new(), |text, (number, when)| {
        text + &format!("[[rule]]\nalert = \"Quiet{number}\"\non = \"unlock\"\nwhen = \"{when}\"\n")
    });
    let groups = BTreeMap::new();
    let names = ["ops".to_owned()];
    let around = Surroundings { receivers: &names, groups: &groups, now };
    let source = cliffwatch::model::diagnostic::SourceText { file: "quiet.toml".into(), text };
    let quiet = rules::load(&[source], &around);
    ensure!(quiet.is_usable(), "{:?}", quiet.diagnostics);
    let quiet = quiet.set;
    let pairs = records * quiet.rules.len();
    let took = best(|| {
        let mut matches = 0;
        for (token, records) in &known {
            for record in records {
                let scope = Scope { token: Some(token), record: Some(record), ..Scope::at(now) };
                matches += quiet.rules.iter().filter(|rule| matches!(rule.evaluate(&scope), Truth::True)).count();
            }
        }
        matches
    });
    line(
        "conditions only",
        &format!("{} pairs/s", short(rate(pairs, took))),
        &format!("{records} records, {} rules", quiet.rules.len()),
    );
    let context =
        EvaluationContext { rules: &quiet, routes: &routes, now, keeps_removed: false, stale_price: chrono::TimeDelta::MAX };
    let took = best(|| evaluate(&facts, &context, &mut Limits::default()).openings().len());
    line(
        "an evaluation in which nothing fires",
        &format!("{} pairs/s", short(rate(pairs, took))),
        "including dates, levels, and firing alerts",
    );

    let files = rules::read_files(&["rules/*.toml".to_owned()], Path::new(env!("CARGO_MANIFEST_DIR")));
    let starter = rules::load(&files.files, &around);
    ensure!(starter.is_usable(), "{:?}", starter.diagnostics);
    let context = EvaluationContext {
        rules: &starter.set,
        routes: &routes,
        now,
        keeps_removed: false,
        stale_price: chrono::TimeDelta::MAX,
    };
    let fired = evaluate(&facts, &context, &mut Limits::default()).openings().len();
    let took = best(|| evaluate(&facts, &context, &mut Limits::default()).openings().len());
    line(
        "the starter rules",
        &format!("{} pairs/s", short(rate(records * starter.set.rules.len(), took))),
        &format!("{} rules; {fired} alerts with their texts, {} alerts/s", starter.set.rules.len(), short(rate(fired, took))),
    );
    Ok(())
}
