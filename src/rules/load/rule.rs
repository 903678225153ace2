//! Reads one `[[rule]]` with its levels, and checks that its keys fit its `on`.

use std::ops::Range;

use chrono::TimeDelta;
use toml::{Spanned, de::DeTable};

use crate::condition::{Condition, Dependencies, Edge, Logic};
use crate::on::On;
use crate::rule::{Level, Rule, RuleBody, RuleLocation};
use model::{Resource, RuleId, closest};

use super::{LEVEL_KEYS, MAX_ITEMS, MAX_NAME, RULE_KEYS, RuleReader, templates::label_names, values::LocatedText};

/// The default of `since`: the maximum age of a new burn, buyback, or funding round.
const DEFAULT_SINCE: TimeDelta = TimeDelta::days(7);

impl RuleReader<'_> {
    /// Reads one rule. Also returns the span of its name and whether it is enabled. `None` if its name or `on` cannot be read.
    /// All problems are in the diagnostics.
    pub fn rule(&mut self, table: &DeTable<'_>, header: Range<usize>) -> Option<(Rule, Range<usize>, bool)> {
        self.unknown_keys(table, &RULE_KEYS, "this rule");
        let (alert, id, on) = self.head(table, header)?;
        self.warn_ineffective_keys(table, on);

        let within = self.within(table);
        let since = self.length(table, "since").unwrap_or(DEFAULT_SINCE);
        let pending_for = self.length(table, "for").unwrap_or_default();
        let keep_firing_for = self.length(table, "keep_firing_for").unwrap_or_default();
        let label_names = label_names(table, on);
        let mut body = RuleBody {
            when: self.condition(table, "when", on),
            clear_when: self.condition(table, "clear_when", on),
            fires_on_missing: self.missing(table),
            filters: self.filters(table),
            levels: self.levels(table, on, &label_names),
            labels: self.templates(table, "labels", on, None),
            annotations: self.templates(table, "annotations", on, Some(&label_names)),
            dependencies: Dependencies::default(),
            label_names,
        };
        self.level_reach(table, &body);
        body.dependencies = body.collect_dependencies();
        self.known_groups(table, &body.dependencies);
        let is_clock_dependent = body.dependencies.clock;
        let edges = body.dependencies.edges.iter().filter_map(|edge| match edge {
            Edge::Until(days) => Some(*days),
            Edge::Since(..) | Edge::PriceAge(_) | Edge::RateChange(_) => None,
        });
        let edges = edges.collect();
        let pools = if on == On::Portfolio { self.pools(table, &body.filters) } else { Vec::new() };
        let name_place = id.as_ref().map_or(&alert, |id| id).span.clone();
        let rule = Rule {
            id: RuleId::from(id.map_or_else(|| alert.value.clone(), |id| id.value)),
            name: alert.value,
            on,
            within,
            since,
            pending_for,
            keep_firing_for,
            limit: self.limit(table),
            receivers: self.receivers(table),
            owner: self.text(table, "owner").map(|owner| owner.value),
            expires: self.expires(table),
            is_clock_dependent,
            edges,
            pools,
            location: RuleLocation { file: self.file.file.as_path().into(), span: name_place.clone() },
            body,
        };
        let is_enabled = self.boolean(table, "enabled").unwrap_or(true);
        Some((rule, name_place, is_enabled))
    }

    /// Reads the required keys `alert` and `on`, and the optional `id`.
    fn head(&mut self, table: &DeTable<'_>, header: Range<usize>) -> Option<(LocatedText, Option<LocatedText>, On)> {
        let alert = self.text(table, "alert");
        let id = self.text(table, "id");
        let on_text = self.text(table, "on");
        if alert.is_none() && !table.contains_key("alert") {
            self.reject(header.clone(), "this rule has no `alert`", "add a name: `alert = \"BigCliffAhead\"`");
        }
        if on_text.is_none() && !table.contains_key("on") {
            self.reject(header, "this rule has no `on`", "add what the rule subscribes to: `on = \"unlock\"`");
        }
        for name in [&alert, &id].into_iter().flatten() {
            let is_bad =
                name.value.trim().is_empty() || name.value.chars().count() > MAX_NAME || name.value.chars().any(char::is_control);
            if is_bad {
                self.reject(
                    name.span.clone(),
                    format!("a name must have 1 to {MAX_NAME} characters on one line"),
                    "example: \"BigCliffAhead\"",
                );
            }
        }
        let on = on_text.and_then(|text| self.on(&text));
        Some((alert?, id, on?))
    }

    /// Reports keys that have no effect with the rule's `on`.
    pub fn warn_ineffective_keys(&mut self, table: &DeTable<'_>, on: On) {
        let is_event = matches!(on, On::Change(..) | On::Record(Resource::Burn | Resource::Buyback | Resource::Funding));
        for (key, _) in table {
            let name = key.get_ref().as_ref();
            let wrong = match (name, on) {
                ("within", On::Change(..)) => {
                    Some(("a change has no lead time", "use a condition instead: `when = \"daysUntil <= 7\"`"))
                }
                ("within", On::Record(Resource::Unlock | Resource::Emission)) => None,
                ("within", _) => Some(("only future records have lead times", "remove it, or set `on = \"unlock\"`")),
                ("since", On::Record(Resource::Burn | Resource::Buyback | Resource::Funding)) => None,
                ("since", _) => Some(("only burns, buybacks, and funding rounds have an age limit", "remove it")),
                ("for" | "keep_firing_for" | "clear_when", _) if is_event => {
                    Some(("a one-time event has no duration and never clears", "remove it"))
                }
                ("allocations", On::Token | On::Portfolio) => {
                    Some(("windows cover all allocations", "remove it, or set `on = \"unlock\"`"))
                }
                ("listed_methods", On::Portfolio) => Some(("a group has no listing method", "remove it")),
                ("listed_methods" | "allocations", On::Source) => Some(("an incident has no record", "remove it")),
                ("allocations", On::Record(Resource::Burn | Resource::Buyback | Resource::Funding))
                | ("allocations", On::Change(Resource::Burn | Resource::Buyback | Resource::Funding, _)) => {
                    Some(("these records have no allocations", "remove it"))
                }
                _ => None,
            };
            if let Some((why, help)) = wrong {
                self.reject(key.span(), format!("`{name}` cannot be used here: {why}"), help);
            }
        }
    }

    pub fn condition(&mut self, table: &DeTable<'_>, key: &str, on: On) -> Option<Condition> {
        let text = self.text(table, key)?;
        let (condition, findings) = Condition::compile(&text.value, on);
        self.report(&text, findings);
        condition
    }

    pub fn levels(&mut self, table: &DeTable<'_>, on: On, label_names: &[String]) -> Vec<Level> {
        let Some(value) = table.get("level") else {
            return Vec::new();
        };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type("level", value, "`[[rule.level]]` with two brackets");
            return Vec::new();
        };
        let mut levels = Vec::new();
        for item in list {
            let Some(table) = item.get_ref().as_table() else {
                self.wrong_type("level", item, "`[[rule.level]]`");
                continue;
            };
            if levels.len() >= MAX_ITEMS {
                self.reject(item.span(), format!("there are more than {MAX_ITEMS} levels"), "write several rules");
                break;
            }
            self.unknown_keys(table, &LEVEL_KEYS, "this level");
            if !table.contains_key("when") {
                self.reject(item.span(), "this level has no `when`", "add its condition: `when = \"valueToMarketCap >= 10\"`");
            }
            let when = self.condition(table, "when", on);
            let labels = self.templates(table, "labels", on, None);
            let annotations = self.templates(table, "annotations", on, Some(label_names));
            if let Some(when) = when {
                levels.push(Level { when, labels, annotations });
            }
        }
        levels
    }

    /// Warns about levels that are never used: a later level matches whenever they do, or they contradict `when`.
    pub fn level_reach(&mut self, table: &DeTable<'_>, body: &RuleBody) {
        let Some(list) = table.get("level").and_then(|value| value.get_ref().as_array()) else { return };
        if list.len() != body.levels.len() {
            return;
        }
        let base = body.when.as_ref().map_or_else(Logic::always, |when| when.logic.clone());
        for (index, (level, item)) in body.levels.iter().zip(list).enumerate() {
            let here = base.and(&level.when.logic);
            let place = item.get_ref().as_table().and_then(|table| table.get("when")).map_or_else(|| item.span(), Spanned::span);
            if here.is_impossible() && !base.is_impossible() && !level.when.logic.is_impossible() {
                self.warn(
                    place,
                    "this level is never used: it contradicts the rule's own `when`",
                    "a level applies only if the rule matches",
                );
                continue;
            }
            let later = body.levels.iter().skip(index + 1).any(|later| here.implies(&later.when.logic));
            if later && !here.is_impossible() {
                self.warn(
                    place,
                    "this level is never used: a later level matches whenever this one does",
                    "the last matching level applies: put stricter levels last",
                );
            }
        }
    }

    pub fn unknown_keys(&mut self, table: &DeTable<'_>, known: &[&'static str], of: &str) {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let help = match name {
                "expr" | "condition" | "if" => "did you mean `when`?".to_owned(),
                "name" => "did you mean `alert`?".to_owned(),
                "severity" | "team" => format!("labels belong in a table: `labels = {{ {name} = \"…\" }}`"),
                "summary" | "description" | "runbook_url" => "texts belong below `[rule.annotations]`".to_owned(),
                _ => closest(name, known.iter().copied())
                    .map_or_else(|| format!("known keys: {}", known.join(", ")), |near| format!("did you mean `{near}`?")),
            };
            self.reject(key.span(), format!("unknown key `{name}` in {of}"), help);
        }
    }
}
