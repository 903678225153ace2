//! Memory limits for templates. The engine limits steps and recursion, but one step can double a string, and 26 such steps
//! exhaust the memory of a machine.
//!
//! Statements that capture output are rejected. [`guard`] rewrites a template so that values assigned by `set` are measured and
//! strings cannot be multiplied. Filters that lengthen strings share a budget.
//!
//! The webhook sender also compiles this file, for templates of request bodies, so it must not depend on other rule modules.

use std::ops::Range;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

/// The maximum length of a string in an assigned value, in bytes.
const MAX_TEXT: usize = 16 << 10;

/// The maximum size of an assigned value, in bytes.
const MAX_KEPT: usize = 256 << 10;

/// The maximum total size of strings that filters create in one rendering, in bytes.
const MAX_GROWN: usize = 256 << 10;

/// The maximum length of a `range`.
const MAX_RANGE: i64 = 1_000;

/// The maximum number of operators in a tag that can lengthen a string.
const MAX_OPERATORS: usize = 64;

const STATEMENTS: [&str; 7] = ["if", "elif", "else", "endif", "for", "endfor", "set"];

/// Returns the ranges inside `{{ … }}` and `{% … %}`, without comments, with quotes and escapes handled like the engine does.
pub(super) fn tags_of(source: &str) -> Vec<Range<usize>> {
    let find = |from: usize, what: &str| source.get(from..).and_then(|text| text.find(what)).map(|offset| from + offset);
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some((start, open)) =
        ["{{", "{%", "{#"].into_iter().filter_map(|open| find(at, open).map(|start| (start, open))).min()
    {
        if open == "{#" {
            at = find(start + 2, "#}").map_or(source.len(), |end| end + 2);
            continue;
        }
        let close = if open == "{{" { "}}" } else { "%}" };
        let begin = start + 2;
        let mut end = source.len();
        let mut quote = None;
        let mut is_escaped = false;
        for (offset, c) in source.get(begin..).unwrap_or_default().char_indices() {
            match quote {
                Some(_) if is_escaped => is_escaped = false,
                Some(_) if c == '\\' => is_escaped = true,
                Some(open) if c == open => quote = None,
                Some(_) => {}
                None if matches!(c, '"' | '\'') => quote = Some(c),
                None if source.get(begin + offset..).is_some_and(|rest| rest.starts_with(close)) => {
                    end = begin + offset;
                    break;
                }
                None => {}
            }
        }
        tags.push(begin..end);
        at = end.max(begin);
        if end < source.len() {
            at = end + 2;
        }
    }
    tags
}

/// A tag whose memory use cannot be limited.
#[derive(Debug)]
pub(super) struct Unbounded {
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Returns the first tag whose memory use cannot be limited.
pub(super) fn unbounded(source: &str, tags: &[Range<usize>]) -> Option<Unbounded> {
    tags.iter().find_map(|tag| {
        let text = source.get(tag.clone())?;
        let refuse = |message: String, help| Some(Unbounded { at: tag.clone(), message, help });
        let operators = plain_chars(text).filter(|(_, c)| matches!(c, '~' | '+' | '*')).count();
        if operators > MAX_OPERATORS {
            return refuse(format!("this tag has {operators} operators; at most {MAX_OPERATORS} are allowed"), "shorten it");
        }
        let word = statement(source, tag)?;
        match word {
            word if !STATEMENTS.contains(&word) => {
                refuse(format!("`{word}` is not supported here"), "only if, for, and set are supported")
            }
            "set" if assigned_at(text).is_none() => {
                refuse("`set` without `=` is not supported here".to_owned(), "example: `{% set name = … %}`")
            }
            "for" if text.trim_end_matches(['-', '+']).contains(['~', '+', '*']) => {
                refuse("a loop cannot iterate over an expression".to_owned(), "assign the list first: `{% set … %}`")
            }
            _ => None,
        }
    })
}

/// Returns the keyword of a statement. `None` for an expression tag.
fn statement<'a>(source: &'a str, tag: &Range<usize>) -> Option<&'a str> {
    source.get(..tag.start)?.ends_with("{%").then_some(())?;
    let text = source.get(tag.clone())?.trim_start_matches(['-', '+']).trim_start();
    Some(text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

/// Returns the characters of a tag outside quotes, with their offsets.
fn plain_chars(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut is_escaped) = (None, false);
    text.char_indices().filter(move |(_, c)| {
        match quote {
            Some(_) if is_escaped => is_escaped = false,
            Some(_) if *c == '\\' => is_escaped = true,
            Some(open) if *c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(*c),
            None => return true,
        }
        false
    })
}

/// Returns the offset of the value in a `set` statement.
fn assigned_at(text: &str) -> Option<usize> {
    plain_chars(text).find(|(_, c)| *c == '=').map(|(at, _)| at + 1)
}

/// Rewrites a template so that assigned values are measured and strings cannot be multiplied.
pub(super) fn guard(source: &str, tags: &[Range<usize>]) -> String {
    let mut guarded = String::with_capacity(source.len());
    let mut at = 0;
    for tag in tags {
        let (Some(before), Some(text)) = (source.get(at..tag.start), source.get(tag.clone())) else { continue };
        guarded.push_str(before);
        let assigned = (statement(source, tag) == Some("set")).then(|| assigned_at(text)).flatten();
        let end = if assigned.is_some() { text.trim_end_matches(['-', '+']).len() } else { text.len() };
        let stars: Vec<usize> = plain_chars(text).filter(|(_, c)| *c == '*').map(|(at, _)| at).collect();
        let is_power = |at: usize| stars.contains(&(at + 1)) || at.checked_sub(1).is_some_and(|before| stars.contains(&before));
        for (place, c) in text.char_indices() {
            if place == end && assigned.is_some() {
                guarded.push_str(")|__assigned ");
            }
            match c {
                // Double negation keeps numbers and fails for everything else.
                '*' if stars.contains(&place) && !is_power(place) => guarded.push_str("|__number * - -"),
                c => guarded.push(c),
            }
            if Some(place + 1) == assigned {
                guarded.push('(');
            }
        }
        if end == text.len() && assigned.is_some() {
            guarded.push_str(")|__assigned ");
        }
        at = tag.end;
    }
    guarded.push_str(source.get(at..).unwrap_or_default());
    guarded
}

/// Replaces functions and filters of the engine by limited ones.
pub(super) fn bound(environment: &mut Environment<'static>) {
    for filter in ["format", "batch", "slice", "indent"] {
        environment.remove_filter(filter);
    }
    environment.add_filter("__assigned", check_size);
    environment.add_filter("__number", |value: Value| match value.kind() {
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable => Err(wrong("strings and lists cannot be multiplied")),
        _ => Ok(value),
    });
    environment.add_filter("replace", replace);
    environment.add_filter("join", join);
    environment.add_function("range", |first: i64, end: Option<i64>, step: Option<i64>| {
        let (first, end, step) = (if end.is_some() { first } else { 0 }, end.unwrap_or(first), step.unwrap_or(1));
        let count = if step == 0 { None } else { end.checked_sub(first).and_then(|span| span.checked_div(step)) };
        if count.is_none_or(|count| count > MAX_RANGE) {
            return Err(wrong(&format!("a range can have at most {MAX_RANGE} numbers")));
        }
        let numbers = std::iter::successors(Some(first), |at| at.checked_add(step));
        Ok(numbers.take_while(|at| if step > 0 { *at < end } else { *at > end }).collect::<Vec<i64>>())
    });
}

fn wrong(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}

/// Returns an assigned value, or an error if it is too large.
fn check_size(value: Value) -> Result<Value, Error> {
    let mut left = MAX_KEPT;
    if is_within(&value, &mut left) { Ok(value) } else { Err(wrong("the value assigned by `set` is too large")) }
}

fn is_within(value: &Value, left: &mut usize) -> bool {
    let size = value.as_str().map_or(8, str::len);
    let Some(rest) = left.checked_sub(size.max(8)).filter(|_| size <= MAX_TEXT) else { return false };
    *left = rest;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => value.try_iter().is_ok_and(|mut items| items.all(|item| is_within(&item, left))),
        ValueKind::Map => value.try_iter().is_ok_and(|mut keys| {
            keys.all(|key| is_within(&key, left) && value.get_item(&key).is_ok_and(|item| is_within(&item, left)))
        }),
        _ => true,
    }
}

/// Takes `bytes` from the budget of the filters for one rendering.
fn consume(state: &mut State, bytes: usize) -> Result<(), Error> {
    const SPENT: &str = "__spent";
    let spent = state.get_temp(SPENT).and_then(|spent| usize::try_from(spent).ok()).unwrap_or_default();
    let spent = spent.saturating_add(bytes);
    if spent > MAX_GROWN {
        return Err(wrong(&format!("the filters create more than {MAX_GROWN} bytes of text")));
    }
    state.set_temp(SPENT, Value::from(spent));
    Ok(())
}

fn text_of(value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn replace(state: &mut State, text: Value, from: String, to: String) -> Result<String, Error> {
    let text = text_of(&text)?;
    consume(state, text.len().saturating_add(text.matches(&from).count().saturating_mul(to.len())))?;
    Ok(text.replace(&from, &to))
}

fn join(state: &mut State, items: Value, between: Option<String>, kwargs: Kwargs) -> Result<String, Error> {
    let between = between.or(kwargs.get("d")?).unwrap_or_default();
    let attribute: Option<String> = kwargs.get("attribute")?;
    kwargs.assert_all_used()?;
    let mut joined = String::new();
    let mut add = |at: usize, item: &str| {
        let between = if at > 0 { between.as_str() } else { "" };
        consume(state, between.len() + item.len())?;
        joined.push_str(between);
        joined.push_str(item);
        Ok::<(), Error>(())
    };
    match items.as_str() {
        Some(text) => text.chars().enumerate().try_for_each(|(at, c)| add(at, &c.to_string()))?,
        None => {
            for (at, item) in items.try_iter()?.enumerate() {
                let item = attribute.as_deref().map_or(Ok(item.clone()), |name| item.get_attr(name))?;
                add(at, &text_of(&item)?)?;
            }
        }
    }
    Ok(joined)
}
