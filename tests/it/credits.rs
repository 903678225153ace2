//! A small part of `benches/credits`: worlds through the real planner, beside rivals that it must beat.

use std::path::Path;

use cliffwatch::{
    engine::plan::{
        EndpointFeeds,
        month::{self, DAYS},
    },
    engine::slot::Slots,
    model::{CreditState, Endpoint, FeedState, PlanToken, TokenId, config, config::EndpointVersion},
};

#[allow(dead_code, reason = "the bench plays more of it")]
#[path = "../../benches/credits/play.rs"]
mod play;
#[allow(dead_code, reason = "the bench has more rivals")]
#[path = "../../benches/credits/score.rs"]
mod score;
#[allow(dead_code, reason = "the bench plays random worlds too")]
#[path = "../../benches/credits/world.rs"]
mod world;

use score::{Judge, Score};
use world::{Tells, World};

fn config(monthly_credits: u64) -> config::Config {
    let mut config: config::Config = toml::from_str(config::DEFAULTS).expect("the defaults");
    config.budget.monthly_credits = Some(monthly_credits);
    config
}

fn dated(tokens: usize, tells: Tells) -> World {
    World::dated(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/revisions"), tokens, tells, 1).expect("a world")
}

/// What came before a token's first read is its baseline.
fn judged(world: &World, reads: &[Vec<f64>]) -> Score {
    let since = reads.iter().map(|reads| reads.first().copied().unwrap_or(0.0)).collect();
    Judge { world, since, by_law: false }.score(reads)
}

#[test]
fn where_the_list_tells_a_correction_is_noticed_within_hours_and_no_credit_is_overspent() {
    let (world, mut config) = (dated(10, Tells::All), config(300));
    let slots = play::slots(&config.schedule, world.begin).expect("slots");
    let turn = judged(&world, &score::in_turn(&world, 300));
    // Where segments are read beside the cliffs, what moved costs twice.
    for version in [EndpointVersion::V(5), EndpointVersion::Auto] {
        config.source.unlock_events = version;
        let played = play::play(&world, &config, &slots, 300);
        let ours = judged(&world, &played.reads);
        assert!(ours.mean < turn.mean / 3.0, "{} h, {} h in turn", ours.mean, turn.mean);
        assert_eq!((played.overspent, played.refused), (0, 0));
        assert!(played.periods.iter().all(|used| *used <= 300));
        let whole = played.periods.iter().skip(1).rev().skip(1);
        assert!(whole.clone().count() > 30 && whole.clone().all(|used| *used >= 285), "{:?}", played.periods);
    }
}

#[test]
fn a_few_credits_a_month_are_spent_and_not_one_more() {
    let world = dated(4, Tells::All);
    for credits in [1, 2, 5, 12, 25, 39] {
        let config = config(credits);
        let slots = play::slots(&config.schedule, world.begin).expect("slots");
        let played = play::play(&world, &config, &slots, credits);
        assert_eq!((played.overspent, played.refused), (0, 0), "{credits}");
        let whole = &played.periods[1..played.periods.len() - 1];
        assert!(whole.len() > 30 && whole.iter().all(|used| used + 1 >= credits), "{credits}: {whole:?}");
    }
}

/// What is polled by the schedule.
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

/// Credits of each endpoint until a day.
fn spent_until(day: f64, world: &World, config: &config::Config) -> play::Played {
    let mut slots = play::slots(&config.schedule, world.begin).expect("slots");
    slots.retain(|(at, ..)| world::days(*at - world.begin) < day);
    play::play(world, config, &slots, 1_000)
}

#[test]
fn the_month_that_is_laid_out_is_the_month_that_is_spent() {
    let new = |config: &config::Config| -> Vec<EndpointFeeds> {
        let token = |number: usize| PlanToken::unknown(TokenId::from(format!("t{number}").as_str()));
        let feeds = polled(config).into_iter().map(|(endpoint, _)| EndpointFeeds {
            endpoint,
            is_heard: matches!(endpoint, Endpoint::UnlockEvents | Endpoint::TokenList | Endpoint::Upcoming),
            whole: FeedState::default(),
            tokens: if endpoint.is_per_token() { (0..30).map(token).collect() } else { Vec::new() },
        });
        feeds.collect()
    };
    // A year is twelve periods and a part of the next one.
    for (tells, day) in [(Tells::All, 0.0), (Tells::Nothing, 0.0), (Tells::All, 366.0), (Tells::Nothing, 366.0)] {
        let (world, config) = (dated(30, tells), config(1_000));
        let (before, after) = (spent_until(day, &world, &config), spent_until(day + f64::from(DAYS), &world, &config));
        let feeds = if day > 0.0 { before.feeds } else { new(&config) };
        let (polled, settings) = (polled(&config), (&config.source, &config.budget));
        let month = month::lay_out(feeds, &polled, false, &CreditState::default(), settings, world.at(day));
        let of =
            |spent: &[(Endpoint, u64)], endpoint| spent.iter().find(|(of, _)| *of == endpoint).map_or(0, |(_, credits)| *credits);
        let spent = |endpoint| of(&after.spent, endpoint) - of(&before.spent, endpoint);
        let all: u64 = month.endpoints.iter().map(|line| spent(line.endpoint)).sum();
        let off = |planned: u64, spent: u64| planned.abs_diff(spent) * 10 > all;
        assert!(!off(month.granted, all), "{tells:?} {day}: {} planned, {all} spent", month.granted);
        // Whether the lists tell is not known to begin with, and what is learned of that in the first month moves credits between them.
        for line in month.endpoints.iter().filter(|_| day > 0.0) {
            let spent = spent(line.endpoint);
            assert!(!off(line.granted, spent), "{tells:?}, {}: {} planned, {spent} spent", line.endpoint, line.granted);
        }
    }
}
