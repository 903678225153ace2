//! The text of a cursor in a URL. Clients return it unchanged, so its content can change with each version.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Serialize, de::DeserializeOwned};

/// Returns the text of a cursor.
pub(super) fn text(cursor: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(cursor).unwrap_or_default())
}

/// Parses the form that [`text`] writes.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_other_texts_are_rejected() {
        let cursor = ("größe/1".to_owned(), -7_i64);
        assert_eq!(parse(&text(&cursor)), Some(cursor));
        for bad in ["", "x", "1", "20@1790000000000", "e30", "W10"] {
            assert_eq!(parse::<(String, i64)>(bad), None, "{bad}");
        }
    }
}
