//! The secret links of the calendar and the Atom feed. Calendar programs send no authorization header, so the path contains a
//! secret tag. Pure.
//!
//! The tag is an HMAC with the token of `[http]` as key. It does not reveal the token, needs no storage, and becomes invalid when
//! the token changes.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;

/// The path prefix of both links.
pub const PATH: &str = "feeds";
pub const CALENDAR: &str = "calendar.ics";
pub const ATOM: &str = "feed.atom";

const TAG_BYTES: usize = 16;

/// The signed text, so that tags for another purpose differ.
const PURPOSE: &[u8] = b"cliffwatch feeds 1";

/// Returns the tag for a token, or `None` if the token is empty.
pub fn tag(token: &str) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, Some(token).filter(|token| !token.is_empty())?.as_bytes());
    Some(URL_SAFE_NO_PAD.encode(hmac::sign(&key, PURPOSE).as_ref().get(..TAG_BYTES)?))
}

/// Returns the links of calendar and feed, or `None` if `external_url` is not an HTTP URL or the token is empty.
pub fn links(external_url: &str, token: &str) -> Option<[String; 2]> {
    let tag = tag(token)?;
    let link = |name: &str| crate::link_below(external_url, &[PATH, &tag, name]);
    Some([link(CALENDAR)?, link(ATOM)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_depends_only_on_the_token() {
        let [calendar, atom] = links("https://cliffwatch.example.com/base/?x=1", "t0ken").expect("links");
        let of = tag("t0ken").expect("a tag");
        assert_eq!(calendar, format!("https://cliffwatch.example.com/base/feeds/{of}/calendar.ics"));
        assert_eq!(atom, format!("https://cliffwatch.example.com/base/feeds/{of}/feed.atom"));
        assert!(of.len() == 22 && tag("t0ken2") != Some(of));
        assert_eq!((tag(""), links("file:///etc", "t0ken"), links("https://a.example", "")), (None, None, None));
    }
}
