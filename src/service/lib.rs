//! The data service: token supply data over HTTP in every version of the API, from its own database or, as a mirror, from the database
//! of a daemon.
//!
//! [`Service`] is the data and its operations. A request passes these modules:
//!
//! ```text
//! listener ─► http ─► key_gate ─► query ─► response_cache (payload, gzip) ─► credit_counter ─► response
//! ```
//!
//! `payload` builds the data of a response from [`SupplyFacts`](store::facts::SupplyFacts), `version` decides which fields a version has, and
//! `emission` computes daily and weekly emission. `import`, `export`, and [`edit`](Service::edit) read and change the data.
//!
//! Only a response with status 200 costs a credit, exactly one, and never more than the limit of the key. An empty list, an unknown token
//! (404), and data that was not polled yet (503) are always distinguished.
//!
//! Where the API is not specified, the service behaves as follows:
//!
//! - `pageSize` is 50 by default and at most 500; a larger value is reduced, as `metadata.pageSize` shows. An empty list has `totalPages` 0.
//! - An unknown parameter and a repeated one are rejected, because an ignored filter would return wrong data.
//! - A field of a version is always present, and null if its value is unknown. Unknown fields are passed through.
//! - Unlock events v1 and v2, daily emission v1, and allocations v1 return 404 for tokens with `listedMethod` `AI`, unless the option
//!   `all_tokens` is set.
//! - `upcoming` includes an event until the end of its UTC day. Without a category filter, it is the token's next event.
//! - From version 4 of the events on, and in `upcoming`, events that pay miners or farmers are omitted: events whose `releaseMechanism`
//!   says so (a field that an import can have), or whose allocation shares all have such a mechanism or category.
//! - Totals add up the known values, and are null if no value is known.
//! - The first and last week are complete, even if the requested dates are within them.
//! - A category filter on emission reduces amounts and allocations, but not the cumulative amount.
//! - Errors are `{"status": false, "statusCode": …, "errorMessage": …}`: 400 for an invalid request, 401 without a valid key, 404 for
//!   unknown paths, tokens, and investors, 413 for a large body, 429 with `Retry-After` for exhausted credits or rate limits, 503 after a
//!   timeout or for data that was not polled yet. HEAD is handled like GET.
//! - A request whose `If-None-Match` still matches gets 304 and costs no credit.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # use cliffwatch_service as service;
//! use service::{AccessPolicy, Options, Service};
//!
//! let service = Service::in_memory(Options { access: AccessPolicy::Keys, ..Options::default() })?;
//! service.import(service::bundled(), |_| {})?;
//! let key = service.add_key("desk", 10_000)?;
//! assert!(key.starts_with("cw_"));
//!
//! let listener = service::bind("127.0.0.1:0".parse()?)?;
//! let serving = tokio::spawn(service::serve(listener, service.router(), async {}));
//! serving.await??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bundled;
mod credit_counter;
mod data_folder;
mod edit;
mod emission;
mod error;
mod export;
pub mod exposition;
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
mod payload;
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

pub use bundled::{bundled, bundled_versions};
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

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
