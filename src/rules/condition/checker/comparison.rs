//! Checks comparisons: which types can be compared, and at which distance in time a comparison changes.

use cel::IdedExpr;
use cel::common::ast::{Expr, LiteralValue};

use super::{Checked, Checker, units};
use crate::condition::dependencies::Edge;
use crate::condition::expr::{BoolExpr, Compare, NumberExpr, TextExpr, TimeExpr};
use crate::finding::Finding;
use crate::on::On;
use model::{ChangeKind, closest};

impl Checker<'_> {
    pub(super) fn compare(
        &mut self,
        expr: &IdedExpr,
        op: Compare,
        left_expr: &IdedExpr,
        right_expr: &IdedExpr,
    ) -> Option<Checked> {
        let clock_before = self.dependencies.clock;
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        let (left, right) = (left?, right?);
        // A record's price has no index by age, so its rules are evaluated regularly.
        let is_indexed = |edge: &Edge| !matches!(edge, Edge::PriceAge(_)) || self.vocabulary.has_windows();
        if let Some(edge) = edge_of(&left, &right).filter(is_indexed) {
            // The instants at which the comparison changes are known in advance, so no regular evaluation is needed.
            self.dependencies.clock = clock_before;
            if !self.dependencies.edges.contains(&edge) {
                self.dependencies.edges.push(edge);
            }
        }
        if let (Checked::Number(left), Checked::Number(right)) = (&left, &right)
            && let Some((message, help)) =
                units::unlikely_constant(left, right).or_else(|| units::exact_comparison(op, left, right))
        {
            self.findings.push(Finding::warning(self.span(expr), message).help(help));
        }
        if let (Checked::Text(left), Checked::Text(right)) = (&left, &right) {
            self.check_kind(right_expr, left, right);
            self.check_category(right_expr, left, right);
            self.check_category(left_expr, right, left);
        }
        let equality = match op {
            Compare::Equal => Some(true),
            Compare::NotEqual => Some(false),
            _ => None,
        };
        Some(Checked::Bool(match (left, right) {
            (Checked::Number(left), Checked::Number(right)) => BoolExpr::Numbers(op, left, right),
            (Checked::Number(left), Checked::Fact(right)) => BoolExpr::Numbers(op, left, NumberExpr::Fact(right)),
            (Checked::Fact(left), Checked::Number(right)) => BoolExpr::Numbers(op, NumberExpr::Fact(left), right),
            (Checked::Text(left), Checked::Text(right)) => BoolExpr::Texts(op, left, right),
            (Checked::Text(left), Checked::Fact(right)) => BoolExpr::Texts(op, left, TextExpr::Fact(right)),
            (Checked::Fact(left), Checked::Text(right)) => BoolExpr::Texts(op, TextExpr::Fact(left), right),
            (Checked::Time(left), Checked::Time(right)) => BoolExpr::Times(op, left, right),
            (Checked::Time(left), Checked::Fact(right)) => BoolExpr::Times(op, left, TimeExpr::Fact(right)),
            (Checked::Fact(left), Checked::Time(right)) => BoolExpr::Times(op, TimeExpr::Fact(left), right),
            (Checked::Span(left), Checked::Span(right)) => BoolExpr::Spans(op, left, right),
            (Checked::Bool(left), Checked::Bool(right)) if equality.is_some() => {
                BoolExpr::Bools(equality == Some(true), Box::new((left, right)))
            }
            (Checked::Fact(left), Checked::Fact(right)) if equality.is_some() => {
                BoolExpr::Facts(equality == Some(true), left, right)
            }
            (Checked::Fact(_), Checked::Fact(_)) => {
                return self.reject(
                    self.span(expr),
                    "these can be numbers, times, or strings, which have no common order",
                    "subscribe to one change kind, such as `unlock.rescheduled`, or compare `change.shiftDays` or `change.ratio`",
                );
            }
            (Checked::Null, other) | (other, Checked::Null) => {
                let field = if matches!(other, Checked::Null) {
                    "x".into()
                } else {
                    self.quote(if self.quote(left_expr) == "null" { right_expr } else { left_expr })
                };
                let help = format!("write `{}has({field})`", if op == Compare::NotEqual { "" } else { "!" });
                return self.reject(
                    self.span(expr),
                    "a comparison with null is never true: a missing field makes it neither true nor false",
                    help,
                );
            }
            (left, right) => return self.type_mismatch(expr, left_expr, &left, right_expr, &right),
        }))
    }

    fn type_mismatch<T>(
        &mut self,
        expr: &IdedExpr,
        left_expr: &IdedExpr,
        left: &Checked,
        right_expr: &IdedExpr,
        right: &Checked,
    ) -> Option<T> {
        let quoted = |expr: &IdedExpr| match &expr.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().trim().to_owned()),
            _ => None,
        };
        let other = |typed: &Checked, expr: &IdedExpr, other_expr: &IdedExpr| match typed {
            Checked::Time(_) => Some(format!("write the time as `timestamp({})`", self.quote(expr))),
            Checked::Number(number) => Some(match (quoted(other_expr), number) {
                (Some(text), _) if text.parse::<f64>().is_ok() => format!("write the number without quotes: `{text}`"),
                (Some(_), _) => format!("compare `{}` with a number", self.quote(expr)),
                (None, NumberExpr::Const(_)) => {
                    format!("`{}` is a string: put the other side in quotes, \"{}\"", self.quote(other_expr), self.quote(expr))
                }
                (None, _) => {
                    format!("compare `{}` with a number, and `{}` with a quoted string", self.quote(expr), self.quote(other_expr))
                }
            }),
            Checked::Span(_) => Some("use `duration(\"7d\")`, or compare `daysUntil` with a number of days".into()),
            Checked::Texts(_) => Some(format!("write `{} in {}`", self.quote(expr), self.quote(other_expr))),
            Checked::Items(..) => Some("use `exists`: `allocations.exists(a, a.cliffAmount > 1000000)`".into()),
            _ => None,
        };
        let help = match (left, right) {
            (Checked::Time(_), Checked::Text(_)) => other(left, right_expr, right_expr),
            (Checked::Text(_), Checked::Time(_)) => other(right, left_expr, left_expr),
            (Checked::Texts(_), _) => other(left, right_expr, left_expr),
            (_, Checked::Texts(_)) => other(right, left_expr, right_expr),
            (Checked::Span(_), _) | (_, Checked::Span(_)) => {
                other(if matches!(left, Checked::Span(_)) { left } else { right }, left_expr, right_expr)
            }
            (Checked::Number(_), _) => other(left, left_expr, right_expr),
            (_, Checked::Number(_)) => other(right, right_expr, left_expr),
            (_, Checked::Items(..)) => other(right, left_expr, right_expr),
            _ => other(left, left_expr, right_expr),
        };
        let label = format!("`{}` is {}, `{}` is {}", self.quote(left_expr), left.name(), self.quote(right_expr), right.name());
        let span = self.span(expr);
        let mut finding = Finding::error(span, format!("{} cannot be compared with {}", left.name(), right.name())).label(label);
        finding.help = help;
        self.findings.push(finding);
        None
    }

    /// `word in ["a", "b"]`
    pub(super) fn contained(&mut self, left_expr: &IdedExpr, right_expr: &IdedExpr) -> Option<Checked> {
        let (left, right) = (self.check(left_expr), self.check(right_expr));
        Some(Checked::Bool(match (left?, right?) {
            (Checked::Number(value), Checked::NumberList(items)) => BoolExpr::NumberIn(value, items),
            (Checked::Text(value), Checked::TextList(items)) => {
                for item in &items {
                    self.check_kind(right_expr, &value, item);
                    self.check_category(right_expr, &value, item);
                }
                BoolExpr::TextIn(value, items)
            }
            (Checked::Text(value), Checked::Texts(list)) => {
                self.check_category_in(left_expr, &value, list);
                BoolExpr::TextInField(value, list)
            }
            (Checked::Fact(value), Checked::NumberList(items)) => BoolExpr::NumberIn(NumberExpr::Fact(value), items),
            (Checked::Fact(value), Checked::TextList(items)) => BoolExpr::TextIn(TextExpr::Fact(value), items),
            (left, right) => {
                let span = self.span(left_expr).start..self.span(right_expr).end;
                let message = format!("`in` requires a list of the same type, but got {} and {}", left.name(), right.name());
                let help = match right {
                    Checked::Text(_) => format!("write `{}.contains({})`", self.quote(right_expr), self.quote(left_expr)),
                    _ => "write `tokenSymbol in [\"ARB\", \"APT\"]`, or use `exists` on allocations".into(),
                };
                return self.reject(span, message, help);
            }
        }))
    }

    /// Reports a change kind that does not exist or that the rule never matches.
    fn check_kind(&mut self, expr: &IdedExpr, field: &TextExpr, word: &TextExpr) {
        let (TextExpr::Field(get), TextExpr::Const(word), On::Change(resource, _)) = (field, word, self.on) else { return };
        if get.name() != "change.kind" {
            return;
        }
        let kinds = ChangeKind::ALL.into_iter().filter(|kind| kind.can_happen_to(resource));
        let kinds: Vec<&str> = kinds.map(ChangeKind::as_str).collect();
        if kinds.contains(&word.as_str()) {
            return;
        }
        let help = closest(word, kinds.iter().copied())
            .map_or_else(|| format!("expected one of {}", kinds.join(", ")), |near| format!("did you mean \"{near}\"?"));
        self.reject::<()>(self.span(expr), format!("unknown change kind \"{word}\" for this record type"), help);
    }
}

/// Returns the edge of a comparison between a distance in time and a constant.
fn edge_of(left: &Checked, right: &Checked) -> Option<Edge> {
    let (Checked::Number(left), Checked::Number(right)) = (left, right) else { return None };
    let constant = |number: &NumberExpr| match number {
        NumberExpr::Const(value) => Some(*value),
        NumberExpr::Negate(inner) => match inner.as_ref() {
            NumberExpr::Const(value) => Some(-value),
            _ => None,
        },
        _ => None,
    };
    let (distance, days) = match (constant(left), constant(right)) {
        (None, Some(days)) => (left, days),
        (Some(days), None) => (right, days),
        _ => return None,
    };
    match distance {
        NumberExpr::DaysUntil => Some(Edge::Until(days)),
        NumberExpr::DaysSince => Some(Edge::Until(-days)),
        NumberExpr::SinceLatest(_, flow) => Some(Edge::Since(*flow, days)),
        NumberExpr::PriceAge(_) => Some(Edge::PriceAge(days)),
        NumberExpr::UntilRateChange(_) => Some(Edge::RateChange(days)),
        _ => None,
    }
}
