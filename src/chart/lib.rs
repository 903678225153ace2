//! Charts as SVG, drawn from values without I/O. Pages and the report of a backtest share them.
//!
//! [`svg`] writes elements and escapes their text. [`scale`] maps values to coordinates, [`bars`] lays out bars, and [`curve`] computes
//! the unlocked tokens of a vesting schedule. [`supply`] draws the coming supply of all tokens per week, [`bands`] the linear unlocks of
//! several tokens in a month, [`weeks`] weekly sums of one token, and [`compare`] the coming supply of several tokens.
//! [`schedule`](mod@schedule) draws a vesting schedule, whose values [`series`] lists by date, [`flows`] emission, burns, and buybacks,
//! [`before_after`] a correction, and [`past_polls`] the polls of an endpoint. Colors are defined in the stylesheets, so that they follow
//! dark mode.
//!
//! A chart has a bounded number of marks, contains only finite numbers, and shows an unlock with month precision as a month.

pub mod bands;
pub mod bars;
pub mod before_after;
pub mod compare;
pub mod curve;
pub mod flows;
pub mod past_polls;
pub mod recipient;
pub mod scale;
pub mod schedule;
pub mod series;
pub mod supply;
pub mod svg;
pub mod weeks;

use serde::Serialize;

/// The size of a drawing in SVG units. Text is not scaled, so phones need a separate drawing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canvas {
    pub width: f64,
    pub height: f64,
    /// The space to the left of the marks, for the labels of the axis.
    pub left: f64,
    /// The maximum number of marks.
    pub max_marks: usize,
    /// The maximum number of marks with a label.
    pub max_labels: usize,
}

/// A chart for wide screens and for phones.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    pub wide: String,
    pub narrow: String,
}

impl Chart {
    pub fn new(wide: Canvas, narrow: Canvas, draw: impl Fn(Canvas) -> String) -> Self {
        Self { wide: draw(wide), narrow: draw(narrow) }
    }
}
