//! Checks method calls: `tokenSymbol.matches("^W")`, `allocations.exists(a, …)`, `unlockDate.getHours()`.

use cel::{IdedExpr, common::ast::Expr};
use regex::RegexBuilder;

use super::{Checked, Checker, ItemType, SUPPORTED};
use crate::condition::expr::{BoolExpr, Compare, FilteredList, NumberExpr, TextTest, TimeExpr, TimePart};
use crate::env::MAX_MACRO_NESTING;
use crate::getter::ItemList;

/// The maximum compiled size of a pattern of `matches`, in bytes.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// The methods of conditions except the parts of a time, each with an example and a description.
pub(super) const METHODS: [(&str, &str, &str); 10] = [
    ("startsWith", "tokenSymbol.startsWith(\"W\")", "true if a string starts with another"),
    ("endsWith", "tokenName.endsWith(\" Network\")", "true if a string ends with another"),
    ("contains", "tokenName.contains(\"Protocol\")", "true if a string contains another"),
    ("matches", "tokenSymbol.matches(\"^(ARB|APT)$\")", "true if a regular expression matches a part of a string"),
    ("exists", "allocations.exists(a, a.cliffAmount > 1000000)", "true if the condition is true for at least one item"),
    ("exists_one", "allocations.exists_one(a, a.cliffAmount > 1000000)", "true if the condition is true for exactly one item"),
    ("all", "allocations.all(a, a.cliffAmount > 1000000)", "true if the condition is true for every item"),
    ("filter", "size(allocations.filter(a, a.cliffAmount > 1000000)) > 3", "the items for which the condition is true"),
    ("map", "allocations.map(a, a.cliffAmount).sum() > 1000000", "a number for each item, for `sum`"),
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
                let (text, part) = (text?, part?);
                self.check_category_part(argument, test, &text, &part);
                Some(Checked::Bool(BoolExpr::TextTest(test, text, part)))
            }
            ("matches", [argument]) => self.matches(target, argument),
            ("size", []) => self.size(expr, target),
            (name, []) if TimePart::parse(name).is_some() => self.part_of_time(expr, name, target),
            (name, [_]) if TimePart::parse(name).is_some() => {
                self.reject(self.span(expr), "times are always in UTC", format!("remove the time zone: `{name}()`"))
            }
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", [variable, body]) => {
                self.list_macro(expr, name, target, variable, body)
            }
            ("map", [variable, test, body]) => {
                let filtered = self.list_macro(expr, "filter", target, variable, test)?;
                self.checked_list_macro(expr, name, filtered, variable, body)
            }
            ("sum", []) => match self.check(target)? {
                Checked::Mapped(items, variable, value) => {
                    Some(Checked::Number(NumberExpr::Sum(items, variable, Box::new(value))))
                }
                other => {
                    let message = format!("`{}` is {}; `sum` requires the result of `map`", self.quote(target), other.name());
                    self.reject(self.span(expr), message, "example: `allocations.map(a, a.cliffAmount).sum()`")
                }
            },
            ("exists" | "exists_one" | "existsOne" | "all" | "filter" | "map", _) => self.reject(
                self.span(expr),
                format!("`{name}` requires a variable and an expression"),
                "example: `allocations.exists(a, a.cliffAmount > 1000000)`",
            ),
            ("startsWith" | "endsWith" | "contains" | "matches" | "size" | "sum", _) => {
                self.reject(self.span(expr), format!("`{name}` has the wrong number of arguments"), SUPPORTED)
            }
            _ => self.unsupported(expr, name),
        }
    }

    /// `tokenSymbol.matches("^W.*")`
    fn matches(&mut self, target: &IdedExpr, argument: &IdedExpr) -> Option<Checked> {
        let text = self.text_of(target);
        let Some(pattern) = self.constant(argument) else {
            return self.reject(
                self.span(argument),
                "`matches` requires a quoted pattern",
                "example: `tokenSymbol.matches(\"^W.*\")`",
            );
        };
        let built =
            RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_SIZE).dfa_size_limit(MAX_PATTERN_SIZE).nest_limit(32).build();
        match built {
            Ok(pattern) => Some(Checked::Bool(BoolExpr::Matches(text?, pattern))),
            Err(error) => {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or("syntax error").trim_start_matches("error: ");
                let help = if reason.contains("case insensitiv") {
                    "list both letters instead: [aA]"
                } else {
                    "patterns are regular expressions, for example \"^(ARB|APT)$\""
                };
                self.reject(self.span(argument), format!("invalid pattern: {reason}"), help)
            }
        }
    }

    /// `unlockDate.getDayOfWeek()`, `(unlockDate - now).getHours()`.
    fn part_of_time(&mut self, expr: &IdedExpr, name: &str, target: &IdedExpr) -> Option<Checked> {
        let part = TimePart::parse(name)?;
        match self.check(target)? {
            Checked::Time(at) => Some(Checked::Number(NumberExpr::OfTime(part, Box::new(at)))),
            Checked::Fact(get) => Some(Checked::Number(NumberExpr::OfTime(part, Box::new(TimeExpr::Fact(get))))),
            Checked::Span(span) if part.is_duration_part() => Some(Checked::Number(NumberExpr::OfSpan(part, Box::new(span)))),
            other => {
                let message = format!("`{}` is {}, which has no `{name}`", self.quote(target), other.name());
                self.reject(
                    self.span(expr),
                    message,
                    "use it on a time: `unlockDate.getDayOfWeek() == 0` is true on Sundays (UTC)",
                )
            }
        }
    }

    fn list_macro(
        &mut self,
        expr: &IdedExpr,
        name: &str,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
    ) -> Option<Checked> {
        let list = self.check(target)?;
        if !matches!(list, Checked::Items(..) | Checked::Texts(_)) {
            let message = format!("`{}` is {}; `{name}` requires a list", self.quote(target), list.name());
            return self.reject(self.span(target), message, "lists are, for example, `allocations` and `token.groups`");
        }
        self.checked_list_macro(expr, name, list, variable, body)
    }

    fn checked_list_macro(
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
            return self.reject(
                self.span(variable),
                "the first argument must be a variable name",
                "example: `allocations.exists(a, a.cliffAmount > 1000000)`",
            );
        };
        if self.variables.len() >= MAX_MACRO_NESTING {
            return self.reject(
                self.span(expr),
                format!("list macros can be nested at most {MAX_MACRO_NESTING} levels deep"),
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
