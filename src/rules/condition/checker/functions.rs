//! Functions in a condition, which stand before what they are asked of: `has(cliffValue)`, `max(cliffValue, linearValue)`,
//! `timestamp("2026-01-31")`.

use cel::IdedExpr;

use super::{Checked, Checker, SUPPORTED, methods::METHODS};
use crate::{
    condition::expr::{BoolExpr, FilteredList, NumberExpr, Presence, SpanExpr, TextExpr, TimeExpr, TimePart},
    {aggregate::Flow, getter::ItemList, on::On, vocabulary::SHARE, wording::span_of},
};
use model::{closest, wire};

/// The functions that every condition may call, each with how it is written and what it answers.
pub(super) const FUNCTIONS: [(&str, &str, &str); 7] = [
    ("has", "has(cliffValue)", "whether a field is there"),
    ("size", "size(allocations)", "items of a list, characters of a text"),
    ("min", "min(cliffValue, linearValue)", "the smallest of several numbers"),
    ("max", "max(cliffValue, linearValue)", "the largest of several numbers"),
    ("abs", "abs(change.shiftDays)", "a number without its sign"),
    ("timestamp", "timestamp(\"2026-01-31\")", "a time that is written out, UTC"),
    ("duration", "duration(\"7d\")", "a length of time: `unlockDate - now <= duration(\"7d\")`"),
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
                Some((_, usage, _)) => self.refuse(
                    self.span(expr),
                    format!("`{name}` has the wrong number of arguments"),
                    format!("write it like `{usage}`"),
                ),
                None => self.unsupported(expr, name),
            },
        }
    }

    fn timestamp(&mut self, argument: &IdedExpr) -> Option<Checked> {
        let Some(text) = self.constant(argument) else {
            return self.refuse(
                self.span(argument),
                "`timestamp` takes a text in quotes",
                "fields such as `unlockDate` are times already; constants are written `timestamp(\"2026-01-31\")`",
            );
        };
        match wire::parse_timestamp(&text) {
            Some(at) => Some(Checked::Time(TimeExpr::Const(at))),
            None => self.refuse(
                self.span(argument),
                format!("\"{text}\" is no time"),
                "write it like \"2026-01-31\" or \"2026-01-31T09:00:00Z\"",
            ),
        }
    }

    fn duration(&mut self, argument: &IdedExpr) -> Option<Checked> {
        let Some(text) = self.constant(argument) else {
            return self.refuse(
                self.span(argument),
                "`duration` takes a text in quotes",
                "write it like `duration(\"7d\")` or `duration(\"36h\")`",
            );
        };
        match span_of(&text) {
            Ok(span) => Some(Checked::Span(SpanExpr::Const(span))),
            Err(problem) => self.refuse(self.span(argument), format!("\"{text}\" is no length of time"), problem),
        }
    }

    fn share(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        if self.on != On::Token {
            return self.refuse(
                self.span(expr),
                "`share` is of one token in a group",
                "ask each of them: `tokens.exists(t, t.share > 25)`",
            );
        }
        let Some(group) = self.constant(argument) else {
            return self.refuse(self.span(argument), "`share` takes the name of a group", "write `share(\"portfolio\")`");
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
                return self.refuse(self.span(argument), "`has` asks whether one field is there", "write `has(cliffValue)`");
            }
        };
        Some(Checked::Bool(BoolExpr::Has(presence)))
    }

    /// `has(lastBurn)`, `has(t.lastBuyback)`: whether there is any.
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
        let flow = Flow::ALL.into_iter().find(|flow| flow.latest_word() == Some(word))?;
        Some(Presence::Latest(variable, flow))
    }

    pub(super) fn size(&mut self, expr: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        Some(Checked::Number(match self.check(argument)? {
            Checked::Text(text) => NumberExpr::Length(Box::new(text)),
            Checked::Texts(get) => NumberExpr::Count(FilteredList { list: ItemList::Texts(get), filters: Vec::new() }),
            Checked::Items(items, _) => NumberExpr::Count(items),
            other => {
                let message = format!("`{}` is {} and has no size", self.quote(argument), other.name());
                return self.refuse(self.span(expr), message, "texts and lists have a size");
            }
        }))
    }

    pub(super) fn unsupported<T>(&mut self, expr: &IdedExpr, name: &str) -> Option<T> {
        if Flow::parse(name).is_some() || name == SHARE {
            let help = match self.vocabulary.has_windows() {
                true => format!("ask for its `amount`, `value` or `count`: `{name}(\"30d\").value`"),
                false => "listen to a token or to a group of them: `on = \"token\"`, `on = \"portfolio\"`".to_owned(),
            };
            let message = if self.vocabulary.has_windows() { "is a window, not a number" } else { "is not known here" };
            return self.refuse(self.span(expr), format!("`{name}` {message}"), help);
        }
        let help = match name {
            "int" | "uint" | "dyn" => "there is nothing to convert: all numbers are doubles".to_owned(),
            "string" | "bool" | "bytes" => "there is nothing to convert: compare a field with what it is".to_owned(),
            "type" => "types are checked when the rule is loaded; whether a field is there, `has(cliffValue)` asks".to_owned(),
            "getMilliseconds" => "seconds are the finest part of a time: `getSeconds`".to_owned(),
            "lowerAscii" | "upperAscii" | "trim" | "replace" | "split" | "join" | "substring" | "charAt" | "indexOf"
            | "lastIndexOf" | "format" => {
                "texts are tested as they are: `matches(\"(?i)^arb\")` with both cases written out, `contains`, `startsWith`"
                    .to_owned()
            }
            // As a function, `matches` is known.
            _ if name == "existsOne" || (METHODS.iter().any(|(known, ..)| *known == name) && name != "matches") => format!(
                "it stands behind what it is asked of: `tokenSymbol.startsWith(\"A\")`, `allocations.exists(a, …)`; {SUPPORTED}"
            ),
            _ => {
                let functions = FUNCTIONS.iter().chain(&METHODS).map(|(known, ..)| *known);
                let known = functions.chain(TimePart::ALL.iter().map(|(known, _)| *known)).chain(self.vocabulary.functions());
                match closest(name, known) {
                    Some(near) => format!("did you mean `{near}`? {SUPPORTED}"),
                    None => SUPPORTED.to_owned(),
                }
            }
        };
        self.refuse(self.span(expr), format!("`{name}` is not supported"), help)
    }
}
