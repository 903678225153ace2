//! Evaluates checked conditions.
//!
//! An expression with a missing field is `None`, neither true nor false. `&&` and `||` use Kleene logic: `false && missing` is
//! false.

use chrono::TimeDelta;

use crate::vocabulary::{PRICE_AGE, UNTIL_RATE_CHANGE};
use crate::{aggregate::Flow, env::Env, fields::ListItem, getter::GetFact};
use model::{Fact, Record, Timestamp};

use super::expr::{
    Arithmetic, BoolExpr, Compare, FilteredList, NumberExpr, Presence, SpanExpr, TextExpr, TimeExpr, WindowField, WindowRef,
};

impl BoolExpr {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<bool> {
        match self {
            BoolExpr::Const(value) => Some(*value),
            BoolExpr::Field(get) => get.get(env),
            BoolExpr::Not(inner) => inner.eval(env).map(|value| !value),
            BoolExpr::And(sides) => {
                let mark = env.missing_count();
                let result = kleene_and(sides.0.eval(env), || sides.1.eval(env));
                env.clear_missing_since(mark, result)
            }
            BoolExpr::Or(sides) => {
                let mark = env.missing_count();
                let result = kleene_or(sides.0.eval(env), || sides.1.eval(env));
                env.clear_missing_since(mark, result)
            }
            BoolExpr::If(parts) => chosen(parts, env)?.eval(env),
            BoolExpr::Numbers(op, left, right) => {
                left.eval(env).zip(right.eval(env)).map(|(left, right)| op.numbers(left, right))
            }
            BoolExpr::Texts(op, left, right) => {
                left.eval(env).zip(right.eval(env)).map(|(left, right)| op.ordered(&left, &right))
            }
            BoolExpr::Times(op, left, right) => {
                left.eval(env).zip(right.eval(env)).map(|(left, right)| op.ordered(&left, &right))
            }
            BoolExpr::Spans(op, left, right) => {
                left.eval(env).zip(right.eval(env)).map(|(left, right)| op.ordered(&left, &right))
            }
            BoolExpr::Bools(equal, sides) => {
                sides.0.eval(env).zip(sides.1.eval(env)).map(|(left, right)| (left == right) == *equal)
            }
            BoolExpr::Facts(equal, left, right) => {
                left.get(env).zip(right.get(env)).map(|(left, right)| (left == right) == *equal)
            }
            BoolExpr::NumberIn(value, items) => {
                let value = value.eval(env)?;
                any(items, |item| item.eval(env).map(|item| Compare::Equal.numbers(item, value)))
            }
            BoolExpr::TextIn(value, items) => {
                let value = value.eval(env)?;
                any(items, |item| item.eval(env).map(|item| item == value))
            }
            BoolExpr::TextInField(value, list) => {
                value.eval(env).zip(list.get(env)).map(|(value, list)| list.iter().any(|item| item == value))
            }
            BoolExpr::TextTest(test, text, part) => {
                let (text, part) = (text.eval(env), part.eval(env));
                let (text, part) = (text?, part?);
                Some(test.holds(text, part))
            }
            BoolExpr::Matches(text, pattern) => text.eval(env).map(|text| pattern.is_match(text)),
            BoolExpr::Has(presence) => Some(presence.eval(env)),
            BoolExpr::Exists(items, variable, test) => items.exists(*variable, test, env),
            BoolExpr::All(items, variable, test) => items.all(*variable, test, env),
        }
    }
}

/// Returns the branch of `test ? yes : no` that the test selects.
fn chosen<'e, T>(parts: &'e (BoolExpr, T, T), env: &Env<'e>) -> Option<&'e T> {
    Some(if parts.0.eval(env)? { &parts.1 } else { &parts.2 })
}

/// Returns whether `is` is true for any item. True takes precedence over missing, and missing over false.
fn any<'a, T>(items: &'a [T], is: impl Fn(&'a T) -> Option<bool>) -> Option<bool> {
    let mut result = Some(false);
    for item in items {
        result = kleene_or(result, || is(item));
        if result == Some(true) {
            break;
        }
    }
    result
}

fn kleene_and(left: Option<bool>, right: impl FnOnce() -> Option<bool>) -> Option<bool> {
    if left == Some(false) {
        return left;
    }
    match right() {
        Some(true) => left,
        Some(false) => Some(false),
        None => None,
    }
}

fn kleene_or(left: Option<bool>, right: impl FnOnce() -> Option<bool>) -> Option<bool> {
    if left == Some(true) {
        return left;
    }
    match right() {
        Some(false) => left,
        None => None,
        Some(true) => Some(true),
    }
}

impl NumberExpr {
    /// Evaluates the number. Fields and constants, which nearly all comparisons consist of, need no call.
    #[inline]
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<f64> {
        match self {
            NumberExpr::Const(value) => Some(*value),
            NumberExpr::Field(get, _) => get.get(env),
            _ => self.compute(env),
        }
    }

    fn compute<'a>(&'a self, env: &Env<'a>) -> Option<f64> {
        match self {
            NumberExpr::Const(_) | NumberExpr::Field(..) => self.eval(env),
            NumberExpr::Fact(get) => typed_fact(*get, env, Fact::amount),
            NumberExpr::DaysUntil => days_until(env, "daysUntil"),
            NumberExpr::DaysSince => days_until(env, "daysSince").map(|days| 0.0 - days),
            NumberExpr::Window(window) => window.get(env),
            NumberExpr::SinceLatest(variable, flow) => days_since_latest(*variable, *flow, env),
            NumberExpr::Share(group) => {
                let share = env.scope.totals.and_then(|totals| totals.shares.get(group)).copied();
                if share.is_none() {
                    env.record_missing("share(…)");
                }
                share
            }
            NumberExpr::PriceAge(variable) => recorded(env.price_age(*variable), PRICE_AGE, env),
            NumberExpr::UntilRateChange(variable) => recorded(env.until_rate_change(*variable), UNTIL_RATE_CHANGE, env),
            NumberExpr::Rate(field) => recorded(env.rate_step().and_then(|step| field.of(step)), field.as_str(), env),
            NumberExpr::Position(field) => recorded(env.position(*field), field.as_str(), env),
            NumberExpr::Corrections(of) => {
                let value = env.corrections(of.span).map(|sum| of.field.of(sum));
                recorded(value, of.field.full_name(), env)
            }
            NumberExpr::Negate(inner) => inner.eval(env).map(|value| -value),
            NumberExpr::Binary(op, sides) => {
                // Both sides are evaluated before a missing one ends the evaluation, so that all missing fields are recorded.
                let (left, right) = (sides.0.eval(env), sides.1.eval(env));
                let (left, right) = (left?, right?);
                let result = op.of(left, right);
                if result.is_nan() {
                    // 0 / 0 has no value, so a comparison with it is neither true nor false.
                    env.record_missing("(0 / 0)");
                    return None;
                }
                Some(result)
            }
            NumberExpr::If(parts) => chosen(parts, env)?.eval(env),
            NumberExpr::Least(items) => fold(items, env, f64::min),
            NumberExpr::Greatest(items) => fold(items, env, f64::max),
            NumberExpr::Abs(inner) => inner.eval(env).map(f64::abs),
            NumberExpr::OfTime(part, at) => at.eval(env).map(|at| part.of_time(at)),
            NumberExpr::OfSpan(part, span) => span.eval(env).map(|span| part.of_duration(span)),
            NumberExpr::Length(text) => text.eval(env).map(|text| count(text.chars().count())),
            NumberExpr::Count(items) => items.count(env),
            NumberExpr::Sum(items, variable, value) => items.sum(*variable, value, env),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most a thousand items, or the length of a string")]
fn count(items: usize) -> f64 {
    items as f64
}

fn fold<'a>(items: &'a [NumberExpr], env: &Env<'a>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    let mut best: Option<f64> = None;
    for item in items {
        let value = item.eval(env)?;
        best = Some(best.map_or(value, |best| pick(best, value)));
    }
    best
}

/// Records the name of a missing value.
fn recorded(value: Option<f64>, name: &'static str, env: &Env<'_>) -> Option<f64> {
    if value.is_none() {
        env.record_missing(name);
    }
    value
}

fn days_until(env: &Env<'_>, name: &'static str) -> Option<f64> {
    let days = env.record.and_then(Record::interval).map(|interval| interval.days_until(env.scope.now));
    if days.is_none() {
        env.record_missing(name);
    }
    days
}

fn days_since_latest(variable: Option<u8>, flow: Flow, env: &Env<'_>) -> Option<f64> {
    let days = env.totals_of(variable).and_then(|totals| totals.last(flow)).map(|last| last.days_since(env.scope.now));
    if days.is_none() {
        env.record_missing(flow.latest_name().unwrap_or(flow.as_str()));
    }
    days
}

/// Returns a fact that `of` converts to a type. `None` if it is missing or has another type; its name is then recorded as missing.
fn typed_fact<'a, T>(get: GetFact, env: &Env<'a>, of: fn(&'a Fact) -> Option<T>) -> Option<T> {
    let value = get.get(env).and_then(of);
    if value.is_none() {
        env.record_missing(get.name());
    }
    value
}

impl TextExpr {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<&'a str> {
        match self {
            TextExpr::Const(text) => Some(text),
            TextExpr::Field(get) => get.get(env),
            TextExpr::Fact(get) => typed_fact(*get, env, Fact::text),
            TextExpr::Item(variable) => match env.item(*variable) {
                Some(ListItem::Name(name)) => Some(name),
                _ => None,
            },
            TextExpr::Lead => {
                let lead = env.scope.lead.map(|lead| lead.text.as_str());
                if lead.is_none() {
                    env.record_missing("lead");
                }
                lead
            }
            TextExpr::If(parts) => chosen(parts, env)?.eval(env),
        }
    }
}

impl TimeExpr {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<Timestamp> {
        match self {
            TimeExpr::Const(at) => Some(*at),
            TimeExpr::Now => Some(env.scope.now),
            TimeExpr::Field(get) => get.get(env),
            TimeExpr::Fact(get) => typed_fact(*get, env, Fact::time),
            TimeExpr::Add(parts) => parts.0.eval(env)?.checked_add_signed(parts.1.eval(env)?),
            TimeExpr::Subtract(parts) => parts.0.eval(env)?.checked_sub_signed(parts.1.eval(env)?),
            TimeExpr::If(parts) => chosen(parts, env)?.eval(env),
        }
    }
}

impl SpanExpr {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<TimeDelta> {
        match self {
            SpanExpr::Const(span) => Some(*span),
            SpanExpr::Between(parts) => {
                let (left, right) = (parts.0.eval(env), parts.1.eval(env));
                Some(left?.signed_duration_since(right?))
            }
            SpanExpr::Negate(inner) => TimeDelta::zero().checked_sub(&inner.eval(env)?),
            SpanExpr::Add(parts) => parts.0.eval(env)?.checked_add(&parts.1.eval(env)?),
            SpanExpr::Subtract(parts) => parts.0.eval(env)?.checked_sub(&parts.1.eval(env)?),
            SpanExpr::If(parts) => chosen(parts, env)?.eval(env),
        }
    }
}

impl Arithmetic {
    pub fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Arithmetic::Add => left + right,
            Arithmetic::Subtract => left - right,
            Arithmetic::Multiply => left * right,
            Arithmetic::Divide => left / right,
            Arithmetic::Remainder => left % right,
        }
    }
}

impl Compare {
    #[expect(clippy::float_cmp, reason = "the operator wrote an exact comparison")]
    pub fn numbers(self, left: f64, right: f64) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::LessOrEqual => left <= right,
            Compare::Greater => left > right,
            Compare::GreaterOrEqual => left >= right,
        }
    }

    fn ordered<T: Ord>(self, left: &T, right: &T) -> bool {
        let order = left.cmp(right);
        match self {
            Compare::Equal => order.is_eq(),
            Compare::NotEqual => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::LessOrEqual => order.is_le(),
            Compare::Greater => order.is_gt(),
            Compare::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl Presence {
    fn eval(&self, env: &Env<'_>) -> bool {
        let env = &env.without_recording();
        match self {
            Presence::Number(get) => get.get(env).is_some(),
            Presence::Bool(get) => get.get(env).is_some(),
            Presence::Time(get) => get.get(env).is_some(),
            Presence::Text(get) => get.get(env).is_some(),
            Presence::Texts(get) => get.get(env).is_some(),
            Presence::Fact(get) => get.get(env).is_some(),
            Presence::List(list) => list.visit(env, &mut |_| false).is_some(),
            Presence::Window(window) => window.get(env).is_some(),
            Presence::Latest(variable, flow) => env.totals_of(*variable).is_some_and(|totals| totals.last(*flow).is_some()),
            Presence::Share(group) => env.scope.totals.is_some_and(|totals| totals.shares.contains_key(group)),
            Presence::PriceAge(variable) => env.price_age(*variable).is_some(),
            Presence::UntilRateChange(variable) => env.until_rate_change(*variable).is_some(),
            Presence::Rate(field) => env.rate_step().is_some_and(|step| field.of(step).is_some()),
            Presence::Position(field) => env.position(*field).is_some(),
            Presence::Corrections(of) => env.corrections(of.span).is_some(),
            Presence::Dated => env.record.and_then(Record::interval).is_some(),
            Presence::Lead => env.scope.lead.is_some(),
            Presence::Always => true,
        }
    }
}

impl FilteredList {
    /// Calls `visit` with each item and the combined result of the filters for it.
    fn visit<'a>(&'a self, env: &Env<'a>, visit: &mut dyn FnMut(ListItem<'a>, Option<bool>) -> bool) -> Option<()> {
        self.list.visit(env, &mut |item| {
            let mut passes = Some(true);
            for (variable, filter) in &self.filters {
                passes = kleene_and(passes, || filter.eval(&env.with_item(*variable, item)));
                if passes == Some(false) {
                    break;
                }
            }
            visit(item, passes)
        })
    }

    fn count<'a>(&'a self, env: &Env<'a>) -> Option<f64> {
        let mut total = Some(0_usize);
        self.visit(env, &mut |_, passes| {
            total = total.zip(passes).map(|(total, counted)| total + usize::from(counted));
            total.is_some()
        })?;
        total.map(count)
    }

    /// Returns the sum of `value`, evaluated with each item that passes the filters in `variable`. Zero without items. `None` if the list
    /// is missing, or if a filter or a value is missing for one of the items.
    fn sum<'a>(&'a self, variable: u8, value: &'a NumberExpr, env: &Env<'a>) -> Option<f64> {
        let mut total = Some(0.0);
        self.visit(env, &mut |item, passes| {
            total = match passes {
                Some(false) => total,
                Some(true) => total.zip(value.eval(&env.with_item(variable, item))).map(|(sum, value)| sum + value),
                None => None,
            };
            total.is_some()
        })?;
        total
    }

    fn exists<'a>(&'a self, variable: u8, test: &'a BoolExpr, env: &Env<'a>) -> Option<bool> {
        let mark = env.missing_count();
        let mut result = Some(false);
        self.visit(env, &mut |item, passes| {
            let found = kleene_and(passes, || test.eval(&env.with_item(variable, item)));
            result = kleene_or(result, || found);
            result != Some(true)
        })?;
        env.clear_missing_since(mark, result)
    }

    fn all<'a>(&'a self, variable: u8, test: &'a BoolExpr, env: &Env<'a>) -> Option<bool> {
        let mark = env.missing_count();
        let mut result = Some(true);
        self.visit(env, &mut |item, passes| {
            let holds = kleene_or(passes.map(|passes| !passes), || test.eval(&env.with_item(variable, item)));
            result = kleene_and(result, || holds);
            result != Some(false)
        })?;
        env.clear_missing_since(mark, result)
    }
}

impl WindowRef {
    fn get(self, env: &Env<'_>) -> Option<f64> {
        let value = env.totals_of(self.variable).and_then(|totals| self.field.of(totals.sum(self.window)?));
        if value.is_none() {
            env.record_missing(self.name());
        }
        value
    }

    /// Returns the name of the window's field in messages.
    fn name(self) -> &'static str {
        macro_rules! names {
            ($flow:literal) => {
                match self.field {
                    WindowField::Amount => concat!($flow, "(…).amount"),
                    WindowField::Value => concat!($flow, "(…).value"),
                    WindowField::Count => concat!($flow, "(…).count"),
                    WindowField::Possible => concat!($flow, "(…).possible"),
                    WindowField::CliffAmount => concat!($flow, "(…).cliff.amount"),
                    WindowField::CliffValue => concat!($flow, "(…).cliff.value"),
                    WindowField::CliffCount => concat!($flow, "(…).cliff.count"),
                    WindowField::LinearAmount => concat!($flow, "(…).linear.amount"),
                    WindowField::LinearValue => concat!($flow, "(…).linear.value"),
                }
            };
        }
        match self.window.flow {
            Flow::Ahead => names!("ahead"),
            Flow::Emitted => names!("emitted"),
            Flow::Burned => names!("burned"),
            Flow::BoughtBack => names!("boughtBack"),
        }
    }
}
