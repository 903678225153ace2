//! The effect of a rule in one sentence: `Notifies 30, 7, and 1 days before a cliff of at least $1M or 1% of market cap, for @portfolio.`

use chrono::TimeDelta;

use crate::condition::sentence::{Phrase, Test, joined, values};
use crate::on::On;
use crate::rule::{Pool, Rule};
use crate::scope::Lead;
use model::{ChangeKind, Resource, phrase};

impl Rule {
    /// Returns the effect of the rule in one sentence: when it notifies, about what, and for which tokens. Tokens, groups, and recipients
    /// have the names of the rule file.
    pub fn sentence(&self) -> String {
        let mut conditions = self.body.when.as_ref().map(|when| when.phrases()).unwrap_or_default();
        let mut text = format!("Notifies {}", self.occasion(&mut conditions));
        if !conditions.is_empty() {
            text.push_str(&format!(" if {}", joined(&conditions, false)));
        }
        if self.body.fires_on_missing && self.body.when.is_some() {
            text.push_str(", or if a value is unknown");
        }
        if self.pending_for > TimeDelta::zero() {
            text.push_str(&format!(", once that was true for {}", phrase::duration(self.pending_for)));
        }
        for part in self.selection() {
            text.push_str(&format!(", {part}"));
        }
        phrase::sentence(&text)
    }

    /// Returns the occasion of a notification, without its condition. Removes the tests that become part of it: `a cliff of at least $1M`.
    fn occasion(&self, conditions: &mut Vec<Phrase>) -> String {
        match self.on {
            On::Record(resource) => self.record(resource, conditions),
            On::Change(resource, None) => format!("about each correction of {}", article(noun(resource))),
            On::Change(resource, Some(kind)) => format!("when {}", change(resource, kind)),
            On::Token => "about a token".to_owned(),
            On::Portfolio => {
                let each = if self.pools.len() > 1 { "each of " } else { "" };
                format!("about {each}{} as a whole", phrase::list(&self.pools.iter().map(pool).collect::<Vec<_>>()))
            }
            On::Source => "about incidents of the source, a receiver, or the daemon".to_owned(),
        }
    }

    fn record(&self, resource: Resource, conditions: &mut Vec<Phrase>) -> String {
        let (subject, sized) = match resource {
            Resource::Unlock => ("the cliff", "cliff"),
            Resource::Burn => ("the burn", "burn"),
            Resource::Buyback => ("the buyback", "buyback"),
            Resource::Emission => ("the emission", "emission"),
            Resource::Allocation => ("the allocation", "allocation"),
            Resource::Funding => ("the funding round", "funding round"),
        };
        let size = take_size(conditions, subject);
        let what = if size.is_some() { sized } else { noun(resource) };
        let of = size.map(|size| format!(" of {size}")).unwrap_or_default();
        match resource {
            Resource::Unlock if self.within.is_empty() => format!("about {}{of} ahead", article(what)),
            Resource::Unlock => format!("{} before {}{of}", leads(&self.within), article(what)),
            Resource::Burn | Resource::Buyback | Resource::Funding => {
                format!("about a new {what}{of} that is at most {} old", phrase::duration(self.since))
            }
            Resource::Emission | Resource::Allocation => format!("about {}{of}", article(what)),
        }
    }

    /// The tokens and recipients that the rule selects, and what it does with its alerts.
    fn selection(&self) -> Vec<String> {
        let filters = &self.body.filters;
        let mut parts = Vec::new();
        if let Some(patterns) = &filters.allocations {
            parts.push(format!("for recipients named {}", phrase::choice(&shown(&patterns.written))));
        }
        if let Some(patterns) = &filters.listed_methods {
            parts.push(format!("for schedules with the method {}", phrase::choice(&shown(&patterns.written))));
        }
        if self.on != On::Portfolio && !filters.written.is_empty() {
            let written: Vec<String> = filters.written.iter().map(|(text, _)| text.clone()).collect();
            parts.push(format!("for {}", phrase::list(&shown(&written))));
        }
        let severities = self.severities();
        if severities.len() > 1 {
            parts.push(format!("as {}", phrase::choice(&severities)));
        }
        if let Some(limit) = self.limit {
            parts.push(format!("at most {} at once", phrase::count(limit, "alert")));
        }
        if !self.receivers.is_empty() {
            let names: Vec<String> = self.receivers.iter().map(|name| phrase::name(name.as_str())).collect();
            parts.push(format!("to {}", phrase::list(&names)));
        }
        parts.extend(self.expires.map(|at| format!("until {}", phrase::instant(at))));
        parts
    }

    /// The severities of the rule and its levels, without duplicates, if they are constant.
    fn severities(&self) -> Vec<String> {
        let levels = self.body.levels.iter().map(|level| &level.labels);
        let all = std::iter::once(&self.body.labels).chain(levels);
        let mut severities: Vec<String> = Vec::new();
        for labels in all {
            let found = labels.iter().find(|(name, _)| name == "severity").and_then(|(_, template)| template.constant());
            if let Some(severity) = found.map(phrase::name).filter(|severity| !severities.contains(severity)) {
                severities.push(severity);
            }
        }
        severities
    }
}

/// Removes the tests of the least size of `subject`, and returns them: `at least $1M or 1% of market cap`.
fn take_size(conditions: &mut Vec<Phrase>, subject: &str) -> Option<String> {
    let is_size = |test: &Test| test.subject == subject && test.is_least();
    let as_size = |part: &Phrase| match part {
        Phrase::Test(test) if is_size(test) => Some(test.clone()),
        _ => None,
    };
    // Either tests that must all be true, or one choice.
    let tests: Vec<Test> = conditions.iter().filter_map(as_size).collect();
    if !tests.is_empty() {
        conditions.retain(|part| as_size(part).is_none());
        return Some(values(tests.iter(), false));
    }
    let choice = conditions.iter().position(|part| match part {
        Phrase::Group { is_any: true, parts } => parts.iter().all(|part| as_size(part).is_some()),
        _ => false,
    })?;
    let Phrase::Group { parts, .. } = conditions.remove(choice) else { return None };
    let tests: Vec<Test> = parts.iter().filter_map(as_size).collect();
    Some(values(tests.iter(), true))
}

/// Lead times, the longest first: `30, 7, and 1 days`, `7 days`, `2 days and 6 h`.
fn leads(within: &[Lead]) -> String {
    let are_days = within.len() > 1 && within.iter().all(|lead| lead.span == TimeDelta::days(lead.span.num_days()));
    let days = |lead: &Lead| lead.span.num_days().to_string();
    if are_days {
        return format!("{} days", phrase::list(&within.iter().map(days).collect::<Vec<_>>()));
    }
    phrase::list(&within.iter().map(|lead| phrase::duration(lead.span)).collect::<Vec<_>>())
}

fn noun(resource: Resource) -> &'static str {
    match resource {
        Resource::Unlock => "unlock",
        Resource::Burn => "burn",
        Resource::Buyback => "buyback",
        Resource::Emission => "emission",
        Resource::Allocation => "allocation",
        Resource::Funding => "funding round",
    }
}

fn article(noun: &str) -> String {
    format!("{} {noun}", if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" })
}

/// Returns the event of a change of this kind: `an unlock is rescheduled`.
fn change(resource: Resource, kind: ChangeKind) -> String {
    let one = article(noun(resource));
    match kind {
        ChangeKind::Added => format!("{one} is added to the published data"),
        ChangeKind::Removed => format!("{one} is removed from the published data"),
        ChangeKind::Rescheduled => format!("{one} is rescheduled"),
        ChangeKind::Resized => format!("{one} is resized"),
        ChangeKind::Reallocated => format!("{one} is reallocated to other recipients"),
        ChangeKind::Split => format!("{one} is split into several"),
        ChangeKind::Merged => format!("several {} are merged into one", phrase::noun(2, noun(resource))),
        ChangeKind::SeriesShifted => format!("a series of {} is shifted", phrase::noun(2, noun(resource))),
        ChangeKind::SeriesRescaled => format!("a series of {} is rescaled", phrase::noun(2, noun(resource))),
        ChangeKind::Renamed => "an allocation is renamed".to_owned(),
        ChangeKind::Restructured => "a schedule is restructured with the same total".to_owned(),
        ChangeKind::Rewritten => "a schedule is rewritten".to_owned(),
        ChangeKind::Committed => "a claim is announced or changed".to_owned(),
        ChangeKind::Revised => format!("other facts of {one} are revised"),
        ChangeKind::SupplyChanged => "max supply or the total of an allocation changes".to_owned(),
    }
}

fn pool(pool: &Pool) -> String {
    match pool {
        Pool::Watched => "all selected tokens".to_owned(),
        Pool::Group(name) => format!("@{}", phrase::name(name)),
    }
}

fn shown(names: &[String]) -> Vec<String> {
    names.iter().map(|name| phrase::name(name)).collect()
}
