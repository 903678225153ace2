//! What the daemon shows: pages, and the views ([`view`]) that pages, commands and `/api/…` share. Pure: values in, text out.
//!
//! The cast: [`page`] is the frame of every page and what lists on pages share; [`template`] holds the templates, which make harmless
//! and escape whatever they show, since names come from the source; [`asset`] is the sheet and the script; [`chart`] draws. A page of
//! its own is a file here, a template in `html/` and a handler in [`crate::http`]: [`overview`] is what unlocks, fires and changed,
//! [`tokens`] the list of all, [`token`] one of them with its [`schedule`], [`changes`] what was corrected, each a [`change`] with
//! its before and after. [`calendar`] is the unlocks ahead as a calendar to subscribe to.
//!
//! **The promise.** A page is whole without its script, loads nothing from elsewhere, and reads well on a phone and in the dark.

pub mod asset;
pub mod atom;
pub mod calendar;
pub mod change;
pub mod changes;
pub mod chart;
pub mod history;
pub mod overview;
pub mod page;
pub mod range;
pub mod schedule;
pub mod template;
pub mod token;
pub mod tokens;
pub mod trial;
pub mod view;
