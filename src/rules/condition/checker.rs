//! Type-checks a condition and lowers it to an expression. Each mismatch is reported at its position, with a suggestion. Nothing
//! is guessed.
//!
//! This file checks expressions and operators; the submodules check names, functions, methods, and comparisons.

mod comparison;
mod corrections;
mod functions;
mod methods;
mod names;
mod recipients;
mod span;
mod units;

use std::ops::Range;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, SourceInfo, operators};

use crate::fields::ItemKind;
use crate::finding::Finding;
use crate::getter::{GetFact, GetTexts};
use crate::on::On;
use crate::vocabulary::Vocabulary;

use super::corrections::CORRECTIONS;
use super::dependencies::Dependencies;
use super::expr::{Arithmetic, BoolExpr, Compare, FilteredList, NumberExpr, SpanExpr, TextExpr, TimeExpr};

/// Returns the functions, then the methods, each with an example and a description.
pub fn callables() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    functions::FUNCTIONS.into_iter().chain(methods::METHODS)
}

/// The maximum length of a list in a condition.
const MAX_LIST: usize = 200;

const SUPPORTED: &str = "supported are has, size, min, max, abs, timestamp, duration; on strings startsWith, endsWith, contains, matches, \
                         size; on times getDayOfWeek, getDate, getMonth, getFullYear, getHours and similar; \
                         on lists exists, exists_one, all, filter, map(…).sum(), size, and `in`";

#[derive(Debug)]
pub(super) enum Checked {
    Bool(BoolExpr),
    Number(NumberExpr),
    Text(TextExpr),
    Time(TimeExpr),
    Span(SpanExpr),
    Fact(GetFact),
    Texts(GetTexts),
    Items(FilteredList, ItemType),
    /// `list.map(x, number)`. Only `sum()` accepts it.
    Mapped(FilteredList, u8, NumberExpr),
    NumberList(Vec<NumberExpr>),
    TextList(Vec<TextExpr>),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemType {
    Of(ItemKind),
    Text,
}

impl Checked {
    /// Returns the name of the type in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Checked::Bool(_) => "a boolean",
            Checked::Number(_) => "a number",
            Checked::Text(_) => "a string",
            Checked::Time(_) => "a time",
            Checked::Span(_) => "a duration",
            Checked::Fact(_) => "a number, a time, or a string",
            Checked::Texts(_) | Checked::TextList(_) => "a list of strings",
            Checked::NumberList(_) | Checked::Mapped(..) => "a list of numbers",
            Checked::Items(_, ItemType::Of(ItemKind::Member)) => "a list of tokens",
            Checked::Items(_, ItemType::Of(_)) => "a list of allocations",
            Checked::Items(_, ItemType::Text) => "a list of strings",
            Checked::Null => "null",
        }
    }
}

/// The state of checking one condition. The findings and dependencies are read from it afterward.
pub(super) struct Checker<'t> {
    pub text: &'t str,
    pub info: &'t SourceInfo,
    pub vocabulary: Vocabulary,
    pub on: On,
    pub findings: Vec<Finding>,
    /// The variables of `exists` and similar macros, the outermost first. The index is the slot.
    pub variables: Vec<(String, ItemType)>,
    pub dependencies: Dependencies,
}

impl<'t> Checker<'t> {
    pub fn new(text: &'t str, info: &'t SourceInfo, on: On) -> Self {
        let vocabulary = Vocabulary::of(on);
        Self { text, info, vocabulary, on, findings: Vec::new(), variables: Vec::new(), dependencies: Dependencies::default() }
    }
}

impl Checker<'_> {
    fn reject<T>(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.findings.push(Finding::error(span, message).help(help));
        None
    }

    /// Checks an expression that must be a boolean.
    pub fn truth(&mut self, expr: &IdedExpr) -> Option<BoolExpr> {
        let typed = self.check(expr)?;
        match typed {
            Checked::Bool(cond) => Some(cond),
            other => {
                let help = match &other {
                    Checked::Number(_) => format!("compare it: `{} > 0`", self.quote(expr)),
                    Checked::Text(_) => format!("compare it: `{} == \"…\"`", self.quote(expr)),
                    _ => "write a comparison".into(),
                };
                let message = format!("`{}` is {}, not a boolean", self.quote(expr), other.name());
                self.reject(self.span(expr), message, help)
            }
        }
    }

    fn number(&mut self, expr: &IdedExpr) -> Option<NumberExpr> {
        match self.check(expr)? {
            Checked::Number(number) => Some(number),
            Checked::Fact(get) => Some(NumberExpr::Fact(get)),
            other => {
                let message = format!("`{}` is {}, but a number is required here", self.quote(expr), other.name());
                self.reject(self.span(expr), message, "examples of numbers: 5000000, 2.5, 1e6")
            }
        }
    }

    fn text_of(&mut self, expr: &IdedExpr) -> Option<TextExpr> {
        match self.check(expr)? {
            Checked::Text(text) => Some(text),
            Checked::Fact(get) => Some(TextExpr::Fact(get)),
            other => {
                let message = format!("`{}` is {}, but a string is required here", self.quote(expr), other.name());
                self.reject(self.span(expr), message, "put strings in quotes: \"Founder / Team\"")
            }
        }
    }

    pub fn check(&mut self, expr: &IdedExpr) -> Option<Checked> {
        match &expr.expr {
            Expr::Literal(value) => self.literal(expr, value),
            Expr::Ident(_) | Expr::Select(_) => self.name(expr),
            Expr::List(list) => self.list(expr, &list.elements),
            Expr::Call(call) => self.call(expr, call),
            Expr::Map(_) | Expr::Struct(_) => self.reject(self.span(expr), "maps and objects are not supported", SUPPORTED),
            Expr::Comprehension(_) | Expr::Unspecified => {
                self.reject(self.span(expr), "this expression is not supported", SUPPORTED)
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as documented")]
    fn literal(&mut self, expr: &IdedExpr, value: &LiteralValue) -> Option<Checked> {
        match value {
            LiteralValue::Boolean(value) => Some(Checked::Bool(BoolExpr::Const(*value.inner()))),
            LiteralValue::Int(value) => Some(Checked::Number(NumberExpr::Const(*value.inner() as f64))),
            LiteralValue::UInt(value) => Some(Checked::Number(NumberExpr::Const(*value.inner() as f64))),
            LiteralValue::Double(value) => Some(Checked::Number(NumberExpr::Const(*value.inner()))),
            LiteralValue::String(value) => Some(Checked::Text(TextExpr::Const(value.inner().to_owned()))),
            LiteralValue::Null => Some(Checked::Null),
            LiteralValue::Bytes(_) => self.reject(self.span(expr), "bytes are not supported", "use a string: \"…\""),
        }
    }

    fn list(&mut self, expr: &IdedExpr, elements: &[IdedExpr]) -> Option<Checked> {
        if elements.len() > MAX_LIST {
            return self.reject(self.span(expr), format!("a list can have at most {MAX_LIST} items"), "split the rule");
        }
        let mut numbers = Vec::new();
        let mut texts = Vec::new();
        for element in elements {
            match self.check(element)? {
                Checked::Number(number) if texts.is_empty() => numbers.push(number),
                Checked::Text(text) if numbers.is_empty() => texts.push(text),
                Checked::Number(_) | Checked::Text(_) => {
                    return self.reject(
                        self.span(element),
                        "the items of a list must be all numbers or all strings",
                        "use two lists",
                    );
                }
                other => {
                    let message =
                        format!("`{}` is {}; a list can contain only numbers or strings", self.quote(element), other.name());
                    return self.reject(self.span(element), message, "compare it outside the list");
                }
            }
        }
        match (numbers.is_empty(), texts.is_empty()) {
            (false, _) => Some(Checked::NumberList(numbers)),
            (_, false) => Some(Checked::TextList(texts)),
            _ => self.reject(self.span(expr), "this list is empty", "add at least one item"),
        }
    }

    fn call(&mut self, expr: &IdedExpr, call: &CallExpr) -> Option<Checked> {
        let name = call.func_name.as_str();
        match (&call.target, call.args.as_slice()) {
            (None, [left, right]) => match name {
                operators::LOGICAL_AND | operators::LOGICAL_OR => {
                    let (left, right) = (self.truth(left), self.truth(right));
                    let sides = Box::new((left?, right?));
                    Some(Checked::Bool(if name == operators::LOGICAL_AND { BoolExpr::And(sides) } else { BoolExpr::Or(sides) }))
                }
                operators::EQUALS => self.compare(expr, Compare::Equal, left, right),
                operators::NOT_EQUALS => self.compare(expr, Compare::NotEqual, left, right),
                operators::LESS => self.compare(expr, Compare::Less, left, right),
                operators::LESS_EQUALS => self.compare(expr, Compare::LessOrEqual, left, right),
                operators::GREATER => self.compare(expr, Compare::Greater, left, right),
                operators::GREATER_EQUALS => self.compare(expr, Compare::GreaterOrEqual, left, right),
                operators::ADD => self.arithmetic(expr, Arithmetic::Add, left, right),
                operators::SUBSTRACT => self.arithmetic(expr, Arithmetic::Subtract, left, right),
                operators::MULTIPLY => self.arithmetic(expr, Arithmetic::Multiply, left, right),
                operators::DIVIDE => self.arithmetic(expr, Arithmetic::Divide, left, right),
                operators::MODULO => self.arithmetic(expr, Arithmetic::Remainder, left, right),
                operators::IN => self.contained(left, right),
                operators::INDEX | operators::OPT_INDEX => self.reject(
                    self.span(expr),
                    "list items cannot be accessed by index",
                    "use `exists`: `allocations.exists(a, a.cliffAmount > 1000000)`",
                ),
                _ => self.function(expr, name, &call.args),
            },
            (None, [inner]) if name == operators::LOGICAL_NOT => Some(Checked::Bool(BoolExpr::Not(Box::new(self.truth(inner)?)))),
            (None, [inner]) if name == operators::NEGATE => match self.check(inner)? {
                Checked::Span(span) => Some(Checked::Span(SpanExpr::Negate(Box::new(span)))),
                Checked::Number(number) => Some(Checked::Number(NumberExpr::Negate(Box::new(number)))),
                Checked::Fact(get) => Some(Checked::Number(NumberExpr::Negate(Box::new(NumberExpr::Fact(get))))),
                other => {
                    let message = format!("`{}` is {} and cannot be negated", self.quote(inner), other.name());
                    self.reject(self.span(expr), message, "use `!` to negate a condition")
                }
            },
            (None, [test, yes, no]) if name == operators::CONDITIONAL => self.choose(expr, test, yes, no),
            (None, _) if name == CORRECTIONS => self.corrections(expr, call, None),
            (None, arguments) => self.function(expr, name, arguments),
            (Some(target), arguments) => self.method(expr, name, target, arguments),
        }
    }

    fn arithmetic(&mut self, expr: &IdedExpr, op: Arithmetic, left_expr: &IdedExpr, right_expr: &IdedExpr) -> Option<Checked> {
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        let as_number = |typed| match typed {
            Checked::Fact(get) => Checked::Number(NumberExpr::Fact(get)),
            other => other,
        };
        match (op, as_number(left?), as_number(right?)) {
            (op, Checked::Number(left), Checked::Number(right)) => {
                Some(Checked::Number(NumberExpr::Binary(op, Box::new((left, right)))))
            }
            (Arithmetic::Subtract, Checked::Time(left), Checked::Time(right)) => {
                Some(Checked::Span(SpanExpr::Between(Box::new((left, right)))))
            }
            (Arithmetic::Subtract, Checked::Time(left), Checked::Span(right)) => {
                Some(Checked::Time(TimeExpr::Subtract(Box::new((left, right)))))
            }
            (Arithmetic::Add, Checked::Time(at), Checked::Span(span))
            | (Arithmetic::Add, Checked::Span(span), Checked::Time(at)) => {
                Some(Checked::Time(TimeExpr::Add(Box::new((at, span)))))
            }
            (Arithmetic::Subtract, Checked::Span(left), Checked::Span(right)) => {
                Some(Checked::Span(SpanExpr::Subtract(Box::new((left, right)))))
            }
            (Arithmetic::Add, Checked::Span(left), Checked::Span(right)) => {
                Some(Checked::Span(SpanExpr::Add(Box::new((left, right)))))
            }
            (_, left, right) => {
                let message = format!("no arithmetic between {} and {}", left.name(), right.name());
                let help = match (&left, &right) {
                    (Checked::Text(_), Checked::Text(_)) => "strings cannot be concatenated in a condition",
                    (Checked::Time(_), Checked::Number(_)) => "add a duration: `unlockDate + duration(\"7d\")`",
                    _ => "arithmetic works on numbers, times, and durations",
                };
                self.reject(self.span(expr), message, help)
            }
        }
    }

    fn choose(&mut self, expr: &IdedExpr, test: &IdedExpr, yes: &IdedExpr, no: &IdedExpr) -> Option<Checked> {
        let (test, left, right) = (self.truth(test), self.check(yes), self.check(no));
        let (test, left, right) = (test?, left?, right?);
        match (left, right) {
            (Checked::Bool(left), Checked::Bool(right)) => Some(Checked::Bool(BoolExpr::If(Box::new((test, left, right))))),
            (Checked::Number(left), Checked::Number(right)) => {
                Some(Checked::Number(NumberExpr::If(Box::new((test, left, right)))))
            }
            (Checked::Text(left), Checked::Text(right)) => Some(Checked::Text(TextExpr::If(Box::new((test, left, right))))),
            (Checked::Time(left), Checked::Time(right)) => Some(Checked::Time(TimeExpr::If(Box::new((test, left, right))))),
            (Checked::Span(left), Checked::Span(right)) => Some(Checked::Span(SpanExpr::If(Box::new((test, left, right))))),
            (left, right) => {
                let message = format!("the two results of `? :` differ in type: {} and {}", left.name(), right.name());
                self.reject(self.span(expr), message, "use the same type for both results")
            }
        }
    }

    fn constant(&self, expr: &IdedExpr) -> Option<String> {
        match &expr.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
            _ => None,
        }
    }
}
