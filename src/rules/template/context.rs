//! The data of a template: the fields that conditions know, under the same names, as a tree of values.

use std::{collections::BTreeMap, sync::Arc};

use minijinja::{Error, ErrorKind, Value, value::Serde};

use crate::aggregate::{Flow, Sum, Totals, Window};
use crate::condition::WindowField;
use crate::env::Env;
use crate::fields::{self, FieldDef, FieldReader, ItemKind, ItemReader, ListItem};
use crate::scope::Scope;
use crate::vocabulary::{ALWAYS, Computed, KnownName, OF_RECORDS, OF_TOKENS, OF_TOTALS, OF_UNLOCKS, SHARE, Vocabulary};
use crate::wording::span_of;
use model::{Fact, Labels, Record, Resource, Timestamp, days, phrase};

/// Returns whether a template reads the value with this name, or a part of it.
pub type IsRead<'a> = &'a dyn Fn(&str) -> bool;

/// The maximum number of items of a list.
const MAX_ITEMS: usize = 1_000;

/// Returns the values of a scope that `is_read` selects, and the labels. Missing fields, and labels in `names` that are not set, are
/// `none`.
pub fn context(scope: &Scope<'_>, is_read: IsRead<'_>, labels: Option<(&[String], &Labels)>) -> Value {
    let mut tree = ContextTree::of(scope, is_read);
    if let Some((names, labels)) = labels {
        tree.put_labels(names, labels);
    }
    tree.into_value()
}

/// A tree of template data. `token.symbol` becomes the field `symbol` of the object `token`.
#[derive(Default)]
pub(super) struct ContextTree {
    root: BTreeMap<String, ContextNode>,
}

enum ContextNode {
    Leaf(Value),
    Object(ContextTree),
}

impl ContextTree {
    /// Returns the values that `is_read` selects. The others are left out, because some are large: a group has up to a thousand tokens.
    pub fn of(scope: &Scope<'_>, is_read: IsRead<'_>) -> Self {
        let mut tree = Self::default();
        let (record, now) = (scope.record_in_view(), scope.now);
        if let Some(totals) = scope.totals {
            tree.put_totals(totals, is_read, now);
        }
        let resource = record.map(Record::resource).or_else(|| scope.change.and_then(|change| change.resource));
        if let Some(resource) = resource {
            tree.put_fields(fields::of_record(resource), record, is_read, now);
            let interval = record.and_then(Record::interval);
            tree.put_if(is_read, "when", || match scope.is_stored {
                true => Value::from(phrase::stored_date(interval.as_ref())),
                false => Value::from(phrase::date(interval.as_ref(), now)),
            });
            tree.put_if(is_read, "record", || option(record.map(|record| Value::from(Serde(record)))));
        }
        let of_unlocks = OF_UNLOCKS.into_iter().filter(|_| resource == Some(Resource::Unlock));
        for (name, computed) in OF_RECORDS.into_iter().chain(of_unlocks).chain(ALWAYS) {
            tree.put_if(is_read, name, || computed_value(computed, scope));
        }
        tree.put_fields(fields::TOKEN, scope.token, is_read, now);
        if let Some(change) = scope.change {
            tree.put_fields(fields::CHANGE, Some(change), is_read, now);
            tree.put_if(is_read, "change.fields", || Value::from(Serde(&change.fields)));
            tree.put_if(is_read, "change.before", || option(change.before.as_ref().map(|brief| Value::from(Serde(brief)))));
            tree.put_if(is_read, "change.after", || option(change.after.as_ref().map(|brief| Value::from(Serde(brief)))));
            for (word, side) in [("old", &change.old), ("new", &change.new)] {
                let mut inner = Self::default();
                if let Some(resource) = resource.filter(|_| is_read(word)) {
                    inner.put_fields(fields::of_record(resource), side.as_ref(), &|_| true, now);
                }
                tree.root.insert(word.into(), ContextNode::Object(inner));
            }
        }
        if scope.source.is_some() {
            tree.put_fields(fields::SOURCE, scope.source, is_read, now);
        }
        tree
    }

    /// Adds the labels of an alert. Labels in `names` that are not set are `none`.
    pub fn put_labels(&mut self, names: &[String], labels: &Labels) {
        let values = names.iter().map(|name| (name.as_str(), option(labels.get(name).map(String::as_str))));
        self.put("labels", Value::from_pairs(values));
    }

    /// Sets a sample value for each field without one, so that the trial with all fields set is complete.
    pub fn fill_gaps(&mut self, vocabulary: &Vocabulary) {
        for name in vocabulary.all() {
            let made_up = match vocabulary.find(name) {
                Some(KnownName::Number(..) | KnownName::Fact(..)) => Value::from(1.0),
                Some(KnownName::Bool(_)) => Value::from(true),
                Some(KnownName::Time(_)) => Value::from("2026-03-09T00:00:00Z"),
                Some(KnownName::Text(_)) => Value::from("Example"),
                Some(KnownName::Texts(_)) => Value::from(vec!["Example"]),
                Some(KnownName::Computed(Computed::Rate(_))) => Value::from(1.0),
                Some(KnownName::Items(..) | KnownName::Computed(_)) | None => continue,
            };
            self.put_where_none(name, made_up);
        }
    }

    pub fn into_value(self) -> Value {
        Value::from_pairs(self.root.into_iter().map(|(name, node)| match node {
            ContextNode::Leaf(value) => (name, value),
            ContextNode::Object(inner) => (name, inner.into_value()),
        }))
    }

    fn put(&mut self, path: &str, value: Value) {
        match path.split_once('.') {
            None => {
                self.root.insert(path.into(), ContextNode::Leaf(value));
            }
            Some((first, rest)) => {
                let node = self.root.entry(first.into()).or_insert_with(|| ContextNode::Object(Self::default()));
                if let ContextNode::Object(inner) = node {
                    inner.put(rest, value);
                }
            }
        }
    }

    /// Sets a value that is only computed if it is read.
    fn put_if(&mut self, is_read: IsRead<'_>, path: &str, value: impl FnOnce() -> Value) {
        if is_read(path) {
            self.put(path, value());
        }
    }

    fn put_where_none(&mut self, path: &str, value: Value) {
        match (path.split_once('.'), self.root.get_mut(path.split('.').next().unwrap_or(path))) {
            (None, Some(ContextNode::Leaf(known))) if known.is_none() => *known = value,
            (Some((_, rest)), Some(ContextNode::Object(inner))) => inner.put_where_none(rest, value),
            _ => {}
        }
    }

    fn put_fields<O>(&mut self, table: &[FieldDef<O>], from: Option<&O>, is_read: IsRead<'_>, now: Timestamp) {
        for field in table {
            self.put_if(is_read, field.name, || from.map_or_else(|| Value::from(()), |from| field_value(&field.read, from, now)));
        }
    }

    /// Adds the totals of a token or group.
    fn put_totals(&mut self, totals: &Totals, is_read: IsRead<'_>, now: Timestamp) {
        for table in [fields::TOTALS, fields::TOTALS_OF_TOKEN, fields::TOTALS_OF_GROUP] {
            self.put_fields(table, Some(totals), is_read, now);
        }
        // An integer, so that `range(tokenCount)` works.
        self.put_if(is_read, "tokenCount", || Value::from(totals.members.len()));
        self.put_windows(totals, is_read, now);
        self.put_if(is_read, SHARE, || {
            let shares = totals.shares.clone();
            Value::from_function(move |group: String| option(shares.get(&group).copied()))
        });
    }

    /// Adds the window functions, and the days since the latest burn and buyback.
    fn put_windows(&mut self, totals: &Totals, is_read: IsRead<'_>, now: Timestamp) {
        let sums: Arc<[(Window, Sum)]> = totals.sums().collect();
        for flow in Flow::ALL.into_iter().filter(|flow| is_read(flow.as_str())) {
            let sums = Arc::clone(&sums);
            let poll = move |span: String| -> Result<Value, Error> {
                let refuse = |problem: String| Error::new(ErrorKind::InvalidOperation, problem);
                let window = window_of(flow, &span).map_err(refuse)?;
                match sums.iter().find(|(known, _)| *known == window) {
                    Some((_, sum)) => {
                        let mut tree = ContextTree::default();
                        WindowField::ALL.into_iter().for_each(|field| tree.put(field.as_str(), option(field.of(*sum))));
                        Ok(tree.into_value())
                    }
                    None => Err(refuse(format!("the window {}({span:?}) was not computed", flow.as_str()))),
                }
            };
            self.put(flow.as_str(), Value::from_function(poll));
        }
        for (name, computed) in OF_TOTALS {
            if let Computed::SinceLatest(flow) = computed {
                self.put_if(is_read, name, || option(totals.last(flow).map(|last| last.days_since(now))));
            }
        }
        let supply = totals.supply.as_deref();
        for (name, computed) in OF_TOKENS {
            self.put_if(is_read, name, || {
                option(match computed {
                    Computed::PriceAge => supply.and_then(|supply| supply.price_at).map(|at| days(now - at)),
                    _ => supply.and_then(|supply| supply.next_rate).map(|next| days(next.at - now)),
                })
            });
        }
    }
}

fn computed_value(computed: Computed, scope: &Scope<'_>) -> Value {
    let days_until = || {
        let interval = scope.record_in_view().and_then(Record::interval);
        interval.map(|interval| interval.days_until(scope.now))
    };
    match computed {
        Computed::Now => Value::from(time(scope.now)),
        Computed::DaysUntil => option(days_until()),
        Computed::DaysSince => option(days_until().map(|days| 0.0 - days)),
        Computed::SinceLatest(flow) => {
            option(scope.totals.and_then(|totals| totals.last(flow)).map(|last| last.days_since(scope.now)))
        }
        Computed::Lead => option(scope.lead.map(|lead| lead.text.as_str())),
        Computed::PriceAge => option(Env::of(scope, None).price_age(None)),
        Computed::UntilRateChange => option(Env::of(scope, None).until_rate_change(None)),
        // Texts go to everyone, so templates have no positions.
        Computed::Position(_) => Value::UNDEFINED,
        Computed::Rate(field) => option(Env::of(scope, None).rate_step().and_then(|step| field.of(step))),
    }
}

fn field_value<O>(reader: &FieldReader<O>, from: &O, now: Timestamp) -> Value {
    match reader {
        FieldReader::Number(_, read) => option(read(from)),
        FieldReader::Bool(read) => option(read(from)),
        FieldReader::Time(read) => option(read(from).map(time)),
        FieldReader::Text(read) => option(read(from)),
        FieldReader::Texts(read) => {
            option(read(from).map(|texts| texts.iter().take(MAX_ITEMS).map(|text| Value::from(text.clone())).collect::<Vec<_>>()))
        }
        FieldReader::Fact(read) => option(read(from).map(fact)),
        FieldReader::Items(kind, read) => {
            let mut items = Vec::new();
            let there = read(from, &mut |item| {
                items.push(item_value(*kind, item, now));
                items.len() < MAX_ITEMS
            });
            option(there.map(|()| items))
        }
    }
}

fn item_value(kind: ItemKind, item: ListItem<'_>, now: Timestamp) -> Value {
    let mut tree = ContextTree::default();
    for field in fields::of_item(kind) {
        let value = match field.read {
            ItemReader::Number(_, read) => option(read(item)),
            ItemReader::Time(read) => option(read(item).map(time)),
            ItemReader::Text(read) => option(read(item)),
            ItemReader::Fact(read) => option(read(item).map(fact)),
        };
        tree.put(field.name, value);
    }
    if let ListItem::Member(member) = item {
        tree.put_windows(&member.totals, &|_| true, now);
    }
    tree.into_value()
}

/// Parses the length of a window.
pub(super) fn window_of(flow: Flow, text: &str) -> Result<Window, String> {
    match span_of(text) {
        Ok(span) if span > chrono::TimeDelta::zero() => Ok(Window { flow, span }),
        Ok(_) => Err("a window must be positive".into()),
        Err(problem) => Err(format!("\"{text}\" is not a valid duration: {problem}")),
    }
}

fn option<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or_else(|| Value::from(()), Into::into)
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn fact(fact: &Fact) -> Value {
    match fact {
        Fact::Amount(amount) => Value::from(*amount),
        Fact::Time(at) => Value::from(time(*at)),
        Fact::Text(text) => Value::from(text.as_str()),
    }
}
