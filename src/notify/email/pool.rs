//! Connections to the mail server that wait for the next mail.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lettre::transport::smtp::client::AsyncSmtpConnection;
use tokio::time::Instant;

/// How long a connection waits for the next mail; servers drop theirs after minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Most connections that wait, and most mails over one: servers count both.
const MAX_WAITING: usize = 4;
const MAX_MAILS: u32 = 50;

/// Longest wait for a polite end, after the mail was accepted.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

/// User name and password.
pub(super) type SmtpLogin = (String, String);

/// A connection after a mail, or before the next.
pub(super) struct OpenConnection {
    pub(super) connection: AsyncSmtpConnection,
    /// As whom: a password that was changed takes a new connection.
    pub(super) login: Option<SmtpLogin>,
    /// Mails that went over it.
    pub(super) mails: u32,
}

/// Connections that wait for the next mail. One is put here only after the server took a mail, so that no answer is outstanding.
#[derive(Clone, Default)]
pub(super) struct ConnectionPool(Arc<Mutex<Vec<(Instant, OpenConnection)>>>);

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionPool")
    }
}

impl ConnectionPool {
    /// The one that was used last, if it belongs to this login.
    pub(super) fn take(&self, login: &Option<SmtpLogin>) -> Option<OpenConnection> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = waiting.iter().rposition(|(since, open)| open.login == *login && since.elapsed() < IDLE_TIMEOUT)?;
        Some(waiting.remove(at).1)
    }

    /// Keeps one for the next mail, and sees to it that it ends where none comes.
    pub(super) fn keep(&self, open: OpenConnection) {
        if open.mails >= MAX_MAILS {
            return hang_up(open.connection);
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push((Instant::now(), open));
        if waiting.len() > MAX_WAITING {
            hang_up(waiting.remove(0).1.connection);
        }
        drop(waiting);
        let pool = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(IDLE_TIMEOUT).await;
            let mut waiting = pool.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (_, open) in waiting.extract_if(.., |(since, _)| since.elapsed() >= IDLE_TIMEOUT) {
                hang_up(open.connection);
            }
        });
    }
}

/// Ends a session politely, without making anyone wait for it.
pub(super) fn hang_up(mut connection: AsyncSmtpConnection) {
    tokio::spawn(async move {
        // Whatever comes of it, the connection is dropped.
        let _ended = tokio::time::timeout(QUIT_TIMEOUT, connection.quit()).await;
    });
}
