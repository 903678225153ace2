//! Credits of requests: taken before each is sent, and accounted for whatever becomes of it, the end of the task included.

use std::{pin::Pin, sync::Arc};

use model::{poll::PollFailure, rows::SettledRequest};

/// What a gate answers, later.
pub type GateAnswer<'a> = Pin<Box<dyn Future<Output = Result<(), PollFailure>> + Send + 'a>>;

/// Whom the client asks before it sends anything, and tells what came of it.
pub trait CreditGate: Send + Sync {
    /// Takes credits for so many requests: all of them, or none and why.
    fn reserve(&self, credits: u64) -> GateAnswer<'_>;
    /// A request that is sent now, as far as is known of it before it is over.
    fn sent(&self) -> SettledRequest;
    /// A request is over, for which a credit was taken.
    fn settle(&self, request: SettledRequest);
    /// Credits that were taken are not needed.
    fn release(&self, credits: u64);
}

/// Lets everything through: for a client that nobody pays for.
#[derive(Clone, Copy, Debug)]
pub struct OpenGate;

impl CreditGate for OpenGate {
    fn reserve(&self, _: u64) -> GateAnswer<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn sent(&self) -> SettledRequest {
        SettledRequest::default()
    }

    fn settle(&self, _: SettledRequest) {}

    fn release(&self, _: u64) {}
}

/// Credits that a fetch holds for requests that it has not sent yet.
pub(super) struct HeldCredits {
    gate: Arc<dyn CreditGate>,
    credits: u64,
}

impl HeldCredits {
    pub fn none(gate: Arc<dyn CreditGate>) -> Self {
        Self { gate, credits: 0 }
    }

    /// Takes as many as are missing from `credits`.
    pub async fn reserve(&mut self, credits: u64) -> Result<(), PollFailure> {
        let missing = credits.saturating_sub(self.credits);
        if missing > 0 {
            self.gate.reserve(missing).await?;
            self.credits += missing;
        }
        Ok(())
    }

    /// The credit of a request that is sent now.
    pub fn spend(&mut self) -> RequestCredit {
        self.credits = self.credits.saturating_sub(1);
        RequestCredit { gate: self.gate.clone(), request: self.gate.sent() }
    }
}

impl Drop for HeldCredits {
    fn drop(&mut self) {
        if self.credits > 0 {
            self.gate.release(self.credits);
        }
    }
}

/// The credit of a request under way: settled when it goes, as perhaps spent if nothing else was said.
pub(super) struct RequestCredit {
    gate: Arc<dyn CreditGate>,
    pub request: SettledRequest,
}

impl Drop for RequestCredit {
    fn drop(&mut self) {
        self.gate.settle(std::mem::take(&mut self.request));
    }
}
