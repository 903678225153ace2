//! Everything at once on loopback, without a key or a config: the data service with the bundled schedules, the daemon that polls it,
//! two receivers of its own (a webhook, a mail server), and a scripted correction that the diff finds.
//!
//! Nothing here is special to the daemon: it runs by its schedule, over HTTP, with the starter rules and a database on disk, and
//! what is printed is what the receivers got.

use std::{
    io::{self, Write},
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
    supply::Timestamp,
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
/// Events ahead that are looked at for the correction.
const LOOK_AHEAD: TimeDelta = TimeDelta::days(400);

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

    let (tokens, events) = (imported.tokens, imported.events);
    let say = print.clone();
    let started = move |address: Option<SocketAddr>| {
        let page = address.map_or_else(|| "off".to_owned(), |address| format!("http://{address}/"));
        let text = format!(
            "cliffwatch demo: {tokens} tokens with {events} unlock events\n  status page   {page}\n  data service  http://{source_address}/v5/token/list\n  webhook       http://{webhook_address}/hook\n  mail server   smtp://{mail_address}\n  files         {}\n  Ctrl-C ends it.\n",
            folder.display()
        );
        say.send(Line::Said(text)).ok();
    };
    let correction = tokio::spawn(correct(service.clone(), print.clone(), ending.clone()));
    let ran = app.run(stop, started).await;
    ending.cancel();
    correction.abort();
    drop(print);
    printing.abort();
    ran?;
    Ok(())
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
    let rules = folder.join("rules");
    std::fs::create_dir_all(&rules).map_err(io_error("make the folder of the demo"))?;
    for (name, text) in STARTER_RULES {
        std::fs::write(rules.join(name), text).map_err(io_error("write the rules of the demo"))?;
    }
    let config = format!(
        r#"# What the demo runs on. A real config asks every few hours; this one every few seconds.
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
    std::fs::write(folder.join("cliffwatch.toml"), config).map_err(io_error("write the config of the demo"))
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
        Ok(done) => format!("\n── the source corrects itself, silently: {} ──\n", done.join("; ")),
        Err(error) => format!("\n── the scripted correction failed: {} ──\n", crate::app::chain(&error)),
    };
    print.send(Line::Said(text)).ok();
}

fn make_corrections(edit: &mut Edit<'_>, now: Timestamp) -> Result<Vec<String>, EditError> {
    let mut ahead: Vec<(Timestamp, f64, String, String)> = Vec::new();
    for token in edit.tokens()? {
        let (Some(id), symbol) = (token.id.as_str(), token.symbol.as_str().unwrap_or_default()) else { continue };
        for event in edit.events(id)? {
            let (Some(at), Some(value)) = (event.unlock_date.copied(), event.cliff_value()) else { continue };
            if at > now + TimeDelta::days(1) && at < now + LOOK_AHEAD {
                ahead.push((at, value, id.to_owned(), symbol.to_owned()));
            }
        }
    }
    // The largest unlocks of two tokens make the best story.
    ahead.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut done = Vec::new();
    if let Some((at, _, id, symbol)) = ahead.first() {
        edit.move_event(id, *at, *at + TimeDelta::days(5))?;
        done.push(format!("{symbol}'s unlock of {} moves by 5 days", format::day(*at)));
        if let Some((at, _, other, symbol)) = ahead.iter().find(|(_, _, other, _)| other != id) {
            edit.resize_event(other, *at, 1.5)?;
            done.push(format!("{symbol}'s unlock of {} grows by half", format::day(*at)));
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
    done.push("a burn of BNB".to_owned());
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
    done.push("a buyback of HYPE".to_owned());
    Ok(done)
}

// ---- the terminal ----

async fn print_lines(mut lines: mpsc::UnboundedReceiver<Line>, began: Instant) {
    while let Some(line) = lines.recv().await {
        let text = match line {
            Line::Said(text) => text,
            Line::Mail { to, subject, bytes } => {
                let kb = bytes.div_ceil(1024);
                format!(
                    "{}   {}  {} ({kb} KiB to {})",
                    stamp(began),
                    painted("mail   ", AnsiColor::Magenta),
                    printable(&subject),
                    printable(&to)
                )
            }
            Line::Told(body) => told(&body, began),
        };
        // Nobody reads: nothing to do.
        let _written = writeln!(anstream::stdout(), "{text}");
    }
}

fn stamp(began: Instant) -> String {
    format!("{:>5.1}s", began.elapsed().as_secs_f64())
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

/// A message of the webhook, as a few lines.
fn told(body: &Value, began: Instant) -> String {
    let kind = body.get("type").and_then(Value::as_str).unwrap_or_default();
    let alerts = body.pointer("/data/alerts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut text = String::new();
    for alert in alerts {
        let of = |path: &str| printable(alert.pointer(path).and_then(Value::as_str).unwrap_or_default());
        let color = match (kind, of("/labels/severity").as_str()) {
            ("alert.resolved", _) => AnsiColor::Green,
            (_, "critical") => AnsiColor::Red,
            (_, "warning") => AnsiColor::Yellow,
            _ => AnsiColor::Cyan,
        };
        let word = format!("{:<8}", kind.trim_start_matches("alert."));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}   {} {}", stamp(began), painted(&word, color), of("/annotations/summary")));
        let dim = Style::new().dimmed();
        text.push_str(&format!("\n                   {dim}{} · {}{dim:#}", of("/rule"), of("/reason")));
    }
    text
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
}
