//! How config keys are declared: [`settings!`] makes the struct of a section, its defaults, and its [`ConfigKey`]s from one declaration.
//! The check of a config, its JSON Schema, `init`, reloads, and the reference in `docs/configuration.md` all read these keys.

use std::{any::Any, path::PathBuf};

use super::ReceiverKind;

pub(super) const MINUTE: u64 = 60;
pub(super) const HOUR: u64 = 60 * MINUTE;
pub(super) const DAY: u64 = 24 * HOUR;
pub(super) const YEAR: u64 = 366 * DAY;

/// The values that a key accepts. Bounds are inclusive: the minimum, then the maximum. Bounds of durations are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    Text,
    /// A text, or a whole number that is taken as its text.
    TextOrNumber,
    /// A text that is never shown.
    Secret,
    /// A secret URL, https except on loopback.
    SecretUrl,
    /// A file whose existence is not checked.
    Path,
    /// A file with certificates. A missing one is a warning.
    CertificateFile,
    /// A file with a secret. A missing one is a warning, and so is one that every user can read.
    SecretFile,
    Url,
    /// `smtp://` or `smtps://`.
    Smtp,
    Span(u64, u64),
    Spans(u64, u64),
    /// A duration, or `all`.
    Reach(u64, u64),
    /// `"10%"`.
    Percent,
    /// `"16MiB"`.
    Size,
    /// A whole number. `i64::MAX` stands for no upper bound.
    Count(i64, i64),
    Number(f64, f64),
    Bool,
    /// A six-field cron pattern, or `off`.
    Cron,
    /// An IANA time zone.
    Zone,
    /// `auto`, or one of these versions, newest first.
    Version(&'static [u8]),
    Choice(&'static [&'static str]),
    /// A list of some of these words.
    Choices(&'static [&'static str]),
    /// The name of a webhook format. `notify::format` has the table of them.
    Format,
    LogFilter,
    /// An address with a port, or `off`.
    Listen,
    Mailbox,
    Mailboxes,
    /// Slugs or globs of tokens.
    Globs,
    FileGlobs,
    /// Named lists of slugs or globs.
    Groups,
    /// Amounts by the name of a token. They are never shown.
    Positions,
    /// Networks in CIDR notation.
    Networks,
    /// The name of an HTTP header.
    HeaderName,
    /// Origins of web pages: scheme, host, and port.
    Origins,
    /// Matchers of labels. They are checked where routes are built.
    Matchers,
    /// Names of receivers or of time intervals.
    Names,
    Texts,
    /// Arguments of a program. They may hold a secret.
    Arguments,
    Routes,
    /// `HH:MM`. It is checked where it is used.
    TimeOfDay,
    Table(&'static [ConfigKey]),
    Tables(&'static [ConfigKey]),
}

impl ValueKind {
    pub fn is_secret(self) -> bool {
        matches!(self, ValueKind::Secret | ValueKind::SecretUrl)
    }

    /// Returns whether the value is a list of texts.
    pub fn is_list(self) -> bool {
        matches!(
            self,
            ValueKind::Spans(..)
                | ValueKind::Mailboxes
                | ValueKind::Globs
                | ValueKind::FileGlobs
                | ValueKind::Networks
                | ValueKind::Origins
                | ValueKind::Matchers
                | ValueKind::Names
                | ValueKind::Texts
                | ValueKind::Choices(_)
                | ValueKind::Arguments
        )
    }

    /// Returns whether the value is the path of a file.
    pub fn is_file(self) -> bool {
        matches!(self, ValueKind::Path | ValueKind::CertificateFile | ValueKind::SecretFile)
    }
}

/// A key of a section, as the config file names it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfigKey {
    pub name: &'static str,
    pub kind: ValueKind,
    /// The lines of the description for users, each with the space that follows `///`.
    pub description: &'static [&'static str],
    /// Whether a table without the key is an error.
    pub is_required: bool,
    /// Whether a new value takes effect only after a restart.
    pub needs_restart: bool,
    /// The only receiver type that accepts the key. `None` if several types do.
    pub receiver: Option<ReceiverKind>,
}

impl ConfigKey {
    pub const fn new(name: &'static str, kind: ValueKind, description: &'static [&'static str]) -> Self {
        Self { name, kind, description, is_required: false, needs_restart: false, receiver: None }
    }

    pub(super) const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    pub(super) const fn restart(self) -> Self {
        Self { needs_restart: true, ..self }
    }

    pub const fn webhook(self) -> Self {
        Self { receiver: Some(ReceiverKind::Webhook), ..self }
    }

    pub(super) const fn email(self) -> Self {
        Self { receiver: Some(ReceiverKind::Email), ..self }
    }

    pub(super) const fn exec(self) -> Self {
        Self { receiver: Some(ReceiverKind::Exec), ..self }
    }
}

/// The lines of a description as one line.
pub fn one_line(description: &[&str]) -> String {
    description.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Returns the path in a value of type `PathBuf` or `Option<PathBuf>`. `None` if the value has no path.
pub(super) fn path_mut(value: &mut dyn Any) -> Option<&mut PathBuf> {
    match value.is::<PathBuf>() {
        true => value.downcast_mut(),
        false => value.downcast_mut::<Option<PathBuf>>()?.as_mut(),
    }
}

/// Declares the keys of a section or of a nested table. Each key reads
///
/// ```text
/// /// The description for users.
/// field as "name in the file": Type = default => ValueKind, flag, flag;
/// ```
///
/// Without a name, the key is called like its field. Without a default, the type's own default applies: a key that may be left out is
/// an `Option`. The flags are the builder methods of [`ConfigKey`]. An `open` struct takes up all other keys of its table in a last
/// field, `..field: Type;`.
macro_rules! settings {
    ($(#[doc = $about:literal])* pub struct $section:ident { $($keys:tt)* }) => {
        settings!(@struct [, deny_unknown_fields] $(#[doc = $about])* $section { $($keys)* });
    };
    ($(#[doc = $about:literal])* pub open struct $section:ident { $($keys:tt)* }) => {
        settings!(@struct [] $(#[doc = $about])* $section { $($keys)* });
    };
    (@struct [$($unknown:tt)*] $(#[doc = $about:literal])* $section:ident {
        $(
            $(#[doc = $description:literal])*
            $field:ident $(as $name:literal)?: $type:ty $(= $default:expr)? => $kind:expr $(, $flag:ident)*;
        )*
        $(..$others:ident: $others_type:ty;)?
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
        #[serde(default $($unknown)*)]
        pub struct $section {
            $($(#[doc = $description])* $(#[serde(rename = $name)])? pub $field: $type,)*
            $(
                /// All other keys. A number is stored as its text, and everything as a secret, since most values are.
                #[serde(flatten)]
                pub $others: $others_type,
            )?
        }

        impl $section {
            /// The lines of the description for users.
            pub const DESCRIPTION: &'static [&'static str] = &[$($about),*];

            /// The keys in the order of their fields.
            pub const KEYS: &'static [$crate::config::ConfigKey] = {
                #[allow(unused_imports, reason = "not every section has each kind")]
                use $crate::config::keys::{ConfigKey, ValueKind::*};
                &[$(ConfigKey::new(settings!(@name $field $($name)?), $kind, &[$($description),*])$(.$flag())*),*]
            };

            /// The files that the values name, each with its key.
            pub fn files_mut(&mut self) -> impl Iterator<Item = (&'static $crate::config::ConfigKey, &mut std::path::PathBuf)> {
                let values: [&mut dyn std::any::Any; Self::KEYS.len()] = [$(&mut self.$field),*];
                let files = Self::KEYS.iter().zip(values).filter(|(key, _)| key.kind.is_file());
                files.filter_map(|(key, value)| Some((key, $crate::config::keys::path_mut(value)?)))
            }

            /// Puts back each value of `current` that only a restart replaces, or every value if `is_whole`. Returns the names of the
            /// keys that had another value.
            #[allow(dead_code, reason = "tables in lists are replaced as a whole")]
            pub(super) fn keep_until_restart(&mut self, current: &Self, is_whole: bool) -> Vec<&'static str> {
                let mut keys = Self::KEYS.iter();
                let mut kept = Vec::new();
                $(if let Some(key) = keys.next()
                    && (is_whole || key.needs_restart)
                    && self.$field != current.$field
                {
                    self.$field.clone_from(&current.$field);
                    kept.push(key.name);
                })*
                kept
            }
        }

        impl Default for $section {
            fn default() -> Self {
                Self {
                    $($field: settings!(@default $($default)?),)*
                    $($others: Default::default(),)?
                }
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
}

pub(super) use settings;
