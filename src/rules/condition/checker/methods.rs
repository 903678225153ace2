//! Methods in a condition, which stand behind what they are asked of: `tokenSymbol.matches("^W")`, `allocations.exists(a, …)`,
//! `unlockDate.getHours()`.

use cel::{IdedExpr, common::ast::Expr};
use regex::RegexBuilder;

use super::{Checked, Checker, ItemType, SUPPORTED};
use crate::condition::expr::{BoolExpr, Compare, FilteredList, NumberExpr, TextTest, TimeExpr, TimePart};
use crate::env::MAX_MACRO_NESTING;
use crate::getter::ItemList;

/// Compiled size of one pattern of `matches`, bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Their names, each with how it is written and what it answers, without those of the parts of a time.
pub(super) const METHODS: [(&str, &str, &str); 10] = [
    ("startsWith", "tokenSymbol.startsWith(\"W\")", "whether a text begins so"),
    ("endsWith", "tokenName.endsWith(\" Network\")", "whether a text ends so"),
    ("contains", "tokenName.contains(\"Protocol\")", "whether a text has this in it"),
    ("matches", "tokenSymbol.matches(\"^(ARB|APT)$\")", "whether a regular expression finds something in a text"),
    ("exists", "allocations.exists(a, a.cliffAmount > 1000000)", "whether it is so of at least one item"),
    ("exists_one", "allocations.exists_one(a, a.cliffAmount > 1000000)", "whether it is so of exactly one item"),
    ("all", "allocations.all(a, a.cliffAmount > 1000000)", "whether it is so of every item"),
    ("filter", "size(allocations.filter(a, a.cliffAmount > 1000000)) > 3", "the items of which it is so"),
    ("map", "allocations.map(a, a.cliffAmount).sum() > 1000000", "a number of each item, to add up"),
    ("sum", "allocations.map(a, a.cliffAmount).sum() > 1000000", "the sum of mapped numbers"),
];

impl Checker<'_> {
    pub(super) fn method(&mut self, expr: &IdedExpr, name: &str, target: &IdedExpr, arguments: &[IdedExpr]) -> Option<Checked> {
        match (name, arguments) {
            ("startsWith" | "endsWith" | "contains", [argument]) => {
                let (text, part) = (self.text_of(target), self.text_of(argument));
                let test = match name {
                    "startsWith" => TextTest::StartsWith,
                    "endsWith" => TextTest::EndsWith,
                    _ => TextTest::Contains,
                };
                Some(Checked::Bool(BoolExpr::TextTest(test, text?, part?)))
            }
            ("matches", [argument]) => self.matches(target, argument),
            ("size", []) => self.size(expr, target),
            (name, []) if TimePart::parse(name).is_some() => self.part_of_time(expr, name, target),
            (name, [_]) if TimePart::parse(name).is_some() => {
                self.refuse(self.span(expr), "times are read in UTC here", format!("leave the zone out: `{name}()`"))
            }
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", [variable, body]) => {
                self.over_items(expr, name, target, variable, body)
            }
            ("map", [variable, test, body]) => {
                let filtered = self.over_items(expr, "filter", target, variable, test)?;
                self.over_these(expr, name, filtered, variable, body)
            }
            ("sum", []) => match self.check(target)? {
                Checked::Mapped(items, variable, value) => {
                    Some(Checked::Number(NumberExpr::Sum(items, variable, Box::new(value))))
                }
                other => {
                    let message = format!("`{}` is {}; `sum` adds up mapped numbers", self.quote(target), other.name());
                    self.refuse(self.span(expr), message, "write `allocations.map(a, a.cliffAmount).sum()`")
                }
            },
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", _) => self.refuse(
                self.span(expr),
                format!("`{name}` takes a name and a condition"),
                "write it like `allocations.exists(a, a.cliffAmount > 1000000)`",
            ),
            ("startsWith" | "endsWith" | "contains" | "matches" | "size" | "sum", _) => {
                self.refuse(self.span(expr), format!("`{name}` has the wrong number of arguments"), SUPPORTED)
            }
            _ => self.unsupported(expr, name),
        }
    }

    /// `tokenSymbol.matches("^W.*")`
    fn matches(&mut self, target: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        let text = self.text_of(target);
        let Some(pattern) = self.constant(argument) else {
            return self.refuse(
                self.span(argument),
                "`matches` takes a pattern in quotes",
                "write `tokenSymbol.matches(\"^W.*\")`",
            );
        };
        let built =
            RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_SIZE).dfa_size_limit(MAX_PATTERN_SIZE).nest_limit(32).build();
        match built {
            Ok(pattern) => Some(Checked::Bool(BoolExpr::Matches(text?, pattern))),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or("not understood").trim_start_matches("error: ");
                let help = if reason.contains("case insensitiv") {
                    "write both letters instead: [aA]"
                } else {
                    "patterns are regular expressions such as \"^(ARB|APT)$\""
                };
                self.refuse(self.span(argument), format!("this pattern cannot be used: {reason}"), help)
            }
        }
    }

    /// `unlockDate.getDayOfWeek()`, `(unlockDate - now).getHours()`.
    fn part_of_time(&mut self, expr: &IdedExpr, name: &str, target: &IdedExpr) -> Option<Checked> {
        let part = TimePart::parse(name)?;
        match self.check(target)? {
            Checked::Time(at) => Some(Checked::Number(NumberExpr::OfTime(part, Box::new(at)))),
            Checked::Fact(get) => Some(Checked::Number(NumberExpr::OfTime(part, Box::new(TimeExpr::Fact(get))))),
            Checked::Span(span) if part.is_of_span() => Some(Checked::Number(NumberExpr::OfSpan(part, Box::new(span)))),
            other => {
                let message = format!("`{}` is {}, which has no `{name}`", self.quote(target), other.name());
                self.refuse(self.span(expr), message, "times have it: `unlockDate.getDayOfWeek() == 0` is true on Sundays (UTC)")
            }
        }
    }

    fn over_items(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Option<Checked> {
        let list = self.check(target)?;
        if !matches!(list, Checked::Items(..) | Checked::Texts(_)) {
            let message = format!("`{}` is {}; `{name}` goes through a list", self.quote(target), list.name());
            return self.refuse(self.span(target), message, "lists are `allocations`, `token.groups` and the like");
        }
        self.over_these(expr, name, list, variable, body)
    }

    fn over_these(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        list: Checked,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Option<Checked> {
        let (mut items, item) = match list {
            Checked::Items(items, item) => (items, item),
            Checked::Texts(get) => (FilteredList { list: ItemList::Texts(get), filters: Vec::new() }, ItemType::Text),
            _ => return None,
        };
        let Expr::Ident(name_of_item) = &variable.expr else {
            return self.refuse(
                self.span(variable),
                "a plain name for the item is needed here",
                "write it like `allocations.exists(a, a.cliffAmount > 1000000)`",
            );
        };
        if self.variables.len() >= MAX_MACRO_NESTING {
            return self.refuse(
                self.span(expr),
                format!("lists may be nested {MAX_MACRO_NESTING} deep at most"),
                "split the rule",
            );
        }
        let slot = u8::try_from(self.variables.len()).ok()?;
        self.variables.push((name_of_item.clone(), item));
        let result = if name == "map" {
            self.number(body).map(|value| (None, Some(value)))
        } else {
            self.truth(body).map(|test| (Some(test), None))
        };
        self.variables.pop();
        match (name, result?) {
            ("exists", (Some(test), _)) => Some(Checked::Bool(BoolExpr::Exists(items, slot, Box::new(test)))),
            ("exists_one" | "existsOne", (Some(test), _)) => {
                items.filters.push((slot, test));
                Some(Checked::Bool(BoolExpr::Numbers(Compare::Equal, NumberExpr::Count(items), NumberExpr::Const(1.0))))
            }
            ("all", (Some(test), _)) => Some(Checked::Bool(BoolExpr::All(items, slot, Box::new(test)))),
            ("filter", (Some(test), _)) => {
                items.filters.push((slot, test));
                Some(Checked::Items(items, item))
            }
            (_, (_, Some(value))) => Some(Checked::Mapped(items, slot, value)),
            _ => None,
        }
    }
}
