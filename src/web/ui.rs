//! Pages, calendars, and feeds, rendered from values without I/O.
//!
//! [`page`] contains the frame of every page and the elements that lists share. [`template`] contains the templates, which sanitize and
//! escape every value. [`asset`] contains the stylesheet and the script. Each page has a file here, a template in `html/`, and a handler
//! in `crate::http`. [`calendar`] and [`atom`] render the subscriptions, and [`month`]
//! the calendar page.
//!
//! A page works without its script, loads nothing from other hosts, and supports phones and dark mode.

pub mod alerted_unlock;
pub mod asset;
pub mod atom;
pub mod audit;
pub mod calendar;
pub mod change;
pub mod changes;
pub mod compare;
pub mod history;
pub mod month;
pub mod overview;
pub mod page;
pub mod range;
pub mod schedule_table;
pub mod template;
pub mod token;
pub mod tokens;
pub mod trial;
