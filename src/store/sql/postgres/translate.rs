//! From the SQL that SQLite reads to what PostgreSQL reads. Both understand most of it; here is what is written differently:
//!
//! - a value is `?1` there and `$1` here,
//! - `INDEXED BY` is an advice for a planner that PostgreSQL does not have,
//! - `x COLLATE NOCASE` is `lower(x)`: both fold ASCII alone, since our columns compare by bytes.
//!
//! Texts and names between quotes stay as they are.

/// The statement for PostgreSQL.
pub(super) fn translate(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    for (index, part) in quoted_apart(sql).into_iter().enumerate() {
        if index % 2 == 1 {
            out.push_str(part);
        } else {
            plain(part, &mut out);
        }
    }
    out
}

/// The statement cut at its quotes: at even places what is outside of them, at odd ones what is inside, quotes included.
fn quoted_apart(sql: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = sql;
    while let Some(begin) = rest.find(['\'', '"']) {
        let (before, from_quote) = rest.split_at(begin);
        let quote = if from_quote.starts_with('"') { '"' } else { '\'' };
        let after = from_quote.get(1..).unwrap_or_default();
        let end = after.find(quote).map_or(from_quote.len(), |end| end + 2);
        let (quoted, after) = from_quote.split_at(end);
        parts.extend([before, quoted]);
        rest = after;
    }
    parts.push(rest);
    parts
}

/// What is outside of quotes.
fn plain(sql: &str, out: &mut String) {
    let mut words = sql.split_inclusive(|c: char| c.is_ascii_whitespace()).peekable();
    while let Some(word) = words.next() {
        match word.trim_end() {
            "INDEXED" if words.peek().is_some_and(|next| next.trim_end() == "BY") => {
                words.next();
                words.next();
            }
            "COLLATE" if words.peek().is_some_and(|next| next.trim_end().trim_end_matches([',', ')']) == "NOCASE") => {
                let tail = words.next().unwrap_or_default();
                fold_last(out);
                out.push_str(tail.strip_prefix("NOCASE").unwrap_or_default());
            }
            _ => out.push_str(&word.replace('?', "$")),
        }
    }
}

/// Puts the last name or value that was written into `lower(...)`.
fn fold_last(out: &mut String) {
    let text = out.trim_end();
    let begin = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || "_.$".contains(c))).map_or(0, |at| at + 1);
    let name = text.get(begin..).unwrap_or_default().to_owned();
    out.truncate(begin);
    out.push_str(&format!("lower({name})"));
}

#[cfg(test)]
mod tests;
