//! A token's schedule: how much has unlocked over time, allocation on allocation, with its cliffs, what was burned and bought back below
//! the axis, and the line of what the schedule was before it was corrected.

use super::scale::{self, TimeScale, midnight, round_steps};
use super::svg::{Anchor, Svg, number};
use super::{Canvas, Chart};
use crate::ui::schedule::{Curve, Sample, sampled};
use model::{Interval, Timestamp, format, time::days};

/// What is drawn.
#[derive(Clone, Debug)]
pub struct ScheduleDrawing<'a> {
    pub curves: &'a [Curve],
    /// Curves of the schedule before its last correction; none where that cannot be seen.
    pub former: Option<&'a [Curve]>,
    /// Times of cliffs, in their order.
    pub cliffs: &'a [Interval],
    /// The next cliff, in words: for a wide screen and for a phone.
    pub next: Option<NextCliff>,
    /// What was burned (tokens) and bought back (USD), each as a time and a size.
    pub lanes: [EventLane<'a>; 2],
    /// Tokens that there can be.
    pub max_supply: Option<f64>,
    pub now: Timestamp,
}

/// The next cliff, and what is said of it.
#[derive(Clone, Debug)]
pub struct NextCliff {
    pub interval: Interval,
    pub words: String,
    /// The same for a phone.
    pub brief: String,
}

/// Bars below the axis.
#[derive(Clone, Copy, Debug)]
pub struct EventLane<'a> {
    pub name: &'static str,
    /// Its colour in the sheet.
    pub class: &'static str,
    pub sizes: &'a [(Timestamp, f64)],
    /// A size in words.
    pub words: fn(f64) -> String,
}

const WIDE: Canvas = Canvas { width: 1180.0, height: 330.0, left: 62.0, marks: 160, names: 1 };
const NARROW: Canvas = Canvas { width: 360.0, height: 270.0, left: 48.0, marks: 60, names: 1 };
const TOP: f64 = 26.0;
/// Names of the time axis, and one lane.
const AXIS: f64 = 24.0;
const LANE: f64 = 56.0;
/// Above the bars of a lane, for its name.
const LANE_NAME: f64 = 17.0;
/// Right of the marks, for shares of the supply.
const RIGHT: f64 = 42.0;
/// Up to so wide the next cliff is a line.
const WIDEST_LINE: f64 = 3.0;
/// Width of a letter, about.
const LETTER: f64 = 7.2;
/// How far back and ahead a picture reaches at most, years.
const MOST_PAST: i64 = 10;
const MOST_AHEAD: i64 = 8;

/// Draws it; none where nothing has a date and an amount.
pub fn draw(drawing: &ScheduleDrawing<'_>) -> Option<Chart> {
    let now = drawing.now;
    let year = |count: i64| chrono::TimeDelta::days(count * 365);
    let begin = drawing.curves.iter().filter_map(Curve::begin).min()?;
    let end = drawing.curves.iter().filter_map(Curve::end).max()?;
    let until = end.max(now + chrono::TimeDelta::days(60)).min(now + year(MOST_AHEAD));
    let from = begin.max(now - year(MOST_PAST)).min(now - chrono::TimeDelta::days(60)).min(until - chrono::TimeDelta::days(30));
    let room = (until - from) / 60;
    let (from, until) = (from - room, until + room);
    let samples = sampled(drawing.curves, from, until);
    let former = drawing.former.map(|curves| sampled(curves, from, until)).unwrap_or_default();
    let plot = Plot { drawing, from, until, samples: &samples, former: &former };
    Some(Chart::of(WIDE, NARROW, |canvas| plot.on(canvas)))
}

/// What both canvases show.
struct Plot<'a> {
    drawing: &'a ScheduleDrawing<'a>,
    from: Timestamp,
    until: Timestamp,
    samples: &'a [Sample],
    former: &'a [Sample],
}

/// Where things go on one canvas.
struct Frame {
    canvas: Canvas,
    time: TimeScale,
    /// The axis of amounts: where zero is, and how far the most is above it.
    floor: f64,
    most: f64,
}

impl Frame {
    fn y(&self, amount: f64) -> f64 {
        let part = if self.most > 0.0 { (amount / self.most).clamp(0.0, 1.0) } else { 0.0 };
        part.mul_add(-(self.floor - TOP), self.floor)
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
            most: steps.last().copied().unwrap_or(1.0),
        };
        let class = if canvas.width > 500.0 { "on-wide" } else { "on-phone" };
        let label = format!("Tokens unlocked over time by {}", format::count(self.drawing.curves.len(), "allocation"));
        let mut svg = Svg::new(canvas.width, height, class, &label);
        self.grid(&mut svg, &frame, &steps);
        self.layers(&mut svg, &frame);
        self.today(&mut svg, &frame);
        self.cliffs(&mut svg, &frame);
        for (place, lane) in (0_u32..).zip(lanes) {
            self.lane(&mut svg, &frame, lane, f64::from(place).mul_add(LANE, canvas.height));
        }
        svg.finish()
    }

    fn grid(&self, svg: &mut Svg, frame: &Frame, steps: &[f64]) {
        let Canvas { width, height, left, .. } = frame.canvas;
        for step in steps {
            let y = frame.y(*step);
            svg.line("grid-line", (left, y), (frame.right(), y));
            svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&format::amount(*step)));
            // Beyond the supply a share says nothing.
            if let Some(supply) = self.drawing.max_supply.filter(|supply| *step > 0.0 && *step <= supply * 1.005) {
                svg.text("", frame.right() + 6.0, y + 4.0, Anchor::Start, &format!("{:.0}%", step / supply * 100.0));
            }
        }
        let most = if width > 500.0 { 14 } else { 5 };
        for month in frame.time.months(most) {
            let x = frame.time.x(midnight(month));
            let is_year = month.format("%m").to_string() == "01";
            let is_long = days(self.until - self.from) > 365.0 * 3.0;
            let name = if is_year { month.format("%Y") } else { month.format(if is_long { "%b %y" } else { "%b %Y" }) };
            svg.line("axis", (x, frame.floor), (x, frame.floor + 5.0));
            svg.text("", x, height - 6.0, Anchor::Middle, &name.to_string());
        }
    }

    /// The sums of ever fewer allocations, each over the one before: what is left in sight of each is its own.
    fn layers(&self, svg: &mut Svg, frame: &Frame) {
        for layer in (0..self.drawing.curves.len()).rev() {
            let sum = |values: &[f64]| values.iter().take(layer + 1).sum::<f64>();
            let mut d = format!("M{} {}", number(frame.canvas.left), number(frame.floor));
            outline(&mut d, frame, self.samples, sum);
            d.push_str(&format!("V{}Z", number(frame.floor)));
            let name = self.drawing.curves.get(layer).map_or("", |curve| curve.name.as_str());
            let of = self.drawing.curves.get(layer).map_or(0.0, Curve::total);
            svg.mark(None, &format!("{}: {} tokens", format::name(name), format::amount(of)), |svg| {
                svg.path(&format!("layer c{}", layer.min(11)), &d);
            });
        }
        let x = frame.time.x(self.drawing.now);
        svg.rect("future", x, TOP, frame.right() - x, frame.floor - TOP, 0.0);
        for run in self.differing() {
            let mut d = String::new();
            outline(&mut d, frame, run, |values| values.iter().sum());
            let d = format!("M{}", d.trim_start_matches('L'));
            svg.path("ghost", &d);
        }
        svg.line("axis", (frame.canvas.left, frame.floor), (frame.right(), frame.floor));
    }

    /// The parts of the former schedule that differ from what it is now, each with one corner before and after.
    fn differing(&self) -> Vec<&[Sample]> {
        let now = |at: Timestamp| self.drawing.curves.iter().map(|curve| curve.at(at)).sum::<f64>();
        let whole: f64 = self.drawing.curves.iter().map(Curve::total).sum();
        let differs = |sample: &Sample| {
            let before = now(sample.at - chrono::TimeDelta::milliseconds(1)) - sample.before.iter().sum::<f64>();
            let after = now(sample.at) - sample.after.iter().sum::<f64>();
            before.abs().max(after.abs()) > whole / 500.0
        };
        let marks: Vec<bool> = self.former.iter().map(differs).collect();
        let near = |place: usize| (place.saturating_sub(1)..=place + 1).any(|near| marks.get(near).copied().unwrap_or(false));
        let mut runs = Vec::new();
        let mut begin = None;
        for place in 0..=self.former.len() {
            match (place < self.former.len() && near(place), begin) {
                (true, None) => begin = Some(place),
                (false, Some(from)) => {
                    runs.extend(self.former.get(from..place));
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
    }

    fn cliffs(&self, svg: &mut Svg, frame: &Frame) {
        let mut last = f64::NEG_INFINITY;
        let mut drawn = 0;
        for cliff in self.drawing.cliffs.iter().filter(|cliff| cliff.start >= self.from && cliff.start <= self.until) {
            let x = f64::midpoint(frame.time.x(cliff.start), frame.time.x(cliff.end));
            if x - last < 4.0 || drawn >= frame.canvas.marks {
                continue;
            }
            (last, drawn) = (x, drawn + 1);
            let (left, right, tip, foot) =
                (number(x - 2.6), number(x + 2.6), number(frame.floor + 1.5), number(frame.floor + 6.0));
            svg.path("cliff", &format!("M{} {tip}L{right} {foot}L{left} {foot}Z", number(x)));
        }
        let Some(NextCliff { interval: next, words, brief }) = &self.drawing.next else { return };
        if next.start > self.until {
            return;
        }
        let (left, right) = (frame.time.x(next.start), frame.time.x(next.end));
        // Of a month nobody knows the day: it is a pale band over what lies behind it.
        let class = if right - left > WIDEST_LINE { "next-span" } else { "next" };
        svg.rect(class, left - 0.6, TOP - 6.0, (right - left).max(1.2), frame.floor - TOP + 6.0, 0.0);
        let words = if frame.canvas.width > 500.0 { words } else { brief };
        let wide = f64::from(u32::try_from(words.chars().count()).unwrap_or(99)) * LETTER;
        let (x, anchor) = if right + 6.0 + wide <= frame.canvas.width {
            (right + 6.0, Anchor::Start)
        } else if left - 6.0 - wide >= 0.0 {
            (left - 6.0, Anchor::End)
        } else {
            (0.0, Anchor::Start)
        };
        svg.text("strong halo", x, TOP - 10.0, anchor, words);
    }

    /// Bars that hang from the axis of their lane, what falls on one place as one.
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
        let most = columns.values().copied().fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        let axis = top + LANE_NAME;
        svg.line("axis", (frame.canvas.left, axis), (frame.right(), axis));
        svg.text(
            "",
            frame.canvas.left,
            top + 12.0,
            Anchor::Start,
            &format!("{}, at most {} at a time", lane.name, (lane.words)(most)),
        );
        for (column, size) in columns {
            #[expect(clippy::cast_precision_loss, reason = "a drawing is about a thousand units wide")]
            let x = column as f64 * step;
            let tall = (size / most * (LANE - LANE_NAME - 4.0)).max(1.5);
            svg.mark(None, &format!("{}: {}", lane.name, (lane.words)(size)), |svg| {
                svg.rect(lane.class, x, axis, step - 1.0, tall, 0.0)
            });
        }
    }
}

/// The line of a sum of samples, with a step at each cliff.
fn outline(d: &mut String, frame: &Frame, samples: &[Sample], sum: impl Fn(&[f64]) -> f64) {
    let mut drawn: Option<String> = None;
    for (place, sample) in samples.iter().enumerate() {
        let (before, after) = (number(frame.y(sum(&sample.before))), number(frame.y(sum(&sample.after))));
        let x = number(frame.time.x(sample.at));
        // In the middle of a flat part there is nothing to say.
        let next = samples.get(place + 1).map(|next| number(frame.y(sum(&next.before))));
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
