//! Maps an expression to its range in the text of the condition, so that carets point at the right text.

use std::ops::Range;

use cel::IdedExpr;
use cel::common::ast::{Expr, operators};

use super::Checker;

impl Checker<'_> {
    /// Returns the byte range of an expression, or of the whole text if its position is unknown.
    pub fn span(&self, expr: &IdedExpr) -> Range<usize> {
        let mut range = Range { start: usize::MAX, end: 0 };
        self.extend_over(expr, &mut range);
        if range.is_empty() { 0..self.text.len() } else { range }
    }

    fn extend_over(&self, expr: &IdedExpr, range: &mut Range<usize>) {
        if let Some((start, stop)) = self.info.offset_for(expr.id) {
            let (start, stop) = (start as usize, stop as usize + 1);
            if stop <= self.text.len() && start < stop {
                range.start = range.start.min(start);
                range.end = range.end.max(stop);
            }
        }
        match &expr.expr {
            Expr::Call(call) => {
                for part in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
                    self.extend_over(part, range);
                }
                if call.func_name == operators::INDEX || call.func_name.starts_with(char::is_alphabetic) {
                    self.extend_over_bracket(range);
                    // The parser gives the position of the opening parenthesis. The name is before it.
                    let before = self.text.get(..range.start).unwrap_or_default().trim_end();
                    if call.target.is_none() && before.ends_with(&call.func_name) {
                        range.start = before.len() - call.func_name.len();
                    }
                }
            }
            Expr::Select(select) => {
                self.extend_over(&select.operand, range);
                self.extend_over_name(range, &select.field);
            }
            Expr::List(list) => {
                for part in &list.elements {
                    self.extend_over(part, range);
                }
                self.extend_over_bracket(range);
            }
            _ => {}
        }
    }

    /// Extends a selection, which the parser places at its dot, over the name that follows.
    fn extend_over_name(&self, range: &mut Range<usize>, name: &str) {
        let tail = self.text.get(range.end..).unwrap_or_default();
        if let Some(offset) = tail.find(name)
            && tail.get(..offset).is_some_and(|between| between.chars().all(|c| c == '.' || c.is_whitespace()))
        {
            range.end += offset + name.len();
        }
    }

    /// Extends a call or list over its closing bracket.
    fn extend_over_bracket(&self, range: &mut Range<usize>) {
        let tail = self.text.get(range.end..).unwrap_or_default();
        let trimmed = tail.trim_start();
        if trimmed.starts_with([')', ']']) {
            range.end += tail.len() - trimmed.len() + 1;
        }
    }

    pub(super) fn quote(&self, expr: &IdedExpr) -> String {
        let text = self.text.get(self.span(expr)).unwrap_or_default();
        if text.chars().count() > 40 { format!("{}…", text.chars().take(39).collect::<String>()) } else { text.to_owned() }
    }
}
