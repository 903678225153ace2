//! Measures the diff of complete responses: unchanged, with other prices, and corrected.

use chrono::TimeDelta;
use cliffwatch::{
    engine::{
        diff::{Diff, UnlockPoll, apply, baseline_unlocks, diff_unlocks},
        removal::{ProofPolicy, RemovalProof, ResponseQuality},
    },
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
    let mut rows = 0;
    let proof = RemovalProof::new(ProofPolicy::default(), ResponseQuality::Complete, &[], None, now);
    let mut cases = Vec::new();
    for (token, events, _) in bundled()? {
        rows += tranches(&events);
        let before = apply(&[], &Diff { put: baseline_unlocks(&[], &events, now), ..Diff::default() });
        cases.push(Case { token, before, events });
    }
    let measure = |what: &str, cases: &[Case]| {
        let of = |case: &Case| diff_unlocks(&UnlockPoll::of(&case.token, now), &case.before, &proof, &case.events);
        let reported: usize = cases.iter().map(|case| of(case).changes.len()).sum();
        let took = best(|| cases.iter().map(|case| of(case).put.len()).sum::<usize>());
        line(what, &format!("{} tranches/s", short(rate(rows, took))), &format!("{reported} changes for {} tokens", cases.len()));
    };
    measure("unchanged schedules", &cases);
    for case in &mut cases {
        case.events.iter_mut().for_each(|event| alter(event, TimeDelta::zero(), 1.0, 1.01));
    }
    measure("other prices", &cases);
    for case in &mut cases {
        // Move the later half of each schedule by a month.
        let half = case.events.len() / 2;
        case.events.iter_mut().skip(half).for_each(|event| alter(event, TimeDelta::days(30), 1.0, 1.0));
    }
    measure("the later half moved by 30 days", &cases);
    Ok(())
}
