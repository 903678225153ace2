//! Answers without secrets: what a receiver said is recorded and shown, and it may repeat its own address or token.

use url::Url;

use super::text;

/// Longest answer that is kept, bytes.
pub const MAX_ANSWER_BYTES: usize = 4 * 1024;

/// Shortest piece of an address that is taken for a secret of its own.
const MIN_SECRET_PIECE: usize = 8;

/// Shortest beginning of a secret that is looked for at the end of an answer that may be cut, bytes.
const MIN_CUT_PIECE: usize = 4;

/// Takes secrets out of a text that came from outside.
pub(super) struct Scrubber {
    /// Longest first, so that a secret within a secret leaves nothing behind.
    secrets: Vec<String>,
}

impl Scrubber {
    /// For a webhook: its address, the pieces of it that could be secrets of their own, the signing secrets, and others.
    pub(super) fn of_webhook<'a>(address: &str, url: &Url, signing: Option<&str>, others: impl Iterator<Item = &'a str>) -> Self {
        let mut secrets = vec![address.trim().to_owned(), url.to_string()];
        secrets.extend(others.map(str::to_owned));
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

    /// For these secrets, also as JSON writes their slashes.
    pub(super) fn of(mut secrets: Vec<String>) -> Self {
        let escaped: Vec<String> =
            secrets.iter().filter(|text| text.contains('/')).map(|text| text.replace('/', "\\/")).collect();
        secrets.extend(escaped);
        secrets.retain(|text| text.len() > 1);
        secrets.sort_by_key(|text| std::cmp::Reverse(text.len()));
        secrets.dedup();
        Self { secrets }
    }

    /// `text` without secrets and control characters, at most [`MAX_ANSWER_BYTES`].
    pub(super) fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "•••");
            }
        }
        // A secret that is cut by the end of what was read.
        for secret in &self.secrets {
            let mut ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= MIN_CUT_PIECE).rev();
            let cut = ends.find(|at| secret.get(..*at).is_some_and(|head| text.ends_with(head)));
            if let Some(cut) = cut {
                text.truncate(text.len() - cut);
                text.push_str("•••");
            }
        }
        text::answer(&text, MAX_ANSWER_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_cut_by_the_end_of_an_answer_leaves_no_beginning() {
        let scrub = Scrubber::of(vec!["abcdefghijklmnop".into()]);
        assert_eq!(scrub.clean("the key is abcdefghijkl"), "the key is •••");
        assert_eq!(scrub.clean("the key is abcdefghijklmnop!"), "the key is •••!");
    }
}
