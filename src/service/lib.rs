//! The data service: token supply data over HTTP, in every version of the interface, from a database of its own or, as a mirror, from
//! the daemon's.
//!
//! The cast: [`Service`] holds the data, and `manage` is what its operator does with it. `listener` has the connections, `http` the path
//! of a request, `key_gate` lets keys in, and `credit_counter` counts their credits. `route` is the table of paths, `query` a question
//! read from a request, `answer` makes the payload from [`SupplyFacts`](store::facts::SupplyFacts), `version` says which fields each
//! version shows, `emission` makes days and weeks from a schedule, `response_cache` has the answers that were made before, `gzip` packs
//! them, and `response` puts metadata and headers around them. `import` and [`edit`](Service::edit) change the data, `export` writes
//! it out, `data_folder` is where they read and write; `openapi` describes it all; `faults` misbehaves on demand, in builds for tests.
//!
//! ```text
//! key ─► rate ─► query ─► answer (cached while the data stays as it is) ─► one credit ─► metadata around it
//! ```
//!
//! The promise: only an answered request costs a credit, exactly one, and never more than the key's limit; what was asked wrongly is
//! refused with the reason, and "nothing there" (an empty list) never looks like "no such token" (404) or "not known yet" (503).
//!
//! Where the interface leaves something open, this is what the service does:
//!
//! - `pageSize` is 50, at most 500; more is cut and `metadata.pageSize` says so. An empty list has `totalPages` 0.
//! - A parameter that a path does not take, or one given twice, is refused: a filter that is silently ignored would look like data.
//! - A field of a version is always there, null where its value is unknown; fields that nobody knows go through as they came.
//! - Unlock events v1 and v2, daily emission v1 and allocations v1 are from before tokens were listed by a model: they answer 404 for
//!   tokens of `listedMethod` `AI`, unless the service is told to cover all.
//! - `upcoming` counts an event as coming until the end of its UTC day. Without filters on categories it is the token's next event.
//! - From the fourth version of the events on, and in `upcoming`, events that pay miners or farmers are left out whole: those whose
//!   `releaseMechanism` says so (a field that an import may carry), or whose parts all have such a mechanism or category.
//! - Totals over values of which some are unknown add up the known ones; they are null where none is known.
//! - The first and the last week are told in full, also where the dates asked for lie inside of them.
//! - A category filter on emission narrows amounts and allocations; the cumulative amount stays that of the whole token.
//! - Errors are `{"status": false, "statusCode": …, "errorMessage": …}`: 400 for a question that makes no sense, 401 without a good key,
//!   404 for what is unknown, 413 for a request with a body beyond bounds, 429 with `Retry-After` when credits or the rate are spent, 503
//!   when no answer came in time or a mirror was not told yet. HEAD counts as GET.
//! - `If-None-Match` with the tag of an answer that still holds is answered 304, which costs no credit.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # use cliffwatch_service as service;
//! use service::{AccessPolicy, Options, Service};
//!
//! let service = Service::in_memory(Options { access: AccessPolicy::Keys, ..Options::default() })?;
//! service.import(service::bundled(), |_| {})?;
//! let key = service.add_key("desk", 10_000)?;
//! assert!(key.starts_with("cw_") && service.asks_for_keys()?);
//!
//! let listener = service::bind("127.0.0.1:0".parse()?)?;
//! let serving = tokio::spawn(service::serve(listener, service.router(), async {}));
//! serving.await??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod bundled;
mod credit_counter;
mod data_folder;
mod edit;
mod emission;
mod error;
mod export;
pub mod exposition;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
mod gzip;
mod http;
mod import;
mod key_gate;
mod listen;
mod listener;
mod manage;
mod metrics;
mod mirror;
mod openapi;
mod options;
mod query;
mod refusal;
mod response;
mod response_cache;
mod route;
mod service;
#[cfg(test)]
mod tests;
mod tls;
mod version;

use std::time::Duration;

pub use bundled::bundled;
pub use data_folder::{DataFolder, SourceFile};
pub use edit::{Edit, EditError};
pub use error::ServiceError;
pub use export::ExportSummary;
pub use import::{ImportError, ImportProblem, ImportSummary};
pub use listen::{BoundAddresses, Listening, listen};
pub use listener::{Peer, bind, serve, serve_few, serve_tls};
pub use mirror::MirrorScope;
pub use options::{AccessPolicy, Options};
pub use service::Service;
pub use tls::{Tls, TlsError};

/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
