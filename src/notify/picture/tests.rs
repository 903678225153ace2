use super::*;
use crate::samples::{moved, time, unlock};

/// The pixel at a place, as `0xRRGGBB`; None where it is clear.
fn pixel(picture: &Pixmap, x: f32, y: f32) -> Option<u32> {
    let pixel = picture.pixel(x as u32, y as u32).expect("within the picture").demultiply();
    (pixel.alpha() > 0).then(|| u32::from_be_bytes([0, pixel.red(), pixel.green(), pixel.blue()]))
}

#[test]
fn past_and_coming_differ_and_the_one_in_question_is_marked() {
    let now = time("2026-03-09T13:00:00Z");
    let drawn = draw(&unlock().body, Tone::Warning, now).expect("a picture");
    assert!(drawn.png.len() < 20_000, "{} bytes", drawn.png.len());
    let picture = Pixmap::decode_png(&drawn.png).expect("a PNG");
    assert_eq!((picture.width(), picture.height()), (WIDTH, HEIGHT));
    let floor = HEIGHT as f32 - 10.0;
    // A run of one colour is a bar.
    let mut seen: Vec<Option<u32>> = (0..WIDTH).map(|x| pixel(&picture, x as f32, floor)).collect();
    seen.dedup();
    // Five that are gone, the one in question (today is behind it), seven to come.
    let count = |color| seen.iter().filter(|each| **each == Some(color)).count();
    assert_eq!((count(PAST), count(0xf0_7d_1c), count(COMING)), (5, 1, 7), "{seen:x?}");
    let marked: Vec<u32> = (0..WIDTH).filter(|x| pixel(&picture, *x as f32, 8.0) == Some(0xf0_7d_1c)).collect();
    assert!((20..32).contains(&marked.len()), "one wedge: {marked:?}");
    assert_eq!(pixel(&picture, 2.0, 2.0), None, "the background is clear");
    assert_eq!(drawn.alt, "The schedule from 16 Oct 2025 to 16 Mar 2027: 13 unlocks; marked is 92.65M tokens, 16 Mar 2026.");
}

#[test]
fn without_a_schedule_there_is_no_picture() {
    let now = time("2026-03-09T13:00:00Z");
    assert_eq!(draw(&moved().body, Tone::Info, now), None);
    let mut short = unlock().body;
    short.series.truncate(2);
    assert_eq!(draw(&short, Tone::Info, now), None);
}

#[test]
fn amounts_out_of_all_bounds_draw_something_or_nothing() {
    let mut body = unlock().body;
    for (amount, point) in [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, -1.0, 0.0].into_iter().cycle().zip(&mut body.series) {
        point.amount = amount;
    }
    let now = time("2026-03-09T13:00:00Z");
    assert!(draw(&body, Tone::Info, now).is_none_or(|drawn| Pixmap::decode_png(&drawn.png).is_ok()));
    for point in &mut body.series {
        (point.amount, point.at) = (0.0, now);
    }
    assert_eq!(draw(&body, Tone::Info, now), None);
}
