//! Where a PostgreSQL database is, as its URL says it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};

use super::PgFault;
use super::tls::{NoTlsOr, client_config};

/// A server, a database on it, and how to get in. Shows no password.
#[derive(Clone)]
pub struct PostgresPlace {
    config: tokio_postgres::Config,
    /// How messages call it.
    name: PathBuf,
    ca_file: Option<PathBuf>,
}

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
    /// Reads `postgres://user:password@host:5432/database`, with the parameters of libpq that the driver knows. `ca_file` has the
    /// certificates to trust in the place of the system's. Connections to another machine are encrypted and the server's certificate
    /// checked, unless `sslmode=disable` says otherwise. Fails where it is no such URL.
    pub fn from_url(url: &str, ca_file: Option<&Path>) -> Result<Self, PlaceError> {
        let url = url.trim();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(PlaceError);
        }
        let mut config = tokio_postgres::Config::from_str(url).map_err(|_| PlaceError)?;
        let is_here = config.get_hosts().iter().all(is_here);
        let asks_for_mode = url.contains("sslmode=");
        if asks_for_mode && config.get_ssl_mode() == SslMode::Disable || is_here && !asks_for_mode {
            config.ssl_mode(SslMode::Disable);
        } else {
            // "Prefer" would send the password in the clear to whoever stands in between.
            config.ssl_mode(SslMode::Require);
        }
        config.application_name("cliffwatch").connect_timeout(Duration::from_secs(4)).keepalives_idle(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(10));
        let name = PathBuf::from(name(&config));
        Ok(Self { config, name, ca_file: ca_file.map(Path::to_owned) })
    }

    pub(super) fn config(&self) -> &tokio_postgres::Config {
        &self.config
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
        client_config(self.ca_file.as_deref()).map(NoTlsOr::tls).map_err(PgFault::Unreachable)
    }
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
mod tests {
    use super::*;

    #[test]
    fn a_place_is_named_without_its_password() {
        let place = PostgresPlace::from_url("postgres://me:hunter2@db.example:6432/watch", None).expect("a place");
        assert_eq!(place.name(), Path::new("postgres://db.example:6432/watch"));
        assert!(!format!("{place:?}").contains("hunter2"));
        assert_eq!(place.without_password(), "postgres://me@db.example:6432/watch");
    }

    #[test]
    fn each_of_several_machines_is_named_with_its_port() {
        let name = |url: &str| PostgresPlace::from_url(url, None).expect("a place").name().display().to_string();
        let two = "postgres://me@one.example:5432,two.example:6432/watch?target_session_attrs=read-write";
        assert_eq!(name(two), "postgres://one.example:5432,two.example:6432/watch");
        assert_eq!(name("postgres://me@one.example,two.example/watch"), "postgres://one.example:5432,two.example:5432/watch");
    }

    #[test]
    fn another_machine_is_spoken_to_in_secret() {
        let mode = |url: &str| PostgresPlace::from_url(url, None).expect("a place").config.get_ssl_mode();
        assert_eq!(mode("postgres://me@db.example/watch"), SslMode::Require);
        assert_eq!(mode("postgres://me@db.example/watch?sslmode=prefer"), SslMode::Require);
        assert_eq!(mode("postgres://me@db.example/watch?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://me@127.0.0.1/watch"), SslMode::Disable);
        assert_eq!(mode("postgres://me@%2Frun%2Fpostgresql/watch"), SslMode::Disable);
        assert_eq!(mode("postgres://me@127.0.0.1/watch?sslmode=require"), SslMode::Require);
    }

    #[test]
    fn nonsense_is_refused_without_being_repeated() {
        for url in ["", "watch", "mysql://me:hunter2@db/x", "postgres://me:hunter2@db/x?port=many"] {
            let error = PostgresPlace::from_url(url, None).expect_err("refused");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
