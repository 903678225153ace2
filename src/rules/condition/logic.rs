//! A logical form of conditions, used to find duplicate rules, levels that are never used, and contradictions.
//!
//! A condition becomes a bounded disjunction of cases, each a conjunction of atoms. Atoms on the same term are compared as ranges
//! of numbers or as strings. Any other expression is an atom that only equals itself. So every reported implication is correct,
//! but many are not found. Missing fields do not matter, because a condition that is true has all the fields that it needs.

use std::collections::BTreeMap;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue, operators};

/// The maximum number of cases of a condition. A condition with more is not compared.
const MAX_CASES: usize = 64;

/// The maximum length of a list whose items become cases.
const MAX_ITEMS: usize = 16;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logic {
    /// The condition in a normalized notation.
    text: String,
    /// `None` if there are too many.
    cases: Option<Vec<Conjunction>>,
}

/// Atoms that are true together, by term.
type Conjunction = BTreeMap<String, TermFacts>;

#[derive(Clone, Debug, PartialEq)]
struct TermFacts {
    range: NumberRange,
    not_numbers: Vec<f64>,
    is: Option<String>,
    is_not: Vec<String>,
    /// The truth value of an expression that is not analyzed further.
    truth: Option<bool>,
    is_impossible: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct NumberRange {
    least: f64,
    above_least: bool,
    most: f64,
    below_most: bool,
}

impl NumberRange {
    const ALL: NumberRange = NumberRange { least: f64::NEG_INFINITY, above_least: false, most: f64::INFINITY, below_most: false };

    fn and(self, other: NumberRange) -> NumberRange {
        let (least, above_least) = match self.least.total_cmp(&other.least) {
            std::cmp::Ordering::Less => (other.least, other.above_least),
            std::cmp::Ordering::Greater => (self.least, self.above_least),
            std::cmp::Ordering::Equal => (self.least, self.above_least || other.above_least),
        };
        let (most, below_most) = match self.most.total_cmp(&other.most) {
            std::cmp::Ordering::Greater => (other.most, other.below_most),
            std::cmp::Ordering::Less => (self.most, self.below_most),
            std::cmp::Ordering::Equal => (self.most, self.below_most || other.below_most),
        };
        NumberRange { least, above_least, most, below_most }
    }

    #[expect(clippy::float_cmp, reason = "exact constants from the rule file")]
    fn is_empty(self) -> bool {
        self.least > self.most || (self.least == self.most && (self.above_least || self.below_most))
    }

    fn holds(self, number: f64) -> bool {
        let enough = if self.above_least { number > self.least } else { number >= self.least };
        enough && if self.below_most { number < self.most } else { number <= self.most }
    }

    fn is_within(self, other: NumberRange) -> bool {
        self.and(other) == self
    }
}

impl TermFacts {
    const NONE: TermFacts = TermFacts {
        range: NumberRange::ALL,
        not_numbers: Vec::new(),
        is: None,
        is_not: Vec::new(),
        truth: None,
        is_impossible: false,
    };

    fn and(mut self, other: TermFacts) -> TermFacts {
        self.is_impossible |= other.is_impossible;
        self.is_impossible |= matches!((&self.is, &other.is), (Some(a), Some(b)) if a != b);
        self.is_impossible |= matches!((self.truth, other.truth), (Some(a), Some(b)) if a != b);
        self.range = self.range.and(other.range);
        self.is = self.is.or(other.is);
        self.truth = self.truth.or(other.truth);
        self.not_numbers.extend(other.not_numbers);
        self.is_not.extend(other.is_not);
        self.is_impossible |= self.range.is_empty() || self.is.as_ref().is_some_and(|is| self.is_not.contains(is));
        #[expect(clippy::float_cmp, reason = "exact constants from the rule file")]
        let is_point = self.range.least == self.range.most;
        self.is_impossible |= is_point && self.not_numbers.contains(&self.range.least);
        self
    }

    fn implies(&self, other: &TermFacts) -> bool {
        self.range.is_within(other.range)
            && other.not_numbers.iter().all(|number| !self.range.holds(*number) || self.not_numbers.contains(number))
            && other.is.as_ref().is_none_or(|is| self.is.as_ref() == Some(is))
            && other.is_not.iter().all(|not| self.is_not.contains(not) || self.is.as_ref().is_some_and(|is| is != not))
            && other.truth.is_none_or(|truth| self.truth == Some(truth))
    }
}

impl Logic {
    pub fn of(tree: &IdedExpr) -> Self {
        Self { text: normalize(tree), cases: cases(tree, true).map(|cases| cases.into_iter().filter(is_possible).collect()) }
    }

    /// Returns the logic of a rule without a condition.
    pub fn always() -> Self {
        Self { text: "true".into(), cases: Some(vec![Conjunction::new()]) }
    }

    /// Returns `true` if the condition is never true.
    pub fn is_impossible(&self) -> bool {
        self.cases.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns the conjunction of two conditions.
    pub fn and(&self, other: &Logic) -> Logic {
        let cases = match (&self.cases, &other.cases) {
            (Some(left), Some(right)) => product(left.clone(), right),
            _ => None,
        };
        Logic {
            text: format!("({} && {})", self.text, other.text),
            cases: cases.map(|cases| cases.into_iter().filter(is_possible).collect()),
        }
    }

    /// Returns `true` if `other` is certainly true whenever this condition is.
    pub fn implies(&self, other: &Logic) -> bool {
        if self.text == other.text {
            return true;
        }
        let (Some(mine), Some(theirs)) = (&self.cases, &other.cases) else { return false };
        let covers = |case: &Conjunction| {
            theirs
                .iter()
                .any(|theirs| theirs.iter().all(|(term, facts)| case.get(term).is_some_and(|known| known.implies(facts))))
        };
        mine.iter().all(covers)
    }

    /// Returns `true` if both conditions are certainly true in the same cases.
    pub fn is_equivalent(&self, other: &Logic) -> bool {
        self.implies(other) && other.implies(self)
    }
}

fn is_possible(case: &Conjunction) -> bool {
    case.values().all(|facts| !facts.is_impossible)
}

fn product(left: Vec<Conjunction>, right: &[Conjunction]) -> Option<Vec<Conjunction>> {
    if left.len() * right.len() > MAX_CASES {
        return None;
    }
    Some(
        left.iter()
            .flat_map(|left| {
                right.iter().map(|right| {
                    let mut both = left.clone();
                    for (term, facts) in right {
                        let known = both.remove(term).unwrap_or(TermFacts::NONE);
                        both.insert(term.clone(), known.and(facts.clone()));
                    }
                    both
                })
            })
            .collect(),
    )
}

fn one(term: String, facts: TermFacts) -> Vec<Conjunction> {
    vec![Conjunction::from([(term, facts)])]
}

/// Returns the cases in which `expr` evaluates to `wanted`. `None` if there are more than [`MAX_CASES`].
fn cases(expr: &IdedExpr, wanted: bool) -> Option<Vec<Conjunction>> {
    if let Expr::Literal(LiteralValue::Boolean(value)) = &expr.expr {
        return Some(if *value.inner() == wanted { vec![Conjunction::new()] } else { Vec::new() });
    }
    if let Expr::Call(call) = &expr.expr {
        match (call.func_name.as_str(), call.target.is_none(), call.args.as_slice()) {
            (operators::LOGICAL_NOT, true, [inner]) => return cases(inner, !wanted),
            (operators::LOGICAL_AND | operators::LOGICAL_OR, true, [left, right]) => {
                let (left, right) = (cases(left, wanted)?, cases(right, wanted)?);
                if (call.func_name == operators::LOGICAL_AND) == wanted {
                    return product(left, &right);
                }
                let all: Vec<Conjunction> = left.into_iter().chain(right).collect();
                return (all.len() <= MAX_CASES).then_some(all);
            }
            (operators::IN, true, [value, list]) => {
                if let Some(found) = membership(value, list, wanted) {
                    return Some(found);
                }
            }
            (_, true, [left, right]) => {
                if let Some((term, facts)) = comparison(call, left, right, wanted) {
                    return Some(one(term, facts));
                }
            }
            _ => {}
        }
    }
    Some(one(normalize(expr), TermFacts { truth: Some(wanted), ..TermFacts::NONE }))
}

fn membership(value: &IdedExpr, list: &IdedExpr, wanted: bool) -> Option<Vec<Conjunction>> {
    let Expr::List(list) = &list.expr else { return None };
    if list.elements.len() > MAX_ITEMS {
        return None;
    }
    let texts: Vec<String> = list.elements.iter().map(text).collect::<Option<_>>()?;
    let term = normalize(value);
    if wanted {
        return Some(texts.into_iter().flat_map(|is| one(term.clone(), TermFacts { is: Some(is), ..TermFacts::NONE })).collect());
    }
    Some(one(term, TermFacts { is_not: texts, ..TermFacts::NONE }))
}

fn comparison(call: &CallExpr, left: &IdedExpr, right: &IdedExpr, wanted: bool) -> Option<(String, TermFacts)> {
    if let (operators::EQUALS | operators::NOT_EQUALS, Some((term, text))) =
        (call.func_name.as_str(), text(right).map(|text| (left, text)).or_else(|| text(left).map(|text| (right, text))))
    {
        let is_equal = (call.func_name == operators::EQUALS) == wanted;
        let facts = if is_equal {
            TermFacts { is: Some(text), ..TermFacts::NONE }
        } else {
            TermFacts { is_not: vec![text], ..TermFacts::NONE }
        };
        return Some((normalize(term), facts));
    }
    let (term, number, is_flipped) = match (number(left), number(right)) {
        (None, Some(number)) => (left, number, false),
        (Some(number), None) => (right, number, true),
        _ => return None,
    };
    let below = |number: f64, strict: bool| NumberRange { most: number, below_most: strict, ..NumberRange::ALL };
    let above = |number: f64, strict: bool| NumberRange { least: number, above_least: strict, ..NumberRange::ALL };
    let point = NumberRange { least: number, above_least: false, most: number, below_most: false };
    let other = TermFacts { not_numbers: vec![number], ..TermFacts::NONE };
    let same = TermFacts { range: point, ..TermFacts::NONE };
    let range = match (call.func_name.as_str(), wanted) {
        (operators::EQUALS, true) | (operators::NOT_EQUALS, false) => return Some((normalize(term), same)),
        (operators::EQUALS, false) | (operators::NOT_EQUALS, true) => return Some((normalize(term), other)),
        (operators::LESS, true) | (operators::GREATER_EQUALS, false) if !is_flipped => below(number, true),
        (operators::LESS_EQUALS, true) | (operators::GREATER, false) if !is_flipped => below(number, false),
        (operators::GREATER, true) | (operators::LESS_EQUALS, false) if !is_flipped => above(number, true),
        (operators::GREATER_EQUALS, true) | (operators::LESS, false) if !is_flipped => above(number, false),
        (operators::LESS, true) | (operators::GREATER_EQUALS, false) => above(number, true),
        (operators::LESS_EQUALS, true) | (operators::GREATER, false) => above(number, false),
        (operators::GREATER, true) | (operators::LESS_EQUALS, false) => below(number, true),
        (operators::GREATER_EQUALS, true) | (operators::LESS, false) => below(number, false),
        _ => return None,
    };
    Some((normalize(term), TermFacts { range, ..TermFacts::NONE }))
}

fn text(expr: &IdedExpr) -> Option<String> {
    match &expr.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as documented")]
fn number(expr: &IdedExpr) -> Option<f64> {
    match &expr.expr {
        Expr::Literal(LiteralValue::Int(value)) => Some(*value.inner() as f64),
        Expr::Literal(LiteralValue::UInt(value)) => Some(*value.inner() as f64),
        Expr::Literal(LiteralValue::Double(value)) => Some(*value.inner()),
        Expr::Call(call) if call.func_name == operators::NEGATE && call.target.is_none() => match call.args.as_slice() {
            [inner] => number(inner).map(|number| -number),
            _ => None,
        },
        _ => None,
    }
}

/// Formats an expression in a normalized notation: fully parenthesized, with sorted operands of commutative operators.
fn normalize(expr: &IdedExpr) -> String {
    if let Some(number) = number(expr) {
        return format!("{number:?}");
    }
    match &expr.expr {
        Expr::Ident(name) => name.clone(),
        Expr::Literal(value) => format!("{value:?}"),
        Expr::Select(select) => format!("{}.{}", normalize(&select.operand), select.field),
        Expr::List(list) => format!("[{}]", list.elements.iter().map(normalize).collect::<Vec<_>>().join(",")),
        Expr::Call(call) => {
            let mut parts: Vec<String> = call.args.iter().map(normalize).collect();
            let is_commutative = matches!(
                call.func_name.as_str(),
                operators::LOGICAL_AND | operators::LOGICAL_OR | operators::EQUALS | operators::NOT_EQUALS
            );
            if is_commutative {
                parts.sort();
            }
            let target = call.target.as_ref().map(|target| format!("{}.", normalize(target))).unwrap_or_default();
            format!("{target}{}({})", call.func_name, parts.join(","))
        }
        // The checker rejects these; each only equals itself.
        Expr::Comprehension(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => format!("#{}", expr.id),
    }
}
