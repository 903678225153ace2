//! The test data of the browser tests: 300 tokens, some with hostile text, firing alerts, corrections, and a dead letter.

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    extract::State,
    http::StatusCode,
    response::Html,
    routing::{get, post},
};
use chrono::TimeDelta;
use cliffwatch::{
    model::{clock::Clock, supply::Timestamp, wire},
    service as serve,
    service::{AccessPolicy, Edit, EditError, Options, Service},
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The value of `token` in `[http]`.
pub const TOKEN: &str = "token-of-the-browser-tests";
/// The total number of tokens.
const TOKENS: usize = 300;
/// The longest wait until the daemon has polled all feeds.
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);

pub struct World {
    pub folder: tempfile::TempDir,
    pages: SocketAddr,
    control: SocketAddr,
    ending: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

/// The changes of the test data that a browser step can trigger.
#[derive(Clone)]
struct Control {
    service: Service,
    now: Timestamp,
}

async fn bind() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

impl World {
    pub async fn start() -> Self {
        cliffwatch::source::install_crypto_provider();
        let (ending, now) = (CancellationToken::new(), Clock::system().now());
        let service = Service::in_memory(Options { access: AccessPolicy::Open, ..Options::default() }).expect("a service");
        service.import(serve::bundled(), |_| {}).expect("the bundled schedules");
        service.edit(|edit| fill(edit, now)).expect("filled");
        let (source, source_address) = bind().await;
        tokio::spawn(serve::serve(source, service.router(), ending.clone().cancelled_owned()));

        let (receivers, receivers_address) = bind().await;
        let router = Router::new()
            .route("/hook", post(async || StatusCode::NO_CONTENT))
            .route("/gone", post(async || (StatusCode::GONE, "no user <b>here</b>")));
        tokio::spawn(serve::serve(receivers, router, ending.clone().cancelled_owned()));

        let (control, control_address) = bind().await;
        let router = Router::new().route("/correct", post(correct)).with_state(Control { service, now });
        // A page with another origin.
        let router = router.route("/desk", get(async || Html("<!doctype html><title>Desk</title>")));
        tokio::spawn(serve::serve(control, router, ending.clone().cancelled_owned()));

        // Reserve a free port and release it: the daemon reports the port it binds only in its log.
        let (free, pages) = bind().await;
        drop(free);
        let folder = tempfile::tempdir().expect("a folder");
        write_files(folder.path(), source_address, receivers_address, pages, control_address);
        Self { folder, pages, control: control_address, ending }
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.pages)
    }

    pub fn control(&self) -> String {
        format!("http://{}", self.control)
    }

    /// Waits until every schedule was polled, the first correction was reported, and a message was rejected.
    pub async fn until_settled(&self) {
        let begun = std::time::Instant::now();
        let mut is_corrected = false;
        loop {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "the daemon did not poll all feeds in time");
            tokio::time::sleep(Duration::from_millis(300)).await;
            let Some(status) = self.json("/api/v1/status").await else { continue };
            let feeds = status["endpoints"].as_array().into_iter().flatten().find(|row| row["endpoint"] == "unlock_events");
            if feeds.and_then(|row| row["feeds"].as_u64()).unwrap_or(0) < TOKENS as u64 {
                continue;
            }
            if !is_corrected {
                is_corrected = reqwest::Client::new().post(format!("{}/correct", self.control())).send().await.is_ok();
            }
            let changes = self.json("/api/v1/changes").await;
            let has_changes = changes.as_ref().is_some_and(|changes| changes.to_string().contains("rescheduled"));
            let has_dead = status["outbox"].as_array().into_iter().flatten().any(|row| row["dead"].as_u64() > Some(0));
            if has_changes && has_dead {
                return;
            }
        }
    }

    async fn json(&self, path: &str) -> Option<serde_json::Value> {
        let text = reqwest::get(format!("{}{path}", self.base())).await.ok()?.text().await.ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Moves the next event of the first hostile token and of an ordinary one by five days.
async fn correct(State(control): State<Control>) -> Result<&'static str, (StatusCode, String)> {
    let at = control.now + TimeDelta::days(20);
    let edited = control.service.edit(|edit| {
        for token in ["hostile-0", "made-001"] {
            let events = edit.events(token)?;
            let coming = events.iter().filter_map(|event| event.unlock_date.copied()).find(|date| *date > at);
            if let Some(coming) = coming {
                edit.move_event(token, coming, coming + TimeDelta::days(5))?;
            }
        }
        Ok(())
    });
    edited.map(|()| "done").map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

const NAMES: [&str; 4] = [
    "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>",
    "\u{202e}\u{2066}evil\u{200b} \u{5d0}\u{5d1}\u{5d2} \u{645}\u{631}\u{62d}\u{628}\u{627}",
    "'\"--></title></style></svg><b>&amp;{{ 7*7 }}{% raw %}",
    "a\u{0}b\r\nSet-Cookie: x=1\t\u{1b}[31m",
];

fn fill(edit: &mut Edit<'_>, now: Timestamp) -> Result<(), EditError> {
    let known = edit.tokens()?.len();
    let long = "Ten thousand letters ".repeat(500);
    let unbroken = "X".repeat(10_000);
    let hostile = NAMES.into_iter().chain([long.as_str(), unbroken.as_str()]);
    for (place, name) in hostile.enumerate() {
        put(edit, &format!("hostile-{place}"), name, place, now)?;
    }
    for place in 0..TOKENS.saturating_sub(known + NAMES.len() + 2) {
        put(edit, &format!("made-{place:03}"), &format!("Made {place}"), place, now)?;
    }
    Ok(())
}

/// Stores a token with past and future cliffs, of second or month precision, with one or two allocations.
fn put(edit: &mut Edit<'_>, id: &str, name: &str, place: usize, now: Timestamp) -> Result<(), EditError> {
    let symbol = if id.starts_with("hostile") { name.to_owned() } else { format!("M{place:03}") };
    let item = json!({"id": id, "name": name, "symbol": symbol, "listedMethod": "AI", "marketCap": 1e7 * (place + 1) as f64, "maxSupply": 1e9,
        "hasBurn": false, "hasBuyback": false, "lastUpdatedDate": now - TimeDelta::days(1)});
    edit.put_token(&serde_json::from_value(item).expect("a token"))?;
    // Sizes spread over three orders of magnitude, like real unlocks.
    let size = 5e4 * 10_f64.powf(((place * 7919) % 1000) as f64 / 330.0).round();
    let events: Vec<wire::UnlockEvent> = (-6_i64..12)
        .map(|month| {
            let date = now + TimeDelta::days(month * 30 + (place % 29) as i64) + TimeDelta::hours(1);
            let part = |who: &str, standard: &str, amount: f64| {
                json!({"unlockDate": date, "allocationName": who, "standardAllocationName": standard, "cliffAmount": amount, "cliffValue": amount,
                    "referencePrice": 1.0, "referencePriceUpdatedTime": now, "unlockPrecision": if place.is_multiple_of(5) { "month" } else { "second" }})
            };
            let parts = match place % 3 {
                0 => vec![part(if id.starts_with("hostile") { name } else { "Team" }, "Founder / Team", size)],
                1 => vec![part("Seed", "Private Investors", size * 0.7), part("DAO", "Reserve", size * 0.3)],
                _ => vec![part("Airdrop", "Community", size)],
            };
            let event = json!({"unlockDate": date, "tokenName": name, "tokenSymbol": symbol, "listedMethod": "AI",
                "dataSource": if id.starts_with("hostile") { "javascript:window.pwned=1" } else { "https://example.org/schedule" }, "linearUnlocks": null,
                "cliffUnlocks": {"cliffAmount": size, "cliffValue": size, "valueToMarketCap": size / 1e7, "allocationBreakdown": parts},
                "latestUpdateDate": now - TimeDelta::days(2)});
            serde_json::from_value(event).expect("an event")
        })
        .collect();
    edit.put_events(id, events)
}

fn write_files(folder: &std::path::Path, source: SocketAddr, receivers: SocketAddr, pages: SocketAddr, desk: SocketAddr) {
    std::fs::create_dir(folder.join("rules")).expect("a folder");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/rules")).expect("the starter rules").flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "toml") {
            std::fs::copy(entry.path(), folder.join("rules").join(entry.file_name())).expect("copied");
        }
    }
    let config = format!(
        r#"
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 60000
[watch]
tokens = ["*"]
groups = {{ portfolio = ["arbitrum", "aptos"] }}
[schedule]
token_list    = "*/6 * * * * *"
upcoming      = "1-59/6 * * * * *"
unlock_events = "2-59/3 * * * * *"
burn          = "*/20 * * * * *"
buyback       = "5-59/20 * * * * *"
allocations   = "*/30 * * * * *"
evaluate      = "* * * * * *"
[store]
path = "browser.db"
[rules]
paths = ["rules/*.toml"]
[http]
listen = "{pages}"
external_url = "http://{pages}"
cors_origins = ["http://{desk}"]
token = "{TOKEN}"
edit_rules = true
[log]
level = "error"
[[receiver]]
name = "ops"
type = "webhook"
url = "http://{receivers}/hook"
digest = {{ at = "08:00", ahead = "30d" }}
[[receiver]]
name = "weekly"
type = "webhook"
url = "http://{receivers}/hook"
digest = {{ at = "08:00", days = ["mon"], timezone = "Europe/Zurich", ahead = "30d", sort = "share", top = 10 }}
[[receiver]]
name = "gone"
type = "webhook"
url = "http://{receivers}/gone"
[route]
receivers = ["ops"]
group_wait = "0s"
[[route.routes]]
matchers = ['severity="critical"']
receivers = ["ops", "gone"]
"#
    );
    let path = folder.join("cliffwatch.toml");
    std::fs::write(&path, config).expect("written");
    let private = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
    std::fs::set_permissions(path, private).expect("private");
}
