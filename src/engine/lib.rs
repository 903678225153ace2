//! The decisions of the pipeline: which feeds to poll, what a response changes, which alerts fire, and which receivers to notify.
//!
//! - [`plan`] decides which feeds to poll in a slot, within the [`budget`]. [`slot`] computes when a job runs.
//! - [`ingest`] compares a response with the known facts by [`diff`]. [`upcoming`] finds outdated schedules from the list of next
//!   events. [`removal`] decides when missing records count as removed.
//!   [`linear_ahead`] completes linear unlocks from daily emission.
//! - [`evaluate`] runs the rules on tokens and updates their alerts. [`self_monitor`] does the same for incidents of the source, of
//!   receivers, and of the daemon.
//! - [`route`] selects receivers, [`group`] the time and the message, and [`digest_schedule`] the time of digests.
//! - [`replay`] selects the deliveries to send again on request.
//! - [`explain`] reports why an alert was or was not sent.
//!
//! Other crates send the requests and store the results.
//!
//! Everything here is pure: no function reads a clock, a file, or the database. The daemon, a backtest, and a rule test therefore reach
//! the same decisions from the same input.
//!
//! ```
//! use cliffwatch_engine::route::RouteTree;
//! use model::{alert::Labels, config};
//!
//! let receiver = |name: &str| config::ReceiverSettings { name: name.into(), ..Default::default() };
//! let critical = config::Route { matchers: vec!["severity=critical".into()], receivers: vec!["desk".into()], ..Default::default() };
//! let root = config::Route { receivers: vec!["ops".into()], routes: vec![critical], ..Default::default() };
//! let routes = RouteTree::build(&root, &[receiver("ops"), receiver("desk")]).expect("a valid route tree");
//!
//! let receivers = |severity: &str| routes.route(&Labels::from([("severity".to_owned(), severity.to_owned())]));
//! assert_eq!(receivers("critical"), ["desk".into()]);
//! assert_eq!(receivers("info"), ["ops".into()]);
//! ```

pub mod budget;
pub mod diff;
pub mod digest_schedule;
pub mod evaluate;
pub mod explain;
pub mod group;
pub mod ingest;
pub mod late;
pub mod linear_ahead;
pub mod pipeline;
pub mod plan;
pub mod removal;
pub mod replay;
pub mod route;
pub mod self_monitor;
pub mod slot;
pub mod upcoming;
