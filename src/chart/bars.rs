//! The layout of a row of bars.

/// A bar that stands on the bottom of its area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    pub x: f64,
    pub width: f64,
    /// Zero for a value that is not positive.
    pub height: f64,
}

/// Returns one bar for each value, in order. Each bar and the gap after it take an equal part of `width`, and the largest value has the
/// full `height`. A value that is not positive has the height zero. A bar is at least 0.5 wide, even if `gap` leaves less.
pub fn bars(values: &[f64], width: f64, height: f64, gap: f64) -> Vec<Bar> {
    #[expect(clippy::cast_precision_loss, reason = "a drawing has at most a few hundred bars")]
    let step = width / values.len().max(1) as f64;
    let largest = values.iter().copied().fold(0.0, f64::max);
    let mut x = 0.0;
    let bar = |value: &f64| {
        let fraction = if *value > 0.0 { (value / largest).min(1.0) } else { 0.0 };
        let bar = Bar { x, width: (step - gap).max(0.5), height: fraction * height };
        x += step;
        bar
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests;
