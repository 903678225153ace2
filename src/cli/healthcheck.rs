//! `healthcheck`: asks the daemon of this machine whether it is well, for supervisors that know a process by an exit code alone.
//!
//! It speaks just enough HTTP for one short answer, and reads no config where it is told the address: a config that was broken meanwhile
//! is no reason to take down a daemon that goes on with the former one.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, UsageError, print};

/// How long each step of asking may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// What answers as long as the process does, and asks nobody for a token.
const PATH: &str = "/-/healthy";
/// More than its answer is long.
const MAX_ANSWER_BYTES: u64 = 16 * 1024;

/// `healthcheck`.
#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// Where it listens; else as the config says
    #[arg(long, value_name = "ADDRESS", env = "CLIFFWATCH_HTTP__LISTEN")]
    address: Option<String>,
}

pub(super) fn run(check: &HealthcheckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let listen = match &check.address {
        Some(address) => address.clone(),
        None => invocation.load()?.0.http.listen,
    };
    let address = address_of(&listen)?;
    let answer = ask(address).with_context(|| format!("no answer of http://{address}{PATH}"))?;
    let (status, body) = read(&answer).with_context(|| format!("no answer of HTTP from {address}"))?;
    print::out(&format!("{}\n", body.trim()))?;
    Ok(if status == 200 { Exit::Done } else { Exit::Failed })
}

/// Where somebody on this machine reaches what listens there.
fn address_of(listen: &str) -> anyhow::Result<SocketAddr> {
    let listen = listen.trim();
    if listen == "off" {
        return Err(UsageError("http.listen is \"off\", so there is nobody to ask".to_owned()).into());
    }
    let mut addresses = listen.to_socket_addrs().with_context(|| format!("{listen:?} is no address"))?;
    let address = addresses.next().with_context(|| format!("{listen:?} has no address"))?;
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// One question, to its end.
fn ask(address: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // On loopback the daemon answers to names of loopback alone, elsewhere to any.
    stream.write_all(format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    match stream.take(MAX_ANSWER_BYTES).read_to_end(&mut answer) {
        // The system's word for the end of its patience is "try again", which tells nobody anything.
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::new(ErrorKind::TimedOut, format!("nothing came within {} seconds", PATIENCE.as_secs())))
        }
        Err(error) => Err(error),
        Ok(_) => Ok(answer),
    }
}

/// Status and body of an answer.
fn read(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests;
