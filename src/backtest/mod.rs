//! What rules would have sent: history through the real diff, evaluation, routes, grouping, silences and templates.
//!
//! The cast: [`Material`] is what a source said and when; [`run`] plays it through [`crate::replay`] and keeps in a [`Run`] what was
//! decided to be told (a [`Telling`]), the [`Message`]s that were made of it, and what was held back ([`Untold`]); [`Summary`] counts them
//! per rule, receiver and week; [`compare`] holds two runs against each other; `html` draws a report.

mod html;
mod material;
mod summary;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use chrono::TimeDelta;
use serde::{Serialize, Serializer};

use crate::{
    alert::{Labels, Notice},
    format,
    group::Holder,
    replay::{Mail, Pace, Replay, Sent},
    route::RouteTree,
    rules::RuleSet,
    store::model::Shape,
    supply::{NoticeId, Resource, Timestamp},
    watch::Watch,
};

pub use html::page;
pub use material::{Material, MaterialError};
pub use summary::{Row, Summary};

/// What is kept of one run, tellings and messages each; more are counted. A rule that sends more is understood long before.
const MAX_MESSAGES: usize = 200_000;

/// By what history is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judge<'a> {
    /// The rules.
    pub rules: &'a RuleSet,
    /// The routes.
    pub routes: &'a RouteTree,
    /// Limits, digests and silences.
    pub mail: &'a Mail,
    /// Groups, and which tokens are looked at.
    pub watch: &'a Watch,
    /// Proof of removals, and how often conditions that read the clock are looked at.
    pub pace: Pace,
}

/// Something that was decided to be told of an alert, to each of its receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Telling {
    /// The same in two runs where the same rule tells the same of the same alert.
    pub id: NoticeId,
    /// The alert that it tells of.
    pub alert: String,
    /// When it was decided.
    pub at: Timestamp,
    /// `alert` name of the rule.
    pub rule: String,
    /// Slug.
    pub token: Option<String>,
    /// Ticker.
    pub symbol: Option<String>,
    /// What it is about.
    pub resource: Option<Resource>,
    /// `alert.firing`, …
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Why then: `lead 7d`, `rescheduled`, …
    pub reason: String,
    /// Labels.
    pub labels: Labels,
    /// To whom it was to be told.
    pub receivers: Vec<String>,
    /// First line.
    pub summary: String,
    /// The rest.
    pub description: Option<String>,
}

impl Telling {
    fn of(notice: &Notice) -> Self {
        let body = &notice.body;
        let text = |name: &str| body.annotations.get(name).cloned();
        Self {
            id: notice.id.clone(),
            alert: notice.alert.to_string(),
            at: notice.at,
            rule: body.rule.clone(),
            token: body.token.as_ref().map(|token| token.id.clone()),
            symbol: body.token.as_ref().map(|token| token.symbol.clone()),
            resource: body.resource,
            kind: notice.kind.as_str(),
            reason: body.reason.clone(),
            receivers: notice.receivers.iter().map(ToString::to_string).collect(),
            summary: text("summary").unwrap_or_default(),
            description: text("description"),
            labels: body.labels.clone(),
        }
    }

    /// Whether it tells the end of its alert.
    #[must_use]
    pub fn is_end(&self) -> bool {
        self.kind == "alert.resolved"
    }
}

/// A message that one receiver would have got.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub receiver: String,
    /// How it came to be: one alert by itself, a group, many that were put together, a summary above the hour's limit, a digest.
    #[serde(serialize_with = "word_of")]
    pub shape: Shape,
    /// Its group, where a route makes one.
    pub group_key: Option<String>,
    /// Why many were put into one message.
    pub note: Option<String>,
    /// What it tells.
    #[serde(rename = "alerts")]
    pub told: Vec<Arc<Telling>>,
    /// What it counts without telling it.
    #[serde(serialize_with = "count_of")]
    pub counted: Vec<Arc<Telling>>,
    /// What something later of the same alert in it stands for.
    #[serde(serialize_with = "count_of")]
    pub merged: Vec<Arc<Telling>>,
    /// Alerts of its group that were told before and still fired.
    pub told_before: u32,
}

fn word_of<S: Serializer>(shape: &Shape, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(shape.as_str())
}

fn count_of<S: Serializer>(tellings: &[Arc<Telling>], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(tellings.len() as u64)
}

impl Message {
    /// Everything that it stands for: told, counted and merged.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Telling>> {
        self.told.iter().chain(&self.counted).chain(&self.merged)
    }

    /// What it says in one line.
    #[must_use]
    pub fn title(&self) -> String {
        let more = (self.told.len() + self.counted.len()).saturating_sub(1);
        match self.told.first() {
            Some(first) if more > 0 => format!("{} (and {more} more)", first.summary),
            Some(first) => first.summary.clone(),
            None => format::count(self.counted.len(), "alert"),
        }
    }

    /// Whether another message says the same at the same time, to whomever.
    #[must_use]
    pub fn says_as(&self, other: &Self) -> bool {
        let words = |message: &Self| (message.at, message.shape, message.group_key.clone(), message.counted.len());
        let alike = |a: &Arc<Telling>, b: &Arc<Telling>| {
            Arc::ptr_eq(a, b) || (&a.id, &a.summary, &a.description, &a.labels) == (&b.id, &b.summary, &b.description, &b.labels)
        };
        words(self) == words(other)
            && self.told.len() == other.told.len()
            && self.told.iter().zip(&other.told).all(|(a, b)| alike(a, b))
    }
}

/// Messages that follow each other and say the same to several receivers, as one, with all their receivers.
pub fn letters(messages: &[Message]) -> impl Iterator<Item = (&Message, Vec<&str>)> {
    // What one pass makes comes receiver by receiver: of one instant, the same may stand apart.
    messages.chunk_by(|a, b| a.at == b.at).flat_map(|instant| {
        let mut letters: Vec<(&Message, Vec<&str>)> = Vec::new();
        for message in instant {
            // Many at once are told in few messages; a look back over some is enough.
            match letters.iter_mut().rev().take(64).find(|(letter, _)| letter.says_as(message)) {
                Some((_, receivers)) => receivers.push(&message.receiver),
                None => letters.push((message, vec![&message.receiver])),
            }
        }
        letters
    })
}

/// Something that was decided to be told to somebody, and was not.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Untold {
    /// What.
    pub telling: Arc<Telling>,
    /// To whom; none where no route takes it.
    pub receiver: Option<String>,
    /// `silenced`, `inhibited`, `acknowledged`; `waiting` where the run ended before its message was made; `nobody`.
    pub state: &'static str,
    /// The silence or the alert that held it back.
    pub holder: Option<String>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// First instant.
    pub from: Timestamp,
    /// Last instant.
    pub to: Timestamp,
    /// Tokens that were looked at.
    pub tokens: usize,
    /// What the diff told.
    pub changes: u64,
    /// What was decided to be told, in order; digests and what is told again stand in the messages alone.
    pub tellings: Vec<Arc<Telling>>,
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// What was not told, in the order in which it was decided.
    pub untold: Vec<Untold>,
    /// Tellings and messages beyond [`MAX_MESSAGES`], which are only counted.
    pub uncounted: u64,
    /// `alert` names of all rules, in the order of their files.
    pub rules: Vec<String>,
    /// Rules with a template that failed, with the first error of each.
    pub template_errors: Vec<(String, String)>,
}

/// Plays `material` from `from` to `to`. `heard` is told now and then how far it has come, from 0 to 1.
#[must_use]
pub fn run(material: &Material, judge: &Judge<'_>, from: Timestamp, to: Timestamp, mut heard: impl FnMut(f64)) -> Run {
    let mut replay = Replay::new(judge.rules, judge.routes, judge.watch, judge.pace, from).with_mail(judge.mail.clone());
    let mut run = Run {
        from,
        to,
        tokens: material.token_count(),
        changes: 0,
        tellings: Vec::new(),
        messages: Vec::new(),
        untold: Vec::new(),
        uncounted: 0,
        rules: judge.rules.rules.iter().map(|rule| rule.name.clone()).collect(),
        template_errors: Vec::new(),
    };
    let mut known: HashMap<NoticeId, Arc<Telling>> = HashMap::new();
    let whole = seconds(to - from).max(1.0);
    material.play(&mut replay, to, |replay| {
        run.changes += replay.take_changes().len() as u64;
        for notice in replay.take_told() {
            if run.tellings.len() >= MAX_MESSAGES {
                run.uncounted += 1;
                continue;
            }
            let telling = Arc::new(Telling::of(&notice));
            if telling.receivers.is_empty() {
                run.untold.push(Untold { telling: telling.clone(), receiver: None, state: "nobody", holder: None });
            }
            known.insert(telling.id.clone(), telling.clone());
            run.tellings.push(telling);
        }
        for sent in replay.take_sent() {
            if run.messages.len() >= MAX_MESSAGES {
                run.uncounted += 1;
                continue;
            }
            run.messages.push(message(sent, &mut known));
        }
        heard((seconds(replay.now() - from) / whole).clamp(0.0, 1.0));
    });
    run.untold.extend(replay.untold().into_iter().filter_map(|untold| {
        let telling = known.get(&untold.notice)?.clone();
        let (state, holder) = match untold.by {
            Some(held) => (held.by.as_str(), (held.by != Holder::Ack).then_some(held.id)),
            None => ("waiting", None),
        };
        Some(Untold { telling, receiver: Some(untold.receiver.to_string()), state, holder })
    }));
    run.untold.sort_by_key(|untold| untold.telling.at);
    run.template_errors = replay.template_errors().iter().map(|(rule, error)| (rule.to_string(), error.clone())).collect();
    run
}

fn message(sent: Sent, known: &mut HashMap<NoticeId, Arc<Telling>>) -> Message {
    let mut of = |notices: Vec<Arc<Notice>>| -> Vec<Arc<Telling>> {
        let tellings = notices.iter().map(|notice| {
            // A digest, or what is told again: it was made on the way.
            known.entry(notice.id.clone()).or_insert_with(|| Arc::new(Telling::of(notice))).clone()
        });
        tellings.collect()
    };
    Message {
        at: sent.at,
        receiver: sent.receiver.to_string(),
        shape: sent.bundle.shape,
        group_key: sent.bundle.group_key,
        note: sent.bundle.note,
        told_before: sent.bundle.told_before,
        told: of(sent.told),
        counted: of(sent.counted),
        merged: of(sent.merged),
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a few hundred years fit a double")]
fn seconds(span: TimeDelta) -> f64 {
    span.num_seconds() as f64
}

/// What another set of rules would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// What only the other rules would send.
    pub gained: Vec<Message>,
    /// What only these rules send.
    pub lost: Vec<Message>,
    /// What both send, at another time, with other words or labels, or with more or fewer alerts in it: as it is, as it would be.
    pub changed: Vec<(Message, Message)>,
    /// What both send alike.
    pub same: u32,
}

/// Holds what the rules at work send against what other rules would send. Two messages to one receiver are the same one where they
/// tell the same of an alert.
#[must_use]
pub fn compare(now: &Run, other: &Run) -> Comparison {
    let mut comparison = Comparison::default();
    let mut places: HashMap<(&str, &NoticeId), usize> = HashMap::new();
    for (index, message) in now.messages.iter().enumerate() {
        places.extend(message.all().map(|telling| ((message.receiver.as_str(), &telling.id), index)));
    }
    let mut is_taken = vec![false; now.messages.len()];
    for message in &other.messages {
        let before = message
            .all()
            .filter_map(|telling| places.get(&(message.receiver.as_str(), &telling.id)).copied())
            .find(|index| is_taken.get(*index) == Some(&false));
        let Some((was, index)) = before.and_then(|index| Some((now.messages.get(index)?, index))) else {
            comparison.gained.push(message.clone());
            continue;
        };
        if let Some(taken) = is_taken.get_mut(index) {
            *taken = true;
        }
        if was.says_as(message) {
            comparison.same += 1;
        } else {
            comparison.changed.push((was.clone(), message.clone()));
        }
    }
    let lost = now.messages.iter().zip(&is_taken).filter(|(_, taken)| !**taken).map(|(message, _)| message.clone());
    comparison.lost = lost.collect();
    comparison
}

/// A message beside another: what of it the other does not tell, as `(what is gone, what is new)`.
#[must_use]
pub fn parts<'m>(was: &'m Message, is: &'m Message) -> (Vec<&'m Telling>, Vec<&'m Telling>) {
    let only = |of: &'m Message, without: &Message| {
        let ids: BTreeMap<&NoticeId, &Telling> = without.told.iter().map(|telling| (&telling.id, &**telling)).collect();
        let is_other = |telling: &&'m Telling| {
            ids.get(&telling.id).is_none_or(|other| {
                (&other.summary, &other.description, &other.labels) != (&telling.summary, &telling.description, &telling.labels)
            })
        };
        of.told.iter().map(|telling| &**telling).filter(is_other).collect::<Vec<_>>()
    };
    (only(was, is), only(is, was))
}
