//! What to ask, what an answer changes, what is told of it and to whom.
//!
//! **The cast.** [`plan`] says what one tick asks within the [`budget`]; [`slot`] when a job is due. [`ingest`] compares an answer with
//! what is known, by [`diff`]; [`upcoming`] uses the list of what comes next to find schedules that are out of date. [`evaluate`] holds
//! rules against tokens and makes alerts of what they say; [`self_monitor`] does so for incidents of the source, of receivers and of this
//! program. [`route`] says who is told, [`group`] when and in which message, [`digest_schedule`] when a digest is due. [`explain`] says
//! of one alert, token or record why something was told or not.
//!
//! **The path.** Plan, ask, ingest, evaluate, route, group: each step takes what the step before it gave, with what the database knew.
//! Asking and storing is done by others.
//!
//! **The promise.** Pure: values and a `now` in, values out. No step reads a clock, a file or a table, so that the daemon, a backtest and
//! a rule test that are given the same come to the same.
//!
//! ```
//! use cliffwatch_engine::route::RouteTree;
//! use model::{alert::Labels, config};
//!
//! let receiver = |name: &str| config::ReceiverSettings { name: name.into(), ..Default::default() };
//! let critical = config::Route { matchers: vec!["severity=critical".into()], receivers: vec!["desk".into()], ..Default::default() };
//! let root = config::Route { receivers: vec!["ops".into()], routes: vec![critical], ..Default::default() };
//! let routes = RouteTree::build(&root, &[receiver("ops"), receiver("desk")]).expect("a tree without problems");
//!
//! let told = |severity: &str| routes.route(&Labels::from([("severity".to_owned(), severity.to_owned())]));
//! assert_eq!(told("critical"), ["desk".into()]);
//! assert_eq!(told("info"), ["ops".into()]);
//! ```

pub mod budget;
pub mod diff;
pub mod digest_schedule;
pub mod evaluate;
pub mod explain;
pub mod group;
pub mod ingest;
pub mod late;
pub mod pipeline;
pub mod plan;
pub mod route;
pub mod self_monitor;
pub mod slot;
pub mod upcoming;
