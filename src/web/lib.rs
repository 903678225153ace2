//! The web interface of the daemon: pages, JSON API, metrics, and feeds.
//!
//! [`serve`] takes an [`AppHandle`](daemon::app::AppHandle) and handles requests. `http` contains the routes and handlers, which query
//! the store. [`ui`] renders pages, feeds, and charts from values. Values that commands also print are in [`daemon::view`].
//!
//! Every page works without its script, loads nothing from other hosts, and escapes all text from the source. Requests that change
//! state need a login or the bearer token.

mod http;
pub mod ui;

pub use http::{access_key_hash, fresh_token, serve, serve_waiting, token_details};
