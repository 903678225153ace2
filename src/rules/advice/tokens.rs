//! Checks the token patterns of rules against the known tokens. A common mistake is a symbol such as `ARB` instead of the slug.

use globset::GlobBuilder;

use model::{Diagnostic, Token, closest};

use crate::{on::On, rule::Rule};

/// The maximum number of tokens in a hint.
const MAX_NAMED: usize = 3;

/// Warns about items of a rule's `tokens` that match no watched token.
pub(super) fn unmatched(rule: &Rule, watched: &[Token], listed: &[Token]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    if rule.on == On::Source {
        return warnings;
    }
    for (pattern, span) in &rule.body.filters.written {
        let mut warn = |message: String, help: String| {
            warnings.push(Diagnostic::warning(rule.location.file.to_path_buf(), Some(span.clone()), message).help(help));
        };
        if let Some(group) = pattern.strip_prefix('@') {
            if !watched.iter().any(|token| token.groups.iter().any(|known| known == group)) {
                warn(
                    format!("no watched token is in the group `{group}`"),
                    "check `groups` and `tokens` in `[watch]`".to_owned(),
                );
            }
            continue;
        }
        let any_of = |tokens: &[Token]| matches(pattern, true, tokens);
        if any_of(watched) {
            continue;
        }
        match any_of(listed) {
            true => warn(format!("no watched token matches `{pattern}`"), "add it to `tokens` in `[watch]`".to_owned()),
            false => warn(format!("no token matches `{pattern}`"), token_hint(pattern, listed)),
        }
    }
    warnings
}

/// Returns whether a slug or glob matches one of `tokens`. Rules ignore case, `[watch]` does not.
pub fn matches(pattern: &str, any_case: bool, tokens: &[Token]) -> bool {
    let built = GlobBuilder::new(pattern).case_insensitive(any_case).literal_separator(false).backslash_escape(true).build();
    // Invalid patterns are reported elsewhere.
    let Ok(glob) = built.map(|glob| glob.compile_matcher()) else { return true };
    tokens.iter().any(|token| glob.is_match(token.id.as_str()))
}

/// Suggests a slug for a word that no listed token has as its slug.
pub fn token_hint(word: &str, listed: &[Token]) -> String {
    for (what, of) in [("symbol", Token::symbol as fn(&Token) -> &str), ("name", Token::name)] {
        let slugs: Vec<&str> =
            listed.iter().filter(|token| of(token).eq_ignore_ascii_case(word)).map(|token| token.id.as_str()).collect();
        match slugs.as_slice() {
            [] => {}
            [slug] => return format!("`{word}` is the {what} of {slug}: did you mean `{slug}`?"),
            many => {
                let named = many.iter().take(MAX_NAMED).map(|slug| format!("`{slug}`")).collect::<Vec<_>>().join(", ");
                let more = if many.len() > MAX_NAMED { ", …" } else { "" };
                return format!("`{word}` is the {what} of several tokens: use one of {named}{more}");
            }
        }
    }
    let is_glob = word.contains(['*', '?', '[', '{']);
    match closest(word, listed.iter().map(|token| token.id.as_str())).filter(|_| !is_glob) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("{} tokens are known; run `cliffwatch upcoming` to list slugs", listed.len()),
    }
}
