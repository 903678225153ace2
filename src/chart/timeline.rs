//! A timeline of upcoming unlocks: a dot for each unlock at its date and size, colored by recipient. An unlock with month or week
//! precision is a bar over that period.

use std::f64::consts::TAU;

use crate::recipient::{self, Recipient};
use crate::scale::{self, LogScale, TimeScale, midnight};
use crate::svg::{Anchor, Svg, number, shortened};
use crate::{Canvas, Chart};
use model::{Interval, Timestamp, phrase};

/// The size of an unlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// USD.
    #[default]
    Value,
    /// Percent of the market cap.
    Share,
}

impl Measure {
    /// The value of the query parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Measure::Value => "value",
            Measure::Share => "share",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [Measure::Value, Measure::Share].into_iter().find(|measure| measure.as_str() == word)
    }

    pub fn format(self, size: f64) -> String {
        match self {
            Measure::Value => phrase::usd(size),
            Measure::Share => phrase::percent(size),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEvent {
    pub symbol: String,
    /// The start of the tooltip.
    pub title: String,
    /// The URL of the token's page.
    pub href: String,
    pub interval: Interval,
    /// In the unit of [`Measure`].
    pub size: f64,
    /// Recipients with their fractions of the total, largest first.
    pub shares: Vec<(Recipient, f64)>,
}

impl TimelineEvent {
    /// Returns `true` if the date is less exact than a day.
    pub fn is_span(&self) -> bool {
        (self.interval.end - self.interval.start).num_hours() > 48
    }
}

/// A change of the rate at which a token unlocks linearly. It has no size on the scale of cliff unlocks.
#[derive(Clone, Debug, PartialEq)]
pub struct RateMark {
    pub at: Timestamp,
    /// The tooltip.
    pub title: String,
    /// The URL of the token's page.
    pub href: String,
    pub rises: bool,
}

const WIDE: Canvas = Canvas { width: 880.0, height: 430.0, left: 52.0, max_marks: 160, max_labels: 24 };
const NARROW: Canvas = Canvas { width: 360.0, height: 330.0, left: 46.0, max_marks: 60, max_labels: 9 };
/// Margins around the marks.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 26.0;
const RIGHT: f64 = 10.0;
/// The height of the triangle of a rate change.
const RATE_HEIGHT: f64 = 8.0;
/// The approximate width of a letter.
const LETTER: f64 = 8.0;
/// The maximum length of a label, in characters.
const MAX_NAME: usize = 9;

/// Draws the largest events between `now` and `until`, and the rate changes as triangles on the time axis. Ignores sizes that are not
/// positive and finite; `None` if no events are left.
pub fn draw(events: &[TimelineEvent], rates: &[RateMark], measure: Measure, now: Timestamp, until: Timestamp) -> Option<Chart> {
    let mut marks: Vec<&TimelineEvent> = events
        .iter()
        .filter(|event| {
            event.size.is_finite() && event.size > 0.0 && !event.interval.has_passed(now) && event.interval.start <= until
        })
        .collect();
    marks.sort_by(|a, b| b.size.total_cmp(&a.size).then_with(|| a.interval.start.cmp(&b.interval.start)));
    if marks.is_empty() {
        return None;
    }
    Some(Chart::new(WIDE, NARROW, |canvas| {
        let marks = marks.get(..canvas.max_marks.min(marks.len())).unwrap_or_default();
        Drawing::of(canvas, marks, now, until).map(|drawing| drawing.draw(marks, rates, measure)).unwrap_or_default()
    }))
}

/// The layout of a canvas.
struct Drawing {
    canvas: Canvas,
    time: TimeScale,
    sizes: LogScale,
    largest: f64,
    /// The radius of the largest dot.
    radius: f64,
}

/// The area of a label or a mark.
#[derive(Clone, Copy)]
struct LabelSpace {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LabelSpace {
    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

impl Drawing {
    fn of(canvas: Canvas, marks: &[&TimelineEvent], now: Timestamp, until: Timestamp) -> Option<Self> {
        let floor = canvas.height - BOTTOM;
        let sizes = LogScale::new(marks.iter().map(|event| event.size), floor - 4.0, floor - TOP - 12.0)?;
        let time = TimeScale { from: now, until, left: canvas.left, width: canvas.width - canvas.left - RIGHT };
        let largest = marks.first().map_or(1.0, |event| event.size);
        Some(Self { canvas, time, sizes, largest, radius: if canvas.width > 500.0 { 15.0 } else { 11.0 } })
    }

    fn draw(&self, marks: &[&TimelineEvent], rates: &[RateMark], measure: Measure) -> String {
        let class = if self.canvas.width > 500.0 { "on-wide" } else { "on-phone" };
        let label = format!("Timeline of {} by date and size", phrase::count(marks.len(), "unlock"));
        let mut svg = Svg::new(self.canvas.width, self.canvas.height, class, &label);
        self.axes(&mut svg, measure);
        for rate in rates.iter().filter(|rate| self.time.from < rate.at && rate.at <= self.time.until) {
            self.rate(&mut svg, rate);
        }
        // Bars are below dots, and large marks below small ones, so that all stay visible.
        for event in marks.iter().filter(|event| event.is_span()) {
            self.span(&mut svg, event, measure);
        }
        for event in marks.iter().filter(|event| !event.is_span()) {
            self.dot(&mut svg, event, measure);
        }
        self.labels(&mut svg, marks);
        svg.finish()
    }

    /// Draws a grid line for each size with a label in the unit of `measure`, a tick for each Monday, a vertical line for each of about
    /// twelve months with its name, and the time axis.
    fn axes(&self, svg: &mut Svg, measure: Measure) {
        let Canvas { width, height, left, .. } = self.canvas;
        let floor = height - BOTTOM;
        for tick in self.sizes.ticks() {
            let y = self.sizes.y(tick);
            svg.line("grid-line", (left, y), (width - RIGHT, y));
            svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&measure.format(tick)));
        }
        for monday in self.time.mondays() {
            let x = self.time.x(midnight(monday));
            svg.line("axis", (x, floor), (x, floor + 4.0));
        }
        let months = self.time.months(12);
        for month in &months {
            let x = self.time.x(midnight(*month));
            svg.line("axis", (x, TOP), (x, floor + 6.0));
            // A label near the right edge would be cut off.
            if x < width - 60.0 {
                svg.text("name", x + 5.0, height - 8.0, Anchor::Start, &month.format("%B").to_string());
            }
        }
        let first = months.first().map_or(width, |month| self.time.x(midnight(*month)));
        if first - left > 70.0 {
            svg.text("name", left + 2.0, height - 8.0, Anchor::Start, &self.time.from.format("%-d %b").to_string());
        }
        svg.line("axis", (left, floor), (width - RIGHT, floor));
    }

    fn radius(&self, event: &TimelineEvent) -> f64 {
        (event.size / self.largest).sqrt().mul_add(self.radius, 2.6)
    }

    fn title(event: &TimelineEvent, measure: Measure) -> String {
        format!("{}: {}, {}", event.title, measure.format(event.size), phrase::when(&event.interval))
    }

    fn dot(&self, svg: &mut Svg, event: &TimelineEvent, measure: Measure) {
        let (x, y, radius) = (self.time.x(event.interval.start), self.sizes.y(event.size), self.radius(event));
        svg.marked_group(Some(&event.href), &Self::title(event, measure), |svg| {
            if event.shares.len() < 2 || radius < 5.0 {
                svg.circle(&format!("mark {}", recipient::largest(&event.shares).class()), (x, y), radius, None);
                return;
            }
            let mut begin = 0.0;
            for (recipient, share) in &event.shares {
                svg.path(&format!("mark {}", recipient.class()), &wedge(x, y, radius, begin, begin + share));
                begin += share;
            }
        });
    }

    /// Draws a triangle on the time axis, which points up if the rate rises.
    fn rate(&self, svg: &mut Svg, rate: &RateMark) {
        let (x, floor) = (self.time.x(rate.at), self.canvas.height - BOTTOM);
        let (base, top) = if rate.rises { (floor, floor - RATE_HEIGHT) } else { (floor - RATE_HEIGHT, floor) };
        let [left, right, base, top, x] = [x - RATE_HEIGHT / 2.0, x + RATE_HEIGHT / 2.0, base, top, x].map(number);
        svg.marked_group(Some(&rate.href), &rate.title, |svg| {
            svg.path("mark s-linear", &format!("M{left} {base}H{right}L{x} {top}Z"));
        });
    }

    /// Draws a bar over the possible dates, with a stripe for each recipient.
    fn span(&self, svg: &mut Svg, event: &TimelineEvent, measure: Measure) {
        let (left, right) = (self.time.x(event.interval.start), self.time.x(event.interval.end));
        let height = (self.radius(event) * 0.9).max(4.0);
        let top = self.sizes.y(event.size) - height / 2.0;
        svg.marked_group(Some(&event.href), &Self::title(event, measure), |svg| {
            let stripes: &[(Recipient, f64)] =
                if height < 8.0 || event.shares.is_empty() { &[(recipient::largest(&event.shares), 1.0)] } else { &event.shares };
            let mut y = top;
            for (recipient, share) in stripes {
                // A gap separates the bars of a monthly series.
                svg.rect(&format!("mark span {}", recipient.class()), left + 1.0, y, right - left - 2.0, height * share, 2.0);
                y += height * share;
            }
        });
    }

    /// Writes the symbols of the largest unlocks where they do not overlap. Omits a label without space.
    fn labels<'e>(&self, svg: &mut Svg, marks: &[&'e TimelineEvent]) {
        let mut taken: Vec<LabelSpace> = marks.iter().map(|event| self.area(event)).collect();
        let mut labeled: Vec<&'e str> = Vec::new();
        for event in marks {
            // Other unlocks of the same token are usually next to this one.
            if labeled.len() >= self.canvas.max_labels || labeled.contains(&event.symbol.as_str()) {
                continue;
            }
            let name = shortened(&event.symbol, MAX_NAME);
            let own = self.area(event);
            let wide = f64::from(u32::try_from(name.chars().count()).unwrap_or(9)) * LETTER;
            let y = f64::midpoint(own.top, own.bottom);
            let beside = |left: f64, y: f64| LabelSpace { left, right: left + wide, top: y - 8.0, bottom: y + 5.0 };
            let middle = f64::midpoint(own.left, own.right) - wide / 2.0;
            let candidates = if event.is_span() {
                let lefts = [own.left + 4.0, middle, own.right - wide - 4.0];
                lefts.map(|left| [beside(left, own.top - 5.5), beside(left, own.bottom + 9.0)]).concat()
            } else {
                vec![
                    beside(own.right + 3.0, y + 3.0),
                    beside(own.left - 3.0 - wide, y + 3.0),
                    beside(middle, own.top - 5.0),
                    beside(middle, own.bottom + 9.0),
                ]
            };
            let free = candidates.into_iter().find(|space| {
                let is_inside = space.left >= self.canvas.left && space.right <= self.canvas.width && space.top >= 0.0;
                is_inside && taken.iter().all(|other| same(other, &own) || !other.overlaps(space))
            });
            let Some(space) = free else { continue };
            svg.text("strong halo", space.left, space.bottom - 2.0, Anchor::Start, &name);
            taken.push(space);
            labeled.push(&event.symbol);
        }
    }

    fn area(&self, event: &TimelineEvent) -> LabelSpace {
        let (y, radius) = (self.sizes.y(event.size), self.radius(event));
        let (left, right) = if event.is_span() {
            (self.time.x(event.interval.start), self.time.x(event.interval.end))
        } else {
            let x = self.time.x(event.interval.start);
            (x - radius, x + radius)
        };
        let half = if event.is_span() { (radius * 0.9).max(4.0) / 2.0 } else { radius };
        LabelSpace { left, right, top: y - half, bottom: y + half }
    }
}

fn same(a: &LabelSpace, b: &LabelSpace) -> bool {
    (a.left - b.left).abs() < 1e-9 && (a.top - b.top).abs() < 1e-9 && (a.right - b.right).abs() < 1e-9
}

/// Returns the path of a pie slice with its center at (`x`, `y`). `from` and `to` are fractions of the circle (0 to 1), clockwise from the
/// top. A full circle has a gap of 1/10,000, because SVG draws no arc between identical points.
fn wedge(x: f64, y: f64, radius: f64, from: f64, to: f64) -> String {
    let rim = |part: f64| {
        let (sin, cos) = (part * TAU).sin_cos();
        (number(radius.mul_add(sin, x)), number(radius.mul_add(-cos, y)))
    };
    // An arc between identical points would be empty.
    let to = to.min(from + 0.9999);
    let ((x1, y1), (x2, y2)) = (rim(from), rim(to));
    let large = u8::from(to - from > 0.5);
    let (x, y, radius) = (number(x), number(y), number(radius));
    format!("M{x} {y}L{x1} {y1}A{radius} {radius} 0 {large} 1 {x2} {y2}Z")
}

#[cfg(test)]
mod tests;
