//! Bodies that arrive slowly, break, or hang.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The time to send the bytes before the connection breaks.
const FLUSH_TIME: Duration = Duration::from_millis(20);

pub(super) struct PacedBody {
    pub left: Bytes,
    pub step: usize,
    pub every: Duration,
    pub pause: Option<Pin<Box<Sleep>>>,
    pub after: AfterBytes,
}

/// The end of a [`PacedBody`].
pub(super) enum AfterBytes {
    Nothing,
    Break,
    Hang,
}

impl AsyncRead for PacedBody {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.left.is_empty() {
            return match self.after {
                AfterBytes::Nothing => Poll::Ready(Ok(())),
                AfterBytes::Break => {
                    // The server sends the bytes so far only while it waits for the body.
                    let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(FLUSH_TIME)));
                    ready!(pause.as_mut().poll(context));
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by a fault")))
                }
                // Nothing wakes this task; it ends with the connection.
                AfterBytes::Hang => Poll::Pending,
            };
        }
        if !self.every.is_zero() {
            let every = self.every;
            let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(every)));
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let size = self.step.min(self.left.len()).min(buffer.remaining());
        let part = self.left.split_to(size);
        buffer.put_slice(&part);
        Poll::Ready(Ok(()))
    }
}

/// A body of this number of spaces.
pub(super) struct Spaces(pub u64);

impl AsyncRead for Spaces {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let size = usize::try_from(self.0).unwrap_or(usize::MAX).min(buffer.remaining());
        buffer.initialize_unfilled_to(size).fill(b' ');
        buffer.advance(size);
        self.0 -= u64::try_from(size).unwrap_or(self.0);
        Poll::Ready(Ok(()))
    }
}
