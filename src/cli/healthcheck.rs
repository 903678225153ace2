//! `healthcheck`: checks whether the local daemon is healthy, for supervisors that read the exit code.
//!
//! It implements the minimum of HTTP, and reads no config if the address is given: a config that was broken later must not stop a
//! daemon that still runs with the earlier one.

use std::io::{Error, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::{Exit, Invocation, UsageError, print};

/// The timeout of each step of the request.
const STEP_TIMEOUT: Duration = Duration::from_secs(3);
/// An endpoint that responds while the process runs, without authentication.
const PATH: &str = "/-/healthy";
/// Larger than any response.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024;

#[derive(Debug, Args)]
pub(super) struct HealthcheckArgs {
    /// Address of the daemon; default: the address in the config
    #[arg(long, value_name = "ADDRESS", env = "CLIFFWATCH_HTTP__LISTEN")]
    address: Option<String>,
}

pub(super) fn run(check: &HealthcheckArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    let listen = match &check.address {
        Some(address) => address.clone(),
        None => invocation.load()?.0.http.listen,
    };
    let address = address_of(&listen)?;
    let response = poll(address).with_context(|| format!("no response from http://{address}{PATH}"))?;
    let (status, body) = read(&response).with_context(|| format!("no HTTP response from {address}"))?;
    print::out(&format!("{}\n", body.trim()))?;
    Ok(if status == 200 { Exit::Done } else { Exit::Failed })
}

/// Returns the address at which a local process reaches the listener.
fn address_of(listen: &str) -> anyhow::Result<SocketAddr> {
    let listen = listen.trim();
    if listen == "off" {
        return Err(UsageError("http.listen is \"off\", so the daemon has no health check".to_owned()).into());
    }
    let mut addresses = listen.to_socket_addrs().with_context(|| format!("{listen:?} is not a valid address"))?;
    let address = addresses.next().with_context(|| format!("{listen:?} has no address"))?;
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, address.port()))
}

/// Sends the request and reads the response.
fn poll(address: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, STEP_TIMEOUT)?;
    stream.set_read_timeout(Some(STEP_TIMEOUT))?;
    stream.set_write_timeout(Some(STEP_TIMEOUT))?;
    // On loopback, the daemon accepts only loopback host names; elsewhere, it accepts any.
    stream.write_all(format!("GET {PATH} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").as_bytes())?;
    let mut response = Vec::new();
    match stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut response) {
        // The system reports a timeout as "try again", which is misleading.
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::new(ErrorKind::TimedOut, format!("no data within {} s", STEP_TIMEOUT.as_secs())))
        }
        Err(error) => Err(error),
        Ok(_) => Ok(response),
    }
}

/// Parses the status and the body of a response.
fn read(response: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(response);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

#[cfg(test)]
mod tests;
