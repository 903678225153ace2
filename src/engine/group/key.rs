//! Keys of groups.

use model::text::fingerprint;

/// The maximum size in bytes of a group key. An index entry of PostgreSQL, which also contains receiver and alert, has at most 2,704 bytes.
const MAX_KEY: usize = 1_000;

/// The number of bytes of the digest in a key that was cut.
const KEY_DIGEST_BYTES: usize = 16;

/// Cuts a key that is too long to be stored. The digest of the whole key at its end keeps it unique.
pub(super) fn bounded_key(key: String) -> String {
    if key.len() <= MAX_KEY {
        return key;
    }
    let digest = fingerprint([key.as_str()], KEY_DIGEST_BYTES);
    let begin = key.get(..key.floor_char_boundary(MAX_KEY - digest.len())).unwrap_or_default();
    format!("{begin}{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_are_cut_and_stay_distinct() {
        let long = |end: &str| format!("{{}}:{{token=\"{}{end}\"}}", "ä".repeat(2_000));
        let (a, b) = (bounded_key(long("a")), bounded_key(long("b")));
        assert!(a.len() <= MAX_KEY && a != b && a[..899] == b[..899], "{a}");
        assert_eq!(bounded_key("{}:al_1".to_owned()), "{}:al_1");
    }
}
