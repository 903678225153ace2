//! The direction of a change as text, so that neither a color nor a long sentence has to show it.

use super::{ratio, shift, shifts};
use crate::{Change, ChangeKind};

/// The direction of a change with its sign: `→ +5 days, later`, `↓ ×0.5, less`, `+ added`. `None` if it has none, or several.
#[must_use]
pub fn direction(change: &Change) -> Option<String> {
    match change.kind {
        ChangeKind::Added => return Some("+ added".to_owned()),
        ChangeKind::Removed => return Some("− removed".to_owned()),
        _ => {}
    }
    let range = change.shift_days_min.zip(change.shift_days_max).or_else(|| change.shift_days.map(|days| (days, days)));
    match (range, change.ratio) {
        (Some((least, _)), _) if least > 0.0 => moved("→", "later", range),
        (Some((_, most)), _) if most < 0.0 => moved("←", "earlier", range),
        (Some((least, most)), _) if least < most => moved("↔", "earlier and later", range),
        (_, Some(by)) if by > 1.0 => Some(format!("↑ {}, more", ratio(by))),
        (_, Some(by)) if by < 1.0 => Some(format!("↓ {}, less", ratio(by))),
        _ => None,
    }
}

fn moved(arrow: &str, way: &str, range: Option<(f64, f64)>) -> Option<String> {
    let (least, most) = range.filter(|(least, most)| least.is_finite() && most.is_finite())?;
    let by = if least < most { shifts(least, most) } else { shift(least) };
    Some(format!("{arrow} {by}, {way}"))
}

#[cfg(test)]
mod tests;
