//! A stacked chart of the tokens unlocked over time by allocation, with cliffs, burns, and buybacks below the axis, and a line of the
//! schedule before its last correction.

use crate::curve::{Curve, CurveBy, Sample, sampled};
use crate::scale::{self, TimeScale, midnight, round_steps};
use crate::svg::{Anchor, Svg, number};
use crate::{Canvas, Chart};
use model::{Interval, Timestamp, phrase, time::days};

/// The data of the chart.
#[derive(Clone, Debug)]
pub struct ScheduleDrawing<'a> {
    /// The parts of the schedule that have a curve each.
    pub by: CurveBy,
    pub curves: &'a [Curve],
    /// The schedule before its last correction. `None` if the difference is not visible.
    pub former: Option<&'a [Curve]>,
    /// Sorted by date.
    pub cliffs: &'a [Interval],
    /// The unlock with a label: the next one, or that of an alert.
    pub next: Option<NextCliff>,
    /// Burns in tokens, and buybacks in USD.
    pub lanes: Vec<EventLane<'a>>,
    pub max_supply: Option<f64>,
    pub now: Timestamp,
}

/// A cliff with its label.
#[derive(Clone, Debug)]
pub struct NextCliff {
    pub interval: Interval,
    pub label: String,
    /// The label on phones.
    pub short: String,
}

/// A row of bars below the axis.
#[derive(Clone, Copy, Debug)]
pub struct EventLane<'a> {
    pub name: &'static str,
    /// The CSS class of its color.
    pub class: &'static str,
    pub sizes: &'a [(Timestamp, f64)],
    pub format: fn(f64) -> String,
}

const WIDE: Canvas = Canvas { width: 1180.0, height: 366.0, left: 62.0, max_marks: 160, max_labels: 1 };
const NARROW: Canvas = Canvas { width: 360.0, height: 306.0, left: 48.0, max_marks: 60, max_labels: 1 };
/// The space above the areas, for the names of the axes and the label of the next cliff.
const TOP: f64 = 44.0;
/// The heights of the time axis with its name, and of a lane.
const AXIS: f64 = 42.0;
const LANE: f64 = 56.0;
/// The height of the name of a lane.
const LANE_NAME: f64 = 17.0;
/// The space for shares of the supply.
const RIGHT: f64 = 42.0;
/// The maximum width of the next cliff as a line. A wider one is a band.
const MAX_LINE_WIDTH: f64 = 3.0;
/// The approximate width of a letter.
const LETTER: f64 = 7.2;
/// The maximum range of the chart before and after now, in years.
const MAX_PAST: i64 = 10;
const MAX_AHEAD: i64 = 8;

/// Draws the chart. `None` if no unlock has a date and an amount.
pub fn draw(drawing: &ScheduleDrawing<'_>) -> Option<Chart> {
    let (from, until) = range(drawing)?;
    let samples = sampled(drawing.curves, from, until);
    let former = drawing.former.map(|curves| sampled(curves, from, until)).unwrap_or_default();
    let plot = Plot { drawing, from, until, samples: &samples, former: &former };
    Some(Chart::new(WIDE, NARROW, |canvas| plot.on(canvas)))
}

/// Returns the first and last instant of the chart. `None` if no unlock has a date and an amount.
pub(crate) fn range(drawing: &ScheduleDrawing<'_>) -> Option<(Timestamp, Timestamp)> {
    let now = drawing.now;
    let year = |count: i64| chrono::TimeDelta::days(count * 365);
    let begin = drawing.curves.iter().filter_map(Curve::begin).min()?;
    let end = drawing.curves.iter().filter_map(Curve::end).max()?;
    let until = end.max(now + chrono::TimeDelta::days(60)).min(now + year(MAX_AHEAD));
    let from = begin.max(now - year(MAX_PAST)).min(now - chrono::TimeDelta::days(60)).min(until - chrono::TimeDelta::days(30));
    let room = (until - from) / 60;
    Some((from - room, until + room))
}

/// The data that both canvases show.
struct Plot<'a> {
    drawing: &'a ScheduleDrawing<'a>,
    from: Timestamp,
    until: Timestamp,
    samples: &'a [Sample],
    former: &'a [Sample],
}

/// The layout of a canvas.
struct Frame {
    canvas: Canvas,
    time: TimeScale,
    /// The y coordinate of zero.
    floor: f64,
    /// The amount at the top of the axis.
    max: f64,
}

impl Frame {
    fn y(&self, amount: f64) -> f64 {
        let fraction = if self.max > 0.0 { (amount / self.max).clamp(0.0, 1.0) } else { 0.0 };
        fraction.mul_add(-(self.floor - TOP), self.floor)
    }

    fn right(&self) -> f64 {
        self.canvas.width - RIGHT
    }
}

impl Plot<'_> {
    fn on(&self, canvas: Canvas) -> String {
        let lanes: Vec<&EventLane<'_>> = self.drawing.lanes.iter().filter(|lane| !lane.sizes.is_empty()).collect();
        let height = lanes.iter().fold(canvas.height, |height, _| height + LANE);
        let total = |samples: &[Sample]| samples.iter().map(|sample| sample.after.iter().sum::<f64>()).fold(0.0, f64::max);
        let steps = round_steps(total(self.samples).max(total(self.former)), 5);
        let frame = Frame {
            canvas,
            time: TimeScale { from: self.from, until: self.until, left: canvas.left, width: canvas.width - canvas.left - RIGHT },
            floor: canvas.height - AXIS,
            max: steps.last().copied().unwrap_or(1.0),
        };
        let class = if canvas.width > 500.0 { "on-wide" } else { "on-phone" };
        let label = format!("Tokens unlocked over time by {}", phrase::count(self.drawing.curves.len(), self.drawing.by.noun()));
        let mut svg = Svg::new(canvas.width, height, class, &label);
        self.grid(&mut svg, &frame, &steps);
        self.layers(&mut svg, &frame);
        self.today(&mut svg, &frame);
        self.cliffs(&mut svg, &frame);
        for (index, lane) in (0_u32..).zip(lanes) {
            self.lane(&mut svg, &frame, lane, f64::from(index).mul_add(LANE, canvas.height));
        }
        svg.finish()
    }

    fn grid(&self, svg: &mut Svg, frame: &Frame, steps: &[f64]) {
        let Canvas { width, left, .. } = frame.canvas;
        for step in steps {
            let y = frame.y(*step);
            svg.line("grid-line", (left, y), (frame.right(), y));
            svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&phrase::amount(*step)));
            // Shares above 100% would be confusing.
            if let Some(supply) = self.drawing.max_supply.filter(|supply| *step > 0.0 && *step <= supply * 1.005) {
                svg.text("", frame.right() + 6.0, y + 4.0, Anchor::Start, &format!("{:.0}%", step / supply * 100.0));
            }
        }
        let max = if width > 500.0 { 14 } else { 5 };
        for month in frame.time.months(max) {
            let x = frame.time.x(midnight(month));
            let is_year = month.format("%m").to_string() == "01";
            let is_long = days(self.until - self.from) > 365.0 * 3.0;
            let name = if is_year { month.format("%Y") } else { month.format(if is_long { "%b %y" } else { "%b %Y" }) };
            svg.line("axis", (x, frame.floor), (x, frame.floor + 5.0));
            svg.text("", x, frame.floor + 18.0, Anchor::Middle, &name.to_string());
        }
        svg.text("", 0.0, 11.0, Anchor::Start, "Unlocked tokens");
        if self.drawing.max_supply.is_some() {
            svg.text("", width, 11.0, Anchor::End, "% of max supply");
        }
        svg.text("", f64::midpoint(left, frame.right()), frame.floor + 36.0, Anchor::Middle, "Date (UTC)");
    }

    /// Draws the sum of the first n allocations, for decreasing n. Each layer covers the one before except for its last allocation. Then
    /// shades the time after now, and draws the parts of the former schedule that differ.
    fn layers(&self, svg: &mut Svg, frame: &Frame) {
        for layer in (0..self.drawing.curves.len()).rev() {
            let sum = |values: &[f64]| values.iter().take(layer + 1).sum::<f64>();
            let mut d = format!("M{} {}", number(frame.canvas.left), number(frame.floor));
            outline(&mut d, frame, self.samples, sum);
            d.push_str(&format!("V{}Z", number(frame.floor)));
            let name = self.drawing.curves.get(layer).map_or("", |curve| curve.name.as_str());
            let total = self.drawing.curves.get(layer).map_or(0.0, Curve::total);
            let color = self.drawing.curves.get(layer).map_or(layer, |curve| curve.color(self.drawing.by, layer));
            svg.marked_group(None, &format!("{}: {}", phrase::name(name), phrase::tokens(total, None)), |svg| {
                svg.path(&format!("layer c{color}"), &d);
            });
        }
        let x = frame.time.x(self.drawing.now);
        svg.rect("future", x, TOP, frame.right() - x, frame.floor - TOP, 0.0);
        for run in self.differing_runs() {
            let mut d = String::new();
            outline(&mut d, frame, run, |values| values.iter().sum());
            let d = format!("M{}", d.trim_start_matches('L'));
            svg.path("ghost", &d);
        }
        svg.line("axis", (frame.canvas.left, frame.floor), (frame.right(), frame.floor));
    }

    /// Returns the parts of the former schedule that differ visibly, each with one more sample at both ends.
    fn differing_runs(&self) -> Vec<&[Sample]> {
        let now = |at: Timestamp| self.drawing.curves.iter().map(|curve| curve.at(at)).sum::<f64>();
        let whole: f64 = self.drawing.curves.iter().map(Curve::total).sum();
        let differs = |sample: &Sample| {
            let before = now(sample.at - chrono::TimeDelta::milliseconds(1)) - sample.before.iter().sum::<f64>();
            let after = now(sample.at) - sample.after.iter().sum::<f64>();
            before.abs().max(after.abs()) > whole / 500.0
        };
        let marks: Vec<bool> = self.former.iter().map(differs).collect();
        let is_near = |index: usize| (index.saturating_sub(1)..=index + 1).any(|near| marks.get(near).copied().unwrap_or(false));
        let mut runs = Vec::new();
        let mut begin = None;
        for index in 0..=self.former.len() {
            match (index < self.former.len() && is_near(index), begin) {
                (true, None) => begin = Some(index),
                (false, Some(from)) => {
                    runs.extend(self.former.get(from..index));
                    begin = None;
                }
                _ => {}
            }
        }
        runs
    }

    fn today(&self, svg: &mut Svg, frame: &Frame) {
        let x = frame.time.x(self.drawing.now);
        svg.line("today", (x, TOP - 4.0), (x, frame.floor));
        svg.text("halo", x - 4.0, TOP + 9.0, Anchor::End, "today");
    }

    fn cliffs(&self, svg: &mut Svg, frame: &Frame) {
        let mut last = f64::NEG_INFINITY;
        let mut drawn = 0;
        for cliff in self.drawing.cliffs.iter().filter(|cliff| cliff.start >= self.from && cliff.start <= self.until) {
            let x = f64::midpoint(frame.time.x(cliff.start), frame.time.x(cliff.end));
            if x - last < 4.0 || drawn >= frame.canvas.max_marks {
                continue;
            }
            (last, drawn) = (x, drawn + 1);
            let (left, right, tip, foot) =
                (number(x - 2.6), number(x + 2.6), number(frame.floor + 1.5), number(frame.floor + 6.0));
            svg.path("cliff", &format!("M{} {tip}L{right} {foot}L{left} {foot}Z", number(x)));
        }
        let Some(NextCliff { interval: next, label, short }) = &self.drawing.next else { return };
        if next.start > self.until {
            return;
        }
        let (left, right) = (frame.time.x(next.start), frame.time.x(next.end));
        // An inexact date is a translucent band.
        let class = if right - left > MAX_LINE_WIDTH { "next-span" } else { "next" };
        svg.rect(class, left - 0.6, TOP - 6.0, (right - left).max(1.2), frame.floor - TOP + 6.0, 0.0);
        let label = if frame.canvas.width > 500.0 { label } else { short };
        let wide = f64::from(u32::try_from(label.chars().count()).unwrap_or(99)) * LETTER;
        let (x, anchor) = if right + 6.0 + wide <= frame.canvas.width {
            (right + 6.0, Anchor::Start)
        } else if left - 6.0 - wide >= 0.0 {
            (left - 6.0, Anchor::End)
        } else {
            (0.0, Anchor::Start)
        };
        svg.text("strong halo", x, TOP - 10.0, anchor, label);
    }

    /// Draws the bars of a lane downward from its axis. Adds sizes in the same column.
    fn lane(&self, svg: &mut Svg, frame: &Frame, lane: &EventLane<'_>, top: f64) {
        let step = if frame.canvas.width > 500.0 { 5.0 } else { 4.0 };
        let mut columns: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
        for (at, size) in
            lane.sizes.iter().filter(|(at, size)| size.is_finite() && *size > 0.0 && (self.from..=self.until).contains(at))
        {
            #[expect(clippy::cast_possible_truncation, reason = "a drawing is about a thousand units wide")]
            let column = (frame.time.x(*at) / step).floor() as i64;
            *columns.entry(column).or_default() += size;
        }
        let max = columns.values().copied().fold(0.0, f64::max);
        if max <= 0.0 {
            return;
        }
        let axis = top + LANE_NAME;
        svg.line("axis", (frame.canvas.left, axis), (frame.right(), axis));
        svg.text("", frame.canvas.left, top + 12.0, Anchor::Start, &format!("{} (max {})", lane.name, (lane.format)(max)));
        for (column, size) in columns {
            #[expect(clippy::cast_precision_loss, reason = "a drawing is about a thousand units wide")]
            let x = column as f64 * step;
            let bar_height = (size / max * (LANE - LANE_NAME - 4.0)).max(1.5);
            svg.marked_group(None, &format!("{}: {}", lane.name, (lane.format)(size)), |svg| {
                svg.rect(lane.class, x, axis, step - 1.0, bar_height, 0.0)
            });
        }
    }
}

/// Appends the line of a sum of samples to a path, with a step at each cliff.
fn outline(d: &mut String, frame: &Frame, samples: &[Sample], sum: impl Fn(&[f64]) -> f64) {
    let mut drawn: Option<String> = None;
    for (index, sample) in samples.iter().enumerate() {
        let (before, after) = (number(frame.y(sum(&sample.before))), number(frame.y(sum(&sample.after))));
        let x = number(frame.time.x(sample.at));
        // Skip samples inside a flat section of the line.
        let next = samples.get(index + 1).map(|next| number(frame.y(sum(&next.before))));
        if drawn.as_ref() == Some(&before) && before == after && next.as_ref() == Some(&before) {
            continue;
        }
        d.push_str(&format!("L{x} {before}"));
        if before != after {
            d.push_str(&format!("V{after}"));
        }
        drawn = Some(after);
    }
}

#[cfg(test)]
mod tests;
