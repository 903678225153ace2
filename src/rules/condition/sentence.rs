//! A condition as text: `the cliff is at least $5M or 2% of market cap`.
//!
//! A condition becomes a [`Phrase`]: tests, each with a subject and a value, joined by "and" and "or". Tests of one subject share it. The
//! module [`nouns`] names the operands.

mod nouns;

use super::Condition;
use super::expr::{BoolExpr, Compare, FilteredList, NumberExpr, SpanExpr, TextExpr, TextTest, TimeExpr};
use model::phrase;
use nouns::Nouns;

/// A condition as text, before its parts are joined.
#[derive(Clone, Debug, PartialEq)]
pub enum Phrase {
    Test(Test),
    /// A whole clause: `for at least one recipient, the cliff is at least $1M`.
    Clause(String),
    /// Parts of which any, or else all, must be true.
    Group {
        is_any: bool,
        parts: Vec<Phrase>,
    },
}

/// A test of one subject: `the cliff` `is` `at least` `$5M`.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    pub subject: String,
    pub verb: &'static str,
    /// The comparison, such as `at least`. Empty for equality.
    pub relation: &'static str,
    pub value: String,
}

impl Test {
    fn is(subject: impl Into<String>, relation: &'static str, value: impl Into<String>) -> Phrase {
        Phrase::Test(Self { subject: subject.into(), verb: "is", relation, value: value.into() })
    }

    /// Returns whether the test sets the least size of its subject.
    pub fn is_least(&self) -> bool {
        self.verb == "is" && matches!(self.relation, AT_LEAST | MORE_THAN)
    }
}

const AT_LEAST: &str = "at least";
const MORE_THAN: &str = "more than";

impl Condition {
    /// Returns the parts of the condition, all of which must be true.
    pub fn phrases(&self) -> Vec<Phrase> {
        match Phrases(Nouns { on: self.on }).of(&self.root, true) {
            Phrase::Group { is_any: false, parts } => parts,
            one => vec![one],
        }
    }
}

/// Returns parts as one clause. `is_any`: whether one of them suffices.
pub fn joined(parts: &[Phrase], is_any: bool) -> String {
    let texts = texts(parts, is_any);
    // Commas separate parts that have an "and" or "or" of their own.
    let is_long = |text: &String| [" and ", " or ", ", "].iter().any(|word| text.contains(word));
    let word = if is_any { "or" } else { "and" };
    match texts.split_last() {
        Some((last, rest)) if !rest.is_empty() && texts.iter().any(is_long) => format!("{}, {word} {last}", rest.join(", ")),
        _ => series(&texts, is_any),
    }
}

fn series(texts: &[String], is_any: bool) -> String {
    if is_any { phrase::choice(texts) } else { phrase::list(texts) }
}

/// Returns the text of each part, where tests of the same subject are one text.
fn texts(parts: &[Phrase], is_any: bool) -> Vec<String> {
    let mut texts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        match part {
            Phrase::Clause(text) => texts.push(text.clone()),
            Phrase::Group { is_any: inner, parts } => texts.push(nested(parts, *inner)),
            Phrase::Test(test) => {
                let same = |part: &Phrase| matches!(part, Phrase::Test(other) if other.subject == test.subject && other.verb == test.verb);
                if !parts.iter().take(at).any(same) {
                    texts.push(merged(test, parts.iter().filter(|part| same(part)), is_any));
                }
            }
        }
    }
    texts
}

/// Returns the text of tests of one subject: `the cliff is at least $5M or 2% of market cap`.
fn merged<'p>(first: &Test, tests: impl Iterator<Item = &'p Phrase>, is_any: bool) -> String {
    let tests = tests.filter_map(|part| if let Phrase::Test(test) = part { Some(test) } else { None });
    format!("{} {} {}", first.subject, first.verb, values(tests, is_any))
}

/// Returns the values of tests, each relation once: `at least $5M or 2% of market cap`.
pub fn values<'t>(tests: impl Iterator<Item = &'t Test>, is_any: bool) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut last = "";
    for Test { relation, value, .. } in tests {
        let text = if *relation == last || relation.is_empty() { value.clone() } else { format!("{relation} {value}") };
        last = relation;
        texts.push(text);
    }
    series(&texts, is_any)
}

fn nested(parts: &[Phrase], is_any: bool) -> String {
    let text = joined(parts, is_any);
    match (texts(parts, is_any).len(), is_any) {
        (..=1, _) => text,
        (_, true) => format!("either {text}"),
        (_, false) if text.contains(", ") => format!("({text})"),
        (_, false) => format!("both {text}"),
    }
}

struct Phrases(Nouns);

impl Phrases {
    /// Returns the phrase that is true if the expression is `wanted`.
    fn of(&self, expr: &BoolExpr, wanted: bool) -> Phrase {
        match expr {
            BoolExpr::Const(value) => Phrase::Clause(if *value == wanted { "always" } else { "never" }.to_owned()),
            BoolExpr::Not(inner) => self.of(inner, !wanted),
            BoolExpr::And(sides) => self.group(&sides.0, &sides.1, !wanted, wanted),
            BoolExpr::Or(sides) => self.group(&sides.0, &sides.1, wanted, wanted),
            BoolExpr::If(parts) => Phrase::Clause(format!(
                "{} if {}, otherwise {}",
                self.text(&parts.1, wanted),
                self.text(&parts.0, true),
                self.text(&parts.2, wanted)
            )),
            BoolExpr::Numbers(op, left, right) => self.numbers(if wanted { *op } else { opposite(*op) }, left, right),
            BoolExpr::Texts(op, left, right) => {
                let op = if wanted { *op } else { opposite(*op) };
                Test::is(self.0.text(left), order(op), self.text_value(left, right))
            }
            BoolExpr::Times(op, left, right) => self.times(if wanted { *op } else { opposite(*op) }, left, right),
            BoolExpr::Spans(op, left, right) => self.spans(if wanted { *op } else { opposite(*op) }, left, right),
            BoolExpr::Bools(is_equal, sides) => self.bools(*is_equal == wanted, &sides.0, &sides.1),
            BoolExpr::Facts(is_equal, left, right) => Test::is(self.0.fact(*left), not(*is_equal == wanted), self.0.fact(*right)),
            BoolExpr::Field(get) => Test::is(self.0.plain(get.name()), "", if wanted { "true" } else { "false" }),
            BoolExpr::Has(presence) => {
                let (subject, what) = self.0.presence(presence);
                let known = if wanted { "known" } else { "unknown" };
                Test::is(subject, "", what.map_or_else(|| known.to_owned(), |what| format!("of {known} {what}")))
            }
            BoolExpr::NumberIn(..) | BoolExpr::TextIn(..) | BoolExpr::TextInField(..) => self.member(expr, wanted),
            BoolExpr::TextTest(test, text, part) => Phrase::Test(Test {
                subject: self.0.text(text),
                verb: verb(*test, wanted),
                relation: "",
                value: self.text_value(text, part),
            }),
            BoolExpr::Matches(text, pattern) => Phrase::Test(Test {
                subject: self.0.text(text),
                verb: if wanted { "matches" } else { "does not match" },
                relation: "",
                value: phrase::name(pattern.as_str()),
            }),
            BoolExpr::Exists(list, _, condition) => {
                let (one, condition) = (self.0.item(list.list), self.text(condition, true));
                Phrase::Clause(format!(
                    "for {} {one}{}, {condition}",
                    if wanted { "at least one" } else { "no" },
                    self.filters(list)
                ))
            }
            BoolExpr::All(list, _, condition) => {
                let (all, condition) = (phrase::noun(2, &self.0.item(list.list)), self.text(condition, true));
                Phrase::Clause(format!(
                    "{} {all}{}, {condition}",
                    if wanted { "for all" } else { "not for all" },
                    self.filters(list)
                ))
            }
        }
    }

    fn text(&self, expr: &BoolExpr, wanted: bool) -> String {
        match self.of(expr, wanted) {
            Phrase::Group { is_any, parts } => joined(&parts, is_any),
            one => joined(&[one], false),
        }
    }

    /// Joins two expressions. Groups of the same kind become one.
    fn group(&self, left: &BoolExpr, right: &BoolExpr, is_any: bool, wanted: bool) -> Phrase {
        let parts = [left, right].into_iter().flat_map(|side| match self.of(side, wanted) {
            Phrase::Group { is_any: inner, parts } if inner == is_any => parts,
            other => vec![other],
        });
        Phrase::Group { is_any, parts: parts.collect() }
    }

    fn numbers(&self, op: Compare, left: &NumberExpr, right: &NumberExpr) -> Phrase {
        if matches!(left, NumberExpr::Const(_)) && !matches!(right, NumberExpr::Const(_)) {
            return self.numbers(op.flipped(), right, left);
        }
        if let NumberExpr::Const(limit) = right
            && let Some((is_reversed, value)) = self.0.directed(left, *limit)
        {
            // "At most -1 day" is "at least 1 day earlier".
            return Test::is(self.0.subject(left), size(if is_reversed { op.flipped() } else { op }), value);
        }
        let value = match right {
            NumberExpr::Const(limit) => self.0.value(left, *limit),
            other => self.0.operand(other),
        };
        Test::is(self.0.subject(left), size(op), value)
    }

    fn times(&self, op: Compare, left: &TimeExpr, right: &TimeExpr) -> Phrase {
        match (left, right) {
            (TimeExpr::Now, TimeExpr::Now) => Test::is("now", order(op), "now"),
            (TimeExpr::Now, _) => self.times(op.flipped(), right, left),
            (_, TimeExpr::Now) => {
                let value = match op {
                    Compare::Greater | Compare::GreaterOrEqual => "in the future",
                    Compare::Less | Compare::LessOrEqual => "in the past",
                    Compare::Equal => "now",
                    Compare::NotEqual => "not now",
                };
                Test::is(self.0.time(left), "", value)
            }
            _ => Test::is(self.0.time(left), order(op), self.0.time(right)),
        }
    }

    fn spans(&self, op: Compare, left: &SpanExpr, right: &SpanExpr) -> Phrase {
        match (left, right) {
            (SpanExpr::Const(_), SpanExpr::Between(_)) => self.spans(op.flipped(), right, left),
            (SpanExpr::Between(ends), SpanExpr::Const(span)) => {
                let length = phrase::duration(*span);
                match (&ends.0, &ends.1) {
                    (time, TimeExpr::Now) => Test::is(self.0.time(time), size(op), format!("{length} ahead")),
                    (TimeExpr::Now, time) => Test::is(self.0.time(time), size(op), format!("{length} ago")),
                    _ => Test::is(self.0.span(left), size(op), length),
                }
            }
            _ => Test::is(self.0.span(left), size(op), self.0.span(right)),
        }
    }

    fn bools(&self, is_equal: bool, left: &BoolExpr, right: &BoolExpr) -> Phrase {
        match (left, right) {
            (other, BoolExpr::Const(value)) | (BoolExpr::Const(value), other) => self.of(other, *value == is_equal),
            _ => Phrase::Clause(format!("{} exactly if {}", self.text(left, true), self.text(right, is_equal))),
        }
    }

    /// A test for one of several values.
    fn member(&self, expr: &BoolExpr, wanted: bool) -> Phrase {
        match expr {
            BoolExpr::NumberIn(number, list) => {
                let value = |item: &NumberExpr| match item {
                    NumberExpr::Const(limit) => self.0.value(number, *limit),
                    other => self.0.operand(other),
                };
                Test::is(self.0.subject(number), not(wanted), phrase::choice(&list.iter().map(value).collect::<Vec<_>>()))
            }
            BoolExpr::TextIn(text, list) => {
                let values: Vec<String> = list.iter().map(|item| self.text_value(text, item)).collect();
                Test::is(self.0.text(text), not(wanted), phrase::choice(&values))
            }
            BoolExpr::TextInField(text, get) => Phrase::Test(Test {
                subject: self.0.plain(get.name()),
                verb: if wanted { "include" } else { "do not include" },
                relation: "",
                value: self.0.text(text),
            }),
            other => self.of(other, wanted),
        }
    }

    fn filters(&self, list: &FilteredList) -> String {
        let conditions: Vec<String> = list.filters.iter().map(|(_, condition)| self.text(condition, true)).collect();
        if conditions.is_empty() { String::new() } else { format!(" for which {}", phrase::list(&conditions)) }
    }

    /// Returns the text that `subject` is compared with. Kinds of changes are words, other texts are quoted.
    fn text_value(&self, subject: &TextExpr, value: &TextExpr) -> String {
        match (subject, value) {
            (TextExpr::Field(get), TextExpr::Const(text)) if get.name() == "change.kind" => phrase::words(text),
            _ => self.0.text(value),
        }
    }
}

fn opposite(op: Compare) -> Compare {
    match op {
        Compare::Equal => Compare::NotEqual,
        Compare::NotEqual => Compare::Equal,
        Compare::Less => Compare::GreaterOrEqual,
        Compare::LessOrEqual => Compare::Greater,
        Compare::Greater => Compare::LessOrEqual,
        Compare::GreaterOrEqual => Compare::Less,
    }
}

/// Returns a comparison of numbers or lengths as text.
fn size(op: Compare) -> &'static str {
    match op {
        Compare::Equal => "",
        Compare::NotEqual => "not",
        Compare::Less => "less than",
        Compare::LessOrEqual => "at most",
        Compare::Greater => MORE_THAN,
        Compare::GreaterOrEqual => AT_LEAST,
    }
}

/// Returns a comparison of times or texts as text.
fn order(op: Compare) -> &'static str {
    match op {
        Compare::Equal => "",
        Compare::NotEqual => "not",
        Compare::Less => "before",
        Compare::LessOrEqual => "not after",
        Compare::Greater => "after",
        Compare::GreaterOrEqual => "not before",
    }
}

fn not(is_equal: bool) -> &'static str {
    if is_equal { "" } else { "not" }
}

fn verb(test: TextTest, wanted: bool) -> &'static str {
    match (test, wanted) {
        (TextTest::StartsWith, true) => "begins with",
        (TextTest::StartsWith, false) => "does not begin with",
        (TextTest::EndsWith, true) => "ends with",
        (TextTest::EndsWith, false) => "does not end with",
        (TextTest::Contains, true) => "contains",
        (TextTest::Contains, false) => "does not contain",
    }
}
