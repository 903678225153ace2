//! What is ahead of all tokens: a dot for each unlock at its time and size, coloured by who receives. An unlock of which only the month
//! is known is a bar over that month, at its size: nobody is told a day that the source does not name.

use std::f64::consts::TAU;

use super::recipient::Recipient;
use super::scale::{self, LogScale, TimeScale, midnight};
use super::svg::{Anchor, Svg, number};
use super::{Canvas, Chart};
use model::{Interval, Timestamp, format};

/// By what an unlock is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// USD.
    #[default]
    Value,
    /// Percent of the market cap.
    Share,
}

impl Measure {
    /// The word of the address.
    pub fn as_str(self) -> &'static str {
        match self {
            Measure::Value => "value",
            Measure::Share => "share",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [Measure::Value, Measure::Share].into_iter().find(|measure| measure.as_str() == word)
    }

    pub fn words(self, size: f64) -> String {
        match self {
            Measure::Value => format::usd(size),
            Measure::Share => format::percent(size),
        }
    }
}

/// An unlock as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEvent {
    /// Ticker, as it is shown.
    pub symbol: String,
    /// What is said where one points at it.
    pub title: String,
    /// Its token's page.
    pub href: String,
    pub interval: Interval,
    /// In the unit of the measure.
    pub size: f64,
    /// Who receives, each with a part of one.
    pub shares: Vec<(Recipient, f64)>,
}

impl TimelineEvent {
    /// Whether less is known than a day.
    pub fn is_span(&self) -> bool {
        (self.interval.end - self.interval.start).num_hours() > 48
    }

    fn main(&self) -> Recipient {
        self.shares.first().map_or(Recipient::Other, |(recipient, _)| *recipient)
    }
}

const WIDE: Canvas = Canvas { width: 880.0, height: 430.0, left: 52.0, marks: 160, names: 24 };
const NARROW: Canvas = Canvas { width: 360.0, height: 330.0, left: 46.0, marks: 60, names: 9 };
/// Above the marks, below them and right of them.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 26.0;
const RIGHT: f64 = 10.0;
/// Width of a letter of a name, about.
const LETTER: f64 = 8.0;
/// Longest name that is drawn, characters.
const MAX_NAME: usize = 9;

/// Draws the largest of `events` from `now` to `until`. Sizes that are no positive number are left out; none where nothing is left.
pub fn draw(events: &[TimelineEvent], measure: Measure, now: Timestamp, until: Timestamp) -> Option<Chart> {
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
    Some(Chart::of(WIDE, NARROW, |canvas| {
        let marks = marks.get(..canvas.marks.min(marks.len())).unwrap_or_default();
        Drawing::of(canvas, marks, now, until).map(|drawing| drawing.draw(marks, measure)).unwrap_or_default()
    }))
}

/// Where things go on one canvas.
struct Drawing {
    canvas: Canvas,
    time: TimeScale,
    sizes: LogScale,
    /// The largest size, and the radius of its dot.
    most: f64,
    radius: f64,
}

/// A part of the drawing that a name or a dot takes.
#[derive(Clone, Copy)]
struct LabelSpace {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl LabelSpace {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

impl Drawing {
    fn of(canvas: Canvas, marks: &[&TimelineEvent], now: Timestamp, until: Timestamp) -> Option<Self> {
        let floor = canvas.height - BOTTOM;
        let sizes = LogScale::of(marks.iter().map(|event| event.size), floor - 4.0, floor - TOP - 12.0)?;
        let time = TimeScale { from: now, until, left: canvas.left, width: canvas.width - canvas.left - RIGHT };
        let most = marks.first().map_or(1.0, |event| event.size);
        Some(Self { canvas, time, sizes, most, radius: if canvas.width > 500.0 { 15.0 } else { 11.0 } })
    }

    fn draw(&self, marks: &[&TimelineEvent], measure: Measure) -> String {
        let class = if self.canvas.width > 500.0 { "on-wide" } else { "on-phone" };
        let label = format!("Timeline of {}, the largest at the top", format::count(marks.len(), "unlock"));
        let mut svg = Svg::new(self.canvas.width, self.canvas.height, class, &label);
        self.axes(&mut svg, measure);
        // Spans below dots, the largest first, so that small ones stay in sight.
        for event in marks.iter().filter(|event| event.is_span()) {
            self.span(&mut svg, event, measure);
        }
        for event in marks.iter().filter(|event| !event.is_span()) {
            self.dot(&mut svg, event, measure);
        }
        self.names(&mut svg, marks);
        svg.finish()
    }

    fn axes(&self, svg: &mut Svg, measure: Measure) {
        let Canvas { width, height, left, .. } = self.canvas;
        let floor = height - BOTTOM;
        for tick in self.sizes.ticks() {
            let y = self.sizes.y(tick);
            svg.line("grid-line", (left, y), (width - RIGHT, y));
            svg.text("", left - 7.0, y + 4.0, Anchor::End, &scale::tick(&measure.words(tick)));
        }
        for monday in self.time.weeks() {
            let x = self.time.x(midnight(monday));
            svg.line("axis", (x, floor), (x, floor + 4.0));
        }
        let months = self.time.months(12);
        for month in &months {
            let x = self.time.x(midnight(*month));
            svg.line("axis", (x, TOP), (x, floor + 6.0));
            // The name of the last month has no room beside the edge.
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
        (event.size / self.most).sqrt().mul_add(self.radius, 2.6)
    }

    fn title(event: &TimelineEvent, measure: Measure) -> String {
        format!("{}: {}, {}", event.title, measure.words(event.size), format::when(&event.interval))
    }

    fn dot(&self, svg: &mut Svg, event: &TimelineEvent, measure: Measure) {
        let (x, y, radius) = (self.time.x(event.interval.start), self.sizes.y(event.size), self.radius(event));
        svg.mark(Some(&event.href), &Self::title(event, measure), |svg| {
            if event.shares.len() < 2 || radius < 5.0 {
                svg.circle(&format!("mark {}", event.main().class()), x, y, radius);
                return;
            }
            let mut begin = 0.0;
            for (recipient, share) in &event.shares {
                svg.path(&format!("mark {}", recipient.class()), &wedge(x, y, radius, begin, begin + share));
                begin += share;
            }
        });
    }

    /// A bar over the whole time in which it may come, in stripes where several receive.
    fn span(&self, svg: &mut Svg, event: &TimelineEvent, measure: Measure) {
        let (left, right) = (self.time.x(event.interval.start), self.time.x(event.interval.end));
        let tall = (self.radius(event) * 0.9).max(4.0);
        let top = self.sizes.y(event.size) - tall / 2.0;
        svg.mark(Some(&event.href), &Self::title(event, measure), |svg| {
            let stripes: &[(Recipient, f64)] =
                if tall < 8.0 || event.shares.is_empty() { &[(event.main(), 1.0)] } else { &event.shares };
            let mut y = top;
            for (recipient, share) in stripes {
                // A gap between months, so that a monthly series is seen as what it is.
                svg.rect(&format!("mark span {}", recipient.class()), left + 1.0, y, right - left - 2.0, tall * share, 2.0);
                y += tall * share;
            }
        });
    }

    /// The tickers of the largest, each where it is in nobody's way; without a place it has none.
    fn names<'e>(&self, svg: &mut Svg, marks: &[&'e TimelineEvent]) {
        let mut taken: Vec<LabelSpace> = marks.iter().map(|event| self.taken(event)).collect();
        let mut named: Vec<&'e str> = Vec::new();
        for event in marks {
            // Once a ticker: the others of its token lie beside it or at its height.
            if named.len() >= self.canvas.names || named.contains(&event.symbol.as_str()) {
                continue;
            }
            let name: String = if event.symbol.chars().count() > MAX_NAME {
                event.symbol.chars().take(MAX_NAME - 1).chain(['…']).collect()
            } else {
                event.symbol.clone()
            };
            let own = self.taken(event);
            let wide = f64::from(u32::try_from(name.chars().count()).unwrap_or(9)) * LETTER;
            let y = f64::midpoint(own.top, own.bottom);
            let beside = |left: f64, y: f64| LabelSpace { left, right: left + wide, top: y - 8.0, bottom: y + 5.0 };
            let middle = f64::midpoint(own.left, own.right) - wide / 2.0;
            let places = if event.is_span() {
                let places = [own.left + 4.0, middle, own.right - wide - 4.0];
                places.map(|left| [beside(left, own.top - 5.5), beside(left, own.bottom + 9.0)]).concat()
            } else {
                vec![
                    beside(own.right + 3.0, y + 3.0),
                    beside(own.left - 3.0 - wide, y + 3.0),
                    beside(middle, own.top - 5.0),
                    beside(middle, own.bottom + 9.0),
                ]
            };
            let free = places.into_iter().find(|place| {
                let inside = place.left >= self.canvas.left && place.right <= self.canvas.width && place.top >= 0.0;
                inside && taken.iter().all(|other| same(other, &own) || !other.meets(place))
            });
            let Some(place) = free else { continue };
            svg.text("strong halo", place.left, place.bottom - 2.0, Anchor::Start, &name);
            taken.push(place);
            named.push(&event.symbol);
        }
    }

    fn taken(&self, event: &TimelineEvent) -> LabelSpace {
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

/// A part of a disc, from one part of the whole to another, clockwise from the top.
fn wedge(x: f64, y: f64, radius: f64, from: f64, to: f64) -> String {
    let rim = |part: f64| {
        let (sin, cos) = (part * TAU).sin_cos();
        (number(radius.mul_add(sin, x)), number(radius.mul_add(-cos, y)))
    };
    // Both ends of a whole disc are one point, which draws nothing.
    let to = to.min(from + 0.9999);
    let ((x1, y1), (x2, y2)) = (rim(from), rim(to));
    let large = u8::from(to - from > 0.5);
    let (x, y, radius) = (number(x), number(y), number(radius));
    format!("M{x} {y}L{x1} {y1}A{radius} {radius} 0 {large} 1 {x2} {y2}Z")
}

#[cfg(test)]
mod tests;
