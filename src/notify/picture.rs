//! A small picture of a schedule for mail: a bar for each unlock, past and coming, the one in question marked. Pure.
//!
//! It holds no letters, so that no font is needed and every word in a mail can be read aloud, searched and turned light on dark; the
//! background is clear, and the colours stand out on white and on black. The one in question differs by a mark, not by colour alone.

use chrono::TimeDelta;
use serde::Serialize;
use tiny_skia::{Color, FillRule, Paint, PathBuilder, Pixmap, Rect, Transform};

use super::card::{self, Tone};
use model::{AlertBody, SeriesPoint, Timestamp, format};

/// Size in pixels: twice that in which it is shown, for sharp screens.
const WIDTH: u32 = 1120;
const HEIGHT: u32 = 220;

/// Room above the bars for the mark, and beside them, pixels.
const TOP: f32 = 34.0;
const SIDE: f32 = 14.0;

/// Bars, pixels.
const WIDEST_BAR: f32 = 36.0;
const NARROWEST_BAR: f32 = 5.0;
const LOWEST_BAR: f32 = 4.0;

/// Fewest unlocks that make a picture.
const MIN_POINTS: usize = 3;

/// Largest file, bytes; a larger one is left out.
const MAX_PNG_BYTES: usize = 64 * 1024;

const PAST: u32 = 0x8b_98_a5;
const COMING: u32 = 0x3b_82_f6;

/// A picture, with the words that belong to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Picture {
    /// Name within its mail.
    pub cid: String,
    #[serde(skip)]
    pub png: Vec<u8>,
    /// What it shows, for those who do not see it.
    pub alt: String,
    /// First and last date.
    pub from: String,
    /// Last date.
    pub to: String,
    /// Colours of the past, the coming and the one in question, as CSS writes them.
    pub colors: [String; 3],
}

/// Draws the schedule around the unlock that `body` tells. None where it is about no unlock, or too little is known.
pub fn draw(body: &AlertBody, tone: Tone, now: Timestamp) -> Option<Picture> {
    let own = card::own_date(body)?;
    let series: Vec<SeriesPoint> = body.series.iter().filter(|point| point.amount.is_finite()).copied().collect();
    let (first, last) = (series.first()?, series.last()?);
    if series.len() < MIN_POINTS || first.at >= last.at {
        return None;
    }
    let mark = match tone {
        Tone::Good => 0x22_9a_5f,
        Tone::Critical => 0xe5_48_4d,
        Tone::Info | Tone::Warning => 0xf0_7d_1c,
    };
    let png = paint(&series, own, now, mark)?;
    let mine = series.iter().find(|point| point.at == own)?;
    let (from, to) = (card::date_of(first), card::date_of(last));
    Some(Picture {
        cid: String::new(),
        png,
        alt: format!(
            "The schedule from {from} to {to}: {}; marked is {}, {}.",
            format::count(series.len(), "unlock"),
            format::tokens(mine.amount),
            card::date_of(mine)
        ),
        from,
        to,
        colors: [PAST, COMING, mark].map(|color| format!("#{color:06x}")),
    })
}

#[expect(clippy::cast_precision_loss, reason = "pixels and seconds of some decades; a picture needs no more")]
fn paint(series: &[SeriesPoint], own: Timestamp, now: Timestamp, mark: u32) -> Option<Vec<u8>> {
    let (first, last) = (series.first()?.at, series.last()?.at);
    let most = series.iter().map(|point| point.amount).fold(0.0, f64::max);
    let (width, height) = (WIDTH as f32, HEIGHT as f32);
    let bar = bar_width(series);
    let span = (last - first).num_seconds().max(1) as f32;
    let place = |at: Timestamp| SIDE + bar / 2.0 + (at - first).num_seconds() as f32 / span * (width - 2.0 * SIDE - bar);
    let mut picture = Pixmap::new(WIDTH, HEIGHT)?;
    let mut block = |color: u32, x: f32, y: f32, w: f32, h: f32| {
        // Whole pixels: crisp, and small as a file.
        if let Some(rect) = Rect::from_xywh(x.round(), y.round(), w.round().max(1.0), h.round().max(1.0)) {
            picture.fill_rect(rect, &paint_of(color), Transform::identity(), None);
        }
    };
    let floor = height - 6.0;
    block(PAST, 0.0, floor, width, 2.0);
    if (first..=last).contains(&now) {
        let x = place(now);
        let mut y = TOP;
        while y < floor {
            block(PAST, x - 1.0, y, 2.0, 8.0);
            y += 16.0;
        }
    }
    // The one in question last, so that no neighbour covers it.
    let (mine, others): (Vec<&SeriesPoint>, Vec<&SeriesPoint>) = series.iter().partition(|point| point.at == own);
    for point in others.into_iter().chain(mine) {
        #[expect(clippy::cast_possible_truncation, reason = "a share of one")]
        let share = if most > 0.0 { (point.amount / most).clamp(0.0, 1.0) as f32 } else { 0.0 };
        let tall = (share * (floor - TOP)).max(LOWEST_BAR);
        let color = match () {
            () if point.at == own => mark,
            () if point.at <= now => PAST,
            () => COMING,
        };
        block(color, place(point.at) - bar / 2.0, floor - tall, bar, tall);
    }
    // A wedge that points down at the one in question.
    let x = place(own);
    let mut wedge = PathBuilder::new();
    wedge.move_to(x - 14.0, 4.0);
    wedge.line_to(x + 14.0, 4.0);
    wedge.line_to(x, 26.0);
    wedge.close();
    picture.fill_path(&wedge.finish()?, &paint_of(mark), FillRule::Winding, Transform::identity(), None);
    picture.encode_png().ok().filter(|png| png.len() <= MAX_PNG_BYTES)
}

/// Bars as wide as the closest neighbours allow.
#[expect(clippy::cast_precision_loss, reason = "as in `paint`")]
fn bar_width(series: &[SeriesPoint]) -> f32 {
    let span =
        series.last().zip(series.first()).map_or(TimeDelta::zero(), |(last, first)| last.at - first.at).num_seconds().max(1);
    let gap = series.windows(2).filter_map(|pair| match pair {
        [a, b] => Some((b.at - a.at).num_seconds()).filter(|gap| *gap > 0),
        _ => None,
    });
    let closest = gap.min().unwrap_or(span) as f32 / span as f32 * (WIDTH as f32 - 2.0 * SIDE);
    (closest * 0.7).clamp(NARROWEST_BAR, WIDEST_BAR)
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
