//! Checks the keys of each route, and that the receivers it names exist.

use super::ConfigCheck;
use crate::config::tree::{ConfigNode, ConfigValue};
use model::{closest, config::Route};

const MAX_ROUTE_DEPTH: usize = 16;

impl ConfigCheck<'_> {
    pub(super) fn route(&mut self, node: &ConfigNode, title: &str, depth: usize, is_root: bool) {
        if !matches!(node.value, ConfigValue::Table(_)) {
            self.wrong_type(title.trim_matches(['[', ']']), node, "a table", None);
            return;
        }
        self.section(node, title, Route::KEYS);
        for entry in node.table() {
            let misplaced = match entry.key.as_str() {
                "matchers" | "continue" if is_root => "the root route takes every alert",
                "fallback" if !is_root => "only [route] itself has one",
                "active_time_intervals" | "mute_time_intervals" if is_root => "the root route is always active",
                _ => continue,
            };
            self.error(&entry.key_location, format!("`{}` is not allowed in {title}: {misplaced}", entry.key));
        }
        let Some(children) = node.get("routes") else { return };
        if depth >= MAX_ROUTE_DEPTH {
            self.error(&children.key_location, format!("routes are nested deeper than {MAX_ROUTE_DEPTH} levels"));
            return;
        }
        if !matches!(children.node.value, ConfigValue::List(_)) {
            self.wrong_type(
                "routes",
                &children.node,
                "a list of tables",
                Some("write `[[route.routes]]` with double brackets".into()),
            );
            return;
        }
        for child in children.node.list() {
            self.route(child, "[[route.routes]]", depth + 1, false);
        }
    }

    /// Checks that every receiver that a route names exists, and warns about a `[route]` without receivers.
    pub(super) fn receiver_names(&mut self, root: &ConfigNode, names: &[String]) {
        let mut pending: Vec<&ConfigNode> = root.get("route").map(|entry| &entry.node).into_iter().collect();
        while let Some(route) = pending.pop() {
            for key in ["receivers", "fallback"] {
                for item in route.get(key).map_or(&[][..], |entry| entry.node.list()) {
                    let Some(text) = item.text() else { continue };
                    if names.iter().any(|name| name == text) {
                        continue;
                    }
                    let help = match closest(text, names.iter().map(String::as_str)) {
                        Some(near) => format!("did you mean {near:?}?"),
                        None if names.is_empty() => "no [[receiver]] is configured".to_owned(),
                        None => format!("the configured receivers are {}", names.join(", ")),
                    };
                    self.error(&item.location, format!("no receiver is named {text:?}")).help = Some(help);
                }
            }
            pending.extend(route.get("routes").map_or(&[][..], |entry| entry.node.list()));
        }
        let has_root =
            root.get("route").and_then(|route| route.node.get("receivers")).is_some_and(|entry| !entry.node.list().is_empty());
        // Without any [route], everything goes to every receiver.
        if let Some(route) = root.get("route").filter(|_| !names.is_empty() && !has_root) {
            self.warning(
                &route.key_location,
                "[route] has no `receivers`: alerts that match no other route are sent to no one",
            )
            .help = Some(format!("add `receivers = [{:?}]`", names.first().map_or("ops", String::as_str)));
        }
    }
}
