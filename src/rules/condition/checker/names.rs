//! Checks names: fields, variables of list macros, and windows.

use std::ops::Range;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};
use chrono::TimeDelta;

use super::{Checked, Checker, ItemType, SUPPORTED, corrections::correction_call};
use crate::aggregate::{Flow, Window};
use crate::condition::expr::{BoolExpr, FilteredList, NumberExpr, PositionField, TextExpr, TimeExpr, WindowField, WindowRef};
use crate::fields::{self, ItemKind, ItemReader};
use crate::getter::{GetFact, GetNumber, GetText, GetTime};
use crate::vocabulary::{Computed, FactType, KnownName, OF_TOKENS, OF_TOTALS, unknown_name};
use crate::wording::span_of;
use model::closest;

/// The maximum length of a window: 100 years.
const MAX_WINDOW: TimeDelta = TimeDelta::days(36_500);

impl Checker<'_> {
    /// Returns the segments of a dotted name. `None` if the expression is not a name.
    pub(super) fn path(expr: &IdedExpr) -> Option<Vec<&str>> {
        let mut segments = Vec::new();
        let mut expr = expr;
        loop {
            match &expr.expr {
                Expr::Ident(name) => {
                    segments.push(name.as_str());
                    segments.reverse();
                    return Some(segments);
                }
                Expr::Select(select) if !select.test => {
                    segments.push(select.field.as_str());
                    expr = &select.operand;
                }
                _ => return None,
            }
        }
    }

    pub(super) fn name(&mut self, expr: &IdedExpr) -> Option<Checked> {
        if let Some((flow, call, field)) = window_call(expr) {
            return self.window(expr, flow, call, &field);
        }
        if let Some((call, field)) = correction_call(expr) {
            return self.corrections(expr, call, Some(field));
        }
        let Some(segments) = Self::path(expr) else {
            // An error in the expression before the dot is more specific.
            if let Expr::Select(select) = &expr.expr {
                self.check(&select.operand)?;
            }
            return self.reject(self.span(expr), "only names can be followed by a dot", SUPPORTED);
        };
        let span = self.span(expr);
        if let Some((&variable, fields)) = segments.split_first()
            && let Some(slot) = self.variables.iter().rposition(|(name, _)| name == variable)
        {
            return self.variable(slot, variable, fields, span);
        }
        let path = segments.join(".");
        match self.vocabulary.find(&path) {
            Some(known) => Some(self.known(known)),
            None => self.unknown(&path, span),
        }
    }

    fn known(&mut self, known: KnownName) -> Checked {
        match known {
            KnownName::Number(get, unit) => {
                self.depends_on(get.name());
                Checked::Number(NumberExpr::Field(get, unit))
            }
            KnownName::Bool(get) => {
                self.depends_on(get.name());
                Checked::Bool(BoolExpr::Field(get))
            }
            KnownName::Time(get) => {
                self.depends_on(get.name());
                Checked::Time(TimeExpr::Field(get))
            }
            KnownName::Text(get) => {
                self.depends_on(get.name());
                Checked::Text(TextExpr::Field(get))
            }
            KnownName::Texts(get) => Checked::Texts(get),
            KnownName::Fact(get, kind) => fact(get, kind),
            KnownName::Items(list, kind) => Checked::Items(FilteredList { list, filters: Vec::new() }, ItemType::Of(kind)),
            KnownName::Computed(computed) => self.computed(computed, None),
        }
    }

    /// Lowers a computed name, of the scope or of the token in `variable`.
    fn computed(&mut self, computed: Computed, variable: Option<u8>) -> Checked {
        self.dependencies.clock |= !matches!(computed, Computed::Lead | Computed::Rate(_) | Computed::Position(_));
        self.dependencies.has_rate_steps |= matches!(computed, Computed::Rate(_));
        self.dependencies.has_supply |= self.vocabulary.has_windows() && is_supply(computed);
        match computed {
            Computed::PriceAge => Checked::Number(NumberExpr::PriceAge(variable)),
            Computed::UntilRateChange => Checked::Number(NumberExpr::UntilRateChange(variable)),
            Computed::Position(field) => Checked::Number(NumberExpr::Position(field)),
            Computed::Rate(field) => Checked::Number(NumberExpr::Rate(field)),
            Computed::Now => Checked::Time(TimeExpr::Now),
            Computed::DaysUntil => Checked::Number(NumberExpr::DaysUntil),
            Computed::DaysSince => Checked::Number(NumberExpr::DaysSince),
            Computed::SinceLatest(flow) => Checked::Number(NumberExpr::SinceLatest(variable, flow)),
            Computed::Lead => Checked::Text(TextExpr::Lead),
        }
    }

    /// Records a dependency on a field that the token list can change.
    fn depends_on(&mut self, name: &'static str) {
        self.dependencies.has_supply |= self.vocabulary.has_windows() && fields::is_of_supply(name);
        if (name.starts_with("token.") || self.vocabulary.has_windows()) && !self.dependencies.token_fields.contains(&name) {
            self.dependencies.token_fields.push(name);
        }
    }

    fn unknown<T>(&mut self, path: &str, span: Range<usize>) -> Option<T> {
        let below = self.vocabulary.below(path);
        if !below.is_empty() && crate::synonyms::name(path, &self.vocabulary.all()).is_none() {
            let shown: Vec<&str> = below.iter().copied().take(8).collect();
            return self.reject(
                span,
                format!("`{path}` is an object, not a value"),
                format!("use one of its fields: {}", shown.join(", ")),
            );
        }
        let (message, help) = unknown_name(path, &self.vocabulary.all());
        if crate::synonyms::name(path, &self.vocabulary.all()).is_some() {
            return self.reject(span, message, help);
        }
        if let Some(help) = self.vocabulary.other_rules_hint(path) {
            return self.reject(span, format!("`{path}` is not available here"), help);
        }
        self.reject(span, message, help)
    }

    fn variable(&mut self, slot: usize, variable: &str, path: &[&str], span: Range<usize>) -> Option<Checked> {
        let kind = match self.variables.get(slot) {
            Some((_, ItemType::Of(kind))) => *kind,
            _ if path.is_empty() => return Some(Checked::Text(TextExpr::Item(u8::try_from(slot).ok()?))),
            _ => {
                return self.reject(
                    span,
                    format!("`{variable}` is a string and has no fields"),
                    format!("compare it: `{variable} == \"…\"`"),
                );
            }
        };
        let is_member = kind == ItemKind::Member;
        let computed: Vec<_> = OF_TOTALS.into_iter().chain(OF_TOKENS).filter(|_| is_member).collect();
        let names = fields::of_item(kind).map(|field| field.name).chain(computed.iter().map(|(name, _)| *name));
        let names: Vec<&str> = names.collect();
        if path.is_empty() {
            return self.reject(
                span,
                format!("`{variable}` is {}", if is_member { "a token" } else { "an allocation" }),
                format!("use one of its fields: {}", names.join(", ")),
            );
        }
        let path = path.join(".");
        let slot = u8::try_from(slot).ok()?;
        if let Some((_, computed)) = computed.iter().find(|(name, _)| *name == path) {
            return Some(self.computed(*computed, Some(slot)));
        }
        if is_member {
            self.depends_on("marketCap");
        }
        let Some(field) = fields::of_item(kind).find(|field| field.name == path) else {
            let help = match closest(&path, names.iter().copied()) {
                Some(near) => format!("did you mean `{variable}.{near}`?"),
                None => format!("expected one of {}", names.join(", ")),
            };
            return self.reject(span, format!("`{variable}` has no field `{path}`"), help);
        };
        if is_member {
            self.depends_on(field.name);
        }
        Some(match field.read {
            ItemReader::Number(unit, read) => Checked::Number(NumberExpr::Field(GetNumber::Item(slot, field.name, read), unit)),
            ItemReader::Time(read) => Checked::Time(TimeExpr::Field(GetTime::Item(slot, field.name, read))),
            ItemReader::Text(read) => Checked::Text(TextExpr::Field(GetText::Item(slot, field.name, read))),
            ItemReader::Fact(read) => fact(GetFact::Item(slot, field.name, read), self.vocabulary.fact_type()),
        })
    }

    /// Lowers `burned("30d").value`, of the scope or of the token in a variable.
    fn window(&mut self, expr: &IdedExpr, flow: Flow, call: &CallExpr, field: &str) -> Option<Checked> {
        let word = flow.as_str();
        let variable = match &call.target {
            None if self.vocabulary.has_windows() => None,
            None => {
                let help = "windows work only in rules with `on = \"token\"` or `on = \"portfolio\"`";
                return self.reject(self.span(expr), format!("`{word}` is not available here"), help);
            }
            Some(target) => {
                let slot = match &target.expr {
                    Expr::Ident(name) => self.variables.iter().rposition(|(known, _)| known == name),
                    _ => None,
                };
                match slot.and_then(|slot| Some((u8::try_from(slot).ok()?, self.variables.get(slot)?.1))) {
                    Some((slot, ItemType::Of(ItemKind::Member))) => Some(slot),
                    _ => {
                        let help = "example: `tokens.exists(t, t.ahead(\"7d\").value > 5000000)`";
                        return self.reject(self.span(target), format!("`{}` has no windows", self.quote(target)), help);
                    }
                }
            }
        };
        let window = self.span_argument(expr, flow, &call.args)?;
        let Some(field) = WindowField::ALL.into_iter().find(|known| known.as_str() == field) else {
            let help = match closest(field, WindowField::ALL.map(WindowField::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "expected `amount` (tokens), `value` (USD), or `count`; `ahead` also has `possible` (USD), and these for its \
                         parts: `cliff.value`, `linear.value`"
                        .into()
                }
            };
            return self.reject(self.span(expr), format!("a window has no field `{field}`"), help);
        };
        if field.is_of_ahead() && flow != Flow::Ahead {
            let help = "only `ahead` has it; use `amount`, `value`, or `count`";
            return self.reject(self.span(expr), format!("`{word}(…)` has no field `{}`", field.as_str()), help);
        }
        self.dependencies.add_window(window);
        Some(Checked::Number(NumberExpr::Window(WindowRef { variable, window, field })))
    }

    fn span_argument(&mut self, expr: &IdedExpr, flow: Flow, arguments: &[IdedExpr]) -> Option<Window> {
        let word = flow.as_str();
        let usage = format!("example: `{word}(\"30d\")`");
        let [argument] = arguments else {
            return self.reject(self.span(expr), format!("`{word}` has the wrong number of arguments"), usage);
        };
        let Some(text) = self.constant(argument) else {
            return self.reject(self.span(argument), format!("`{word}` requires a duration"), usage);
        };
        match span_of(&text) {
            Ok(span) if span > TimeDelta::zero() && span <= MAX_WINDOW => Some(Window { flow, span }),
            Ok(_) => self.reject(self.span(argument), "a window must be positive and at most 100 years", usage),
            Err(problem) => self.reject(self.span(argument), format!("\"{text}\" is not a valid duration"), problem),
        }
    }
}

/// Returns the call and the dotted field of `ahead("30d").value` or `ahead("30d").cliff.value`. `None` for other expressions.
fn window_call(expr: &IdedExpr) -> Option<(Flow, &CallExpr, String)> {
    let Expr::Select(select) = &expr.expr else { return None };
    match &select.operand.expr {
        Expr::Call(call) => Some((Flow::parse(&call.func_name)?, call, select.field.clone())),
        Expr::Select(part) => {
            let Expr::Call(call) = &part.operand.expr else { return None };
            Some((Flow::parse(&call.func_name)?, call, format!("{}.{}", part.field, select.field)))
        }
        _ => None,
    }
}

fn is_supply(computed: Computed) -> bool {
    matches!(computed, Computed::PriceAge | Computed::UntilRateChange | Computed::Position(PositionField::Value))
}

fn fact(get: GetFact, kind: FactType) -> Checked {
    match kind {
        FactType::Amount => Checked::Number(NumberExpr::Fact(get)),
        FactType::Time => Checked::Time(TimeExpr::Fact(get)),
        FactType::Text => Checked::Text(TextExpr::Fact(get)),
        FactType::Any => Checked::Fact(get),
    }
}
