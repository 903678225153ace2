//! A checked condition: trees of typed expressions.
//!
//! An expression contains only parts of the types that it needs, so evaluation has no type errors, does not allocate, and does
//! not panic. The expressions are trees, not closures, because a tree can return references to its constants and can be
//! traversed.

use chrono::{Datelike, TimeDelta, Timelike};
use regex::Regex;

use super::corrections::CorrectionRef;
use crate::aggregate::{Flow, Sum, Window};
use crate::fields::NumberUnit;
use crate::getter::{GetBool, GetFact, GetNumber, GetText, GetTexts, GetTime, ItemList};
use model::{RateStep, Timestamp};

#[derive(Clone, Debug)]
pub enum BoolExpr {
    Const(bool),
    Field(GetBool),
    Not(Box<BoolExpr>),
    And(Box<(BoolExpr, BoolExpr)>),
    Or(Box<(BoolExpr, BoolExpr)>),
    If(Box<(BoolExpr, BoolExpr, BoolExpr)>),
    Numbers(Compare, NumberExpr, NumberExpr),
    Texts(Compare, TextExpr, TextExpr),
    Times(Compare, TimeExpr, TimeExpr),
    Spans(Compare, SpanExpr, SpanExpr),
    /// Equality if `true`, else inequality.
    Bools(bool, Box<(BoolExpr, BoolExpr)>),
    /// Equality if `true`, else inequality.
    Facts(bool, GetFact, GetFact),
    NumberIn(NumberExpr, Vec<NumberExpr>),
    TextIn(TextExpr, Vec<TextExpr>),
    TextInField(TextExpr, GetTexts),
    TextTest(TextTest, TextExpr, TextExpr),
    Matches(TextExpr, Regex),
    Has(Presence),
    Exists(FilteredList, u8, Box<BoolExpr>),
    All(FilteredList, u8, Box<BoolExpr>),
}

#[derive(Clone, Debug)]
pub enum NumberExpr {
    Const(f64),
    /// A field with its unit, which is used for warnings.
    Field(GetNumber, NumberUnit),
    Fact(GetFact),
    DaysUntil,
    DaysSince,
    Window(WindowRef),
    /// Days since the latest burn or buyback, of the scope or of the token in the variable.
    SinceLatest(Option<u8>, Flow),
    /// The token's percentage of the market cap of this group.
    Share(String),
    /// The age of a price in days, of the scope or of the token in the variable.
    PriceAge(Option<u8>),
    /// Days until the next change of the daily release, of the scope or of the token in the variable.
    UntilRateChange(Option<u8>),
    Rate(RateField),
    Position(PositionField),
    Corrections(CorrectionRef),
    Negate(Box<NumberExpr>),
    Binary(Arithmetic, Box<(NumberExpr, NumberExpr)>),
    If(Box<(BoolExpr, NumberExpr, NumberExpr)>),
    Least(Vec<NumberExpr>),
    Greatest(Vec<NumberExpr>),
    Abs(Box<NumberExpr>),
    /// A part of a time, in UTC.
    OfTime(TimePart, Box<TimeExpr>),
    /// A duration in whole hours, minutes, or seconds.
    OfSpan(TimePart, Box<SpanExpr>),
    Length(Box<TextExpr>),
    Count(FilteredList),
    Sum(FilteredList, u8, Box<NumberExpr>),
}

impl NumberExpr {
    /// Returns the unit of a field or sum. `None` for constants and calculations.
    pub fn unit(&self) -> Option<NumberUnit> {
        match self {
            NumberExpr::Field(_, unit) => Some(*unit),
            NumberExpr::Window(window) => Some(window.field.unit()),
            NumberExpr::Share(_) => Some(NumberUnit::Percent),
            NumberExpr::Rate(field) => Some(field.unit()),
            NumberExpr::Position(field) => Some(field.unit()),
            NumberExpr::Corrections(of) => Some(of.field.unit()),
            NumberExpr::DaysUntil
            | NumberExpr::DaysSince
            | NumberExpr::SinceLatest(..)
            | NumberExpr::UntilRateChange(_)
            | NumberExpr::PriceAge(_) => Some(NumberUnit::Days),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum TextExpr {
    Const(String),
    Field(GetText),
    Fact(GetFact),
    /// The item of a list of strings.
    Item(u8),
    /// The text of the lead time that was reached.
    Lead,
    If(Box<(BoolExpr, TextExpr, TextExpr)>),
}

#[derive(Clone, Debug)]
pub enum TimeExpr {
    Const(Timestamp),
    Now,
    Field(GetTime),
    Fact(GetFact),
    Add(Box<(TimeExpr, SpanExpr)>),
    Subtract(Box<(TimeExpr, SpanExpr)>),
    If(Box<(BoolExpr, TimeExpr, TimeExpr)>),
}

#[derive(Clone, Debug)]
pub enum SpanExpr {
    Const(TimeDelta),
    Between(Box<(TimeExpr, TimeExpr)>),
    Negate(Box<SpanExpr>),
    Add(Box<(SpanExpr, SpanExpr)>),
    Subtract(Box<(SpanExpr, SpanExpr)>),
    If(Box<(BoolExpr, SpanExpr, SpanExpr)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Compare {
    pub fn as_str(self) -> &'static str {
        match self {
            Compare::Equal => "==",
            Compare::NotEqual => "!=",
            Compare::Less => "<",
            Compare::LessOrEqual => "<=",
            Compare::Greater => ">",
            Compare::GreaterOrEqual => ">=",
        }
    }

    /// Returns the operator for exchanged operands.
    pub fn flipped(self) -> Self {
        match self {
            Compare::Less => Compare::Greater,
            Compare::LessOrEqual => Compare::GreaterOrEqual,
            Compare::Greater => Compare::Less,
            Compare::GreaterOrEqual => Compare::LessOrEqual,
            same => same,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTest {
    StartsWith,
    EndsWith,
    Contains,
}

impl TextTest {
    pub fn holds(self, text: &str, part: &str) -> bool {
        match self {
            TextTest::StartsWith => text.starts_with(part),
            TextTest::EndsWith => text.ends_with(part),
            TextTest::Contains => text.contains(part),
        }
    }
}

/// The daily linear release at the date of an unlock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateField {
    /// Tokens per day just before it.
    Before,
    /// Tokens per day from then on.
    After,
    /// The release after it, divided by the one before it.
    Change,
}

impl RateField {
    pub const fn as_str(self) -> &'static str {
        match self {
            RateField::Before => "rateBefore",
            RateField::After => "rateAfter",
            RateField::Change => "rateChange",
        }
    }

    pub fn unit(self) -> NumberUnit {
        if self == RateField::Change { NumberUnit::Ratio } else { NumberUnit::TokensADay }
    }

    pub fn of(self, step: RateStep) -> Option<f64> {
        match self {
            RateField::Before => Some(step.before),
            RateField::After => Some(step.after),
            RateField::Change => step.factor(),
        }
    }
}

/// The position of the operator in the token. Only conditions read it, because texts go to everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionField {
    /// Tokens.
    Amount,
    /// USD at the reference price.
    Value,
    /// The position divided by the amount of the unlock.
    Share,
}

impl PositionField {
    pub const fn as_str(self) -> &'static str {
        match self {
            PositionField::Amount => "position.amount",
            PositionField::Value => "position.value",
            PositionField::Share => "position.share",
        }
    }

    pub fn unit(self) -> NumberUnit {
        match self {
            PositionField::Amount => NumberUnit::Tokens,
            PositionField::Value => NumberUnit::Usd,
            PositionField::Share => NumberUnit::Ratio,
        }
    }

    /// Returns a sample value for the reference.
    pub fn example(self) -> &'static str {
        if self == PositionField::Share { "0.02" } else { "250000" }
    }

    /// Returns the description in the reference.
    pub fn about(self) -> &'static str {
        match self {
            PositionField::Amount => "your tokens, from `[watch]`; only in conditions, never in texts",
            PositionField::Value => {
                "`position.amount` times the reference price of the unlock, else of the token; missing without a price; only in conditions"
            }
            PositionField::Share => {
                "`position.amount` divided by the tokens of the unlock: 0.02 is 2 % of it; only in conditions"
            }
        }
    }
}

/// An operand of `has`.
#[derive(Clone, Debug)]
pub enum Presence {
    Number(GetNumber),
    Bool(GetBool),
    Time(GetTime),
    Text(GetText),
    Texts(GetTexts),
    Fact(GetFact),
    List(ItemList),
    Dated,
    Window(WindowRef),
    Latest(Option<u8>, Flow),
    Share(String),
    PriceAge(Option<u8>),
    UntilRateChange(Option<u8>),
    Rate(RateField),
    Position(PositionField),
    Corrections(CorrectionRef),
    Lead,
    Always,
}

/// The items of a list for which all filters are true.
#[derive(Clone, Debug)]
pub struct FilteredList {
    pub list: ItemList,
    /// Each filter with the slot of its variable.
    pub filters: Vec<(u8, BoolExpr)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowField {
    Amount,
    Value,
    Count,
    /// USD of imprecise unlocks that may still happen in the window. Only for [`Flow::Ahead`].
    Possible,
    /// A field of the cliff unlocks in the window. Only for [`Flow::Ahead`].
    CliffAmount,
    CliffValue,
    CliffCount,
    /// A field of the linear unlocks in the window. Only for [`Flow::Ahead`].
    LinearAmount,
    LinearValue,
}

impl WindowField {
    pub const ALL: [WindowField; 9] = [
        WindowField::Amount,
        WindowField::Value,
        WindowField::Count,
        WindowField::Possible,
        WindowField::CliffAmount,
        WindowField::CliffValue,
        WindowField::CliffCount,
        WindowField::LinearAmount,
        WindowField::LinearValue,
    ];

    /// Returns whether only `ahead` has the field.
    pub fn is_of_ahead(self) -> bool {
        !matches!(self, WindowField::Amount | WindowField::Value | WindowField::Count)
    }

    /// Returns the unit of the field.
    pub fn unit(self) -> NumberUnit {
        match self {
            WindowField::Amount | WindowField::CliffAmount | WindowField::LinearAmount => NumberUnit::Tokens,
            WindowField::Count | WindowField::CliffCount => NumberUnit::Count,
            WindowField::Value | WindowField::Possible | WindowField::CliffValue | WindowField::LinearValue => NumberUnit::Usd,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            WindowField::Amount => "amount",
            WindowField::Value => "value",
            WindowField::Count => "count",
            WindowField::Possible => "possible",
            WindowField::CliffAmount => "cliff.amount",
            WindowField::CliffValue => "cliff.value",
            WindowField::CliffCount => "cliff.count",
            WindowField::LinearAmount => "linear.amount",
            WindowField::LinearValue => "linear.value",
        }
    }

    pub fn of(self, sum: Sum) -> Option<f64> {
        match self {
            WindowField::Amount => sum.amount,
            WindowField::Value => sum.value,
            WindowField::Count => sum.count,
            WindowField::Possible => sum.possible,
            WindowField::CliffAmount => sum.cliff.amount,
            WindowField::CliffValue => sum.cliff.value,
            WindowField::CliffCount => sum.cliff.count,
            WindowField::LinearAmount => sum.linear.amount,
            WindowField::LinearValue => sum.linear.value,
        }
    }
}

/// A window of the scope, or of the token in the variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowRef {
    pub variable: Option<u8>,
    pub window: Window,
    pub field: WindowField,
}

/// The part of a time that a CEL accessor returns, counted like CEL: months and days of the week and year start at zero, and the
/// week starts on Sunday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimePart {
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
    /// By the name in conditions.
    pub const ALL: [(&str, TimePart); 9] = [
        ("getDayOfWeek", Self::DayOfWeek),
        ("getDate", Self::Date),
        ("getHours", Self::Hours),
        ("getMonth", Self::Month),
        ("getFullYear", Self::FullYear),
        ("getDayOfMonth", Self::DayOfMonth),
        ("getDayOfYear", Self::DayOfYear),
        ("getMinutes", Self::Minutes),
        ("getSeconds", Self::Seconds),
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::FullYear => "the year",
            Self::Month => "the month, January is 0",
            Self::Date => "the day of the month, from 1",
            Self::DayOfMonth => "the day of the month, from 0",
            Self::DayOfWeek => "the day of the week, Sunday is 0",
            Self::DayOfYear => "the day of the year, from 0",
            Self::Hours => "the hour; for a duration, the total in hours",
            Self::Minutes => "the minute; for a duration, the total in minutes",
            Self::Seconds => "the second; for a duration, the total in seconds",
        }
    }

    /// Returns `true` if durations have this part.
    pub fn is_duration_part(self) -> bool {
        matches!(self, Self::Hours | Self::Minutes | Self::Seconds)
    }

    pub fn of_time(self, at: Timestamp) -> f64 {
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

    #[expect(clippy::cast_precision_loss, reason = "the seconds of any relevant duration are exact")]
    pub fn of_duration(self, span: TimeDelta) -> f64 {
        match self {
            Self::Hours => span.num_hours() as f64,
            Self::Minutes => span.num_minutes() as f64,
            _ => span.num_seconds() as f64,
        }
    }
}
