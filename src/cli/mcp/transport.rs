//! The transport of a session, with limits for a client that floods the server.
//!
//! A client that does not read its responses is not read either, so that unsent responses cannot fill the memory. A message that is too
//! large is skipped.

use std::sync::Arc;

use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// The maximum size of a message of the client. A rule text of the maximum size fits, even if each character is escaped.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The number of unsent responses above which no more requests are read.
const MAX_UNSENT: usize = 64;

/// Reads messages while the client reads the responses.
pub(super) struct BoundedTransport<R: AsyncRead, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, R, W>,
    /// One permit for each response that may wait to be sent.
    unsent: Arc<Semaphore>,
}

impl<R, W> BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub fn new(read: R, write: W) -> Self {
        let inner = AsyncRwTransport::new(read, write).with_max_line_length(MAX_MESSAGE_BYTES);
        Self { inner, unsent: Arc::new(Semaphore::new(MAX_UNSENT)) }
    }
}

impl<R, W> Transport<RoleServer> for BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // Requests that were read before can have more responses than permits.
        let permit = Arc::clone(&self.unsent).try_acquire_owned().ok();
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            drop(permit);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        drop(self.unsent.acquire().await.ok()?);
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ErrorData, RequestId};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::{Duration, timeout};

    use super::*;

    const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

    #[tokio::test]
    async fn client_that_does_not_read_is_not_read() {
        let (mut client, server) = tokio::io::duplex(16);
        let (read, write) = tokio::io::split(server);
        let mut transport = BoundedTransport::new(read, write);
        for id in 0..MAX_UNSENT {
            let id = RequestId::Number(i64::try_from(id).expect("small"));
            tokio::spawn(transport.send(TxJsonRpcMessage::<RoleServer>::error(ErrorData::internal_error("x", None), Some(id))));
        }
        let (mut responses, mut requests) = tokio::io::split(&mut client);
        let sent = requests.write_all(PING);
        let (received, _) =
            tokio::join!(timeout(Duration::from_millis(200), transport.receive()), timeout(Duration::from_millis(200), sent));
        assert!(received.is_err(), "{received:?}");
        // As soon as it reads, it is read.
        let rest = &PING[16..];
        let reading = async {
            let mut buffer = [0; 1024];
            while responses.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        };
        let writing = async { requests.write_all(rest).await };
        let received = tokio::select! {
            received = async { tokio::join!(transport.receive(), writing).0 } => received,
            () = reading => None,
        };
        assert!(received.is_some());
    }

    #[tokio::test]
    async fn message_that_is_too_large_is_skipped() {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(server);
        let mut transport = BoundedTransport::new(read, write);
        let (_responses, mut requests) = tokio::io::split(client);
        let writing = tokio::spawn(async move {
            let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}\n", "x".repeat(MAX_MESSAGE_BYTES));
            requests.write_all(large.as_bytes()).await?;
            requests.write_all(&String::from_utf8_lossy(PING).replace("\"id\":1", "\"id\":2").into_bytes()).await?;
            Ok::<_, std::io::Error>(requests)
        });
        let message = transport.receive().await.expect("the next message");
        assert!(format!("{message:?}").contains("Number(2)"), "{message:?}");
        writing.await.expect("ended").expect("written");
    }
}
