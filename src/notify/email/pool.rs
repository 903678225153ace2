//! The pool of idle connections to a mail server.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lettre::transport::smtp::client::AsyncSmtpConnection;
use tokio::time::Instant;

/// The idle time after which a connection is closed. Servers close theirs after minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

// Servers limit both.
const MAX_WAITING: usize = 4;
const MAX_MAILS: u32 = 50;

/// The timeout of `QUIT` after the mail was accepted.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, PartialEq, Eq)]
pub(super) struct SmtpLogin {
    pub(super) username: String,
    pub(super) password: String,
}

/// A connection between two mails.
pub(super) struct OpenConnection {
    pub(super) connection: AsyncSmtpConnection,
    /// The login of the session. A changed password needs a new connection.
    pub(super) login: Option<SmtpLogin>,
    pub(super) mails: u32,
}

/// The idle connections. A connection is returned only after the server accepted a mail, so that no reply is outstanding.
#[derive(Clone, Default)]
pub(super) struct ConnectionPool(Arc<Mutex<Vec<(Instant, OpenConnection)>>>);

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionPool")
    }
}

impl ConnectionPool {
    /// Takes the most recently used connection with this login.
    pub(super) fn take(&self, login: &Option<SmtpLogin>) -> Option<OpenConnection> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().rposition(|(since, open)| open.login == *login && since.elapsed() < IDLE_TIMEOUT)?;
        Some(waiting.remove(at).1)
    }

    /// Keeps a connection for the next mail, until it was idle for [`IDLE_TIMEOUT`].
    pub(super) fn keep(&self, open: OpenConnection) {
        if open.mails >= MAX_MAILS {
            return quit(open.connection);
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((Instant::now(), open));
        if waiting.len() > MAX_WAITING {
            quit(waiting.remove(0).1.connection);
        }
        drop(waiting);
        let pool = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE_TIMEOUT).await;
            let mut waiting = pool.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, open) in waiting.extract_if(.., |(since, _)| since.elapsed() >= IDLE_TIMEOUT) {
                quit(open.connection);
            }
        });
    }
}

/// Ends a session with `QUIT` in the background.
pub(super) fn quit(mut connection: AsyncSmtpConnection) {
    tokio::spawn(async move {
        // The connection is dropped, whether `QUIT` succeeds or not.
        let _ended = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
    });
}
