//! Where a PostgreSQL database is, as its URL says it.

use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;

use super::PgFault;
use super::tls::{NoTlsOr, TlsProblem, client_config};

/// A server, or several of which one is the primary, a database there, and how to get in. Shows no password.
#[derive(Clone)]
pub struct PostgresPlace {
    config: Config,
    /// The same for each server alone, in their order.
    servers: Vec<Config>,
    /// The server that is asked first, and the one that let us in last.
    first: Arc<AtomicUsize>,
    entered: Arc<AtomicUsize>,
    /// How messages call it.
    name: PathBuf,
    ca_file: Option<PathBuf>,
}

/// How long one address of a server may take to be reached: of a name that has several, another one may be reached at once.
const ADDRESS: Duration = Duration::from_secs(2);

const ROOT_CERTIFICATE: &str = "sslrootcert=";

/// A URL that cannot be used. Holds no part of it: there is a password in it.
#[derive(Debug, thiserror::Error)]
#[error("it is no address of a PostgreSQL database: write it like postgres://user:password@host:5432/database")]
pub struct PlaceError;

impl fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresPlace").field(&self.name).finish()
    }
}

impl PostgresPlace {
    /// Reads `postgres://user:password@host:5432/database`, with the parameters of libpq that the driver knows, `sslrootcert` and every
    /// `sslmode`. `ca_file`, or `sslrootcert` before it, has the certificates to trust in the place of the system's. Connections to another
    /// machine are encrypted and the server's certificate checked, unless `sslmode=disable` says otherwise. Fails where it is no such URL.
    pub fn from_url(url: &str, ca_file: Option<&Path>) -> Result<Self, PlaceError> {
        let url = url.trim();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PlaceError);
        }
        let (url, named) = without_root_certificate(url);
        // Whatever is encrypted is checked whole, which is what these ask for.
        let url = url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let mut config = Config::from_str(&url).map_err(|_| PlaceError)?;
        let is_here = config.get_hosts().iter().all(is_here);
        let asks_for_mode = url.contains("sslmode=");
        if asks_for_mode && config.get_ssl_mode() == SslMode::Disable || is_here && !asks_for_mode {
            config.ssl_mode(SslMode::Disable);
        } else {
            // "Prefer" would send the password in the clear to whoever stands in between.
            config.ssl_mode(SslMode::Require);
        }
        config.application_name("cliffwatch").connect_timeout(ADDRESS).keepalives_idle(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(10));
        let name = PathBuf::from(name(&config));
        let servers = (0..config.get_hosts().len().max(config.get_hostaddrs().len())).map(|at| server(&config, at)).collect();
        let ca_file = named.or_else(|| ca_file.map(Path::to_owned));
        Ok(Self { config, servers, first: Arc::default(), entered: Arc::default(), name, ca_file })
    }

    /// Each server alone.
    pub(super) fn servers(&self) -> &[Config] {
        &self.servers
    }

    /// Every server once, by its place, beginning with the one that let us in last, unless it said nothing any more.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.servers.len());
        (0..count).map(move |step| (first + step) % count)
    }

    /// This one let us in.
    pub(super) fn enter(&self, server: usize) {
        self.first.store(server, Ordering::Relaxed);
        self.entered.store(server, Ordering::Relaxed);
    }

    /// Whether another one let us in since. Then nobody waits for an answer of this one any more: where a primary is gone without a word and
    /// its replica took its place, nothing would ever come.
    pub(super) fn was_left(&self, server: usize) -> bool {
        self.entered.load(Ordering::Relaxed) != server
    }

    /// This one says nothing any more: the others are asked before it.
    pub(super) fn avoid(&self, server: usize) {
        let next = (server + 1) % self.servers.len().max(1);
        let _ = self.first.compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Why one of them did not let us in.
    pub(super) fn explained(&self, error: tokio_postgres::Error) -> PgFault {
        if let Some(problem) = TlsProblem::of(&error) {
            return problem.into();
        }
        let is_plain = self.config.get_ssl_mode() == SslMode::Disable;
        if is_plain && error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
            return PgFault::NotAdmitted(error);
        }
        error.into()
    }

    /// How messages call it: without its password.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its address for other programs: with the user, without the password.
    pub fn without_password(&self) -> String {
        let name = self.name.display().to_string();
        match (self.config.get_user(), name.strip_prefix("postgres://")) {
            (Some(user), Some(rest)) if user.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
                format!("postgres://{user}@{rest}")
            }
            _ => name,
        }
    }

    pub(super) fn tls(&self) -> Result<NoTlsOr, PgFault> {
        if self.config.get_ssl_mode() == SslMode::Disable {
            return Ok(NoTlsOr::plain());
        }
        client_config(self.ca_file.as_deref()).map(NoTlsOr::tls)
    }
}

/// What `sslrootcert` of an address names, and the address without it: the driver does not know it.
fn without_root_certificate(url: &str) -> (String, Option<PathBuf>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (named, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|parameter| parameter.starts_with(ROOT_CERTIFICATE));
    let path = named.last().and_then(|named| named.strip_prefix(ROOT_CERTIFICATE)).map(decoded);
    // libpq's word for the authorities of the system.
    let path = path.filter(|path| !path.as_os_str().is_empty() && path != Path::new("system"));
    (format!("{address}?{}", others.join("&")), path)
}

/// A path of a query, with its `%2F` read.
fn decoded(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = others.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = others.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// One of several servers by itself: it is asked in a time of its own, so that one which is gone does not use up that of the others.
fn server(of: &Config, at: usize) -> Config {
    let mut config = Config::new();
    match of.get_hosts().get(at) {
        Some(Host::Tcp(name)) => drop(config.host(name)),
        Some(Host::Unix(path)) => drop(config.host_path(path)),
        None => {}
    }
    if let Some(address) = of.get_hostaddrs().get(at) {
        config.hostaddr(*address);
    }
    if let Some(port) = of.get_ports().get(at).or(of.get_ports().first()) {
        config.port(*port);
    }
    if let Some(user) = of.get_user() {
        config.user(user);
    }
    if let Some(password) = of.get_password() {
        config.password(password);
    }
    if let Some(database) = of.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = of.get_options() {
        config.options(options);
    }
    if let Some(name) = of.get_application_name() {
        config.application_name(name);
    }
    if let Some(limit) = of.get_connect_timeout() {
        config.connect_timeout(*limit);
    }
    if let Some(limit) = of.get_tcp_user_timeout() {
        config.tcp_user_timeout(*limit);
    }
    config.keepalives(of.get_keepalives()).keepalives_idle(of.get_keepalives_idle());
    config.ssl_mode(of.get_ssl_mode()).ssl_negotiation(of.get_ssl_negotiation());
    config.target_session_attrs(of.get_target_session_attrs()).channel_binding(of.get_channel_binding());
    config
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

fn name(config: &tokio_postgres::Config) -> String {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let host = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    };
    let hosts: Vec<String> =
        config.get_hosts().iter().enumerate().map(|(at, name)| format!("{}:{}", host(name), port(at))).collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests;
