//! Redacts secrets from responses, which are stored and shown, and which may repeat the receiver's URL or token.

use url::Url;

use super::text;

/// The size limit of a stored response, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 4 * 1024;

/// The minimum length of a part of a URL to treat it as a secret itself.
const MIN_SECRET_PIECE: usize = 8;

/// The minimum length, in bytes, of the beginning of a secret to redact at the end of a response that may be cut.
const MIN_CUT_PIECE: usize = 4;

pub(super) struct Scrubber {
    /// Longest first, so that a secret that contains another one is redacted as a whole.
    secrets: Vec<String>,
}

impl Scrubber {
    /// Redacts a webhook's URL, the parts of it that could be secrets, its secrets, and each of its signing secrets.
    pub(super) fn of_webhook<'a>(
        address: &str,
        url: &Url,
        signing: Option<&str>,
        secrets: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut secrets: Vec<String> = secrets.map(str::to_owned).collect();
        secrets.extend([address.trim().to_owned(), url.to_string()]);
        let path = url.path();
        if path.len() > 1 {
            secrets.push(path.to_owned());
            if let Some(query) = url.query() {
                secrets.push(format!("{path}?{query}"));
            }
        }
        let pairs = url.query_pairs();
        let pieces = path
            .split('/')
            .map(str::to_owned)
            .chain(url.query().map(str::to_owned))
            .chain(pairs.map(|(_, value)| value.into_owned()));
        secrets.extend(pieces.filter(|piece| piece.len() >= MIN_SECRET_PIECE));
        secrets.extend(url.password().filter(|password| !password.is_empty()).map(str::to_owned));
        for line in signing.unwrap_or_default().lines().map(str::trim) {
            secrets.push(line.to_owned());
            secrets.extend(line.strip_prefix("whsec_").map(str::to_owned));
        }
        Self::of(secrets)
    }

    /// Redacts these secrets, also with slashes escaped as in JSON.
    pub(super) fn of(mut secrets: Vec<String>) -> Self {
        let escaped: Vec<String> =
            secrets.iter().filter(|text| text.contains('/')).map(|text| text.replace('/', "\\/")).collect();
        secrets.extend(escaped);
        secrets.retain(|text| text.len() > 1);
        secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// Returns `text` without secrets and control characters, at most [`MAX_RESPONSE_BYTES`].
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "•••");
            }
        }
        // The response may end within a secret, because only its beginning is read.
        for secret in &self.secrets {
            let mut ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= MIN_CUT_PIECE).rev();
            let cut = ends.find(|at| secret.get(..*at).is_some_and(|head| text.ends_with(head)));
            if let Some(cut) = cut {
                text.truncate(text.len() - cut);
                text.push_str("•••");
            }
        }
        text::response(&text, MAX_RESPONSE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_cut_at_the_end_is_redacted() {
        let scrub = Scrubber::of(vec!["abcdefghijklmnop".into()]);
        assert_eq!(scrub.clean("the key is abcdefghijkl"), "the key is •••");
        assert_eq!(scrub.clean("the key is abcdefghijklmnop!"), "the key is •••!");
    }
}
