//! Bodies that come slowly, end early, or never end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Time for the bytes before a cut to leave.
const FLUSH: Duration = Duration::from_millis(20);

/// Bytes at a pace.
pub(super) struct PacedBody {
    pub left: Bytes,
    pub step: usize,
    pub every: Duration,
    pub pause: Option<Pin<Box<Sleep>>>,
    pub after: AfterBytes,
}

/// What comes after the bytes.
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
                    // What was written so far leaves only while the body is waited for.
                    let pause = self.pause.get_or_insert_with(|| Box::pin(sleep(FLUSH)));
                    ready!(pause.as_mut().poll(context));
                    Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "cut by a fault")))
                }
                // Nobody wakes this up; the client's time limit, or the end of the connection, does.
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

/// So many spaces.
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
