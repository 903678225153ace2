//! Credits of requests: reserved before a request is sent, and settled or released even if the task is canceled.

use std::{pin::Pin, sync::Arc};

use model::{config::SecretText, poll::PollFailure, rows::SettledRequest, text};

/// Keeps fingerprints of the key apart from other fingerprints of the same text.
const KEY_CONTEXT: &str = "api-key";

/// The length of a fingerprint of the key: enough to notice another key.
const KEY_FINGERPRINT_BYTES: usize = 6;

/// Returns the fingerprint of an API key in [`SettledRequest::key`]. `None` for an empty key, which is not sent.
#[must_use]
pub fn key_fingerprint(key: &SecretText) -> Option<String> {
    let key = key.expose().trim();
    (!key.is_empty()).then(|| text::fingerprint([KEY_CONTEXT, key], KEY_FINGERPRINT_BYTES))
}

pub type GateDecision<'a> = Pin<Box<dyn Future<Output = Result<(), PollFailure>> + Send + 'a>>;

/// Accounts for the credits of a client.
pub trait CreditGate: Send + Sync {
    /// Reserves all of these credits, or none.
    fn reserve(&self, credits: u64) -> GateDecision<'_>;
    /// Returns the record of a request that is sent now with the API key `key`, which may be another one than at the reservation.
    fn sent(&self, key: Option<&SecretText>) -> SettledRequest;
    /// Settles a reserved credit after its request.
    fn settle(&self, request: SettledRequest);
    /// Releases reserved credits that are not needed.
    fn release(&self, credits: u64);
}

/// A gate without limits.
#[derive(Clone, Copy, Debug)]
pub struct OpenGate;

impl CreditGate for OpenGate {
    fn reserve(&self, _: u64) -> GateDecision<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn sent(&self, _: Option<&SecretText>) -> SettledRequest {
        SettledRequest::default()
    }

    fn settle(&self, _: SettledRequest) {}

    fn release(&self, _: u64) {}
}

/// The credits that a fetch has reserved for further requests. Released on drop.
pub(super) struct ReservedCredits {
    gate: Arc<dyn CreditGate>,
    credits: u64,
}

impl ReservedCredits {
    pub fn none(gate: Arc<dyn CreditGate>) -> Self {
        Self { gate, credits: 0 }
    }

    /// Reserves more credits until `credits` are reserved.
    pub async fn reserve(&mut self, credits: u64) -> Result<(), PollFailure> {
        let missing = credits.saturating_sub(self.credits);
        if missing > 0 {
            self.gate.reserve(missing).await?;
            self.credits += missing;
        }
        Ok(())
    }

    /// Uses a reserved credit for a request that is sent now with the API key `key`.
    pub fn spend(&mut self, key: Option<&SecretText>) -> RequestCredit {
        self.credits = self.credits.saturating_sub(1);
        RequestCredit { gate: self.gate.clone(), request: self.gate.sent(key) }
    }
}

impl Drop for ReservedCredits {
    fn drop(&mut self) {
        if self.credits > 0 {
            self.gate.release(self.credits);
        }
    }
}

/// The credit of a running request. Settled on drop, by default as [`Charge::Perhaps`](model::rows::Charge::Perhaps).
pub(super) struct RequestCredit {
    gate: Arc<dyn CreditGate>,
    pub request: SettledRequest,
}

impl Drop for RequestCredit {
    fn drop(&mut self) {
        self.gate.settle(std::mem::take(&mut self.request));
    }
}
