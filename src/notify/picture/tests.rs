use super::*;
use testkit::samples::{moved, unlock};
use testkit::time;

/// Returns the color at a position as `0xRRGGBB`, or `None` if it is transparent.
fn pixel(picture: &Pixmap, x: f32, y: f32) -> Option<u32> {
    let pixel = picture.pixel(x as u32, y as u32).expect("within the picture").demultiply();
    (pixel.alpha() > 0).then(|| u32::from_be_bytes([0, pixel.red(), pixel.green(), pixel.blue()]))
}

#[test]
fn past_upcoming_and_highlighted_unlocks_differ() {
    let now = time("2026-03-09T13:00:00Z");
    let drawn = draw(&unlock().body, Severity::Warning, now).expect("a picture");
    assert!(drawn.png.len() < 20_000, "{} bytes", drawn.png.len());
    let picture = Pixmap::decode_png(&drawn.png).expect("a PNG");
    assert_eq!((picture.width(), picture.height()), (WIDTH, HEIGHT));
    let floor = HEIGHT as f32 - 10.0;
    // A run of one color is a bar.
    let mut seen: Vec<Option<u32>> = (0..WIDTH).map(|x| pixel(&picture, x as f32, floor)).collect();
    seen.dedup();
    // Five past unlocks, the highlighted one, and seven upcoming ones.
    let count = |color| seen.iter().filter(|each| **each == Some(color)).count();
    assert_eq!((count(PAST_COLOR), count(0xf0_7d_1c), count(UPCOMING_COLOR)), (5, 1, 7), "{seen:x?}");
    let marked: Vec<u32> = (0..WIDTH).filter(|x| pixel(&picture, *x as f32, 8.0) == Some(0xf0_7d_1c)).collect();
    assert!((20..32).contains(&marked.len()), "one marker: {marked:?}");
    assert_eq!(pixel(&picture, 2.0, 2.0), None, "a transparent background");
    let alt = "Vesting schedule from 16 Oct 2025 to 16 Mar 2027 with 13 unlocks. Highlighted: 16 Mar 2026, 92.65M ARB.";
    assert_eq!(drawn.alt, alt);
}

#[test]
fn alert_without_a_schedule_has_no_picture() {
    let now = time("2026-03-09T13:00:00Z");
    assert_eq!(draw(&moved().body, Severity::Info, now), None);
    let mut short = unlock().body;
    short.series.truncate(2);
    assert_eq!(draw(&short, Severity::Info, now), None);
}

#[test]
fn extreme_amounts_do_not_panic() {
    let mut body = unlock().body;
    for (amount, point) in [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, -1.0, 0.0].into_iter().cycle().zip(&mut body.series) {
        point.amount = amount;
    }
    let now = time("2026-03-09T13:00:00Z");
    assert!(draw(&body, Severity::Info, now).is_none_or(|drawn| Pixmap::decode_png(&drawn.png).is_ok()));
    for point in &mut body.series {
        (point.amount, point.at) = (0.0, now);
    }
    assert_eq!(draw(&body, Severity::Info, now), None);
}
