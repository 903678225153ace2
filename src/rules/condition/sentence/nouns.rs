//! The names of the operands of a condition, and the texts of their values.

use crate::aggregate::Flow;
use crate::condition::corrections::CorrectionField;
use crate::condition::expr::{
    Arithmetic, FilteredList, NumberExpr, PositionField, Presence, RateField, SpanExpr, TextExpr, TimeExpr, WindowField,
    WindowRef,
};
use crate::fields::NumberUnit;
use crate::getter::{GetFact, ItemList};
use crate::on::On;
use model::{Resource, phrase};

use super::Phrases;

/// Names the operands of conditions of rules with this `on`.
#[derive(Clone, Copy)]
pub(super) struct Nouns {
    pub on: On,
}

/// Fields with a name of their own: the subject of a test, and the name as an operand if it differs. `valueToMarketCap` is about the
/// cliff, as are its value and its amount, which their units distinguish.
const FIELDS: [(&str, &str, &str); 35] = [
    ("cliffAmount", "the cliff", "the amount of the cliff"),
    ("cliffValue", "the cliff", "the value of the cliff"),
    ("valueToMarketCap", "the cliff", "the share of market cap of the cliff"),
    ("linearAmount", "the linear unlock", "the amount of the linear unlock"),
    ("linearValue", "the linear unlock", "the value of the linear unlock"),
    ("dailyAmount", "the daily release", ""),
    ("dailyValue", "the daily release", "the value of the daily release"),
    ("linearPerDay", "the linear release", ""),
    ("linearPerDayValue", "the linear release", "the value of the linear release"),
    ("nextRate.perDay", "the next linear release", ""),
    ("nextRate.date", "the date of the next linear release", ""),
    ("nextRate.change", "the next linear release", ""),
    ("committedAmount", "the announced claim", ""),
    ("committedValue", "the announced claim", "the value of the announced claim"),
    ("insiderShare", "the share of insiders", ""),
    ("teamShare", "the share of the team", ""),
    ("investorShare", "the share of private investors", ""),
    ("unlockDate", "the date", ""),
    ("unlockPrecision", "the precision of the date", ""),
    ("listedMethod", "the method of the source", ""),
    ("tokenAmount", "the buyback", "the amount of the buyback"),
    ("totalAmountRaisedinThatRound", "the funding round", ""),
    ("change.kind", "the kind of change", ""),
    ("change.from", "the old value", ""),
    ("change.to", "the new value", ""),
    ("change.shiftDays", "the shift", ""),
    ("change.shiftDaysMin", "the smallest shift", ""),
    ("change.shiftDaysMax", "the largest shift", ""),
    ("change.ratio", "the new value", ""),
    ("change.amount", "the amount of the change", ""),
    ("change.count", "the number of changed tranches", ""),
    ("marketCap", "market cap", ""),
    ("circulatingSupply", "circulating supply", ""),
    ("maxSupply", "max supply", ""),
    ("tokenCount", "the number of tokens", ""),
];

impl Nouns {
    /// The subject of tests of a number.
    pub fn subject(self, number: &NumberExpr) -> String {
        match number {
            NumberExpr::Field(get, _) => self.field(get.name()).0,
            NumberExpr::SinceLatest(_, flow) => latest(*flow).to_owned(),
            NumberExpr::DaysUntil | NumberExpr::DaysSince => "the date".to_owned(),
            NumberExpr::UntilRateChange(_) => "the next change of the linear release".to_owned(),
            NumberExpr::PriceAge(_) => "the price".to_owned(),
            NumberExpr::Position(_) => "your position".to_owned(),
            NumberExpr::Rate(RateField::Before) => "the daily release before it".to_owned(),
            NumberExpr::Rate(RateField::After | RateField::Change) => "the daily release after it".to_owned(),
            other => self.operand(other),
        }
    }

    /// A number within a calculation, or compared with another one.
    pub fn operand(self, number: &NumberExpr) -> String {
        match number {
            NumberExpr::Const(value) => plain_number(*value),
            NumberExpr::Field(get, _) => self.field(get.name()).1,
            NumberExpr::Fact(get) => self.fact(*get),
            NumberExpr::DaysUntil => "the number of days until the date".to_owned(),
            NumberExpr::DaysSince => "the number of days since the date".to_owned(),
            NumberExpr::SinceLatest(_, flow) => format!("the number of days since {}", latest(*flow)),
            NumberExpr::UntilRateChange(_) => "the number of days until the linear release changes".to_owned(),
            NumberExpr::PriceAge(_) => "the age of the price in days".to_owned(),
            NumberExpr::Window(of) => window(*of),
            NumberExpr::Share(group) => format!("the share of market cap in @{}", phrase::name(group)),
            NumberExpr::Rate(RateField::Change) => "the change of the daily release".to_owned(),
            NumberExpr::Position(PositionField::Value) => "the value of your position".to_owned(),
            NumberExpr::Position(PositionField::Share) => "the share of your position in the unlock".to_owned(),
            NumberExpr::Rate(_) | NumberExpr::Position(PositionField::Amount) => self.subject(number),
            NumberExpr::Corrections(of) => {
                let span = phrase::duration(of.span);
                match of.field {
                    CorrectionField::Count => format!("the number of corrections in the last {span}"),
                    CorrectionField::ShiftDays => format!("the sum of the shifts in the last {span}"),
                }
            }
            NumberExpr::Negate(inner) => format!("minus {}", self.operand(inner)),
            NumberExpr::Binary(op, sides) => self.calculation(*op, &sides.0, &sides.1),
            NumberExpr::If(parts) => {
                format!("{} or {}, depending on a condition", self.operand(&parts.1), self.operand(&parts.2))
            }
            NumberExpr::Least(items) => format!("the smallest of {}", self.operands(items)),
            NumberExpr::Greatest(items) => format!("the largest of {}", self.operands(items)),
            NumberExpr::Abs(inner) => match &**inner {
                NumberExpr::Binary(Arithmetic::Subtract, sides) => {
                    format!("the difference between {} and {}", self.operand(&sides.0), self.operand(&sides.1))
                }
                inner => format!("the size of {}", self.operand(inner)),
            },
            NumberExpr::OfTime(part, time) => format!("{} of {}", until_mark(part.description()), self.time(time)),
            NumberExpr::OfSpan(part, span) => format!("{} of {}", until_mark(part.description()), self.span(span)),
            NumberExpr::Length(text) => format!("the length of {}", self.text(text)),
            NumberExpr::Count(list) => format!("the number of {}", self.items(list)),
            NumberExpr::Sum(list, _, inner) => format!("the sum of {} over {}", self.operand(inner), self.items(list)),
        }
    }

    fn operands(self, items: &[NumberExpr]) -> String {
        phrase::list(&items.iter().map(|item| self.operand(item)).collect::<Vec<_>>())
    }

    fn calculation(self, op: Arithmetic, left: &NumberExpr, right: &NumberExpr) -> String {
        let (before, after) = (self.operand(left), self.operand(right));
        match (op, left, right) {
            (Arithmetic::Multiply, NumberExpr::Const(factor), base) | (Arithmetic::Multiply, base, NumberExpr::Const(factor)) => {
                let base = match base {
                    NumberExpr::Binary(..) => format!("the result of {}", self.operand(base)),
                    other => self.subject(other),
                };
                part_of(*factor, &base)
            }
            (Arithmetic::Add, ..) => format!("{before} plus {after}"),
            (Arithmetic::Subtract, ..) => format!("{before} minus {after}"),
            (Arithmetic::Multiply, ..) => format!("{before} times {after}"),
            (Arithmetic::Divide, ..) => format!("{before} divided by {after}"),
            (Arithmetic::Remainder, ..) => format!("the remainder of {before} divided by {after}"),
        }
    }

    /// The text of a constant that is compared with `number`.
    pub fn value(self, number: &NumberExpr, value: f64) -> String {
        match (number, number.unit()) {
            (NumberExpr::SinceLatest(..) | NumberExpr::DaysSince, _) => format!("{} ago", phrase::duration_of_days(value)),
            (NumberExpr::DaysUntil | NumberExpr::UntilRateChange(_), _) => format!("{} ahead", phrase::duration_of_days(value)),
            (NumberExpr::PriceAge(_), _) => format!("{} old", phrase::duration_of_days(value)),
            (NumberExpr::Position(PositionField::Share), _) => part_of(value, "the unlock"),
            (NumberExpr::Rate(RateField::Change), _) => part_of(value, "the one before"),
            (NumberExpr::Field(get, _), _) if get.name() == "change.ratio" => part_of(value, "the old one"),
            (NumberExpr::Field(get, _), _) if get.name() == "nextRate.change" => part_of(value, "the current one"),
            (NumberExpr::Field(get, _), Some(NumberUnit::Percent)) if get.name() == "valueToMarketCap" => {
                format!("{} of {}", percent(value), phrase::MARKET_CAP)
            }
            (_, Some(NumberUnit::Usd | NumberUnit::Price)) => short(phrase::usd(value)),
            (_, Some(NumberUnit::UsdADay)) => format!("{} per day", short(phrase::usd(value))),
            (_, Some(NumberUnit::Tokens)) => short(phrase::tokens(value, None)),
            (_, Some(NumberUnit::TokensADay)) => format!("{} per day", short(phrase::tokens(value, None))),
            (_, Some(NumberUnit::Percent)) => percent(value),
            (_, Some(NumberUnit::Fraction)) => percent(value * 100.0),
            (_, Some(NumberUnit::Days)) => phrase::duration_of_days(value),
            (_, Some(NumberUnit::Plain | NumberUnit::Ratio | NumberUnit::Count) | None) => plain_number(value),
        }
    }

    /// The text of a number of days that says in which direction dates moved, and whether the comparison is reversed. `None` for other
    /// numbers.
    pub fn directed(self, number: &NumberExpr, value: f64) -> Option<(bool, String)> {
        let is_shift = match number {
            NumberExpr::Field(get, _) => get.name().starts_with("change.shiftDays"),
            NumberExpr::Corrections(of) => of.field == CorrectionField::ShiftDays,
            _ => false,
        };
        let days = phrase::duration_of_days(value);
        is_shift.then(|| if value < 0.0 { (true, format!("{days} earlier")) } else { (false, format!("{days} later")) })
    }

    /// The subject of `has`, and the property that is known or unknown if the subject has several.
    pub fn presence(self, presence: &Presence) -> (String, Option<&'static str>) {
        let plain = |subject: String| (subject, None);
        match presence {
            Presence::Number(get) => {
                let what = match get.name().rsplit('.').next() {
                    Some("valueToMarketCap") => Some("share of market cap"),
                    Some(name) if name.to_ascii_lowercase().ends_with("value") => Some("value"),
                    Some("cliffAmount" | "linearAmount" | "tokenAmount") => Some("amount"),
                    _ => None,
                };
                (self.field(get.name()).0, what)
            }
            Presence::Bool(get) => plain(self.plain(get.name())),
            Presence::Text(get) => plain(self.plain(get.name())),
            Presence::Texts(get) => plain(self.plain(get.name())),
            Presence::Time(get) => plain(self.field(get.name()).0),
            Presence::Fact(get) => plain(self.fact(*get)),
            Presence::List(list) => plain(format!("the list of {}", phrase::noun(2, &self.item(*list)))),
            Presence::Dated => plain("the date".to_owned()),
            Presence::Window(of) => {
                (window(*of), matches!(of.field, WindowField::Value | WindowField::CliffValue).then_some("value"))
            }
            Presence::Latest(_, flow) => plain(latest(*flow).to_owned()),
            Presence::Share(group) => plain(self.operand(&NumberExpr::Share(group.clone()))),
            Presence::PriceAge(_) => plain("the price".to_owned()),
            Presence::UntilRateChange(of) => plain(self.subject(&NumberExpr::UntilRateChange(*of))),
            Presence::Rate(field) => plain(self.subject(&NumberExpr::Rate(*field))),
            Presence::Position(_) => plain("your position".to_owned()),
            Presence::Corrections(of) => plain(self.operand(&NumberExpr::Corrections(*of))),
            Presence::Lead => plain("the lead time".to_owned()),
            Presence::Always => plain("the current time".to_owned()),
        }
    }

    pub fn text(self, text: &TextExpr) -> String {
        match text {
            TextExpr::Const(text) => format!("\"{}\"", phrase::name(text)),
            TextExpr::Field(get) => self.plain(get.name()),
            TextExpr::Fact(get) => self.fact(*get),
            TextExpr::Item(_) => "the item".to_owned(),
            TextExpr::Lead => "the lead time".to_owned(),
            TextExpr::If(parts) => format!("{} or {}, depending on a condition", self.text(&parts.1), self.text(&parts.2)),
        }
    }

    pub fn time(self, time: &TimeExpr) -> String {
        match time {
            TimeExpr::Const(at) if at.time() == chrono::NaiveTime::MIN => phrase::day(*at),
            TimeExpr::Const(at) => phrase::instant(*at),
            TimeExpr::Now => "now".to_owned(),
            TimeExpr::Field(get) => self.field(get.name()).0,
            TimeExpr::Fact(get) => self.fact(*get).replace("value", "date"),
            TimeExpr::Add(sides) => match &sides.0 {
                TimeExpr::Now => format!("{} from now", self.span(&sides.1)),
                time => format!("{} after {}", self.span(&sides.1), self.time(time)),
            },
            TimeExpr::Subtract(sides) => match &sides.0 {
                TimeExpr::Now => format!("{} ago", self.span(&sides.1)),
                time => format!("{} before {}", self.span(&sides.1), self.time(time)),
            },
            TimeExpr::If(parts) => format!("{} or {}, depending on a condition", self.time(&parts.1), self.time(&parts.2)),
        }
    }

    pub fn span(self, span: &SpanExpr) -> String {
        match span {
            SpanExpr::Const(span) => phrase::duration(*span),
            SpanExpr::Between(ends) => match (&ends.0, &ends.1) {
                (time, TimeExpr::Now) => format!("the time until {}", self.time(time)),
                (TimeExpr::Now, time) => format!("the time since {}", self.time(time)),
                (end, begin) => format!("the time from {} to {}", self.time(begin), self.time(end)),
            },
            SpanExpr::Negate(inner) => format!("minus {}", self.span(inner)),
            SpanExpr::Add(sides) => format!("{} plus {}", self.span(&sides.0), self.span(&sides.1)),
            SpanExpr::Subtract(sides) => format!("{} minus {}", self.span(&sides.0), self.span(&sides.1)),
            SpanExpr::If(parts) => format!("{} or {}, depending on a condition", self.span(&parts.1), self.span(&parts.2)),
        }
    }

    pub fn fact(self, get: GetFact) -> String {
        self.field(get.name()).1
    }

    /// The name of a field that is no number.
    pub fn plain(self, name: &str) -> String {
        self.field(name).1
    }

    /// One item of a list: `recipient`, `token`.
    pub fn item(self, list: ItemList) -> String {
        match list {
            ItemList::Totals(..) => "token".to_owned(),
            ItemList::Texts(get) => format!("entry of {}", self.plain(get.name())),
            ItemList::Change(..) => "changed recipient".to_owned(),
            ItemList::Record(..) | ItemList::Token(..) | ItemList::Source(..) => "recipient".to_owned(),
        }
    }

    fn items(self, list: &FilteredList) -> String {
        let all = match list.list {
            ItemList::Texts(get) => format!("entries of {}", self.plain(get.name())),
            other => phrase::noun(2, &self.item(other)),
        };
        format!("{all}{}", Phrases(self).filters(list))
    }

    /// Returns the subject and the operand for a field.
    fn field(self, name: &str) -> (String, String) {
        for (prefix, which) in [("old.", "former"), ("new.", "new")] {
            if let Some(name) = name.strip_prefix(prefix) {
                let (subject, operand) = self.field(name);
                return (of_side(&subject, which), of_side(&operand, which));
            }
        }
        let own = name.strip_prefix("token.").unwrap_or(name);
        let last = own.rsplit('.').next().unwrap_or(own);
        let resource = self.on.resource();
        let event = match (resource, last) {
            (Some(Resource::Burn), "amount" | "value") => Some("the burn"),
            (Some(Resource::Buyback), "value") => Some("the buyback"),
            (Some(Resource::Emission), "unlockAmount" | "unlockValue") => Some("the emission"),
            (Some(Resource::Allocation), "allocationAmount") => Some("the allocation"),
            _ => None,
        };
        if let Some(event) = event.filter(|_| !own.starts_with("change.")) {
            let what = if last.to_ascii_lowercase().ends_with("value") { "value" } else { "amount" };
            return (event.to_owned(), format!("the {what} of {event}"));
        }
        let nested = own.starts_with("cliffUnlocks.") || own.starts_with("linearUnlocks.");
        if let Some((_, subject, operand)) = FIELDS.iter().find(|(known, ..)| *known == if nested { last } else { own }) {
            let operand = if operand.is_empty() { subject } else { operand };
            return ((*subject).to_owned(), (*operand).to_owned());
        }
        let text = format!("the {}", spaced(own));
        (text.clone(), text)
    }
}

/// The subject in the record before or after a change: `the former cliff`.
fn of_side(subject: &str, which: &str) -> String {
    subject.strip_prefix("the ").map_or_else(|| format!("{which} {subject}"), |rest| format!("the {which} {rest}"))
}

fn latest(flow: Flow) -> &'static str {
    if flow == Flow::Burned { "the last burn" } else { "the last buyback" }
}

/// The sum over a window. Value and amount have the same name, because the unit of the limit distinguishes them.
fn window(of: WindowRef) -> String {
    let span = phrase::duration(of.window.span);
    match (of.window.flow, of.field) {
        (Flow::Ahead, WindowField::Count) => format!("the number of unlocks in the next {span}"),
        (Flow::Ahead, WindowField::CliffCount) => format!("the number of cliffs in the next {span}"),
        (Flow::Ahead, WindowField::CliffAmount | WindowField::CliffValue) => format!("the cliffs of the next {span}"),
        (Flow::Ahead, WindowField::LinearAmount | WindowField::LinearValue) => format!("the linear unlocks of the next {span}"),
        (Flow::Ahead, WindowField::Possible) => format!("the supply with an inexact date that may unlock in the next {span}"),
        (Flow::Ahead, _) => format!("the supply unlocking in the next {span}"),
        (Flow::Emitted, WindowField::Count) => format!("the number of reported days or weeks of emission in the last {span}"),
        (Flow::Emitted, _) => format!("the emission of the last {span}"),
        (Flow::Burned, WindowField::Count) => format!("the number of burns in the last {span}"),
        (Flow::Burned, _) => format!("the supply burned in the last {span}"),
        (Flow::BoughtBack, WindowField::Count) => format!("the number of buybacks in the last {span}"),
        (Flow::BoughtBack, _) => format!("the supply bought back in the last {span}"),
    }
}

/// A multiple of something: `2% of circulating supply`, `3 times the cliff`.
fn part_of(factor: f64, base: &str) -> String {
    if factor.abs() < 10.0 {
        format!("{} of {base}", percent(factor * 100.0))
    } else {
        format!("{} times {base}", plain_number(factor))
    }
}

fn plain_number(value: f64) -> String {
    // Removes the rounding error of a product.
    let value: f64 = format!("{value:.12e}").parse().unwrap_or(value);
    phrase::grouped(value)
}

/// A percentage without needless zeros: `2%`, `0.5%`, `0.001%`.
fn percent(value: f64) -> String {
    format!("{}%", plain_number(value))
}

/// Removes needless zeros: `$25M` for `$25.00M`.
fn short(text: String) -> String {
    let Some((whole, rest)) = text.split_once('.') else { return text };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let (fraction, unit) = rest.split_at(digits);
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{unit}"),
        kept => format!("{whole}.{kept}{unit}"),
    }
}

/// An identifier as words: `price per token` for `pricePerToken`.
fn spaced(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for c in name.chars() {
        match c {
            '.' => text.push(' '),
            c if c.is_ascii_uppercase() => {
                text.push(' ');
                text.push(c.to_ascii_lowercase());
            }
            c => text.push(c),
        }
    }
    text
}

/// The text before the first comma or semicolon.
fn until_mark(text: &str) -> &str {
    text.split([',', ';']).next().unwrap_or(text)
}
