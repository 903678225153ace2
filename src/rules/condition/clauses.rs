//! A condition clause by clause: what each part of it comes to for one record, and from which values.
//!
//! A rule keeps its conditions as they are evaluated, without places. Whoever asks why gets an answer in the operator's own words, so the
//! text is parsed once more, taken apart at `&&`, `||` and `!`, and each part is checked and evaluated as the whole was.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue, operators};

use crate::env::Env;
use crate::scope::{Scope, Truth};
use crate::wording::grouped;
use model::{days, format};

use super::Condition;
use super::checker::{Checked, Checker};
use super::expr::{NumberExpr, SpanExpr, TextExpr, TimeExpr};
use super::parse::parse;

/// Values that one clause shows.
const MAX_VALUES: usize = 8;

/// Characters of a side of a comparison that are shown with its value.
const MAX_SIDE: usize = 48;

/// How the parts of a clause make it true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClauseKind {
    /// It has no parts: a comparison, a test.
    Plain,
    /// All must hold: `&&`.
    All,
    /// One must hold: `||`.
    Any,
    /// Its part must not hold: `!`.
    Not,
}

/// A part of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// As the rule writes it, on one line.
    pub text: String,
    pub truth: Truth,
    /// How its parts make it so.
    pub kind: ClauseKind,
    /// Each side that is no constant, with its value; none where it is missing.
    pub values: Vec<(String, Option<String>)>,
    pub parts: Vec<Clause>,
}

impl Condition {
    /// Explained clause by clause; none where that fails, which a checked condition does not.
    pub fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        let (tree, info) = parse(&self.text).ok()?;
        ClauseWalk { checker: Checker::new(&self.text, &info, self.on), scope }.clause(&tree)
    }
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
                // `a && b && c` is one clause of three parts, however the parser nests it.
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

    /// The value of a side of a comparison, and of what it is made of where it is reckoned from several.
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
            Some(Checked::Number(number)) => number.eval(&env).map(shown),
            Some(Checked::Text(text)) => text.eval(&env).map(|text| format!("{text:?}")),
            Some(Checked::Time(time)) => time.eval(&env).map(format::instant),
            Some(Checked::Span(span)) => span.eval(&env).map(|span| format::shift(days(span))),
            Some(Checked::Fact(get)) => NumberExpr::Fact(get)
                .eval(&env)
                .map(shown)
                .or_else(|| TimeExpr::Fact(get).eval(&env).map(format::instant))
                .or_else(|| TextExpr::Fact(get).eval(&env).map(|text| format!("{text:?}"))),
            Some(Checked::Bool(cond)) => cond.eval(&env).map(|truth| truth.to_string()),
            Some(Checked::Items(items, _)) => NumberExpr::Count(items)
                .eval(&env)
                .map(|count| if count == 1.0 { "1 item".to_owned() } else { format!("{count} items") }),
            _ => return,
        };
        let text = cut(self.text(expr));
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
        // Places leave out brackets that stand around a part as a whole; those within it come in pairs.
        let open = line.matches('(').count();
        let closed = line.matches(')').count();
        line.extend(std::iter::repeat_n(')', open.saturating_sub(closed)));
        line
    }
}

/// White space outside of quotes is one space, and none before a dot that goes on with a call.
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

/// The side of a comparison that is a long expression of its own stands in the clause already.
fn cut(text: String) -> String {
    if text.chars().count() <= MAX_SIDE { text } else { format!("{}…", text.chars().take(MAX_SIDE - 1).collect::<String>()) }
}

/// A number as people compare it: in full, with its short form where it is long.
fn shown(value: f64) -> String {
    let whole = if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{}", round(value)) };
    if value.abs() < 10_000.0 || !value.is_finite() {
        return whole;
    }
    grouped(&whole)
}

/// To seven significant digits, which is more than anyone compares by eye.
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
