//! Conditions after the check: trees of typed nodes that read records directly.
//!
//! A node of one type can only have parts of the types it needs, so evaluation has no type errors, no allocation and no panic. A
//! field that is missing makes a node none: neither true nor false. `&&` and `||` are Kleene's: `false && missing` is false.
//! (Trees rather than closures, because a tree can lend its own constants, prints itself, and can be walked clause by clause.)

use std::cell::RefCell;

use chrono::{Datelike, TimeDelta, Timelike};
use regex::Regex;

use crate::{
    aggregate::{Flow, Sum, Totals, Window},
    change::{Change, Fact},
    supply::{Record, Timestamp, Token},
};

use super::{
    Scope, SourceFacts,
    fields::{Part, PartVisitor},
};

/// How deep `exists`, `all`, `filter` and `map` may stand within each other.
pub(super) const MAX_MACRO_NESTING: usize = 2;

/// Items of one list that a condition looks at; of a longer one it cannot be told.
const MAX_ITEMS: usize = 1_000;

/// What nodes read from.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    record: Option<&'a Record>,
    old: Option<&'a Record>,
    new: Option<&'a Record>,
    token: Option<&'a Token>,
    change: Option<&'a Change>,
    source: Option<&'a SourceFacts>,
    totals: Option<&'a Totals>,
    lead: Option<&'a str>,
    now: Timestamp,
    parts: [Option<Part<'a>>; MAX_MACRO_NESTING],
    missed: Option<&'a RefCell<Vec<&'static str>>>,
}

impl<'a> Env<'a> {
    /// The surroundings of one evaluation. The record of a change is the one after it; before it, where it is gone.
    pub fn of(scope: &Scope<'a>, missed: Option<&'a RefCell<Vec<&'static str>>>) -> Self {
        let old = scope.change.and_then(|change| change.old.as_ref());
        let new = scope.change.and_then(|change| change.new.as_ref());
        Self {
            record: scope.record.map(|tracked| &tracked.record).or(new).or(old),
            old,
            new,
            token: scope.token,
            change: scope.change,
            source: scope.source,
            totals: scope.totals,
            lead: scope.lead.map(|lead| lead.text.as_str()),
            now: scope.now,
            parts: [None; MAX_MACRO_NESTING],
            missed,
        }
    }

    /// The record that unprefixed names are about.
    pub fn record(&self) -> Option<&'a Record> {
        self.record
    }

    fn which(&self, which: Which) -> Option<&'a Record> {
        match which {
            Which::Current => self.record,
            Which::Old => self.old,
            Which::New => self.new,
        }
    }

    fn part(&self, variable: u8) -> Option<Part<'a>> {
        self.parts.get(usize::from(variable)).copied().flatten()
    }

    /// The totals that are asked for: the scope's own, or those of the token that a variable stands for.
    fn totals(&self, variable: Option<u8>) -> Option<&'a Totals> {
        match variable {
            None => self.totals,
            Some(variable) => match self.part(variable)? {
                Part::Member(member) => Some(&member.totals),
                _ => None,
            },
        }
    }

    fn with_part(&self, variable: u8, part: Part<'a>) -> Self {
        let mut env = *self;
        if let Some(slot) = env.parts.get_mut(usize::from(variable)) {
            *slot = Some(part);
        }
        env
    }

    fn miss(&self, name: &'static str) {
        if let Some(missed) = self.missed
            && let Ok(mut missed) = missed.try_borrow_mut()
            && !missed.contains(&name)
        {
            missed.push(name);
        }
    }

    fn mark(&self) -> usize {
        self.missed.and_then(|missed| missed.try_borrow().ok().map(|missed| missed.len())).unwrap_or_default()
    }

    /// Forgets what was missed since `mark`, where the result did not depend on it after all.
    fn settle<T>(&self, mark: usize, result: Option<T>) -> Option<T> {
        if result.is_some()
            && let Some(missed) = self.missed
            && let Ok(mut missed) = missed.try_borrow_mut()
        {
            missed.truncate(mark);
        }
        result
    }
}

/// Which record of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Current,
    Old,
    New,
}

/// Declares where a value of one type can be read from: name for messages, and the function of the field table.
macro_rules! getter {
    ($(#[$doc:meta])* $name:ident -> $out:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "one shape for all types; not every place has fields of each type")]
        pub(super) enum $name {
            Record(Which, &'static str, for<'a> fn(&'a Record) -> Option<$out>),
            Token(&'static str, for<'a> fn(&'a Token) -> Option<$out>),
            Change(&'static str, for<'a> fn(&'a Change) -> Option<$out>),
            Source(&'static str, for<'a> fn(&'a SourceFacts) -> Option<$out>),
            Totals(&'static str, for<'a> fn(&'a Totals) -> Option<$out>),
            Part(u8, &'static str, for<'a> fn(Part<'a>) -> Option<$out>),
        }

        impl $name {
            fn get<'a>(self, env: &Env<'a>) -> Option<$out> {
                let (name, value) = match self {
                    Self::Record(which, name, read) => (name, env.which(which).and_then(read)),
                    Self::Token(name, read) => (name, env.token.and_then(read)),
                    Self::Change(name, read) => (name, env.change.and_then(read)),
                    Self::Source(name, read) => (name, env.source.and_then(read)),
                    Self::Totals(name, read) => (name, env.totals.and_then(read)),
                    Self::Part(variable, name, read) => (name, env.part(variable).and_then(read)),
                };
                if value.is_none() {
                    env.miss(name);
                }
                value
            }

            /// The field's name, for messages.
            #[allow(dead_code, reason = "messages do not name fields of each type")]
            pub fn name(self) -> &'static str {
                match self {
                    Self::Record(_, name, _)
                    | Self::Token(name, _)
                    | Self::Change(name, _)
                    | Self::Source(name, _)
                    | Self::Totals(name, _)
                    | Self::Part(_, name, _) => name,
                }
            }
        }
    };
}

getter!(
    /// A number.
    GetNumber -> f64
);
getter!(
    /// True or false.
    GetBool -> bool
);
getter!(
    /// An instant.
    GetTime -> Timestamp
);
getter!(
    /// A text.
    GetText -> &'a str
);
getter!(
    /// A list of texts.
    GetTexts -> &'a [String]
);
getter!(
    /// Number, instant or text.
    GetFact -> &'a Fact
);

/// A list to go through.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Record(Which, &'static str, for<'a> fn(&'a Record, PartVisitor<'a, '_>) -> Option<()>),
    Change(&'static str, for<'a> fn(&'a Change, PartVisitor<'a, '_>) -> Option<()>),
    Totals(&'static str, for<'a> fn(&'a Totals, PartVisitor<'a, '_>) -> Option<()>),
    Texts(GetTexts),
}

impl List {
    fn visit<'a>(self, env: &Env<'a>, visit: PartVisitor<'a, '_>) -> Option<()> {
        let mut seen = 0;
        let mut bounded = |part: Part<'a>| {
            seen += 1;
            seen <= MAX_ITEMS && visit(part)
        };
        let (name, done) = match self {
            List::Record(which, name, read) => (name, env.which(which).and_then(|record| read(record, &mut bounded))),
            List::Change(name, read) => (name, env.change.and_then(|change| read(change, &mut bounded))),
            List::Totals(name, read) => (name, env.totals.and_then(|totals| read(totals, &mut bounded))),
            List::Texts(get) => (get.name(), get.get(env).map(|texts| _ = texts.iter().all(|text| bounded(Part::Name(text))))),
        };
        let result = done.filter(|()| seen <= MAX_ITEMS);
        if result.is_none() {
            env.miss(name);
        }
        result
    }
}

/// A list, or those of its items for which all filters hold.
#[derive(Debug)]
pub(super) struct Items {
    pub list: List,
    /// Each with the slot of its variable.
    pub filters: Vec<(u8, Cond)>,
}

impl Items {
    /// Goes through the items: `visit` gets the surroundings to bind the item in, the item, and whether the filters hold.
    fn visit<'a>(&'a self, env: &Env<'a>, visit: &mut dyn FnMut(Part<'a>, Option<bool>) -> bool) -> Option<()> {
        self.list.visit(env, &mut |part| {
            let mut verdict = Some(true);
            for (variable, filter) in &self.filters {
                verdict = kleene_and(verdict, || filter.eval(&env.with_part(*variable, part)));
                if verdict == Some(false) {
                    break;
                }
            }
            visit(part, verdict)
        })
    }
}

/// What is asked of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Amount,
    Value,
    Count,
}

impl What {
    pub const ALL: [What; 3] = [What::Amount, What::Value, What::Count];

    pub fn as_str(self) -> &'static str {
        match self {
            What::Amount => "amount",
            What::Value => "value",
            What::Count => "count",
        }
    }

    fn of(self, sum: Sum) -> Option<f64> {
        match self {
            What::Amount => sum.amount,
            What::Value => sum.value,
            What::Count => sum.count,
        }
    }
}

/// A window of the scope itself, or of the token that a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    pub variable: Option<u8>,
    pub window: Window,
    pub what: What,
}

impl Reach {
    fn get(self, env: &Env<'_>) -> Option<f64> {
        let value = env.totals(self.variable).and_then(|totals| self.what.of(totals.sum(self.window)?));
        if value.is_none() {
            env.miss(reach_name(self.window.flow, self.what));
        }
        value
    }
}

/// How messages name what is asked of a window.
fn reach_name(flow: Flow, what: What) -> &'static str {
    match (flow, what) {
        (Flow::Ahead, What::Amount) => "ahead(…).amount",
        (Flow::Ahead, What::Value) => "ahead(…).value",
        (Flow::Ahead, What::Count) => "ahead(…).count",
        (Flow::Emitted, What::Amount) => "emitted(…).amount",
        (Flow::Emitted, What::Value) => "emitted(…).value",
        (Flow::Emitted, What::Count) => "emitted(…).count",
        (Flow::Burned, What::Amount) => "burned(…).amount",
        (Flow::Burned, What::Value) => "burned(…).value",
        (Flow::Burned, What::Count) => "burned(…).count",
        (Flow::BoughtBack, What::Amount) => "boughtBack(…).amount",
        (Flow::BoughtBack, What::Value) => "boughtBack(…).value",
        (Flow::BoughtBack, What::Count) => "boughtBack(…).count",
    }
}

/// Days since the latest burn or buyback.
fn days_since_last(variable: Option<u8>, flow: Flow, env: &Env<'_>) -> Option<f64> {
    let days = env.totals(variable).and_then(|totals| totals.last(flow)).map(|last| last.days_since(env.now));
    if days.is_none() {
        env.miss(if flow == Flow::Burned { "lastBurn" } else { "lastBuyback" });
    }
    days
}

/// A number.
#[derive(Debug)]
pub(super) enum Num {
    Const(f64),
    Field(GetNumber),
    Fact(GetFact),
    DaysUntil,
    DaysSince,
    /// What is in a window.
    Window(Reach),
    /// Days since the latest burn or buyback, of the scope itself or of a variable's token.
    SinceLast(Option<u8>, Flow),
    /// Percent of the market cap of a group.
    Share(String),
    Negate(Box<Num>),
    Binary(Arithmetic, Box<(Num, Num)>),
    If(Box<(Cond, Num, Num)>),
    Least(Vec<Num>),
    Greatest(Vec<Num>),
    Abs(Box<Num>),
    /// A part of a time, as UTC has it.
    OfTime(TimePart, Box<Time>),
    /// A length of time in whole units.
    OfSpan(TimePart, Box<Span>),
    /// Characters of a text.
    Length(Box<Txt>),
    /// Items of a list.
    Count(Items),
    /// Sum over the items of a list.
    Sum(Items, u8, Box<Num>),
}

/// What CEL's accessors tell of a time, counted as CEL counts: months, days of the year and of the week from zero, on a Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimePart {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
}

impl TimePart {
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "getFullYear" => Self::FullYear,
            "getMonth" => Self::Month,
            "getDate" => Self::Date,
            "getDayOfMonth" => Self::DayOfMonth,
            "getDayOfWeek" => Self::DayOfWeek,
            "getDayOfYear" => Self::DayOfYear,
            "getHours" => Self::Hours,
            "getMinutes" => Self::Minutes,
            "getSeconds" => Self::Seconds,
            _ => return None,
        })
    }

    /// Whether a length of time has it.
    pub fn is_of_span(self) -> bool {
        matches!(self, Self::Hours | Self::Minutes | Self::Seconds)
    }

    fn of_time(self, at: Timestamp) -> f64 {
        match self {
            Self::FullYear => f64::from(at.year()),
            Self::Month => f64::from(at.month0()),
            Self::Date => f64::from(at.day()),
            Self::DayOfMonth => f64::from(at.day0()),
            Self::DayOfWeek => f64::from(at.weekday().num_days_from_sunday()),
            Self::DayOfYear => f64::from(at.ordinal0()),
            Self::Hours => f64::from(at.hour()),
            Self::Minutes => f64::from(at.minute()),
            Self::Seconds => f64::from(at.second()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "whole seconds of any length of time that matters are exact")]
    fn of_span(self, span: TimeDelta) -> f64 {
        match self {
            Self::Hours => span.num_hours() as f64,
            Self::Minutes => span.num_minutes() as f64,
            _ => span.num_seconds() as f64,
        }
    }
}

/// Arithmetic on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Num {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<f64> {
        match self {
            Num::Const(value) => Some(*value),
            Num::Field(get) => get.get(env),
            Num::Fact(get) => typed_fact(*get, env, Fact::amount),
            Num::DaysUntil => days_until(env, "daysUntil"),
            Num::DaysSince => days_until(env, "daysSince").map(|days| 0.0 - days),
            Num::Window(reach) => reach.get(env),
            Num::SinceLast(variable, flow) => days_since_last(*variable, *flow, env),
            Num::Share(group) => {
                let share = env.totals.and_then(|totals| totals.shares.get(group)).copied();
                if share.is_none() {
                    env.miss("share(…)");
                }
                share
            }
            Num::Negate(inner) => inner.eval(env).map(|value| -value),
            Num::Binary(op, sides) => {
                // Both are read before either is given up, so that all missing fields are named together.
                let (left, right) = (sides.0.eval(env), sides.1.eval(env));
                let (left, right) = (left?, right?);
                let result = match op {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide => left / right,
                    Arithmetic::Remainder => left % right,
                };
                if result.is_nan() {
                    // Nothing can be said of 0 / 0, so nothing that is compared with it is true or false.
                    env.miss("(0 / 0)");
                    return None;
                }
                Some(result)
            }
            Num::If(parts) => {
                if parts.0.eval(env)? {
                    parts.1.eval(env)
                } else {
                    parts.2.eval(env)
                }
            }
            Num::Least(items) => fold(items, env, f64::min),
            Num::Greatest(items) => fold(items, env, f64::max),
            Num::Abs(inner) => inner.eval(env).map(f64::abs),
            Num::OfTime(part, at) => at.eval(env).map(|at| part.of_time(at)),
            Num::OfSpan(part, span) => span.eval(env).map(|span| part.of_span(span)),
            Num::Length(text) => text.eval(env).map(|text| count(text.chars().count())),
            Num::Count(items) => {
                let mut total = Some(0_usize);
                items.visit(env, &mut |_, verdict| {
                    total = total.zip(verdict).map(|(total, counted)| total + usize::from(counted));
                    total.is_some()
                })?;
                total.map(count)
            }
            Num::Sum(items, variable, value) => {
                let mut total = Some(0.0);
                items.visit(env, &mut |part, verdict| {
                    total = match verdict {
                        Some(false) => total,
                        Some(true) => total.zip(value.eval(&env.with_part(*variable, part))).map(|(sum, value)| sum + value),
                        None => None,
                    };
                    total.is_some()
                })?;
                total
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most a thousand items, or the length of a text")]
fn count(items: usize) -> f64 {
    items as f64
}

fn fold<'a>(items: &'a [Num], env: &Env<'a>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    let mut best: Option<f64> = None;
    for item in items {
        let value = item.eval(env)?;
        best = Some(best.map_or(value, |best| pick(best, value)));
    }
    best
}

fn days_until(env: &Env<'_>, name: &'static str) -> Option<f64> {
    let days = env.record.and_then(Record::interval).map(|interval| interval.days_until(env.now));
    if days.is_none() {
        env.miss(name);
    }
    days
}

fn typed_fact<'a, T>(get: GetFact, env: &Env<'a>, of: fn(&'a Fact) -> Option<T>) -> Option<T> {
    let value = get.get(env).and_then(of);
    if value.is_none() {
        env.miss(get.name());
    }
    value
}

/// A text.
#[derive(Debug)]
pub(super) enum Txt {
    Const(String),
    Field(GetText),
    Fact(GetFact),
    /// The item itself, where a list holds texts.
    Item(u8),
    /// The lead time told, as the rule writes it.
    Lead,
    If(Box<(Cond, Txt, Txt)>),
}

impl Txt {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<&'a str> {
        match self {
            Txt::Const(text) => Some(text),
            Txt::Field(get) => get.get(env),
            Txt::Fact(get) => typed_fact(*get, env, Fact::text),
            Txt::Item(variable) => match env.part(*variable) {
                Some(Part::Name(name)) => Some(name),
                _ => None,
            },
            Txt::Lead => {
                if env.lead.is_none() {
                    env.miss("lead");
                }
                env.lead
            }
            Txt::If(parts) => {
                if parts.0.eval(env)? {
                    parts.1.eval(env)
                } else {
                    parts.2.eval(env)
                }
            }
        }
    }
}

/// An instant.
#[derive(Debug)]
pub(super) enum Time {
    Const(Timestamp),
    Now,
    Field(GetTime),
    Fact(GetFact),
    Add(Box<(Time, Span)>),
    Subtract(Box<(Time, Span)>),
    If(Box<(Cond, Time, Time)>),
}

impl Time {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<Timestamp> {
        match self {
            Time::Const(at) => Some(*at),
            Time::Now => Some(env.now),
            Time::Field(get) => get.get(env),
            Time::Fact(get) => typed_fact(*get, env, Fact::time),
            Time::Add(parts) => parts.0.eval(env)?.checked_add_signed(parts.1.eval(env)?),
            Time::Subtract(parts) => parts.0.eval(env)?.checked_sub_signed(parts.1.eval(env)?),
            Time::If(parts) => {
                if parts.0.eval(env)? {
                    parts.1.eval(env)
                } else {
                    parts.2.eval(env)
                }
            }
        }
    }
}

/// A length of time.
#[derive(Debug)]
pub(super) enum Span {
    Const(TimeDelta),
    Between(Box<(Time, Time)>),
    Negate(Box<Span>),
    Add(Box<(Span, Span)>),
    Subtract(Box<(Span, Span)>),
    If(Box<(Cond, Span, Span)>),
}

impl Span {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<TimeDelta> {
        match self {
            Span::Const(span) => Some(*span),
            Span::Between(parts) => {
                let (left, right) = (parts.0.eval(env), parts.1.eval(env));
                Some(left?.signed_duration_since(right?))
            }
            Span::Negate(inner) => TimeDelta::zero().checked_sub(&inner.eval(env)?),
            Span::Add(parts) => parts.0.eval(env)?.checked_add(&parts.1.eval(env)?),
            Span::Subtract(parts) => parts.0.eval(env)?.checked_sub(&parts.1.eval(env)?),
            Span::If(parts) => {
                if parts.0.eval(env)? {
                    parts.1.eval(env)
                } else {
                    parts.2.eval(env)
                }
            }
        }
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    #[expect(clippy::float_cmp, reason = "the operator wrote an exact comparison")]
    fn numbers(self, left: f64, right: f64) -> bool {
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

/// A test of one text by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

/// Something whose presence can be asked for.
#[derive(Clone, Debug)]
pub(super) enum Presence {
    Number(GetNumber),
    Bool(GetBool),
    Time(GetTime),
    Text(GetText),
    Texts(GetTexts),
    Fact(GetFact),
    List(List),
    Dated,
    Window(Reach),
    Last(Option<u8>, Flow),
    Share(String),
    Lead,
    Always,
}

impl Presence {
    fn eval(&self, env: &Env<'_>) -> bool {
        let env = &Env { missed: None, ..*env };
        match self {
            Presence::Number(get) => get.get(env).is_some(),
            Presence::Bool(get) => get.get(env).is_some(),
            Presence::Time(get) => get.get(env).is_some(),
            Presence::Text(get) => get.get(env).is_some(),
            Presence::Texts(get) => get.get(env).is_some(),
            Presence::Fact(get) => get.get(env).is_some(),
            Presence::List(list) => list.visit(env, &mut |_| false).is_some(),
            Presence::Window(reach) => reach.get(env).is_some(),
            Presence::Last(variable, flow) => env.totals(*variable).is_some_and(|totals| totals.last(*flow).is_some()),
            Presence::Share(group) => env.totals.is_some_and(|totals| totals.shares.contains_key(group)),
            Presence::Dated => env.record.and_then(Record::interval).is_some(),
            Presence::Lead => env.lead.is_some(),
            Presence::Always => true,
        }
    }
}

/// True, false, or neither.
#[derive(Debug)]
pub(super) enum Cond {
    Const(bool),
    Field(GetBool),
    Not(Box<Cond>),
    And(Box<(Cond, Cond)>),
    Or(Box<(Cond, Cond)>),
    If(Box<(Cond, Cond, Cond)>),
    Numbers(Compare, Num, Num),
    Texts(Compare, Txt, Txt),
    Times(Compare, Time, Time),
    Spans(Compare, Span, Span),
    /// Equal, or (`false`) unequal.
    Bools(bool, Box<(Cond, Cond)>),
    /// Equal, or (`false`) unequal.
    Facts(bool, GetFact, GetFact),
    NumberIn(Num, Vec<Num>),
    TextIn(Txt, Vec<Txt>),
    TextInField(Txt, GetTexts),
    TextTest(TextTest, Txt, Txt),
    Matches(Txt, Regex),
    Has(Presence),
    Exists(Items, u8, Box<Cond>),
    All(Items, u8, Box<Cond>),
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

impl Cond {
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Option<bool> {
        match self {
            Cond::Const(value) => Some(*value),
            Cond::Field(get) => get.get(env),
            Cond::Not(inner) => inner.eval(env).map(|value| !value),
            Cond::And(sides) => {
                let mark = env.mark();
                let result = kleene_and(sides.0.eval(env), || sides.1.eval(env));
                env.settle(mark, result)
            }
            Cond::Or(sides) => {
                let mark = env.mark();
                let result = kleene_or(sides.0.eval(env), || sides.1.eval(env));
                env.settle(mark, result)
            }
            Cond::If(parts) => {
                if parts.0.eval(env)? {
                    parts.1.eval(env)
                } else {
                    parts.2.eval(env)
                }
            }
            Cond::Numbers(op, left, right) => {
                let (left, right) = (left.eval(env), right.eval(env));
                Some(op.numbers(left?, right?))
            }
            Cond::Texts(op, left, right) => {
                let (left, right) = (left.eval(env), right.eval(env));
                Some(op.ordered(&left?, &right?))
            }
            Cond::Times(op, left, right) => {
                let (left, right) = (left.eval(env), right.eval(env));
                Some(op.ordered(&left?, &right?))
            }
            Cond::Spans(op, left, right) => {
                let (left, right) = (left.eval(env), right.eval(env));
                Some(op.ordered(&left?, &right?))
            }
            Cond::Bools(equal, sides) => {
                let (left, right) = (sides.0.eval(env), sides.1.eval(env));
                Some((left? == right?) == *equal)
            }
            Cond::Facts(equal, left, right) => {
                let (left, right) = (left.get(env), right.get(env));
                Some((left? == right?) == *equal)
            }
            Cond::NumberIn(value, items) => {
                let value = value.eval(env)?;
                any(items, |item| item.eval(env).map(|item| Compare::Equal.numbers(item, value)))
            }
            Cond::TextIn(value, items) => {
                let value = value.eval(env)?;
                any(items, |item| item.eval(env).map(|item| item == value))
            }
            Cond::TextInField(value, list) => {
                let (value, list) = (value.eval(env), list.get(env));
                let value = value?;
                Some(list?.iter().any(|item| item == value))
            }
            Cond::TextTest(test, text, part) => {
                let (text, part) = (text.eval(env), part.eval(env));
                let (text, part) = (text?, part?);
                Some(match test {
                    TextTest::StartsWith => text.starts_with(part),
                    TextTest::EndsWith => text.ends_with(part),
                    TextTest::Contains => text.contains(part),
                })
            }
            Cond::Matches(text, pattern) => text.eval(env).map(|text| pattern.is_match(text)),
            Cond::Has(presence) => Some(presence.eval(env)),
            Cond::Exists(items, variable, test) => {
                let mark = env.mark();
                let mut result = Some(false);
                items.visit(env, &mut |part, verdict| {
                    let found = kleene_and(verdict, || test.eval(&env.with_part(*variable, part)));
                    result = kleene_or(result, || found);
                    result != Some(true)
                })?;
                env.settle(mark, result)
            }
            Cond::All(items, variable, test) => {
                let mark = env.mark();
                let mut result = Some(true);
                items.visit(env, &mut |part, verdict| {
                    let holds = kleene_or(verdict.map(|verdict| !verdict), || test.eval(&env.with_part(*variable, part)));
                    result = kleene_and(result, || holds);
                    result != Some(false)
                })?;
                env.settle(mark, result)
            }
        }
    }
}

/// Whether any item is it: true beats missing, missing beats false.
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
