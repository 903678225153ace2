//! The location of a PostgreSQL database, parsed from its URL.

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
use super::tls::{OptionalTls, TlsProblem, client_config};

/// A PostgreSQL database: one or several servers (of which one is the primary), the database name, and the login.
/// `Debug` shows no password.
#[derive(Clone)]
pub struct PostgresUrl {
    config: Config,
    /// The configuration of each server, in the order of the URL.
    servers: Vec<Config>,
    /// The server to try first, and the server that last accepted a connection.
    first: Arc<AtomicUsize>,
    accepted: Arc<AtomicUsize>,
    /// The name for messages, without the password.
    name: PathBuf,
    ca_file: Option<PathBuf>,
}

/// The connection timeout per IP address of a server.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);

const ROOT_CERTIFICATE: &str = "sslrootcert=";

/// A URL that is not valid. Contains no part of it, because it can contain a password.
#[derive(Debug, thiserror::Error)]
#[error("it is not a valid PostgreSQL URL; example: postgres://user:password@host:5432/database")]
pub struct PostgresUrlError;

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresUrl").field(&self.name).finish()
    }
}

impl PostgresUrl {
    /// Parses `postgres://user:password@host:5432/database`. Supports the libpq parameters of the driver,
    /// `sslrootcert`, and every `sslmode`. The certificates in `sslrootcert`, or else `ca_file`, replace the
    /// certificates that the system trusts. Connections to other machines are encrypted and verified, unless
    /// `sslmode=disable` is set.
    ///
    /// # Errors
    ///
    /// Fails if the URL is not valid.
    pub fn from_url(url: &str, ca_file: Option<&Path>) -> Result<Self, PostgresUrlError> {
        let url = url.trim();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PostgresUrlError);
        }
        let (url, named) = split_root_certificate(url);
        // Encryption always includes full verification.
        let url = url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let mut config = Config::from_str(&url).map_err(|_| PostgresUrlError)?;
        let is_local = config.get_hosts().iter().all(is_local);
        let has_ssl_mode = url.contains("sslmode=");
        if has_ssl_mode && config.get_ssl_mode() == SslMode::Disable || is_local && !has_ssl_mode {
            config.ssl_mode(SslMode::Disable);
        } else {
            // `prefer` would send the password unencrypted to an attacker in the middle.
            config.ssl_mode(SslMode::Require);
        }
        config.application_name("cliffwatch").connect_timeout(ADDRESS_TIMEOUT).keepalives_idle(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(10));
        let name = PathBuf::from(name(&config));
        let servers = (0..config.get_hosts().len().max(config.get_hostaddrs().len())).map(|at| server(&config, at)).collect();
        let ca_file = named.or_else(|| ca_file.map(Path::to_owned));
        Ok(Self { config, servers, first: Arc::default(), accepted: Arc::default(), name, ca_file })
    }

    /// Returns the configuration of each server.
    pub(super) fn servers(&self) -> &[Config] {
        &self.servers
    }

    /// Returns the indexes of all servers, in the order in which to try them.
    pub(super) fn connection_order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first.load(Ordering::Relaxed), self.servers.len());
        (0..count).map(move |step| (first + step) % count)
    }

    /// Records that a server accepted a connection.
    pub(super) fn mark_accepted(&self, server: usize) {
        self.first.store(server, Ordering::Relaxed);
        self.accepted.store(server, Ordering::Relaxed);
    }

    /// Returns whether another server has accepted a connection since. Callers then stop waiting for `server`: a
    /// primary that vanished would never respond.
    pub(super) fn is_superseded(&self, server: usize) -> bool {
        self.accepted.load(Ordering::Relaxed) != server
    }

    /// Records that a server does not respond. The others are tried before it.
    pub(super) fn avoid(&self, server: usize) {
        let next = (server + 1) % self.servers.len().max(1);
        let _ = self.first.compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Converts a connection error.
    pub(super) fn classify(&self, error: tokio_postgres::Error) -> PgFault {
        if let Some(problem) = TlsProblem::of(&error) {
            return problem.into();
        }
        let is_plain = self.config.get_ssl_mode() == SslMode::Disable;
        if is_plain && error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
            return PgFault::LoginRejected(error);
        }
        error.into()
    }

    /// Returns the name for messages, without the password.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the URL for other programs: with the user, without the password.
    pub fn without_password(&self) -> String {
        let name = self.name.display().to_string();
        match (self.config.get_user(), name.strip_prefix("postgres://")) {
            (Some(user), Some(rest)) if user.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) => {
                format!("postgres://{user}@{rest}")
            }
            _ => name,
        }
    }

    pub(super) fn tls(&self) -> Result<OptionalTls, PgFault> {
        if self.config.get_ssl_mode() == SslMode::Disable {
            return Ok(OptionalTls::plain());
        }
        client_config(self.ca_file.as_deref()).map(OptionalTls::tls)
    }
}

/// Splits `sslrootcert`, which the driver does not support, from a URL.
fn split_root_certificate(url: &str) -> (String, Option<PathBuf>) {
    let Some((address, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (named, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|parameter| parameter.starts_with(ROOT_CERTIFICATE));
    let path = named.last().and_then(|named| named.strip_prefix(ROOT_CERTIFICATE)).map(percent_decoded);
    // `system` is libpq's name for the certificates that the system trusts.
    let path = path.filter(|path| !path.as_os_str().is_empty() && path != Path::new("system"));
    (format!("{address}?{}", others.join("&")), path)
}

/// Decodes percent-encoding in a path.
fn percent_decoded(text: &str) -> PathBuf {
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

/// Returns the configuration of one server. Each has its own timeout, so that an unreachable server does not use up the
/// time of the others.
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

fn is_local(host: &Host) -> bool {
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
