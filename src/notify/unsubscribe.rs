//! The links by which people stop digests: RFC 8058, one click without a login. Pure.
//!
//! A link holds nothing but a tag, an HMAC under the database's [`LinkKey`] over receiver and address: it cannot be guessed or made
//! for somebody else, tells no address to whoever reads a proxy's log, and is the same in every digest. Whom it belongs to is found
//! by making the tags of all recipients that the config names.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use model::config::{self, ReceiverKind};
use model::{LinkKey, ReceiverName};

/// Path of the links below `external_url`.
pub const PATH: &str = "unsubscribe";

/// Bytes of a tag: as hard to guess as a key of AES.
const TAG_BYTES: usize = 16;

/// Who wants digests by mail, and what signs the links by which the others stop them.
#[derive(Clone, Debug)]
pub struct DigestConsent {
    /// Signs the links.
    pub key: LinkKey,
    /// Addresses that want none, as [`plain_address`] writes them.
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
    /// Mail address, as [`plain_address`] writes it.
    pub address: String,
}

/// Everyone to whom a receiver of the config mails digests.
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

/// An address as it is compared and kept: servers that tell `Desk@` from `desk@` are not found any more.
pub fn plain_address(address: &str) -> String {
    address.trim().to_ascii_lowercase()
}

/// A new key; none where the system gives no random bytes.
pub fn fresh_key() -> Option<LinkKey> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(LinkKey::new(bytes))
}

/// The link of one recipient below the address of our own pages; none where that is no address of the web.
pub fn link(external_url: &str, key: &LinkKey, subscriber: &Subscriber) -> Option<String> {
    let mut url = url::Url::parse(external_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.path_segments_mut().ok()?.pop_if_empty().extend([PATH, &tag(key, subscriber)]);
    url.set_query(None);
    url.set_fragment(None);
    Some(url.into())
}

/// Whom a tag belongs to.
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
    // Each part with its length before it, so that no two pairs make the same bytes.
    for part in ["cliffwatch digest", receiver.as_str(), address] {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part.as_bytes());
    }
    context.sign()
}

#[cfg(test)]
mod tests;
