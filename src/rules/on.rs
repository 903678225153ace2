//! What a rule listens to, and how rule files write it: `unlock`, `unlock.rescheduled`, `unlock.*`, `token`, `portfolio`, `source`.

use std::fmt;

use model::{ChangeKind, Resource};

/// What a rule listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// Records as they are: `unlock` with lead times; burns, buybacks and rounds as they appear.
    Record(Resource),
    /// A change of a record: this kind, or any.
    Change(Resource, Option<ChangeKind>),
    /// A token as a whole: windows over its unlocks, burns and buybacks.
    Token,
    /// A group of tokens, or all watched ones, as a whole.
    Portfolio,
    /// Incidents of the source, a receiver or this program.
    Source,
}

impl On {
    /// Those that are about no resource.
    const WHOLES: [On; 3] = [On::Token, On::Portfolio, On::Source];

    /// The words that stand before the dot, or alone: the resources, then what is no resource.
    pub(crate) fn first_words() -> impl Iterator<Item = &'static str> {
        Resource::ALL.into_iter().map(Resource::as_str).chain(Self::WHOLES.into_iter().filter_map(Self::whole_word))
    }

    /// What is no resource, of its word.
    pub(crate) fn parse_whole(word: &str) -> Option<Self> {
        Self::WHOLES.into_iter().find(|on| on.whole_word() == Some(word))
    }

    fn whole_word(self) -> Option<&'static str> {
        match self {
            On::Token => Some("token"),
            On::Portfolio => Some("portfolio"),
            On::Source => Some("source"),
            On::Record(_) | On::Change(..) => None,
        }
    }

    /// Everything that a rule can listen to: each resource, any change of it, each kind of change, and what is no resource.
    pub fn all() -> impl Iterator<Item = On> {
        let of_resource = |resource| {
            let kinds = ChangeKind::ALL.into_iter().filter(move |kind| kind.can_happen_to(resource));
            [On::Record(resource), On::Change(resource, None)]
                .into_iter()
                .chain(kinds.map(move |kind| On::Change(resource, Some(kind))))
        };
        Resource::ALL.into_iter().flat_map(of_resource).chain(Self::WHOLES)
    }

    /// Of the words that a rule file writes; none where nothing is called so.
    pub fn parse(word: &str) -> Option<Self> {
        Self::all().find(|on| on.to_string() == word)
    }

    /// The resource that it is about, where it is about one.
    pub(crate) fn resource(self) -> Option<Resource> {
        match self {
            On::Record(resource) | On::Change(resource, _) => Some(resource),
            On::Token | On::Portfolio | On::Source => None,
        }
    }

    /// Whether it is about a token or a group as a whole, so that windows can be asked for.
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
            On::Token | On::Portfolio | On::Source => f.write_str(self.whole_word().unwrap_or_default()),
        }
    }
}
