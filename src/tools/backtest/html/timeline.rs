//! The timeline of a report: a bar chart of messages per week, and a lane of dots for each rule.

use std::collections::HashMap;

use chrono::TimeDelta;

use super::super::summary::monday;
use super::super::{BacktestNotification, BacktestRun, BacktestSummary, TallyRow};
use super::entry::{CLASSES, ReportEntry, severity};
use chart::scale::{TimeScale, midnight};
use chart::svg::{Anchor, Svg, shortened};
use model::{Timestamp, phrase};

/// The maximum number of dots.
const MAX_DOTS: usize = 20_000;

/// Dimensions of the drawing, in SVG units.
const WIDTH: f64 = 1160.0;
const GUTTER: f64 = 190.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 20.0;
const HISTOGRAM: f64 = 84.0;
/// The y coordinate of the floor of the histogram.
const FLOOR: f64 = TOP + HISTOGRAM;
const DOT: f64 = 3.0;
const COLUMN: f64 = 7.0;
const MAX_LANE_HEIGHT: f64 = 110.0;
/// The maximum length of a lane's name, in characters.
const MAX_NAME: usize = 21;

/// Draws the timeline of a run. `None` if no rule matched.
pub(super) fn draw(run: &BacktestRun, summary: &BacktestSummary, entries: &[ReportEntry<'_>]) -> Option<String> {
    let busy: Vec<&TallyRow> = summary.rules.iter().filter(|row| row.messages > 0 || row.undelivered > 0).collect();
    if busy.is_empty() {
        return None;
    }
    let time = TimeScale { from: run.from, until: run.to, left: GUTTER, width: WIDTH - GUTTER - RIGHT };
    let stacks = DotStacks::of(&time, &busy, entries);
    let lanes = stacks.lanes();
    let height = lanes.last().map_or(FLOOR, |lane| lane.floor) + 8.0;
    let mut svg = Svg::new(WIDTH, height, "report", "Messages over time, one lane per rule");
    ticks(&mut svg, &time, height);
    histogram(&mut svg, &time, run, summary);
    for (row, lane) in busy.iter().zip(&lanes) {
        let attributes = [("class", "lane"), ("data-rule", row.name.as_str()), ("tabindex", "0")];
        svg.line("floor", (0.0, lane.floor), (WIDTH, lane.floor));
        svg.group("g", &attributes, |svg| {
            svg.rect("area", 0.0, lane.floor - lane.height, GUTTER, lane.height, 0.0);
            svg.text("", 4.0, lane.floor - 8.0, Anchor::Start, &shortened(&row.name, MAX_NAME));
            svg.text("n", GUTTER - 12.0, lane.floor - 8.0, Anchor::End, &row.messages.to_string());
        });
    }
    for dot in &stacks.dots {
        let Some(lane) = lanes.get(dot.lane) else { continue };
        svg.circle(&dot.class, (dot.x, lane.floor - 6.0 - f64::from(dot.level) * lane.step), DOT, Some(dot.entry));
    }
    Some(svg.finish())
}

struct Lane {
    /// The y coordinate of its lower edge.
    floor: f64,
    height: f64,
    /// The distance between stacked dots.
    step: f64,
}

/// Dots stacked by lane and column. The tallest stack determines the height of the lane.
struct DotStacks {
    dots: Vec<StackedDot>,
    /// The height of the tallest stack in each lane, in dots.
    tallest: Vec<u32>,
}

struct StackedDot {
    lane: usize,
    x: f64,
    /// The number of dots below it.
    level: u32,
    class: String,
    entry: usize,
}

impl DotStacks {
    fn of(time: &TimeScale, busy: &[&TallyRow], entries: &[ReportEntry<'_>]) -> Self {
        let lane_of: HashMap<&str, usize> = busy.iter().enumerate().map(|(lane, row)| (row.name.as_str(), lane)).collect();
        let mut order: Vec<(usize, bool, &BacktestNotification, Timestamp)> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let is_undelivered = matches!(entry, ReportEntry::Undelivered(_));
            order.extend(entry.notifications().into_iter().map(|notification| (index, is_undelivered, notification, entry.at())));
        }
        order.truncate(MAX_DOTS);
        // Severe alerts are at the bottom of a stack; resolved and undelivered ones are at the top.
        order.sort_by_key(|(_, is_undelivered, notification, _)| {
            (*is_undelivered, notification.is_end(), CLASSES.iter().position(|class| *class == severity(notification)))
        });
        let mut stacks: HashMap<(usize, i64), u32> = HashMap::new();
        let mut tallest = vec![1_u32; busy.len()];
        let mut dots = Vec::new();
        for (entry, is_undelivered, notification, at) in order {
            let Some(lane) = lane_of.get(notification.rule.as_str()).copied() else { continue };
            let column = column_of(time.x(at));
            let stack = stacks.entry((lane, column)).or_default();
            let end = if notification.is_end() { " end" } else { "" };
            let class = format!("{}{end}{}", severity(notification), if is_undelivered { " not" } else { "" });
            dots.push(StackedDot { lane, x: (column as f64).mul_add(COLUMN, COLUMN / 2.0), level: *stack, class, entry });
            *stack += 1;
            if let Some(most) = tallest.get_mut(lane) {
                *most = (*most).max(*stack);
            }
        }
        Self { dots, tallest }
    }

    fn lanes(&self) -> Vec<Lane> {
        let mut floor = FLOOR + 6.0;
        let lane = |tallest: &u32| {
            let step = (MAX_LANE_HEIGHT / f64::from(*tallest)).min(COLUMN);
            let height = f64::from(*tallest).mul_add(step, 14.0).max(26.0);
            floor += height;
            Lane { floor, height, step }
        };
        self.tallest.iter().map(lane).collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the drawing is about a thousand units wide")]
fn column_of(x: f64) -> i64 {
    (x / COLUMN).floor() as i64
}

/// Draws a tick per month, or per week for a short period. About a dozen labels fit.
fn ticks(svg: &mut Svg, time: &TimeScale, height: f64) {
    let months = time.months(14);
    let (days, format) = if months.len() < 2 { (time.mondays(), "%-d %b") } else { (months, "%b") };
    for day in days {
        let x = time.x(midnight(day));
        let format = if format == "%b" && day.format("%m").to_string() == "01" { "%b %Y" } else { format };
        svg.line("grid", (x, TOP), (x, height));
        if x < WIDTH - 40.0 {
            svg.text("tick", x + 3.0, 14.0, Anchor::Start, &day.format(format).to_string());
        }
    }
}

/// Draws a bar for each week with a part for each severity. A message counts for its most severe alert.
fn histogram(svg: &mut Svg, time: &TimeScale, run: &BacktestRun, summary: &BacktestSummary) {
    let mut weeks = vec![[0_u32; CLASSES.len()]; summary.weeks.len()];
    for message in &run.messages {
        let week = summary.weeks.binary_search(&monday(message.at.date_naive())).ok();
        let class_of = |one: &BacktestNotification| CLASSES.iter().position(|class| *class == severity(one));
        let class = message.all().filter_map(|one| class_of(one)).min().unwrap_or(CLASSES.len() - 1);
        if let Some(count) = week.and_then(|week| weeks.get_mut(week)).and_then(|counts| counts.get_mut(class)) {
            *count += 1;
        }
    }
    let largest = weeks.iter().map(|counts| counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    for (monday, counts) in summary.weeks.iter().zip(&weeks) {
        let total: u32 = counts.iter().sum();
        if total == 0 {
            continue;
        }
        let start = midnight(*monday);
        let x = time.x(start.max(run.from));
        let width = (time.x(start + TimeDelta::days(7)) - x - 1.0).max(0.6);
        svg.marked_group(None, &format!("week of {}: {}", phrase::day(start), phrase::count(total, "message")), |svg| {
            let mut y = FLOOR;
            for (class, count) in CLASSES.iter().zip(counts).rev().filter(|(_, count)| **count > 0) {
                let height = f64::from(*count) / f64::from(largest) * (HISTOGRAM - 12.0);
                y -= height;
                svg.rect(class, x, y, width, height, 0.0);
            }
        });
    }
    svg.line("floor", (GUTTER, FLOOR), (WIDTH, FLOOR));
    svg.text("tick", 4.0, FLOOR - 6.0, Anchor::Start, "messages per week");
    svg.text("n tick", GUTTER - 12.0, TOP + 18.0, Anchor::End, &largest.to_string());
}
