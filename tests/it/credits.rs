//! A small part of `benches/credits`: simulated schedules through the real planner, compared with simpler strategies.

use std::path::Path;

use cliffwatch::{
    engine::plan::{
        EndpointFeeds,
        month::{self, DAYS},
    },
    engine::slot::Slots,
    model::{CreditState, Endpoint, FeedState, PlanToken, TokenId, config, config::EndpointVersion},
    rules::RuleSet,
};

#[allow(dead_code, reason = "only the bench uses all of it")]
#[path = "../../benches/credits/play.rs"]
mod play;
#[allow(dead_code, reason = "only the bench uses all of it")]
#[path = "../../benches/credits/score.rs"]
mod score;
#[allow(dead_code, reason = "only the bench uses all of it")]
#[path = "../../benches/credits/world.rs"]
mod world;

use score::{Score, Scorer};
use world::{ListReports, World};

fn config(monthly_credits: u64) -> config::Config {
    let mut config = config::Config::default();
    config.budget.monthly_credits = Some(monthly_credits);
    config.watch.tokens = vec!["*".to_owned()];
    config
}

fn dated(tokens: usize, reports: ListReports) -> World {
    dated_by(1, tokens, reports)
}

fn dated_by(seed: u64, tokens: usize, reports: ListReports) -> World {
    World::dated(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions"), tokens, reports, seed).expect("a world")
}

/// Scores polls. Revisions before a token's first poll are part of its baseline and do not count.
fn scored(world: &World, reads: &[Vec<f64>]) -> Score {
    let since = reads.iter().map(|reads| reads.first().copied().unwrap_or(0.0)).collect();
    Scorer { world, since, window: (0.0, world::DAYS), by_law: false }.score(reads)
}

#[test]
fn listed_corrections_are_noticed_within_hours_and_within_the_budget() {
    let (world, mut config) = (dated(10, ListReports::All), config(300));
    let slots = play::slots(&config.schedule, world.begin).expect("slots");
    let turn = scored(&world, &score::in_turn(&world, 300, &[]));
    // With `Auto`, each changed schedule costs two polls: cliffs and segments.
    for version in [EndpointVersion::V(5), EndpointVersion::Auto] {
        config.source.unlock_events = version;
        let played = play::play(&world, (&config, &RuleSet::default()), &slots, 300).expect("a watch list");
        let ours = scored(&world, &played.reads);
        assert!(ours.mean < turn.mean / 3.0, "{} h, {} h in turn", ours.mean, turn.mean);
        assert_eq!((played.overspent, played.rejected), (0, 0));
        assert!(played.periods.iter().all(|used| *used <= 300));
        let whole = played.periods.iter().skip(1).rev().skip(1);
        assert!(whole.clone().count() > 30 && whole.clone().all(|used| *used >= 285), "{:?}", played.periods);
    }
}

#[test]
fn small_budgets_are_used_up_and_never_exceeded() {
    let world = dated(4, ListReports::All);
    for credits in [1, 2, 5, 12, 25, 39] {
        let config = config(credits);
        let slots = play::slots(&config.schedule, world.begin).expect("slots");
        let played = play::play(&world, (&config, &RuleSet::default()), &slots, credits).expect("a watch list");
        assert_eq!((played.overspent, played.rejected), (0, 0), "{credits}");
        let whole = &played.periods[1..played.periods.len() - 1];
        assert!(whole.len() > 30 && whole.iter().all(|used| used + 1 >= credits), "{credits}: {whole:?}");
    }
}

#[test]
fn rarer_slots_of_an_endpoint_delay_nothing_else() {
    let (world, mut config) = (World::random(20, ListReports::Nothing, 5), config(100));
    let mut hours = Vec::new();
    for pattern in ["0 30 3 * * *", "0 30 3 * * 1", "0 30 3 1 * *"] {
        config.schedule.allocations = pattern.to_owned();
        let slots = play::slots(&config.schedule, world.begin).expect("slots");
        let played = play::play(&world, (&config, &RuleSet::default()), &slots, 100).expect("a watch list");
        let since = played.reads.iter().map(|reads| reads.first().copied().unwrap_or(0.0)).collect();
        let scorer = Scorer { world: &world, since, window: (0.0, world::DAYS), by_law: true };
        hours.push(scorer.score(&played.reads).mean);
        let whole = &played.periods[1..played.periods.len() - 1];
        assert!(whole.iter().all(|used| *used >= 98), "{pattern}: {whole:?}");
    }
    assert!(hours[1] <= hours[0] * 1.02 && hours[2] <= hours[0] * 1.02, "{hours:?}");
}

#[test]
fn weekly_slots_of_schedules_use_the_credits_of_a_week() {
    let (world, mut config) = (World::random(20, ListReports::Nothing, 5), config(100));
    config.schedule.unlock_events = "0 10 3 * * 1".to_owned();
    let slots = play::slots(&config.schedule, world.begin).expect("slots");
    let played = play::play(&world, (&config, &RuleSet::default()), &slots, 100).expect("a watch list");
    let scored = scored(&world, &played.reads);
    assert!(scored.unseen == 0.0 && scored.p95 < 24.0 * 21.0, "{scored:?}");
    let whole = &played.periods[1..played.periods.len() - 1];
    assert!(whole.iter().all(|used| *used >= 90), "{whole:?}");
    assert_eq!((played.overspent, played.rejected), (0, 0));
}

/// The polled endpoints with their slots.
fn polled(config: &config::Config) -> Vec<(Endpoint, Slots)> {
    let patterns = [
        (Endpoint::TokenList, &config.schedule.token_list),
        (Endpoint::Upcoming, &config.schedule.upcoming),
        (Endpoint::UnlockEvents, &config.schedule.unlock_events),
        (Endpoint::Burn, &config.schedule.burn),
        (Endpoint::Buyback, &config.schedule.buyback),
        (Endpoint::Allocations, &config.schedule.allocations),
    ];
    let slots = |(endpoint, pattern): (Endpoint, &String)| Some((endpoint, Slots::parse(pattern, "UTC").expect("a pattern")?));
    patterns.into_iter().filter_map(slots).collect()
}

/// The share of the credits of a month that chance moves between its endpoints.
const MAX_CHANCE_SHARE: f64 = 0.015;

/// Returns the credits of an endpoint that the simulation spends in the month from `day` on, without first reads, as a mean over the worlds.
fn spent_in_month(day: f64, plays: &[play::Played], endpoint: Endpoint) -> f64 {
    let month = day..day + f64::from(DAYS);
    let is_counted =
        |charge: &&play::SourceCharge| charge.endpoint == endpoint && !charge.is_first && month.contains(&charge.day);
    let credits: u64 = plays.iter().flat_map(|one| &one.charges).filter(is_counted).map(|charge| charge.credits).sum();
    credits as f64 / plays.len() as f64
}

/// Runs the simulation up to a day.
fn play_until(day: f64, world: &World, config: &config::Config) -> play::Played {
    let mut slots = play::slots(&config.schedule, world.begin).expect("slots");
    slots.retain(|(at, ..)| world::days(*at - world.begin) < day);
    play::play(world, (config, &RuleSet::default()), &slots, 1_000).expect("a watch list")
}

#[test]
fn forecast_month_matches_the_simulated_month() {
    let new = |config: &config::Config| -> Vec<EndpointFeeds> {
        let token = |number: usize| PlanToken::unknown(TokenId::from(format!("t{number:04}").as_str()));
        let feeds = polled(config).into_iter().map(|(endpoint, _)| EndpointFeeds {
            endpoint,
            is_subscribed: true,
            next_slot: None,
            slot_interval: chrono::TimeDelta::hours(1),
            whole: FeedState::default(),
            tokens: if endpoint.is_per_token() { (0..30).map(token).collect() } else { Vec::new() },
            unreadable: Vec::new(),
        });
        feeds.collect()
    };
    let mut config = config(1_000);
    config.watch.tokens = (0..30).map(|number| format!("t{number:04}")).collect();
    let polled = polled(&config);
    // A start, and a day in the thirteenth period.
    for (reports, day) in
        [(ListReports::All, 0.0), (ListReports::Nothing, 0.0), (ListReports::All, 366.0), (ListReports::Nothing, 366.0)]
    {
        // In the first month, the split depends on the day of the first correction, so compare with the mean of several worlds.
        let seeds = if day > 0.0 { 1..2 } else { 1..21 };
        let worlds: Vec<World> = seeds.map(|seed| dated_by(seed, 30, reports)).collect();
        let plays: Vec<_> = worlds.iter().map(|world| play_until(day + f64::from(DAYS), world, &config)).collect();
        let feeds = if day > 0.0 { play_until(day, &worlds[0], &config).feeds } else { new(&config) };
        let month = month::plan_month(
            feeds,
            &polled,
            false,
            &CreditState::default(),
            (&config.source, &config.budget),
            worlds[0].at(day),
        );
        let all: f64 = month.endpoints.iter().map(|line| spent_in_month(day, &plays, line.endpoint)).sum();
        for line in &month.endpoints {
            let spent = spent_in_month(day, &plays, line.endpoint);
            let assumed = if reports == ListReports::All { line.granted_if_reported } else { line.granted_if_silent };
            // The corrections of a single month are few, so that chance moves some credits between the endpoints.
            let off = (assumed as f64 - spent).abs();
            assert!(
                off <= f64::max(spent * 0.1, all * MAX_CHANCE_SHARE),
                "{reports:?} {day}, {}: {assumed} planned, {spent} spent",
                line.endpoint
            );
        }
    }
}

/// The bench plays what operators run: each of its configs is what `init` writes, but for the tokens.
#[test]
fn configs_of_the_bench_are_those_of_init() {
    let folder = tempfile::tempdir().expect("a folder");
    let written = std::process::Command::new(env!("CARGO_BIN_EXE_cliffwatch")).arg("init").arg(folder.path()).output();
    assert!(written.expect("runs").status.success());
    let without_tokens = |path: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(path).expect("a config");
        text.lines().filter(|line| !line.starts_with("tokens = ")).map(str::to_owned).collect()
    };
    let of_init = without_tokens(&folder.path().join("cliffwatch.toml"));
    let configs = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/credits/config")).expect("configs");
    let configs: Vec<_> = configs.map(|entry| entry.expect("a config").path()).collect();
    assert_eq!(configs.len(), 4);
    for path in configs {
        assert_eq!(without_tokens(&path), of_init, "{}: copy what `cliffwatch init` writes, and set `tokens`", path.display());
    }
}
