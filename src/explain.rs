//! Why an alert was told, or was not: every step from the rule to the receiver, with the values that decided it. Pure.
//!
//! The cast: a [`Question`] is a rule, what it is asked about, and what the database remembers of both; [`explain`] answers with an
//! [`Answer`], a tree of [`Step`]s in the order in which the daemon takes them, that ends in one sentence beginning with "so:".
//! The steps ask the rule, the routes and the silences themselves, never a copy of their logic, so that what is explained is what
//! happens. What became of each message is told by [`fate`].

pub mod fate;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::Serialize;

use crate::{
    aggregate::{Sum, Totals, has_none},
    alert::{Alert, AlertState, Labels},
    change::Change,
    digest::Schedule,
    evaluate::Judge as _,
    format,
    route::{Firing, GroupBy, Grouping, Inhibitor, RouteTree},
    rules::{Clause, How, Lead, On, Rule, Scope, SourceFacts, Truth},
    store::model::Fate,
    supply::{AlertId, Endpoint, FeedState, Interval, ReceiverName, Resource, Timestamp, Token, Tracked, days},
};

pub use fate::Records;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The rule.
    pub rule: &'a Rule,
    /// About which token; none for a group and for trouble with the source.
    pub token: Option<&'a Token>,
    /// Whether the config watches it.
    pub is_watched: bool,
    /// What is remembered of the feeds that the facts come from; empty where they were never asked.
    pub feeds: &'a [(Endpoint, FeedState)],
    /// The record; of a change, the one after it.
    pub record: Option<&'a Tracked>,
    /// The change, with the time of the poll that brought it.
    pub change: Option<(&'a Change, Timestamp)>,
    /// What the windows of the token or of the group hold, for rules on `token` and `portfolio`.
    pub totals: Option<&'a Totals>,
    /// The trouble, for rules on the source.
    pub source: Option<&'a SourceFacts>,
    /// All alerts that this rule ever raised for it, in any order.
    pub alerts: &'a [Alert],
    /// What became of each message about these alerts, in the order in which they were decided.
    pub fates: &'a [Fate],
    /// What fates are read with; its silences are also those that would hide it now.
    pub records: Records<'a>,
    /// What fires now, as inhibitions see it.
    pub firing: &'a [Firing],
    /// Who gets a digest, and when.
    pub digests: &'a [(ReceiverName, Schedule)],
    /// Who is told.
    pub routes: &'a RouteTree,
    /// The time of the question.
    pub now: Timestamp,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It lets the alert through.
    Yes,
    /// It keeps the alert back.
    No,
    /// It cannot be told.
    Unknown,
    /// It decides nothing.
    Note,
}

impl Mark {
    /// A sign for people.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Mark::Yes => "✓",
            Mark::No => "✗",
            Mark::Unknown => "?",
            Mark::Note => "·",
        }
    }
}

/// A step, with what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// How it went.
    pub mark: Mark,
    /// What it says, on one line.
    pub text: String,
    /// Its parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Step>,
}

impl Step {
    fn new(mark: Mark, text: impl Into<String>) -> Self {
        Self { mark, text: text.into(), parts: Vec::new() }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What it is about: `BigCliffAhead for ARB, unlock on 16 Mar 2026`.
    pub about: String,
    /// The steps, in the order in which the daemon takes them.
    pub steps: Vec<Step>,
    /// Whether it was told, or would be at the next evaluation.
    pub fired: bool,
    /// The sentence at the end, without the `so: `.
    pub so: String,
}

/// Answers.
#[must_use]
pub fn explain(question: &Question<'_>) -> Answer {
    let mut why = Why { question, steps: Vec::new(), because: None };
    let lead = why.walk();
    let told = why.alert();
    why.routes(lead, told.is_some());
    let ends = why.fates();
    let Why { steps, because, .. } = why;
    let (fired, so) = match (told, because) {
        (Some(told), _) => (true, format!("{told}, {}", ends.unwrap_or_else(|| "told to nobody: no receiver was named for it".into()))),
        (None, Some(because)) => (false, format!("not fired, because {because}")),
        (None, None) if is_once(question.rule.on) => (
            false,
            "not fired, although all holds now: it is told only when it is first seen, and the rule did not hold or was not there then"
                .into(),
        ),
        (None, None) => (false, "not fired yet, although all holds: the next evaluation tells it, once the daemon runs with these rules".into()),
    };
    Answer { about: about(question), steps, fired, so }
}

/// Burns, buybacks, rounds and changes happen once.
fn is_once(on: On) -> bool {
    matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
}

fn about(question: &Question<'_>) -> String {
    let Question { rule, token, record, change, totals, source, .. } = question;
    let symbol = token.map_or_else(String::new, |token| format::name(token.symbol()));
    match (change, record) {
        (Some((change, at)), _) => {
            let resource = change.resource.map_or("", Resource::as_str);
            format!("{} for {symbol}, {resource} {} seen {}", rule.name, change.summary, format::instant(*at))
        }
        (None, Some(tracked)) => {
            let when = tracked.record.interval().as_ref().map(format::when).unwrap_or_else(|| tracked.key.to_string());
            format!("{} for {symbol}, {} {when}", rule.name, tracked.record.resource())
        }
        (None, None) => match (token, totals, source) {
            (None, _, Some(source)) => format!("{} for {} since {}", rule.name, source.kind, format::instant(source.since)),
            (None, Some(totals), _) => format!("{} for {}", rule.name, pool_name(totals)),
            _ => format!("{} for {symbol}", rule.name),
        },
    }
}

fn pool_name(totals: &Totals) -> String {
    totals.group.as_ref().map_or_else(|| "all watched tokens".to_owned(), |group| format!("the group {}", format::name(group)))
}

struct Why<'a> {
    question: &'a Question<'a>,
    steps: Vec<Step>,
    /// The first step that keeps the alert back.
    because: Option<String>,
}

impl<'a> Why<'a> {
    fn yes(&mut self, text: impl Into<String>) {
        self.steps.push(Step::new(Mark::Yes, text));
    }

    fn note(&mut self, text: impl Into<String>) {
        self.steps.push(Step::new(Mark::Note, text));
    }

    fn no(&mut self, text: impl Into<String>, because: impl Into<String>) {
        self.steps.push(Step::new(Mark::No, text));
        self.because.get_or_insert_with(|| because.into());
    }

    fn scope(&self, lead: Option<&'a Lead>) -> Scope<'a> {
        let Question { token, record, change, source, totals, now, .. } = *self.question;
        // A change was judged when it was seen.
        let now = change.map_or(now, |(_, at)| at);
        Scope { token, record, change: change.map(|(change, _)| change), source, totals, lead, now }
    }

    /// Everything up to the condition. Gives the lead time that holds.
    fn walk(&mut self) -> Option<&'a Lead> {
        let Question { rule, token, is_watched, now, .. } = *self.question;
        match rule.expires {
            Some(at) if now >= at => self.no(
                format!("the rule rests since {}: `expires`", format::day(at)),
                format!("the rule expired on {}", format::day(at)),
            ),
            Some(at) => self.yes(format!("the rule is at work until {}", format::day(at))),
            None => self.yes("the rule is at work"),
        }
        if let Some(token) = token {
            match is_watched {
                true => self.yes(format!("{} is watched", format::name(token.name()))),
                false => self.no(
                    format!("{} is not watched: `tokens` in [watch] leaves it out", format::name(token.name())),
                    format!("{} is not watched", format::name(token.name())),
                ),
            }
        }
        self.facts();
        let lead = self.window();
        let scope = self.scope(lead);
        match rule.covers(&scope) {
            true => self.yes("its filters let it in"),
            false => {
                let own = scope.record.and_then(|tracked| match &tracked.record {
                    crate::supply::Record::Unlock(event) => event.listed_method.as_str(),
                    _ => None,
                });
                let method = own.or_else(|| token?.item.listed_method.as_str()).unwrap_or("not known");
                let whom = token.map_or_else(String::new, |token| {
                    let groups = if token.groups.is_empty() {
                        "in no group".to_owned()
                    } else {
                        format!("in {}", token.groups.join(", "))
                    };
                    format!(": {} is {groups}, listed method {method}", token.id)
                });
                self.no(
                    format!("its filters (`tokens`, `listed_methods`, `allocations`) leave it out{whom}"),
                    "a filter of the rule leaves it out",
                );
            }
        }
        self.sums();
        self.condition(&scope);
        lead
    }

    /// Where the facts come from, and how old they are.
    fn facts(&mut self) {
        let Question { rule, token, record, change, totals, source, feeds, now, .. } = *self.question;
        if let Some(source) = source {
            self.note(format!("{} since {}: {}", source.kind, format::instant(source.since), one_line(&source.message)));
            return;
        }
        if totals.is_some() {
            if token.is_some() {
                for resource in used(rule) {
                    self.feed(resource, feeds, now);
                }
            }
            return;
        }
        let Some((_, feed)) = feeds.first() else {
            if record.is_none() && change.is_none() {
                self.no("the source was never asked about it, or never answered", "nothing is known of it yet");
            }
            return;
        };
        match feed.read_at {
            Some(at) => self.note(format!("last read {} ({} ago)", format::instant(at), ago(now - at))),
            None => self.note("never read whole"),
        }
        if let Some(since) = feed.failing_since {
            self.note(format!("the source fails since {}: what is known may be old", format::instant(since)));
        }
        if let Some(since) = feed.held_since {
            self.note(format!("an answer is held since {}: most of what lay ahead was missing from it", format::instant(since)));
        }
        if let Some((_, times)) = record.and_then(|record| feed.missing.iter().find(|(key, _)| *key == record.key)) {
            self.note(format!("left out by the last {times} answers: a removal that is not proven yet"));
        }
    }

    /// How old one of several feeds is that a sum is made of.
    fn feed(&mut self, resource: Resource, feeds: &[(Endpoint, FeedState)], now: Timestamp) {
        let own = feeds.iter().filter(|(endpoint, _)| endpoint.is_per_token() && endpoint.resource() == Some(resource));
        let text = match own.max_by_key(|(_, state)| state.read_at).map(|(_, state)| (state.read_at, state.failing_since)) {
            Some((Some(at), None)) => format!("{resource} records last read {} ({} ago)", format::instant(at), ago(now - at)),
            Some((Some(at), Some(since))) => format!(
                "{resource} records last read {}, and the source fails since {}",
                format::instant(at),
                format::instant(since)
            ),
            _ if self.question.token.is_some_and(|token| has_none(&token.item, resource)) => {
                format!("the token list says that it has no {resource} records: they add up to zero")
            }
            _ => format!("{resource} records were never read: what they would add up to is missing, not zero"),
        };
        self.note(text);
    }

    /// What the windows hold that the rule asks for; of a group, whose part is not known.
    fn sums(&mut self) {
        let Question { rule, totals, now, .. } = *self.question;
        let Some(totals) = totals else { return };
        if !totals.members.is_empty() {
            let names: Vec<&str> = totals.members.iter().map(|member| member.symbol.as_str()).collect();
            self.note(format!("{} in {}: {}", format::count(names.len(), "token"), pool_name(totals), format::names(names)));
        }
        for window in rule.windows() {
            let Some(sum) = totals.sum(*window) else { continue };
            let mut step =
                Step::new(Mark::Note, format!("{}(\"{}\"): {}", window.flow.as_str(), span(window.span), in_words(sum)));
            let is_unknown = |sum: Option<Sum>| sum.is_none_or(|sum| sum.count.is_none());
            let unknown: Vec<&str> = totals
                .members
                .iter()
                .filter(|member| is_unknown(member.totals.sum(*window)))
                .map(|member| member.symbol.as_str())
                .collect();
            if !unknown.is_empty() {
                let text = format!("never read, so the sum is missing: {}", format::names(unknown));
                step.parts.push(Step::new(Mark::Unknown, text));
            }
            self.steps.push(step);
        }
        for (word, last) in [("lastBurn", totals.last_burn), ("lastBuyback", totals.last_buyback)] {
            if let Some(last) = last {
                self.note(format!("{word}: {}, {} ago", format::instant(last.at), ago(now - last.at)));
            }
        }
    }

    /// Whether the rule looks at it at this time.
    fn window(&mut self) -> Option<&'a Lead> {
        let Question { rule, record, now, .. } = *self.question;
        let tracked = record?;
        let On::Record(resource) = rule.on else { return None };
        if resource == Resource::Allocation {
            return None;
        }
        let Some(interval) = tracked.record.interval() else {
            self.no("it has no date, or a date to be determined", "it has no date yet");
            return None;
        };
        let when = format::when(&interval);
        if is_once(rule.on) {
            let age = now - interval.start;
            let text = format!("it happened {when}, {} ago; `since` is {}", ago(age), ago(rule.since));
            // What was told within `since` at its time need not be so now.
            if age > rule.since && self.question.alerts.is_empty() {
                self.no(text, format!("it is older than `since` ({})", ago(rule.since)));
            } else {
                self.yes(text);
            }
            return None;
        }
        let end = if resource == Resource::Emission { interval.end + rule.since } else { interval.end };
        if now >= end {
            self.no(format!("it is over: {when}"), format!("it is over since {}", format::instant(end)));
            return None;
        }
        if rule.within.is_empty() || resource != Resource::Unlock {
            self.yes(format!("it lies ahead: {when}"));
            return None;
        }
        let lead = rule.within.iter().filter(|lead| interval.is_within(now, lead.span)).min_by_key(|lead| lead.span);
        let mut step = match lead {
            Some(lead) => Step::new(Mark::Yes, format!("it is due {when}, {}: within {}", ahead(&interval, now), lead.text)),
            None => {
                let opens = rule.within.iter().filter_map(|lead| interval.start.checked_sub_signed(lead.span)).min();
                let opens = opens.map_or_else(String::new, |at| format!(", which begins {}", format::instant(at)));
                self.because.get_or_insert_with(|| format!("it is due {when}, beyond the longest lead time{opens}"));
                Step::new(Mark::No, format!("it is due {when}, {}: beyond every lead time", ahead(&interval, now)))
            }
        };
        for lead in &rule.within {
            let mark = if interval.is_within(now, lead.span) { Mark::Yes } else { Mark::No };
            if let Some(at) = interval.start.checked_sub_signed(lead.span) {
                let word = if now >= at { "since" } else { "from" };
                step.parts.push(Step::new(mark, format!("{}: {word} {}", lead.text, format::instant(at))));
            }
        }
        self.steps.push(step);
        lead
    }

    fn condition(&mut self, scope: &Scope<'_>) {
        let rule = self.question.rule;
        let Some(clause) = rule.clauses(scope) else {
            self.yes("it has no condition: `when` is not written");
            return;
        };
        let truth = rule.holds(scope);
        let mut step = step_of(&clause);
        step.text = format!("when: {}", step.text);
        if let (Truth::True, Truth::Missing(names)) = (&truth, &clause.truth) {
            step.mark = Mark::Yes;
            step.text.push_str(&format!(" ({} missing, and `missing = \"fire\"`)", names.join(", ")));
        }
        self.steps.push(step);
        match &truth {
            Truth::True => {}
            Truth::False => _ = self.because.get_or_insert_with(|| cause(&clause)),
            Truth::Missing(names) => {
                let are = if names.len() == 1 { "is" } else { "are" };
                self.because.get_or_insert_with(|| {
                    format!("{} {are} missing, so its condition cannot be told (`missing = \"fire\"` would fire)", quoted(names))
                });
            }
        }
        let levels = rule.level_clauses(scope);
        if !levels.is_empty() {
            let highest = rule.level(scope).and_then(|level| usize::try_from(level).ok());
            let mut step = Step::new(
                Mark::Note,
                highest.map_or_else(|| "no level holds".to_owned(), |level| format!("level {} holds", level + 1)),
            );
            step.parts = levels
                .iter()
                .enumerate()
                .map(|(index, clause)| {
                    let mut part = step_of(clause);
                    part.text = format!("level {}: {}", index + 1, part.text);
                    part
                })
                .collect();
            self.steps.push(step);
        }
        if let Some(clause) = rule.clear_clauses(scope) {
            let mut step = step_of(&clause);
            step.text = format!("clear_when: {}", step.text);
            step.mark = Mark::Note;
            self.steps.push(step);
        }
    }

    /// What the database remembers of it. Gives how it was told, if it was.
    fn alert(&mut self) -> Option<String> {
        let Question { rule, now, .. } = *self.question;
        let mut alerts: Vec<&Alert> = self.question.alerts.iter().collect();
        alerts.sort_by_key(|alert| (alert.active_at, alert.episode));
        let Some(last) = alerts.last().copied() else {
            if rule.hold > TimeDelta::zero() && self.because.is_none() {
                self.note(format!("`for`: it must hold for {} first", ago(rule.hold)));
            }
            return None;
        };
        for alert in &alerts {
            let mut step = Step::new(Mark::Note, story(alert));
            if !alert.leads.is_empty() {
                step.parts.push(Step::new(Mark::Note, format!("lead times told: {}; each is told once", alert.leads.join(", "))));
            }
            if let Some(since) = alert.false_since {
                let until = since + rule.keep_firing_for;
                let text = format!(
                    "no longer holds since {}; `keep_firing_for` keeps it until {}",
                    format::instant(since),
                    format::instant(until)
                );
                step.parts.push(Step::new(Mark::Note, text));
            }
            self.steps.push(step);
        }
        match (last.state, last.starts_at) {
            (AlertState::Pending, _) => {
                let due = last.active_at + rule.hold;
                self.because.get_or_insert_with(|| {
                    format!(
                        "it holds since {} and `for` asks for {}: it fires {}",
                        format::instant(last.active_at),
                        ago(rule.hold),
                        when_due(due, now)
                    )
                });
                None
            }
            (AlertState::Event, Some(at)) => Some(format!("fired at {}", format::instant(at))),
            (AlertState::Firing, Some(at)) => Some(format!("fired at {} and is firing", format::instant(at))),
            (AlertState::Resolved, Some(at)) => {
                let why = last.resolution.map_or("", crate::alert::Resolution::as_str);
                let end = last.ends_at.map(|at| format!(" at {}", format::instant(at))).unwrap_or_default();
                Some(format!("fired at {} and ended{end} ({why})", format::instant(at)))
            }
            _ => None,
        }
    }

    /// Labels, text, who is told, and what would hold it back or make it wait now.
    fn routes(&mut self, lead: Option<&'a Lead>, is_told: bool) {
        let Question { rule, routes, .. } = *self.question;
        let scope = self.scope(lead);
        let rendered = rule.render(&scope, rule.level(&scope));
        let labels: Vec<String> = rendered.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let receivers = rule.terms().audience(routes, &rendered.labels);
        let by = if rule.receivers.is_empty() { "the routes lead to" } else { "the rule names" };
        let names: Vec<&str> = receivers.iter().map(ReceiverName::as_str).collect();
        let names = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        let mark = if receivers.is_empty() && !is_told { Mark::No } else { Mark::Note };
        let mut step = Step::new(mark, format!("{by} {names}"));
        step.parts.push(Step::new(Mark::Note, format!("labels: {}", labels.join(", "))));
        if let Some(summary) = rendered.annotations.get("summary") {
            step.parts.push(Step::new(Mark::Note, format!("text: {}", one_line(summary))));
        }
        if let Some(error) = &rendered.error {
            step.parts.push(Step::new(Mark::No, format!("a template fails, and the built-in text is sent: {error}")));
        }
        if let Some(limit) = rule.limit {
            step.parts.push(Step::new(Mark::Note, format!("at most {limit} from one evaluation: `limit`")));
        }
        for receiver in &receivers {
            step.parts.push(self.way(&rendered.labels, receiver));
        }
        self.steps.push(step);
        self.hidden(&rendered.labels);
    }

    /// How a receiver would be told: its route, its group, whether it is muted now.
    fn way(&self, labels: &Labels, receiver: &ReceiverName) -> Step {
        let Question { routes, digests, now, .. } = *self.question;
        let leaf = routes.leaf(labels, receiver);
        let grouping = leaf.grouping();
        let mut step = Step::new(Mark::Note, format!("{receiver}: route {}, {}", leaf.key(), grouped(grouping)));
        if let Some(name) = routes.muted(grouping, now) {
            let until = format::instant(routes.heard_again(grouping, now));
            step.parts.push(Step::new(Mark::No, format!("muted by {name} until {until}: it waits, and is told then")));
        }
        let digest = digests.iter().find(|(name, _)| name == receiver).and_then(|(_, schedule)| schedule.next(now));
        if let Some(at) = digest {
            step.parts.push(Step::new(
                Mark::Note,
                format!("the next digest is due {}, and says what was held back", format::instant(at)),
            ));
        }
        step
    }

    /// What would hide it now, whatever became of what was said before.
    fn hidden(&mut self, labels: &Labels) {
        let Question { records, routes, alerts, firing, now, .. } = *self.question;
        let silence = records.silences.iter().find(|silence| silence.hides(labels, now));
        if let Some(silence) = silence {
            self.steps.push(Step::new(
                Mark::No,
                format!(
                    "silence {} hides it until {} ({} by {}: {})",
                    silence.id,
                    format::instant(silence.ends_at),
                    silence.matchers_line(),
                    silence.author,
                    silence.comment
                ),
            ));
        }
        let own = alerts.iter().find(|alert| alert.state == AlertState::Firing).map(|alert| alert.id.clone());
        let own = own.unwrap_or_else(|| AlertId::from(""));
        let inhibitor = Inhibitor::new(routes.inhibit_rules(), firing);
        if let Some(by) = inhibitor.of(&own, labels) {
            let labels = firing.iter().find(|firing| firing.id == *by).map(|firing| &firing.labels);
            let name = labels.and_then(|labels| labels.get("alertname")).map(|name| format!(" ({name})")).unwrap_or_default();
            self.steps.push(Step::new(Mark::No, format!("alert {by}{name} fires and inhibits it: `inhibit_rules`")));
        }
    }

    /// What became of each message. Gives the words for the end: how the last message to each receiver ended.
    fn fates(&mut self) -> Option<String> {
        let Question { fates, records, now, .. } = *self.question;
        let mut last: BTreeMap<Option<&ReceiverName>, (&'static str, String)> = BTreeMap::new();
        for fate in fates {
            let told = fate::told(fate, &records, now);
            let mut step = Step::new(told.mark, told.text);
            step.parts.push(Step::new(
                Mark::Note,
                format!("{}, decided {}: {}", fate.kind, format::instant(fate.at), one_line(&fate.summary)),
            ));
            self.steps.push(step);
            last.insert(fate.receiver.as_ref(), told.end);
        }
        let mut verbs: Vec<(&'static str, Vec<String>)> = Vec::new();
        for (verb, part) in last.into_values() {
            match verbs.iter_mut().find(|(known, _)| *known == verb) {
                Some((_, parts)) => parts.push(part),
                None => verbs.push((verb, vec![part])),
            }
        }
        let words = verbs.into_iter().map(|(verb, mut parts)| {
            parts.dedup();
            format!("{verb} {}", parts.join(", "))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The records that a rule on totals adds up.
fn used(rule: &Rule) -> Vec<Resource> {
    let mut used: Vec<Resource> = rule.windows().iter().map(|window| window.flow.resource()).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// A length of time as rules and configs write it.
fn span(span: TimeDelta) -> crate::config::Span {
    crate::config::Span(span.to_std().unwrap_or_default())
}

/// A sum for people.
fn in_words(sum: Sum) -> String {
    let Some(count) = sum.count else { return "not known".to_owned() };
    let amount = sum.amount.map_or_else(|| "an unknown amount".to_owned(), |amount| format!("{} tokens", format::amount(amount)));
    let value = sum.value.map_or_else(|| "of unknown value".to_owned(), format::usd);
    format!("{amount}, {value}, {count} {}", if count == 1.0 { "entry" } else { "entries" })
}

/// How a route groups.
fn grouped(grouping: &Grouping) -> String {
    let by = match &grouping.by {
        GroupBy::Alert => return "each alert by itself, at once".to_owned(),
        GroupBy::AllLabels => "by all labels".to_owned(),
        GroupBy::Labels(names) if names.is_empty() => "all in one group".to_owned(),
        GroupBy::Labels(names) => format!("grouped by {}", names.join(", ")),
    };
    format!("{by}, told after {} and then at most every {}", span(grouping.wait), span(grouping.interval))
}

fn story(alert: &Alert) -> String {
    let state = match alert.state {
        AlertState::Pending => format!("pending since {}", format::instant(alert.active_at)),
        AlertState::Firing => format!("firing since {}", format::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Event => format!("told at {}", format::instant(alert.starts_at.unwrap_or(alert.active_at))),
        AlertState::Resolved => {
            let why = alert.resolution.map_or("", crate::alert::Resolution::as_str);
            format!("ended {} ({why})", format::instant(alert.ends_at.unwrap_or(alert.updated_at)))
        }
    };
    let told: Vec<&str> = alert.told.iter().map(crate::supply::ReceiverName::as_str).collect();
    let told = if told.is_empty() { "nobody was told".to_owned() } else { format!("told {}", told.join(", ")) };
    format!("alert {}, episode {}: {state}; {told}", alert.id, alert.episode)
}

fn step_of(clause: &Clause) -> Step {
    let mark = match clause.truth {
        Truth::True => Mark::Yes,
        Truth::False => Mark::No,
        Truth::Missing(_) => Mark::Unknown,
    };
    let word = match clause.how {
        How::All => "all of these must hold".to_owned(),
        How::Any => "one of these must hold".to_owned(),
        How::Not => "this must not hold".to_owned(),
        How::Plain => with_values(clause),
    };
    Step { mark, text: word, parts: clause.parts.iter().map(step_of).collect() }
}

fn with_values(clause: &Clause) -> String {
    let values: Vec<String> = clause
        .values
        .iter()
        .map(|(text, value)| {
            format!("{text} {}", value.as_ref().map_or_else(|| "is missing".to_owned(), |value| format!("= {value}")))
        })
        .collect();
    let missing = match &clause.truth {
        Truth::Missing(names) if values.iter().all(|text| !text.ends_with("is missing")) => {
            format!("  [missing: {}]", names.join(", "))
        }
        _ => String::new(),
    };
    if values.is_empty() {
        format!("{}{missing}", clause.text)
    } else {
        format!("{}  [{}]{missing}", clause.text, values.join("; "))
    }
}

/// What made a condition false, in one phrase: the parts that decided it.
fn cause(clause: &Clause) -> String {
    fn deciding<'c>(clause: &'c Clause, parts: &mut Vec<&'c Clause>) {
        match clause.how {
            // One false part of `&&` is enough; of `||` all are false.
            How::All => {
                clause.parts.iter().filter(|part| part.truth == Truth::False).take(1).for_each(|part| deciding(part, parts))
            }
            How::Any => clause.parts.iter().for_each(|part| deciding(part, parts)),
            How::Not | How::Plain => parts.push(clause),
        }
    }
    let mut parts = Vec::new();
    deciding(clause, &mut parts);
    let shown: Vec<String> = parts
        .iter()
        .take(4)
        .map(|part| match part.how {
            How::Not => format!("{} does not hold", part.text),
            _ => with_values(part),
        })
        .collect();
    let more = if parts.len() > shown.len() { format!(", and {} more", parts.len() - shown.len()) } else { String::new() };
    match shown.as_slice() {
        [one] => format!("this is false: {one}"),
        all => format!("none of these is true: {}{more}", all.join(", ")),
    }
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn ahead(interval: &Interval, now: Timestamp) -> String {
    if now < interval.start { format!("in {}", ago(interval.start - now)) } else { "now".to_owned() }
}

fn when_due(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("at {}, if it still holds", format::instant(at)) } else { "at the next evaluation".to_owned() }
}

/// A length of time in its greatest unit.
fn ago(span: TimeDelta) -> String {
    let all = days(span.abs());
    match all {
        days if days >= 2.0 => format!("{days:.0} days"),
        days if days * 24.0 >= 2.0 => format!("{:.0} h", days * 24.0),
        days => format!("{:.0} min", (days * 1440.0).ceil()),
    }
}

/// The answer where nothing was ever seen that the rule could hear.
#[must_use]
pub fn unheard(rule: &Rule, token: &Token, what: &str) -> Answer {
    let because = format!("no {what} was ever seen for {}", token.id);
    Answer {
        about: format!("{} for {}", rule.name, format::name(token.symbol())),
        steps: vec![Step::new(Mark::No, because.clone())],
        fired: false,
        so: format!("not fired, because {because}"),
    }
}

/// The answer where there is nothing that the rule could look at.
#[must_use]
pub fn nothing(rule: &Rule, about: &str, because: &str) -> Answer {
    Answer {
        about: format!("{} for {about}", rule.name),
        steps: vec![Step::new(Mark::No, because)],
        fired: false,
        so: format!("not fired, because {because}"),
    }
}

#[cfg(test)]
mod tests;
