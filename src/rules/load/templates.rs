//! Reads the template tables `labels` and `annotations` of a rule and its levels.

use toml::de::DeTable;

use crate::{on::On, template::Template};

use super::{MAX_ITEMS, MAX_NAME, RuleReader};

impl RuleReader<'_> {
    /// Reads annotations if `label_names` is given, else labels.
    pub fn templates(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        on: On,
        label_names: Option<&[String]>,
    ) -> Vec<(String, Template)> {
        let is_label = label_names.is_none();
        let Some(value) = table.get(key) else {
            return Vec::new();
        };
        let Some(inner) = value.get_ref().as_table() else {
            let example = if is_label { "`labels = { severity = \"warning\" }`" } else { "`[rule.annotations]`" };
            self.wrong_type(key, value, &format!("a table: {example}"));
            return Vec::new();
        };
        let mut templates = Vec::new();
        for (name, value) in inner {
            let word = name.get_ref().as_ref();
            let is_name = word.len() <= MAX_NAME
                && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name {
                self.reject(
                    name.span(),
                    format!("`{word}` is not a valid name in `{key}`"),
                    "use letters, digits, and `_`; do not start with a digit",
                );
                continue;
            }
            if is_label && (matches!(word, "alertname" | "token") || (word == "group" && on == On::Portfolio)) {
                self.reject(name.span(), format!("the label `{word}` is set automatically"), "choose another name");
                continue;
            }
            if templates.len() >= MAX_ITEMS {
                self.reject(name.span(), format!("`{key}` has more than {MAX_ITEMS} entries"), "remove some");
                break;
            }
            let Some(text) = self.as_text(value) else {
                self.wrong_type(&format!("{key}.{word}"), value, "a quoted string");
                continue;
            };
            let (template, findings) = Template::check(self.engine, &text.value, on, label_names);
            self.report(&text, findings);
            templates.push((word.to_owned(), template));
        }
        templates
    }
}

/// Returns the names of the labels that a rule or one of its levels sets, and of the automatic labels, sorted and without duplicates.
pub(super) fn label_names(table: &DeTable<'_>, on: On) -> Vec<String> {
    let levels = table.get("level").and_then(|value| value.get_ref().as_array()).into_iter().flatten();
    let tables = levels.filter_map(|level| level.get_ref().as_table()).chain([table]);
    let mut names: Vec<String> = tables
        .filter_map(|table| table.get("labels")?.get_ref().as_table())
        .flat_map(|labels| labels.keys().map(|name| name.get_ref().as_ref().to_owned()))
        .chain(["alertname".to_owned(), "token".to_owned()])
        .chain((on == On::Portfolio).then(|| "group".to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}
