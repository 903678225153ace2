//! The secret links of calendar and feed: calendar programs send no header, so the proof stands in the path. Pure.
//!
//! The tag is an HMAC under the token of `[http]`: it cannot be guessed, gives the token away to nobody, needs no table, and ends with
//! the token it was made of.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;

/// Path below which both are, and their names.
pub const PATH: &str = "feeds";
pub const CALENDAR: &str = "calendar.ics";
pub const ATOM: &str = "feed.atom";

/// Bytes of a tag: as hard to guess as a key of AES.
const TAG_BYTES: usize = 16;

/// What is signed: another use of the token makes other tags.
const PURPOSE: &[u8] = b"cliffwatch feeds 1";

/// The tag of the links that belong to a token; none of an empty one.
pub fn tag(token: &str) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, Some(token).filter(|token| !token.is_empty())?.as_bytes());
    Some(URL_SAFE_NO_PAD.encode(hmac::sign(&key, PURPOSE).as_ref().get(..TAG_BYTES)?))
}

/// The links of calendar and feed below the address of our own pages; none where that is no address of the web, or there is no token.
pub fn links(external_url: &str, token: &str) -> Option<[String; 2]> {
    let base = url::Url::parse(external_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let tag = tag(token)?;
    let link = |name: &str| {
        let mut url = base.clone();
        url.path_segments_mut().ok()?.pop_if_empty().extend([PATH, &tag, name]);
        url.set_query(None);
        url.set_fragment(None);
        Some(String::from(url))
    };
    Some([link(CALENDAR)?, link(ATOM)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_follows_from_the_token_and_from_nothing_else() {
        let [calendar, atom] = links("https://cliffwatch.example.com/base/?x=1", "t0ken").expect("links");
        let of = tag("t0ken").expect("a tag");
        assert_eq!(calendar, format!("https://cliffwatch.example.com/base/feeds/{of}/calendar.ics"));
        assert_eq!(atom, format!("https://cliffwatch.example.com/base/feeds/{of}/feed.atom"));
        assert!(of.len() == 22 && tag("t0ken2") != Some(of));
        assert_eq!((tag(""), links("file:///etc", "t0ken"), links("https://a.example", "")), (None, None, None));
    }
}
