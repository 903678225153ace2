//! Parses a condition with the grammar of the `cel` crate. Macros are off, so that `exists` and `has` remain calls. The parser is
//! recursive, so it runs on a thread with a large stack. Its messages are meant for grammar authors, so only their positions are
//! used.

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, SourceInfo};

use crate::finding::Finding;

use super::lint::MAX_DEPTH;

/// The stack size of the parser thread, in bytes. Far more than the longest condition needs, even in a debug build.
const PARSER_STACK: usize = 64 << 20;

pub(super) fn parse(text: &str) -> Result<(IdedExpr, SourceInfo), Finding> {
    let whole = 0..text.len();
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, || {
            match cel::Env::default().parser().parse_with_source_info(text) {
                Ok((tree, info)) if depth(&tree) <= MAX_DEPTH => Ok((tree, info)),
                Ok(_) => {
                    Err(Finding::error(whole.clone(), format!("this condition is nested more than {MAX_DEPTH} levels deep"))
                        .help("split it into several rules, or use a list: `x in [1, 2, 3]`"))
                }
                Err(errors) => Err(syntax_error(text, &errors)),
            }
        });
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(Finding::error(whole.clone(), "cannot parse this condition").help("simplify the condition")),
            Err(error) => {
                Err(Finding::error(whole.clone(), format!("cannot check this condition: cannot start a thread ({error})")))
            }
        }
    })
}

fn syntax_error(text: &str, errors: &cel::ParseErrors) -> Finding {
    // Positions are lines and columns in characters. `Display` of these errors can panic, so it is not used.
    let at = errors.errors.iter().map(|error| error.pos).min().and_then(|(line, column)| {
        let line = usize::try_from(line).ok()?.checked_sub(1)?;
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let rest = text.get(start..)?;
        Some(start + rest.char_indices().nth(column).map_or(rest.len(), |(offset, _)| offset))
    });
    let start = at.unwrap_or(0);
    let token: String = text.get(start..).unwrap_or_default().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let length = match token.len() {
        0 => text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
        length => length,
    };
    if length == 0 {
        let end = text.trim_end().len();
        let last = text.get(..end).and_then(|kept| kept.char_indices().next_back()).map_or(0, |(offset, _)| offset);
        return Finding::error(last..end, "unexpected end of the condition")
            .help("expected a name, a number, a quoted string, or `)`");
    }
    let unexpected = text.get(start..start + length).unwrap_or_default();
    let invalid_number = errors.errors.iter().any(|error| error.msg.contains("invalid") && error.msg.contains("literal"));
    if invalid_number {
        return Finding::error(start..start + length, format!("`{unexpected}` is not a valid number"))
            .help("example of a large number: 1e30");
    }
    Finding::error(start..start + length, format!("unexpected `{unexpected}`"))
        .help("a condition consists of comparisons joined by `&&` and `||`, for example `cliffValue >= 5000000 || valueToMarketCap >= 2`")
}

fn depth(expr: &IdedExpr) -> usize {
    let below = match &expr.expr {
        Expr::Call(call) => call.target.iter().map(AsRef::as_ref).chain(&call.args).map(depth).max(),
        Expr::Select(select) => Some(depth(&select.operand)),
        Expr::List(list) => list.elements.iter().map(depth).max(),
        // The checker rejects these without descending into them, but dropping them recurses, so count their full depth.
        Expr::Comprehension(_) => Some(MAX_DEPTH),
        Expr::Map(map) => map.entries.iter().map(|entry| entry_depth(&entry.expr)).max(),
        Expr::Struct(made) => made.entries.iter().map(|entry| entry_depth(&entry.expr)).max(),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => None,
    };
    1 + below.unwrap_or(0)
}

fn entry_depth(entry: &EntryExpr) -> usize {
    match entry {
        EntryExpr::StructField(field) => depth(&field.value),
        EntryExpr::MapEntry(entry) => depth(&entry.key).max(depth(&entry.value)),
    }
}
