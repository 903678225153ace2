//! Charts, drawn as SVG: from values and a `now` to text. Pure.
//!
//! The cast: [`svg`] writes elements and escapes what they say; [`recipient`] is who receives, by the source's standard names, and the
//! colours of that; [`scale`] finds round numbers for an axis. [`timeline`] draws what is ahead of all tokens, [`weeks`] what is
//! ahead of one in a line, [`schedule`](mod@schedule) one token over the years. The colours themselves are in the sheet, so that a
//! chart turns dark with its page.
//!
//! **The promise.** A chart has a bounded number of marks whatever the source sends, draws no number that is not finite, and claims no
//! day where the source names a month.

pub mod past_polls;
pub mod recipient;
pub mod scale;
pub mod schedule;
pub mod svg;
pub mod timeline;
pub mod weeks;

use minijinja::Value;
use serde::Serialize;

/// How large a drawing is, in its own units: letters stay as large as they are, so a phone gets a drawing of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canvas {
    pub width: f64,
    pub height: f64,
    /// Left of the marks, for the names of the axis.
    pub left: f64,
    /// Most marks that are drawn.
    pub marks: usize,
    /// Most marks that are named.
    pub names: usize,
}

/// A chart for both kinds of screen.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// For a wide screen.
    pub wide: Value,
    /// For a phone.
    pub narrow: Value,
}

impl Chart {
    /// Both drawings of what `draw` draws.
    pub fn of(wide: Canvas, narrow: Canvas, draw: impl Fn(Canvas) -> String) -> Self {
        Self { wide: Value::from_safe_string(draw(wide)), narrow: Value::from_safe_string(draw(narrow)) }
    }
}
