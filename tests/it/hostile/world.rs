//! A source that means harm: every text that it tells tries everything.

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

/// Begins a line that the program never writes.
pub const FORGED: &str = "2026-03-01T00:00:00Z ERROR forged";

/// What a text may hold that steers, hides, forges or runs; `begin` stands before it. Without NUL, so that it can be an argument too.
pub fn evil(begin: &str) -> String {
    format!(
        "{begin}\u{1b}]0;owned\u{7}\u{1b}[31m\u{1b}[2J\r\n{FORGED}\n<6>{FORGED}\r\nBcc: thief@example.com\r\n\r\n\u{9b}8m\u{85}\u{7f}\
         \u{202e}gpj.exe\u{2066}\u{200b}\u{feff}\u{e0041}\u{ad}<script>alert(1)</script><!channel> <@U1> @everyone \
         [a](javascript:x) *_~`| ]]> --> \"'& {{7*7}} {{% raw %}} END:VEVENT"
    )
}

/// The same with a NUL.
fn worst(begin: &str) -> String {
    format!("{}\0", evil(begin))
}

/// Stands in texts where half of a pair of surrogates is to stand, which no writer of JSON would write.
const HALF: &str = "half-of-a-pair";

/// Slugs that the list names. Those that can be asked for have data.
pub fn ids() -> Vec<String> {
    let begins = ["=1+1", "+cmd", "-2", "@sum", "\t=tab", "plain"];
    let mut ids: Vec<String> = begins.iter().map(|begin| worst(begin)).collect();
    ids.extend(["=1+cmd|'!A0", "+1+1", "-1-1", "@SUM(A1)", "alpha", "<script>", "\u{202e}ahpla", "silent"].map(str::to_owned));
    ids.push("x".repeat(10_000));
    ids
}

/// A source on a socket. What it tells can be changed while it runs.
#[derive(Clone, Default)]
pub struct World(Arc<AtomicU32>);

impl World {
    pub async fn start(ending: CancellationToken) -> (Self, SocketAddr) {
        let world = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().fallback(answer).with_state(world.clone());
        tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
        (world, address)
    }

    /// Schedules move, parts get other names, things happen.
    pub fn change(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn answer(State(world): State<World>, uri: Uri) -> impl IntoResponse {
    let changed = world.0.load(Ordering::SeqCst);
    let (status, body) = match told(uri.path(), changed) {
        Some(data) => (StatusCode::OK, envelope(data)),
        None => {
            let message = worst("no");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                json!({"status": false, "statusCode": 500, "errorMessage": message, "message": message}),
            )
        }
    };
    let text = body.to_string().replace(HALF, "\\ud800");
    (status, [(header::CONTENT_TYPE, "application/json")], text)
}

fn envelope(data: Value) -> Value {
    let rows = data.as_array().map_or(1, Vec::len);
    json!({
        "metadata": {"queryDate": at(0), "credit": {"used": 5, "limit": 100_000, "resetAt": at(20)}, "page": 1, "pageSize": 100,
            "totalPages": 1, "total": rows, worst("meta"): worst("meta")},
        "status": true, "data": data
    })
}

/// Midnight, so many days from now.
fn at(days: i64) -> String {
    let day = Clock::system().now().date_naive() + TimeDelta::days(days);
    format!("{}T00:00:00Z", day.format("%Y-%m-%d"))
}

fn told(path: &str, changed: u32) -> Option<Value> {
    let tail = path.rsplit('/').next().unwrap_or_default();
    match path {
        "/v5/token/list" => Some(ids().iter().map(|id| token(id, changed)).collect()),
        "/v5/unlock/events/upcoming" => Some(ids().iter().take(7).map(|id| upcoming(id)).collect()),
        _ if tail == "silent" => None,
        _ if path.starts_with("/v5/unlock/events/") => Some(json!([event(10 + i64::from(changed), changed), event(60, changed)])),
        _ if path.starts_with("/v3/unlock/events") || path.starts_with("/v2/emission") => Some(json!([])),
        _ if path.starts_with("/v5/burn/") => Some(json!({
            "tokenName": worst("t"), "tokenSymbol": worst("="), "totalBurnAmount": 5000.0 * f64::from(changed + 1),
            "burns": (0..=changed).map(|no| json!({"burnEventLabel": worst("=burn"), "burnType": worst("+"), "burnDate": at(-1 - i64::from(no)),
                "amount": 5000.0, "pricePerToken": 1.0, "value": 5000.0,
                "metadata": {"burners": [worst("@"), "PROJECT"], "burnReasons": [worst("-")]}})).collect::<Vec<_>>(),
        })),
        _ if path.starts_with("/v5/buyback/") => Some(json!({
            "tokenName": worst("t"), "totalBuybackAmount": 5000.0,
            "buybacks": (0..=changed).map(|no| json!({"buybackEventLabel": worst("@buy"), "buybackType": worst("-"), "buybackDate": at(-1 - i64::from(no)),
                "tokenAmount": 5000.0, "value": 5000.0, "spentUnit": worst("u"), "targetAddress": worst("0x"), "resolution": worst("r"),
                "basis": worst("b")})).collect::<Vec<_>>(),
        })),
        _ if path.starts_with("/v5/allocations/") => Some(json!({
            "name": worst("n"), "symbol": worst("s"), "maxSupply": 1e9 + f64::from(changed),
            "allocations": [{"allocationName": worst("="), "allocationType": worst("+"), "standardAllocationName": worst("-"),
                "allocationAmount": 1e8 * f64::from(changed + 1)}],
        })),
        _ => None,
    }
}

fn token(id: &str, changed: u32) -> Value {
    let long = format!("{}{}", worst("=long"), "x".repeat(10_000));
    let name = if id == "alpha" { long } else { format!("{}{HALF}", worst("@name")) };
    json!({
        "id": id, "name": name, "symbol": worst("=cmd|' /C calc'!A0"), "listedMethod": worst("m"), "marketCap": 1e8, "maxSupply": 1e9,
        "circulatingSupply": 5e8, "hasBurn": true, "hasBuyback": true, "websiteUrl": worst("javascript:alert(1)"),
        "latestFundraisingRound": worst("r"), "lastUpdatedDate": at(i64::from(changed) - 9), worst("field"): worst("value")
    })
}

fn upcoming(id: &str) -> Value {
    json!({"tokenId": id, "tokenName": worst("n"), "tokenSymbol": worst("+s"), "listedMethod": worst("m"), "dataSource": worst("d"),
        "upcomingEvent": event(10, 0)})
}

fn event(days: i64, changed: u32) -> Value {
    let part = |name: &str, amount: f64| {
        json!({"unlockDate": at(days), "allocationName": worst(name), "standardAllocationName": worst("+std"), "cliffAmount": amount,
            "cliffValue": amount, "referencePrice": 1.0, "unlockPrecision": worst("second"), worst("part"): [worst("x"), {worst("y"): null}]})
    };
    let amount = 2e6 * f64::from(changed + 1);
    json!({
        "unlockDate": at(days), "tokenName": worst("t"), "tokenSymbol": worst("-s"), "listedMethod": worst("m"),
        "dataSource": format!("{}{HALF}", worst("=source")), "linearUnlocks": null,
        "cliffUnlocks": {"cliffAmount": 2.0 * amount, "cliffValue": 2.0 * amount, "valueToMarketCap": 4.0,
            "allocationBreakdown": [part(if changed == 0 { "=Team" } else { "@Renamed" }, amount), part("Team", amount)]},
        "latestUpdateDate": at(i64::from(changed) - 9), worst("event"): worst("x")
    })
}
