//! The receivers of the demo: a webhook and a mail server that accept everything and pass it on to be printed, and a webhook that rejects
//! its first message.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, net::SocketAddr};

use axum::{Router, extract::State, http::StatusCode, routing::post};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{DemoError, bind, io_error, printing::DemoLine};

/// The maximum size of a mail, in bytes.
const MAX_MAIL: u64 = 4 * 1024 * 1024;
/// The maximum length of a line in a mail session, in bytes.
const MAX_LINE: u64 = 4096;

/// Starts a webhook that accepts every message at `/hook`. At `/archive` it rejects the first one, so that there is a dead letter.
pub(super) async fn webhook(print: mpsc::UnboundedSender<DemoLine>, ending: CancellationToken) -> Result<SocketAddr, DemoError> {
    async fn receive(State(print): State<mpsc::UnboundedSender<DemoLine>>, body: String) -> StatusCode {
        match serde_json::from_str(&body) {
            Ok(body) => {
                print.send(DemoLine::Webhook(Box::new(body))).ok();
                StatusCode::NO_CONTENT
            }
            Err(_) => StatusCode::BAD_REQUEST,
        }
    }
    let is_rejected = Arc::new(AtomicBool::new(false));
    let archive = move || async move {
        match is_rejected.swap(true, Ordering::Relaxed) {
            true => (StatusCode::NO_CONTENT, ""),
            false => (StatusCode::BAD_REQUEST, "the archive is not set up yet"),
        }
    };
    let listener = bind("open the webhook receiver").await?;
    let address = listener.local_addr().map_err(io_error("open the webhook receiver"))?;
    let router = Router::new().route("/hook", post(receive)).route("/archive", post(archive)).with_state(print);
    tokio::spawn(service::serve(listener, router, ending.cancelled_owned()));
    Ok(address)
}

/// Starts a mail server that accepts every mail.
pub(super) async fn mail_server(
    print: mpsc::UnboundedSender<DemoLine>,
    ending: CancellationToken,
) -> Result<SocketAddr, DemoError> {
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
                // The sender reports an interrupted session.
                let _ended = mail_session(stream, &print).await;
            });
        }
    });
    Ok(address)
}

async fn mail_session(stream: TcpStream, print: &mpsc::UnboundedSender<DemoLine>) -> io::Result<()> {
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
        let response: &[u8] = if upper.starts_with("DATA") {
            writing.write_all(b"354 go on\r\n").await?;
            let mail = read_mail(&mut reading).await?;
            let subject = subject_of(&mail);
            print.send(DemoLine::Mail { to: std::mem::take(&mut to), subject, bytes: mail.len() }).ok();
            b"250 OK\r\n"
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
        writing.write_all(response).await?;
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

/// Returns the unfolded and decoded subject.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_an_encoded_subject() {
        let mail = "From: a@b.example\r\nSubject: =?utf-8?b?QVJCOiAkMzM=?= =?utf-8?b?TSDCtyBzb29u?=\r\n plain\r\n\r\nbody";
        assert_eq!(subject_of(mail), "ARB: $33M · soon plain");
    }
}
