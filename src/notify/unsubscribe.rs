//! The unsubscribe links of digests: one click without a login (RFC 8058). Pure.
//!
//! A link contains only a tag, an HMAC of receiver and address with the database's [`LinkKey`] as key. It cannot be guessed, does not
//! reveal the address in logs of proxies, and is the same in every digest. [`owner`] finds its recipient by computing the tags of all
//! recipients in the config.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use model::config::{self, ReceiverKind};
use model::{LinkKey, ReceiverName};

/// The path prefix of the links below `external_url`.
pub const PATH: &str = "unsubscribe";

const TAG_BYTES: usize = 16;

/// The recipients that unsubscribed from digests, and the key of the links of the others.
#[derive(Clone, Debug)]
pub struct DigestConsent {
    pub key: LinkKey,
    /// Unsubscribed addresses, normalized by [`plain_address`].
    pub opted_out: Vec<String>,
}

impl DigestConsent {
    pub fn wants(&self, address: &str) -> bool {
        let address = plain_address(address);
        !self.opted_out.contains(&address)
    }
}

/// A recipient of digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscriber {
    pub receiver: ReceiverName,
    /// The mail address, normalized by [`plain_address`].
    pub address: String,
}

/// Returns all recipients of digests by mail.
pub fn subscribers(receivers: &[config::ReceiverSettings]) -> Vec<Subscriber> {
    let mails = receivers.iter().filter(|receiver| receiver.kind == ReceiverKind::Email && receiver.digest.is_some());
    mails
        .flat_map(|receiver| {
            let address = |text: &String| text.trim().parse::<lettre::message::Mailbox>().ok();
            receiver.to.iter().filter_map(address).map(|mailbox| Subscriber {
                receiver: ReceiverName::from(receiver.name.as_str()),
                address: plain_address(mailbox.email.as_ref()),
            })
        })
        .collect()
}

/// Normalizes an address to lowercase. No server in use distinguishes `Desk@` from `desk@`.
pub fn plain_address(address: &str) -> String {
    address.trim().to_ascii_lowercase()
}

/// Returns a new key, or `None` if the system provides no random bytes.
pub fn fresh_key() -> Option<LinkKey> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(LinkKey::new(bytes))
}

/// Returns the link of a recipient, or `None` if `external_url` is not an HTTP URL.
pub fn link(external_url: &str, key: &LinkKey, subscriber: &Subscriber) -> Option<String> {
    crate::link_below(external_url, &[PATH, &tag(key, subscriber)])
}

/// Returns the recipient that a tag belongs to.
pub fn owner<'a>(key: &LinkKey, tag: &str, subscribers: &'a [Subscriber]) -> Option<&'a Subscriber> {
    let given = URL_SAFE_NO_PAD.decode(tag).ok().filter(|given| given.len() == TAG_BYTES)?;
    let is_own = |subscriber: &&Subscriber| {
        let full = full_tag(key, subscriber);
        full.as_ref().get(..TAG_BYTES).is_some_and(|own| own.ct_eq(&given).into())
    };
    subscribers.iter().find(is_own)
}

fn tag(key: &LinkKey, subscriber: &Subscriber) -> String {
    let full = full_tag(key, subscriber);
    URL_SAFE_NO_PAD.encode(full.as_ref().get(..TAG_BYTES).unwrap_or_default())
}

fn full_tag(key: &LinkKey, Subscriber { receiver, address }: &Subscriber) -> hmac::Tag {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key.bytes()));
    // The length before each part makes the bytes of different pairs different.
    for part in ["cliffwatch digest", receiver.as_str(), address] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.sign()
}

#[cfg(test)]
mod tests;
