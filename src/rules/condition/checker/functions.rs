//! Checks function calls: `has(cliffValue)`, `max(cliffValue, linearValue)`, `timestamp("2026-01-31")`.

use cel::IdedExpr;

use super::{Checked, Checker, SUPPORTED, methods::METHODS};
use crate::{
    condition::expr::{BoolExpr, FilteredList, NumberExpr, Presence, SpanExpr, TextExpr, TimeExpr, TimePart},
    {aggregate::Flow, getter::ItemList, on::On, vocabulary::SHARE, wording::span_of},
};
use model::{closest, wire};

/// The functions of conditions, each with an example and a description.
pub(super) const FUNCTIONS: [(&str, &str, &str); 7] = [
    ("has", "has(cliffValue)", "true if a field has a value"),
    ("size", "size(allocations)", "number of list items, or of characters of a string"),
    ("min", "min(cliffValue, linearValue)", "smallest of several numbers"),
    ("max", "max(cliffValue, linearValue)", "largest of several numbers"),
    ("abs", "abs(change.shiftDays)", "absolute value of a number"),
    ("timestamp", "timestamp(\"2026-01-31\")", "a fixed time, UTC"),
    ("duration", "duration(\"7d\")", "a duration: `unlockDate - now <= duration(\"7d\")`"),
];

impl Checker<'_> {
    pub(super) fn function(&mut self, expr: &IdedExpr, name: &str, arguments: &[IdedExpr]) -> Option<Checked> {
        match (name, arguments) {
            ("has", [argument]) => self.has(argument),
            ("size", [argument]) => self.size(expr, argument),
            (SHARE, [argument]) if self.vocabulary.has_windows() => self.share(expr, argument),
            ("abs", [argument]) => Some(Checked::Number(NumberExpr::Abs(Box::new(self.number(argument)?)))),
            ("matches", [text, pattern]) => self.method(expr, name, text, std::slice::from_ref(pattern)),
            ("double", [argument]) => Some(Checked::Number(self.number(argument)?)),
            ("min" | "max", [_, _, ..]) => {
                let items: Vec<Option<NumberExpr>> = arguments.iter().map(|argument| self.number(argument)).collect();
                let items: Vec<NumberExpr> = items.into_iter().collect::<Option<_>>()?;
                Some(Checked::Number(if name == "min" { NumberExpr::Least(items) } else { NumberExpr::Greatest(items) }))
            }
            ("timestamp", [argument]) => self.timestamp(argument),
            ("duration", [argument]) => self.duration(argument),
            _ => match FUNCTIONS.iter().find(|(known, ..)| *known == name) {
                Some((_, usage, _)) => self.reject(
                    self.span(expr),
                    format!("`{name}` has the wrong number of arguments"),
                    format!("example: `{usage}`"),
                ),
                None => self.unsupported(expr, name),
            },
        }
    }

    fn timestamp(&mut self, argument: &IdedExpr) -> Option<Checked> {
        let Some(text) = self.constant(argument) else {
            return self.reject(
                self.span(argument),
                "`timestamp` requires a quoted string",
                "example: `timestamp(\"2026-01-31\")`; fields such as `unlockDate` need no conversion",
            );
        };
        match wire::parse_timestamp(&text) {
            Some(at) => Some(Checked::Time(TimeExpr::Const(at))),
            None => self.reject(
                self.span(argument),
                format!("\"{text}\" is not a valid time"),
                "examples: \"2026-01-31\", \"2026-01-31T09:00:00Z\"",
            ),
        }
    }

    fn duration(&mut self, argument: &IdedExpr) -> Option<Checked> {
        let Some(text) = self.constant(argument) else {
            return self.reject(
                self.span(argument),
                "`duration` requires a quoted string",
                "examples: `duration(\"7d\")`, `duration(\"36h\")`",
            );
        };
        match span_of(&text) {
            Ok(span) => Some(Checked::Span(SpanExpr::Const(span))),
            Err(problem) => self.reject(self.span(argument), format!("\"{text}\" is not a valid duration"), problem),
        }
    }

    fn share(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        if self.on != On::Token {
            return self.reject(
                self.span(expr),
                "`share` works only in rules on `token`",
                "check each token instead: `tokens.exists(t, t.share > 25)`",
            );
        }
        let Some(group) = self.constant(argument) else {
            return self.reject(self.span(argument), "`share` requires the name of a group", "example: `share(\"portfolio\")`");
        };
        if !self.dependencies.groups.contains(&group) {
            self.dependencies.groups.push(group.clone());
        }
        Some(Checked::Number(NumberExpr::Share(group)))
    }

    fn has(&mut self, argument: &IdedExpr) -> Option<Checked> {
        let clock = self.dependencies.clock;
        if let Some(presence) = self.has_latest(argument) {
            return Some(Checked::Bool(BoolExpr::Has(presence)));
        }
        let typed = self.check(argument)?;
        self.dependencies.clock = clock;
        let presence = match typed {
            Checked::Number(NumberExpr::Field(get, _)) => Presence::Number(get),
            Checked::Number(NumberExpr::DaysUntil | NumberExpr::DaysSince) => Presence::Dated,
            Checked::Number(NumberExpr::Window(window)) => Presence::Window(window),
            Checked::Number(NumberExpr::SinceLatest(variable, flow)) => Presence::Latest(variable, flow),
            Checked::Number(NumberExpr::Share(group)) => Presence::Share(group),
            Checked::Number(NumberExpr::PriceAge(variable)) => Presence::PriceAge(variable),
            Checked::Number(NumberExpr::UntilRateChange(variable)) => Presence::UntilRateChange(variable),
            Checked::Number(NumberExpr::Rate(field)) => Presence::Rate(field),
            Checked::Number(NumberExpr::Position(field)) => Presence::Position(field),
            Checked::Number(NumberExpr::Corrections(of)) => Presence::Corrections(of),
            Checked::Number(NumberExpr::Fact(get))
            | Checked::Text(TextExpr::Fact(get))
            | Checked::Time(TimeExpr::Fact(get))
            | Checked::Fact(get) => Presence::Fact(get),
            Checked::Text(TextExpr::Field(get)) => Presence::Text(get),
            Checked::Text(TextExpr::Lead) => Presence::Lead,
            Checked::Time(TimeExpr::Field(get)) => Presence::Time(get),
            Checked::Time(TimeExpr::Now) | Checked::Text(TextExpr::Item(_)) => Presence::Always,
            Checked::Bool(BoolExpr::Field(get)) => Presence::Bool(get),
            Checked::Texts(get) => Presence::Texts(get),
            Checked::Items(items, _) if items.filters.is_empty() => Presence::List(items.list),
            _ => {
                return self.reject(self.span(argument), "`has` requires a field name", "example: `has(cliffValue)`");
            }
        };
        Some(Checked::Bool(BoolExpr::Has(presence)))
    }

    /// Parses `has(lastBurn)` and `has(t.lastBuyback)`, which check whether there is any entry.
    fn has_latest(&self, argument: &IdedExpr) -> Option<Presence> {
        let path = Self::path(argument)?;
        let (variable, word) = match path.as_slice() {
            [word] if self.vocabulary.has_windows() => (None, *word),
            [variable, word] => {
                let slot = self.variables.iter().rposition(|(name, _)| name == variable)?;
                (Some(u8::try_from(slot).ok()?), *word)
            }
            _ => return None,
        };
        let flow = Flow::ALL.into_iter().find(|flow| flow.latest_name() == Some(word))?;
        Some(Presence::Latest(variable, flow))
    }

    pub(super) fn size(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        Some(Checked::Number(match self.check(argument)? {
            Checked::Text(text) => NumberExpr::Length(Box::new(text)),
            Checked::Texts(get) => NumberExpr::Count(FilteredList { list: ItemList::Texts(get), filters: Vec::new() }),
            Checked::Items(items, _) => NumberExpr::Count(items),
            other => {
                let message = format!("`{}` is {} and has no size", self.quote(argument), other.name());
                return self.reject(self.span(expr), message, "only strings and lists have a size");
            }
        }))
    }

    pub(super) fn unsupported<T>(&mut self, expr: &IdedExpr, name: &str) -> Option<T> {
        if Flow::parse(name).is_some() || name == SHARE {
            let help = match self.vocabulary.has_windows() {
                true => format!("use its `amount`, `value`, or `count`: `{name}(\"30d\").value`"),
                false => "windows work only in rules with `on = \"token\"` or `on = \"portfolio\"`".to_owned(),
            };
            let message = if self.vocabulary.has_windows() { "is a window, not a number" } else { "is not available here" };
            return self.reject(self.span(expr), format!("`{name}` {message}"), help);
        }
        let help = match name {
            "int" | "uint" | "dyn" => "no conversion is needed: all numbers are doubles".to_owned(),
            "string" | "bool" | "bytes" => "no conversion is needed: compare the field with a value of its type".to_owned(),
            "type" => "types are checked when the rule is loaded; use `has(cliffValue)` to check for a missing field".to_owned(),
            "getMilliseconds" => "the smallest part of a time is `getSeconds`".to_owned(),
            "lowerAscii" | "upperAscii" | "trim" | "replace" | "split" | "join" | "substring" | "charAt" | "indexOf"
            | "lastIndexOf" | "format" => {
                "strings cannot be transformed: use `matches`, `contains`, or `startsWith` on the original".to_owned()
            }
            // `matches` also exists as a function.
            _ if name == "existsOne" || (METHODS.iter().any(|(known, ..)| *known == name) && name != "matches") => {
                format!("call it as a method: `tokenSymbol.startsWith(\"A\")`, `allocations.exists(a, …)`; {SUPPORTED}")
            }
            _ => {
                let functions = FUNCTIONS.iter().chain(&METHODS).map(|(known, ..)| *known);
                let known = functions.chain(TimePart::ALL.iter().map(|(known, _)| *known)).chain(self.vocabulary.functions());
                match closest(name, known) {
                    Some(near) => format!("did you mean `{near}`? {SUPPORTED}"),
                    None => SUPPORTED.to_owned(),
                }
            }
        };
        self.reject(self.span(expr), format!("`{name}` is not supported"), help)
    }
}
