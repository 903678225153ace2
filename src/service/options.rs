//! How the service behaves, and who may ask.

use model::Clock;

/// How the service behaves.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who may ask.
    pub access: AccessPolicy,
    /// Requests that one key may make in a minute; none for no bound.
    pub requests_per_minute: Option<u32>,
    /// Versions from before tokens were listed by a model (unlock events v1 and v2, daily emission v1, allocations v1) answer for tokens
    /// of `listedMethod` `AI` too. Off, as the interface has it, they answer 404 for those.
    pub all_tokens: bool,
    /// Where the time comes from.
    pub clock: Clock,
}

/// Who may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessPolicy {
    /// A key is required once the database ever held one, so that revoking the last key opens nothing.
    #[default]
    KeysIfAny,
    /// A key is required, also while there is none.
    Keys,
    /// No key is asked for, and none is counted.
    Open,
}
