//! Everything at once on loopback, without a key or a config: the data service with the bundled schedules, the daemon that polls it,
//! two receivers of its own (a webhook, a mail server), and a scripted correction that the diff finds.
//!
//! Nothing here is special to the daemon: it runs by its schedule, over HTTP, with the starter rules and a database on disk, and
//! what is printed is what the receivers got.

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use axum::{Router, extract::State, http::StatusCode, routing::post};
use chrono::TimeDelta;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    app::{App, AppError, Drive},
    clock::Clock,
    config, format,
    serve::{self, Edit, EditError, Options, Service, ServiceError},
    supply::{Precision, Timestamp},
    wire,
};

/// The rule files that the demo and `init` write: those of the repository.
pub const STARTER_RULES: &[(&str, &str)] = &[
    ("unlocks.toml", include_str!("../rules/unlocks.toml")),
    ("changes.toml", include_str!("../rules/changes.toml")),
    ("supply.toml", include_str!("../rules/supply.toml")),
];

/// When the scripted correction comes, after the start.
const CORRECTION_AFTER: Duration = Duration::from_secs(8);
/// Longest mail that the demo's mail server takes, bytes.
const MAX_MAIL: u64 = 4 * 1024 * 1024;
/// Longest line of a mail session, bytes.
const MAX_LINE: u64 = 4096;
/// Events ahead that the correction is chosen from: near ones, of which everybody has heard by then.
const LOOK_AHEAD: TimeDelta = TimeDelta::days(45);
/// How long the last lines may take to be printed, once everything else has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The first line of the demo's config: a file without it is somebody's own, and is not replaced.
const CONFIG_MARK: &str = "# What the demo runs on. A real config asks every few hours; this one every few seconds.";

/// What keeps the demo from running.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// A place on loopback or on disk.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The data service.
    #[error("cannot fill the data service")]
    Service(#[from] ServiceError),
    /// The daemon.
    #[error(transparent)]
    App(#[from] AppError),
    /// The demo's own config.
    #[error("the demo's config is not valid:\n{0}")]
    Config(String),
    /// The folder holds a config that is not the demo's.
    #[error("{} is not the demo's, and was left as it is: name another folder with --dir", .0.display())]
    NotOurs(PathBuf),
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> DemoError {
    move |source| DemoError::Io { doing, source }
}

/// Something to print.
enum Line {
    Told(Box<Value>),
    Mail { to: String, subject: String, bytes: usize },
    Said(String),
}

/// Runs until `stop`. `folder` holds the database, config and rules; `listen` is where the status page goes.
///
/// # Errors
/// Where something of it cannot be started.
pub async fn run(folder: &Path, listen: SocketAddr, stop: impl Future<Output = ()>) -> Result<(), DemoError> {
    let began = Instant::now();
    let (print, lines) = mpsc::unbounded_channel();
    let printing = tokio::spawn(print_lines(lines, began));
    let ending = CancellationToken::new();

    let service = Service::in_memory(Options { access: serve::Access::Open, ..Options::default() })?;
    let imported = service.import(serve::bundled(), |_| {})?;
    let source = bind("open the data service").await?;
    let source_address = source.local_addr().map_err(io_error("open the data service"))?;
    let router = service.router();
    tokio::spawn(serve::serve(source, router, ending.clone().cancelled_owned()));

    let webhook_address = webhook(print.clone(), ending.clone()).await?;
    let mail_address = mail_server(print.clone(), ending.clone()).await?;

    write_files(folder, source_address, webhook_address, mail_address, listen)?;
    let loaded = config::load::load(Some(&folder.join("cliffwatch.toml")), &config::load::Environment::default());
    let Some(config) = loaded.config else {
        return Err(DemoError::Config(crate::diagnostic::render(&loaded.diagnostics, &loaded.sources, false)));
    };
    let app = App::open(config, folder, Clock::system(), Drive::Itself).await?;

    let opening = Opening {
        tokens: imported.tokens,
        events: imported.events,
        service: source_address,
        webhook: webhook_address,
        mail: mail_address,
        folder: folder.to_owned(),
    };
    let say = print.clone();
    let started = move |address: Option<SocketAddr>| {
        say.send(Line::Said(opening.words(address))).ok();
    };
    let correction = tokio::spawn(correct(service.clone(), print.clone(), ending.clone()));
    let ran = app.run(stop, started).await;
    ending.cancel();
    correction.abort();
    drop(print);
    // What was sent last is on its way to the terminal.
    let told = tokio::time::timeout(LAST_WORDS, printing).await;
    ran?;
    let told = told.ok().and_then(Result::ok).unwrap_or_default();
    let _written = writeln!(anstream::stdout(), "\nThe demo has ended: {}.", told.words());
    Ok(())
}

/// What is said once everything runs.
struct Opening {
    tokens: usize,
    events: usize,
    service: SocketAddr,
    webhook: SocketAddr,
    mail: SocketAddr,
    folder: PathBuf,
}

impl Opening {
    fn words(&self, page: Option<SocketAddr>) -> String {
        let page = page.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
        let Self { service, webhook, mail, folder, .. } = self;
        let (tokens, events) = (format::count(self.tokens, "token"), format::count(self.events, "unlock event"));
        let (after, folder) = (CORRECTION_AFTER.as_secs(), folder.display());
        format!(
            "cliffwatch demo: {tokens} with {events}, real schedules\n\
             \n  status page    {page}\
             \n  data service   http://{service}/v5/token/list\
             \n  webhook        http://{webhook}/hook\
             \n  mail server    smtp://{mail}\
             \n  from outside   cliffwatch --config {folder}/cliffwatch.toml status\n\
             \nFirst come the unlocks ahead; after {after} s the source corrects itself. Ctrl-C ends it.\n"
        )
    }
}

/// What was printed.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    alerts: usize,
    mails: usize,
}

impl Told {
    fn words(self) -> String {
        format!("{} came by webhook, {} by mail", format::count(self.alerts, "alert"), format::count(self.mails, "alert"))
    }
}

async fn bind(doing: &'static str) -> Result<TcpListener, DemoError> {
    TcpListener::bind("127.0.0.1:0").await.map_err(io_error(doing))
}

fn write_files(
    folder: &Path,
    source: SocketAddr,
    webhook: SocketAddr,
    mail: SocketAddr,
    listen: SocketAddr,
) -> Result<(), DemoError> {
    let path = folder.join("cliffwatch.toml");
    if std::fs::read_to_string(&path).is_ok_and(|text| !text.starts_with(CONFIG_MARK)) {
        return Err(DemoError::NotOurs(path));
    }
    let rules = folder.join("rules");
    std::fs::create_dir_all(&rules).map_err(io_error("make the folder of the demo"))?;
    for (name, text) in STARTER_RULES {
        std::fs::write(rules.join(name), text).map_err(io_error("write the rules of the demo"))?;
    }
    let config = format!(
        r#"{CONFIG_MARK}
[source]
base_url = "http://{source}"
legacy_base_url = "http://{source}"
requests_per_minute = 6000
concurrency = 8

[watch]
tokens = ["*"]
groups = {{ portfolio = ["arbitrum", "optimism", "aptos", "sui"] }}

[schedule]
token_list    = "*/5 * * * * *"
upcoming      = "1-59/5 * * * * *"
unlock_events = "*/3 * * * * *"
burn          = "1-59/3 * * * * *"
buyback       = "2-59/3 * * * * *"
allocations   = "*/20 * * * * *"
evaluate      = "* * * * * *"

[store]
path = "demo.db"

[rules]
paths = ["rules/*.toml"]

[http]
listen = "{listen}"
external_url = "http://{listen}"

[log]
level = "warn"

[[receiver]]
name = "ops"
type = "webhook"
url = "http://{webhook}/hook"
secret = "whsec_ZGVtby1zZWNyZXQtb2YtdGhlLWRlbW8tb25seQ=="
# All at once at the start, and each to be read by itself: elsewhere a burst comes as a few messages.
max_per_hour = 3000

[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://{mail}"
from = "Cliffwatch <alerts@cliffwatch.example>"
to = ["desk@fund.example"]

[route]
receivers = ["ops"]
[[route.routes]]
matchers = ['severity="critical"']
receivers = ["ops", "desk"]
"#
    );
    std::fs::write(path, config).map_err(io_error("write the config of the demo"))
}

// ---- the receivers ----

async fn webhook(print: mpsc::UnboundedSender<Line>, ending: CancellationToken) -> Result<SocketAddr, DemoError> {
    async fn take(State(print): State<mpsc::UnboundedSender<Line>>, body: String) -> StatusCode {
        match serde_json::from_str(&body) {
            Ok(body) => {
                print.send(Line::Told(Box::new(body))).ok();
                StatusCode::NO_CONTENT
            }
            Err(_) => StatusCode::BAD_REQUEST,
        }
    }
    let listener = bind("open the webhook receiver").await?;
    let address = listener.local_addr().map_err(io_error("open the webhook receiver"))?;
    let router = Router::new().route("/hook", post(take)).with_state(print);
    tokio::spawn(serve::serve(listener, router, ending.cancelled_owned()));
    Ok(address)
}

/// A mail server that takes everything and shows the subject.
async fn mail_server(print: mpsc::UnboundedSender<Line>, ending: CancellationToken) -> Result<SocketAddr, DemoError> {
    let listener = bind("open the mail server").await?;
    let address = listener.local_addr().map_err(io_error("open the mail server"))?;
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted { Ok((stream, _)) => stream, Err(_) => continue },
                () = ending.cancelled() => return,
            };
            let print = print.clone();
            tokio::spawn(async move {
                // A session that breaks off is the sender's to report.
                let _ended = mail_session(stream, &print).await;
            });
        }
    });
    Ok(address)
}

async fn mail_session(stream: TcpStream, print: &mpsc::UnboundedSender<Line>) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    writing.write_all(b"220 demo ESMTP\r\n").await?;
    let mut to = String::new();
    loop {
        let mut line = String::new();
        if (&mut reading).take(MAX_LINE).read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let upper = line.to_ascii_uppercase();
        let answer: &[u8] = if upper.starts_with("DATA") {
            writing.write_all(b"354 go on\r\n").await?;
            let mail = read_mail(&mut reading).await?;
            let subject = subject_of(&mail);
            print.send(Line::Mail { to: std::mem::take(&mut to), subject, bytes: mail.len() }).ok();
            b"250 taken\r\n"
        } else if upper.starts_with("EHLO") || upper.starts_with("HELO") {
            b"250-demo\r\n250 8BITMIME\r\n"
        } else if upper.starts_with("RCPT TO:") {
            to = line.trim_end().get(8..).unwrap_or_default().trim().trim_matches(['<', '>']).to_owned();
            b"250 ok\r\n"
        } else if upper.starts_with("QUIT") {
            writing.write_all(b"221 bye\r\n").await?;
            return Ok(());
        } else {
            b"250 ok\r\n"
        };
        writing.write_all(answer).await?;
    }
}

async fn read_mail(reading: &mut BufReader<tokio::net::tcp::OwnedReadHalf>) -> io::Result<String> {
    let mut mail = Vec::new();
    let mut reading = reading.take(MAX_MAIL);
    loop {
        let begin = mail.len();
        if reading.read_until(b'\n', &mut mail).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if mail.get(begin..) == Some(b".\r\n") {
            mail.truncate(begin);
            return Ok(String::from_utf8_lossy(&mail).into_owned());
        }
    }
}

/// The subject as a mail program shows it: unfolded, encoded words decoded.
fn subject_of(mail: &str) -> String {
    use base64::Engine;
    let mut subject = String::new();
    let mut lines = mail.lines();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            break;
        }
        let Some(rest) = line.strip_prefix("Subject:") else { continue };
        rest.trim().clone_into(&mut subject);
        for more in lines.by_ref().take_while(|line| line.starts_with([' ', '\t'])) {
            subject.push(' ');
            subject.push_str(more.trim());
        }
        break;
    }
    let mut plain = String::new();
    let mut was_encoded = false;
    for word in subject.split(' ') {
        let decoded = word
            .strip_prefix("=?utf-8?b?")
            .and_then(|rest| rest.strip_suffix("?="))
            .and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let is_encoded = decoded.is_some();
        if !(plain.is_empty() || was_encoded && is_encoded) {
            plain.push(' ');
        }
        plain.push_str(&decoded.unwrap_or_else(|| word.to_owned()));
        was_encoded = is_encoded;
    }
    plain
}

// ---- the correction ----

/// Moves an event, resizes one, adds a burn and a buyback, as a source does without a word.
async fn correct(service: Service, print: mpsc::UnboundedSender<Line>, ending: CancellationToken) {
    tokio::select! {
        () = tokio::time::sleep(CORRECTION_AFTER) => {}
        () = ending.cancelled() => return,
    }
    let now = Clock::system().now();
    let text = match service.edit(|edit| make_corrections(edit, now)) {
        Ok(done) => {
            let head = format!("── {} s: the source corrects itself, without a word ──", CORRECTION_AFTER.as_secs());
            format!("\n{}\n   {}\n\nWhat the daemon finds:\n", painted(&head, AnsiColor::Cyan), done.join("\n   "))
        }
        Err(error) => format!("\nthe scripted correction failed: {}\n", crate::app::chain(&error)),
    };
    print.send(Line::Said(text)).ok();
}

/// An event that may be corrected.
struct Candidate {
    at: Timestamp,
    value: f64,
    token: String,
    symbol: String,
    /// Its tokens as a share of the maximum supply.
    share: f64,
}

/// Events ahead whose date means a day, the largest first.
fn candidates(edit: &Edit<'_>, now: Timestamp) -> Result<Vec<Candidate>, EditError> {
    let mut ahead = Vec::new();
    for token in edit.tokens()? {
        let (Some(id), symbol) = (token.id.as_str(), token.symbol.as_str().unwrap_or_default()) else { continue };
        for event in edit.events(id)? {
            let (Some(at), Some(value), Some(amount)) = (event.unlock_date.copied(), event.cliff_value(), event.cliff_amount())
            else {
                continue;
            };
            let is_exact = event.interval().is_some_and(|interval| interval.precision <= Precision::Day);
            if is_exact && at > now + TimeDelta::days(1) && at < now + LOOK_AHEAD {
                let share = token.max_supply.copied().map_or(1.0, |supply| amount / supply);
                ahead.push(Candidate { at, value, token: id.to_owned(), symbol: symbol.to_owned(), share });
            }
        }
    }
    ahead.sort_by(|a, b| b.value.total_cmp(&a.value));
    Ok(ahead)
}

fn make_corrections(edit: &mut Edit<'_>, now: Timestamp) -> Result<Vec<String>, EditError> {
    let ahead = candidates(edit, now)?;
    let mut done = Vec::new();
    if let Some(moved) = ahead.first() {
        edit.move_event(&moved.token, moved.at, moved.at + TimeDelta::days(5))?;
        done.push(format!("{}: the unlock of {} moves by 5 days", moved.symbol, format::day(moved.at)));
        // One so small that the supply as a whole hardly changes: that would be a story of its own.
        let others = || ahead.iter().filter(|other| other.token != moved.token);
        if let Some(resized) = others().find(|other| other.share < 0.01).or_else(|| others().next()) {
            edit.resize_event(&resized.token, resized.at, 1.5)?;
            done.push(format!("{}: the unlock of {} grows by half", resized.symbol, format::day(resized.at)));
        }
    }
    let burn = wire::Burn {
        burn_event_label: "Quarterly BNB burn".to_owned().into(),
        burn_type: "PROGRAMMATIC".to_owned().into(),
        burn_date: now.into(),
        amount: 1_441_281.0.into(),
        price_per_token: 850.0.into(),
        value: 1_225_088_850.0.into(),
        metadata: wire::Maybe::Absent,
        extra: wire::Extra::new(),
    };
    edit.add_burn("bnb", burn)?;
    done.push("BNB: the quarterly burn is there".to_owned());
    let buyback = wire::Buyback {
        buyback_event_label: "Assistance Fund".to_owned().into(),
        buyback_type: "TREASURY_BUYBACK".to_owned().into(),
        buyback_date: now.into(),
        token_amount: 1_250_000.0.into(),
        value: 48_750_000.0.into(),
        resolution: "period_net".to_owned().into(),
        basis: "estimated".to_owned().into(),
        ..wire::Buyback::default()
    };
    edit.add_buyback("hyperliquid", buyback)?;
    done.push("HYPE: a buyback is there".to_owned());
    Ok(done)
}

// ---- the terminal ----

async fn print_lines(mut lines: mpsc::UnboundedReceiver<Line>, began: Instant) -> Told {
    let mut told = Told::default();
    while let Some(line) = lines.recv().await {
        let text = match line {
            Line::Said(text) => text,
            Line::Mail { to, subject, bytes } => {
                told.mails += 1;
                let aside = format!("{} KiB to {}", bytes.div_ceil(1024), printable(&to));
                row(began, "mail", AnsiColor::Magenta, &printable(&subject), &aside, width())
            }
            Line::Told(body) => {
                let rows = rows_of(&body, began, width());
                told.alerts += rows.len();
                rows.join("\n")
            }
        };
        // Nobody reads: nothing to do.
        let _written = writeln!(anstream::stdout(), "{text}");
    }
    told
}

/// Columns of the terminal; none where standard output is something else.
fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

/// Columns in front of the text of a row.
const INDENT: usize = 18;

/// When, what it is, what it says; aside, on the same line if there is room, what made it.
fn row(began: Instant, word: &str, color: AnsiColor, text: &str, aside: &str, width: Option<usize>) -> String {
    let dim = Style::new().dimmed();
    let fits = width.is_none_or(|width| INDENT + text.chars().count() + 3 + aside.chars().count() <= width);
    let gap = if fits { "   ".to_owned() } else { format!("\n{:INDENT$}", "") };
    let word = format!("{word:<8}");
    format!("{:>6}  {}  {text}{gap}{dim}{aside}{dim:#}", stamp(began), painted(&word, color))
}

fn stamp(began: Instant) -> String {
    format!("{:.1}s", began.elapsed().as_secs_f64())
}

fn painted(text: &str, color: AnsiColor) -> String {
    let style = Style::new().fg_color(Some(color.into())).bold();
    format!("{style}{text}{style:#}")
}

/// Text from outside, without anything that moves the cursor or turns the direction of writing.
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
        .take(300)
        .collect()
}

/// A message of the webhook: a row for each alert in it.
fn rows_of(body: &Value, began: Instant, width: Option<usize>) -> Vec<String> {
    let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
    let alerts = body.pointer("/data/alerts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    alerts
        .iter()
        .map(|alert| {
            let of = |path: &str| printable(alert.pointer(path).and_then(Value::as_str).unwrap_or_default());
            let severity = of("/labels/severity");
            let (word, color) = match (kind, severity.as_str()) {
                ("alert.resolved", _) => ("ended", AnsiColor::Green),
                (_, "critical") => ("critical", AnsiColor::Red),
                (_, "warning") => ("warning", AnsiColor::Yellow),
                (_, "") => ("alert", AnsiColor::Cyan),
                (_, other) => (other, AnsiColor::Cyan),
            };
            let aside = format!("{}, {}", of("/rule"), of("/reason"));
            row(began, word, color, &of("/annotations/summary"), &aside, width)
        })
        .collect()
}

/// Where a demo that is told no folder keeps its files: a fresh one below the system's place for such.
///
/// # Errors
/// Where it cannot be made.
pub fn fresh_folder() -> io::Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("cliffwatch-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_subject_is_shown_as_a_mail_program_shows_it() {
        let mail = "From: a@b.example\r\nSubject: =?utf-8?b?QVJCOiAkMzM=?= =?utf-8?b?TSDCtyBzb29u?=\r\n plain\r\n\r\nbody";
        assert_eq!(subject_of(mail), "ARB: $33M · soon plain");
    }

    #[test]
    fn what_moves_the_cursor_is_not_printed() {
        assert_eq!(printable("\u{1b}[2JARB\u{202e}\r\n"), "[2JARB");
    }

    #[test]
    fn a_row_keeps_to_the_width_of_the_terminal_and_to_one_line_in_a_pipe() {
        let row =
            |width| row(Instant::now(), "warning", AnsiColor::Yellow, "TON: $83.16M to unlock", "BigCliffAhead, lead 1d", width);
        let plain = |width| anstream::adapter::strip_str(&row(width)).to_string();
        assert_eq!(plain(None), "  0.0s  warning   TON: $83.16M to unlock   BigCliffAhead, lead 1d");
        assert_eq!(plain(Some(80)), plain(None));
        assert_eq!(plain(Some(60)), "  0.0s  warning   TON: $83.16M to unlock\n                  BigCliffAhead, lead 1d");
    }

    #[test]
    fn a_config_that_is_not_the_demos_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cliffwatch.toml");
        std::fs::write(&path, "[watch]\n").expect("written");
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let error = write_files(folder.path(), nowhere, nowhere, nowhere, nowhere).expect_err("refused");
        assert!(error.to_string().contains("is not the demo's"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).expect("still there"), "[watch]\n");
        std::fs::remove_file(&path).expect("removed");
        for _ in 0..2 {
            write_files(folder.path(), nowhere, nowhere, nowhere, nowhere).expect("its own may be replaced");
        }
    }
}
