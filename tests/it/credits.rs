//! A small part of `benches/credits`: worlds through the real planner, beside rivals that it must beat.

use std::path::Path;

use cliffwatch::{
    engine::plan::{EndpointFeeds, month::forecast::Forecast},
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

#[test]
fn the_month_that_is_laid_out_is_the_month_that_is_spent() {
    let (world, config) = (dated(30, Tells::None), config(1_000));
    let mut slots = play::slots(&config.schedule, world.begin).expect("slots");
    // The first period.
    slots.retain(|(at, ..)| world::days(*at - world.begin) < 30.0);
    let played = play::play(&world, &config, &slots, 1_000);
    let spent: u64 = played.periods.iter().sum();
    let polled: Vec<(Endpoint, Slots)> = [
        (Endpoint::TokenList, &config.schedule.token_list),
        (Endpoint::Upcoming, &config.schedule.upcoming),
        (Endpoint::UnlockEvents, &config.schedule.unlock_events),
        (Endpoint::Burn, &config.schedule.burn),
        (Endpoint::Buyback, &config.schedule.buyback),
        (Endpoint::Allocations, &config.schedule.allocations),
    ]
    .into_iter()
    .filter_map(|(endpoint, pattern)| Some((endpoint, Slots::parse(pattern, "UTC").expect("a pattern")?)))
    .collect();
    let token = |number: usize| PlanToken::unknown(TokenId::from(format!("t{number}").as_str()));
    let feeds = polled.iter().map(|(endpoint, _)| EndpointFeeds {
        endpoint: *endpoint,
        is_heard: matches!(endpoint, Endpoint::UnlockEvents | Endpoint::TokenList | Endpoint::Upcoming),
        whole: FeedState::default(),
        tokens: if endpoint.is_per_token() { (0..30).map(token).collect() } else { Vec::new() },
    });
    let settings = (&config.source, &config.budget);
    let forecast = Forecast::of(feeds.collect(), &polled, &CreditState::default(), settings, world.begin);
    // Lists and tokens are first read beside what is laid out.
    let planned: u64 = polled.iter().map(|(endpoint, _)| forecast.granted(*endpoint)).sum::<u64>() + 32;
    let ratio = planned as f64 / spent as f64;
    assert!((0.9..=1.1).contains(&ratio), "{planned} planned, {spent} spent");
}
