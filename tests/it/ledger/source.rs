//! A fake source that counts its requests. It shares no code with the program. The count includes every request that the API may charge
//! for, with a readable response or not.

use std::{
    collections::BTreeMap,
    io::Read,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chrono::{Months, TimeDelta};
use cliffwatch::model::{clock::Clock, supply::Timestamp};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The kind of response to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply {
    Good,
    /// Status 200 with an unreadable body. Charged.
    Garbage,
    /// A truncated response. Charged.
    Cut,
    /// The connection closes without a response. Charged.
    Silence,
    /// A rejection with this status. Free.
    Status(u16),
    /// Status 429 with a `retry-after` in seconds. Free.
    TooMany(u64),
}

/// The settings of the source, and its counts.
pub struct World {
    pub clock: Clock,
    pub tokens: usize,
    /// The number of events per schedule.
    pub events: usize,
    /// Rows per page, regardless of the requested size.
    pub page: usize,
    /// The quota in the responses. `None` if the API reports none.
    pub limit: Option<u64>,
    /// The start of one period. The others are whole months away.
    pub anchor: Timestamp,
    /// The maximum charge per period that the test allows.
    pub cap: u64,
    /// Faults with their frequency in percent.
    pub faults: Vec<(Reply, u8)>,
    /// Paths with this prefix return status 500.
    pub broken: Option<&'static str>,
    /// Whether `upcoming` returns an empty list.
    pub has_empty_upcoming: bool,
    /// The required API key.
    pub key: Option<String>,
    pub random: fastrand::Rng,
    /// The charge per period, keyed by start.
    pub charged: BTreeMap<Timestamp, u64>,
    pub requests: u64,
    pub rejected: u64,
    /// The charges beyond the cap.
    pub overspent: Vec<String>,
}

impl World {
    pub fn new(clock: Clock, seed: u64) -> Self {
        let anchor = clock.now() - TimeDelta::days(3);
        Self {
            clock,
            tokens: 4,
            events: 3,
            page: 5,
            limit: None,
            anchor,
            cap: u64::MAX,
            faults: Vec::new(),
            broken: None,
            has_empty_upcoming: false,
            key: None,
            random: fastrand::Rng::with_seed(seed),
            charged: BTreeMap::new(),
            requests: 0,
            rejected: 0,
            overspent: Vec::new(),
        }
    }

    /// The start and end of the period that contains `at`.
    pub fn period(&self, at: Timestamp) -> (Timestamp, Timestamp) {
        let start = |months: i32| match u32::try_from(months) {
            Ok(months) => self.anchor.checked_add_months(Months::new(months)),
            Err(_) => self.anchor.checked_sub_months(Months::new(months.unsigned_abs())),
        };
        let fits =
            |months: &i32| start(*months).is_some_and(|begin| begin <= at) && start(*months + 1).is_some_and(|end| at < end);
        let months = (-24..48).find(fits).expect("a period");
        (start(months).expect("a date"), start(months + 1).expect("a date"))
    }

    pub fn charged_now(&self) -> u64 {
        self.charged.get(&self.period(self.clock.now()).0).copied().unwrap_or(0)
    }

    /// Returns the bytes of the response, and whether to truncate them.
    fn response(&mut self, target: &str, key: Option<&str>) -> (Vec<u8>, bool) {
        self.requests += 1;
        let now = self.clock.now();
        let (begin, reset) = self.period(now);
        let roll = self.random.u8(0..100);
        let mut edge = 0;
        let mut reply = self.faults.iter().find(|(_, often)| {
            edge += often;
            roll < edge
        });
        let mut reply = reply.take().map_or(Reply::Good, |(reply, _)| *reply);
        if self.broken.is_some_and(|path| target.starts_with(path)) {
            reply = Reply::Status(500);
        }
        if self.key.as_deref().is_some_and(|wanted| key != Some(wanted)) {
            reply = Reply::Status(401);
        }
        let used = self.charged.get(&begin).copied().unwrap_or(0);
        if self.limit.is_some_and(|limit| used >= limit) {
            reply = Reply::Status(429);
        }
        let wait = match reply {
            Reply::TooMany(seconds) => format!("retry-after: {seconds}\r\n"),
            _ => String::new(),
        };
        let rejection = match reply {
            Reply::Status(status) => Some(status),
            Reply::TooMany(_) => Some(429),
            _ => None,
        };
        if let Some(status) = rejection {
            self.rejected += 1;
            let credit = self.credit(used, reset).filter(|_| status != 401);
            let metadata = credit.map_or(json!({}), |credit| json!({"credit": credit}));
            let body = json!({"metadata": metadata, "status": false, "statusCode": status, "errorMessage": "no"}).to_string();
            return (http(format!("{status} No\r\n{wait}").trim_end(), &body), false);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let page = query.split('&').find_map(|pair| pair.strip_prefix("page=")?.parse().ok()).unwrap_or(1);
        let Some((data, rows)) = self.data(path, page) else { return (http("404 Not Found", "{}"), false) };
        let used = used + 1;
        self.charged.insert(begin, used);
        if used > self.cap {
            self.overspent.push(format!("{used} of {} at {now}: {target}", self.cap));
        }
        let mut metadata = json!({"queryDate": now});
        if let Some(rows) = rows {
            let pages = rows.div_ceil(self.page).max(1);
            metadata = json!({"queryDate": now, "page": page, "pageSize": self.page, "totalPages": pages, "total": rows});
        }
        if let Some(credit) = self.credit(used, reset) {
            metadata["credit"] = credit;
        }
        let body = json!({"metadata": metadata, "status": true, "data": data}).to_string();
        match reply {
            Reply::Garbage => (http("200 OK", "<html>soon</html>"), false),
            Reply::Cut => (http("200 OK", &body), true),
            Reply::Silence => (Vec::new(), false),
            _ => (http("200 OK", &body), false),
        }
    }

    fn credit(&self, used: u64, reset: Timestamp) -> Option<Value> {
        self.limit.map(|limit| json!({"used": used, "limit": limit, "resetAt": reset}))
    }

    /// The rows of one page, and the total number of rows if the endpoint has pages.
    fn data(&self, path: &str, page: usize) -> Option<(Value, Option<usize>)> {
        let rows = |all: Vec<Value>| {
            let count = all.len();
            (json!(all.into_iter().skip((page.max(1) - 1) * self.page).take(self.page).collect::<Vec<_>>()), Some(count))
        };
        if path == "/v5/token/list" {
            let item = |n| {
                json!({"id": format!("t{n}"), "name": format!("T{n}"), "symbol": format!("T{n}"), "maxSupply": 1e9,
                "hasBurn": true, "hasBuyback": true, "lastUpdatedDate": self.anchor})
            };
            return Some((json!((0..self.tokens).map(item).collect::<Vec<_>>()), None));
        }
        let event = |n: usize| {
            let at = self.clock.now().date_naive().and_hms_opt(0, 0, 0)?.and_utc() + TimeDelta::days(30 * (n as i64 + 1));
            Some(json!({"unlockDate": at, "tokenName": "T", "tokenSymbol": "T", "latestUpdateDate": self.anchor,
                "cliffUnlocks": {"cliffAmount": 5.0, "cliffValue": 5.0, "allocationBreakdown": []}}))
        };
        if path == "/v5/unlock/events/upcoming" {
            let row = |n| Some(json!({"tokenId": format!("t{n}"), "upcomingEvent": event(0)?}));
            let tokens = if self.has_empty_upcoming { 0 } else { self.tokens };
            return Some(rows((0..tokens).filter_map(row).collect()));
        }
        let token = path.rsplit('/').next()?;
        if path.starts_with("/v5/unlock/events/") {
            return Some(rows((0..self.events).filter_map(event).collect()));
        }
        let field = match path.split('/').nth(2)? {
            "burn" => "burns",
            "buyback" => "buybacks",
            "allocations" => "allocations",
            _ => return None,
        };
        Some((json!({"tokenId": token, "name": token, field: []}), None))
    }
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

#[derive(Clone)]
pub struct Source {
    world: Arc<Mutex<World>>,
    /// The number of connections in progress.
    open: Arc<AtomicUsize>,
    pub address: String,
}

impl Source {
    pub async fn start(world: World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let source = Self { world: Arc::new(Mutex::new(world)), open: Arc::default(), address };
        let serving = source.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let source = serving.clone();
                source.open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    // The client may have disconnected.
                    let _ = source.serve(socket).await;
                    source.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        source
    }

    /// Waits until all requests are processed. Otherwise a request of a killed process could arrive after the test has advanced the
    /// clocks by a month.
    pub fn drain(&self) {
        let address = self.address.trim_start_matches("http://");
        let mut last = std::net::TcpStream::connect(address).expect("connects");
        last.shutdown(std::net::Shutdown::Write).expect("shuts down");
        // Connections are accepted in order, so all earlier ones are counted now.
        let _ = last.read(&mut [0]);
        while self.open.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("the world")
    }

    async fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(socket.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let key = head.lines().find_map(|line| line.strip_prefix("x-api-key: ")).map(str::trim);
        // A request is charged when it arrives, not when it is sent.
        let latency = self.world().random.u64(0..10);
        tokio::time::sleep(Duration::from_millis(latency)).await;
        let (bytes, is_cut) = self.world().response(&target, key);
        let pause = self.world().random.u64(0..3);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        socket.write_all(&bytes[..if is_cut { bytes.len() / 2 } else { bytes.len() }]).await?;
        socket.shutdown().await
    }
}
