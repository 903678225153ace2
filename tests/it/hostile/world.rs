//! A hostile source: every text contains escape sequences, bidi controls, forged lines, and markup.

use std::sync::atomic::{AtomicU32, Ordering};
use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, Uri, header},
    response::IntoResponse,
};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use cliffwatch::{model::clock::Clock, service as serve};

/// The start of a log line that the program never writes.
pub const FORGED: &str = "2026-03-01T00:00:00Z ERROR forged";

/// A hostile text after `begin`. Contains no NUL, so that it can be a command argument.
pub fn evil(begin: &str) -> String {
    format!(
        "{begin}\u{1b}]0;owned\u{7}\u{1b}[31m\u{1b}[2J\r\n{FORGED}\n<6>{FORGED}\r\nBcc: thief@example.com\r\n\r\n\u{9b}8m\u{85}\u{7f}\
         \u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\u{e0041}\u{ad}<script>alert(1)</script><!channel> <@U1> @everyone \
         [a](javascript:x) *_~`| ]]> --> \"'& {{7*7}} {{% raw %}} END:VEVENT"
    )
}

/// A hostile text with a NUL.
fn evil_with_nul(begin: &str) -> String {
    format!("{}\0", evil(begin))
}

/// A placeholder for a lone surrogate, which serde_json cannot write.
const LONE_SURROGATE: &str = "lone-surrogate";

/// The slugs in the token list.
pub fn ids() -> Vec<String> {
    let begins = ["=1+1", "+cmd", "-2", "@sum", "\t=tab", "plain"];
    let mut ids: Vec<String> = begins.iter().map(|begin| evil_with_nul(begin)).collect();
    ids.extend(["=1+cmd|'!A0", "+1+1", "-1-1", "@SUM(A1)", "alpha", "<script>", "\u{202e}ahpla", "silent"].map(str::to_owned));
    ids.push("x".repeat(10_000));
    ids
}

/// A source whose data can change while it runs.
#[derive(Clone, Default)]
pub struct World(Arc<AtomicU32>);

impl World {
    pub async fn start(ending: CancellationToken) -> (Self, SocketAddr) {
        let world = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().fallback(response).with_state(world.clone());
        tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
        (world, address)
    }

    /// Moves events, renames allocations, and adds burns and buybacks.
    pub fn change(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn response(State(world): State<World>, uri: Uri) -> impl IntoResponse {
    let changed = world.0.load(Ordering::SeqCst);
    let (status, body) = match data(uri.path(), changed) {
        Some(data) => (StatusCode::OK, envelope(data)),
        None => {
            let message = evil_with_nul("no");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({"status": false, "statusCode": 500, "errorMessage": message, "message": message}),
            )
        }
    };
    let text = body.to_string().replace(LONE_SURROGATE, "\\ud800");
    (status, [(header::CONTENT_TYPE, "application/json")], text)
}

fn envelope(data: Value) -> Value {
    let rows = data.as_array().map_or(1, Vec::len);
    json!({
        "metadata": {"queryDate": at(0), "credit": {"used": 5, "limit": 100_000, "resetAt": at(20)}, "page": 1, "pageSize": 100,
            "totalPages": 1, "total": rows, evil_with_nul("meta"): evil_with_nul("meta")},
        "status": true, "data": data
    })
}

/// Midnight, `days` days from now.
fn at(days: i64) -> String {
    let day = Clock::system().now().date_naive() + TimeDelta::days(days);
    format!("{}T00:00:00Z", day.format("%Y-%m-%d"))
}

fn data(path: &str, changed: u32) -> Option<Value> {
    let tail = path.rsplit('/').next().unwrap_or_default();
    match path {
        "/v5/token/list" => Some(ids().iter().map(|id| token(id, changed)).collect()),
        "/v5/unlock/events/upcoming" => Some(ids().iter().take(7).map(|id| upcoming(id)).collect()),
        _ if tail == "silent" => None,
        _ if path.starts_with("/v5/unlock/events/") => Some(json!([event(10 + i64::from(changed), changed), event(60, changed)])),
        _ if path.starts_with("/v3/unlock/events") || path.starts_with("/v2/emission") => Some(json!([])),
        _ if path.starts_with("/v5/burn/") => Some(json!({
            "tokenName": evil_with_nul("t"), "tokenSymbol": evil_with_nul("="), "totalBurnAmount": 5000.0 * f64::from(changed + 1),
            "burns": (0..=changed).map(|no| json!({"burnEventLabel": evil_with_nul("=burn"), "burnType": evil_with_nul("+"), "burnDate": at(-1 - i64::from(no)),
                "amount": 5000.0, "pricePerToken": 1.0, "value": 5000.0,
                "metadata": {"burners": [evil_with_nul("@"), "PROJECT"], "burnReasons": [evil_with_nul("-")]}})).collect::<Vec<_>>(),
        })),
        _ if path.starts_with("/v5/buyback/") => Some(json!({
            "tokenName": evil_with_nul("t"), "totalBuybackAmount": 5000.0,
            "buybacks": (0..=changed).map(|no| json!({"buybackEventLabel": evil_with_nul("@buy"), "buybackType": evil_with_nul("-"), "buybackDate": at(-1 - i64::from(no)),
                "tokenAmount": 5000.0, "value": 5000.0, "spentUnit": evil_with_nul("u"), "targetAddress": evil_with_nul("0x"), "resolution": evil_with_nul("r"),
                "basis": evil_with_nul("b")})).collect::<Vec<_>>(),
        })),
        _ if path.starts_with("/v5/allocations/") => Some(json!({
            "name": evil_with_nul("n"), "symbol": evil_with_nul("s"), "maxSupply": 1e9 + f64::from(changed),
            "allocations": [{"allocationName": evil_with_nul("="), "allocationType": evil_with_nul("+"), "standardAllocationName": evil_with_nul("-"),
                "allocationAmount": 1e8 * f64::from(changed + 1)}],
        })),
        _ => None,
    }
}

fn token(id: &str, changed: u32) -> Value {
    let long = format!("{}{}", evil_with_nul("=long"), "x".repeat(10_000));
    let name = if id == "alpha" { long } else { format!("{}{LONE_SURROGATE}", evil_with_nul("@name")) };
    json!({
        "id": id, "name": name, "symbol": evil_with_nul("=cmd|' /C calc'!A0"), "listedMethod": evil_with_nul("m"), "marketCap": 1e8, "maxSupply": 1e9,
        "circulatingSupply": 5e8, "hasBurn": true, "hasBuyback": true, "websiteUrl": evil_with_nul("javascript:alert(1)"),
        "latestFundraisingRound": evil_with_nul("r"), "lastUpdatedDate": at(i64::from(changed) - 9), evil_with_nul("field"): evil_with_nul("value")
    })
}

fn upcoming(id: &str) -> Value {
    json!({"tokenId": id, "tokenName": evil_with_nul("n"), "tokenSymbol": evil_with_nul("+s"), "listedMethod": evil_with_nul("m"), "dataSource": evil_with_nul("d"),
        "upcomingEvent": event(10, 0)})
}

fn event(days: i64, changed: u32) -> Value {
    let part = |name: &str, amount: f64| {
        json!({"unlockDate": at(days), "allocationName": evil_with_nul(name), "standardAllocationName": evil_with_nul("+std"), "cliffAmount": amount,
            "cliffValue": amount, "referencePrice": 1.0, "unlockPrecision": evil_with_nul("second"), evil_with_nul("part"): [evil_with_nul("x"), {evil_with_nul("y"): null}]})
    };
    let amount = 2e6 * f64::from(changed + 1);
    json!({
        "unlockDate": at(days), "tokenName": evil_with_nul("t"), "tokenSymbol": evil_with_nul("-s"), "listedMethod": evil_with_nul("m"),
        "dataSource": format!("{}{LONE_SURROGATE}", evil_with_nul("=source")), "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": 2.0 * amount, "cliffValue": 2.0 * amount, "valueToMarketCap": 4.0,
            "allocationBreakdown": [part(if changed == 0 { "=Team" } else { "@Renamed" }, amount), part("Team", amount)]},
        "latestUpdateDate": at(i64::from(changed) - 9), evil_with_nul("event"): evil_with_nul("x")
    })
}
