//! The timeline of a report: bars of messages a week, and a lane of dots for each rule.

use std::collections::HashMap;

use chrono::{Datelike, Days, Months, NaiveDate, NaiveTime, TimeDelta};
use serde::Serialize;

use super::super::summary::monday;
use super::super::{BacktestNotification, BacktestRun, BacktestSummary, TallyRow, seconds};
use super::entry::{CLASSES, ReportEntry, severity};
use model::{Timestamp, format};

/// Dots that are drawn.
const MAX_DOTS: usize = 20_000;

/// Of the drawing, in its own units.
const WIDTH: f64 = 1160.0;
const GUTTER: f64 = 190.0;
const RIGHT: f64 = 12.0;
const HISTOGRAM: f64 = 84.0;
const DOT: f64 = 3.0;
const COLUMN: f64 = 7.0;
const LANE_MOST: f64 = 110.0;
/// Longest name of a lane, characters.
const NAME: usize = 21;

/// The drawing. Places are texts, rounded as they are written.
#[derive(Serialize)]
pub(super) struct Timeline {
    width: String,
    gutter: String,
    dot: String,
    height: String,
    number_x: String,
    ticks: Vec<TimelineTick>,
    bars: Vec<WeekBar>,
    bars_floor: String,
    bars_name_y: String,
    bars_most_y: String,
    bars_most: u32,
    lanes: Vec<TimelineLane>,
    dots: Vec<TimelineDot>,
}

/// A vertical line, with its name where there is room for one.
#[derive(Serialize)]
struct TimelineTick {
    x: String,
    name_x: String,
    name: Option<String>,
}

/// The messages of a week, by their gravest severity.
#[derive(Serialize)]
struct WeekBar {
    title: String,
    x: String,
    width: String,
    parts: Vec<WeekBarPart>,
}

#[derive(Serialize)]
struct WeekBarPart {
    class: &'static str,
    y: String,
    height: String,
}

#[derive(Serialize)]
struct TimelineLane {
    rule: String,
    /// As far as there is room for it.
    name: String,
    messages: u32,
    top: String,
    floor: String,
    height: String,
    text_y: String,
}

#[derive(Serialize)]
struct TimelineDot {
    class: String,
    x: String,
    y: String,
    /// Which entry of the list it stands for.
    entry: usize,
}

impl Timeline {
    /// None where nothing was sent.
    pub fn of(run: &BacktestRun, summary: &BacktestSummary, entries: &[ReportEntry<'_>]) -> Option<Self> {
        let axis = TimeAxis { from: run.from, length: seconds(run.to - run.from).max(1.0) };
        let busy: Vec<&TallyRow> = summary.rules.iter().filter(|row| row.messages > 0 || row.undelivered > 0).collect();
        if busy.is_empty() {
            return None;
        }
        let stacks = DotStacks::of(&axis, &busy, entries);
        let (lanes, dots, end) = stacks.drawn(&busy);
        let (bars, bars_most) = bars(&axis, run, summary);
        let floor = 20.0 + HISTOGRAM;
        Some(Self {
            width: WIDTH.to_string(),
            gutter: GUTTER.to_string(),
            dot: DOT.to_string(),
            height: format!("{:.0}", end + 8.0),
            number_x: format!("{:.0}", GUTTER - 12.0),
            ticks: ticks(&axis, run),
            bars,
            bars_floor: floor.to_string(),
            bars_name_y: format!("{:.0}", floor - 6.0),
            bars_most_y: format!("{:.0}", floor - HISTOGRAM + 18.0),
            bars_most,
            lanes,
            dots,
        })
    }
}

/// From instants to places.
struct TimeAxis {
    from: Timestamp,
    length: f64,
}

impl TimeAxis {
    fn x(&self, at: Timestamp) -> f64 {
        GUTTER + (seconds(at - self.from) / self.length).clamp(0.0, 1.0) * (WIDTH - GUTTER - RIGHT)
    }
}

/// Dots of one lane and column, stacked. The tallest stack makes the lane as high as it is.
struct DotStacks {
    dots: Vec<StackedDot>,
    /// Of each lane.
    tallest: Vec<u32>,
}

struct StackedDot {
    lane: usize,
    x: f64,
    /// Dots below it.
    level: u32,
    class: String,
    entry: usize,
}

impl DotStacks {
    fn of(axis: &TimeAxis, busy: &[&TallyRow], entries: &[ReportEntry<'_>]) -> Self {
        let lane_of: HashMap<&str, usize> = busy.iter().enumerate().map(|(lane, row)| (row.name.as_str(), lane)).collect();
        let mut order: Vec<(usize, bool, &BacktestNotification, Timestamp)> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let is_undelivered = matches!(entry, ReportEntry::Undelivered(_));
            order.extend(entry.notifications().into_iter().map(|notification| (index, is_undelivered, notification, entry.at())));
        }
        order.truncate(MAX_DOTS);
        // Within a stack the gravest lie at the bottom, and what ended or was not told on top.
        order.sort_by_key(|(_, is_undelivered, notification, _)| {
            (*is_undelivered, notification.is_end(), CLASSES.iter().position(|class| *class == severity(notification)))
        });
        let mut stacks: HashMap<(usize, i64), u32> = HashMap::new();
        let mut tallest = vec![1_u32; busy.len()];
        let mut dots = Vec::new();
        for (entry, is_undelivered, notification, at) in order {
            let Some(lane) = lane_of.get(notification.rule.as_str()).copied() else { continue };
            let column = column_of(axis.x(at));
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

    /// The lanes below each other, with their dots, and where the last lane ends.
    fn drawn(self, busy: &[&TallyRow]) -> (Vec<TimelineLane>, Vec<TimelineDot>, f64) {
        let mut lanes = Vec::new();
        // Floor and distance of the dots of each lane.
        let mut places: Vec<(f64, f64)> = Vec::new();
        let mut floor = 26.0 + HISTOGRAM;
        for (row, most) in busy.iter().zip(&self.tallest) {
            let step = (LANE_MOST / f64::from(*most)).min(COLUMN);
            let height = f64::from(*most).mul_add(step, 14.0).max(26.0);
            floor += height;
            places.push((floor, step));
            lanes.push(TimelineLane {
                rule: row.name.clone(),
                name: cut(&row.name),
                messages: row.messages,
                top: format!("{:.1}", floor - height),
                floor: format!("{floor:.1}"),
                height: format!("{height:.1}"),
                text_y: format!("{:.1}", floor - 8.0),
            });
        }
        let place = |dot: StackedDot| {
            let (floor, step) = places.get(dot.lane)?;
            let y = floor - 6.0 - f64::from(dot.level) * step;
            Some(TimelineDot { class: dot.class, x: format!("{:.1}", dot.x), y: format!("{y:.1}"), entry: dot.entry })
        };
        (lanes, self.dots.into_iter().filter_map(place).collect(), floor)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the drawing is about a thousand units wide")]
fn column_of(x: f64) -> i64 {
    (x / COLUMN).floor() as i64
}

fn cut(name: &str) -> String {
    if name.chars().count() <= NAME { name.to_owned() } else { format!("{}…", name.chars().take(NAME - 1).collect::<String>()) }
}

fn midnight(day: NaiveDate) -> Timestamp {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Months, or weeks where there are few months. About a dozen names fit.
fn ticks(axis: &TimeAxis, run: &BacktestRun) -> Vec<TimelineTick> {
    let (first, last) = (run.from.date_naive(), run.to.date_naive());
    let months =
        (last.year() - first.year()) * 12 + i32::try_from(last.month()).unwrap_or(0) - i32::try_from(first.month()).unwrap_or(0);
    let every = match months {
        ..=1 => return weeks(axis, run),
        2..=14 => 1,
        15..=40 => 3,
        41..=80 => 6,
        _ => 12,
    };
    let mut ticks = Vec::new();
    let mut month = first.with_day(1).unwrap_or(first);
    while month <= last {
        if midnight(month) >= run.from && month.month0() % every == 0 {
            let name = if month.month() == 1 || every == 12 { month.format("%b %Y") } else { month.format("%b") };
            ticks.push(TimelineTick::at(axis.x(midnight(month)), name.to_string()));
        }
        let Some(next) = month.checked_add_months(Months::new(1)) else { break };
        month = next;
    }
    ticks
}

fn weeks(axis: &TimeAxis, run: &BacktestRun) -> Vec<TimelineTick> {
    let mut ticks = Vec::new();
    let mut day = monday(run.from.date_naive());
    while day <= run.to.date_naive() {
        if midnight(day) >= run.from {
            ticks.push(TimelineTick::at(axis.x(midnight(day)), day.format("%-d %b").to_string()));
        }
        let Some(next) = day.checked_add_days(Days::new(7)) else { break };
        day = next;
    }
    ticks
}

impl TimelineTick {
    fn at(x: f64, name: String) -> Self {
        let has_room = x < WIDTH - 40.0;
        Self { x: format!("{x:.1}"), name_x: format!("{:.1}", x + 3.0), name: has_room.then_some(name) }
    }
}

/// A bar for each week, and how many messages the highest stands for.
fn bars(axis: &TimeAxis, run: &BacktestRun, summary: &BacktestSummary) -> (Vec<WeekBar>, u32) {
    let mut weeks = vec![[0_u32; 4]; summary.weeks.len()];
    for message in &run.messages {
        let week = summary.weeks.binary_search(&monday(message.at.date_naive())).ok();
        let class_of = |one: &BacktestNotification| CLASSES.iter().position(|class| *class == severity(one));
        let class = message.all().filter_map(|one| class_of(one)).min().unwrap_or(CLASSES.len() - 1);
        if let Some(count) = week.and_then(|week| weeks.get_mut(week)).and_then(|counts| counts.get_mut(class)) {
            *count += 1;
        }
    }
    let most = weeks.iter().map(|counts| counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    let mut bars = Vec::new();
    for (monday, counts) in summary.weeks.iter().zip(&weeks).filter(|(_, counts)| counts.iter().any(|count| *count > 0)) {
        let start = midnight(*monday);
        let x = axis.x(start.max(run.from));
        let width = (axis.x(start + TimeDelta::days(7)) - x - 1.0).max(0.6);
        let mut y = 20.0 + HISTOGRAM;
        let busy = CLASSES.iter().zip(counts).rev().filter(|(_, count)| **count > 0);
        let parts = busy.map(|(class, count)| {
            let height = f64::from(*count) / f64::from(most) * (HISTOGRAM - 12.0);
            y -= height;
            WeekBarPart { class, y: format!("{y:.1}"), height: format!("{height:.1}") }
        });
        let parts = parts.collect();
        let total = counts.iter().sum::<u32>() as usize;
        let title = format!("week of {}: {}", monday.format("%-d %b %Y"), format::count(total, "message"));
        bars.push(WeekBar { title, x: format!("{x:.1}"), width: format!("{width:.1}"), parts });
    }
    (bars, most)
}
