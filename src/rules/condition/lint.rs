//! Checks the text of a condition before parsing: length, nesting, and common mistakes, each reported at its position with a
//! suggestion. Text that passes is safe to parse.

use std::ops::Range;

use crate::finding::Finding;

/// The maximum length of a condition, in bytes.
pub const MAX_CONDITION: usize = 1_024;

/// The maximum nesting of brackets and of the parsed tree.
pub const MAX_DEPTH: usize = 64;

/// The kind of the last token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastToken {
    Start,
    Value,
    Dot,
    Operator,
}

/// Returns the problems of a text. Empty if it is safe to parse.
pub fn lint(text: &str) -> Vec<Finding> {
    if text.len() > MAX_CONDITION {
        let problem = format!("this condition is {} bytes long; at most {MAX_CONDITION} are allowed", text.len());
        return vec![
            Finding::error(0..text.len(), problem)
                .help("split it into several rules, or use `tokens` and `allocations` to filter"),
        ];
    }
    if text.trim().is_empty() {
        return vec![
            Finding::error(0..text.len(), "this condition is empty")
                .help("remove the key, or add a condition such as `cliffValue >= 5000000`"),
        ];
    }
    let mut scan = LintScan { text, at: 0, open: Vec::new(), last: LastToken::Start, findings: Vec::new() };
    scan.run();
    scan.findings
}

struct LintScan<'t> {
    text: &'t str,
    at: usize,
    open: Vec<(char, usize)>,
    last: LastToken,
    findings: Vec<Finding>,
}

impl LintScan<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_while(&mut self, keep: impl Fn(char) -> bool) -> Range<usize> {
        let start = self.at;
        let length: usize = self.rest().chars().take_while(|c| keep(*c)).map(char::len_utf8).sum();
        self.at += length;
        start..self.at
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    fn report(&mut self, range: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.findings.push(Finding::error(range, message).help(help));
    }

    fn run(&mut self) {
        while let Some(c) = self.peek() {
            let start = self.at;
            match c {
                _ if c.is_whitespace() => {
                    self.skip_while(char::is_whitespace);
                }
                '"' | '\'' => self.string(c),
                _ if c.is_ascii_digit() => self.number(),
                _ if c.is_alphabetic() || c == '_' => self.word(),
                '(' | '[' | '{' => {
                    self.open.push((c, start));
                    self.step(c, LastToken::Operator);
                    if self.open.len() > MAX_DEPTH {
                        self.report(
                            start..self.at,
                            format!("brackets are nested more than {MAX_DEPTH} levels deep"),
                            "simplify the condition",
                        );
                        return;
                    }
                }
                ')' | ']' | '}' => {
                    self.close(c, start);
                    self.step(c, LastToken::Value);
                }
                _ if self.rest().starts_with("//") => {
                    self.skip_while(|c| c != '\n');
                }
                '.' => self.step(c, LastToken::Dot),
                '%' => self.percent(),
                '=' | '!' | '<' | '>' | '&' | '|' => self.operator(),
                '+' | '-' | '*' | '/' | '?' | ':' | ',' => self.step(c, LastToken::Operator),
                '“' | '”' | '„' | '‘' | '’' | '«' | '»' => {
                    self.step(c, LastToken::Value);
                    self.report(start..self.at, "typographic quotes are not supported", "use plain quotes: \"…\" or '…'");
                }
                '≥' | '≤' | '≠' => {
                    self.step(c, LastToken::Operator);
                    let plain = if c == '≥' {
                        ">="
                    } else if c == '≤' {
                        "<="
                    } else {
                        "!="
                    };
                    self.report(start..self.at, format!("unknown operator `{c}`"), format!("use `{plain}`"));
                }
                '$' | '€' if self.amount_with_suffix(start).is_some() => {
                    let Some((end, plain)) = self.amount_with_suffix(start) else { return };
                    (self.at, self.last) = (end, LastToken::Value);
                    self.report(start..end, "amounts must be plain numbers, in USD", format!("use `{plain}`"));
                }
                '$' | '€' => {
                    self.step(c, LastToken::Operator);
                    self.report(start..self.at, format!("unexpected `{c}`"), "use the plain number; values are in USD");
                }
                _ => {
                    self.step(c, LastToken::Operator);
                    self.report(start..self.at, format!("unexpected character {c:?}"), "remove it");
                }
            }
        }
        if let Some((bracket, at)) = self.open.pop() {
            self.report(at..at + 1, format!("`{bracket}` is never closed"), format!("add `{}`", closing(bracket)));
        }
    }

    fn step(&mut self, c: char, last: LastToken) {
        self.at += c.len_utf8();
        self.last = last;
    }

    fn close(&mut self, c: char, start: usize) {
        match self.open.pop() {
            Some((bracket, _)) if closing(bracket) == c => {}
            Some((bracket, _)) => {
                self.report(
                    start..start + 1,
                    format!("`{c}` does not match the open bracket"),
                    format!("the open bracket is `{bracket}`: use `{}`", closing(bracket)),
                );
            }
            None => {
                self.report(start..start + 1, format!("`{c}` has no opening bracket"), "remove it, or add the opening bracket")
            }
        }
    }

    fn string(&mut self, quote: char) {
        let start = self.at;
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let end = if self.rest().starts_with(&triple) { triple } else { quote.to_string() };
        self.at += end.len();
        let mut escaped = false;
        loop {
            let rest = self.rest();
            if !escaped && rest.starts_with(&end) {
                self.at += end.len();
                self.last = LastToken::Value;
                return;
            }
            match rest.chars().next() {
                Some(c) => {
                    escaped = c == '\\' && !escaped;
                    self.at += c.len_utf8();
                }
                None => {
                    self.report(start..self.at, "this string has no closing quote", format!("add `{end}`"));
                    self.last = LastToken::Value;
                    return;
                }
            }
        }
    }

    /// Scans a number with common suffixes and separators: `5M`, `5_000_000`, `7d`.
    fn number(&mut self) {
        let start = self.at;
        if self.rest().starts_with("0x") {
            self.skip_while(|c| c.is_ascii_alphanumeric());
            self.last = LastToken::Value;
            return;
        }
        self.skip_while(|c| c.is_ascii_digit());
        // Inside brackets, a comma separates arguments.
        if self.rest().starts_with(',')
            && self.open.is_empty()
            && let Some((end, plain)) = self.amount_with_suffix(start)
        {
            (self.at, self.last) = (end, LastToken::Value);
            return self.report(start..end, "numbers cannot contain commas", format!("use `{plain}`"));
        }
        if self.rest().starts_with('.') && self.rest().chars().nth(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|c| c.is_ascii_digit());
        }
        let exponent = self.rest().trim_start_matches(['e', 'E']);
        if exponent.len() + 1 == self.rest().len()
            && exponent.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit())
        {
            self.at += 1;
            self.skip_while(|c| c == '+' || c == '-');
            self.skip_while(|c| c.is_ascii_digit());
        }
        let number = start..self.at;
        let tail = self.skip_while(|c| c.is_alphanumeric() || c == '_');
        self.last = LastToken::Value;
        if tail.is_empty() {
            return;
        }
        let digits = self.slice(&number).to_owned();
        let unit = self.slice(&tail).to_owned();
        let whole = number.start..tail.end;
        if unit.starts_with('_') && unit.chars().all(|c| c == '_' || c.is_ascii_digit()) {
            let plain = format!("{digits}{}", unit.replace('_', ""));
            return self.report(whole, "numbers cannot contain underscores", format!("use `{plain}`"));
        }
        let factor = factor_of(&unit);
        let is_time = matches!(unit.as_str(), "d" | "h" | "w" | "s" | "min" | "day" | "days" | "hours" | "weeks");
        match (factor.filter(|_| !is_time), digits.parse::<f64>()) {
            (Some(factor), Ok(value)) => {
                let plain = value * factor;
                self.report(whole, format!("`{digits}{unit}` is not a number"), format!("use `{plain}`"));
            }
            _ if is_time => {
                let help = format!("use `duration(\"{digits}{unit}\")`, or compare `daysUntil` with a number of days");
                self.report(whole, format!("`{digits}{unit}` is not a number"), help);
            }
            _ => self.report(
                whole,
                format!("`{digits}{unit}` is neither a number nor a name"),
                "use a plain number, or put strings in quotes",
            ),
        }
    }

    fn word(&mut self) {
        let range = self.skip_while(|c| c.is_alphanumeric() || c == '_');
        let word = self.slice(&range).to_owned();
        let after_dot = self.last == LastToken::Dot;
        self.last = LastToken::Value;
        if after_dot {
            return;
        }
        if !word.is_ascii() {
            return self.report(range, format!("`{word}` is not a name"), "names contain only ASCII letters, digits, and `_`");
        }
        let symbol = match word.to_ascii_lowercase().as_str() {
            "and" => "&&",
            "or" => "||",
            "not" => "!",
            "is" => "==",
            "in" => {
                self.last = LastToken::Operator;
                return;
            }
            // The prefix of a string: r"…" and b"…".
            "r" | "b" | "br" | "rb" if matches!(self.peek(), Some('"' | '\'')) => {
                return self.report(range, format!("the prefix `{word}` is not supported"), "use a plain string: \"…\"");
            }
            _ => return,
        };
        self.last = LastToken::Operator;
        self.report(range, format!("`{word}` is not an operator"), format!("use `{symbol}`"));
    }

    /// Reports `=`. The suggestion for numbers includes `>=`, which is meant more often than `==`.
    fn assignment(&mut self, range: Range<usize>) {
        let is_number = self.rest().trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '$' | '€' | '-' | '.'));
        let help = if is_number { "use `==` for exactly this value, or `>=` for at least" } else { "use `==` to compare" };
        self.report(range, "`=` is not an operator", help);
    }

    /// Parses an amount with a currency sign or separators: `$5,000,000`, `€2.5M`, `5,000,000`. Returns its end and the plain
    /// number.
    fn amount_with_suffix(&self, start: usize) -> Option<(usize, String)> {
        let text = self.text.get(start..)?;
        let digits = text.trim_start_matches(['$', '€']);
        let sign = text.len() - digits.len();
        let body = digits.find(|c: char| !(c.is_ascii_digit() || matches!(c, ',' | '.' | '_'))).unwrap_or(digits.len());
        let number = digits.get(..body)?.trim_end_matches([',', '.']);
        let mut groups = number.split('.').next()?.split(',');
        let is_grouped = groups.next().is_some_and(|first| (1..=3).contains(&first.len()))
            && groups.clone().count() > 0
            && groups.all(|group| group.len() == 3);
        if number.contains(',') && !is_grouped || !number.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let value: f64 = number.replace([',', '_'], "").parse().ok()?;
        let unit: String = digits.get(number.len()..)?.chars().take_while(char::is_ascii_alphabetic).collect();
        let factor = if unit.is_empty() { 1.0 } else { factor_of(&unit)? };
        Some((start + sign + number.len() + unit.len(), (value * factor).to_string()))
    }

    /// Reports `%` after a number if no operand follows, because it was meant as percent. Otherwise it is the remainder operator.
    fn percent(&mut self) {
        let start = self.at;
        let after_value = self.last == LastToken::Value;
        self.step('%', LastToken::Operator);
        let next = self.rest().trim_start().chars().next();
        if after_value && next.is_none_or(|c| matches!(c, ')' | '&' | '|' | '<' | '>' | '=' | '!' | '?' | ':' | ',' | ']')) {
            self.last = LastToken::Value;
            self.report(
                start..self.at,
                "`%` is the remainder operator",
                "remove it: fields such as `valueToMarketCap` are already in percent",
            );
        }
    }

    fn operator(&mut self) {
        let range = self.skip_while(|c| matches!(c, '=' | '!' | '<' | '>' | '&' | '|'));
        self.last = LastToken::Operator;
        let run = self.slice(&range).to_owned();
        // `!` can directly follow another operator: `&&!has(…)`.
        let core = if run.chars().all(|c| c == '!') { "" } else { run.trim_end_matches('!') };
        if core == "=" {
            return self.assignment(range);
        }
        let meant = match core {
            "" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "&&" | "||" => return,
            "===" => "==",
            "&" => "&&",
            "|" => "||",
            "=>" => ">=",
            "=<" => "<=",
            "<>" | "!==" => "!=",
            _ => {
                return self.report(
                    range,
                    format!("`{run}` is not an operator"),
                    "operators are == != < <= > >= && || ! + - * / %",
                );
            }
        };
        self.report(range, format!("`{run}` is not an operator"), format!("use `{meant}`"));
    }
}

/// Returns the factor that a suffix of a number stands for.
fn factor_of(unit: &str) -> Option<f64> {
    match unit.to_ascii_lowercase().as_str() {
        "k" => Some(1e3),
        "m" | "mm" | "mio" => Some(1e6),
        "b" | "bn" => Some(1e9),
        "t" | "tn" => Some(1e12),
        _ => None,
    }
}

fn closing(bracket: char) -> char {
    match bracket {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}
