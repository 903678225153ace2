//! The targets that a rule can subscribe to: `unlock`, `unlock.rescheduled`, `unlock.*`, `token`, `portfolio`, `source`.

use std::fmt;

use model::{ChangeKind, Resource};

/// The target that a rule subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// Records: unlocks by lead time; burns, buybacks, and funding rounds when they become known.
    Record(Resource),
    /// Changes of records, of one kind or any.
    Change(Resource, Option<ChangeKind>),
    /// A token as a whole: windows over its unlocks, burns and buybacks.
    Token,
    /// A group of tokens, or all watched ones, as a whole.
    Portfolio,
    /// Incidents of the source, a receiver or this program.
    Source,
}

impl On {
    /// The targets that are not a resource.
    const OTHER_TARGETS: [On; 3] = [On::Token, On::Portfolio, On::Source];

    /// Returns the words that can begin an `on`: the resources, then the other targets.
    pub(crate) fn first_words() -> impl Iterator<Item = &'static str> {
        Resource::ALL.into_iter().map(Resource::as_str).chain(Self::OTHER_TARGETS.into_iter().filter_map(Self::other_word))
    }

    /// Parses a target that is not a resource: `token`, `portfolio`, or `source`.
    pub(crate) fn parse_other(word: &str) -> Option<Self> {
        Self::OTHER_TARGETS.into_iter().find(|on| on.other_word() == Some(word))
    }

    fn other_word(self) -> Option<&'static str> {
        match self {
            On::Token => Some("token"),
            On::Portfolio => Some("portfolio"),
            On::Source => Some("source"),
            On::Record(_) | On::Change(..) => None,
        }
    }

    /// Returns all targets: each resource, any change of it, each kind of change, then the targets that are not a resource.
    pub fn all() -> impl Iterator<Item = On> {
        let of_resource = |resource| {
            let kinds = ChangeKind::ALL.into_iter().filter(move |kind| kind.can_happen_to(resource));
            [On::Record(resource), On::Change(resource, None)]
                .into_iter()
                .chain(kinds.map(move |kind| On::Change(resource, Some(kind))))
        };
        Resource::ALL.into_iter().flat_map(of_resource).chain(Self::OTHER_TARGETS)
    }

    /// Parses a target. `None` if it is unknown.
    pub fn parse(word: &str) -> Option<Self> {
        Self::all().find(|on| on.to_string() == word)
    }

    pub(crate) fn resource(self) -> Option<Resource> {
        match self {
            On::Record(resource) | On::Change(resource, _) => Some(resource),
            On::Token | On::Portfolio | On::Source => None,
        }
    }

    /// Returns `true` for targets whose conditions can read windows.
    pub(crate) fn has_windows(self) -> bool {
        matches!(self, On::Token | On::Portfolio)
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            On::Record(resource) => write!(f, "{resource}"),
            On::Change(resource, Some(kind)) => write!(f, "{resource}.{kind}"),
            On::Change(resource, None) => write!(f, "{resource}.*"),
            On::Token | On::Portfolio | On::Source => f.write_str(self.other_word().unwrap_or_default()),
        }
    }
}
