//! The routes: which keys each may have, and whether the receivers that they name are there.

use super::ConfigCheck;
use crate::config::keys;
use crate::config::tree::{ConfigNode, ConfigValue};
use model::closest;

/// How deep routes may nest.
const MAX_ROUTE_DEPTH: usize = 16;

impl ConfigCheck<'_> {
    pub(super) fn route(&mut self, node: &ConfigNode, title: &str, depth: usize, is_root: bool) {
        if !matches!(node.value, ConfigValue::Table(_)) {
            self.wrong_type(title.trim_matches(['[', ']']), node, "a table", None);
            return;
        }
        self.section(node, title, keys::ROUTE);
        for entry in node.table() {
            let misplaced = match entry.key.as_str() {
                "matchers" | "continue" if is_root => "the root of the routes takes everything",
                "fallback" if !is_root => "only [route] itself has a fallback",
                "active_time_intervals" | "mute_time_intervals" if is_root => "the root of the routes is always at work",
                _ => continue,
            };
            self.error(&entry.key_place, format!("`{}` is not for {title}: {misplaced}", entry.key));
        }
        let Some(children) = node.get("routes") else { return };
        if depth >= MAX_ROUTE_DEPTH {
            self.error(&children.key_place, format!("routes nest deeper than {MAX_ROUTE_DEPTH} levels"));
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

    /// Every receiver that a route names exists; every receiver is used or may be named by a rule.
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
                        None if names.is_empty() => "there is no [[receiver]] yet".to_owned(),
                        None => format!("the receivers are {}", names.join(", ")),
                    };
                    self.error(&item.place, format!("no receiver is named {text:?}")).help = Some(help);
                }
            }
            pending.extend(route.get("routes").map_or(&[][..], |entry| entry.node.list()));
        }
        let has_root =
            root.get("route").and_then(|route| route.node.get("receivers")).is_some_and(|entry| !entry.node.list().is_empty());
        // Without any [route], everything goes to every receiver.
        if let Some(route) = root.get("route").filter(|_| !names.is_empty() && !has_root) {
            self.warning(&route.key_place, "[route] names no `receivers`: alerts that no route takes are told to nobody").help =
                Some(format!("add `receivers = [{:?}]`", names.first().map_or("ops", String::as_str)));
        }
    }
}
