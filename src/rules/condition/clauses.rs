//! A condition clause by clause: what each part of it comes to for one record, and from which values.
//!
//! A rule keeps its conditions as they are evaluated, without places. Whoever asks why is told in the operator's own words, so the
//! text is parsed once more, taken apart at `&&`, `||` and `!`, and each part is checked and evaluated as the whole was.

use std::cell::RefCell;

use cel::{
    IdedExpr,
    common::ast::{Expr, LiteralValue, operators},
};

use super::{Checker, Condition, Reads, Typed, parse};
use crate::{
    format,
    rules::{
        Rule, Scope, Truth,
        node::{Env, Num, Span, Time, Txt},
        words::Words,
    },
};

/// Values that one clause shows.
const MAX_VALUES: usize = 8;

/// Characters of a side of a comparison that are shown with its value.
const MAX_SIDE: usize = 48;

/// How the parts of a clause make it true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
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
    /// What it comes to.
    pub truth: Truth,
    /// How its parts make it so.
    pub how: How,
    /// Each side that is no constant, with its value; none where it is missing.
    pub values: Vec<(String, Option<String>)>,
    /// Its parts.
    pub parts: Vec<Clause>,
}

impl Rule {
    /// `when`, clause by clause; none where the rule has none.
    #[must_use]
    pub fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.when.as_ref()?.clauses(scope)
    }

    /// `clear_when`, clause by clause; none where the rule has none.
    #[must_use]
    pub fn clear_clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        self.body.clear_when.as_ref()?.clauses(scope)
    }

    /// The conditions of its levels, in the order of the file.
    #[must_use]
    pub fn level_clauses(&self, scope: &Scope<'_>) -> Vec<Clause> {
        self.body.levels.iter().filter_map(|level| level.when.clauses(scope)).collect()
    }

    /// Whether a missing field makes it fire: `missing = "fire"`.
    #[must_use]
    pub fn fires_on_missing(&self) -> bool {
        self.body.fires_on_missing
    }
}

impl Condition {
    fn clauses(&self, scope: &Scope<'_>) -> Option<Clause> {
        let (tree, info) = parse(&self.text).ok()?;
        let checker = Checker {
            text: &self.text,
            info: &info,
            words: Words::of(self.on),
            on: self.on,
            findings: Vec::new(),
            variables: Vec::new(),
            reads: Reads::default(),
        };
        Walk { checker, scope }.clause(&tree)
    }
}

struct Walk<'t, 's> {
    checker: Checker<'t>,
    scope: &'s Scope<'s>,
}

impl Walk<'_, '_> {
    fn clause(&mut self, expr: &IdedExpr) -> Option<Clause> {
        let cond = self.checker.truth(expr)?;
        let truth = match cond.eval(&Env::of(self.scope, None)) {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => {
                let missed = RefCell::new(Vec::new());
                let _ = cond.eval(&Env::of(self.scope, Some(&missed)));
                Truth::Missing(missed.into_inner())
            }
        };
        let mut clause = Clause { text: self.text(expr), truth, how: How::Plain, values: Vec::new(), parts: Vec::new() };
        let Expr::Call(call) = &expr.expr else { return Some(clause) };
        match (call.func_name.as_str(), call.args.as_slice()) {
            (name @ (operators::LOGICAL_AND | operators::LOGICAL_OR), _) => {
                clause.how = if name == operators::LOGICAL_AND { How::All } else { How::Any };
                // `a && b && c` is one clause of three parts, however the parser nests it.
                let mut parts = Vec::new();
                flatten(expr, name, &mut parts);
                clause.parts = parts.into_iter().map(|part| self.clause(part)).collect::<Option<_>>()?;
            }
            (operators::LOGICAL_NOT, [inner]) => {
                clause.how = How::Not;
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
        let typed = self.checker.check(expr);
        self.checker.findings.truncate(findings);
        let env = Env::of(self.scope, None);
        let value = match typed {
            Some(
                Typed::Number(Num::Const(_))
                | Typed::Text(Txt::Const(_))
                | Typed::Time(Time::Const(_))
                | Typed::Span(Span::Const(_)),
            ) => {
                return;
            }
            Some(Typed::Number(number)) => number.eval(&env).map(shown),
            Some(Typed::Text(text)) => text.eval(&env).map(|text| format!("{text:?}")),
            Some(Typed::Time(time)) => time.eval(&env).map(format::instant),
            Some(Typed::Span(span)) => span.eval(&env).map(|span| format::shift(crate::supply::days(span))),
            Some(Typed::Fact(get)) => Num::Fact(get)
                .eval(&env)
                .map(shown)
                .or_else(|| Time::Fact(get).eval(&env).map(format::instant))
                .or_else(|| Txt::Fact(get).eval(&env).map(|text| format!("{text:?}"))),
            Some(Typed::Bool(cond)) => cond.eval(&env).map(|truth| truth.to_string()),
            Some(Typed::Items(items, _)) => Num::Count(items).eval(&env).map(|count| format!("{count} items")),
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
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole.as_str()), |digits| ("-", digits));
    let (digits, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
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
