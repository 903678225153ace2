//! Enumerations of words: states, outcomes and kinds, each under the one word that config, JSON, tables and the database know it by.

/// Declares an enumeration of words. A variant stands beside its word, once: all of them ([`ALL`](crate::change::ChangeKind::ALL)), the
/// word ([`as_str`](crate::change::ChangeKind::as_str)), reading it ([`parse`](crate::change::ChangeKind::parse)), showing it and serde
/// are made from that.
///
/// ```
/// cliffwatch_model::words! {
///     /// How it went.
///     Weather {
///         /// No cloud.
///         Fair = "fair",
///         /// It falls.
///         Rain = "heavy rain",
///     }
/// }
/// assert_eq!(Weather::parse("heavy rain"), Some(Weather::Rain));
/// assert_eq!(Weather::ALL.map(Weather::as_str), ["fair", "heavy rain"]);
/// assert_eq!(serde_json::to_string(&Weather::Rain).unwrap(), "\"heavy rain\"");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $word)] $variant, )*
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }

        /// Says what was probably meant where it is no such word.
        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let words = Self::ALL.map(Self::as_str);
                Self::parse(word).ok_or_else(|| match $crate::closest(word, words) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it can be {}", words.join(", ")),
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
