//! Explains a condition clause by clause: the result of each clause for one record, with its values.
//!
//! The evaluation tree has no source positions. To show clauses as the operator wrote them, the text is parsed again, split at
//! `&&`, `||`, and `!`, and each part is checked and evaluated like the whole condition.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};

use crate::aggregate::Flow;
use crate::env::Env;
use crate::fields::NumberUnit;
use crate::scope::{Scope, Truth};
use model::{days, phrase};

use super::Condition;
use super::checker::{Checked, Checker};
use super::expr::{NumberExpr, SpanExpr, TextExpr, TimeExpr};
use super::parse::parse;

/// The maximum number of values that a clause shows.
const MAX_VALUES: usize = 8;

/// The maximum length of the text that is shown with a value, in characters.
const MAX_SIDE: usize = 48;

/// The way in which the result of a clause follows from its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseKind {
    /// No parts: a comparison or a test.
    Plain,
    /// All parts must be true: `&&`.
    All,
    /// At least one part must be true: `||`.
    Any,
    /// The part must be false: `!`.
    Not,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// The text of the clause, on one line.
    pub text: String,
    pub truth: Truth,
    pub kind: ClauseKind,
    /// Each operand that is not a constant, with its value. `None` if the value is missing.
    pub values: Vec<(String, Option<String>)>,
    pub parts: Vec<Clause>,
}

impl Condition {
    /// Explains the condition clause by clause. `None` if the text cannot be parsed, which does not happen for a checked
    /// condition.
    pub fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        let (tree, info) = parse(&self.text).ok()?;
        ClauseWalk { checker: Checker::new(&self.text, &info, self.on), scope }.clause(&tree)
    }

    /// Returns the first comparison that makes the condition false. `None` if the condition is not false, or has no such comparison.
    pub fn mismatch(&self, scope: &Scope<'_>) -> Option<Mismatch> {
        let (tree, info) = parse(&self.text).ok()?;
        ClauseWalk { checker: Checker::new(&self.text, &info, self.on), scope }.mismatch(&tree)
    }
}

/// A comparison that is false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The operand with its value: `cliffValue is $4.10M`.
    pub text: String,
    /// The flow whose new entry made the comparison false, as in `lastBuyback.daysSince > 35`. `None` for other comparisons.
    pub latest: Option<Flow>,
}

struct ClauseWalk<'t, 's> {
    checker: Checker<'t>,
    scope: &'s Scope<'s>,
}

impl ClauseWalk<'_, '_> {
    fn clause(&mut self, expr: &IdedExpr) -> Option<Clause> {
        let truth = self.checker.truth(expr)?.truth(self.scope);
        let mut clause = Clause { text: self.text(expr), truth, kind: ClauseKind::Plain, values: Vec::new(), parts: Vec::new() };
        let Expr::Call(call) = &expr.expr else { return Some(clause) };
        match (call.func_name.as_str(), call.args.as_slice()) {
            (name @ (operators::LOGICAL_AND | operators::LOGICAL_OR), _) => {
                clause.kind = if name == operators::LOGICAL_AND { ClauseKind::All } else { ClauseKind::Any };
                // `a && b && c` is one clause with three parts, although the parser nests it.
                let mut parts = Vec::new();
                flatten(expr, name, &mut parts);
                clause.parts = parts.into_iter().map(|part| self.clause(part)).collect::<Option<_>>()?;
            }
            (operators::LOGICAL_NOT, [inner]) => {
                clause.kind = ClauseKind::Not;
                clause.parts = vec![self.clause(inner)?];
            }
            ("has" | "exists" | "all", _) => {}
            (_, arguments) => {
                let sides = call.target.iter().map(AsRef::as_ref).chain(arguments);
                for side in sides.take(MAX_VALUES) {
                    self.value(side, &mut clause.values);
                }
            }
        }
        Some(clause)
    }

    fn mismatch(&mut self, expr: &IdedExpr) -> Option<Mismatch> {
        if self.checker.truth(expr)?.truth(self.scope) != Truth::False {
            return None;
        }
        let Expr::Call(call) = &expr.expr else { return None };
        if [operators::LOGICAL_AND, operators::LOGICAL_OR].contains(&call.func_name.as_str()) {
            return call.args.iter().find_map(|part| self.mismatch(part));
        }
        // The side on which a value is too small. Only a new burn or buyback makes the time since the latest one too short.
        let short_side = match call.func_name.as_str() {
            operators::GREATER | operators::GREATER_EQUALS => Some(0),
            operators::LESS | operators::LESS_EQUALS => Some(1),
            _ => None,
        };
        call.args.iter().enumerate().find_map(|(side, argument)| {
            let mismatch = self.operand(argument)?;
            Some(Mismatch { latest: mismatch.latest.filter(|_| short_side == Some(side)), ..mismatch })
        })
    }

    /// Returns a number that is not a constant, with its value. `None` if it is something else or missing.
    fn operand(&mut self, expr: &IdedExpr) -> Option<Mismatch> {
        let findings = self.checker.findings.len();
        let checked = self.checker.check(expr);
        self.checker.findings.truncate(findings);
        let Some(Checked::Number(number)) = checked.filter(|_| !reads_position(&self.text(expr))) else { return None };
        let (value, unit) = (number.eval(&Env::of(self.scope, None))?, number.unit()?);
        let latest = if let NumberExpr::SinceLatest(_, flow) = number { Some(flow) } else { None };
        let value = match unit {
            NumberUnit::Usd | NumberUnit::UsdADay | NumberUnit::Price => phrase::usd(value),
            NumberUnit::Tokens | NumberUnit::TokensADay => phrase::amount(value),
            NumberUnit::Percent => phrase::percent(value),
            NumberUnit::Days => phrase::duration_of_days(value),
            NumberUnit::Plain | NumberUnit::Ratio | NumberUnit::Count | NumberUnit::Fraction => format_number(value),
        };
        Some(Mismatch { text: format!("{} is {value}", shorten(self.text(expr))), latest })
    }

    /// Adds the value of an operand, and of its own operands if it is an arithmetic expression.
    fn value(&mut self, expr: &IdedExpr, values: &mut Vec<(String, Option<String>)>) {
        if matches!(expr.expr, Expr::Literal(LiteralValue::String(_)) | Expr::List(_)) {
            return;
        }
        let findings = self.checker.findings.len();
        let checked = self.checker.check(expr);
        self.checker.findings.truncate(findings);
        let env = Env::of(self.scope, None);
        let value = match checked {
            Some(
                Checked::Number(NumberExpr::Const(_))
                | Checked::Text(TextExpr::Const(_))
                | Checked::Time(TimeExpr::Const(_))
                | Checked::Span(SpanExpr::Const(_)),
            ) => {
                return;
            }
            // Explanations are shown to readers who must not see positions.
            Some(_) if reads_position(&self.text(expr)) => Some(HIDDEN.to_owned()),
            Some(Checked::Number(number)) => number.eval(&env).map(format_number),
            Some(Checked::Text(text)) => text.eval(&env).map(|text| format!("{text:?}")),
            Some(Checked::Time(time)) => time.eval(&env).map(phrase::instant),
            Some(Checked::Span(span)) => span.eval(&env).map(|span| phrase::shift(days(span))),
            Some(Checked::Fact(get)) => NumberExpr::Fact(get)
                .eval(&env)
                .map(format_number)
                .or_else(|| TimeExpr::Fact(get).eval(&env).map(phrase::instant))
                .or_else(|| TextExpr::Fact(get).eval(&env).map(|text| format!("{text:?}"))),
            Some(Checked::Bool(cond)) => cond.eval(&env).map(|truth| truth.to_string()),
            Some(Checked::Items(items, _)) => NumberExpr::Count(items).eval(&env).map(|count| phrase::count(count, "item")),
            _ => return,
        };
        let text = shorten(self.text(expr));
        if values.len() < MAX_VALUES && !values.iter().any(|(known, _)| *known == text) {
            values.push((text, value));
        }
        if let Expr::Call(call) = &expr.expr
            && [
                operators::ADD,
                operators::SUBSTRACT,
                operators::MULTIPLY,
                operators::DIVIDE,
                operators::MODULO,
                "abs",
                "min",
                "max",
            ]
            .contains(&call.func_name.as_str())
        {
            for part in &call.args {
                self.value(part, values);
            }
        }
    }

    fn text(&self, expr: &IdedExpr) -> String {
        let mut line = on_one_line(self.checker.text.get(self.checker.span(expr)).unwrap_or_default());
        // A span omits the parentheses around a whole clause. Add the closing ones that are missing.
        let open = line.matches('(').count();
        let closed = line.matches(')').count();
        line.extend(std::iter::repeat_n(')', open.saturating_sub(closed)));
        line
    }
}

/// The text in place of a value that depends on a position.
const HIDDEN: &str = "(hidden)";

/// Returns whether an operand may read a position.
fn reads_position(operand: &str) -> bool {
    operand.contains("position")
}

/// Replaces whitespace outside quotes by one space, or by nothing before a dot that continues a call.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let (mut quote, mut is_gap) = (None, false);
    for c in text.trim().chars() {
        if quote.is_none() && c.is_whitespace() {
            is_gap = true;
            continue;
        }
        if std::mem::take(&mut is_gap) && c != '.' {
            line.push(' ');
        }
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        line.push(if c.is_whitespace() { ' ' } else { c });
    }
    line
}

fn flatten<'e>(expr: &'e IdedExpr, name: &str, parts: &mut Vec<&'e IdedExpr>) {
    match &expr.expr {
        Expr::Call(call) if call.func_name == name && call.target.is_none() => {
            call.args.iter().for_each(|part| flatten(part, name, parts));
        }
        _ => parts.push(expr),
    }
}

/// Shortens a long operand. The clause already shows its full text.
fn shorten(text: String) -> String {
    if text.chars().count() <= MAX_SIDE { text } else { format!("{}…", text.chars().take(MAX_SIDE - 1).collect::<String>()) }
}

/// Formats a number in full, with digit grouping if it is long.
fn format_number(value: f64) -> String {
    let whole = if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{}", round(value)) };
    if value.abs() < 10_000.0 || !value.is_finite() {
        return whole;
    }
    phrase::grouped(whole)
}

/// Rounds to seven significant digits, which is enough for a comparison by eye.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let places = 6.0 - value.abs().log10().floor();
    if !(0.0..=15.0).contains(&places) {
        return value.round();
    }
    let factor = 10_f64.powf(places);
    (value * factor).round() / factor
}
