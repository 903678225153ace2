//! Conditions on labels, in routes, silences, and inhibitions.

use std::fmt;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::{Labels, closest};

/// The maximum size of a matcher.
pub const MAX_MATCHER_BYTES: usize = 1_024;

/// The maximum memory of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A condition on one label: `severity="critical"`, `team!="ops"`, `token=~"arb.*"`, `kind!~"timeout|held"`.
///
/// `Display` and JSON use the form that [`Matcher::parse`] reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Matcher {
    label: String,
    test: MatchTest,
}

#[derive(Clone, Debug)]
enum MatchTest {
    Is(String),
    IsNot(String),
    Like(String, Regex),
    Unlike(String, Regex),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MatcherError {
    /// The problem, in lowercase and without a full stop.
    pub message: String,
    pub help: Option<String>,
}

fn wrong(message: impl Into<String>, help: impl Into<String>) -> MatcherError {
    MatcherError { message: message.into(), help: Some(help.into()) }
}

/// Labels that alerts have without a rule that sets them.
const COMMON_LABELS: [&str; 6] = ["alertname", "endpoint", "kind", "receiver", "severity", "token"];

/// The form of label names.
const LABEL_FORM: &str = "label names have letters, digits, _, - and . and do not begin with a digit";

impl Matcher {
    /// Parses a matcher: a label, one of `=`, `!=`, `=~`, `!~`, and a value, in double quotes unless it is a plain word. Patterns
    /// are anchored at both ends.
    ///
    /// # Errors
    /// If the text is not a valid matcher. The error suggests a valid form.
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        const FORM: &str = "write it like severity=\"critical\", with =, !=, =~ or !~";
        if text.len() > MAX_MATCHER_BYTES {
            return Err(wrong(format!("this matcher is longer than {MAX_MATCHER_BYTES} bytes"), "split it into several"));
        }
        let text = text.trim();
        if text.starts_with('{') {
            return Err(wrong(
                "write matchers without braces",
                "write each condition as a separate item: [\"a=\\\"b\\\"\", \"c=\\\"d\\\"\"]",
            ));
        }
        let Some(at) = text.find(['=', '!']) else {
            return Err(wrong("this matcher has no operator", FORM));
        };
        let (label, rest) = text.split_at(at);
        let label = label.trim();
        if label.is_empty() {
            return Err(wrong("this matcher names no label", FORM));
        }
        if !is_label(label) {
            return Err(wrong(format!("{label:?} is not a label name"), LABEL_FORM));
        }
        // Longer operators first, because `=~` starts with `=`.
        let Some((operator, value)) = ["=~", "!~", "!=", "="].into_iter().find_map(|op| Some((op, rest.strip_prefix(op)?)))
        else {
            return Err(wrong("`!` must be followed by `=` or `~`", FORM));
        };
        if value.starts_with('=') {
            return Err(wrong("matchers compare with a single =", FORM));
        }
        let value = value_of(value.trim())?;
        let test = match operator {
            "=" => MatchTest::Is(value),
            "!=" => MatchTest::IsNot(value),
            "=~" => MatchTest::like(value)?,
            _ => MatchTest::unlike(value)?,
        };
        Ok(Self { label: label.to_owned(), test })
    }

    /// Returns whether the condition is true for an alert with these labels. A missing label counts as empty.
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.label).map_or("", String::as_str);
        match &self.test {
            MatchTest::Is(wanted) => value == wanted,
            MatchTest::IsNot(unwanted) => value != unwanted,
            MatchTest::Like(_, pattern) => pattern.is_match(value),
            MatchTest::Unlike(_, pattern) => !pattern.is_match(value),
        }
    }

    /// Returns a matcher with these parts, as the API names them: `is_equal` with `is_regex` is `=~`, `is_equal` alone is `=`.
    ///
    /// # Errors
    /// If the label or the pattern is invalid, or if both together exceed [`MAX_MATCHER_BYTES`].
    pub fn of(label: &str, value: &str, is_regex: bool, is_equal: bool) -> Result<Self, MatcherError> {
        if label.len() + value.len() > MAX_MATCHER_BYTES {
            return Err(wrong(format!("this matcher is longer than {MAX_MATCHER_BYTES} bytes"), "split it into several"));
        }
        if label.is_empty() || !is_label(label) {
            return Err(wrong(format!("{label:?} is not a label name"), LABEL_FORM));
        }
        let value = value.to_owned();
        let test = match (is_regex, is_equal) {
            (false, true) => MatchTest::Is(value),
            (false, false) => MatchTest::IsNot(value),
            (true, true) => MatchTest::like(value)?,
            (true, false) => MatchTest::unlike(value)?,
        };
        Ok(Self { label: label.to_owned(), test })
    }

    /// Returns whether the condition is true for an alert without the label.
    pub fn matches_missing_label(&self) -> bool {
        self.matches(&Labels::new())
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns a doubt about a matcher that no known alert matches: its label has another spelling, or its value is close to a known one.
    /// `labels` are those of the known alerts, and `values` are other known values of the label.
    pub fn doubt(&self, labels: &[Labels], values: &[String]) -> Option<String> {
        let is_known = COMMON_LABELS.contains(&self.label.as_str()) || labels.iter().any(|one| one.contains_key(&self.label));
        if !is_known {
            let names = labels.iter().flat_map(Labels::keys).map(String::as_str).chain(COMMON_LABELS);
            let near = closest(&self.label, names).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Some(format!("no open alert has the label {:?}{near}", self.label));
        }
        let MatchTest::Is(wanted) = &self.test else { return None };
        let known = || labels.iter().filter_map(|one| one.get(&self.label)).chain(values).map(String::as_str);
        if known().any(|value| value == wanted) {
            return None;
        }
        let near = closest(wanted, known())?;
        Some(format!("no open alert has {}={wanted:?}; did you mean {near:?}?", self.label))
    }

    /// Returns the parts that [`Self::of`] takes in addition to the label: the value, whether it is a pattern, and whether it must match.
    pub fn parts(&self) -> (&str, bool, bool) {
        match &self.test {
            MatchTest::Is(value) => (value, false, true),
            MatchTest::IsNot(value) => (value, false, false),
            MatchTest::Like(value, _) => (value, true, true),
            MatchTest::Unlike(value, _) => (value, true, false),
        }
    }

    /// Returns the value that a comparison with `=` or `!=` names; `None` for a pattern.
    pub fn compared(&self) -> Option<&str> {
        match &self.test {
            MatchTest::Is(value) | MatchTest::IsNot(value) => Some(value),
            MatchTest::Like(..) | MatchTest::Unlike(..) => None,
        }
    }

    /// Returns the JSON of the label and its value, if the matcher requires this value, and JSON writes it without escapes.
    fn json_pair(&self) -> Option<String> {
        let MatchTest::Is(value) = &self.test else { return None };
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/' | '<' | '>' | '&');
        let is_exact = !value.is_empty() && value.chars().all(is_plain);
        is_exact.then(|| format!("\"{}\":\"{value}\"", self.label))
    }

    /// Replaces the value of a comparison with `=` or `!=`. A pattern stays.
    #[must_use]
    pub fn with_compared(self, value: &str) -> Self {
        let test = match self.test {
            MatchTest::Is(_) => MatchTest::Is(value.to_owned()),
            MatchTest::IsNot(_) => MatchTest::IsNot(value.to_owned()),
            pattern @ (MatchTest::Like(..) | MatchTest::Unlike(..)) => pattern,
        };
        Self { test, ..self }
    }

    /// Returns the value or pattern to match; `None` for a negated condition.
    pub fn wanted(&self) -> Option<&str> {
        match &self.test {
            MatchTest::Is(wanted) | MatchTest::Like(wanted, _) => Some(wanted),
            MatchTest::IsNot(_) | MatchTest::Unlike(..) => None,
        }
    }
}

impl MatchTest {
    fn like(text: String) -> Result<Self, MatcherError> {
        let pattern = pattern(&text)?;
        Ok(MatchTest::Like(text, pattern))
    }

    fn unlike(text: String) -> Result<Self, MatcherError> {
        let pattern = pattern(&text)?;
        Ok(MatchTest::Unlike(text, pattern))
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operator, value) = match &self.test {
            MatchTest::Is(value) => ("=", value),
            MatchTest::IsNot(value) => ("!=", value),
            MatchTest::Like(value, _) => ("=~", value),
            MatchTest::Unlike(value, _) => ("!~", value),
        };
        write!(f, "{}{operator}\"", self.label)?;
        for c in value.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("\"")
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl TryFrom<String> for Matcher {
    type Error = MatcherError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Matcher> for String {
    fn from(matcher: Matcher) -> Self {
        matcher.to_string()
    }
}

/// The matchers of several silences.
#[derive(Clone, Debug)]
pub struct MatcherSets(Vec<MatcherSet>);

#[derive(Clone, Debug)]
struct MatcherSet {
    matchers: Vec<Matcher>,
    /// Texts that the JSON of each matching alert contains.
    pairs: Vec<String>,
}

impl MatcherSets {
    pub fn new(sets: impl IntoIterator<Item = Vec<Matcher>>) -> Self {
        let set =
            |matchers: Vec<Matcher>| MatcherSet { pairs: matchers.iter().filter_map(Matcher::json_pair).collect(), matchers };
        Self(sets.into_iter().map(set).collect())
    }

    /// Returns whether a silence may match labels, given as JSON without white space. Much faster than parsing them.
    #[must_use]
    pub fn can_match(&self, json: &str) -> bool {
        self.0.iter().any(|set| set.pairs.iter().all(|pair| json.contains(pair.as_str())))
    }

    /// Returns whether a silence matches these labels.
    #[must_use]
    pub fn match_labels(&self, labels: &Labels) -> bool {
        self.0.iter().any(|set| all_match(&set.matchers, labels))
    }
}

/// Returns whether all conditions are true.
pub fn all_match(matchers: &[Matcher], labels: &Labels) -> bool {
    matchers.iter().all(|matcher| matcher.matches(labels))
}

pub fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses the value of a matcher: a plain word, which can be empty, or a text in double quotes with the escapes `\"`, `\\`, and `\n`. Other
/// escapes are kept with their backslash, so that a pattern can contain `\d`.
///
/// # Errors
/// If a plain word contains whitespace, a quote, a comma, or a brace, if the closing quote is missing, or if text follows it.
fn value_of(text: &str) -> Result<String, MatcherError> {
    let Some(quoted) = text.strip_prefix('"') else {
        return match text.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '{' | '}')) {
            None => Ok(text.to_owned()),
            Some(_) => Err(wrong(format!("the value {text:?} needs double quotes"), "write it like team=\"market makers\"")),
        };
    };
    let mut value = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let after = chars.as_str().trim();
                return match after {
                    "" => Ok(value),
                    _ => Err(wrong(format!("{after:?} follows the value"), "write each condition as an item of its own")),
                };
            }
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some(escaped @ ('"' | '\\')) => value.push(escaped),
                Some(other) => value.extend(['\\', other]),
                None => break,
            },
            c => value.push(c),
        }
    }
    Err(wrong("the value's closing quote is missing", "end it with a double quote"))
}

fn pattern(text: &str) -> Result<Regex, MatcherError> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(MAX_PATTERN_BYTES).build();
    // Compiled alone first, so that a stray bracket cannot close the anchoring group.
    compile(text).and_then(|_| compile(&format!("^(?:{text})$"))).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => wrong("this pattern is too large", "make it shorter"),
        error => {
            // The last line of the library's message has the reason; the lines before it draw the pattern.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            wrong(format!("invalid pattern: {reason}"), "patterns are regular expressions, such as token=~\"arb.*|optimism\"")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_cannot_match_are_known_without_parsing() {
        let values = ["", "arbitrum", "arb", "a\"b", "back\\slash", "zo/ra", "T<&>", "Ünï", "two words"];
        let labels_of = |token: &str, team: &str| -> Labels {
            [("token".to_owned(), token.to_owned()), ("team".to_owned(), team.to_owned())].into()
        };
        let mut matchers =
            vec![Matcher::parse("token!=arbitrum").expect("a matcher"), Matcher::parse("team=~\"a.*\"").expect("a matcher")];
        matchers.extend(values.iter().map(|value| Matcher::of("token", value, false, true).expect("a matcher")));
        let mut skipped = 0;
        for (first, second) in matchers.iter().flat_map(|first| matchers.iter().map(move |second| (first, second))) {
            let set = vec![first.clone(), second.clone()];
            let sets = MatcherSets::new([set.clone()]);
            for labels in values.iter().flat_map(|token| values.iter().map(|team| labels_of(token, team))) {
                let json = serde_json::to_string(&labels).expect("JSON");
                let can_match = sets.can_match(&json);
                skipped += usize::from(!can_match);
                assert_eq!(can_match && sets.match_labels(&labels), all_match(&set, &labels), "{set:?} {json}");
            }
        }
        assert!(skipped > 1000, "{skipped}");
    }

    #[test]
    fn misspelled_labels_and_values_are_doubted() {
        let labels: Vec<Labels> = vec![
            [("alertname", "Big"), ("team", "desk")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into_iter()
                .collect(),
        ];
        let doubt = |text: &str| Matcher::parse(text).expect("a matcher").doubt(&labels, &["arbitrum".to_owned()]);
        assert_eq!(doubt("tokn=arbitrum").as_deref(), Some("no open alert has the label \"tokn\"; did you mean \"token\"?"));
        assert_eq!(doubt("colour=red").as_deref(), Some("no open alert has the label \"colour\""));
        assert_eq!(doubt("token=arbitrm").as_deref(), Some("no open alert has token=\"arbitrm\"; did you mean \"arbitrum\"?"));
        for fine in
            ["token=arbitrum", "token=something-else", "team=desk", "team!=desks", "severity=critical", "alertname=~\"B.*\""]
        {
            assert_eq!(doubt(fine), None, "{fine}");
        }
    }
}
