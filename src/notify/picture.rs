//! Draws a vesting schedule for a mail: a bar per unlock, with the unlock of the alert highlighted. Pure.
//!
//! The picture contains no text, so it needs no font, and screen readers and dark mode work. The background is transparent, and the
//! colors are readable on white and on black. The highlighted unlock has a marker in addition to its color.

use chrono::TimeDelta;
use serde::Serialize;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Transform};

use super::card::{self, Severity};
use model::{AlertBody, SeriesPoint, Timestamp, phrase};

// In pixels, twice the displayed size for high-resolution screens.
const WIDTH: u32 = 1120;
const HEIGHT: u32 = 220;

// The margins above the bars (for the marker) and on both sides, in pixels.
const TOP: f32 = 34.0;
const SIDE: f32 = 14.0;

// In pixels.
const MAX_BAR_WIDTH: f32 = 36.0;
const MIN_BAR_WIDTH: f32 = 5.0;
const MIN_BAR_HEIGHT: f32 = 4.0;

const MIN_POINTS: usize = 3;

/// The size limit in bytes above which the mail omits the picture.
const MAX_PNG_BYTES: usize = 64 * 1024;

const PAST_COLOR: u32 = 0x8b_98_a5;
const UPCOMING_COLOR: u32 = 0x3b_82_f6;

/// A picture and its texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// The content id within the mail.
    pub cid: String,
    #[serde(skip)]
    pub png: Vec<u8>,
    /// The alternative text of the image.
    pub alt: String,
    /// The first date of the schedule.
    pub from: String,
    /// The last date of the schedule.
    pub to: String,
    /// The CSS colors of past unlocks, upcoming unlocks, and the highlighted unlock.
    pub colors: [String; 3],
}

/// Draws the schedule of an alert about an unlock. Returns `None` for other alerts and for short schedules.
pub fn draw(body: &AlertBody, severity: Severity, now: Timestamp) -> Option<Picture> {
    let own = card::own_date(body)?;
    let series: Vec<SeriesPoint> = body.series.iter().filter(|point| point.amount.is_finite()).copied().collect();
    let (first, last) = (series.first()?, series.last()?);
    if series.len() < MIN_POINTS || first.at >= last.at {
        return None;
    }
    let mark = match severity {
        Severity::Good => 0x22_9a_5f,
        Severity::Critical => 0xe5_48_4d,
        Severity::Info | Severity::Warning => 0xf0_7d_1c,
    };
    let png = paint(&series, own, now, mark)?;
    let highlighted = series.iter().find(|point| point.at == own)?;
    let (from, to) = (card::date_of(first), card::date_of(last));
    Some(Picture {
        cid: String::new(),
        png,
        alt: format!(
            "Vesting schedule from {from} to {to} with {}. Highlighted: {}, {}.",
            phrase::count(series.len(), "unlock"),
            card::date_of(highlighted),
            phrase::tokens(highlighted.amount, body.token.as_ref().map(|token| token.symbol.as_str()))
        ),
        from,
        to,
        colors: [PAST_COLOR, UPCOMING_COLOR, mark].map(|color| format!("#{color:06x}")),
    })
}

#[expect(clippy::cast_precision_loss, reason = "pixels and seconds of some decades; a picture needs no more")]
fn paint(series: &[SeriesPoint], own: Timestamp, now: Timestamp, mark: u32) -> Option<Vec<u8>> {
    let (first, last) = (series.first()?.at, series.last()?.at);
    let max_amount = series.iter().map(|point| point.amount).fold(0.0, f64::max);
    let (width, height) = (WIDTH as f32, HEIGHT as f32);
    let bar = bar_width(series);
    let span = (last - first).num_seconds().max(1) as f32;
    let place = |at: Timestamp| SIDE + bar / 2.0 + (at - first).num_seconds() as f32 / span * (width - 2.0 * SIDE - bar);
    let mut picture = Pixmap::new(WIDTH, HEIGHT)?;
    let mut block = |color: u32, x: f32, y: f32, w: f32, h: f32| {
        // Whole pixels make sharp edges and a small file.
        if let Some(rect) = Rect::from_xywh(x.round(), y.round(), w.round().max(1.0), h.round().max(1.0)) {
            picture.fill_rect(rect, &paint_of(color), Transform::identity(), None);
        }
    };
    let floor = height - 6.0;
    block(PAST_COLOR, 0.0, floor, width, 2.0);
    if (first..=last).contains(&now) {
        let x = place(now);
        let mut y = TOP;
        while y < floor {
            block(PAST_COLOR, x - 1.0, y, 2.0, 8.0);
            y += 16.0;
        }
    }
    // The highlighted unlock is drawn last, so that no neighbor covers it.
    let (highlighted, others): (Vec<&SeriesPoint>, Vec<&SeriesPoint>) = series.iter().partition(|point| point.at == own);
    for point in others.into_iter().chain(highlighted) {
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let share = if max_amount > 0.0 { (point.amount / max_amount).clamp(0.0, 1.0) as f32 } else { 0.0 };
        let tall = (share * (floor - TOP)).max(MIN_BAR_HEIGHT);
        let color = match () {
            () if point.at == own => mark,
            () if point.at <= now => PAST_COLOR,
            () => UPCOMING_COLOR,
        };
        block(color, place(point.at) - bar / 2.0, floor - tall, bar, tall);
    }
    // The marker.
    let x = place(own);
    let mut wedge = PathBuilder::new();
    wedge.move_to(x - 14.0, 4.0);
    wedge.line_to(x + 14.0, 4.0);
    wedge.line_to(x, 26.0);
    wedge.close();
    picture.fill_path(&wedge.finish()?, &paint_of(mark), FillRule::Winding, Transform::identity(), None);
    picture.encode_png().ok().filter(|png| png.len() <= MAX_PNG_BYTES)
}

/// Returns the bar width that the closest neighbors allow.
#[expect(clippy::cast_precision_loss, reason = "as in `paint`")]
fn bar_width(series: &[SeriesPoint]) -> f32 {
    let span =
        series.last().zip(series.first()).map_or(TimeDelta::zero(), |(last, first)| last.at - first.at).num_seconds().max(1);
    let gap = series.windows(2).filter_map(|pair| match pair {
        [a, b] => Some((b.at - a.at).num_seconds()).filter(|gap| *gap > 0),
        _ => None,
    });
    let closest = gap.min().unwrap_or(span) as f32 / span as f32 * (WIDTH as f32 - 2.0 * SIDE);
    (closest * 0.7).clamp(MIN_BAR_WIDTH, MAX_BAR_WIDTH)
}

fn paint_of(color: u32) -> Paint<'static> {
    let [_, red, green, blue] = color.to_be_bytes();
    let mut paint = Paint::default();
    paint.set_color(Color::from_rgba8(red, green, blue, 255));
    paint.anti_alias = true;
    paint
}

#[cfg(test)]
mod tests;
