//! What a complete answer changes: the same, with other prices, and corrected.

use chrono::TimeDelta;
use cliffwatch::{
    engine::diff::{Diff, Settings, UnlockPoll, apply, baseline_unlocks, diff_unlocks},
    model::{
        supply::{Timestamp, TokenId, Tracked},
        wire::UnlockEvent,
    },
};

use crate::{
    made::{alter, bundled, tranches},
    measure::{best, line, rate, short},
};

struct Case {
    token: TokenId,
    before: Vec<Tracked>,
    events: Vec<UnlockEvent>,
}

pub fn run() -> anyhow::Result<()> {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let (settings, mut rows) = (Settings::default(), 0);
    let mut cases = Vec::new();
    for (token, events, _) in bundled()? {
        rows += tranches(&events);
        let before = apply(&[], &Diff { put: baseline_unlocks(&[], &events, now), ..Diff::default() });
        cases.push(Case { token, before, events });
    }
    let measure = |what: &str, cases: &[Case]| {
        let of = |case: &Case| diff_unlocks(&UnlockPoll::of(&case.token, &settings, now), &case.before, &[], &case.events);
        let told: usize = cases.iter().map(|case| of(case).changes.len()).sum();
        let took = best(|| cases.iter().map(|case| of(case).put.len()).sum::<usize>());
        line(what, &format!("{} tranches/s", short(rate(rows, took))), &format!("{told} changes told of {} tokens", cases.len()));
    };
    measure("the same schedules", &cases);
    for case in &mut cases {
        case.events.iter_mut().for_each(|event| alter(event, TimeDelta::zero(), 1.0, 1.01));
    }
    measure("other prices", &cases);
    for case in &mut cases {
        // The later half of each schedule comes a month later.
        let half = case.events.len() / 2;
        case.events.iter_mut().skip(half).for_each(|event| alter(event, TimeDelta::days(30), 1.0, 1.0));
    }
    measure("the later half moved by 30 days", &cases);
    Ok(())
}
