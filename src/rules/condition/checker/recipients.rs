//! Warns about comparisons with a recipient category that the source does not have, such as `"Insiders"`, which are never true.

use cel::IdedExpr;
use cel::common::ast::Expr;
use model::{Recipient, closest};

use super::Checker;
use crate::condition::expr::{TextExpr, TextTest};
use crate::finding::Finding;
use crate::getter::GetTexts;
use crate::synonyms;

/// The fields with a category, or with a list of categories.
const FIELDS: [&str; 2] = ["standardAllocationName", "standardAllocations"];

impl Checker<'_> {
    /// Checks the comparison of a field with a text.
    pub(super) fn check_category(&mut self, expr: &IdedExpr, field: &TextExpr, text: &TextExpr) {
        let (TextExpr::Field(get), TextExpr::Const(text)) = (field, text) else { return };
        if is_category(get.name()) {
            self.warn_of_category(expr, text, &|category| category == text);
        }
    }

    /// Checks `standardAllocationName.contains("…")` and similar tests.
    pub(super) fn check_category_part(&mut self, expr: &IdedExpr, test: TextTest, field: &TextExpr, part: &TextExpr) {
        let (TextExpr::Field(get), TextExpr::Const(part)) = (field, part) else { return };
        if is_category(get.name()) {
            self.warn_of_category(expr, part, &|category| test.holds(category, part));
        }
    }

    /// Checks `"…" in standardAllocations`.
    pub(super) fn check_category_in(&mut self, expr: &IdedExpr, text: &TextExpr, list: GetTexts) {
        if let TextExpr::Const(text) = text
            && is_category(list.name())
        {
            self.warn_of_category(expr, text, &|category| category == text);
        }
    }

    fn warn_of_category(&mut self, expr: &IdedExpr, text: &str, is_it: &dyn Fn(&str) -> bool) {
        if Recipient::all_categories().any(|(category, _)| is_it(category)) {
            return;
        }
        let categories = Recipient::all_categories().map(|(category, _)| category);
        let spelled = || Recipient::all_categories().find(|(category, _)| category.eq_ignore_ascii_case(text.trim()));
        let help = if text.to_ascii_lowercase().contains("insider") {
            "compare the part for founders, team, and private investors: `insiderShare >= 0.5`".to_owned()
        } else if let Some(near) = spelled()
            .map(|(category, _)| category)
            .or_else(|| synonyms::recipient(text))
            .or_else(|| closest(text, categories.clone()))
        {
            format!("did you mean \"{near}\"?")
        } else {
            format!("categories are {}", categories.map(|category| format!("\"{category}\"")).collect::<Vec<_>>().join(", "))
        };
        let span = match &expr.expr {
            // The text in a list has a location of its own.
            Expr::List(list) => {
                let is_text = |item: &&IdedExpr| self.constant(item).as_deref() == Some(text);
                list.elements.iter().find(is_text).map_or_else(|| self.span(expr), |item| self.span(item))
            }
            _ => self.span(expr),
        };
        self.findings.push(Finding::warning(span, format!("the source has no recipient category \"{text}\"")).help(help));
    }
}

/// Returns whether a field has recipient categories. The name may have a prefix, such as `old.`.
fn is_category(name: &str) -> bool {
    FIELDS.contains(&name.rsplit('.').next().unwrap_or(name))
}
