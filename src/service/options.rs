//! The options of the service.

use model::Clock;

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub access: AccessPolicy,
    /// The rate limit per key. `None` for no limit.
    pub requests_per_minute: Option<u32>,
    /// Whether old versions (unlock events v1 and v2, daily emission v1, allocations v1) also serve tokens with the listed method `AI`,
    /// for which they return 404 by default.
    pub all_tokens: bool,
    pub clock: Clock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessPolicy {
    /// Requires a key after the first key was created, even if all keys are revoked.
    #[default]
    KeysIfAny,
    /// Requires a key, even if none exists.
    Keys,
    /// Requires no key and counts no credits.
    Open,
}
