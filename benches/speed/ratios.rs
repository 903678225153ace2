//! Fails if a cycle costs much more than it did, compared with a bare fetch of the same bytes. Works without optimization, so that the gate
//! can run it. With optimization, the ratios are larger, because a fetch becomes cheaper than the rest.

use std::time::Duration;

use anyhow::ensure;

use crate::{
    cycle,
    measure::{line, ratio},
};

/// The name of the section, which only runs if it is named.
pub const NAME: &str = "ratios";

const TOKENS: usize = 200;
/// The largest accepted ratios in the gate's profile: twice the ones measured at the last change.
const MAX_UNCHANGED: f64 = 4.4;
const MAX_REPRICED: f64 = 14.0;
const MAX_FIRST: f64 = 18.0;

pub fn run() -> anyhow::Result<()> {
    let cycles = cycle::measure(TOKENS)?;
    let mut slow = Vec::new();
    let mut check = |what: &str, took: Duration, limit: f64| {
        let times = ratio(took, cycles.bare);
        line(what, &format!("{times:.1} times the fetch"), &format!("at most {limit}"));
        if times > limit {
            slow.push(what.to_owned());
        }
    };
    check("a cycle, all responses unchanged", cycles.unchanged, MAX_UNCHANGED);
    check("a cycle, all prices changed", cycles.repriced, MAX_REPRICED);
    check("the first cycle", cycles.first, MAX_FIRST);
    ensure!(slow.is_empty(), "slower than accepted: {}", slow.join(", "));
    Ok(())
}
