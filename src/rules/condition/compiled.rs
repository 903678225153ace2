//! Conditions in a form that is fast to evaluate on many records.
//!
//! [`Predicate`] is derived from the expression tree. Comparisons of fields with constants, which most conditions consist of, are nodes of
//! their own, and constants are computed in advance. The operands of `&&` and `||` are sorted by cost, which cannot change the result,
//! because Kleene logic is commutative and expressions have no effects. Anything else keeps its expression.
//!
//! A predicate has the same result as its expression for every scope. It does not record missing fields: if the result is missing, the
//! expression is evaluated for their names.

use crate::env::{Env, RecordSide};
use crate::getter::{GetNumber, GetText};
use crate::scope::Scope;
use model::{Record, Token};

use super::expr::{Arithmetic, BoolExpr, Compare, NumberExpr, TextExpr, TextTest};

/// The length of a list from which it is searched by bisection.
const LONG_LIST: usize = 8;

/// The length of a string in bytes up to which it is compared byte by byte.
const SHORT_TEXT: usize = 16;

/// A condition, or a part of one. Evaluates to true, false, or missing.
#[derive(Debug)]
pub enum Predicate {
    Const(bool),
    Not(Box<Predicate>),
    /// `&&`, with all operands of a chain.
    All(Box<[Predicate]>),
    /// `||`, with all operands of a chain.
    Any(Box<[Predicate]>),
    If(Box<(Predicate, Predicate, Predicate)>),
    /// Whether a number of the record lies between two bounds, both inclusive.
    Range {
        field: RecordNumber,
        least: f64,
        most: f64,
    },
    Numbers(Compare, Box<(Number, Number)>),
    /// Whether a string is one of these constants.
    TextIn(TextField, Texts),
    /// Whether a string starts with, ends with, or contains a constant.
    TextPart(TextTest, TextField, Box<str>),
    Other(Box<BoolExpr>),
}

/// A number that a predicate compares.
#[derive(Debug)]
pub enum Number {
    Const(f64),
    Record(RecordNumber),
    Token(fn(&Token) -> Option<f64>),
    Binary(Arithmetic, Box<(Number, Number)>),
    /// Operations with constants on the right, one after another: `cliffValue / 1e6 * 2.0`.
    Steps(Box<Number>, Box<[(Arithmetic, f64)]>),
    If(Box<(Predicate, Number, Number)>),
    Other(Box<NumberExpr>),
}

/// A number field of the record in view.
#[derive(Clone, Copy, Debug)]
pub struct RecordNumber {
    pub name: &'static str,
    pub read: fn(&Record) -> Option<f64>,
}

/// A string field of the record in view, or of the token.
#[derive(Clone, Copy, Debug)]
pub enum TextField {
    Record(for<'a> fn(&'a Record) -> Option<&'a str>),
    Token(for<'a> fn(&'a Token) -> Option<&'a str>),
}

/// Constant strings, sorted if there are at least [`LONG_LIST`].
#[derive(Debug)]
pub struct Texts(Box<[Box<str>]>);

/// The scope of a predicate, with the record that its fields refer to.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub scope: &'a Scope<'a>,
    pub record: Option<&'a Record>,
}

impl<'a> View<'a> {
    #[inline]
    pub fn of(scope: &'a Scope<'a>) -> Self {
        Self { scope, record: scope.record_in_view() }
    }
}

impl Predicate {
    pub fn of(expr: &BoolExpr) -> Self {
        match expr {
            BoolExpr::Const(value) => Predicate::Const(*value),
            BoolExpr::Not(inner) => Predicate::Not(Box::new(Predicate::of(inner))),
            BoolExpr::And(_) => {
                Predicate::All(chain(expr, |expr| if let BoolExpr::And(sides) = expr { Some(sides) } else { None }))
            }
            BoolExpr::Or(_) => {
                Predicate::Any(chain(expr, |expr| if let BoolExpr::Or(sides) = expr { Some(sides) } else { None }))
            }
            BoolExpr::If(parts) => {
                Predicate::If(Box::new((Predicate::of(&parts.0), Predicate::of(&parts.1), Predicate::of(&parts.2))))
            }
            BoolExpr::Numbers(op, left, right) => Predicate::comparison(*op, Number::of(left), Number::of(right)),
            BoolExpr::Texts(op @ (Compare::Equal | Compare::NotEqual), left, right) => {
                let (field, text) = match (left, right) {
                    (field, TextExpr::Const(text)) | (TextExpr::Const(text), field) => (TextField::of(field), text),
                    _ => return Predicate::other(expr),
                };
                match field {
                    Some(field) if *op == Compare::Equal => Predicate::TextIn(field, Texts::of([text.as_str()])),
                    Some(field) => Predicate::Not(Box::new(Predicate::TextIn(field, Texts::of([text.as_str()])))),
                    None => Predicate::other(expr),
                }
            }
            BoolExpr::TextIn(value, items) => {
                let constant = |item: &'_ TextExpr| if let TextExpr::Const(text) = item { Some(text.clone()) } else { None };
                let constants: Option<Vec<String>> = items.iter().map(constant).collect();
                match (TextField::of(value), constants) {
                    (Some(field), Some(constants)) => Predicate::TextIn(field, Texts::of(constants.iter().map(String::as_str))),
                    _ => Predicate::other(expr),
                }
            }
            BoolExpr::TextTest(test, text, TextExpr::Const(part)) => match TextField::of(text) {
                Some(field) => Predicate::TextPart(*test, field, part.as_str().into()),
                None => Predicate::other(expr),
            },
            _ => Predicate::other(expr),
        }
    }

    fn other(expr: &BoolExpr) -> Self {
        Predicate::Other(Box::new(expr.clone()))
    }

    fn comparison(op: Compare, left: Number, right: Number) -> Self {
        match (left, right) {
            (Number::Const(left), Number::Const(right)) => Predicate::Const(op.numbers(left, right)),
            (Number::Record(field), Number::Const(limit)) if limit.is_finite() => Predicate::range(field, op, limit),
            (Number::Const(limit), Number::Record(field)) if limit.is_finite() => Predicate::range(field, op.flipped(), limit),
            (left, right) => Predicate::Numbers(op, Box::new((left, right))),
        }
    }

    /// Returns a comparison with a finite constant. A strict bound becomes an inclusive one at the next number.
    fn range(field: RecordNumber, op: Compare, limit: f64) -> Self {
        let (least, most) = match op {
            Compare::Equal | Compare::NotEqual => (limit, limit),
            Compare::Less => (f64::NEG_INFINITY, limit.next_down()),
            Compare::LessOrEqual => (f64::NEG_INFINITY, limit),
            Compare::Greater => (limit.next_up(), f64::INFINITY),
            Compare::GreaterOrEqual => (limit, f64::INFINITY),
        };
        let range = Predicate::Range { field, least, most };
        if op == Compare::NotEqual { Predicate::Not(Box::new(range)) } else { range }
    }

    /// Returns the cost of the evaluation, relative to other predicates.
    fn cost(&self) -> u32 {
        match self {
            Predicate::Const(_) => 0,
            Predicate::Range { .. } => 1,
            Predicate::TextIn(..) | Predicate::TextPart(..) => 2,
            Predicate::Not(inner) => inner.cost(),
            Predicate::All(items) | Predicate::Any(items) => items.iter().map(Predicate::cost).fold(1, u32::saturating_add),
            Predicate::If(parts) => parts.0.cost().saturating_add(parts.1.cost()).saturating_add(parts.2.cost()),
            Predicate::Numbers(_, sides) => sides.0.cost().saturating_add(sides.1.cost()),
            Predicate::Other(_) => 1_000,
        }
    }

    /// Evaluates the predicate. `None` if a field is missing. The most frequent predicate needs no call.
    #[inline(always)]
    pub fn eval(&self, view: View<'_>) -> Option<bool> {
        match self {
            Predicate::Range { field, least, most } => {
                let value = (field.read)(view.record?)?;
                Some(value >= *least && value <= *most)
            }
            _ => self.eval_any(view),
        }
    }

    #[inline(never)]
    fn eval_any(&self, view: View<'_>) -> Option<bool> {
        match self {
            Predicate::Const(value) => Some(*value),
            Predicate::Range { .. } => self.eval(view),
            Predicate::Not(inner) => inner.eval(view).map(|value| !value),
            Predicate::All(items) => eval_chain(items, view, false),
            Predicate::Any(items) => eval_chain(items, view, true),
            Predicate::If(parts) => (if parts.0.eval(view)? { &parts.1 } else { &parts.2 }).eval(view),
            Predicate::Numbers(op, sides) => Some(op.numbers(sides.0.eval(view)?, sides.1.eval(view)?)),
            Predicate::TextIn(field, texts) => Some(texts.contains(field.read(view)?)),
            Predicate::TextPart(TextTest::StartsWith, field, part) => Some(starts_with(field.read(view)?, part)),
            Predicate::TextPart(test, field, part) => Some(test.holds(field.read(view)?, part)),
            Predicate::Other(expr) => expr.eval(&Env::of(view.scope, None)),
        }
    }
}

/// Evaluates the operands of a chain. The `decisive` value of one operand decides the chain: false for `&&`, true for `||`.
#[inline]
fn eval_chain(items: &[Predicate], view: View<'_>, decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for item in items {
        match item.eval(view) {
            Some(value) if value == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

/// Returns the operands of a chain of `&&` or `||`, the cheapest first. `sides_of` returns the operands of the same operator.
fn chain(expr: &BoolExpr, sides_of: fn(&BoolExpr) -> Option<&(BoolExpr, BoolExpr)>) -> Box<[Predicate]> {
    fn add(expr: &BoolExpr, sides_of: fn(&BoolExpr) -> Option<&(BoolExpr, BoolExpr)>, to: &mut Vec<Predicate>) {
        match sides_of(expr) {
            Some((left, right)) => {
                add(left, sides_of, to);
                add(right, sides_of, to);
            }
            None => to.push(Predicate::of(expr)),
        }
    }
    let mut items = Vec::new();
    add(expr, sides_of, &mut items);
    items.sort_by_key(Predicate::cost);
    items.into_boxed_slice()
}

impl Number {
    fn of(expr: &NumberExpr) -> Self {
        match expr {
            NumberExpr::Const(value) => Number::Const(*value),
            NumberExpr::Field(GetNumber::Record(RecordSide::Current, name, read), _) => {
                Number::Record(RecordNumber { name, read: *read })
            }
            NumberExpr::Field(GetNumber::Token(_, read), _) => Number::Token(*read),
            NumberExpr::Negate(inner) => match Number::of(inner) {
                Number::Const(value) => Number::Const(-value),
                _ => Number::Other(Box::new(expr.clone())),
            },
            NumberExpr::Binary(op, sides) => match (Number::of(&sides.0), Number::of(&sides.1)) {
                (Number::Const(left), Number::Const(right)) if !op.of(left, right).is_nan() => Number::Const(op.of(left, right)),
                (left, Number::Const(right)) => left.then(*op, right),
                // The order of the operands of these makes no difference.
                (Number::Const(left), right) if matches!(op, Arithmetic::Add | Arithmetic::Multiply) => right.then(*op, left),
                (left, right) => Number::Binary(*op, Box::new((left, right))),
            },
            NumberExpr::If(parts) => Number::If(Box::new((Predicate::of(&parts.0), Number::of(&parts.1), Number::of(&parts.2)))),
            _ => Number::Other(Box::new(expr.clone())),
        }
    }

    /// Returns the result of an operation with a constant.
    fn then(self, op: Arithmetic, right: f64) -> Self {
        match self {
            Number::Steps(number, steps) => {
                let mut steps = steps.into_vec();
                steps.push((op, right));
                Number::Steps(number, steps.into_boxed_slice())
            }
            number => Number::Steps(Box::new(number), Box::new([(op, right)])),
        }
    }

    fn cost(&self) -> u32 {
        match self {
            Number::Const(_) => 0,
            Number::Record(_) | Number::Token(_) => 1,
            Number::Steps(number, _) => number.cost().saturating_add(1),
            Number::Binary(_, sides) => sides.0.cost().saturating_add(sides.1.cost()).saturating_add(1),
            Number::If(parts) => parts.0.cost().saturating_add(parts.1.cost()).saturating_add(parts.2.cost()),
            Number::Other(_) => 1_000,
        }
    }

    /// Evaluates the number. `None` if a field is missing, or if an operation has no result. Fields and constants need no call.
    #[inline(always)]
    fn eval(&self, view: View<'_>) -> Option<f64> {
        match self {
            Number::Const(value) => Some(*value),
            Number::Record(field) => (field.read)(view.record?),
            _ => self.eval_any(view),
        }
    }

    #[inline(never)]
    fn eval_any(&self, view: View<'_>) -> Option<f64> {
        match self {
            Number::Const(_) | Number::Record(_) => self.eval(view),
            Number::Token(read) => read(view.scope.token?),
            Number::Binary(op, sides) => {
                let result = op.of(sides.0.eval(view)?, sides.1.eval(view)?);
                // 0 / 0 has no value.
                if result.is_nan() { None } else { Some(result) }
            }
            Number::Steps(number, steps) => {
                // Once a step has no value, the following steps have none.
                let result = steps.iter().fold(number.eval(view)?, |left, (op, right)| op.of(left, *right));
                if result.is_nan() { None } else { Some(result) }
            }
            Number::If(parts) => (if parts.0.eval(view)? { &parts.1 } else { &parts.2 }).eval(view),
            Number::Other(expr) => expr.eval(&Env::of(view.scope, None)),
        }
    }
}

impl TextField {
    /// Returns the field that an expression reads. `None` for other expressions.
    fn of(expr: &TextExpr) -> Option<Self> {
        match expr {
            TextExpr::Field(GetText::Record(RecordSide::Current, _, read)) => Some(TextField::Record(*read)),
            TextExpr::Field(GetText::Token(_, read)) => Some(TextField::Token(*read)),
            _ => None,
        }
    }

    #[inline]
    pub fn read<'a>(self, view: View<'a>) -> Option<&'a str> {
        match self {
            TextField::Record(read) => read(view.record?),
            TextField::Token(read) => read(view.scope.token?),
        }
    }
}

impl Texts {
    fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut texts: Vec<Box<str>> = texts.into_iter().map(Box::from).collect();
        if texts.len() >= LONG_LIST {
            texts.sort_unstable();
            texts.dedup();
        }
        Self(texts.into_boxed_slice())
    }

    #[inline]
    fn contains(&self, text: &str) -> bool {
        if self.0.len() >= LONG_LIST {
            return self.0.binary_search_by(|item| (**item).cmp(text)).is_ok();
        }
        self.0.iter().any(|item| item.len() == text.len() && starts_with(text, item))
    }
}

/// Like [`str::starts_with`]. Comparing a few bytes here is faster than a call to the comparison of the C library.
#[inline]
fn starts_with(text: &str, part: &str) -> bool {
    if part.len() > SHORT_TEXT {
        return text.starts_with(part);
    }
    text.len() >= part.len() && text.bytes().zip(part.bytes()).all(|(a, b)| a == b)
}
