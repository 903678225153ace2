//! Enums of words: states, outcomes, and kinds that have one word in config, JSON, tables, and the database.

/// Declares an enum whose variants each have a word. Generates [`ALL`](crate::change::ChangeKind::ALL),
/// [`as_str`](crate::change::ChangeKind::as_str), [`parse`](crate::change::ChangeKind::parse), `Display`, `FromStr`, and the serde
/// traits.
///
/// ```
/// cliffwatch_model::words! {
///     /// The weather of a day.
///     Weather {
///         /// A clear sky.
///         Fair = "fair",
///         /// Rain for most of the day.
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
            /// All variants, in the order of their declaration.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// Their words, in the same order.
            pub const WORDS: [&'static str; Self::ALL.len()] = [$($word),*];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $( $name::$variant => $word, )*
                }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }

        /// The error suggests the word that was meant.
        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::parse(word).ok_or_else(|| match $crate::meant(word, &Self::WORDS) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("it can be {}", Self::WORDS.join(", ")),
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
