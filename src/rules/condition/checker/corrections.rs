//! Checks `corrections("365d").count`.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr};
use chrono::TimeDelta;

use super::{Checked, Checker};
use crate::condition::corrections::{CORRECTIONS, CorrectionField, CorrectionRef};
use crate::condition::expr::NumberExpr;
use crate::wording::span_of;
use model::closest;

/// The maximum time before now: 10 years, because a longer history is rarely stored.
const MAX_SPAN: TimeDelta = TimeDelta::days(3_653);

const EXAMPLE: &str = "example: `corrections(\"365d\").shiftDays`";

impl Checker<'_> {
    /// Lowers the field of a call. `field` is `None` for a call without one.
    pub(super) fn corrections(&mut self, expr: &IdedExpr, call: &CallExpr, field: Option<&str>) -> Option<Checked> {
        if !self.vocabulary.has_corrections() {
            let help = "it works only in rules on unlocks and their changes, such as `on = \"unlock.rescheduled\"`";
            return self.reject(self.span(expr), format!("`{CORRECTIONS}` is not available here"), help);
        }
        let [argument] = call.args.as_slice() else {
            return self.reject(self.span(expr), format!("`{CORRECTIONS}` requires one duration"), EXAMPLE);
        };
        let Some(text) = self.constant(argument) else {
            return self.reject(self.span(argument), format!("`{CORRECTIONS}` requires a duration"), EXAMPLE);
        };
        let span = match span_of(&text) {
            Ok(span) if span > TimeDelta::zero() && span <= MAX_SPAN => span,
            Ok(_) => return self.reject(self.span(argument), "the time must be positive and at most 10 years", EXAMPLE),
            Err(problem) => return self.reject(self.span(argument), format!("\"{text}\" is not a valid duration"), problem),
        };
        let Some(field) = CorrectionField::ALL.into_iter().find(|known| field == Some(known.as_str())) else {
            let names = CorrectionField::ALL.map(CorrectionField::as_str);
            let help = match field.and_then(|field| closest(field, names)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use its `count` or `shiftDays`: `corrections(\"365d\").count`".to_owned(),
            };
            return self.reject(self.span(expr), format!("`{}` is not a number", self.quote(expr)), help);
        };
        self.dependencies.add_correction_span(span);
        Some(Checked::Number(NumberExpr::Corrections(CorrectionRef { span, field })))
    }
}

/// Returns the call and the field of `corrections("365d").count`. `None` for other expressions.
pub(super) fn correction_call(expr: &IdedExpr) -> Option<(&CallExpr, &str)> {
    let Expr::Select(select) = &expr.expr else { return None };
    let Expr::Call(call) = &select.operand.expr else { return None };
    (call.func_name == CORRECTIONS && call.target.is_none()).then_some((call, select.field.as_str()))
}
