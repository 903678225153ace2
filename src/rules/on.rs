//! The targets that a rule can subscribe to: `unlock`, `unlock.rescheduled`, `unlock.*`, `token`, `portfolio`, `source`.

use std::fmt;
use std::ops::Range;

use crate::synonyms;
use model::{ChangeKind, Resource, closest};

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

    /// Parses a target.
    ///
    /// # Errors
    ///
    /// Fails if the word is not a target. The error suggests one, by meaning or by spelling.
    pub fn read(word: &str) -> Result<Self, OnError> {
        if let Some(on) = Self::parse(word) {
            return Ok(on);
        }
        let (first, second) = word.split_once('.').map_or((word, None), |(first, second)| (first, Some(second)));
        let Some(resource) = Resource::parse(first) else { return Err(unknown_record_type(first, second)) };
        let second = second.unwrap_or_default();
        let part = first.len() + 1..word.len();
        let possible: Vec<&str> =
            ChangeKind::ALL.into_iter().filter(|kind| kind.can_happen_to(resource)).map(ChangeKind::as_str).collect();
        let any = || format!("expected {}, or `{first}.*` for any", possible.join(", "));
        if ChangeKind::parse(second).is_some() {
            return Err(OnError { part, message: format!("`{second}` cannot happen to `{first}` records"), help: any() });
        }
        let meant = synonyms::kind(second).filter(|meant| *meant == "*" || possible.contains(meant));
        let is_event = matches!(resource, Resource::Burn | Resource::Buyback | Resource::Funding);
        let help = match meant.or_else(|| closest(second, possible.iter().copied())) {
            // An added record may describe an old event. A rule on the records themselves matches only new events.
            Some("added") if is_event => format!("did you mean `{first}`? It matches each {first} when it becomes known"),
            Some(near) => format!("did you mean `{first}.{near}`?"),
            None => any(),
        };
        Err(OnError { part, message: format!("unknown change kind `{second}`"), help })
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

/// A word that is not a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnError {
    /// The wrong part of the word, in bytes.
    pub part: Range<usize>,
    pub message: String,
    pub help: String,
}

impl fmt::Display for OnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.help)
    }
}

fn unknown_record_type(first: &str, second: Option<&str>) -> OnError {
    let help = match synonyms::subject(first).or_else(|| closest(first, On::first_words())) {
        None => {
            let words = On::first_words().collect::<Vec<_>>().join(", ");
            format!("expected {words}, or a change such as `unlock.rescheduled` or `unlock.*`")
        }
        Some(near) => {
            let second = second.map(|second| format!(".{}", synonyms::kind(second).unwrap_or(second)));
            format!("did you mean `{near}{}`?", second.unwrap_or_default())
        }
    };
    OnError { part: 0..first.len(), message: format!("unknown record type `{first}`"), help }
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
