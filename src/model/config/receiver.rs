//! Receivers: mailboxes, webhooks, and programs.

use std::{collections::BTreeMap, path::PathBuf};

use super::keys::{HOUR, YEAR, settings};
use super::{Secret, SecretText, Span};
use crate::{DigestOrder, NotificationKind};

settings! {
    /// A receiver of messages.
    pub open struct ReceiverSettings {
        /// The unique name, which routes and rules refer to: letters, digits, `-`, `_`, and `.`.
        name: String => Text, required;
        /// The way messages are sent: by mail, by HTTP, or to a program.
        kind as "type": ReceiverKind => Choice(&ReceiverKind::WORDS), required;
        /// The URL of the webhook. It is a secret, because anyone who knows it can post there.
        url: Option<SecretText> => SecretUrl, webhook;
        /// A file with `url`.
        url_file: Option<PathBuf> => SecretFile, webhook;
        /// The format of the request body. Without it, `cliffwatch`. Some formats have keys of their own.
        format: Option<String> => Format, webhook;
        /// The private networks (CIDR) that the webhook may reach. Public addresses and loopback are always allowed.
        allow_networks: Vec<String> => Networks, webhook;
        /// The mail server: `smtp://host:port`, which requires STARTTLS except on loopback, or `smtps://host:port`.
        smtp: Option<String> => Smtp, email;
        /// The user name at the mail server.
        username: Option<String> => Text, email;
        /// The password at the mail server.
        password: Option<SecretText> => Secret, email;
        /// A file with `password`.
        password_file: Option<PathBuf> => SecretFile, email;
        /// The sender, such as `Cliffwatch <alerts@example.com>`.
        from: Option<String> => Mailbox, email;
        /// The mail addresses of the recipients.
        to: Vec<String> => Mailboxes, email;
        /// The absolute path of the program.
        command: Option<PathBuf> => Text, exec;
        /// The arguments of the program, passed without any change.
        args: Vec<String> => Arguments, exec;
        /// The number of instances of the program that may run at once.
        concurrency: Option<u32> => Count(1, 64), exec;
        /// A PEM file with a private certificate authority to trust in addition to the system certificates.
        tls_ca_file: Option<PathBuf> => CertificateFile;
        /// The types of messages to send. Without it, all types. Test messages, and messages about failed deliveries, are always sent.
        types: Vec<NotificationKind> => Choices(&NotificationKind::SELECTABLE);
        /// Whether to send a message when an alert is resolved. Without it, `true`.
        send_resolved: Option<bool> => Bool;
        /// The number of messages per hour, instead of `max_per_hour` of `[delivery]`.
        max_per_hour: Option<u32> => Count(1, 1_000_000);
        /// A digest at a time of the day: coming events, and changes since the last digest.
        digest: Option<DigestSettings> => Table(DigestSettings::KEYS);
        // The keys of single formats, `x_file` included, are declared with these formats in `notify::format`: a new format is one file.
        ..format_keys: BTreeMap<String, SecretText>;
    }
}

settings! {
    /// The digest of a receiver.
    pub struct DigestSettings {
        /// When to send it, in `timezone`.
        at: String => TimeOfDay;
        /// Days of the week, such as `mon` or `mon:fri`. Without them, every day.
        days: Vec<String> => Texts;
        /// The time zone of `at`. Without it, UTC.
        timezone: Option<String> => Zone;
        /// The period ahead whose events are listed. Without it, a week.
        ahead: Option<Span> => Span(HOUR, YEAR);
        /// The order of the unlocks: `value`, `share` (of market cap), or `date`. Without it, `value`.
        sort: DigestOrder => Choice(&DigestOrder::WORDS);
        /// The number of lines for cliff unlocks, and for tokens that unlock linearly. The others are only counted and added up. Without it,
        /// 50.
        top: Option<u64> => Count(1, 50);
        /// The minimum value in USD of unlocks that are listed. Smaller ones are only counted and added up.
        min_value: Option<u64> => Count(0, 1_000_000_000_000);
        /// Slugs, globs (`apt*`), and groups (`@portfolio`) of the tokens that the digest is about. Without them, all watched tokens.
        tokens: Vec<String> => Texts;
        /// Whether the digest has your positions in these tokens, from `[watch]`. Everyone who reads it then sees them.
        positions: bool => Bool;
    }
}

crate::words! {
    #[derive(Default)]
    ReceiverKind {
        Email = "email",
        #[default]
        Webhook = "webhook",
        /// A program of the operator.
        Exec = "exec",
    }
}

impl ReceiverSettings {
    fn secret_of(&self, word: &str, inline: Option<&SecretText>, file: Option<&PathBuf>) -> Secret {
        Secret {
            key: format!("receiver {:?}: {word}", self.name),
            inline: inline.cloned(),
            file: file.cloned(),
            credentials: vec![format!("{}-{word}", self.name), format!("{}_{word}", self.name)],
        }
    }

    /// The URL of the webhook.
    pub fn address(&self) -> Secret {
        self.secret_of("url", self.url.as_ref(), self.url_file.as_ref())
    }

    /// The value of a secret key of the webhook's format, given as `key` or as `key_file`.
    pub fn format_secret(&self, key: &str) -> Secret {
        let file = self.format_keys.get(&format!("{key}_file")).map(|path| PathBuf::from(path.expose()));
        self.secret_of(key, self.format_keys.get(key), file.as_ref())
    }

    /// The value of a key of the webhook's format.
    pub fn format_text(&self, key: &str) -> Option<&str> {
        self.format_keys.get(key).map(SecretText::expose)
    }

    /// The password at the mail server.
    pub fn login(&self) -> Secret {
        self.secret_of("password", self.password.as_ref(), self.password_file.as_ref())
    }
}
